"""Texts in CSV that a spreadsheet would run as formulas, since they begin with = + - or @."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def metadata_of(table: Path) -> Path:
    """The metadata file of a CSV table, named as in "CSV on the Web" (W3C 2015)."""
    return table.with_name(f"{table.name}-metadata.json")
