"""Local pricing: reports priced in their balls, block by block on any number of cores or machines.

`ratio_block` finds for every report rho_y = min over rays g of <c_y, g> / <lambda, g>, by Dinkelbach's method on the
core of its ball (balls.py), with the ray that attains it; no proof rests on it. `value_block` finds lower bounds v_y of
the minimum over the cone of <c_y - lambda, g> / g(y), for which

    lower bound = sum_u lambda(u) + sum_y min(0, v_y)    (solvers/kernels/pricing.py).

Rounding. Costs are rounded down, what places outside the core hand over is rounded down and never negative, and the
tree bound of the core is rounded down (tree_simplex.py, exponentials taken as right to 8 units in the last place, like
those here). A tree other than that of shortest paths, or a core that is smaller, gives another lower bound: nothing
about the search has to be right. Places outside the ball are left out because c >= lambda there, which is checked for
every one of them; where it does not hold the value is minus infinity, and the block says which multipliers are above
which costs.

Cost of a report: a search of its ball and some tens of pivots on its core; with balls of 14 nats and cores of 6 on a
grid of 200 x 200 cells 1.5 ms. Memory: O(n) for a block under way, and its rows of rays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays
from mechdesign.solvers.kernels.pricing import pivot_factors
from mechdesign.solvers.kernels.tree_simplex import price_reports, ratio_reports
from mechdesign.solvers.local.balls import close_ball, look_around, open_ball, profile

BLOCK = 128  # reports of a block
_PIVOTS_PER_NODE = 20
_BUCKETS = 4096  # of a search, at most

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """A problem as kernels take it: its graph in compressed rows, neighbours near[first[v]:first[v + 1]] at length,
    with factor, the e^length of the pivots; points (n, k), prior (n,), code of the loss, or -1 and its table (n, n).
    """

    first: NDArray[np.int64]
    near: NDArray[np.int32]
    length: Vector
    factor: Vector
    points: Vector
    prior: Vector
    code: int
    table: Vector

    @classmethod
    def of(cls, problem: DesignProblem) -> Places:
        """The places of a problem whose reports are its secrets. Memory: the table of a loss without a code."""
        graph = problem.edges.matrix(problem.domain.size).tocsr()
        graph.sort_indices()
        code = problem.loss.code
        return cls(
            first=graph.indptr.astype(np.int64),
            near=graph.indices.astype(np.int32),
            length=graph.data.astype(float),
            factor=pivot_factors(graph),
            points=np.ascontiguousarray(problem.domain.points, float),
            prior=problem.prior_array,
            code=-1 if code is None else code,
            table=np.ascontiguousarray(problem.loss_matrix) if code is None else np.zeros((0, 0)),
        )

    @property
    def size(self) -> int:
        """Number of places n."""
        return len(self.prior)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What is priced: reports (m,) of the places, at multipliers dual (n,) >= 0, in balls of `reach` nats with cores of
    `core` nats. start (m,), ratios to start from. keep: rays are returned within so many nats of their report.
    """

    places: Places
    reports: NDArray[np.int64]
    dual: Vector
    reach: float
    core: float
    start: Vector
    keep: float = -1.0

    @classmethod
    def all(cls, places: Places, dual: Vector, *, reach: float, core: float, **given: Any) -> Asked:
        """Every place as a report, unless `reports` says which."""
        reports = given.pop("reports", np.arange(places.size))
        start = given.pop("start", np.ones(len(reports)))
        return cls(places=places, reports=reports, dual=dual, reach=reach, core=core, start=start, **given)


