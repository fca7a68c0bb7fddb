"""Solve the edge-average program: one optimal program for every part of the domain that its edges hold together.

A part of one place reports what costs it least. Tables of the parts are stacked, bounds weighted with the prior mass of
each part.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import certified_scale
from mechdesign.programs.optimal.edge_average import EdgeAverage
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.optimal.aggregation import aggregate


def solve_edge_average(
    program: EdgeAverage,
    *,
    gap: float,
    time_limit: float = np.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """The integer table (n, m) of the program at the scale that it is certified for; it is not private at the claim.

    Its own lower bound is the parameter program_lower_bound.

    Parameters as in `aggregate`; `stopped` is the word of the first part that ended above the gap, else "gap".
    Raises: SolverError if the time ended before every part had a table.
    """
    started = time.monotonic()
    problem = program.problem
    losses = problem.loss_matrix
    mass = np.ones((problem.domain.size, problem.reports.size), np.uint64)
    bound, stopped = 0.0, "gap"
    for part in program.parts():
        weight = float(problem.prior_array[part].sum())
        if len(part) == 1:
            best = int(losses[part[0]].argmin())
            mass[part[0], best] = ROW_SUM - problem.reports.size + 1
            bound += float(problem.weighted_loss[part[0], best])
            continue
        left = time_limit - (time.monotonic() - started)
        design = aggregate(program.as_optimal(part), gap=gap, time_limit=left, on_progress=on_progress)
        mass[part] = design.mass
        bound += weight * design.lower_bound
        stopped = design.stopped if stopped == "gap" else stopped
    scale = certified_scale(problem, mass)
    return Design(mass=mass, scale=scale, stopped=stopped, parameters={"program_lower_bound": bound})
