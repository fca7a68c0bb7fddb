"""Pricing that is warm: one tree for each report, kept from round to round, and the bound that any trees prove.

A forest prices ratios rho_y = min <c_y, g> / <lambda, g> over rays g of the privacy cone by Dinkelbach's method
(tree_simplex.py). Multipliers may be negative, as they are where priors are zero. On a complete graph the simplex works
on cores, the places nearest to a report that hold all but a share of cost and multipliers under e^{-d}; a core that
grows begins from the tree in hand.

Proof. `prove` lowers multipliers lambda until no price is negative, and proves it by charges (tree_simplex.py):

1. price at t = 1, and charge; where charges are next to nothing, the sum of lambda less the charges is the bound;
2. lower lambda near the reports whose rays have a negative price, and by a hundred-millionth everywhere;
3. price these reports again, with all places as the core of those whose own charges matter.

The bound rests on the trees of the last pricing and on no convergence.
Source: ours; the pieces are Dinkelbach 1967, Management Science 13, and Wentges 1997, International Transactions in
Operational Research 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import OutOfTime, in_blocks
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound, sum_down
from mechdesign.solvers.cone.tree_simplex import Effort, charge_reports, regrow
from mechdesign.solvers.cone.tree_simplex import Forest as Trees

Vector = NDArray[np.float64]
_BLOCK = 16  # reports priced at a time
_LEAST_CORE = 2
_FARTHEST = 2.0  # ratios are searched from within this factor of 1
_MIXED = 0.8  # share of the smoothed multipliers in the first ones
_FLOOR = 0.5  # least weight of a multiplier, against the smoothed ones
_LOWERINGS = 8
_BEYOND = 1.1  # of the excess that a lowering takes off
_MOST = 0.5  # of a multiplier that it takes off
_FLAT = 1.0  # nats around a report within which it takes off most
_NEGATIVE = 1e-9  # ratio from which a price is negative
_PROOF = 1e-15  # gain of a pivot that a proof takes
_PROOFS = 12
_CHECKED = 4e-3  # share of cost and multipliers outside of cores, of multipliers that are checked
_LEFT = 1e-12  # charges, against the bound, that call for larger cores
_CHARGED = 0.02  # share of the gap that charges may take
_LESS = 1e-8  # lowering of all multipliers between two pricings of a proof
_OWN = 1e-3  # share of the gap, for each report, from which its own charges call for all places


@dataclass(kw_only=True, eq=False)
class Proof:
    """A proved bound, and its dual (n,); rays (k, n) of negative price that were met, and their reports (k,)."""

    bound: float = 0.0
    dual: Vector
    rays: list[Vector] = field(default_factory=list)
    reports: list[NDArray[np.int64]] = field(default_factory=list)


class Forest:
    """Trees of all reports for a pricer and the cost (n, m), with an order of places by distance.

    Memory: 8 m n bytes for the cost, 9 for the trees, 4 n^2 for the order by all pairs, 8 n^2 for e^{-d}.
    """

    def __init__(self, pricer: ConePricer, cost: Vector, ways: Sequence[NDArray[np.int64]] = ()) -> None:
        """ways, renumberings (n,) of the places, each its own report, that leave the program alone (symmetry.py): then
        one report of every orbit is priced.
        """
        apart = pricer.apart()
        self.pricer, self.cost = pricer, np.ascontiguousarray(cost.T)
        m, n = self.cost.shape
        self.ways = list(ways) or [np.arange(n)]
        self.chosen = np.unique(np.min(self.ways, axis=0)) if len(self.ways) > 1 else np.arange(m)
        self.decay = np.exp(-apart)
        self._total = self.decay.sum(axis=1)
        near = (
            np.argsort(apart, axis=1, kind="stable").astype(np.int32) if pricer.complete else np.zeros((0, 0), np.int32)
        )
        self.trees = Trees(
            anchor=np.asarray(pricer.anchors, np.int64),
            parent=pricer.parent.copy(),
            rises=np.zeros((m, n), np.bool_),
            beyond=pricer.parent.copy(),
            ratio=np.ones(m),
            core=np.full(m, n, np.int64),
            near=near,
        )
        self.share = 1.0
        self.pivots = 0.0

    @property
    def every(self) -> NDArray[np.int64]:
        """The numbers of all reports; `chosen` are those that are priced."""
        return np.arange(len(self.cost))

    def alike(self, values: Vector) -> Vector:
        """The least of the values (n,) of each orbit of places."""
        return np.asarray(np.min([values[way] for way in self.ways], axis=0))

    def _spread(self) -> None:
        """Give the reports that are not priced the trees of those that are, renumbered."""
        trees = self.trees
        for way in self.ways[1:]:
            for y in self.chosen[way[self.chosen] != self.chosen]:
                trees.parent[way[y], way], trees.rises[way[y], way] = way[trees.parent[y]], trees.rises[y]
                trees.core[way[y]] = trees.core[y]

    def smooth(self, values: Vector) -> Vector:
        """Means (n,) of values under e^{-d}."""
        return np.asarray((self.decay @ values) / self._total)

    def first_multipliers(self) -> Vector:
        """What every secret costs under e^{-d} with rows divided by their sums, smoothed."""
        kernel = np.exp(-self.pricer.distance)
        rows = kernel.sum(axis=0)
        own = (self.cost * kernel).sum(axis=0) / np.where(rows > 0, rows, 1.0)
        return np.asarray((1 - _MIXED) * own + _MIXED * self.smooth(own))

    def weight(self, dual: Vector) -> Vector:
        """The unit of a change of every multiplier."""
        return np.maximum(np.abs(dual), _FLOOR * self.smooth(np.abs(dual)))

    def set_cores(self, share: float) -> None:
        """Work on cores that leave out at most this share of cost and multipliers, and never shrink; on a sparse graph
        on all places.
        """
        before, self.share = self.share, share
        if not self.pricer.complete:
            return
        trees, (m, n) = self.trees, self.cost.shape
        for y in range(m):  # a core that grows begins where extensions were attained
            far = trees.near[trees.anchor[y], trees.core[y] :]
            trees.parent[y, far] = trees.beyond[y, far]
        if before == 1:  # the first cores
            trees.core[:] = 0
        start = self.first_multipliers()
        mass = self.cost / self.cost.sum() + start / start.sum() / m
        mass *= np.exp(-self.pricer.distance)
        inner = np.cumsum(np.take_along_axis(mass, trees.near[trees.anchor], 1), axis=1)
        needed = (inner < (1 - share) * inner[:, -1:]).sum(axis=1) + 1 if share > 0 else n
        trees.core[:] = np.maximum(trees.core, np.maximum(needed, _LEAST_CORE))

    def widen(self, reports: NDArray[np.int64]) -> None:
        """All places as the core of these reports."""
        trees = self.trees
        for y in reports:
            far = trees.near[trees.anchor[y], trees.core[y] :]
            trees.parent[y, far] = trees.beyond[y, far]
            trees.core[y] = trees.parent.shape[1]

    def price(self, dual: Vector, reports: NDArray[np.int64], effort: Effort) -> Vector:
        """Rays (k, n) of the reports (k,), g = 1 at the anchor, with trees that are better than before.

        Raises: OutOfTime after the deadline of the pricer.
        """
        rays, trees = np.empty((len(reports), len(dual))), self.trees
        trees.ratio[reports] = np.clip(trees.ratio[reports], 1 / _FARTHEST, _FARTHEST)
        pivots = np.zeros(-(-len(reports) // _BLOCK))

        def block(start: int, stop: int) -> None:
            chosen = reports[start:stop]
            pivots[start // _BLOCK] = regrow(
                self.cost, dual, chosen, self.pricer.graph, trees, effort, rays[start:stop]
            )

        in_blocks(block, len(reports), _BLOCK, deadline=self.pricer.deadline)
        self.pivots = float(pivots.sum()) / max(len(reports), 1)
        return rays

    def charges(self, dual: Vector, reports: NDArray[np.int64]) -> tuple[Vector, Vector]:
        """The charges (n,) of the reports (k,), and the sum of those of each (k,)."""
        parts, own = np.zeros((-(-len(reports) // _BLOCK), len(dual))), np.zeros(len(reports))

        def block(start: int, stop: int) -> None:
            part = parts[start // _BLOCK]
            charge_reports(self.cost, dual, reports[start:stop], self.pricer.graph, self.trees, part, own[start:stop])

        in_blocks(block, len(reports), _BLOCK)
        return parts.max(axis=0, initial=0.0), own

    def costs_of(self, rays: Vector, reports: NDArray[np.int64]) -> Vector:
        """<c_y, g> (k,) of rays (k, n)."""
        return np.asarray(np.einsum("ku,ku->k", rays, self.cost[reports]))

    def lowered(self, dual: Vector, rays: Vector, reports: NDArray[np.int64]) -> Vector:
        """Multipliers (n,), lowered near reports that need it until none of the rays (k, n) has a negative price."""
        if len(reports) == 0:
            return dual
        cost, weight = self.costs_of(rays, reports), self.weight(dual)
        against = rays @ weight
        for _ in range(_LOWERINGS):
            excess = np.maximum(rays @ dual - cost, 0.0) / against
            wrong = np.flatnonzero(excess > _NEGATIVE)
            if len(wrong) == 0:
                return dual
            near = np.exp(-np.maximum(self.pricer.distance[reports[wrong]] - _FLAT, 0.0))
            dual = dual - weight * np.minimum(_BEYOND * (excess[wrong, None] * near).max(axis=0), _MOST)
        left = float(np.maximum((rays @ dual - cost) / against, 0.0).max())
        return dual - weight * left

    def proved(self, dual: Vector) -> float:
        """The bound that multipliers (n,) prove as they are; cores grow until next to nothing is charged."""
        self.set_cores(_CHECKED)
        reports, least = self.every, np.inf
        for _ in range(_PROOFS):
            self.price(dual, reports, Effort(_PROOF, 0.0, 3, True))
            charge, own = self.charges(dual, self.every)
            least = min(least, float(charge.sum()))
            reports = np.flatnonzero((own > _LEFT * abs(dual.sum()) / len(own)) & (self.trees.core < len(dual)))
            if len(reports) == 0:
                break
            self.widen(reports)
        return max(0.0, sum_down(np.nextafter(dual - charge, -np.inf)))

    def prove(self, dual: Vector, gap: float, *, widen: bool = True) -> Proof:
        """The best bound met below the multipliers dual (n,); `gap`, relative, says which charges matter; widen,
        whether cores may grow for good.

        Raises: OutOfTime where the deadline of the pricer passes before the first pricing has ended.
        """
        reports, proof = self.chosen, Proof(dual=dual)
        for number in range(_PROOFS):
            try:
                rays = self.price(dual, reports, Effort(_PROOF, 0.0, 3, True))
            except OutOfTime:
                if number == 0:
                    raise
                break
            self._spread()  # charges are those of all reports: nothing rests on how alike images are
            charge, own = self.charges(dual, self.every)
            admissible = np.nextafter(dual - charge, -np.inf)
            bound = max(0.0, sum_down(admissible))
            if bound > proof.bound:
                proof.bound, proof.dual = bound, admissible
            if charge.sum() < _CHARGED * gap * bound:
                break
            negative = rays @ dual > self.costs_of(rays, reports)
            if negative.any():
                proof.rays.append(rays[negative])
                proof.reports.append(reports[negative])
                dual = self.alike(self.lowered(dual, rays[negative], reports[negative]))
            dual = dual - _LESS * self.weight(dual)
            matter = (own > _OWN * gap * bound / len(self.every)) & (self.trees.core < len(dual))
            wide = np.intersect1d(np.flatnonzero(matter & widen), self.chosen)
            self.widen(wide)
            reports = np.union1d(reports[negative], wide)
            if len(reports) == 0:
                break
        return proof


def proved_bound(pricer: ConePricer, cost: Vector, dual: Vector) -> float:
    """The lower bound that multipliers (n,) prove for the cost (n, m), rounded down; at least 0.

    By all pairs charges are taken off, on a graph of few edges negative prices.
    """
    if pricer.complete:
        return Forest(pricer, cost).proved(dual)
    return lower_bound(dual, pricer.price(cost, dual).value)
