"""A proved lower bound of the expected loss of every mechanism with a claim, for any number of places.

A ladder of grids, each of half the cells of the next: passes on every one (local_pricing.py), from the multipliers of
the one before; then, on the grid of the problem itself, the certificate. Reports are priced block by block, on threads
or the workers of a cluster: what comes out is the same to the bit on any number of them.

On grids of Philadelphia, with edges of 8 neighbours, the bound ends 0.05 to 0.1 % below the optimum. Where priors range
over orders of magnitude from place to place it ends some per cent below. So up to `WHOLE` places the multipliers are
those of the optimal program itself, solved as a table.

The certificate, from multipliers that are nearly admissible. Lowering a multiplier never hurts a report that holds, so
only violators are looked at again. Their values are those of pivots that end early, which may be worse where less is
asked: so the last pass is over all reports.

1. Multipliers above a cost outside a ball are lowered to it: that place can then be left out there.
2. An exact pass, rounded down (`value_block`), over all reports, then rounds over those with a negative value:
   where the minimising ray weighs most, lambda falls by what its ratio is below 1, and a little more every round; at
   last over all again, and what is negative then counts.

lower_bound = sum lambda + sum min(0, v), less a margin that covers the pivots of a repetition. It is proved by the
multipliers and the radii alone: `proved` repeats the exact pass.

The multipliers and weights to start from are those of half the cells, interpolated. On a grid whose metric has a level
eps, tau = lambda eps^p / prior and omega = w / (eps^k times the area of a cell) vary slowly and hardly change with the
size of the cells (p = 2, 1, 0 for the squared distance, the distance and 0/1; k the number of axes). So a ladder of
grids, each of half the cells of the next, ends a few passes from the multipliers of the finest one. Elsewhere, and on
the coarsest grid,

    lambda(u) = prior(u) sum_v l(u, v) e^{-D(u, v)} / sum_v e^{-D(u, v)},    w(y) = 1 / sum_u e^{-D(u, y)}.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from scipy.ndimage import distance_transform_edt, map_coordinates

from mechdesign.base.numbers import SMALLEST
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import MechdesignError
from mechdesign.factored.dataset import ProvedBound
from mechdesign.factored.local_pricing import (
    BLOCK,
    DualState,
    Places,
    PricingTask,
    Radii,
    Vector,
    ceiling,
    dual_step,
    flat_block,
    ratio_block,
    value_block,
)
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, Workers, all_blocks, merged_pass
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import APART, LENGTH, SQUARE
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Report, Targets, counter, silent

WHOLE = 700  # places up to which the optimal program is solved as a table
WORK = 200_000  # reports priced by the passes on one grid, about
FEWEST, MOST = 6, 60  # passes on a grid
_GAP = 2e-4  # relative, of the optimal program
_SMALL = 3_000  # places up to which wider balls cost nothing
_WIDE = Radii(reach=18.0, core=10.0, keep=11.0)
_STILL = 1e-6  # relative gain of `_LATE` passes that ends them
_LATE = 5
_SAMPLE = 500  # reports
_MOST_SCALE = 10.0
_CERTIFICATE = 4.0  # passes that a certificate costs, about
REACH, CORE = 15.0, 6.0  # nats: a little more than the passes have, so that what they settled holds
WIDEST = 64.0  # nats: the widest ball that a file may ask for
_ROUNDS = 30  # of violators
_SPARE = 1e-6  # by which a multiplier falls more than a ratio asks for, at first
_MORE = 1.3  # times that in every round
_LOST = 1e-7  # of the bound; what negative values may take of it
MARGIN = 1e-8  # of a bound
COARSEST = 20  # cells on the shorter side of the coarsest grid
_POWERS = {SQUARE: 2, LENGTH: 1, APART: 0}
_PROFILE = 9.0  # nats
_SPREAD = 0.5
_FAINT = 1e-9  # of the largest


def proved(executor: Workers, places: Places, proof: ProvedBound, on_done: OnDone = lambda done: None) -> float:
    """The lower bound that the multipliers of a proof give, its value aside. Cost: an exact pass."""
    return _exact(executor, PricingTask.all(places, proof.dual, reach=proof.reach, core=proof.core), on_done)[0]


def certify(
    executor: Workers,
    places: Places,
    dual: Vector,
    *,
    reach: float = REACH,
    core: float = CORE,
    on_done: OnDone = lambda _: None,
) -> ProvedBound:
    """A proved bound from multipliers (n,) >= 0. Cost: two passes, and as much as one over fewer and fewer reports."""
    task = PricingTask.all(places, dual, reach=reach, core=core)
    best = ProvedBound(value=-math.inf, dual=task.dual, reach=reach, core=core)
    every = task.reports
    for number in range(_ROUNDS):
        value, blocks = _exact(executor, task, on_done)
        whole, enough = task.reports is every, value >= (1 - _LOST) * float(task.dual.sum())
        if whole and value > best.value:
            best = replace(best, value=value, dual=task.dual)
        if whole and enough:
            break
        if enough or number == _ROUNDS - 2:
            reports = every
        else:
            reports = task.reports[np.concatenate([arrays["value"] for arrays in blocks]) < 0]
            task = replace(task, dual=_mended(task, blocks, _SPARE * _MORE**number))
        task = replace(task, reports=reports, start=np.ones(len(reports)))
    return replace(best, value=best.value * (1 - MARGIN))


def _mended(task: PricingTask, blocks: list[Arrays], spare: float) -> Vector:
    """Multipliers lowered by what exact blocks say of them, and by `spare` of themselves more."""
    fall = np.zeros(task.places.size)
    for arrays in blocks:
        np.maximum.at(fall, arrays["place"], np.minimum(1.0, arrays["share"] + spare))
    return np.asarray(np.minimum(task.dual * (1 - fall), ceiling(task.places, blocks)))


def _exact(executor: Workers, task: PricingTask, on_done: OnDone) -> tuple[float, list[Arrays]]:
    """The bound if all other reports hold, and the blocks of the pass."""
    blocked = BlockedWork(work=value_block, state=task, total=len(task.reports), block=BLOCK, name="prices")
    blocks = all_blocks(executor, blocked, on_done=on_done)
    return lower_bound(task.dual, np.concatenate([arrays["value"] for arrays in blocks])), blocks


def flat_state(executor: Workers, places: Places) -> DualState:
    """The state of the profile e^{-D}, summed within 9 nats; priors are raised to `_SPREAD` of their mean under it, so
    that secrets without any have multipliers. Cost: a search of every ball.
    """
    ones = replace(places, costs=places.costs._replace(prior=np.ones(places.size)))
    task = PricingTask.all(ones, places.costs.prior, reach=_PROFILE, core=0.0)
    blocked = BlockedWork(work=flat_block, state=task, total=places.size, block=BLOCK, name="flat")
    means = merged_pass(executor, blocked, ("cost", "dual", "mass"))
    prior = np.maximum(places.costs.prior, _SPREAD * means["dual"])
    return DualState(dual=prior * means["cost"], weight=1 / means["mass"], ratio=np.ones(places.size))


def halved(problem: DesignProblem) -> DesignProblem | None:
    """The problem on a grid of half the cells an axis, with the prior summed over what they replace; None off grids,
    where the metric has no level, and where that is too coarse or falls into parts.
    """
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


def interpolated(state: DualState, coarse: DesignProblem, problem: DesignProblem) -> DualState:
    """The state of a `halved` problem carried to the problem."""
    scale, share = _scales(coarse)
    fine_scale, fine_share = _scales(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        dual = _carried(state.dual * scale / coarse.prior_array, coarse.domain, problem.domain)
    weight = _carried(state.weight / share, coarse.domain, problem.domain)
    ratio = np.ones(problem.domain.size)
    return DualState(dual=dual * problem.prior_array / fine_scale, weight=weight * fine_share, ratio=ratio)


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


def local_bound(
    problem: DesignProblem, executor: Workers, *, deadline: float = math.inf, report: Report = silent
) -> ProvedBound | None:
    """A lower bound of the expected loss of every mechanism that is private for the metric of a problem whose reports
    are its secrets, with what proves it; None where the deadline, of time.monotonic(), leaves no time to certify one.

    Cost: CPU time of a minute on a grid of 100 x 100 cells, of a quarter of an hour on 200 x 200. Memory: 8 bytes for
    every place within 9 nats of a report.
    """
    if problem.domain.size <= WHOLE:
        return _of_the_table(problem, executor, deadline)
    report = in_time(report, deadline)
    try:
        state, slowest = settled(problem, executor, deadline=deadline, report=report)
        if time.monotonic() + _CERTIFICATE * slowest > deadline:
            return None
        places = Places.of(problem)
        return certify(executor, places, state.dual, on_done=counter(report, "bound, certificate", places.size))
    except OutOfTime:
        return None


def in_time(report: Report, deadline: float) -> Report:
    """A report on the blocks of a pass that raises OutOfTime after one that ends too late for another."""

    def until(stage: str, *, done: int, total: int) -> None:
        report(stage, done=done, total=total)
        if done < total and time.monotonic() > deadline:
            raise OutOfTime

    return until


def settled(
    problem: DesignProblem, executor: Workers, *, deadline: float = math.inf, report: Report = silent, last: int = MOST
) -> tuple[DualState, float]:
    """Multipliers and weights after the passes on a ladder of grids, at most `last` of them on the finest where a
    coarser one came before; and the seconds of the slowest pass there.
    """
    ladder = [problem]
    while (coarser := halved(ladder[-1])) is not None:
        ladder.append(coarser)
    state: DualState | None = None
    slowest, before = 0.0, problem
    for grid in reversed(ladder):
        places = Places.of(grid)
        slowest *= places.size / before.domain.size if state is not None else 1.0
        state = flat_state(executor, places) if state is None else interpolated(state, before, grid)
        state = _rescaled(executor, places, state)
        most = last if grid is problem and len(ladder) > 1 else MOST
        state, slowest = _settled(executor, places, state, deadline, report, most, slowest)
        before = grid
    assert state is not None
    return state, slowest


def _of_the_table(problem: DesignProblem, executor: Workers, deadline: float) -> ProvedBound | None:
    """The bound of the multipliers of the optimal program; where balls leave out what it needs, that of multipliers
    lowered for them, if it is better.
    """
    left = deadline - time.monotonic()
    if left <= 0 or problem.constant_loss == 0:
        return None
    design = solve_optimal(problem, Targets(gap=_GAP, time_limit=left))
    if not len(design.dual):
        return None
    places = Places.of(problem)
    whole = ProvedBound(value=0.0, dual=design.dual, reach=WIDEST, core=WIDEST)
    whole = replace(whole, value=proved(executor, places, whole) * (1 - MARGIN))
    if whole.value >= (1 - _GAP) * design.lower_bound:
        return whole
    lowered = certify(executor, places, np.maximum(design.dual, 0.0), reach=WIDEST, core=WIDEST)
    return max(whole, lowered, key=lambda bound: bound.value)


def _rescaled(executor: Workers, places: Places, state: DualState) -> DualState:
    """Multipliers times the mean ratio of a sample of reports, so that no pass is spent on their scale."""
    sample = np.arange(0, places.size, max(1, places.size // _SAMPLE))
    task = PricingTask.all(places, state.dual, reach=Radii().reach, core=Radii().core, reports=sample)
    blocked = BlockedWork(work=ratio_block, state=task, total=len(sample), block=BLOCK, name="sample")
    blocks = all_blocks(executor, blocked)
    ratio = np.concatenate([arrays["ratio"] for arrays in blocks])
    share = state.dual[sample] / max(float(state.dual[sample].sum()), SMALLEST)
    scale = float(share @ np.clip(np.nan_to_num(ratio, nan=1.0), 1 / _MOST_SCALE, _MOST_SCALE))
    return replace(state, dual=state.dual * scale) if scale > 0 else state


def _settled(
    executor: Workers, places: Places, state: DualState, deadline: float, report: Report, most: int, slowest: float
) -> tuple[DualState, float]:
    """The state after the passes on one grid, and the seconds of the slowest; at first those that one takes, about."""
    radii = _WIDE if places.size <= _SMALL else Radii()
    count = min(max(FEWEST, WORK // places.size), most)
    worth: list[float] = []
    expected, slowest = slowest, 0.0
    for number in range(count):
        started = time.monotonic()
        if started + (1 + _CERTIFICATE) * (slowest or expected) > deadline or not state.dual.any():
            break
        stage = f"bound, pass {number + 1} of {count}" + (f", about {worth[-1]:.6g}" if worth else "")
        state, value = dual_step(executor, places, state, radii, counter(report, stage, places.size))
        slowest = max(slowest, time.monotonic() - started)
        worth.append(value)
        if number >= _LATE and value - worth[-1 - _LATE] < _STILL * value:
            break
    return state, slowest or expected
