"""How `mechdesign export` writes the cells of a mechanism as a layer of a map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechdesign.base.numbers import number_list
from mechdesign.cli.export import Exporter
from mechdesign.errors import InputError


def _write_cells(
    file: Path, output: Path, *, from_place: str | None = None, crs: str | None = None, overwrite: bool, **_: Any
) -> tuple[Mapping[str, Any], str]:
    from mechdesign.geo.cell_layers import save_cells
    from mechdesign.mechanism.storage import load

    origin = None if from_place is None else _place(from_place)
    written = save_cells(load(file), output, origin=origin, crs=crs, overwrite=overwrite)
    columns = ", ".join(written["columns"])
    rows = f" ({written['rows']:,} rows)" if written["rows"] != written["cells"] else ""
    return written, f"wrote {output}: {written['cells']:,} cells{rows} with {columns}, in {written['crs']}"


def _place(words: str) -> tuple[float, float]:
    try:
        longitude, latitude = number_list(words, count=2)
    except ValueError as error:
        raise InputError(str(error), field="from", value=words, remedy="write LON,LAT in degrees") from error
    return longitude, latitude


CELLS = Exporter(write=_write_cells, takes=frozenset({"from_place", "cells", "crs"}))
