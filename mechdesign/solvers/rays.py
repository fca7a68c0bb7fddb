"""Ray generation: an optimal or coupled program over mixtures of columns, added where a price is negative.

    minimise  sum_k c_k x_k + t   subject to   sum_k x_k g_k(u) = 1 for every secret u,   x, t >= 0
                                               sum_k x_k G_j g_k <= h_j + s_j t for every side row j

Column k belongs to a report y and is a vector g_k of the privacy cone, so that every x is a private table and the
objective an upper bound. Multipliers of the rows are priced over the whole cone (solvers/cone/pricing.py), for the
cost that those of the side rows give: a ray with a negative price becomes a column, and the homogeneous bound of the
same multipliers is the lower one. With long edges, 1.3 nats and more, few rays make the optimal table, and zeros of the
prior do no harm: no variable of the master stands for a single entry of the table, whatever its size.

For the minimax program the multipliers of the side rows are a prior that changes from round to round, and ends as the
least favourable one.

Masters with side rows are solved by the interior-point method, whose multipliers lie in the midst of the optimal ones:
a vertex is as good as any other where multipliers of limits and sums play into each other, and then bounds come late.
Where a method gains nothing, or fails, the other takes turns.

Numbers. The unit of the objective is that of the best mixture so far, and the master is rebuilt when that has fallen,
or after some rounds: a constant report may cost 30,000 times the optimum. Columns are divided by their sums. Point and
multipliers are solved for again from the basis, since those of the simplex method carry its tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SolverError
from mechdesign.mechanism.figures import RESOLUTION, relative_gap
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, Pricing, best_bound
from mechdesign.solvers.lp.highs import ColumnMaster, LinearSolution

_FALLEN = 1.5  # factor by which the objective falls before the master is rebuilt in its unit
_EVERY = 8  # rounds after which it is rebuilt anyway
_NEW = 1e-14  # ratio from which a ray is new
_TAKEN = 3  # trials of a bound whose rays become columns: those of the later ones hardly differ
_MIXED = 0.7  # share of the best multipliers in those that are priced beside the last ones
_NEAR = 1e-3  # gap below which they are not
_WIDE = 30  # columns a secret beyond which those of the largest reduced cost are given up at the next rebuild
_ROUNDS = 300
_WITHIN = 0.05  # share of the gap that the mixture aims at: another round or two, and loss and bound are nearly alike
_GAINED = 0.7  # factor by which the gap of the mixture falls, or its objective by a tenth of the target: a gain
_TURN = 5  # rounds without gain after which the master's method changes
_NO_GAIN = 15  # such rounds after which rays are given up
_CENTRAL = 1e-6  # largest relative tolerance of the interior-point method, otherwise a hundredth of the gap
_FINEST = 1e-10  # gap of a mixture below which nothing is gained
_LEAST_TIME = 1.0  # seconds that HiGHS gets
_PENALTY = 1e4  # of the common relaxation of the limits, in units of the objective; multipliers stay below it


def generate(rays: RayGeneration, *, gap: float, deadline: float, take: Callable[[CoupledBound, bool], float]) -> str:
    """Rounds of ray generation until the certified gap is met; returns "gap", "time" or "precision".

    take, called after every round with the best bound and whether the mixture is as near to it as the gap asks, or will
    come no nearer: its table should be certified then. It returns the certified gap.
    Raises: SolverError where HiGHS finds no vertex.
    """
    wanted, least, lowest, since, reached = gap * _WITHIN, np.inf, np.inf, 0, np.inf
    for _ in range(_ROUNDS):
        left = deadline - time.monotonic()
        if left <= 0:
            return "gap" if reached <= gap else "time"
        rays.solve(max(left, _LEAST_TIME))
        bound = rays.price(rays.objective * (1 - wanted))
        near = relative_gap(rays.objective, bound.value, rays.scale)
        # A fall of the objective counts too: at first bounds say nothing, and the gap cannot tell progress.
        gained = near < least * _GAINED or rays.objective < lowest * (1 - gap / 10)
        since = 0 if gained else since + 1
        least, lowest = min(near, least) if gained else least, min(lowest, rays.objective)
        if since == _TURN:  # multipliers of the other method are others, and price other rays
            rays.interior = not rays.interior
        close = near <= wanted or since == _NO_GAIN
        reached = take(bound, close)
        if close and reached <= gap:
            return "gap"
        if since == _NO_GAIN or (close and wanted <= _FINEST):
            break
        if close:  # the certified table lost more to its repair than the gap allows: aim closer
            wanted = max(min(wanted, near) / 10, _FINEST)
    return "gap" if reached <= gap else "precision"


@dataclass(kw_only=True, eq=False)
class RayGeneration:
    """The columns so far and the master over them.

    cost (n, m); rows, the side rows; constant, the report that everybody can make; scale, the objective of that, under
    whose 1e-9th nothing is resolved; objective, that of the master's last point; dual (n,) and multipliers (k,), those
    of its rows; x, the point, empty before the first; best, the best bound, None before the first.
    """

    pricer: ConePricer
    cost: NDArray[np.float64]
    rows: SideRows
    constant: int
    scale: float
    objective: float = field(init=False)
    best: CoupledBound | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.interior, self.x = self.rows.size > 0, np.zeros(0)
        n, m = self.cost.shape
        self.by_report = np.ascontiguousarray(self.cost.T)
        columns = self.rows.matrix.tocsc()
        self.side = [columns[:, y::m].tocsr() for y in range(m)] if self.rows.size else []
        self.limit = self.rows.limit
        self.rays, self.reports = np.empty((0, n)), np.empty(0, np.int64)
        self.costs, self.sides = np.empty(0), np.empty((0, self.rows.size))
        half, every = np.exp(-self.pricer.distance / 2), np.arange(m)
        self.waiting = [(np.exp(-self.pricer.distance), every), (np.ones((1, n)), np.array([self.constant]))]
        if m < n:  # an answer is that of many secrets, which long edges keep apart from its anchor
            self.waiting.append((np.exp(-self.pricer.nearest_of(self.cost.argmin(axis=1))), every))
        self.objective = self.scale
        if half.sum(axis=0).min() > 0:
            half /= half.sum(axis=0)
            self.objective = min(self.scale, float((half * self.by_report).sum()) or self.scale)
            self.waiting.append((half, every))
        self.dual, self.multipliers = np.full(n, self.objective / n), np.zeros(self.rows.size)
        self._rebuild()

    @property
    def variables(self) -> int:
        """Columns of the master."""
        return len(self.costs)

    @property
    def constraints(self) -> int:
        """Rows of the master."""
        return len(self.dual) + self.rows.size

    def tighten(self, margin: NDArray[np.float64]) -> None:
        """Lower the limits of the master by margin (k,); bounds are those of the program itself."""
        self.limit = self.rows.limit - margin
        self._rebuild()

    def _rebuild(self) -> None:
        """A master in the unit of the objective, with the columns in hand."""
        self._take_up()
        n, k = len(self.dual), self.rows.size
        most = _WIDE * (n + k)
        if len(self.costs) > 2 * most:
            reduced = (self.costs - self.rays @ self.dual + self.sides @ self.multipliers) / self.rays.sum(axis=1)
            cheapest = np.sort(np.argpartition(reduced, most)[:most])
            self.rays, self.reports = self.rays[cheapest], self.reports[cheapest]
            self.costs, self.sides, self.x = self.costs[cheapest], self.sides[cheapest], np.zeros(0)
        self.unit, self.since = max(self.objective, RESOLUTION * self.scale), 0
        share, shared = self.rows.share, self.rows.share > 0
        self.row_scale = np.where(shared, share * self.unit, self.rows.size_of_limits)
        self.master = ColumnMaster(right=np.r_[np.ones(n), self.limit / self.row_scale], linking=n, unit=self.unit / n)
        extra = np.zeros((2, n + k))
        extra[0, n:], extra[1, n:] = np.where(shared, -1.0, 0.0), np.where(shared, 0.0, -1.0)
        self.master.add(extra, np.array([self.unit, _PENALTY * self.unit]))
        self._hand_over(slice(None))

    def _hand_over(self, which: slice) -> None:
        self.master.add(np.hstack([self.rays[which], self.sides[which] / self.row_scale]), self.costs[which])

    def _take_up(self) -> int:
        """The waiting columns, divided by their largest entry, among the columns; returns how many."""
        if not self.waiting:
            return 0
        rays = np.concatenate([columns for columns, _ in self.waiting])
        reports = np.concatenate([of for _, of in self.waiting])
        self.waiting = []
        seen = rays.max(axis=1) > 0  # exponentials underflow beyond 745 nats
        rays, reports = rays[seen] / rays[seen].max(axis=1, keepdims=True), reports[seen]
        sides = np.zeros((len(rays), self.rows.size))
        for y in np.unique(reports) if self.side else ():
            sides[reports == y] = (self.side[y] @ rays[reports == y].T).T
        self.rays, self.reports = np.concatenate([self.rays, rays]), np.concatenate([self.reports, reports])
        self.sides = np.concatenate([self.sides, sides])
        self.costs = np.concatenate([self.costs, np.einsum("ku,ku->k", rays, self.by_report[reports])])
        return len(rays)

    def solve(self, time_limit: float) -> None:
        """The optimal mixture of the columns. Raises: SolverError where HiGHS finds none."""
        new = self._take_up()
        if new:
            self._hand_over(slice(-new, None))
        self._minimise(time_limit)
        self.since += 1
        if self.objective < self.unit / _FALLEN or self.since >= _EVERY:
            self._rebuild()
            self._minimise(time_limit)

    def _minimise(self, time_limit: float) -> None:
        solution, n = self._optimum(time_limit), len(self.dual)
        self.x, self.dual = np.maximum(solution.x[2:], 0.0), solution.dual[:n]
        self.multipliers = np.maximum(-solution.dual[n:] / self.row_scale, 0.0)
        shared, relaxed = float(solution.x[0]), float(solution.x[1])
        self.objective = float(self.costs @ self.x) + (max(shared, 0.0) + _PENALTY * max(relaxed, 0.0)) * self.unit

    def _optimum(self, time_limit: float) -> LinearSolution:
        """By the method of the turn; by the other where that fails."""
        gap = 1.0 if self.best is None else 1 - self.best.value / self.objective
        tolerance = min(_CENTRAL, gap / 100)
        for interior in (self.interior, not self.interior):
            with suppress(SolverError):
                return self.master.solve(time_limit, interior=tolerance if interior else None)
            self.interior = not interior
        raise SolverError("HiGHS found no optimum", field="rays", value=self.variables)

    def price(self, enough: float) -> CoupledBound:
        """Price the multipliers and, far from the optimum, others half-way to the best ones; the best bound so far.

        enough: a bound from which no further trial is made. Rays with negative prices wait to become columns.
        """
        latest = self._priced(self.dual, self.multipliers, enough)
        if self.best is None or latest.value > self.best.value:
            self.best = latest
        elif 1 - self.best.value / self.objective > _NEAR:
            dual = _MIXED * self.best.dual + (1 - _MIXED) * self.dual
            multipliers = _MIXED * self.best.multipliers + (1 - _MIXED) * self.multipliers
            self.best = max(self.best, self._priced(dual, multipliers, enough), key=lambda bound: bound.value)
        return self.best

    def _priced(self, dual: NDArray[np.float64], multipliers: NDArray[np.float64], enough: float) -> CoupledBound:
        loss = max(self.objective, RESOLUTION * self.scale)
        weight = np.abs(dual) + loss / len(dual)
        trials = 0

        def visit(folded: NDArray[np.float64], trial: NDArray[np.float64], price: Pricing) -> None:
            nonlocal trials
            trials += 1
            if price.rays is None or trials > _TAKEN:
                return
            with np.errstate(over="ignore", invalid="ignore"):
                flat = price.rays / price.rays.max(axis=1, keepdims=True)
            fresh = np.flatnonzero(np.einsum("yu,yu->y", flat, trial - folded.T) > _NEW * (flat @ weight))
            self.waiting.append((flat[fresh], fresh))

        known = 0.0 if self.best is None else self.best.value
        return best_bound(
            self.pricer, self.cost, self.rows, dual, multipliers, loss=loss, known=known, enough=enough, visit=visit
        )

    def table(self) -> NDArray[np.float64]:
        """The table (n, m) of the point."""
        table = np.zeros(self.by_report.shape)
        used = np.flatnonzero(self.x)
        np.add.at(table, self.reports[used], self.rays[used] * self.x[used, None])
        return table.T.copy()
