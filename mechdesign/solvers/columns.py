"""Column generation for the optimal program, its multipliers in a box by place.

    minimise  <c, x> + <a, p> - <b, q>   subject to   sum_k x_k g_k + p - q = 1,   x, p, q >= 0

Column k belongs to a report and is a ray g_k of the privacy cone, at cost c_k = <c_y, g_k>. The columns p and q hold
the multipliers of the rows between b = centre - width f and a = centre + width f, f their weight (forest.py): without
them the multipliers of a young master are useless, and so are the rays that they price. A round

1. prices every report at the multipliers of the master, to ratios, with trees that are kept (forest.py);
2. lowers multipliers near reports with a negative price until no column in hand has one: their sum estimates the bound,
   and where it is better they are the next centre, which is below all columns, so that the box is never empty;
3. widens the box where the lowered multipliers gain much of what the master promised or stood at the same end of it
   twice, and narrows it where they gain little or changed sides;
4. solves the master (dense_program.py) to a tenth of the gap, since centred multipliers price better rays.

In sight of the gap the same columns are weighed with the box all but open: rows then sum to 1, and the table is private
as it stands. For that no box gets narrower than a tenth: rows lack columns that a narrower one in sight of its optimum
prices no more. Multipliers at the centre are proved (forest.py). Signs are free: where priors are zero some multipliers
are negative, and with lambda >= 0 tables whose rows sum to 1 cost 3 % more.

Where flips and turns of a grid leave the program alone, one report of each orbit is priced, and rows are means over the
orbits of places: a mixture may be averaged over the group, and neither its loss nor its row sums get worse.

Source: ours; the box is that of du Merle et al. 1999, Discrete Mathematics 194. Cost of a round: a pricing, and
O(columns o^2) for each of some 20 steps, for o orbits. Memory: 8 n bytes for each of up to 6 o columns, twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.solvers.cone.tree_simplex import Effort
from mechdesign.solvers.cone.warm_pricing import Forest, Proof
from mechdesign.solvers.lp.dense_program import weigh

Vector = NDArray[np.float64]
_ROUNDS = 300
_MOST, _KEPT = 6, 4  # columns a secret, before and after those of least cost are given up
_WIDTH = 0.3  # of the box, at first
_NARROWEST, _WIDEST = 0.1, 2.0
_GROW, _GAINED, _LITTLE = 1.3, 0.4, 0.1  # factor of a width, and shares of the promise that are much and little
_FREE = 300.0  # half-width, in mean multipliers, of the box of a master whose rows are to sum to 1
_OFF = 1e-3  # error of a row sum whose multiplier is at an end of its box
_ROUGH, _FINE, _STEPS = 1e-6, 1e-7, 8  # gains and changes that a pricing resolves, a hundredth of the gap between them
_SIGHT = 0.6  # of the gap asked for: estimates from which the rows are to sum to 1
_NEAR = 0.8  # the same for a certificate
_CERTIFIED, _SELDOM = 0.1, 5  # of the gap certified last, and rounds after it, from which one is made
_FIRST = 0.3  # of the time limit after which one is made anyway
_TOLERANCE = 1e-2, 1e-8  # of a master, a tenth of the gap between them
_FINEST = 1e-9  # estimated gap from which nothing is gained
_STALLED = 25  # rounds without a better centre or objective
_BLAS = ThreadpoolController()


class Cores(NamedTuple):
    """Shares of cost and multipliers that cores leave out, each down to a gap; and factors of the width of a place
    whose multiplier stood at the same end twice, or changed sides, and of all where little is gained.
    """

    shares: tuple[tuple[float, float], ...]
    same: float
    other: float
    shrink: float


USUAL = Cores(shares=((3e-2, 8e-2), (6e-3, 2e-2), (0.0, 4e-3)), same=1.5, other=0.7, shrink=0.6)
ZEROS = Cores(shares=((3e-2, 1e-2), (4e-3, 4e-3), (0.0, 1e-3)), same=1.3, other=0.7, shrink=0.5)

Take = Callable[[Proof | None, Vector | None], float]


class Columns:
    """The columns so far, rays (k, n) with their costs and reports, the multipliers and the box."""

    def __init__(self, forest: Forest, cores: Cores, constant: float) -> None:
        self.forest, self.cores, self.constant = forest, cores, constant
        n = forest.cost.shape[1]
        self.rays, self.cost, self.report = np.empty((0, n)), np.empty(0), np.empty(0, np.int64)
        _, self.orbit, self.size = np.unique(np.min(forest.ways, axis=0), return_inverse=True, return_counts=True)
        self.order = np.argsort(self.orbit, kind="stable")
        self.rows = np.empty((0, len(self.size)))
        kernel = np.exp(-forest.pricer.distance[forest.chosen])
        self.add(kernel, forest.chosen)
        self.add(np.sqrt(kernel), forest.chosen)
        self.dual = forest.first_multipliers()
        self.centre, self.width = np.zeros(n), np.full(n, _WIDTH)
        self.side = self.before = np.zeros(n)
        self.objective, self.gap, self.first = 0.0, 1.0, True
        self.x: Vector = np.zeros(0)
        forest.set_cores(cores.shares[0][1])

    @property
    def variables(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def constraints(self) -> int:
        """Number of row sums."""
        return len(self.size)

    @property
    def estimate(self) -> float:
        """What the multipliers of the centre are worth, about."""
        return float(self.centre.sum())

    @property
    def final(self) -> bool:
        """Whether cores are as large as they get."""
        return self.forest.share == self.cores.shares[-1][1]

    def add(self, rays: Vector, reports: NDArray[np.int64]) -> None:
        """Columns of rays (k, n), divided by their largest entries."""
        flat = rays / rays.max(axis=1, keepdims=True)
        self.rays = np.concatenate([self.rays, flat])
        self.rows = np.concatenate([self.rows, self._folded(flat)]) if len(self.size) < flat.shape[1] else self.rays
        self.cost = np.concatenate([self.cost, self.forest.costs_of(flat, reports)])
        self.report = np.concatenate([self.report, reports])

    def price(self) -> None:
        """Price the multipliers; the rays become columns, and the centre and the box follow."""
        forest, cores = self.forest, self.cores
        change = min(10 * _ROUGH, max(_FINE, self.gap / 100))
        effort = Effort(min(_ROUGH, change), change, _STEPS if self.first else 2, False)
        self.add(forest.price(self.dual, forest.chosen, effort), forest.chosen)
        better = self._below(self.dual)
        self.centre = self._below(self.centre)
        promised = max(self.objective - self.estimate, RESOLUTION * self.constant)
        gain = 1.0 if self.first else (float(better.sum()) - self.estimate) / promised
        turn = self.side * self.before
        factor = np.where(turn > 0, cores.same, np.where(turn < 0, cores.other, 1.0))
        factor *= _GROW if gain > _GAINED else 1.0 if gain > _LITTLE else cores.shrink
        self.width = np.clip(self.width * factor, _NARROWEST, _WIDEST)
        if gain > 0:
            self.centre = better
        self.first = False

    def _below(self, dual: Vector) -> Vector:
        """Multipliers lowered until no column has a negative price."""
        negative = self.rays @ dual > self.cost
        return self.forest.alike(self.forest.lowered(dual, self.rays[negative], self.report[negative]))

    def _folded(self, values: Vector) -> Vector:
        """Means (k, o) of values (k, n) over the orbits of places."""
        first = np.append(0, np.cumsum(self.size)[:-1])
        return np.asarray(np.add.reduceat(values[:, self.order], first, axis=1) / self.size)

    def solve(self, deadline: float) -> None:
        """The master with its multipliers in the box."""
        room = self.width * self.forest.weight(self.centre)
        low, high = _TOLERANCE
        x, self.dual, self.objective = self._master(room, min(low, max(high, self.gap / 10)), deadline)
        self.gap = max(1 - self.estimate / self.objective, 0.0) if self.objective > 0 else 1.0
        rows = (1 - x @ self.rows)[self.orbit]
        self.before, self.side, self.x = self.side, np.where(np.abs(rows) > _OFF, np.sign(rows), 0.0), x

    def open(self, gap: float, deadline: float) -> float:
        """The master with its box all but open; what it is worth."""
        room = np.full_like(self.centre, _FREE * max(float(np.abs(self.centre).mean()), RESOLUTION * self.constant))
        self.x, _, value = self._master(room, gap, deadline)
        return value

    def _master(self, room: Vector, tolerance: float, deadline: float) -> tuple[Vector, Vector, float]:
        last = self.order[np.cumsum(self.size) - 1]  # a place of each orbit
        lower, upper = self.centre - room, self.centre + room
        box = upper[last] * self.size, lower[last] * self.size
        with _BLAS.limit(limits=1):  # a second thread spins more than it brings on two cores
            weighed = weigh(self.rows, self.cost, tolerance=tolerance, box=box, deadline=deadline)
        if weighed.stopped == "interrupt":
            raise KeyboardInterrupt
        return weighed.x, np.clip((weighed.dual / self.size)[self.orbit], lower, upper), weighed.value

    def table(self) -> Vector:
        """The table (n, m) of the last point, rows divided by their sums."""
        table, used = np.zeros(self.forest.cost.shape), np.flatnonzero(self.x)
        for way in self.forest.ways:
            reports = way[self.report[used]] if len(self.forest.ways) > 1 else self.report[used]
            np.add.at(table, reports, self.rays[np.ix_(used, np.argsort(way))] * self.x[used, None])
        return np.asarray(table.T / table.sum(axis=0)[:, None])

    def widen(self) -> None:
        """Wider boxes of the multipliers that stand at their ends."""
        self.width = np.where(self.side == 0, self.width, np.minimum(3 * self.width, _WIDEST))

    def next_cores(self) -> None:
        """Cores as the gap calls for them; they only grow."""
        share = next(share for least, share in self.cores.shares if self.gap >= least)
        if share < self.forest.share:
            self.forest.set_cores(share)

    def prune(self) -> None:
        """Give up columns of least cost at the last point, never the first two of each report or newer ones."""
        first, weighed = 2 * len(self.forest.chosen), len(self.x)
        if weighed > _MOST * self.constraints:
            order = np.argsort(-(self.x * self.cost[:weighed])[first:], kind="stable")
            order = np.sort(order[: _KEPT * self.constraints - first])
            chosen = np.concatenate([np.arange(first), first + order, np.arange(weighed, len(self.cost))])
            self.rays, self.cost, self.report = self.rays[chosen], self.cost[chosen], self.report[chosen]
            self.rows = self.rows[chosen] if len(self.size) < self.rays.shape[1] else self.rays
            self.x = self.x[chosen[chosen < weighed]]


def generate_columns(columns: Columns, *, gap: float, deadline: float, take: Take) -> str:
    """Rounds until the certified gap is met; returns "gap", "time" or "precision".

    take, called after every round, with a proof and a table (n, m) where they are worth a certificate, else None,
    returns the certified gap. Raises: OutOfTime where pricing is late.
    """
    started, seconds, promised, since = time.monotonic(), 0.0, np.inf, 0  # rays of a first certificate lead on
    certified, best = -np.inf, (-np.inf, np.inf)
    for number in range(_ROUNDS):
        columns.price()
        columns.solve(deadline)
        now = time.monotonic()
        late = now + 1.5 * seconds >= deadline
        gained = columns.estimate > best[0] * (1 + gap / 20) or columns.gap < best[1] * 0.95
        best, since = (max(best[0], columns.estimate), min(best[1], columns.gap)), 0 if gained else since + 1
        stalled = since >= _STALLED or columns.gap < _FINEST
        sight = columns.gap < _SIGHT * gap and columns.final
        due = columns.gap < _CERTIFIED * promised and number >= certified + _SELDOM
        first = seconds == 0 and now - started > _FIRST * (deadline - started)
        reached = take(None, None)
        if sight and not (late or stalled):
            value = columns.open(gap / 20, deadline)
            late = time.monotonic() >= deadline
            sight = 1 - columns.estimate / value < _NEAR * gap
            if not sight:
                columns.widen()
        if late or stalled or sight or due or first:
            began = time.monotonic()
            if not sight:
                columns.open(max(gap / 20, min(columns.gap / 10, _TOLERANCE[0])), max(deadline, began + seconds))
            proof = columns.forest.prove(columns.centre, min(gap, columns.gap), widen=late or stalled or sight)
            certified, promised = number, columns.gap
            seconds = time.monotonic() - began
            reached = take(proof, columns.table())
            if reached <= gap:
                return "gap"
            if late:
                return "time"
            if stalled:
                return "precision"
            for rays, reports in zip(proof.rays, proof.reports, strict=True):
                columns.add(rays, reports)
            if sight:
                columns.centre = columns.forest.alike(proof.dual)
        columns.next_cores()
        columns.prune()
    return "precision"
