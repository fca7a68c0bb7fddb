from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
import pytest

from mechdesign.errors import InputError
from mechdesign.setting import levels
from mechdesign.setting.domain import Domain
from mechdesign.setting.levels import PrivacyLevel
from mechdesign.setting.rasters import Raster

DEFECT = Fraction(1, 2**43)  # promised by line_integrals: rounded down, and by no more than this
ROUNDING = 2.0**-43  # two roundings of one quantity differ by no more than the promised defect
DIRECTION = 2.0**-48  # either direction adds the same pieces, in another order: half a dozen roundings
MIDPOINT = 1e-6  # midpoint rule, 20000 samples: kinks and curvature cost (1/20000)^2 times slopes up to 100
GAUSS_OFF = 1e-3  # a rule that ignores kinks is further off than this

AXES = {
    "unit cells": (np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.0, 2.0, 3.0])),
    "rounded nodes": (np.array([-0.3, 0.1, 0.7, 0.8]), np.array([-1.1, -0.2, 0.3])),
    "far origin": (5e6 + 100.0 * np.array([0.0, 1.0, 2.0, 3.0]), 4e5 + 100.0 * np.array([0.0, 1.0, 2.0])),
}
KINDS = {
    "any": lambda x, y, r: (_anywhere(x, y, r), _anywhere(x, y, r)),
    "horizontal": lambda x, y, r: ((x[0] - 0.3 * r, y0 := y[0] + (y[1] - y[0]) * r), (x[-1] + 0.2, y0)),
    "vertical": lambda x, y, r: ((x0 := x[1] + (x[2] - x[1]) * r, y[0] - 0.3), (x0, y[-1] - r * (y[2] - y[1]))),
    "diagonal": lambda x, y, r: ((x[0] + r, y[0] + r), (x[0] + r + 1.75, y[0] + r + 1.75)),
    "along a node line": lambda x, y, r: ((x[1], y[0] + r), (x[1], y[2])),
    "along the last node line": lambda x, y, r: ((x[0] + r, y[-1]), (x[-1], y[-1])),
    "node to node": lambda x, y, r: ((x[0], y[0]), (x[-1], y[-1])),
    "beyond the nodes": lambda x, y, r: ((x[-1] + r, y[-1] + 0.5), (x[-1] + 2.0, y[-1] + r)),
    "across everything, backwards": lambda x, y, r: ((x[-1] + r, y[-1] + 1.0), (x[0] - 1.0, y[0] - r)),
}


def _anywhere(x, y, r):
    rng = np.random.default_rng(int(r * 1e9))
    return tuple(rng.uniform(a[0] - 0.2 * (a[-1] - a[0]), a[-1] + 0.2 * (a[-1] - a[0])) for a in (x, y))


def _cell(nodes, at):
    at = min(max(at, nodes[0]), nodes[-1])
    left = max(k for k in range(len(nodes) - 1) if nodes[k] <= at)
    return left, (at - nodes[left]) / (nodes[left + 1] - nodes[left])


def exact_length(raster, start, end):
    """The length in nats of a segment, as a fraction; the square root is right to 2^-200."""
    xs, ys = ([Fraction(float(a)) for a in axis] for axis in (raster.x, raster.y))
    values = [[Fraction(float(v)) for v in row] for row in raster.values]
    p = [Fraction(float(a)) for a in start]
    step = [Fraction(float(a)) - b for a, b in zip(end, p, strict=True)]
    crossings = {(n - a) / s for nodes, a, s in zip((xs, ys), p, step, strict=True) if s for n in nodes}
    cuts = sorted({Fraction(0), Fraction(1), *(t for t in crossings if 0 < t < 1)})

    def level(t):
        (i, s), (j, r) = _cell(xs, p[0] + t * step[0]), _cell(ys, p[1] + t * step[1])
        row = [(1 - s) * values[i][k] + s * values[i + 1][k] for k in (j, j + 1)]
        return (1 - r) * row[0] + r * row[1]

    def integral(a, b):
        low, third, high = level(a), level((2 * a + b) / 3), level(b)
        curve = Fraction(3, 2) * (high + 2 * low - 3 * third)  # of low + slope t + curve t^2 at t = 0, 1/3, 1
        return (b - a) * (low + (high - low - curve) / 2 + curve / 3)

    square = step[0] ** 2 + step[1] ** 2
    root = Fraction(isqrt(square.numerator * square.denominator << 400), square.denominator << 200)
    return sum(integral(a, b) for a, b in pairwise(cuts)) * root


