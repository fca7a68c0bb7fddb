r"""Input perturbation: every user reports y_i = x_i + Lap(1 / eps), and the query is applied to y.

    hard rule  1{x > T}                       E = 1 - beta if x > T, beta if x <= T,  beta = e^{-eps |x - T|} / 2
    soft rule  clip((x - T) / width + 1/2, 0, 1)    E, E^2: integrals of P(y > t) over the band T -/+ width / 2

The mean of n answers has bias (1/n) sum (E_i - f(x_i)) and mean squared error (1/n^2) sum Var_i + bias^2. A count has
n times the bias and n^2 times the error. The bias depends on the secrets: it cannot be removed, and stays as n grows.
Source: Liang & Yi 2024, section 4.1.1 (hard rule) and section 5 (it simulates the soft rule; the formula here is ours).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Vector
from mechdesign.base.validation import check_epsilon, check_finite
from mechdesign.errors import InputError


def bias(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0) -> float:
    """The bias of the mean of the answers, relative to the mean of the rule at the secrets x (n,).

    Width 0 is the hard rule, else the soft one; epsilon in nats per unit of x.
    """
    secrets = _check_secrets(x, threshold, width)
    mean, _ = moments(secrets, threshold, epsilon, width=width)
    return float((mean - rule(secrets, threshold, width=width)).mean())


def mse(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0) -> float:
    """The expected squared error of the mean: the variance of independent answers plus the squared bias."""
    secrets = _check_secrets(x, threshold, width)
    mean, square = moments(secrets, threshold, epsilon, width=width)
    variance = float((square - mean**2).sum()) / len(secrets) ** 2
    return variance + bias(secrets, threshold, epsilon, width=width) ** 2


def rule(x: ArrayLike, threshold: float, *, width: float = 0.0) -> Floats:
    """f(x): 1 above the threshold and 0 elsewhere, or with a linear band of full width `width` around it."""
    offset = np.asarray(x, float) - threshold
    if width == 0:
        return (offset > 0).astype(float)
    return np.clip(offset / width + 0.5, 0.0, 1.0)


def moments(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0) -> tuple[Floats, Floats]:
    """E f(y) and E f(y)^2 for y = x + Lap(1 / epsilon), without cancellation for any width > 0."""
    from scipy.special import gammainc

    offset, level = np.asarray(x, float) - threshold, check_epsilon(epsilon)
    if width == 0:
        beta = np.exp(-level * np.abs(offset)) / 2
        mean = np.where(offset > 0, 1 - beta, beta)
        return mean, mean
    # The band is split at x: above x, P(y > t) = e^{-eps (t - x)} / 2; below x it is 1 - e^{-eps (x - t)} / 2.
    # gammainc(k, .) has the integrals of t^{k-1} e^{-t} without cancellation.
    split = np.clip(offset, -width / 2, width / 2)
    above, below = width / 2 - split, width / 2 + split
    up, down = np.exp(-level * (split - offset).clip(0)) / 2, np.exp(-level * (offset - split).clip(0)) / 2
    one, other = gammainc(1, level * above), gammainc(1, level * below)
    mean = (up * one / level + below - down * other / level) / width
    upper = up * (gammainc(2, level * above) / level**2 + below * one / level)
    lower = below**2 / 2 - down * (below * other / level - gammainc(2, level * below) / level**2)
    return mean, 2 * (upper + lower) / width**2


def _check_secrets(x: ArrayLike, threshold: float, width: float) -> Vector:
    secrets = check_finite(x, "x")
    check_finite(threshold, "threshold")
    if secrets.ndim != 1 or len(secrets) == 0:
        raise InputError("must be one number per user, (n,)", field="x", value=secrets.shape)
    if not (math.isfinite(width) and width >= 0):
        raise InputError("must be finite and not negative", field="width", value=width)
    return secrets
