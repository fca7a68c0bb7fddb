r"""The certifiable planar Laplace mechanism: a smoothed kernel, drawn at any position by the quadratic B-spline.

    P(y|k) = c e^{-kappa z sqrt(|y - k|^2 + 1/16)},  z = eps h, places in cells;  a report outside moves to the border;
    a position draws the row of one of the 3 x 3 cells around it (mechanism/positions/patches.py).

The planar Laplace density has a kink at its centre, where a spline through it is too steep: the sixteenth rounds the
tip. kappa is the largest number at which the kernel lies within the cones of the gradient, found by repeated division
by the largest slope over bound; at z = 0.1, 0.25, 0.5 it is 0.9992, 0.9965, 0.9888. Moving reports to the border adds
columns, and sums of columns within the cones are within them.
Loss in the plane: that of the kernel and h^2 / 2 for the spline; the price beside the kernel between cells is of second
order in z.

What is proved: the integers, by the certificate between positions. Beside it stands what is often done: draw the
continuous planar Laplace mechanism at the position, and round the report to the nearest cell. Rounding is processing of
the report, so that in real arithmetic P(y|x) <= e^{eps |x - x'|} P(y|x') holds for all positions, and its mean squared
loss to the true position is 6 / eps^2 + h^2 / 6 exactly, for x uniform in its cell: x + noise is then uniform modulo
the cells, independently of the noise. But no finite table says what a floating-point program draws, and nothing of it
is certified here: its figure is `rounded_squared_error`, and it is no baseline.
Source: the planar Laplace mechanism, paper 004, section 4; its rounding, Andres et al. 2013, section 4; the kernel is
ours.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.closed_forms.mechanisms.build import lattice_problem
from mechdesign.closed_forms.mechanisms.clamped_lattice import clamp_to_border, displacements
from mechdesign.closed_forms.mechanisms.planar_laplace import mean_squared_error
from mechdesign.mechanism.positions.patches import Patches, patches
from mechdesign.mechanism.positions.repair import repair
from mechdesign.mechanism.positions.spline_cones import SplineCones, spline_cones
from mechdesign.mechanism.table.dataset import certified_scale, make_mechanism
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

TIP = 1 / 16  # squared radius of the tip, in cells
_REACH = 8  # cells around a report on which kappa is found: farther away the kernel is nearer to a plane wave
_WITHIN = 1 - 1e-9  # of the cones: what rounding to integers needs
_TRIES = 12


@asked
def mechanism(problem: DesignProblem) -> xr.Dataset:
    """The mechanism at the smallest level of the metric, certified between any two positions.

    Raises: UnsuitableError off grids of square cells of two axes, and for metrics without a level.
    Cost: O(n^2), some 100 sums over 3 x 3 cells for every cell and report.
    """
    mass, around, factor = certified_mass(problem)
    return make_mechanism(
        problem,
        mass,
        program="spline_laplace",
        scale=certified_scale(problem, mass),
        claimed_epsilon=float(around.corner_level.min()),
        parameters={"kappa": factor},
        positions=around,
    )


def certified_mass(problem: DesignProblem) -> tuple[NDArray[np.uint64], Patches, float]:
    """The masses (n, n) of `mechanism`, their patches, and the factor of the level of the kernel.

    Raises: what `mechanism` raises.
    """
    shape, side = lattice_problem(problem, "the spline Laplace mechanism")
    around = patches(problem.domain, problem.metric)
    level = float(around.corner_level.min())
    cones, factor = spline_cones(around, subdivided=True), kappa(level * side)
    for _ in range(_TRIES):
        table = _table(problem.domain, shape, side, level * factor)
        excess = cones.excess(table)
        if excess <= 1:
            break
        factor *= _WITHIN / excess
    return repair(table, around), around, factor


def kappa(z: float) -> float:
    """The largest share of z = eps h at which the kernel keeps the cones of z, to 1e-9; less than 1."""
    cones, radius = _cones_around(z)
    factor = 1.0
    for _ in range(_TRIES):
        excess = cones.excess(np.exp(-factor * z * (radius - radius.min()))[:, None])
        factor *= _WITHIN / excess
        if abs(excess - 1) <= 1e-8:
            break
    return factor


def rounded_squared_error(epsilon: float, side: float) -> float:
    """E|report - x|^2 = 6 / eps^2 + h^2 / 6 of planar Laplace reports of positions, rounded to cells of the plane."""
    return mean_squared_error(epsilon) + side**2 / 6


def _cones_around(z: float) -> tuple[SplineCones, NDArray[np.float64]]:
    """The cones of the cells around a report, and sqrt(r^2 + 1/16) there, shape (n,)."""
    width = 2 * _REACH + 1
    domain = Domain.grid((width, width), cell=1.0, unit="1", origin=(-width / 2, -width / 2))
    around: Patches = patches(domain, Euclidean(epsilon=z, unit="1"))
    return spline_cones(around, subdivided=True), np.sqrt((domain.points**2).sum(axis=1) + TIP)


def _table(domain: Domain, shape: tuple[int, ...], side: float, level: float) -> NDArray[np.float64]:
    """The kernel at `level` nats per unit, reports outside moved to the border, (n, n)."""
    count = displacements(shape, side, level)
    away = np.arange(count)
    kernel = np.exp(-level * side * (np.sqrt(away[:, None] ** 2 + away[None, :] ** 2 + TIP) - math.sqrt(TIP)))
    table = clamp_to_border(kernel, domain)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
