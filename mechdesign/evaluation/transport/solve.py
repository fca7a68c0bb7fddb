"""Solve transport programs between places by column generation from coarse to fine, and certify the result."""

from __future__ import annotations

import numba
import numpy as np
from scipy.spatial.distance import cdist

from mechdesign.base.arrays import Indices, IntegerMatrix, Matrix, Points, Vector
from mechdesign.evaluation.transport.certificate import Certified, Plan, certify, in_order, nothing_to_move
from mechdesign.evaluation.transport.ground import Ground, extension
from mechdesign.evaluation.transport.network_simplex import TransportTree
from mechdesign.evaluation.transport.program import Excess, excess

# Guesses: they change the time, not the result, which is certified.
_FIRST_COLUMNS = 12  # columns of smallest reduced cost per source and target to start with
_ADDED_COLUMNS = 3  # columns of smallest reduced cost per source and target that a round adds
_MAX_ROUNDS = 200
_REDUCED_COST_TOLERANCE = 1e-12  # of the largest cost: a reduced cost below minus this counts
_COARSE_GAP = 1e-3  # relative gap to which coarse programs are solved
_UNGROUPED_ENTRIES = 2500  # entries of the plan up to which places are not grouped


# Over a domain the places are grouped (cells in twos per axis) and the coarse program is solved in the same way. Its
# potentials, extended to the fine places, select the first columns. Columns are added until pricing all of them closes
# the gap. On a line the distribution functions give plan and potentials in closed form. Memory: the costs (r, c)
# between places with an excess, 200 MB for 10,000 places.
def transport(ground: Ground, moved: Excess, *, tolerance: float = 1e-9) -> tuple[Certified, str]:
    """The certified minimum cost of moving an excess over the ground distance, and the method: "line" or "network"."""
    # Stops at a relative gap of `tolerance`, or when no remaining column would narrow it.
    method = "line" if ground.line else "network"
    if not moved.difference.any():
        return nothing_to_move(ground.size), method
    # Distributions that differ on one side only do so by rounding. Nothing moves, and the certificate covers the rest.
    if not (len(moved.sources) and len(moved.targets)):
        return certify(ground, moved, np.empty(0), nothing_to_move(ground.size).plan), method
    return (_on_a_line(ground, moved) if ground.line else _in_a_network(ground, moved, tolerance)), method


def _in_a_network(ground: Ground, moved: Excess, tolerance: float) -> Certified:
    cost = ground.between(moved.sources, moved.targets)
    scale = float(cost.max())
    values = np.zeros(len(moved.targets))
    if ground.points is not None and ground.index is not None:
        values = _coarse_potentials(ground.points, ground.index, moved) / scale
    cost /= scale
    values, plan = _generate(moved, cost, values, tolerance)
    return certify(ground, moved, values * scale, plan)


def _coarse_potentials(points: Points, index: IntegerMatrix, moved: Excess) -> Vector:
    """Potentials at the targets of `moved` (c,) from the program over groups of places; zeros for small programs."""
    support = np.concatenate([moved.sources, moved.targets])
    place = index[support]
    place = place - place.min(axis=0)
    if len(moved.sources) * len(moved.targets) <= _UNGROUPED_ENTRIES:
        return np.zeros(len(moved.targets))
    # Cells in twos along each axis: a quarter of the places on a plane.
    half = place >> 1
    _, first, group = np.unique(half @ _strides(half), return_index=True, return_inverse=True)
    count = np.bincount(group)
    centres = np.column_stack([np.bincount(group, axis) / count for axis in points[support].T])
    coarse = excess(np.asarray(np.bincount(group, moved.difference[support]), float))
    if not (len(coarse.sources) and len(coarse.targets)):
        return np.zeros(len(moved.targets))
    guess = _coarse_potentials(centres, half[first], coarse)
    cost = cdist(centres[coarse.sources], centres[coarse.targets])
    scale = float(cost.max())
    values, _ = _generate(coarse, cost / scale, guess / scale, _COARSE_GAP)
    return extension(points[moved.targets], centres[coarse.targets], values * scale)


def _strides(index: IntegerMatrix) -> Indices:
    """Factors that turn the numbers of a cell by axis into one number."""
    return np.concatenate([[1], np.cumprod(index.max(axis=0)[:-1] + 1)])


