"""A simplex method on spanning trees: the kernel of pricing.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1

The extreme rays of the cone are spanning trees of tight constraints: along a tree edge g changes by e^{+d} or e^{-d}.
A pivot takes the tree edge above a node whose subtree gains by moving, scales the subtree until the next constraint is
tight, and hangs it there. Sums over subtrees are kept up to date along the two paths to the root, so a pivot costs the
size of the subtree and a scan of the nodes; they are computed afresh before the method ends.

The ratio test of a pivot looks at the edges of the subtree; on a complete graph, where all pairs are edges, at one
minimum of products for every place of the smaller side, without lists.

Trees stay in the cone whatever the cost is, so that a forest, one tree for each report, is kept from pricing to
pricing. On a complete graph a tree may be worked on within the core of its report, the places nearest to it: any other
place u follows as the smallest extension max over v in the core of g(v) e^{-d(u, v)}, which keeps all pairs (McShane
1934, Bulletin of the AMS 40), and hangs at the v that attains it. Where r(u) < 0 beyond the core, as it is wherever the
prior is zero, g(u) is raised as far as the other places let it, and r(u) is borne by places near u with r > 0: for
every a >= 0, -a g(u) >= -a e^{d(u, v)} g(v).

Charges. Push r = cost - dual from the leaves of any spanning tree to its root, v handing its parent T e^{-d} where
T >= 0 and T e^{+d} where T < 0, T being r(v) and what was handed to it: for g in the cone T g(v) is at least what is
handed times g(parent), since g(v) lies in [e^{-d}, e^{d}] g(parent). Where T < 0 and the parent cannot bear it, and at
the root, hand over nothing and charge -T to v. What is handed rises with T, so that with dual less the largest charge
of any report every T is at least what it was, charged ones are 0 or more, and so is what arrives at the root: with
those multipliers no price is negative, whatever the trees are.

All compiled functions stand in this file: Numba's cache does not notice a change of a callee in another file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

_EMPTY: NDArray[np.float64] = np.zeros((0, 0))
_RELATIVE = 1e-12  # gain of a pivot against the mass it moves; far from the anchor all gains are tiny, and still count
_ABSOLUTE = 1e-15  # gain of a pivot against the whole mass
_COARSE = 1e-7  # the same for a ratio, which no proof rests on
_RATIOS = 20
_SETTLED = 1e-6  # relative change of a ratio
_OFF_PROFILE = 1e-9  # change of ln g along a tree edge, against the eikonal profile, that counts as a turn
_PIVOTS = 20  # for each place, at most
_NEAR_RATIO, _FAR_RATIO = 0.3, 2.0  # of <dual, g> to <cost, g>, below which a ray is nowhere near a negative price
_ULP, _TINY = 2.0**-52, 1e-290  # relative and absolute, more than one rounding takes
_REFRESH = 64  # pivots after which sums over subtrees are computed afresh


class Graph(NamedTuple):
    """A graph in compressed rows: neighbours near[first[v]:first[v + 1]] at length d in nats, with factor e^d; or a
    complete one, by its lengths and factors (n, n), which are (0, 0) otherwise.
    """

    first: NDArray[np.int64]
    near: NDArray[np.int32]
    length: NDArray[np.float64]
    factor: NDArray[np.float64]
    lengths: NDArray[np.float64] = _EMPTY
    factors: NDArray[np.float64] = _EMPTY


class Tree(NamedTuple):
    """A spanning tree and its ray, all (n,): parents; the first child, and lists of siblings both ways, -1 at their
    ends; rises, whether g is larger than at the parent; grow = g / g(parent); g; the sums of r g (share) and |r| g
    (size) over the subtree; inside, the last pivot that moved the node, negative where it only changed its sums; room
    for a stack, for the nodes of a subtree, and for numbers.
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
    room: NDArray[np.float64]


class Forest(NamedTuple):
    """Trees that are kept, one for each report: anchor (m,), their roots; parent and rises (m, n), as in `Tree`; beyond
    (m, n), where a place outside of the core attains its extension; ratio (m,), the last one; core (m,), how many of
    the places are worked on, those nearest to the anchor; near (n, n), the places by distance from each, (0, 0) where
    every core is all places.
    """

    anchor: NDArray[np.int64]
    parent: NDArray[np.int32]
    rises: NDArray[np.bool_]
    beyond: NDArray[np.int32]
    ratio: NDArray[np.float64]
    core: NDArray[np.int64]
    near: NDArray[np.int32]


