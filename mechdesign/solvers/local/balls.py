"""Balls: the places within some nats of a report, on a tree of shortest paths, and the small cone program inside.

Let D be the distance from the report y, c(u) = prior(u) l(u, y) and lambda the multipliers. Every ray g of the cone has
g(u) in [e^{-d} g(p), e^{d} g(p)] along an edge (u, p) of length d, and g >= 0. So for r = c - lambda

* places outside the ball with r >= 0 may be left out: they only add to <r, g>;
* a place in the ball with r(u) >= 0 may hand r(u) e^{-d} to its parent p in any tree, and be left out then.

What is left, the core, are the places within `core` nats, those where r < 0, and their ancestors in the tree: the
minimum over the cone of the core is a lower bound of that over the cone of all places. It is attained nearly: what is
lost falls like e^{-D}. Compiled functions stand in this file alone.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_ULP = 2.0**-52
_TINY = 1e-290  # below every normal number that is rounded here
_COST = 1 - 2.0**-48  # products and roots of a cost are right to 2^-50


@numba.njit(cache=True, nogil=True, inline="always")
def _cost(u, y, points, prior, code, table):  # type: ignore[no-untyped-def]
    """Prior(u) l(u, y), rounded down; code as in `Loss`, negative for a table."""
    if code < 0:
        loss = table[u, y]
    else:
        loss, apart = 0.0, False
        for axis in range(points.shape[1]):
            loss += (points[u, axis] - points[y, axis]) ** 2
            apart |= points[u, axis] != points[y, axis]
        if code == 1:
            loss = math.sqrt(loss)
        elif code == 2:
            loss = 1.0 if apart else 0.0
    cost = prior[u] * loss * _COST
    return cost if cost > 1e-280 else 0.0


@numba.njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    y, reach, first, near, length, width, distance, where, nodes, before, step, head, following, place
):  # fmt: skip
    """Shortest paths from y up to `reach`, by buckets of `width` nats: the number k of places found, nodes[:k], every
    one after the place before it, where (n,) their number in it, before (n,) the place before each and step (n,) the
    length between. distance is inf and where -1 on entry; head, -1 on entry, has the last entry of every bucket.

    Lengths below `width` may make a path a little longer than the shortest, and the tree another one, no matter.
    """
    distance[y], before[y], step[y] = 0.0, y, 0.0
    head[0], following[0], place[0] = 0, -1, y
    count, k = 1, 0
    for bucket in range(head.size):
        while head[bucket] >= 0:
            v = place[head[bucket]]
            head[bucket] = following[head[bucket]]
            if where[v] >= 0:
                continue
            where[v] = k
            nodes[k] = v
            k += 1
            d = distance[v]
            for e in range(first[v], first[v + 1]):
                u = near[e]
                reached = d + length[e]
                if reached < distance[u] and reached <= reach and where[u] < 0:
                    distance[u], before[u], step[u] = reached, v, length[e]
                    into = int(reached / width)
                    place[count], following[count], head[into] = u, head[into], count
                    count += 1
    return k


@numba.njit(cache=True, nogil=True)
def open_ball(  # type: ignore[no-untyped-def]
    y, reach, core, exact, first, near, length, factor, width, points, prior, code, table, dual, distance, where, nodes,
    before, step, head, following, place, cost, left, handed, rank, tree, above, below, own_first, own_near, own_length,
    own_factor,
):  # fmt: skip
    """Search the ball of y and write the program of its core, numbered as they were found: parents tree (kc,),
    above and below (kc,), what stands for c and lambda, and its graph in compressed rows own_first, own_near,
    own_length and own_factor. Returns k, kc and the number of its directed edges.

    exact: r is pushed, every operation rounded down, and `below` is lambda itself. Else c and lambda are pushed each on
    its own, which serves every ratio of them and proves nothing.
    rank (n,), by number in the ball, is the number in the core, or -1. cost (n,) is c, by number in the ball.
    """
    k = _search(y, reach, first, near, length, width, distance, where, nodes, before, step, head, following, place)
    for i in range(k):
        u = nodes[i]
        cost[i] = _cost(u, y, points, prior, code, table)
        rank[i] = 0 if distance[u] <= core or cost[i] < dual[u] else -1
        left[i], handed[i] = cost[i], dual[u]
    rank[0] = 0
    for i in range(k - 1, 0, -1):
        up = where[before[nodes[i]]]
        if rank[i] == 0:
            rank[up] = 0
    if exact:
        for i in range(k):
            if rank[i] < 0:
                left[i] = max(0.0, (cost[i] - dual[nodes[i]]) * (1 - 2 * _ULP))
    for i in range(k - 1, 0, -1):
        if rank[i] < 0:
            u = nodes[i]
            up = where[before[u]]
            share = math.exp(-step[u])
            if exact:
                left[up] = max(left[up], (left[up] + (left[i] * share * (1 - 8 * _ULP) - _TINY)) * (1 - 2 * _ULP))
            else:
                left[up] += left[i] * share
                handed[up] += handed[i] * share
    count = 0
    for i in range(k):
        if rank[i] == 0:
            u = nodes[i]
            rank[i] = count
            tree[count] = rank[where[before[u]]]
            above[count] = left[i]
            below[count] = dual[u] if exact else handed[i]
            count += 1
    edges, count = 0, 0
    for i in range(k):
        if rank[i] >= 0:
            own_first[count] = edges
            count += 1
            v = nodes[i]
            for e in range(first[v], first[v + 1]):
                w = where[near[e]]
                if w >= 0 and rank[w] >= 0:
                    own_near[edges], own_length[edges], own_factor[edges] = rank[w], length[e], factor[e]
                    edges += 1
    own_first[count] = edges
    return k, count, edges


@numba.njit(cache=True, nogil=True)
def close_ball(k, keep, rays, dual, first, near, distance, where, nodes, before, step, cost, rank, found, value):  # type: ignore[no-untyped-def]
    """Continue the ray of the core, rays (kc,), over the ball, and forget the ball: distance and where are as before.

    Returns <c, g> and <lambda, g> on the ball, and how many places within `keep` nats, and the core, were written to
    found and value (n,), their numbers and g. nodes, cost and rank as `open_ball` leaves them; cost is overwritten.
    """
    over, under, count = 0.0, 0.0, 0
    for i in range(k):
        u = nodes[i]
        c = cost[i]
        cost[i] = rays[rank[i]] if rank[i] >= 0 else cost[where[before[u]]] * math.exp(-step[u])
        over += c * cost[i]
        under += dual[u] * cost[i]
        if distance[u] <= keep:
            found[count], value[count] = u, cost[i]
            count += 1
    for i in range(k):
        v = nodes[i]
        where[v], distance[v] = -1, np.inf
        for e in range(first[v], first[v + 1]):
            distance[near[e]] = np.inf
    return over, under, count


@numba.njit(cache=True, nogil=True)
def look_around(y, points, prior, code, table, dual, where, least):  # type: ignore[no-untyped-def]
    """How many places outside the ball of y have c < lambda; least (n,) is lowered to c there."""
    count = 0
    for u in range(dual.size):
        if where[u] < 0 and dual[u] > 0:
            c = _cost(u, y, points, prior, code, table)
            if c < dual[u]:
                least[u] = min(least[u], c)
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def profile(k, distance, nodes, cost, dual):  # type: ignore[no-untyped-def]
    """Sum of e^{-D}, and of c e^{-D} and lambda e^{-D} over it, in the ball that is open."""
    over, under, held = 0.0, 0.0, 0.0
    for i in range(k):
        g = math.exp(-distance[nodes[i]])
        over += cost[i] * g
        held += dual[nodes[i]] * g
        under += g
    return over / under, held / under, under
