"""Solve the eikonal weight system; where it has no solution, say so and return the best private mechanism at hand.

1. K w = 1 by one dense factorisation. All weights >= 0: done, exactly Algorithm 1.
2. Otherwise the columns are too few. Add the kernels of a frame of reports outside the domain (moved to the nearest
   cell afterwards, which is post-processing) and one constant report, and choose the weights by a linear program:
   minimise the expected loss subject to w >= 0, K w = 1. Every column is private, and the constant report keeps it
   feasible.
3. Where that program is too large, the exponential mechanism e^{-d/2}, rows normalised, which is always private.
Weights are never clipped: that would break the row sums, and normalising them would break privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from mechdesign.mechanism.repair import repair
from mechdesign.programs.eikonal_weights import EikonalWeights, diagnose
from mechdesign.programs.program import LinearProgram
from mechdesign.setting.domain import Domain
from mechdesign.setting.metrics import Eikonal, Euclidean
from mechdesign.setting.problem import DesignProblem
from mechdesign.setting.size import require_memory
from mechdesign.solvers.highs import solve_linear_program
from mechdesign.solvers.pricing import ConePricer, lower_bound

ZERO = 1e-12  # weights above -ZERO times the largest are rounding, and count as zero
FRAME_NATS = 3.0  # the frame is at least this wide, measured at the smallest eps
FRAME_CELLS = 6  # and at most this many cells
LP_ENTRIES = 3_000_000  # coefficients of the remedy program up to which it is solved
_DROP = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class EikonalDesign:
    """Certified mass (n, n), the multipliers (n,) with the lower bound on the optimal program, and what was done."""

    mass: NDArray[np.uint64]
    dual: NDArray[np.float64]
    lower_bound: float
    parameters: dict[str, Any]


def solve_weights(program: EikonalWeights) -> EikonalDesign:
    """Solve the weight system of `program`, or its remedy; see the module docstring.

    Cost: O(n^3) for the factorisation, O(n^2) for each pricing pivot. Raises: SizeError for tables that do not fit.
    """
    problem = program.problem
    require_memory(problem.domain.size, problem.domain.size, tables=8, what="the weight system")
    kernel = program.kernel()
    own_cost = (problem.cost * kernel).sum(axis=0)
    factors = scipy.linalg.lu_factor(kernel)
    weights = scipy.linalg.lu_solve(factors, np.ones(problem.domain.size))
    if weights.min() >= -ZERO * weights.max():
        table = kernel * np.maximum(weights, 0.0)
        dual = scipy.linalg.lu_solve(factors, own_cost, trans=1)
        parameters: dict[str, Any] = {"remedy": "none", "negative_weights": 0}
    else:
        diagnosis = diagnose(problem, weights)
        table, dual, remedy = _remedy(problem, kernel)
        parameters = {"remedy": remedy, **diagnosis.as_parameters()}
    mass = repair(table, problem.edges, problem.cost, kernel)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    bound = lower_bound(dual, pricer.price(problem.cost, dual).value)
    return EikonalDesign(mass=mass, dual=dual, lower_bound=bound, parameters={**program.parameters(), **parameters})


def _remedy(
    problem: DesignProblem, kernel: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    n = problem.domain.size
    frame, target, width = _frame(problem)
    columns = np.hstack([kernel, frame, np.ones((n, 1))])
    target = np.concatenate([np.arange(n), target, [problem.best_constant]])
    if columns.size > LP_ENTRIES:
        exponential = np.exp(-problem.distances / 2)
        return (
            exponential / exponential.sum(axis=1, keepdims=True),
            np.zeros(n),
            "exponential mechanism, the program being too large",
        )
    program = LinearProgram(
        cost=(problem.cost[:, target] * columns).sum(axis=0),
        matrix=sp.csr_array(np.where(columns > _DROP, columns, 0.0)),
        row_lower=np.ones(n),
        row_upper=np.ones(n),
        linking=n,
    )
    solution = solve_linear_program(program, method="simplex")
    spread = columns * np.maximum(solution.x, 0.0)
    table = np.zeros((n, n))
    np.add.at(table.T, target, spread.T)
    constant = float(solution.x[-1])
    return (
        table,
        solution.dual,
        f"frame of {width} cells outside the domain and a constant report of weight {constant:.3g}",
    )


def _frame(problem: DesignProblem) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Kernels (n, k) of k reports around a grid, the cell each is moved to, and the width of the frame in cells."""
    domain, metric = problem.domain, problem.metric
    if domain.cell is None or domain.shape is None or not isinstance(metric, (Eikonal, Euclidean)):
        return np.zeros((domain.size, 0)), np.zeros(0, np.int64), 0
    level = metric.smallest_level
    assert level is not None and domain.origin is not None
    width = min(FRAME_CELLS, max(1, math.ceil(FRAME_NATS / (level * min(domain.cell)))))
    wide = Domain.grid(
        [k + 2 * width for k in domain.shape],
        cell=domain.cell,
        unit=domain.unit,
        origin=[o - width * h for o, h in zip(domain.origin, domain.cell, strict=True)],
        mask=np.pad(domain.lookup >= 0, width, constant_values=True),
    )
    core = wide.lookup[tuple(slice(width, -width) for _ in domain.shape)]
    inner = core[domain.lookup >= 0]
    outer = np.setdiff1d(np.arange(wide.size), inner)
    distance = dijkstra(replace(metric).edges(wide).matrix(wide.size), directed=False, indices=outer)[:, inner]
    _, nearest = cKDTree(domain.points).query(wide.points[outer])
    return np.exp(-distance).T, np.asarray(nearest, np.int64), width
