"""Exact pricing over the privacy cone, and the lower bound that follows from any multipliers of the row sums.

    minimise  <r, g>  subject to  g >= 0,  g(u) <= e^{d_e} g(v) on every edge e = (u, v) both ways,  g(root) = 1    (1)

A simplex method on trees (tree_simplex.py), started from the shortest-path tree, finds the minimising ray.

Bound. For *any* spanning tree, push r from the leaves to the root by (4) of tree_simplex.py. The sum at the root is a
lower bound of the minimum, and the optimal tree attains it. Every operation is rounded down, so the bound never rests
on convergence. Summed over reports,

    lower_bound = sum_u lambda(u) + sum_y min(0, min over the cone of <cost_y - lambda, g> / g(anchor(y))),         (2)

a Lagrangian bound: rows sum to 1, so P(y | anchor(y)) <= 1.

`homogeneous_bound` looks for better multipliers lambda - t w, w > 0. No ray has a negative price from

    t* = max over reports y and rays g of <lambda - cost_y, g> / <w, g>.                                            (3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra, shortest_path

from mechdesign.base.arrays import Indices, MaskMatrix, Matrix, Vector
from mechdesign.base.threads import OutOfTime, in_blocks
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.cone.tree_simplex import (
    CompleteGraph,
    ConeGraph,
    Effort,
    Scratch,
    first_trees,
    price_trees,
    push_costs,
    shortest_trees,
)

# Of graphs and blocks of reports.
_TIE_BREAK = 1e-9  # relative shortening of lengths while pivoting: equal path lengths would make it cycle
_COMPLETE = 0.5  # share of all pairs from which pricing is by all pairs; a lattice with all pairs has 0.61
_FEWEST = 40  # places from which it is
_LONGER = 1 + 2.0**-40  # factor on distances: beyond the rounding of a sum along a path, or of a straight line
_DIRECT, _NOISE = 1e-9, 1e-11  # relative shortening of all pairs while pivoting, largest for the longest; and at random
_FARTHEST = 600.0  # nats, whose factor is a double
_BLOCK = 64  # reports priced at a time, at most
_PRICED_PLACES = 8192  # places times reports of a block, at most: a deadline and Ctrl-C wait for a block
_SMALLEST = 1e-300
_ANCHORS = 250  # tried for the bound of one secret: a product of matrices each
_LOWERED = 1e-6  # share of multipliers whose bound is known by a formula: rounding of the pricing takes 1e-12 of it
_ADMISSIBLE = 1 - 2.0**-45  # total share of the multipliers: rounding of sum, quotient and product stays below 1
_NO_TERMS: Vector = np.zeros(0)
NO_REDUCTION: Vector = np.zeros(0)
_OFF_PROFILE = 1e-9  # change of ln g along a tree edge, against the eikonal profile, that makes a cut worth it
EXACT = Effort(gain=1e-15, change=0.0, steps=1, fixed=True)  # of a pricing on which a proof rests


@dataclass(frozen=True, kw_only=True)
class RaiseOptions:
    """Constants of the search for t* (3). All are guesses, and no bound rests on them."""

    trials: int = 14
    settled: float = 3e-8  # relative cost of negative prices to a bound: less than the error of the multipliers
    resolved: float = 1e-11  # ratio that is taken for rounding: below it t is raised by steps
    beyond: float = 1.0001  # times the ratio, for the rounding of the pricing
    first_step: float = 1e-10
    step_growth: float = 6.0


_RAISE = RaiseOptions()


@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """Prices of all m reports."""

    value: Vector  # (m,): rigorous lower bounds of (1)
    cut_candidates: MaskMatrix  # (m, n): where rays of negative value leave the eikonal profile of the parent
    rays: Matrix | None  # (m, n): minimisers, on request
    ratio: float | None = None  # largest <dual - cost_y, g> / <weight, g> of a minimiser, if weights are given


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A lower bound, the multipliers dual (n,) that prove it, and the pricing of the first trial."""

    value: float
    dual: Vector
    first: Pricing


