"""Accuracy of a report: the radius around it that holds the true position with 95 % of the posterior probability."""

from __future__ import annotations

import itertools
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Vector
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.schema import stored_points

if TYPE_CHECKING:
    import xarray as xr

SHARE = 0.95
# With a claim about positions a part draws rows by the weights of the quadratic B-spline (positions/spline.py),
# averaged over the lower and the upper half of a cell.
_HALVES = np.array([[7.0, 16.0, 1.0], [1.0, 16.0, 7.0]]) / 24
# Weights of the centre of the cell, for both halves.
_CENTRE = np.array([[1.0, 6.0, 1.0]] * 2) / 8
# Rounding positions to 2^-16 of a cell moves each weight by less: the required share is larger by nine times that.
_ROUNDED = 2.0**-15
_NOISE = 1e-9  # of a share, by the rounding of sums
_UP = 1 + 1e-12


# The posterior of report y is proportional to prior(u) P(y|u); a position is uniform in its cell, and each cell is
# halved along each axis. Let r be the least radius about y such that the centres of the parts within r hold the share.
# Points of a part lie within half a diagonal of its centre, so radius r + half a diagonal holds at least the share.
def accuracy(mechanism: xr.Dataset, reports: ArrayLike | None = None, *, from_centres: bool = False) -> Vector | None:
    """The radii (b,) about reports (b,), all by default, that hold the true position with 95 %, rounded up."""
    # None for factored mechanisms, graph nodes, and reports in another unit or with other axes. O(b n log n).
    # from_centres: reports are drawn for the centre of the cell around the position, also if positions have a claim.
    domain = stored_domain(mechanism)
    if "mass" not in mechanism or domain.kind == "nodes":
        return None
    places = stored_points(mechanism, "report")
    if places.shape[1] != domain.dimension or mechanism["report_x"].attrs["units"] != domain.unit:
        return None
    numbers = np.arange(len(places)) if reports is None else np.asarray(reports, np.int64)
    mass, prior = mechanism["mass"].values, mechanism["prior"].values
    around = mechanism["around_row"].values if "around_row" in mechanism else None
    halves = _CENTRE if from_centres else _HALVES
    sides = np.zeros(domain.dimension) if domain.cell is None else np.asarray(domain.cell)
    parts = list(itertools.product((0, 1), repeat=domain.dimension)) if domain.cell is not None else [(0,)]
    centres = np.concatenate([domain.points + (np.array(part) - 0.5) / 2 * sides for part in parts])
    # Half a diagonal of a part, whose sides are half those of a cell.
    half_diagonal = float(np.hypot.reduce(sides)) / 4
    share = SHARE * (1 + _NOISE) + (0.0 if around is None else 9 * _ROUNDED)
    radii = np.empty(len(numbers))
    for k, y in enumerate(numbers.tolist()):
        column = mass[:, y] / float(ROW_SUM)
        if around is None:
            # All parts of a cell have the posterior of the cell.
            weight = np.tile(prior * column, len(parts))
        else:
            rows = column[around]
            weight = np.concatenate([prior * (rows @ np.outer(*halves[list(part)]).ravel()) for part in parts])
        distance = np.sqrt(((centres - places[y]) ** 2).sum(axis=1))
        # The nearest parts first, until they hold the share of the posterior.
        order = np.argsort(distance, kind="stable")
        cumulative = np.cumsum(weight[order])
        radii[k] = distance[order[np.searchsorted(cumulative, share * cumulative[-1])]]
    return (radii + half_diagonal) * _UP


def round_up(radii: Vector) -> list[float]:
    """Radii rounded up to three digits, as reports show them."""
    digits = Context(prec=3, rounding=ROUND_CEILING)
    return [float(digits.create_decimal_from_float(radius)) for radius in radii.tolist()]
