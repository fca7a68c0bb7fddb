"""A simplex method on spanning trees: the kernel of pricing.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1    (1)

The extreme rays of the cone are spanning trees of tight constraints: along a tree edge g changes by e^{+d} or e^{-d}.
A pivot takes the tree edge above a node whose subtree gains by moving, scales the subtree until the next constraint is
tight, and hangs it there. Its cost is the size of the subtree and a scan of the nodes.

Cores. Every pricing starts from the tree of the last. On a complete graph it may work within the core of a report, the
places nearest to it. Any other place u follows as the smallest extension, which satisfies all pairs (McShane 1934):

    g(u) = max over v in the core of g(v) e^{-d(u, v)}.                                                             (2)

Bounds and reductions of multipliers (`push_costs`) push r = cost - dual from the leaves of any spanning tree to
its root. v hands its parent

    T e^{-d} where T >= 0,  T e^{+d} where T < 0,                                                                   (4)

where T is the sum of r(v) and all that v received.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices, Indices32, Mask, MaskMatrix, Matrix, Vector

# Compiled code takes no dataclasses: kernels have many arguments, fill arrays of their callers, and read constants.
# Constants of the method. Those of proofs are rounding errors of doubles; the others are guesses, and decide how long a
# pricing takes: every bound is pushed through the tree that it ends with.
_RELATIVE = 1e-12  # gain of a pivot against the mass it moves; far from the anchor all gains are tiny, and still count
_ABSOLUTE = 1e-15  # gain of a pivot against the whole mass, where a proof rests on it
_COARSE = 1e-7  # the same for a ratio, which no proof rests on
_RATIO_STEPS = 20  # of Dinkelbach's method
_RATIO_CHANGE = 1e-6  # relative change of a ratio at which it ends
_PIVOTS_PER_PLACE = 20  # at most
# A ray with <dual, g> below the first times <cost, g> is nowhere near a negative price; its ratio is set to the second.
_NEAR_RATIO, _FAR_RATIO = 0.3, 2.0
_REFRESH = 64  # pivots after which sums over subtrees are computed afresh
_ULP, _TINY = 2.0**-52, 1e-290  # relative and absolute: more than one rounding takes


# Numba makes two wrappers of each function, one for Python and one for C, which take a fifth of the time to compile.
# A kernel needs the first, and a function that only kernels call needs none.
_CALLEE: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class ConeGraph(NamedTuple):
    """A graph in compressed rows."""

    first: Indices  # (n + 1,): the neighbours of v are near[first[v]:first[v + 1]]
    near: Indices32  # (e,)
    length: Vector  # (e,): d in nats
    factor: Vector  # (e,): e^d


class CompleteGraph(NamedTuple):
    """A complete graph. Kernels are compiled for each kind of graph on its own: see `_tightest`."""

    lengths: Matrix  # (n, n): d in nats
    factors: Matrix  # (n, n): e^d


class TreeState(NamedTuple):
    """One tree for each of m reports over n places."""

    anchor: Indices  # (m,): the roots
    parent: NDArray[np.int32]  # (m, n)
    rises: MaskMatrix  # (m, n): True where g is larger than at the parent
    beyond: NDArray[np.int32]  # (m, n): where a place outside of the core attains its extension (2)
    ratio: Vector  # (m,): the last ratio
    core: Indices  # (m,): number of places in the core
    near: NDArray[np.int32]  # (n, n): the places by distance from each; (0, 0) if every core is all places


def first_trees(anchors: Indices, parents: NDArray[np.int32], ratio: Vector | None = None) -> TreeState:
    """The state that starts from copies of trees (b, n), along which g falls."""
    b, n = parents.shape
    none = np.empty((0, 0), np.int32)
    return TreeState(
        anchor=np.array(anchors, np.int64),
        parent=parents.copy(),
        rises=np.zeros((b, n), np.bool_),
        beyond=none,
        ratio=np.ones(b) if ratio is None else ratio,
        core=np.full(b, n, np.int64),
        near=none,
    )


class Effort(NamedTuple):
    """Stopping criteria of the improvement of trees."""

    gain: float  # minimum gain of a pivot against the whole mass
    change: float  # relative change of a ratio at which the search ends
    steps: int  # of Dinkelbach's method, at most
    fixed: bool  # minimise <cost - dual, g> with g = 1 at the anchor, instead of a ratio


class Scratch(NamedTuple):
    """Arrays that a kernel overwrites, made by NumPy: compiling their making takes half a second."""

    links: NDArray[np.int32]  # (6, n)
    numbers: Matrix  # (5, n)

    @classmethod
    def of(cls, size: int) -> Scratch:
        # Longer rows: those of 4,096 bytes would all meet in the same lines of the cache.
        return cls(np.empty((6, size + 16), np.int32), np.empty((5, size + 16)))


class Tree(NamedTuple):
    """One spanning tree and its ray, all (n,) or longer."""

    parent: NDArray[np.int32]  # parent[root] = root
    child: NDArray[np.int32]  # the first child, -1 at a leaf
    following: NDArray[np.int32]  # the next sibling, -1 at the end
    before: NDArray[np.int32]  # the previous sibling, -1 at the end
    rises: Mask  # True where g is larger than at the parent
    grow: Vector  # g / g(parent): e^{+d} or e^{-d} of the edge
    g: Vector  # the ray, g[root] = 1
    value: Vector  # sum of r g over the subtree: fresh in `_sum_subtrees`, updated by `_pivot`
    mass: Vector  # sum of |r| g, likewise
    stamp: NDArray[np.int32]  # the pivot that last moved the node; negative where it only changed its sums
    stack: NDArray[np.int32]  # scratch
    order: NDArray[np.int32]  # scratch: the nodes of a subtree
    scratch: Vector  # scratch: numbers


# ---- Public kernels: blocks of reports ----


# All compiled functions are in this file: Numba's cache does not notice a change of a callee in another file.
@numba.njit(**_KERNEL)
def price_ratios(cost, dual, graph, state, scratch, rays):  # type: ignore[no-untyped-def]
    """Fill ratios of the state, from their start, with min <cost_y, g> / <dual, g>, and rays (b, n) that attain it."""
    n, grow, r = dual.size, scratch.numbers[0], scratch.numbers[1]
    for y in range(state.anchor.size):
        root, parent, rises, g = state.anchor[y], state.parent[y], state.rises[y], rays[y]
        _fill_growth(root, parent, rises, graph, grow)
        for _ in range(_RATIO_STEPS):
            # Dinkelbach: the ratio is optimal when the minimum of <cost - ratio dual, g> is 0.
            t = state.ratio[y]
            _fill_reduced(cost[y], dual, t, r)
            _optimise(root, r, parent, grow, rises, graph, _PIVOTS_PER_PLACE * n, _COARSE, scratch, g)
            above, below = _products(cost[y], dual, g)
            state.ratio[y] = above / below
            if abs(state.ratio[y] - t) < _RATIO_CHANGE * t:
                break


@numba.njit(**_KERNEL)
def price_trees(cost, dual, which, graph, state, effort, scratch, rays):  # type: ignore[no-untyped-def]
    """Improve the trees of the reports `which` (k,); fill rays (k, n), 1 at the anchor, and ratios of the state."""
    n, grow, r = dual.size, scratch.numbers[0], scratch.numbers[1]
    for j in range(which.size):
        y = which[j]
        root, ray, parent, rises = state.anchor[y], rays[j], state.parent[y], state.rises[y]
        for step in range(effort.steps):
            t = 1.0 if effort.fixed else state.ratio[y]
            _fill_reduced(cost[y], dual, t, r)
            _fill_growth(root, parent, rises, graph, grow)
            _optimise(root, r, parent, grow, rises, graph, _PIVOTS_PER_PLACE * n, effort.gain, scratch, ray)
            if _ends_search(cost[y], dual, ray, state.ratio, y, t, step, effort) or effort.fixed:
                break


@numba.njit(**_CALLEE)
def _ends_search(cost, dual, ray, ratio, y, t, step, effort):  # type: ignore[no-untyped-def]
    """Set ratio[y] to that of a ray; True if Dinkelbach's method ends."""
    above, below = _products(cost, dual, ray)
    if not below > _NEAR_RATIO * above:  # multipliers may be negative
        ratio[y] = _FAR_RATIO
        return True
    ratio[y] = above / below
    # From the third step on a ratio that rises is rounding: exact Dinkelbach steps only fall.
    return not effort.fixed and (abs(ratio[y] - t) < effort.change * t or (ratio[y] > t and step >= 2))


