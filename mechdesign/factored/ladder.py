"""Multipliers of the row sums from a ladder of grids, each of half the cells of the next.

On a grid whose metric has a level eps, let tau = lambda eps^p / prior and omega = w / (eps^k times the area of a cell).
Here p = 2, 1, 0 for the squared distance, the distance and 0/1, and k is the number of axes. Both vary slowly and
hardly change with the size of the cells, so they are interpolated from half the cells. Other problems, and the coarsest
grid, start from

    lambda(u) = prior(u) sum_v l(u, v) e^{-D(u, v)} / sum_v e^{-D(u, v)},    w(y) = 1 / sum_u e^{-D(u, y)}.          (1)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import distance_transform_edt, map_coordinates

from mechdesign.base.arrays import Vector
from mechdesign.base.json_fields import SMALLEST
from mechdesign.errors import MechdesignError
from mechdesign.factored.ascent import DualState, dual_step
from mechdesign.factored.ball import Places
from mechdesign.factored.hosts import Hosts
from mechdesign.factored.pricing import BLOCK, PricingTask, Radii, flat_block, ratio_block
from mechdesign.factored.work_folder import BlockedWork, Workers, all_blocks, merged_pass
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import APART, LENGTH, SQUARE
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.result import Report, counter, silent

CERTIFICATE = 4.0  # passes that a certificate costs, about
COARSEST = 20  # cells on the shorter side of the coarsest grid
_POWERS = {SQUARE: 2, LENGTH: 1, APART: 0}  # p


@dataclass(frozen=True, kw_only=True)
class LadderConstants:
    """Constants of the ladder: guesses that change how many passes are needed, and no proof."""

    priced_reports: int = 200_000  # by the passes on one grid, about
    fewest: int = 6  # passes on a grid
    most: int = 60
    few_places: int = 3_000  # up to which wider balls cost nothing
    still: float = 1e-6  # relative gain of `late` passes that ends them
    late: int = 5
    still_below: float = 2e-4  # the same on coarser grids, if few passes follow on the finest
    sample: int = 500  # reports whose ratios give the scale of multipliers
    largest_scale: float = 10.0
    profile: float = 9.0  # nats to which (1) is summed
    least_prior: float = 0.5  # of the mean prior near a secret in (1), so that secrets without any have multipliers
    smallest: float = 1e-9  # of the largest of interpolated values


CONSTANTS = LadderConstants()
WIDE = Radii(reach=18.0, core=10.0, keep=11.0)  # up to `few_places`


def ladder_state(
    problem: DesignProblem,
    executor: Workers,
    *,
    deadline: float = math.inf,
    report: Report = silent,
    last: int = CONSTANTS.most,
) -> tuple[DualState, float]:
    """The state after passes on a ladder of grids, at most `last` on the finest, and seconds of its slowest pass."""
    ladder = [problem]
    while (coarser := coarser_problem(ladder[-1])) is not None:
        ladder.append(coarser)
    state: DualState | None = None
    slowest, before = 0.0, problem
    for grid in reversed(ladder):
        places = Places.of(grid)
        # Passes take time in proportion to their places.
        slowest *= places.size / before.domain.size if state is not None else 1.0
        state = flat_state(executor, places) if state is None else interpolate_state(state, before, grid, places.hosts)
        state = _rescale(executor, places, state)
        limit = last if grid is problem and len(ladder) > 1 else CONSTANTS.most
        still = CONSTANTS.still if grid is problem or last == CONSTANTS.most else CONSTANTS.still_below
        state, slowest = _pass_on_grid(executor, places, state, deadline, report, limit, slowest, still)
        before = grid
    assert state is not None
    return state, slowest


def flat_state(executor: Workers, places: Places) -> DualState:
    """The state (1). Cost: a search of every ball."""
    # With a prior of 1 the sums are those of the loss alone; the prior itself is summed in place of multipliers.
    ones = replace(places, costs=places.costs._replace(prior=np.ones(places.size)))
    task = PricingTask.all(ones, places.costs.prior, reach=CONSTANTS.profile, core=0.0)
    blocked = BlockedWork(work=flat_block, state=task, total=places.size, block=BLOCK, name="flat")
    means = merged_pass(executor, blocked, ("cost", "dual", "mass"))
    prior = np.maximum(places.costs.prior, CONSTANTS.least_prior * means["dual"])
    return DualState(dual=prior * means["cost"], weight=1 / means["mass"], ratio=np.ones(places.size))


def coarser_problem(problem: DesignProblem) -> DesignProblem | None:
    """The problem on a grid of half the cells an axis; None where that is not possible, too coarse or in parts."""
    domain, metric = problem.domain, problem.metric
    if domain.shape is None or domain.cell is None or domain.index is None or problem.loss.code is None:
        return None
    if metric.level_at(domain) is None or min(domain.shape) < 2 * COARSEST:
        return None
    shape = tuple(-(-size // 2) for size in domain.shape)
    cell = tuple(size * side / count for size, side, count in zip(domain.shape, domain.cell, shape, strict=True))
    home = tuple((domain.index * shape // np.array(domain.shape)).T)
    prior = np.zeros(shape)
    np.add.at(prior, home, problem.prior_array)
    mask = np.zeros(shape, bool)
    mask[home] = True
    try:
        grid = Domain.grid(shape, cell=cell, unit=domain.unit, origin=domain.origin or 0.0, mask=mask)
        coarse = DesignProblem(domain=grid, metric=metric, prior=prior[mask] / prior.sum(), loss=problem.loss)
        coarse.edges  # noqa: B018  refuses a grid that falls into parts
    except MechdesignError:
        return None
    return coarse


def interpolate_state(state: DualState, coarse: DesignProblem, problem: DesignProblem, hosts: Hosts) -> DualState:
    """The state of a `coarser_problem` problem carried to the problem."""
    dual_scale, weight_scale = _scales(coarse)
    fine_dual_scale, fine_weight_scale = _scales(problem)
    # tau and omega of the module docstring; cells without a prior get the value of their neighbours.
    with np.errstate(divide="ignore", invalid="ignore"):
        dual = _carry(state.dual * dual_scale / coarse.prior_array, coarse.domain, problem.domain)
    weight = _carry(state.weight / weight_scale, coarse.domain, problem.domain)
    ratio = np.ones(problem.domain.size)
    return DualState(
        dual=dual * hosts.spread(problem.prior_array) / fine_dual_scale, weight=weight * fine_weight_scale, ratio=ratio
    )


def _scales(problem: DesignProblem) -> tuple[Vector, Vector]:
    level, cell, code = problem.metric.level_at(problem.domain), problem.domain.cell, problem.loss.code
    assert level is not None and cell is not None and code is not None
    level = level * problem.metric.scale
    return level ** _POWERS[code], level ** len(cell) * math.prod(cell)


def _carry(values: Vector, coarse: Domain, domain: Domain) -> Vector:
    assert coarse.shape is not None and domain.shape is not None and domain.index is not None
    field = np.full(coarse.shape, np.nan)
    field[coarse.lookup >= 0] = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    # Cells outside the domain take the nearest value first, since interpolation needs a full rectangle; logarithms keep
    # values positive.
    missing = np.isnan(field)
    nearest = distance_transform_edt(missing, return_distances=False, return_indices=True)
    logarithm = np.log(np.maximum(field[tuple(nearest)], CONSTANTS.smallest * np.nanmax(field)))
    ratio = np.array(coarse.shape) / np.array(domain.shape)
    return np.asarray(
        np.exp(map_coordinates(logarithm, ((domain.index + 0.5) * ratio - 0.5).T, order=1, mode="nearest"))
    )


def _rescale(executor: Workers, places: Places, state: DualState) -> DualState:
    # The mean ratio of a sample of reports corrects the scale of the multipliers: passes would move it slowly.
    sample = np.arange(0, places.size, max(1, places.size // CONSTANTS.sample))
    radii = Radii().around(places)
    task = PricingTask.all(places, state.dual, reach=radii.reach, core=radii.core, reports=sample)
    blocked = BlockedWork(work=ratio_block, state=task, total=len(sample), block=BLOCK, name="sample")
    blocks = all_blocks(executor, blocked)
    ratio = np.concatenate([arrays["ratio"] for arrays in blocks])
    dual_share = state.dual[sample] / max(float(state.dual[sample].sum()), SMALLEST)
    scale = float(
        dual_share @ np.clip(np.nan_to_num(ratio, nan=1.0), 1 / CONSTANTS.largest_scale, CONSTANTS.largest_scale)
    )
    return replace(state, dual=state.dual * scale) if scale > 0 else state


def _pass_on_grid(
    executor: Workers,
    places: Places,
    state: DualState,
    deadline: float,
    report: Report,
    limit: int,
    slowest: float,
    still: float,
) -> tuple[DualState, float]:
    # `slowest` is the expected time of a pass on entry: a pass that would end too late is not begun.
    radii = (WIDE if places.size <= CONSTANTS.few_places else Radii()).around(places)
    count = min(max(CONSTANTS.fewest, CONSTANTS.priced_reports // places.size), limit)
    values: list[float] = []
    expected, slowest = slowest, 0.0
    for number in range(count):
        started = time.monotonic()
        if started + (1 + CERTIFICATE) * (slowest or expected) > deadline or not state.dual.any():
            break
        stage = f"bound, pass {number + 1} of {count}" + (f", about {values[-1]:.6g}" if values else "")
        state, value = dual_step(executor, places, state, radii, counter(report, stage, places.size))
        slowest = max(slowest, time.monotonic() - started)
        values.append(value)
        if number >= CONSTANTS.late and value - values[-1 - CONSTANTS.late] < still * value:
            break
    return state, slowest or expected