class Effort(NamedTuple):
    """How far trees are improved: gain of a pivot against the whole mass from which it is worth its cost; change of a
    ratio, relative, that is settled; steps of Dinkelbach's method, at most; fixed, the minimum of <cost - dual, g> with
    g = 1 at the anchor instead of a ratio.
    """

    gain: float
    change: float
    steps: int
    fixed: bool


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


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _least_product(a, b):  # type: ignore[no-untyped-def]
    """The least a(x) b(x), in vector instructions."""
    least = np.inf
    for x in range(b.size):
        product = a[x] * b[x]
        least = product if product < least else least
    return least


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tightest_pair(count, raising, graph, tree, stamp):  # type: ignore[no-untyped-def]
    """Of all pairs across the border of a subtree of `count` nodes the first to be tight: its factor, and its ends
    within and without. A product is taken for every node of the smaller side.
    """
    g, inside, order, room, factors = tree.g, tree.inside, tree.order, tree.room, graph.factors
    n, few = g.size, 2 * count <= g.size
    for x in range(n):
        moves = inside[x] == stamp
        if few == moves:
            room[x] = np.inf
        else:
            room[x] = g[x] if raising == few else 1.0 / g[x]
    bound, hit = np.inf, -1
    for i in range(count if few else n):
        a = order[i] if few else i
        if few or inside[a] != stamp:
            least = _least_product(factors[a], room)
            least = least / g[a] if raising == few else least * g[a]
            if least < bound:
                bound, hit = least, a
    if hit < 0:
        return bound, -1, -1
    least, other = np.inf, -1
    for x in range(n):
        product = factors[hit, x] * room[x]
        if product < least:
            least, other = product, x
    return (bound, hit, other) if few else (bound, other, hit)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pivot(at, root, graph, tree, stamp):  # type: ignore[no-untyped-def]
    """Move the subtree of `at` to where its next constraint is tight; `stamp` marks every node whose sums change."""
    parent, child, following, before, rises, grow, g, share, size, inside, stack, order, _ = tree
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
    if graph.factors.shape[0] > 0:
        bound, inner, outer = _tightest_pair(count, raising, graph, tree, stamp)
        joint = graph.factors[inner, outer]
    else:
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
def _edge(v, up, graph):  # type: ignore[no-untyped-def]
    """Length and factor of the edge from v to `up`."""
    if graph.factors.shape[0] > 0:
        return graph.lengths[v, up], graph.factors[v, up]
    for e in range(graph.first[v], graph.first[v + 1]):
        if graph.near[e] == up:
            return graph.length[e], graph.factor[e]
    return np.inf, np.inf


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _climb(root, parent, rises, graph, grow):  # type: ignore[no-untyped-def]
    """Fill grow[v] = g(v)/g(parent) of the ray of a tree."""
    grow[:] = 1.0
    for v in range(parent.size):
        if v != root:
            _, factor = _edge(v, parent[v], graph)
            grow[v] = factor if rises[v] else 1.0 / factor


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _improve(root, r, parent, grow, rises, graph, most, absolute, g):  # type: ignore[no-untyped-def]
    """Pivot `parent` (n,) towards the minimising tree of r (n,), about `most` times at most; fills g (n,) with its ray,
    and returns the number of pivots.

    grow and rises (n,) belong to the tree, as `_climb` makes them, and follow it. absolute: the gain of a pivot against
    the whole mass from which it is worth its cost.

    First the best pivot at a time, while the gain is large against the whole; sums that were updated often do not
    resolve the small gains of nodes far from the root, so those are taken in batches, each with fresh sums and disjoint
    subtrees.
    """
    n = r.size
    child, following, before = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    stack, order, inside = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.int64)
    share, size, room = np.empty(n), np.empty(n), np.empty(n)
    tree = Tree(parent, child, following, before, rises, grow, g, share, size, inside, stack, order, room)
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
            best, at = worth, np.int64(-1)  # a literal would be a type, for which all that is called is compiled anew
            for v in range(n):
                gain = share[v] if rises[v] else -share[v]
                if gain > best and v != root:
                    best, at = gain, np.int64(v)
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
            return pivots


@numba.njit(inline="always")
def _down(x):  # type: ignore[no-untyped-def]
    """Below what a sum or difference was before it was rounded to x."""
    return x - abs(x) * _ULP - _TINY


@numba.njit(inline="always")
def _handed(left, d):  # type: ignore[no-untyped-def]
    """What a node with so much left hands over an edge of length d, rounded down: nothing negative where left >= 0."""
    if left >= 0:
        return max(left * math.exp(-d) * (1 - 8 * _ULP) - _TINY, 0.0)
    return left * math.exp(d) * (1 + 8 * _ULP) - _TINY


