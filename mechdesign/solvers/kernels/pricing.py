"""Exact pricing over the privacy cone, and the lower bound that follows from any multipliers of the row sums.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1

A simplex method on trees (tree_simplex.py), started from the shortest-path tree, finds the minimising ray.

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

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.solvers.kernels.threads import in_blocks
from mechdesign.solvers.kernels.tree_simplex import price_reports

_PIVOTS_PER_NODE = 20
_TIE_BREAK = 1e-9  # relative shortening of lengths while pivoting: equal path lengths would make it cycle
_BLOCK = 64  # reports priced at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """Result for all m reports.

    value (m,), rigorous lower bounds; turns (m, n), where the minimising ray of a report with a negative value leaves
    the eikonal profile e^{-D} of its parent in the shortest-path tree; rays (m, n), the minimisers, where asked for.
    """

    value: NDArray[np.float64]
    turns: NDArray[np.bool_]
    rays: NDArray[np.float64] | None


class ConePricer:
    """Prices reports over the cone of given edges; keeps the shortest-path trees from the anchors.

    edges over n secrets; anchors (m,), the secret at which the ray of each report is normalised.
    Memory: 12 bytes for each of the m n entries.
    """

    def __init__(self, edges: Edges, size: int, anchors: NDArray[np.int64]) -> None:
        graph = edges.matrix(size).tocsr()
        graph.sort_indices()
        self._first = graph.indptr.astype(np.int64)
        self._near = graph.indices.astype(np.int32)
        self._length = graph.data.astype(float)
        with np.errstate(over="ignore"):
            self._factor = np.exp(self._length * (1 - _TIE_BREAK * _symmetric_noise(graph)))
        self.anchors = anchors
        self.distance = np.empty((len(anchors), size))
        self.parent = np.empty((len(anchors), size), np.int32)
        for start in range(0, len(anchors), _BLOCK):
            block = slice(start, start + _BLOCK)
            self.distance[block], before = dijkstra(
                graph, directed=True, indices=anchors[block], return_predecessors=True
            )
            self.parent[block] = np.where(before < 0, np.arange(size), before)

    def price(self, cost: NDArray[np.float64], dual: NDArray[np.float64], *, rays: bool = False) -> Pricing:
        """Minimise <cost[:, y] - dual, g> for every report y. cost (n, m), dual (n,). Cost: O(m n pivots)."""
        n, m = cost.shape
        value, turns = np.empty(m), np.zeros((m, n), np.bool_)
        found = np.empty((m, n)) if rays else np.empty((0, n))

        def block(start: int, stop: int) -> None:
            price_reports(
                np.ascontiguousarray(cost[:, start:stop].T), dual, self.anchors[start:stop], self.parent[start:stop],
                self.distance[start:stop], self._first, self._near, self._length, self._factor, _PIVOTS_PER_NODE * n,
                value[start:stop], turns[start:stop], found[start:stop],
            )  # fmt: skip

        in_blocks(block, m, _BLOCK)
        return Pricing(value=value, turns=turns, rays=found if rays else None)


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
