"""`mechdesign verify`: prove or refuse the claim of a file."""

from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, VerboseOption


def verify(
    file: FileArgument,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="Whether the lower bound of a factored file is priced again.")
    ] = True,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign verify rome.nc`.

    Prove or refuse the claim of a mechanism file, a session design or a compact map, from their integers alone.
    """
    from mechdesign.mechanism.storage import load
    from mechdesign.mechanism.stored import read
    from mechdesign.output import printing
    from mechdesign.output.verdicts import verification_words
    from mechdesign.verification.verify import kind_of
    from mechdesign.verification.verify import verify as verify_file

    table = kind_of(file) is None
    printing.note_compiling()
    with printing.progress(f"verify {file.name}") as on_progress:
        result = verify_file(file, bound=bound, on_progress=on_progress)
    stored = read(load(file)) if table and result.certified and not as_json else None
    printing.show(result.as_dict(), verification_words(result, stored, verbose=verbose), as_json=as_json)
    if not result.certified:
        raise typer.Exit(1)
