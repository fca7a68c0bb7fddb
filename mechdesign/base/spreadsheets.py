"""Tables for spreadsheets: CSV, where texts must not be run as formulas, and workbooks of Excel."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdesign.base.optional import import_optional
from mechdesign.base.streams import visible

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


# Such texts get an apostrophe in front, and lose it on reading. Texts with apostrophes before such a sign get one more.
def cell_of(value: Any) -> Any:
    """A value as a cell of a CSV file: texts quoted where they need it, all else as it is."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def text_of(cell: str) -> str:
    """The text that `cell_of` made a cell of."""
    return cell[1:] if _QUOTED.match(cell) else cell


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows by column as CSV, every name and value as a cell: figures in all their digits, None as nothing."""
    import pandas as pd

    table = pd.DataFrame(rows, dtype=object)
    return str(table.map(cell_of).rename(columns=cell_of).to_csv(index=False, lineterminator="\n"))


def write_workbook(rows: Sequence[Mapping[str, Any]], path: Path, *, sheet: str) -> None:
    """Write rows by column as a workbook of Excel (.xlsx) with one sheet; texts are never formulas."""
    openpyxl = import_optional("openpyxl", "xlsx")
    book = openpyxl.Workbook()
    page = book.active
    page.title = sheet
    names = list(dict.fromkeys(name for row in rows for name in row))
    for k, line in enumerate([dict(zip(names, names, strict=True)), *rows], 1):
        for column, name in enumerate(names, 1):
            value = line.get(name)
            # A workbook has no NaN and no infinity.
            if isinstance(value, float) and not math.isfinite(value):
                value = None if math.isnan(value) else str(value)
            if value is None or isinstance(value, (bool, int, float)):
                page.cell(k, column, value)
                continue
            cell = page.cell(k, column)
            # By setting the type afterwards, a text that begins with = stays a text.
            cell.value, cell.data_type = visible(str(value)), "s"
    page.freeze_panes = "B2"
    book.save(path)


def metadata_of(table: Path) -> Path:
    """The metadata file of a CSV table, named as in "CSV on the Web" (W3C 2015)."""
    return table.with_name(f"{table.name}-metadata.json")
