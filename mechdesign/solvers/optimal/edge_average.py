"""Solve the edge-average program: one optimal program for every part of the domain that its edges hold together.

A part of one place reports what costs it least. Tables and multipliers of the parts are stacked, losses and bounds
weighted with the prior mass of each part.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import expected_loss
from mechdesign.programs.optimal.edge_average import EdgeAverage
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.optimal.aggregation import Design, aggregate


def solve_edge_average(
    program: EdgeAverage,
    *,
    gap: float,
    time_limit: float = np.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """The integer table (n, m) of the program with the bound of the program itself; it is not private at the claim.

    Parameters as in `aggregate`; `stopped` is the word of the first part that ended above the gap, else "gap".
    Raises: SolverError if the time ended before every part had a table.
    """
    started = time.monotonic()
    problem = program.problem
    losses = problem.loss_matrix
    mass = np.ones((problem.domain.size, problem.reports.size), np.uint64)
    dual, bound, stopped = np.zeros(problem.domain.size), 0.0, "gap"
    for part in program.parts():
        weight = float(problem.prior_array[part].sum())
        if len(part) == 1:
            best = int(losses[part[0]].argmin())
            mass[part[0], best] = ROW_SUM - problem.reports.size + 1
            dual[part[0]] = problem.weighted_loss[part[0], best]
            bound += float(dual[part[0]])
            continue
        left = time_limit - (time.monotonic() - started)
        design = aggregate(program.as_optimal(part), gap=gap, time_limit=left, on_progress=on_progress)
        mass[part], dual[part] = design.mass, weight * design.dual
        bound += weight * design.lower_bound
        stopped = design.stopped if stopped == "gap" else stopped
    loss = expected_loss(mass, problem.prior_array, losses)
    return Design(mass=mass, loss=loss, dual=dual, lower_bound=bound, stopped=stopped)
