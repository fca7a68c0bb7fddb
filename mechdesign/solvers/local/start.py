"""Multipliers and weights to start from: those of half the cells, interpolated, or those of the profile e^{-D}.

On a grid whose metric has a level eps, tau = lambda eps^p / prior and omega = w / (eps^k times the area of a cell) vary
slowly and hardly change with the size of the cells (p = 2, 1, 0 for the squared distance, the distance and 0/1; k the
number of axes). So a ladder of grids, each of half the cells of the next, ends a few passes from the multipliers of the
finest one. Elsewhere, and on the coarsest grid,

    lambda(u) = prior(u) sum_v l(u, v) e^{-D(u, v)} / sum_v e^{-D(u, v)},    w(y) = 1 / sum_u e^{-D(u, y)}.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.ndimage import distance_transform_edt, map_coordinates

from mechdesign.errors import MechdesignError
from mechdesign.setting.objective.losses import APART, LENGTH, SQUARE
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.factored.blocks import Workers, whole_pass
from mechdesign.solvers.local.passes import State
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, Vector, flat_block

FEWEST = 20  # cells on the shorter side of the coarsest grid
_POWERS = {SQUARE: 2, LENGTH: 1, APART: 0}
_PROFILE = 9.0  # nats
_SPREAD = 0.5
_FAINT = 1e-9  # of the largest


def flat_state(crew: Workers, places: Places) -> State:
    """The state of the profile e^{-D}, summed within 9 nats; priors are raised to `_SPREAD` of their mean under it, so
    that secrets without any have multipliers. Cost: a search of every ball.
    """
    ones = replace(places, prior=np.ones(places.size))
    asked = Asked.all(ones, places.prior, reach=_PROFILE, core=0.0)
    found = whole_pass(crew, flat_block, asked, places.size, BLOCK, over_rows=("cost", "dual", "mass"), name="flat")
    prior = np.maximum(places.prior, _SPREAD * found["dual"])
    return State(dual=prior * found["cost"], weight=1 / found["mass"], ratio=np.ones(places.size))


def halved(problem: DesignProblem) -> DesignProblem | None:
    """The problem on a grid of half the cells an axis, with the prior summed over what they replace; None off grids,
    where the metric has no level, and where that is too coarse or falls into parts.
    """
    domain, metric = problem.domain, problem.metric
    if domain.shape is None or domain.cell is None or domain.index is None or problem.loss.code is None:
        return None
    if metric.level_at(domain) is None or min(domain.shape) < 2 * FEWEST:
        return None
    shape = tuple(-(-size // 2) for size in domain.shape)
    cell = tuple(size * side / count for size, side, count in zip(domain.shape, domain.cell, shape, strict=True))
    home = tuple((domain.index * shape // np.array(domain.shape)).T)
    prior = np.zeros(shape)
    np.add.at(prior, home, problem.prior_array)
    mask = np.zeros(shape, bool)
    mask[home] = True
    try:
        coarse = Domain.grid(shape, cell=cell, unit=domain.unit, origin=domain.origin or 0.0, mask=mask)
        made = DesignProblem(domain=coarse, metric=metric, prior=prior[mask] / prior.sum(), loss=problem.loss)
        made.edges  # noqa: B018
    except MechdesignError:
        return None
    return made


def interpolated(state: State, coarse: DesignProblem, problem: DesignProblem) -> State:
    """The state of a `halved` problem carried to the problem."""
    scale, share = _scales(coarse)
    fine_scale, fine_share = _scales(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        dual = _carried(state.dual * scale / coarse.prior_array, coarse.domain, problem.domain)
    weight = _carried(state.weight / share, coarse.domain, problem.domain)
    ratio = np.ones(problem.domain.size)
    return State(dual=dual * problem.prior_array / fine_scale, weight=weight * fine_share, ratio=ratio)


def _scales(problem: DesignProblem) -> tuple[Vector, Vector]:
    """Eps^p, and eps^k times the area of a cell, at every place."""
    level, cell, code = problem.metric.level_at(problem.domain), problem.domain.cell, problem.loss.code
    assert level is not None and cell is not None and code is not None
    level = level * problem.metric.scale
    return level ** _POWERS[code], level ** len(cell) * math.prod(cell)


def _carried(values: Vector, coarse: Domain, domain: Domain) -> Vector:
    """Values at the cells of a coarse grid, interpolated in the logarithm; those that are not positive take the value
    of the nearest that is.
    """
    assert coarse.shape is not None and domain.shape is not None and domain.index is not None
    field = np.full(coarse.shape, np.nan)
    field[coarse.lookup >= 0] = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    missing = np.isnan(field)
    nearest = distance_transform_edt(missing, return_distances=False, return_indices=True)
    logarithm = np.log(np.maximum(field[tuple(nearest)], _FAINT * np.nanmax(field)))
    ratio = np.array(coarse.shape) / np.array(domain.shape)
    return np.asarray(
        np.exp(map_coordinates(logarithm, ((domain.index + 0.5) * ratio - 0.5).T, order=1, mode="nearest"))
    )
