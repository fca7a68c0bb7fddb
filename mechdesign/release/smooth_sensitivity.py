"""Smooth sensitivity in closed form: the least smooth upper bound of a pointwise Lipschitz constant (see `band`)."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats
from mechdesign.base.validation import check_finite, check_positive
from mechdesign.release.band import band_bound, band_distance
from mechdesign.release.growth import Growth, GrowthName


def threshold(
    x: ArrayLike,
    threshold: float,
    width: float,
    gamma: float,
    growth: GrowthName = "exponential",
    horizon: float = math.inf,
) -> Floats:
    """S of the soft threshold `query_functions.threshold` (Liang & Yi 2024, Lemma 4.1).

    Pairs of values beyond the horizon are not protected.

    Parameters
    ----------
    x, threshold, width, horizon : array, float, float, float
        Values, T, tau and the horizon, in the unit of x.
    gamma, growth : float, {"exponential", "linear"}
        Per unit; growth of S.

    Returns
    -------
    array of the shape of x, per unit

    Examples
    --------
    >>> md.release.smooth_sensitivity.threshold([1.0, 3.5], 1.0, 1.0, 1.0).round(6)
    array([1.      , 0.333333])
    """
    tau = check_positive(width, "width")
    # Without a horizon S = max(1 / (r + tau), 1 / (tau g(r))): the answer rises by 1 over the width tau of the band.
    r = band_distance(check_finite(x, "x") - float(check_finite(threshold, "threshold")), tau)
    return band_bound(r, tau, tau, Growth(name=growth, gamma=gamma), horizon)