@dataclass(frozen=True, kw_only=True, eq=False)
class CoupledBound:
    """A lower bound with the dual (n,) and the admissible multipliers (k,) that prove it, and its effective cost."""

    value: float
    dual: Vector
    multipliers: Vector
    folded: Matrix


class ConePricer:
    """Prices reports over the cone of given edges. Memory: 12 m n bytes; by all pairs (`is_complete`) 16 n^2 more."""

    def __init__(
        self,
        edges: Edges,
        size: int,
        anchors: Indices,  # (m,): secrets at which the rays of reports are normalised
        direct: Matrix | None = None,  # (n, n): distances, if known, at least shortest paths
        paths: Matrix | None = None,  # (m, n): shortest paths from the anchors, if known
    ) -> None:
        graph = edges.matrix(size).tocsr()
        graph.sort_indices()
        self._matrix = graph
        self.anchors = anchors
        self.deadline = math.inf  # of time.monotonic(); later pricing raises OutOfTime
        self.on_done: Callable[[int], None] = lambda done: None  # takes the number of priced reports
        self.is_complete = has_many_pairs(len(edges.tail), size)
        self.graph: ConeGraph | CompleteGraph
        if self.is_complete:
            # Lengths rounded up make the cone of pricing larger, hence its minimum a bound for the true cone.
            lengths = direct if direct is not None else _all_paths(graph)
            self.graph = complete_graph(lengths * _LONGER)
            self.distance = lengths[anchors]
            # The first trees are stars.
            self.parent = np.repeat(anchors.astype(np.int32)[:, None], size, axis=1)
            return
        self.graph = sparse_graph(graph)
        self.parent = np.empty((len(anchors), size), np.int32)
        # The problem has its distances already: trees follow from them without a search.
        if paths is not None and shortest_trees(paths, self.graph, self.parent):
            self.distance = paths
            return
        self.distance = np.empty((len(anchors), size))
        for start in range(0, len(anchors), _BLOCK):
            block = slice(start, start + _BLOCK)
            self.distance[block], before = dijkstra(
                graph, directed=True, indices=anchors[block], return_predecessors=True
            )
            # dijkstra marks the root with a negative predecessor; our trees with parent[root] = root.
            self.parent[block] = np.where(before < 0, np.arange(size), before)

    @classmethod
    def of(cls, problem: DesignProblem) -> ConePricer:
        edges, domain = problem.edges, problem.domain
        has_paths = problem.reports is domain and not has_many_pairs(len(edges.tail), domain.size)
        paths = problem.distances if has_paths else None
        return cls(edges, domain.size, problem.anchors, problem.metric.direct_distances(domain), paths)

    def all_distances(self) -> Matrix:
        if isinstance(self.graph, CompleteGraph):
            return self.graph.lengths
        if np.array_equal(self.anchors, np.arange(self._matrix.shape[0])):
            return self.distance
        return np.asarray(dijkstra(self._matrix, directed=True))

    def joined_pairs(self) -> MaskMatrix:
        """True (n, n) where an edge joins two places."""
        joined = np.zeros(self._matrix.shape, np.bool_)
        rows = np.repeat(np.arange(len(joined)), np.diff(self._matrix.indptr))
        joined[rows, self._matrix.indices] = True
        return joined

    def distances_to_answers(self, report: Indices) -> Matrix:
        """Distances (m, n) to the nearest secret with each report (n,), inf where none has it."""
        nearest = np.full(self.distance.shape, np.inf)
        for y in np.unique(report):
            nearest[y] = dijkstra(self._matrix, directed=True, indices=np.flatnonzero(report == y), min_only=True)
        return nearest

    def price(
        self,
        cost: Matrix,
        dual: Vector,
        *,
        weight: Vector | None = None,
        rays: bool = False,
    ) -> Pricing:
        """Minimise <cost[:, y] - dual, g> for every report y; cost (n, m), dual and weight > 0 (n,)."""
        n, m = cost.shape
        value, candidates, ratio = np.empty(m), np.zeros((m, n), np.bool_), np.full(m, -np.inf)
        minimisers = np.empty((m if rays else 0, n))

        def price_some(start: int, stop: int) -> None:
            block_cost = np.ascontiguousarray(cost[:, start:stop].T)
            block_rays = minimisers[start:stop] if rays else np.empty((stop - start, n))
            # The shortest-path trees are the start: their rays e^{-D} are the smallest in the cone with g(root) = 1.
            state, which = first_trees(self.anchors[start:stop], self.parent[start:stop]), np.arange(stop - start)
            scratch = Scratch.of(n)
            price_trees(block_cost, dual, which, self.graph, state, EXACT, scratch, block_rays)
            push_costs(block_cost, dual, which, self.graph, state, NO_REDUCTION, scratch, value[start:stop])
            # Only a ray of negative price can improve the restricted program, so only it proposes cuts.
            below = np.flatnonzero(value[start:stop] < 0)
            candidates[start + below] = self._leaves_profile(block_rays[below], start + below)
            # Rays reach e^D: divided by their largest entry they stay in the range of doubles.
            if weight is not None:  # the ratio of (3)
                with np.errstate(over="ignore", invalid="ignore"):
                    flat = block_rays / block_rays.max(axis=1, keepdims=True)
                    ratio[start:stop] = np.einsum("yu,yu->y", dual - block_cost, flat) / (flat @ weight)

        # Small blocks let a deadline or Ctrl-C act soon; 64 reports are enough for the threads.
        block_size = max(1, min(_BLOCK, _PRICED_PLACES // n))
        in_blocks(price_some, m, block_size, deadline=self.deadline, on_done=self.on_done)
        largest = None if weight is None else float(np.nan_to_num(ratio, nan=-np.inf).max())
        return Pricing(value=value, cut_candidates=candidates, rays=minimisers if rays else None, ratio=largest)

    def _leaves_profile(self, rays: Matrix, reports: Indices) -> MaskMatrix:
        """True (k, n) where rays leave the eikonal profile of the parent in the tree of shortest paths."""
        distance, parent = self.distance[reports], self.parent[reports]
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(rays)
            away = log + distance - np.take_along_axis(log, parent, 1) - np.take_along_axis(distance, parent, 1)
        return np.asarray(np.abs(away) > _OFF_PROFILE * (1 + distance))


def has_many_pairs(edges: int, size: int) -> bool:
    """True if so many edges over `size` places are priced by all pairs."""
    return size > _FEWEST and edges > _COMPLETE * size * (size - 1) / 2


def complete_graph(lengths: Matrix) -> CompleteGraph:
    """All pairs at lengths (n, n) for the kernels; ties of pivots are broken in favour of the direct edge."""
    longest = max(float(lengths.max()), _SMALLEST)
    # Seeded, so that ties break the same way in every run; symmetric, as the metric is.
    noise = np.random.default_rng(0).random(lengths.shape)
    shorter = 1 - _DIRECT * lengths / longest - _NOISE * np.minimum(noise, noise.T)
    # e^709 is the largest double; a pair beyond 600 nats binds no ray.
    factors = np.exp(np.minimum(lengths, _FARTHEST) * shorter)
    return CompleteGraph(np.ascontiguousarray(lengths), factors)


def _all_paths(graph: sp.csr_array) -> Matrix:
    paths = shortest_path(graph, method="FW", directed=False)
    return np.asarray(np.maximum(paths, paths.T))


def sparse_graph(matrix: sp.csr_array) -> ConeGraph:
    """A symmetric graph for the kernels; ties of path lengths are broken in the factors of its pivots."""
    with np.errstate(over="ignore"):
        factor = np.exp(matrix.data.astype(float) * (1 - _TIE_BREAK * _symmetric_noise(matrix)))
    return ConeGraph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(float), factor)


def _symmetric_noise(graph: sp.csr_array) -> Vector:
    """A fixed pseudo-random number in [0, 1) per undirected edge, the same in both directions."""
    coo = graph.tocoo()
    low, high = np.minimum(coo.row, coo.col).astype(np.uint64), np.maximum(coo.row, coo.col).astype(np.uint64)
    # A hash of the pair, so that both directions of an edge get the same number.
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(11)).astype(float) * 2.0**-53


