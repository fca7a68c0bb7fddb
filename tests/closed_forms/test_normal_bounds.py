"""Bounds of normal probabilities and logarithms: they hold, are tight, and agree with other routes."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_ndtr

from mechdesign.closed_forms.noise.normal_bounds import log_bounds, mass_bounds

DOUBLES = 1e-13  # a dozen roundings of scipy's logarithm, of sums of at most 500
WHOLE = [(-1, 1), (0, 1), (3, 4), (-4, -3), (7, 9), (20, 21), (26, 30), (-30, -26), (-3, 40), (-12, -2)]
TAIL = Fraction(1, 10**40)
PI = Fraction(3141592653589793238462643383279502884197169399375105820974944592307816406286209, 10**78)


def by_continued_fraction(z, depth):
    """Successive convergents of P(Z > z) / phi(z) = 1 / (z + 1 / (z + 2 / (z + ...))), which lie on either side."""
    found = []
    for last in (depth, depth + 1):
        value = Fraction(z)
        for k in range(last, 0, -1):
            value = z + k / value
        found.append(1 / value)
    return min(found), max(found)


def density(z):
    """phi(z) for whole z, between fractions: e from its series, pi from its digits, square roots in whole numbers."""
    scale = 1 << 800
    e = sum(Fraction(1, math.factorial(n)) for n in range(80))
    ends = []
    for value in (e, e + TAIL * TAIL):
        square = value ** (z * z) * 2 * PI
        ends.append(Fraction(math.isqrt(square.numerator * scale * scale // square.denominator), scale))
    return 1 / (ends[1] * (1 + TAIL)), 1 / (ends[0] * (1 - TAIL))


@pytest.mark.parametrize(("low", "high"), WHOLE)
def test_masses_agree_with_floating_point(low, high):
    down, up = mass_bounds(Fraction(low), Fraction(high))
    assert 0 < down <= up < 1
    assert up - down <= down / 2**96
    a, b = sorted((-abs(low), -abs(high))) if low * high > 0 else (low, high)
    expected = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    assert float(log_bounds(down)[0]) == pytest.approx(expected, rel=DOUBLES, abs=DOUBLES)


@pytest.mark.parametrize("z", [5, 8, 21, 30])
def test_tails_agree_with_the_continued_fraction(z):
    """Second route, in fractions: Laplace's continued fraction, e from its own series, pi from printed digits."""
    down, up = mass_bounds(Fraction(z), Fraction(60))
    least, most = by_continued_fraction(Fraction(z), 400 if z < 10 else 60)
    low, high = density(z)
    rest = Fraction(1, 2**1000)  # P(Z > 60) < e^-1800
    assert up >= least * low - rest
    assert down <= most * high
    assert most * high - least * low < (Fraction(1, 10**12)) * down


def test_masses_add_up_to_one():
    cuts = [Fraction(k, 3) for k in range(-45, 46)]
    parts = [mass_bounds(a, b) for a, b in pairwise(cuts)]
    assert sum(low for low, _ in parts) < 1
    assert 1 - sum(high for _, high in parts) < Fraction(1, 2**160)
    assert parts == parts[::-1]


def test_narrow_masses_keep_their_digits():
    down, up = mass_bounds(Fraction(2), 2 + Fraction(1, 10**9))
    assert up - down <= down / 2**96
    assert float(down) == pytest.approx(1e-9 * math.exp(-2) / math.sqrt(2 * math.pi), rel=1e-8)


@pytest.mark.parametrize(
    "value",
    [Fraction(1), Fraction(2), Fraction(1, 3), Fraction(10**30, 7), Fraction(1, 10**300), 1 - Fraction(1, 10**20)],
)
def test_logarithms(value):
    """Second route: the decimal module's logarithm, right to its last digit of sixty."""
    low, high = log_bounds(value)
    assert 0 <= high - low <= Fraction(1, 2**96)
    with localcontext(Context(prec=60)):
        told = Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())
    off = Fraction(1, 10**57) * (1 + abs(told))
    assert low - off <= told <= high + off