@numba.njit(**_KERNEL)
def price_cores(cost, dual, which, graph, state, effort, scratch, rays):  # type: ignore[no-untyped-def]
    """The same on a complete graph, for reports with a core."""
    n, grow, r = dual.size, scratch.numbers[0], scratch.numbers[1]
    for j in range(which.size):
        y = which[j]
        root, k, ray, is_whole = state.anchor[y], state.core[y], rays[j], state.core[y] == n
        parent, rises, beyond = state.parent[y], state.rises[y], state.beyond[y]
        max_pivots = _PIVOTS_PER_PLACE * n
        # `near` orders places by distance, so the core is a prefix of the row of the root.
        if not is_whole:
            inner, outer = state.near[root, :k], state.near[root, k:]
            tree, up, core = _core_tree(inner, parent, rises, graph)
        for step in range(effort.steps):
            t = 1.0 if effort.fixed else state.ratio[y]
            _fill_reduced(cost[y], dual, t, r)
            if is_whole:
                _fill_growth(root, parent, rises, graph, grow)
                _optimise(root, r, parent, grow, rises, graph, max_pivots, effort.gain, scratch, ray)
            else:
                if step > 0:  # the simplex ends with the places at which it worked: reductions need them
                    for u in outer:
                        parent[u] = beyond[u]
                # The core's program sees the outer costs at the places where their extensions (2) hang.
                rest = r.copy()
                _absorb_negative(root, outer, graph, state.near, rest)
                for u in outer:
                    rest[parent[u]] += rest[u] / graph.factors[u, parent[u]]
                # The root is the nearest place to itself, hence number 0 of the core.
                first = np.int64(0)  # no literal, as in `_optimise`
                _fill_growth(first, tree, up, core, grow)
                core_ray = np.empty(k)
                _optimise(first, rest[inner], tree, grow, up, core, max_pivots, effort.gain, scratch, core_ray)
                _extend(inner, outer, core_ray, graph, r, ray, beyond)
            if _ends_search(cost[y], dual, ray, state.ratio, y, t, step, effort) or (effort.fixed and is_whole):
                break
        # Number the tree of the core in places again, where the next pricing starts from it.
        if not is_whole:
            for i in range(k):
                parent[inner[i]], rises[inner[i]] = inner[tree[i]], up[i]