class Ball:
    """Room for one ball at a time, and the program of its core as the kernels read it."""

    def __init__(self, asked: Asked) -> None:
        places, n = asked.places, asked.places.size
        self.asked, self.places = asked, places
        self.distance, self.where = np.full(n, np.inf), np.full(n, -1, np.int32)
        self.nodes, self.before, self.rank = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
        self.step, self.cost, self.left, self.handed = (np.empty(n) for _ in range(4))
        self.following, self.place = (np.empty(len(places.near) + 1, np.int32) for _ in range(2))
        self.reach = min(asked.reach, float(places.length.sum()))
        self.width = max(float(places.length.min()), self.reach / _BUCKETS)
        self.head = np.full(int(self.reach / self.width) + 2, -1, np.int32)
        self.tree, self.above, self.below = np.empty((1, n), np.int32), np.empty((1, n)), np.empty(n)
        self.own_first, self.own_near = np.empty(n + 1, np.int64), np.empty(len(places.near), np.int32)
        self.own_length, self.own_factor = np.empty(len(places.near)), np.empty(len(places.near))
        self.found, self.value = np.empty(n, np.int32), np.empty(n, np.float32)
        self.least = np.full(n, np.inf)
        self.k, self.core, self.edges = 0, 0, 0

    def open(self, y: int, *, exact: bool) -> None:
        """Search the ball of a report."""
        asked, own = self.asked, self.places
        self.k, self.core, self.edges = open_ball(
            y, self.reach, asked.core, exact, own.first, own.near, own.length, own.factor, self.width, own.points,
            own.prior, own.code, own.table, asked.dual, self.distance, self.where, self.nodes, self.before, self.step,
            self.head, self.following, self.place, self.cost, self.left, self.handed, self.rank, self.tree[0],
            self.above[0], self.below, self.own_first, self.own_near, self.own_length, self.own_factor,
        )  # fmt: skip

    def graph(self) -> tuple[NDArray[np.int64], NDArray[np.int32], Vector, Vector]:
        """The graph of the core: first, near, length and factor."""
        kept = slice(self.edges)
        return self.own_first[: self.core + 1], self.own_near[kept], self.own_length[kept], self.own_factor[kept]

    def close(self, rays: Vector) -> tuple[float, float, int]:
        """Continue a ray (core,) over the ball: <c, g>, <lambda, g>, and how many of `found` and `value` are it."""
        own = self.places
        return close_ball(
            self.k, self.asked.keep, rays, self.asked.dual, own.first, own.near, self.distance, self.where, self.nodes,
            self.before, self.step, self.cost, self.rank, self.found, self.value,
        )  # fmt: skip

    def look_around(self, y: int) -> bool:
        """Whether c < lambda at a place outside the ball of y; kept for `left_out`."""
        own = self.places
        return bool(look_around(y, own.points, own.prior, own.code, own.table, self.asked.dual, self.where, self.least))

    def left_out(self) -> Arrays:
        """The places missed (k,) outside of balls where c < lambda, and the least such c, cost (k,)."""
        missed = np.flatnonzero(np.isfinite(self.least)).astype(np.int32)
        return {"missed": missed, "cost": self.least[missed]}

    @cached_property
    def root(self) -> NDArray[np.int64]:
        """The number of the report in its own ball."""
        return np.zeros(1, np.int64)


def ratio_block(asked: Asked, start: int, stop: int) -> Arrays:
    """Ratios, `ratio` (b,), of the reports start..stop; above (b,), <c, g> of their rays with g = 1 at the report; the
    rays within `keep` nats: count (b,), place (sum count,) and ray (sum count,), in single precision; `left_out`.
    """
    ball, size = Ball(asked), stop - start
    ratio, above, count = asked.start[start:stop].copy(), np.empty(size), np.zeros(size, np.int64)
    places, rays = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    ray = np.empty((1, asked.places.size))
    for j, y in enumerate(asked.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        kept = slice(ball.core)
        first, near, _, factor = ball.graph()
        ratio_reports(
            ball.above[:, kept], ball.below[kept], ball.root, ball.tree[:, kept], first, near, factor,
            _PIVOTS_PER_NODE * ball.core, ratio[j : j + 1], ray[:, kept],
        )  # fmt: skip
        ball.look_around(y)
        above[j], _, count[j] = ball.close(ray[0, kept])
        if count[j]:
            places.append(ball.found[: count[j]].copy())
            rays.append(ball.value[: count[j]].copy())
    return ball.left_out() | {
        "ratio": ratio,
        "above": above,
        "count": count,
        "place": np.concatenate(places),
        "ray": np.concatenate(rays),
    }


def value_block(asked: Asked, start: int, stop: int) -> Arrays:
    """Lower bounds, `value` (b,), for the reports start..stop, minus infinity where a place that matters is left out;
    `left_out`.
    """
    ball, size = Ball(asked), stop - start
    value = np.empty(size)
    for j, y in enumerate(asked.reports[start:stop].tolist()):
        ball.open(y, exact=True)
        kept = slice(ball.core)
        first, near, length, factor = ball.graph()
        ray, turns = np.empty((1, ball.core)), np.empty((1, ball.core), np.bool_)
        price_reports(
            ball.above[:, kept], ball.below[kept], ball.root, ball.tree[:, kept], np.zeros((1, ball.core)), first, near,
            length, factor, _PIVOTS_PER_NODE * ball.core, value[j : j + 1], turns, ray,
        )  # fmt: skip
        if ball.look_around(y) or not value[j] > -np.inf:
            value[j] = -np.inf
        ball.close(ray[0])
    return ball.left_out() | {"value": value}


def flat_block(asked: Asked, start: int, stop: int) -> Arrays:
    """For the reports start..stop and the profile e^{-D}: cost (b,) and dual (b,), the means of c and lambda within the
    ball, and mass (b,), the sum of the profile.
    """
    ball, size = Ball(asked), stop - start
    found = np.empty((3, size))
    for j, y in enumerate(asked.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        found[:, j] = profile(ball.k, ball.distance, ball.nodes, ball.cost, asked.dual)
        ball.close(np.ones(ball.core))
    return dict(zip(("cost", "dual", "mass"), found, strict=True))
