"""The certificates of tables and of positions once more, with nothing but Python integers: oracles of compiled code."""

from __future__ import annotations

from math import comb, fsum

import numpy as np
from numpy.typing import NDArray
from reference.checking import ROW_SUM
from reference.exact import lower_ratio
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from mechdesign.extend import Edges
from mechdesign.positions.cones import LEVEL_BITS, whole_levels
from mechdesign.positions.patches import Patches


def are_rows(mass: NDArray[np.uint64]) -> bool:
    """Whether every entry is positive and every row sums to exactly 2^62."""
    return all(min(row) >= 1 and sum(row) == ROW_SUM for row in mass.tolist())


def mean_cost(mass: NDArray[np.uint64], cost: NDArray[np.float64]) -> float:
    """Sum over u, y of P(y|u) cost(u, y)."""
    return fsum((mass / float(ROW_SUM) * cost).ravel())


def distances(edges: Edges, n: int) -> NDArray[np.float64]:
    """Shortest paths between n places by Dijkstra's algorithm; no edge has length 0."""
    return dijkstra(csr_array((edges.length, (edges.tail, edges.head)), (n, n)), directed=False)


def asymptotic_error(table: NDArray[np.float64], truth: NDArray[np.float64], norm: NDArray[np.float64]) -> float:
    """N times the asymptotic mean squared norm of the error of the maximum-likelihood estimate, by its definition."""
    information = (table / (truth @ table)) @ table.T
    return float(np.trace(np.linalg.solve(information, norm)) - truth @ norm @ truth)


def reference_violations(mass: NDArray[np.uint64], edges: Edges) -> int:
    """`violations` with nothing but Python integers. Cost: 0.3 microseconds a triple."""
    rows = [[int(a) for a in row] for row in mass]
    bad = 0
    for u, v, length in zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True):
        factor, shift = lower_ratio(length)
        left, right = max(shift, 0), max(-shift, 0)
        for a, b in zip(rows[u], rows[v], strict=True):
            bad += (a << left) > (factor * b << right)
            bad += (b << left) > (factor * a << right)
    return bad


def reference_breaches(mass: NDArray[np.uint64], patches: Patches) -> int:
    """`breaches` with nothing but Python integers, and nothing rounded but the levels once.

    It counts no more pairs than `breaches`. Cost: 0.2 ms a pair.
    """
    rows, bad = mass.tolist(), 0
    levels = whole_levels(patches.corner_level, patches.side).tolist()
    for around, level in zip(patches.around.tolist(), levels, strict=True):
        z = [level[:2], level[2:4]]
        halves = _along(z, ((2, 0), (1, 1), (0, 2)))
        own = [[row[j : j + 2] for row in halves[i : i + 2]] for i in (0, 1) for j in (0, 1)]
        if len(level) == 16:
            own = [[[4 * k for k in level[q + i : q + i + 2]] for i in (0, 2)] for q in (0, 4, 8, 12)]
        for y in range(mass.shape[1]):
            p = [[rows[u][y] for u in around[3 * k : 3 * k + 3]] for k in range(3)]
            whole = len(level) == 4 and _holds(p, z, 1 << LEVEL_BITS)
            bad += not (whole or _quarters_hold(p, own))
    return bad


def _quarters_hold(p: list[list[int]], levels: list[list[list[int]]]) -> bool:
    """The conditions of the quarters, with four times the levels at their corners (4, 2, 2)."""
    fine = _along(p, ((3, 1, 0), (1, 3, 0), (0, 3, 1), (0, 1, 3)))
    parts = [[row[j : j + 3] for row in fine[i : i + 3]] for i in (0, 1) for j in (0, 1)]
    return all(_holds(part, z, 8 << LEVEL_BITS) for part, z in zip(parts, levels, strict=True))


def _along(p: list[list[int]], weights: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Sums of rows and of columns of p with `weights`."""
    rows = [[sum(w * x for w, x in zip(ws, column, strict=True)) for column in zip(*p, strict=True)] for ws in weights]
    return [[sum(w * x for w, x in zip(ws, row, strict=True)) for ws in weights] for row in rows]


def _holds(p: list[list[int]], z: list[list[int]], one: int) -> bool:
    """The conditions of a patch p (3, 3) with levels z / one (2, 2)."""
    b, g = ((1, 1, 0), (0, 2, 0), (0, 1, 1)), ((-2, 2, 0), (-1, 0, 1), (0, -2, 2))
    steps = [(i, j) for i in range(3) for j in range(3)]
    beta, gx, gy = (
        {(i, j): sum(f[i][k] * s[j][m] * p[k][m] for k, m in steps) for i, j in steps}
        for f, s in ((b, b), (g, b), (b, g))
    )
    if len({level for row in z for level in row}) == 1:
        return all((gx[at] ** 2 + gy[at] ** 2) * one**2 <= (beta[at] * z[0][0]) ** 2 for at in steps)
    sums: dict[tuple[int, int], list[int]] = {}
    for i, j in steps:
        for k, m in ((0, 0), (0, 1), (1, 0), (1, 1)):
            weight, held = comb(2, i) * comb(2, j), sums.setdefault((i + k, j + m), [0, 0, 0])
            for n, value in enumerate((gx[i, j], gy[i, j], beta[i, j] * z[k][m])):
                held[n] += weight * value
    return all((x * x + y * y) * one**2 <= t * t for x, y, t in sums.values())
