"""Arguments and options that several commands share, and how numbers are read from words."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.numerals import real_number, whole_number
from mechdesign.errors import InputError


def real(*names: str, help: str, hidden: bool = False, metavar: str = "NUMBER") -> Any:
    """An option that takes a real number."""
    return typer.Option(*names, help=help, hidden=hidden, metavar=metavar, parser=_reader(names[0], real_number))


def whole(*names: str, help: str) -> Any:
    """An option that takes a whole number."""
    return typer.Option(*names, help=help, metavar="WHOLE", parser=_reader(names[0], whole_number))


def _reader(option: str, read: Callable[[str], float]) -> Callable[[Any], Any]:
    """Reads the words of an option; a default, which is no word, stays as it is."""

    def number(given: Any) -> Any:
        if not isinstance(given, str):
            return given
        try:
            return read(given)
        except ValueError as error:
            raise InputError(str(error), field=option.lstrip("-"), value=given, remedy=f"write {option} 2") from error

    return number


def _shipped(incomplete: str) -> list[str]:
    from mechdesign.setting.problems.shipped import shipped_paths

    return [name for name in shipped_paths() if name.startswith(incomplete)]


ProblemArgument = Annotated[
    str, typer.Argument(help="Path of a problem file, or the name of a shipped problem.", autocompletion=_shipped)
]
FileArgument = Annotated[Path, typer.Argument(help="A mechanism file (NetCDF).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
GapOption = Annotated[float, real("--gap", help="Target of (loss - lower_bound) / loss.")]
LimitOption = Annotated[float, real("--time-limit", help="Seconds; the best certified table so far is kept.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Print the whole claim too.")]
WithOption = Annotated[
    list[Path] | None,
    typer.Option("--with", help="A mechanism of yours beside them: a table (.npy, .csv, ...) or .nc; repeatable."),
]
PageOption = Annotated[Path | None, typer.Option("--page", help="Page to write: one .html that proves its own table.")]
_WITHIN_HELP = "Places up to this far apart stay hard to tell apart; in --unit, metres without it."
_FACTOR_HELP = "What a report may multiply an attacker's odds between such places by, 2 for example."
WithinOption = Annotated[float | None, real("--within", metavar="METRES", help=_WITHIN_HELP)]
FactorOption = Annotated[float | None, real("--factor", metavar="ODDS", help=_FACTOR_HELP)]
NatsOption = Annotated[float | None, real("--nats", help="The logarithm of --factor, instead of it.")]
EpsilonOption = Annotated[float | None, real("--epsilon", help="Nats per unit, instead of --within and --factor.")]
RadiusOption = Annotated[float | None, real("--radius", help="As --within.", hidden=True)]
AREAS: Any = typer.Option(
    "--areas", help="Polygons (.geojson), labels (.csv of cell and area, .asc, .tif), or 3x3 blocks."
)
NameFieldOption = Annotated[
    str | None, typer.Option("--name-field", help="Property of polygons that names their areas. [name, label or id]")
]
RestOption = Annotated[str | None, typer.Option("--rest", help="Name of the area of places that --areas leaves out.")]
ConfidenceOption = Annotated[float, real("--confidence", "--level", help="Of the intervals, such as 0.95.")]
SimultaneousOption = Annotated[
    bool, typer.Option("--simultaneous", help="Intervals that hold for all areas together (Bonferroni).")
]
