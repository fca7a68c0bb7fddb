"""Exact pricing over the privacy cone, and the lower bound that follows from any multipliers of the row sums.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1

The extreme rays of the cone are spanning trees of tight constraints: along a tree edge g changes by e^{+d} or e^{-d}. A
simplex method on trees, started from the shortest-path tree, takes O(n) a pivot.

Bound. For *any* spanning tree, push r from the leaves to the root: a node v with parent p hands over
r(v) e^{-d} if r(v) >= 0 and r(v) e^{+d} if r(v) < 0, because g(v) lies in [e^{-d} g(p), e^{d} g(p)]. What arrives at
the root is a lower bound of the minimum, and the optimal tree attains it. With every operation rounded down the bound
is rigorous whatever the pivoting did, so it never rests on convergence. Summed over reports,

    lower_bound = sum_u lambda(u) + sum_y min(0, min over the cone of <cost_y - lambda, g> / g(anchor(y))),

a Lagrangian bound: rows sum to 1, so P(y | anchor(y)) <= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from mechdesign.setting.geodesic import Edges

_PIVOTS_PER_NODE = 20
_RELATIVE = 1e-12  # gain of a pivot against the mass it moves; far from the anchor all gains are tiny, and still count
_TIE_BREAK = 1e-9  # relative shortening of lengths while pivoting: equal path lengths would make it cycle


@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """Result for all m reports: value (m,), rigorous lower bounds; rays (m, n), the minimisers found."""

    value: NDArray[np.float64]
    rays: NDArray[np.float64]


class ConePricer:
    """Prices reports over the cone of given edges; keeps the shortest-path trees from the anchors.

    edges over n secrets; anchors (m,), the secret at which the ray of each report is normalised.
    Memory: two arrays (m, n) of 12 bytes an entry.
    """

    def __init__(self, edges: Edges, size: int, anchors: NDArray[np.int64]) -> None:
        graph = edges.matrix(size).tocsr()
        graph.sort_indices()
        self._first = graph.indptr.astype(np.int64)
        self._near = graph.indices.astype(np.int64)
        self._length = graph.data.astype(float)
        self._pivot_length = self._length * (1 - _TIE_BREAK * _symmetric_noise(graph))
        distance, parent = dijkstra(graph, directed=False, indices=anchors, return_predecessors=True)
        self.distance = np.asarray(distance)
        self.parent = np.where(parent < 0, np.arange(size), parent).astype(np.int64)
        self.anchors = anchors

    def price(self, cost: NDArray[np.float64], dual: NDArray[np.float64]) -> Pricing:
        """Minimise <cost[:, y] - dual, g> for every report y. cost (n, m), dual (n,). Cost: O(m n pivots)."""
        n, m = cost.shape
        value, rays = np.empty(m), np.empty((m, n))
        _price_all(
            np.ascontiguousarray(cost.T), dual, self.anchors, self.parent.copy(), self._first, self._near,
            self._length, self._pivot_length, _PIVOTS_PER_NODE * n, value, rays,
        )  # fmt: skip
        return Pricing(value=value, rays=rays)


def lower_bound(dual: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    """Sum dual + sum min(0, value), rounded down; at least 0, because losses are not negative."""
    total = math.fsum([*dual.tolist(), *np.minimum(value, 0.0).tolist()])
    return max(0.0, math.nextafter(total, -math.inf))


def _symmetric_noise(graph: sp.csr_array) -> NDArray[np.float64]:
    """A fixed pseudo-random number in [0, 1) per undirected edge, the same in both directions."""
    coo = graph.tocoo()
    low, high = np.minimum(coo.row, coo.col).astype(np.uint64), np.maximum(coo.row, coo.col).astype(np.uint64)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(11)).astype(float) * 2.0**-53


@numba.njit(cache=True)
def _preorder(root, parent, child, sibling, stack, order, place):  # type: ignore[no-untyped-def]
    n = parent.size
    for v in range(n):
        child[v] = -1
    for v in range(n):
        if v != root:
            sibling[v] = child[parent[v]]
            child[parent[v]] = v
    stack[0], top, count = root, 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        order[count], place[v] = v, count
        count += 1
        c = child[v]
        while c >= 0:
            stack[top] = c
            top += 1
            c = sibling[c]


@numba.njit(cache=True)
def _improve(root, r, parent, first, near, length, most, g):  # type: ignore[no-untyped-def]
    """Pivot `parent` towards the minimising tree; fills g with its ray."""
    n = r.size
    child, sibling, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    order, place, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    rises, step, share, size = np.zeros(n, np.bool_), np.zeros(n), np.empty(n), np.empty(n)
    for v in range(n):
        for e in range(first[v], first[v + 1]):
            if near[e] == parent[v] and v != root:
                step[v] = length[e]
    scale = np.abs(r).sum()
    for pivot in range(most + 1):
        _preorder(root, parent, child, sibling, stack, order, place)
        g[root] = 1.0
        for i in range(1, n):
            v = order[i]
            g[v] = g[parent[v]] * math.exp(step[v] if rises[v] else -step[v])
        for v in range(n):
            share[v], size[v], count[v] = r[v] * g[v], abs(r[v]) * g[v], 1
        for i in range(n - 1, 0, -1):
            v = order[i]
            share[parent[v]] += share[v]
            size[parent[v]] += size[v]
            count[parent[v]] += count[v]
        worst, at = 1e-15 * scale, -1
        relative, behind = _RELATIVE, -1
        for v in range(n):
            if v == root or size[v] == 0:
                continue
            gain = share[v] if rises[v] else -share[v]
            if gain > worst:
                worst, at = gain, v
            if gain > relative * size[v]:
                relative, behind = gain / size[v], v
        if at < 0:
            at = behind
        if at < 0 or pivot == most:
            return
        low, high = place[at], place[at] + count[at]
        raising = not rises[at]
        bound, inner, outer, joint = np.inf, -1, -1, 0.0
        for i in range(low, high):
            a = order[i]
            for e in range(first[a], first[a + 1]):
                x = near[e]
                if place[x] < low or place[x] >= high:
                    room = math.exp(length[e]) * g[x] / g[a] if raising else math.exp(length[e]) * g[a] / g[x]
                    if room < bound:
                        bound, inner, outer, joint = room, a, x, length[e]
        v, up, rise, far = inner, outer, raising, joint
        while True:
            old_parent, old_rises, old_step = parent[v], rises[v], step[v]
            parent[v], rises[v], step[v] = up, rise, far
            if v == at:
                break
            up, rise, far, v = v, not old_rises, old_step, old_parent


@numba.njit(cache=True)
def _tree_bound(root, cost, dual, parent, first, near, length):  # type: ignore[no-untyped-def]
    """Push cost - dual to the root of the tree, every operation rounded down."""
    n = cost.size
    child, sibling, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    order, place, left = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    _preorder(root, parent, child, sibling, stack, order, place)
    ulp, tiny = 2.0**-52, 1e-290
    for v in range(n):
        difference = cost[v] - dual[v]
        left[v] = difference - abs(difference) * ulp - tiny
    for i in range(n - 1, 0, -1):
        v = order[i]
        p = parent[v]
        d = 0.0
        for e in range(first[v], first[v + 1]):
            if near[e] == p:
                d = length[e]
        if left[v] >= 0:
            handed = left[v] * math.exp(-d) * (1 - 8 * ulp) - tiny
            handed = max(handed, 0.0)
        else:
            handed = left[v] * math.exp(d) * (1 + 8 * ulp) - tiny
        total = left[p] + handed
        left[p] = total - abs(total) * ulp - tiny
    return left[root]


@numba.njit(cache=True, nogil=True)
def _price_all(cost, dual, anchors, parents, first, near, length, pivot_length, most, value, rays):  # type: ignore[no-untyped-def]
    r = np.empty(dual.size)
    for y in range(anchors.size):
        for u in range(dual.size):
            r[u] = cost[y, u] - dual[u]
        _improve(anchors[y], r, parents[y], first, near, pivot_length, most, rays[y])
        value[y] = _tree_bound(anchors[y], cost[y], dual, parents[y], first, near, length)
