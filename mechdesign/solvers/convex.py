"""Convex constraints that are not affine: solved through the cvxpy statement, and bounded by rows that they imply.

HiGHS solves maxima and absolute values, Clarabel what is quadratic, exponential or a logarithm, with a margin that is
checked. The bound is that of a coupled program with tangents (tangents.py) in place of these constraints. The first
ones are drawn at the table that the statement gives, where one is enough for a smooth constraint. Further ones follow
on the way from that table to the optimum of the coupled program until the gap holds: cutting planes (Kelley 1960,
Journal of SIAM 8), drawn near a table that keeps the constraints.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import DesignError, InfeasibleError, InputError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import RESOLUTION, relative_gap
from mechdesign.posteriors.solve import solve_capped
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import stack_rows
from mechdesign.solvers.coupled import CoupledTask, solve_coupled, task_of
from mechdesign.solvers.result import Design, Progress, Targets, reporter
from mechdesign.solvers.tangents import tangent_rows, value_of

_MARGINS = (1e-7, 1e-6, 1e-5, 1e-4)  # absolute; HiGHS has a tolerance of 1e-7, Clarabel of 1e-8
_ROUNDS = 60  # of tangents
_STALLED, _GAINED = 8, 0.05  # rounds that together close less than this share of the gap: nothing more is gained
_INNER = 0.1  # of the gap: target of the coupled program in a round
_WAY = (0.2, 0.5, 1.0)  # shares of the way; 0.2 takes a third of the rounds of 0.5, and a tenth of those of 1
_SEED = 0  # of the steps off kinks: a design is the same in every run
_SHOWN = 300  # characters of inequalities in an error
_EARLY = ("time", "interrupt")
_Table = NDArray[np.float64]


def solve_constrained(program: Constrained, targets: Targets) -> Design:
    """`solve_capped` where posteriors of discs are limited, else `solve_coupled`; with inequalities beyond side rows
    the statement, and tangents for the bound.

    Every inequality must hold on the certified table with half its margin left, for the rounding of the check.
    Raises: InputError for what neither HiGHS nor Clarabel takes; InfeasibleError, DesignError as `solve_coupled`.
    """
    if program.caps:
        return solve_capped(program, targets)
    if not program.beyond_rows:
        return solve_coupled(program, targets)
    started = time.monotonic()
    relaxed = solve_coupled(program, replace(targets, on_progress=_inner(targets.on_progress)))
    task = task_of(program)
    assert relaxed.objective is not None
    mass, value, margin = _table(program, task, max(relaxed.objective, RESOLUTION * task.constant))
    first = replace(relaxed, mass=mass, objective=value, lower_bound_of="the program", parameters={})
    if relaxed.stopped in _EARLY:
        return first
    left = targets.time_limit - (time.monotonic() - started)
    search = _Tangents(program, task, replace(targets, time_limit=left), first, margin)
    stopped = interrupts.search(search.run, "interrupt")
    return replace(search.best, stopped="gap" if search.reached <= targets.gap else stopped)


def _inner(on_progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
    """States of the program without these constraints: their gap is not that of the mechanism."""
    return None if on_progress is None else lambda state: on_progress(replace(state, gap_of="inner gap"))


def _table(program: Constrained, task: CoupledTask, unit: float) -> tuple[NDArray[np.uint64], float, float]:
    """The certified table of the statement, its objective and the margin that it keeps half of; unit, of the loss."""
    import cvxpy as cp

    for margin in _MARGINS:
        statement = program.statement(margin)
        # The tolerances of solvers are absolute: the loss is counted in units of one that is nearly reached.
        scaled = cp.Problem(cp.Minimize(statement.objective.expr / unit), statement.constraints)
        solver = _solved(scaled, program)
        if scaled.status not in ("optimal", "optimal_inaccurate"):
            message = f"no table keeps all constraints with a margin of {margin:g}: loosen one, or use a larger eps"
            raise InfeasibleError(message, field="constraints", value=f"{solver} says {scaled.status}")
        mass, excess, value = task.certify(np.asarray(program.table.value, float), task.cost)
        if not excess.any() and _most(program, mass / float(ROW_SUM)) <= -margin / 2:
            return mass, value, margin
    message = f"no certified table keeps all constraints with a margin of {_MARGINS[-1]:g}: loosen one"
    raise DesignError(message, field="constraints")


def _solved(statement: Any, program: Constrained) -> str:
    """Solve a statement by the first solver that takes it; its name. Raises: InputError where none does."""
    import cvxpy as cp

    refused: Exception | None = None
    # Clarabel fails on some entropies of a hundred places that it solves as they stand, without equilibration.
    for solver, options in ((cp.HIGHS, {}), (cp.CLARABEL, {}), (cp.CLARABEL, {"equilibrate_enable": False})):
        try:
            statement.solve(solver=solver, **options)
            return str(solver)
        except (cp.error.SolverError, ValueError) as error:
            refused = error
    message = "neither HiGHS nor Clarabel solves the program with these inequalities"
    named = ", ".join(map(str, program.beyond_rows))
    raise InputError(message, field="constraints", value=named[:_SHOWN]) from refused


def _most(program: Constrained, table: _Table) -> float:
    """The largest value of the user's inequalities at a table (n, m)."""
    return max(float(value_of(own, program.table, table).max()) for own in program.own)


