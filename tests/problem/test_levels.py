from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations, product
from math import isqrt, prod

import numpy as np
import pytest
from fixtures.rows import few_by_default

from mechdesign import Domain, PrivacyLevel, Raster
from mechdesign.errors import InputError
from mechdesign.problem import line_integrals

DEFECT = Fraction(1, 2**43)  # promised by line_integrals: rounded down, and by no more than this
ROUNDING = 2.0**-43  # two roundings of one quantity differ by no more than the promised defect
DIRECTION = 2.0**-48  # either direction adds the same pieces, in another order: half a dozen roundings
MIDPOINT = 1e-6  # midpoint rule, 20000 samples: kinks and curvature cost (1/20000)^2 times slopes up to 100
GAUSS_OFF = 1e-3  # a rule that ignores kinks is further off than this

AXES = {
    "unit cells": (np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.5, 4.0])),
    "rounded nodes": (np.array([-0.3, 0.1, 0.7, 0.8]), np.array([-1.1, -0.2, 0.3]), np.array([-0.7, 0.2, 0.3])),
    "far origin": (
        5e6 + 100.0 * np.array([0.0, 1.0, 2.0, 3.0]),
        4e5 + 100.0 * np.array([0.0, 1.0, 2.0]),
        100.0 * np.array([-7.0, -6.0, -4.0]),
    ),
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


# Ends of a segment along a third axis; None: the map has two axes.
DEPTHS = {
    "flat map": None,
    "upwards": lambda z, r: (z[0] - 0.2 * r, z[-1] + 0.1),
    "downwards between planes": lambda z, r: (z[0] + 0.9 * r * (z[1] - z[0]), z[0]),
    "level": lambda z, r: (z0 := z[1] + r * (z[2] - z[1]), z0),
    "on a node plane": lambda z, r: (z[1], z[1]),
    "plane to plane": lambda z, r: (z[2], z[0]),
}


def segment(kind, depth, axes, r):
    """The nodes along each axis, start and end."""
    x, y, z = AXES[axes]
    start, end = KINDS[kind](x, y, r)
    if DEPTHS[depth] is None:
        return (x, y), start, end
    low, high = DEPTHS[depth](z, r)
    return (x, y, z), (*start, low), (*end, high)


def _anywhere(x, y, r):
    rng = np.random.default_rng(int(r * 1e9))
    return tuple(rng.uniform(a[0] - 0.2 * (a[-1] - a[0]), a[-1] + 0.2 * (a[-1] - a[0])) for a in (x, y))


def _hats(nodes, position):
    """By node, the weight in [0, 1] of its value at a place; only those that are not 0."""
    if len(nodes) == 1:
        return {0: Fraction(1)}
    position = min(max(position, nodes[0]), nodes[-1])
    left = max(k for k in range(len(nodes) - 1) if nodes[k] <= position)
    share = (position - nodes[left]) / (nodes[left + 1] - nodes[left])
    return {left: 1 - share, left + 1: share}


def exact_level(raster, place):
    """The multilinear function at a place of fractions: values at the corners times products of weights."""
    axes = [[Fraction(float(a)) for a in nodes] for nodes in raster.axes]
    weights = [_hats(nodes, at) for nodes, at in zip(axes, place, strict=False)]
    corners = product(*(weight.items() for weight in weights))
    return sum(
        prod(share for _, share in corner) * Fraction(float(raster.values[tuple(node for node, _ in corner)]))
        for corner in corners
    )


def exact_length(raster, start, end):
    """The length in nats of a segment, as a fraction; the square root is right to 2^-200.

    On each piece by the rule (1, 3, 3, 1) / 8, which is exact for cubics.
    """
    p = [Fraction(float(a)) for a in start]
    step = [Fraction(float(a)) - b for a, b in zip(end, p, strict=True)]
    lines = zip(raster.axes, p, step, strict=False)
    crossings = {(Fraction(float(n)) - a) / s for nodes, a, s in lines if s for n in nodes}
    cuts = sorted({Fraction(0), Fraction(1), *(t for t in crossings if 0 < t < 1)})

    def integral(a, b):
        values = [
            exact_level(raster, [at + (a + k * (b - a) / 3) * s for at, s in zip(p, step, strict=True)])
            for k in range(4)
        ]
        return (b - a) * (values[0] + 3 * values[1] + 3 * values[2] + values[3]) / 8

    square = sum(s**2 for s in step)
    root = Fraction(isqrt(square.numerator * square.denominator << 400), square.denominator << 200)
    return sum(integral(a, b) for a, b in pairwise(cuts)) * root


