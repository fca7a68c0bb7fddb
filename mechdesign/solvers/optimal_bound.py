"""A lower bound of the optimal program for a table of another program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.arrays import Masses, Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import TimeBudget
from mechdesign.mechanism.figures import total_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.choose import MANY
from mechdesign.solvers.cone.pricing import ConePricer, Pricing, anchor_multipliers, homogeneous_bound, lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Stop, Targets, reporter, with_gap_name

ENTRIES, _GAP = 20_000, 1e-3  # entries of a table up to which the optimal program is solved for its bound, to this gap
BOUND_ENDS = 0.9  # share of the time limit until which a bound is sought: the rest is for the certificate and the file
TABLE_ENDS = 0.7  # share of the time limit until which a table is sought whose bound is computed afterwards
_SMALLEST = 1e-300  # loss; a loss of 0 has no relative gap


class OptimalBound(NamedTuple):
    """A lower bound of the optimal program and the dual (n,) that proves it; stopped, if it was cut short."""

    value: float = -np.inf
    dual: Vector = np.zeros(0)
    stopped: Stop = Stop.NONE


def optimal_lower_bound(
    problem: DesignProblem,
    duals: Sequence[Vector],
    *,
    mass: Masses,
    targets: Targets,
    started: float,
) -> OptimalBound:
    """A lower bound of the optimal program for a table `mass` of another program; none with bound=False."""
    # Small programs are solved. Larger ones price the multipliers (n,), until `BOUND_ENDS` of the limit or Ctrl-C.
    if targets.bound is False:
        return OptimalBound()
    # A constant report costs nothing, so the optimum is 0.
    if problem.constant_loss == 0:
        return OptimalBound(0.0, np.zeros(problem.domain.size))
    budget = TimeBudget(started + BOUND_ENDS * targets.time_limit)
    is_small = problem.domain.size * problem.reports.size <= ENTRIES and problem.domain.size <= MANY
    if is_small and not budget.is_spent():
        on_progress = with_gap_name(targets.on_progress, "bound, its gap")
        design = solve_optimal(problem, Targets(gap=_GAP, time_limit=budget.remaining(), on_progress=on_progress))
        stopped = design.stopped if design.stopped.is_early else Stop.NONE
        return OptimalBound(design.lower_bound, design.dual, stopped)
    return _PricedBound(problem, mass, targets).improve(duals, budget)


class _PricedBound:
    """The best bound of given multipliers, from that of one secret."""

    def __init__(self, problem: DesignProblem, mass: Masses, targets: Targets) -> None:
        self.problem, self.report = problem, reporter(targets.on_progress)
        self.pricer = ConePricer.of(problem)
        self.best = OptimalBound(*anchor_multipliers(self.pricer, problem.weighted_loss))
        self.loss = max(total_cost(mass, problem.weighted_loss), _SMALLEST)

    def improve(self, duals: Sequence[Vector], budget: TimeBudget) -> OptimalBound:
        self.pricer.deadline = budget.ends
        try:
            stopped = interrupts.interruptible(partial(self._price, duals), Stop.INTERRUPT)
        except OutOfTime:
            stopped = Stop.TIME
        if stopped is Stop.NONE and budget.is_spent():
            stopped = Stop.TIME
        return self.best._replace(stopped=stopped)

    def _price(self, duals: Sequence[Vector]) -> Stop:
        # Multipliers of 0 prove nothing.
        tried = [dual for dual in duals if dual.any()]
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

    def _record(self, dual: Vector, price: Pricing) -> None:
        value = lower_bound(dual, price.value)
        if value > self.best.value:
            self.best = OptimalBound(value, dual)

    def _count(self, title: str, done: int) -> None:
        self.report(title, done=done, total=self.problem.reports.size, unit="reports")
