r"""Cones of the gradient of a quadratic spline, and the planar Laplace mechanism with a kernel within them.

On a cell, with s, t in [0, 1] along its sides, a column p of rows is the spline

    p(s, t) = sum_ab B_a(s) B_b(t) beta_ab,        grad p = sum_ab B_a(s) B_b(t) G_ab / h,        B Bernstein, degree 2

where beta and G are sums over the 3 x 3 cells around. Along one axis, from rows (w, c, e),

    beta = ((w + c) / 2, c, (c + e) / 2),          G = (c - w, (e - w) / 2, e - c).                                  (1)

With levels e_kl at the corners of the cell, e p has Bernstein coefficients (e beta)_ab of degree 3, and so has G once
it is raised to that degree. The cones are

    |G_ab| <= h (e beta)_ab for all a, b,                                                                            (2)

which imply |grad p| <= e p on the cell: both sides are sums of coefficients with the same weights >= 0. If the four
levels of a cell are equal degree 2 suffices. Weights of slopes are small multiples of a power of two, and exact; those
of bounds are sums of terms >= 0.
The cones of the four quarters of a cell are used, by de Casteljau's rule.

Source: the planar Laplace mechanism and its rounding, Andrés et al. 2013, section 4; the kernel is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
import xarray as xr

from mechdesign.base.arrays import Floats, Unsigned
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.lattice_noise import clamp_to_border, displacements, lattice_problem
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.figures import certified_scale
from mechdesign.positions.cones import HIGHEST
from mechdesign.positions.patches import Patches, patches
from mechdesign.positions.repair import repair
from mechdesign.problem.domain import Domain
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem

# The coefficients of (1)
_VALUE = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])  # beta_a over (w, c, e)
_SLOPE = np.array([[-1.0, 1.0, 0.0], [-0.5, 0.0, 0.5], [0.0, -1.0, 1.0]])  # G_a over (w, c, e)
# Three quarters of coefficient a of degree 3 of a product, exact in doubles: sum over (i, k) of share beta_i e_k.
_RAISED = (((0, 0, 0.75),), ((1, 0, 0.5), (0, 1, 0.25)), ((2, 0, 0.25), (1, 1, 0.5)), ((2, 1, 0.75),))
_HALVES = (  # from the coefficients of an interval to those of its halves
    (np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]), np.array([[1.0, 0.0], [0.5, 0.5]])),
    (np.array([[0.25, 0.5, 0.25], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])),
)


@dataclass(frozen=True, kw_only=True)
class SplineConstants:
    """Constants of cones and kernel."""

    # No claim rests on these: tables are certified in integers.

    least_level: float = 2.0**-900  # nats a cell: lower levels count as this, so that no weight of a cone underflows
    columns_at_once: int = 64  # of a table, to save memory
    digits: int = 10  # of the fingerprints by which equal cones are found
    # (3), squared radius in cells: the planar Laplace density has a kink at its centre, where a spline is too steep.
    tip: float = 1 / 16
    reach: int = 8  # cells around a report on which kappa is found: farther away the kernel is nearer to a plane wave
    within: float = 1 - 1e-9  # share of the cones that the kernel uses: rounding to integers needs the rest
    tries: int = 12  # divisions by the excess, at most: two or three suffice


CONSTANTS = SplineConstants()

Half = tuple[Floats, Floats]  # of an interval: the maps of its coefficients and of its levels


@dataclass(frozen=True, kw_only=True, eq=False)
class SplineCones:
    """Sparse rows (k, n) over a column p of n rows: |(slope_x p, slope_y p)| <= bound p for each of k cones."""

    # In probability: the lengths of cells are part of `bound`.

    bound: sp.csr_array
    slope_x: sp.csr_array
    slope_y: sp.csr_array

    @property
    def size(self) -> int:
        return int(self.bound.shape[0])

    def excess(self, table: Floats) -> float:
        """The largest slope over bound of a table (n, m) > 0: at most 1 where every column lies in its cones."""
        largest = 0.0
        for start in range(0, table.shape[1], CONSTANTS.columns_at_once):
            part = table[:, start : start + CONSTANTS.columns_at_once]
            slope = np.hypot(self.slope_x @ part, self.slope_y @ part)
            largest = max(largest, float((slope / (self.bound @ part)).max()))
        return largest


def spline_cones(patches: Patches) -> SplineCones:
    """The cones of the quarters of all cells; those that two share stand once. Cost: O(n)."""
    # Of quarters, since a plane wave e^{eps x} exceeds the cones of a cell at eps by a relative (eps h)^2 / 6, and
    # those of its quarters by (eps h)^2 / 24. Levels are cut at HIGHEST, as the check in integers cuts them.
    levels = np.clip(patches.corner_level * patches.side, CONSTANTS.least_level, HIGHEST)
    around, n = patches.around, len(patches.around)
    cells, weights = [], []
    for q, halves in enumerate(product(_HALVES, repeat=2)):
        level = np.einsum("ik,jl,nkl->nij", halves[0][1], halves[1][1], levels[:, :4].reshape(-1, 2, 2)).reshape(-1, 4)
        if levels.shape[1] == 16:
            level = levels[:, 4 * q : 4 * q + 4]
        flat = (level == level[:, :1]).all(axis=1)
        for chosen, coefficients in ((flat, _flat_weights), (~flat, _varying_weights)):
            rows = coefficients(level[chosen], *halves)
            cells.append(np.repeat(around[chosen], rows.shape[1], axis=0))
            weights.append(rows.reshape(-1, 3, 9))
    cell, weight = np.concatenate(cells), np.concatenate(weights)
    rows = np.repeat(np.arange(len(cell)), 9)
    parts = [sp.csr_array((weight[:, k].ravel(), (rows, cell.ravel())), shape=(len(cell), n)) for k in range(3)]
    # Cones shared by two cells have equal rows: found by products with one random vector. Those without slopes hold for
    # any column, since bounds are not negative.
    probe = np.random.default_rng(0).random(n)
    prints = np.column_stack([part @ probe for part in parts])
    _, distinct = np.unique(prints.round(CONSTANTS.digits), axis=0, return_index=True)
    distinct = np.sort(distinct[np.abs(prints[distinct, 1:]).max(axis=1) > 10.0**-CONSTANTS.digits])
    for part in parts:
        part.eliminate_zeros()
    bound, slope_x, slope_y = (part[distinct] for part in parts)
    return SplineCones(bound=bound, slope_x=slope_x, slope_y=slope_y)


def _flat_weights(level: Floats, across: Half, along: Half) -> Floats:
    # Degree 2: the level scales all nine bounds alike. Shape (n, 9, 3, 9): conditions, bound and slopes, cells around.
    weights = np.stack([_outer(across[0], along[0], i, j) for i in range(3) for j in range(3)])
    parts = np.tile(weights, (len(level), 1, 1, 1))
    parts[:, :, 0] *= level[:, :1, None]
    return parts


def _varying_weights(level: Floats, across: Half, along: Half) -> Floats:
    # Degree 3: the product with the levels raises the bounds, and `_RAISED` raises the slopes to the same degree.
    corner = level.reshape(-1, 2, 2)
    parts = np.zeros((len(level), 4, 4, 3, 9))
    for a, b in product(range(4), repeat=2):
        for (i, k, share), (j, l, other) in product(_RAISED[a], _RAISED[b]):
            weights = share * other * _outer(across[0], along[0], i, j)
            parts[:, a, b, 0] += corner[:, k, l, None] * weights[0]
            parts[:, a, b, 1:] += weights[1:]
    return parts.reshape(-1, 16, 3, 9)


def _outer(across: Floats, along: Floats, i: int, j: int) -> Floats:
    value, slope = (across @ _VALUE, along @ _VALUE), (across @ _SLOPE, along @ _SLOPE)
    pairs = ((value[0], value[1]), (slope[0], value[1]), (value[0], slope[1]))
    return np.stack([np.outer(x[i], y[j]).ravel() for x, y in pairs])


# A smoothed kernel, drawn at any position by the quadratic B-spline (positions/patches.py),
#
#     P(y|k) = c e^{-kappa z sqrt(|y - k|^2 + 1/16)},  z = eps h, places in cells,                                   (3)
#
# where a report outside moves to the border, and kappa is the largest factor at which it lies within the cones.
@validate_call
def spline_laplace(problem: DesignProblem) -> xr.Dataset:
    """The spline Laplace mechanism at the smallest level of the metric, certified between any two positions.

    Parameters
    ----------
    problem : DesignProblem
        A grid of square cells of two axes and a metric with a level.

    Returns
    -------
    xarray.Dataset, in O(n^2) time

    Examples
    --------
    >>> domain = md.Domain.grid((4, 4), 1.0)
    >>> problem = md.DesignProblem(domain, md.Euclidean(1.0), md.priors.uniform(domain), md.losses.Distance())
    >>> md.verify(md.positions.spline_laplace(problem)).certified
    True
    """
    mass, around, factor = certified_mass(problem)
    extras = Extras(
        scale=certified_scale(problem, mass),
        claimed_epsilon=float(around.corner_level.min()),
        parameters={"kappa": factor},
        positions=around,
    )
    return build_dataset(problem, mass, program="spline_laplace", extras=extras)


def certified_mass(problem: DesignProblem) -> tuple[Unsigned, Patches, float]:
    """The masses (n, n) of `spline_laplace`, their patches, and the factor of the level of the kernel."""
    shape, side = lattice_problem(problem, "the spline Laplace mechanism")
    around = patches(problem.domain, problem.metric)
    level = float(around.corner_level.min())
    cones, factor = spline_cones(around), kappa(level * side)
    # Moving reports to the border adds columns, and sums of columns within the cones are within them. The excess is by
    # rounding alone, and takes one or two corrections of the factor.
    for _ in range(CONSTANTS.tries):
        table = _table(problem.domain, shape, side, level * factor)
        excess = cones.excess(table)
        if excess <= 1:
            break
        factor *= CONSTANTS.within / excess
    return repair(table, around), around, factor


def kappa(z: float) -> float:
    """The largest share of z = eps h at which the kernel keeps the cones of z, to 1e-9; less than 1."""
    # 0.9992, 0.9965 and 0.9888 at z = 0.1, 0.25 and 0.5.
    cones, radius = _cones_around(z)
    factor = 1.0
    # Slope over bound is nearly proportional to the factor, so that dividing by the excess converges at once.
    for _ in range(CONSTANTS.tries):
        excess = cones.excess(np.exp(-factor * z * (radius - radius.min()))[:, None])
        factor *= CONSTANTS.within / excess
        if abs(excess - 1) <= 1e-8:
            break
    return factor


def _cones_around(z: float) -> tuple[SplineCones, Floats]:
    # The lattice around one report, which lies at the origin.
    width = 2 * CONSTANTS.reach + 1
    domain = Domain.grid((width, width), cell=1.0, unit="1", origin=(-width / 2, -width / 2))
    around: Patches = patches(domain, Euclidean(epsilon=z, unit="1"))
    return spline_cones(around), np.sqrt((domain.points**2).sum(axis=1) + CONSTANTS.tip)


def _table(domain: Domain, shape: tuple[int, ...], side: float, level: float) -> Floats:
    count = displacements(shape, side, level)
    away = np.arange(count)
    radius = np.sqrt(away[:, None] ** 2 + away[None, :] ** 2 + CONSTANTS.tip)
    kernel = np.exp(-level * side * (radius - math.sqrt(CONSTANTS.tip)))
    table = clamp_to_border(kernel, domain)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
