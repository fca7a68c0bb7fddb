"""Local pricing: reports priced in their balls (ball.py), block by block on any number of cores or machines.

`ratio_block` finds rho_y = min over rays g of <c_y, g> / <lambda, g> for every report, and the ray that attains it, by
Dinkelbach's method on the core of its ball. No proof rests on it. `value_block` finds lower bounds v_y of the
minimum over the cone of <c_y - lambda, g> / g(y), for which (solvers/cone/pricing.py)

    lower bound = sum_u lambda(u) + sum_y min(0, v_y).                                                               (1)

Costs, the amounts from places outside the core, and the tree bound of the core are rounded down.                    (2)
Places outside the ball are left out because c >= lambda there, which is checked for every one of them. Those with
hardly any prior are guests of others, which are checked for both (hosts.py).                                        (3)

`tree_block` finds v_y from given trees (ball.py), without any pivot.

A pricing starts from the tree with which the last one of the report ended, if its core has the same places. Multipliers
change little from pass to pass, and the cone not at all. At 100 x 100 it takes a third of the pivots then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices, Indices32, Integers, Mask, Vector
from mechdesign.factored.ball import (
    BallRadii,
    BallScratch,
    CoreArrays,
    Places,
    TreeScratch,
    close_ball,
    close_tree,
    look_around,
    open_ball,
    profile,
    tree_codes,
    tree_value,
)
from mechdesign.factored.work_folder import Arrays
from mechdesign.solvers.cone.pricing import EXACT, NO_REDUCTION
from mechdesign.solvers.cone.tree_simplex import (
    ConeGraph,
    Scratch,
    TreeState,
    first_trees,
    price_ratios,
    price_trees,
    push_costs,
)

BLOCK = 128  # reports of a block
_ROOT = np.zeros(1, np.int64)  # the number of a report in its own ball
Codes = NDArray[np.uint8]
NO_CODES: Codes = np.zeros(0, np.uint8)
LEFT_OUT = ("missed", "cost")  # arrays of `LocalProgram.left_out`
TREE_ARRAYS = ("core_hash", "core_size", "link")  # of `LastTrees`


@dataclass(frozen=True, kw_only=True)
class PricingConstants:
    """Constants of local pricing: guesses that cost time; (2) holds for any of them."""

    buckets: int = 4096  # of a search, at most: more cost memory, fewer lengthen some paths
    guests: float = 0.02  # share of the places that are guests (hosts.py), from which wider balls and cores pay off
    heavy_share: float = 0.6  # of the largest lambda g of a ray, from which a place counts as one that it weighs


CONSTANTS = PricingConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class LastTrees:
    """The trees with which the pricing of m reports ended, in their cores."""

    core_hash: Integers  # (m,), of the places of the core
    core_size: Integers  # (m,)
    link: Indices32  # (sum of sizes,): twice the parent, and 1 more where g is larger than at the parent

    @classmethod
    def none(cls) -> LastTrees:
        return cls(core_hash=np.zeros(0, np.int64), core_size=np.zeros(0, np.int64), link=np.zeros(0, np.int32))

    @classmethod
    def of(cls, blocks: Sequence[Arrays]) -> LastTrees:
        """The trees of the blocks of a pass."""
        return cls(**{name: np.concatenate([arrays[name] for arrays in blocks]) for name in TREE_ARRAYS})

    @cached_property
    def first(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.core_size)])

    def select(self, kept: Mask) -> LastTrees:
        """The trees of the reports where kept (m,) is True."""
        link = self.link[np.repeat(kept, self.core_size)]
        return LastTrees(core_hash=self.core_hash[kept], core_size=self.core_size[kept], link=link)

    def tree(self, j: int, core_hash: int, core_size: int) -> Indices32 | None:
        """The links of report j, unless its core was another one."""
        if j >= len(self.core_hash) or self.core_hash[j] != core_hash or self.core_size[j] != core_size:
            return None
        return self.link[self.first[j] : self.first[j + 1]]


@dataclass(frozen=True, kw_only=True)
class Radii:
    """Radii of a pass in nats: of balls, of their cores, and of the rays that are kept."""

    reach: float = 14.0
    core: float = 6.0
    keep: float = 9.0

    def around(self, places: Places) -> Radii:
        """Wider radii where many places are guests, who ask for more than they need beyond the core."""
        # Philadelphia at 50 x 50 without 40 % of its priors: a core of 10 nats loses 1.5 % of the bound, 14 nats 0.1 %.
        if len(places.hosts.guest) <= CONSTANTS.guests * places.size:
            return self
        return replace(self, reach=max(self.reach, WITH_GUESTS.reach), core=max(self.core, WITH_GUESTS.core))


WITH_GUESTS = Radii(reach=22.0, core=16.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class PricingTask:
    """Reports of the places to be priced."""

    places: Places
    reports: Indices  # (m,)
    dual: Vector  # (n,) >= 0, multipliers
    reach: float  # nats of balls
    core: float  # nats of their cores
    start: Vector  # (m,), ratios to start from
    keep: float = -1.0  # nats from their report within which rays are returned
    trees: Sequence[Codes] = ()  # codes (m,) of trees for `tree_block`
    last: LastTrees = field(default_factory=LastTrees.none)  # of the reports, to start from

    @classmethod
    def all(cls, places: Places, dual: Vector, *, reach: float, core: float, **options: Any) -> PricingTask:
        reports = options.pop("reports", np.arange(places.size))
        start = options.pop("start", np.ones(len(reports)))
        return cls(places=places, reports=reports, dual=dual, reach=reach, core=core, start=start, **options)


class LocalProgram:
    """The program of the core of one ball at a time, as the kernels read it."""

    def __init__(self, task: PricingTask) -> None:
        places, n = task.places, task.places.size
        self.task, self.places, lengths = task, places, places.graph.length
        self.costs, self.multipliers = places.costs.read_only(), places.hosts.multipliers(task.dual)
        # No path is longer than all edges together, so that a radius from a file cannot ask for endless buckets.
        self.reach = min(task.reach, float(lengths.sum()))
        self.width = max(float(lengths.min()), self.reach / CONSTANTS.buckets)
        self.room = BallScratch(
            distance=np.full(n, np.inf),
            where=np.full(n, -1, np.int32),
            before=np.empty(n, np.int32),
            step=np.empty(n),
            nodes=np.empty(n, np.int32),
            cost=np.empty(n),
            dual=np.empty(n),
            cost_sum=np.empty(n),
            dual_sum=np.empty(n),
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
        self.scratch = Scratch.of(n)
        self.numbers, self.value = np.empty(n, np.int32), np.empty(n, np.float32)
        self.lowest_cost = np.full(n, np.inf)
        self.k, self.core, self.edges, self.core_hash = 0, 0, 0, 0
        self.ends: list[Arrays] = []  # of `keep_tree`

    def open(self, y: int, *, exact: bool) -> None:
        task = self.task
        self.k, self.core, self.edges = open_ball(
            y, BallRadii(self.reach, task.core, self.width), exact, self.places.graph, self.costs, self.multipliers,
            self.room, self.inner,
        )  # fmt: skip

    def by_tree(self, y: int, codes: Codes, tree: TreeScratch) -> float:
        """The bound of a tree of the ball of y; minus infinity if it proves none."""
        radii = BallRadii(self.reach, self.task.core, self.width)
        value, k = tree_value(y, radii, codes, self.places.graph, self.costs, self.multipliers, self.room, tree)
        is_open = self.look_around(y)
        close_tree(k, self.places.graph, self.room)
        # "not >" also catches nan.
        return -np.inf if is_open or not value > -np.inf else value

    def program(self) -> tuple[Vector, Vector, ConeGraph]:
        inner, places, edges = self.inner, slice(self.core), slice(self.edges)
        graph = ConeGraph(inner.first[: self.core + 1], inner.near[edges], inner.length[edges], inner.factor[edges])
        return inner.above[None, places], inner.below[places], graph

    def first_tree(self, j: int, ratio: Vector) -> TreeState:
        """Where the pricing of report j of the task starts: from its last tree, or from that of shortest paths."""
        places = self.room.nodes[: self.k][self.room.rank[: self.k] >= 0]
        self.core_hash = int.from_bytes(
            hashlib.blake2b(places.tobytes(), digest_size=8).digest(), "little", signed=True
        )
        state = first_trees(_ROOT, self.inner.tree[None, : self.core], ratio)
        link = self.task.last.tree(j, self.core_hash, self.core)
        if link is not None:
            state.parent[0], state.rises[0] = link >> 1, link & 1
        return state

    def keep_tree(self, state: TreeState) -> None:
        """Keep the tree with which a pricing ended."""
        link = 2 * state.parent[0] + state.rises[0]
        sizes = np.array([self.core])
        self.ends.append({"core_hash": np.array([self.core_hash]), "core_size": sizes, "link": link.astype(np.int32)})

    def close(self, rays: Vector) -> tuple[float, float, int]:
        """Extend a ray (core,) to the ball: <c, g>, <lambda, g>, and its length in `numbers` and `value`."""
        task = self.task
        return close_ball(self.k, task.keep, rays, self.places.graph, self.room, self.numbers, self.value)

    def look_around(self, y: int) -> bool:
        # (3): `left_out` returns the places where c < asked.
        return bool(look_around(y, self.costs, self.multipliers.asked, self.room.where, self.lowest_cost))

    def last_trees(self) -> Arrays:
        """The arrays of `LastTrees` of the reports that were priced."""
        return {name: np.concatenate([end[name] for end in self.ends]) for name in self.ends[0]}

    def left_out(self) -> Arrays:
        """The places missed (k,) outside of balls where c < asked, and the least such c, cost (k,)."""
        missed = np.flatnonzero(np.isfinite(self.lowest_cost)).astype(np.int32)
        return {"missed": missed, "cost": self.lowest_cost[missed]}


def ratio_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Ratios (b,) of the reports start..stop, and their rays with g = 1 at the report, within `keep` nats."""
    ball = LocalProgram(task)
    ratio, count = task.start[start:stop].copy(), np.zeros(stop - start, np.int64)
    places, rays = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    ray = np.empty((1, task.places.size))
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        above, below, graph = ball.program()
        state, part = ball.first_tree(start + j, ratio[j : j + 1]), ray[:, : ball.core]
        price_ratios(above, below, graph, state, ball.scratch, part)
        ball.keep_tree(state)
        ball.look_around(y)
        _, _, count[j] = ball.close(part[0])
        places.append(ball.numbers[: count[j]].copy())
        rays.append(ball.value[: count[j]].copy())
    place, values = np.concatenate(places), np.concatenate(rays)
    return ball.left_out() | ball.last_trees() | {"ratio": ratio, "count": count, "place": place, "ray": values}


