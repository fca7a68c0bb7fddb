"""`mechdesign verify`: prove or refuse the claim of a file."""

from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, OverwriteOption, PageOption, VerboseOption
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
    from mechdesign.mechanism.compact.file import is_compact
    from mechdesign.mechanism.session.design_files import is_design
    from mechdesign.mechanism.storage.files import load
    from mechdesign.mechanism.stored import read
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.verdicts import print_verification
    from mechdesign.verification.verify import verify as verify_file

    if page is not None and (is_design(file) or is_compact(file)):
        remedy = "use `mechdesign page`" if is_compact(file) else "verify the table of the design"
        raise InputError("a page is of one table", field="page", value=file, remedy=remedy)
    if page is not None:
        from mechdesign.output.page.page import check_page_target, save_page

        check_page_target(page, overwrite=overwrite)
    printing.note_compiling()
    with printing.progress(f"verify {file.name}") as on_progress:
        result = verify_file(file, bound=bound, on_progress=on_progress)
    if page is not None and result.certified:
        save_page(load(file), page, overwrite=overwrite)
    if as_json:
        printing.print_json(result.as_dict())
    else:
        one = result.certified and result.windows is None and not is_compact(file)
        print_verification(result, read(load(file)) if one else None, verbose=verbose, bound=bound)
    if not result.certified:
        raise typer.Exit(1)
