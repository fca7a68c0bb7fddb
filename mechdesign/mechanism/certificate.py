"""Certificate: privacy proved in integers, of an integer table and of a table of doubles.

Integers. Let A (n, m) be integers >= 1 whose rows sum to exactly 2^62, and let integers R, s satisfy R 2^-s <= e^{d_e}
for every edge e = (u, v). If, both ways and for all y,

    A[u, y] 2^s <= R A[v, y]                                                                                    (1)

then P = A / 2^62 satisfies P[u, y] <= e^{d(u, v)} P[v, y] for all u, v, where d is the shortest-path distance: multiply
along a shortest path. Single precision proves most entries (`_count`); the others are compared in integers.

For a table of doubles the inequality is (3), at `_holds`. If no triple breaches it the claim is proved for all pairs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numba
import numpy as np

from mechdesign.base.arrays import Indices, Masses, Matrix, Unsigned, Vector
from mechdesign.base.threads import WORKERS, in_blocks
from mechdesign.problem.lattice import Edges

ROW_BITS = 62
ROW_SUM = 1 << ROW_BITS
_WORKING_BITS = 160  # of the Taylor sum: 98 more than the result has
SINGLE_MARGIN = 1 - 2.0**-20  # of a ratio: four roundings in single precision take less, 2^-22
_EDGES = 1 << 14  # edges per task of a thread
_FEW_EDGES = 1 << 10  # the same for a table of doubles, whose edges take some 50 times longer
_REPORTS = 256  # reports per block of the single-precision test (2): two rows of 1 kB stay in the cache
_SAMPLED = 8  # blocks of edges per thread on which the time is estimated

# Nats from which on R 2^-s stays the same. A cap can only make the check stricter. e^80 > 2^115 exceeds every ratio of
# two masses. e^1490 > 2^2149 exceeds every ratio of two positive doubles, which is at most 2^1024 / 2^-1074.
_VACUOUS = 80.0
_BEYOND_DOUBLES = 1490.0
_BITS = 53  # of a double
_COARSE = 8  # bits of the lengths tried first: few distinct lengths remain, and so few Taylor sums


def exp_lower(length: float, longest: float = _VACUOUS) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^length and 2^61 <= R < 2^62, tight to a relative 2^-60 up to `longest` nats."""
    # Floored partial sums of the Taylor series are lower bounds, and so are their squares.
    if not (math.isfinite(length) and length >= 0):
        raise ValueError(f"edge length {length} is not a non-negative number")
    exact = Fraction(min(length, longest))
    # The argument is below 1/16 after the halvings, so that the series needs about 30 terms.
    halvings = max(0, math.ceil(exact).bit_length() + 4)
    x = (exact.numerator << _WORKING_BITS) // (exact.denominator << halvings)
    # All terms are positive and every division rounds down: a partial sum never exceeds the exact one.
    term = total = 1 << _WORKING_BITS
    k = 1
    while term:
        term = (term * x >> _WORKING_BITS) // k
        total += term
        k += 1
    # Squaring undoes a halving; a floored square of a lower bound is a lower bound of the square.
    for _ in range(halvings):
        total = total * total >> _WORKING_BITS
    drop = total.bit_length() - ROW_BITS
    return total >> drop, _WORKING_BITS - drop


def edge_ratios(length: Vector, longest: float = _VACUOUS) -> tuple[Unsigned, Indices]:
    """`exp_lower` of every length: R (e,) and s (e,). Cost: 30 microseconds per distinct length of a new call."""
    return _ratios_of(np.ascontiguousarray(length, np.float64).tobytes(), longest)


@lru_cache(maxsize=2)
def _ratios_of(lengths: bytes, longest: float) -> tuple[Unsigned, Indices]:
    distinct, place = np.unique(np.frombuffer(lengths), return_inverse=True)
    pairs = [exp_lower(float(x), longest) for x in distinct]
    factor = np.array([r for r, _ in pairs], np.uint64)[place]
    shift = np.array([s for _, s in pairs], np.int64)[place]
    factor.flags.writeable = shift.flags.writeable = False
    return factor, shift


@numba.njit(inline="always")
def product(a, b):  # type: ignore[no-untyped-def]
    """The 128-bit product of two 64-bit numbers, as high and low words."""
    # With halves of 32 bits no sum wraps: middle < 3 * 2^32, and the carry is part of a product below 2^128. Caches of
    # kernels in other files do not notice a change here.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, cross, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (low >> half) + (cross & mask) + (other & mask)
    return high + (cross >> half) + (other >> half) + (middle >> half), (low & mask) | (middle << half)


