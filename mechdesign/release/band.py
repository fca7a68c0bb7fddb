r"""Pointwise Lipschitz constants and their smooth sensitivity, of an answer that is linear across a band.

    (1)  K(x) = sup of |f(x) - f(x')| / |x - x'| over x'    the steepest chord from x, at least |f'(x)|
    (2)  S(x) = sup of K(x') / g(|x - x'|) over x'          g(d) = e^{gamma d} (exponential) or 1 + gamma d (linear)

S is the smallest function with S >= K and S(x) <= g(|x - x'|) S(x'). x, widths and horizons have one unit, and gamma
and S are per that unit. A horizon leaves out pairs further apart.
Source: Liang & Yi 2024, Definition 9, Lemma 4.1; linear growth and horizons are ours.
"""

from __future__ import annotations

import math

import numpy as np

from mechdesign.base.arrays import Floats
from mechdesign.base.validation import check_positive
from mechdesign.release.growth import Growth


def band_distance(depth: Floats, width: float) -> Floats:
    """The distance to a band of full width `width`, max(|s| - width / 2, 0), from the distances s to its middle."""
    return np.maximum(np.abs(depth) - width / 2, 0.0)


def band_lipschitz(r: Floats, width: float, rise: float, horizon: float = math.inf) -> Floats:
    """K at the distances r from a band of slope 1 / width that rises over `rise`."""
    limit = check_positive(horizon, "horizon", infinite=True)
    # (1): the steepest chord from r ends where the band has risen by all of `rise`, at r + rise.
    free = rise / (width * (r + rise))
    if math.isinf(limit):
        return free
    # With a horizon the chord may end inside the band, at r + limit.
    short = np.where(r > 0, np.maximum(limit - r, 0.0) / (width * limit), 1 / width)
    return np.where(r + rise <= limit, free, short)


def band_bound(r: Floats, width: float, rise: float, growth: Growth, horizon: float = math.inf) -> Floats:
    """S at the distances r from that band: the largest K(u) / g(r - u) over the u from 0 to r where it can lie."""
    limit = check_positive(horizon, "horizon", infinite=True)
    # (2) without a horizon: 1 / (K(u) g(r - u)) has no maximum inside, so S is the larger of K(r) and 1 / (width g(r)).
    places = [np.zeros_like(r), r]
    # With one, exponential growth adds a candidate: where K falls as fast as g grows beyond the kink of K, or the kink.
    if math.isfinite(limit) and growth.name == "exponential":
        places.append(np.clip(limit - 1 / growth.gamma, max(0.0, limit - rise), np.minimum(r, limit)))
    bounds = [
        band_lipschitz(u, width, rise, limit) * np.exp(-growth.log(r - u))
        for u in (np.clip(place, 0.0, r) for place in places)
    ]
    return np.max(bounds, axis=0)
