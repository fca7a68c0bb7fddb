"""The Laplace mechanism in the plane and on the line: density proportional to e^{-eps |y - u|}.

    in k dimensions   |y - u| has density proportional to r^{k-1} e^{-eps r},  E|y - u|^2 = k (k + 1) / eps^2      (1)
    mass of a cell  = integral of the density over the cell                                                        (2)
    central cell    = (8 / 2 pi) integral_0^{pi/4} [1 - (1 + s) e^{-s}] dtheta,  s = eps h / (2 cos theta)         (3)

* clamped: mass outside the domain moves to the border. This is post-processing of an eps-private mechanism, and so
  eps-private for the Euclidean distance of cell centres.
* normalised: each row over the domain is divided by its own sum, as in Alvim et al. 2018 (section IV-A). The sums
  differ, so the true level exceeds eps: on 30 x 30 cells of 150 m at 0.0040951271 per m it is 1.276 eps.

Source: Andrés et al. 2013, section 4.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.polynomial.legendre import leggauss

from mechdesign.base.arrays import Floats, Matrix, Vector
from mechdesign.base.validation import check_epsilon, validate_call
from mechdesign.closed_forms.build import closed_form_mechanism, level_or_default
from mechdesign.closed_forms.lattice_noise import (
    TAIL_NATS,
    Border,
    clamp_to_border,
    displacements,
    lattice_problem,
    tables_for,
)
from mechdesign.problem.problem import DesignProblem

_NODES = 12  # Gauss-Legendre nodes per panel and axis: relative error under 1e-12 for panels of at most one nat
_FAR_NODES, _NEAR_CELLS = 6, 4  # the same with fewer nodes, from so many cells off the cusp at the centre
_ANGLES = 40  # nodes of (3)


@validate_call
def planar_laplace_mechanism(
    problem: DesignProblem, epsilon: float | None = None, *, border: Border = "clamped"
) -> xr.Dataset:
    """The planar Laplace mechanism on a square grid of one or two axes.

    Parameters
    ----------
    problem : DesignProblem
        The domain, metric, prior and loss.
    epsilon : float
        Nats per unit; by default the smallest level of the metric.
    border : {"clamped", "normalised"}
        "clamped" moves outside mass to the border; "normalised" divides rows by their sums, which breaks the claim.

    Returns
    -------
    xarray.Dataset, certified at the smallest scale that holds

    Examples
    --------
    >>> problem = md.load_problem("line", cells=4)
    >>> md.baselines.planar_laplace(problem).attrs["ratio"] <= 1
    False
    """
    level = level_or_default(problem, epsilon)
    table = tables_for(border, normalised=laplace_normalised, clamped=laplace_clamped)(problem, level)
    name = "planar_laplace" if border == "clamped" else "planar_laplace_normalised"
    return closed_form_mechanism(problem, table, name=name, claimed_epsilon=level, parameters={"border": border})


def mean_squared_error(epsilon: float, dimension: int = 2) -> float:
    """(1): E|y - u|^2 of the continuous mechanism, in squared units."""
    return dimension * (dimension + 1) / check_epsilon(epsilon, "epsilon") ** 2


def laplace_clamped(problem: DesignProblem, epsilon: float) -> Matrix:
    """Cell integrals of the density, outside mass at the border, (n, n); rows sum to 1."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    clamped = clamp_to_border(_masses(shape, displacements(shape, cell, epsilon), cell, epsilon), problem.domain)
    # All rows have one sum up to rounding: 1 less the tail beyond `displacements`.
    return np.asarray(clamped / clamped.sum(axis=1, keepdims=True))


def laplace_normalised(problem: DesignProblem, epsilon: float) -> Matrix:
    """Cell integrals of the density with each row divided by its sum, (n, n)."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    index = problem.domain.index
    assert index is not None
    displacement = tuple(np.abs(axis[:, None] - axis[None, :]) for axis in index.T)
    weight = _masses(shape, max(shape), cell, epsilon)[displacement]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _masses(shape: tuple[int, ...], count: int, cell: float, epsilon: float) -> Floats:
    """Masses at the first `count` displacements of every axis."""
    # A half cell of over 45 nats keeps all but the tail of `TAIL_NATS`, and its quadrature would need many panels.
    if epsilon * cell > 2 * TAIL_NATS:
        masses = np.zeros((count,) * len(shape))
        masses.flat[0] = 1.0
        return masses
    return line_masses(count, cell, epsilon) if len(shape) == 1 else cell_masses(count, cell, epsilon)


def line_masses(count: int, cell: float, epsilon: float) -> Vector:
    """Masses (count,) of the cells at 0, 1, ... cells from the centre, on the line."""
    # (2) in closed form: e^{-eps k h} sinh(eps h / 2) for k >= 1, and both halves of the central cell together.
    half = epsilon * cell / 2
    masses = np.exp(-2 * half * np.arange(count)) * math.sinh(half)
    masses[0] = -math.expm1(-half)
    return masses


def cell_masses(count: int, cell: float, epsilon: float) -> Matrix:
    """Masses (count, count) of the square cells at non-negative displacements, in the plane."""
    masses, central = _rule(count, epsilon * cell, _FAR_NODES), _rule(min(count, _NEAR_CELLS), epsilon * cell, _NODES)
    masses[: len(central), : len(central)] = central
    # (3): the density has a cusp at the centre, where a product rule converges slowly. In polar coordinates the radial
    # integral is elementary. The cell is eight triangles of angle pi / 4, whose far side is h / (2 cos theta) away.
    angle, angle_weight = leggauss(_ANGLES)
    theta = (angle + 1) * math.pi / 8
    radius = epsilon * cell / 2 / np.cos(theta)
    masses[0, 0] = (
        8 * float((angle_weight * (-np.expm1(-radius) - radius * np.exp(-radius))).sum()) * math.pi / 8 / (2 * math.pi)
    )
    return masses


def _rule(count: int, cell: float, nodes: int) -> Matrix:
    """(2) for cells (count, count) of side `cell` nats, by `nodes` nodes a panel and axis."""
    # Panels of at most one nat: along an axis the density changes by at most a factor e over one.
    panels = max(1, math.ceil(cell))
    node, weight = leggauss(nodes)
    inner = (np.arange(panels)[:, None] + (node + 1) / 2) / panels - 0.5
    node_weight = np.tile(weight / 2 / panels, panels) * cell
    squares = (cell * (inner.reshape(-1, 1) + np.arange(count))) ** 2
    masses = np.zeros((count, count))
    # Nodes (j, i) give the transpose of (i, j): pairs i >= j suffice, with half the weight on the diagonal.
    for i in range(len(node_weight)):
        decay = squares[i][:, None, None] + squares[: i + 1].T
        np.exp(-np.sqrt(decay, out=decay), out=decay)
        masses += node_weight[i] * (decay @ np.append(node_weight[:i], node_weight[i] / 2))
    return np.asarray((masses + masses.T) / (2 * math.pi))
