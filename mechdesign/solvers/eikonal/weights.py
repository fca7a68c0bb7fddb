"""Solve the eikonal weight system; where it has no solution, say so and return a private mechanism all the same.

1. K w = 1 by one dense factorisation. All weights >= 0: done, exactly Algorithm 1.
2. Otherwise the columns are too few, and reports in a frame outside the domain are added, which are moved to the
   nearest cell of the domain afterwards: post-processing. Two fallbacks are tried and the one with the smaller expected
   loss is kept: edge budgets, which help against both causes; and, while it is small, the linear program that minimises
   the expected loss subject to w >= 0, K w = 1 over the kernels of cells and frame, with a constant report to keep it
   feasible: better at the boundary, no help against curvature.
Weights are never clipped: that would break the row sums, and normalising them would break privacy.

Edge budgets. Lengths of edges pay for what dividing the rows by their sums costs (row_sum_budget.py), with w >= 0 and
K = e^{-D} for the distances D of these lengths. Weights follow the expectation-maximisation update
w <- w K'(1 / K w) / K'1, which keeps them positive and levels s. A last common factor in [1/2, 1] settles what is left:
at 1/2 the condition holds for any weights.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from mechdesign.base import interrupts
from mechdesign.base.memory import require_memory
from mechdesign.base.threads import OutOfTime
from mechdesign.errors import SolverError
from mechdesign.mechanism.repair import repair
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.solvers.eikonal.negative_weights import ZERO, diagnose
from mechdesign.solvers.eikonal.row_sum_budget import left, settle, spent
from mechdesign.solvers.lp.highs import solve_linear_program
from mechdesign.solvers.lp.linear_program import LinearProgram
from mechdesign.solvers.optimal_bound import TABLE_ENDS, optimal_lower_bound
from mechdesign.solvers.result import Design, Report, Status, Stop, Targets, reporter, silent

FRAME_NATS = 3.0  # the frame is at least this wide, measured at the smallest eps
FRAME_CELLS = 6  # and, where tables hold its columns, at most this many cells
LP_ENTRIES = 400_000  # coefficients of the fallback program up to which it is solved
_LEAST_TIME = 1.0  # seconds that HiGHS gets
ROUNDS = 12
UPDATES = 40  # of the weights per round
BISECTIONS = 12
_SLACK = 1e-12  # nats
_LAST = 3.0  # rounds' time that is kept for the last factor


@dataclass(frozen=True, kw_only=True, eq=False)
class Framed:
    """A problem whose graph is extended by a frame.

    domain, the k places; edges over them; inner (n,), the places that are the secrets; target (k,), the secret that
    each place is moved to; width of the frame in cells, 0 where the domain is no grid.
    """

    domain: Domain
    edges: Edges
    inner: NDArray[np.int64]
    target: NDArray[np.int64]
    width: int

    @property
    def size(self) -> int:
        """Number of places k."""
        return len(self.target)

    def distances(self, length: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shortest paths (n, k) in nats from every secret to every place, for these edge lengths."""
        graph = Edges(tail=self.edges.tail, head=self.edges.head, length=length).matrix(self.size)
        return np.asarray(dijkstra(graph, directed=False, indices=self.inner))

    def gather(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Columns (n, k) merged into reports (n, n)."""
        merged = np.zeros((len(self.inner), len(self.inner)))
        np.add.at(merged.T, self.target, table.T)
        return merged


def frame_width(problem: DesignProblem, most: int = FRAME_CELLS) -> int:
    """Cells of the frame of `framed`."""
    domain, level = problem.domain, problem.metric.smallest_level
    if most == 0 or level is None or domain.cell is None or domain.shape is None:
        return 0
    return min(most, max(1, math.ceil(FRAME_NATS / (level * min(domain.cell)))))


def framed(problem: DesignProblem, most: int = FRAME_CELLS) -> Framed:
    """Extend a grid problem, of a metric with a smallest level, by a frame of at most `most` cells; other problems get
    a frame of width 0.
    """
    domain, metric = problem.domain, problem.metric
    everyone = np.arange(domain.size)
    width = frame_width(problem, most)
    if width == 0:
        return Framed(domain=domain, edges=problem.edges, inner=everyone, target=everyone, width=0)
    assert domain.origin is not None and domain.shape is not None and domain.cell is not None
    wide = Domain.grid(
        [k + 2 * width for k in domain.shape],
        cell=domain.cell,
        unit=domain.unit,
        origin=[o - width * h for o, h in zip(domain.origin, domain.cell, strict=True)],
        mask=np.pad(domain.lookup >= 0, width, constant_values=True),
    )
    core = wide.lookup[tuple(slice(width, -width) for _ in domain.shape)]
    inner = core[domain.lookup >= 0]
    _, target = cKDTree(domain.points).query(wide.points)
    target = np.asarray(target, np.int64)
    target[inner] = everyone
    return Framed(domain=wide, edges=metric.edges(wide), inner=inner, target=target, width=width)


def edge_budget(
    problem: DesignProblem,
    frame: Framed,
    *,
    deadline: float = math.inf,
    report: Report = silent,
) -> tuple[NDArray[np.float64], bool]:
    """A table (n, n), rows summing to 1, private for the edges of `problem` up to rounding; and whether the deadline,
    of time.monotonic(), left rounds out.

    Cost: 25 rounds of n shortest-path searches and 40 products with a matrix (n, k).
    """
    inner = np.full(frame.size, -1, np.int64)
    inner[frame.inner] = np.arange(len(frame.inner))
    tail, head = inner[frame.edges.tail], inner[frame.edges.head]
    own = (tail >= 0) & (head >= 0)
    claim = Edges(tail=tail[own], head=head[own], length=frame.edges.length[own])
    weights, slowest, began, late, total = np.ones(frame.size), 0.0, time.monotonic(), False, ROUNDS + BISECTIONS

    def lengths(potential: NDArray[np.float64]) -> NDArray[np.float64]:
        length = frame.edges.length.copy()
        length[own] = left(claim, potential, _SLACK)
        return length

    def over(factor: float, length: NDArray[np.float64], log_rows: NDArray[np.float64]) -> float:
        return float(((factor * length[own] + spent(claim, log_rows)) / (claim.length + _SLACK)).max(initial=0.0))

    def measure(number: int, potential: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        nonlocal weights, slowest, began, late
        late = time.monotonic() + _LAST * slowest > deadline
        if late:
            raise OutOfTime
        length = lengths(potential)
        weights, log_rows = _level_rows(np.exp(-frame.distances(length)), weights)
        slowest, began = max(slowest, time.monotonic() - began), time.monotonic()
        report("edge budgets", done=number + 1, total=total, unit="steps")
        return log_rows, over(1.0, length, log_rows)

    potential, _ = settle(np.zeros(len(frame.inner)), measure, rounds=ROUNDS, good=1.0)
    length = lengths(potential)
    distance = frame.distances(length)
    low, high = 0.5, 1.0
    best = _normalised(distance, low, weights)[0]
    for number in range(BISECTIONS):
        late |= time.monotonic() + slowest > deadline
        if late:
            break
        factor = high if high == 1.0 and low == 0.5 else (low + high) / 2
        table, log_rows = _normalised(distance, factor, weights)
        if over(factor, length, log_rows) <= 1.0:
            low, best = factor, table
            if factor == 1.0:
                break
        else:
            high = min(factor, np.nextafter(1.0, 0.0))
        report("edge budgets", done=ROUNDS + number + 1, total=total, unit="steps")
    return frame.gather(best), late


def _level_rows(
    kernel: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights after the updates, and the logarithms of the row sums they give."""
    columns = kernel.sum(axis=0)
    for _ in range(UPDATES):
        weights = weights * (kernel.T @ (1 / (kernel @ weights))) / columns
    return weights, np.log(kernel @ weights)


def _normalised(
    distance: NDArray[np.float64], factor: float, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The row-normalised table (n, k) at `factor` times the distances, and the logarithms of its row sums."""
    kernel = np.exp(-factor * distance)
    levelled, log_rows = _level_rows(kernel, weights)
    return kernel * levelled / np.exp(log_rows)[:, None], log_rows


def solve_weights(program: EikonalWeights, targets: Targets) -> Design:
    """Solve the weight system of `program`, or its fallback; see the module docstring.

    `stopped` is "time" where the limit left out rounds of the fallback or the better of two bounds, and "interrupt"
    where Ctrl-C did. The option bound=False leaves the bound out.
    Cost: O(n^3) for the factorisation, O(n^2) for each pricing pivot. Raises: SizeError for tables that do not fit.
    """
    problem, started, size = program.problem, time.monotonic(), program.problem.domain.size
    late, stopped, report = False, "", reporter(targets.on_progress)
    require_memory(size, size, tables=8, what="the weight system")
    kernel = program.kernel()
    own_cost = (problem.weighted_loss * kernel).sum(axis=0)
    with warnings.catch_warnings():  # a singular system has weights that are no numbers: the fallback follows
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        factors = scipy.linalg.lu_factor(kernel)
    weights = scipy.linalg.lu_solve(factors, np.ones(size))
    own_dual = scipy.linalg.lu_solve(factors, own_cost, trans=1)
    if weights.min() >= -ZERO * weights.max():
        table, dual = kernel * np.maximum(weights, 0.0), own_dual
        parameters: dict[str, Any] = {"remedy": "none", "negative_weights": 0}
    else:
        diagnosis = diagnose(problem, weights)
        ends = started + TABLE_ENDS * targets.time_limit
        found = interrupts.search(lambda: _fallback(problem, ends, report), None)
        if found is None:
            found, stopped = _fallback(problem, -math.inf, report), "interrupt"
        table, dual, fallback, late = found
        parameters = {"remedy": fallback, **diagnosis.as_parameters()}
    interrupts.hold()
    report("repair", done=size, total=size, unit="steps")
    mass = repair(table, problem.edges, problem.weighted_loss, kernel)
    if stopped:  # Ctrl-C ends the design, and not its table alone
        targets = replace(targets, time_limit=0.0)
    duals = (own_dual,) if dual is own_dual else (own_dual, dual)
    bound = optimal_lower_bound(problem, duals, mass=mass, targets=targets, started=started)
    return Design(
        mass=mass,
        dual=bound.dual,
        lower_bound=bound.value,
        stopped=Stop(stopped or ("time" if late else bound.stopped)),
        parameters={**program.parameters(), **parameters},
    )


def _fallback(
    problem: DesignProblem, deadline: float, report: Report
) -> tuple[NDArray[np.float64], NDArray[np.float64], str, bool]:
    """The better fallback: table (n, n), multipliers (n,), its description, and whether the deadline left any out."""
    frame = framed(problem)
    around = f"with a frame of {frame.width} cells outside the domain"
    budgets, late = edge_budget(problem, frame, deadline=deadline, report=report)
    best = budgets, np.zeros(problem.domain.size), f"edge budgets {around}"
    left = deadline - time.monotonic()
    if problem.domain.size * (frame.size + 1) <= LP_ENTRIES and left > 0:
        solution = _framed_program(problem, frame, left)
        if solution is None:
            return *best, True
        table, dual = solution
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
        matrix=sp.csr_array(kernel),
        row_lower=np.ones(n),
        row_upper=np.ones(n),
        linking=n,
    )
    started = time.monotonic()
    try:
        solution = solve_linear_program(program, time_limit=max(time_limit, _LEAST_TIME))
    except SolverError:
        if time.monotonic() - started < time_limit:
            raise
        return None
    if solution.status is Status.TIME_LIMIT:
        return None
    columns = kernel * np.maximum(solution.x, 0.0)
    table = frame.gather(columns[:, :-1])
    table[:, problem.best_constant] += columns[:, -1]
    return table, solution.dual
