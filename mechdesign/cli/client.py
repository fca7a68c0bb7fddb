"""`mechdesign client`: a mechanism, or a session design, as the folder that an app ships."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, OverwriteOption


def client(
    file: FileArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")],
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write what an app ships: reports in a browser or in Node, with memory and a budget; of a compact map in C too; of
    a session design a session. Its README.md says how.
    """
    from mechdesign.mechanism.compact.file import is_compact
    from mechdesign.mechanism.session.design_files import is_design
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.client.client import write_client, write_region, write_session
    from mechdesign.output.client.folder import check_folder
    from mechdesign.output.client.packed import size_words
    from mechdesign.output.terminal import printing

    check_folder(output, overwrite=overwrite)
    printing.note_compiling()
    session, region = is_design(file), is_compact(file)
    with printing.progress(f"client {file.name}") as on_progress:
        if region:
            written = write_region(file, output, overwrite=overwrite, on_progress=on_progress)
        elif session:
            written = write_session(file, output, overwrite=overwrite)
        else:
            written = write_client(load(file), output, overwrite=overwrite)
    sizes = {path.name: path.stat().st_size for path in sorted(written.iterdir())}
    if as_json:
        printing.print_json({"folder": str(written), "bytes": sizes})
    else:
        begin = "README.md says how to open a session" if session else "open index.html to try it"
        begin = "README.md says how to draw" if region else begin
        printing.note(f"wrote {written}: report.bin has {size_words(sizes['report.bin'])}; {begin}")
