"""The soft threshold: a number between 0 and 1 that each user answers with (Liang & Yi 2024, section 4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats
from mechdesign.base.validation import check_epsilon, check_finite, check_positive

_SOFTNESS = 0.2  # of the threshold: the widest band (Liang & Yi 2024, section 5)
_BAND = 2.0  # in multiples of 1 / epsilon: the widest band (the same)


def threshold(x: ArrayLike, threshold: float, width: float) -> Floats:
    """clip((x - T) / width + 1/2, 0, 1): 1 above the threshold T, 0 below, linear in between.

    Parameters
    ----------
    x, threshold, width : array, float, float
        Values; T and the width, in their unit.

    Returns
    -------
    array of the shape of x

    Examples
    --------
    >>> md.release.query_functions.threshold([0.0, 1.0, 2.0], 1.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    depth = check_finite(x, "x") - float(check_finite(threshold, "threshold"))
    return np.clip(depth / check_positive(width, "width") + 0.5, 0.0, 1.0)


def band_width(threshold: ArrayLike, epsilon: float) -> float:
    """The full width of the band, min(0.2 |T|, 2 / epsilon).

    Parameters
    ----------
    threshold, epsilon : float or (k,) array, float
        T, not 0; nats per unit of the threshold.

    Returns
    -------
    float, in the unit of the threshold

    Examples
    --------
    >>> md.release.query_functions.band_width(100.0, 1.0)
    2.0
    """
    size = float(np.linalg.norm(check_finite(threshold, "threshold")))
    return check_positive(min(_SOFTNESS * size, _BAND / check_epsilon(epsilon)), "threshold")
