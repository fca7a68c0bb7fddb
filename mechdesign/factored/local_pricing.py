"""Local pricing: reports priced in their balls, block by block on any number of cores or machines.

`ratio_block` finds for every report rho_y = min over rays g of <c_y, g> / <lambda, g>, by Dinkelbach's method on the
core of its ball, with the ray that attains it; no proof rests on it. `value_block` finds lower bounds v_y of the
minimum over the cone of <c_y - lambda, g> / g(y), for which

    lower bound = sum_u lambda(u) + sum_y min(0, v_y)    (solvers/cone/pricing.py).

Rounding. Costs are rounded down, what places outside the core hand over is rounded down and never negative, and the
tree bound of the core is rounded down (tree_simplex.py, exponentials taken as right to 8 units in the last place, like
those here). A tree other than that of shortest paths, or a core that is smaller, gives another lower bound: nothing
about the search has to be right. Places outside the ball are left out because c >= lambda there, which is checked for
every one of them; where it does not hold the value is minus infinity, and the block says which multipliers are above
which costs.

Cost of a report: a search of its ball and some tens of pivots on its core; with balls of 14 nats and cores of 6 on a
grid of 200 x 200 cells 1.5 ms. Memory: O(n) for a block under way, and its rows of rays.

Passes better the multipliers of the row sums by these ratios: the scheme of solvers/boxed_master.py, with rays kept
within some nats of their reports. Let g_y with g_y(y) = 1 attain rho_y, and w_y be the weights of the reports, nearly
P(y|y). A pass

1. prices the ratios, moves w by e^{-eta (rho - 1)}, and levels the row sums s = sum_y w_y g_y multiplicatively;
2. moves ln lambda by the series sum_{k <= K} (I - P)^k ln(P rho), (P v)(u) = sum_y w_y g_y(u) v_y / s(u) the channel,
   which undoes the smoothing of P, and by -beta ln s, without which the limit is not optimal. While the scale is off by
   more than 2 %, by ln(P rho) alone.

Source: ours; a mirror descent in both. No proof rests on a ratio. Multipliers of 0 stay 0.

The ball of a report are the places within some nats of it, on a tree of shortest paths; inside is a small cone
program. Let D be the distance from the report y, c(u) = prior(u) l(u, y) and lambda the multipliers. Every ray g of the
cone has g(u) in [e^{-d} g(p), e^{d} g(p)] along an edge (u, p) of length d, and g >= 0. So for r = c - lambda

* places outside the ball with r >= 0 may be left out: they only add to <r, g>;
* a place in the ball with r(u) >= 0 may hand r(u) e^{-d} to its parent p in any tree, and be left out then.

What is left, the core, are the places within `core` nats, those where r < 0, and their ancestors in the tree: the
minimum over the cone of the core is a lower bound of that over the cone of all places. It is attained nearly: what is
lost falls like e^{-D}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.validation import read_only
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, Workers, all_blocks
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import sparse_graph
from mechdesign.solvers.cone.tree_simplex import Graph, price_block, price_ratios

_ULP = 2.0**-52
_TINY = 1e-290  # below every normal number that is rounded here
_COST = 1 - 2.0**-48  # products and roots of a cost are right to 2^-50


class Costs(NamedTuple):
    """What costs are made of: points (n, k), prior (n,), and code of the loss, or -1 and its table (n, n)."""

    points: NDArray[np.float64]
    prior: NDArray[np.float64]
    code: int
    table: NDArray[np.float64]

    def read_only(self) -> Costs:
        """The same, as kernels are compiled for: whether an array may be written is part of its type, and they are
        compiled anew for each type.
        """
        return Costs(read_only(self.points), read_only(self.prior), self.code, read_only(self.table))


class BallScratch(NamedTuple):
    """Room for one ball at a time. By place (n,): distance and where, its number in the ball, inf and -1 where no ball
    is open; before, the place before it on its path, and step, the length between. By number: nodes, the place; cost;
    left and handed, what stands for c and lambda; rank, the number in the core, or -1. Buckets of a search: head, the
    last entry of each, -1 where it is empty, following, the entry before, and place.
    """

    distance: NDArray[np.float64]
    where: NDArray[np.int32]
    before: NDArray[np.int32]
    step: NDArray[np.float64]
    nodes: NDArray[np.int32]
    cost: NDArray[np.float64]
    left: NDArray[np.float64]
    handed: NDArray[np.float64]
    rank: NDArray[np.int32]
    head: NDArray[np.int32]
    following: NDArray[np.int32]
    place: NDArray[np.int32]


class CoreArrays(NamedTuple):
    """The program of a core: parents tree, above and below, what stands for c and lambda, and its graph, as `Graph`."""

    tree: NDArray[np.int32]
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    first: NDArray[np.int64]
    near: NDArray[np.int32]
    length: NDArray[np.float64]
    factor: NDArray[np.float64]


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
    """Prior(u) l(u, y), rounded down."""
    cost = costs.prior[u] * loss_between(u, y, costs) * _COST
    return cost if cost > 1e-280 else 0.0


@numba.njit(cache=True, nogil=True)
def _search(y, reach, width, graph, room):  # type: ignore[no-untyped-def]
    """Shortest paths from y up to `reach`, by buckets of `width` nats: the number k of places found, nodes[:k], every
    one after the place before it.

    Lengths below `width` may make a path a little longer than the shortest, and the tree another one, no matter.
    """
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
def open_ball(y, reach, core, exact, width, graph, costs, dual, room, inner):  # type: ignore[no-untyped-def]
    """Search the ball of y and write the program of its core to `inner`, numbered as they were found. Returns k, the
    places of the ball, those of the core, and the number of its directed edges.

    exact: r is pushed, every operation rounded down, and `below` is lambda itself. Else c and lambda are pushed each on
    its own, which serves every ratio of them and proves nothing.
    """
    nodes, before, where, rank = room.nodes, room.before, room.where, room.rank
    left, handed = room.left, room.handed
    k = _search(y, reach, width, graph, room)
    for i in range(k):
        u = nodes[i]
        room.cost[i] = _cost(u, y, costs)
        rank[i] = 0 if room.distance[u] <= core or room.cost[i] < dual[u] else -1
        left[i], handed[i] = room.cost[i], dual[u]
    rank[0] = 0
    # Places were found after the place before them: backwards, children come first, so one sweep marks all ancestors,
    # and another hands everything on to the core.
    for i in range(k - 1, 0, -1):
        up = where[before[nodes[i]]]
        if rank[i] == 0:
            rank[up] = 0
    if exact:
        for i in range(k):
            if rank[i] < 0:  # c >= lambda: to leave out what rounding may add is to round down
                left[i] = max(0.0, (room.cost[i] - dual[nodes[i]]) * (1 - 2 * _ULP))
    for i in range(k - 1, 0, -1):
        if rank[i] < 0:
            u = nodes[i]
            up = where[before[u]]
            share = math.exp(-room.step[u])
            if exact:
                # What is handed over is lowered by more than the exponential and the product are off by, the sum by
                # its own rounding; to hand over nothing is always right, hence the maximum.
                left[up] = max(left[up], (left[up] + (left[i] * share * (1 - 8 * _ULP) - _TINY)) * (1 - 2 * _ULP))
            else:
                left[up] += left[i] * share
                handed[up] += handed[i] * share
    count = 0
    for i in range(k):
        if rank[i] == 0:
            u = nodes[i]
            rank[i] = count
            inner.tree[count] = rank[where[before[u]]]
            inner.above[count] = left[i]
            inner.below[count] = dual[u] if exact else handed[i]
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
def close_ball(k, keep, rays, dual, graph, room, numbers, value):  # type: ignore[no-untyped-def]
    """Continue the ray of the core, rays (kc,), over the ball, and forget the ball.

    Returns <c, g> and <lambda, g> on the ball, and how many places within `keep` nats, and the core, were written to
    numbers and value (n,), their numbers and g. The cost of the room is overwritten by g.
    """
    nodes, distance, where, cost = room.nodes, room.distance, room.where, room.cost
    over, under, count = 0.0, 0.0, 0
    for i in range(k):
        u = nodes[i]
        c = cost[i]
        cost[i] = rays[room.rank[i]] if room.rank[i] >= 0 else cost[where[room.before[u]]] * math.exp(-room.step[u])
        over += c * cost[i]
        under += dual[u] * cost[i]
        if distance[u] <= keep:
            numbers[count], value[count] = u, cost[i]
            count += 1
    for i in range(k):
        v = nodes[i]
        where[v], distance[v] = -1, np.inf
        for e in range(graph.first[v], graph.first[v + 1]):  # the search has touched neighbours beyond the ball too
            distance[graph.near[e]] = np.inf
    return over, under, count


@numba.njit(cache=True, nogil=True)
def look_around(y, costs, dual, where, least):  # type: ignore[no-untyped-def]
    """How many places outside the ball of y have c < lambda; least (n,) is lowered to c there."""
    count = 0
    for u in range(dual.size):
        if where[u] < 0 and dual[u] > 0:
            c = _cost(u, y, costs)
            if c < dual[u]:
                least[u] = min(least[u], c)
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def profile(k, room, dual):  # type: ignore[no-untyped-def]
    """Sum of e^{-D}, and of c e^{-D} and lambda e^{-D} over it, in the ball that is open."""
    over, under, dual_over = 0.0, 0.0, 0.0
    for i in range(k):
        g = math.exp(-room.distance[room.nodes[i]])
        over += room.cost[i] * g
        dual_over += dual[room.nodes[i]] * g
        under += g
    return over / under, dual_over / under, under


BLOCK = 128  # reports of a block
_PIVOTS_PER_NODE = 20
_BUCKETS = 4096  # of a search, at most
_HEAVY = 0.6  # of the largest lambda g of a ray
_REPLY = 3.0  # eta
_LEVELLINGS, _POWER = 5, 1.5  # of the row sums in a pass, and the power of each
_SETTLED = 0.02  # by which the scale may be off
_TERMS, _STEP, _ROWS = 8, 0.3, 0.1  # K, the largest step of ln lambda, and beta
_MOST = 1e3  # ratio, where the multipliers near a report are all 0
_FAINT = 1e-12  # row sums and weights below are kept there
_ROOT = np.zeros(1, np.int64)  # the number of a report in its own ball
Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """A problem as kernels take it."""

    graph: Graph
    costs: Costs

    @classmethod
    def of(cls, problem: DesignProblem) -> Places:
        """The places of a problem whose reports are its secrets. Memory: the table of a loss without a code."""
        matrix, code = problem.edges.matrix(problem.domain.size).tocsr(), problem.loss.code
        matrix.sort_indices()
        costs = Costs(
            points=np.ascontiguousarray(problem.domain.points, float),
            prior=problem.prior_array,
            code=-1 if code is None else code,
            table=np.ascontiguousarray(problem.loss_matrix) if code is None else np.zeros((0, 0)),
        )
        return cls(graph=sparse_graph(matrix), costs=costs)

    @property
    def size(self) -> int:
        """Number of places n."""
        return len(self.costs.prior)


@dataclass(frozen=True, kw_only=True, eq=False)
class PricingTask:
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
    def all(cls, places: Places, dual: Vector, *, reach: float, core: float, **options: Any) -> PricingTask:
        """Every place as a report, unless `reports` says which."""
        reports = options.pop("reports", np.arange(places.size))
        start = options.pop("start", np.ones(len(reports)))
        return cls(places=places, reports=reports, dual=dual, reach=reach, core=core, start=start, **options)


class LocalProgram:
    """Room for one ball at a time, and the program of its core as the kernels read it."""

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
        """Search the ball of a report."""
        task, own = self.task, self.places
        self.k, self.core, self.edges = open_ball(
            y, self.reach, task.core, exact, self.width, own.graph, self.costs, self.dual, self.room, self.inner
        )

    def program(self) -> tuple[Vector, Vector, NDArray[np.int32], Graph]:
        """The program of the core: above (1, kc), below (kc,), the tree (1, kc) and the graph."""
        inner, places, edges = self.inner, slice(self.core), slice(self.edges)
        graph = Graph(inner.first[: self.core + 1], inner.near[edges], inner.length[edges], inner.factor[edges])
        return inner.above[None, places], inner.below[places], inner.tree[None, places], graph

    def close(self, rays: Vector) -> tuple[float, float, int]:
        """Continue a ray (core,) over the ball: <c, g>, <lambda, g>, and how many of `numbers` and `value` are it."""
        task = self.task
        return close_ball(self.k, task.keep, rays, self.dual, self.places.graph, self.room, self.numbers, self.value)

    def look_around(self, y: int) -> bool:
        """Whether c < lambda at a place outside the ball of y; kept for `left_out`."""
        return bool(look_around(y, self.costs, self.dual, self.room.where, self.least))

    def left_out(self) -> Arrays:
        """The places missed (k,) outside of balls where c < lambda, and the least such c, cost (k,)."""
        missed = np.flatnonzero(np.isfinite(self.least)).astype(np.int32)
        return {"missed": missed, "cost": self.least[missed]}


def ratio_block(task: PricingTask, start: int, stop: int) -> Arrays:
    """Ratios, `ratio` (b,), of the reports start..stop; their rays with g = 1 at the report, within `keep` nats: count
    (b,), place (sum count,) and ray (sum count,), in single precision; `left_out`.
    """
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
    """Lower bounds, `value` (b,), for the reports start..stop, minus infinity where a place that matters is left out;
    `left_out`; and for what is negative the places that the minimising ray weighs, place (k,), with share (k,), 1 less
    <c, g> / <lambda, g>, by which their multipliers are too large.
    """
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
    """For the reports start..stop and the profile e^{-D}: cost (b,) and dual (b,), the means of c and lambda within the
    ball, and mass (b,), the sum of the profile.
    """
    ball, means = LocalProgram(task), np.empty((3, stop - start))
    for j, y in enumerate(task.reports[start:stop].tolist()):
        ball.open(y, exact=False)
        means[:, j] = profile(ball.k, ball.room, ball.dual)
        ball.close(np.ones(ball.core))
    return dict(zip(("cost", "dual", "mass"), means, strict=True))


@dataclass(frozen=True, kw_only=True)
class Radii:
    """Radii of a pass in nats: of balls, of their cores, and of the rays that are kept."""

    reach: float = 14.0
    core: float = 6.0
    keep: float = 9.0


@dataclass(frozen=True, kw_only=True, eq=False)
class DualState:
    """Multipliers dual (n,) >= 0 and weights weight (n,) > 0 of the reports; ratio (n,), the last ones found."""

    dual: Vector
    weight: Vector
    ratio: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRays:
    """Rays of all reports as sparse rows, a block of reports after the other; sums are added in the order of blocks."""

    size: int
    blocks: list[Arrays]

    def across(self, values: Vector) -> Vector:
        """Sum over places of g_y(u) values(u), for every report (n,)."""
        return np.concatenate([_across(rays["count"], rays["place"], rays["ray"], values) for rays in self.blocks])

    def down(self, values: Vector) -> Vector:
        """Sum over reports of values_y g_y(u), for every place (n,)."""
        total, start = np.zeros(self.size), 0
        for rays in self.blocks:
            _down(rays["count"], rays["place"], rays["ray"], values[start:], total)
            start += len(rays["count"])
        return total


def dual_step(
    executor: Workers, places: Places, state: DualState, radii: Radii, on_done: OnDone = lambda done: None
) -> tuple[DualState, float]:
    """The state after a pass, and what the multipliers before it are worth, sum lambda min(1, rho), without a proof.

    on_done is called with the number of reports done. Cost: that of `ratio_block` for all reports. Memory: 8 bytes for
    every place within `keep` nats of a report, 450 MB on a grid of 200 x 200 cells.
    """
    task = PricingTask.all(places, state.dual, **asdict(radii), start=state.ratio)
    blocked = BlockedWork(work=ratio_block, state=task, total=places.size, block=BLOCK, name="ratios")
    blocks = all_blocks(executor, blocked, on_done=on_done)
    ratio = np.concatenate([arrays["ratio"] for arrays in blocks])
    ratio = np.nan_to_num(np.minimum(ratio, _MOST), nan=_MOST)
    worth = float(state.dual @ np.minimum(ratio, 1.0))
    moved = _moved(state, ratio, SparseRays(size=places.size, blocks=blocks))
    return replace(moved, dual=np.minimum(moved.dual, ceiling(places, blocks))), worth


def ceiling(places: Places, blocks: Iterable[Arrays]) -> Vector:
    """What the multipliers (n,) may be at most, by what blocks say of places left out; infinity where by nothing."""
    most = np.full(places.size, np.inf)
    for arrays in blocks:
        np.minimum.at(most, arrays["missed"], arrays["cost"])
    return most


def _moved(state: DualState, ratio: Vector, rows: SparseRays) -> DualState:
    whole = rows.across(np.ones(rows.size))
    weight = np.maximum(state.weight * np.exp(-_REPLY * np.clip(ratio - 1, -0.2, 0.2)), _FAINT)
    for _ in range(_LEVELLINGS):
        sums = np.maximum(rows.down(weight), _FAINT)
        weight = np.maximum(weight * (rows.across(1 / sums) / whole) ** _POWER, _FAINT)
    sums = np.maximum(rows.down(weight), _FAINT)

    def channel(values: Vector) -> Vector:
        return np.asarray(rows.down(weight * values) / sums)

    change = np.maximum(channel(ratio), _FAINT)
    move = np.log(change)
    if abs(np.log(float(state.dual @ change) / float(state.dual.sum()))) <= _SETTLED:
        rest = move
        for _ in range(_TERMS):
            rest = rest - channel(rest)
            move = move + rest
    steps = np.clip(move, -_STEP, _STEP) - _ROWS * np.clip(np.log(sums), -0.5, 0.5)
    return DualState(dual=state.dual * np.exp(steps), weight=weight, ratio=ratio)


@numba.njit(cache=True, nogil=True)
def _across(count, place, ray, values):  # type: ignore[no-untyped-def]
    sums, at = np.empty(count.size), 0
    for y in range(count.size):
        total = 0.0
        for i in range(at, at + count[y]):
            total += ray[i] * values[place[i]]
        sums[y] = total
        at += count[y]
    return sums


@numba.njit(cache=True, nogil=True)
def _down(count, place, ray, values, total):  # type: ignore[no-untyped-def]
    at = 0
    for y in range(count.size):
        for i in range(at, at + count[y]):
            total[place[i]] += ray[i] * values[y]
        at += count[y]
