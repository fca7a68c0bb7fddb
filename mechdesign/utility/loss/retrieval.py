r"""How large a disc around the report must be asked for, and how often the report is near: from the law, or a table.

A disc of radius r around the report y contains the area of interest, the disc of radius r_I around the location u,
exactly where |y - u| + r_I <= r. With probability c that needs r = r_I + (the c-quantile of |y - u|): to be asked for
whatever the report is, because a radius chosen from u and y would tell more than the report.

(alpha, delta)-usefulness: P(|y - u| <= alpha) >= 1 - delta. For each alpha there is a least delta, the tail beyond it,
and for each delta a least alpha, the quantile of 1 - delta.

From the planar Laplace law: `retrieval_radius`, `useful_delta`, `useful_alpha`. From the table of any mechanism over
places, secret by secret: `table_retrieval_radius`, `table_useful_delta`, `table_useful_alpha`. There u is a place: on a
grid the centre of a cell, up to h / sqrt 2 from whoever is in it, to be added to r_I for an area around the person.
Source: paper 004, section 5 (areas of interest and of retrieval, accuracy as a function of both).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.closed_forms.noise.radial_laplace import (
    check_radii,
    check_radius,
    check_shares,
    radius_exceeded,
    radius_ppf,
    radius_tail,
)
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.table.certificate import ROW_BITS, ROW_SUM
from mechdesign.utility.loss.loss import report_distances

Array = NDArray[np.float64]


@asked
def retrieval_radius(interest_radius: float, confidence: ArrayLike, epsilon: float, dimension: int = 2) -> Array:
    """r_I + (the c-quantile of the Laplace radius), in units, shape of confidence; inf at confidence 1.

    Raises: InputError for a radius that is negative or infinite, a confidence outside [0, 1], a level not positive.
    """
    near, share = check_radius(interest_radius, "interest_radius"), check_shares(confidence, "confidence")
    return near + radius_ppf(share, epsilon, dimension)


def useful_delta(alpha: ArrayLike, epsilon: float, dimension: int = 2) -> Array:
    """The least delta for each alpha, P(|y - u| > alpha) under the Laplace law; alpha in units, shape of alpha."""
    return radius_tail(check_radii(alpha, "alpha"), epsilon, dimension)


def useful_alpha(delta: ArrayLike, epsilon: float, dimension: int = 2) -> Array:
    """The least alpha for each delta, in units, shape of delta: the quantile of 1 - delta of the Laplace radius."""
    return radius_exceeded(check_shares(delta, "delta"), epsilon, dimension)


@asked
def table_retrieval_radius(mechanism: xr.Dataset, interest_radius: float, confidence: float) -> Array:
    """For every secret the least r that contains its area of interest with probability `confidence`, (n,), in units.

    The largest entry holds for all secrets: who asks with that radius tells nothing more by it.
    Raises: InputError for a radius that is negative or infinite, or a confidence outside [0, 1]; UnsuitableError for
        mechanisms whose reports are no places. Cost: O(n m log m), in memory O(n m).
    """
    near = check_radius(interest_radius, "interest_radius")
    return near + _quantiles(mechanism, _exact(confidence, "confidence"))


def table_useful_alpha(mechanism: xr.Dataset, delta: float) -> Array:
    """For every secret the least alpha with P(|y - u| <= alpha) >= 1 - delta, (n,), in units. Raises: as above."""
    return _quantiles(mechanism, 1 - _exact(delta, "delta"))


def table_useful_delta(mechanism: xr.Dataset, alpha: float) -> Array:
    """For every secret the least delta, P(|y - u| > alpha), (n,); alpha in units.

    Raises: InputError for an alpha that is negative or infinite; UnsuitableError for reports that are no places.
    """
    beyond = _distances(mechanism) > check_radius(alpha, "alpha")
    return np.where(beyond, mechanism["mass"].values, np.uint64(0)).sum(axis=1) / float(ROW_SUM)


def _quantiles(mechanism: xr.Dataset, share: Fraction) -> Array:
    """The least distance within which the integers of each row hold at least `share` of 2^62, (n,)."""
    distance, needed = _distances(mechanism), np.uint64(math.ceil(share * 2**ROW_BITS))
    order = np.argsort(distance, axis=1, kind="stable")
    held = np.cumsum(np.take_along_axis(mechanism["mass"].values, order, axis=1), axis=1, dtype=np.uint64)
    first = (held >= max(needed, np.uint64(1))).argmax(axis=1)
    return np.take_along_axis(distance, np.take_along_axis(order, first[:, None], axis=1), axis=1)[:, 0]


def _distances(mechanism: xr.Dataset) -> Array:
    if "around_row" in mechanism:
        raise UnsuitableError(
            "its positions draw from the rows of several cells",
            field="mechanism",
            value="private between any two positions",
            remedy="ask a mechanism that is private between cells",
        )
    distance = report_distances(mechanism)
    if distance is None:
        raise UnsuitableError(
            "its reports are no places beside its secrets",
            field="mechanism",
            value=mechanism.attrs.get("problem"),
            remedy="use a mechanism whose secrets and reports have coordinates in one unit",
        )
    return distance


def _exact(share: float, field: str) -> Fraction:
    return Fraction(float(check_shares(share, field)))
