"""Texts in CSV that a spreadsheet would run: a cell that begins with = + - or @ is a formula there.

Such texts get an apostrophe in front, as spreadsheets write them, and lose it where this package reads them. A text
that begins with apostrophes and then such a sign gets one more, so that every text is read back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")
_IN_A_LINE = re.compile(r"([,;\t])(?=[\s\"']*[=+\-@])")
_IN_JSON = re.compile(r"((?:[,;]|\\t)(?:[\s']|\\t|\\\")*)([=+\-@])")


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


def comment_of(text: str) -> str:
    """The text of a comment line, without cells that are formulas where a spreadsheet splits it."""
    return _IN_A_LINE.sub(r"\1'", text.replace("\r", " ").replace("\n", " "))


def escaped(json_text: str) -> str:
    """The JSON of a text, the same text to every reader of JSON, without such cells either."""
    return _IN_JSON.sub(lambda match: f"{match[1]}\\u{ord(match[2]):04x}", json_text)
