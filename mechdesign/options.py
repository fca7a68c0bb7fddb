"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ProblemArgument = Annotated[str, typer.Argument(help="Path of a problem file, or the name of a shipped problem.")]
FileArgument = Annotated[Path, typer.Argument(help="A mechanism file (NetCDF).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
GapOption = Annotated[float, typer.Option("--gap", help="Target of (loss - lower_bound) / loss.")]
LimitOption = Annotated[float, typer.Option("--time-limit", help="Seconds; the best certified table so far is kept.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