def random_level(axes, seed, ratio=20.0):
    shape = [len(nodes) for nodes in axes]
    values = np.exp(np.random.default_rng(seed).uniform(0, np.log(ratio), shape)) / 3
    return PrivacyLevel(raster=Raster(**dict(zip("xyz", axes, strict=False)), values=values))


def lengths(level, start, end):
    return level.line_integrals(np.atleast_2d(np.asarray(start, float)), np.atleast_2d(np.asarray(end, float)))


@pytest.mark.parametrize("axes", few_by_default(AXES, "rounded nodes"))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", few_by_default(DEPTHS, "flat map", "downwards between planes", "plane to plane"))
@pytest.mark.obligation("lengths-rounded-down")
def test_line_integrals_are_the_exact_ones_rounded_down(depth, kind, axes):
    for seed in range(2 if depth == "flat map" else 1):
        nodes, start, end = segment(kind, depth, axes, np.random.default_rng(seed).uniform(0.05, 0.95))
        level = random_level(nodes, seed)
        exact = exact_length(level.raster, start, end)
        computed_length = Fraction(float(lengths(level, start, end)[0]))
        assert 0 <= exact - computed_length <= DEFECT * exact


@pytest.mark.parametrize("ratio", few_by_default([1e5, 1e7, 1e9], 1e9))
@pytest.mark.parametrize("axes", few_by_default(AXES, "rounded nodes", "far origin"))
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.obligation("lengths-rounded-down")
def test_line_integrals_round_down_for_any_levels(count, axes, ratio):
    nodes = AXES[axes][:count]
    rng = np.random.default_rng(5)
    for seed in range(5):
        level = random_level(nodes, seed, ratio)
        start, end = (np.array([rng.uniform(a[0], a[-1]) for a in nodes]) for _ in range(2))
        computed_length = Fraction(float(lengths(level, start, end)[0]))
        assert 0 < computed_length <= exact_length(level.raster, start, end)


@pytest.mark.parametrize("ratio", [100.0, 500.0, 9900.0])
def test_short_segments_beside_a_cliff_are_not_rounded_up(ratio):
    values = np.where(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1]]) > 0, ratio, 1.0)
    raster = Raster(x=np.array([-0.3, 0.1, 0.7, 0.8]), y=np.array([-1.1, -0.2, 0.3]), values=values)
    level = PrivacyLevel(raster=raster)
    corner = np.array([0.1, -0.2])
    for away in np.random.default_rng(1).uniform(-3e-4, 3e-4, (60, 2)):
        exact = exact_length(raster, corner + away, corner)
        assert Fraction(float(lengths(level, corner + away, corner)[0])) <= exact


def _ulps(value, count):
    return value + count * np.spacing(value)


def _wild_nodes(rng):
    """Two to six nodes: ulps, a few ulps beside a cell, or many orders of magnitude apart, near and far from 0."""
    origin = rng.choice([0.1, 1.0, 3e3, 5e6, -5e6]) * rng.uniform(0.5, 1)
    count = int(rng.integers(2, 7))
    return np.unique(
        [
            _ulps(origin, np.cumsum(rng.integers(1, 4, count))),
            origin + np.cumsum(10 ** rng.uniform(-6, 3, count)),
            origin + np.cumsum(10 ** rng.uniform(-3, 0, count)),
            origin + 150.0 * np.arange(count),
            np.append(origin + rng.uniform(0.1, 10), _ulps(origin, np.arange(count - 1))),
        ][rng.integers(0, 5)]
    )


def _wild_level(nodes, rng):
    """Eps that is even, rough, or two-valued, over up to 13 orders of magnitude."""
    shape, ratio = [len(axis) for axis in nodes], 10 ** rng.uniform(0, 13)
    steps = [rng.random(shape), rng.random(shape) < 0.3, np.indices(shape).sum(axis=0) % 2][rng.integers(0, 3)]
    values = ratio ** np.asarray(steps, float) * 10 ** rng.uniform(-5, 3)
    return PrivacyLevel(raster=Raster(**dict(zip("xyz", nodes, strict=False)), values=values))


