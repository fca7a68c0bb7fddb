"""`mechdesign page`: a mechanism or a sweep as one HTML file that proves its own table."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption


def page(
    file: Annotated[Path, typer.Argument(help="A mechanism or sweep file (NetCDF).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Page to write: .html.")],
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained page: the sentence, the map, and a proof of the table in the browser."""
    from mechdesign.output.page.page import check_page_target, load_shown, save_page
    from mechdesign.output.terminal import printing

    check_page_target(output, overwrite=overwrite)
    written = save_page(load_shown(file), output, overwrite=overwrite)
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")
