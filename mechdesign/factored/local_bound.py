"""A proved lower bound of the expected loss of every mechanism with a claim, for any number of places.

Multipliers come from passes on a ladder of grids (ladder.py), up to `WHOLE` places from the optimal program.

The certificate, from multipliers that are nearly admissible (`certify_bound`), is

    lower_bound = sum lambda + sum min(0, v),                                                                        (1)

less a margin that covers the pivots of a repetition. The multipliers and the radii alone prove it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.factored.ascent import ceiling
from mechdesign.factored.ball import Places
from mechdesign.factored.dataset import ProvedBound
from mechdesign.factored.ladder import CERTIFICATE, ladder_state
from mechdesign.factored.pricing import BLOCK, PricingTask, value_block
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, Workers, all_blocks
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
    extra: float = 1e-6  # relative: by which a multiplier falls more than a ratio asks for, at first
    growth: float = 1.3  # of that in every round
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
        return certify_bound(executor, places, state.dual, on_done=counter(report, "bound, certificate", places.size))
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
    whole = ProvedBound(value=0.0, dual=design.dual, reach=WIDEST, core=WIDEST)
    whole = replace(whole, value=recompute_bound(executor, places, whole) * (1 - MARGIN))
    if whole.value >= (1 - CONSTANTS.table_gap) * design.lower_bound:
        return whole
    lowered = certify_bound(executor, places, np.maximum(design.dual, 0.0), reach=WIDEST, core=WIDEST)
    return max(whole, lowered, key=lambda bound: bound.value)


def recompute_bound(
    executor: Workers, places: Places, proof: ProvedBound, on_done: OnDone = lambda done: None
) -> float:
    """The lower bound that the multipliers of a proof give; its stored value is not used."""
    return _exact_pass(executor, PricingTask.all(places, proof.dual, reach=proof.reach, core=proof.core), on_done)[0]


def certify_bound(
    executor: Workers,
    places: Places,
    dual: Vector,
    *,
    reach: float = REACH,
    core: float = CORE,
    on_done: OnDone = lambda _: None,
) -> ProvedBound:
    """A proved bound from multipliers (n,) >= 0. Cost: two passes, and as much as one over fewer and fewer reports."""
    # An exact pass, rounded down, over all reports, then rounds over those with a negative value: lowering a multiplier
    # never hurts a report that holds. Pivots that end early may give worse values later, so the last pass is over all
    # reports again, and negative values then count in (1).
    task = PricingTask.all(places, dual, reach=reach, core=core)
    best = ProvedBound(value=-math.inf, dual=task.dual, reach=reach, core=core)
    every = task.reports
    for number in range(CONSTANTS.rounds):
        value, blocks = _exact_pass(executor, task, on_done)
        # A bound counts only from a pass over all reports: a value of fewer says nothing of the others.
        is_complete, enough = task.reports is every, value >= (1 - CONSTANTS.lost) * float(task.dual.sum())
        if is_complete and value > best.value:
            best = replace(best, value=value, dual=task.dual)
        if is_complete and enough:
            break
        if enough or number == CONSTANTS.rounds - 2:
            reports = every
        else:
            reports = task.reports[np.concatenate([arrays["value"] for arrays in blocks]) < 0]
            task = replace(task, dual=_lower_multipliers(task, blocks, CONSTANTS.extra * CONSTANTS.growth**number))
        task = replace(task, reports=reports, start=np.ones(len(reports)))
    # Pivots of a repetition may end elsewhere on another machine: the margin covers the difference.
    return replace(best, value=best.value * (1 - MARGIN))


def _lower_multipliers(task: PricingTask, blocks: list[Arrays], extra: float) -> Vector:
    # Where the minimising ray weighs most, lambda falls by the shortfall of its ratio from 1, and a little more every
    # round. Multipliers above a cost outside a ball fall to it: that place can then be left out there.
    fall = np.zeros(task.places.size)
    for arrays in blocks:
        np.maximum.at(fall, arrays["place"], np.minimum(1.0, arrays["share"] + extra))
    return np.asarray(np.minimum(task.dual * (1 - fall), ceiling(task.places, blocks)))


def _exact_pass(executor: Workers, task: PricingTask, on_done: OnDone) -> tuple[float, list[Arrays]]:
    # The bound holds if all reports outside the task have values of at least 0.
    blocked = BlockedWork(work=value_block, state=task, total=len(task.reports), block=BLOCK, name="prices")
    blocks = all_blocks(executor, blocked, on_done=on_done)
    return lower_bound(task.dual, np.concatenate([arrays["value"] for arrays in blocks])), blocks
