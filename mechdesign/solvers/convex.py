"""Convex constraints that are not affine: solved through the cvxpy statement, and bounded by rows that they imply."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.arrays import Matrix
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import TimeBudget
from mechdesign.errors import DesignError, InfeasibleError, InputError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import stack_rows
from mechdesign.solvers.auxiliary import auxiliary_row
from mechdesign.solvers.cone.pricing import CoupledBound
from mechdesign.solvers.coupled import coupled_design, solve_coupled, task_of
from mechdesign.solvers.incumbent import Certified, Incumbent, Task
from mechdesign.solvers.limits import limit_solver
from mechdesign.solvers.result import SolveResult, Stop, Targets, reporter, with_gap_name
from mechdesign.solvers.tangents import solve_quietly, tangent_rows, value_of


@dataclass(frozen=True, kw_only=True)
class TangentOptions:
    """The constants of this solver."""

    # Absolute margins, tried in turn: HiGHS has a tolerance of 1e-7, Clarabel of 1e-8.
    margins: tuple[float, ...] = (1e-7, 1e-6, 1e-5, 1e-4)
    rounds: int = 60  # of tangents; a guess
    patience: int = 8  # rounds that together must close the share `gain` of the gap; a guess
    gain: float = 0.05
    inner_gap: float = 0.1  # gap of the coupled program in a round, as a share of the target; a guess
    # Shares of the way to the outer point; guesses. The first infeasible point is taken: tangents near the feasible
    # tables cut more off than one at the outer point.
    steps: tuple[float, ...] = (0.2, 0.5, 1.0)
    seed: int = 0  # of the steps off kinks: a design is the same in every run


_OPTIONS = TangentOptions()
_SHOWN = 300  # characters of inequalities in an error


# The bound is that of a coupled program with tangents (tangents.py) in place of constraints that are not affine:
# cutting planes
# (Kelley 1960, Journal of SIAM 8) near a feasible table.
def solve_constrained(program: Constrained, targets: Targets) -> SolveResult:
    """Solve by the solver of claimed limits, by `solve_coupled`, or by the statement and tangents."""
    solver = limit_solver(program)
    if solver is not None:
        return solver.solve(targets)
    if not (program.convex_inequalities or program.joint_inequalities):
        return solve_coupled(program, targets)
    budget = TimeBudget.of(targets.time_limit)
    # Without the other inequalities: a first bound, and an objective that scales the statement.
    relaxed = solve_coupled(program, replace(targets, on_progress=with_gap_name(targets.on_progress, "inner gap")))
    task = task_of(program)
    assert relaxed.objective is not None
    table, margin = _first_table(program, task, max(relaxed.objective, RESOLUTION * task.constant))
    incumbent = Incumbent(constant=task.constant, target=targets.gap, report=reporter(targets.on_progress))
    incumbent.try_table(table)
    incumbent.record_bound(_bound_of(task, relaxed))
    # An interrupt or the end of time in the relaxed program ends the whole search.
    stopped = relaxed.stopped
    if not stopped.is_early:
        search = _Tangents(program, task, incumbent, budget, margin)
        search.eliminate_auxiliary()
        stopped = interrupts.interruptible(search.run, Stop.INTERRUPT)
        if incumbent.is_close:
            stopped = Stop.GAP
    assert relaxed.objective_of is not None
    return coupled_design(incumbent, relaxed.objective_of, stopped)


def _bound_of(task: Task, design: SolveResult) -> CoupledBound:
    assert design.multipliers is not None
    return CoupledBound(value=design.lower_bound, dual=design.dual, multipliers=design.multipliers, folded=task.cost)


def _first_table(program: Constrained, task: Task, unit: float) -> tuple[Certified, float]:
    import cvxpy as cp

    for margin in _OPTIONS.margins:
        statement = program.statement(margin)
        # The tolerances of solvers are absolute: the loss is counted in units of one that is nearly reached.
        scaled = cp.Problem(cp.Minimize(statement.objective.expr / unit), statement.constraints)
        solver = _solve_statement(scaled, program)
        if scaled.status not in ("optimal", "optimal_inaccurate"):
            message = f"no table satisfies all constraints with a margin of {margin:g}: loosen one, or use a larger eps"
            raise InfeasibleError(message, field="constraints", value=f"{solver} says {scaled.status}")
        table = task.certify(np.asarray(program.table.value, float), task.cost)
        # The repair may use half of the margin; the other half covers the rounding of this check.
        if not table.excess.any() and _largest_value(program, table.mass / float(ROW_SUM)) <= -margin / 2:
            return table, margin
    message = f"no certified table satisfies all constraints with a margin of {_OPTIONS.margins[-1]:g}: loosen one"
    raise DesignError(message, field="constraints")


def _solve_statement(statement: Any, program: Constrained) -> str:
    import cvxpy as cp

    refused: Exception | None = None
    # HiGHS solves maxima and absolute values, Clarabel other cones. Clarabel fails on some entropies of a hundred
    # places that it solves without equilibration.
    for solver, options in ((cp.HIGHS, {}), (cp.CLARABEL, {}), (cp.CLARABEL, {"equilibrate_enable": False})):
        try:
            solve_quietly(statement, solver, options)
            return str(solver)
        except (cp.error.SolverError, ValueError) as error:
            refused = error
    message = "neither HiGHS nor Clarabel solves the program with these inequalities: use other cvxpy functions"
    inequalities = ", ".join(map(str, program.convex_inequalities))
    raise InputError(message, field="constraints", value=inequalities[:_SHOWN]) from refused


def _largest_value(program: Constrained, table: Matrix) -> float:
    return max(float(value_of(inequality, program.table, table).max()) for inequality in program.user_inequalities)


class _Tangents:
    def __init__(
        self, program: Constrained, task: Task, incumbent: Incumbent, budget: TimeBudget, margin: float
    ) -> None:
        self.program, self.task, self.incumbent, self.budget, self.margin = program, task, incumbent, budget, margin
        self.rows, self.rng = program.side_rows(), np.random.default_rng(_OPTIONS.seed)

    def eliminate_auxiliary(self) -> None:
        """Add the row that inequalities with auxiliary variables imply."""
        if self.program.joint_inequalities:
            row = auxiliary_row(self.program, self.incumbent.objective)
            self.rows = stack_rows([self.rows, row], self.program.table.size)

    def run(self) -> Stop:
        assert self.incumbent.mass is not None
        point, before = self.incumbent.mass / float(ROW_SUM), np.inf
        for number in range(_OPTIONS.rounds):
            if self.incumbent.is_close:
                return Stop.GAP
            coupled = self._with_tangents_at(point)
            if coupled is None:
                return Stop.TIME if self.budget.is_spent() else Stop.PRECISION
            self._record(coupled)
            self.incumbent.report_state("tangents", 0, self.rows.size)
            if coupled.stopped.is_early:
                return coupled.stopped
            # A single round may gain nothing, so progress is judged over several.
            if number % _OPTIONS.patience == _OPTIONS.patience - 1:
                if self.incumbent.gap > (1 - _OPTIONS.gain) * before:
                    break
                before = self.incumbent.gap
            # For a smooth constraint the first tangents, at the table of the statement, are enough.
            point = self._first_infeasible(coupled.mass / float(ROW_SUM))
        return Stop.PRECISION

    def _record(self, coupled: SolveResult) -> None:
        assert coupled.objective is not None
        self.incumbent.record_bound(_bound_of(self.task, coupled))
        # Half of the margin covers the rounding of this check, as in `_first_table`.
        if _largest_value(self.program, coupled.mass / float(ROW_SUM)) <= -self.margin / 2:
            self.incumbent.try_table(Certified(coupled.mass, np.zeros(0), coupled.objective))

    def _with_tangents_at(self, point: Matrix) -> SolveResult | None:
        """The coupled program with further tangents; None without a table or time."""
        table, inequalities, rng = self.program.table, self.program.convex_inequalities, self.rng
        try:
            new = [tangent_rows(inequality, table, point, rng, budget=self.budget) for inequality in inequalities]
            # A tangent holds for every feasible table, so those of earlier rounds stay.
            self.rows = stack_rows([self.rows, *new], point.size)
            targets = Targets(
                gap=_OPTIONS.inner_gap * self.incumbent.target, time_limit=max(self.budget.remaining(), 0.0)
            )
            return solve_coupled(self.program, targets, self.rows)
        except (OutOfTime, DesignError, SolverError):
            return None

    def _first_infeasible(self, outside: Matrix) -> Matrix:
        """The first infeasible point on the way from the best table: its tangent cuts `outside` off."""
        assert self.incumbent.mass is not None
        inside = self.incumbent.mass / float(ROW_SUM)
        points = [inside + way * (outside - inside) for way in _OPTIONS.steps]
        return next((point for point in points if _largest_value(self.program, point) > 0), outside)