@numba.njit(cache=True, nogil=True)
def _count(mass, single, tail, head, factor, shift):  # type: ignore[no-untyped-def]
    """Count pairs with high 2^shift > factor low; entries <= 2^62, 2^61 <= factor < 2^62; single: mass, rounded."""
    violations = 0
    for e in range(tail.size):
        # With x' = x (1 + r), |r| <= 2^-24, the inequality rounded to single precision
        #     A[u, y]' <= ((1 - 2^-20) R 2^-s)' A[v, y]'                                                             (2)
        # implies (1). On the other edges every report is compared in integers.
        # R 2^-s is at least 2^62 here, which no ratio of two masses exceeds: (1) holds.
        if shift[e] < 0:
            continue
        u, v, ratio, bits = tail[e], head[e], factor[e], np.uint64(shift[e])
        limit, shift_right = np.float32(SINGLE_MARGIN * math.ldexp(np.float64(ratio), -shift[e])), np.uint64(63) - bits
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not exceeds(single[u, first:last], single[v, first:last], limit):
                continue  # (2) holds for the block, and so does (1)
            row, other = mass[u, first:last], mass[v, first:last]
            for y in range(row.size):
                # (1) both ways: the larger mass 2^s against R times the smaller one.
                high = max(row[y], other[y])
                top, bottom = product(ratio, min(row[y], other[y]))
                # high 2^bits in two words. Two shifts to the right, as a shift by 64 (bits = 0) is undefined.
                over, under = (high >> np.uint64(1)) >> shift_right, high << bits
                violations += (over > top) | ((over == top) & (under > bottom))
    return violations


@numba.njit(inline="always")
def exceeds(row, other, ratio):  # type: ignore[no-untyped-def]
    """True if an entry is more than `ratio` times that of the other row, either way."""
    # No branch in the loop, so that the compiler vectorises it.
    over = False
    for y in range(row.size):
        over |= (row[y] > ratio * other[y]) | (other[y] > ratio * row[y])
    return over


@numba.njit(cache=True, nogil=True)
def _steepest(mass, single, tail, head, length):  # type: ignore[no-untyped-def]
    """The largest log-ratio over length; blocks that cannot exceed the current maximum are skipped."""
    best, edge, report, is_descent_at_best = -1.0, 0, 0, False
    for e in range(tail.size):
        u, v = tail[e], head[e]
        largest, report_of_edge, is_descent = -1.0, 0, False
        # A block whose ratios stay below e^{best length} cannot raise the maximum; e^80 is finite in float32.
        limit = np.float32(SINGLE_MARGIN * math.exp(min(best * length[e], 80.0))) if best > 0 else np.float32(0)
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not exceeds(single[u, first:last], single[v, first:last], limit):
                continue
            for y in range(first, last):
                low, high = min(mass[u, y], mass[v, y]), max(mass[u, y], mass[v, y])
                # The difference is exact before it is rounded: a quotient of doubles loses it where rows are close.
                excess = np.float64(high - low) / np.float64(low)
                if excess > largest:
                    largest, report_of_edge, is_descent = excess, y, mass[v, y] > mass[u, y]
        if largest < 0:
            continue
        rise = math.log1p(largest)
        value = rise / length[e] if length[e] > 0 else (np.inf if rise > 0 else 0.0)
        if value > best:
            best, edge, report, is_descent_at_best = value, e, report_of_edge, is_descent
    return best, edge, report, is_descent_at_best


def violations(mass: Masses, edges: Edges, *, deadline: float = math.inf) -> int:
    """Number of (edge, direction, report) triples with mass[tail, y] > e^{length} mass[head, y], by exact integers."""
    # Zero proves the claim for entries 1 <= mass <= 2^62. O(e m), 0.3 ns a triple; OutOfTime at the deadline.
    counts: list[int] = []
    in_blocks(_counter(mass, edges, counts), len(edges.tail), _EDGES, deadline=deadline)
    return sum(counts)


