"""The search of optimal and coupled programs: the best certified table, the best bound, and routes that better them.

    minimise <cost, P> + t   over the private tables of a problem, with side rows G P <= h + s t

The optimal program is the one without side rows. Routes are taken in turn, each from what the ones before have found,
until one meets the gap or time ends. Two of them are here, since both programs take them: the rays of rays.py, and the
whole linear program by HiGHS. Its costs are counted in units of the best loss in hand, which is the one place where a
program is scaled to its own loss: the tolerances of HiGHS are absolute.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import OutOfTime
from mechdesign.closed_forms.best import ClosedForm
from mechdesign.errors import InputError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import RESOLUTION, relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows, objective
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, best_bound
from mechdesign.solvers.lp.full import MOST_ROWS, WholeProgram, assemble_whole, count_rows
from mechdesign.solvers.lp.highs import LinearSolution, Method, solve_linear_program
from mechdesign.solvers.rays import RayGeneration, generate
from mechdesign.solvers.result import Report, Status

FIRST_MARGIN = 1e-9  # first margin of a limit, relative to it: the tolerance of HiGHS
_BETTER = 0.9  # a mixture of this share of the best objective is certified before the end
SIMPLEX_LIMIT = 10_000  # rows of the whole program up to which the simplex method is used
# Method, and cap in nats: without one, last, the variables are the probabilities themselves, which suits answers that
# are likely far from their anchors.
_SMALL: list[tuple[Method, float]] = [("simplex", 9.0), ("simplex", 18.0), ("ipm", 9.0), ("simplex", 0.0)]
_LARGE: list[tuple[Method, float]] = [("ipm", 5.0), ("ipm", 9.0), ("ipm", 0.0)]
_TRIALS = 8  # of a whole program, with margins that grow
_SPREAD_LIMIT = 1_000_000  # entries of a table up to which its repair may solve a system of eikonal weights

Route = Callable[[], str]  # why it ended: "gap", "time", "interrupt" or "precision", where it can do no better


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """minimise <cost, P> + t over the private tables of `problem` with `rows`.

    constant, the objective of the best constant report; unit, an objective that is reached, for the scale of programs.
    """

    problem: DesignProblem
    cost: NDArray[np.float64]
    rows: SideRows
    pricer: ConePricer
    constant: float
    unit: float

    @property
    def first_margin(self) -> NDArray[np.float64]:
        """What limits (k,) are lowered by at first; 0 on rows with a share."""
        return np.where(self.rows.share > 0, 0.0, FIRST_MARGIN * self.rows.size_of_limits)

    @property
    def whole_trials(self) -> list[tuple[Method, float]]:
        """Methods and caps of the whole program, in the order of trial; none where it is too large."""
        rows = count_rows(self.problem, self.rows.size)
        return [] if rows > MOST_ROWS else _SMALL if rows <= SIMPLEX_LIMIT else _LARGE

    def solve_whole(
        self, rows: SideRows, method: Method, cap: float, tolerance: float, time_limit: float
    ) -> tuple[WholeProgram, LinearSolution]:
        """The point that HiGHS finds, with `rows` in place of the task's."""
        whole = assemble_whole(self.problem, self.cost, rows, self.pricer.distance, cap=cap, unit=self.unit)
        return whole, solve_linear_program(whole.program, method=method, tolerance=tolerance, time_limit=time_limit)

    def bound(self, dual: NDArray[np.float64], multipliers: NDArray[np.float64]) -> CoupledBound:
        """The best bound over multipliers of the row sums below `dual`."""
        return best_bound(self.pricer, self.cost, self.rows, dual, multipliers, loss=self.unit)

    def certify(
        self, table: NDArray[np.float64], charge: NDArray[np.float64], *, private: bool = False
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], float]:
        """A certified table near `table`, by how much it may exceed the limits (k,), and its objective.

        Repaired with the kernels where that is possible, and with side rows without them too, slack put where `charge`
        (n, m) is least; what breaks no limit is preferred, then the smaller objective. private, as it stands but for
        rounding: then it is overwritten.
        """
        plain = private or table.size > _SPREAD_LIMIT
        kernels: list[NDArray[np.float64] | None] = [None]
        if not plain and table.shape[0] == table.shape[1]:
            kernels = [np.exp(-self.pricer.distance).T, *[None] * (self.rows.size > 0)]
        repaired = []
        for kernel in kernels:
            start = table if plain else np.maximum(table, 0.0)
            mass = repair(start, self.problem.edges, charge, kernel, overwrite=plain)
            excess, value = self.assessed(mass)
            repaired.append((mass, excess, value))
        return min(repaired, key=lambda entry: (float(entry[1].max(initial=0.0)), entry[2]))

    def assessed(self, mass: NDArray[np.uint64]) -> tuple[NDArray[np.float64], float]:
        """By how much a certified table may exceed the limits (k,), and its objective."""
        if not self.rows.size:
            return np.zeros(0), total_cost(mass, self.cost)
        table = mass / float(ROW_SUM)
        return self.rows.excess_up(table), objective(self.cost, self.rows, table)


