"""Certificate: privacy proved in integers.

Claim. Let A (n, m) be integers >= 1 whose rows sum to exactly 2^62, and let every edge e = (u, v), both ways, satisfy
A[u, y] 2^s <= R A[v, y] for all y, with integers R 2^-s <= e^{d_e}. Then P = A / 2^62 satisfies
P[u, y] <= e^{d(u, v)} P[v, y] for all u, v, d the shortest-path distance: multiply along a shortest path. The same
holds for every set of reports and after any post-processing. The check is one of integers. Most edges of a large table
hold with room, and single precision tells which: with x' = x (1 + r), |r| <= 2^-24, for every number that is rounded,
A[u, y]' <= ((1 - 2^-20) R 2^-s)' A[v, y]', a product that is rounded too, implies A[u, y] < R 2^-s A[v, y]. On the
other edges every report is compared as integers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import WORKERS, in_blocks
from mechdesign.setting.metric.shortest_paths import Edges

ROW_BITS = 62
ROW_SUM = 1 << ROW_BITS
_WORKING_BITS = 160  # of the Taylor sum: 98 more than are kept
_ROOM = 1 - 2.0**-20  # of a ratio: more than single precision takes, which rounds four times by 2^-24
_EDGES = 1 << 14  # that a thread takes at a time
_REPORTS = 256  # that are compared in single precision before any is looked at more closely
_SAMPLED = 8  # blocks of edges, a thread, that an estimate of the time takes
_VACUOUS = 80.0  # e^80 > 2^115 exceeds every ratio of two masses, so longer edges need no better bound


def exp_lower(length: float) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^length and 2^61 <= R < 2^62, tight to a relative 2^-60.

    Partial sums of the Taylor series of e^x, x >= 0, are lower bounds; every operation is floored, and squaring a
    lower bound gives one. `length` is taken as the exact dyadic number that the double is.
    Raises: ValueError for a negative or non-finite length.
    """
    if not (math.isfinite(length) and length >= 0):
        raise ValueError(f"edge length {length} is not a non-negative number")
    exact = Fraction(min(length, _VACUOUS))
    halvings = max(0, math.ceil(exact).bit_length() + 4)
    x = (exact.numerator << _WORKING_BITS) // (exact.denominator << halvings)
    term = total = 1 << _WORKING_BITS
    k = 1
    while term:
        term = (term * x >> _WORKING_BITS) // k
        total += term
        k += 1
    for _ in range(halvings):
        total = total * total >> _WORKING_BITS
    drop = total.bit_length() - ROW_BITS
    return total >> drop, _WORKING_BITS - drop


