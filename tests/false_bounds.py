"""Multipliers whose bound is rounding noise: what sums that are not rounded down take for a proof.

Where levels are next to nothing, slopes may be multiplied by anything at hardly any cost. Large numbers that cancel
leave their rounding, and among many of them some leave what was wanted.
"""

from __future__ import annotations

import numpy as np

from mechdesign import DesignProblem, Domain, Euclidean, priors
from mechdesign.losses import LOSSES
from mechdesign.positions import Positions
from mechdesign.positions.symmetry import position_orbits

LEVEL = 1e-25  # at all corners: equal rows alone are within it
AWAY = 1100  # reports at a corner of the area, so many that every mass is below 2^52 and equal rows are certified


def flat_program(side: int = 3, level: float = LEVEL) -> Positions:
    """Eps 1 and next to no level at the corners; a report at the centre, and many beside a corner."""
    domain = Domain.grid((side, side), cell=1.0, unit="cell")
    away = domain.points[0] - np.arange(AWAY)[:, None] * [[1e-4, 0.0]]
    reports = Domain(kind="points", points=np.vstack([domain.points.mean(axis=0), away]), unit="cell")
    metric, prior = Euclidean(epsilon=1.0, unit="cell"), priors.uniform(domain)
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=LOSSES["squared"], reports=reports)
    return Positions(problem, corner_level=np.full((domain.size, 4), level))


def noise(program: Positions, wanted: float, *, tries: int, seed: int) -> np.ndarray:
    """Multipliers (3 k r,) that a sum in doubles takes for as much of the bound `wanted` as any of so many did.

    The report that is best where all rows are equal is served by the best noise, all others by multipliers that hold.
    """
    group, cones = position_orbits(program)
    cost, random = program.cost[:, group.reports], np.random.default_rng(seed)
    best = int(cost.sum(axis=0).argmin())
    slopes = np.vstack([cones.slope_x.toarray(), cones.slope_y.toarray()]).T
    void = np.linalg.svd(slopes)[2][np.linalg.matrix_rank(slopes) :]
    found = np.linalg.pinv(slopes) @ (cost - wanted / len(cost))
    drawn = random.standard_normal((tries, len(void))) * 2.0 ** random.uniform(40, 56, (tries, 1))
    tried = found[:, best, None] + (drawn @ void).T
    slack = _stacked(tried)
    taken = cones.bound.T @ slack[0] + cones.slope_x.T @ slack[1] + cones.slope_y.T @ slack[2]
    reached = np.minimum(cost[:, best, None] - taken, wanted / len(cost)).sum(axis=0)
    found[:, best] = tried[:, reached.argmax()]
    return _stacked(found).ravel()


def in_doubles(program: Positions, multipliers: np.ndarray) -> float:
    """The bound that sums which nothing was taken off seem to prove."""
    group, cones = position_orbits(program)
    slack = multipliers.reshape(3, cones.size, -1)
    first = np.maximum(slack[0], np.hypot(slack[1], slack[2]))
    taken = cones.bound.T @ first + cones.slope_x.T @ slack[1] + cones.slope_y.T @ slack[2]
    least = (program.cost[:, group.reports] - taken).min(axis=1)
    return float(np.min([least[way] for way in group.ways], axis=0).sum())


def _stacked(slopes: np.ndarray) -> np.ndarray:
    """Vectors (3, k, r) from their last two parts one below the other (2 k, r)."""
    first, second = np.split(slopes, 2)
    return np.stack([np.hypot(first, second), first, second])
