"""One report by a scan whose addresses depend on neither the secret nor the report.

Statement. With x uniform in [0, 2^62) and cumulative masses c(y) = a(0) + ... + a(y), the report is the number of y
with c(y) <= x: exactly a(y) of the 2^62 values of x give y. Every entry of the row is read, in order, and each
comparison is the borrow of a subtraction: both numbers are at most 2^62, so that the top bit of x - c(y) is set if and
only if c(y) > x.

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
    total, found = np.uint64(0), np.uint64(0)
    for y in range(row.size):
        total += row[y]
        found += np.uint64(1) - ((x - total) >> np.uint64(63))
    return found


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


def row_masks(rows: int, secret: int) -> NDArray[np.uint64]:
    """All bits at `secret`, none elsewhere (rows,), by arithmetic on every entry.

    Made outside the compiled scan on purpose: a compiler that sees that a mask is all or nothing may skip the rows.
    """
    difference = np.arange(rows, dtype=np.uint64) ^ np.uint64(secret)
    return ((difference | (np.uint64(0) - difference)) >> np.uint64(63)) - np.uint64(1)
