"""Solve transport programs between places: column generation from coarse to fine, and certify what comes out.

Over a domain the places are grouped (cells in twos per axis), the coarse program is solved in the same way, and its
potentials, extended to the fine places, say which columns are worth starting with: the `_NEAREST` of least reduced cost
of every source and target. Columns are added until pricing all of them closes the gap. A table of distances starts from
its nearest columns. On a line the distribution functions give plan and potentials in closed form.
Memory: the costs (r, c) of what moves, 200 MB where 10,000 places have an excess; no other table of that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.transport import Excess, excess
from mechdesign.solvers.transport.certificate import Certified, Plan, certify, in_order, nothing_to_move
from mechdesign.solvers.transport.ground import Ground, euclidean, extension
from mechdesign.solvers.transport.network_simplex import TransportTree
from mechdesign.solvers.transport.pricing import cheapest, tightened

Watch = Callable[[int | None, float, float, int], None]  # round, or None at the end; lower, upper, columns
_NEAREST = 12  # columns of least reduced cost per source and target to start with
_MORE = 3  # columns of least reduced cost per source and target that a round adds
_ROUNDS = 200
_PRICED = 1e-12  # a reduced cost below minus this, against the largest cost, counts
_COARSE_GAP = 1e-3  # to which coarse programs are solved
_SMALL = 2500  # entries of the plan under which nothing is grouped


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solution:
    """Values v (c,) at the targets, and what columns (rows, columns) carry: mass; all where costs are at most 1."""

    values: NDArray[np.float64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    mass: NDArray[np.float64]


def transport(
    ground: Ground, moved: Excess, *, tolerance: float = 1e-9, watch: Watch | None = None
) -> tuple[Certified, str]:
    """The certified least cost of moving an excess over the ground distance, and the method: "line" or "network".

    Stops at a relative gap of `tolerance`, or with the gap it has when no column is left that would narrow it.
    """
    method = "line" if ground.line else "network"
    if not moved.difference.any():
        return nothing_to_move(ground.size), method
    if not (len(moved.sources) and len(moved.targets)):
        none = np.empty(0, np.int64)
        return certify(ground, moved, np.empty(0), Plan(source=none, target=none, mass=np.empty(0))), method
    return (_on_a_line(ground, moved) if ground.line else _in_a_network(ground, moved, tolerance, watch)), method


def _in_a_network(ground: Ground, moved: Excess, tolerance: float, watch: Watch | None) -> Certified:
    """Column generation with costs divided by the largest."""
    cost = ground.between(moved.sources, moved.targets)
    scale = float(cost.max())
    values = np.zeros(len(moved.targets))
    if ground.points is not None and ground.index is not None:
        values = _prolonged(ground.points, ground.index, moved) / scale
    cost /= scale
    part = float(moved.supply.sum()) * scale
    scaled = None if watch is None else lambda r, low, up, k: watch(r, low * part, up * part, k)
    found = _generate(moved, cost, values, tolerance, scaled)
    plan = Plan(source=moved.sources[found.rows], target=moved.targets[found.columns], mass=found.mass)
    return certify(ground, moved, found.values * scale, plan)


def _prolonged(points: NDArray[np.float64], index: NDArray[np.int64], moved: Excess) -> NDArray[np.float64]:
    """Potentials at the targets of `moved` (c,) from the program over groups of places; zeros where it is small."""
    support = np.concatenate([moved.sources, moved.targets])
    place = index[support]
    place = place - place.min(axis=0)
    if len(moved.sources) * len(moved.targets) <= _SMALL:
        return np.zeros(len(moved.targets))
    half = place >> 1
    _, first, group = np.unique(half @ _strides(half), return_index=True, return_inverse=True)
    count = np.bincount(group)
    centres = np.column_stack([np.bincount(group, axis) / count for axis in points[support].T])
    coarse = excess(np.asarray(np.bincount(group, moved.difference[support]), float))
    if not (len(coarse.sources) and len(coarse.targets)):
        return np.zeros(len(moved.targets))
    guess = _prolonged(centres, half[first], coarse)
    cost = euclidean(centres[coarse.sources], centres[coarse.targets])
    scale = float(cost.max())
    found = _generate(coarse, cost / scale, guess / scale, _COARSE_GAP, None)
    return extension(points[moved.targets], centres[coarse.targets], found.values * scale)


def _strides(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Factors (k,) that make one number of each row of whole numbers (n, k) >= 0."""
    return np.concatenate([[1], np.cumprod(index.max(axis=0)[:-1] + 1)])


def _generate(
    moved: Excess, cost: NDArray[np.float64], guess: NDArray[np.float64], tolerance: float, watch: Watch | None
) -> _Solution:  # fmt: skip
    """Column generation from the values `guess` (c,), for cost (r, c) at most 1."""
    total = float(moved.supply.sum())
    supply, demand = moved.supply / total, moved.demand / float(moved.demand.sum())
    columns = cost.shape[1]
    u, v = tightened(cost, guess)
    known, _ = cheapest(cost, u, v, _NEAREST)
    rows, targets = np.divmod(known, columns)
    price = cost[rows, targets]
    tree = TransportTree(supply, demand)
    tree.add(rows, targets, price)
    tree.start(np.argsort(price - u[rows] + v[targets], kind="stable"))
    best, values = -np.inf, v
    for turn in range(_ROUNDS):
        u, v, upper = tree.solve()
        feasible, tight = tightened(cost, v)
        lower = float(supply @ feasible - demand @ tight)
        if lower > best:
            best, values = lower, tight
        if watch is not None:
            watch(turn, best, upper, len(known))
        if upper - best <= tolerance / 2 * upper:
            break
        keys, _ = cheapest(cost, u, v, _MORE, -_PRICED)
        keys = np.setdiff1d(keys, known, assume_unique=True)
        if len(keys) == 0:
            break
        known = np.concatenate([known, keys])
        rows, targets = np.divmod(keys, columns)
        tree.add(rows, targets, cost[rows, targets])
    rows, targets, mass = tree.plan()
    return _Solution(values=values, rows=rows, columns=targets, mass=mass * total)


def _on_a_line(ground: Ground, moved: Excess) -> Certified:
    """In order along the line; the potential falls where mass passes to the right. The distance is int |F_p - F_q|."""
    assert ground.points is not None
    order = np.argsort(ground.points[:, 0])
    line, difference = ground.points[order, 0], moved.difference[order]
    passing = np.cumsum(difference)[:-1]
    potential = np.empty(ground.size)
    potential[order] = np.concatenate([[0.0], np.cumsum(-np.sign(passing) * np.diff(line))])
    rows, columns, mass = in_order(np.maximum(difference, 0.0), np.maximum(-difference, 0.0))
    plan = Plan(source=order[rows], target=order[columns], mass=mass)
    return certify(ground, moved, potential[moved.targets], plan)
