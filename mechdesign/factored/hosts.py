"""Hosts of places with little or no prior: the places to which they hand their multipliers.

Let c(u) = prior(u) l(u, y), lambda the multipliers, and D a length of a path from u to another place v, its host. Every
ray of the cone has 0 <= g(u) <= e^D g(v), and c >= 0, so that

    (c(u) - lambda(u)) g(u) >= -max(0, lambda(u)) e^D g(v).                                                          (1)

So a report may leave out lambda(u) of u, a guest, if the amount max(0, lambda(u)) e^D is added to lambda(v). Where the
prior of u is 0, u could not be left out otherwise unless lambda(u) <= 0. A report

* adds the amounts of the guests beyond its core, whose own lambda is 0 then, to the hosts in its ball;              (2)
* leaves out a host outside its ball, with all its guests beyond the core, if c(v) >= asked(v), lambda(v) plus the
  amounts of all its guests;                                                                                         (3)
* takes guests in the core as any other place. If the host of one is outside, (3) asks for more than it needs.       (4)

Hosts follow from priors and edges alone: the host of u minimises D(u, v) - ln prior(v). They are found in integers, and
the smallest of equal ones counts, so that another machine finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numba.extending import register_jitable
from scipy.sparse.csgraph import dijkstra

from mechdesign.base.arrays import Booleans, Floats, Indices32, Integers, Vector
from mechdesign.base.validation import read_only
from mechdesign.solvers.cone.tree_simplex import ConeGraph

_ULP, _TINY = 2.0**-52, 1e-290  # as in ball.py
_UNIT = 2.0**-20  # nats of the integers
# Guesses, in nats. A guest has less than e^-7, a thousandth, of prior(v) e^-D at its host: others are rarely missed.
# Beyond 8 nats a host would be asked for thousands of multipliers: such a place is left out as any other.
_LESS, _FARTHEST = 7.0, 8.0
_FITS = 1 - 1e-12  # of the room that a host has: more than rounding takes


class Multipliers(NamedTuple):
    """Multipliers as kernels read them; the guests of v are guest[first[v]:first[v + 1]], with their amounts."""

    dual: Floats  # (n,)
    asked: Floats  # (n,), of (3), rounded up; 0 for guests
    is_guest: Booleans  # (n,)
    first: Integers
    guest: Indices32
    amount: Floats  # rounded up


class Hosts(NamedTuple):
    """The guests (k,) in the order of their hosts, and e^D of each, rounded up."""

    first: Integers  # (n + 1,)
    guest: Indices32  # (k,)
    host: Indices32  # (k,)
    factor: Floats  # (k,)

    @classmethod
    def of(cls, graph: ConeGraph, prior: Vector) -> Hosts:
        n = len(prior)
        with np.errstate(divide="ignore"):
            start = np.rint(-np.log(prior) / _UNIT)
        units = np.maximum(np.rint(graph.length / _UNIT), 1.0)
        root, distance, nearest = np.arange(n, dtype=np.int32), np.zeros(n), _nearest(graph, units, start)
        _follow(np.argsort(nearest, kind="stable"), nearest, start, units, graph, root, distance)
        is_guest = (nearest + _LESS / _UNIT < start) & (nearest - start[root] <= _FARTHEST / _UNIT)
        guest = np.flatnonzero(is_guest)
        guest = guest[np.argsort(root[guest], kind="stable")]
        host = root[guest]
        first = np.concatenate([[0], np.cumsum(np.bincount(host, minlength=n))]).astype(np.int64)
        return cls(
            first=first, guest=guest.astype(np.int32), host=host, factor=np.exp(distance[guest]) * (1 + 8 * _ULP)
        )

    def multipliers(self, dual: Vector) -> Multipliers:
        """The multipliers (n,) as kernels read them."""
        # 2 units for the product; _TINY where it underflows.
        amount = np.maximum(dual[self.guest], 0.0)
        with np.errstate(over="ignore"):  # multipliers of a file may be anything; infinite amounts prove nothing
            amount = np.where(amount > 0, amount * self.factor * (1 + 2 * _ULP) + _TINY, 0.0)
        asked = np.array(dual, float)
        _ask(self.first, amount, asked)
        asked[self.guest] = 0.0
        is_guest = np.zeros(len(dual), np.bool_)
        is_guest[self.guest] = True
        return Multipliers(*map(read_only, (dual, asked, is_guest, self.first, self.guest, amount)))

    def spread(self, prior: Vector) -> Vector:
        """The prior (n,), of guests at least that of the host times e^-D: multipliers that start from 0 stay there."""
        spread = np.array(prior)
        spread[self.guest] = np.maximum(prior[self.guest], prior[self.host] / self.factor)
        return spread

    def fit(self, dual: Vector, limit: Vector) -> Vector:
        """Multipliers (n,) that ask for at most limit (n,) of hosts: guests fall first, since e^D >= 1."""
        fitted = np.minimum(dual, limit)
        amount = np.maximum(dual[self.guest], 0.0) * self.factor
        total = np.bincount(self.host, amount, len(dual))
        room = np.maximum(limit - fitted, 0.0) * _FITS
        share = np.divide(room, total, out=np.ones(len(dual)), where=total > room)
        fitted[self.guest] *= share[self.host]
        return fitted


def _nearest(graph: ConeGraph, units: Vector, start: Vector) -> Vector:
    # The least D(u, v) - ln prior(v), in integers, by one search from a place more, which has an edge to every v.
    n, offset = len(start), start.min() - 1
    tail, sources = np.repeat(np.arange(n), np.diff(graph.first)), np.flatnonzero(np.isfinite(start))
    row, column = np.concatenate([tail, np.full(len(sources), n)]), np.concatenate([graph.near, sources])
    length = np.concatenate([units, start[sources] - offset])
    whole = sp.csr_array((length, (row, column)), shape=(n + 1, n + 1))
    return np.asarray(dijkstra(whole, indices=n)[:n] + offset)


@numba.njit(cache=True, nogil=True)
def _follow(order, nearest, start, units, graph, root, distance):  # type: ignore[no-untyped-def]
    # The end of a shortest path from each place, the smallest number of equal ones, and its length, rounded up.
    for u in order:
        if nearest[u] < start[u]:
            found, length = root.size, np.inf
            for e in range(graph.first[u], graph.first[u + 1]):
                v = graph.near[e]
                if nearest[v] + units[e] == nearest[u] and root[v] <= found:
                    reached = (distance[v] + graph.length[e]) * (1 + 2 * _ULP)
                    length = min(reached, length) if root[v] == found else reached
                    found = root[v]
            if found < root.size:
                root[u], distance[u] = found, length


@numba.njit(cache=True, nogil=True)
def _ask(first, amount, asked):  # type: ignore[no-untyped-def]
    for v in range(asked.size):
        for i in range(first[v], first[v + 1]):
            asked[v] = round_up(asked[v], amount[i])


@register_jitable(inline="always")
def round_up(x, amount):  # type: ignore[no-untyped-def]
    """The sum of two numbers, rounded up."""
    if amount == 0:
        return x
    total = x + amount
    return total + abs(total) * _ULP + _TINY
