"""The cones of positions: against the gradient itself, an oracle in integers, coefficients found by interpolation."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from fixtures.integer_oracles import reference_breaches
from reference.checking import ROW_SUM

from mechdesign.positions.cones import LEVEL_BITS, integer_levels
from mechdesign.positions.patches import AROUND, Patches

ONE = 1 << LEVEL_BITS
SIZES = (1, 40, 1 << 19, 1 << 21, 1 << 40, 1 << 51, 1 << 53, 1 << 61)  # of masses, around where they are shifted
ONLY_THE_NODE = ([1000, 483, 93, 459, 107, 46, 177, 74, 34], [1.83729] * 4)
STEPS = [Fraction(k, 8) - Fraction(1, 2) for k in range(9)]


def patch_of(masses, levels, side=1.0):
    """Nine masses, and a cell that they surround; as `breaches` takes them."""
    one = Patches(around=np.arange(9)[None, :], corner_level=np.array([levels], float), side=side)
    return np.array(masses, np.uint64).reshape(9, -1), one


def weights(s):
    return ((Fraction(1, 2) - s) ** 2 / 2, Fraction(3, 4) - s * s, (Fraction(1, 2) + s) ** 2 / 2)


def slopes(s):
    return (s - Fraction(1, 2), -2 * s, s + Fraction(1, 2))


def spline(p, first, second):
    return sum(first[k] * second[m] * int(p[3 * k + m]) for k in range(3) for m in range(3))


def excess(p, levels):
    """The largest of |grad P|^2 - (e P)^2 over 9 x 9 points of the cell, each over P^2, in fractions."""
    e = [Fraction(level) for level in levels]
    worst = None
    for s, t in product(STEPS, STEPS):
        a, b = s + Fraction(1, 2), t + Fraction(1, 2)
        level = (1 - a) * ((1 - b) * e[0] + b * e[1]) + a * ((1 - b) * e[2] + b * e[3])
        value = spline(p, weights(s), weights(t))
        square = spline(p, slopes(s), weights(t)) ** 2 + spline(p, weights(s), slopes(t)) ** 2
        found = square / value**2 - level**2
        worst = found if worst is None else max(worst, found)
    return worst


def bernstein(values, degree):
    """Coefficients of polynomials along the first axis from their values at 0, 1/degree, ..., 1, in fractions."""
    nodes = [Fraction(k, degree) for k in range(degree + 1)]
    rows = [[comb(degree, k) * x**k * (1 - x) ** (degree - k) for k in range(degree + 1)] for x in nodes]
    rows = [[*row, *value] for row, value in zip(rows, values, strict=True)]
    for k in range(degree + 1):
        pivot = next(i for i in range(k, degree + 1) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(degree + 1):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[degree + 1 :] for row in rows]


def coefficients(function, low, size, degree):
    """Bernstein coefficients (degree + 1, degree + 1) of a function of (s, t) on a square."""
    at = [
        [function(low[0] + size * Fraction(i, degree), low[1] + size * Fraction(j, degree)) for j in range(degree + 1)]
        for i in range(degree + 1)
    ]
    columns = bernstein(at, degree)
    return bernstein([list(column) for column in zip(*columns, strict=True)], degree)


def conditions(p, whole, low, size):
    """True if every condition holds on a square of the cell, from values of the functions at points."""
    flat = len(set(whole)) == 1
    degree = 2 if flat else 3

    def level(s, t):
        a, b = s + Fraction(1, 2), t + Fraction(1, 2)
        e = [Fraction(z, ONE) for z in whole]
        return e[0] if flat else (1 - a) * ((1 - b) * e[0] + b * e[1]) + a * ((1 - b) * e[2] + b * e[3])

    bound = coefficients(lambda s, t: level(s, t) * spline(p, weights(s), weights(t)), low, size, degree)
    gx = coefficients(lambda s, t: spline(p, slopes(s), weights(t)), low, size, degree)
    gy = coefficients(lambda s, t: spline(p, weights(s), slopes(t)), low, size, degree)
    steps = product(range(degree + 1), repeat=2)
    return all(gx[i][j] ** 2 + gy[i][j] ** 2 <= bound[i][j] ** 2 and bound[i][j] >= 0 for i, j in steps)


def by_interpolation(p, whole):
    """The expected count of `breaches` for one cell and report, and True if the conditions of the whole cell hold."""
    half = Fraction(1, 2)
    if conditions(p, whole, (-half, -half), Fraction(1)):
        return 0, True
    return int(not all(conditions(p, whole, low, half) for low in product((-half, Fraction(0)), repeat=2))), False


def named_cones(p, z):
    """The nine conditions of a constant level as the module names them: corners, edges and node, in integers."""
    sw, w, nw, s, c, n, se, e, ne = (int(x) for x in p)

    def corner(c, e, n, ne):
        return (2 * (e + ne - c - n)) ** 2 + (2 * (n + ne - c - e)) ** 2, z * (c + e + n + ne)

    def edge(c, e, n, ne, s, se):
        return (4 * (e - c)) ** 2 + (n + ne - s - se) ** 2, 2 * z * (c + e)

    found = [
        *(corner(sw, s, w, c), edge(w, c, nw, n, sw, s), corner(w, c, nw, n)),
        *(edge(s, c, se, e, sw, w), ((e - w) ** 2 + (n - s) ** 2, 2 * z * c), edge(c, n, e, ne, w, nw)),
        *(corner(s, se, c, e), edge(c, e, n, ne, s, se), corner(c, e, n, ne)),
    ]
    return [square * ONE**2 <= t * t for square, t in found]


def chaikin(p):
    """The masses of half the pitch, times 16, of the four quarters."""
    line = np.array([[3, 1, 0], [1, 3, 0], [0, 3, 1], [0, 1, 3]], object)
    fine = line @ np.array([int(x) for x in p], object).reshape(3, 3) @ line.T
    return [fine[i : i + 3, j : j + 3].ravel() for i in (0, 1) for j in (0, 1)]


def random_case(rng, flat):
    """Masses that vary by about as much as the levels allow, of every magnitude."""
    z = 10 ** rng.uniform(-2, 0.3)
    size, noise = SIZES[rng.integers(len(SIZES))], z * 10 ** rng.uniform(-3, 0)
    tilt = rng.normal(size=2)
    tilt *= z * rng.uniform(0.0, 1.2) / np.hypot(*tilt)
    masses = [max(1, int(size * np.exp(tilt @ step - abs(tilt).sum() + noise * rng.normal()))) for step in AROUND]
    levels = [z] * 4 if flat else (z * (1 + 0.2 * rng.random(4))).tolist()
    return [min(mass, ROW_SUM) for mass in masses], levels


def test_constant_level_count_matches_stated_cones():
    rng = np.random.default_rng(1)
    verdicts, deciding = set(), set()
    for trial in range(600):
        masses, levels = ONLY_THE_NODE if trial == 0 else random_case(rng, flat=True)
        for turns in range(4):
            turned = np.rot90(np.array(masses, object).reshape(3, 3), turns).ravel().tolist()
            mass, one = patch_of(turned, levels)
            z = int(integer_levels(one.corner_level, one.side)[0, 0])
            coarse, fine = named_cones(turned, z), [named_cones(q, z // 2) for q in chaikin(turned)]
            expected = not (all(coarse) or all(map(all, fine)))
            assert one.breaches(mass) == expected, (turned, levels)
            verdicts.add((expected, all(coarse)))
            alone = expected and coarse.count(False) == 1
            deciding |= {coarse.index(False)} if alone else set()
            if not alone:
                break
    assert verdicts == {(False, True), (False, False), (True, False)}  # by the cell, by its quarters, not at all
    assert deciding == set(range(9))  # a condition left out is missed


@pytest.mark.obligation("position-gradients")
def test_quarter_level_count_matches_oracle():
    rng = np.random.default_rng(7)
    counts = []
    for _ in range(100):
        masses, levels = random_case(rng, flat=False)
        masses = np.array(masses, np.uint64).reshape(9, 1)
        by_quarter = np.array(levels)[None] * rng.uniform(0.9, 1.1, (4, 4))
        mass, one = patch_of(masses, by_quarter.ravel())
        counts.append(one.breaches(mass))
        assert counts[-1] == reference_breaches(mass, one), (masses, levels)
        scaled = [patch_of(masses, factor * by_quarter.ravel()) for factor in (0.8, 1.25)]
        lower, higher = (other.breaches(more) for more, other in scaled)
        assert higher <= counts[-1] <= lower
    assert 10 < sum(counts) < 90


@pytest.mark.parametrize("flat", [True, False])
def test_count_matches_oracle_under_symmetry(flat):
    rng = np.random.default_rng(int(flat))
    counts = []
    for _ in range(150):
        masses, levels = random_case(rng, flat)
        mass, one = patch_of(masses, levels)
        counts.append(one.breaches(mass))
        assert counts[-1] == reference_breaches(mass, one), (masses, levels)
        square, corners = np.array(masses, object).reshape(3, 3), np.array(levels).reshape(2, 2)
        for turn in (np.transpose, np.flipud, np.fliplr):
            turned, other = patch_of(turn(square).ravel(), turn(corners).ravel())
            assert other.breaches(turned) == counts[-1]
    assert 20 < sum(counts) < 130


def quarter_turns(p):
    """The patch (9,) in the four directions of its slope."""
    square = np.array(p, object).reshape(3, 3)
    return [np.rot90(square, k).ravel().tolist() for k in range(4)]


SLOPE = [3, 3, 3, 5, 5, 5, 7, 7, 7]  # whose steepest corners satisfy the level 1/2 with equality


@pytest.mark.parametrize("size", [1, (1 << 21) + 1, (1 << 40) + 1])
@pytest.mark.parametrize("beside", [0.0, 2.0**-40])
def test_equality_is_no_breach(size, beside):
    """No bit of a product is lost, with one level on the cell and with levels that differ a little elsewhere."""
    for p in quarter_turns([size * x for x in SLOPE]):
        low = np.array(p, object).reshape(3, 3)[::2, ::2].astype(float)
        levels = 0.5 + beside * (low == low.max())
        mass, one = patch_of(p, levels.ravel())
        assert one.breaches(mass) == reference_breaches(mass, one) == 0
        mass, less = patch_of(p, levels.ravel() - 2.0**-50)
        assert less.breaches(mass) == 1


def test_small_masses_keep_fractions():
    diagonal = [9, 10, 11, 10, 11, 12, 11, 12, 13]  # 32 <= (40 z)^2 from z = 0.14143 on
    for z, expected in ((0.1415, 0), (0.1414, 1)):
        mass, one = patch_of(diagonal, [z] * 4)
        assert one.breaches(mass) == reference_breaches(mass, one) == expected


def least_scale(masses, levels):
    """The least number by which levels may be multiplied without a breach, to the last bit."""
    low, high = 0.0, 8.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if reference_breaches(*patch_of(masses, middle * levels)) == 0 else (middle, high)
    return high


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_count_is_sharp_to_a_unit(spread):
    """Levels that just satisfy the conditions are accepted with 2^-22 more: no carry is lost."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        masses = rng.integers(1 << 21, 1 << 22, 9).tolist()
        levels = 1 + spread * rng.random(4)
        mass, one = patch_of(masses, least_scale(masses, levels) * (1 + 2.0**-22) * levels)
        assert one.breaches(mass) == 0, (masses, levels)


