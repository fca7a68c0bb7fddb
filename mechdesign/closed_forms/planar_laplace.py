r"""The Laplace mechanism in the plane and on the line: density proportional to e^{-eps |y - u|}.

    in k dimensions   |y - u| has density proportional to r^{k-1} e^{-eps r},  E|y - u|^2 = k (k + 1) / eps^2:
    2 / eps^2 on the line, 6 / eps^2 in the plane.

On a grid each cell takes the integral of the density over itself and mass outside the domain moves to the border: as
post-processing of an eps-private mechanism this is eps-private for the Euclidean distance of cell centres.
Source: paper 004, section 4; mean squared error 6 / eps^2 = 37.5 at eps = 0.4 is the first row of Table I of paper 000.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from mechdesign.closed_forms.closed_form import closed_form_mechanism, lattice_problem, level_or_default
from mechdesign.closed_forms.lattice import clamp_to_border, displacements
from mechdesign.setting.levels import check_epsilon
from mechdesign.setting.problem import DesignProblem

_NODES = 12  # Gauss-Legendre nodes per panel and axis: relative error under 1e-12 for panels of at most one nat
_ANGLES = 40  # nodes of the polar form of the cell that holds the cusp


def mean_squared_error(epsilon: float, dimension: int = 2) -> float:
    """E|y - u|^2 = k (k + 1) / eps^2 of the continuous mechanism, in squared units."""
    return dimension * (dimension + 1) / check_epsilon(epsilon, "epsilon") ** 2


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """The Laplace mechanism at `epsilon` nats per unit (default: the smallest level of the metric) on a square grid.

    Raises: InputError off square grids of one or two axes.
    """
    level = level_or_default(problem, epsilon)
    return closed_form_mechanism(problem, table(problem, level), name="planar_laplace", claimed_epsilon=level)


def table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """Cell integrals of the density, outside mass at the border, (n, n); rows sum to 1."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    count = displacements(shape, cell, epsilon)
    masses = line_masses(count, cell, epsilon) if len(shape) == 1 else cell_masses(count, cell, epsilon)
    clamped = clamp_to_border(masses, problem.domain)
    return np.asarray(clamped / clamped.sum(axis=1, keepdims=True))


def line_masses(count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses (count,) of the cells at 0, 1, ... cells from the centre, on the line; exact."""
    half = epsilon * cell / 2
    masses = np.exp(-2 * half * np.arange(count)) * math.sinh(half)
    masses[0] = -math.expm1(-half)
    return masses


def cell_masses(count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses (count, count) of the square cells at non-negative displacements, in the plane.

    Tensor Gauss-Legendre rule on panels of at most one nat; the cell around the centre, where the density has a cusp,
    in polar coordinates: 8 integral_0^{pi/4} [1 - (1 + s) e^{-s}] dtheta / 2 pi with s = eps h / (2 cos theta).
    """
    panels = max(1, math.ceil(epsilon * cell))
    node, weight = leggauss(_NODES)
    inner = (np.arange(panels)[:, None] + (node + 1) / 2) / panels - 0.5
    at, share = inner.ravel() * cell, np.tile(weight / 2 / panels, panels) * cell
    masses = np.zeros((count, count))
    centre = np.arange(count) * cell
    for s, ws in zip(at, share, strict=True):
        for t, wt in zip(at, share, strict=True):
            masses += (ws * wt) * np.exp(-epsilon * np.hypot((centre + s)[:, None], (centre + t)[None, :]))
    masses *= epsilon**2 / (2 * math.pi)
    angle, angle_weight = leggauss(_ANGLES)
    theta = (angle + 1) * math.pi / 8
    radius = epsilon * cell / 2 / np.cos(theta)
    masses[0, 0] = (
        8 * float((angle_weight * (-np.expm1(-radius) - radius * np.exp(-radius))).sum()) * math.pi / 8 / (2 * math.pi)
    )
    return masses
