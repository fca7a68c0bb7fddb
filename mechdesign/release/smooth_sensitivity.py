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

from mechdesign.base.arguments import finite, positive
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
    """S of the soft threshold `queries.threshold`, shape of x.

    Without a horizon max(1 / (r + tau), 1 / (tau g(r))), r the distance to the band (Liang & Yi 2024, Lemma 4.1). With
    one, pairs further apart are not protected and S may be smaller.
    Raises: InputError for width, gamma or horizon not positive, x not finite, or a growth without a name.
    """
    tau = positive(width, "width")
    r = queries.band_distance(queries.threshold_depth(x, threshold), tau)
    return _from_band(r, tau, tau, _named(growth, gamma), horizon)


def bounded_range(
    x: ArrayLike, low: float, high: float, width: float, gamma: float, growth: str = "exponential"
) -> Array:
    """S of the soft interval `queries.bounded_range`, shape of x (Liang & Yi 2024, appendix C.3; narrow ranges too).

    Raises: as `threshold`, and InputError unless low < high.
    """
    tau = positive(width, "width")
    r = queries.band_distance(queries.range_depth(x, low, high), tau)
    return _from_band(r, tau, queries.base(low, high, tau), _named(growth, gamma), math.inf)


def two_way(x: ArrayLike, thresholds: ArrayLike, width: float, gamma: float, growth: str = "exponential") -> Array:
    """S of the soft quadrant `queries.two_way`; x (..., 2), result (...) (Liang & Yi 2024, Lemma 4.3).

    Raises: as `threshold`, and InputError for thresholds that are not two numbers.
    """
    return region(queries.two_way_depth(x, thresholds, width), width, gamma, growth)


def region(signed_distance: ArrayLike, width: float, gamma: float, growth: str = "exponential") -> Array:
    """A smooth upper bound of `queries.region`, shape of the signed distance s (positive inside, in the unit of width).

    It needs |s(x) - s(x')| <= |x - x'|, which true signed distances obey. It is S where the shortest way to the band
    goes straight on to full depth: for thresholds, strips, quadrants, large discs; else it is above S, by 4 % at most
    where that was measured. Raises: as `threshold`.
    """
    tau = positive(width, "width")
    depth = finite(signed_distance, "signed_distance")
    return _from_band(queries.band_distance(depth, tau), tau, tau, _named(growth, gamma), math.inf)


def kde(x: ArrayLike, center: ArrayLike, bandwidth: float, gamma: float, growth: str = "exponential") -> Array:
    """S of the Gaussian kernel `queries.kde`; x (..., k), result (...) (Liang & Yi 2024, Lemma 4.5; both growths).

    All chords count: with a horizon S would be smaller, and this is still a smooth upper bound. Cost: 130 vector
    operations of a bisection. Raises: as `threshold`, and InputError for bandwidth not positive or another center.
    """
    a = queries.scaled_radius(x, center, bandwidth)
    named = _named(growth, gamma)
    scaled = growth_of(named.name, named.gamma * bandwidth)
    u = towards_peak(a, scaled)
    return np.maximum(steepest(a), steepest(u) * np.exp(-scaled.log(np.abs(u - a)))) / bandwidth


def ridge(x: ArrayLike, direction: ArrayLike, gamma: float, profile: BoundOfProfile) -> Array:
    """S of phi(<direction, x>): |direction| times the S of phi at gamma / |direction|; x (..., k), result (...).

    profile(t, gamma) is the S of phi on the line: `lambda t, g: threshold(t, 3.0, 1.0, g)`.
    Source: Liang & Yi 2024, Lemma 4.8.
    """
    t, length = queries.along(x, direction)
    return length * profile(t, positive(gamma, "gamma") / length)


def radial(x: ArrayLike, center: ArrayLike, gamma: float, profile: BoundOfProfile) -> Array:
    """S of phi(|x - center|): the S of phi on the half-line of radii at gamma; x (..., k), result (...).

    A profile(r, gamma) that takes all of the line into account is a smooth upper bound, and S where the chords that
    count stay at radii of 0 and more. Source: Liang & Yi 2024, section 4.4.
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
