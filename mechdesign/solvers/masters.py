"""The masters of column generation: the cheapest mixture of the columns so far, and the multipliers of its row sums.

Column k belongs to a report y and is a vector g_k of the privacy cone, so that every mixture is a private table and its
objective an upper bound. `VertexMaster` takes side rows:

    minimise  sum_k c_k x_k + t   subject to   sum_k x_k g_k(u) = 1 for every secret u,   x, t >= 0              (1)
                                               sum_k x_k G_j g_k <= h_j + s_j t for every side row j

The simplex method solves it at a vertex; with side rows the interior-point method solves it. If a method fails, the
other is used. The unit of the objective is that of the best mixture so far.

`BoxMaster` holds its multipliers in a box (du Merle et al. 1999, Discrete Mathematics 194).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.threads import one_blas_thread
from mechdesign.errors import SolverError
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.cone.warm_pricing import WarmPricer
from mechdesign.solvers.lp.dense_program import weigh
from mechdesign.solvers.lp.highs import ColumnMaster, LinearSolution
from mechdesign.solvers.result import Stop

Columns = tuple[Matrix, Indices]  # rays (k, n) and their reports (k,)


@dataclass(frozen=True, kw_only=True)
class VertexOptions:
    """Constants of `VertexMaster`. All are guesses; no bound rests on them."""

    rebuild_factor: float = 1.5  # fall of the objective after which the model is rebuilt in its unit
    rebuild_rounds: int = 8  # rounds after which it is rebuilt anyway
    columns_per_row: int = 30  # above twice that many, those of the largest reduced cost are dropped at a rebuild
    tolerance: float = 1e-6  # largest relative tolerance of the interior-point method
    gap_per_tolerance: float = 100.0  # the gap, in units of that tolerance
    penalty: float = 1e4  # of the common relaxation of the limits, in units of the objective: above their multipliers


class VertexMaster:
    """The linear program (1) over the columns so far, by HiGHS."""

    # `scale` is the objective of the best constant report.
    # `x` (k,) is its point, empty at first; `dual` (n,) multiplies the row sums, `multipliers` (j,) the side rows.

    def __init__(
        self,
        cost: Matrix,
        rows: SideRows,
        *,
        start: Sequence[Columns],
        objective: float,
        scale: float,
        options: VertexOptions = VertexOptions(),
    ) -> None:
        n, m = cost.shape
        self.options, self.rows, self.scale, self.objective = options, rows, scale, objective
        self.by_report = np.ascontiguousarray(cost.T)
        columns = rows.matrix.tocsc()
        self._side = [columns[:, y::m].tocsr() for y in range(m)] if rows.size else []
        self.limit = rows.limit
        # Interior multipliers are central among the optimal ones: bounds come earlier when those of limits and sums
        # interact.
        self.is_interior = rows.size > 0
        self.rays, self.reports = np.empty((0, n)), np.empty(0, np.int64)
        self.costs, self.sides = np.empty(0), np.empty((0, rows.size))
        self.x = np.zeros(0)
        self.dual, self.multipliers = np.full(n, objective / n), np.zeros(rows.size)
        self._waiting = list(start)
        self._rebuild()

    @property
    def variables(self) -> int:
        return len(self.costs)

    @property
    def constraints(self) -> int:
        return len(self.dual) + self.rows.size

    def tighten(self, margin: Vector) -> None:
        # Only the master sees the margin (j,): bounds are those of the limits themselves.
        self.limit = self.rows.limit - margin
        self._rebuild()

    def add(self, rays: Matrix, reports: Indices) -> None:
        self._waiting.append((rays, reports))

    def solve(self, time_limit: float, lower_bound: float) -> tuple[Vector, Vector]:
        new = self._take_waiting()
        if new:
            self._pass_to_highs(slice(-new, None))
        self._minimise(time_limit, lower_bound)
        self._rounds += 1
        # The tolerances of HiGHS are absolute, and a constant report may cost 30,000 times the optimum.
        has_fallen = self.objective < self._unit / self.options.rebuild_factor
        if has_fallen or self._rounds >= self.options.rebuild_rounds:
            self._rebuild()
            self._minimise(time_limit, lower_bound)
        return self.x, self.dual

    def table(self) -> Matrix:
        table = np.zeros(self.by_report.shape)
        used = np.flatnonzero(self.x)
        np.add.at(table, self.reports[used], self.rays[used] * self.x[used, None])
        return table.T.copy()

    def _rebuild(self) -> None:
        self._take_waiting()
        self._drop_expensive()
        n, k = len(self.dual), self.rows.size
        self._unit, self._rounds = max(self.objective, RESOLUTION * self.scale), 0
        # Side rows in units of the objective (with t) or of their limit: the tolerances of HiGHS are absolute.
        coefficient, has_t = self.rows.epigraph_coefficient, self.rows.epigraph_coefficient > 0
        self._row_scale = np.where(has_t, coefficient * self._unit, self.rows.size_of_limits)
        right = np.r_[np.ones(n), self.limit / self._row_scale]
        self._master = ColumnMaster(right=right, linking=n, unit=self._unit / n)
        # The first two columns: t, and a relaxation of all limits that keeps the model feasible.
        extra = np.zeros((2, n + k))
        extra[0, n:], extra[1, n:] = np.where(has_t, -1.0, 0.0), np.where(has_t, 0.0, -1.0)
        self._master.add(extra, np.array([self._unit, self.options.penalty * self._unit]))
        self._pass_to_highs(slice(None))

    def _drop_expensive(self) -> None:
        # A basis has one column for each row; 30 times as many keep the vertex and its neighbours.
        remaining = self.options.columns_per_row * self.constraints
        if len(self.costs) <= 2 * remaining:
            return
        reduced = (self.costs - self.rays @ self.dual + self.sides @ self.multipliers) / self.rays.sum(axis=1)
        cheapest = np.sort(np.argpartition(reduced, remaining)[:remaining])
        self.rays, self.reports = self.rays[cheapest], self.reports[cheapest]
        self.costs, self.sides = self.costs[cheapest], self.sides[cheapest]
        self.x = np.zeros(0)

    def _pass_to_highs(self, which: slice) -> None:
        self._master.add(np.hstack([self.rays[which], self.sides[which] / self._row_scale]), self.costs[which])

    def _take_waiting(self) -> int:
        """Turn the waiting rays into columns, divided by their largest entries; returns their number."""
        if not self._waiting:
            return 0
        rays = np.concatenate([rays for rays, _ in self._waiting])
        reports = np.concatenate([reports for _, reports in self._waiting])
        self._waiting = []
        largest = rays.max(axis=1)
        # Exponentials underflow beyond 745 nats: such a ray is 0 everywhere.
        is_positive = largest > 0
        rays, reports = rays[is_positive] / largest[is_positive, None], reports[is_positive]
        sides = np.zeros((len(rays), self.rows.size))
        for y in np.unique(reports) if self._side else ():
            sides[reports == y] = (self._side[y] @ rays[reports == y].T).T
        self.rays, self.reports = np.concatenate([self.rays, rays]), np.concatenate([self.reports, reports])
        self.sides = np.concatenate([self.sides, sides])
        self.costs = np.concatenate([self.costs, np.einsum("ku,ku->k", rays, self.by_report[reports])])
        return len(rays)

    def _minimise(self, time_limit: float, lower_bound: float) -> None:
        solution, n = self._optimum(time_limit, lower_bound), len(self.dual)
        relaxed = np.maximum(solution.x[:2], 0.0)
        self.x, self.dual = np.maximum(solution.x[2:], 0.0), solution.dual[:n]
        self.multipliers = np.maximum(-solution.dual[n:] / self._row_scale, 0.0)
        extra = float(relaxed[0]) + self.options.penalty * float(relaxed[1])
        self.objective = float(self.costs @ self.x) + extra * self._unit

    def _optimum(self, time_limit: float, lower_bound: float) -> LinearSolution:
        gap = 1 - lower_bound / self.objective if self.objective > 0 else 1.0
        tolerance = min(self.options.tolerance, gap / self.options.gap_per_tolerance)
        # If the current method fails, the other one is used, also in later rounds.
        for is_interior in (self.is_interior, not self.is_interior):
            with suppress(SolverError):
                return self._master.solve(time_limit, interior=tolerance if is_interior else None)
            self.is_interior = not is_interior
        raise SolverError("HiGHS found no optimum", field="rays", value=self.variables)


@dataclass(frozen=True, kw_only=True)
class BoxOptions:
    """Constants of `BoxMaster`. All are guesses; no bound rests on them."""

    first_width: float = 0.3  # half the box at first, in weights of the multipliers
    widths: tuple[float, float] = (0.1, 2.0)  # narrowest and widest
    much_gain: float = 0.4  # share of the promised gain from which the box grows
    little_gain: float = 0.1  # and up to which it shrinks
    growth: float = 1.3  # factor of the width
    widening: float = 3.0  # factor of the width where the unboxed master is far from the estimate
    unboxed_width: float = 300.0  # half-width in mean multipliers of a box that is open in effect
    row_tolerance: float = 1e-3  # error of a row sum whose multiplier is at an end of its box
    tolerances: tuple[float, float] = (1e-2, 1e-8)  # largest and least of a solve
    max_columns: int = 6  # columns a row, above which those of least cost are dropped
    kept_columns: int = 4  # columns a row that stay


@dataclass(frozen=True, kw_only=True)
class TrustRegionRule:
    """The growth of cores and the box around the multipliers; one rule for positive priors, one for zeros. Guesses."""

    shares: tuple[tuple[float, float], ...]  # (gap, share): share of cost and multipliers outside cores, down to gap
    same: float  # factor on the width of a place whose multiplier was at the same end twice
    other: float  # the same if it changed sides
    shrink: float  # factor on all widths after a small gain


POSITIVE_PRIORS = TrustRegionRule(shares=((3e-2, 8e-2), (6e-3, 2e-2), (0.0, 4e-3)), same=1.5, other=0.7, shrink=0.6)
ZERO_PRIORS = TrustRegionRule(shares=((3e-2, 1e-2), (4e-3, 4e-3), (0.0, 1e-3)), same=1.3, other=0.7, shrink=0.5)


class BoxMaster:
    """The linear program (2): columns rays (k, n) with their costs and reports, and the box around the centre (n,)."""

    # Multipliers lie between b = centre - width f and a = centre + width f by place, f their weight (warm_pricing.py):
    #
    #     minimise  <c, x> + <a, p> - <b, q>   subject to   sum_k x_k g_k + p - q = 1,   x, p, q >= 0              (2)
    #
    # Without the box the first multipliers are useless, and so are the rays that they price. The interior-point method
    # (dense_program.py) solves (2) to a tenth of the gap. Multipliers have either sign, because some are negative where
    # priors are zero. Under symmetries of the program one report of each orbit is priced, and rows are means over the
    # orbits of places.

    def __init__(
        self, pricer: WarmPricer, rule: TrustRegionRule, constant: float, options: BoxOptions = BoxOptions()
    ) -> None:
        self.pricer, self.rule, self.constant, self.options = pricer, rule, constant, options
        n = pricer.cost.shape[1]
        self.rays, self.cost, self.report = np.empty((0, n)), np.empty(0), np.empty(0, np.int64)
        # Rows are means over orbits of places: orbit (n,) numbers them, and size (o,) counts their places.
        _, self.orbit, self.size = np.unique(np.min(pricer.symmetries, axis=0), return_inverse=True, return_counts=True)
        self.order = np.argsort(self.orbit, kind="stable")
        self.rows = np.empty((0, len(self.size)))
        kernel = np.exp(-pricer.cone.distance[pricer.priced])
        self.add(kernel, pricer.priced)
        self.add(np.sqrt(kernel), pricer.priced)
        self.dual = pricer.first_multipliers()
        self.centre, self.width = np.zeros(n), np.full(n, options.first_width)
        # The end of its box at which each multiplier was in the last solve and in the one before: -1, 0 or 1.
        self.side = self.side_before = np.zeros(n)
        self.objective, self.gap = 0.0, 1.0
        self.x: Vector = np.zeros(0)

    @property
    def variables(self) -> int:
        return len(self.cost)

    @property
    def constraints(self) -> int:
        return len(self.size)

    @property
    def estimate(self) -> float:
        # No column has a negative price at the centre, so its sum estimates the bound that it proves.
        return float(self.centre.sum())

    def add(self, rays: Matrix, reports: Indices) -> None:
        """Take rays (k, n) as columns, divided by their largest entries."""
        flat = rays / rays.max(axis=1, keepdims=True)
        self.rays = np.concatenate([self.rays, flat])
        # Without symmetries the rows are the rays themselves: one array, not a copy.
        has_orbits = len(self.size) < flat.shape[1]
        self.rows = np.concatenate([self.rows, self._orbit_means(flat)]) if has_orbits else self.rays
        self.cost = np.concatenate([self.cost, self.pricer.costs_of(flat, reports)])
        self.report = np.concatenate([self.report, reports])

    def move_box(self, *, is_first: bool) -> None:
        """Centre the box at better multipliers and adapt its widths (3), after the rays of `dual` were added."""
        options, rule = self.options, self.rule
        # Multipliers that price no column negatively: their sum estimates the bound that they prove.
        lowered = self._below_columns(self.dual)
        # New columns may have negative prices at the old centre; lowering it keeps the box from being empty.
        self.centre = self._below_columns(self.centre)
        # The gain is measured against the promise of the master, as in trust-region methods.
        promised = max(self.objective - self.estimate, RESOLUTION * self.constant)
        gain = 1.0 if is_first else (float(lowered.sum()) - self.estimate) / promised
        # (3) width <- width * (same | other | 1) * (growth | 1 | shrink), within the widths
        agreement = self.side * self.side_before
        factor = np.where(agreement > 0, rule.same, np.where(agreement < 0, rule.other, 1.0))
        if gain > options.much_gain:
            factor *= options.growth
        elif gain <= options.little_gain:
            factor *= rule.shrink
        self.width = np.clip(self.width * factor, *options.widths)
        if gain > 0:
            self.centre = lowered

    def _below_columns(self, dual: Vector) -> Vector:
        is_negative = self.rays @ dual > self.cost
        return self.pricer.orbit_minimum(
            self.pricer.lower_duals(dual, self.rays[is_negative], self.report[is_negative])
        )

    def _orbit_means(self, values: Matrix) -> Matrix:
        """Means (k, o) of values (k, n) over the orbits of places."""
        first = np.append(0, np.cumsum(self.size)[:-1])
        return np.asarray(np.add.reduceat(values[:, self.order], first, axis=1) / self.size)

    def solve(self, deadline: float) -> tuple[Vector, Vector]:
        half = self.width * self.pricer.weight(self.centre)
        largest, smallest = self.options.tolerances
        self.x, self.dual, self.objective = self._weigh(half, min(largest, max(smallest, self.gap / 10)), deadline)
        self.gap = max(1 - self.estimate / self.objective, 0.0) if self.objective > 0 else 1.0
        # p - q of (2): a row sum other than 1 shows at which end of its box the multiplier is.
        missing = (1 - self.x @ self.rows)[self.orbit]
        self.side_before = self.side
        self.side = np.where(np.abs(missing) > self.options.row_tolerance, np.sign(missing), 0.0)
        return self.x, self.dual

    def solve_unboxed(self, gap: float, deadline: float) -> float:
        """Find the mixture with the box open in effect, whose rows sum to 1; returns its objective."""
        # A box this wide never binds, and still keeps the program feasible.
        unit = max(float(np.abs(self.centre).mean()), RESOLUTION * self.constant)
        self.x, _, objective = self._weigh(np.full_like(self.centre, self.options.unboxed_width * unit), gap, deadline)
        return objective

    def _weigh(self, half: Vector, tolerance: float, deadline: float) -> tuple[Vector, Vector, float]:
        """Mixture, multipliers and objective of (2); half (n,) is half the width of the box."""
        last = self.order[np.cumsum(self.size) - 1]  # a place of each orbit
        lower, upper = self.centre - half, self.centre + half
        # A row is a mean over an orbit, so its multiplier is the sum over the orbit.
        box = upper[last] * self.size, lower[last] * self.size
        with one_blas_thread():
            weighed = weigh(self.rows, self.cost, tolerance=tolerance, box=box, deadline=deadline)
        if weighed.stopped is Stop.INTERRUPT:
            raise KeyboardInterrupt
        return weighed.x, np.clip((weighed.dual / self.size)[self.orbit], lower, upper), weighed.value

    def table(self) -> Matrix:
        """The table (n, m) of the last mixture, rows divided by their sums."""
        table, used = np.zeros(self.pricer.cost.shape), np.flatnonzero(self.x)
        # A column stands for its whole orbit: each image gets the same weight, and rows are divided at the end.
        for symmetry in self.pricer.symmetries:
            reports = symmetry[self.report[used]] if len(self.pricer.symmetries) > 1 else self.report[used]
            np.add.at(table, reports, self.rays[np.ix_(used, np.argsort(symmetry))] * self.x[used, None])
        return np.asarray(table.T / table.sum(axis=0)[:, None])

    def widen(self) -> None:
        widest = self.options.widths[1]
        self.width = np.where(self.side == 0, self.width, np.minimum(self.options.widening * self.width, widest))

    def drop_expensive(self) -> None:
        first, weighed = 2 * len(self.pricer.priced), len(self.x)
        if weighed <= self.options.max_columns * self.constraints:
            return
        # The first two columns of every report keep the program feasible; newer ones were never weighed.
        order = np.argsort(-(self.x * self.cost[:weighed])[first:], kind="stable")
        order = np.sort(order[: self.options.kept_columns * self.constraints - first])
        chosen = np.concatenate([np.arange(first), first + order, np.arange(weighed, len(self.cost))])
        self.rays, self.cost, self.report = self.rays[chosen], self.cost[chosen], self.report[chosen]
        self.rows = self.rows[chosen] if len(self.size) < self.rays.shape[1] else self.rays
        self.x = self.x[chosen[chosen < weighed]]
