"""One report by a scan whose addresses depend on neither the secret nor the report.

Statement. With x uniform in [0, 2^62) and cumulative masses c(y) = a(0) + ... + a(y), the report is the number of y
with c(y) <= x: exactly a(y) of the 2^62 values of x give y. Every entry of the row is read, in order, and each
comparison is the borrow of a subtraction: both numbers are at most 2^62, so that the top bit of x - c(y) is set if and
only if c(y) > x.

`search_rows` finds the same number many at a time, by counting on from the one of the first x with the same leading
bits: its addresses depend on secret and report.

`scan_row` is given one row: which row of the table that is shows in its address. `scan_table` reads every entry of the
table in order and keeps the row of the secret by a mask, so that nothing it touches depends on the secret.

What is constant: which addresses are read and written, in which order, how often, and which instructions run, for a
table of one shape. What is not: Python around it (integers of different size, the look-up of the secret that the
caller makes), the caches, speculation and power of the machine, and whatever is done with the report afterwards.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def _count(row, x):  # type: ignore[no-untyped-def]
    total, report = np.uint64(0), np.uint64(0)
    for y in range(row.size):
        total += row[y]
        report += np.uint64(1) - ((x - total) >> np.uint64(63))
    return report


@numba.njit(cache=True, nogil=True)
def scan_row(row, x):  # type: ignore[no-untyped-def]
    """The report uint64 of row (m,) uint64 summing to 2^62 and x uint64 < 2^62. Cost: 1 ns an entry."""
    return _count(row, x)


@numba.njit(cache=True, nogil=True)
def scan_table(mass, masks, x, row):  # type: ignore[no-untyped-def]
    """The same for the row of mass (n, m) that `row_masks` (n,) keeps; row (m,), zeros, is where it is gathered.

    Cost: O(n m), the time to read the table.
    """
    for u in range(mass.shape[0]):
        own, mask = mass[u], masks[u]
        for y in range(row.size):
            row[y] |= own[y] & mask
    return _count(row, x)


@numba.njit(cache=True, nogil=True)
def guides(cumulative, shift):  # type: ignore[no-untyped-def]
    """The reports (u, 2^62 >> shift) int32 of x = 0, 2^shift, 2 2^shift and so on, in rows of cumulative (u, m)."""
    guide = np.empty((cumulative.shape[0], np.uint64(1 << 62) >> shift), np.int32)
    for u in range(guide.shape[0]):
        y = 0
        for leading in range(guide.shape[1]):
            while cumulative[u, y] <= np.uint64(leading) << shift:
                y += 1
            guide[u, leading] = y
    return guide


@numba.njit(cache=True, nogil=True)
def search_rows(cumulative, guide, shift, rows, words, first, drawn):  # type: ignore[no-untyped-def]
    """Fill drawn (b, s), row after row from place `first` on, by words uint64 of which x is the upper 62 bits; drawn[i]
    are reports in rows[i] of cumulative (u, m), which `guides` made guide of.

    Cost: with 2^62 >> shift at least m, 2 comparisons a draw on average at most, whatever the masses.
    """
    i, j = first // drawn.shape[1], first % drawn.shape[1]
    for word in words:
        x, u = word >> np.uint64(2), rows[i]
        y = guide[u, x >> shift]
        while cumulative[u, y] <= x:
            y += 1
        drawn[i, j] = y
        j += 1
        if j == drawn.shape[1]:
            i, j = i + 1, 0


def row_masks(rows: int, secret: int) -> NDArray[np.uint64]:
    """All bits at `secret`, none elsewhere (rows,), by arithmetic on every entry.

    Made outside the compiled scan on purpose: a compiler that sees that a mask is all or nothing may skip the rows.
    """
    difference = np.arange(rows, dtype=np.uint64) ^ np.uint64(secret)
    return ((difference | (np.uint64(0) - difference)) >> np.uint64(63)) - np.uint64(1)
