"""Factors: a mechanism as integer distances and weights instead of a table, and its exact certificate.

Statement. q is the shortest-path distance of whole edge lengths between places, capped at F (integer_metric.py).
Columns k carry integer weights W(k) >= 1 and generators, a few places v with whole offsets f_v >= 0:

    q_k(u) = min(F, min over the generators v of k of f_v + q(v, u)).

Let step = m 2^-48 nats, and E(0) = 2^58, E(t + 1) = ceil(E(t) / r) with a rational r <= e^step. The mechanism is

    P(k|u) = E(q_k(u)) W(k) / S(u),      S(u) = sum over k of E(q_k(u)) W(k).                                        (1)

Certificate. Let e = (u, v) be an edge of the claim, d_e nats long, that has j_e units in the integer metric, and let
ln R_e be at most d_e - j_e step. If

    S(v) <= R_e S(u)  and  S(u) <= R_e S(v)    for every e,                                                          (2)

then P is private for the shortest-path distance of the d_e, for all columns k and after any post-processing of k.
The proof is at `Factors.breaches`. Distances are not stored: they are the fixed point of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Indices, Integers, Unsigned, Unsigned32
from mechdesign.errors import InputError
from mechdesign.factored.columns import GENERATORS, Columns
from mechdesign.factored.integer_metric import Distances, IntegerMetric, Window, Windows, tile_order
from mechdesign.mechanism.certificate import exp_lower
from mechdesign.problem.lattice import Edges

STEP_BITS = 48  # a step is an integer number of 2^-48 nats
KERNEL_BITS = 58  # E(0) = 2^58
WEIGHT_BITS = 28  # weights lie in [1, 2^28]
_HALF = 29  # E is split into two halves of 29 bits, so that products with weights fit 64-bit sums
_SPARE_BITS = 28  # ln R_e is rounded down to a multiple of 2^-20 nats, so that few exponentials are needed
_AT_ONCE = 1 << 16  # edges whose numbers are Python's at a time
# Nats at which lengths are cut. No log-ratio of a mechanism here reaches this: |ln S(u) - ln S(v)| < 82, and j_e step <
# 41.
_LONGEST = 1 << 13
_REACH = int(KERNEL_BITS * 0.69 * 2**STEP_BITS)  # of step cap, under 2^54: as 0.69 < ln 2, 2^58 e^{-step cap} > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Factors:
    """The integers of a factored mechanism over k places with c columns."""

    # No product wraps. step cap < 58 * 0.69 * 2^48 < 2^54, and no edge is longer than the cap: step times units is
    # below 2^54 too. Lengths are cut at 2^13 nats, which is 2^61 in units of 2^-48. E(q_k(u)) W(k) is at most 2^86 and
    # there are fewer than 2^31 columns: S(u) is below 2^117, and is added in parts (`_row_sums`).
    # No compiled loop leaves its arrays. The schema of a file has every type, shape and place number checked
    # (mechanism/schema.py). `first` rises from 0 and stays below the number of generators. No distance exceeds the cap,
    # so that it is an index of `kernel`.
    metric: IntegerMetric
    step: int  # in 2^-48 nats
    weight: Unsigned32  # (c,) in [1, 2^28]
    inner: Indices  # (n,), the places that are the secrets
    columns: Columns | None = None  # None: the distance from every place in turn

    def __post_init__(self) -> None:
        if self.columns is not None and self.columns.offset.max() > self.metric.cap:
            shown = f"{self.columns.offset.max()}, cap {self.metric.cap}"
            raise InputError("must be at most the cap", field=GENERATORS["offset"], value=shown)
        if self.weight.shape != (self.size,):
            shown = f"{self.weight.dtype} {self.weight.shape}"
            raise InputError(f"must be uint32 ({self.size},), one for every column", field="weight", value=shown)
        if self.weight.min() < 1 or self.weight.max() > 1 << WEIGHT_BITS:
            shown = f"{self.weight.min()} to {self.weight.max()}"
            raise InputError("must lie in [1, 2^28]", field="weight", value=shown)
        longest = int(self.metric.units.max(initial=0))
        if longest > self.metric.cap:
            shown = f"{longest}, cap {self.metric.cap}"
            raise InputError("must be at most the cap: cut longer edges there", field="edge_units", value=shown)
        if not 0 < int(self.step) * int(self.metric.cap) < _REACH:
            shown = f"{self.nats_per_unit:.3g} nats, cap {self.metric.cap}"
            raise InputError("step times cap is too large for the kernel: lower it", field="step", value=shown)

    @property
    def size(self) -> int:
        return self.metric.size if self.columns is None else self.columns.size

    @property
    def nats_per_unit(self) -> float:
        return self.step * 2.0**-STEP_BITS

    @cached_property
    def kernel(self) -> Unsigned:
        """E (cap + 1,), positive integers that do not increase, E(t) <= e^step E(t + 1). Cost: 1 microsecond each."""
        # r = ratio / 2^shift <= e^step. Rounding the quotient up keeps E(t) <= r E(t + 1), which the proof needs.
        ratio, shift = exp_lower(self.nats_per_unit)
        values = [1 << KERNEL_BITS]
        for _ in range(self.metric.cap):
            values.append(-((-values[-1] << shift) // ratio))
        return np.array(values, np.uint64)

    @cached_property
    def halves(self) -> tuple[Unsigned32, Unsigned32]:
        return _halves(self.kernel)

    @cached_property
    def order(self) -> Integers:
        # The order of passes over all secrets: 128 in a row are neighbours, so their window is small.
        return tile_order(self.metric.points[self.inner])

    def distances(self, secrets: Integers) -> Distances:
        """q_k(u) (c, b) in units, for b secrets. Cost: a window around them, and a look at every generator."""
        return self.window_of(secrets, self.metric.windows()).dense(self.size, self.metric.cap)

    def window_of(self, secrets: Integers, room: Windows) -> Window:
        """Columns nearer than the cap to one of b secrets, and q_k(u) of them, in the room of `metric.windows()`."""
        window = room.window_of(self.inner[secrets])
        if self.columns is None:
            return window
        cap = self.metric.cap
        gathered = self.columns.gather(window.dense(self.metric.size, cap), cap)
        return Window(places=np.arange(self.size, dtype=np.int32), field=gathered)

    def row_sums(self, window: Window) -> list[int]:
        """S(u), exact, of the secrets of a window of columns. Cost: 1 ns for every column and secret of the window."""
        # (E(q) - E(F)) W inside the window, plus E(F) times the sum of all W: columns at the cap need no visit. The
        # parts are sums of high and low halves of E, each as 32-bit words.
        high, low = self._above
        parts = _row_sums(window.field, high, low, self.weight, window.places).tolist()
        return [((a << 32) + b << _HALF) + (c << 32) + d + self._floor for a, b, c, d in zip(*parts, strict=True)]

    @cached_property
    def _above(self) -> tuple[Unsigned32, Unsigned32]:
        return _halves(self.kernel - self.kernel[-1])

    @cached_property
    def _floor(self) -> int:
        return int(self.kernel[-1]) * int(self.weight.sum(dtype=np.uint64))

    def breaches(self, edges: Edges, row_sums: list[int]) -> int:
        """Number of (edge, direction) pairs of the claim that the certificate does not cover; 0 proves the claim."""
        # Proof of the certificate, for any places and offsets. |q_k(u) - q_k(v)| <= j_e for every k: triangle
        # inequality, and offsets, a minimum and a cap preserve it. E does not increase, and E(t) <= r E(t + 1), so
        # E(q_k(u)) <= r^{j_e} E(q_k(v)) <= e^{j_e step} E(q_k(v)). Hence P(k|u) / P(k|v) <= e^{j_e step} S(v) / S(u) <=
        # e^{j_e step} R_e <= e^{d_e}; multiply along a shortest path.
        # (2), by cross multiplication in Python's integers of any size. Few distinct values of R_e remain after
        # rounding down. An edge that the integer metric lacks breaks the claim in both directions.
        slack = self.slack(edges)
        distinct, place = np.unique(np.maximum(slack >> _SPARE_BITS, 0), return_inverse=True)
        factors = [exp_lower(float(c) * 2.0 ** (_SPARE_BITS - STEP_BITS)) for c in distinct.tolist()]
        bad = 2 * int((slack < 0).sum())
        for first in range(0, len(slack), _AT_ONCE):
            part = np.flatnonzero(slack[first : first + _AT_ONCE] >= 0) + first
            for u, v, e in zip(*(a[part].tolist() for a in (edges.tail, edges.head, place)), strict=True):
                (ratio, shift), a, b = factors[e], row_sums[u], row_sums[v]
                # R_e = ratio / 2^shift; a bound of 2^62 or more has a negative shift.
                denominator_bits, numerator = max(shift, 0), ratio << max(-shift, 0)
                bad += (a << denominator_bits > numerator * b) + (b << denominator_bits > numerator * a)
        return bad

    def slack(self, edges: Edges) -> Integers:
        """d_e - j_e step in 2^-48 nats (e,), rounded down, below 2^61; -1 where the integer metric has no such edge."""
        # A length scaled by 2^48 is exact in a double; floor rounds towards the smaller claim.
        length = np.floor(np.ldexp(np.minimum(edges.length, _LONGEST), STEP_BITS)).astype(np.int64)
        units = self.units_of(edges)
        return np.where(units < 0, np.int64(-1), length - self.step * units)

    def claim_utilisation(self, edges: Edges, row_sum: Floats, slack: float = 0.0) -> Floats:
        """(j_e step + |ln S(u) - ln S(v)| + slack) / d_e (e,) in floating point, of row sums (n,) up to a factor."""
        # In exact arithmetic its maximum bounds every log-ratio over length. In doubles, logarithms of sums below 2^117
        # make it wrong by less than 2^-44 nats / d_e. So it guides searches and is printed, but proves nothing. With a
        # slack of 2^-19 a maximum of at most 1 implies (2) for the same row sums, if the metric has every edge. For |ln
        # S(u) - ln S(v)| is then at most d_e - j_e step - 2^-19 + 2^-44. `breaches` rounds d_e - j_e step down by less
        # than 2^-48 and then 2^-20, and e to its power by a relative 2^-60: by less in all than 2^-19 - 2^-44.
        logarithm = np.log(row_sum)
        spent = np.abs(logarithm[edges.tail] - logarithm[edges.head])
        return np.asarray((self.nats_per_unit * self.units_of(edges) + spent + slack) / edges.length)

    def units_of(self, edges: Edges) -> Integers:
        known = _keys(self.metric.tail, self.metric.head, self.metric.size)
        wanted = _keys(self.inner[edges.tail], self.inner[edges.head], self.metric.size)
        order = np.argsort(known)
        edge = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
        return np.where(known[edge] == wanted, self.metric.units[edge].astype(np.int64), np.int64(-1))


def _halves(numbers: Unsigned) -> tuple[Unsigned32, Unsigned32]:
    mask = np.uint64((1 << _HALF) - 1)
    return (numbers >> np.uint64(_HALF)).astype(np.uint32), (numbers & mask).astype(np.uint32)


def _keys(tail: Integers, head: Integers, size: int) -> Integers:
    return np.minimum(tail, head) * size + np.maximum(tail, head)


@numba.njit(cache=True, nogil=True)
def _row_sums(distances, kernel_high, kernel_low, weight, columns):  # type: ignore[no-untyped-def]
    # A half of E is at most 2^29 and a weight at most 2^28: 64 products fit 64 bits. Their words of 32 bits are
    # then added for up to 2^31 columns without a carry out of 64 bits.
    size, sources = distances.shape
    total = np.zeros((4, sources), np.uint64)
    high, low = np.empty(sources, np.uint64), np.empty(sources, np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    for first in range(0, size, 64):  # 64 products under 2^57 fit 64 bits
        high[:], low[:] = 0, 0
        for p in range(first, min(size, first + 64)):
            w = np.uint64(weight[columns[p]])
            for b in range(sources):
                q = distances[p, b]
                high[b] += np.uint64(kernel_high[q]) * w
                low[b] += np.uint64(kernel_low[q]) * w
        for b in range(sources):
            total[0, b] += high[b] >> np.uint64(32)
            total[1, b] += high[b] & mask
            total[2, b] += low[b] >> np.uint64(32)
            total[3, b] += low[b] & mask
    return total