@numba.njit(**_KERNEL)
def push_costs(cost, dual, which, graph, state, reduction, scratch, sums):  # type: ignore[no-untyped-def]
    """Raise reduction (n,) of dual until trees of `which` (k,) prove prices >= 0 by (4); fill their sums (k,).

    Without reduction, (0,), fill sums (k,) with the amounts that reach the roots: lower bounds of (1).
    """
    # The bound (4) holds for any tree, so an early end of the pivots weakens it and never breaks it.
    #
    # For g in the cone T g(v) is at least the handed amount times g(parent), since g(v) lies in [e^{-d}, e^{d}]
    # g(parent). Where T < 0 and the parent cannot absorb it, and at the root, hand over nothing and reduce the dual at
    # v by -T. The handed amount increases with T. Take the dual less the largest reduction of any report. Then no T
    # falls, and T at reduced nodes and at the root is 0 or more. Hence no price is negative, whatever the trees are.
    n, reduces = dual.size, reduction.size > 0
    child, following, stack, order = scratch.links[0], scratch.links[1], scratch.links[2], scratch.links[3]
    rest = scratch.numbers[0]
    for j in range(which.size):
        y = which[j]
        root, parent, rises = state.anchor[y], state.parent[y], state.rises[y]
        _preorder(root, parent, child, following, stack, order)
        sums[j] = 0.0
        for v in range(n):
            rest[v] = _round_down(cost[y, v] - dual[v])  # rounded to the safe side, as all that follows
        if reduces:
            _absorb(root, y, graph, state, rest)
        # Reverse preorder: a node has received from all its children before it hands over.
        for i in range(n - 1, -1, -1):
            v = order[i]
            if v == root:
                if not reduces:
                    sums[j] = rest[v]
                elif rest[v] < 0:
                    reduction[v] = max(reduction[v], -rest[v])
                    sums[j] -= rest[v]
                break
            p = parent[v]
            d, _ = _edge(v, p, graph)
            handed = _hand_over(rest[v], d)
            # (4): a negative amount goes up a falling edge only if the parent can absorb it; otherwise the dual pays.
            if reduces and rest[v] < 0 and not rises[v] and not rest[p] + handed >= 0:
                reduction[v] = max(reduction[v], -rest[v])
                sums[j] -= rest[v]
                handed = 0.0
            # A lower bound of the exact sum, so that reductions are too large rather than too small.
            rest[p] = _round_down(rest[p] + handed)


