"""`mechdesign page`: a mechanism, a compact map, a sweep or an estimate as one HTML file that proves what it says."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption


def page(
    file: Annotated[Path, typer.Argument(help="A mechanism, sweep or estimate file (NetCDF), or a compact map.")],
    mechanisms: Annotated[
        list[Path] | None, typer.Argument(help="Of an estimate: the mechanism files that made its reports.")
    ] = None,
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Page to write: .html.")],
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained page: the sentence, the map, and a proof in the browser; of a compact map a proof of the
    rows around any place.
    """
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.page.page import check_page_target, load_shown, save_page
    from mechdesign.output.terminal import printing

    check_page_target(output, overwrite=overwrite)
    made = [load(path) for path in mechanisms or []]
    with printing.progress(f"page {file.name}") as on_progress:
        written = save_page(load_shown(file), output, mechanisms=made, overwrite=overwrite, on_progress=on_progress)
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")
