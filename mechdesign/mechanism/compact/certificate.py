"""Whether the row sums of a compact map certify it: every edge of its claim, and the bound of every sum.

A bound above four times the sum is refused, though it breaks no claim: a round of a draw ends with probability
S / Sbar, and a map of Sbar = 2^31 S never reports.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.compact.formulas import LOOSEST, bounds
from mechdesign.mechanism.compact.map import CompactMap


def breaches(compact: CompactMap, row_sums: list[int]) -> int:
    """Number of (edge, direction) pairs that the certificate does not cover; row_sums S(u) of all n secrets."""
    return compact.factors.breaches(compact.edges, row_sums)


def above(compact: CompactMap, row_sums: list[int]) -> int:
    """Number of secrets u with S(u) > Sbar(u)."""
    bound = bounds(compact.bound, compact.potential.ravel()[compact.inner])
    return sum(s > b for s, b in zip(row_sums, bound, strict=True))


def loose(compact: CompactMap, row_sums: list[int]) -> int:
    """Number of secrets u with Sbar(u) > 4 S(u)."""
    bound = bounds(compact.bound, compact.potential.ravel()[compact.inner])
    return sum(b > LOOSEST * s for s, b in zip(row_sums, bound, strict=True))


def least_bound(potential: NDArray[np.int16], row_sums: list[int]) -> tuple[int, int]:
    """A `bound` (g, k) with S(u) <= Sbar(u) for potentials (n,) and sums of n secrets, the least to 2^-20 of it.

    Sbar grows with g at least as fast as g itself but for 255 roundings up, together less than 2^-21 of it.
    """
    least = max(s * (1 << 30) // b for s, b in zip(row_sums, bounds((1 << 30, 0), potential), strict=True))
    wanted = max(least + (least >> 21) + 2, 1 << 30)
    shift = (wanted + (wanted >> 30)).bit_length() - 31  # so that rounding up stays below 2^31
    return -(-wanted >> shift), shift
