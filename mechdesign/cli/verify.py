"""`mechdesign verify`: prove or refuse the claim of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.options import FileArgument, JsonOption, VerboseOption
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanism.mechanism_file import MechanismFile


class VerifyExtra(Protocol):
    """Options that a capability adds to `verify`."""

    @property
    def is_given(self) -> bool:
        """True if the options ask for a report."""
        ...

    def check(self, file: Path, *, is_table: bool) -> None:
        """Raise InputError if the options contradict each other or the file, before any work."""
        ...

    def report(self, stored: MechanismFile) -> tuple[dict[str, Any], list[str]]:
        """Further fields of the JSON document, and further sentences."""
        ...


@with_extra_options("verify")
def verify(
    file: FileArgument,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="Recompute the lower bound of a factored file, or skip it.")
    ] = True,
    checker: Annotated[
        Path | None,
        typer.Option("--checker", help="Also run mechdesign-check, the checker of proofs/.", metavar="PROGRAM"),
    ] = None,
    extra: VerifyExtra | None = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign verify rome.nc`.

    Prove or refuse the claim of a mechanism file, a session design or a device map, from its integers alone.
    """
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.verdict import checker_words, verification_words
    from mechdesign.verification.kinds import file_kind
    from mechdesign.verification.verify import verify_cold

    if extra is not None:
        extra.check(file, is_table=file_kind(file) is None)
    if checker is not None:
        _check_checker(checker, is_table=file_kind(file) is None)
    with printing.progress(f"verify {file.name}") as on_progress:
        result = verify_cold(file, bound=bound, on_progress=on_progress)
    document = result.as_dict()
    stored = result.file if result.certified else None
    more: list[str] = []
    if extra is not None and extra.is_given and stored is not None:
        fields, more = extra.report(stored)
        document |= fields
    if checker is not None and stored is not None:
        from mechdesign.output.proof_checker import claims_proved_by

        document["proved_by_checker"] = claims_proved_by(checker, stored)
        more += checker_words(document["proved_by_checker"])
    words = () if as_json else verification_words(result, stored, verbose=verbose)
    printing.show(document, [*words, *more], as_json=as_json)
    if not result.certified:
        raise typer.Exit(1)


def _check_checker(checker: Path, *, is_table: bool) -> None:
    """Raise an InputError if the program does not exist, or if the file is not a table, before any work."""
    from mechdesign.output.proof_checker import checker_program

    checker_program(checker)
    if not is_table:
        raise InputError("checks the tables of mechanisms only", field="checker", value=checker)
