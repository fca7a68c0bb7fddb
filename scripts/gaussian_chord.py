r"""The steepest chord of a Gaussian.

    kappa(a) = max over v >= 0 of |phi(a) - phi(v)| / |a - v|,    phi(u) = e^{-u^2 / 2}

The chord from a that is steepest ends where it is tangent, phi(a) - phi(v) = v (v - a) phi(v). With m = (a + v) / 2 and
x = (v - a) m that is m^2 E2(x) = 1/2, E2(x) = (e^x - 1 - x) / x^2, so the pairs (a, v) are one curve in x:

    m = 1 / sqrt(2 E2(x)),   a = m - x / (2 m),   v = m + x / (2 m),   kappa = phi(v) m E1(x),   E1(x) = (e^x - 1) / x
    (ln kappa)'(a) = m (E2(x) - E2(-x)) / E1(-x)

a falls in x; x = 0 is the inflection a = v = 1, where nothing cancels, and a = 0 is x = 1.2564..., the root of
e^x = 1 + 2x. The slope of ln kappa falls from 0.6308 at a = 0 to 0 at a = 1; beyond, its size rises to 0.36334 at
a = 2.52847 and falls again.
Source: Liang & Yi 2024, section 4.3 (Claim 4.4 and Lemma 4.5: all chords that count lie on the ray from the centre).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mechdesign.release.growth import Growth

Array = NDArray[np.float64]

_SERIES = 0.5  # |x| under which E2 is summed as a series: the subtraction would cost two digits or more
_TERMS = [1 / math.factorial(k + 2) for k in range(16)]
_HALVINGS = 64  # of a bracket: to the last digit of a double
_FAR = 1e8  # beyond, v < 1e-8 and kappa(a) = 1 / a in double precision
_EDGE = 8.0  # turning points of the slope are searched for x in [-8, 0]: both lie in [-4, 0]


def exp_quotient(x: Array) -> Array:
    """E1(x) = (e^x - 1) / x, 1 at 0."""
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.expm1(safe) / safe)


def second_exp_quotient(x: Array) -> Array:
    """E2(x) = (e^x - 1 - x) / x^2, 1/2 at 0."""
    is_small = np.abs(x) < _SERIES
    small, large = np.where(is_small, x, 0.0), np.where(is_small, 1.0, x)
    series = np.zeros_like(small)
    for term in reversed(_TERMS):
        series = series * small + term
    return np.where(is_small, series, (np.expm1(large) - large) / large**2)


def curve(x: Array) -> tuple[Array, Array, Array]:
    """a, the end v of its steepest chord, and the slope of ln kappa at a, for the parameter x."""
    middle = 1 / np.sqrt(2 * second_exp_quotient(x))
    half = x / (2 * middle)
    slope = middle * (second_exp_quotient(x) - second_exp_quotient(-x)) / exp_quotient(-x)
    return middle - half, middle + half, slope


def tangent(a: Array) -> Array:
    """The end v of the steepest chord from a >= 0, by bisection along the curve. Cost: 64 steps on the array."""
    start = np.minimum(a, _FAR)
    low, high = np.where(start < 1, 0.0, -(start**2) / 2), np.where(start < 1, _origin(), 0.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        middle = 1 / np.sqrt(2 * second_exp_quotient(x))
        # a falls in x, so a point beyond `start` raises the lower end.
        is_beyond = middle - x / (2 * middle) > start
        low, high = np.where(is_beyond, x, low), np.where(is_beyond, high, x)
    x = (low + high) / 2
    return np.maximum(start + x * np.sqrt(2 * second_exp_quotient(x)), 0.0)


def chord(a: Array, v: Array) -> Array:
    """|phi(a) - phi(v)| / |a - v| without cancellation; u phi(u) where both are u."""
    middle = (a + v) / 2
    x = (v - a) * middle
    return np.exp(-(np.minimum(a, v) ** 2) / 2) * middle * exp_quotient(-np.abs(x))


def steepest(a: Array) -> Array:
    """kappa(a) for a >= 0."""
    return chord(a, tangent(a))


def towards_peak(a: Array, growth: Growth) -> Array:
    """The u between a and 1 with the largest kappa(u) / g(|u - a|), or a point where that is not above kappa(a).

    a >= 0, distances and growth in bandwidths. From a < 1 the quotient rises towards 1 and then falls, so one
    crossing decides. From a > 1 it may fall first; beyond its first crossing, seen from 1, it falls to one minimum and
    rises up to a: the crossing or a itself. (Both growths: 1 / |(ln kappa)'| is compared with 1 / gamma, or with
    1 / gamma + |u - a|; either the difference turns once on either side of 1.)
    """
    inward = a < 1
    near, far = np.zeros_like(a), np.where(inward, _origin(), _turn(growth.name))
    for _ in range(_HALVINGS):
        x = (near + far) / 2
        u, _, slope = curve(x)
        rate = np.full_like(a, growth.gamma)
        if growth.name == "linear":
            rate = rate / (1 + growth.gamma * np.abs(u - a))
        nearer = np.where(inward, (u < a) | (slope > rate), (u > a) | (-slope > rate))
        near, far = np.where(nearer, near, x), np.where(nearer, x, far)
    u = curve((near + far) / 2)[0]
    return np.where(inward, np.maximum(u, a), np.minimum(u, a))


@cache
def _origin() -> float:
    """The parameter x of a = 0."""
    from scipy.optimize import brentq

    return float(brentq(lambda x: math.expm1(x) - 2 * x, 1.0, 1.5, xtol=1e-15))


@cache
def _turn(name: str) -> float:
    """The parameter x < 0 up to which a crossing is a maximum.

    For exponential growth -(ln kappa)' is largest there (a = 2.52847), for linear growth a - 1 / (ln kappa)' is
    smallest (a = 2.09972).
    """
    from scipy.optimize import minimize_scalar

    def height(x: float) -> float:
        a, _, slope = curve(np.array(x))
        return float(slope) if name == "exponential" else float(a - 1 / slope)

    return float(minimize_scalar(height, bounds=(-_EDGE, -0.1), method="bounded", options={"xatol": 1e-12}).x)