def _wild_place(nodes, rng):
    """Near a node, on it, a few ulps beside it, or beyond the outermost ones."""
    node, extent = float(rng.choice(nodes)), nodes[-1] - nodes[0]
    return [
        node,
        _ulps(node, int(rng.integers(-3, 4))),
        node + extent * 10 ** rng.uniform(-12, -1) * rng.choice([-1, 1]),
        rng.uniform(nodes[0], nodes[-1]),
        nodes[-1] + extent * rng.uniform(0, 3),
        nodes[0] - extent * rng.uniform(0, 3),
    ][rng.integers(0, 6)]


@pytest.mark.parametrize(("attempts", "minimum"), few_by_default([(50, 2), (400, 40)], (50, 2)))
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.obligation("lengths-rounded-down")
def test_wild_maps_are_rounded_down_or_refused(count, attempts, minimum):
    """Segments along, across and beside node lines; where nodes are an ulp apart, plain sums reach twice the length."""
    rng = np.random.default_rng(count)
    computed = refused = 0
    for _ in range(attempts):
        nodes = [_wild_nodes(rng) for _ in range(count)] + [np.zeros(1)] * (count == 1)
        level = _wild_level(nodes, rng)
        start = [_wild_place(axis, rng) for axis in nodes[:count]]
        end = [at if rng.random() < 0.3 else _wild_place(axis, rng) for at, axis in zip(start, nodes, strict=False)]
        try:
            computed_length = lengths(level, start, end)[0]
        except InputError:
            refused += 1
            continue
        exact = exact_length(level.raster, start + [0.0] * (2 - count), end + [0.0] * (2 - count))
        assert Fraction(float(computed_length)) <= exact
        assert computed_length > 0 or exact == 0
        computed += 1
    assert min(computed, refused) > minimum


def test_nodes_an_ulp_apart_are_refused():
    """Places between such nodes are rounded onto them, and the level there is read at the wrong ones."""
    raster = Raster(x=_ulps(1.0, np.arange(5)), y=np.zeros(1), values=np.array([[1e9], [1.0], [1.0], [1.0], [1.0]]))
    level = PrivacyLevel(raster=raster)
    with pytest.raises(InputError, match="cannot be computed to 1e-06 in doubles") as caught:
        lengths(level, [1.0], [_ulps(1.0, 4)])
    assert caught.value.field == "epsilon"
    assert lengths(level, [1.0], [1.0]).tolist() == [0.0]


def test_long_segments_are_rounded_down_more():
    """Partial sums of thousands of pieces are rounded more often than the usual defect has room for."""
    nodes = np.linspace(0.1, 700.3, 2001)
    values = np.random.default_rng(0).uniform(1, 2, (2001, 1))
    level = PrivacyLevel(raster=Raster(x=nodes, y=np.zeros(1), values=values))
    computed_length = Fraction(float(lengths(level, [-0.75], [701.0])[0]))
    x, eps = ([Fraction(a) for a in array.ravel().tolist()] for array in (nodes, values))
    exact = sum((b - a) * (low + high) / 2 for (a, b), (low, high) in zip(pairwise(x), pairwise(eps), strict=True))
    exact += (x[0] + Fraction(3, 4)) * eps[0] + (701 - x[-1]) * eps[-1]
    assert DEFECT < 1 - computed_length / exact < Fraction(1, 2**38)


def test_lengths_below_double_range_become_zero():
    level = PrivacyLevel.constant(1e-200)
    assert lengths(level, [0.0], [1e-100]).tolist() == [0.0]
    assert lengths(PrivacyLevel.constant(1e200), [0.0, 0.0], [1e-150, 1e-150]).tolist() == [0.0]
    exact = Fraction(1e-200) * Fraction(1e-80)
    computed_length = Fraction(float(lengths(level, [0.0], [1e-80])[0]))
    assert 0 <= exact - computed_length <= DEFECT * exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", ["flat map", "upwards"])
def test_line_integrals_match_the_midpoint_rule(depth, kind):
    nodes, *ends = segment(kind, depth, "unit cells", 0.37)
    level = random_level(nodes, 1)
    start, end = map(np.array, ends)
    t = ((np.arange(20000) + 0.5) / 20000)[:, None]
    brute = level.at(start + t * (end - start)).mean() * np.linalg.norm(end - start)
    assert lengths(level, start, end)[0] == pytest.approx(brute, rel=MIDPOINT)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("count", [2, 3])
