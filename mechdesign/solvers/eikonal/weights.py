"""Solve the eikonal weight system; where it has no solution, say so and return a private mechanism all the same.

1. K w = 1 by one dense factorisation. All weights >= 0: done, exactly Algorithm 1.
2. Otherwise the columns are too few, and reports in a frame outside the domain are added. Two fallbacks are tried and
   the one with the smaller expected loss is kept: edge budgets (edge_budget.py), which help against both causes; and,
   while it is small, the linear program that minimises the expected loss subject to w >= 0, K w = 1 over the kernels of
   cells and frame, with a constant report to keep it feasible: better at the boundary, no help against curvature.
Weights are never clipped: that would break the row sums, and normalising them would break privacy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import SolverError
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.eikonal.weights import ZERO, EikonalWeights, diagnose
from mechdesign.programs.program import LinearProgram
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.eikonal.edge_budget import edge_budget
from mechdesign.solvers.eikonal.frame import Framed, framed
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.highs import TIMED_OUT, solve_linear_program
from mechdesign.solvers.kernels.pricing import (
    ConePricer,
    anchor_bound,
    anchor_multipliers,
    homogeneous_bound,
    lower_bound,
)
from mechdesign.solvers.kernels.progress import Reported, Streaming

LP_ENTRIES = 400_000  # coefficients of the fallback program up to which it is solved
_DROP = 1e-9
_SEARCH = 0.7  # share of the time limit for the fallback; the rest is for the repair and the bound
_LATE, _LEAST_TIME = 1.0, 1.0  # seconds beyond it that pricing may take, and that HiGHS gets


def solve_weights(
    program: EikonalWeights,
    *,
    time_limit: float = math.inf,
    on_progress: Callable[[Reported], None] | None = None,
) -> Design:
    """Solve the weight system of `program`, or its fallback; see the module docstring.

    `stopped` is "time" where the limit left out rounds of the fallback, or the better of two bounds. on_progress is
    called after every stage.
    Cost: O(n^3) for the factorisation, O(n^2) for each pricing pivot. Raises: SizeError for tables that do not fit.
    """
    problem, started, size = program.problem, time.monotonic(), program.problem.domain.size
    deadline, late = started + time_limit, False

    def tell(stage: str, done: int, total: int) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - started
            on_progress(Streaming(stage=stage, done=done, total=total, kappa=None, seconds=seconds, unit="steps"))

    require_memory(problem.domain.size, problem.domain.size, tables=8, what="the weight system")
    kernel = program.kernel()
    own_cost = (problem.weighted_loss * kernel).sum(axis=0)
    factors = scipy.linalg.lu_factor(kernel)
    weights = scipy.linalg.lu_solve(factors, np.ones(problem.domain.size))
    if weights.min() >= -ZERO * weights.max():
        table = kernel * np.maximum(weights, 0.0)
        dual = scipy.linalg.lu_solve(factors, own_cost, trans=1)
        parameters: dict[str, Any] = {"remedy": "none", "negative_weights": 0}
    else:
        diagnosis = diagnose(problem, weights)
        table, dual, fallback, late = _fallback(problem, started + _SEARCH * time_limit, tell)
        parameters = {"remedy": fallback, **diagnosis.as_parameters()}
    tell("repair", size, size)
    mass = repair(table, problem.edges, problem.weighted_loss, kernel)
    tell("bound", 0, size)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    pricer.deadline = deadline + _LATE
    try:
        bound = lower_bound(dual, pricer.price(problem.weighted_loss, dual).value)
        if bound == 0 and problem.constant_loss > 0:
            dual, bound = _other_bound(problem, pricer, scipy.linalg.lu_solve(factors, own_cost, trans=1))
    except OutOfTime:
        late = True
        bound, dual = anchor_multipliers(pricer, problem.weighted_loss)
    return Design(
        mass=mass,
        dual=dual,
        lower_bound=bound,
        stopped="time" if late else "",
        parameters={**program.parameters(), **parameters},
    )


def _other_bound(
    problem: DesignProblem, pricer: ConePricer, first: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Multipliers and their bound: those of the weight system lowered until they hold, or those of one secret."""
    cost = problem.weighted_loss
    lowered = homogeneous_bound(pricer, cost, first, loss=problem.constant_loss)
    best = max(lowered, anchor_bound(pricer, cost), key=lambda bound: bound.value)
    return best.dual, best.value


def _fallback(
    problem: DesignProblem, deadline: float, tell: Callable[[str, int, int], None]
) -> tuple[NDArray[np.float64], NDArray[np.float64], str, bool]:
    """The better fallback: table (n, n), multipliers (n,), its description, and whether the deadline left any out."""
    frame = framed(problem)
    around = f"with a frame of {frame.width} cells outside the domain"
    budgets, late = edge_budget(problem, frame, deadline=deadline, told=tell)
    best = budgets, np.zeros(problem.domain.size), f"edge budgets {around}"
    left = deadline - time.monotonic()
    if problem.domain.size * (frame.size + 1) <= LP_ENTRIES and left > 0:
        made = _framed_program(problem, frame, left)
        if made is None:
            return *best, True
        table, dual = made
        if (problem.weighted_loss * table).sum() < (problem.weighted_loss * best[0]).sum():
            best = table, dual, f"linear program {around}"
    return *best, late or left <= 0


def _framed_program(
    problem: DesignProblem, frame: Framed, time_limit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Table (n, n) and multipliers (n,) of the linear program; None where time ended it."""
    n = problem.domain.size
    kernel = np.hstack([np.exp(-frame.distances(frame.edges.length)), np.ones((n, 1))])
    target = np.append(frame.target, problem.best_constant)
    program = LinearProgram(
        cost=(problem.weighted_loss[:, target] * kernel).sum(axis=0),
        matrix=sp.csr_array(np.where(kernel > _DROP, kernel, 0.0)),
        row_lower=np.ones(n),
        row_upper=np.ones(n),
        linking=n,
    )
    started = time.monotonic()
    try:
        solution = solve_linear_program(program, method="simplex", time_limit=max(time_limit, _LEAST_TIME))
    except SolverError:
        if time.monotonic() - started < time_limit:
            raise
        return None
    if solution.status == TIMED_OUT:
        return None
    columns = kernel * np.maximum(solution.x, 0.0)
    table = frame.gather(columns[:, :-1])
    table[:, problem.best_constant] += columns[:, -1]
    return table, solution.dual
