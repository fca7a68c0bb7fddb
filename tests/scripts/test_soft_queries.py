from __future__ import annotations

import math

import gaussian_chord
import numpy as np
import pytest
from fixtures.rows import few_by_default
from scipy.special import lambertw
from soft_queries import BoundedRange, Kernel, Radial, Region, Ridge, Threshold, TwoWay

from mechdesign.errors import InputError
from mechdesign.release import query_functions, smooth_sensitivity

ATTAINED = 1e-9  # a maximum found by zooming in on a grid, or on a grid with the kinks on its nodes
ROUNDED = 1e-12  # quotients of differences and exponentials in double precision, where numbers are within 10^3 of 1
SETS = 400

GROWTHS = {"exponential": lambda z: np.exp(-z), "linear": lambda z: 1 / (1 + z)}


def brute(f, x, shrink, ends, places, horizon=math.inf):
    """max over places z and chord ends w, both given and dense, of |f(w) - f(z)| / |w - z| shrunk over |x - z|."""
    z = np.concatenate([places, np.linspace(min(x, ends.min()), max(x, ends.max()), 41)])[:, None]
    w = np.concatenate([ends, np.linspace(ends.min() - 1, ends.max() + 1, 41)])[None, :]
    w = np.concatenate([np.broadcast_to(w, (len(z), w.shape[1])), z - min(horizon, 1e6), z + min(horizon, 1e6)], axis=1)
    length = np.abs(w - z)
    # Chords under 10^-3 of the coordinates lose digits in the difference of f, and the kinks are further apart.
    chord = np.where(length > 1e-3, np.abs(f(w) - f(z)) / np.maximum(length, 1e-3), 0.0)
    chord[length > horizon * (1 + ROUNDED)] = 0.0
    return float((chord * shrink(np.abs(x - z))).max())


def random_setting(rng):
    growth = str(rng.choice(list(GROWTHS)))
    gamma = float(np.exp(rng.uniform(-4, 2)))
    return growth, gamma, lambda distance: GROWTHS[growth](gamma * distance)


def test_threshold_is_the_largest_shrunk_chord():
    rng = np.random.default_rng(0)
    for trial in range(SETS):
        growth, gamma, shrink = random_setting(rng)
        width, at = rng.uniform(0.1, 2), rng.uniform(-1, 1)
        horizon = math.inf if trial % 2 else float(rng.uniform(0.1, 6))
        query = Threshold(width, horizon, at=at)
        x = at + rng.uniform(-5, 5)
        edge = at + math.copysign(width / 2, x - at)
        reach = max(abs(x - at) - width / 2, 0.0)
        away = np.array([0.0, reach, horizon - width, horizon - 1 / gamma, 0.5 * reach])
        away = away[np.isfinite(away) & (away >= 0) & (away <= reach)]
        ends = np.array([at - width / 2, at, at + width / 2])
        found = brute(
            query.values,
            x, shrink, ends, np.append(edge + math.copysign(1, x - at) * away, x), horizon,
        )  # fmt: skip
        if horizon < 2e-3:
            continue
        truth = float(query.smooth(x, gamma, growth))
        assert truth == float(smooth_sensitivity.threshold(x, at, width, gamma, growth, horizon))
        assert query.values(x) == query_functions.threshold(x, at, width)
        assert truth >= found * (1 - ROUNDED / 1e-3)
        assert truth <= found * (1 + ATTAINED)


def test_bounded_range_is_the_largest_shrunk_chord():
    rng = np.random.default_rng(1)
    narrow = 0
    for _ in range(SETS):
        growth, gamma, shrink = random_setting(rng)
        width, low = rng.uniform(0.3, 2), rng.uniform(-1, 1)
        high = low + rng.uniform(0.1, 4)
        narrow += high - low < width
        query = BoundedRange(width, low=low, high=high)
        x = rng.uniform(-6, 8)
        middle = (low + high) / 2
        half = (high - low) / 2
        ends = np.array([low - width / 2, low + min(width / 2, half), high - min(width / 2, half), high + width / 2])
        found = brute(
            query.values, x, shrink, np.append(ends, middle), np.append(ends, x),
        )  # fmt: skip
        truth = float(query.smooth(x, gamma, growth))
        assert truth >= found * (1 - ROUNDED / 1e-3)
        assert truth <= found * (1 + ATTAINED)
    assert 100 < narrow < 900