def value_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Lower bounds v_y (b,) of the reports start..stop, and the places to lower lambda at, with shares."""
    # (2): rounded down in ball.py and tree_simplex.py, where exponentials are assumed right to 8 units in the last
    # place. Another tree or a smaller core gives another lower bound, so that no proof rests on the search.
    ball, value = LocalProgram(task), np.empty(stop - start)
    places, shares = [np.zeros(0, np.int32)], [np.zeros(0)]
    codes, trees, coded = np.empty(task.places.size, np.uint8), [NO_CODES], np.zeros(stop - start, np.int64)
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=True)
        above, below, graph = ball.program()
        ray, state = np.empty((1, ball.core)), ball.first_tree(start + j, np.ones(1))
        price_trees(above, below, _ROOT, graph, state, EXACT, ball.scratch, ray)
        push_costs(above, below, _ROOT, graph, state, NO_REDUCTION, ball.scratch, value[j : j + 1])
        ball.keep_tree(state)
        coded[j] = tree_codes(ball.k, ball.core, state.parent[0], task.places.graph, ball.room, codes)
        trees.append(codes[: coded[j]].copy())
        short = value[j] < 0
        # (3): a place outside the ball with c < asked could make the minimum smaller: the core proves nothing then,
        # and the block returns the least cost of each such place. "not >" also catches nan.
        if ball.look_around(y) or not value[j] > -np.inf:
            value[j] = -np.inf
        over, under, _ = ball.close(ray[0])
        if short and under > 0:
            nodes = ball.room.nodes[: ball.k]
            weighed = ball.room.dual[: ball.k] * ball.room.cost[: ball.k]  # closing leaves the ray there
            # The violation is <lambda, g> > <c, g>: lowering lambda where lambda g is largest mends it soonest.
            heavy = nodes[weighed >= CONSTANTS.heavy_share * weighed.max()]
            places.append(heavy)
            shares.append(np.full(len(heavy), max(0.0, 1 - over / under)))
    found: Arrays = {"value": value, "place": np.concatenate(places), "share": np.concatenate(shares)}
    return ball.left_out() | ball.last_trees() | found | {"codes": np.concatenate(trees), "coded": coded}


def tree_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Lower bounds v_y (b,) of the reports start..stop from their trees."""
    ball, n = LocalProgram(task), task.places.size
    tree = TreeScratch(
        parent=np.empty(n, np.int32),
        length=np.empty(n),
        waiting=np.empty(n, np.int32),
        order=np.empty(n, np.int32),
        rest=np.empty(n),
    )
    value = np.array([ball.by_tree(int(task.reports[j]), task.trees[j], tree) for j in range(start, stop)])
    return {"value": value}


def flat_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Means of c and lambda over the profile e^{-D} in the balls of reports, cost and dual (b,), and its sum, mass."""
    ball, means = LocalProgram(task), np.empty((3, stop - start))
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        means[:, j] = profile(ball.k, ball.room)
        ball.close(np.ones(ball.core))
    return dict(zip(("cost", "dual", "mass"), means, strict=True))
