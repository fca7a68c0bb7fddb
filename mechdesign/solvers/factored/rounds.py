"""One round of the factored eikonal design: a pass over all rows, then the update of weights and edge lengths.

Every edge of the claim has a length x_e <= d_e in the kernel K(u, y) = e^{-D(u, y)}, the rows are divided by their sums
s = K w, and the mechanism is private where x_e + |ln s(u) - ln s(v)| <= d_e (edge_budget.py). A row needs the distances
from its own secret only, because D is symmetric, so a pass gives at once

    s(u) = sum_y K(u, y) w(y)       rise(y) = sum_u K(u, y) / s(u)       mass(y) = sum_u K(u, y)

and the expectation-maximisation update w <- w (rise / mass)^1.5, over-relaxed. The lengths are those of a potential,
x_e = max(0.3 d_e, d_e - |potential(u) - potential(v)|), with ln s for the next potential: every round moves weights and
lengths together. The last rounds leave the weights alone and move the potential by part of the way, which settles it.

Rounds tell apart fewer nats than the certificate, at the same step. Those that settle stop at 20: beyond 16 lies up to
1e-4 of the sum of a place far from a city, beyond 20 some 1e-6. Those that move weights sweep outwards once, so that a
few sums are off by 1e-4 or so (windows.py), and stop at 10 nats, 5e-4 of a sum: both less than they move. Where the
shortest edge is below 0.15 nats these are half a percent of it, and weights drift instead of settling (kappa of 300 x
300 cells of Philadelphia: 1.0085 after 24 rounds, 1.04 after 96): all rounds are like the last ones there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.certificate import STEP_BITS
from mechdesign.setting.metric.integer_metric import LARGEST, IntegerMetric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.metric.windows import BLOCK
from mechdesign.solvers.eikonal.frame import Framed
from mechdesign.solvers.factored.blocks import Arrays

RANGE = 28.0  # nats that distances tell apart: e^-28 of the mass of the own cell, in reports farther away
FARTHEST = 32.0  # the same on maps of any size: on 1000 x 1000 cells, e^-28 would cost 0.9 % of a squared distance
MOVING, SETTLED = 10.0, 20.0  # the same in rounds that move weights, and in those that settle the potential
SHORT = 0.15  # nats of the shortest edge, below which all rounds are as exact as those that settle
SETTLING = 4  # last rounds, with fixed weights
SLACK = 2.0**-19  # nats that an edge keeps free for the rounding of its certificate
_RELAXED = 1.5  # power of the update of the weights
_KEPT = 0.3  # share of the previous potential in the next one while settling
_LEAST = 0.3  # share of d_e that an edge keeps
_CHUNK = 64  # places whose masses are summed in single precision


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """weight (k,) > 0 of the places and potential (n,) of the secrets, in nats, before round `number`."""

    number: int
    weight: NDArray[np.float64]
    potential: NDArray[np.float64]

    def as_arrays(self) -> Arrays:
        """The fields by name."""
        return {"number": np.array([self.number]), "weight": self.weight, "potential": self.potential}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> State:
        """The state of `as_arrays`."""
        return cls(number=int(arrays["number"][0]), weight=arrays["weight"], potential=arrays["potential"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """How nats become whole units: step in 2^-48 nats, cap in units, reach, the nats that the cap stands for."""

    step: int
    cap: int
    reach: float

    @classmethod
    def for_lengths(cls, length: NDArray[np.float64], reach: float = RANGE) -> Units:
        """The smallest step with which the reach and the longest edge (itself cut at the reach) fit 16 bits."""
        longest = min(reach, float(length.max()))
        step = int(np.ceil(np.ldexp(reach + longest, STEP_BITS) / (LARGEST - 1)))
        return cls(step=step, cap=int(np.ldexp(reach, STEP_BITS)) // step, reach=reach)

    def within(self, reach: float) -> Units:
        """The same units, with a cap of fewer nats."""
        return Units(step=self.step, cap=int(np.ldexp(reach, STEP_BITS)) // self.step, reach=reach)

    def whole(self, length: NDArray[np.float64]) -> NDArray[np.int64]:
        """Lengths (e,) in nats as whole units, rounded down, cut at the cap."""
        units = np.floor(np.ldexp(np.minimum(length, self.reach), STEP_BITS)).astype(np.int64) // self.step
        return np.minimum(units, self.cap)

    def metric(self, frame: Framed, length: NDArray[np.float64]) -> IntegerMetric:
        """The integer metric of lengths (e,) in nats, rounded down."""
        return IntegerMetric(
            points=frame.domain.points,
            tail=frame.edges.tail,
            head=frame.edges.head,
            units=self.whole(length).astype(np.uint16),
            cap=self.cap,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """The edges of the claim: as secrets (tail, head), their lengths d_e, and their places in the framed edge list."""

    edges: Edges
    own: NDArray[np.int64]

    @classmethod
    def of(cls, frame: Framed, edges: Edges) -> Claim:
        """Which framed edges join secrets; they are the edges of the problem, in the framed order."""
        secret = np.full(frame.size, -1, np.int64)
        secret[frame.inner] = np.arange(len(frame.inner))
        tail, head = secret[frame.edges.tail], secret[frame.edges.head]
        own = np.flatnonzero((tail >= 0) & (head >= 0))
        return cls(edges=Edges(tail=tail[own], head=head[own], length=frame.edges.length[own]), own=own)

    @classmethod
    def whole(cls, edges: Edges) -> Claim:
        """The claim where places are the secrets, so that its edges are those of the metric."""
        return cls(edges=edges, own=np.arange(len(edges.length)))

    def spent(self, row_sum: NDArray[np.float64]) -> NDArray[np.float64]:
        """|ln s(u) - ln s(v)| (c,) of every edge, in nats."""
        logarithm = np.log(row_sum)
        return np.abs(logarithm[self.edges.tail] - logarithm[self.edges.head])

    def lengths(self, frame: Framed, potential: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lengths (e,) of the framed graph in nats: those of the claim less what the potential (n,) spends of them."""
        full, length = self.edges.length, frame.edges.length.copy()
        spent = np.abs(potential[self.edges.tail] - potential[self.edges.head])
        length[self.own] = np.maximum(full - spent - SLACK, _LEAST * full)
        return length

    def of_edges(self, chosen: NDArray[np.int64]) -> Claim:
        """The claim of some of the edges alone."""
        edges = self.edges
        some = Edges(tail=edges.tail[chosen], head=edges.head[chosen], length=edges.length[chosen])
        return Claim(edges=some, own=self.own[chosen])

    def strain(self, used: NDArray[np.float64], spent: NDArray[np.float64]) -> NDArray[np.float64]:
        """(used + spent + slack) / d_e (c,), of lengths used in the metric: where all are at most 1 the integers will
        certify. The largest is kappa.
        """
        return np.asarray((used + spent + SLACK) / self.edges.length)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared:
    """What every block of a pass works with: metric, inner; order (n,), of the secrets in tiles; kernel (cap + 1,),
    0 at the cap, and weight (k,) in single precision; exact, as `Windows.around` has it.
    """

    metric: IntegerMetric
    inner: NDArray[np.int64]
    order: NDArray[np.int64]
    kernel: NDArray[np.float32]
    weight: NDArray[np.float32]
    exact: bool


