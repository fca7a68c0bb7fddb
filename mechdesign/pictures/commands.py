"""How `mechdesign export` writes a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mechdesign.cli.export import Exporter
from mechdesign.cli.values import row_list


def _write_picture(
    file: Path, output: Path, *, rows: str | None, over: Path | None, title: str | None, overwrite: bool, **_: Any
) -> None:
    from mechdesign.pictures.plot import load_drawable, save_plot

    save_plot(load_drawable(file), output, overwrite=overwrite, secrets=row_list(rows), over=over, title=title)


PICTURE = Exporter(write=_write_picture, takes=frozenset({"rows", "over", "title"}))
