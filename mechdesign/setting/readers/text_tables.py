"""Tables in text: a matrix with or without header line and index column, long form, or Armadillo's ascii format.

Fields are separated by commas, semicolons, tabs or blanks; empty lines and lines starting with # are left out. Long
form has the columns secret, report and one of probability, mass or count, others are ignored; what is not listed is 0.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.opening import read_bytes
from mechdesign.errors import FileFormatError, InputError

_LARGEST = 1 << 30  # bytes of a text file that will be parsed
_UNFOLDS = 24  # bytes of memory for a byte of text: fields of one digit as Python's texts, and the text itself
_VALUES = ("probability", "mass", "count")
LONG = {"secret", "report", *_VALUES}  # columns of the long form
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CHARACTERS = re.compile(r"[-+.0-9eE]*")  # of these, Python and _NUMBER read the same numbers
_PLACE = re.compile(r"[0-9]{1,18}")  # fits in 64 bits
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][-+]?\d+)?")
_SAMPLES = {"obf_lat", "obf_lon", "obf_latitude", "obf_longitude"}
_FEWEST = 3  # a line that reads 0, 1, 2 or more cannot be probabilities: it numbers the columns, or the rows


def text_table(stream: BinaryIO, source: Path) -> NDArray[np.float64]:
    """The table (n, m) of an open text file; `source` names it in errors.

    Raises: FileFormatError and InputError as `table_files.read_table`.
    """
    rows = read_fields(stream, source)
    if rows[0][0].startswith("ARMA_MAT_TXT"):
        shape = [int(word) if _PLACE.fullmatch(word) else -1 for word in rows[1]]
        table = matrix(rows[2:], index_column=False)
        if list(table.shape) != shape:
            raise FileFormatError(
                f"header announces {shape[0]} x {shape[1]} values",
                field="table",
                value=f"{table.shape[0]} x {table.shape[1]}",
                remedy="the file is cut short",
            )
        return table
    names = [word.lower() for word in rows[0]]
    if _SAMPLES & set(names):
        raise InputError(
            "holds obfuscated positions, which are samples of a mechanism and not its table",
            field="table",
            value=", ".join(sorted(_SAMPLES & set(names))),
            remedy="audit the probabilities that the positions were drawn with",
        )
    if {"secret", "report"} <= set(names):
        return long_form(names, list(zip(*rows[1:], strict=True)), source)
    return matrix(rows, index_column=True)


def read_fields(stream: BinaryIO, source: Path) -> list[list[str]]:
    """The fields of every line, comments and empty lines left out.

    Raises: FileFormatError for uneven lines and more than 1 GiB; SizeError where the fields would not fit in memory.
    """
    content = read_bytes(stream, source, field="table", most=_LARGEST, unfolds=_UNFOLDS)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + content[: error.start].count(b"\n")
        raise FileFormatError(
            "is not UTF-8 text", field="table", value=f"{source}, line {line}", remedy="save it as CSV UTF-8"
        ) from error
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise FileFormatError("is empty", field="table", value=source, remedy="write one row a secret")
    separator = next((mark for mark in ";\t," if mark in lines[0] or mark in lines[-1]), None)
    fields = csv.reader(lines, delimiter=separator) if separator else (line.split() for line in lines)
    rows = [[word.strip() for word in row] for row in fields]
    first = 2 if rows[0][0].startswith("ARMA_MAT_TXT") else 0
    width = len(rows[first]) if len(rows) > first else 0
    for number, row in enumerate(rows[first:]):
        if len(row) != width:
            raise FileFormatError(
                f"row {number} has {len(row)} fields where the first has {width}",
                field="table",
                value=source,
                remedy="give every row the same number of fields",
            )
    return rows


def matrix(rows: Sequence[Sequence[str]], *, index_column: bool) -> NDArray[np.float64]:
    """The numbers of fields, header line left out; `index_column` leaves out a first column that only names rows."""
    named = rows[0][0] == "" or rows[0][0].lower() in {"secret", "index", "id"}
    numbered = rows[0][named:] == [str(k) for k in range(len(rows[0]) - named)]
    header = not any(map(_is_number, rows[0])) or (numbered and (named or len(rows[0]) >= _FEWEST))
    body = rows[1:] if header else rows
    if not body:
        raise FileFormatError("has a header and no rows", field="table", value=rows[0], remedy="write one row a secret")
    labels = [row[0] for row in body]
    text = not any(_is_number(word) or _DECIMAL_COMMA.fullmatch(word) for word in labels)
    first = int(index_column and len(rows[0]) > 1 and ((header and named) or text or _counts_up(labels)))
    require_memory(len(body), len(body[0]), tables=3, what="the table")
    return np.array([_numbers(row[first:], u) for u, row in enumerate(body)])


def _counts_up(words: Sequence[str]) -> bool:
    return len(words) >= _FEWEST and list(words) == [str(k) for k in range(len(words))]


def _is_number(word: str) -> bool:
    """Whether Python would take it for a number: nan, 1_0 and digits of other scripts too, which are no header."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _numbers(words: Sequence[str], row: int) -> NDArray[np.float64]:
    """Plain numbers, in ASCII digits with point and exponent."""
    if _CHARACTERS.fullmatch("".join(words)):
        with contextlib.suppress(ValueError):
            return np.array(words, float)
    column = next(y for y, word in enumerate(words) if not _NUMBER.fullmatch(word))
    comma = _DECIMAL_COMMA.fullmatch(words[column]) is not None
    raise InputError(
        f"row {row}, column {column} is not a number",
        field="table",
        value=repr(words[column]),
        remedy="write decimal points" if comma else "write one number a field",
    )


