r"""The radius of the disc around a report that must be retrieved: from the planar Laplace law, or from a table.

A disc of radius r around the report y contains the area of interest, the disc of radius r_I around the location u, if
and only if |y - u| + r_I <= r. With probability c this needs r = r_I + (the c-quantile of |y - u|). It must be the
same for every report: a radius chosen from u and y would reveal more than the report.

In a table, u is the centre of a cell, up to h / sqrt 2 from the person: add that to r_I.
Source: Andrés et al. 2013, section 5 (areas of interest and of retrieval).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Vector
from mechdesign.base.validation import validate_call
from mechdesign.errors import UnsuitableError
from mechdesign.evaluation.loss import report_distances
from mechdesign.evaluation.radial_laplace import check_radius, check_shares, radius_ppf
from mechdesign.mechanism.certificate import ROW_BITS


@validate_call
def retrieval_radius(interest_radius: float, confidence: ArrayLike, epsilon: float, dimension: int = 2) -> Floats:
    """The radius around a report of planar Laplace noise that contains the area of interest with a given confidence.

    Parameters
    ----------
    interest_radius : float
        In units.
    confidence : float or array
        In [0, 1].
    epsilon, dimension : float, int
        Nats per unit; the number of axes.

    Returns
    -------
    array of the shape of confidence, in units; inf at confidence 1

    Examples
    --------
    >>> round(float(md.utility.retrieval_radius(300.0, 0.95, 0.01)), 1)
    774.4
    """
    area_radius, share = check_radius(interest_radius, "interest_radius"), check_shares(confidence, "confidence")
    return area_radius + radius_ppf(share, epsilon, dimension)


@validate_call
def table_retrieval_radius(mechanism: xr.Dataset, interest_radius: float, confidence: float) -> Vector:
    """For every secret the smallest radius around the report that contains its area with a given confidence.

    The largest entry holds for all secrets: using that radius reveals nothing more. Cost: O(n m log m).

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table whose reports have coordinates.
    interest_radius, confidence : float
        In units; in [0, 1].

    Returns
    -------
    (n,) array, in units

    Examples
    --------
    >>> mechanism = md.baselines.constant(md.load_problem("line", cells=4))
    >>> md.utility.table_retrieval_radius(mechanism, 0.5, 0.9).round(3)
    array([0.5, 1.5, 2.5, 3.5])
    """
    area_radius = check_radius(interest_radius, "interest_radius")
    share = Fraction(float(check_shares(confidence, "confidence")))
    if "around_row" in mechanism:
        message = "its positions draw from the rows of several cells: take a mechanism that is private between cells"
        raise UnsuitableError(message, field="mechanism")
    distance = report_distances(mechanism)
    if distance is None:
        message = "its reports are not places with the unit and axes of its secrets"
        raise UnsuitableError(message, field="mechanism", value=mechanism.attrs.get("problem"))
    # The smallest distance within which the integers of each row hold at least `share` of 2^62. At least 1 is needed:
    # at confidence 0 a report of probability 0 must not count. Sums of uint64 stay at most 2^62.
    needed = max(np.uint64(math.ceil(share * 2**ROW_BITS)), np.uint64(1))
    order = np.argsort(distance, axis=1, kind="stable")
    mass = np.cumsum(np.take_along_axis(mechanism["mass"].values, order, axis=1), axis=1, dtype=np.uint64)
    last = np.take_along_axis(order, (mass >= needed).argmax(axis=1)[:, None], axis=1)
    return area_radius + np.take_along_axis(distance, last, axis=1)[:, 0]
