"""Local pricing: reports priced in their balls (ball.py), block by block on any number of cores or machines.

`ratio_block` finds for every report rho_y = min over rays g of <c_y, g> / <lambda, g>, by Dinkelbach's method on the
core of its ball, with the ray that attains it; no proof rests on it. `value_block` finds lower bounds v_y of the
minimum over the cone of <c_y - lambda, g> / g(y), for which

    lower bound = sum_u lambda(u) + sum_y min(0, v_y)    (solvers/cone/pricing.py).

Rounding. Costs, the amounts from places outside the core, and the tree bound of the core are rounded down
(tree_simplex.py, exponentials taken as right to 8 units in the last place, like those here). Another tree or a smaller
core gives another lower bound, so no proof rests on the search. Places outside the ball are left out because
c >= lambda there, which is checked for every one of them; where it does not hold the value is minus infinity, and the
block names the multipliers above a cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.validation import read_only
from mechdesign.factored.ball import BallScratch, CoreArrays, Places, close_ball, look_around, open_ball, profile
from mechdesign.factored.work_folder import Arrays
from mechdesign.solvers.cone.tree_simplex import ConeGraph, price_block, price_ratios

BLOCK = 128  # reports of a block
_PIVOTS_PER_NODE = 20  # at most, a guess: some tens do
_BUCKETS = 4096  # of a search, at most
_HEAVY = 0.6  # of the largest lambda g of a ray: places that a ray weighs, a guess
_ROOT = np.zeros(1, np.int64)  # the number of a report in its own ball
Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Radii:
    """Radii of a pass in nats: of balls, of their cores, and of the rays that are kept."""

    reach: float = 14.0
    core: float = 6.0
    keep: float = 9.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PricingTask:
    """Reports of the places to be priced."""

    places: Places
    reports: NDArray[np.int64]  # (m,)
    dual: Vector  # (n,) >= 0, multipliers
    reach: float  # nats of balls
    core: float  # nats of their cores
    start: Vector  # (m,), ratios to start from
    keep: float = -1.0  # nats from their report within which rays are returned

    @classmethod
    def all(cls, places: Places, dual: Vector, *, reach: float, core: float, **options: Any) -> PricingTask:
        """Every place as a report, unless `reports` says which."""
        reports = options.pop("reports", np.arange(places.size))
        start = options.pop("start", np.ones(len(reports)))
        return cls(places=places, reports=reports, dual=dual, reach=reach, core=core, start=start, **options)


class LocalProgram:
    """The program of the core of one ball at a time, as the kernels read it."""

    def __init__(self, task: PricingTask) -> None:
        places, n = task.places, task.places.size
        self.task, self.places, lengths = task, places, places.graph.length
        self.costs, self.dual = places.costs.read_only(), read_only(task.dual)
        self.reach = min(task.reach, float(lengths.sum()))
        self.width = max(float(lengths.min()), self.reach / _BUCKETS)
        self.room = BallScratch(
            distance=np.full(n, np.inf),
            where=np.full(n, -1, np.int32),
            before=np.empty(n, np.int32),
            step=np.empty(n),
            nodes=np.empty(n, np.int32),
            cost=np.empty(n),
            left=np.empty(n),
            handed=np.empty(n),
            rank=np.empty(n, np.int32),
            head=np.full(int(self.reach / self.width) + 2, -1, np.int32),
            following=np.empty(len(lengths) + 1, np.int32),
            place=np.empty(len(lengths) + 1, np.int32),
        )
        self.inner = CoreArrays(
            tree=np.empty(n, np.int32),
            above=np.empty(n),
            below=np.empty(n),
            first=np.empty(n + 1, np.int64),
            near=np.empty(len(lengths), np.int32),
            length=np.empty(len(lengths)),
            factor=np.empty(len(lengths)),
        )
        self.numbers, self.value = np.empty(n, np.int32), np.empty(n, np.float32)
        self.least = np.full(n, np.inf)
        self.k, self.core, self.edges = 0, 0, 0

    def open(self, y: int, *, exact: bool) -> None:
        task, own = self.task, self.places
        self.k, self.core, self.edges = open_ball(
            y, self.reach, task.core, exact, self.width, own.graph, self.costs, self.dual, self.room, self.inner
        )

    def program(self) -> tuple[Vector, Vector, NDArray[np.int32], ConeGraph]:
        """The program of the core: above (1, kc), below (kc,), the tree (1, kc) and the graph."""
        inner, places, edges = self.inner, slice(self.core), slice(self.edges)
        graph = ConeGraph(inner.first[: self.core + 1], inner.near[edges], inner.length[edges], inner.factor[edges])
        return inner.above[None, places], inner.below[places], inner.tree[None, places], graph

    def close(self, rays: Vector) -> tuple[float, float, int]:
        """Continue a ray (core,) over the ball: <c, g>, <lambda, g>, and how many of `numbers` and `value` are it."""
        task = self.task
        return close_ball(self.k, task.keep, rays, self.dual, self.places.graph, self.room, self.numbers, self.value)

    def look_around(self, y: int) -> bool:
        """True if c < lambda at a place outside the ball of y; kept for `left_out`."""
        return bool(look_around(y, self.costs, self.dual, self.room.where, self.least))

    def left_out(self) -> Arrays:
        """The places missed (k,) outside of balls where c < lambda, and the least such c, cost (k,)."""
        missed = np.flatnonzero(np.isfinite(self.least)).astype(np.int32)
        return {"missed": missed, "cost": self.least[missed]}


def ratio_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Ratios (b,) of the reports start..stop, and their rays with g = 1 at the report, within `keep` nats."""
    ball = LocalProgram(task)
    ratio, count = task.start[start:stop].copy(), np.zeros(stop - start, np.int64)
    places, rays = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    ray = np.empty((1, task.places.size))
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        own, below, tree, graph = ball.program()
        most, part = _PIVOTS_PER_NODE * ball.core, ray[:, : ball.core]
        price_ratios(own, below, _ROOT, tree, graph, most, ratio[j : j + 1], part)
        ball.look_around(y)
        _, _, count[j] = ball.close(part[0])
        places.append(ball.numbers[: count[j]].copy())
        rays.append(ball.value[: count[j]].copy())
    place, values = np.concatenate(places), np.concatenate(rays)
    return ball.left_out() | {"ratio": ratio, "count": count, "place": place, "ray": values}


