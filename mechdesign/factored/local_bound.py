"""A proved lower bound of the expected loss of every mechanism with a claim, for any number of places.

Multipliers come from passes on a ladder of grids (ladder.py), up to `WHOLE` places from the optimal program.

The certificate, from multipliers that are nearly admissible (`certify_bound`), is

    lower_bound = sum lambda + sum min(0, v),                                                                        (1)

where v_y is proved by the tree that the pricing of report y ended with, less a margin for another machine. The
multipliers, the radii and the trees alone prove it; without trees reports are priced again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.factored.ascent import below_costs
from mechdesign.factored.ball import Places
from mechdesign.factored.dataset import ProvedBound
from mechdesign.factored.ladder import CERTIFICATE, ladder_state
from mechdesign.factored.pricing import BLOCK, NO_CODES, Codes, LastTrees, PricingTask, Radii, tree_block, value_block
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, Work, Workers, all_blocks
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Report, Targets, counter, silent

WHOLE = 700  # places up to which the optimal program is solved as a table
REACH, CORE = 15.0, 6.0  # nats: a little more than in passes, so that few multipliers change again
WIDEST = 64.0  # nats: the widest ball that a file may ask for
MARGIN = 1e-8  # of a bound


@dataclass(frozen=True, kw_only=True)
class BoundConstants:
    """Constants of the certificate: guesses; the bound holds whatever they are."""

    table_gap: float = 2e-4  # relative, of the optimal program as a table
    rounds: int = 30  # of violators
    # Relative: by which a multiplier falls more than a ratio asks for, at first, and its growth in every round.
    # At 60 x 60 a fifth less time than with 1e-6 and 1.3, for 1e-5 of the bound.
    extra: float = 1e-5
    growth: float = 1.5
    lost: float = 1e-7  # of the bound, that negative values may take of it


CONSTANTS = BoundConstants()


def local_bound(
    problem: DesignProblem, executor: Workers, *, deadline: float = math.inf, report: Report = silent
) -> ProvedBound | None:
    """A lower bound for all mechanisms private for the metric, and its proof; None if the deadline leaves no time."""
    if problem.domain.size <= WHOLE:
        return _bound_of_table(problem, executor, deadline)
    # On grids of Philadelphia this bound is 0.05 to 0.1 % below the optimum; some percent where priors range over
    # orders of magnitude from place to place.
    report = in_time(report, deadline)
    try:
        state, slowest = ladder_state(problem, executor, deadline=deadline, report=report)
        if time.monotonic() + CERTIFICATE * slowest > deadline:
            return None
        places = Places.of(problem)
        radii = Radii(reach=REACH, core=CORE).around(places)
        on_done = counter(report, "bound, certificate", places.size)
        return certify_bound(executor, places, state.dual, reach=radii.reach, core=radii.core, on_done=on_done)
    except OutOfTime:
        return None


def in_time(report: Report, deadline: float) -> Report:
    """A report on the blocks of a pass that raises OutOfTime after one that ends too late for another."""

    def until(stage: str, *, done: int, total: int) -> None:
        report(stage, done=done, total=total)
        if done < total and time.monotonic() > deadline:
            raise OutOfTime

    return until


def _bound_of_table(problem: DesignProblem, executor: Workers, deadline: float) -> ProvedBound | None:
    # Multipliers of the table may need places outside the balls: the better of them and of lowered ones counts.
    seconds = deadline - time.monotonic()
    if seconds <= 0 or problem.constant_loss == 0:
        return None
    design = solve_optimal(problem, Targets(gap=CONSTANTS.table_gap, time_limit=seconds))
    if not len(design.dual):
        return None
    places = Places.of(problem)
    task = PricingTask.all(places, design.dual, reach=WIDEST, core=WIDEST)
    trees = list(_trees(_pass(executor, value_block, task, lambda _: None)))
    whole = ProvedBound(value=0.0, dual=design.dual, reach=WIDEST, core=WIDEST, trees=trees)
    whole = replace(whole, value=recompute_bound(executor, places, whole) * (1 - MARGIN))
    if whole.value >= (1 - CONSTANTS.table_gap) * design.lower_bound:
        return whole
    lowered = certify_bound(executor, places, np.maximum(design.dual, 0.0), reach=WIDEST, core=WIDEST)
    return max(whole, lowered, key=lambda bound: bound.value)


def recompute_bound(
    executor: Workers, places: Places, proof: ProvedBound, on_done: OnDone = lambda done: None
) -> float:
    """The lower bound that the multipliers of a proof give; its stored value is not used."""
    task = PricingTask.all(places, proof.dual, reach=proof.reach, core=proof.core)
    if proof.trees is None:
        return lower_bound(proof.dual, _values(_pass(executor, value_block, task, on_done)))
    value = _values(_pass(executor, tree_block, replace(task, trees=proof.trees), on_done))
    # A report whose tree proves nothing is priced: both values are lower bounds.
    rest = np.flatnonzero(value < 0)
    if len(rest):
        task = replace(task, reports=rest, start=np.ones(len(rest)))
        value[rest] = np.maximum(value[rest], _values(_pass(executor, value_block, task, lambda _: None)))
    return lower_bound(proof.dual, value)


def certify_bound(
    executor: Workers,
    places: Places,
    dual: Vector,
    *,
    reach: float = REACH,
    core: float = CORE,
    on_done: OnDone = lambda _: None,
) -> ProvedBound:
    """A proved bound from multipliers (n,) >= 0. Cost: a pass, another over fewer and fewer reports, one of trees."""
    # An exact pass, rounded down, over all reports, then rounds over those with a negative value. A tree proves no less
    # once multipliers fall (ball.py), so the values and trees of the other reports hold.
    task = PricingTask.all(places, dual, reach=reach, core=core)
    value, trees = np.empty(places.size), [NO_CODES] * places.size
    best, bound = ProvedBound(value=0.0, dual=task.dual, reach=reach, core=core), -math.inf
    for number in range(CONSTANTS.rounds):
        blocks = _pass(executor, value_block, task, on_done)
        value[task.reports] = _values(blocks)
        for y, codes in zip(task.reports.tolist(), _trees(blocks), strict=True):
            trees[y] = codes
        proved = lower_bound(task.dual, value)
        if proved > bound:
            bound, best = proved, replace(best, dual=task.dual, trees=list(trees))
        if proved >= (1 - CONSTANTS.lost) * float(task.dual.sum()):
            break
        is_negative = value[task.reports] < 0
        reports, last = task.reports[is_negative], LastTrees.of(blocks).select(is_negative)
        lower = _lower_multipliers(task, blocks, CONSTANTS.extra * CONSTANTS.growth**number)
        task = replace(task, dual=lower, reports=reports, start=np.ones(len(reports)), last=last)
    # `verify` computes this bound: the margin is for another machine.
    return replace(best, value=recompute_bound(executor, places, best) * (1 - MARGIN))


def _values(blocks: list[Arrays]) -> Vector:
    return np.concatenate([arrays["value"] for arrays in blocks])


def _trees(blocks: list[Arrays]) -> Iterator[Codes]:
    for arrays in blocks:
        yield from np.split(arrays["codes"], np.cumsum(arrays["coded"])[:-1])


def _lower_multipliers(task: PricingTask, blocks: list[Arrays], extra: float) -> Vector:
    # Where the minimising ray weighs most, lambda falls by the shortfall of its ratio from 1, and a little more every
    # round. So do the guests of a host, whose amounts may be most of its weight. Multipliers above a cost outside a
    # ball fall to it: that place can then be left out there.
    fall = np.zeros(task.places.size)
    for arrays in blocks:
        np.maximum.at(fall, arrays["place"], np.minimum(1.0, arrays["share"] + extra))
    hosts = task.places.hosts
    fall[hosts.guest] = np.maximum(fall[hosts.guest], fall[hosts.host])
    return below_costs(task.places, task.dual * (1 - fall), blocks)


def _pass(executor: Workers, work: Work, task: PricingTask, on_done: OnDone) -> list[Arrays]:
    blocked = BlockedWork(work=work, state=task, total=len(task.reports), block=BLOCK, name=work.__name__)
    return all_blocks(executor, blocked, on_done=on_done)
