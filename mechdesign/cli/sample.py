"""`mechdesign sample`: exact draws of reports for one location, or for every point of a file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.base.numbers import number_list
from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    CrsOption,
    FileArgument,
    JsonOption,
    OverwriteOption,
    real,
    whole,
)
from mechdesign.cli.remedies import as_options, option_names
from mechdesign.cli.values import parse_place
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.output.point_files.reports import PointOptions

_POINTS_HELP = "A file of points: .csv, .parquet, .geojson, .gpx, .gpkg, .shp or .fgb. -o names the file of reports."
_OUTPUT_HELP = "The file of reports: .csv, .parquet, .geojson, .gpx or .gpkg."
_ID_HELP = "Column that names the person: equal points of one person are one secret, and share one report."
_OUTSIDE_HELP = "Points outside the mechanism: refuse them, or leave their reports empty."
_KEEP_HELP = "Columns that look like positions, and are kept all the same."

_WHICH_HELP = "The number of the secret, or the label of a class, instead of --at."


# Options of typer stand in the signature: each is a word of the command.
def sample(
    context: typer.Context,
    file: FileArgument,
    points: Annotated[str | None, typer.Argument(help=_POINTS_HELP, metavar="[POINTS]")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="X Y", help="The location, in the mechanism's unit.")
    ] = None,
    secret: Annotated[str | None, typer.Option("--secret", metavar="SECRET", help=_WHICH_HELP)] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north. Reports are then in degrees too.")] = None,
    count: Annotated[int, whole("-n", help="Number of reports. k reports cost k times the epsilon.")] = 1,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    person: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help=_ID_HELP)] = None,
    outside: Annotated[str, typer.Option("--outside", metavar="refuse|empty", help=_OUTSIDE_HELP)] = "refuse",
    keep: Annotated[str | None, typer.Option("--keep", metavar="COLUMN,...", help=_KEEP_HELP)] = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    seed: Annotated[int | None, whole("--seed", help="For simulations only: anybody can repeat such draws.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign sample rome.nc --lon 12.49 --lat 41.89`.

    Draw reports exactly, from a certified mechanism: for a location or a secret, or for every point of a file.
    """
    from mechdesign.output.reports.sample import sample_document, sample_words
    from mechdesign.output.text_tables import progress, show
    from mechdesign.verification.kinds import file_kind, load_any

    if output is not None or (points is not None and at is None and not _is_number(points)):
        for name, value in {
            "at": at,
            "secret": secret,
            "lon": lon,
            "lat": lat,
            "n": None if count == 1 else count,
        }.items():
            if value is not None:
                raise InputError("does not apply to a file of points", field=name, value=value)
        named = InputOptions(columns).columns_of("longitude", "latitude", "x", "y", "z", "secret")
        _sample_file(
            file,
            points,
            output,
            given={"outside": outside, "person": person, "columns": named, "crs": crs, "rng": seed}
            | {"keep": [word.strip() for word in (keep or "").split(",") if word.strip()]},
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    for name, value in {"id": person, "keep": keep, "columns": columns, "crs": crs, "outside": outside}.items():
        if value not in (None, "refuse"):
            raise InputError("is for a file of points", field=name, value=value, remedy="give FILE POINTS -o REPORTS")
    location = parse_place(at, [*([] if points is None else [points]), *context.args])
    mechanism = load_any(file, cold=True)
    table = file_kind(mechanism) is None
    with contextlib.nullcontext() if table else progress(f"verify {file.name}") as on_progress:
        document = sample_document(
            mechanism, at=location, degrees=(lon, lat), secret=secret, count=count, seed=seed, on_progress=on_progress
        )
    show(document, sample_words(document), as_json=as_json)


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(number_list(word))
    return False


def _sample_file(
    file: Path, points: str | None, output: Path | None, *, given: dict[str, Any], overwrite: bool, as_json: bool
) -> None:
    from mechdesign.output.point_files.reports import PointOptions, file_words, sample_file
    from mechdesign.output.text_tables import note, progress, show
    from mechdesign.verification.kinds import load_any

    if points is None or output is None:
        missing, remedy = ("points", "give FILE POINTS -o REPORTS") if points is None else ("output", "pass -o REPORTS")
        raise InputError("is required for a file of points", field=missing, remedy=remedy)
    options: PointOptions = PointOptions(**given)
    with option_names(person="id"), progress(f"sample {Path(points).name}") as on_progress:
        document = sample_file(
            load_any(file),
            Path(points),
            output,
            options=options,
            overwrite=overwrite,
            on_note=lambda text: note(as_options(text)),
            on_progress=on_progress,
        )
    show(document, file_words(document), as_json=as_json)
