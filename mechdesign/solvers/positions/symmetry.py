"""Symmetries of a program between positions: one block stands for all reports that a flip or turn takes to each other.

A convex program that a group leaves alone has an optimum that it leaves alone: P(g u, g y) = P(u, y). Blocks x_r for
one report of each orbit, times the size of the orbit, then keep the row sums if their means over the orbits of cells
add up to 1, and each lies in its own cones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.mechanism.positions.spline_cones import SplineCones
from mechdesign.setting.problems.problem import DesignProblem

SYMMETRIES = 8  # of a square at most
_DIGITS = 9  # by which values are put in order
_SAME = 1e-7  # relative; costs and bounds nearer than this are one


@dataclass(frozen=True, kw_only=True, eq=False)
class Orbits:
    """ways: renumberings (n,) of the cells, the identity first; reports (r,), one of each orbit; sums (r, n), the means
    over the orbits of cells.
    """

    ways: list[NDArray[np.int64]]
    reports: NDArray[np.int64]
    sums: sp.csr_array

    def table(self, blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table (n, m) of blocks (n, r), averaged over the group."""
        if len(self.ways) == 1:
            return blocks
        n, found = len(blocks), np.zeros((len(blocks), len(blocks)))
        for way in self.ways:
            image = np.zeros((n, n))
            image[np.ix_(way, way[self.reports])] = blocks
            found += image
        return found / len(self.ways)


def orbits(cost: NDArray[np.float64], cones: SplineCones, problem: DesignProblem) -> Orbits:
    """The orbits of the flips and exchanges of axes that leave cost (n, m) and cones alone. Cost: O(n^2)."""
    n, alike = problem.domain.size, problem.reports is problem.domain
    ways = [way for way in _ways(problem.domain.shape, n) if alike and _kept(cost, cones, way)] or [np.arange(n)]
    reports, number, count = np.unique(np.min(ways, axis=0), return_inverse=True, return_counts=True)
    sums = sp.csr_array((1 / count[number], (number, np.arange(n))), shape=(len(reports), n))
    return Orbits(ways=ways, reports=np.arange(cost.shape[1]) if len(ways) == 1 else reports, sums=sums)


def row_multipliers(
    cost: NDArray[np.float64], cones: SplineCones, group: Orbits, slack: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Multipliers lambda(u) (n,), at most C(u, y) - (G' z_y)(u) for every report y, from vectors z (3, k, r) that are
    raised into their dual cones; their sum is a lower bound (positions.py).
    """
    first = np.maximum(slack[0], np.hypot(slack[1], slack[2]))
    taken = cones.bound.T @ first + cones.slope_x.T @ slack[1] + cones.slope_y.T @ slack[2]
    least = (cost[:, group.reports] - taken).min(axis=1)
    return np.asarray(np.min([least[way] for way in group.ways], axis=0))


def _ways(shape: tuple[int, ...] | None, n: int) -> list[NDArray[np.int64]]:
    if shape is None or int(np.prod(shape)) != n:
        return []
    cells, found = np.arange(n).reshape(shape), []
    for turned in (cells, cells.T):
        if turned.shape == shape:
            found += [turned[::i, ::j].ravel() for i, j in itertools.product((1, -1), repeat=2)]
    return found


def _kept(cost: NDArray[np.float64], cones: SplineCones, way: NDArray[np.int64]) -> bool:
    """Whether the cost is left alone, and the cones: those of a column and of its image have the same values."""
    if not np.allclose(cost[np.ix_(way, way)], cost, rtol=_SAME, atol=_SAME * float(cost.max())):
        return False
    probe = np.random.default_rng(0).random(len(way))
    return bool(np.allclose(_values(cones, probe[way]), _values(cones, probe), rtol=_SAME, atol=_SAME))


def _values(cones: SplineCones, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound and slopes (k, 3) of a column, the smaller slope first, in an order of their own."""
    slopes = np.sort(np.abs(np.column_stack([cones.slope_x @ column, cones.slope_y @ column])), axis=1)
    values = np.column_stack([cones.bound @ column, slopes])
    return values[np.lexsort(values.T.round(_DIGITS))]
