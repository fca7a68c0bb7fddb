"""One round of the factored eikonal design: a pass over all rows, then the update of weights and edge lengths.

Every edge of the claim has a length x_e <= d_e in the kernel K(u, y) = e^{-D(u, y)}, the rows are divided by their sums
s = K w, and the mechanism is private where x_e + |ln s(u) - ln s(v)| <= d_e (edge_budget.py). A row needs the distances
from its own secret only, because D is symmetric, so a pass gives at once

    s(u) = sum_y K(u, y) w(y)       rise(y) = sum_u K(u, y) / s(u)       mass(y) = sum_u K(u, y)

and the expectation-maximisation update w <- w (rise / mass)^1.5, over-relaxed: every round moves weights and lengths
together. The last rounds leave the weights alone and move the lengths by part of the way, which settles them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.certificate import STEP_BITS
from mechdesign.setting.metric.integer_metric import LARGEST, IntegerMetric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.metric.windows import BLOCK, tiled
from mechdesign.solvers.eikonal.frame import Framed
from mechdesign.solvers.factored.blocks import Arrays

RANGE = (
    28.0  # nats that distances tell apart: e^-28 of the mass of the own cell, in reports farther away, costs nothing
)
SETTLING = 4  # last rounds, with fixed weights
SLACK = 2.0**-19  # nats that an edge keeps free for the rounding of its certificate
_RELAXED = 1.5  # power of the update of the weights
_KEPT = 0.3  # share of the previous length in the next one while settling
_LEAST = 0.3  # share of d_e that an edge keeps
_CHUNK = 64  # places whose masses are summed in single precision


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """weight (k,) > 0 and length (e,) in nats of the edges of the framed graph, before round `number`."""

    number: int
    weight: NDArray[np.float64]
    length: NDArray[np.float64]

    def as_arrays(self) -> Arrays:
        """The fields by name."""
        return {"number": np.array([self.number]), "weight": self.weight, "length": self.length}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> State:
        """The state of `as_arrays`."""
        return cls(number=int(arrays["number"][0]), weight=arrays["weight"], length=arrays["length"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """How nats become whole units: step in 2^-48 nats, cap in units."""

    step: int
    cap: int

    @classmethod
    def for_lengths(cls, length: NDArray[np.float64]) -> Units:
        """The smallest step with which the range and the longest edge (itself cut at the range) fit 16 bits."""
        longest = min(RANGE, float(length.max()))
        step = int(np.ceil(np.ldexp(RANGE + longest, STEP_BITS) / (LARGEST - 1)))
        return cls(step=step, cap=int(np.ldexp(RANGE, STEP_BITS)) // step)

    def metric(self, frame: Framed, length: NDArray[np.float64]) -> IntegerMetric:
        """The integer metric of lengths (e,) in nats, rounded down."""
        whole = np.floor(np.ldexp(np.minimum(length, RANGE), STEP_BITS)).astype(np.int64) // self.step
        return IntegerMetric(
            points=frame.domain.points,
            tail=frame.edges.tail,
            head=frame.edges.head,
            units=np.minimum(whole, self.cap).astype(np.uint16),
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

    def spent(self, row_sum: NDArray[np.float64]) -> NDArray[np.float64]:
        """|ln s(u) - ln s(v)| (c,) of every edge, in nats."""
        logarithm = np.log(row_sum)
        return np.abs(logarithm[self.edges.tail] - logarithm[self.edges.head])

    def kappa(self, used: NDArray[np.float64], spent: NDArray[np.float64]) -> float:
        """Largest (used + spent + slack) / d_e: at most 1 where the integers will certify."""
        return float(((used + spent + SLACK) / self.edges.length).max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared:
    """What every block of a pass works with: metric, inner; order (n,), of the secrets in tiles; kernel (cap + 1,),
    0 at the cap, and weight (k,) in single precision.
    """

    metric: IntegerMetric
    inner: NDArray[np.int64]
    order: NDArray[np.int64]
    kernel: NDArray[np.float32]
    weight: NDArray[np.float32]


def shared_state(frame: Framed, units: Units, state: State) -> Shared:
    """The shared state of a pass."""
    nats = np.ldexp(units.step, -STEP_BITS) * np.arange(units.cap + 1)
    return Shared(
        metric=units.metric(frame, state.length),
        inner=frame.inner,
        order=tiled(frame.domain.points[frame.inner]),
        kernel=(np.exp(-nats) - np.exp(-nats[-1])).astype(np.float32),
        weight=(state.weight / state.weight.max()).astype(np.float32),
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
        window = room.around(shared.inner[secrets[own]])
        _add_rows(window.field, window.places, shared.kernel, shared.weight, total[own])
        inverse = (1 / total[own]).astype(np.float32)
        _add_columns(window.field, window.places, shared.kernel, inverse, rise, mass)
    column = np.flatnonzero(mass)
    size = np.array([shared.metric.size])
    return {
        "secret": secrets, "row_sum": total, "column": column, "rise": rise[column], "mass": mass[column], "size": size
    }  # fmt: skip


def advance(
    state: State, claim: Claim, spent: NDArray[np.float64], update: NDArray[np.float64], *, rounds: int
) -> State:
    """The state of the next round; update (k,) = rise / mass."""
    kept, weight = (
        (_KEPT, state.weight) if state.number >= rounds - SETTLING else (0.0, state.weight * update**_RELAXED)
    )
    full, length = claim.edges.length, state.length.copy()
    wanted = np.maximum(full - spent - SLACK, _LEAST * full)
    length[claim.own] = kept * length[claim.own] + (1 - kept) * wanted
    return replace(state, number=state.number + 1, weight=weight / weight.max(), length=length)


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
