"""Refuse arrays that would not fit in memory, before they are allocated."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from mechdesign.errors import SizeError

BYTES_PER_ENTRY = 8
SAFETY = 0.8  # of the memory that is available
_REMEDY = "use a smaller file, or more memory"
LARGEST_DOMAIN = 1 << 20  # places: coordinates, lattice, prior and levels of so many stay under 1 GB


def max_items_in_memory(size: int) -> int:
    """The number of items of `size` bytes that fit in 80 % of the available memory."""
    import psutil

    return int(SAFETY * psutil.virtual_memory().available) // size


def require_bytes(need: int, *, noun: str, field: str, value: object, remedy: str = _REMEDY) -> None:
    """Refuse to take `need` bytes that exceed 80 % of the available memory."""
    available = max_items_in_memory(1)
    if need > available:
        raise SizeError(
            f"{noun} would need {need / 1e9:.1f} GB, and {available / SAFETY / 1e9:.1f} GB are free",
            field=field,
            value=value,
            remedy=remedy,
        )


def require_memory(
    rows: int, columns: int, *, tables: int, noun: str, field: str = "cells", remedy: str = "use fewer cells"
) -> None:
    """Refuse `tables` arrays (rows, columns) of 64-bit numbers beyond 80 % of the available memory."""
    # Python's integers: a product of NumPy's could wrap to a small number.
    require_bytes(
        math.prod(map(int, (rows, columns, tables, BYTES_PER_ENTRY))),
        noun=f"{noun} ({tables} tables of {rows} x {columns})",
        field=field,
        value=rows,
        remedy=remedy,
    )


@contextlib.contextmanager
def within_memory(field: str, value: object) -> Iterator[None]:
    """Turn a MemoryError into a SizeError."""
    try:
        yield
    except MemoryError as error:
        raise SizeError("does not fit in memory", field=field, value=value, remedy=_REMEDY) from error


def require_places(count: float, *, field: str = "cells") -> None:
    """Refuse a domain of more than 2^20 places, or infinitely many, on any machine."""
    if not count <= LARGEST_DOMAIN:
        raise SizeError(f"a domain has at most {LARGEST_DOMAIN:,} places", field=field, value=count)
