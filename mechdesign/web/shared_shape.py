"""Rows of a table that are one shape, moved and multiplied: their masses follow from far fewer numbers.

A mechanism that normalises its rows one by one, such as the exponential one, has P(y|u) = shape(y - u) factor(u). With
the common row of rounded.py, units of masses are

    floor(shape(y - u) factor(u) + common(y) + 1/2),                                                                (1)

in doubles, by the same operations here and in browser/proof/packed.js. A page stores the shape, a factor for each row,
the common row, and the errors of (1). These are 0 but for the one mass of each row that takes its remainder.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import AnyArray, Masses
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.web.rounded import RoundedTable

_MOST_OFF = 0.05  # of the masses: with more of them a plain table is smaller, or nearly
_MOST_CELLS = 1 << 12  # of the box of a grid: 4 times as many displacements of 8 bytes


def shared_shape(rounded: RoundedTable, file: MechanismFile, units: Masses) -> dict[str, AnyArray] | None:
    """The arrays of (1), and units (n, m) less (1) modulo 2^32 as `coarse`; None for tables without such a shape."""
    domain = file.domain
    if domain.index is None or domain.index.shape[1] != 2 or not file.same_places:
        return None
    index = (domain.index - domain.index.min(axis=0)).astype(np.int64)
    sides = index.max(axis=0) + 1
    if sides.prod() > _MOST_CELLS:
        return None
    steps = index[None] - index[:, None] + sides - 1
    place = steps[..., 0] * (2 * sides[1] - 1) + steps[..., 1]
    own = rounded.mixed - rounded.common
    diagonal = np.diagonal(own)
    if not (diagonal > 0).all():
        return None
    # The mean over all pairs with this displacement; of those that no pair has, nothing is read.
    counts = np.bincount(place.ravel(), minlength=(2 * sides - 1).prod())
    shape = np.bincount(place.ravel(), (own / diagonal[:, None]).ravel(), len(counts)) / np.maximum(counts, 1)
    factor, common = diagonal * 2.0**rounded.bits, rounded.common * 2.0**rounded.bits
    predicted = np.floor(shape[place] * factor[:, None] + common + 0.5)
    off = units - predicted
    if np.count_nonzero(off) > _MOST_OFF * off.size or not (np.abs(predicted) < 2.0**32).all():
        return None
    return {
        "shape": shape,
        "factor": factor,
        "common": common,
        "index": (index[:, 0] * sides[1] + index[:, 1]).astype(np.uint32),
        "sides": sides.astype(np.uint32),
        "coarse": off.astype(np.int64).astype(np.uint32),
    }