def certifying_seconds(mass: Masses, edges: Edges) -> float:
    """Estimate the seconds of `violations` from a sample of blocks of edges, at the current load of the machine."""
    starts = range(0, len(edges.tail), _EDGES)
    stride = max(1, len(starts) // (WORKERS * _SAMPLED))
    sample = np.concatenate([np.arange(start, min(start + _EDGES, len(edges.tail))) for start in starts[::stride]])
    sampled_edges = Edges(tail=edges.tail[sample], head=edges.head[sample], length=edges.length[sample])
    work = _counter(mass, sampled_edges, [])
    # Warm up before timing: the first call may load the compiled kernel.
    work(0, min(_EDGES, len(sample)))
    started = time.monotonic()
    in_blocks(work, len(sample), _EDGES)
    return (time.monotonic() - started) * len(edges.tail) / len(sample)


def _counter(mass: Masses, edges: Edges, counts: list[int]) -> Callable[[int, int], None]:
    table, (factor, shift) = np.ascontiguousarray(mass), edge_ratios(edges.length)
    single, tail, head = table.astype(np.float32), edges.tail, edges.head

    def count(start: int, stop: int) -> None:
        block = slice(start, stop)
        counts.append(int(_count(table, single, tail[block], head[block], factor[block], shift[block])))

    return count


@dataclass(frozen=True, kw_only=True)
class MaxLogRatio:
    """The largest value = ln(P[secret, report] / P[other, report]) / distance in nats; infinite over a zero."""

    # In floating point; finite: the largest value among triples without a zero.

    value: float
    finite: float
    secret: int
    other: int
    report: int
    distance: float


def _log_ratio_at(edges: Edges, value: float, edge: int, report: int, is_descent: bool, finite: float) -> MaxLogRatio:
    u, v = int(edges.tail[edge]), int(edges.head[edge])
    return MaxLogRatio(
        value=float(value),
        finite=float(finite),
        secret=v if is_descent else u,
        other=u if is_descent else v,
        report=int(report),
        distance=float(edges.length[edge]),
    )


def max_log_ratio(mass: Masses, edges: Edges) -> MaxLogRatio:
    """Max over edges, both ways, and reports of ln(mass[secret, y] / mass[other, y]) / length, in floating point."""
    table, best = np.ascontiguousarray(mass), {}
    single = table.astype(np.float32)

    def search_block(start: int, stop: int) -> None:
        block = slice(start, stop)
        ends = edges.tail[block], edges.head[block]
        value, edge, report, is_descent = _steepest(table, single, *ends, edges.length[block])
        best[start] = float(value), start + int(edge), int(report), bool(is_descent)

    in_blocks(search_block, len(edges.tail), _EDGES)
    # In the order of the edges, so that ties give the same triple whatever the order of the threads.
    value, edge, report, is_descent = max((best[start] for start in sorted(best)), key=lambda entry: entry[0])
    return _log_ratio_at(edges, value, edge, report, is_descent, value)


def row_sums_exact(mass: Masses) -> bool:
    """True if every entry lies in [1, 2^62] and every row sums to exactly 2^62."""
    if mass.min() < 1 or mass.max() > ROW_SUM:
        return False
    # A sum of 64-bit masses could wrap to 2^62; sums of their 32-bit halves cannot.
    for row in mass:
        low = int((row & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
        high = int((row >> np.uint64(32)).sum(dtype=np.uint64))
        if (high << 32) + low != ROW_SUM:
            return False
    return True


# Doubles, each the exact number m 2^e. Let P (n, m) be finite doubles >= 0 and R 2^-s <= e^{d_e} as in (1). With P[u,
# y] = a 2^i and P[v, y] = b 2^j, 2^52 <= a, b < 2^53, a triple (e, direction, y) is a breach unless
#
#     a 2^k <= R b,   k = i + s - j,   R b in [2^113, 2^115).                                                        (3)
#
# A zero opposite a positive entry is a breach.
@numba.njit(inline="always")
def _holds(a, i, b, j, factor, shift):  # type: ignore[no-untyped-def]
    """True if a 2^i <= factor 2^-shift b 2^j, exactly (3); a zero has a or b = 0."""
    if a == 0 or b == 0:
        return a == 0
    k = i + shift - j
    # a 2^k < 2^53 lies below R b >= 2^113 here,
    if k <= 0:
        return True
    # and a 2^k >= 2^115 lies above R b here. In between a 2^k has at most two words.
    if k >= 63:
        return False
    high, low = product(factor, b)
    bits = np.uint64(k)
    a_high, a_low = a >> (np.uint64(64) - bits), a << bits
    return a_high < high or (a_high == high and a_low <= low)


@numba.njit(cache=True, nogil=True)
def _count_of_doubles(mantissa, exponent, tail, head, factor, shift, bad):  # type: ignore[no-untyped-def]
    for e in range(tail.size):
        u, v, r, s, count = tail[e], head[e], factor[e], shift[e], 0
        for y in range(mantissa.shape[1]):
            a, b, i, j = mantissa[u, y], mantissa[v, y], exponent[u, y], exponent[v, y]
            if not _holds(a, i, b, j, r, s):
                count += 1
            if not _holds(b, j, a, i, r, s):
                count += 1
        bad[e] = count


@numba.njit(cache=True, nogil=True)
def _steepest_of_doubles(table, tail, head, length):  # type: ignore[no-untyped-def]
    best, edge, report, is_descent_at_best = -1.0, 0, 0, False
    finite = 0.0
    for e in range(tail.size):
        u, v = tail[e], head[e]
        rise, report_of_edge, is_descent = 0.0, 0, False
        for y in range(table.shape[1]):
            p, q = table[u, y], table[v, y]
            if p == q:
                continue
            high, low = max(p, q), min(p, q)
            if low == 0:
                if rise < np.inf:
                    rise, report_of_edge, is_descent = np.inf, y, q > p
                continue
            # Near 1 the difference of two doubles is exact; far from 1 their quotient may overflow.
            log = math.log1p((high - low) / low) if high < 2 * low else math.log(high) - math.log(low)
            finite = max(finite, log / length[e])
            if log > rise:
                rise, report_of_edge, is_descent = log, y, q > p
        if rise / length[e] > best:
            best, edge, report, is_descent_at_best = rise / length[e], e, report_of_edge, is_descent
    return best, edge, report, is_descent_at_best, finite


Count = Callable[[int], None]  # called with the number of edges done in a pass


def max_log_ratio_of_doubles(table: Matrix, edges: Edges, *, count: Count | None = None) -> MaxLogRatio:
    """The largest log-ratio over length of a table (n, m) over edges, and so over all pairs; O(e m), 17 ns a triple."""
    best: dict[int, tuple[float, int, int, bool, float]] = {}

    def search_block(start: int, stop: int) -> None:
        block = slice(start, stop)
        value, edge, *rest = _steepest_of_doubles(table, edges.tail[block], edges.head[block], edges.length[block])
        best[start] = (float(value), start + int(edge), *rest)

    _pass_over(edges, search_block, count)
    finite = max(entry[4] for entry in best.values())
    value, edge, report, is_descent, _ = max((best[start] for start in sorted(best)), key=lambda entry: entry[0])
    return _log_ratio_at(edges, value, edge, report, is_descent, finite)


def _pass_over(edges: Edges, work: Callable[[int, int], None], count: Count | None) -> None:
    """Call work(start, stop) for blocks of edges on all cores, and `count` after each."""
    done, lock = 0, threading.Lock()

    def block(start: int, stop: int) -> None:
        nonlocal done
        work(start, stop)
        if count is None:
            return
        # Without the lock a thread could report a smaller number after a larger one.
        with lock:
            done += stop - start
            count(done)

    in_blocks(block, len(edges.tail), _FEW_EDGES)


class Doubles:
    """A table (n, m) of finite doubles >= 0 as the exact numbers that they are, mantissas times powers of 2."""

    def __init__(self, table: Matrix) -> None:
        # frexp is exact, subnormal numbers included: their mantissas are scaled up to 53 bits too.
        fraction, exponent = np.frexp(table)
        self._mantissa = np.ldexp(fraction, _BITS).astype(np.uint64)
        self._exponent = exponent.astype(np.int64)
        self._broken = np.zeros(0, np.int64)  # edges with breaches in the last call of `is_private`

    def is_private(self, edges: Edges, *, count: Count | None = None) -> bool:
        """True if no triple breaks the edges."""
        # Edges that broke at the last call, at other lengths, first: they most likely break again.
        if len(self._broken):
            hardest = Edges(
                tail=edges.tail[self._broken], head=edges.head[self._broken], length=edges.length[self._broken]
            )
            if self.breaches_by_edge(hardest).any():
                return False
        self._broken = np.flatnonzero(self.breaches_by_edge(edges, count=count))
        return len(self._broken) == 0

    def breaches_by_edge(self, edges: Edges, *, count: Count | None = None) -> Indices:
        """Number (e,) of (direction, report) pairs with P[tail, y] > R 2^-s P[head, y], by exact integers."""
        # A shorter length is a stricter test: an edge without a breach at it has none at its true length.
        fraction, exponent = np.frexp(edges.length)
        shorter = np.ldexp(np.floor(np.ldexp(fraction, _COARSE)), exponent - _COARSE)
        bad = self._count_breaches(edges, np.minimum(shorter, edges.length), count)
        doubtful = np.flatnonzero(bad)
        if len(doubtful):
            subset = Edges(tail=edges.tail[doubtful], head=edges.head[doubtful], length=edges.length[doubtful])
            bad[doubtful] = self._count_breaches(subset, subset.length, None)
        return bad

    def _count_breaches(self, edges: Edges, length: Vector, count: Count | None) -> Indices:
        factor, shift = edge_ratios(length, _BEYOND_DOUBLES)
        bad = np.zeros(len(length), np.int64)

        def count_block(start: int, stop: int) -> None:
            block = slice(start, stop)
            ends = edges.tail[block], edges.head[block]
            _count_of_doubles(self._mantissa, self._exponent, *ends, factor[block], shift[block], bad[block])

        _pass_over(edges, count_block, count)
        return bad


def breaches(table: Matrix, edges: Edges, *, count: Count | None = None) -> int:
    """Number of (edge, direction, report) triples of a table (n, m) that break e^{length}: see `Doubles`."""
    return int(Doubles(table).breaches_by_edge(edges, count=count).sum())
