"""Certificate: privacy proved in integers, of an integer table and of a table of doubles.

Integers. Let A (n, m) be integers >= 1 whose rows sum to exactly 2^62, and let integers R, s satisfy R 2^-s <= e^{d_e}
for every edge e = (u, v). If, both ways and for all y,

    A[u, y] 2^s <= R A[v, y]                                                                                    (1)

then P = A / 2^62 satisfies P[u, y] <= e^{d(u, v)} P[v, y] for all u, v, where d is the shortest-path distance: multiply
along a shortest path. Single precision proves most entries; the others are compared in integers, by the kernels of
certificate_kernels.py beyond `_FEW_TRIPLES`.

For a table of doubles the inequality is (3), at `_holds`. If no triple breaches it the claim is proved for all pairs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from mechdesign.base.arrays import Indices, Masses, Matrix, Unsigned, Vector
from mechdesign.base.threads import WORKERS, in_blocks
from mechdesign.base.validation import read_only
from mechdesign.problem.lattice import Edges

ROW_BITS = 62
ROW_SUM = 1 << ROW_BITS
_WORKING_BITS = 160  # of the Taylor sum: 98 more than the result has
SINGLE_MARGIN = 1 - 2.0**-20  # of a ratio: four roundings in single precision take less, 2^-22
_EDGES = 1 << 14  # edges per task of a thread
_FEW_EDGES = 1 << 10  # the same for a table of doubles, whose edges take some 50 times longer
_FEW_TRIPLES = 3_000_000  # (edge, report) pairs that NumPy compares before Numba is imported, 0.6 s
_FEW_AT_ONCE = 1 << 18  # of them: arrays of 2 MB
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


def product(a: Any, b: Any) -> tuple[Any, Any]:
    """The 128-bit product of two 64-bit numbers or arrays, as high and low words."""
    # With halves of 32 bits no sum wraps: middle < 3 * 2^32, and the carry is part of a product below 2^128. Caches of
    # kernels in other files do not notice a change here.
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, cross, other, high = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (low >> half) + (cross & mask) + (other & mask)
    return high + (cross >> half) + (other >> half) + (middle >> half), (low & mask) | (middle << half)


def violations(mass: Masses, edges: Edges, *, deadline: float = math.inf) -> int:
    """Number of (edge, direction, report) triples with mass[tail, y] > e^{length} mass[head, y], by exact integers."""
    # Zero proves the claim for entries 1 <= mass <= 2^62. O(e m), 0.3 ns a triple; OutOfTime at the deadline.
    if are_few(mass, edges):
        return sum(_count_few(mass, part) for part in _parts_of(edges, mass.shape[1]))
    counts: list[int] = []
    in_blocks(_counter(mass, edges, counts), len(edges.tail), _EDGES, deadline=deadline)
    return sum(counts)


def certifying_seconds(mass: Masses, edges: Edges) -> float:
    """Estimate the seconds of `violations` from a sample of blocks of edges, at the current load of the machine."""
    if are_few(mass, edges):
        started = time.monotonic()
        violations(mass, edges)
        return time.monotonic() - started
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


def are_few(mass: Masses, edges: Edges) -> bool:
    """True if NumPy compares the triples in less time than Numba takes to load."""
    return len(edges.tail) * mass.shape[1] <= _FEW_TRIPLES


def _parts_of(edges: Edges, reports: int) -> Iterator[Edges]:
    step = max(1, _FEW_AT_ONCE // max(reports, 1))
    for start in range(0, len(edges.tail), step):
        block = slice(start, start + step)
        yield Edges(tail=edges.tail[block], head=edges.head[block], length=edges.length[block])


def _count_few(mass: Masses, edges: Edges) -> int:
    """The count of the kernel `count_violations`, by the same comparisons."""
    factor, shift = edge_ratios(edges.length)
    one, other = mass[edges.tail], mass[edges.head]
    high, low = np.maximum(one, other), np.minimum(one, other)
    limit = (SINGLE_MARGIN * np.ldexp(factor.astype(float), -shift)).astype(np.float32)
    with np.errstate(over="ignore"):
        # (2), the larger mass against the smaller one. R 2^-s is at least 2^62 where s < 0: (1) holds.
        is_doubtful = high.astype(np.float32) > limit[:, None] * low.astype(np.float32)
    edge, report = np.nonzero(is_doubtful & (shift >= 0)[:, None])
    top, bottom = product(factor[edge], low[edge, report])
    bits, large = shift[edge].astype(np.uint64), high[edge, report]
    # Two shifts to the right, as in the kernel: a shift by 64 is undefined.
    over, under = (large >> np.uint64(1)) >> (np.uint64(63) - bits), large << bits
    return int(np.count_nonzero((over > top) | ((over == top) & (under > bottom))))


def _steepest_few(mass: Masses, edges: Edges) -> tuple[float, int, int, bool]:
    """The result of the kernel `steepest`: of equal values the first edge, and of its reports the first."""
    one, other = mass[edges.tail], mass[edges.head]
    low = np.minimum(one, other)
    excess = (np.maximum(one, other) - low).astype(float) / low.astype(float)
    report = np.argmax(excess, axis=1)
    largest = excess[np.arange(len(report)), report]
    # The logarithm of the library: that of NumPy differs from it in the last bit on some processors.
    rise = np.array([math.log1p(x) for x in largest.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(edges.length > 0, rise / edges.length, np.where(rise > 0, np.inf, 0.0))
    e = int(np.argmax(value))
    y = int(report[e])
    return float(value[e]), e, y, bool(other[e, y] > one[e, y])


def _counter(mass: Masses, edges: Edges, counts: list[int]) -> Callable[[int, int], None]:
    from mechdesign.mechanism.certificate_kernels import count_violations

    table, (factor, shift) = np.ascontiguousarray(mass), edge_ratios(edges.length)
    single, tail, head = table.astype(np.float32), edges.tail, edges.head

    def count(start: int, stop: int) -> None:
        block = slice(start, stop)
        counts.append(int(count_violations(table, single, tail[block], head[block], factor[block], shift[block])))

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
    best: dict[int, tuple[float, int, int, bool]] = {}
    if are_few(mass, edges):
        start = 0
        for part in _parts_of(edges, mass.shape[1]):
            value, edge, report, is_descent = _steepest_few(mass, part)
            best[start] = value, start + edge, report, is_descent
            start += len(part.tail)
    else:
        _search_steepest(mass, edges, best)
    # In the order of the edges, so that ties give the same triple whatever the order of the threads.
    value, edge, report, is_descent = max((best[start] for start in sorted(best)), key=lambda entry: entry[0])
    return _log_ratio_at(edges, value, edge, report, is_descent, value)


def _search_steepest(mass: Masses, edges: Edges, best: dict[int, tuple[float, int, int, bool]]) -> None:
    """Enter the steepest edge of every block, by the number of its first edge."""
    from mechdesign.mechanism.certificate_kernels import steepest

    table = np.ascontiguousarray(mass)
    single = table.astype(np.float32)

    def search_block(start: int, stop: int) -> None:
        block = slice(start, stop)
        ends = edges.tail[block], edges.head[block]
        value, edge, report, is_descent = steepest(table, single, *ends, edges.length[block])
        best[start] = float(value), start + int(edge), int(report), bool(is_descent)

    in_blocks(search_block, len(edges.tail), _EDGES)


def largest_ratio(mass: Masses, tail: Indices, head: Indices) -> float:
    """The largest ratio of masses over pairs of rows and reports, both ways, in doubles."""
    if len(tail) * mass.shape[1] > _FEW_TRIPLES:
        from mechdesign.mechanism.certificate_kernels import largest_ratio as compiled

        return float(compiled(mass, read_only(tail), read_only(head)))
    high = low = 1.0
    step = max(1, _FEW_AT_ONCE // mass.shape[1])
    for start in range(0, len(tail), step):
        ratio = mass[tail[start : start + step]] / mass[head[start : start + step]]
        high, low = max(high, float(ratio.max())), min(low, float(ratio.min()))
    return max(high, 1 / low)


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
Count = Callable[[int], None]  # called with the number of edges done in a pass


def max_log_ratio_of_doubles(table: Matrix, edges: Edges, *, count: Count | None = None) -> MaxLogRatio:
    """The largest log-ratio over length of a table (n, m) over edges, and so over all pairs; O(e m), 17 ns a triple."""
    from mechdesign.mechanism.certificate_kernels import steepest_of_doubles

    best: dict[int, tuple[float, int, int, bool, float]] = {}

    def search_block(start: int, stop: int) -> None:
        block = slice(start, stop)
        value, edge, *rest = steepest_of_doubles(table, edges.tail[block], edges.head[block], edges.length[block])
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
        from mechdesign.mechanism.certificate_kernels import count_of_doubles

        factor, shift = edge_ratios(length, _BEYOND_DOUBLES)
        bad = np.zeros(len(length), np.int64)

        def count_block(start: int, stop: int) -> None:
            block = slice(start, stop)
            ends = edges.tail[block], edges.head[block]
            count_of_doubles(self._mantissa, self._exponent, *ends, factor[block], shift[block], bad[block])

        _pass_over(edges, count_block, count)
        return bad


def breaches(table: Matrix, edges: Edges, *, count: Count | None = None) -> int:
    """Number of (edge, direction, report) triples of a table (n, m) that break e^{length}: see `Doubles`."""
    return int(Doubles(table).breaches_by_edge(edges, count=count).sum())