@numba.njit(**_KERNEL)
def shortest_trees(distance, graph, parents):  # type: ignore[no-untyped-def]
    """Fill parents (m, n) of trees of shortest paths of lengths `distance` (m, n); True if every place has one."""
    n = distance.shape[1]
    for y in range(distance.shape[0]):
        row = distance[y]
        for v in range(n):
            shortest, parents[y, v] = np.inf, v
            for e in range(graph.first[v], graph.first[v + 1]):
                x = graph.near[e]
                # Strictly nearer parents only: equal distances could close a cycle.
                if row[x] < row[v] and row[x] + graph.length[e] < shortest:
                    shortest, parents[y, v] = row[x] + graph.length[e], x
            # The distances are not those of this graph; the caller then searches for the paths itself.
            if parents[y, v] == v and row[v] > 0:
                return False
    return True


# ---- The simplex method ----


@numba.njit(**_CALLEE)
def _optimise(root, r, parent, grow, rises, graph, max_pivots, absolute, room, g):  # type: ignore[no-untyped-def]
    """Pivot `parent` (n,) to the minimising tree of r (n,), by about `max_pivots` at most; fill g (n,), its ray."""
    # A pivot updates sums over subtrees along the two paths to the root; they are computed afresh before the end. The
    # ratio test looks at the edges of the subtree; on a complete graph, at one minimum of products for every place of
    # the smaller side. The arrays grow and rises (n,), of `_fill_growth`, change with the tree. absolute: minimum gain
    # against the whole mass. First the best pivot at a time, while gains are large against the whole. Sums that were
    # updated often do not resolve small gains far from the root: those are taken in batches with fresh sums and
    # disjoint subtrees.
    n, links, numbers = g.size, room.links, room.numbers
    child, following, before, stack, order, stamp = links[0], links[1], links[2], links[3], links[4], links[5]
    value, mass, scratch = numbers[2], numbers[3], numbers[4]
    tree = Tree(parent, child, following, before, rises, grow, g, value, mass, stamp, stack, order, scratch)
    scale = 0.0
    for v in range(n):
        scale += abs(r[v])
        stamp[v] = 0
    pivots, number = 0, 0
    while True:
        _preorder(root, parent, child, following, stack, order)
        for v in range(n):
            previous, c = -1, child[v]
            while c >= 0:
                before[c] = previous
                previous, c = c, following[c]
        # Fresh sums after every batch of pivots: updates lose digits where g ranges over many magnitudes.
        _sum_subtrees(root, r, parent, grow, g, order, value, mass)
        done = pivots
        min_gain = absolute * max(scale, mass[root])
        while pivots < min(max_pivots, done + _REFRESH):
            # A subtree that moves up by a small factor adds that share of `value` to <r, g>. Where it rises it can only
            # move down, which gains `value`; elsewhere only up, which gains the opposite.
            # No literal -1: it would be a type of its own, for which all that is called is compiled anew.
            best, node = min_gain, np.int64(-1)
            for v in range(n):
                gain = value[v] if rises[v] else -value[v]
                if gain > best and v != root:
                    best, node = gain, np.int64(v)
            number += 1
            # No gain is left, or the subtree of the best one cannot move.
            if node < 0 or not _pivot(node, root, graph, tree, number):
                break
            pivots += 1
        if pivots == done:
            fresh = number  # nodes stamped later are in a subtree, or on a path, whose sums this batch has changed
            for v in range(n):
                gain = value[v] if rises[v] else -value[v]
                if (
                    absolute <= _ABSOLUTE  # no proof rests on a ratio, whose search ends without these
                    and gain > _RELATIVE * mass[v]
                    and v != root
                    and abs(stamp[v]) <= fresh
                    and pivots < max_pivots
                ):
                    number += 1
                    pivots += _pivot(v, root, graph, tree, number)
        # Not even the small gains, judged subtree by subtree, are left: the tree is optimal to rounding.
        if pivots == done:
            return