def lower_bound(dual: Vector, value: Vector) -> float:
    """Sum dual + sum min(0, value), rounded down; at least 0, because losses are not negative."""
    # (2). A report of positive price adds 0: P(y | anchor) may be 0.
    return max(0.0, sum_down(np.r_[dual, np.minimum(value, 0.0)]))


def sum_down(terms: Vector) -> float:
    """The sum of terms (k,), rounded down; minus infinity where one is not finite, or they overflow."""
    try:
        # fsum is correctly rounded, so one step down covers all of its error.
        total = math.fsum(terms.tolist()) if np.isfinite(terms).all() else -math.inf
    except OverflowError:
        total = -math.inf
    return math.nextafter(total, -math.inf)


# Nine arguments here and in `best_bound`: six are keywords that a caller sets where it needs them.
def homogeneous_bound(
    pricer: ConePricer,
    cost: Matrix,  # (n, m)
    dual: Vector,  # (n,)
    *,
    loss: float,  # of some table, > 0
    start: float = 0.0,
    known: float = 0.0,  # a bound below which nothing is gained
    enough: float = math.inf,  # a bound that ends the trials
    extra_terms: Vector = _NO_TERMS,  # (k,), of the bound, as those of side rows
    visit: Callable[[Vector, Pricing], None] | None = None,  # takes every trial and pricing, with rays
) -> Bound:
    """The best bound (2) over trial multipliers dual - t w, with w = |dual| + loss / n, from t = `start` upwards."""
    # Far from the anchor a ray with g(anchor) = 1 is as large as e^D, and multiplies an error of lambda by that.
    # However rays are normalised, t* is the same. There the bound is sum (lambda - t* w). Dinkelbach's method finds it
    # (Dinkelbach 1967, Management Science 13): price at a t, raise t to the largest ratio of the priced rays, repeat.
    # Neither the pivoting nor t* enters the proof of the bound.
    # w > 0 everywhere, even where a multiplier is 0, so that (3) is finite.
    weight = np.abs(dual) + loss / len(dual)
    t, step, best, first = start, _RAISE.first_step, None, None
    for _ in range(_RAISE.trials):
        trial = dual - t * weight
        try:
            price = pricer.price(cost, trial, weight=weight, rays=visit is not None)
        # An earlier trial has a bound already; only the first one has nothing to return.
        except OutOfTime:
            if best is None:
                raise
            break
        if visit is not None:
            visit(trial, price)
        first = first or price
        # The proof: (2) at the trial multipliers, whatever t is.
        value = lower_bound(np.r_[trial, extra_terms], price.value)
        if best is None or value > best.value:
            best = Bound(value=value, dual=trial, first=first)
        # `total` is the bound without negative prices. This close to it, a larger t can only lose.
        total = float(trial.sum() + extra_terms.sum())
        if best.value >= enough or value >= total * (1 - _RAISE.settled) or not math.isfinite(total):
            break
        assert price.ratio is not None
        if price.ratio > _RAISE.resolved:
            t += price.ratio * _RAISE.beyond  # Dinkelbach's step
        else:
            t, step = t + step, _RAISE.step_growth * step
        if float((dual - t * weight).sum() + extra_terms.sum()) <= max(best.value, known):
            # Every ratio is a lower bound of t*: even without negative prices a larger t would prove no more.
            break
    assert best is not None
    return best


