"""One report by a scan whose addresses depend on neither the secret nor the report.

With x uniform in [0, 2^62) and cumulative masses c(y) = a(0) + ... + a(y), the report is the number of y with
c(y) <= x: exactly a(y) of the 2^62 values of x give y. Every entry is read in order.

`scan_row` reads one row, whose address depends on the secret; `scan_table` reads the table and keeps the row of the
secret by a mask. `search_rows` finds many reports from a guide by leading bits; its addresses depend on both.
"""

from __future__ import annotations

import numba
import numpy as np

from mechdesign.mechanism.small_draw import row_masks as row_masks


@numba.njit(cache=True, nogil=True)
def _count(row, x):  # type: ignore[no-untyped-def]
    total, report = np.uint64(0), np.uint64(0)
    # No branch and no early exit, which would depend on x. Both numbers are at most 2^62, so that the top bit of x -
    # c(y) is set if and only if c(y) > x.
    for y in range(row.size):
        total += row[y]
        report += np.uint64(1) - ((x - total) >> np.uint64(63))
    return report


# Constant, for tables of one shape: which addresses are read and written, in which order, how often, and which
# instructions run. Not constant: Python around it, the look-up of the secret by the caller, caches, speculation and
# power of the machine, and later use of the report.
@numba.njit(cache=True, nogil=True)
def scan_row(row, x):  # type: ignore[no-untyped-def]
    """The report uint64 of row (m,) uint64 summing to 2^62 and x uint64 < 2^62. Cost: 1 ns an entry."""
    return _count(row, x)


@numba.njit(cache=True, nogil=True)
def scan_table(mass, masks, x, row):  # type: ignore[no-untyped-def]
    """The same for the row of mass (n, m) that `row_masks` (n,) selects; row (m,), zeros, receives it."""
    # Read every row; the mask has all bits at one of them, so that the union is that row.
    for u in range(mass.shape[0]):
        masses, mask = mass[u], masks[u]
        for y in range(row.size):
            row[y] |= masses[y] & mask
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
    """Fill drawn (b, s), rows from `first` on, with reports in rows[i] of cumulative (u, m), with its `guides`."""
    # x is the upper 62 bits of words, uint64. If 2^62 >> shift is at least m, a draw takes 2 comparisons on average.
    i, j = first // drawn.shape[1], first % drawn.shape[1]
    for word in words:
        x, u = word >> np.uint64(2), rows[i]
        # The guide is the report of a smaller x with the same leading bits, so that y only rises.
        y = guide[u, x >> shift]
        while cumulative[u, y] <= x:
            y += 1
        drawn[i, j] = y
        j += 1
        if j == drawn.shape[1]:
            i, j = i + 1, 0