@numba.njit(**_CALLEE)
def _pivot(node, root, graph, tree, number):  # type: ignore[no-untyped-def]
    """Move the subtree of `node` to where its next constraint is tight; `number` stamps nodes whose sums change."""
    g, value, mass, order = tree.g, tree.value, tree.mass, tree.order
    count = _collect_subtree(node, tree, number)
    # The edge to the parent is tight one way, so g of the subtree can move only the other way: up where it falls to
    # `node`, down where it rises. `bound` is the factor up to the first other constraint across the cut.
    raising = not tree.rises[node]
    bound, inner, outer, joint = _tightest(count, raising, graph, tree, number)
    # No finite constraint across the cut: g has overflowed, or the graph is not connected.
    if inner < 0:
        return False
    # The old path to the root loses the sums of the subtree before it is scaled; the new path gains them afterwards.
    _add_along_path(tree.parent[node], root, -value[node], -mass[node], tree, number)
    change = bound if raising else 1.0 / bound
    for i in range(count):
        v = order[i]
        g[v] *= change
        value[v] *= change
        mass[v] *= change
    all_value, all_mass = value[node], mass[node]
    # `_hang` reads the sums of `node` first, hence the copies: afterwards `node` is below `inner`.
    _hang(node, inner, outer, joint, raising, tree)
    _add_along_path(outer, root, all_value, all_mass, tree, number)
    return True


@numba.njit(**_CALLEE)
def _collect_subtree(node, tree, number):  # type: ignore[no-untyped-def]
    """Fill `order` with the nodes of the subtree of `node`, and stamp them; return their count."""
    stack, order = tree.stack, tree.order
    stack[0], top, count = node, 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        order[count] = v
        count += 1
        tree.stamp[v] = number
        c = tree.child[v]
        while c >= 0:
            stack[top] = c
            top += 1
            c = tree.following[c]
    return count


@numba.njit(**_CALLEE)
def _add_along_path(v, root, value, mass, tree, number):  # type: ignore[no-untyped-def]
    """Add to the sums of v and of all nodes above it, and stamp them as changed."""
    while True:
        tree.value[v] += value
        tree.mass[v] += mass
        tree.stamp[v] = -number
        if v == root:
            break
        v = tree.parent[v]


