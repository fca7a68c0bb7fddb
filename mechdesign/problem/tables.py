"""Readers of CSV files, places, and tables P(y|u) that other programs wrote: one row a secret, one column a report.

CSV files become data frames of pandas: columns are found by any of their names, numbers checked by line. Tables:

| suffix | what is read |
|---|---|
| .csv .tsv .txt .dat | text: a matrix, with or without header line and index column, or long form |
| .npy | a NumPy array of two axes, of numbers |
| .parquet | a matrix or long form, where pyarrow is installed |

Fields of text are separated by commas, semicolons, tabs or blanks; empty lines and lines starting with # are left out.
Long form has the columns secret, report and one of probability, mass or count, others are ignored; what is not listed
is 0. PrivKit writes obfuscated traces, which are samples and no table: they are refused.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import warnings
from collections.abc import Collection
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import validated
from mechdesign.base.memory import require_memory
from mechdesign.base.opening import readable
from mechdesign.base.optional import import_optional
from mechdesign.errors import FileFormatError, InputError

Names = tuple[str, ...]
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TEXT = {".csv", ".tsv", ".txt", ".dat", ".asc"}
_VALUES = ("probability", "mass", "count")
_ROW_NAMES = {"secret", "index", "id", ""}  # headers of a column that names the rows
_SAMPLES = {"obf_lat", "obf_lon", "obf_latitude", "obf_longitude"}
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][-+]?\d+)?")
_FEWEST = 3  # a line that reads 0, 1, 2 or more cannot be probabilities: it numbers the columns, or the rows


def read_frame(
    path: str | Path, field: str, *, texts: Collection[str] | None = (), encoding_errors: str = "strict"
) -> Any:
    """The data frame of a CSV file with a header (also .gz, .bz2, .xz, .zip), its index the numbers of the lines.

    Comments (#) before the header are left out; names of columns are in lower case, without spaces around.
    Parameters: texts, the columns to keep as texts, None for all; encoding_errors, "replace" where words of other
        encodings may stand beside the columns that are used.
    Raises: FileFormatError for a file that is missing, empty or no table, with the reason that pandas gives.
    """
    import pandas as pd

    options: dict[str, Any] = {"skipinitialspace": True, "encoding_errors": encoding_errors, "index_col": False}
    with readable(path, field), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # fields beyond the header would be dropped
        first = len(opening_comments(path, field))
        header = pd.read_csv(Path(path), skiprows=first, nrows=0, **options).columns
        names = [str(name).strip().lower() for name in header]
        try:
            frame = pd.read_csv(
                Path(path),
                skiprows=first + 1,
                names=names,
                header=None,
                dtype=str if texts is None else dict.fromkeys(set(names) & set(texts), str),
                skip_blank_lines=False,
                low_memory=False,
                **options,
            )
        except pd.errors.ParserWarning as error:
            raise FileFormatError("has fields without a name", field=field, value=", ".join(names)) from error
    frame.index += first + 2
    return frame


def opening_comments(path: str | Path, field: str) -> list[str]:
    """The lines before the first one of a text file that does not begin with #."""
    with (
        readable(path, field),
        _OPENERS.get(Path(path).suffix.lower(), open)(path, "rt", encoding="utf-8-sig", errors="replace") as stream,
    ):
        return list(takewhile(lambda line: line.startswith("#"), stream))


def named_column(frame: Any, names: Names, field: str) -> str:
    """The first of these names, in lower case, that a column has. Raises: FileFormatError where none has."""
    for name in names:
        if name in frame.columns:
            return name
    raise FileFormatError(f"has no column named {' or '.join(names)}", field=field, value=", ".join(frame.columns))


def number_column(frame: Any, names: Names, field: str) -> NDArray[np.float64]:
    """The numbers (k,) of the column with one of these names.

    Raises: FileFormatError as `named_column`; InputError, with the line, for a field that is no finite number.
    """
    import pandas as pd

    name = named_column(frame, names, field)
    values = pd.to_numeric(frame[name], errors="coerce").to_numpy(float)
    refuse_line(~np.isfinite(values), frame, [name], field, f"{name} must be a finite number")
    return np.asarray(values)


def refuse_line(odd: NDArray[np.bool_], frame: Any, columns: list[str], field: str, message: str) -> None:
    """Raises: InputError with the first odd line, where there is one: its number and what stands in these columns."""
    if odd.any():
        at = int(np.argmax(odd))
        shown = " ".join(str(value) for value in frame[columns].iloc[at])
        more = f", and {int(odd.sum()) - 1} more" if odd.sum() > 1 else ""
        raise InputError(message, field=field, value=f"{shown} in line {frame.index[at]}{more}")


@validated
def read_table(path: str | Path) -> NDArray[np.float64]:
    r"""The table (n, m) of a file as doubles, neither checked nor normalised.

    Parameters
    ----------
    path : str or Path
        A .csv, .npy, .npz, .nc, .json or .parquet file of a table.

    Returns
    -------
    (n, m) array
        The entries.

    Raises
    ------
    FileFormatError
        For a missing or malformed file.
    InputError
        For a field that is no number, with row and column.
    SizeError
        Where the table of a long form would not fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text("0.5,0.5\n0.25,0.75\n")
    ...     md.read.table(path)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    source = Path(path)
    suffix = source.suffix.lower()
    with readable(source, "table"):
        if suffix == ".npy":
            return _matrix_of(np.load(source, mmap_mode="r", allow_pickle=False))  # no size is taken from its header
        if suffix == ".parquet":
            return _parquet(source)
        if suffix in _TEXT:
            return _text_table(source)
    message = "is no table: use .csv, .npy or .parquet; for mechanism files mechdesign verify"
    raise FileFormatError(message, field="table", value=source.name)


@validated
def read_places(path: str | Path) -> NDArray[np.float64]:
    r"""Coordinates of a text file with one place a line; a header line is skipped.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    (n, k) array
        Coordinates, k = 1 to 3, in the unit of the file.

    Raises
    ------
    FileFormatError
        For a missing or malformed file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "places.csv"
    ...     _ = path.write_text("x,y\n0,0\n1,2\n")
    ...     md.read.places(path)
    array([[0., 0.],
           [1., 2.]])
    """
    with readable(path, "places"):
        places = _numbers(_without_header(_fields(Path(path), "places")))
    if not 1 <= places.shape[1] <= 3:
        raise InputError("coordinates have 1 to 3 columns", field="places", value=f"{places.shape[1]} columns")
    return places


def _text_table(source: Path) -> NDArray[np.float64]:
    fields = _fields(source, "table")
    names = [word.lower() for word in fields.iloc[0]]
    if samples := sorted(_SAMPLES & set(names)):
        message = "holds obfuscated positions, which are samples of a mechanism and not its table"
        raise InputError(message, field="table", value=", ".join(samples))
    if {"secret", "report"} <= set(names):
        return _long_form(fields.iloc[1:].set_axis(names, axis=1))
    body = _without_header(fields)
    named, labels = names[0] in _ROW_NAMES, list(body[0])
    words = not any(_is_number(word) or _DECIMAL_COMMA.fullmatch(word) for word in labels)
    numbered = len(labels) >= _FEWEST and _counts_up(labels)
    if len(names) > 1 and ((len(body) < len(fields) and named) or words or numbered):
        body = body.iloc[:, 1:]
    return _numbers(body)


def _fields(source: Path, field: str) -> Any:
    """The fields of a text file as texts, comments and empty lines left out."""
    import pandas as pd

    text = source.read_text(encoding="utf-8-sig")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise FileFormatError("is empty", field=field, value=source)
    separator = next((mark for mark in ";\t," if mark in lines[0] or mark in lines[-1]), r"\s+")
    fields = pd.read_csv(
        io.StringIO("\n".join(lines)),
        sep=separator,
        header=None,
        dtype=str,
        keep_default_na=False,
        skipinitialspace=True,
        index_col=False,
    )
    return fields.apply(lambda column: column.fillna("").str.strip())


def _without_header(fields: Any) -> Any:
    """The rows below a header line: one without numbers, or that numbers the columns."""
    first = list(fields.iloc[0])
    named = first[0].lower() in _ROW_NAMES
    numbered = _counts_up(first[named:]) and (named or len(first) >= _FEWEST)
    body = fields.iloc[1:] if numbered or not any(map(_is_number, first)) else fields
    if body.empty:
        raise FileFormatError("has a header and no rows", field="table", value=", ".join(first))
    return body


def _counts_up(words: list[str]) -> bool:
    return words == [str(k) for k in range(len(words))]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _numbers(fields: Any) -> NDArray[np.float64]:
    """The numbers (n, m) of texts. Raises: InputError that names row and column of what is none."""
    words = fields.to_numpy(object)
    try:
        table = words.astype(float)
    except ValueError:
        table = np.vectorize(lambda word: float(word) if _is_number(word) else np.nan, otypes=[float])(words)
    odd = np.argwhere(~np.isfinite(table))
    if len(odd):
        row, column = odd[0]
        word = words[row, column]
        remedy = "write decimal points" if _DECIMAL_COMMA.fullmatch(word) else None
        raise InputError(f"row {row}, column {column} is not a number", field="table", value=repr(word), remedy=remedy)
    return np.ascontiguousarray(table)


def _parquet(source: Path) -> NDArray[np.float64]:
    import pandas as pd

    import_optional("pyarrow", "parquet")
    frame = pd.read_parquet(source)
    frame.columns = [str(name).lower() for name in frame.columns]
    if {"secret", "report"} <= set(frame.columns):
        return _long_form(frame)
    return _matrix_of(frame.drop(columns=[name for name in frame.columns if name in _ROW_NAMES]).to_numpy())


def _matrix_of(array: NDArray[Any]) -> NDArray[np.float64]:
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise FileFormatError("must be a matrix of real numbers", field="table", value=f"{array.dtype} {array.shape}")
    return np.array(array, float, order="C")


def _long_form(frame: Any) -> NDArray[np.float64]:
    """The table (n, m) of columns secret, report and probability, mass or count.

    Place numbers have no gap, so n and m are at most the number of lines.
    """
    present = [name for name in _VALUES if name in frame.columns]
    if present == ["probability", "mass"]:  # of our own tables: the same numbers, exact in the second
        present.remove("probability")
    if len(present) != 1 or frame.empty:
        message = "long form has the columns secret, report and one of " + ", ".join(_VALUES)
        raise FileFormatError(message, field="table", value=", ".join(frame.columns))
    secret, report = (_place_numbers(frame[name]) for name in ("secret", "report"))
    n, m = int(secret.max()) + 1, int(report.max()) + 1
    require_memory(n, m, tables=3, what="the table")
    place, times = np.unique(secret * m + report, return_counts=True)
    if (times > 1).any():
        u, y = divmod(int(place[np.argmax(times > 1)]), m)
        raise InputError("a pair is listed twice", field="table", value=f"secret {u}, report {y}")
    table = np.zeros((n, m))
    table[secret, report] = _numbers(frame[present].astype(str))[:, 0]
    return table


def _place_numbers(labels: Any) -> NDArray[np.int64]:
    """The place numbers of a column: integers from 0 without a gap, or texts in the order in which they appear."""
    import pandas as pd

    numbers = pd.to_numeric(labels, errors="coerce")
    if numbers.isna().all():
        return np.asarray(pd.factorize(labels)[0], np.int64)
    known = np.sort(numbers.unique())
    if not np.array_equal(known, np.arange(len(known))):
        raise InputError("must be numbered from 0 without a gap", field=str(labels.name), value=f"up to {known[-1]:g}")
    return np.asarray(numbers, np.int64)