def shared_state(
    frame: Framed,
    units: Units,
    state: State,
    length: NDArray[np.float64],
    order: NDArray[np.int64],
    *,
    exact: bool,
) -> Shared:
    """The shared state of a pass over the secrets in this order (n,), with lengths (e,) in nats."""
    nats = np.ldexp(units.step, -STEP_BITS) * np.arange(units.cap + 1)
    return Shared(
        metric=units.metric(frame, length),
        inner=frame.inner,
        order=order,
        kernel=(np.exp(-nats) - np.exp(-nats[-1])).astype(np.float32),
        weight=(state.weight / state.weight.max()).astype(np.float32),
        exact=exact,
    )


def pass_block(shared: Shared, start: int, stop: int) -> Arrays:
    """The rows start..stop in the order of tiles, for weights scaled to maximum 1: secret (b,) with its row_sum (b,);
    column (w,), with their share of rise and column sum (w,), of `size` places.
    """
    secrets, room = shared.order[start:stop], shared.metric.windows()
    total = np.zeros(len(secrets))
    rise, mass = np.zeros(shared.metric.size), np.zeros(shared.metric.size)
    for first in range(0, len(secrets), BLOCK):
        own = slice(first, min(first + BLOCK, len(secrets)))
        window = room.around(shared.inner[secrets[own]], exact=shared.exact)
        _add_rows(window.field, window.places, shared.kernel, shared.weight, total[own])
        inverse = (1 / total[own]).astype(np.float32)
        _add_columns(window.field, window.places, shared.kernel, inverse, rise, mass)
    column = np.flatnonzero(mass)
    size = np.array([shared.metric.size])
    return {
        "secret": secrets, "row_sum": total, "column": column, "rise": rise[column], "mass": mass[column], "size": size
    }  # fmt: skip


def settles(state: State, rounds: int) -> bool:
    """Whether a round leaves the weights alone."""
    return state.number >= rounds - SETTLING


def advance(state: State, logarithm: NDArray[np.float64], update: NDArray[np.float64], *, rounds: int) -> State:
    """The state of the next round; logarithm (n,) = ln s, update (k,) = rise / mass."""
    kept, weight = (0.0, state.weight * update**_RELAXED)
    if settles(state, rounds):
        kept, weight = _KEPT, state.weight
    potential = kept * state.potential + (1 - kept) * logarithm
    return State(number=state.number + 1, weight=weight / weight.max(), potential=potential)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_rows(distances, places, kernel, weight, total):  # type: ignore[no-untyped-def]
    """Add the sum over places of weight * kernel to `total`, per source."""
    size, sources = distances.shape
    part = np.empty(sources, np.float32)
    for first in range(0, size, _CHUNK):
        part[:] = 0
        for p in range(first, min(size, first + _CHUNK)):
            w = weight[places[p]]
            for b in range(sources):
                part[b] += w * kernel[distances[p, b]]
        for b in range(sources):
            total[b] += part[b]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_columns(distances, places, kernel, inverse, rise, mass):  # type: ignore[no-untyped-def]
    """Add the sums over sources of kernel / row sum and of kernel, per place."""
    for p in range(places.size):
        scaled, plain = np.float32(0), np.float32(0)
        for b in range(inverse.size):
            own = kernel[distances[p, b]]
            scaled += own * inverse[b]
            plain += own
        rise[places[p]] += scaled
        mass[places[p]] += plain
