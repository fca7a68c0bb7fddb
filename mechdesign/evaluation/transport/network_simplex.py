"""A network simplex method for transport programs whose columns arrive in batches; flows are integers.

    minimise    sum_e cost_e x_e  over columns e = (i, j) from source i to target j, x >= 0
    subject to  x leaves i in the amount supply(i), and reaches j in the amount demand(j)

A spanning tree joins sources, targets and a root. An arc to or from the root costs `PENALTY`: a source may ship to a
target through the root at twice the largest cost. The tree is strongly feasible: arcs without flow point to the root.
The choice of the leaving arc keeps it so, and hence the method ends (Cunningham 1976).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from mechdesign.base.arrays import Indices, Integers, Vector

PENALTY = 1.0  # of an arc to the root, where the largest cost is 1; more than 1/2 keeps the optimum off such arcs
_EPSILON = 1e-12  # a reduced cost below minus this enters: above the rounding of long paths, where costs are at most 1
_MAX_REFRESHES = 100  # recomputations of all potentials; ends a cycle that rounding might cause
_TOTAL = 2**60  # whole units of mass: flows, and sums of two, are below 2^62
_ROOT_ARC = -1


class TransportTree:
    """The method on supply (r,) and demand (c,), >= 0 with positive sums; costs at most 1."""

    def __init__(self, supply: Vector, demand: Vector) -> None:
        self._rows, nodes = len(supply), len(supply) + len(demand) + 1
        self._unit = float(supply.sum()) / _TOTAL
        self._balance = np.concatenate([_whole_units(supply), -_whole_units(demand), [0]])
        self._tail, self._head = np.empty(0, np.int32), np.empty(0, np.int32)
        self._cost = np.empty(0)
        self._parent, self._arc = np.full(nodes, -1, np.int32), np.full(nodes, _ROOT_ARC, np.int64)
        self._up, self._flow = np.zeros(nodes, np.bool_), np.zeros(nodes, np.int64)
        self._potential = np.zeros(nodes)

    def add(self, rows: Indices, columns: Indices, cost: Vector) -> None:
        """Add columns from sources `rows` (e,) to targets `columns` (e,) at `cost` (e,)."""
        self._tail = np.concatenate([self._tail, rows.astype(np.int32)])
        self._head = np.concatenate([self._head, (self._rows + columns).astype(np.int32)])
        self._cost = np.concatenate([self._cost, cost])

    def start(self, order: Indices) -> None:
        """Build the tree that ships as much as it can by the columns in `order` (e,), and the rest through the root."""
        _greedy(order, self._tail, self._head, self._balance, self._parent, self._arc, self._up, self._flow)

    def solve(self) -> tuple[Vector, Vector, float]:
        """Optimal potentials u (r,) and v (c,) over the columns so far, and the cost of the flow."""
        # u(i) - v(j) is the cost on tree arcs, and at most cost + 1e-12 on all columns.
        # A usual size of blocks: larger ones find better pivots, smaller ones scan less.
        block = max(64, math.isqrt(len(self._cost)))
        _optimise(
            self._tail, self._head, self._cost, self._parent, self._arc, self._up, self._flow, self._potential, block
        )
        root, tree = len(self._flow) - 1, self._arc >= 0
        # Flow through the root is counted at 2, above any cost, so the value is at least the cost of some plan.
        through = float(self._flow[:root][~tree[:root]].sum()) * PENALTY
        value = float(self._cost[self._arc[tree]] @ self._flow[tree].astype(float)) + through
        return self._potential[: self._rows], self._potential[self._rows : root], value * self._unit

    def plan(self) -> tuple[Indices, Indices, Vector]:
        """Rows, columns and masses of the columns that carry mass."""
        used = (self._arc >= 0) & (self._flow > 0)
        arcs = self._arc[used]
        rows, columns = self._tail[arcs].astype(np.int64), self._head[arcs].astype(np.int64) - self._rows
        return rows, columns, np.asarray(self._flow[used] * self._unit, float)


def _whole_units(masses: Vector) -> Integers:
    """Integers (n,) proportional to masses, with sum 2^60 exactly; the largest takes the rounding."""
    numbers = np.rint(masses * (_TOTAL / masses.sum())).astype(np.int64)
    # Both sides must have one sum exactly, or no flow is feasible.
    numbers[np.argmax(numbers)] += _TOTAL - int(numbers.sum())
    return numbers


# All compiled functions are in this file: Numba's cache does not notice a change of a callee in another file.
@numba.njit(cache=True, nogil=True)
def _greedy(order, tail, head, balance, parent, arc, up, flow):  # type: ignore[no-untyped-def]
    """Serve along the columns in order, and hang every tree of used columns on the root."""
    # A used column exhausts one of its ends. So used columns form trees, each with at most one node with mass left.
    nodes = balance.size
    root = nodes - 1
    remaining = balance.copy()
    used, amount = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    count = 0
    degree = np.zeros(nodes + 1, np.int64)
    for e in order:
        i, j = tail[e], head[e]
        shipped = min(remaining[i], -remaining[j])
        if shipped > 0:
            remaining[i] -= shipped
            remaining[j] += shipped
            used[count], amount[count] = e, shipped
            count += 1
            degree[i + 1] += 1
            degree[j + 1] += 1
    first = np.cumsum(degree)
    # Incidence lists: the used columns of node v are incident[first[v] : first[v + 1]].
    place = first.copy()
    incident = np.empty(2 * count, np.int64)
    for t in range(count):
        i, j = tail[used[t]], head[used[t]]
        incident[place[i]] = t
        incident[place[j]] = t
        place[i] += 1
        place[j] += 1
    parent[:] = -1
    stack = np.empty(nodes, np.int64)
    # First the nodes with mass left, which root their trees; then one node of each tree that is served exactly.
    for phase in range(2):
        for w in range(root):
            if parent[w] >= 0 or (phase == 0 and remaining[w] == 0):
                continue
            # Arcs without flow must point to the root (">="), so that the tree is strongly feasible from the start.
            parent[w], arc[w], up[w], flow[w] = root, -1, remaining[w] >= 0, abs(remaining[w])
            stack[0], top = w, 1
            while top > 0:
                top -= 1
                v = stack[top]
                for t in incident[first[v] : first[v + 1]]:
                    e = used[t]
                    other = head[e] if tail[e] == v else tail[e]
                    if parent[other] < 0:
                        parent[other], arc[other], up[other], flow[other] = v, e, tail[e] == other, amount[t]
                        stack[top] = other
                        top += 1


@numba.njit(cache=True, nogil=True)
def _price_tree(parent, arc, up, cost, potential, depth, child, following, stack):  # type: ignore[no-untyped-def]
    """Potentials and depths from the root down; `child` and `following` must list the tree."""
    root = parent.size - 1
    potential[root], depth[root] = 0.0, 0
    stack[0], top = root, 1
    while top > 0:
        top -= 1
        p = stack[top]
        v = child[p]
        while v >= 0:
            price = cost[arc[v]] if arc[v] >= 0 else PENALTY
            potential[v] = potential[p] + (price if up[v] else -price)
            depth[v] = depth[p] + 1
            stack[top] = v
            top += 1
            v = following[v]


# One kernel of 95 lines and nine arrays, because the steps of a pivot share them and some ten local numbers. The steps
# are: price, find the leaving arc, move flow, hang the subtree anew.
@numba.njit(cache=True, nogil=True)
def _optimise(tail, head, cost, parent, arc, up, flow, potential, block):  # type: ignore[no-untyped-def]
    """Pivot until no column has a negative reduced cost with potentials computed afresh."""
    nodes, total = parent.size, cost.size
    root = nodes - 1
    depth = np.empty(nodes, np.int32)
    child, following = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    before, stack = np.full(nodes, -1, np.int32), np.empty(nodes, np.int32)
    for v in range(root):
        p = parent[v]
        following[v] = child[p]
        if child[p] >= 0:
            before[child[p]] = v
        child[p] = v
    _price_tree(parent, arc, up, cost, potential, depth, child, following, stack)
    is_fresh, refreshes, position = True, 0, 0
    while True:
        # The best column of the first block that has one: all of them, every time, would cost more than the pivots.
        best, enter, scanned = -_EPSILON, -1, 0
        while scanned < total and enter < 0:
            stop = min(position + block, total)
            for e in range(position, stop):
                reduced = cost[e] - potential[tail[e]] + potential[head[e]]
                if reduced < best:
                    best, enter = reduced, e
            scanned += stop - position
            position = stop if stop < total else 0
        if enter < 0:
            # Nothing enters by potentials that were shifted many times: only fresh ones prove it.
            if is_fresh or refreshes == _MAX_REFRESHES:
                return
            _price_tree(parent, arc, up, cost, potential, depth, child, following, stack)
            is_fresh = True
            refreshes += 1
            continue
        is_fresh = False
        i, j = tail[enter], head[enter]
        # New flow from i to j returns up from j to the apex and down to i. It takes flow from arcs that point up on the
        # side of i, and down on the side of j. Several arcs may be emptied first: the last one in this direction, from
        # the apex on, leaves (Cunningham). On the side of i that is the nearest to i, hence "<"; on the side of j the
        # nearest to the apex, hence "<=". Arcs without flow keep pointing to the root, and no tree comes back.
        a, b = i, j
        leave_a, leave_b = -1, -1
        flow_a, flow_b = np.int64(2**62), np.int64(2**62)
        while a != b:
            if depth[a] >= depth[b]:
                if up[a] and flow[a] < flow_a:
                    flow_a, leave_a = flow[a], a
                a = parent[a]
            else:
                if not up[b] and flow[b] <= flow_b:
                    flow_b, leave_b = flow[b], b
                b = parent[b]
        apex, shift_flow = a, min(flow_a, flow_b)
        # Most pivots are degenerate and move nothing: the second walk up is saved.
        if shift_flow > 0:
            v = i
            while v != apex:
                flow[v] += -shift_flow if up[v] else shift_flow
                v = parent[v]
            v = j
            while v != apex:
                flow[v] += shift_flow if up[v] else -shift_flow
                v = parent[v]
        # The subtree below the leaving arc hangs by the new one. The path from the new arc's end up to the leaving arc
        # is reversed: every node takes the arc and the flow of the one before it. All potentials of the subtree shift
        # by the reduced cost of the new arc, which becomes 0.
        if flow_b <= flow_a:
            top_node, leave, under, rising, shift = j, leave_b, i, False, -best
        else:
            top_node, leave, under, rising, shift = i, leave_a, j, True, best
        v, p, joined, carried = top_node, under, np.int64(enter), shift_flow
        while True:
            old_parent, old_arc, old_up, old_flow = parent[v], arc[v], up[v], flow[v]
            if before[v] >= 0:  # out of the list of children of the old parent
                following[before[v]] = following[v]
            else:
                child[old_parent] = following[v]
            if following[v] >= 0:
                before[following[v]] = before[v]
            before[v], following[v] = -1, child[p]  # and to the front of that of the new one
            if child[p] >= 0:
                before[child[p]] = v
            child[p] = v
            parent[v], arc[v], up[v], flow[v] = p, joined, rising, carried
            if v == leave:
                break
            v, p, joined, carried, rising = old_parent, v, old_arc, old_flow, not old_up
        # Only the moved subtree has new potentials and depths.
        stack[0], size = top_node, 1
        while size > 0:
            size -= 1
            v = stack[size]
            potential[v] += shift
            depth[v] = depth[parent[v]] + 1
            v = child[v]
            while v >= 0:
                stack[size] = v
                size += 1
                v = following[v]
