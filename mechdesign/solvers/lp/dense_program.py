"""Weights of given columns by a dense linear program, with the multipliers of its rows free or in a box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.solvers.interior_point import Point, run_predictor_corrector
from mechdesign.solvers.result import Stop


@dataclass(frozen=True, kw_only=True)
class DenseOptions:
    """Constants of the method; guesses unless a comment says otherwise."""

    steps: int = 60
    way: float = 0.995  # share of the way to the boundary; usual in the literature
    smallest_product: float = 1e-16  # x z, in mean costs
    exact: float = 1e-9  # error of a row sum
    ridge: float = 1e-14  # relative increase of the diagonal
    higher: float = 100.0  # factor on it where rounding spoils the factor
    solutions: int = 3  # with one factor where multipliers are free, each for the residual of the one before


_OPTIONS = DenseOptions()


class Weighed(NamedTuple):
    """Weights x (k,) >= 0, multipliers (n,), the objective, and why the method ended (`run_predictor_corrector`)."""

    x: Vector
    dual: Vector
    value: float
    stopped: Stop


#     minimise  <c, x> + <a, p> - <b, q>   subject to   sum_k x_k g_k + p - q = 1,   x, p, q >= 0
# p and q exist only for a box: they hold the multipliers between b and a. Cost: O(k n^2) a step for k columns of n
# rows.
class _DenseSystem:
    """The equations: columns (k, n), followed by p and q if there is a box."""

    def __init__(self, columns: Matrix, cost: Vector, box: tuple[Vector, Vector] | None, tolerance: float) -> None:
        self.columns, self.box, self.tolerance = columns, box, tolerance
        self.unit = float(np.abs(cost).mean())
        self.cost = (cost if box is None else np.concatenate([cost, box[0], -box[1]])) / self.unit
        self._scaled = np.empty_like(columns)
        self._scale = self._unit = self._factor = np.zeros(0)

    def sums(self, x: Vector) -> Vector:
        k, n = self.columns.shape
        sums = x[:k] @ self.columns
        # x holds the weights, then p, then q.
        return np.asarray(sums if self.box is None else sums + x[k : k + n] - x[k + n :])

    def prices(self, dual: Vector) -> Vector:
        prices = self.columns @ dual
        return np.asarray(prices if self.box is None else np.concatenate([prices, dual, -dual]))

    def lacking(self, point: Point) -> Vector:
        return 1 - self.sums(point.x)

    def error(self, point: Point, lacking: Vector, wrong: Vector) -> float:
        accepted = self.tolerance * abs(float(self.cost @ point.x))
        gap = max(float(point.x @ point.z), float(np.abs(wrong * point.x).sum()))
        return max(gap / accepted, float(np.abs(lacking).max()) / _OPTIONS.exact)

    def factor(self, scale: Vector) -> None:
        k, n = self.columns.shape
        np.multiply(self.columns, np.sqrt(scale[:k])[:, None], out=self._scaled)
        normal = blas.dsyrk(1.0, self._scaled.T, lower=1)
        diagonal = np.diag_indices(n)
        # p and q each add a multiple of the identity to A diag(scale) A'.
        if self.box is not None:
            normal[diagonal] += scale[k : k + n] + scale[k + n :]
        self._scale, self._unit = scale, 1 / np.sqrt(normal[diagonal])
        # Scaled to a diagonal of 1, so that the relative ridge is the same for every row.
        normal *= self._unit[:, None] * self._unit
        lift = _OPTIONS.ridge
        while True:
            normal[diagonal] = 1 + lift
            self._factor, broken = lapack.dpotrf(normal, lower=1)
            if not broken:
                return
            lift *= _OPTIONS.higher
            if not lift <= _OPTIONS.exact:
                raise np.linalg.LinAlgError("the columns are not independent")

    def solve(self, right: Vector, *, is_predictor: bool = False) -> Vector:
        solution = self._solve(right)
        # A box adds to the diagonal, so one solution is enough; free multipliers need refinement.
        for _ in range(_OPTIONS.solutions - 1 if self.box is None else 0):
            solution += self._solve(right - self.sums(self._scale * self.prices(solution)))
        return solution

    def _solve(self, right: Vector) -> Vector:
        return np.asarray(self._unit * lapack.dpotrs(self._factor, self._unit * right, lower=1)[0])


def weigh(
    columns: Matrix,
    cost: Vector,
    *,
    tolerance: float,  # relative gap; row sums are 1 to 1e-9
    box: tuple[Vector, Vector] | None = None,  # largest and smallest multiplier (n,) of every row
    deadline: float = np.inf,  # of time.monotonic()
    on_step: Callable[[int, float, float], None] | None = None,  # number of the step, primal and dual objective
) -> Weighed:
    """The cheapest weights of columns (k, n) at costs (k,); the best point met if time or rounding ends the method."""
    system = _DenseSystem(columns, cost, box, tolerance)

    def report_step(number: int, point: Point) -> None:
        if on_step is not None:
            on_step(number, float(system.cost @ point.x) * system.unit, float(point.dual.sum()) * system.unit)

    options = _OPTIONS
    best, stopped = run_predictor_corrector(
        system,
        _start(system),
        steps=options.steps,
        way=options.way,
        smallest_product=options.smallest_product,
        deadline=deadline,
        on_step=report_step,
    )
    value = float(system.cost @ best.x) * system.unit
    return Weighed(best.x[: len(cost)], best.dual * system.unit, value, stopped)


def _start(system: _DenseSystem) -> Point:
    """The least squares of rows and of prices, lifted until both are positive. Source: Mehrotra 1992."""
    system.factor(np.ones(len(system.cost)))
    x = system.prices(system.solve(np.ones(system.columns.shape[1])))
    dual = system.solve(system.sums(system.cost))
    z = system.cost - system.prices(dual)
    x, z = x + max(-1.5 * x.min(), 0.0), z + max(-1.5 * z.min(), 0.0)
    # Mehrotra's second lift keeps both away from 0.
    product = x @ z
    return Point(x + 0.5 * product / z.sum(), dual, z + 0.5 * product / x.sum())