def _generate(moved: Excess, cost: Matrix, guess: Vector, tolerance: float) -> tuple[Vector, Plan]:
    """Values (c,) at the targets and a plan, from values `guess` (c,), for cost (r, c) at most 1."""
    total = float(moved.supply.sum())
    supply, demand = moved.supply / total, moved.demand / float(moved.demand.sum())
    columns = cost.shape[1]
    # Tightened potentials of the coarse program nearly price the fine one, so that few columns are missing.
    u, v = tighten(cost, guess)
    known, _ = cheapest_columns(cost, u, v, _FIRST_COLUMNS)
    rows, targets = np.divmod(known, columns)
    price = cost[rows, targets]
    tree = TransportTree(supply, demand)
    tree.add(rows, targets, price)
    tree.start(np.argsort(price - u[rows] + v[targets], kind="stable"))
    best, values = -np.inf, v
    for _ in range(_MAX_ROUNDS):
        u, v, upper = tree.solve()
        # Potentials of the columns so far, made feasible for all columns: weak duality gives a bound.
        feasible, tight = tighten(cost, v)
        lower = float(supply @ feasible - demand @ tight)
        if lower > best:
            best, values = lower, tight
        # Half the tolerance: the certificate adds its margins for rounding.
        if upper - best <= tolerance / 2 * upper:
            break
        keys, _ = cheapest_columns(cost, u, v, _ADDED_COLUMNS, -_REDUCED_COST_TOLERANCE)
        keys = np.setdiff1d(keys, known, assume_unique=True)
        if len(keys) == 0:
            break
        known = np.concatenate([known, keys])
        rows, targets = np.divmod(keys, columns)
        tree.add(rows, targets, cost[rows, targets])
    rows, targets, mass = tree.plan()
    return values, Plan(source=moved.sources[rows], target=moved.targets[targets], mass=mass * total)


def _on_a_line(ground: Ground, moved: Excess) -> Certified:
    assert ground.points is not None
    # The distance is int |F_p - F_q|: the plan moves mass in order, and the potential falls where mass moves right.
    order = np.argsort(ground.points[:, 0])
    line, difference = ground.points[order, 0], moved.difference[order]
    passing = np.cumsum(difference)[:-1]
    potential = np.empty(ground.size)
    potential[order] = np.concatenate([[0.0], np.cumsum(-np.sign(passing) * np.diff(line))])
    rows, columns, mass = in_order(np.maximum(difference, 0.0), np.maximum(-difference, 0.0))
    plan = Plan(source=order[rows], target=order[columns], mass=mass)
    return certify(ground, moved, potential[moved.targets], plan)


def cheapest_columns(cost: Matrix, u: Vector, v: Vector, count: int, below: float = np.inf) -> tuple[Indices, Vector]:
    """Sorted keys i c + j of the `count` smallest reduced costs under `below` by row and column; minima by row."""
    # Reduced costs are cost(i, j) - u(i) + v(j), for cost (r, c).
    keys, row_minima = _cheapest_columns(cost, u, v, min(count, *cost.shape), below)
    return np.unique(keys[keys >= 0]), row_minima


# All compiled functions are in this file: Numba's cache does not notice a change of a callee in another file.
@numba.njit(cache=True, nogil=True)
def _insert(value, key, values, keys):  # type: ignore[no-untyped-def]
    """Insert (value, key) into the ascending `values` (k,), and drop the last."""
    place = values.size - 1
    while place > 0 and values[place - 1] > value:
        values[place], keys[place] = values[place - 1], keys[place - 1]
        place -= 1
    values[place], keys[place] = value, key


@numba.njit(cache=True, nogil=True)
def _cheapest_columns(cost, u, v, count, below):  # type: ignore[no-untyped-def]
    rows, columns = cost.shape
    keys = np.full((rows + columns, count), -1, np.int64)
    values = np.full((rows + columns, count), below)
    # The last listed cost of a row or column: few entries are below it, so that few are inserted.
    column_bar = np.full(columns, below)
    row_minima = np.empty(rows)
    for i in range(rows):
        row_bar, lowest = below, np.inf
        for j in range(columns):
            reduced = cost[i, j] - u[i] + v[j]
            lowest = min(lowest, reduced)
            if reduced < row_bar:
                _insert(reduced, i * columns + j, values[i], keys[i])
                row_bar = values[i, count - 1]
            if reduced < column_bar[j]:
                _insert(reduced, i * columns + j, values[rows + j], keys[rows + j])
                column_bar[j] = values[rows + j, count - 1]
        row_minima[i] = lowest
    return keys, row_minima


@numba.njit(cache=True, nogil=True)
def tighten(cost, v):  # type: ignore[no-untyped-def]
    """Feasible potentials: u(i) = min_j cost(i, j) + v(j), then the smallest v (c,) with u(i) - v(j) <= cost(i, j)."""
    rows, columns = cost.shape
    u, smallest = np.empty(rows), np.full(columns, -np.inf)
    for i in range(rows):
        lowest = np.inf
        for j in range(columns):
            value = cost[i, j] + v[j]
            if value < lowest:
                lowest = value
        u[i] = lowest
        for j in range(columns):
            value = lowest - cost[i, j]
            if value > smallest[j]:
                smallest[j] = value
    return u, smallest
