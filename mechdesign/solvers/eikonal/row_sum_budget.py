"""Lengths of edges that leave room for the sums of rows, for every mechanism whose rows are divided.

Give every edge of the claim a length x_e <= d_e, take a kernel K private for the lengths x, and divide its rows by
their sums s. Then P(y|u) / P(y|v) <= e^{x_e + |ln s(u) - ln s(v)|} on edge e = (u, v): private as soon as

    x_e + |ln s(u) - ln s(v)| <= d_e     on every edge.                                                              (1)

The lengths pay for the division edge by edge; a global scaling would pay for the worst edge everywhere. They follow a
potential, x_e = max(0.3 d_e, d_e - |potential(u) - potential(v)|) (2). Shorter lengths change the sums a little, so the
potential moves part of the way to ln s until kappa, the largest ratio of log-ratio to claimed length, is 1.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.problem.lattice import Edges

_PREVIOUS_SHARE = 0.3  # share of the previous potential in the next one; a guess
_LEAST_LENGTH = 0.3  # share of d_e that an edge keeps; a guess


def used_slack(claim: Edges, potential: Vector) -> Vector:
    """|potential(u) - potential(v)| (c,) of every edge, in nats; the potential is ln s if row sums use it."""
    return np.abs(potential[claim.tail] - potential[claim.head])


def remaining_length(claim: Edges, potential: Vector, slack: float) -> Vector:
    """Lengths (c,) in nats, less the potential differences and a slack in nats."""
    # (2): without a smallest length an edge of 0 would make its ends equal.
    return np.maximum(claim.length - used_slack(claim, potential) - slack, _LEAST_LENGTH * claim.length)


def damp(potential: Vector, logarithm: Vector) -> Vector:
    """The next potential (n,), from the last one and ln s (n,)."""
    return _PREVIOUS_SHARE * potential + (1 - _PREVIOUS_SHARE) * logarithm


def find_fixed_point(
    potential: Vector, measure: Callable[[int, Vector], tuple[Vector, float]], *, rounds: int, good_kappa: float
) -> tuple[Vector, float]:
    """The potential (n,) of the least kappa, and this kappa: infinite if OutOfTime ends the first round."""
    # measure takes the number of the round and its potential, and returns ln s and kappa.
    best = potential, np.inf
    with suppress(OutOfTime):
        for number in range(rounds):
            logarithm, kappa = measure(number, potential)
            if kappa < best[1]:
                best = potential, kappa
            if kappa <= good_kappa:
                break
            potential = damp(potential, logarithm)
    return best
