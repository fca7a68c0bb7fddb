"""A table of doubles that somebody else made, checked as it is: every double is the exact number m 2^e.

Claim of `breaches`. P (n, m) are finite doubles >= 0 and (R, s) are integers with R 2^-s <= e^{d_e} for every edge e =
(u, v). A triple (e, direction, y) is a breach unless P[u, y] <= R 2^-s P[v, y], in integers: with P[u, y] = a 2^i and
P[v, y] = b 2^j, 2^52 <= a, b < 2^53, that is a 2^k <= R b for k = i + s - j, and R b lies in [2^113, 2^115). No breach
proves P[u, y] <= e^{d(u, v)} P[v, y] for all pairs, d the shortest-path distance; a zero below anything else is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError
from mechdesign.mechanism.table.certificate import edge_ratios
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain

_BITS = 53  # of a double
_STEP = 2.0**-46  # relative; a scale is raised by this, then twice this and so on, until the integers hold


@numba.njit(inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    """The 128-bit product of two 64-bit numbers, as high and low words; as in certificate.py, see CONTRIBUTING.md."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, cross, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (low >> half) + (cross & mask) + (other & mask)
    return high + (cross >> half) + (other >> half) + (middle >> half), (low & mask) | (middle << half)


@numba.njit(inline="always")
def _holds(a, i, b, j, factor, shift):  # type: ignore[no-untyped-def]
    """Whether a 2^i <= factor 2^-shift b 2^j, exactly; a zero has a or b = 0."""
    if a == 0 or b == 0:
        return a == 0
    k = i + shift - j
    if k <= 0:
        return True
    if k >= 63:
        return False
    high, low = _product(factor, b)
    bits = np.uint64(k)
    a_high, a_low = a >> (np.uint64(64) - bits), a << bits
    return a_high < high or (a_high == high and a_low <= low)


@numba.njit(cache=True, nogil=True)
def _count(mantissa, exponent, tail, head, factor, shift):  # type: ignore[no-untyped-def]
    bad = 0
    for e in range(tail.size):
        u, v, r, s = tail[e], head[e], factor[e], shift[e]
        for y in range(mantissa.shape[1]):
            a, b, i, j = mantissa[u, y], mantissa[v, y], exponent[u, y], exponent[v, y]
            if not _holds(a, i, b, j, r, s):
                bad += 1
            if not _holds(b, j, a, i, r, s):
                bad += 1
    return bad


@numba.njit(cache=True, nogil=True)
def _steepest(table, tail, head, length):  # type: ignore[no-untyped-def]
    best, edge, report, turned = -1.0, 0, 0, False
    finite = 0.0
    for e in range(tail.size):
        u, v = tail[e], head[e]
        rise, at, down = 0.0, 0, False
        for y in range(table.shape[1]):
            p, q = table[u, y], table[v, y]
            if p == q:
                continue
            high, low = max(p, q), min(p, q)
            if low == 0:
                if rise < np.inf:
                    rise, at, down = np.inf, y, q > p
                continue
            ratio = high / low
            log = math.log(ratio) if ratio < 1e300 else math.log(high) - math.log(low)
            finite = max(finite, log / length[e])
            if log > rise:
                rise, at, down = log, y, q > p
        if rise / length[e] > best:
            best, edge, report, turned = rise / length[e], e, at, down
    return best, edge, report, turned, finite


@dataclass(frozen=True, kw_only=True)
class Worst:
    """Where a given table comes closest to a metric, or breaks it most, in floating point.

    value = ln(P[secret, report] / P[other, report]) / distance, infinite where P[other, report] is 0; distance in nats;
    finite, the largest value among the triples without a zero.
    """

    value: float
    finite: float
    secret: int
    other: int
    report: int
    distance: float


def worst_ratio(table: NDArray[np.float64], edges: Edges) -> Worst:
    """The largest log-ratio over length of all edges, both ways, and reports; table (n, m), finite, >= 0.

    Over shortest paths no pair exceeds its edges, so this is the maximum over all pairs. Cost: O(e m), 8 ns a triple.
    """
    value, edge, report, turned, finite = _steepest(table, edges.tail, edges.head, edges.length)
    u, v = int(edges.tail[edge]), int(edges.head[edge])
    return Worst(
        value=float(value),
        finite=float(finite),
        secret=v if turned else u,
        other=u if turned else v,
        report=int(report),
        distance=float(edges.length[edge]),
    )


def breaches(table: NDArray[np.float64], edges: Edges) -> int:
    """Number of (edge, direction, report) triples with P[tail, y] > e^{length} P[head, y], by exact integers.

    table (n, m), finite doubles >= 0, taken as the exact numbers they are. A ratio beyond R 2^-s, which is e^{length}
    to a relative 2^-60, counts: none proves the claim. Cost: O(e m), 4 ns a triple; two tables of memory.
    """
    factor, shift = edge_ratios(edges.length)
    fraction, exponent = np.frexp(table)
    mantissa = np.ldexp(fraction, _BITS).astype(np.uint64)
    return int(_count(mantissa, exponent.astype(np.int64), edges.tail, edges.head, factor, shift))


def true_scale(table: NDArray[np.float64], metric: Metric, domain: Domain, found: float) -> float:
    """`found`, the largest ratio in floating point, rounded up until no triple breaches the metric at that scale.

    The first step is 2^-46 of it, then twice that and so on: six more where every length is 1e-2 nats or longer.
    Raises: DesignError where none holds.
    """
    scale, step = found * (1 + _STEP), _STEP
    while math.isfinite(scale):
        if breaches(table, (scale * metric).edges(domain)) == 0:
            return scale
        step *= 2
        scale = found * (1 + step) + math.ulp(0.0)
    raise DesignError("no multiple of the metric holds", field="table", remedy="report this table")
