"""Solve the eikonal weight system; if it has no solution, say so and return a private mechanism all the same."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mechdesign.base import interrupts
from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.errors import SolverError
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.solvers.eikonal.edge_budgets import edge_budget
from mechdesign.solvers.eikonal.negative_weights import ZERO, diagnose
from mechdesign.solvers.eikonal.padding import PaddedProblem, pad_problem
from mechdesign.solvers.lp.highs import solve_linear_program
from mechdesign.solvers.lp.linear_program import LinearProgram
from mechdesign.solvers.optimal_bound import TABLE_ENDS, optimal_lower_bound
from mechdesign.solvers.result import Report, SolveResult, Status, Stop, Targets, reporter

LP_ENTRIES = 400_000  # coefficients of the fallback program up to which it is solved
_LEAST_TIME = 1.0  # seconds that HiGHS gets


# K w = 1 is solved by one dense factorisation; weights >= 0 are exactly Algorithm 1. Otherwise the problem is padded
# (padding.py), and gets edge budgets (edge_budgets.py) and, if it is small, a linear program. The better table counts.
def solve_weights(program: EikonalWeights, targets: Targets) -> SolveResult:
    """Solve the weight system of `program`, or its fallback; see the module docstring."""
    problem, started, size = program.problem, time.monotonic(), program.problem.domain.size
    late, stopped, report = False, "", reporter(targets.on_progress)
    require_memory(size, size, tables=8, noun="the weight system")
    kernel = program.kernel()
    weight_cost = (problem.weighted_loss * kernel).sum(axis=0)
    # A singular system gives NaN weights, and the fallback.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        factors = scipy.linalg.lu_factor(kernel)
    weights = scipy.linalg.lu_solve(factors, np.ones(size))
    # K' lambda = cost: the multipliers of the row sums, if all weights are positive.
    system_dual = scipy.linalg.lu_solve(factors, weight_cost, trans=1)
    if weights.min() >= -ZERO * weights.max():
        table, dual = kernel * np.maximum(weights, 0.0), system_dual
        parameters: dict[str, Any] = {"remedy": "none", "negative_weights": 0}
    else:
        # Negative weights are never clipped: that breaks the row sums, and dividing rows by their sums breaks privacy.
        diagnosis = diagnose(problem, weights)
        ends = started + TABLE_ENDS * targets.time_limit
        # Ctrl-C in the fallback leaves it at once: a second call without time takes the first remedy as it is.
        fallback = interrupts.interruptible(lambda: _fallback(problem, ends, report), None)
        if fallback is None:
            fallback, stopped = _fallback(problem, -math.inf, report), "interrupt"
        table, dual, remedy, late = fallback
        parameters = {"remedy": remedy, **diagnosis.as_parameters()}
    interrupts.hold()
    report("repair", done=size, total=size, unit="steps")
    mass = repair(table, problem.edges, problem.weighted_loss, kernel)
    # Ctrl-C ends the design, not its table alone: no time is left for a bound.
    if stopped:
        targets = replace(targets, time_limit=0.0)
    duals = (system_dual,) if dual is system_dual else (system_dual, dual)
    bound = optimal_lower_bound(problem, duals, mass=mass, targets=targets, started=started)
    return SolveResult(
        mass=mass,
        dual=bound.dual,
        lower_bound=bound.value,
        stopped=Stop(stopped or ("time" if late else bound.stopped)),
        parameters={**program.parameters(), **parameters},
    )


class _Fallback(NamedTuple):
    """A table (n, n) and multipliers (n,), the remedy in words, and whether the deadline left any remedy out."""

    table: Matrix
    dual: Vector
    remedy: str
    is_late: bool


def _fallback(problem: DesignProblem, deadline: float, report: Report) -> _Fallback:
    """The better one of edge budgets and, while it is small, the linear program."""
    padded = pad_problem(problem)
    where = f"with a frame of {padded.width} cells outside the domain"
    table, is_late = edge_budget(problem, padded, deadline=deadline, report=report)
    best = _Fallback(table, np.zeros(problem.domain.size), f"edge budgets {where}", is_late)
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        return best._replace(is_late=True)
    if problem.domain.size * (padded.size + 1) > LP_ENTRIES:
        return best
    solution = _solve_padded_program(problem, padded, remaining)
    if solution is None:
        return best._replace(is_late=True)
    table, dual = solution
    if (problem.weighted_loss * table).sum() < (problem.weighted_loss * best.table).sum():
        return _Fallback(table, dual, f"linear program {where}", is_late)
    return best


def _solve_padded_program(
    problem: DesignProblem, padded: PaddedProblem, time_limit: float
) -> tuple[Matrix, Vector] | None:
    """Table (n, n) and multipliers (n,) of the linear program; None if time ended it."""
    # The least expected loss over w >= 0, K w = 1, with the kernels of the padded cells: it remedies the boundary.
    n = problem.domain.size
    # The last column is the constant report: with it the program is feasible whatever the kernels are.
    kernel = np.hstack([np.exp(-padded.distances(padded.edges.length)), np.ones((n, 1))])
    target = np.append(padded.target, problem.best_constant)
    program = LinearProgram(
        cost=(problem.weighted_loss[:, target] * kernel).sum(axis=0),
        matrix=sp.csr_array(kernel),
        row_lower=np.ones(n),
        row_upper=np.ones(n),
        linking=n,
    )
    started = time.monotonic()
    try:
        solution = solve_linear_program(program, time_limit=max(time_limit, _LEAST_TIME))
    except SolverError:
        # HiGHS reports no point both when it fails and when time ends.
        if time.monotonic() - started < time_limit:
            raise
        return None
    if solution.status is Status.TIME_LIMIT:
        return None
    columns = kernel * np.maximum(solution.x, 0.0)
    table = padded.gather(columns[:, :-1])
    table[:, problem.best_constant] += columns[:, -1]
    return table, solution.dual
