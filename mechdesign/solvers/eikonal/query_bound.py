"""A lower bound on the optimal program from the solution of a query program.

The program has few kernels, so its multipliers lambda are too large for the private columns that it lacks. Scaled down
they give a bound: <cost_y - c lambda, g> >= 0 for every private g and answer y once c is small. A second direction is
lambda(u) = prior(u) l(u, z) e^{-2 f(u)}, with z the answer that is nearest among the wrong ones and f(u) its distance:
what a wrong answer costs, where privacy makes it likely. Along both and half-way between, c is found by halving.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.eikonal.query_weights import QueryWeights
from mechdesign.solvers.kernels.pricing import ConePricer, anchor_bound, lower_bound

_MIXED = (0.0, 0.5, 1.0)  # shares of the second direction
_HALVINGS = 14
_FEASIBLE = 1e-8  # relative; a bound this near to the sum of the multipliers has no column that is priced too low


def best_bound(program: QueryWeights, first: NDArray[np.float64], loss: float) -> tuple[NDArray[np.float64], float]:
    """Multipliers (n,) and their lower bound on the optimal program.

    first (n,), the multipliers of the program's own solution, and its loss. Cost: 42 pricings of all reports.
    """
    problem = program.problem
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    directions = [way * (loss / way.sum()) for way in (first, _border_multipliers(program)) if way.sum() > 0]
    best, bound = np.zeros(problem.domain.size), 0.0
    for share in _MIXED if directions else ():
        low, high, factor = 0.0, 1.0, 1.0
        way = (1 - share) * directions[0] + share * directions[-1]
        for _ in range(_HALVINGS):
            found = lower_bound(factor * way, pricer.price(problem.weighted_loss, factor * way).value)
            if found > bound:
                best, bound = factor * way, found
            feasible = found >= (1 - _FEASIBLE) * factor * loss
            low, high = (factor, high) if feasible else (low, factor)
            factor = (low + high) / 2
    if bound == 0 and loss > 0:
        last = anchor_bound(pricer, problem.weighted_loss)
        best, bound = last.dual, last.value
    return best, bound


def _border_multipliers(program: QueryWeights) -> NDArray[np.float64]:
    """prior(u) l(u, z) e^{-2 f(u)}, (n,)."""
    secrets = np.arange(program.problem.domain.size)
    wrong = program.distances.copy()
    wrong[secrets, program.query.answer] = np.inf
    nearest = wrong.argmin(axis=1)
    return program.problem.weighted_loss[secrets, nearest] * np.exp(-2 * wrong[secrets, nearest])
