r"""The loss of planar Laplace noise drawn at the true position and moved to the nearest report.

    loss = E l(x, y),    y the report nearest to x + r (cos a, sin a),    P(r <= R) = 1 - (1 + eps R) e^{-eps R}     (1)

The position x is uniform in a cell drawn from the prior, the angle a is uniform. In real arithmetic P(y|x) satisfies
the claim eps |x - x'| for any two positions of the plane, whatever the reports: moving a point to a report does not use
the position. The doubles that compute a point do not satisfy it, so this is a figure to compare with, not a mechanism.

By inversion, (1) is a mean over the unit cube of four dimensions: two for x, one for r, one for a. It is computed at
the points of a lattice rule, without random numbers.
Source: Andrés et al. 2013, section 4; lattice rules: Sloan and Joe 1994, Lattice Methods for Multiple Integration.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Floats, Points, Vector
from mechdesign.base.validation import check_epsilon
from mechdesign.evaluation.radial_laplace import radius_ppf
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance, Loss, SquaredDistance

# Korobov's rule: point i is (i, i a, i a^2, i a^3) / n modulo 1, shifted by half a step, n prime. Of 160 random a this
# one has the smallest worst-case error over smooth periodic functions.
_POINTS, _GENERATOR = 262_139, 114_880
NOISE_TOLERANCE = 1e-3  # relative; measured: below 0.04 %, against 12 random shifts of the rule


def snapped_noise_loss(domain: Domain, reports: Domain, prior: Vector, epsilon: float, loss: Loss) -> float | None:
    """The loss (1) in loss units, to 0.1 %; None for other places than cells on two axes, or another loss."""
    # domain: cells of true positions, with the prior (n,); epsilon: in nats per unit. Time: 0.2 s.
    if domain.cell is None or domain.dimension != 2 or type(loss) not in (Distance, SquaredDistance):
        return None
    u, v, radius, direction = _noise_of_one_nat()
    position = _positions(domain, prior, u, v)
    noisy = position + (radius / check_epsilon(epsilon))[:, None] * direction
    report = reports.points[cKDTree(reports.points).query(noisy)[1]]
    square = ((report - position) ** 2).sum(axis=1)
    return float(square.mean() if type(loss) is SquaredDistance else np.sqrt(square).mean())


@cache
def _noise_of_one_nat() -> tuple[Vector, Vector, Vector, Points]:
    """Shares u, v of positions, radii at one nat per unit, and directions (k, 2); not to be changed in place."""
    # 10 MB, kept because an area asks for this noise several times.
    cube = _lattice_rule()
    angle = 2 * np.pi * cube[3]
    return cube[0], cube[1], radius_ppf(cube[2], 1.0), np.column_stack([np.cos(angle), np.sin(angle)])


def _lattice_rule() -> Floats:
    """The points (4, k) of the rule."""
    steps = np.array([pow(_GENERATOR, power, _POINTS) for power in range(4)])
    return np.asarray((np.arange(_POINTS)[None, :] * steps[:, None] % _POINTS + 0.5) / _POINTS)


def _positions(domain: Domain, prior: Vector, u: Vector, v: Vector) -> Points:
    """Positions (k, 2) of shares u, v in [0, 1): u along the first axis, v along the second given the first."""
    assert domain.shape is not None and domain.index is not None and domain.cell is not None
    assert domain.origin is not None
    weights = np.zeros(domain.shape)
    weights[tuple(domain.index.T)] = prior
    along = weights.sum(axis=1)
    # Cells of weight 0 have equal ends: the search from the right passes them.
    first = np.concatenate([[0.0], np.cumsum(along) / along.sum()])
    row = np.minimum(np.searchsorted(first, u, side="right") - 1, np.flatnonzero(along)[-1])
    ends = np.concatenate([np.zeros((len(along), 1)), np.cumsum(weights, axis=1)], axis=1)
    ends /= np.where(along > 0, along, 1.0)[:, None]
    # One search for all rows: the ends of row i lie in [i, i + 1].
    flat = (ends + np.arange(len(along))[:, None]).ravel()
    place = np.searchsorted(flat, v + row, side="right") - 1
    place = np.minimum(place, (row + 1) * ends.shape[1] - 2)
    column = place - row * ends.shape[1]
    low, high = ends[row, column], ends[row, column + 1]
    shares = ((u - first[row]) / (first[row + 1] - first[row]), (v - low) / np.where(high > low, high - low, 1.0))
    index = np.column_stack([row + shares[0], column + np.clip(shares[1], 0.0, 1.0)])
    return np.asarray(domain.origin) + index * np.asarray(domain.cell)
