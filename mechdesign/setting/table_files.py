"""Readers of tables P(y|u) that other programs wrote: one row a secret, one column a report.

| suffix | what is read |
|---|---|
| .csv .tsv .txt .dat .asc | text: a matrix, long form or Armadillo's ascii format (`text_tables`) |
| .npy | a NumPy array of two axes, of numbers |
| .mat | MATLAB level 5 (`save -v7`), a full or sparse matrix |
| .bin .arma | Armadillo binary (`arma_binary`), double or single precision |
| .parquet | a matrix or long form, where pyarrow is installed |

libqif returns NumPy arrays in Python and Armadillo matrices in C++: what `numpy.save`, `numpy.savetxt`, `arma_ascii`,
`csv_ascii`, `raw_ascii` and `arma_binary` write of them is read. PrivKit writes obfuscated traces, which are samples
and no table: they are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import FileFormatError, InputError, MechdesignError
from mechdesign.setting.size import require_memory
from mechdesign.setting.text_tables import long_form, matrix, read_fields, text_table

_TEXT, _ARMADILLO = {".csv", ".tsv", ".txt", ".dat", ".asc"}, {".bin", ".arma"}
_ARMADILLO_TYPES = {b"ARMA_MAT_BIN_FN008": "<f8", b"ARMA_MAT_BIN_FN004": "<f4"}


def read_table(path: str | Path, *, variable: str | None = None) -> NDArray[np.float64]:
    """The table (n, m) of a file as doubles, neither checked nor normalised.

    variable: which one of a .mat file that holds several.
    Raises: FileFormatError for a missing, cut-short or malformed file, InputError for a field that is no number, naming
        row and column; SizeError where the table would not fit.
    """
    source = Path(path)
    if not source.is_file():
        raise FileFormatError("no such file", field="table", value=source, remedy="give the path of a table")
    suffix = source.suffix.lower()
    if variable is not None and suffix != ".mat":
        raise InputError("only .mat files name their tables", field="variable", value=variable, remedy="leave it out")
    try:
        if suffix in _TEXT:
            return text_table(source)
        if suffix == ".npy":
            return _as_table(np.load(source, allow_pickle=False), source)
        if suffix == ".mat":
            return _read_matlab(source, variable)
        if suffix in _ARMADILLO:
            return _read_armadillo(source)
        if suffix == ".parquet":
            return _read_parquet(source)
    except (MechdesignError, MemoryError):
        raise
    except Exception as error:
        raise FileFormatError(
            f"cannot be read ({type(error).__name__}: {error})",
            field="table",
            value=source,
            remedy="check that the file is complete",
        ) from error
    if suffix == ".nc":
        raise FileFormatError(
            "is not a table of another program",
            field="table",
            value=source.name,
            remedy="use mechdesign verify, or mechdesign export",
        )
    raise FileFormatError(
        "unknown kind of table",
        field="table",
        value=source.name,
        remedy="use .csv, .npy, .mat (-v7), .parquet or Armadillo's .bin",
    )


def read_places(path: str | Path) -> NDArray[np.float64]:
    """Coordinates (n, k), k = 1 to 3, of a text file with one place a line; a header line is skipped.

    Raises: as `read_table`, and InputError for another number of columns.
    """
    source = Path(path)
    if not source.is_file():
        raise FileFormatError("no such file", field="places", value=source, remedy="give the path of a CSV file")
    places = matrix(read_fields(source), index_column=False)
    if not 1 <= places.shape[1] <= 3:
        raise InputError(
            "coordinates have 1 to 3 columns",
            field="places",
            value=f"{places.shape[1]} columns",
            remedy="write one place a line: x, y",
        )
    return places


def _as_table(array: Any, source: Path) -> NDArray[np.float64]:
    if array.ndim != 2 or array.dtype.kind not in "fiub" or min(array.shape) < 1:
        raise FileFormatError(
            "must be a matrix of real numbers",
            field="table",
            value=f"{array.dtype} {array.shape}",
            remedy=f"write secrets down, reports across to {source.name}",
        )
    require_memory(*array.shape, tables=2, what="the table")
    return np.ascontiguousarray(array, float)


def _read_matlab(source: Path, variable: str | None) -> NDArray[np.float64]:
    import scipy.io

    try:
        held = scipy.io.loadmat(source)
    except NotImplementedError as error:
        raise FileFormatError(
            "is a MATLAB 7.3 file, which is HDF5",
            field="table",
            value=source,
            remedy="write it with save(..., '-v7')",
        ) from error
    names = [name for name, value in held.items() if not name.startswith("__") and getattr(value, "ndim", 0) == 2]
    name = variable or (names[0] if len(names) == 1 else None)
    if name is None or name not in names:
        raise FileFormatError(
            "which variable is the table?", field="variable", value=variable or names, remedy=f"name one of {names}"
        )
    value = held[name]
    if hasattr(value, "toarray"):
        require_memory(*value.shape, tables=2, what="the table")
        value = value.toarray()
    return _as_table(value, source)


def _read_armadillo(source: Path) -> NDArray[np.float64]:
    kind, shape, data = source.read_bytes().split(b"\n", 2)
    dtype = _ARMADILLO_TYPES.get(kind.strip())
    if dtype is None:
        raise FileFormatError(
            "is not an Armadillo matrix of real numbers",
            field="table",
            value=kind[:24],
            remedy="save it with arma_binary, or as .csv",
        )
    rows, columns = (int(word) for word in shape.split())
    return _as_table(np.frombuffer(data, dtype).reshape((rows, columns), order="F"), source)


def _read_parquet(source: Path) -> NDArray[np.float64]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise FileFormatError(
            "needs pyarrow", field="table", value=source, remedy="pip install pyarrow, or write it as .csv"
        ) from error
    held = parquet.read_table(source)
    names = [name.lower() for name in held.column_names]
    if {"secret", "report"} <= set(names):
        return long_form(names, [column.to_pylist() for column in held.columns], source)
    kept = [k for k, name in enumerate(names) if not (name.startswith("__index") or name in {"secret", "index", "id"})]
    return _as_table(np.column_stack([held.column(k).to_numpy() for k in kept]), source)
