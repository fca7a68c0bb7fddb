"""The restricted program: the optimal program over tables that follow the eikonal profile except across cuts.

D(u, y) is the distance from the anchor of report y. Cuts split the shortest-path tree of y into components, with one
variable q each. Inside a component the table is eikonal, hence private:

    P(y|u) = q(component of u) e^{-D(u, y)}.                                                                        (1)

Constraints remain between components a and b:

    q_a <= e^{k_ab} q_b,    k_ab = min over edges (u, v), u in a, v in b, of  d_uv - D(v, y) + D(u, y)  >= 0.       (2)

With all nodes cut this is the whole program, in variables that never see e^{d} at full range. Without cuts it is the
eikonal weight system. Any cuts give private tables, hence an upper bound. A constant report keeps it feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices, Indices32, MaskMatrix, Matrix, Vector
from mechdesign.problem.problem import DesignProblem


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictedProgram:
    """Blocks of variables, one for each of the m reports and a last one for the constant report."""

    first: Indices  # (m + 2,): the variables of block y are first[y]:first[y + 1]
    component: NDArray[np.int32]  # (m, n): the variable of report y at secret u, counted within its block
    cost: Vector  # (v,)
    head: Vector  # (v,): the distance D at the head of the component
    rows: Indices  # (m + 2,): the constraints of block y are rows[y]:rows[y + 1]
    lower: Indices32  # (c,): q[lower] <= e^{slack} q[upper], numbers within the block
    upper: Indices32  # (c,)
    slack: Vector  # (c,), in nats
    distance: Matrix  # (m, n), in nats
    constant: int  # the constant report

    @property
    def variables(self) -> int:
        return len(self.cost)

    @property
    def constraints(self) -> int:
        return self.component.shape[1] + len(self.slack)

    def table(self, x: Vector) -> Matrix:
        m, n = self.component.shape
        table = np.empty((n, m))
        for y in range(m):
            # Equation (1).
            table[:, y] = x[self.first[y] + self.component[y]] * np.exp(-self.distance[y])
        table[:, self.constant] += x[-1]
        return table


def restrict(
    problem: DesignProblem,
    scale: float,  # of prior times loss: brings the optimum into a solver's range
    distance: Matrix,  # (m, n), in nats from the anchors
    parent: NDArray[np.int32],  # (m, n): shortest-path trees from the anchors
    cut: MaskMatrix,
) -> RestrictedProgram:
    """The restricted program for cuts (m, n), True where a node starts its own component."""
    cost = problem.weighted_loss
    n, m = cost.shape
    tail, head, length = problem.edges.both_ways()
    component = np.empty((m, n), np.int32)
    sizes, rows = np.ones(m + 1, np.int64), np.zeros(m + 1, np.int64)
    costs: list[Vector] = []
    heads: list[Vector] = []
    lower: list[NDArray[np.int32]] = []
    upper: list[NDArray[np.int32]] = []
    slack: list[Vector] = []
    pairs, slacks = np.empty(len(tail), np.int64), np.empty(len(tail))
    for y in range(m):
        block_cost, block_head = _components(parent[y], distance[y], cut[y], cost[:, y] * scale, component[y])
        count = len(block_cost)
        crossings = _crossings(component[y], distance[y], tail, head, length, count, pairs, slacks)
        pair, k = pairs[:crossings], slacks[:crossings].copy()
        # With every node its own component no pair of components occurs twice.
        if count < n:
            pair, k = _tightest(pair, k)
        sizes[y], rows[y] = count, len(k)
        costs.append(block_cost)
        heads.append(block_head)
        lower.append((pair // count).astype(np.int32))
        upper.append((pair % count).astype(np.int32))
        slack.append(k)
    constant = problem.best_constant
    return RestrictedProgram(
        first=np.concatenate([[0], np.cumsum(sizes)]),
        component=component,
        cost=np.concatenate([*costs, [cost[:, constant].sum() * scale]]),
        head=np.concatenate([*heads, [0.0]]),
        rows=np.concatenate([[0], np.cumsum(rows)]),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        slack=np.concatenate(slack),
        distance=distance,
        constant=constant,
    )


@numba.njit(cache=True, nogil=True)
def _components(parent, distance, cut, cost, component):  # type: ignore[no-untyped-def]
    """Number the components in order of their heads; returns their costs and the distances of their heads."""
    n = parent.size
    component[:] = -1
    count = 0
    for v in range(n):
        if cut[v] or parent[v] == v:
            component[v] = count
            count += 1
    path = np.empty(n, np.int32)
    head, total = np.empty(count), np.zeros(count)
    for v in range(n):
        steps, u = 0, v
        # Up the tree to the first node whose component is known, then back along the same path.
        while component[u] < 0:
            path[steps] = u
            steps += 1
            u = parent[u]
        for i in range(steps):
            component[path[i]] = component[u]
        if steps == 0 and (cut[v] or parent[v] == v):
            head[component[v]] = distance[v]
        total[component[v]] += cost[v] * np.exp(-distance[v])
    return total, head


@numba.njit(cache=True, nogil=True)
def _crossings(component, distance, tail, head, length, count, pair, slack):  # type: ignore[no-untyped-def]
    """Fill pair a count + b and slack k of every edge that joins two components a and b; return their number."""
    crossings = 0
    for e in range(tail.size):
        a, b = component[tail[e]], component[head[e]]
        if a != b:
            pair[crossings] = a * count + b
            # (2); below 0 by rounding only, because D is 1-Lipschitz.
            slack[crossings] = max(length[e] - distance[head[e]] + distance[tail[e]], 0.0)
            crossings += 1
    return crossings


def _tightest(pair: Indices, slack: Vector) -> tuple[Indices, Vector]:
    """Every pair once, in order, with its minimum slack."""
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    return pair[first], np.minimum.reduceat(slack[order], first)
