"""`mechdesign sample`: exact draws of reports for one location."""

import contextlib
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, real, whole
from mechdesign.cli.values import parse_place


# Options of typer stand in the signature: each is a word of the command.
def sample(
    context: typer.Context,
    file: FileArgument,
    at: Annotated[
        str | None, typer.Option("--at", metavar="X Y", help="The location, in the mechanism's unit.")
    ] = None,
    secret: Annotated[int | None, whole("--secret", help="The number of the secret, instead of --at.")] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north. Reports are then in degrees too.")] = None,
    count: Annotated[int, whole("-n", help="Number of reports. k reports cost k times the epsilon.")] = 1,
    seed: Annotated[int | None, whole("--seed", help="For simulations only: anybody can repeat such draws.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign sample rome.nc --lon 12.49 --lat 41.89`.

    Draw reports for a location or a secret exactly, from a certified mechanism. FILE comes first.
    """
    location = parse_place(at, context.args)
    from mechdesign.output.reports.sample import sample_document, sample_words
    from mechdesign.output.text_tables import progress, show
    from mechdesign.verification.verify import file_kind, load_any

    mechanism = load_any(file)
    table = file_kind(mechanism) is None
    with contextlib.nullcontext() if table else progress(f"verify {file.name}") as on_progress:
        document = sample_document(
            mechanism, at=location, degrees=(lon, lat), secret=secret, count=count, seed=seed, on_progress=on_progress
        )
    show(document, sample_words(document), as_json=as_json)
