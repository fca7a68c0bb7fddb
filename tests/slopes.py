"""Pointwise Lipschitz constants K of soft queries, by the formulas of `query_functions`: what smooth bounds are for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.validation import finite, positive
from mechdesign.release import query_functions as queries
from mechdesign.release.gaussian_chord import steepest

Array = NDArray[np.float64]
Profile = Callable[[Array], Array]


def threshold_lipschitz(x: ArrayLike, threshold: float, width: float, *, horizon: float = math.inf) -> Array:
    """K of `threshold`; shape of x. Within a horizon L: (L - r) / (tau L) for r > L - tau, 0 for r >= L."""
    tau = positive(width, "width")
    return queries.band_lipschitz(queries.band_distance(queries.threshold_depth(x, threshold), tau), tau, tau, horizon)


def bounded_range_lipschitz(x: ArrayLike, low: float, high: float, width: float) -> Array:
    """K of `bounded_range`; shape of x."""
    tau = positive(width, "width")
    away = queries.band_distance(queries.range_depth(x, low, high), tau)
    return queries.band_lipschitz(away, tau, queries.base(low, high, tau), math.inf)


def two_way_lipschitz(x: ArrayLike, thresholds: ArrayLike, width: float) -> Array:
    """K of `two_way`; x (..., 2), result (...)."""
    return region_lipschitz(queries.two_way_depth(x, thresholds, width), width)


def region_lipschitz(signed_distance: ArrayLike, width: float, *, horizon: float = math.inf) -> Array:
    """An upper bound of K of `region`; shape of s. It is K where the shortest way to the band goes straight on to its
    other side at full depth, as it does for half-planes and outside convex regions that are deep enough.
    """
    tau = positive(width, "width")
    away = queries.band_distance(finite(signed_distance, "signed_distance"), tau)
    return queries.band_lipschitz(away, tau, tau, horizon)


def kde_lipschitz(x: ArrayLike, center: ArrayLike, bandwidth: float) -> Array:
    """K of `kde`; x (..., k), result (...). Global constant e^{-1/2} / h."""
    return steepest(queries.scaled_radius(x, center, bandwidth)) / bandwidth


def ridge_lipschitz(x: ArrayLike, direction: ArrayLike, profile_lipschitz: Profile) -> Array:
    """|direction| K of the profile at <direction, x>; x (..., k), result (...)."""
    t, length = queries.along(x, direction)
    return length * profile_lipschitz(t)


def radial_lipschitz(x: ArrayLike, center: ArrayLike, profile_lipschitz: Profile) -> Array:
    """K of the profile at |x - center|, over radii that are not negative; x (..., k), result (...)."""
    return profile_lipschitz(queries.scaled_radius(x, center, 1.0))
