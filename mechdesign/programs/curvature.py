r"""Curvature of the metric eps^2 |dx|^2, and the local weights of the eikonal kernel.

In n dimensions let R be the scalar curvature of the conformal metric g = eps^2 |dx|^2. A geodesic ball's volume element
is r^{n-1} (1 - Ric r^2 / 6). To first order the integral of e^{-d(u, y)} over y is then c_n (1 - (n + 1) R / 6), with
c_n = 2, 2 pi, 8 pi for n = 1, 2, 3 (the integral of e^{-|x|}). Hence K w = 1 is solved to first order by

    w(y) = (eps^n |cell| / c_n) (1 + (n + 1) R / 6)   =   eps^{n-2} (-excess) |cell| / c_n              (1)

    n = 1    excess = -eps^2                                                                            (2)
    n = 2    excess = Laplacian(log eps) - eps^2
    n = 3    excess = (8 Laplacian(log eps) + 4 |grad log eps|^2) / 3 - eps^2

A weight is negative where the excess is positive: in the plane, where Laplacian(log eps) > eps^2 (the condition that
Koufogiannis & Pappas 2016 leave open).
"""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from mechdesign.base.arrays import Points, Vector
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Eikonal

TOTALS = {1: 2.0, 2: 2.0 * math.pi, 3: 8.0 * math.pi}  # c_n
LEAST_SHARE = 0.02  # of the flat weight (eps h)^n / c_n that a local weight keeps where the excess is positive


def has_curvature_rule(metric: Metric, domain: Domain) -> TypeGuard[Eikonal]:
    """True for an eikonal metric on a grid, for which the rule is stated."""
    return isinstance(metric, Eikonal) and domain.kind == "grid"


def curvature_excess(domain: Domain, metric: Eikonal) -> Vector:
    """The excess (k,) at the cells of a grid by second differences over one cell, per squared unit of length."""
    # Cells at the border use the level one cell beyond, where a raster that ends there is constant.
    assert domain.cell is not None

    def logarithm(points: Points) -> Vector:
        return np.log(metric.level.at(points))

    here = logarithm(domain.points)
    laplacian, slope = np.zeros(domain.size), np.zeros(domain.size)
    for axis, h in enumerate(domain.cell):
        step = np.eye(domain.dimension)[axis] * h
        ahead, behind = logarithm(domain.points + step), logarithm(domain.points - step)
        laplacian += (ahead + behind - 2 * here) / h**2
        slope += ((ahead - behind) / (2 * h)) ** 2
    # (2), without - eps^2; a line has no curvature.
    bend = {1: 0.0 * laplacian, 2: laplacian, 3: (8 * laplacian + 4 * slope) / 3}[domain.dimension]
    return bend - (metric.scale * metric.level.at(domain.points)) ** 2


def signed_weights(domain: Domain, metric: Eikonal, least: float = -math.inf) -> Vector:
    """First-order weights (k,) of the cells of a grid, at least the share `least` of those of a flat metric."""
    assert domain.cell is not None
    level = metric.scale * metric.level.at(domain.points)
    # (1): `square` is -excess, eps^2 for a flat metric, of which the share `least` is kept.
    square = np.maximum(-curvature_excess(domain, metric), least * level**2)
    return level ** (domain.dimension - 2) * square * math.prod(domain.cell) / TOTALS[domain.dimension]


def local_weights(domain: Domain, metric: Eikonal) -> Vector:
    """First-order weights (k,) of the cells of a grid, at least 2 % of those of a flat metric."""
    return signed_weights(domain, metric, LEAST_SHARE)


def line_weights(left: Vector, right: Vector) -> Vector:
    """The exact weights (k,) of places on a line from their lengths left and right in nats, infinite at the ends."""
    # On a line e^{-d} is the kernel of a Markov chain: its inverse is tridiagonal, and K w = 1 has a closed form.
    return np.asarray((np.tanh(left / 2) + np.tanh(right / 2)) / 2)
