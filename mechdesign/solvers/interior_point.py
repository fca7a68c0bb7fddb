"""Mehrotra's predictor and corrector, one loop for linear programs whose equations are stored in different ways.

    minimise  <c, x>   subject to   A x = 1,   x >= 0          z = c - A' dual >= 0                             (1)

A step moves x, the multipliers and z towards the same product x z everywhere, for the errors of the point:

    A dx = 1 - A x,    A' ddual + dz = c - A' dual - z,    z dx + x dz = r.                                      (2)

With dx and dz eliminated, a `System` solves the equations A diag(x / z) A'. Source: Mehrotra 1992, SIAM J. Optim. 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.solvers.result import Stop

_LOST = 1e6  # times the least error met: a point that rounding has thrown away; a guess


class Point(NamedTuple):
    """A point or a step: x (k,) and z (k,), positive for a point; dual (n,)."""

    x: Vector
    dual: Vector
    z: Vector


class System(Protocol):
    """A program: its cost (k,), its products, and the solution of a step's equations."""

    cost: Vector

    def sums(self, x: Vector) -> Vector:
        """A x (n,)."""

    def prices(self, dual: Vector) -> Vector:
        """A' dual (k,)."""

    def lacking(self, point: Point) -> Vector:
        """1 - A x (n,)."""

    def error(self, point: Point, lacking: Vector, wrong: Vector) -> float:
        """At most 1 if the point is accurate enough; wrong (k,) is c - A' dual - z."""

    def factor(self, scale: Vector) -> None:
        """Prepare A diag(scale) A', scale (k,); LinAlgError if rounding spoils it."""

    def solve(self, right: Vector, *, is_predictor: bool = False) -> Vector:
        """The solution (n,) of the equations prepared last; that of a predictor may be less exact."""


def longest_step(x: Vector, step: Vector) -> float:
    """The largest a <= 1 with x + a step >= 0, for x > 0."""
    worst = float((-step / x).max())
    return min(1.0, 1.0 / worst) if worst > 0 else 1.0


def run_predictor_corrector(
    system: System,
    start: Point,
    *,
    steps: int,
    way: float,  # share of the way to the boundary that a step goes
    smallest_product: float = 0.0,  # x z, of a target
    patience: int = 12,  # steps without a better point
    deadline: float = np.inf,  # of time.monotonic()
    on_step: Callable[[int, Point], None] | None = None,  # called at every point
) -> tuple[Point, Stop]:
    """The point of the least error, and why the loop ended: GAP, TIME, PRECISION or INTERRUPT (Ctrl-C)."""
    point = best = start
    least_error, stalled = np.inf, 0
    try:
        for number in range(steps + 1):
            lacking, wrong = system.lacking(point), system.cost - system.prices(point.dual) - point.z
            error = system.error(point, lacking, wrong)
            if on_step is not None:
                on_step(number, point)
            # Rounding has thrown the point away: further steps do not return to the best one.
            if not error < _LOST * least_error:
                break
            stalled += 1
            if error < least_error:
                best, least_error, stalled = point, error, 0
            if error <= 1:
                return best, Stop.GAP
            if time.monotonic() >= deadline:
                return best, Stop.TIME
            # The last pass of the loop only judges the last point.
            if stalled >= patience or number == steps:
                break
            # The weights of A diag(x / z) A' in (2).
            system.factor(point.x / point.z)
            # mu, the mean product; on the central path all products equal it.
            mean = float(point.x @ point.z) / len(point.x)
            # The predictor aims at products 0; its success sets the target of the corrector.
            ahead = _direction(system, point, lacking, wrong, -point.x * point.z, is_predictor=True)
            reached = _step(point, ahead, 1.0)
            target = max(mean * (float(reached.x @ reached.z) / len(point.x) / mean) ** 3, smallest_product)
            # The corrector takes off the second-order term of the predictor.
            step = _direction(system, point, lacking, wrong, target - point.x * point.z - ahead.x * ahead.z)
            point = _step(point, step, way)
    except np.linalg.LinAlgError:
        pass
    except KeyboardInterrupt:
        return best, Stop.INTERRUPT
    return best, Stop.PRECISION


def _direction(
    system: System, point: Point, lacking: Vector, wrong: Vector, products: Vector, *, is_predictor: bool = False
) -> Point:
    """The Newton step (2) for r = `products`."""
    # (2) with dx = (r - x dz) / z and dz = wrong - A' ddual inserted into A dx = 1 - A x.
    right = lacking - system.sums((products - point.x * wrong) / point.z)
    dual = system.solve(right, is_predictor=is_predictor)
    z = wrong - system.prices(dual)
    return Point((products - point.x * z) / point.z, dual, z)


def _step(point: Point, step: Point, way: float) -> Point:
    # Primal and dual steps differ in length: (2) is linear in each separately.
    along, across = way * longest_step(point.x, step.x), way * longest_step(point.z, step.z)
    return Point(point.x + along * step.x, point.dual + across * step.dual, point.z + across * step.z)