def test_remainders_of_large_masses_hide_no_breach():
    """Masses of 2^52 and more lose ten bits; if these decide, a breach is counted."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        masses = ((1 << 52) + rng.integers(1 << 46, size=9)).tolist()  # steep masses lose more of T than of G
        scale = least_scale(masses, np.ones(4))
        for units in (1, 1 << 6, 1 << 10, 1 << 12, 1 << 14):
            mass, one = patch_of(masses, [scale * (1 - units * 2.0**-52)] * 4)
            assert reference_breaches(mass, one) == one.breaches(mass) == 1


def test_count_matches_interpolated_coefficients():
    rng = np.random.default_rng(3)
    verdicts = set()
    for trial in range(24):
        masses, levels = random_case(rng, flat=trial % 4 == 0)
        mass, one = patch_of(masses, levels)
        expected, coarse = by_interpolation(masses, integer_levels(one.corner_level, one.side)[0].tolist())
        assert one.breaches(mass) == expected, (masses, levels)
        verdicts.add((expected, coarse))
    assert verdicts >= {(0, True), (1, False)}


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.obligation("position-gradients")
def test_zero_breaches_bound_gradient_tightly(flat):
    """The level is lowered until the cell breaks: below that the claim fails within a few percent, above it holds."""
    rng = np.random.default_rng(5 + int(flat))
    for _ in range(5):
        masses, levels = random_case(rng, flat)
        low, high = 0.0, 40.0
        for _ in range(26):
            middle = (low + high) / 2
            mass, one = patch_of(masses, [middle * level for level in levels])
            low, high = (low, middle) if one.breaches(mass) == 0 else (middle, high)
        if max(levels) * high > 1 or max(masses) == min(masses):
            continue
        assert excess(masses, [high * level for level in levels]) <= 0, (masses, levels)
        assert excess(masses, [0.9 * high * level for level in levels]) > 0, (masses, levels)
