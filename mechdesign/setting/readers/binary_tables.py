"""Tables in binary files: NumPy, MATLAB level 5, Armadillo and Parquet. Sizes are checked before they are allocated."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory, room
from mechdesign.base.opening import read_bytes
from mechdesign.errors import FileFormatError, SizeError
from mechdesign.setting.readers.text_tables import LONG, long_form

_NPY_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_ARMADILLO_TYPES = {b"ARMA_MAT_BIN_FN008": "<f8", b"ARMA_MAT_BIN_FN004": "<f4"}
_ARMADILLO_SHAPE = re.compile(rb"\s*([0-9]{1,12})\s+([0-9]{1,12})\s*")
_LINE = 64  # bytes of a header line
_MATLAB_ORDERS = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}  # version and order of a level 5 file, at byte 124
_MATLAB_HEADER, _COMPRESSED = 128, 15
_SPARSE, _LAST_NUMBER = 5, 15  # classes of arrays of numbers; the others nest without end, or hold objects
_PARQUET_NUMBERS = {"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"}
_ROW_NAMES = re.compile(r"__index.*|secret|index|id", re.DOTALL)  # columns that name the rows
_TABLES = 3  # copies while a table is read
_AS_PYTHON = 8  # of 64 bits, for an entry of a list


def _numpy(stream: BinaryIO, source: Path) -> NDArray[np.float64]:
    version = npy.read_magic(stream)
    if version not in _NPY_HEADERS:
        raise ValueError(f"version {version} of the format")
    shape, _, dtype = _NPY_HEADERS[version](stream)
    _check_matrix(shape, dtype, source)
    _check_size(stream, shape, dtype, source)
    stream.seek(0)
    return _as_table(np.load(stream, allow_pickle=False), source)


def _armadillo(stream: BinaryIO, source: Path) -> NDArray[np.float64]:
    kind, line = stream.readline(_LINE), stream.readline(_LINE)
    named = _ARMADILLO_TYPES.get(kind.strip())
    if named is None:
        raise FileFormatError(
            "is not an Armadillo matrix of real numbers",
            field="table",
            value=kind[:24],
            remedy="save it with arma_binary, or as .csv",
        )
    found = _ARMADILLO_SHAPE.fullmatch(line)
    if found is None:
        raise ValueError(f"no numbers of rows and columns: {line!r}")
    shape, dtype = (int(found[1]), int(found[2])), np.dtype(named)
    _check_size(stream, shape, dtype, source)
    return _as_table(np.frombuffer(stream.read(), dtype).reshape(shape, order="F"), source)


def read_matlab(stream: BinaryIO, source: Path, variable: str | None) -> NDArray[np.float64]:
    """The matrix of that name, or the only one, of a MATLAB level 5 file (or level 4)."""
    import scipy.io

    content = read_bytes(stream, source, field="table", most=room(_TABLES), unfolds=_TABLES)
    try:
        held = scipy.io.loadmat(io.BytesIO(_matlab_numbers(content, source)), spmatrix=False)
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
        require_memory(*value.shape, tables=_TABLES, what="the table")
        value = value.tocsc()
        value.check_format(full_check=True)
        value = value.toarray()
    return _as_table(value, source)


def _matlab_numbers(content: bytes, source: Path) -> bytes:
    """The arrays of numbers of a level 5 file, unpacked, as such a file; content of another level as it is.

    Raises: SizeError where they unfold to more than the memory holds.
    """
    order = _MATLAB_ORDERS.get(content[_MATLAB_HEADER - 4 : _MATLAB_HEADER])
    if order is None:
        return content
    found, at, most = bytearray(content[:_MATLAB_HEADER]), _MATLAB_HEADER, room(2 * _TABLES)
    while at < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        element = content[at : at + 8 + size]
        at += 8 + size
        if kind == _COMPRESSED:
            unpack = zlib.decompressobj()
            element = unpack.decompress(element[8:], most - len(found))
            if not unpack.eof and len(found) + len(element) >= most:
                raise SizeError(
                    f"unfolds to more than {most} bytes", field="table", value=source, remedy="use a smaller file"
                )
        (flags,) = struct.unpack_from(f"{order}I", element, 16)
        if _SPARSE <= flags & 255 <= _LAST_NUMBER:
            found += element
    return bytes(found)


def _parquet(stream: BinaryIO, source: Path) -> NDArray[np.float64]:
    """A text is read once for all rows that have it, so that no short file of repetitions fills the memory."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise FileFormatError(
            "needs pyarrow", field="table", value=source, remedy="pip install pyarrow, or write it as .csv"
        ) from error
    said = parquet.read_metadata(stream)
    columns = [said.schema.column(k) for k in range(said.num_columns)]
    names = [column.name.lower() for column in columns]
    labelled = {"secret", "report"} <= set(names)
    kept = [k for k, name in enumerate(names) if (name in LONG if labelled else not _ROW_NAMES.fullmatch(name))]
    groups = [said.row_group(g) for g in range(said.num_row_groups)]
    for k in kept:
        text = columns[k].physical_type == "BYTE_ARRAY"
        if columns[k].max_repetition_level or not (columns[k].physical_type in _PARQUET_NUMBERS or (labelled and text)):
            raise _no_matrix(f"{names[k]}: {columns[k].physical_type}", source)
        if any(group.column(k).num_values != group.num_rows for group in groups):
            raise ValueError(f"column {names[k]} has another number of values than the table has rows")
    rows = sum(group.num_rows for group in groups)
    require_memory(rows, len(kept), tables=_AS_PYTHON if labelled else _TABLES, what="the table")
    stream.seek(0)
    texts = [columns[k].name for k in kept if columns[k].physical_type == "BYTE_ARRAY"]
    held = parquet.ParquetFile(stream, read_dictionary=texts).read([columns[k].name for k in kept], use_threads=False)
    if labelled:
        return long_form([names[k] for k in kept], [_values(column) for column in held.columns], source)
    return _as_table(np.column_stack([column.to_numpy() for column in held.columns]), source)


