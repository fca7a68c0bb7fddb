r"""The Laplace mechanism in the plane and on the line: density proportional to e^{-eps |y - u|}.

    in k dimensions   |y - u| has density proportional to r^{k-1} e^{-eps r},  E|y - u|^2 = k (k + 1) / eps^2:
    2 / eps^2 on the line, 6 / eps^2 in the plane.

On a grid each cell takes the integral of the density over itself, and mass outside the domain needs a border:

* clamped: it moves to the border. As post-processing of an eps-private mechanism this is eps-private for the Euclidean
  distance of cell centres.
* normalised: each row over the domain is divided by its own sum, as paper 001 does (section IV-A). The sums differ
  from row to row, so the true level exceeds eps: on 30 x 30 cells of 150 m at 0.0040951271 per m it is 1.276 eps.
* truncated: clamped, at the smaller eps' that a sampler of finite precision needs on a set of this diameter.

The law of the noise itself is in laplace_law.py, samplers of finite precision in finite_precision.py.
Source: paper 004, section 4; mean squared error 6 / eps^2 = 37.5 at eps = 0.4 is the first row of Table I of paper 000.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.closed_forms.mechanisms.build import (
    Border,
    bordered,
    closed_form_mechanism,
    lattice_problem,
    level_or_default,
)
from mechdesign.closed_forms.mechanisms.clamped_lattice import TAIL_NATS, clamp_to_border, displacements
from mechdesign.closed_forms.noise.finite_precision import finite_precision_bound, finite_precision_epsilon
from mechdesign.closed_forms.noise.radial_laplace import (
    mean_radius,
    radius_cdf,
    radius_exceeded,
    radius_ppf,
    radius_tail,
    sample,
)
from mechdesign.errors import UnsuitableError
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

__all__ = [
    "cell_masses",
    "clamped_table",
    "diameter",
    "finite_precision_bound",
    "finite_precision_epsilon",
    "line_masses",
    "mean_radius",
    "mean_squared_error",
    "mechanism",
    "normalised_table",
    "radius_cdf",
    "radius_exceeded",
    "radius_ppf",
    "radius_tail",
    "sample",
    "truncated",
]

_NODES = 12  # Gauss-Legendre nodes per panel and axis: relative error under 1e-12 for panels of at most one nat
_ANGLES = 40  # nodes of the polar form of the cell that holds the cusp
_ROWS = 256  # places at a time whose distances to all others are held


def mean_squared_error(epsilon: float, dimension: int = 2) -> float:
    """E|y - u|^2 = k (k + 1) / eps^2 of the continuous mechanism, in squared units."""
    return dimension * (dimension + 1) / check_epsilon(epsilon, "epsilon") ** 2


@asked
def mechanism(problem: DesignProblem, epsilon: float | None = None, *, border: Border = "clamped") -> xr.Dataset:
    """The Laplace mechanism at `epsilon` nats per unit (default: the smallest level of the metric) on a square grid.

    border: "clamped" or "normalised", see the module docstring.
    Raises: InputError for another border, and off square grids of one or two axes.
    """
    level = level_or_default(problem, epsilon)
    table = bordered(border, normalised=normalised_table, clamped=clamped_table)(problem, level)
    name = "planar_laplace" if border == "clamped" else "planar_laplace_normalised"
    return closed_form_mechanism(problem, table, name=name, claimed_epsilon=level, parameters={"border": border})


def truncated(problem: DesignProblem, epsilon: float | None = None, *, angle_precision: float) -> xr.Dataset:
    """The mechanism on the cells of the domain at the eps' with which a sampler of finite precision keeps `epsilon`.

    eps' is `finite_precision_epsilon` with the side of a cell as pitch and the diameter of the domain as r_max, so that
    a machine with angles of `angle_precision` radians that runs at eps' and reports the nearest admissible cell is
    private for `epsilon` by Theorem 4.2 of paper 004. The admissible cells are those of the domain: the table holds the
    integral over each cell, a report outside the grid moved to the nearest cell of the grid and one in a masked cell on
    to the nearest cell of the domain.
    Certified is the table, in integers and for all pairs, at the multiple it shows, which is eps' / epsilon: drawn by
    `Sampler`, its reports need no theorem. The machine's own arithmetic is not certified.
    Parameters kept in the file: running_epsilon, angle_precision, r_max.
    Raises: InputError where no eps' > 0 exists, and off square grids of two axes.
    """
    level = level_or_default(problem, epsilon)
    shape, cell = lattice_problem(problem, "the truncated Laplace mechanism")
    if len(shape) != 2:
        raise UnsuitableError(
            "angles need a plane", field="domain", value=f"{len(shape)} axis", remedy="use a grid of two axes"
        )
    far = diameter(problem.domain)
    running = finite_precision_epsilon(level, cell, angle_precision, far)
    parameters = {"running_epsilon": running, "angle_precision": angle_precision, "r_max": far}
    return closed_form_mechanism(
        problem,
        clamped_table(problem, running),
        name="planar_laplace_truncated",
        claimed_epsilon=level,
        parameters=parameters,
    )


def diameter(domain: Domain) -> float:
    """The largest distance between two places of the domain, in units. Cost: O(n^2) time, O(n) memory."""
    points = domain.points
    blocks = (points[start : start + _ROWS] for start in range(0, len(points), _ROWS))
    return max(float(cdist(block, points).max()) for block in blocks)


def clamped_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """Cell integrals of the density, outside mass at the border, (n, n); rows sum to 1."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    clamped = clamp_to_border(_masses(shape, displacements(shape, cell, epsilon), cell, epsilon), problem.domain)
    return np.asarray(clamped / clamped.sum(axis=1, keepdims=True))


def normalised_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """Cell integrals of the density with each row divided by its sum, (n, n)."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    index = problem.domain.index
    assert index is not None
    away = tuple(np.abs(axis[:, None] - axis[None, :]) for axis in index.T)
    weight = _masses(shape, max(shape), cell, epsilon)[away]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _masses(shape: tuple[int, ...], count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses at the first `count` displacements of every axis; all in the own cell where less than e^-45 leaves it."""
    if epsilon * cell > 2 * TAIL_NATS:
        masses = np.zeros((count,) * len(shape))
        masses.flat[0] = 1.0
        return masses
    return line_masses(count, cell, epsilon) if len(shape) == 1 else cell_masses(count, cell, epsilon)


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
