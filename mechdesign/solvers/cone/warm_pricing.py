"""Warm pricing: one tree for each report, reused from round to round, and the bound that any trees prove.

`WarmPricer` prices ratios rho_y = min <c_y, g> / <lambda, g> over rays g of the privacy cone by Dinkelbach's method
(tree_simplex.py). Multipliers may be negative, as they are where priors are zero. On a complete graph the simplex works
on cores: the places nearest to a report that hold all but a share of cost and multipliers under e^{-d}.

The bound rests on the trees of the last pricing, not on convergence. Source: ours, after Dinkelbach 1967, Wentges 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mechdesign.base.arrays import Indices, Indices32, Matrix, Vector
from mechdesign.base.threads import OutOfTime, in_blocks
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound, sum_down
from mechdesign.solvers.cone.tree_simplex import Effort, Scratch, TreeState, price_cores, price_trees, push_costs

_BLOCK = 16  # reports priced at a time by a thread


@dataclass(frozen=True, kw_only=True)
class WarmOptions:
    """Constants of `WarmPricer`, all guesses: they decide how tight a bound is, and no bound rests on them."""

    least_core: int = 2  # places
    farthest: float = 2.0  # ratios are searched from within this factor of 1
    smoothed: float = 0.8  # share of the smoothed multipliers in the first ones
    least_weight: float = 0.5  # of a multiplier, against the smoothed ones
    lowerings: int = 8
    overshoot: float = 1.1  # times the excess, taken off by a lowering
    most_lowered: float = 0.5  # share of a weight, the most that a lowering takes off
    flat_nats: float = 1.0  # nats around a report within which it takes off most
    negative: float = 1e-9  # ratio from which a price is negative
    proof_gain: float = 1e-15  # gain of a pivot, against the whole mass, from which a proof takes it
    proof_steps: int = 3  # pricings in a row for a proof, within cores
    proof_rounds: int = 12
    checked_share: float = 4e-3  # share of cost and multipliers outside of cores, for given multipliers
    checked_reduction: float = 1e-12  # reductions, against the bound, that call for larger cores then
    reduction_share: float = 0.02  # share of the gap that reductions may take
    report_share: float = 1e-3  # share of the gap, for each report, from which its reductions call for all places
    lowered_each_round: float = 1e-8  # of all multipliers, between two pricings of a proof


@dataclass(kw_only=True, eq=False)
class Proof:
    """A proved bound, and its dual (n,); rays (k, n) of negative price that were met, and their reports (k,)."""

    bound: float = 0.0
    dual: Vector
    rays: list[Matrix] = field(default_factory=list)
    reports: list[Indices] = field(default_factory=list)


class WarmPricer:
    """Trees of all reports for a cone and a cost (n, m). Memory: 17 m n + 8 n^2 bytes; by all pairs 4 n^2 more."""

    def __init__(
        self,
        cone: ConePricer,
        cost: Matrix,
        symmetries: Sequence[Indices] = (),  # renumberings (n,) of places that keep the program (symmetry.py)
        options: WarmOptions = WarmOptions(),
    ) -> None:
        distances = cone.all_distances()
        self.cone, self.cost, self.options = cone, np.ascontiguousarray(cost.T), options
        m, n = self.cost.shape
        self.all_reports = np.arange(m)
        self.symmetries = list(symmetries) or [np.arange(n)]
        self.priced = self.all_reports  # with symmetries, one of every orbit
        if len(self.symmetries) > 1:
            self.priced = np.unique(np.min(self.symmetries, axis=0))
        self.decay = np.exp(-distances)
        self._total = self.decay.sum(axis=1)
        nearest = np.zeros((0, 0), np.int32)
        if cone.is_complete:
            nearest = np.argsort(distances, axis=1, kind="stable").astype(np.int32)
        self.trees = TreeState(
            anchor=np.asarray(cone.anchors, np.int64),
            parent=cone.parent.copy(),
            rises=np.zeros((m, n), np.bool_),
            beyond=cone.parent.copy(),
            ratio=np.ones(m),
            core=np.full(m, n, np.int64),
            near=nearest,
        )
        self.outer_share = 1.0  # of cost and multipliers that cores leave out

    def orbit_minimum(self, values: Vector) -> Vector:
        """The minimum of the values (n,) over each orbit of places."""
        return np.asarray(np.min([values[symmetry] for symmetry in self.symmetries], axis=0))

    def _copy_to_orbits(self) -> None:
        # Only one report of an orbit is priced; the trees of the others are its tree, renumbered.
        trees = self.trees
        for symmetry in self.symmetries[1:]:
            for y in self.priced[symmetry[self.priced] != self.priced]:
                image = symmetry[y]
                trees.parent[image, symmetry], trees.rises[image, symmetry] = symmetry[trees.parent[y]], trees.rises[y]
                trees.core[image] = trees.core[y]

    def smooth(self, values: Vector) -> Vector:
        """Means (n,) of values under e^{-d}."""
        return np.asarray((self.decay @ values) / self._total)

    def first_multipliers(self) -> Vector:
        """The cost of every secret under e^{-d} with rows divided by their sums, smoothed."""
        kernel = np.exp(-self.cone.distance)
        rows = kernel.sum(axis=0)
        mean_cost = (self.cost * kernel).sum(axis=0) / np.where(rows > 0, rows, 1.0)
        smoothed = self.options.smoothed
        return np.asarray((1 - smoothed) * mean_cost + smoothed * self.smooth(mean_cost))

    def weight(self, dual: Vector) -> Vector:
        """The unit (n,) in which multipliers are changed."""
        return np.maximum(np.abs(dual), self.options.least_weight * self.smooth(np.abs(dual)))

    def set_cores(self, share: float) -> None:
        """Limit the share of cost and multipliers outside of cores, which never shrink; sparse graphs have no cores."""
        before, self.outer_share = self.outer_share, share
        if not self.cone.is_complete:
            return
        trees, (m, n) = self.trees, self.cost.shape
        # A larger core must start from a tree of the cone over all of its places.
        for y in range(m):
            self._hang_at_extensions(y)
        if before == 1:  # the first cores
            trees.core[:] = 0
        start = self.first_multipliers()
        # Cost and multipliers, both normalised and weighed by e^{-d}: the share of (1) that a core would lose.
        mass = self.cost / self.cost.sum() + start / start.sum() / m
        mass *= np.exp(-self.cone.distance)
        inner = np.cumsum(np.take_along_axis(mass, trees.near[trees.anchor], 1), axis=1)
        needed = (inner < (1 - share) * inner[:, -1:]).sum(axis=1) + 1 if share > 0 else n
        trees.core[:] = np.maximum(trees.core, np.maximum(needed, self.options.least_core))

    def _hang_at_extensions(self, y: int) -> None:
        """Hang the places outside the core of y where they attain their extensions: a larger core starts there."""
        far = self.trees.near[self.trees.anchor[y], self.trees.core[y] :]
        self.trees.parent[y, far] = self.trees.beyond[y, far]

    def widen(self, reports: Indices) -> None:
        for y in reports:
            self._hang_at_extensions(y)
            self.trees.core[y] = self.trees.parent.shape[1]

    def price(self, dual: Vector, reports: Indices, effort: Effort) -> Matrix:
        """Rays (k, n) of the reports (k,), 1 at the anchor, of improved trees; raises OutOfTime after the deadline."""
        rays, trees, farthest = np.empty((len(reports), len(dual))), self.trees, self.options.farthest
        # A ratio far from 1 is one of a young master; Dinkelbach's method would need many steps from it.
        trees.ratio[reports] = np.clip(trees.ratio[reports], 1 / farthest, farthest)

        price_reports = price_cores if self.cone.is_complete else price_trees

        def price_block(start: int, stop: int) -> None:
            which, scratch = reports[start:stop], Scratch.of(len(dual))
            price_reports(self.cost, dual, which, self.cone.graph, trees, effort, scratch, rays[start:stop])

        in_blocks(price_block, len(reports), _BLOCK, deadline=self.cone.deadline)
        return rays

    def _price_fixed(self, dual: Vector, reports: Indices) -> Matrix:
        return self.price(dual, reports, Effort(self.options.proof_gain, 0.0, self.options.proof_steps, True))

    def reductions(self, dual: Vector) -> tuple[Vector, Vector]:
        """Reductions (n,) of `dual` that leave no price negative, and their sum for each report (m,)."""
        m, n = self.cost.shape
        # One row for each block, so that threads never raise the same reduction.
        parts, report_sums = np.zeros((-(-m // _BLOCK), n)), np.zeros(m)

        def reduce_block(start: int, stop: int) -> None:
            which, part = self.all_reports[start:stop], parts[start // _BLOCK]
            scratch, sums = Scratch.of(n), report_sums[start:stop]
            push_costs(self.cost, dual, which, self.cone.graph, self.trees, part, scratch, sums)

        in_blocks(reduce_block, m, _BLOCK)
        return parts.max(axis=0, initial=0.0), report_sums

    def costs_of(self, rays: Matrix, reports: Indices) -> Vector:
        return np.asarray(np.einsum("ku,ku->k", rays, self.cost[reports]))

    def lower_duals(self, dual: Vector, rays: Matrix, reports: Indices) -> Vector:
        """Multipliers (n,), lowered near reports that need it until none of the rays (k, n) has a negative price."""
        if len(reports) == 0:
            return dual
        options, cost, weight = self.options, self.costs_of(rays, reports), self.weight(dual)
        against = rays @ weight
        for _ in range(options.lowerings):
            excess = np.maximum(rays @ dual - cost, 0.0) / against
            wrong = np.flatnonzero(excess > options.negative)
            if len(wrong) == 0:
                return dual
            # Full weight within a nat of the report, then e^{-d}, as the influence of a multiplier falls.
            near = np.exp(-np.maximum(self.cone.distance[reports[wrong]] - options.flat_nats, 0.0))
            needed = options.overshoot * (excess[wrong, None] * near).max(axis=0)
            # At most half of a weight at a time: overlapping lowerings would take too much off.
            dual = dual - weight * np.minimum(needed, options.most_lowered)
        # The exact excess, off all multipliers alike, ends the loop without any negative price.
        remaining = float(np.maximum((rays @ dual - cost) / against, 0.0).max())
        return dual - weight * remaining

    def bound_of(self, dual: Vector) -> float:
        """The bound that multipliers (n,) prove as they are."""
        return max(0.0, sum_down(np.nextafter(dual - self._settle(dual), -np.inf)))

    def _settle(self, dual: Vector) -> Vector:
        """Price multipliers (n,); cores grow until reductions are near zero. Return these (n,)."""
        options, reports = self.options, self.priced
        self.set_cores(options.checked_share)
        for _ in range(options.proof_rounds):
            # Step 1 of `prove` alone: the given multipliers are judged, not improved.
            self._price_fixed(dual, reports)
            self._copy_to_orbits()
            reduction, report_sums = self.reductions(dual)
            least_sum = options.checked_reduction * abs(dual.sum()) / len(report_sums)
            reports = np.flatnonzero((report_sums > least_sum) & (self.trees.core < len(dual)))
            reports = np.intersect1d(reports, self.priced)
            if len(reports) == 0:
                break
            self.widen(reports)
        return reduction

    def final_trees(self, dual: Vector) -> Indices32:
        """Parents (m, n) of trees that prove the bound of multipliers (n,) without (3) of tree_simplex.py."""
        self._settle(dual)
        if self.cone.is_complete:
            trees = self.trees
            rank = np.argsort(trees.near[trees.anchor[self.priced]], axis=1, kind="stable")
            is_outer = rank >= trees.core[self.priced, None]
            # A tree hands a negative sum to its parent alone, so such places must be in the core.
            is_negative = self.cost[self.priced] < dual
            reports = self.priced[(is_outer & is_negative).any(axis=1)]
            self.widen(reports)
            self._price_fixed(dual, reports)
            self._copy_to_orbits()
        return self.trees.parent

    # `prove` lowers multipliers lambda until no price is negative, and proves it by reductions (tree_simplex.py):
    #
    # 1. price at t = 1, and reduce; once reductions are near zero, the sum of lambda less the reductions is the bound;
    # 2. lower lambda near the reports whose rays have a negative price, and by 1e-8 everywhere;
    # 3. price these reports again, with all places as the core where their own reductions matter.
    def prove(self, dual: Vector, gap: float, *, widen: bool = True) -> Proof:  # widen: cores may grow for good
        """The best bound of lowered multipliers dual (n,); the relative `gap` decides which reductions matter."""
        options, reports, proof = self.options, self.priced, Proof(dual=dual)
        for number in range(options.proof_rounds):
            try:
                rays = self._price_fixed(dual, reports)
            except OutOfTime:
                if number == 0:
                    raise
                break
            # Reductions are those of all reports: nothing rests on how alike images are.
            self._copy_to_orbits()
            reduction, report_sums = self.reductions(dual)
            # Rounded down: the reductions of (4) are then covered exactly.
            admissible = np.nextafter(dual - reduction, -np.inf)
            bound = max(0.0, sum_down(admissible))
            if bound > proof.bound:
                proof.bound, proof.dual = bound, admissible
            # Step 1: the reductions cost less than a fiftieth of the gap, so lowering further gains nothing.
            if reduction.sum() < options.reduction_share * gap * bound:
                break
            # Step 2 lowers near the rays of negative price only: elsewhere it would give bound away.
            is_negative = rays @ dual > self.costs_of(rays, reports)
            if is_negative.any():
                proof.rays.append(rays[is_negative])
                proof.reports.append(reports[is_negative])
                dual = self.orbit_minimum(self.lower_duals(dual, rays[is_negative], reports[is_negative]))
            dual = dual - options.lowered_each_round * self.weight(dual)
            too_narrow = np.zeros(0, np.int64)
            if widen:
                least_sum = options.report_share * gap * bound / len(report_sums)
                too_narrow = np.flatnonzero((report_sums > least_sum) & (self.trees.core < len(dual)))
                too_narrow = np.intersect1d(too_narrow, self.priced)
                self.widen(too_narrow)
            # Step 3: other reports were proved at larger multipliers, so lower ones need no new pricing.
            reports = np.union1d(reports[is_negative], too_narrow)
            if len(reports) == 0:
                break
        return proof


def proved_bound(cone: ConePricer, cost: Matrix, dual: Vector) -> float:
    """The lower bound that multipliers (n,) prove for the cost (n, m), rounded down; at least 0."""
    # Reductions by all pairs, negative prices on a sparse graph.
    if cone.is_complete:
        return WarmPricer(cone, cost).bound_of(dual)
    return lower_bound(dual, cone.price(cost, dual).value)
