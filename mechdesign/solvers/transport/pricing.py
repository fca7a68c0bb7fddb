"""Pricing of a transport program with all its columns: which ones a solution over some of them lacks, and its bound.

All compiled functions stand in this file: Numba's cache does not notice a change of a callee in another file.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


def cheapest(
    cost: NDArray[np.float64], u: NDArray[np.float64], v: NDArray[np.float64], most: int, below: float = np.inf
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Keys i c + j, sorted, of the `most` least reduced costs under `below` of every row and column; the least by row.

    Reduced costs are cost(i, j) - u(i) + v(j), for cost (r, c). Cost: O(r c).
    """
    keys, least = _cheapest(cost, u, v, min(most, *cost.shape), below)
    return np.unique(keys[keys >= 0]), least


def tightened(cost: NDArray[np.float64], v: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Feasible potentials: u(i) = min_j cost(i, j) + v(j), then the least v (c,) with u(i) - v(j) <= cost(i, j)."""
    return _tightened(cost, v)


@numba.njit(cache=True, nogil=True)
def _insert(value, key, values, keys):  # type: ignore[no-untyped-def]
    """Put (value, key) into the ascending `values` (k,), which lose their last."""
    place = values.size - 1
    while place > 0 and values[place - 1] > value:
        values[place], keys[place] = values[place - 1], keys[place - 1]
        place -= 1
    values[place], keys[place] = value, key


@numba.njit(cache=True, nogil=True)
def _cheapest(cost, u, v, most, below):  # type: ignore[no-untyped-def]
    rows, columns = cost.shape
    keys = np.full((rows + columns, most), -1, np.int64)
    values = np.full((rows + columns, most), below)
    bar = np.full(columns, below)
    least = np.empty(rows)
    for i in range(rows):
        own, lowest = below, np.inf
        for j in range(columns):
            reduced = cost[i, j] - u[i] + v[j]
            lowest = min(lowest, reduced)
            if reduced < own:
                _insert(reduced, i * columns + j, values[i], keys[i])
                own = values[i, most - 1]
            if reduced < bar[j]:
                _insert(reduced, i * columns + j, values[rows + j], keys[rows + j])
                bar[j] = values[rows + j, most - 1]
        least[i] = lowest
    return keys, least


@numba.njit(cache=True, nogil=True)
def _tightened(cost, v):  # type: ignore[no-untyped-def]
    rows, columns = cost.shape
    u, least = np.empty(rows), np.full(columns, -np.inf)
    for i in range(rows):
        lowest = np.inf
        for j in range(columns):
            value = cost[i, j] + v[j]
            if value < lowest:
                lowest = value
        u[i] = lowest
        for j in range(columns):
            value = lowest - cost[i, j]
            if value > least[j]:
                least[j] = value
    return u, least
