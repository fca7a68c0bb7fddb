r"""The transport program: move masses `supply` to `demand` at minimum cost. Its value is the Kantorovich distance.

    minimise    sum_ij plan(i, j) cost(i, j)                    maximise    sum_i u(i) supply(i) - sum_j v(j) demand(j)
    subject to  plan >= 0                                       subject to  u(i) - v(j) <= cost(i, j)
                sum_j plan(i, j) = supply(i)
                sum_i plan(i, j) = demand(j)

Source: Alvim et al. 2018, section II. Equation (3) is the program on the left with cost = d, equation (1) the one on
the right with u = v = f, a 1-Lipschitz function. They have one value (Kantorovich 1942).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Excess:
    """The masses to move from p to q."""

    difference: Vector  # p - q (n,)
    sources: Indices  # places (r,) with p > q
    targets: Indices  # places (c,) with q > p
    supply: Vector  # p - q at the sources
    demand: Vector  # q - p at the targets


def excess(difference: Vector) -> Excess:
    """The excess masses of p - q (n,), whose sum is 0 to rounding; demand is scaled to the sum of supply."""
    # Where d is a metric, the common mass of p and q may stay: for 1-Lipschitz f, sum f (p - q) depends on p - q alone,
    # and so does its largest value, the distance.
    sources, targets = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    supply, demand = difference[sources], -difference[targets]
    if len(sources) and len(targets):
        demand = demand * (supply.sum() / demand.sum())
    return Excess(difference=difference, sources=sources, targets=targets, supply=supply, demand=demand)
