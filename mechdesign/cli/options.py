"""Arguments and options that several commands share, with parsers of numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.numbers import real_number, whole_number
from mechdesign.base.streams import visible


def real(name: str, help: str, metavar: str = "NUMBER") -> Any:
    """An option that takes a real number."""
    return typer.Option(name, help=help, metavar=metavar, parser=_reader(real_number))


def whole(name: str, help: str, metavar: str = "INTEGER") -> Any:
    """An option that takes an integer."""
    return typer.Option(name, help=help, metavar=metavar, parser=_reader(whole_number))


def _reader(read: Callable[[str], float]) -> Callable[[Any], Any]:
    """A parser of the text of an option; a default value is returned as it is."""

    def number(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        try:
            return read(text)
        except ValueError as error:
            # InputError is a ValueError, which Typer would print itself, and fail on text that is not UTF-8.
            raise typer.BadParameter(f"{error}, got {visible(text)}") from error

    return number


def check_outputs(*outputs: tuple[Path | None, Callable[..., object]], overwrite: bool) -> None:
    """Check the files to write, before any work."""
    for path, check in outputs:
        if path is not None:
            check(path, overwrite=overwrite)


def _complete_problem(incomplete: str) -> list[str]:
    from mechdesign.problem.problem_files import shipped_paths

    return [name for name in shipped_paths() if name.startswith(incomplete)]


ProblemArgument = Annotated[
    str,
    typer.Argument(help="Path of a problem file, or the name of a shipped problem.", autocompletion=_complete_problem),
]
FileArgument = Annotated[Path, typer.Argument(help="A mechanism file (NetCDF).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
GapOption = Annotated[float, real("--gap", help="Stop when (loss - lower bound) / loss is at most this.")]
OwnGapOption = Annotated[
    float | None,
    real("--gap", help="Stop when (loss - lower bound) / loss is at most this; by default 0.001, 0.005 for a pool."),
]
LimitOption = Annotated[float, real("--time-limit", help="Seconds. At the limit the best table so far is certified.")]
BoundOption = Annotated[
    bool | None,
    typer.Option(
        "--bound/--no-bound",
        help="Compute a lower bound on the loss even if the method does not need one, or skip it.",
    ),
]
ExitZeroOption = Annotated[
    bool, typer.Option("--exit-zero", help="Exit with 0 after a bad verdict too; errors keep their exit codes.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Print all figures and the full claim.")]
_WITHIN_HELP = "Radius of protection: places up to this far apart stay hard to distinguish. In --unit, by default m."
_FACTOR_HELP = "Largest factor by which a report changes an attacker's odds between such places, such as 2."
WithinOption = Annotated[float | None, real("--within", metavar="METRES", help=_WITHIN_HELP)]
FactorOption = Annotated[float | None, real("--factor", metavar="ODDS", help=_FACTOR_HELP)]
EpsilonOption = Annotated[float | None, real("--epsilon", help="Nats per unit, instead of --within and --factor.")]
_COLUMNS_HELP = "Names of columns in a text file that differ from ours: report=antwort,count=anzahl."
ColumnsOption = Annotated[str | None, typer.Option("--columns", metavar="OURS=THEIRS,...", help=_COLUMNS_HELP)]
_CRS_HELP = "Coordinate system of inputs that declare none, such as EPSG:27700; also of columns x and y of --people."
CrsOption = Annotated[str | None, typer.Option("--crs", metavar="SYSTEM", help=_CRS_HELP)]
BoxOption = Annotated[str | None, typer.Option("--box", metavar="W,S,E,N", help="A box in degrees, instead of a file.")]
AREAS: Any = typer.Option(
    "--areas",
    help="Polygons (.geojson, .gpkg, .shp, .fgb), labels (.csv of cell and area, .asc, .tif), 3x3 blocks, or classes.",
)
NameFieldOption = Annotated[
    str | None,
    typer.Option("--name-field", help="Property of polygons with the name of the area. Default: name, label or id."),
]
ConfidenceOption = Annotated[float, real("--confidence", help="Confidence of the intervals, such as 0.95.")]
SimultaneousOption = Annotated[
    bool, typer.Option("--simultaneous", help="Intervals that hold for all areas together (Bonferroni).")
]