def value_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Lower bounds (b,) for the reports start..stop, and the places where lambda is too large, with shares."""
    ball, value = LocalProgram(task), np.empty(stop - start)
    places, shares = [np.zeros(0, np.int32)], [np.zeros(0)]
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=True)
        own, below, tree, graph = ball.program()
        ray, turns, flat = np.empty((1, ball.core)), np.empty((1, ball.core), np.bool_), np.zeros((1, ball.core))
        most = _PIVOTS_PER_NODE * ball.core
        price_block(own, below, _ROOT, tree, flat, graph, most, value[j : j + 1], turns, ray)
        short = value[j] < 0
        if ball.look_around(y) or not value[j] > -np.inf:
            value[j] = -np.inf
        over, under, _ = ball.close(ray[0])
        if short and under > 0:
            nodes = ball.room.nodes[: ball.k]
            weighed = task.dual[nodes] * ball.room.cost[: ball.k]  # closing leaves the ray there
            heavy = nodes[weighed >= _HEAVY * weighed.max()]
            places.append(heavy)
            shares.append(np.full(len(heavy), max(0.0, 1 - over / under)))
    return ball.left_out() | {"value": value, "place": np.concatenate(places), "share": np.concatenate(shares)}


def flat_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Means of c and lambda over the profile e^{-D} in the balls of reports, cost and dual (b,), and its sum, mass."""
    ball, means = LocalProgram(task), np.empty((3, stop - start))
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        means[:, j] = profile(ball.k, ball.room, ball.dual)
        ball.close(np.ones(ball.core))
    return dict(zip(("cost", "dual", "mass"), means, strict=True))
