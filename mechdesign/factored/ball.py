"""The ball of a report: the places within some nats of it, on a tree of shortest paths, and the cone program inside.

Let D be the distance from the report y, c(u) = prior(u) l(u, y) and lambda the multipliers. Every ray g >= 0 of the
cone has g(u) in [e^{-d} g(p), e^{d} g(p)] along an edge (u, p) of length d. So for r = c - lambda

* places outside the ball with r >= 0 may be left out: they only add to <r, g>. Those with hardly any prior are left out
  as guests of others, their hosts, whose lambda is larger for it (hosts.py);                                        (1)
* a place in the ball with r(u) >= 0 may hand r(u) e^{-d} to its parent p in any tree, and be left out then.         (2)

The core remains: the places within `core` nats, those where r < 0, and their ancestors. The minimum over the cone of
the core is a lower bound of that over the cone of all places, by a loss that falls like e^{-D}.

Any tree of the ball proves a bound. A place with the sum T, its own r and all that it received, hands its parent

    T e^{-d} where T >= 0,  T e^{d} where T < 0,                                                                     (3)

and the sum at the report is the bound. It increases with r: a tree proves no less once multipliers fall.
A tree is stored as codes, one for each place of the ball in the order of the search. A code is 0 if the parent is that
of the search, else 1 + the number of the parent among the neighbours. Places without a code have 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Indices32, Integers
from mechdesign.base.validation import read_only
from mechdesign.factored.hosts import Hosts, round_up
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import sparse_graph
from mechdesign.solvers.cone.tree_simplex import ConeGraph

_ULP = 2.0**-52
_TINY = 1e-290  # more than a product loses by underflow, and far less than a cost: these are 0 or above 1e-280
_COST = 1 - 2.0**-48  # a few sums, products and a root are right to 2^-50 of a cost: this rounds it down


class Costs(NamedTuple):
    """The arguments of costs: points (n, k), prior (n,), and the code of the loss, or -1 and its table (n, n)."""

    points: Floats
    prior: Floats
    code: int
    table: Floats

    def read_only(self) -> Costs:
        return Costs(read_only(self.points), read_only(self.prior), self.code, read_only(self.table))


class BallRadii(NamedTuple):
    """Nats of a ball and of its core, and of a bucket of the search."""

    reach: float
    core: float
    width: float


class BallScratch(NamedTuple):
    """Scratch arrays for one ball at a time: by place (n,), by number in the ball, and the buckets of a search."""

    distance: Floats  # of a place, inf where no ball is open
    where: Indices32  # its number in the ball, -1 where no ball is open
    before: Indices32  # the place before it on its path
    step: Floats  # the length between the two
    nodes: Indices32  # the place of a number
    cost: Floats
    dual: Floats  # lambda with the amounts of guests beyond the core, 0 for these
    cost_sum: Floats  # c, or r, with the amounts of (2) added
    dual_sum: Floats  # the same of lambda
    rank: Indices32  # the number in the core, or -1
    head: Indices32  # the last entry of a bucket, -1 where it is empty
    following: Indices32  # the entry before an entry
    place: Indices32  # of an entry


class TreeScratch(NamedTuple):
    """Scratch arrays for one tree at a time, by number in the ball (n,)."""

    parent: Indices32
    length: Floats  # of the edge to the parent
    waiting: Indices32  # children that have not handed over yet
    order: Indices32  # every child before its parent
    rest: Floats  # T of (3)


class CoreArrays(NamedTuple):
    """The program of a core: parents tree; above and below, in place of c and lambda; its graph, as `ConeGraph`."""

    tree: Indices32
    above: Floats
    below: Floats
    first: Integers
    near: Indices32
    length: Floats
    factor: Floats


@numba.njit(inline="always")
def loss_between(u, y, costs):  # type: ignore[no-untyped-def]
    """l(u, y); code as in `Loss`, negative for a table."""
    points, code = costs.points, costs.code
    if code < 0:
        loss = costs.table[u, y]
    else:
        loss, apart = 0.0, False
        for axis in range(points.shape[1]):
            loss += (points[u, axis] - points[y, axis]) ** 2
            apart |= points[u, axis] != points[y, axis]
        if code == 1:
            loss = math.sqrt(loss)
        elif code == 2:
            loss = 1.0 if apart else 0.0
    return loss


@numba.njit(inline="always")
def _cost(u, y, costs):  # type: ignore[no-untyped-def]
    # prior(u) l(u, y), rounded down: the bound may only fall.
    cost = costs.prior[u] * loss_between(u, y, costs) * _COST
    return cost if cost > 1e-280 else 0.0


# It works in doubles and may miss the shortest path, since (2) holds for any tree.
@numba.njit(cache=True, nogil=True)
def _search(y, reach, width, graph, room):  # type: ignore[no-untyped-def]
    # Returns the number k of places within `reach` of y. In nodes[:k] each follows the place before it on its path.
    # Dial's buckets of `width` nats, without order inside one: edges shorter than `width` may leave a path that is not
    # the shortest. The tree is another one then, and (2) holds for any tree.
    distance, where, nodes, head, place = room.distance, room.where, room.nodes, room.head, room.place
    distance[y], room.before[y], room.step[y] = 0.0, y, 0.0
    head[0], room.following[0], place[0] = 0, -1, y
    count, k = 1, 0
    for bucket in range(head.size):
        while head[bucket] >= 0:
            v = place[head[bucket]]
            head[bucket] = room.following[head[bucket]]
            if where[v] >= 0:  # a place is entered again whenever it comes nearer, and counts the first time
                continue
            where[v] = k
            nodes[k] = v
            k += 1
            d = distance[v]
            for e in range(graph.first[v], graph.first[v + 1]):
                u = graph.near[e]
                reached = d + graph.length[e]
                if reached < distance[u] and reached <= reach and where[u] < 0:
                    distance[u], room.before[u], room.step[u] = reached, v, graph.length[e]
                    into = int(reached / width)
                    place[count], room.following[count], head[into] = u, head[into], count
                    count += 1
    return k


@numba.njit(cache=True, nogil=True)
def open_ball(y, radii, exact, graph, costs, multipliers, room, inner):  # type: ignore[no-untyped-def]
    """Search the ball of y and write its core to `inner`: numbers of places, of the core, and of its directed edges."""
    # exact: r is passed up the tree, every operation rounded down, and `below` is lambda itself. Otherwise c and lambda
    # are passed up separately, which serves any ratio of them and proves nothing.
    nodes, before, where, rank = room.nodes, room.before, room.where, room.rank
    cost_sum, dual, dual_sum = room.cost_sum, room.dual, room.dual_sum
    k = _search(y, radii.reach, radii.width, graph, room)
    for i in range(k):
        u = nodes[i]
        room.cost[i] = _cost(u, y, costs)
        dual[i] = _load(u, radii.core, room.distance, multipliers)
        rank[i] = 0 if room.distance[u] <= radii.core or room.cost[i] < dual[i] else -1
        cost_sum[i], dual_sum[i] = room.cost[i], dual[i]
    rank[0] = 0
    # The search settles a parent before its children. So one backward sweep marks all ancestors of the core, and a
    # second one passes everything outside the core up to it.
    for i in range(k - 1, 0, -1):
        up = where[before[nodes[i]]]
        if rank[i] == 0:
            rank[up] = 0
    if exact:
        for i in range(k):
            if rank[i] < 0:  # c >= lambda: the difference of doubles, less its rounding error
                cost_sum[i] = max(0.0, (room.cost[i] - dual[i]) * (1 - 2 * _ULP))
    for i in range(k - 1, 0, -1):
        if rank[i] < 0:
            u = nodes[i]
            up = where[before[u]]
            factor = math.exp(-room.step[u])
            if exact:
                # (2), rounded down: 8 units for the exponential and the product, 2 for the sum, _TINY for a product
                # that underflows. To add nothing is always right, hence the maximum.
                amount = cost_sum[i] * factor * (1 - 8 * _ULP) - _TINY
                cost_sum[up] = max(cost_sum[up], (cost_sum[up] + amount) * (1 - 2 * _ULP))
            else:
                cost_sum[up] += cost_sum[i] * factor
                dual_sum[up] += dual_sum[i] * factor
    count = 0
    for i in range(k):
        if rank[i] == 0:
            u = nodes[i]
            rank[i] = count
            inner.tree[count] = rank[where[before[u]]]
            inner.above[count] = cost_sum[i]
            inner.below[count] = dual[i] if exact else dual_sum[i]
            count += 1
    edges, count = 0, 0
    for i in range(k):
        if rank[i] >= 0:
            inner.first[count] = edges
            count += 1
            v = nodes[i]
            for e in range(graph.first[v], graph.first[v + 1]):
                w = where[graph.near[e]]
                if w >= 0 and rank[w] >= 0:  # constraints that leave the core are dropped: the minimum can only fall
                    inner.near[edges], inner.length[edges] = rank[w], graph.length[e]
                    inner.factor[edges] = graph.factor[e]
                    edges += 1
    inner.first[count] = edges
    return k, count, edges


@numba.njit(cache=True, nogil=True)
def close_ball(k, keep, rays, graph, room, numbers, value):  # type: ignore[no-untyped-def]
    """Extend the ray of the core, rays (kc,), to the ball and reset the scratch: <c, g>, <lambda, g>, a count."""
    # The count is that of places within `keep` nats, which are written to numbers and value. room.cost becomes g.
    # Outside the core g falls by e^-d along the tree: the least value that the cone allows, as (2) assumes.
    nodes, distance, where, cost = room.nodes, room.distance, room.where, room.cost
    over, under, count = 0.0, 0.0, 0
    for i in range(k):
        u = nodes[i]
        c = cost[i]
        cost[i] = rays[room.rank[i]] if room.rank[i] >= 0 else cost[where[room.before[u]]] * math.exp(-room.step[u])
        over += c * cost[i]
        under += room.dual[i] * cost[i]
        if distance[u] <= keep:
            numbers[count], value[count] = u, cost[i]
            count += 1
    _clear(k, graph, room)
    return over, under, count


@numba.njit(cache=True, nogil=True)
def _clear(k, graph, room):  # type: ignore[no-untyped-def]
    for i in range(k):
        v = room.nodes[i]
        room.where[v], room.distance[v] = -1, np.inf
        for e in range(graph.first[v], graph.first[v + 1]):  # the search has touched neighbours beyond the ball too
            room.distance[graph.near[e]] = np.inf


@numba.njit(cache=True, nogil=True)
def tree_codes(k, core, tree, graph, room, codes):  # type: ignore[no-untyped-def]
    """Write the codes of a tree of the core, tree (kc,), while its ball is open; return their number."""
    nodes, rank, count = room.nodes, room.rank, 0
    inside = np.empty(core, np.int32)
    for i in range(k):
        if rank[i] >= 0:
            inside[rank[i]] = nodes[i]
    for i in range(1, k):
        codes[i] = 0
        if rank[i] >= 0:
            v, parent = nodes[i], inside[tree[rank[i]]]
            if parent != room.before[v]:
                for e in range(graph.first[v], graph.first[v + 1]):
                    # A code is a byte. Places of more neighbours keep the parent of the search.
                    if graph.near[e] == parent and e - graph.first[v] < 255:
                        codes[i], count = 1 + e - graph.first[v], i + 1
    codes[0] = 0
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def tree_value(y, radii, codes, graph, costs, multipliers, room, tree):  # type: ignore[no-untyped-def]
    """The bound (3) of a tree of the ball of y, every operation rounded down, and its k; the ball stays open."""
    nodes, where, parent, waiting, order, rest = (
        room.nodes,
        room.where,
        tree.parent,
        tree.waiting,
        tree.order,
        tree.rest,
    )
    k = _search(y, radii.reach, radii.width, graph, room)
    for i in range(k):
        waiting[i] = 0
    for i in range(k):
        v = nodes[i]
        room.cost[i] = _cost(v, y, costs)
        rest[i] = _round_down(room.cost[i] - _load(v, radii.core, room.distance, multipliers))
        parent[i], tree.length[i] = where[room.before[v]], room.step[v]
        if i < codes.size and codes[i] > 0:
            e = graph.first[v] + codes[i] - 1
            # Untrusted: the code may name no neighbour, or one outside the ball.
            if e >= graph.first[v + 1] or where[graph.near[e]] < 0:
                return -np.inf, k
            parent[i], tree.length[i] = where[graph.near[e]], graph.length[e]
        if i > 0:
            waiting[parent[i]] += 1
    count = 0
    for i in range(1, k):
        if waiting[i] == 0:
            order[count] = i
            count += 1
    # `order` is its own queue: a parent enters behind the last of its children.
    done = 0
    while done < count:
        i = order[done]
        up, d, amount = parent[i], tree.length[i], rest[i]
        # exp is right to some units in the last place; 8 of them cover it and the product.
        if amount >= 0:
            handed = max(amount * math.exp(-d) * (1 - 8 * _ULP) - _TINY, 0.0)
        else:
            handed = amount * math.exp(d) * (1 + 8 * _ULP) - _TINY
        rest[up] = _round_down(rest[up] + handed)
        waiting[up] -= 1
        if waiting[up] == 0 and up > 0:
            order[count] = up
            count += 1
        done += 1
    # Places on a cycle hand nothing to the report: no tree.
    return rest[0] if done == k - 1 else -np.inf, k


@numba.njit(inline="always")
def _load(v, core, distance, multipliers):  # type: ignore[no-untyped-def]
    # lambda(v) with the amounts of its guests beyond the core, rounded up. A guest beyond it keeps nothing.
    if multipliers.is_guest[v] and distance[v] > core:
        return 0.0
    load = multipliers.dual[v]
    for i in range(multipliers.first[v], multipliers.first[v + 1]):
        if distance[multipliers.guest[i]] > core:  # infinite outside the ball
            load = round_up(load, multipliers.amount[i])
    return load


@numba.njit(inline="always")
def _round_down(x):  # type: ignore[no-untyped-def]
    # One rounding errs by at most half of _ULP; _TINY covers underflow, where the relative bound fails.
    return x - abs(x) * _ULP - _TINY


@numba.njit(cache=True, nogil=True)
def close_tree(k, graph, room):  # type: ignore[no-untyped-def]
    """Reset the scratch after `tree_value`."""
    _clear(k, graph, room)


@numba.njit(cache=True, nogil=True)
def look_around(y, costs, asked, where, lowest_cost):  # type: ignore[no-untyped-def]
    """Number of places outside the ball of y with c < asked; lowest_cost (n,) is lowered to c there."""
    # (1) needs c >= asked, lambda with amounts of guests, at every place left out: all n are looked at.
    count = 0
    for u in range(asked.size):
        if where[u] < 0 and asked[u] > 0:
            c = _cost(u, y, costs)
            if c < asked[u]:
                lowest_cost[u] = min(lowest_cost[u], c)
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def profile(k, room):  # type: ignore[no-untyped-def]
    """Sum of e^{-D}, and of c e^{-D} and lambda e^{-D} over it, in the ball that is open."""
    over, under, dual_over = 0.0, 0.0, 0.0
    for i in range(k):
        g = math.exp(-room.distance[room.nodes[i]])
        over += room.cost[i] * g
        dual_over += room.dual[i] * g
        under += g
    return over / under, dual_over / under, under


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """A problem as arrays for kernels."""

    graph: ConeGraph
    costs: Costs
    hosts: Hosts

    @classmethod
    def of(cls, problem: DesignProblem) -> Places:
        matrix, code = problem.edges.matrix(problem.domain.size).tocsr(), problem.loss.code
        matrix.sort_indices()
        costs = Costs(
            points=np.ascontiguousarray(problem.domain.points, float),
            prior=problem.prior_array,
            code=-1 if code is None else code,
            table=np.ascontiguousarray(problem.loss_matrix) if code is None else np.zeros((0, 0)),
        )
        graph = sparse_graph(matrix)
        return cls(graph=graph, costs=costs, hosts=Hosts.of(graph, costs.prior))

    @property
    def size(self) -> int:
        return len(self.costs.prior)