@numba.njit(**_CALLEE)
def _hang(node, inner, outer, joint, raising, tree):  # type: ignore[no-untyped-def]
    """Hang the subtree of `node` by its node `inner` at `outer`, over an edge of factor `joint`."""
    # On the path from `inner` to `node` parent and child change places. The sums below a node of the path are then
    # those of the whole subtree less those below the node before.
    parent, rises, grow, value, mass = tree.parent, tree.rises, tree.grow, tree.value, tree.mass
    all_value, all_mass = value[node], mass[node]
    v, up, step, rise = inner, outer, joint if raising else 1.0 / joint, raising
    under_value, under_mass = 0.0, 0.0
    while True:
        old_parent, old_step, old_rise = parent[v], grow[v], rises[v]
        old_value, old_mass = value[v], mass[v]
        value[v], mass[v] = all_value - under_value, all_mass - under_mass
        _unlink(v, parent, tree.child, tree.following, tree.before)
        _link(v, up, parent, tree.child, tree.following, tree.before)
        grow[v], rises[v] = step, rise
        if v == node:
            break
        under_value, under_mass = old_value, old_mass
        # The same edge, seen from its other end.
        up, step, rise, v = v, 1.0 / old_step, not old_rise, old_parent


def _tightest_edge(count, raising, graph, tree, number):  # type: ignore[no-untyped-def]
    """The first tight edge at the border of a subtree: bound on the subtree's factor, ends in and out, own factor."""
    g, stamp = tree.g, tree.stamp  # ends are -1 without an edge
    bound, inner, outer, joint = np.inf, -1, -1, 1.0
    for i in range(count):
        a = tree.order[i]
        for e in range(graph.first[a], graph.first[a + 1]):
            x = graph.near[e]
            if stamp[x] != number:
                slack = graph.factor[e] * g[x] / g[a] if raising else graph.factor[e] * g[a] / g[x]
                if slack < bound:
                    bound, inner, outer, joint = slack, a, x, graph.factor[e]
    return bound, inner, outer, joint


def _tightest_pair(count, raising, graph, tree, number):  # type: ignore[no-untyped-def]
    """The same among all pairs."""
    g, stamp, order, scratch, factors = tree.g, tree.stamp, tree.order, tree.scratch, graph.factors
    n, few = g.size, 2 * count <= g.size  # a product for every node of the smaller side
    # Infinity keeps the side that is scanned row by row out of the minimum of products.
    for x in range(n):
        moves = stamp[x] == number
        if few == moves:
            scratch[x] = np.inf
        else:
            scratch[x] = g[x] if raising == few else 1.0 / g[x]
    bound, hit = np.inf, -1
    for i in range(count if few else n):
        a = order[i] if few else i
        if few or stamp[a] != number:
            smallest = _smallest_product(factors[a], scratch, n)
            smallest = smallest / g[a] if raising == few else smallest * g[a]
            if smallest < bound:
                bound, hit = smallest, a
    # Only the best row is searched again for its column, since `_smallest_product` returns no index.
    if hit < 0:
        return bound, -1, -1, 1.0
    smallest, other = np.inf, -1
    for x in range(n):
        product = factors[hit, x] * scratch[x]
        if product < smallest:
            smallest, other = product, x
    inner, outer = (hit, other) if few else (other, hit)
    return bound, inner, outer, factors[inner, outer]


# nnan and reassoc let the compiler use vector minima; no argument is NaN, and a minimum has no order.
@numba.njit(**_CALLEE, fastmath={"nnan", "nsz", "arcp", "contract", "reassoc"})
def _smallest_product(a, b, size):  # type: ignore[no-untyped-def]
    """The minimum of a(x) b(x) over the first `size` places, in vector instructions."""
    smallest = np.inf
    for x in range(size):
        product = a[x] * b[x]
        smallest = product if product < smallest else smallest
    return smallest


# ---- Cores ----