def shrunk_gaussian_chord(a, z, w, shrink):
    """|phi(z) - phi(w)| / |z - w| shrunk over |a - z|; the slope half-way where the two are close."""
    near = np.abs(z - w) < 1e-5
    middle = (z + w) / 2
    fall = np.exp(-(z**2) / 2) - np.exp(-(w**2) / 2)
    chord = np.where(near, middle * np.exp(-(middle**2) / 2), np.abs(fall) / np.where(near, 1.0, np.abs(z - w)))
    return chord * shrink(np.abs(a - z))


def zoom(function, low, high):
    """The maximum of a function of arrays (z, w) over a box: ever finer square grids around the best node."""
    low, high = np.array(low), np.array(high)
    bottom, top = low.copy(), high.copy()
    for round_ in range(11):
        count = 41 if round_ == 0 else 23
        axes = [np.linspace(a, b, count if b > a else 1) for a, b in zip(low, high, strict=True)]
        value = function(axes[0][:, None], axes[1][None, :])
        best = np.unravel_index(np.argmax(value), value.shape)
        centre = np.array([axis[k] for axis, k in zip(axes, best, strict=True)])
        step = 4 * (high - low).max() / (count - 1)
        low, high = np.maximum(centre - step, bottom), np.minimum(centre + step, top)
    return float(value.max())


