"""Solve a coupled program: one whole linear program, then repair, certificate, side rows and bound.

1. HiGHS solves the whole program, every limit lowered by a margin.  2. The point is repaired and certified.  3. The
side rows are checked on the certified integers, rounded up; where one fails its margin grows and 1. is repeated.  4.
The multipliers of the side rows are clipped and scaled until they are valid exactly, folded into the effective cost,
and every report is priced: a lower bound that rests on no convergence.  5. Where it stays apart, the optimal program is
solved for the effective cost, by aggregation: its multipliers of the row sums are more accurate far from the anchors.
Where no table is found the least common relaxation of the limits is bounded from below in the same way. A bound above
zero proves that the constraints contradict each other, and its multipliers say which.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError, InfeasibleError, SolverError
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import RESOLUTION, relative_gap
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.optimal.coupled import Coupled, SideRows, constant_objective, objective
from mechdesign.programs.optimal.whole import WholeProgram, assemble_whole, count_rows, require_whole
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.objective.priors import uniform
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.highs import LinearSolution, Method, solve_linear_program
from mechdesign.solvers.kernels.pricing import ConePricer, homogeneous_bound, lower_bound
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.optimal.aggregation import aggregate

SIMPLEX_LIMIT = 10_000  # rows up to which the simplex method is used
_SMALL: list[tuple[Method, float]] = [("simplex", 9.0), ("simplex", 18.0), ("ipm", 9.0)]  # method, cap in nats
_LARGE: list[tuple[Method, float]] = [("ipm", 5.0), ("ipm", 9.0)]
_ADMISSIBLE = 1 - 2.0**-45  # total share of the multipliers: rounding of sum, quotient and product stays below 1
_MARGIN = 1e-9  # first margin of a limit, relative to it: what HiGHS is asked for
_TRIALS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A lower bound with the dual (n,) and the admissible multipliers (k,) that prove it, and its effective cost."""

    value: float
    dual: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    folded: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """minimise <cost, P> + t over the private tables of `problem` with `rows`.

    constant, the objective of the best constant report; unit, the scale of objectives in the linear program.
    """

    problem: DesignProblem
    cost: NDArray[np.float64]
    rows: SideRows
    pricer: ConePricer
    constant: float
    unit: float

    @property
    def routes(self) -> list[tuple[Method, float]]:
        """Methods and caps, in the order of trial."""
        return _SMALL if count_rows(self.problem, self.rows.size) <= SIMPLEX_LIMIT else _LARGE

    def solve(
        self, rows: SideRows, method: Method, cap: float, tolerance: float, time_limit: float
    ) -> tuple[WholeProgram, LinearSolution]:
        """The point that HiGHS finds, with `rows` in place of the task's."""
        whole = assemble_whole(self.problem, self.cost, rows, self.pricer.distance, cap=cap, unit=self.unit)
        return whole, solve_linear_program(whole.program, method=method, tolerance=tolerance, time_limit=time_limit)

    def bound(self, dual: NDArray[np.float64], multipliers: NDArray[np.float64]) -> Bound:
        """The best bound over multipliers of the row sums below `dual`."""
        admissible = project_dual(multipliers, self.rows.share)
        return self._bound(dual, admissible, self.rows.fold_down(self.cost, admissible))

    def polished(self, bound: Bound, gap: float, time_limit: float) -> Bound:
        """The bound with other multipliers of the row sums, those of the optimal program for its effective cost.

        The least entry of every row is taken off that cost, so that it is a loss, and comes back with the multipliers.
        """
        least = bound.folded.min(axis=1)
        loss = (bound.folded - least[:, None]) * len(least)
        if not loss.max() > 0:
            return bound
        judged = replace(self.problem, prior=uniform(self.problem.domain), loss=TableLoss(values=loss))
        design = aggregate(judged, gap=gap, time_limit=time_limit)
        found = self._bound(design.dual + least, bound.multipliers, bound.folded)
        return found if found.value > bound.value else bound

    def _bound(self, dual: NDArray[np.float64], admissible: NDArray[np.float64], folded: NDArray[np.float64]) -> Bound:
        found = homogeneous_bound(
            self.pricer, folded, dual, loss=self.unit, charge=charge_of(self.rows.limit, admissible)
        )
        return Bound(value=found.value, dual=found.dual, multipliers=admissible, folded=folded)

    def certify(
        self, table: NDArray[np.float64], charge: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """A certified table near `table`, and by how much it may exceed the limits (k,).

        Repaired with the kernels and without, slack put where `charge` (n, m) is least; what breaks no limit is
        preferred, then the smaller objective.
        """
        square = self.problem.reports.size == self.problem.domain.size
        found = []
        for kernel in [np.exp(-self.pricer.distance).T, None] if square else [None]:
            mass = repair(np.maximum(table, 0.0), self.problem.edges, charge, kernel)
            excess = self.rows.excess_up(mass / float(ROW_SUM))
            found.append((float(excess.max(initial=0.0)), self.value(mass), mass, excess))
        _, _, mass, excess = min(found, key=lambda entry: entry[:2])
        return mass, excess

    def value(self, mass: NDArray[np.uint64]) -> float:
        """The objective of a certified table."""
        return objective(self.cost, self.rows, mass / float(ROW_SUM))


def task_of(program: Coupled) -> Task:
    """The task of a program. Raises: SizeError before allocating what does not fit."""
    problem = program.problem
    require_whole(problem, problem.domain.size, what=f"the {program.name} program")
    rows, cost = program.side_rows(), program.base_cost()
    require_whole(problem, rows.size, what=f"the {program.name} program")
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    exponential = np.exp(-pricer.distance.T / 2)
    exponential /= exponential.sum(axis=1, keepdims=True)
    constant = constant_objective(cost, rows) or 1.0
    unit = max(min(constant, objective(cost, rows, exponential)), RESOLUTION * constant)
    return Task(problem=problem, cost=cost, rows=rows, pricer=pricer, constant=constant, unit=unit)


def solve_coupled(
    program: Coupled,
    *,
    gap: float,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Solve a coupled program to a relative gap; see the module docstring.

    Parameters: gap, target of (objective - lower_bound) / objective; time_limit in seconds, passed to HiGHS;
    on_progress, called after every round.
    Raises: SizeError before allocating a program that does not fit; InfeasibleError where the constraints are proved to
    contradict each other; DesignError where no certified table meets them; SolverError where time ends too early.
    """
    started = time.monotonic()
    task = task_of(program)
    rows = task.rows
    bound, mass, value, reached, number = None, None, math.inf, math.inf, 0
    for method, cap in task.routes:
        margin = np.where(rows.share > 0, 0.0, _MARGIN * rows.size_of_limits)
        for _ in range(_TRIALS):
            left = time_limit - (time.monotonic() - started)
            if left <= 0:
                break
            try:
                whole, solution = task.solve(rows.tightened(margin), method, cap, min(1e-4, gap) / 20, left)
            except SolverError:
                break
            if solution.status == "Infeasible":
                break
            found = task.bound(*whole.multipliers(solution.dual))
            made, excess = task.certify(whole.table(solution.x), found.folded)
            if not excess.any() and task.value(made) < value:
                mass, value = made, task.value(made)
            left = time_limit - (time.monotonic() - started)
            if relative_gap(value, found.value, task.constant) > gap and not excess.any() and left > 0:
                found = task.polished(found, gap / 4, left)
            bound = found if bound is None or found.value > bound.value else bound
            reached = relative_gap(value, bound.value, task.constant) if mass is not None else math.inf
            number += 1
            if on_progress is not None:
                size = whole.program.matrix.shape
                on_progress(_progress(number, value, bound.value, reached, size, time.monotonic() - started))
            if not excess.any():
                break
            margin = np.where(excess > 0, 2 * (margin + excess), margin)
        if reached <= gap:
            break
        task = replace(task, unit=max(min(value, task.unit), RESOLUTION * task.constant))
    timed_out = time.monotonic() - started >= time_limit
    if mass is None or bound is None:
        if not timed_out and (rows.share == 0).any():
            raise no_table(task, program)
        raise SolverError(
            f"stopped ({'time' if timed_out else 'precision'}) before any table was certified",
            field="time_limit",
            value=time_limit,
            remedy="allow more time, or use fewer cells",
        )
    return Design(
        mass=mass,
        objective=value,
        objective_of=program.objective_of,
        lower_bound_of="the program",
        dual=bound.dual,
        multipliers=bound.multipliers,
        lower_bound=bound.value,
        stopped="gap" if reached <= gap else "time" if timed_out else "precision",
    )


def project_dual(multipliers: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multipliers (k,) made >= 0, and scaled until sum share mu is at most 1 exactly, and 1 up to rounding."""
    clipped = np.maximum(multipliers, 0.0)
    total = math.fsum((clipped * share).tolist())
    return clipped if total == 0 else np.where(share > 0, clipped * (_ADMISSIBLE / total), clipped)


def coupled_bound(
    pricer: ConePricer,
    folded: NDArray[np.float64],
    limit: NDArray[np.float64],
    dual: NDArray[np.float64],
    multipliers: NDArray[np.float64],
) -> float:
    """The bound sum lambda + sum_y min(0, price_y) - sum mu h for the effective cost `folded` (n, m), rounded down.

    dual lambda (n,), any numbers; multipliers mu (k,), as `project_dual` returns them; limit h (k,).
    """
    return lower_bound(np.r_[dual, charge_of(limit, multipliers)], pricer.price(folded, dual).value)


def charge_of(limit: NDArray[np.float64], multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The terms -mu h (k,) of the bound, rounded down."""
    return np.nextafter(-multipliers * limit, -np.inf)


def no_table(task: Task, program: Coupled) -> DesignError:
    """Why there is no table: a proof that the limits contradict each other, or the want of one.

    The proof is a positive lower bound of the least t with G P <= h + t |h|.
    """
    rows = replace(task.rows, share=np.where(task.rows.share > 0, 0.0, task.rows.size_of_limits))
    elastic = replace(task, cost=np.zeros_like(task.cost), rows=rows, constant=1.0, unit=1.0)
    for method, cap in task.routes:
        whole, solution = elastic.solve(rows, method, cap, _MARGIN, math.inf)
        bound = elastic.bound(*whole.multipliers(solution.dual))
        if bound.value > 0:
            weight = bound.multipliers * rows.share
            names = [rows.names[k] for k in np.argsort(-weight, kind="stable")[:3] if weight[k] > 0]
            return InfeasibleError(
                f"no mechanism with this claim keeps all limits, which was proved; at fault: {', '.join(names)}",
                field=program.limits_field,
                value=f"{rows.size} limits",
                remedy=f"relax these limits by {math.ceil(1e4 * bound.value) / 100:g} % or more, or use a larger eps",
            )
    return DesignError(
        "no certified table keeps all limits: they leave less room than the solver resolves",
        field=program.limits_field,
        value=f"{rows.size} limits",
        remedy="relax the limits a little",
    )


def _progress(number: int, loss: float, bound: float, gap: float, size: tuple[int, int], seconds: float) -> Progress:
    return Progress(
        method="whole",
        round=number,
        iteration=None,
        loss=loss,
        lower_bound=bound,
        gap=gap,
        variables=size[1],
        constraints=size[0],
        seconds=seconds,
    )
