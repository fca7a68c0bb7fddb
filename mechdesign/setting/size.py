"""Refuse what would not fit in memory, before it is allocated."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import psutil

from mechdesign.errors import SizeError

BYTES_PER_ENTRY = 8
SAFETY = 0.8  # of the memory that is available when asked


def room(size: int) -> int:
    """How many things of `size` bytes fit in 80 % of the available memory."""
    return int(SAFETY * psutil.virtual_memory().available) // size


def require_bytes(
    need: int, *, what: str, field: str, value: object, remedy: str = "use a smaller file, or more memory"
) -> None:
    """Refuse to take `need` bytes that exceed 80 % of the available memory. Raises: SizeError with the estimate."""
    available = room(1)
    if need > available:
        raise SizeError(
            f"{what} would need {need / 1e9:.1f} GB, and {available / SAFETY / 1e9:.1f} GB are free",
            field=field,
            value=value,
            remedy=remedy,
        )


def require_memory(rows: int, columns: int, *, tables: int, what: str) -> None:
    """Refuse `tables` arrays of (rows, columns) 64-bit numbers that exceed 80 % of the available memory.

    NumPy's numbers are taken too: they are multiplied as Python's, which do not wrap.
    Raises: SizeError with the estimate.
    """
    require_bytes(
        math.prod(map(int, (rows, columns, tables, BYTES_PER_ENTRY))),
        what=f"{what} ({tables} tables of {rows} x {columns})",
        field="cells",
        value=rows,
        remedy="use fewer cells",
    )


@contextlib.contextmanager
def within_memory(field: str, value: object) -> Iterator[None]:
    """Raise SizeError where the memory runs out in spite of all estimates."""
    try:
        yield
    except MemoryError as error:
        remedy = "use a smaller file, or more memory"
        raise SizeError("does not fit in memory", field=field, value=value, remedy=remedy) from error
