r"""Input perturbation: every user reports y_i = x_i + Lap(1 / eps) and the query is asked of y. What it costs in error.

    hard rule  1{x > T}                       E = 1 - beta if x > T, beta if x <= T,  beta = e^{-eps |x - T|} / 2
    soft rule  clip((x - T) / width + 1/2, 0, 1)    E, E^2: integrals of P(y > t) over the band T -/+ width / 2

The mean of n answers has bias (1/n) sum (E_i - f(x_i)) and mean squared error (1/n^2) sum Var_i + bias^2; a count n
times and n^2 times that. The bias depends on the secrets, so it cannot be removed, and does not fall with n.
Kernel exp(-|x - t|^2 / (2 h^2)), k = eps h, Phi the normal cdf:

    planar Laplace noise on x = t   E = k^2 - k^3 sqrt(pi / 2) e^{k^2 / 2} erfc(k / sqrt 2)
    on a distance l of x from t     E = k^2 integral of s e^{-k s} e^{-(v^2 + s^2) / 2} I_0(v s) ds, v = l / h
    noise on a distance l, v = l/h  E = k sqrt(pi / 2) e^{k^2 / 2} [e^{-k v} Phi(v - k) + e^{k v} Phi(-v - k)]

Source: paper 002, section 4.1.1 (hard rule) and section 5 (the others are simulated there; their formulas are ours).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import check_epsilon
from mechdesign.errors import InputError

Array = NDArray[np.float64]
Aggregate = Literal["mean", "count"]

_SIGHT = 10.0  # bandwidths: kernels further away are below e^-50
_NODES = 8  # of the Gauss-Legendre rule on a panel


def bias(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0, aggregate: Aggregate = "mean") -> float:
    """Expected error of the aggregate of the answers after noise, relative to that of the rule at x itself.

    x (n,), threshold and width in one unit, epsilon in nats per unit; width 0 is the hard rule, else the soft one, the
    truth being that of the same rule. Raises: InputError for what is not finite, a negative width or an empty x.
    """
    at, scale = _checked(x, threshold, width, aggregate)
    mean, _ = moments(at, threshold, epsilon, width=width)
    return float((mean - rule(at, threshold, width=width)).sum()) * scale


def mse(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0, aggregate: Aggregate = "mean") -> float:
    """Expected squared error of the aggregate: the variance of independent answers plus the squared bias; as `bias`."""
    at, scale = _checked(x, threshold, width, aggregate)
    mean, square = moments(at, threshold, epsilon, width=width)
    spread = float((square - mean**2).sum())
    return scale**2 * spread + bias(at, threshold, epsilon, width=width, aggregate=aggregate) ** 2


def rule(x: ArrayLike, threshold: float, *, width: float = 0.0) -> Array:
    """f(x): 1 above the threshold and 0 elsewhere, or with a linear band of full width `width` around it."""
    offset = np.asarray(x, float) - threshold
    if width == 0:
        return (offset > 0).astype(float)
    return np.clip(offset / width + 0.5, 0.0, 1.0)


def moments(x: ArrayLike, threshold: float, epsilon: float, *, width: float = 0.0) -> tuple[Array, Array]:
    """E f(y) and E f(y)^2 for y = x + Lap(1 / epsilon), each of the shape of x; without cancellation for any width > 0.

    Over the part of the band above x, P(y > t) = e^{-eps (t - x)} / 2; below x it is 1 - e^{-eps (x - t)} / 2.
    """
    from scipy.special import gammainc

    at, level = np.asarray(x, float) - threshold, check_epsilon(epsilon)
    if width == 0:
        beta = np.exp(-level * np.abs(at)) / 2
        mean = np.where(at > 0, 1 - beta, beta)
        return mean, mean
    split = np.clip(at, -width / 2, width / 2)
    above, below = width / 2 - split, width / 2 + split
    up, down = np.exp(-level * (split - at).clip(0)) / 2, np.exp(-level * (at - split).clip(0)) / 2
    one, other = gammainc(1, level * above), gammainc(1, level * below)
    mean = (up * one / level + below - down * other / level) / width
    upper = up * (gammainc(2, level * above) / level**2 + below * one / level)
    lower = below**2 / 2 - down * (below * other / level - gammainc(2, level * below) / level**2)
    return mean, 2 * (upper + lower) / width**2


def kernel_after_noise(distance: ArrayLike, epsilon: float, bandwidth: float) -> Array:
    """Expected kernel after planar Laplace noise on a secret at `distance` l >= 0 from the centre, shape of l.

    epsilon in nats per unit, bandwidth in that unit. By a Gauss-Legendre rule over the radii where the kernel is above
    e^-50, in panels of at most a bandwidth and two nats: a relative 1e-10 or e^-50. Cost: that rule for every l.
    """
    from scipy.special import i0e

    k = check_epsilon(epsilon) * check_epsilon(bandwidth, "bandwidth")
    v = np.asarray(distance, float) / bandwidth
    low = np.maximum(v - _SIGHT, 0.0)
    panels = 2 * math.ceil(_SIGHT * max(1.0, k / 2))
    width = (v + _SIGHT - low) / panels
    total = np.zeros_like(v)
    for node, weight in zip(*np.polynomial.legendre.leggauss(_NODES), strict=True):
        for panel in range(panels):
            s = low + width * (panel + (node + 1) / 2)
            total += weight / 2 * width * s * np.exp(-k * s - (v - s) ** 2 / 2) * i0e(v * s)
    return k**2 * total


def kernel_of_noisy_distance(distance: ArrayLike, epsilon: float, bandwidth: float) -> Array:
    """Expected exp(-(l + Lap(1 / epsilon))^2 / (2 h^2)) for distances l >= 0, in the unit of the bandwidth h."""
    from scipy.special import log_ndtr

    k = check_epsilon(epsilon) * check_epsilon(bandwidth, "bandwidth")
    ratio = np.asarray(distance, float) / bandwidth
    sides = [np.exp(k**2 / 2 - sign * k * ratio + log_ndtr(sign * ratio - k)) for sign in (1, -1)]
    return k * math.sqrt(math.pi / 2) * (sides[0] + sides[1])


def _checked(x: ArrayLike, threshold: float, width: float, aggregate: str) -> tuple[Array, float]:
    """The secrets (n,) and the factor of a sum over them."""
    at = np.asarray(x, float)
    if at.ndim != 1 or len(at) == 0 or not np.isfinite(at).all():
        raise InputError("must be finite, one per user", field="x", value=at.shape, remedy="pass an (n,) array")
    if not math.isfinite(threshold):
        raise InputError("must be finite", field="threshold", value=threshold, remedy="give it in the unit of x")
    if not (math.isfinite(width) and width >= 0):
        raise InputError("must be finite and not negative", field="width", value=width, remedy="use 0 for a hard rule")
    if aggregate not in ("mean", "count"):
        raise InputError("unknown aggregate", field="aggregate", value=aggregate, remedy="use mean or count")
    return at, 1 / len(at) if aggregate == "mean" else 1.0
