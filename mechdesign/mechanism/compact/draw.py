r"""One report from a compact map: the same place from the same random bytes, whoever reads the map.

**The order of places.** Seen from a secret u, the places with q(u, p) < cap are put in order of (q(u, p), p): nearer
ones first, among equally near ones the lower number first. Call them p_1, p_2, ..., p_B; p_1 = u. Since no edge has
fewer than 1 unit, the places at distance t are all known once those below t are settled: a search in buckets of one
unit, each bucket sorted by number, or a heap of (q, p), meets them in this order and can stop after any of them.

**The intervals.** With E, W, S of formulas.py, T the sum of W over all places, and floor = E(cap):

    a_i = (E(q(u, p_i)) - floor) W(p_i),       L = a_1 + ... + a_B,        S(u) = L + floor T

The whole numbers 0 <= t < S(u) are dealt out: first a_1 of them to p_1, then a_2 to p_2, ..., a_B to p_B; then, from L
on, floor W(p) of them to every place p in the order of its number. So t belongs

    to p_i where a_1 + ... + a_(i-1) <= t < a_1 + ... + a_i;
    else, where t < S(u), to the first p with W(0) + ... + W(p) > (t - L) div floor.

**The draw.** Let n be the number of binary digits of Sbar(u), a whole number under 2^121.

    1. Take 16 random bytes, as a little-endian whole number z < 2^128; t = z div 2^(128 - n).
    2. If t >= Sbar(u), go to 1.
    3. Settle places in order, until the sum of their a_i exceeds t: the last one is drawn. Only where no place is left
       and t >= L: if t < S(u), the place is found in the second part; else go to 1.

The report is the cell of that place (formulas.py).
Statement. If S(u) <= Sbar(u), every place is drawn with probability E(q(u, p)) W(p) / S(u), exactly, from independent
uniform bytes; a round of 1 to 3 ends with probability S(u) / 2^n, and one that passed 2 with S(u) / Sbar(u).
Proof. t is uniform on the 2^n > Sbar(u) whole numbers below 2^n. Those below S(u) <= Sbar(u) pass 2, and are dealt out
as above, a_i + floor W(p_i) = E(q(u, p_i)) W(p_i) of them to a place of the ball, floor W(p) = E(q(u, p)) W(p) to any
other, since q(u, p) = cap there. All others lead back to 1, where new bytes are independent of old ones: the place,
given that a round ends, is uniform over the t < S(u).

S(u) itself has to be known only in the last line of 3, and there the whole ball is settled. How many places are settled
depends on how far the report lies from the secret: what takes so long tells of the distance, so that a device answers
at a fixed time.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import VerificationError
from mechdesign.mechanism.compact.formulas import STEPS, WEIGHTS, bounds
from mechdesign.mechanism.compact.map import CompactMap

ROUND_BYTES = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Ball:
    """What a secret draws from: places (B,) in their order, sums a_1, a_1 + a_2, ..., and S."""

    places: NDArray[np.int64]
    sums: list[int]
    total: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """Draws places of a map. Nothing is proved here. Memory: 20 bytes a place and 8 or 16 neighbours."""

    compact: CompactMap

    @cached_property
    def _units(self) -> NDArray[np.uint16]:
        """Units (k, s) of the edge from every place along every step, 0 where there is none."""
        compact = self.compact
        found = np.zeros((compact.inside.size, compact.stencil // 2), np.uint16)
        for number, edges in enumerate(compact.edges_along()):
            found[edges[0], number] = compact.units(edges)
        return found

    @cached_property
    def _longest(self) -> int:
        return int(self._units.max())

    @cached_property
    def _weights(self) -> NDArray[np.int64]:
        """W (k,) added up, place by place: under 2^52."""
        return np.cumsum(WEIGHTS[self.compact.weight.ravel()], dtype=np.int64)

    @cached_property
    def _kernel(self) -> list[int]:
        values: list[int] = self.compact.factors.kernel.tolist()
        return values

    def ball(self, secret: int) -> Ball:
        """The ball of a secret. Cost: 0.1 microseconds an edge in it, and as much again for the whole numbers."""
        compact, start = self.compact, int(self.compact.inner[secret])
        offsets = np.array([a * compact.shape[1] + b for a, b in STEPS[: compact.stencil // 2]], np.int64)
        places, distance = _search(start, self._units, offsets, compact.cap, self._longest)
        order = np.lexsort((places, distance))
        kernel, floor = self._kernel, self._kernel[compact.cap]
        weights = WEIGHTS[compact.weight.ravel()[places[order]]].tolist()
        masses = ((kernel[q] - floor) * w for q, w in zip(distance[order].tolist(), weights, strict=True))
        sums = list(itertools.accumulate(masses))
        return Ball(places=places[order], sums=sums, total=sums[-1] + floor * int(self._weights[-1]))

    def places(self, secret: int, size: int, bits: Callable[[int], bytes]) -> list[int]:
        """`size` places drawn for a secret; bits gives so many random bytes.

        Raises: VerificationError where S(u) exceeds its bound.
        """
        ball, potential = self.ball(secret), self.compact.potential.ravel()
        (bound,) = bounds(self.compact.bound, potential[self.compact.inner[[secret]]])
        if ball.total > bound:
            raise VerificationError(
                "a row sums to more than its bound", field="bound", remedy="use a map that `verify` certifies"
            )
        spare = 8 * ROUND_BYTES - bound.bit_length()
        found: list[int] = []
        while len(found) < size:
            drawn = int.from_bytes(bits(ROUND_BYTES), "little") >> spare
            if drawn < ball.total:
                found.append(self._place(ball, drawn))
        return found

    def _place(self, ball: Ball, drawn: int) -> int:
        """The place that a whole number below S belongs to."""
        if drawn < ball.sums[-1]:
            return int(ball.places[bisect_right(ball.sums, drawn)])
        rank = (drawn - ball.sums[-1]) // self._kernel[self.compact.cap]
        return int(np.searchsorted(self._weights, rank, side="right"))


@numba.njit(cache=True, nogil=True)
def _search(start, units, offsets, cap, longest):  # type: ignore[no-untyped-def]
    """Places with q < cap and their q, in no order: buckets of one unit, in a circle longer than every edge.

    units (k, s) uint16, at most `longest`, cap + longest < 2^16; offsets (s,): an edge from p leads to p + offset.
    """
    size, steps = units.shape
    distance = np.full(size, cap, np.uint16)
    head = np.full(longest + 1, -1, np.int32)
    after, place, length = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.uint16)
    found = np.empty(1024, np.int64)
    distance[start], head[0], after[0], place[0], length[0] = 0, 0, -1, start, 0
    used, free, waiting, count, at = 1, -1, 1, 0, 0
    while waiting > 0:
        bucket = at % len(head)
        while head[bucket] >= 0:
            entry = head[bucket]
            head[bucket] = after[entry]
            after[entry], free = free, entry
            waiting -= 1
            p, here = np.int64(place[entry]), np.int64(length[entry])
            if distance[p] != here:
                continue
            if count == len(found):
                wider = np.empty(2 * count, np.int64)
                wider[:count] = found
                found = wider
            found[count] = p
            count += 1
            for e in range(2 * steps):
                other = p + offsets[e // 2] if e % 2 == 0 else p - offsets[e // 2]
                if other < 0 or other >= size:
                    continue
                x = units[p, e // 2] if e % 2 == 0 else units[other, e // 2]
                reached = here + np.int64(x)
                if x == 0 or reached >= distance[other]:
                    continue
                distance[other] = reached
                if free >= 0:
                    entry_of, free = free, after[free]
                else:
                    entry_of = used
                    used += 1
                    if used > len(after):
                        more = np.empty(2 * len(after), np.int32)
                        more[: len(after)] = after
                        after = more
                        more = np.empty(2 * len(place), np.int32)
                        more[: len(place)] = place
                        place = more
                        lengths = np.empty(2 * len(length), np.uint16)
                        lengths[: len(length)] = length
                        length = lengths
                place[entry_of], length[entry_of] = other, reached
                after[entry_of] = head[reached % len(head)]
                head[reached % len(head)] = entry_of
                waiting += 1
        at += 1
    return found[:count], distance[found[:count]]
