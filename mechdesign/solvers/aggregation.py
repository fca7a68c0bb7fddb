"""Adaptive tree aggregation: the optimal program at sizes where the whole linear program does not fit.

1. Every report starts as one variable, its eikonal kernel.  2. HiGHS solves the restricted program.  3. The point is
repaired and certified: an upper bound.  4. Every report is priced exactly: a lower bound.  5. Where a ray with negative
price leaves the eikonal profile the tree of that report is cut. Repeat until the bounds meet.
Small programs start whole (every near node cut): then the first round is the plain linear program. Where the solver's
precision ends above the target they start again from the kernels, then with another scaling of far entries: which one
is accurate depends on how the prior and the distances range.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SolverError
from mechdesign.mechanism.repair import repair
from mechdesign.mechanism.table import expected_loss, relative_gap
from mechdesign.programs.optimal import CAPS, FAR, RestrictedProgram, assemble
from mechdesign.setting.problem import DesignProblem
from mechdesign.solvers.highs import Method, solve_linear_program
from mechdesign.solvers.pricing import ConePricer, lower_bound

WHOLE_LIMIT = 60_000  # constraints of the whole program up to which it is solved at once
SIMPLEX_LIMIT = 3_000  # variables up to which the simplex method is used
_OFF_PROFILE = 1e-9  # change of ln g along a tree edge, against the eikonal profile, that is worth a cut
_ROUNDS = 60
# Before pricing, multipliers are lowered by these shares of themselves and of the loss per secret: a solver's
# multipliers are infeasible by its tolerance, and rays that grow away from the anchor multiply that. A share t costs
# 2 t of the bound.
_SHRINK = (1e-7, 1e-9, 0.0)
_FINE = 1e-6  # target gap from which the smaller shrinks are tried too


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """One round: loss of the best certified table, lower bound, gap, size of the restricted program, seconds so far."""

    round: int
    loss: float
    lower_bound: float
    gap: float
    variables: int
    constraints: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The certified table (n, m), the multipliers (n,) with their bound, and why the search stopped."""

    mass: NDArray[np.uint64]
    loss: float
    dual: NDArray[np.float64]
    lower_bound: float
    stopped: str


def aggregate(
    problem: DesignProblem,
    *,
    gap: float,
    time_limit: float = np.inf,
    whole: bool | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Design:
    """Solve the optimal program of `problem` to a relative gap.

    Parameters: gap, target of (loss - lower_bound) / loss; time_limit in seconds, checked between rounds and passed to
    HiGHS; whole, start from the whole program (default: up to 60,000 constraints); report, called after every round.
    Returns the best certified table found; `stopped` is "gap", "time", "interrupt" (Ctrl-C) or "precision" (the
    solver's accuracy is exhausted above the target).
    Raises: SolverError if no round ended with a table.
    """
    started = time.monotonic()
    anchors = problem.anchors
    pricer = ConePricer(problem.edges, problem.domain.size, anchors)
    fits = 2 * len(problem.edges.tail) * problem.reports.size <= WHOLE_LIMIT
    starts = ([True, False] if fits else [False]) if whole is None else [whole]
    attempts = [(start, other_cap) for other_cap in (False, True) for start in starts]
    near = pricer.distance <= FAR
    start, other_cap = attempts.pop(0)
    cut = near & start
    kernel = np.exp(-pricer.distance).T if problem.reports.size == problem.domain.size else None
    scale = problem.domain.size / problem.constant_loss
    best: NDArray[np.uint64] | None = None
    loss, bound, dual, stopped = np.inf, -np.inf, np.zeros(problem.domain.size), "precision"
    tolerance = min(1e-4, gap)
    try:
        for number in range(_ROUNDS):
            left = time_limit - (time.monotonic() - started)
            if left <= 0:
                stopped = "time"
                break
            method: Method = "simplex" if len(anchors) + int(cut.sum()) <= SIMPLEX_LIMIT else "ipm"
            cap = CAPS[(method == "ipm") != other_cap]
            restricted = assemble(problem, problem.cost * scale, pricer.distance, pricer.parent, cut, cap)
            solution = solve_linear_program(
                restricted.program, method=method, tolerance=tolerance / 20, time_limit=left
            )
            mass = repair(np.maximum(restricted.table(solution.x), 0.0), problem.edges, problem.cost, kernel)
            multipliers = solution.dual / scale
            value = expected_loss(mass, problem.prior_array, problem.loss_matrix)
            gained = value < loss
            if gained:
                best, loss = mass, value
            fresh = np.zeros_like(cut)
            for shrink in _SHRINK if gap <= _FINE else _SHRINK[:1]:
                trial = multipliers - shrink * (np.abs(multipliers) + value / len(multipliers))
                price = pricer.price(problem.cost, trial)
                found = lower_bound(trial, price.value)
                fresh |= _new_cuts(price.rays, price.value, pricer)
                if found > bound:
                    bound, dual, gained = found, trial, True
            reached = relative_gap(loss, bound, problem.constant_loss)
            if report is not None:
                report(_progress(number, loss, bound, reached, restricted, time.monotonic() - started))
            if reached <= gap:
                stopped = "gap"
                break
            fresh &= ~cut
            if not fresh.any() and (method == "simplex" or tolerance <= 1e-10 or not gained):
                if not attempts:
                    break
                start, other_cap = attempts.pop(0)
                cut, tolerance = near & start, min(1e-4, gap)
                continue
            tolerance = max(1e-10, min(tolerance, reached) / (1 if fresh.any() else 10))
            cut |= fresh
    except KeyboardInterrupt:
        stopped = "interrupt"
    if best is None:
        raise SolverError(
            f"stopped ({stopped}) before any table was certified",
            field="time_limit",
            value=time_limit,
            remedy="allow more time",
        )
    return Design(mass=best, loss=loss, dual=dual, lower_bound=bound, stopped=stopped)


def _new_cuts(rays: NDArray[np.float64], value: NDArray[np.float64], pricer: ConePricer) -> NDArray[np.bool_]:
    """Nodes where the ray of a report with negative price leaves the eikonal profile of its parent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = np.log(rays) + pricer.distance
        turn = np.abs(profile - np.take_along_axis(profile, pricer.parent, axis=1))
    return (turn > _OFF_PROFILE * (1 + pricer.distance)) & (value < 0)[:, None]


def _progress(
    number: int, loss: float, bound: float, gap: float, restricted: RestrictedProgram, seconds: float
) -> Progress:
    rows, columns = restricted.program.matrix.shape
    return Progress(
        round=number, loss=loss, lower_bound=bound, gap=gap, variables=columns, constraints=rows, seconds=seconds
    )