@numba.njit(cache=True, nogil=True)
def _tree_bound(root, cost, dual, parent, graph):  # type: ignore[no-untyped-def]
    """Push cost - dual (n,) to the root of the tree, every operation rounded down."""
    n = cost.size
    child, following, stack = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    order, left = np.empty(n, np.int32), np.empty(n)
    _preorder(root, parent, child, following, stack, order)
    for v in range(n):
        left[v] = _down(cost[v] - dual[v])
    for i in range(n - 1, 0, -1):
        v = order[i]
        p = parent[v]
        d, _ = _edge(v, p, graph)
        left[p] = _down(left[p] + _handed(left[v], d))
    return left[root]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def shortest_trees(distance, graph, parents):  # type: ignore[no-untyped-def]
    """Fills parents (m, n) of trees of shortest paths of lengths `distance` (m, n); whether every place has one."""
    n = distance.shape[1]
    for y in range(distance.shape[0]):
        row = distance[y]
        for v in range(n):
            least, parents[y, v] = np.inf, v
            for e in range(graph.first[v], graph.first[v + 1]):
                x = graph.near[e]
                if row[x] < row[v] and row[x] + graph.length[e] < least:
                    least, parents[y, v] = row[x] + graph.length[e], x
            if parents[y, v] == v and row[v] > 0:
                return False
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def price_reports(  # type: ignore[no-untyped-def]
    cost, dual, anchors, parents, distance, graph, most, value, turns, rays
):
    """Price a block of reports: fills value (b,), turns (b, n) and, where it has rows, rays (b, n)."""
    n = dual.size
    own, grow, rises = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    for y in range(anchors.size):
        r = cost[y] - dual  # a new array: assigning to one compiles the text of an error too, for seconds
        tree, g = parents[y].copy(), rays[y] if rays.size > 0 else own
        rises[:] = False
        _climb(anchors[y], tree, rises, graph, grow)
        _improve(anchors[y], r, tree, grow, rises, graph, most, _ABSOLUTE, g)
        value[y] = _tree_bound(anchors[y], cost[y], dual, tree, graph)
        if value[y] < 0:
            for v in range(n):
                p = parents[y, v]
                away = abs(math.log(g[v]) + distance[y, v] - math.log(g[p]) - distance[y, p])
                turns[y, v] = away > _OFF_PROFILE * (1 + distance[y, v])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def ratio_reports(cost, dual, anchors, parents, graph, most, ratio, rays):  # type: ignore[no-untyped-def]
    """Fills, for a block of reports, ratio (b,) = min <cost_y, g> / <dual, g> over the cone, and rays (b, n), where it
    is attained; dual > 0. Dinkelbach's method, every tree going on from the last; ratio (b,) is read as its start.
    """
    n = dual.size
    grow, rises = np.empty(n), np.empty(n, np.bool_)
    for y in range(anchors.size):
        tree, g = parents[y].copy(), rays[y]
        rises[:] = False
        _climb(anchors[y], tree, rises, graph, grow)
        for _ in range(_RATIOS):
            r = cost[y] - ratio[y] * dual
            _improve(anchors[y], r, tree, grow, rises, graph, most, _COARSE, g)
            before, ratio[y] = ratio[y], (cost[y] * g).sum() / (dual * g).sum()
            if abs(ratio[y] - before) < _SETTLED * before:
                break


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _part(places, parents, rises, graph):  # type: ignore[no-untyped-def]
    """The tree of a report within its core `places` (k,), numbered by their place in it, and the graph there."""
    k = places.size
    number = np.empty(parents.size, np.int32)
    for i in range(k):
        number[places[i]] = i
    tree, up, factors = np.empty(k, np.int32), np.empty(k, np.bool_), np.empty((k, k))
    for i in range(k):
        tree[i], up[i] = number[parents[places[i]]], rises[places[i]]
        for j in range(k):
            factors[i, j] = graph.factors[places[i], places[j]]
    return tree, up, Graph(graph.first, graph.near, graph.length, graph.factor, graph.lengths, factors)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _borne(root, outer, graph, near, left):  # type: ignore[no-untyped-def]
    """Let places nearby bear what is negative of left (n,) at the places `outer`, but none farther off than the root;
    every operation is rounded to the safe side.
    """
    for u in outer:
        for b in range(1, left.size):
            v = near[u, b]
            d = graph.lengths[u, v]
            if left[u] >= 0 or d > graph.lengths[u, root]:
                break
            if left[v] <= 0:
                continue
            after = _down(left[v] + _handed(left[u], d))
            if after >= 0:
                left[v], left[u] = after, 0.0
            else:
                left[v], left[u] = 0.0, min(_down(left[u] + _handed(left[v], d)), 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _extended(inner, outer, part, graph, r, ray, beyond):  # type: ignore[no-untyped-def]
    """Fill a ray with what it is on the core, part (k,) of places `inner`, and with its smallest extension to `outer`,
    raised where r (n,) is negative.
    """
    k = inner.size
    inverse = np.empty(k)
    for i in range(k):
        inverse[i] = 1.0 / part[i]
        ray[inner[i]] = part[i]
    for u in outer:
        least, at = np.inf, 0
        for i in range(k):
            product = graph.factors[u, inner[i]] * inverse[i]
            if product < least:
                least, at = product, i
        ray[u], beyond[u] = 1.0 / least, inner[at]
    for u in outer:
        if r[u] < 0:
            ray[u] = np.inf
            ray[u] = _least_product(graph.factors[u], ray)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def regrow(cost, dual, which, graph, forest, effort, rays):  # type: ignore[no-untyped-def]
    """Improve the trees of the reports `which` (k,) of a forest for cost (m, n) and dual (n,); fills rays (k, n), g = 1
    at the anchor, and the ratios <cost_y, g> / <dual, g> of the forest. Returns the number of pivots.
    """
    n, pivots = dual.size, 0
    grow = np.empty(n)
    for j in range(which.size):
        y = which[j]
        root, k, ray, whole = forest.anchor[y], forest.core[y], rays[j], forest.core[y] == n
        parent, rises, beyond = forest.parent[y], forest.rises[y], forest.beyond[y]
        most = _PIVOTS * n
        if not whole:
            inner, outer = forest.near[root, :k], forest.near[root, k:]
            tree, up, part = _part(inner, parent, rises, graph)
        for step in range(effort.steps):
            t = 1.0 if effort.fixed else forest.ratio[y]
            r = cost[y] - t * dual
            if whole:
                _climb(root, parent, rises, graph, grow)
                pivots += _improve(root, r, parent, grow, rises, graph, most, effort.gain, ray)
            else:
                if step > 0:  # the simplex ends with the places at which it worked: charges need them
                    for u in outer:
                        parent[u] = beyond[u]
                left = r.copy()
                _borne(root, outer, graph, forest.near, left)
                for u in outer:
                    left[parent[u]] += left[u] / graph.factors[u, parent[u]]
                at = np.int64(0)  # no literal, as in `_improve`
                _climb(at, tree, up, part, grow)
                part_ray = np.empty(k)
                pivots += _improve(at, left[inner], tree, grow[:k], up, part, most, effort.gain, part_ray)
                _extended(inner, outer, part_ray, graph, r, ray, beyond)
            above, below = (cost[y] * ray).sum(), (dual * ray).sum()
            if not below > _NEAR_RATIO * above:  # nowhere near a negative price; multipliers may be negative
                forest.ratio[y] = _FAR_RATIO
                break
            forest.ratio[y] = above / below
            if effort.fixed:
                if whole:
                    break
            elif abs(forest.ratio[y] - t) < effort.change * t or (forest.ratio[y] > t and step >= 2):
                break
        if not whole:
            for i in range(k):
                parent[inner[i]], rises[inner[i]] = inner[tree[i]], up[i]
    return pivots


@numba.njit(cache=True, nogil=True, error_model="numpy")
def charge_reports(cost, dual, which, graph, forest, charge, own):  # type: ignore[no-untyped-def]
    """Raise charge (n,) to what `dual` (n,) has to be lowered by for the trees of the reports `which` (k,) to prove
    that none of their prices is negative; fills own (k,), the sum of the charges of a report. Every operation is
    rounded to the safe side.
    """
    n = dual.size
    child, following, stack = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    order, left = np.empty(n, np.int32), np.empty(n)
    for j in range(which.size):
        y = which[j]
        root, parent, rises = forest.anchor[y], forest.parent[y], forest.rises[y]
        _preorder(root, parent, child, following, stack, order)
        own[j] = 0.0
        for v in range(n):
            left[v] = _down(cost[y, v] - dual[v])
        _borne(root, forest.near[root, forest.core[y] :], graph, forest.near, left)
        for i in range(n - 1, -1, -1):
            v = order[i]
            if v == root:
                if left[v] < 0:
                    charge[v] = max(charge[v], -left[v])
                    own[j] -= left[v]
                break
            p = parent[v]
            d, _ = _edge(v, p, graph)
            handed = _handed(left[v], d)
            if left[v] < 0 and not rises[v] and not left[p] + handed >= 0:
                charge[v] = max(charge[v], -left[v])
                own[j] -= left[v]
                handed = 0.0
            left[p] = _down(left[p] + handed)