def long_form(names: Sequence[str], columns: Sequence[Sequence[Any]], source: Path) -> NDArray[np.float64]:
    """The table (n, m) of columns secret, report and probability, mass or count, found by their lower-case `names`.

    Place numbers have no gap, so n and m are at most the number of lines, and n m has fewer than 64 bits.
    """
    found = [name for name in _VALUES if name in names]
    if len(found) != 1 or not columns:
        raise FileFormatError(
            "long form has the columns secret, report and one of " + ", ".join(_VALUES),
            field="table",
            value=", ".join(names),
            remedy=f"name the columns of {source.name} so",
        )
    secret, report = (_places_of(columns[names.index(name)], name) for name in ("secret", "report"))
    values = [str(value) for value in columns[names.index(found[0])]]
    n, m = int(secret.max()) + 1, int(report.max()) + 1
    require_memory(n, m, tables=3, what="the table")
    place = secret * m + report
    again = np.flatnonzero(np.bincount(place) > 1)
    if len(again):
        raise InputError(
            "a pair is listed twice",
            field="table",
            value=f"secret {again[0] // m}, report {again[0] % m}",
            remedy="add them up, or drop one",
        )
    table = np.zeros(n * m)
    table[place] = _column(values)
    return table.reshape(n, m)


def _column(values: Sequence[str]) -> NDArray[np.float64]:
    for line, value in enumerate(values):
        if not _NUMBER.fullmatch(value):
            return _numbers([value], line)
    return np.array(values, float)


def _places_of(words: Sequence[Any], name: str) -> NDArray[np.int64]:
    """Place numbers of a column of labels: whole numbers from 0, or texts in the order in which they appear."""
    texts = [str(word) for word in words]
    if not all(map(_PLACE.fullmatch, texts)):
        if any(map(_is_number, texts)):
            wrong = next(text for text in texts if not _PLACE.fullmatch(text))
            raise InputError("must be whole numbers from 0", field=name, value=wrong, remedy="number the places from 0")
        order = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        return np.array([order[text] for text in texts])
    numbers = np.array(texts, np.int64)
    missing = np.setdiff1d(np.arange(min(int(numbers.max()), len(numbers)) + 1), numbers)
    if len(missing):
        raise InputError(
            "numbers must run from 0 without a gap",
            field=name,
            value=f"{missing[0]} is missing",
            remedy="number the places from 0, and list a zero probability",
        )
    return numbers