def test_levels_are_multilinear_between_the_nodes(count, axes):
    nodes = AXES[axes][:count]
    level = random_level(nodes, 8)
    places = [np.random.default_rng(9).uniform(a[0] - 0.1, a[-1] + 0.1, 30) for a in nodes]
    places = np.column_stack([*places, *([a[-1]] * 30 for a in nodes)]).reshape(60, count)
    exact = [float(exact_level(level.raster, [Fraction(a) for a in place])) for place in places.tolist()]
    np.testing.assert_allclose(level.at(places), exact, rtol=ROUNDING)


def test_a_map_of_two_axes_is_constant_along_the_third():
    axes = AXES["rounded nodes"][:2]
    flat = random_level(axes, 6)
    deep = PrivacyLevel(raster=Raster(x=axes[0], y=axes[1], z=np.array([0.4]), values=flat.raster.values[:, :, None]))
    start, end = np.random.default_rng(7).uniform(-1.5, 1.5, (2, 40, 3))
    assert np.array_equal(flat.at(start), flat.at(start[:, :2]))
    assert np.array_equal(deep.at(start), flat.at(start))
    np.testing.assert_allclose(lengths(deep, start, end), lengths(flat, start, end), rtol=ROUNDING)  # another piece
    plumb = np.column_stack([start[:, :2], end[:, 2]])
    np.testing.assert_allclose(
        lengths(flat, start, plumb), flat.at(start) * np.abs(end[:, 2] - start[:, 2]), rtol=ROUNDING
    )


def test_single_gauss_rule_misses_the_kink():
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


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2), (2, 1, 3)])
def test_constant_affine_and_from_values_agree(shape):
    cell, origin = (0.5, 2.0, 0.3)[: len(shape)], (1.0, -2.0, 7.0)[: len(shape)]
    domain = Domain.grid(shape, cell=cell, unit="m", origin=origin)
    values = np.random.default_rng(3).uniform(1, 2, shape)
    axes = [o + h * (np.arange(k) + 0.5) for o, h, k in zip(origin, cell, shape, strict=True)]
    axes += [np.zeros(1)] * (2 - len(axes))
    density = values.reshape([len(nodes) for nodes in axes]) - 0.5
    from_values = PrivacyLevel.from_values(domain, values)
    affine = PrivacyLevel.affine(Raster(**dict(zip("xyz", axes, strict=False)), values=density), slope=1, floor=0.5)
    np.testing.assert_allclose(from_values.at(domain.points), values.ravel(), rtol=1e-15)
    start, end = domain.points[:-1], domain.points[1:]
    np.testing.assert_allclose(lengths(from_values, start, end), lengths(affine, start, end), rtol=ROUNDING)
    flat = PrivacyLevel.from_values(domain, np.full(shape, 0.7))
    constant = lengths(PrivacyLevel.constant(0.7, "m"), start, end)
    np.testing.assert_allclose(lengths(flat, start, end), constant, rtol=ROUNDING)
    np.testing.assert_allclose(constant, 0.7 * np.linalg.norm(end - start, axis=1), rtol=ROUNDING)


@pytest.mark.parametrize("count", [2, 3])
def test_direction_chunks_and_axes_do_not_matter(monkeypatch, count):
    axes = AXES["rounded nodes"][:count]
    level = random_level(axes, 4)
    start, end = np.random.default_rng(5).uniform(-1.5, 1.5, (2, 40, count))
    whole = lengths(level, start, end)
    np.testing.assert_allclose(lengths(level, end, start), whole, rtol=DIRECTION)
    monkeypatch.setattr(line_integrals, "_CHUNK", 7)
    assert lengths(level, start, end).tobytes() == whole.tobytes()
    for order in permutations(range(count)):
        nodes = dict(zip("xyz", (axes[k] for k in order), strict=False))
        turned = PrivacyLevel(raster=Raster(**nodes, values=level.raster.values.transpose(order)))
        np.testing.assert_allclose(lengths(turned, start[:, order], end[:, order]), whole, rtol=DIRECTION)


def test_points_and_empty_lists_have_length_zero():
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
        (lambda: PrivacyLevel.from_values(Domain.nodes(3), np.ones(3)), "epsilon", "shape of the grid"),
        (lambda: PrivacyLevel.constant(1e-300), "epsilon", "at least 2\\^-960"),
        (lambda: PrivacyLevel.from_values(GRID, [[1.0, 1.0], [1.0, 1.2e15]]), "epsilon", "more than 2\\^50"),
    ],
)
def test_bad_levels_are_refused(make, field, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert field in caught.value.field
    assert caught.value.exit_code == 2