def anchor_bound(pricer: ConePricer, cost: Matrix) -> Bound:
    """A bound above 0 if every constant report has a loss; multipliers are 0 except at the best anchor."""
    loss = max(float(cost.sum(axis=0).min()), _SMALLEST)
    return homogeneous_bound(pricer, cost, _anchor_dual(pricer, cost), loss=loss)


def anchor_multipliers(pricer: ConePricer, cost: Matrix) -> tuple[float, Vector]:
    """The bound of `anchor_bound` and its multipliers (n,) without a pricing, lowered by more than its rounding."""
    dual = _anchor_dual(pricer, cost) * (1 - _LOWERED)
    return lower_bound(dual * (1 - _LOWERED), np.zeros(0)), dual


def _anchor_dual(pricer: ConePricer, cost: Matrix) -> Vector:
    # At most 250 anchors, evenly spread: every one proves a bound, the best is not needed.
    some = np.arange(0, len(pricer.anchors), 1 + (len(pricer.anchors) - 1) // _ANCHORS)
    value = (np.exp(-pricer.distance[some]) @ cost).min(axis=1)
    best = int(np.argmax(value))
    dual = np.zeros(len(cost))
    # lambda(a) = min over y of sum_v cost(v, y) e^{-d(a, v)} is admissible: g(v) >= e^{-d(a, v)} g(a) in the cone.
    dual[pricer.anchors[some[best]]] = value[best]
    return dual


def best_bound(
    pricer: ConePricer,
    cost: Matrix,
    rows: SideRows,
    dual: Vector,
    multipliers: Vector,
    *,
    loss: float,
    known: float = 0.0,
    enough: float = math.inf,
    # Takes the effective cost (n, m), trial and pricing.
    visit: Callable[[Matrix, Vector, Pricing], None] | None = None,
) -> CoupledBound:
    """The homogeneous bound for the effective cost of multipliers (k,), made admissible; as `homogeneous_bound`."""
    # The bound of programs/coupled.py needs mu >= 0 and sum s mu <= 1 exactly, not to a tolerance.
    admissible = project_dual(multipliers, rows.epigraph_coefficient)
    folded = rows.lagrangian_cost_down(cost, admissible) if rows.size else cost
    bound = homogeneous_bound(
        pricer,
        folded,
        dual,
        loss=loss,
        known=known,
        enough=enough,
        extra_terms=limit_terms(rows.limit, admissible),
        visit=None if visit is None else lambda trial, price: visit(folded, trial, price),
    )
    return CoupledBound(value=bound.value, dual=bound.dual, multipliers=admissible, folded=folded)


def project_dual(multipliers: Vector, coefficient: Vector) -> Vector:
    """Multipliers (k,) made >= 0, and scaled until sum s mu is at most 1 exactly, and 1 up to rounding; s (k,)."""
    clipped = np.maximum(multipliers, 0.0)
    weighted = clipped * coefficient
    # Rounded up, so that the scaled sum is at most 1.
    total = -sum_down(-weighted) if weighted.any() else 0.0
    return clipped if total == 0 else np.where(coefficient > 0, clipped * (_ADMISSIBLE / total), clipped)


def limit_terms(limit: Vector, multipliers: Vector) -> Vector:
    """The terms -mu h (k,) of the bound, rounded down."""
    return np.nextafter(-multipliers * limit, -np.inf)


def coupled_bound(
    pricer: ConePricer,
    folded: Matrix,
    limit: Vector,  # h (k,)
    dual: Vector,  # lambda (n,), any numbers
    multipliers: Vector,  # mu (k,), by `project_dual`
) -> float:
    """The bound sum lambda + sum_y min(0, price_y) - sum mu h for the effective cost `folded` (n, m), rounded down."""
    return lower_bound(np.r_[dual, limit_terms(limit, multipliers)], pricer.price(folded, dual).value)
