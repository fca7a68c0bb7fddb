r"""Maximum likelihood for K-ary randomized response in closed form, by sorting.

P(y|u) = b + a [u = y] with a > 0: the reports have probabilities q = b + a p, so that the program is to

    maximise  sum_y w_y ln q_y   over  q_y >= b,  sum_y q_y = 1,      with the optimum  q_y = max(b, w_y / lambda).

Where the j largest shares are above b, 1 = (K - j) b + (sum of these shares) / lambda gives lambda; j is the largest
number for which its own smallest share stays above b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SAME = 1e-12  # relative; entries nearer than this are one number

_Floats = NDArray[np.float64]


def response_levels(table: _Floats) -> tuple[float, float] | None:
    """(a, b) of a table that is randomized response up to rounding, with the truth more likely than a lie; else None.

    Cost: O(n), and O(n^2) where the first row fits.
    """
    n, m = table.shape
    if n != m or n == 1:
        return None
    truth, other = float(table[0, 0]), float(table[0, 1])
    expected = np.full(n, other)
    expected[0] = truth
    if not truth > other or not _same(table[0], expected):
        return None
    off = table[~np.eye(n, dtype=bool)]
    if not (_same(off, other) and _same(np.diag(table), truth)):
        return None
    return truth - other, other


def water_filling(share: _Floats, rise: float, floor: float) -> _Floats:
    """The optimal p (K,) for shares w (K,) of the reports, a = rise and b = floor. Cost: O(K log K)."""
    size = len(share)
    ordered = np.sort(share)[::-1]
    above = np.arange(1, size + 1)
    level = np.cumsum(ordered) / (1 - (size - above) * floor)
    last = np.flatnonzero(ordered > floor * level)[-1]
    return np.asarray(np.maximum(share / level[last] - floor, 0.0) / rise)


def _same(values: _Floats, expected: _Floats | float) -> bool:
    return bool((abs(values - expected) <= _SAME * np.abs(expected)).all())
