"""A lower bound of the optimal program beside a table that another program found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import TimeBudget
from mechdesign.mechanism.figures import total_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.choose import MANY
from mechdesign.solvers.cone.pricing import ConePricer, Pricing, anchor_multipliers, homogeneous_bound, lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Design, Progress, Stop, Targets, reporter

ENTRIES, _GAP = 20_000, 1e-3  # entries of a table up to which the optimal program is solved for its bound, to this gap
BOUND_ENDS = 0.9  # share of the time limit until which a bound is sought: the rest is for the certificate and the file
TABLE_ENDS = 0.7  # share of the time limit until which a table with a bound beside it is sought
_SMALLEST = 1e-300  # loss; a loss of 0 has no relative gap


class OptimalBound(NamedTuple):
    """A lower bound of the optimal program and the dual (n,) that proves it; stopped is TIME or INTERRUPT where a
    better one was not sought to the end.
    """

    value: float = -np.inf
    dual: NDArray[np.float64] = np.zeros(0)
    stopped: Stop = Stop.NONE


def optimal_lower_bound(
    problem: DesignProblem,
    duals: Sequence[NDArray[np.float64]],
    *,
    mass: NDArray[np.uint64],
    targets: Targets,
    started: float,
) -> OptimalBound:
    """A lower bound of the optimal program for a table `mass` of another program; none with bound=False.

    Up to 20,000 entries and 700 secrets the bound of the optimal program itself, to a gap of 1e-3; else the homogeneous
    bound of given multipliers (n,), lowered as far as they have to be, or that of one secret where it is better.
    The search for it ends at `BOUND_ENDS` of the time limit that began at `started`, and at a first Ctrl-C; then the
    best bound so far is returned, at least that of one secret, which takes no pricing.
    """
    if targets.bound is False:
        return OptimalBound()
    if problem.constant_loss == 0:
        return OptimalBound(0.0, np.zeros(problem.domain.size))
    budget = TimeBudget(started + BOUND_ENDS * targets.time_limit)
    is_small = problem.domain.size * problem.reports.size <= ENTRIES and problem.domain.size <= MANY
    if is_small and not budget.is_spent():
        return _bound_of(_solved(problem, targets, budget))
    return _PricedBound(problem, mass, targets).improved(duals, budget)


def _solved(problem: DesignProblem, targets: Targets, budget: TimeBudget) -> Design:
    on_progress = None if targets.on_progress is None else _of_the_bound(targets.on_progress)
    return solve_optimal(problem, Targets(gap=_GAP, time_limit=budget.remaining(), on_progress=on_progress))


def _of_the_bound(on_progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Progress of the search for the bound, whose gap is not that of the table that was made."""
    return lambda state: on_progress(replace(state, gap_of="bound, its gap"))


def _bound_of(design: Design) -> OptimalBound:
    return OptimalBound(design.lower_bound, design.dual, design.stopped if design.stopped.is_early else Stop.NONE)


class _PricedBound:
    """The best bound of given multipliers, from that of one secret."""

    def __init__(self, problem: DesignProblem, mass: NDArray[np.uint64], targets: Targets) -> None:
        self.problem, self.report = problem, reporter(targets.on_progress)
        self.pricer = ConePricer.of(problem)
        self.best = OptimalBound(*anchor_multipliers(self.pricer, problem.weighted_loss))
        self.loss = max(total_cost(mass, problem.weighted_loss), _SMALLEST)

    def improved(self, duals: Sequence[NDArray[np.float64]], budget: TimeBudget) -> OptimalBound:
        """The best bound when all multipliers are priced, time ends, or Ctrl-C comes."""
        self.pricer.deadline = budget.ends
        try:
            stopped = interrupts.search(partial(self._price, duals), Stop.INTERRUPT)
        except OutOfTime:
            stopped = Stop.TIME
        if stopped is Stop.NONE and budget.is_spent():
            stopped = Stop.TIME
        return self.best._replace(stopped=stopped)

    def _price(self, duals: Sequence[NDArray[np.float64]]) -> Stop:
        tried = [dual for dual in duals if dual.any()]  # multipliers of 0 prove nothing
        for number, dual in enumerate(tried, 1):
            self.pricer.on_done = partial(self._count, f"bound, multipliers {number} of {len(tried)}")
            homogeneous_bound(
                self.pricer,
                self.problem.weighted_loss,
                dual,
                loss=self.loss,
                known=self.best.value,
                visit=self._record,
            )
        return Stop.NONE

    def _record(self, dual: NDArray[np.float64], price: Pricing) -> None:
        value = lower_bound(dual, price.value)
        if value > self.best.value:
            self.best = OptimalBound(value, dual)

    def _count(self, title: str, done: int) -> None:
        self.report(title, done=done, total=self.problem.reports.size, unit="reports")
