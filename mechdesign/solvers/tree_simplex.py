"""A simplex method on spanning trees: the kernel of pricing.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1

The extreme rays of the cone are spanning trees of tight constraints: along a tree edge g changes by e^{+d} or e^{-d}.
A pivot takes the tree edge above a node whose subtree gains by moving, scales the subtree until the next constraint is
tight, and hangs it there. Sums over subtrees are kept up to date along the two paths to the root, so a pivot costs the
size of the subtree and a scan of the nodes; they are computed afresh before the method ends.

All compiled functions stand in this file: Numba's cache does not notice a change of a callee in another file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

_RELATIVE = 1e-12  # gain of a pivot against the mass it moves; far from the anchor all gains are tiny, and still count
_ABSOLUTE = 1e-15  # gain of a pivot against the whole mass
_COARSE = 1e-7  # the same for a ratio, which no proof rests on
_RATIOS = 20
_SETTLED = 1e-6  # relative change of a ratio
_OFF_PROFILE = 1e-9  # change of ln g along a tree edge, against the eikonal profile, that counts as a turn
_REFRESH = 64  # pivots after which sums over subtrees are computed afresh


class Graph(NamedTuple):
    """A graph in compressed rows: neighbours near[first[v]:first[v + 1]] at length d in nats, with factor e^d."""

    first: NDArray[np.int64]
    near: NDArray[np.int32]
    length: NDArray[np.float64]
    factor: NDArray[np.float64]


class Tree(NamedTuple):
    """A spanning tree and its ray, all (n,): parents; the first child, and lists of siblings both ways, -1 at their
    ends; rises, whether g is larger than at the parent; grow = g / g(parent); g; the sums of r g (share) and |r| g
    (size) over the subtree; inside, the last pivot that moved the node, negative where it only changed its sums; room
    for a stack and for the nodes of a subtree.
    """

    parent: NDArray[np.int32]
    child: NDArray[np.int32]
    following: NDArray[np.int32]
    before: NDArray[np.int32]
    rises: NDArray[np.bool_]
    grow: NDArray[np.float64]
    g: NDArray[np.float64]
    share: NDArray[np.float64]
    size: NDArray[np.float64]
    inside: NDArray[np.int64]
    stack: NDArray[np.int32]
    order: NDArray[np.int32]


@numba.njit(cache=True, nogil=True)
def _preorder(root, parent, child, following, stack, order):  # type: ignore[no-untyped-def]
    """Fill `order` with the nodes of a tree, every parent before its children; also the child and sibling lists."""
    n = parent.size
    child[:] = -1
    for v in range(n):
        if v != root:
            following[v] = child[parent[v]]
            child[parent[v]] = v
    stack[0], top, count = root, 1, 0
    following[root] = -1
    while top > 0:
        top -= 1
        v = stack[top]
        order[count] = v
        count += 1
        c = child[v]
        while c >= 0:
            stack[top] = c
            top += 1
            c = following[c]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_up(root, r, parent, grow, g, order, share, size):  # type: ignore[no-untyped-def]
    """G along the tree, and the sums of r g (share) and |r| g (size) over every subtree. grow[v] = g(v)/g(parent)."""
    n = r.size
    g[root] = 1.0
    for i in range(1, n):
        v = order[i]
        g[v] = g[parent[v]] * grow[v]
    for v in range(n):
        share[v], size[v] = r[v] * g[v], abs(r[v]) * g[v]
    for i in range(n - 1, 0, -1):
        v = order[i]
        share[parent[v]] += share[v]
        size[parent[v]] += size[v]


@numba.njit(cache=True, nogil=True)
def _unlink(v, parent, child, following, before):  # type: ignore[no-untyped-def]
    if before[v] >= 0:
        following[before[v]] = following[v]
    else:
        child[parent[v]] = following[v]
    if following[v] >= 0:
        before[following[v]] = before[v]


@numba.njit(cache=True, nogil=True)
def _link(v, up, parent, child, following, before):  # type: ignore[no-untyped-def]
    parent[v] = up
    before[v], following[v] = -1, child[up]
    if child[up] >= 0:
        before[child[up]] = v
    child[up] = v


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pivot(at, root, graph, tree, stamp):  # type: ignore[no-untyped-def]
    """Move the subtree of `at` to where its next constraint is tight; `stamp` marks every node whose sums change."""
    parent, child, following, before, rises, grow, g, share, size, inside, stack, order = tree
    stack[0], top, count = at, 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        order[count] = v
        count += 1
        inside[v] = stamp
        c = child[v]
        while c >= 0:
            stack[top] = c
            top += 1
            c = following[c]
    # The edge to the parent is tight one way, so g of the subtree can move only the other way: up where it falls to
    # `at`, down where it rises. `bound` is the factor up to the first other constraint across the cut.
    raising = not rises[at]
    bound, inner, outer, joint = np.inf, -1, -1, 1.0
    for i in range(count):
        a = order[i]
        for e in range(graph.first[a], graph.first[a + 1]):
            x = graph.near[e]
            if inside[x] != stamp:
                room = graph.factor[e] * g[x] / g[a] if raising else graph.factor[e] * g[a] / g[x]
                if room < bound:
                    bound, inner, outer, joint = room, a, x, graph.factor[e]
    if inner < 0:
        return False
    # The old path to the root loses what the subtree held, before it is scaled: the new path gains it afterwards.
    v = parent[at]
    while True:
        share[v] -= share[at]
        size[v] -= size[at]
        inside[v] = -stamp
        if v == root:
            break
        v = parent[v]
    change = bound if raising else 1.0 / bound
    for i in range(count):
        v = order[i]
        g[v] *= change
        share[v] *= change
        size[v] *= change
    # The subtree hangs by `inner` now: on the path from there to `at` parent and child change places, so what was
    # below a node of it is all of the subtree but what was below the node before.
    all_share, all_size = share[at], size[at]
    v, up, step, rise = inner, outer, joint if raising else 1.0 / joint, raising
    under_share, under_size = 0.0, 0.0
    while True:
        old_parent, old_step, old_rise = parent[v], grow[v], rises[v]
        old_share, old_size = share[v], size[v]
        share[v], size[v] = all_share - under_share, all_size - under_size
        _unlink(v, parent, child, following, before)
        _link(v, up, parent, child, following, before)
        grow[v], rises[v] = step, rise
        if v == at:
            break
        under_share, under_size = old_share, old_size
        up, step, rise, v = v, 1.0 / old_step, not old_rise, old_parent  # the same edge, seen from its other end
    v = outer
    while True:
        share[v] += all_share
        size[v] += all_size
        inside[v] = -stamp
        if v == root:
            break
        v = parent[v]
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _climb(root, parent, graph, grow, rises):  # type: ignore[no-untyped-def]
    """The ray of a tree along which g falls from the root: grow[v] = g(v)/g(parent), no edge rises."""
    rises[:] = False
    grow[:] = 1.0
    for v in range(parent.size):
        if v != root:
            for e in range(graph.first[v], graph.first[v + 1]):
                if graph.near[e] == parent[v]:
                    grow[v] = 1.0 / graph.factor[e]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _improve(root, r, parent, grow, rises, graph, most, absolute, g):  # type: ignore[no-untyped-def]
    """Pivot `parent` (n,) towards the minimising tree of r (n,), about `most` times at most; fills g (n,) with its ray.

    grow and rises (n,) belong to the tree, as `_climb` makes them, and follow it. absolute: the gain of a pivot against
    the whole mass from which it is worth its cost.

    First the best pivot at a time, while the gain is large against the whole; sums that were updated often do not
    resolve the small gains of nodes far from the root, so those are taken in batches, each with fresh sums and disjoint
    subtrees.
    """
    n = r.size
    child, following, before = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    stack, order, inside = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.int64)
    share, size = np.empty(n), np.empty(n)
    tree = Tree(parent, child, following, before, rises, grow, g, share, size, inside, stack, order)
    scale = np.abs(r).sum()
    pivots, stamp = 0, 0
    while True:
        _preorder(root, parent, child, following, stack, order)
        for v in range(n):
            previous, c = -1, child[v]
            while c >= 0:
                before[c] = previous
                previous, c = c, following[c]
        _sum_up(root, r, parent, grow, g, order, share, size)
        done = pivots
        worth = absolute * max(scale, size[root])
        while pivots < min(most, done + _REFRESH):
            # A subtree that moves up by a small factor adds that share of `share` to <r, g>. Where it rises it can only
            # move down, which gains `share`; elsewhere only up, which gains the opposite.
            best, at = worth, -1
            for v in range(n):
                gain = share[v] if rises[v] else -share[v]
                if gain > best and v != root:
                    best, at = gain, v
            stamp += 1
            if at < 0 or not _pivot(at, root, graph, tree, stamp):
                break
            pivots += 1
        if pivots == done:
            fresh = stamp  # nodes stamped later are in a subtree, or on a path, whose sums this batch has changed
            for v in range(n):
                gain = share[v] if rises[v] else -share[v]
                if (
                    absolute <= _ABSOLUTE  # no proof rests on a ratio, whose search ends without these
                    and gain > _RELATIVE * size[v]
                    and v != root
                    and abs(inside[v]) <= fresh
                    and pivots < most
                ):
                    stamp += 1
                    pivots += _pivot(v, root, graph, tree, stamp)
        if pivots == done:
            return


@numba.njit(cache=True, nogil=True)
def _tree_bound(root, cost, dual, parent, graph):  # type: ignore[no-untyped-def]
    """Push cost - dual (n,) to the root of the tree, every operation rounded down."""
    n = cost.size
    child, following, stack = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    order, left = np.empty(n, np.int32), np.empty(n)
    _preorder(root, parent, child, following, stack, order)
    ulp, tiny = 2.0**-52, 1e-290
    for v in range(n):
        difference = cost[v] - dual[v]
        left[v] = difference - abs(difference) * ulp - tiny
    for i in range(n - 1, 0, -1):
        v = order[i]
        p = parent[v]
        d = 0.0
        for e in range(graph.first[v], graph.first[v + 1]):
            if graph.near[e] == p:
                d = graph.length[e]
        if left[v] >= 0:
            handed = left[v] * math.exp(-d) * (1 - 8 * ulp) - tiny
            handed = max(handed, 0.0)  # g >= 0: what is not negative hands over nothing negative
        else:
            handed = left[v] * math.exp(d) * (1 + 8 * ulp) - tiny
        total = left[p] + handed
        left[p] = total - abs(total) * ulp - tiny
    return left[root]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def price_reports(cost, dual, anchors, parents, distance, graph, most, value, turns, rays):  # type: ignore[no-untyped-def]
    """Price a block of reports: fills value (b,), turns (b, n) and, where it has rows, rays (b, n)."""
    n = dual.size
    r, g, grow, rises = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    for y in range(anchors.size):
        for u in range(n):
            r[u] = cost[y, u] - dual[u]
        tree = parents[y].copy()
        _climb(anchors[y], tree, graph, grow, rises)
        _improve(anchors[y], r, tree, grow, rises, graph, most, _ABSOLUTE, g)
        value[y] = _tree_bound(anchors[y], cost[y], dual, tree, graph)
        if value[y] < 0:
            for v in range(n):
                p = parents[y, v]
                away = abs(math.log(g[v]) + distance[y, v] - math.log(g[p]) - distance[y, p])
                turns[y, v] = away > _OFF_PROFILE * (1 + distance[y, v])
        if rays.size > 0:
            rays[y] = g


@numba.njit(cache=True, nogil=True, error_model="numpy")
def ratio_reports(cost, dual, anchors, parents, graph, most, ratio, rays):  # type: ignore[no-untyped-def]
    """Fills, for a block of reports, ratio (b,) = min <cost_y, g> / <dual, g> over the cone, and rays (b, n), where it
    is attained; dual > 0. Dinkelbach's method, every tree going on from the last; ratio (b,) is read as its start.
    """
    n = dual.size
    r, g, grow, rises = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    for y in range(anchors.size):
        tree = parents[y].copy()
        _climb(anchors[y], tree, graph, grow, rises)
        for _ in range(_RATIOS):
            for u in range(n):
                r[u] = cost[y, u] - ratio[y] * dual[u]
            _improve(anchors[y], r, tree, grow, rises, graph, most, _COARSE, g)
            above, below = 0.0, 0.0
            for u in range(n):
                above += cost[y, u] * g[u]
                below += dual[u] * g[u]
            before, ratio[y] = ratio[y], above / below
            if abs(ratio[y] - before) < _SETTLED * before:
                break
        rays[y] = g
