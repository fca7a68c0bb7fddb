"""`mechdesign page`: a mechanism, a compact map, a sweep or an estimate as one HTML file that proves what it says.

`mechdesign client`: a mechanism, or a session design, as the folder that an app ships.
"""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, OverwriteOption


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
    from mechdesign.mechanism.storage import load
    from mechdesign.output import printing
    from mechdesign.web.page import check_page_target, load_shown, save_page

    check_page_target(output, overwrite=overwrite)
    made = [load(path) for path in mechanisms or []]
    with printing.progress(f"page {file.name}") as on_progress:
        written = save_page(load_shown(file), output, mechanisms=made, overwrite=overwrite, on_progress=on_progress)
    printing.show_file(written, as_json=as_json)


def client(
    file: FileArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")],
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write what an app ships: reports in a browser or in Node, with memory and a budget; of a compact map in C too; of
    a session design a session. Its README.md says how.
    """
    from mechdesign.output import printing
    from mechdesign.verification.verify import loaded
    from mechdesign.web.client import check_folder, write_client
    from mechdesign.web.packed import size_words

    check_folder(output, overwrite=overwrite)
    printing.note_compiling()
    with printing.progress(f"client {file.name}") as on_progress:
        written = write_client(loaded(file), output, overwrite=overwrite, on_progress=on_progress)
    sizes = {path.name: path.stat().st_size for path in sorted(written.iterdir())}
    begin = "open index.html to try it" if "index.html" in sizes else "README.md says how to begin"
    words = f"wrote {written}: report.bin has {size_words(sizes['report.bin'])}; {begin}"
    printing.show({"folder": str(written), "bytes": sizes}, [printing.Note(words)], as_json=as_json)
