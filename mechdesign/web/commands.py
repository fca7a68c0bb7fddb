"""Exporters of `mechdesign export` for the web: pages that prove or design, and the client folder of an app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mechdesign.cli.export import Exporter


def _write_page(
    file: Path,
    output: Path,
    *,
    mechanisms: list[Path],
    title: str | None,
    over: Path | None,
    overwrite: bool,
    on_progress: Any,
) -> None:
    from mechdesign.mechanism.storage import load
    from mechdesign.output.text_tables import note
    from mechdesign.web.page import check_page_target, load_shown, page_of, write_page

    target = check_page_target(output, overwrite=overwrite)
    datasets = [load(path) for path in mechanisms]
    page = page_of(load_shown(file), mechanisms=datasets, over=over, on_progress=on_progress)
    if "note" in page.facts:
        note(page.facts["note"])
    write_page(page, target, title)


def _write_client(
    file: Path, output: Path, *, bits: int | None, overwrite: bool, on_progress: Any
) -> tuple[dict[str, Any], str]:
    """Write the client of a mechanism, a device map or a session design; its README.md explains the use."""
    from mechdesign.output.text_tables import note
    from mechdesign.verification.kinds import load_any
    from mechdesign.web.client import check_folder, write_client
    from mechdesign.web.packed import size_words

    check_folder(output, overwrite=overwrite)
    source = load_any(file)
    written = write_client(source, output, bits=bits, overwrite=overwrite, on_progress=on_progress, on_note=note)
    sizes = {path.name: path.stat().st_size for path in sorted(written.iterdir())}
    begin = "open index.html to try it" if "index.html" in sizes else "README.md says how to begin"
    words = f"wrote {written}: report.bin has {size_words(sizes['report.bin'])}; {begin}"
    return {"folder": str(written), "bytes": sizes}, words


def _write_designer(_: Path, output: Path, *, title: str | None, overwrite: bool, on_progress: Any) -> None:
    """Write the page that designs; it needs no file."""
    from mechdesign.web.designer import save_designer

    save_designer(output, title=title, overwrite=overwrite)


DESIGNER = Exporter(write=_write_designer, takes=frozenset({"title"}))
PAGE = Exporter(write=_write_page, takes=frozenset({"mechanisms", "over", "title"}))
CLIENT = Exporter(write=_write_client, takes=frozenset({"bits"}))
