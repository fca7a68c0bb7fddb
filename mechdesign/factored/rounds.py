"""One round of the factored eikonal design: a pass over all rows, then the update of weights and edge lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Indices, Integers, Singles, Unsigned32, Vector
from mechdesign.factored.certificate import STEP_BITS, WEIGHT_BITS
from mechdesign.factored.integer_metric import BLOCK, LARGEST, IntegerMetric
from mechdesign.factored.options import SETTLING
from mechdesign.factored.work_folder import Arrays
from mechdesign.problem.lattice import Edges
from mechdesign.solvers.eikonal.padding import PaddedProblem
from mechdesign.solvers.eikonal.row_sum_budget import damp

# Nats of an edge left free: twice the unit to which the certificate rounds ln R_e down. `claim_utilisation` has the
# proof that this is enough.
SLACK = 2.0**-19
_CHUNK = 64  # places whose masses are summed in single precision; a constant of the kernel


@dataclass(frozen=True, kw_only=True)
class RoundConstants:
    """Constants of the rounds; nothing that is proved depends on them."""

    # Ranges, in nats: at a range of r, reports beyond it have e^-r of the mass of the cell itself. At 28 a million of
    # them, up to 1000 cells away, may add about a percent to a squared distance, so that factored maps take 32.
    usual_range: float = 28.0
    widest_range: float = 32.0  # for maps of any size
    moving_range: float = 10.0  # in rounds that move weights: an error of 5e-4 of a row sum
    settled_range: float = 20.0  # in rounds that move the potential alone: 1e-6 of a row sum
    # Nats: with a shorter edge every round is exact, with the settled range. Errors of half a percent of an edge make
    # weights drift: on 300 x 300 cells of Philadelphia kappa is 1.0085 after 24 rounds, 1.04 after 96.
    short_edge: float = 0.15
    relaxation: float = 1.5  # power of the update of (1), a guess between 1 (plain) and 2 (may diverge)


ROUND_CONSTANTS = RoundConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class EikonalState:
    """The state before a round."""

    number: int  # of the round
    weight: Vector  # (k,) > 0, of the places
    potential: Vector  # (n,), of the secrets, in nats


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """How nats become whole units: step in 2^-48 nats, cap in units, reach, the nats that the cap stands for."""

    step: int
    cap: int
    reach: float

    # `step` is the finest for which cap + longest edge stays below 65,535, so that 16 bits hold every distance.

    @classmethod
    def for_lengths(cls, length: Floats, reach: float = ROUND_CONSTANTS.usual_range) -> Units:
        longest = min(reach, float(length.max()))
        step = int(np.ceil(np.ldexp(reach + longest, STEP_BITS) / (LARGEST - 1)))
        return cls(step=step, cap=int(np.ldexp(reach, STEP_BITS)) // step, reach=reach)

    def within(self, reach: float) -> Units:
        return Units(step=self.step, cap=int(np.ldexp(reach, STEP_BITS)) // self.step, reach=reach)

    @property
    def nats(self) -> float:
        return float(np.ldexp(self.step, -STEP_BITS))

    def quantise(self, length: Floats) -> Integers:
        units = np.floor(np.ldexp(np.minimum(length, self.reach), STEP_BITS)).astype(np.int64) // self.step
        return np.minimum(units, self.cap)

    def metric(self, points: Floats, edges: Edges, units: Integers) -> IntegerMetric:
        whole = units.astype(np.uint16)
        return IntegerMetric(points=points, tail=edges.tail, head=edges.head, units=whole, cap=self.cap)


def quantised_weights(weight: Floats) -> Unsigned32:
    """Weights (c,) > 0 as integers of which the largest is 2^28, and the least 1."""
    return np.maximum(np.rint(weight / weight.max() * (1 << WEIGHT_BITS)), 1).astype(np.uint32)


def claimed_edges(frame: PaddedProblem) -> tuple[Edges, Integers]:
    """The framed edges that join secrets, as edges of secrets, and their places (c,) in the framed order."""
    secret = np.full(frame.size, -1, np.int64)
    secret[frame.inner] = np.arange(len(frame.inner))
    tail, head = secret[frame.edges.tail], secret[frame.edges.head]
    between = np.flatnonzero((tail >= 0) & (head >= 0))
    return Edges(tail=tail[between], head=head[between], length=frame.edges.length[between]), between


@dataclass(frozen=True, kw_only=True, eq=False)
class PassData:
    """Shared by all blocks of a pass."""

    metric: IntegerMetric
    inner: Integers
    order: Indices  # (n,), of the secrets in tiles
    kernel: Singles  # (cap + 1,), 0 at the cap
    weight: Singles  # (k,)
    exact: bool  # as for `Windows.window_of`


def pass_block(shared: PassData, start: int, stop: int) -> Arrays:
    """Row sums of the secrets start..stop in the order of tiles, and their share of rise and column sum."""
    secrets, room = shared.order[start:stop], shared.metric.windows()
    total = np.zeros(len(secrets))
    rise, mass = np.zeros(shared.metric.size), np.zeros(shared.metric.size)
    for first in range(0, len(secrets), BLOCK):
        part = slice(first, min(first + BLOCK, len(secrets)))
        window = room.window_of(shared.inner[secrets[part]], exact=shared.exact)
        # (1): s of these rows first, since rise needs 1 / s; the window is used twice and searched once.
        _add_rows(window.field, window.places, shared.kernel, shared.weight, total[part])
        inverse = (1 / total[part]).astype(np.float32)
        _add_columns(window.field, window.places, shared.kernel, inverse, rise, mass)
    column = np.flatnonzero(mass)
    size = np.array([shared.metric.size])
    return {
        "secret": secrets, "row_sum": total, "column": column, "rise": rise[column], "mass": mass[column], "size": size
    }  # fmt: skip


def leaves_weights(state: EikonalState, rounds: int) -> bool:
    """True if a round moves the potential alone."""
    return state.number >= rounds - SETTLING


# Every edge of the claim has a length x_e <= d_e (solvers/eikonal/row_sum_budget.py) in the kernel K(u, y) = e^{-D(u,
# y)}, and the rows are divided by their sums s = K w. D is symmetric, so the distances from each secret give at once
#
#     s(u) = sum_y K(u, y) w(y)       rise(y) = sum_u K(u, y) / s(u)       mass(y) = sum_u K(u, y)                   (1)
#
# and the over-relaxed expectation-maximisation update w <- w (rise / mass)^1.5, with ln s as the next potential. Every
# round moves weights and lengths together, but for the last ones, which move the potential alone, part of the way.
# Rounds use a smaller range than the certificate, at the same step. Those that move weights sweep distances once.
def next_round(state: EikonalState, logarithm: Floats, update: Floats, *, rounds: int) -> EikonalState:
    """The state of the next round; logarithm (n,) = ln s, update (k,) = rise / mass."""
    if leaves_weights(state, rounds):
        weight, potential = state.weight, damp(state.potential, logarithm)
    else:
        weight, potential = state.weight * update**ROUND_CONSTANTS.relaxation, logarithm
    return EikonalState(number=state.number + 1, weight=weight / weight.max(), potential=potential)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_rows(distances, places, kernel, weight, total):  # type: ignore[no-untyped-def]
    # Single precision doubles the speed; chunks of 64 keep its error near 64 x 2^-24, since chunks add up in doubles.
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
    for p in range(places.size):
        scaled, plain = np.float32(0), np.float32(0)
        for b in range(inverse.size):
            value = kernel[distances[p, b]]
            scaled += value * inverse[b]
            plain += value
        rise[places[p]] += scaled
        mass[places[p]] += plain
