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
_HALVINGS = 64  # of a bracket no wider than its smallest root calls for
_FAR = 1e8  # beyond, v < 1e-8 and kappa(a) = 1 / a in double precision
_EDGE = 8.0  # -x up to which turning points of the slope are looked for: both lie between 0 and 4


def divided(x: Array) -> Array:
    """E1(x) = (e^x - 1) / x, 1 at 0."""
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.expm1(safe) / safe)


def divided_twice(x: Array) -> Array:
    """E2(x) = (e^x - 1 - x) / x^2, 1/2 at 0."""
    small = np.abs(x) < _SERIES
    near, far = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series = np.zeros_like(near)
    for term in reversed(_TERMS):
        series = series * near + term
    return np.where(small, series, (np.expm1(far) - far) / far**2)


def curve(x: Array) -> tuple[Array, Array, Array]:
    """a, the end v of its steepest chord, and the slope of ln kappa at a, for the parameter x."""
    middle = 1 / np.sqrt(2 * divided_twice(x))
    half = x / (2 * middle)
    slope = middle * (divided_twice(x) - divided_twice(-x)) / divided(-x)
    return middle - half, middle + half, slope


def tangent(a: Array) -> Array:
    """The end v of the steepest chord from a >= 0, by bisection along the curve. Cost: 64 steps on the array."""
    at = np.minimum(a, _FAR)
    low, high = np.where(at < 1, 0.0, -(at**2) / 2), np.where(at < 1, _origin(), 0.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        middle = 1 / np.sqrt(2 * divided_twice(x))
        right = middle - x / (2 * middle) > at
        low, high = np.where(right, x, low), np.where(right, high, x)
    x = (low + high) / 2
    return np.maximum(at + x * np.sqrt(2 * divided_twice(x)), 0.0)


def chord(a: Array, v: Array) -> Array:
    """|phi(a) - phi(v)| / |a - v| without cancellation; u phi(u) where both are u."""
    middle = (a + v) / 2
    x = (v - a) * middle
    return np.exp(-(np.minimum(a, v) ** 2) / 2) * middle * divided(-np.abs(x))


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
    """The parameter x < 0 up to which a crossing is a maximum: for exponential growth where -(ln kappa)' is largest
    (a = 2.52847), for linear growth where a - 1 / (ln kappa)' is least (a = 2.09972).
    """
    from scipy.optimize import minimize_scalar

    def height(x: float) -> float:
        a, _, slope = curve(np.array(x))
        return float(slope) if name == "exponential" else float(a - 1 / slope)

    return float(minimize_scalar(height, bounds=(-_EDGE, -0.1), method="bounded", options={"xatol": 1e-12}).x)
