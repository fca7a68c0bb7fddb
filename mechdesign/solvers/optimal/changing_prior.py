"""Coupled programs where a maximum is minimised, by designs for changing multipliers of the side rows.

    minimise over private P   max over side rows k of (G_k P - h_k) / s_k

By duality this is the maximum over mu >= 0, sum_k s_k mu_k = 1, of the optimal program for the cost sum_k mu_k G_k; for
the worst-case loss mu is a prior over the secrets, and the one that attains it is least favourable. In every round that
program is solved: its bound is one of the coupled program, and every report of its table becomes a column of the master
of rays.py, which recombines them. The master's multipliers, averaged with the best ones so far, are the next mu.

Cutting planes (Kelley 1960, Journal of SIAM 8), one for every report instead of one for every table, centred at the
best point (Wentges 1997, International Transactions in Operational Research 4).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.solvers.optimal.coupled_bound import Bound, project_dual
from mechdesign.solvers.optimal.coupled_task import Task
from mechdesign.solvers.optimal.rays import RayGeneration

_CENTRED = 0.5  # share of the best multipliers in the next ones
_LEAST = 1e-9  # multiplier, as a share: no secret is without weight
_ROUGH, _FINE = 1e-2, 0.2  # gap of the first design; of later ones, as a share of the gap in hand
_TABLES = 0.1  # of the gap asked: no design needs a smaller one
_ROUNDS = 200
_NO_GAIN = 10  # rounds without a better bound or mixture after which this ends
_GAINED = 0.05  # of the gap asked: what is a gain
_SHARE = 0.3  # of the time left that one design may take, and the master
_SHORTEST = 1.0  # seconds that they get


def generate_designs(
    task: Task, rays: RayGeneration, *, gap: float, deadline: float, take: Callable[[Bound, bool], float]
) -> str:
    """Rounds of a design and the master until the certified gap is met; returns "gap", "time" or "precision".

    take, as in `rays.generate`. Cost of a round: an optimal program, and a linear one of n + k rows.
    Raises: SolverError where the master has no optimum; OutOfTime where pricing is late.
    """
    count, share = task.rows.size, task.rows.share
    multipliers = project_dual(np.ones(count), share)
    best, design, wanted, since, reached = None, None, _ROUGH, 0, np.inf
    reports = np.arange(task.cost.shape[1])
    for _ in range(_ROUNDS):
        left = deadline - time.monotonic()
        if left <= 0:
            return "time"
        spread = np.maximum(multipliers, _LEAST / (count * share))
        spread = project_dual(spread, share)
        made = task.designed(task.rows.fold_down(task.cost, spread), wanted, max(_SHORTEST, _SHARE * left), design)
        if made is None:
            return "precision"
        design, dual = made
        found = task.bound(dual, spread)
        rays.waiting.append((np.ascontiguousarray(design.mass.T / float(ROW_SUM)), reports))
        before = rays.objective
        rays.solve(max(_SHORTEST, _SHARE * (deadline - time.monotonic())))
        gained = best is None or found.value > best.value + _GAINED * gap * rays.objective
        since = 0 if gained or rays.objective < before * (1 - _GAINED * gap) else since + 1
        if best is None or found.value > best.value:
            best = found
        near = relative_gap(rays.objective, best.value, rays.scale)
        reached = take(best, near <= gap or since == _NO_GAIN)
        if reached <= gap:
            return "gap"
        if since == _NO_GAIN:
            break
        wanted = max(_TABLES * gap, min(_ROUGH, _FINE * near))
        multipliers = _CENTRED * best.multipliers + (1 - _CENTRED) * project_dual(rays.multipliers, share)
    return "precision"