def _values(column: Any) -> list[Any]:
    """The values of a Parquet column, equal texts as one object."""
    if not hasattr(column.type, "index_type"):
        return column.to_pylist()
    found: list[Any] = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        found += [None if k is None else words[k] for k in chunk.indices.to_pylist()]
    return found


def _check_size(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], source: Path) -> None:
    """Refuse a header that announces another number of bytes than follow it, or more than fit in memory."""
    announced = math.prod(shape) * dtype.itemsize
    there = os.fstat(stream.fileno()).st_size - stream.tell()
    if announced != there:
        raise FileFormatError(
            f"header announces {' x '.join(map(str, shape))} values of {dtype.itemsize} bytes",
            field="table",
            value=f"{there} bytes",
            remedy="the file is cut short or its header is wrong",
        )
    require_memory(shape[0], shape[1], tables=_TABLES, what="the table")


def _as_table(array: Any, source: Path) -> NDArray[np.float64]:
    _check_matrix(array.shape, array.dtype, source)
    require_memory(*array.shape, tables=_TABLES - 1, what="the table")
    return np.ascontiguousarray(array, float)


def _check_matrix(shape: tuple[int, ...], dtype: np.dtype[Any], source: Path) -> None:
    if len(shape) != 2 or dtype.kind not in "fiub" or min(shape) < 1:
        raise _no_matrix(f"{dtype} {shape}", source)


def _no_matrix(found: str, source: Path) -> FileFormatError:
    return FileFormatError(
        "must be a matrix of real numbers",
        field="table",
        value=found,
        remedy=f"write secrets down, reports across to {source.name}",
    )


READERS: dict[str, Callable[[BinaryIO, Path], NDArray[np.float64]]] = {
    ".npy": _numpy,
    ".bin": _armadillo,
    ".arma": _armadillo,
    ".parquet": _parquet,
}
