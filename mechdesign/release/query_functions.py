r"""Soft queries of a place and their pointwise Lipschitz constants K(x) = sup of |f(x) - f(x')| / |x - x'| over x'.

| query | f(x) | K(x) |
|---|---|---|
| threshold | clip((x - T) / tau + 1/2, 0, 1) | 1 / (r + tau), r the distance to the band [T - tau/2, T + tau/2] |
| bounded_range | clip(min(x - a, b - x) / tau + 1/2, 0, 1) | c / (tau (r + c)), c = min(tau, (b - a + tau) / 2) |
| two_way | region whose corner is rounded by discs | 1 / (r + tau), r = max(\|s\| - tau/2, 0) |
| region | clip(1/2 + s(x) / tau, 0, 1), s a signed distance | at most 1 / (r + tau) |
| kde | e^{-a^2 / 2}, a = \|x - t\| / h | kappa(a) / h, see `gaussian_chord` |

K is the slope of the steepest chord from x, out per unit of distance: not |f'(x)|, but at least that. A horizon
leaves out pairs further apart. tau is the full width of the band in which an answer is between 0 and 1, in the unit of
x. Places of a line are arrays of any shape; of a plane or a space, the last axis holds the coordinates.
Source: Liang & Yi 2024, sections 4.1 (one-way), 4.2 (two-way), 4.3 (kernel density), 4.4 (ridge and radial), appendix
C.3 (bounded range).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.validation import check_epsilon, finite, positive
from mechdesign.errors import InputError

Array = NDArray[np.float64]
Profile = Callable[[Array], Array]

_SOFTNESS = 0.2  # of the threshold: the widest band
_BAND = 2.0  # in multiples of 1 / epsilon: the widest band


def threshold(x: ArrayLike, threshold: float, width: float) -> Array:
    """1 above the threshold T, 0 below, linear in between over `width`.

    Parameters
    ----------
    x : array
        Values.
    threshold, width : float
        In the unit of x.

    Returns
    -------
    array
        Shape of x.

    References
    ----------
    Liang & Yi 2024, section 4.1.

    Examples
    --------
    >>> md.release.query_functions.threshold([0.0, 1.0, 2.0], 1.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    return region(threshold_depth(x, threshold), width)


def band_width(threshold: ArrayLike, epsilon: float) -> float:
    """The full width of the band, min(0.2 |T|, 2 / epsilon).

    Parameters
    ----------
    threshold : float or (k,) array
        T.
    epsilon : float
        Nats per unit.

    Returns
    -------
    float
        In the unit of the threshold.

    Raises
    ------
    InputError
        Where it is not positive.

    References
    ----------
    Liang & Yi 2024, section 5.

    Examples
    --------
    >>> md.release.query_functions.band_width(100.0, 1.0)
    2.0
    """
    size = float(np.linalg.norm(finite(threshold, "threshold")))
    return positive(min(_SOFTNESS * size, _BAND / check_epsilon(epsilon)), "threshold")


def bounded_range(x: ArrayLike, low: float, high: float, width: float) -> Array:
    """1 between low and high, 0 outside, linear over `width` at either end.

    The peak is below 1 where high - low is below `width`.

    Parameters
    ----------
    x : array
        Values.
    low, high, width : float
        In the unit of x.

    Returns
    -------
    array
        Shape of x.

    Raises
    ------
    InputError
        Unless low < high.

    Examples
    --------
    >>> md.release.query_functions.bounded_range([0.0, 5.0], 0.0, 10.0, 2.0)
    array([0.5, 1. ])
    """
    return region(range_depth(x, low, high), width)


def two_way(x: ArrayLike, thresholds: ArrayLike, width: float) -> Array:
    """1 where both coordinates are above their thresholds, rounded at the corner.

    Parameters
    ----------
    x : (..., 2) array
        Points.
    thresholds : (2,) array
        T1 and T2.
    width : float
        In the unit of x.

    Returns
    -------
    (...) array
        Between 0 and 1.

    References
    ----------
    Liang & Yi 2024, section 4.2.

    Examples
    --------
    >>> md.release.query_functions.two_way([[9.0, 9.0], [0.0, 9.0]], [1.0, 1.0], 1.0)
    array([1., 0.])
    """
    return region(two_way_depth(x, thresholds, width), width)


def region(signed_distance: ArrayLike, width: float) -> Array:
    """clip(1/2 + s / width, 0, 1) of a signed distance s.

    Parameters
    ----------
    signed_distance : array
        s, positive inside.
    width : float
        In its unit.

    Returns
    -------
    array
        Shape of s.

    Examples
    --------
    >>> md.release.query_functions.region([0.0, 1.0], 1.0)
    array([0.5, 1. ])
    """
    return np.clip(finite(signed_distance, "signed_distance") / positive(width, "width") + 0.5, 0.0, 1.0)


def kde(x: ArrayLike, center: ArrayLike, bandwidth: float) -> Array:
    """e^{-|x - t|^2 / (2 h^2)}, what a person at x adds to a kernel density at t, times n.

    Parameters
    ----------
    x : (..., k) array
        Points.
    center : (k,) array
        t.
    bandwidth : float
        h.

    Returns
    -------
    (...) array
        The kernel.

    References
    ----------
    Liang & Yi 2024, section 4.3.

    Examples
    --------
    >>> md.release.query_functions.kde([[0.0, 0.0]], [0.0, 0.0], 1.0)
    array([1.])
    """
    return np.exp(-(scaled_radius(x, center, bandwidth) ** 2) / 2)


def ridge(x: ArrayLike, direction: ArrayLike, profile: Profile) -> Array:
    """profile(<direction, x>).

    Parameters
    ----------
    x : (..., k) array
        Points.
    direction : (k,) array
        Direction.
    profile : callable
        A function of numbers.

    Returns
    -------
    (...) array
        Its values.

    Examples
    --------
    >>> md.release.query_functions.ridge([[1.0, 2.0]], [1.0, 1.0], lambda t: t**2)
    array([9.])
    """
    return profile(along(x, direction)[0])


def radial(x: ArrayLike, center: ArrayLike, profile: Profile) -> Array:
    """profile(|x - center|).

    Parameters
    ----------
    x : (..., k) array
        Points.
    center : (k,) array
        Centre.
    profile : callable
        A function of radii.

    Returns
    -------
    (...) array
        Its values.

    Examples
    --------
    >>> md.release.query_functions.radial([[3.0, 4.0]], [0.0, 0.0], lambda r: 2 * r)
    array([10.])
    """
    return profile(scaled_radius(x, center, 1.0))


def threshold_depth(x: ArrayLike, threshold: float) -> Array:
    """Signed distance x - T of the half-line above T.

    Parameters
    ----------
    x : array
        Values.
    threshold : float
        T.

    Returns
    -------
    array
        Shape of x.

    Examples
    --------
    >>> md.release.query_functions.threshold_depth([0.0, 3.0], 1.0)
    array([-1.,  2.])
    """
    return finite(x, "x") - float(finite(threshold, "threshold"))


def range_depth(x: ArrayLike, low: float, high: float) -> Array:
    """min(x - low, high - x), the signed distance of an interval.

    Parameters
    ----------
    x : array
        Values.
    low, high : float
        In the unit of x.

    Returns
    -------
    array
        Shape of x, positive inside.

    Raises
    ------
    InputError
        Unless low < high.

    Examples
    --------
    >>> md.release.query_functions.range_depth([1.0, 12.0], 0.0, 10.0)
    array([ 1., -2.])
    """
    ends = finite([low, high], "low and high")
    if not ends[0] < ends[1]:
        raise InputError("must be below high", field="low", value=f"{low} and {high}")
    place = finite(x, "x")
    return np.minimum(place - ends[0], ends[1] - place)


def two_way_depth(x: ArrayLike, thresholds: ArrayLike, width: float) -> Array:
    """Signed distance from the middle of the band of `two_way`.

    The region is the quadrant above c = T + (1 + 1/sqrt 2) tau grown by discs of radius tau (1/2 + 1/sqrt 2): its
    sides are the two thresholds, and the band around its rounded corner begins in the corner (T1, T2) itself.

    Parameters
    ----------
    x : (..., 2) array
        Points.
    thresholds : (2,) array
        T1 and T2.
    width : float
        tau, in the unit of x.

    Returns
    -------
    (...) array
        Positive inside.

    Examples
    --------
    >>> bool(md.release.query_functions.two_way_depth([[9.0, 9.0]], [1.0, 1.0], 1.0)[0] > 0)
    True
    """
    tau, corner = positive(width, "width"), finite(thresholds, "thresholds")
    place = finite(x, "x")
    if corner.shape != (2,) or place.ndim == 0 or place.shape[-1] != 2:
        shapes = f"shape {corner.shape} for x of shape {place.shape}"
        raise InputError("must have shape (2,), for places (..., 2)", field="thresholds", value=shapes)
    inner = tau / math.sqrt(2)
    above = place - (corner + inner + tau / 2)
    outside = np.hypot(*np.moveaxis(np.minimum(above, 0.0), -1, 0))
    return np.where(outside > 0, -outside, above.min(axis=-1)) + inner + tau / 2


def band_distance(signed_distance: Array, width: float) -> Array:
    """The distance to a band, max(|s| - width / 2, 0).

    Parameters
    ----------
    signed_distance : array
        From the middle of the band.
    width : float
        Full width, in its unit.

    Returns
    -------
    array
        Shape of the distances.

    Examples
    --------
    >>> md.release.query_functions.band_distance(np.array([0.0, 2.0]), 1.0)
    array([0. , 1.5])
    """
    return np.maximum(np.abs(signed_distance) - width / 2, 0.0)


def base(low: float, high: float, width: float) -> float:
    """The way from the edge of a band to the nearest peak: `width`, or half of what a narrow range and its bands
    cover.

    Parameters
    ----------
    low, high, width : float
        Of a bounded range, in one unit.

    Returns
    -------
    float
        In that unit.

    Examples
    --------
    >>> md.release.query_functions.base(0.0, 10.0, 2.0)
    2.0
    """
    return min(width, (high - low + width) / 2)


def band_lipschitz(r: Array, width: float, reach: float, horizon: float) -> Array:
    """The steepest chord at a distance from a band of slope 1 / width that rises over `reach`, within a horizon.

    Parameters
    ----------
    r : array
        Distances to the band.
    width, reach, horizon : float
        In the unit of r.

    Returns
    -------
    array
        Per unit, shape of r.

    Examples
    --------
    >>> md.release.query_functions.band_lipschitz(np.array([0.0, 1.0]), 2.0, 2.0, np.inf)
    array([0.5       , 0.33333333])
    """
    limit = positive(horizon, "horizon", infinite=True)
    free = reach / (width * (r + reach))
    if math.isinf(limit):
        return free
    short = np.where(r > 0, np.maximum(limit - r, 0.0) / (width * limit), 1 / width)
    return np.where(r + reach <= limit, free, short)


def along(x: ArrayLike, direction: ArrayLike) -> tuple[Array, float]:
    """<direction, x> and |direction|.

    Parameters
    ----------
    x : (..., k) array
        Points.
    direction : (k,) array
        Not zero.

    Returns
    -------
    (...) array and float
        The product, and the length.

    Raises
    ------
    InputError
        For shapes that do not fit and for a zero direction.

    Examples
    --------
    >>> product, length = md.release.query_functions.along([[1.0, 2.0]], [3.0, 4.0])
    >>> product, float(length)
    (array([11.]), 5.0)
    """
    place, way = finite(x, "x"), finite(direction, "direction")
    if way.ndim != 1 or place.ndim == 0 or place.shape[-1] != len(way) or not way.any():
        shapes = f"shape {way.shape} for x of shape {place.shape}"
        raise InputError("must be a direction (k,) that is not 0, for places (..., k)", field="direction", value=shapes)
    return place @ way, float(np.linalg.norm(way))


def scaled_radius(x: ArrayLike, center: ArrayLike, bandwidth: float) -> Array:
    """|x - t| / h.

    Parameters
    ----------
    x : (..., k) array
        Points.
    center : (k,) array
        t.
    bandwidth : float
        h.

    Returns
    -------
    (...) array
        Radii.

    Raises
    ------
    InputError
        For shapes that do not fit.

    Examples
    --------
    >>> md.release.query_functions.scaled_radius([[3.0, 4.0]], [0.0, 0.0], 2.0)
    array([2.5])
    """
    h, place, middle = positive(bandwidth, "bandwidth"), finite(x, "x"), finite(center, "center")
    if middle.ndim != 1 or place.ndim == 0 or place.shape[-1] != len(middle):
        shapes = f"shape {middle.shape} for x of shape {place.shape}"
        raise InputError("must have shape (k,), for places (..., k)", field="center", value=shapes)
    return np.linalg.norm(place - middle, axis=-1) / h
