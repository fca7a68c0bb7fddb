"""The task of a coupled program: what its solvers share, how a table is certified for it, and how it is bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import RESOLUTION
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.optimal.coupled import Coupled, SideRows, constant_objective, objective
from mechdesign.programs.optimal.whole import MOST_ROWS, WholeProgram, assemble_whole, count_rows, require_whole
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.objective.priors import uniform
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.highs import LinearSolution, Method, solve_linear_program
from mechdesign.solvers.kernels.pricing import ConePricer, anchor_bound
from mechdesign.solvers.optimal.aggregation import aggregate
from mechdesign.solvers.optimal.attempts import WHOLE_LIMIT
from mechdesign.solvers.optimal.coupled_bound import Bound, best_bound, project_dual
from mechdesign.solvers.optimal.rays import SECRETS, suits

SIMPLEX_LIMIT = 10_000  # rows up to which the simplex method is used
_SMALL: list[tuple[Method, float]] = [("simplex", 9.0), ("simplex", 18.0), ("ipm", 9.0)]  # method, cap in nats
_LARGE: list[tuple[Method, float]] = [("ipm", 5.0), ("ipm", 9.0)]
_LONG = 3.0  # median edge in nats from which rays are faster than the whole program, whose rows couple all reports
FIRST_MARGIN = 1e-9  # first margin of a limit, relative to it: what HiGHS is asked for


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
    def rays_first(self) -> bool:
        """Whether rays are few."""
        return suits(self.problem.edges.length, _LONG) and self.problem.domain.size <= SECRETS

    @property
    def designs_first(self) -> bool:
        """Whether the side rows share one maximum, and the whole program is large: multipliers are a prior then."""
        large = count_rows(self.problem, self.rows.size) > WHOLE_LIMIT
        return large and bool((self.rows.share > 0).all()) and self.problem.domain.size <= SECRETS

    @property
    def first_margin(self) -> NDArray[np.float64]:
        """What limits (k,) are lowered by at first; 0 on rows with a share."""
        return np.where(self.rows.share > 0, 0.0, FIRST_MARGIN * self.rows.size_of_limits)

    @property
    def routes(self) -> list[tuple[Method, float]]:
        """Methods and caps of the whole program, in the order of trial; none where it is too large."""
        if count_rows(self.problem, self.rows.size) > MOST_ROWS:
            return []
        return _SMALL if count_rows(self.problem, self.rows.size) <= SIMPLEX_LIMIT else _LARGE

    def solve(
        self, rows: SideRows, method: Method, cap: float, tolerance: float, time_limit: float
    ) -> tuple[WholeProgram, LinearSolution]:
        """The point that HiGHS finds, with `rows` in place of the task's."""
        whole = assemble_whole(self.problem, self.cost, rows, self.pricer.distance, cap=cap, unit=self.unit)
        return whole, solve_linear_program(whole.program, method=method, tolerance=tolerance, time_limit=time_limit)

    def bound(self, dual: NDArray[np.float64], multipliers: NDArray[np.float64]) -> Bound:
        """The best bound over multipliers of the row sums below `dual`."""
        return best_bound(self.pricer, self.cost, self.rows, dual, multipliers, loss=self.unit)

    def first_bound(self) -> Bound:
        """A bound that no search is needed for, with equal multipliers of the side rows that have a share."""
        multipliers = project_dual(np.where(self.rows.share > 0, 1.0, 0.0), self.rows.share)
        found = anchor_bound(self.pricer, self.rows.fold_down(self.cost, multipliers))
        return self.bound(found.dual, multipliers)

    def designed(
        self, folded: NDArray[np.float64], gap: float, time_limit: float, start: Design | None = None
    ) -> tuple[Design, NDArray[np.float64]] | None:
        """The design of the optimal program for an effective cost (n, m), and multipliers (n,) of its row sums; None
        where a constant report costs no more than any table.

        The least entry of every row is taken off that cost, so that it is a loss, and comes back with the multipliers.
        """
        least = folded.min(axis=1)
        loss = (folded - least[:, None]) * len(least)
        if not loss.max() > 0:
            return None
        judged = replace(self.problem, prior=uniform(self.problem.domain), loss=TableLoss(values=loss))
        try:
            design = aggregate(judged, gap=gap, time_limit=time_limit, start=start)
        except InputError:
            return None
        return design, design.dual + least

    def polished(self, bound: Bound, gap: float, time_limit: float) -> Bound:
        """The bound with other multipliers of the row sums, those of the optimal program for its effective cost."""
        made = self.designed(bound.folded, gap, time_limit)
        if made is None:
            return bound
        found = self.bound(made[1], bound.multipliers)
        return found if found.value > bound.value else bound

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
            excess, value = self.judged(mass)
            found.append((float(excess.max(initial=0.0)), value, mass, excess))
        _, _, mass, excess = min(found, key=lambda entry: entry[:2])
        return mass, excess

    def judged(self, mass: NDArray[np.uint64]) -> tuple[NDArray[np.float64], float]:
        """By how much a certified table may exceed the limits (k,), and its objective."""
        return self.rows.excess_up(mass / float(ROW_SUM)), self.value(mass)

    def value(self, mass: NDArray[np.uint64]) -> float:
        """The objective of a certified table."""
        return objective(self.cost, self.rows, mass / float(ROW_SUM))


def task_of(program: Coupled) -> Task:
    """The task of a program. Raises: SizeError before allocating what does not fit."""
    problem = program.problem
    few, what = suits(problem.edges.length, _LONG) and problem.domain.size <= SECRETS, f"the {program.name} program"
    if problem.domain.size > SECRETS:
        require_whole(problem, problem.domain.size, what=what)
    rows, cost = program.side_rows(), program.base_cost()
    if not few and not (problem.domain.size <= SECRETS and (rows.share > 0).all()):
        require_whole(problem, rows.size, what=what)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    exponential = np.exp(-pricer.distance.T / 2)
    exponential /= exponential.sum(axis=1, keepdims=True)
    constant = constant_objective(cost, rows) or 1.0
    unit = max(min(constant, objective(cost, rows, exponential)), RESOLUTION * constant)
    return Task(problem=problem, cost=cost, rows=rows, pricer=pricer, constant=constant, unit=unit)
