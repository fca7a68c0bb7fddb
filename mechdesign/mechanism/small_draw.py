"""The draws of `draw.py` from small tables, by NumPy: the same report for the same bits, without a compiler.

Every entry is read in order here too. The operations on arrays have neither a branch on an entry nor an early exit.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Indices, Masses, Unsigned

SMALL_TABLE = 1 << 20  # entries that NumPy scans in less time than Numba takes to load
FEW_DRAWS = 1 << 12


def scan_small_row(row: Unsigned, x: np.uint64) -> int:
    """The report of x uint64 < 2^62 in a row (m,) that sums to 2^62."""
    # Both numbers are at most 2^62: the top bit of x - c(y) is set if and only if c(y) > x.
    return int((np.uint64(1) - ((x - np.cumsum(row, dtype=np.uint64)) >> np.uint64(63))).sum())


def scan_small_table(mass: Masses, masks: Unsigned, x: np.uint64) -> int:
    """The same for the row of mass (n, m) that `row_masks` (n,) selects, after reading every row."""
    return scan_small_row(np.bitwise_or.reduce(mass & masks[:, None], axis=0), x)


def search_few(cumulative: Unsigned, rows: Indices, words: Unsigned) -> Indices:
    """The reports (k,) of words (k,), of which x is the upper 62 bits, in rows (k,) of cumulative (u, m)."""
    x, drawn = words >> np.uint64(2), np.empty(len(words), np.int64)
    for u in np.unique(rows).tolist():
        drawn[rows == u] = np.searchsorted(cumulative[u], x[rows == u], side="right")
    return drawn


def row_masks(rows: int, secret: int) -> Unsigned:
    """All bits at `secret`, none elsewhere (rows,); outside the compiled scan, where a compiler might skip rows."""
    # The top bit of d | -d is 0 only for d = 0; minus 1 turns that 0 into all bits, and a 1 into none.
    difference = np.arange(rows, dtype=np.uint64) ^ np.uint64(secret)
    return ((difference | (np.uint64(0) - difference)) >> np.uint64(63)) - np.uint64(1)