@dataclass(kw_only=True, eq=False)
class Search:
    """The best certified table and bound so far, and the means to better them; deadline, of time.monotonic()."""

    task: Task
    gap: float
    deadline: float
    report: Report
    mass: NDArray[np.uint64] | None = None
    value: float = math.inf  # the objective of the best table
    closed_form: str | None = None  # of the best table, where that is one
    proof: CoupledBound | None = None
    number: int = 0  # of the round of a route

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.deadline - time.monotonic()

    @property
    def bound(self) -> float:
        """The best lower bound, 0 before the first."""
        return 0.0 if self.proof is None else self.proof.value

    @property
    def reached(self) -> float:
        """The relative gap, infinite before the first table."""
        return math.inf if self.mass is None else relative_gap(self.value, self.bound, self.task.constant)

    @property
    def unit(self) -> float:
        """An objective that is reached; of almost nothing it must not blow up what is divided by it."""
        return max(min(self.value, self.task.unit), RESOLUTION * self.task.constant)

    @property
    def parameters(self) -> dict[str, str]:
        """What a file keeps of the best table: the name of the closed form that it is."""
        return {} if self.closed_form is None else {"closed_form": self.closed_form}

    def follow(self, routes: Iterable[Route]) -> str:
        """Take one route after another until one meets the gap or time ends; why the last one ended.

        A route that has nothing to work on, or a shorter time than all, is followed by the next.
        """
        stopped = "precision"
        for route in routes:
            if self.reached <= self.gap:
                break
            if self.left <= 0:
                return "time"
            self.number = 0
            try:
                stopped = route()
            except (SolverError, InputError, OutOfTime):  # what was found is kept
                stopped = "time"
            if stopped == "time" and self.left > 0:
                stopped = "precision"
            if stopped != "precision":
                return stopped
        return "gap" if self.reached <= self.gap else stopped

    def prove(self, bound: CoupledBound) -> bool:
        """Keep a bound if it is the best; whether it is."""
        better = self.proof is None or bound.value > self.proof.value
        if better:
            self.proof = bound
        return better

    def start_from(self, form: ClosedForm, value: float) -> None:
        """Keep a closed form of this objective if it is the best."""
        if value < self.value:
            self.mass, self.value, self.closed_form = form.mass, value, form.name

    def offer(
        self, table: NDArray[np.float64], charge: NDArray[np.float64], *, private: bool = False
    ) -> NDArray[np.float64]:
        """Certify a table and keep it if it meets the limits and is the best; by how much it exceeds them (k,).

        charge and private, as in `Task.certify`.
        """
        mass, excess, value = self.task.certify(table, charge, private=private)
        if not excess.any() and value < self.value:
            self.mass, self.value, self.closed_form = mass, value, None
        return excess

    def by_rays(self, name: str, deadline: float, rounds: Callable[..., str] = generate) -> str:
        """Ray generation until the deadline, its master at vertices; rounds, `rays.generate` or alike, which makes the
        columns. Tables are certified where they are much better, and limits that one breaks are lowered for the
        mixture.
        """
        task, margin = self.task, self.task.first_margin
        rays = RayGeneration(
            pricer=task.pricer,
            cost=task.cost,
            rows=task.rows,
            constant=task.problem.best_constant,
            scale=task.constant,
        )
        if task.rows.size:
            rays.tighten(margin)

        def take(bound: CoupledBound, close: bool) -> float:
            nonlocal margin
            self.prove(bound)
            if close or rays.objective < _BETTER * self.value:
                excess = self.offer(rays.table(), bound.folded)
                if excess.any():
                    margin = np.where(excess > 0, 2 * (margin + excess), margin)
                    rays.tighten(margin)
            self.tell(name, rays.variables, rays.constraints)
            return self.reached

        try:
            return rounds(rays, gap=self.gap, deadline=deadline, take=take)
        finally:
            if len(rays.x) and rays.objective < self.value:
                self.offer(rays.table(), task.cost if self.proof is None else self.proof.folded)

    def by_whole(self, method: Method, cap: float) -> str:
        """The whole linear program by HiGHS, every limit lowered by a margin that grows until the table keeps it."""
        task, margin = replace(self.task, unit=self.unit), self.task.first_margin
        for _ in range(_TRIALS):
            if self.left <= 0:
                return "time"
            tolerance = min(1e-4, self.gap) / 20
            whole, solution = task.solve_whole(task.rows.tightened(margin), method, cap, tolerance, self.left)
            table = whole.table(solution.x)
            if solution.status is Status.INFEASIBLE or not table.max() > 0:
                break
            bound = task.bound(*whole.multipliers(solution.dual))
            self.prove(bound)
            excess = self.offer(table, bound.folded)
            if self.reached > self.gap and not excess.any() and self.left > 0:
                self.polish(bound)
            self.tell("whole", len(whole.program.cost), whole.program.matrix.shape[0])
            if not excess.any():
                break
            margin = np.where(excess > 0, 2 * (margin + excess), margin)
        return "precision"

    def polish(self, bound: CoupledBound) -> None:
        """Better a bound of the whole program, where there is another way to."""

    def tell(self, method: str, variables: int, constraints: int, iteration: int | None = None) -> None:
        """Report progress in a round or, without an iteration, after it; with the size of the program in hand."""
        self.report(
            method,
            round=self.number,
            iteration=iteration,
            loss=self.value,
            lower_bound=self.bound,
            gap=self.reached,
            variables=variables,
            constraints=constraints,
        )
        self.number += iteration is None