def edge_ratios(length: NDArray[np.float64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """`exp_lower` of every length: R (e,) and s (e,). Cost: 30 microseconds per distinct length."""
    distinct, place = np.unique(length, return_inverse=True)
    pairs = [exp_lower(float(x)) for x in distinct]
    factor = np.array([r for r, _ in pairs], np.uint64)[place]
    shift = np.array([s for _, s in pairs], np.int64)[place]
    return factor, shift


@numba.njit(inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    """The 128-bit product of two 64-bit numbers, as high and low words."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, cross, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (low >> half) + (cross & mask) + (other & mask)
    return high + (cross >> half) + (other >> half) + (middle >> half), (low & mask) | (middle << half)


@numba.njit(cache=True, nogil=True)
def _count(mass, single, tail, head, factor, shift):  # type: ignore[no-untyped-def]
    """Pairs with high 2^shift > factor low, for entries <= 2^62 and 2^61 <= factor < 2^62. factor 2^-shift >= 1, so
    that only the larger entry of a pair can exceed its bound; a negative shift allows any ratio. single: mass, rounded.
    """
    bad = 0
    for e in range(tail.size):
        if shift[e] < 0:
            continue
        u, v, ratio, bits = tail[e], head[e], factor[e], np.uint64(shift[e])
        near, rest = np.float32(_ROOM * math.ldexp(np.float64(ratio), -shift[e])), np.uint64(63) - bits
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not _exceeds(single[u, first:last], single[v, first:last], near):
                continue
            row, other = mass[u, first:last], mass[v, first:last]
            for y in range(row.size):
                high = max(row[y], other[y])
                top, bottom = _product(ratio, min(row[y], other[y]))
                over, under = (high >> np.uint64(1)) >> rest, high << bits
                bad += (over > top) | ((over == top) & (under > bottom))
    return bad


@numba.njit(inline="always")
def _exceeds(row, other, ratio):  # type: ignore[no-untyped-def]
    """Whether an entry is more than so many times that of the other row, either way. Told without a branch."""
    found = False
    for y in range(row.size):
        found |= (row[y] > ratio * other[y]) | (other[y] > ratio * row[y])
    return found


@numba.njit(cache=True, nogil=True)
def _steepest(mass, single, tail, head, length):  # type: ignore[no-untyped-def]
    """Where no ratio is near the best one so far nothing more is computed. single: mass, rounded."""
    best, edge, report, turned = -1.0, 0, 0, False
    for e in range(tail.size):
        u, v = tail[e], head[e]
        low, high, low_y, high_y = np.inf, -np.inf, 0, 0
        near = np.float32(_ROOM * math.exp(min(best * length[e], 80.0))) if best > 0 else np.float32(0)
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not _exceeds(single[u, first:last], single[v, first:last], near):
                continue
            for y in range(first, last):
                ratio = np.float64(mass[u, y]) / np.float64(mass[v, y])
                if ratio > high:
                    high, high_y = ratio, y
                if ratio < low:
                    low, low_y = ratio, y
        if high < 0:
            continue
        up, down = math.log(high), -math.log(low)
        rise = max(up, down)
        value = rise / length[e] if length[e] > 0 else (np.inf if rise > 0 else 0.0)
        if value > best:
            best, edge, turned = value, e, down > up
            report = low_y if turned else high_y
    return best, edge, report, turned


def violations(mass: NDArray[np.uint64], edges: Edges, *, deadline: float = math.inf) -> int:
    """Number of (edge, direction, report) triples with mass[tail, y] > e^{length} mass[head, y], by exact integers.

    Zero proves the claim for entries 1 <= mass <= 2^62. `reference_violations` is the same in plain Python.
    Cost: O(e m), 0.3 ns a triple, 1.5 ns on edges that are near their length, on all cores. Raises: OutOfTime at the
    deadline, of time.monotonic().
    """
    found: list[int] = []
    in_blocks(_counter(mass, edges, found), len(edges.tail), _EDGES, deadline=deadline)
    return sum(found)


def certifying_seconds(mass: NDArray[np.uint64], edges: Edges) -> float:
    """The seconds that `violations` will take, about, of one block of edges in some: at the machine's load of now."""
    starts = range(0, len(edges.tail), _EDGES)
    every = max(1, len(starts) // (WORKERS * _SAMPLED))
    own = np.concatenate([np.arange(start, min(start + _EDGES, len(edges.tail))) for start in starts[::every]])
    some = Edges(tail=edges.tail[own], head=edges.head[own], length=edges.length[own])
    work = _counter(mass, some, [])
    work(0, min(_EDGES, len(own)))  # what is cold at first is no measure of the rest
    started = time.monotonic()
    in_blocks(work, len(own), _EDGES)
    return (time.monotonic() - started) * len(edges.tail) / len(own)


def _counter(mass: NDArray[np.uint64], edges: Edges, found: list[int]) -> Callable[[int, int], None]:
    """Counts the violations of a range of edges into a list."""
    table, (factor, shift) = np.ascontiguousarray(mass), edge_ratios(edges.length)
    single, tail, head = table.astype(np.float32), np.ascontiguousarray(edges.tail), np.ascontiguousarray(edges.head)

    def count(start: int, stop: int) -> None:
        own = slice(start, stop)
        found.append(int(_count(table, single, tail[own], head[own], factor[own], shift[own])))

    return count


def reference_violations(mass: NDArray[np.uint64], edges: Edges) -> int:
    """`violations` with nothing but Python integers: the oracle of the fast check. Cost: 0.3 microseconds a triple."""
    rows = [[int(a) for a in row] for row in mass]
    bad = 0
    for u, v, length in zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True):
        factor, shift = exp_lower(length)
        left, right = max(shift, 0), max(-shift, 0)
        for a, b in zip(rows[u], rows[v], strict=True):
            bad += (a << left) > (factor * b << right)
            bad += (b << left) > (factor * a << right)
    return bad


@dataclass(frozen=True, kw_only=True)
class MaxLogRatio:
    """Where a mechanism comes closest to its claim: value = log-ratio / length, dimensionless."""

    value: float
    secret: int
    other: int
    report: int


def max_log_ratio(mass: NDArray[np.uint64], edges: Edges) -> MaxLogRatio:
    """Max over edges, both ways, and reports of ln(mass[secret, y] / mass[other, y]) / length, in floating point.

    Cost: as `violations`.
    """
    table, found = np.ascontiguousarray(mass), {}
    single = table.astype(np.float32)

    def some(start: int, stop: int) -> None:
        own = slice(start, stop)
        value, edge, report, turned = _steepest(table, single, edges.tail[own], edges.head[own], edges.length[own])
        found[start] = float(value), start + int(edge), int(report), bool(turned)

    in_blocks(some, len(edges.tail), _EDGES)
    value, edge, report, turned = max((found[start] for start in sorted(found)), key=lambda best: best[0])
    u, v = int(edges.tail[edge]), int(edges.head[edge])
    return MaxLogRatio(value=value, secret=v if turned else u, other=u if turned else v, report=report)


def row_sums_exact(mass: NDArray[np.uint64]) -> bool:
    """Whether every entry lies in [1, 2^62] and every row sums to exactly 2^62, without overflow."""
    if mass.min() < 1 or mass.max() > ROW_SUM:
        return False
    for row in mass:
        low = int((row & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
        high = int((row >> np.uint64(32)).sum(dtype=np.uint64))
        if (high << 32) + low != ROW_SUM:
            return False
    return True