def random_level(x, y, seed, ratio=20.0):
    values = np.exp(np.random.default_rng(seed).uniform(0, np.log(ratio), (len(x), len(y)))) / 3
    return PrivacyLevel(raster=Raster(x=x, y=y, values=values))


def lengths(level, start, end):
    return level.line_integrals(np.atleast_2d(np.asarray(start, float)), np.atleast_2d(np.asarray(end, float)))


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("kind", KINDS)
def test_line_integrals_are_the_exact_ones_rounded_down(kind, axes):
    x, y = AXES[axes]
    for seed in range(20):
        level = random_level(x, y, seed)
        start, end = KINDS[kind](x, y, np.random.default_rng(seed).uniform(0.05, 0.95))
        exact = exact_length(level.raster, start, end)
        found = Fraction(float(lengths(level, start, end)[0]))
        assert 0 <= exact - found <= DEFECT * exact


@pytest.mark.parametrize("ratio", [1e5, 1e7, 1e9])
@pytest.mark.parametrize("axes", AXES)
def test_line_integrals_are_never_rounded_up_however_wide_the_range_of_eps(axes, ratio):
    x, y = AXES[axes]
    rng = np.random.default_rng(5)
    for seed in range(20):
        level = random_level(x, y, seed, ratio)
        start, end = (np.array([rng.uniform(a[0], a[-1]) for a in (x, y)]) for _ in range(2))
        found = Fraction(float(lengths(level, start, end)[0]))
        assert 0 < found <= exact_length(level.raster, start, end)


@pytest.mark.parametrize("kind", KINDS)
def test_line_integrals_match_the_midpoint_rule(kind):
    x, y = AXES["unit cells"]
    level = random_level(x, y, 1)
    start, end = (np.array(place) for place in KINDS[kind](x, y, 0.37))
    t = ((np.arange(20000) + 0.5) / 20000)[:, None]
    brute = level.at(start + t * (end - start)).mean() * np.linalg.norm(end - start)
    assert lengths(level, start, end)[0] == pytest.approx(brute, rel=MIDPOINT)


def test_one_gauss_rule_over_the_whole_segment_misses_the_kink():
    level = PrivacyLevel(raster=Raster(x=np.arange(3.0), y=np.zeros(1), values=np.array([[1.0], [5.0], [1.0]])))
    nodes, weights = np.polynomial.legendre.leggauss(4)
    gauss = weights @ level.at((1 + nodes)[:, None])
    assert lengths(level, [0.0], [2.0])[0] == pytest.approx(6.0, rel=ROUNDING)
    assert abs(gauss / 6.0 - 1) > GAUSS_OFF


def test_a_linear_level_integrates_to_the_mean_of_its_ends():
    x, y = np.linspace(0, 4, 7), np.linspace(0, 3, 5)
    level = PrivacyLevel.affine(Raster(x=x, y=y, values=2 * x[:, None] + y[None, :]), slope=0.5, floor=0.25)
    ends = np.random.default_rng(2).uniform(0, 3, (2, 50, 2))
    mean = (0.25 + ends.sum(axis=0) @ [1.0, 0.5] / 2) * np.linalg.norm(ends[1] - ends[0], axis=1)
    np.testing.assert_allclose(lengths(level, *ends), mean, rtol=1e-13)  # x, y are rounded linspaces
    assert (level.smallest, level.largest) == (0.25, 0.25 + 0.5 * 11)