def test_kde_is_the_largest_shrunk_chord_on_the_ray():
    rng = np.random.default_rng(2)
    for _ in range(SETS // 50):
        growth, gamma, shrink = random_setting(rng)
        bandwidth = rng.uniform(0.2, 3)
        radii = np.append(rng.uniform(0, 8, 3), rng.uniform(0, 1.2, 2))
        places = np.stack([radii * bandwidth, np.zeros(5)], axis=1)
        truths = Kernel([0.0, 0.0], bandwidth).smooth(places, gamma, growth) * bandwidth
        for a, truth in zip(radii.tolist(), truths.tolist(), strict=True):

            def chord(z, w, a=a, bandwidth=bandwidth, shrink=shrink):
                return shrunk_gaussian_chord(a, z, w, lambda distance: shrink(bandwidth * distance))

            found = max(zoom(chord, (a, 0.0), (a, a + 3)), zoom(chord, (min(a, 1), 0.0), (max(a, 1), 3.0)))
            assert truth >= found * (1 - 1e-10)  # ten digits are left of chords of 10^-5
            assert truth <= found * (1 + ATTAINED)


@pytest.mark.parametrize(("a", "value"), [(0.0, 0.451256234078), (2.0, 0.499954492646), (3.0, 0.350855077578)])
def test_steepest_chord_of_a_gaussian_has_its_tabulated_values(a, value):
    assert gaussian_chord.steepest(np.array(a)) == pytest.approx(value, abs=1e-12)


def test_steepest_chord_from_the_peak_ends_where_lambert_says():
    end = math.sqrt(-1 - 2 * lambertw(-math.exp(-0.5) / 2, -1).real)
    assert gaussian_chord.tangent(np.array(0.0)) == pytest.approx(end, rel=ROUNDED)
    assert Kernel([1.0, 2.0], 0.5).lipschitz([1.0, 2.0]) == pytest.approx(end * math.exp(-(end**2) / 2) / 0.5)


def test_steepest_chord_far_away_and_near_the_inflection():
    far = np.array([1e3, 1e6, 1e12])
    assert gaussian_chord.steepest(far) == pytest.approx(1 / far, rel=1e-6)
    step = np.array([-1e-3, -1e-5, -1e-9, 0.0, 1e-9, 1e-5, 1e-3])
    near = math.exp(-0.5) * (1 - step**2 / 4)
    assert gaussian_chord.steepest(1 + step) == pytest.approx(near, rel=1e-9)
    ends = gaussian_chord.tangent(1 + step)
    assert ends == pytest.approx(1 - step / 2, abs=1e-6)
    a = np.linspace(0.01, 6, 200)
    v = gaussian_chord.tangent(a)
    tangent = np.exp(-(a**2) / 2) - np.exp(-(v**2) / 2) - v * (v - a) * np.exp(-(v**2) / 2)
    assert np.abs(tangent).max() < 1e-15 * 10


@pytest.mark.parametrize(
    ("a", "gamma", "value", "printed"), [(4.003, 0.2929, 0.2790105, 0.25820), (0.0, 0.2, 0.5154453, 0.50141)]
)
def test_kde_where_the_printed_case_formula_is_too_small(a, gamma, value, printed):
    found = float(Kernel([0.0], 1.0).smooth([a], gamma))
    assert found == pytest.approx(value, abs=1e-7)
    assert found > 1.02 * printed


X = np.linspace(-4, 6, 241)
PLANE = np.random.default_rng(3).uniform(-4, 6, (400, 2))
# name: 1-D or 2-D places, the query, sup K
FORMS = {
    "threshold": (X, Threshold(0.8, at=0.5), 1 / 0.8),
    "threshold, horizon": (X, Threshold(0.8, 2.0, at=0.5), 1 / 0.8),
    "threshold, short horizon": (X, Threshold(0.8, 0.5, at=0.5), 1 / 0.8),
    "range": (X, BoundedRange(0.8, low=-1.0, high=2.0), 1 / 0.8),
    "narrow range": (X, BoundedRange(0.8, low=0.0, high=0.3), 1 / 0.8),
    "two-way": (PLANE, TwoWay(0.8, at=[0.0, 1.0]), 1 / 0.8),
    "kde": (PLANE, Kernel([0.0, 1.0], 0.8), math.exp(-0.5) / 0.8),
    "kde on a line": (X[:, None], Kernel([0.5], 1.5), math.exp(-0.5) / 1.5),
    "ridge": (PLANE, Ridge([3.0, -4.0], Threshold(0.8, at=0.5)), 5 / 0.8),
    "radial": (PLANE, Radial([1.0, 0.5], Threshold(0.8, at=2.5)), 1 / 0.8),
}


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", FORMS)
def test_laws_of_smooth_bounds(name, growth):
    places, query, largest = FORMS[name]
    own = query.lipschitz(places)
    flat = places.reshape(len(places), -1)
    distance = np.linalg.norm(flat[:, None] - flat, axis=2)
    last = np.full(len(places), largest)
    for gamma in (1e-9, 0.2, 0.7, 1e6):
        found = query.smooth(places, gamma, growth)
        assert found.shape == own.shape
        assert (found >= own * (1 - ROUNDED)).all()
        assert (found <= last * (1 + ROUNDED)).all()  # falls in gamma, from sup K
        assert (found[:, None] * GROWTHS[growth](gamma * distance) <= found * (1 + ROUNDED)).all()
        last = found
        if gamma == 1e-9:
            assert found == pytest.approx(largest, rel=1e-6)
    assert last == pytest.approx(own, abs=1e-5)  # a steeper place at distance r adds at most sup K / (1 + 10^6 r)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "threshold, short horizon"])
def test_logarithmic_slopes_do_not_exceed_gamma(name):
    places, query, _ = FORMS[name]
    rng = np.random.default_rng(4)
    for gamma in (0.02, 0.3, 2.0):
        start = rng.uniform(-4, 6, places[:200].shape)
        step = rng.standard_normal(start.shape)
        step *= 1e-3 / np.linalg.norm(step.reshape(len(step), -1), axis=1).reshape(-1, *[1] * (step.ndim - 1))
        change = np.abs(np.log(query.smooth(start + step, gamma) / query.smooth(start, gamma)))
        assert change.max() <= gamma * 1e-3 * (1 + ATTAINED) + 1e-14  # rounding of two logarithms


def plane_brute(f, nodes, gamma, growth):
    """S and K on nodes (n, 2) from chords between nodes only."""
    distance = np.linalg.norm(nodes[:, None] - nodes, axis=2)
    np.fill_diagonal(distance, np.inf)
    chords = (np.abs(f[:, None] - f) / distance).max(axis=1)
    np.fill_diagonal(distance, 0.0)
    return (chords * GROWTHS[growth](gamma * distance)).max(axis=1)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("gamma", few_by_default([0.1, 0.6, 3.0], 0.6))
def test_two_way_in_the_plane(gamma, growth):
    query = TwoWay(0.8, at=[0.0, 0.0])
    axis = np.arange(-3.2, 4.01, 0.2)  # both ends of both bands lie on nodes
    nodes = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    found = plane_brute(query.values(nodes), nodes, gamma, growth)
    truth = query.smooth(nodes, gamma, growth)
    assert (found <= truth * (1 + ROUNDED)).all()
    assert (found >= 0.94 * truth).all()  # chords of the rounded corner miss its ends by half a pitch
    straight = (nodes[:, 1] > 2) & (nodes[:, 0] < 1.2)  # the nearest band is crossed straight from the left
    assert straight.sum() > 100
    assert found[straight] == pytest.approx(truth[straight], rel=ATTAINED)


@pytest.mark.exhaustive
def test_two_way_is_the_soft_region_of_a_rounded_quadrant():
    width = 0.6
    inner = width / math.sqrt(2)
    radius, centre = inner + width / 2, np.array([1.0, -2.0]) + inner + width / 2
    angle = np.linspace(math.pi, 1.5 * math.pi, 4001)
    side = np.linspace(0, 12, 40_001)
    middle = np.concatenate(
        [
            centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1),
            np.stack([np.full(len(side), 1.0), centre[1] + side], axis=1),
            np.stack([centre[0] + side, np.full(len(side), -2.0)], axis=1),
        ]
    )
    x = np.random.default_rng(5).uniform([-3, -6], [5, 2], (300, 2))
    distance = np.array([np.linalg.norm(middle - place, axis=1).min() for place in x])
    query = TwoWay(width, at=[1.0, -2.0])
    depth = query.depth(x)
    assert np.abs(depth) == pytest.approx(distance, abs=1e-4)
    inside = (x > [1.0, -2.0]).all(axis=1) & ~((x < centre).all(axis=1) & (np.linalg.norm(x - centre, axis=1) > radius))
    assert ((depth > 0) == inside).all()
    assert query.values([1.0, -2.0]) == pytest.approx(0, abs=1e-15)
    r = np.maximum(distance - width / 2, 0)
    expected = np.maximum(1 / (r + width), np.exp(-0.4 * r) / width)
    assert query.smooth(x, 0.4) == pytest.approx(expected, abs=1e-3)


