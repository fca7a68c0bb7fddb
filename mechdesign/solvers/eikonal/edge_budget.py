"""Edge budgets: a private mechanism with eikonal kernels where K w = 1 has no solution w >= 0.

Give every edge a length x_e <= d_e, take K = e^{-D} with D the distances of x, weights w >= 0 and rows divided by their
sums s = K w. Then P(y|u) / P(y|v) <= e^{x_e + |ln s(u) - ln s(v)|} on edge e = (u, v): private as soon as
x_e + |ln s(u) - ln s(v)| <= d_e everywhere. The lengths pay for what normalising the rows costs, edge by edge, where a
global scaling would pay for the worst edge everywhere. Weights follow the expectation-maximisation update
w <- w K'(1 / K w) / K'1, which keeps them positive and levels s. A last common factor in [1/2, 1] settles what is left:
at 1/2 the condition holds for any weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.eikonal.frame import Framed

ROUNDS = 12
UPDATES = 40  # of the weights per round
BISECTIONS = 12
_KEPT = 0.3  # share of the previous length in the next, and least share of d_e an edge keeps
_SLACK = 1e-12  # nats
_LAST = 3.0  # rounds' time that is kept for the last factor


def edge_budget(
    problem: DesignProblem,
    frame: Framed,
    *,
    deadline: float = math.inf,
    told: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[NDArray[np.float64], bool]:
    """A table (n, n), rows summing to 1, private for the edges of `problem` up to rounding; and whether the deadline,
    of time.monotonic(), left rounds out. told is called with the rounds done of all.

    Cost: 25 rounds of n shortest-path searches and 40 products with a matrix (n, k).
    """
    inner = np.full(frame.size, -1, np.int64)
    inner[frame.inner] = np.arange(len(frame.inner))
    tail, head = inner[frame.edges.tail], inner[frame.edges.head]
    own = (tail >= 0) & (head >= 0)
    tail, head, full = tail[own], head[own], frame.edges.length[own]
    length = frame.edges.length.copy()
    weights = np.ones(frame.size)
    slowest, began, late, total = 0.0, time.monotonic(), False, ROUNDS + BISECTIONS
    for number in range(ROUNDS):
        late = time.monotonic() + _LAST * slowest > deadline
        if late:
            break
        kernel = np.exp(-frame.distances(length))
        weights, log_rows = _level_rows(kernel, weights)
        spent = np.abs(log_rows[tail] - log_rows[head])
        if (length[own] + spent <= full + _SLACK).all():
            break
        wanted = _KEPT * length[own] + (1 - _KEPT) * np.maximum(full - spent, _KEPT * full)
        length[own] = wanted if number < ROUNDS // 3 else np.minimum(length[own], wanted)
        slowest, began = max(slowest, time.monotonic() - began), time.monotonic()
        told("edge budgets", number + 1, total)
    distance = frame.distances(length)
    low, high = 0.5, 1.0
    best = _normalised(distance, low, weights)[0]
    for number in range(BISECTIONS):
        late |= time.monotonic() + slowest > deadline
        if late:
            break
        factor = high if high == 1.0 and low == 0.5 else (low + high) / 2
        table, log_rows = _normalised(distance, factor, weights)
        if (factor * length[own] + np.abs(log_rows[tail] - log_rows[head]) <= full + _SLACK).all():
            low, best = factor, table
            if factor == 1.0:
                break
        else:
            high = min(factor, np.nextafter(1.0, 0.0))
        told("edge budgets", ROUNDS + number + 1, total)
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
