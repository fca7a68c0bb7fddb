"""Trees that prove a lower bound: for every report, one parent of each place, joined to it by an edge of the claim.

Multipliers lambda of the row sums leave the reduced cost r = cost_y - lambda at every place. Push r from the leaves of
a spanning tree to its root. A place v with the sum T, its own r(v) and all that it received, hands its parent

    T e^{-d} where T >= 0,  T e^{+d} where T < 0,                                                                   (1)

over an edge of length d. For g in the privacy cone T g(v) is at least the handed amount times g(parent). A remainder
below 0 at the root is charged to lambda there, and the largest charge of any report at each place is enough. So lambda
and one parent for each report and place prove

    lower_bound = sum over u of (lambda(u) - largest charge at u).

Any parents prove a bound. Those of the optimal trees of pricing (tree_simplex.py) prove the bound that pricing proves.

Edges. Pricing by all pairs hangs places at others that no edge joins to them. Such a pair is replaced by the edges of
a shortest path. T g is a flow from smaller to larger g along tight edges, so flow along one path may as well follow
another. Flow that meets a cycle is shifted round it until one edge of the cycle carries nothing, and that edge
is left out (Dantzig 1951). The result is a tree of edges that hands the same sum to the root.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices32, Matrix, Vector
from mechdesign.base.threads import OutOfTime, in_blocks
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.solvers.cone.tree_simplex import CompleteGraph
from mechdesign.solvers.cone.warm_pricing import WarmPricer

MOST_PLACES = 2_500  # whose trees a file has: by far most take less than a second to find and 1 % of the file
_MOST_PAIRED = 1_000  # the same of pricing by all pairs, whose time grows with the cube: 4 s here
_BLOCK = 16  # reports at a time


Steps = NDArray[np.uint16]


def pricing_trees(pricer: ConePricer, cost: Matrix, dual: Vector, warm: WarmPricer | None = None) -> Indices32:
    """Parents (m, n) of trees that prove the lower bound of multipliers dual (n,) for the cost (n, m).

    A parent is the place itself at the root, and where nothing is handed over. Raises OutOfTime. warm: prices the same
    cost already.
    """
    warm = warm or WarmPricer(pricer, cost)
    parent, anchors = warm.final_trees(dual), warm.trees.anchor
    if isinstance(pricer.graph, CompleteGraph):
        lengths, is_edge = pricer.graph.lengths, pricer.joined_pairs()
        # The next place on a shortest path, filled where a pair is met: threads write the same number.
        hops = np.full(lengths.shape, -1, np.int32)

        def use_edges(start: int, stop: int) -> None:
            block = slice(start, stop)
            trees = anchors[block], parent[block], warm.trees.rises[block]
            _move_to_edges(warm.cost[block], dual, *trees, lengths, is_edge, hops)

        in_blocks(use_edges, len(parent), _BLOCK)
    return parent


def tree_steps(pricer: ConePricer, cost: Matrix, dual: Vector, warm: WarmPricer | None = None) -> Steps | None:
    """The trees as parent - place modulo 2^16 (m, n); None for more places than files have trees of, or out of time."""
    size = len(dual)
    if size > (MOST_PLACES if warm is not None or not pricer.is_complete else _MOST_PAIRED):
        return None
    try:
        parent = pricing_trees(pricer, cost, dual, warm)
    except OutOfTime:
        return None
    return (parent - np.arange(size)).astype(np.uint16)


@numba.njit(cache=True, nogil=True)
def _children_first(parents, orders):  # type: ignore[no-untyped-def]
    """Fill orders (m, n) with the places of each tree, every child before its parent."""
    m, n = parents.shape
    children = np.empty(n, np.int32)
    for y in range(m):
        parent, order = parents[y], orders[y]
        children[:] = 0
        for v in range(n):
            if parent[v] != v:
                children[parent[v]] += 1
        count = 0
        for v in range(n):
            if children[v] == 0:
                order[count] = v
                count += 1
        # `order` is its own queue: a parent enters behind the last of its children.
        i = 0
        while i < count:
            up = parent[order[i]]
            if up != order[i]:
                children[up] -= 1
                if children[up] == 0:
                    order[count] = up
                    count += 1
            i += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _move_to_edges(cost, dual, anchors, parents, rises, lengths, is_edge, hops):  # type: ignore[no-untyped-def]
    """Replace pairs of the trees parents (b, n) by edges; rises (b, n): True where g is larger than at the parent."""
    n = dual.size
    order, rest, g = np.empty((1, n), np.int32), np.empty(n), np.empty(n)
    up, flow, mark = np.empty(n, np.int32), np.empty(n), np.zeros(n, np.int64)
    number = 0
    for y in range(anchors.size):
        root, parent = anchors[y], parents[y]
        _children_first(parents[y : y + 1], order)
        # (1). A negative sum goes up a falling edge only if the parent can absorb it: otherwise a charge there is less.
        for v in range(n):
            rest[v], up[v] = cost[y, v] - dual[v], parent[v]
        for i in range(n - 1):
            v = order[0, i]
            d = lengths[v, parent[v]]
            handed = rest[v] * math.exp(-d if rest[v] >= 0 else d)
            if rest[v] < 0 and not rises[y, v] and rest[parent[v]] + handed < 0:
                up[v], rest[v] = v, 0.0
            else:
                rest[parent[v]] += handed
        # The ray g along whose tight edges T g flows.
        g[root] = 1.0
        for i in range(n - 2, -1, -1):
            v = order[0, i]
            d = lengths[v, parent[v]]
            g[v] = g[parent[v]] * math.exp(d if rises[y, v] else -d)
        for v in range(n):
            parent[v], flow[v] = up[v], rest[v] * g[v]
            up[v] = parent[v] if is_edge[v, parent[v]] else -1
        # The edges of a shortest path for every other pair, each with the flow of the pair.
        for v in range(n):
            if parent[v] == v or is_edge[v, parent[v]]:
                continue
            worth, a = rest[v] * g[v], v
            while a != parent[v]:
                b = _next_place(a, parent[v], lengths, is_edge, hops)
                if b < 0:
                    break
                number += 1
                _insert(a, b, worth, up, flow, g, mark, number)
                a = b
        _hang(root, -1, 0.0, up, flow)
        for v in range(n):
            parent[v] = up[v] if up[v] >= 0 else v


@numba.njit(cache=True, nogil=True)
def _next_place(a, b, lengths, is_edge, hops):  # type: ignore[no-untyped-def]
    """The place after a on a shortest path to b, -1 without one."""
    if is_edge[a, b]:
        return b
    if hops[a, b] < 0:
        shortest = np.inf
        for x in range(lengths.shape[0]):
            # Nearer to b only, so that paths end.
            if is_edge[a, x] and lengths[x, b] < lengths[a, b] and lengths[a, x] + lengths[x, b] < shortest:
                shortest, hops[a, b] = lengths[a, x] + lengths[x, b], x
    return hops[a, b]


@numba.njit(cache=True, nogil=True)
def _insert(a, b, worth, up, flow, g, mark, number):  # type: ignore[no-untyped-def]
    """Add an edge from a to b with a flow to a forest; of a cycle, leave out the edge that carries nothing then."""
    x = a
    while x >= 0:
        mark[x], x = number, up[x]
    top = b
    while top >= 0 and mark[top] != number:
        top = up[top]
    if top < 0:
        _hang(a, b, worth, up, flow)
        return
    # Shift flow from the new edge to the paths from a and b to their meeting place `top`. Flow goes from smaller to
    # larger g, so an edge that carries flow the other way loses it, and the first one that is empty goes.
    ahead = worth >= 0
    shift, cut, is_below_a = abs(worth), -1, True
    for side in range(2):
        x = b if side else a
        while x != top:
            gains = (g[x] <= g[up[x]]) == (ahead == (side == 0))
            if not gains and abs(flow[x]) < shift:
                shift, cut, is_below_a = abs(flow[x]), x, side == 0
            x = up[x]
    signed = shift if ahead else -shift
    for side in range(2):
        x = b if side else a
        while x != top:
            flow[x] += -signed if side else signed
            x = up[x]
    if cut < 0:
        return
    up[cut] = -1
    if is_below_a:
        _hang(a, b, worth - signed, up, flow)
    else:
        _hang(b, a, signed - worth, up, flow)


@numba.njit(cache=True, nogil=True)
def _hang(v, at, worth, up, flow):  # type: ignore[no-untyped-def]
    """Make v the root of its tree and hang it at another place with a flow; -1 for none."""
    while v >= 0:
        before, carried = up[v], flow[v]
        up[v], flow[v] = at, worth
        # The same edge, seen from its other end.
        at, worth, v = v, -carried, before