def test_regions_on_a_line_are_threshold_and_range():
    region, threshold = Region(0.8), Threshold(0.8, at=0.5)
    for growth in GROWTHS:
        line = region.smooth(X - 0.5, 0.4, growth)
        assert line == pytest.approx(threshold.smooth(X, 0.4, growth), rel=ROUNDED)
        interval = region.smooth(1.5 - np.abs(X - 0.5), 0.4, growth)
        assert interval == pytest.approx(BoundedRange(0.8, low=-1, high=2).smooth(X, 0.4, growth), rel=ROUNDED)
    assert region.values(X - 0.5) == pytest.approx(threshold.values(X))
    assert Region(0.8, 2.0).lipschitz(X - 0.5) == pytest.approx(Threshold(0.8, 2.0, at=0.5).lipschitz(X))


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("radius", [1.4, 0.3])
def test_region_of_a_disc_is_a_bound_and_close_in_the_plane(radius, growth):
    axis = np.arange(-3, 3.01, 0.2)
    nodes = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    depth = radius - np.linalg.norm(nodes, axis=1)
    found = plane_brute(Region(0.8).values(depth), nodes, 0.5, growth)
    truth = Region(0.8).smooth(depth, 0.5, growth)
    assert (found <= truth * (1 + ROUNDED)).all()
    assert (found >= 0.85 * truth).all()  # the rim lies between nodes: half a pitch in a band of four


