"""Smooth sensitivity in closed form: the least smooth upper bound of a pointwise Lipschitz constant (see `band`)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.validation import finite, positive
from mechdesign.release.band import band_bound, band_distance
from mechdesign.release.growth import Growth, GrowthName


def threshold(
    x: ArrayLike,
    threshold: float,
    width: float,
    gamma: float,
    growth: GrowthName = "exponential",
    horizon: float = math.inf,
) -> NDArray[np.float64]:
    """S of the soft threshold `query_functions.threshold`.

    It is max(1 / (r + tau), 1 / (tau g(r))), r the distance to the band. With a horizon pairs further apart are not
    protected and S may be smaller.

    Parameters
    ----------
    x : array
        Values.
    threshold, width : float
        T and tau, in the unit of x.
    gamma : float
        Per unit.
    growth : {"exponential", "linear"}
        Growth of S.
    horizon : float
        In the unit of x.

    Returns
    -------
    array
        Per unit, shape of x.

    References
    ----------
    Liang & Yi 2024, Lemma 4.1.

    Examples
    --------
    >>> md.release.smooth_sensitivity.threshold([1.0, 3.5], 1.0, 1.0, 1.0).round(6)
    array([1.      , 0.333333])
    """
    tau = positive(width, "width")
    r = band_distance(finite(x, "x") - float(finite(threshold, "threshold")), tau)
    return band_bound(r, tau, tau, Growth(name=growth, gamma=gamma), horizon)