@numba.njit(**_CALLEE)
def _core_tree(places, parents, rises, graph):  # type: ignore[no-untyped-def]
    """The tree of a report and the graph within its core `places` (k,), numbered by their index there."""
    k = places.size
    number = np.empty(parents.size, np.int32)
    for i in range(k):
        number[places[i]] = i
    tree, up, factors = np.empty(k, np.int32), np.empty(k, np.bool_), np.empty((k, k))
    for i in range(k):
        tree[i], up[i] = number[parents[places[i]]], rises[places[i]]
        for j in range(k):
            factors[i, j] = graph.factors[places[i], places[j]]
    return tree, up, CompleteGraph(graph.lengths, factors)


@numba.njit(**_CALLEE)
def _extend(inner, outer, core_ray, graph, r, ray, beyond):  # type: ignore[no-untyped-def]
    """Fill a ray with core_ray (k,) at `inner` and its extension (2) at `outer`, raised where r (n,) is negative."""
    k = inner.size
    inverse = np.empty(k)
    for i in range(k):
        inverse[i] = 1.0 / core_ray[i]
        ray[inner[i]] = core_ray[i]
    # (2) as a minimum: 1 / g(u) = min over v of e^{d(u, v)} / g(v). A product is cheaper than a quotient.
    for u in outer:
        smallest, nearest = np.inf, 0
        for i in range(k):
            product = graph.factors[u, inner[i]] * inverse[i]
            if product < smallest:
                smallest, nearest = product, i
        ray[u], beyond[u] = 1.0 / smallest, inner[nearest]
    for u in outer:
        # With r(u) < 0, as wherever the prior is zero, the largest admissible g(u) is best: min over all other places
        # of e^{d(u, x)} g(x).
        if r[u] < 0:
            ray[u] = np.inf
            ray[u] = _smallest_product(graph.factors[u], ray, ray.size)


@numba.njit(**_CALLEE)
def _absorb_negative(root, outer, graph, near, rest):  # type: ignore[no-untyped-def]
    """Let places no farther than the root absorb negative rest (n,) of `outer`, rounded to the safe side."""
    # For every a >= 0 and places v with r > 0
    #     -a g(u) >= -a e^{d(u, v)} g(v).                                                                           (3)
    for u in outer:
        for b in range(1, near.shape[1]):
            v = near[u, b]
            d = graph.lengths[u, v]
            # Farther places would hand over more than the root itself.
            if rest[u] >= 0 or d > graph.lengths[u, root]:
                break
            if rest[v] <= 0:
                continue
            after = _round_down(rest[v] + _hand_over(rest[u], d))
            # v absorbs all of it; else v is used up, and the remainder goes to the next place.
            if after >= 0:
                rest[v], rest[u] = after, 0.0
            else:
                rest[v], rest[u] = 0.0, min(_round_down(rest[u] + _hand_over(rest[v], d)), 0.0)


# ---- Bounds, rounded to the safe side ----


@numba.njit(inline="always")
def _round_down(x):  # type: ignore[no-untyped-def]
    """A lower bound of a sum or difference before it was rounded to x."""
    # One rounding errs by at most half of _ULP; _TINY covers underflow, where the relative bound fails.
    return x - abs(x) * _ULP - _TINY


@numba.njit(inline="always")
def _hand_over(rest, d):  # type: ignore[no-untyped-def]
    """The amount that a node hands over an edge of length d (4), rounded down; >= 0 where rest is."""
    if rest >= 0:
        # exp is right to some units in the last place; 8 of them cover it and the product.
        return max(rest * math.exp(-d) * (1 - 8 * _ULP) - _TINY, 0.0)
    return rest * math.exp(d) * (1 + 8 * _ULP) - _TINY


# ---- Trees as arrays ----


@numba.njit(**_CALLEE)
def _preorder(root, parent, child, following, stack, order):  # type: ignore[no-untyped-def]
    """Fill `order` with the nodes of a tree, every parent before its children; also the child and sibling lists."""
    n = parent.size
    # Child lists from parents in O(n): each node is pushed to the front of its parent's list.
    for v in range(n):
        child[v] = -1
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


