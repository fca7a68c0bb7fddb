"""Design a mechanism for statistics: weights of the rays there are, then rays that improve the mixture, in turn.

1. A relaxation bounds every mechanism with the claim (solvers/statistical/criterion_bound.py).  2. The weights of the
   rays are
found exactly (solvers/statistical/a_optimal.py).  3. Their multipliers price the cone
(solvers/statistical/ray_search.py): rays above 0 come in with their mirror images, those without weight go, and 2. is
repeated. Where a search finds nothing above the target the next has four times its starts.  4. When the bound is met,
or the last search finds nothing, or time ends, light rays are dropped, and the table is repaired and certified.
Rays are searched for, not enumerated: the design is the best one found, and how far it may be from the optimum is what
the bound says, not the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from threadpoolctl import ThreadpoolController

from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.statistical.fisher_information import criterion
from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.statistical.a_optimal import optimal_weights
from mechdesign.solvers.statistical.criterion_bound import bound_criterion
from mechdesign.solvers.statistical.ray_search import RaySearch, distinct

STARTS = (64, 256)  # of a search, and of the last one
_BLAS = ThreadpoolController()  # matrices of a few hundred rows: threads cost more than they bring
_ROUNDS = 200
_SHARE = 0.25  # of the time, after which no round of the bound starts
_TRIMS = 10
_IDLE = 1e-8  # share of all reports under which a ray leaves the master problem
LIGHT = 1e-6  # share of all reports under which a report is dropped from the design


def solve_statistical(
    program: StatisticalDesign,
    *,
    gap: float,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Design, certify and bound; see the module docstring.

    Parameters: gap, target of (criterion - bound) / criterion, and, relative to the criterion, what a ray has to gain
    for a search to count as successful; time_limit in seconds, after which no round starts, a quarter of it for the
    bound; on_progress, called after every round with the criterion before repair.
    Returns: the design with reports of its own; its parameters are the number of searches, the largest gain of a ray
        that the last one found, relative to the criterion, and the places that reports are judged by, with their loss.
    Raises: SolverError where the rays to start from do not span all directions.
    Cost: 2 s for 16 secrets, 10 s for 25, minutes for 64, where the time limit is the way to end it.
    """
    started = time.monotonic()
    pool, rays, norm = program.rays, program.rays, program.norm
    n = len(pool)
    search = RaySearch(program.problem, norm, np.random.default_rng(program.seed))
    starts, stopped, gain, number = STARTS[0], "rounds", math.inf, 0
    with _BLAS.limit(limits=1):
        bound = bound_criterion(program, time_limit=_SHARE * time_limit)
        least = 0.0 if bound is None else bound.value
        while number < _ROUNDS:
            mixture = optimal_weights(rays, norm)
            value, rays = mixture.value - program.offset, rays[:, mixture.theta > _IDLE]
            reached = relative_gap(value, least, value)
            if on_progress is not None:
                on_progress(_progress(number, value, least, reached, rays.shape, time.monotonic() - started))
            if reached <= gap or time.monotonic() - started > time_limit:
                stopped = "gap" if reached <= gap else "time"
                break
            found, worth = search.find(mixture, pool, rays, starts)
            gain, number = max(worth, 0.0) / value, number + 1
            if gain <= gap and starts == STARTS[1]:
                stopped = "search"
                break
            starts = STARTS[1] if gain <= gap else starts
            rays = distinct(np.column_stack([rays, found[:, : n * (n + 1)]]))
        table = _weighted(rays, norm)
    judged, estimates = judged_by_estimates(program.problem, table)
    mass = repair(table, judged.edges, judged.weighted_loss)
    proof: dict[str, Any] = {}
    if bound is not None:
        proof = {"dual": bound.dual, "multipliers": bound.multipliers, "lower_bound": bound.value}
        proof["lower_bound_of"] = "any mechanism with this claim"
    return Design(
        problem=judged,
        mass=mass,
        objective=criterion(mass / float(ROW_SUM), judged.prior_array, norm),
        objective_of=program.objective_of,
        stopped=stopped,
        **proof,
        parameters={
            "rounds": number,
            "largest_gain_found": gain if math.isfinite(gain) else None,
            "estimates": estimates.tolist(),
            "loss_of_estimates": program.problem.loss.name,
        },
    )


def _weighted(rays: NDArray[np.float64], norm: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table (n, m) of rays (n, k) at their best weights, without the light ones."""
    for _ in range(_TRIMS):
        theta = optimal_weights(rays, norm).theta
        if theta.min() > LIGHT:
            break
        rays = rays[:, theta > LIGHT]
    return np.asarray(rays * optimal_weights(rays, norm).theta)


def judged_by_estimates(problem: DesignProblem, table: NDArray[np.float64]) -> tuple[DesignProblem, NDArray[np.int64]]:
    """The problem with the m reports of `table` (n, m), and the estimates z(y) (m,) that judge them.

    z(y) is the report of the problem with the least posterior expected loss after y, and the loss of y is that of z(y):
    what the design costs when each report has to be read as one place. The reports of one estimate stand in a row
    through its place, along the first axis, shorter than half the least distance of two places.
    """
    loss, places = problem.loss_matrix, problem.reports
    estimates = np.argmin((problem.prior_array[:, None] * table).T @ loss, axis=1)
    gap = float(pdist(places.points).min())
    points = places.points[estimates]
    for place in np.unique(estimates):
        row = np.flatnonzero(estimates == place)
        points[row, 0] += gap / 4 * (2 * np.arange(1, len(row) + 1) / (len(row) + 1) - 1)
    kind: Literal["nodes", "points"] = "nodes" if places.kind == "nodes" else "points"
    reports = Domain(kind=kind, points=points, unit=places.unit)
    return replace(problem, loss=TableLoss(values=loss[:, estimates]), reports=reports, query=None), estimates


def _progress(number: int, value: float, bound: float, gap: float, size: tuple[int, ...], seconds: float) -> Progress:
    return Progress(
        method="rays",
        round=number,
        iteration=None,
        loss=value,
        lower_bound=bound,
        gap=gap,
        variables=size[1],
        constraints=size[0],
        seconds=seconds,
    )