@pytest.mark.parametrize("growth", GROWTHS)
def test_ridge_and_radial_reduce_to_one_axis(growth):
    axis = np.arange(-3, 3.01, 0.2)
    nodes = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    steep = Threshold(2.0, at=1.0)
    query = Ridge([0.0, 5.0], steep)
    ridge = query.smooth(nodes, 0.5, growth)
    found = plane_brute(query.values(nodes), nodes, 0.5, growth)
    assert found == pytest.approx(ridge, rel=ATTAINED)
    query = Radial([0.0, 0.0], steep)
    radial = query.smooth(nodes, 0.5, growth)
    found = plane_brute(query.values(nodes), nodes, 0.5, growth)
    on_axis = (np.abs(nodes[:, 1]) < 1e-9) & (np.abs(nodes[:, 0]) >= 2 - 1e-9)
    assert found[on_axis] == pytest.approx(radial[on_axis], rel=ATTAINED)
    assert (found <= radial * (1 + ROUNDED)).all()


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: smooth_sensitivity.threshold(X, 0.0, 0.0, 1.0), "width"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, math.inf, 1.0), "width"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, 0.0), "gamma"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, math.nan), "gamma"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, 1.0, "quadratic"), "growth"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, 1.0, np.exp), "growth"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, 1.0, horizon=0.0), "horizon"),
        (lambda: smooth_sensitivity.threshold([0.0, math.nan], 0.0, 1.0, 1.0), "x"),
        (lambda: smooth_sensitivity.threshold(X, math.inf, 1.0, 1.0), "threshold"),
        (lambda: smooth_sensitivity.threshold(X, 0.0, 1.0, 1.0, horizon=math.nan), "horizon"),
        (lambda: Threshold(0.0, at=0.0).smooth(X, 1.0), "width"),
        (lambda: Threshold(1.0, at=0.0).smooth(X, 1.0, "quadratic"), "growth"),
        (lambda: BoundedRange(1.0, low=1.0, high=1.0).smooth(X, 1.0), "low"),
        (lambda: BoundedRange(1.0, low=2.0, high=1.0).smooth(X, 1.0), "low"),
        (lambda: BoundedRange(-1.0, low=0.0, high=1.0).smooth(X, 1.0), "width"),
        (lambda: TwoWay(1.0, at=[0.0]).smooth(PLANE, 1.0), "thresholds"),
        (lambda: TwoWay(1.0, at=[0.0, 1.0, 2.0]).smooth(PLANE, 1.0), "thresholds"),
        (lambda: TwoWay(1.0, at=[0.0, 1.0]).smooth(X, 1.0), "thresholds"),
        (lambda: Kernel([0.0, 0.0], 0.0).smooth(PLANE, 1.0), "bandwidth"),
        (lambda: Kernel([0.0, 0.0, 0.0], 1.0).smooth(PLANE, 1.0), "center"),
        (lambda: Kernel([0.0, 0.0], 1.0).smooth(PLANE, -1.0), "gamma"),
        (lambda: Region(1.0).smooth([math.inf], 1.0), "signed_distance"),
        (lambda: Ridge([0.0, 0.0], Threshold(1.0, at=0.0)).smooth(PLANE, 1.0), "direction"),
        (lambda: Radial([0.0, 0.0], Threshold(1.0, at=0.0)).smooth(PLANE, 0.0), "gamma"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field
