"""The incumbent of a search: its best certified table, its best lower bound, and the routes that improve them.

    minimise <cost, P> + t   over the private tables of a problem, with side rows G P <= h + s t

The optimal program has no side rows. Routes run in turn, each from the incumbent, until one meets the gap or time ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mechdesign.base.arrays import Masses, Matrix, Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import TimeBudget
from mechdesign.errors import InputError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import RESOLUTION, relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows, objective
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, best_bound
from mechdesign.solvers.cone.pricing_trees import Steps, tree_steps
from mechdesign.solvers.cone.warm_pricing import WarmPricer
from mechdesign.solvers.lp.full import WholeProgram, assemble_whole
from mechdesign.solvers.lp.highs import LinearSolution, Method, solve_linear_program
from mechdesign.solvers.result import Report, Stop, silent

FIRST_MARGIN = 1e-9  # first margin of a limit, relative to it: the tolerance of HiGHS
_SPREAD_LIMIT = 1_000_000  # entries of a table up to which its repair always solves a system of eikonal weights
_LARGEST_SPREAD = 10_000_000  # entries up to which it does where a repair without costs more than the gap asked for
_REPAIR_SHARE = 0.25  # of the gap asked for, up to which a repair without eikonal weights may raise the objective


class Certified(NamedTuple):
    """An integer table (n, m), its largest possible excess over each limit (k,), and its objective."""

    mass: Masses
    excess: Vector
    objective: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """minimise <cost, P> + t over the private tables of `problem` with `rows`."""

    problem: DesignProblem
    cost: Matrix
    rows: SideRows
    pricer: ConePricer
    constant: float  # the objective of the best constant report
    unit: float  # an attainable objective, the scale of programs
    target: float = 1e-3  # the gap asked for

    @property
    def first_margin(self) -> Vector:
        """The first margins of the limits (k,); 0 on rows with s > 0."""
        return np.where(self.rows.epigraph_coefficient > 0, 0.0, FIRST_MARGIN * self.rows.size_of_limits)

    def unit_at(self, best: float) -> float:
        # An objective near zero must not scale the program up.
        return max(min(best, self.unit), RESOLUTION * self.constant)

    def solve_whole(
        self, rows: SideRows, method: Method, cap: float, tolerance: float, time_limit: float
    ) -> tuple[WholeProgram, LinearSolution]:
        """The point of HiGHS for the whole program, with `rows` in place of the task's."""
        whole = assemble_whole(self.problem, self.cost, rows, self.pricer.distance, cap=cap, unit=self.unit)
        return whole, solve_linear_program(whole.program, method=method, tolerance=tolerance, time_limit=time_limit)

    def bound(self, dual: Vector, multipliers: Vector) -> CoupledBound:
        """The best bound over multipliers of the row sums below `dual`."""
        return best_bound(self.pricer, self.cost, self.rows, dual, multipliers, loss=self.unit)

    def certify(self, table: Matrix, slack_cost: Matrix, *, private: bool = False) -> Certified:
        """A certified table near `table`, slack put where `slack_cost` (n, m) is least."""
        if table.size > _SPREAD_LIMIT and not private and not self.rows.size:
            return self._certify_large(table, slack_cost)
        # A private table is only rounded, in place; a large one is not worth the system of eikonal weights.
        is_plain = private or table.size > _SPREAD_LIMIT
        kernels: list[Matrix | None] = [None]
        if not is_plain and table.shape[0] == table.shape[1]:
            kernels = [np.exp(-self.pricer.distance).T]
            # The two repairs spread the rounding differently, and either may satisfy the limits.
            if self.rows.size:
                kernels.append(None)
        start = table if is_plain else np.maximum(table, 0.0)
        repaired = [
            self.assess(repair(start, self.problem.edges, slack_cost, kernel, overwrite=is_plain)) for kernel in kernels
        ]
        # A table that breaks a limit cannot be the incumbent, so the excess counts before the objective.
        return min(repaired, key=lambda trial: (float(trial.excess.max(initial=0.0)), trial.objective))

    def _certify_large(self, table: Matrix, slack_cost: Matrix) -> Certified:
        """A certified table near a large one, by eikonal weights only where the repair without is too dear."""
        ideal = float((np.maximum(table, 0.0) * self.cost).sum())
        fits = table.shape[0] == table.shape[1] and table.size <= _LARGEST_SPREAD
        # The plain repair works in place: another one needs the table as it was.
        plain = self.assess(
            repair(table.copy() if fits else table, self.problem.edges, slack_cost, None, overwrite=True)
        )
        if not fits or plain.objective <= ideal * (1 + _REPAIR_SHARE * self.target):
            return plain
        kernel = np.exp(-self.pricer.distance).T
        spread = self.assess(repair(np.maximum(table, 0.0), self.problem.edges, slack_cost, kernel, overwrite=False))
        return min(plain, spread, key=lambda trial: trial.objective)

    def assess(self, mass: Masses) -> Certified:
        if not self.rows.size:
            return Certified(mass, np.zeros(0), total_cost(mass, self.cost))
        table = mass / float(ROW_SUM)
        return Certified(mass, self.rows.excess_up(table), objective(self.cost, self.rows, table))


