"""`mechdesign verify`: prove or refuse the claim of a file."""

import typer

from mechdesign.cli.options import FileArgument, JsonOption, VerboseOption


def verify(file: FileArgument, verbose: VerboseOption = False, as_json: JsonOption = False) -> None:
    """Prove or refuse the claim of a mechanism file, from its integers alone."""
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.verdicts import print_verification
    from mechdesign.verification.verify import verify as verify_file

    printing.note_compiling()
    result = verify_file(file)
    if as_json:
        printing.print_json(result.as_dict())
    else:
        print_verification(result, verbose=verbose)
    if not result.certified:
        raise typer.Exit(1)
