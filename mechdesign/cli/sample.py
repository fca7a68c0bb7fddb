"""`mechdesign sample`: reports for one location, drawn exactly."""

import contextlib
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, VerboseOption, real, whole
from mechdesign.cli.parsing import place_asked


def sample(
    context: typer.Context,
    file: FileArgument,
    at: Annotated[str | None, typer.Option("--at", metavar="X Y", help="The location, in the unit of the map.")] = None,
    secret: Annotated[int | None, whole("--secret", help="The number of the secret, instead of --at.")] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north; reports in degrees too.")] = None,
    count: Annotated[int, whole("-n", help="How many reports; k of them cost k times the epsilon.")] = 1,
    seed: Annotated[int | None, whole("--seed", help="For simulations only: such reports are known.")] = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw reports for a location (or a secret) from a certified mechanism, exactly; FILE comes first."""
    location = place_asked(at, context.args)
    from mechdesign.mechanism.compact.file import is_compact, load_compact
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.sampling import print_sample, sample_document

    compact = is_compact(file)
    mechanism = load_compact(file) if compact else load(file)
    with printing.progress(f"verify {file.name}") if compact else contextlib.nullcontext() as on_progress:
        drawn = sample_document(
            mechanism, at=location, degrees=(lon, lat), secret=secret, count=count, seed=seed, on_progress=on_progress
        )
    if as_json:
        printing.print_json(drawn)
    else:
        print_sample(drawn, verbose=verbose)