def plain_bound(task: Task, value: float, dual: Vector) -> CoupledBound:
    """A bound of a task without side rows, proved by `dual` (n,) alone."""
    return CoupledBound(value=value, dual=dual, multipliers=np.zeros(0), folded=task.cost)


@dataclass(kw_only=True, eq=False)
class Incumbent:
    """The best certified table and the best lower bound so far."""

    constant: float  # the objective of the best constant report
    target: float  # the gap that ends the search
    report: Report = silent
    mass: Masses | None = None
    objective: float = math.inf
    closed_form: str | None = None  # the name of the best table, where it is a closed form
    bound: CoupledBound | None = None
    warm: WarmPricer | None = None  # the trees of the last route that keeps some
    round: int = 0  # of the current route

    @property
    def lower_bound(self) -> float:
        return 0.0 if self.bound is None else self.bound.value

    @property
    def gap(self) -> float:
        return math.inf if self.mass is None else relative_gap(self.objective, self.lower_bound, self.constant)

    @property
    def is_close(self) -> bool:
        return self.gap <= self.target

    @property
    def parameters(self) -> dict[str, str]:
        return {} if self.closed_form is None else {"closed_form": self.closed_form}

    def try_table(self, table: Certified, *, closed_form: str | None = None) -> bool:
        """Keep a table that meets all limits if it is the best; True if it is."""
        is_better = not table.excess.any() and table.objective < self.objective
        if is_better:
            self.mass, self.objective, self.closed_form = table.mass, table.objective, closed_form
        return is_better

    def record_bound(self, bound: CoupledBound) -> bool:
        """Keep a bound if it is the best; True if it is."""
        is_better = self.bound is None or bound.value > self.bound.value
        if is_better:
            self.bound = bound
        return is_better

    def tree_steps(self, pricer: ConePricer) -> Steps | None:
        """Trees (m, n) that prove the bound, for the file; None if they are too large or take too long."""
        if self.bound is None or self.bound.value <= 0:
            return None
        return tree_steps(pricer, self.bound.folded, self.bound.dual, self.warm)

    def report_state(self, method: str, variables: int, constraints: int, iteration: int | None = None) -> None:
        """Report progress within a round or, without an iteration, at its end."""
        self.report(
            method,
            round=self.round,
            iteration=iteration,
            loss=self.objective,
            lower_bound=self.lower_bound,
            gap=self.gap,
            variables=variables,
            constraints=constraints,
        )
        # A report without an iteration is the last one of its round.
        if iteration is None:
            self.round += 1


class Route(Protocol):
    """One way to improve the incumbent of a task."""

    @property
    def name(self) -> str:
        """The name in progress lines."""

    def rejection_reason(self, task: Task) -> str | None:
        """Why the route cannot take the task; None if it can."""

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        """Improve the incumbent and return why it ended: PRECISION if the route can do no better."""


def run_routes(routes: Iterable[Route], task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
    """Run routes in turn until one meets the gap or time ends; returns the reason why the last one ended."""
    stopped = Stop.PRECISION
    for route in routes:
        if incumbent.is_close:
            break
        if budget.is_spent():
            return Stop.TIME
        if route.rejection_reason(task) is not None:
            continue
        incumbent.round = 0
        try:
            stopped = route.run(task, incumbent, budget)
        # A route that fails leaves its tables and bounds in the incumbent.
        except (SolverError, InputError, OutOfTime):
            stopped = Stop.TIME
        # The route failed or used up its share of the time: the next one continues.
        if stopped is Stop.TIME and not budget.is_spent():
            stopped = Stop.PRECISION
        if stopped is not Stop.PRECISION:
            return stopped
    return Stop.GAP if incumbent.is_close else stopped