@numba.njit(**_CALLEE)
def _sum_subtrees(root, r, parent, grow, g, order, value, mass):  # type: ignore[no-untyped-def]
    """Fill g along the tree, and the sums of r g (value) and |r| g (mass) over every subtree."""
    n = g.size
    g[root] = 1.0
    # Parents come first in `order`, so g of the parent is known.
    for i in range(1, n):
        v = order[i]
        g[v] = g[parent[v]] * grow[v]
    for v in range(n):
        value[v], mass[v] = r[v] * g[v], abs(r[v]) * g[v]
    for i in range(n - 1, 0, -1):
        v = order[i]
        value[parent[v]] += value[v]
        mass[parent[v]] += mass[v]


@numba.njit(**_CALLEE)
def _fill_growth(root, parent, rises, graph, grow):  # type: ignore[no-untyped-def]
    for v in range(parent.size):
        grow[v] = 1.0
        if v != root:
            _, factor = _edge(v, parent[v], graph)
            grow[v] = factor if rises[v] else 1.0 / factor


@numba.njit(**_CALLEE)
def _fill_reduced(cost, dual, t, r):  # type: ignore[no-untyped-def]
    # A loop: the compilation of array expressions takes a second.
    for v in range(dual.size):
        r[v] = cost[v] - t * dual[v]


@numba.njit(**_CALLEE)
def _products(cost, dual, ray):  # type: ignore[no-untyped-def]
    above, below = 0.0, 0.0
    for v in range(ray.size):
        above += cost[v] * ray[v]
        below += dual[v] * ray[v]
    return above, below


# Functions by the kind of graph, so that nobody waits for the compilation of the other kind.
def _tightest(count: Any, raising: Any, graph: Any, tree: Any, number: Any) -> Any:
    """The first tight edge at the border of a subtree: bound on its factor, ends in and out, own factor."""
    raise NotImplementedError


@overload(_tightest, jit_options=_CALLEE)
def _tightest_of(count, raising, graph, tree, number):  # type: ignore[no-untyped-def]
    return _tightest_pair if _is_complete(graph) else _tightest_edge


def _edge(v: Any, up: Any, graph: Any) -> Any:
    """Length and factor of the edge from v to `up`."""
    raise NotImplementedError


@overload(_edge, jit_options=_CALLEE)
def _edge_of(v, up, graph):  # type: ignore[no-untyped-def]
    if _is_complete(graph):
        return lambda v, up, graph: (graph.lengths[v, up], graph.factors[v, up])

    def search(v, up, graph):  # type: ignore[no-untyped-def]
        for e in range(graph.first[v], graph.first[v + 1]):
            if graph.near[e] == up:
                return graph.length[e], graph.factor[e]
        return np.inf, np.inf

    return search


def _absorb(root: Any, y: Any, graph: Any, state: Any, rest: Any) -> Any:
    """Let places near the root absorb negative rest (n,) of the places outside of the core of report y, if any."""
    raise NotImplementedError


@overload(_absorb)
def _absorb_of(root, y, graph, state, rest):  # type: ignore[no-untyped-def]
    if not _is_complete(graph):
        return lambda root, y, graph, state, rest: None

    def of_core(root, y, graph, state, rest):  # type: ignore[no-untyped-def]
        _absorb_negative(root, state.near[root, state.core[y] :], graph, state.near, rest)

    return of_core


def _is_complete(graph: numba.types.NamedTuple) -> bool:
    return "factors" in graph.fields


@numba.njit(**_CALLEE)
def _unlink(v, parent, child, following, before):  # type: ignore[no-untyped-def]
    if before[v] >= 0:
        following[before[v]] = following[v]
    else:
        child[parent[v]] = following[v]
    if following[v] >= 0:
        before[following[v]] = before[v]


@numba.njit(**_CALLEE)
def _link(v, up, parent, child, following, before):  # type: ignore[no-untyped-def]
    parent[v] = up
    before[v], following[v] = -1, child[up]
    if child[up] >= 0:
        before[child[up]] = v
    child[up] = v
