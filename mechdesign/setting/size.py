"""Refuse what would not fit in memory, before it is allocated."""

from __future__ import annotations

import psutil

from mechdesign.errors import SizeError

BYTES_PER_ENTRY = 8
SAFETY = 0.8  # of the memory that is available when asked


def require_memory(rows: int, columns: int, *, tables: int, what: str) -> None:
    """Refuse `tables` arrays of (rows, columns) 64-bit numbers that exceed 80 % of the available memory.

    Raises: SizeError with the estimate.
    """
    need = rows * columns * tables * BYTES_PER_ENTRY
    free = psutil.virtual_memory().available
    if need > SAFETY * free:
        raise SizeError(
            f"{what} would need {need / 1e9:.1f} GB ({tables} tables of {rows} x {columns}), "
            f"and {free / 1e9:.1f} GB are free",
            field="cells",
            value=rows,
            remedy="use fewer cells",
        )