def test_constant_affine_and_from_values_agree():
    domain = Domain.grid((4, 3), cell=(0.5, 2.0), unit="m", origin=(1.0, -2.0))
    values = np.random.default_rng(3).uniform(1, 2, (4, 3))
    axes = {"x": 1.25 + 0.5 * np.arange(4), "y": -1 + 2.0 * np.arange(3), "unit": "m"}
    given = PrivacyLevel.from_values(domain, values)
    affine = PrivacyLevel.affine(Raster(**axes, values=values - 0.5), slope=1, floor=0.5)
    np.testing.assert_allclose(given.at(domain.points), values.ravel(), rtol=1e-15)
    start, end = domain.points[:-1], domain.points[1:]
    np.testing.assert_allclose(lengths(given, start, end), lengths(affine, start, end), rtol=ROUNDING)
    flat = PrivacyLevel.from_values(domain, np.full((4, 3), 0.7))
    constant = lengths(PrivacyLevel.constant(0.7, "m"), start, end)
    np.testing.assert_allclose(lengths(flat, start, end), constant, rtol=ROUNDING)
    np.testing.assert_allclose(constant, 0.7 * np.linalg.norm(end - start, axis=1), rtol=ROUNDING)


def test_direction_chunks_and_axes_do_not_matter(monkeypatch):
    x, y = AXES["rounded nodes"]
    level = random_level(x, y, 4)
    start, end = np.random.default_rng(5).uniform(-1.5, 1.5, (2, 40, 2))
    whole = lengths(level, start, end)
    np.testing.assert_allclose(lengths(level, end, start), whole, rtol=DIRECTION)
    monkeypatch.setattr(levels, "_CHUNK", 7)
    assert lengths(level, start, end).tobytes() == whole.tobytes()
    turned = PrivacyLevel(raster=Raster(x=y, y=x, values=level.raster.values.T))
    np.testing.assert_allclose(lengths(turned, start[:, ::-1], end[:, ::-1]), whole, rtol=DIRECTION)


def test_segments_of_no_length_and_no_segments():
    level = PrivacyLevel.constant(2.0)
    assert lengths(level, [1.0, 2.0], [1.0, 2.0]).tolist() == [0.0]
    assert level.line_integrals(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0,)


GRID = Domain.grid((2, 2), cell=1.0, unit="m")
DENSITY = Raster(x=np.arange(2.0), y=np.arange(2.0), values=np.array([[0.0, 1.0], [2.0, 3.0]]))


@pytest.mark.parametrize(
    ("make", "field", "message"),
    [
        *((lambda e=e: PrivacyLevel.constant(e), "epsilon", "positive") for e in (0.0, -1.0, np.nan, np.inf)),
        (lambda: PrivacyLevel.constant(0.0), "epsilon", "constant mechanisms only"),
        (lambda: PrivacyLevel.constant(1.0, "parsec"), "unit", "unknown unit"),
        (lambda: PrivacyLevel.affine(DENSITY, slope=np.nan, floor=1.0), "slope", "finite"),
        (lambda: PrivacyLevel.affine(DENSITY, slope=1.0, floor=np.inf), "floor", "finite"),
        (lambda: PrivacyLevel.affine(DENSITY, slope=1.0, floor=0.0), "floor", "constant mechanisms only"),
        (lambda: PrivacyLevel.affine(DENSITY, slope=1.0, floor=-0.5), "floor", "positive"),
        (lambda: PrivacyLevel.affine(DENSITY, slope=-1.0, floor=3.0), "slope", "positive everywhere"),
        (lambda: PrivacyLevel.from_values(GRID, np.ones((2, 3))), "epsilon", "shape of the grid"),
        (lambda: PrivacyLevel.from_values(GRID, [[1.0, 1.0], [1.0, np.nan]]), "epsilon", "finite"),
        (lambda: PrivacyLevel.from_values(GRID, [[1.0, 1.0], [1.0, 0.0]]), "epsilon", "constant mechanisms only"),
        (lambda: lengths(PrivacyLevel.constant(1.0), [0, 0, 0], [1, 1, 1]), "epsilon", "one or two axes"),
    ],
)
def test_bad_levels_are_refused(make, field, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert field in caught.value.field
    assert caught.value.exit_code == 2
