"""`mechdesign verify`: prove or refuse the claim of a file."""

from typing import Annotated

import typer

from mechdesign.cli.options import (
    FileArgument,
    JsonOption,
    OverwriteOption,
    PageOption,
    VerboseOption,
    check_page,
    save_page,
)
from mechdesign.errors import InputError


def verify(
    file: FileArgument,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="Whether the lower bound of a factored file is priced again.")
    ] = True,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Prove or refuse the claim of a mechanism file, a session design or a compact map, from their integers alone."""
    from mechdesign.mechanism.storage import load
    from mechdesign.mechanism.stored import read
    from mechdesign.output import printing
    from mechdesign.output.verdicts import verification_words
    from mechdesign.verification.verify import kind_of
    from mechdesign.verification.verify import verify as verify_file

    table = kind_of(file) is None
    if page is not None and not table:
        raise InputError("a page is of one table", field="page", value=file, remedy="use `mechdesign page`, or a table")
    if page is not None:
        check_page(page, overwrite=overwrite)
    printing.note_compiling()
    with printing.progress(f"verify {file.name}") as on_progress:
        result = verify_file(file, bound=bound, on_progress=on_progress)
    if page is not None and result.certified:
        save_page(load(file), page, overwrite=overwrite)
    stored = read(load(file)) if table and result.certified and not as_json else None
    printing.show(result.as_dict(), verification_words(result, stored, verbose=verbose), as_json=as_json)
    if not result.certified:
        raise typer.Exit(1)
