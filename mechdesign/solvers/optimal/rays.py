"""Ray generation: the optimal program over mixtures of columns, which are added where a price is negative.

    minimise  sum_k c_k x_k   subject to   sum_k x_k g_k(u) = 1 for every secret u,  x >= 0

Column k belongs to a report y and is a vector g_k of the privacy cone, so that every x is a private table and the
objective an upper bound. Multipliers of the rows are priced over the whole cone (solvers/kernels/pricing.py): a ray
with a negative price becomes a column, and the homogeneous bound of the same multipliers is the lower one. With long
edges, 1.3 nats and more, few rays make the optimal table, and zeros of the prior do no harm: no variable of the master
stands for a single entry of the table, whatever its size.

Numbers. The unit of the objective is that of the best mixture so far, and the master is rebuilt when that has fallen,
or after some rounds: a constant report may cost 30,000 times the optimum. Columns are divided by their sums. Point and
multipliers are solved for again from the basis, since those of the simplex method carry its tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.table.dataset import RESOLUTION
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.highs import ColumnMaster
from mechdesign.solvers.kernels.pricing import Bound, ConePricer, Pricing, homogeneous_bound

_FALLEN = 1.5  # factor by which the objective falls before the master is rebuilt in its unit
_EVERY = 8  # rounds after which it is rebuilt anyway
_NEW = 1e-14  # ratio from which a ray is new
_TAKEN = 3  # trials of a bound whose rays become columns: those of the later ones hardly differ
_MIXED = 0.7  # share of the best multipliers in those that are priced beside the last ones
_NEAR = 1e-3  # gap below which they are not
_WIDE = 30  # columns a secret beyond which those of the largest reduced cost are given up at the next rebuild


@dataclass(kw_only=True, eq=False)
class RayGeneration:
    """The columns so far, rays (k, n) with their reports (k,) and costs (k,), and the master over them.

    objective, that of the master's last point x (k,); dual (n,), its multipliers; best, the multipliers of the best
    bound, None before the first.
    """

    problem: DesignProblem
    pricer: ConePricer
    objective: float = np.inf
    dual: NDArray[np.float64] = field(init=False)
    best: Bound | None = None

    def __post_init__(self) -> None:
        n, m = self.problem.weighted_loss.shape
        self.cost = np.ascontiguousarray(self.problem.weighted_loss.T)
        self.rays, self.reports, self.costs = np.empty((0, n)), np.empty(0, np.int64), np.empty(0)
        self.waiting: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        half, every, constant = np.exp(-self.pricer.distance / 2), np.arange(m), self.problem.best_constant
        self.waiting = [(np.exp(-self.pricer.distance), every), (np.ones((1, n)), np.array([constant]))]
        self.objective = self.problem.constant_loss
        if half.sum(axis=0).min() > 0:
            half /= half.sum(axis=0)
            self.objective = min(self.objective, float((half * self.cost).sum()))
            self.waiting.append((half, every))
        self.dual = np.full(n, self.objective / n)
        self._rebuild()

    @property
    def variables(self) -> int:
        """Columns of the master."""
        return len(self.costs)

    @property
    def constraints(self) -> int:
        """Rows of the master."""
        return len(self.dual)

    def _rebuild(self) -> None:
        """A master in the unit of the objective, with the columns in hand."""
        self._take_up()
        most = _WIDE * len(self.dual)
        if len(self.costs) > 2 * most:
            reduced = (self.costs - self.rays @ self.dual) / self.rays.sum(axis=1)
            kept = np.sort(np.argpartition(reduced, most)[:most])
            self.rays, self.reports, self.costs = self.rays[kept], self.reports[kept], self.costs[kept]
        self.unit, self.since = max(self.objective, RESOLUTION * self.problem.constant_loss), 0
        self.master = ColumnMaster(rows=len(self.dual), unit=self.unit / len(self.dual))
        self.master.add(self.rays, self.costs)

    def _take_up(self) -> int:
        """The waiting columns, divided by their largest entry, among the columns; returns how many."""
        if not self.waiting:
            return 0
        rays = np.concatenate([made for made, _ in self.waiting])
        reports = np.concatenate([of for _, of in self.waiting])
        seen = rays.max(axis=1) > 0  # exponentials underflow beyond 745 nats
        rays, reports = rays[seen] / rays[seen].max(axis=1, keepdims=True), reports[seen]
        costs = np.einsum("ku,ku->k", rays, self.cost[reports])
        self.waiting = []
        self.rays, self.reports = np.concatenate([self.rays, rays]), np.concatenate([self.reports, reports])
        self.costs = np.concatenate([self.costs, costs])
        return len(costs)

    def solve(self, time_limit: float) -> None:
        """The optimal mixture of the columns. Raises: SolverError where HiGHS finds none."""
        new = self._take_up()
        if new:
            self.master.add(self.rays[-new:], self.costs[-new:])
        self._minimise(time_limit)
        self.since += 1
        if self.objective < self.unit / _FALLEN or self.since >= _EVERY:
            self._rebuild()
            self._minimise(time_limit)

    def _minimise(self, time_limit: float) -> None:
        found = self.master.solve(time_limit)
        self.x, self.dual = np.maximum(found.x, 0.0), found.dual
        self.objective = float(self.costs @ self.x)

    def price(self, enough: float) -> Bound:
        """Price the multipliers and, far from the optimum, others half-way to the best ones; the better bound.

        enough: a bound from which no further trial is made. Rays with negative prices wait to become columns.
        """
        found = self._priced(self.dual, enough)
        if self.best is None or found.value > self.best.value:
            self.best = found
        elif 1 - self.best.value / self.objective > _NEAR:
            mixed = self._priced(_MIXED * self.best.dual + (1 - _MIXED) * self.dual, enough)
            self.best = max(self.best, mixed, key=lambda bound: bound.value)
        return self.best

    def _priced(self, dual: NDArray[np.float64], enough: float) -> Bound:
        loss = max(self.objective, RESOLUTION * self.problem.constant_loss)
        weight = np.abs(dual) + loss / len(dual)
        trials = 0

        def visit(trial: NDArray[np.float64], price: Pricing) -> None:
            nonlocal trials
            trials += 1
            if price.rays is None or trials > _TAKEN:
                return
            with np.errstate(over="ignore", invalid="ignore"):
                flat = price.rays / price.rays.max(axis=1, keepdims=True)
            fresh = np.flatnonzero(np.einsum("yu,yu->y", flat, trial - self.cost) > _NEW * (flat @ weight))
            self.waiting.append((flat[fresh], fresh))

        known = 0.0 if self.best is None else self.best.value
        return homogeneous_bound(
            self.pricer, self.problem.weighted_loss, dual, loss=loss, known=known, enough=enough, visit=visit
        )

    def table(self) -> NDArray[np.float64]:
        """The table (n, m) of the point."""
        table = np.zeros(self.cost.shape)
        used = np.flatnonzero(self.x)
        np.add.at(table, self.reports[used], self.rays[used] * self.x[used, None])
        return table.T.copy()
