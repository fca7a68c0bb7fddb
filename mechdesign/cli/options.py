"""Arguments and options that several commands share, and how numbers are read from words."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.numerals import real_number, whole_number
from mechdesign.errors import InputError


def real(*names: str, help: str) -> Any:
    """An option that takes a real number."""
    return typer.Option(*names, help=help, metavar="NUMBER", parser=_reader(names[0], real_number))


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


ProblemArgument = Annotated[str, typer.Argument(help="Path of a problem file, or the name of a shipped problem.")]
FileArgument = Annotated[Path, typer.Argument(help="A mechanism file (NetCDF).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
GapOption = Annotated[float, real("--gap", help="Target of (loss - lower_bound) / loss.")]
LimitOption = Annotated[float, real("--time-limit", help="Seconds; the best certified table so far is kept.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