class _Tangents:
    """The search for a bound: the rows so far, and the best design."""

    def __init__(self, program: Constrained, task: CoupledTask, targets: Targets, best: Design, margin: float) -> None:
        self.program, self.task, self.gap, self.best, self.margin = program, task, targets.gap, best, margin
        self.deadline = time.monotonic() + targets.time_limit
        self.report = reporter(targets.on_progress)
        self.rows, self.rng = program.side_rows(), np.random.default_rng(_SEED)

    @property
    def reached(self) -> float:
        """The relative gap of the best design."""
        assert self.best.objective is not None
        return relative_gap(self.best.objective, self.best.lower_bound, self.task.constant)

    def run(self) -> str:
        """Rounds of tangents until the gap holds; why they ended."""
        point, before = self.best.mass / float(ROW_SUM), np.inf
        for number in range(_ROUNDS):
            if self.reached <= self.gap:
                return "gap"
            coupled = self._with_tangents_at(point)
            if coupled is None:
                return "time" if time.monotonic() >= self.deadline else "precision"
            self._take(coupled)
            self._tell(number)
            if coupled.stopped in _EARLY:
                return coupled.stopped
            if number % _STALLED == _STALLED - 1:
                if self.reached > (1 - _GAINED) * before:
                    break
                before = self.reached
            point = self._towards(coupled.mass / float(ROW_SUM))
        return "precision"

    def _take(self, coupled: Design) -> None:
        """Keep the bound of a coupled program where it is better, and its table where it is better and keeps all."""
        if coupled.lower_bound > self.best.lower_bound:
            self.best = replace(
                self.best, dual=coupled.dual, multipliers=coupled.multipliers, lower_bound=coupled.lower_bound
            )
        assert coupled.objective is not None
        assert self.best.objective is not None
        keeps_all = _most(self.program, coupled.mass / float(ROW_SUM)) <= -self.margin / 2
        if keeps_all and coupled.objective < self.best.objective:
            self.best = replace(self.best, mass=coupled.mass, objective=coupled.objective)

    def _with_tangents_at(self, point: _Table) -> Design | None:
        """The coupled program with further tangents; None where it has no table, or no time."""
        table, inequalities = self.program.table, self.program.beyond_rows
        try:
            new = [tangent_rows(own, table, point, self.rng, deadline=self.deadline) for own in inequalities]
            self.rows = stack_rows([self.rows, *new], point.size)
            left = max(self.deadline - time.monotonic(), 0.0)
            return solve_coupled(self.program, Targets(gap=_INNER * self.gap, time_limit=left), self.rows)
        except (OutOfTime, DesignError, SolverError):
            return None

    def _towards(self, outside: _Table) -> _Table:
        """The first point on the way from the best table that breaks a constraint: its tangent cuts `outside` off."""
        inside = self.best.mass / float(ROW_SUM)
        points = [inside + share * (outside - inside) for share in _WAY]
        return next((point for point in points if _most(self.program, point) > 0), outside)

    def _tell(self, number: int) -> None:
        state = {"loss": self.best.objective, "lower_bound": self.best.lower_bound, "gap": self.reached}
        self.report("tangents", round=number, constraints=self.rows.size, **state)
