r"""Smooth sensitivity in closed form: the least smooth upper bound of the pointwise Lipschitz constant.

    S(x) = sup over x' of K(x') / g(|x - x'|),   g(d) = e^{gamma d} (exponential) or 1 + gamma d (linear)

S >= K, S(x) <= g(|x - x'|) S(x'), and no function with both is smaller anywhere. S falls from sup K (gamma -> 0) to K
(gamma -> infinity). Units: x, widths, bandwidths and horizons in one unit; gamma per that unit; S out per that unit.

Bands. Along the way to a band of slope 1/tau, K depends on the distance u to it alone, and 1 / (K(u) g(r - u)) has no
maximum inside, so S is the larger of K(r) and 1 / (tau g(r)); under exponential growth a horizon adds the place beyond
the kink of K where K falls as fast as g grows, or the kink. Kernel density. S = max of kappa(u) / g(h |u - a|) / h over
u between a and 1, where kappa peaks; where the maximum lies inside, one crossing on the curve of steepest chords
gives it (`gaussian_chord`).
Every value is K(x') / g at some x', or 1 / tau at the band: rounding apart, none exceeds S.
Source: Liang & Yi 2024, Definition 9, Lemmas 4.1, 4.3, 4.5 to 4.8, appendix C.3. Linear growth, horizons, ranges
narrower than their bands and regions are not in the paper, and its first case for kernel densities (Lemmas 4.6 and
4.7), the stationary point of |f'| instead of that of the chord, is not a smooth bound and not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.validation import finite, positive
from mechdesign.errors import InputError
from mechdesign.release import query_functions as queries
from mechdesign.release.gaussian_chord import steepest, towards_peak
from mechdesign.release.growth import Growth, growth_of

Array = NDArray[np.float64]
BoundOfProfile = Callable[[Array, float], Array]


def threshold(
    x: ArrayLike,
    threshold: float,
    width: float,
    gamma: float,
    growth: str = "exponential",
    horizon: float = math.inf,
) -> Array:
    """S of the soft threshold `query_functions.threshold`.

    Without a horizon max(1 / (r + tau), 1 / (tau g(r))), r the distance to the band. With one, pairs further apart
    are not protected and S may be smaller.

    Parameters
    ----------
    x : array
        Values.
    threshold, width : float
        T and tau, in the unit of x.
    gamma : float
        Per unit.
    growth : str
        "exponential" or "linear".
    horizon : float
        In the unit of x.

    Returns
    -------
    array
        Per unit, shape of x.

    Raises
    ------
    InputError
        For width, gamma or horizon not positive, x not finite, or a growth without a name.

    References
    ----------
    Liang & Yi 2024, Lemma 4.1.

    Examples
    --------
    >>> md.release.smooth_sensitivity.threshold([1.0, 3.5], 1.0, 1.0, 1.0).round(6)
    array([1.      , 0.333333])
    """
    tau = positive(width, "width")
    r = queries.band_distance(queries.threshold_depth(x, threshold), tau)
    return _from_band(r, tau, tau, _named(growth, gamma), horizon)


def bounded_range(
    x: ArrayLike, low: float, high: float, width: float, gamma: float, growth: str = "exponential"
) -> Array:
    """S of the soft interval `query_functions.bounded_range`; narrow ranges too.

    Parameters
    ----------
    x : array
        Values.
    low, high, width : float
        In the unit of x.
    gamma : float
        Per unit.
    growth : str
        "exponential" or "linear".

    Returns
    -------
    array
        Per unit, shape of x.

    Raises
    ------
    InputError
        As `threshold`, and unless low < high.

    References
    ----------
    Liang & Yi 2024, appendix C.3.

    Examples
    --------
    >>> md.release.smooth_sensitivity.bounded_range([0.0], 0.0, 10.0, 2.0, 1.0)
    array([0.5])
    """
    tau = positive(width, "width")
    r = queries.band_distance(queries.range_depth(x, low, high), tau)
    return _from_band(r, tau, queries.base(low, high, tau), _named(growth, gamma), math.inf)


def two_way(x: ArrayLike, thresholds: ArrayLike, width: float, gamma: float, growth: str = "exponential") -> Array:
    """S of the soft quadrant `query_functions.two_way`.

    Parameters
    ----------
    x : (..., 2) array
        Points.
    thresholds : (2,) array
        T1 and T2.
    width, gamma : float
        In the unit of x, and per unit.
    growth : str
        "exponential" or "linear".

    Returns
    -------
    (...) array
        Per unit.

    Raises
    ------
    InputError
        As `threshold`, and for thresholds that are not two numbers.

    References
    ----------
    Liang & Yi 2024, Lemma 4.3.

    Examples
    --------
    >>> bool(md.release.smooth_sensitivity.two_way([[1.0, 9.0]], [1.0, 1.0], 1.0, 1.0)[0] > 0)
    True
    """
    return region(queries.two_way_depth(x, thresholds, width), width, gamma, growth)


def region(signed_distance: ArrayLike, width: float, gamma: float, growth: str = "exponential") -> Array:
    """A smooth upper bound of `query_functions.region`.

    It needs |s(x) - s(x')| <= |x - x'|, which true signed distances obey. It is S where the shortest way to the band
    goes straight on to full depth: for thresholds, strips, quadrants, large discs; else it is above S, by 4 % at most
    where that was measured.

    Parameters
    ----------
    signed_distance : array
        s, positive inside.
    width, gamma : float
        In the unit of s, and per unit.
    growth : str
        "exponential" or "linear".

    Returns
    -------
    array
        Per unit, shape of s.

    Raises
    ------
    InputError
        As `threshold`.

    Examples
    --------
    >>> md.release.smooth_sensitivity.region([0.0], 1.0, 1.0)
    array([1.])
    """
    tau = positive(width, "width")
    depth = finite(signed_distance, "signed_distance")
    return _from_band(queries.band_distance(depth, tau), tau, tau, _named(growth, gamma), math.inf)


def kde(x: ArrayLike, center: ArrayLike, bandwidth: float, gamma: float, growth: str = "exponential") -> Array:
    """S of the Gaussian kernel `query_functions.kde`.

    All chords count: with a horizon S would be smaller, and this is still a smooth upper bound.

    Parameters
    ----------
    x : (..., k) array
        Points.
    center : (k,) array
        Where the density is asked for.
    bandwidth : float
        h, in the unit of x.
    gamma : float
        Per unit.
    growth : str
        "exponential" or "linear".

    Returns
    -------
    (...) array
        Per unit.

    Raises
    ------
    InputError
        As `threshold`, and for bandwidth not positive or another center.

    Notes
    -----
    Cost: 130 vector operations of a bisection.

    References
    ----------
    Liang & Yi 2024, Lemma 4.5.

    Examples
    --------
    >>> bool(md.release.smooth_sensitivity.kde([[0.0, 0.0]], [0.0, 0.0], 1.0, 1.0)[0] > 0)
    True
    """
    a = queries.scaled_radius(x, center, bandwidth)
    named = _named(growth, gamma)
    scaled = growth_of(named.name, named.gamma * bandwidth)
    u = towards_peak(a, scaled)
    return np.maximum(steepest(a), steepest(u) * np.exp(-scaled.log(np.abs(u - a)))) / bandwidth


def ridge(x: ArrayLike, direction: ArrayLike, gamma: float, profile: BoundOfProfile) -> Array:
    """S of phi(<direction, x>): |direction| times the S of phi at gamma / |direction|.

    Parameters
    ----------
    x : (..., k) array
        Points.
    direction : (k,) array
        Not zero.
    gamma : float
        Per unit.
    profile : callable
        profile(t, gamma), the S of phi on the line.

    Returns
    -------
    (...) array
        Per unit.

    References
    ----------
    Liang & Yi 2024, Lemma 4.8.

    Examples
    --------
    >>> smooth = md.release.smooth_sensitivity
    >>> smooth.ridge([[1.0, 2.0]], [1.0, 0.0], 1.0, lambda t, gamma: smooth.threshold(t, 1.0, 1.0, gamma))
    array([1.])
    """
    t, length = queries.along(x, direction)
    return length * profile(t, positive(gamma, "gamma") / length)


def radial(x: ArrayLike, center: ArrayLike, gamma: float, profile: BoundOfProfile) -> Array:
    """S of phi(|x - center|): the S of phi on the half-line of radii at gamma.

    A profile that takes all of the line into account is a smooth upper bound, and S where the chords that count stay
    at radii of 0 and more.

    Parameters
    ----------
    x : (..., k) array
        Points.
    center : (k,) array
        Centre.
    gamma : float
        Per unit.
    profile : callable
        profile(r, gamma), the S of phi.

    Returns
    -------
    (...) array
        Per unit.

    References
    ----------
    Liang & Yi 2024, section 4.4.

    Examples
    --------
    >>> smooth = md.release.smooth_sensitivity
    >>> smooth.radial([[3.0, 4.0]], [0.0, 0.0], 1.0, lambda r, gamma: smooth.threshold(r, 5.0, 1.0, gamma))
    array([1.])
    """
    return profile(queries.scaled_radius(x, center, 1.0), positive(gamma, "gamma"))


def _named(growth: str, gamma: float) -> Growth:
    """The growth of a name; a closed form takes no function."""
    if not isinstance(growth, str):
        raise InputError("must be exponential or linear here", field="growth", value=growth)
    return growth_of(growth, gamma)


def _from_band(r: Array, width: float, reach: float, growth: Growth, horizon: float) -> Array:
    """The largest K(u) / g(r - u) over the places u = 0 .. r where it can lie; see the module docstring."""
    limit = positive(horizon, "horizon", infinite=True)
    places = [np.zeros_like(r), r]
    if math.isfinite(limit) and growth.name == "exponential":
        places.append(np.clip(limit - 1 / growth.gamma, max(0.0, limit - reach), np.minimum(r, limit)))
    bounds = [
        queries.band_lipschitz(u, width, reach, limit) * np.exp(-growth.log(r - u))
        for u in (np.clip(place, 0.0, r) for place in places)
    ]
    return np.max(bounds, axis=0)
