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
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import expected_loss, relative_gap
from mechdesign.mechanism.table.repair import repair
from mechdesign.programs.statistical.statistical_design import LARGEST, StatisticalDesign
from mechdesign.setting.problems.estimates import judged_by_estimates
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.statistical.a_optimal import optimal_weights
from mechdesign.solvers.statistical.criterion_bound import bound_criterion
from mechdesign.solvers.statistical.found import LIGHT, Found, design_norm, ray_progress
from mechdesign.solvers.statistical.grid_design import design_on_grid
from mechdesign.solvers.statistical.ray_search import RaySearch, distinct

STARTS = (64, 256)  # of a search, and of the last one
_BLAS = ThreadpoolController()  # matrices of a few hundred rows: threads cost more than they bring
_ROUNDS = 200
_SHARE = 0.25  # of the time, after which no round of the bound starts
_TRIMS = 10
_IDLE = 1e-8  # share of all reports under which a ray leaves the master problem


def solve_statistical(
    program: StatisticalDesign,
    *,
    gap: float,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Design and certify, up to 64 secrets as the module docstring says and with a bound, beyond that by kernels of
    small clusters (solvers/statistical/grid_design.py), without one.

    Parameters: gap, target of (objective - bound) / objective, and, relative to the objective, what a ray has to gain
    for a search to count as successful; time_limit in seconds, after which no round starts, a quarter of it for the
    bound; on_progress, called after every round with the objective before repair.
    Returns: the design with reports of its own; its parameters are the number of searches, the largest gain of a ray
        that the last one found, relative to the objective, and the places that reports are judged by, with their loss.
    Raises: SolverError where the rays to start from do not span all directions.
    Cost: 2 s for 16 secrets, 10 s for 25, minutes for 64, where the time limit is the way to end it; beyond, see
        `design_on_grid`.
    """
    with _BLAS.limit(limits=1):
        if program.problem.domain.size > LARGEST:
            found = design_on_grid(program, gap=gap, time_limit=time_limit, on_progress=on_progress)
        else:
            found = _search(program, gap=gap, time_limit=time_limit, on_progress=on_progress)
    judged, estimates = judged_by_estimates(program.problem, found.table)
    mass = repair(found.table, judged.edges, judged.weighted_loss)
    loss = expected_loss(mass, judged.prior_array, judged.loss_matrix)
    proof: dict[str, Any] = {}
    if found.bound is not None:
        proof = {"dual": found.bound.dual, "multipliers": found.bound.multipliers, "lower_bound": found.bound.value}
        proof["lower_bound_of"] = "any mechanism with this claim"
    return Design(
        problem=judged,
        mass=mass,
        objective=program.objective(mass / float(ROW_SUM), loss),
        objective_of=program.objective_of,
        stopped=found.stopped,
        **proof,
        parameters={
            "rounds": found.rounds,
            "largest_gain_found": found.gain if math.isfinite(found.gain) else None,
            "estimates": estimates.tolist(),
            "loss_of_estimates": program.problem.loss.name,
        },
    )


def _search(
    program: StatisticalDesign, *, gap: float, time_limit: float, on_progress: Callable[[Progress], None] | None
) -> Found:
    started = time.monotonic()
    pool, rays, norm = program.rays, program.rays, design_norm(program)
    n = len(pool)
    search = RaySearch(program, np.random.default_rng(program.seed))
    starts, stopped, gain, number = STARTS[0], "rounds", math.inf, 0
    bound = bound_criterion(program, time_limit=_SHARE * time_limit)
    least = 0.0 if bound is None else bound.value
    while number < _ROUNDS:
        mixture = optimal_weights(rays, norm, charge=program.charges(rays))
        value = mixture.value - program.offset + float(program.charges(rays) @ mixture.theta)
        rays = rays[:, mixture.theta > _IDLE]
        reached = relative_gap(value, least, value)
        if on_progress is not None:
            on_progress(ray_progress(number, value, least, reached, rays.shape, time.monotonic() - started))
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
    for _ in range(_TRIMS):
        theta = optimal_weights(rays, norm, charge=program.charges(rays)).theta
        if theta.min() > LIGHT:
            break
        rays = rays[:, theta > LIGHT]
    table = rays * optimal_weights(rays, norm, charge=program.charges(rays)).theta
    return Found(table=table, stopped=stopped, rounds=number, gain=gain, bound=bound)
