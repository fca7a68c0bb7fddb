"""Repair a table whose gradients nearly satisfy their bounds, to integers that satisfy them.

Every row is mixed with one common row c and rounded,

    A = (1 - t) P + t c.                                                                                             (1)

The gradient of c is 0, so that mixing lowers |grad P| / P wherever P(y|.) varies. t is doubled until the integers have
no breach, and then bisected.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats, Unsigned
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.positions.patches import Patches

_FIRST = 2.0**-42  # share of the common row
_HALVINGS = 5
_UNIFORM = 2.0**-10  # of the common row, so that none of its masses is small


def repair(table: Floats, patches: Patches, *, first: float = _FIRST) -> Unsigned:
    """A table (n, m) of masses with rows of 2^62, entries at least 1 and no breaches, near `table` (n, m).

    `first` is the smallest t of (1) that is tried.
    """
    # Entries below 0, which a solver may leave, count as 0.
    rows = np.maximum(np.asarray(table, float), 0.0)
    if rows.ndim != 2 or len(rows) != len(patches.around) or not (np.isfinite(rows).all() and rows.any(axis=1).all()):
        problem = f"must be {len(patches.around)} rows of finite numbers, none all 0"
        raise InputError(problem, field="table", value=rows.shape)
    rows = rows / rows.sum(axis=1, keepdims=True)
    # The mean of the rows costs least in their own losses; at t = 1 all rows are equal.
    common = (1 - _UNIFORM) * rows.mean(axis=0) + _UNIFORM / rows.shape[1]

    def mix(share: float) -> Unsigned | None:
        mass = rounded_rows((1 - share) * rows + share * common)
        return mass if patches.breaches(mass) == 0 else None

    # Doubling finds a share within a factor of 2 whatever its size, where bisection from 1 would need 42 steps.
    high = first
    while (best := mix(high)) is None:
        if high == 1:
            message = "too low to certify between positions: even equal rows violate the bound in integers"
            raise UnsuitableError(message, field="epsilon", remedy="use higher levels, or protect cells")
        high = min(2 * high, 1.0)
    low = high / 2
    for _ in range(_HALVINGS if high > first else 0):
        middle = (low + high) / 2
        nearer = mix(middle)
        best, low, high = (best, middle, high) if nearer is None else (nearer, low, middle)
    return best


def rounded_rows(table: Floats) -> Unsigned:
    """Integers (n, m), at least 1, near 2^62 times `table` (n, m), whose rows sum to exactly 2^62."""
    mass = np.maximum((table * 2.0**62).astype(np.uint64), np.uint64(1))
    # The largest mass of a row changes least, relatively, by the remainder.
    for row in mass:
        largest = int(row.argmax())
        row[largest] = ROW_SUM - sum(row.tolist()) + int(row[largest])
    return mass
