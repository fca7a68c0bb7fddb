"""Column generation over rays with its multipliers in a box: where most nodes are cut and edges are short.

    minimise  <c, x> + <a, p> - <b, q>   subject to   sum_k x_k g_k + p - q = 1,   x, p, q >= 0

Column k belongs to a report and is a ray g_k of the privacy cone, at cost c_k = <c_y, g_k>. The columns p and q hold
the multipliers of the rows between b = centre - width f and a = centre + width f, f the centre itself or a thousandth
of its mean: without them the multipliers of a young master are useless, and so are the rays that they price. Whenever
the bound of new multipliers is better, they become the centre, and the box grows by a half. The master is solved by
Mehrotra's method on dense normal equations, to a tenth of the gap that is left, since columns are as many as a few for
every report and rays are dense here. Its first columns are the last rays of some passes over multipliers alone.

Passes better the multipliers of the row sums by the ratios of reports, without a linear program. For multipliers
lambda > 0 let rho_y = min over rays g of <c_y, g> / <lambda, g>, with g_y where it is attained. Rows sum to 1, so that
min(1, min_y rho_y) sum lambda is a lower bound of the optimum. At the optimum rho_y = 1 for every report in use, and
weights w_y >= 0 with sum_y w_y g_y = 1 make the table. A pass

1. prices the ratios, raises w_y where rho_y < 1 and lowers it where it is above, and levels the row sums
   s = sum_y w_y g_y by multiplicative updates;
2. moves ln lambda(u) by the mean over reports of ln rho_y, weighted with w_y g_y(u) / s(u), and by an eighth-order
   inverse of that mean once the total has settled, and lowers lambda where s > 1.

Source: ours; it is a mirror descent in both. The bound rises by itself but slowly: twenty passes end about 2 % below
the optimum on a map of 20 x 20 cells with edges of 0.2 to 1.4 nats. No proof rests on a ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.blocks import longest_step
from mechdesign.solvers.pricing import ConePricer

Vector = NDArray[np.float64]
# Passes.
_PASSES = 30
_EVERY = 10  # passes between certificates
_KEPT = 6  # passes whose rays become columns
_START = 0.3  # of the loss of the best constant report: the sum of the first multipliers
_WEIGHT = 0.05  # of every report, at first
_REPLY = 3.0  # how strongly weights follow ratios
_LEVELLINGS = 5
_POWER = 1.5  # over-relaxation of a levelling
_SETTLED = 0.02  # change of ln sum lambda in a pass from which the mean is inverted
_INVERSIONS = 8
_MOVE = 0.3  # the largest change of ln lambda in a pass
_LOWERING = 0.1  # of ln s, within 0.5, that ln lambda is lowered by
_SMALLEST = 1e-9  # multiplier, against their mean
# The box and the rounds of its master.
_WIDTH = 0.1  # of the box, at first
_WIDEST = 0.5
_WIDER = 1.5
_FLOOR = 1e-3  # least half-width, in widths of the mean multiplier
_FREE = 300.0  # half-width, in mean multipliers, of the box of a master whose rows are to sum to 1
_FAR = 10.0  # ratios are searched from at most that factor away from 1
_ROUGH = 1e-2  # tolerance of the first master
_FINEST = 1e-7  # gap of a master from which nothing is gained
_POSITIVE = 0.05  # of the centre: multipliers stay above it
_ROUNDS = 200
_SEEN = 5  # rounds after which a certificate is made anyway
_CERTIFIED = 0.8  # of the gap in hand, from which on a table or multipliers are worth a certificate
_WIDE = 12  # columns a secret beyond which those of least cost are given up
_NARROW = 8  # columns a secret that are kept
# Its interior-point method.
_STEPS = 40
_STEP = 0.995  # share of the way to the boundary
_ROWS = 1e-9  # error of a row sum with which it may end
_LOST = 1e6  # times as far as they were: row sums that do not come back
_RIDGE = 1e-13


class Passes:
    """Multipliers dual (n,) > 0 and weights (m,) of reports after some passes; ratio (m,) and rays (m, n), g = 1 at the
    anchor, of the last one, and the bound that they are worth, a float without a proof.
    """

    def __init__(self, problem: DesignProblem, pricer: ConePricer) -> None:
        """Multipliers in proportion to what each secret costs under e^{-D} with normalised rows."""
        self.problem, self.pricer, cost = problem, pricer, problem.weighted_loss
        kernel = np.exp(-pricer.distance).T
        own = np.minimum((cost * kernel).sum(axis=1) / kernel.sum(axis=1), problem.prior_array * problem.constant_loss)
        own = np.maximum(own, _SMALLEST * max(float(own.mean()), 1e-300))
        self.dual: Vector = own * (_START * problem.constant_loss / own.sum())
        self.weights, self.ratio = np.full(cost.shape[1], _WEIGHT), np.ones(cost.shape[1])
        self.priced, self.rays = self.dual, np.ones(kernel.T.shape)

    @property
    def bound(self) -> float:
        """The sum of the multipliers that were priced last, scaled until no ratio is below 1."""
        return float(self.priced.sum()) * min(1.0, float(self.ratio.min()))

    def step(self) -> None:
        """One pass. Cost: that of a pricing."""
        self.priced = self.dual
        self.ratio, self.rays = self.pricer.ratios(self.problem.weighted_loss, self.dual, self.ratio)
        rays, whole = self.rays, self.rays.sum(axis=1)
        weights = self.weights * np.exp(-_REPLY * np.clip(self.ratio - 1, -0.2, 0.2))
        for _ in range(_LEVELLINGS):
            weights = weights * (rays @ (1 / (weights @ rays)) / whole) ** _POWER
        rows = weights @ rays

        def mean(values: Vector) -> Vector:
            return np.asarray(((weights * values) @ rays) / rows)

        change = mean(self.ratio)
        move = np.log(change)
        if abs(np.log(float(self.dual @ change) / float(self.dual.sum()))) <= _SETTLED:
            error = move
            for _ in range(_INVERSIONS):
                error = error - mean(error[self.pricer.anchors])
                move = move + error
        self.weights = weights
        self.dual = self.dual * np.exp(np.clip(move, -_MOVE, _MOVE) - _LOWERING * np.clip(np.log(rows), -0.5, 0.5))

    def table(self) -> Vector:
        """The table (n, m) of the weights; its rows sum to 1 only nearly."""
        return np.asarray((self.weights[:, None] * self.rays).T)


def generate_boxed(
    problem: DesignProblem,
    pricer: ConePricer,
    *,
    gap: float,
    deadline: float,
    take: Callable[[Vector | None, Vector | None, Master], float],
) -> str:
    """Passes, then rounds of the boxed master, until the certified gap is met; "gap", "time" or "precision".

    take, called after every pass and round, with multipliers (n,) and a table (n, m) where they are worth a
    certificate, else None, and the master, returns the certified gap. Cost of a round: a pricing, and
    O(columns n^2) for each step of the interior-point method. Memory: 8 n bytes for each of 12 n columns, twice.
    """
    cost, n = problem.weighted_loss, problem.domain.size
    columns, passes = Master(cost), Passes(problem, pricer)
    columns.add(np.exp(-pricer.distance / 2))
    mixed = np.zeros(cost.shape)
    for number in range(_PASSES):
        passes.step()
        late = time.monotonic() >= deadline
        # Passes are many and cheap, certificates dear: one at first, one at the end, and some in between.
        worth = late or number % _EVERY == 0 or number == _PASSES - 1
        scaled = passes.priced * min(1.0, float(passes.ratio.min()))  # no ratio below 1: admissible, but for rounding
        reached = take(scaled if worth else None, passes.table() if worth else None, columns)
        if late or reached <= gap:
            return "time" if late else "gap"
        if number >= _PASSES - _KEPT:
            columns.add(passes.rays)
        if 2 * number >= _PASSES:  # the mean of the later tables has row sums nearer to 1 than any of them
            mixed += passes.table()
    columns.add(mixed.T)
    centre, ratio, estimate = passes.priced, passes.ratio, passes.bound
    width, tolerance, promised, unit = _WIDTH, _ROUGH, np.inf, problem.constant_loss / n
    best, spent = None, 0.0
    for number in range(_ROUNDS):
        began = time.monotonic()
        room = width * np.maximum(centre, _FLOOR * centre.mean())
        upper, lower = centre + room, np.maximum(centre - room, _POSITIVE * centre)
        point, dual, objective = columns.solve(upper / unit, lower / unit, unit, tolerance)
        dual = np.clip(dual * unit, lower, upper)  # an inexact solve may leave the box a little
        ratio, rays = pricer.ratios(cost, dual, np.clip(ratio, 1 / _FAR, _FAR))
        share = min(1.0, float(ratio.min()))
        better = share * float(dual.sum()) > estimate
        if better:
            estimate, centre, width = share * float(dual.sum()), dual, min(width * _WIDER, _WIDEST)
            best = dual * share
        left = max(1 - estimate / (objective * unit), 0.0)
        late, table = time.monotonic() + spent >= deadline, None
        if late or left < _CERTIFIED * promised or left <= gap / 2 or number % _SEEN == _SEEN - 1:
            # The table of the master with the box all but open: there its rows sum to 1.
            promised, far = left, _FREE * float(centre.mean())
            table = columns.table(columns.solve((centre + far) / unit, (centre - far) / unit, unit, tolerance)[0])
        reached = take(None if table is None else best, table, columns)
        best = best if table is None else None
        if late or reached <= gap:
            return "gap" if reached <= gap else "time"
        if left < _FINEST:
            break
        tolerance = min(_ROUGH, max(_FINEST, left / 10))
        columns.prune(point)
        columns.add(rays)
        spent = time.monotonic() - began
    return "precision"


class Master:
    """Rays (k, n), each divided by its largest entry, with their costs and reports; the program over them in a box."""

    def __init__(self, loss: Vector) -> None:
        n, _ = loss.shape
        self._loss = loss
        self._rays, self.cost, self._report = np.empty((0, n)), np.empty(0), np.empty(0, np.int64)

    @property
    def variables(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def constraints(self) -> int:
        """Number of row sums."""
        return self._rays.shape[1]

    def add(self, rays: Vector) -> None:
        """One ray for each report, (m, n)."""
        flat = rays / rays.max(axis=1, keepdims=True)
        self._rays = np.concatenate([self._rays, flat])
        self.cost = np.concatenate([self.cost, np.einsum("yu,uy->y", flat, self._loss)])
        self._report = np.concatenate([self._report, np.arange(len(rays))])

    def prune(self, x: Vector) -> None:
        """Give up columns of least cost at a point x (k,), never the first of each report, which make a table."""
        n = self._rays.shape[1]
        if len(self.cost) > _WIDE * n:
            m = self._loss.shape[1]
            places = np.concatenate([np.arange(m), np.sort(m + np.argsort(-(x * self.cost)[m:])[: _NARROW * n])])
            self._rays, self.cost, self._report = self._rays[places], self.cost[places], self._report[places]

    def solve(self, upper: Vector, lower: Vector, unit: float, tolerance: float) -> tuple[Vector, Vector, float]:
        """The point (k,), multipliers (n,) and objective of the master where multipliers stay between lower and upper;
        all but the point in `unit`.
        """
        n, k = self._rays.shape[1], self.variables
        matrix = np.hstack([self._rays.T, np.eye(n), -np.eye(n)])
        cost = np.concatenate([self.cost / unit, upper, -lower])
        x, dual = solve_dense(matrix, cost, tolerance)
        return x[:k], dual, float(cost @ x)

    def table(self, x: Vector) -> Vector:
        """The table (n, m) of a point; its rows do not sum to 1 where slack is in use."""
        table = np.zeros(self._loss.T.shape)
        np.add.at(table, self._report, self._rays * x[:, None])
        return np.asarray(table.T)


def solve_dense(matrix: Vector, cost: Vector, tolerance: float) -> tuple[Vector, Vector]:
    """A point and multipliers of: minimise <cost, x> subject to matrix x = 1, x >= 0, to a relative gap.

    Mehrotra's predictor and corrector; matrix (n, k), k > n, of full rank. Where rounding makes the row sums leave 1
    instead of approaching it, the point of the nearest. Source: Mehrotra 1992, SIAM J. Optim. 2.
    """
    _, k = matrix.shape
    ones = np.ones(len(matrix))
    factor = scipy.linalg.cho_factor(_normal(matrix, np.ones(k)))
    x = matrix.T @ scipy.linalg.cho_solve(factor, ones)
    dual = scipy.linalg.cho_solve(factor, matrix @ cost)
    z = cost - matrix.T @ dual
    x, z = x + max(-1.5 * x.min(), 0.0), z + max(-1.5 * z.min(), 0.0)
    product = x @ z
    x, z = x + 0.5 * product / z.sum(), z + 0.5 * product / x.sum()
    best, least = (x, dual), np.inf
    for _ in range(_STEPS):
        rows, gaps = ones - matrix @ x, cost - matrix.T @ dual - z
        mu, scale = x @ z / k, abs(cost @ x)
        wrong = np.abs(rows).max()
        if mu * k < tolerance * scale and wrong < _ROWS and np.abs(gaps * x).sum() < tolerance * scale:
            break
        if not wrong < _LOST * max(least, _ROWS):
            return best
        best, least = ((x, dual), wrong) if wrong < least else (best, least)
        try:
            factor = scipy.linalg.cho_factor(_normal(matrix, x / z))
        except scipy.linalg.LinAlgError:
            break
        affine = _direction(matrix, factor, x, z, rows, gaps, -x * z)
        ahead = (x + longest_step(x, affine[0]) * affine[0]) @ (z + longest_step(z, affine[2]) * affine[2]) / k
        target = max((ahead / mu) ** 3 * mu, 1e-14)
        step = _direction(matrix, factor, x, z, rows, gaps, target - x * z - affine[0] * affine[2])
        x_length, z_length = min(1.0, _STEP * longest_step(x, step[0])), min(1.0, _STEP * longest_step(z, step[2]))
        x, dual, z = x + x_length * step[0], dual + z_length * step[1], z + z_length * step[2]
    return x, dual


def _direction(
    matrix: Vector, factor: Any, x: Vector, z: Vector, rows: Vector, gaps: Vector, products: Vector
) -> tuple[Vector, Vector, Vector]:
    """The Newton step of x, multipliers and z towards x z + `products`, and towards no errors."""
    step = scipy.linalg.cho_solve(factor, rows + matrix @ ((x * gaps - products) / z))
    along = gaps - matrix.T @ step
    return (products - x * along) / z, step, along


def _normal(matrix: Vector, weight: Vector) -> Vector:
    product = (matrix * weight) @ matrix.T
    product[np.diag_indices(len(product))] *= 1 + _RIDGE
    return np.asarray(product)
