from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures.rows import few_by_default
from smooth_bounds import level_set_bound
from soft_queries import BoundedRange, Kernel, Threshold

from mechdesign import Discrete, Domain, Eikonal, Euclidean, Graph, PrivacyLevel
from mechdesign.errors import InputError
from mechdesign.problem.max_plus import steepest_chords, transform
from mechdesign.release import SmoothBound, SmoothSensitivity, cell_smooth_bound, least_smooth_bound
from mechdesign.release.growth import Growth

ROUNDED = 1e-12  # logarithms, exponentials and sums of path lengths within a few hundred nats
SOLVED = 1e-7  # HiGHS is asked for 1e-9 of ln S, cvxpy's solvers for 1e-8
KINKS = 1e-9  # a closed form against a grid that has its kinks on nodes

GROWTHS = {
    "exponential": lambda gamma, d: np.exp(gamma * d),
    "linear": lambda gamma, d: 1 + gamma * d,
}
PLANES = {
    "line": Domain.grid(23, cell=0.7, unit="km"),
    "plane": Domain.grid((12, 17), cell=1.0, unit="km"),
    "oblong cells": Domain.grid((9, 14), cell=(1.0, 2.5), unit="km", origin=-3.0),
    "masked": Domain.grid((11, 12), cell=1.0, unit="km", mask=np.random.default_rng(0).random((11, 12)) < 0.7),
    "space": Domain.grid((4, 5, 6), cell=1.0, unit="km"),
    "points": Domain.points_at(np.random.default_rng(1).uniform(0, 9, (150, 2)), unit="km"),
    "points on a line": Domain.points_at(np.random.default_rng(2).uniform(0, 9, 80), unit="km"),
}


def all_pairs(lipschitz, distance, gamma, growth):
    """The transform by its definition."""
    return (lipschitz / GROWTHS[growth](gamma, distance)).max(axis=1)


def random_field(rng, domain):
    """Noise, steep noise with zeros, or a few peaks."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.random(domain.size)
    if kind == 1:
        return np.where(rng.random(domain.size) < 0.3, 0.0, np.exp(2 * rng.standard_normal(domain.size)))
    peaks = domain.points[rng.integers(domain.size, size=4)]
    near = np.linalg.norm(domain.points[:, None] - peaks, axis=2).min(axis=1)
    return 1e-3 / (0.1 + near)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", PLANES)
def test_the_bound_is_the_transform_of_all_pairs(name, growth):
    domain, rng = PLANES[name], np.random.default_rng(3)
    distance = domain.euclidean_to(domain)
    for gamma in (0.01, 0.9):
        lipschitz = random_field(rng, domain)
        expected = all_pairs(lipschitz, distance, gamma, growth)
        found = least_smooth_bound(domain, lipschitz=lipschitz, gamma=gamma, growth=growth)
        assert pytest.approx(expected, rel=ROUNDED) == found.S
        assert (lipschitz <= found.S).all()
        assert (found.method, found.safe, found.gap) == ("blocks", "least", 1.0)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("radius", [0.0, 1.3])
def test_blocks_have_the_bits_of_one_block(linear, radius):
    rng = np.random.default_rng(4)
    for count in (1, 7, 300):
        sources, targets = rng.uniform(0, 9, (count, 2)), rng.uniform(-2, 12, (211, 2))
        height = rng.random(count) * 3
        whole = transform(targets, sources, height, 0.4, linear=linear, radius=radius, leaf=1000)
        distance = np.maximum(np.linalg.norm(targets[:, None] - sources, axis=2) - radius, 0)
        plain = (height / (1 + 0.4 * distance) if linear else height - 0.4 * distance).max(axis=1)
        assert whole == pytest.approx(plain, rel=ROUNDED)
        for leaf in (1, 5, 64):
            cut = transform(targets, sources, height, 0.4, linear=linear, radius=radius, leaf=leaf)
            assert (cut == whole).all()


@pytest.mark.parametrize("horizon", few_by_default([math.inf, 4.0, 1.0, 0.05], 1.0))
def test_steepest_chords_by_blocks_and_by_definition(horizon):
    rng = np.random.default_rng(5)
    points = rng.integers(0, 20, (150, 2)) * 0.5
    points = np.unique(points, axis=0)
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    for values in (rng.random(len(points)), points[:, 0] > 5.0, np.ones(len(points))):
        f = values.astype(float)
        slope = np.abs(f[:, None] - f) / np.where(distance > 0, distance, np.inf)
        expected = np.where(distance <= horizon, slope, 0).max(axis=1)
        for leaf in (3, 64, 1000):
            assert steepest_chords(points, f, horizon, leaf) == pytest.approx(expected, rel=ROUNDED, abs=0)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", ["line", "small plane"])
def test_the_statement_is_the_transform(name, growth):
    domain = Domain.grid(9, cell=0.5, unit="km") if name == "line" else Domain.grid((3, 4), cell=1.0, unit="km")
    lipschitz = np.where(np.arange(domain.size) == 1, 0.0, np.random.default_rng(6).random(domain.size) ** 2)
    distance = domain.euclidean_to(domain)
    program = SmoothSensitivity(lipschitz=lipschitz, distances=distance, growth=Growth(name=growth, gamma=0.6))
    expected = all_pairs(lipschitz, distance, 0.6, growth)
    stated = program.statement()
    stated.solve(solver="HIGHS")
    assert stated.var_dict["S"].value == pytest.approx(expected, rel=SOLVED)
    assert stated.value == pytest.approx(expected.sum(), rel=SOLVED)
    found = least_smooth_bound(domain, lipschitz=lipschitz, gamma=0.6, growth=growth)
    assert pytest.approx(expected, rel=ROUNDED) == found.S


@pytest.mark.parametrize("growth", GROWTHS)
def test_metrics_measure_in_nats(growth):
    domain = Domain.grid((4, 6), cell=1.0, unit="1")
    tail, head = np.array([0, 1, 2, 3, 4, 0]), np.array([1, 2, 3, 4, 5, 5])
    cases = [
        (domain, Eikonal(level=PrivacyLevel.constant(0.5), stencil=8)),
        (domain, Euclidean(epsilon=0.3, unit="1")),
        (domain, Discrete(epsilon=2.0)),
        (Domain.nodes(6), Graph(tail=tail, head=head, length=np.array([1.0, 2, 1, 5, 1, 2]))),
    ]
    rng = np.random.default_rng(9)
    for places, metric in cases:
        distance = metric.distances(places)
        lipschitz, f = random_field(rng, places), rng.random(places.size)
        expected = all_pairs(lipschitz, distance, 0.7, growth)
        found = least_smooth_bound(places, lipschitz=lipschitz, gamma=0.7, growth=growth, metric=metric)
        assert found.method == ("graph" if growth == "exponential" else "pairs")
        assert pytest.approx(expected, rel=ROUNDED) == found.S
        for horizon in (math.inf, 1.5):
            near = (distance > 0) & (distance <= horizon)
            slope = np.where(near, np.abs(f[:, None] - f) / np.where(near, distance, 1), 0).max(axis=1)
            found = least_smooth_bound(places, values=f, gamma=0.7, growth=growth, metric=metric, horizon=horizon)
            assert pytest.approx(all_pairs(slope, distance, 0.7, growth), rel=ROUNDED, abs=0) == found.S


@pytest.mark.parametrize("growth", GROWTHS)
def test_closed_forms_on_a_line_with_kinks_on_nodes(growth):
    line = Domain.grid(161, cell=0.1, unit="km", origin=-8.05)  # centres -8, -7.9, ..., 8
    x = line.points[:, 0]
    for gamma in (0.05, 2.0):
        ranges = [BoundedRange(1.0, low=-2.0, high=3.0), BoundedRange(1.0, low=-0.2, high=0.4)]
        for query in [Threshold(1.0, at=0.5), *ranges]:
            found = least_smooth_bound(line, values=query.values(x), gamma=gamma, growth=growth)
            assert pytest.approx(query.smooth(x, gamma, growth), rel=KINKS) == found.S
        kernel = Kernel([0.0], 2.0)
        lipschitz = kernel.lipschitz(line.points)
        truth = kernel.smooth(line.points, gamma, growth)
        found = least_smooth_bound(line, lipschitz=lipschitz, gamma=gamma, growth=growth).S
        assert (found <= truth * (1 + ROUNDED)).all()
        assert found == pytest.approx(truth, rel=2e-4)  # half a cell from the maximum: gamma' h^2 / 8
        found = least_smooth_bound(line, values=kernel.values(line.points), gamma=gamma, growth=growth).S
        assert (found <= truth * (1 + ROUNDED)).all()


def test_horizon_of_a_gridded_query():
    line = Domain.grid(161, cell=0.1, unit="km", origin=-8.05)
    x = line.points[:, 0]
    query = Threshold(1.0, 2.05, at=0.5)
    truth = query.smooth(x, 0.4)
    found = least_smooth_bound(line, values=query.values(x), gamma=0.4, horizon=2.05).S
    assert (found <= truth * (1 + ROUNDED)).all()
    assert found == pytest.approx(truth, rel=0.1)  # chords end on nodes, half a cell short of the horizon
    free = least_smooth_bound(line, values=query.values(x), gamma=0.4).S
    assert (free >= found).all()
    assert (free > 1.01 * found).any()


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("cell", few_by_default([0.4, 0.1], 0.4))
def test_cell_bound_holds_anywhere_in_the_cells(cell, growth):
    rng = np.random.default_rng(10)
    line = Domain.grid(round(8 / cell), cell=cell, unit="km", origin=-4.0)
    at = rng.uniform(-4, 4, (500, 1))
    step = np.linspace(-0.5, 0.5, 41) * cell
    query = Threshold(0.8, at=0.13)
    largest = query.lipschitz(line.points + step).max(axis=1)
    largest = np.where(np.abs(line.points[:, 0] - 0.13) <= (0.8 + cell) / 2, 1 / 0.8, largest)
    found = cell_smooth_bound(line, at, lipschitz=largest, gamma=0.5, growth=growth)
    truth = query.smooth(at[:, 0], 0.5, growth)
    assert (found >= truth * (1 - ROUNDED)).all()
    assert (found <= truth * (1 + 0.55 * cell)).all()  # from half a cell off: the slope of ln K is at most 1 / 0.8
    square = Domain.grid((round(6 / cell), round(6 / cell)), cell=cell, unit="km", origin=-3.0)
    at = rng.uniform(-3, 3, (400, 2))
    kernel = Kernel([0.3, 0.2], 1.0)
    centre = kernel.lipschitz(square.points)
    slope = 0.4  # of K: |(ln kappa)'| <= 0.6309 and kappa <= e^{-1/2}
    found = cell_smooth_bound(square, at, lipschitz=centre, gamma=0.5, growth=growth, lipschitz_slope=slope)
    assert (found >= kernel.smooth(at, 0.5, growth)).all()
    distance = np.linalg.norm(at[:, None] - at, axis=2)
    assert (found[:, None] <= GROWTHS[growth](0.5, distance) * found * (1 + ROUNDED)).all()
    same = least_smooth_bound(square, lipschitz=centre, gamma=0.5, growth=growth, for_cells=True, lipschitz_slope=slope)
    radius = cell / math.sqrt(2)
    expected = (centre + radius * slope)[None, :] / GROWTHS[growth](
        0.5, np.maximum(square.euclidean_to(square) - radius, 0)
    )
    assert pytest.approx(expected.max(axis=1), rel=ROUNDED) == same.S
    least = least_smooth_bound(square, lipschitz=centre + radius * slope, gamma=0.5, growth=growth)
    assert (same.S >= least.S).all()
    assert (same.gap * least.S * (1 + ROUNDED) >= same.S).all()
    assert same.safe == "above"


def test_bounds_are_frozen():
    found = least_smooth_bound(PLANES["plane"], lipschitz=np.arange(PLANES["plane"].size), gamma=0.3)
    assert isinstance(found, SmoothBound)
    with pytest.raises(AttributeError):
        found.gap = 1.0
    assert replace(found, gap=2.0).gap == 2.0


def test_a_constant_query_needs_nothing():
    domain = PLANES["plane"]
    assert not least_smooth_bound(domain, values=np.full(domain.size, 3.0), gamma=1.0).S.any()
    assert not cell_smooth_bound(domain, [[0.0, 0.0]], lipschitz=np.zeros(domain.size), gamma=1.0).any()


def test_units_scale():
    domain, rng = PLANES["plane"], np.random.default_rng(11)
    lipschitz = random_field(rng, domain)
    base = least_smooth_bound(domain, lipschitz=lipschitz, gamma=0.3).S
    metres = Domain.grid((12, 17), cell=1000.0, unit="m")
    for factor in (1e-12, 1e9):
        scaled = least_smooth_bound(metres, lipschitz=lipschitz * factor, gamma=0.3e-3).S
        assert scaled == pytest.approx(base * factor, rel=ROUNDED)


PLANE = PLANES["plane"]
FLAT = np.ones(PLANE.size)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("growth", {"lipschitz": FLAT, "gamma": 1.0, "growth": "quadratic"}),
        ("growth", {"lipschitz": FLAT, "gamma": 1.0, "growth": lambda d: 1 + d}),
        ("gamma", {"lipschitz": FLAT}),
        ("gamma", {"lipschitz": FLAT, "gamma": -1.0}),
        ("gamma", {"lipschitz": FLAT, "gamma": math.inf}),
        ("lipschitz", {"gamma": 1.0}),
        ("lipschitz", {"lipschitz": FLAT, "values": FLAT, "gamma": 1.0}),
        ("lipschitz", {"lipschitz": -FLAT, "gamma": 1.0}),
        ("lipschitz", {"lipschitz": FLAT[:-1], "gamma": 1.0}),
        ("lipschitz", {"lipschitz": FLAT * math.nan, "gamma": 1.0}),
        ("values", {"values": FLAT * math.inf, "gamma": 1.0}),
        ("horizon", {"values": FLAT, "gamma": 1.0, "horizon": 0.0}),
        ("horizon", {"lipschitz": FLAT, "gamma": 1.0, "horizon": 2.0}),
        ("lipschitz_slope", {"lipschitz": FLAT, "gamma": 1.0, "lipschitz_slope": 2.0}),
        ("for_cells", {"values": FLAT, "gamma": 1.0, "for_cells": True}),
        ("for_cells", {"lipschitz": FLAT, "gamma": 1.0, "for_cells": True, "metric": Discrete(epsilon=1.0)}),
        ("lipschitz_slope", {"lipschitz": FLAT, "gamma": 1.0, "for_cells": True, "lipschitz_slope": -1.0}),
    ],
)
def test_bad_input_names_the_field(field, arguments):
    with pytest.raises(InputError) as caught:
        least_smooth_bound(PLANE, **arguments)
    assert caught.value.field == field


def test_places_that_do_not_fit_are_refused():
    nodes, points = Domain.nodes(5), PLANES["points"]
    with pytest.raises(InputError, match="metric"):
        least_smooth_bound(nodes, lipschitz=np.ones(5), gamma=1.0)
    with pytest.raises(InputError, match="grid"):
        least_smooth_bound(points, lipschitz=np.ones(points.size), gamma=1.0, for_cells=True)
    with pytest.raises(InputError, match="must have shape"):
        cell_smooth_bound(PLANE, [0.0, 0.0], lipschitz=FLAT, gamma=1.0)
    with pytest.raises(InputError, match="distances"):
        SmoothSensitivity(lipschitz=np.ones(3), distances=np.ones((2, 2)), growth=Growth(name="linear", gamma=1.0))
    for bad in (np.zeros(2), -np.ones(2), np.full(2, np.nan)):
        with pytest.raises(InputError, match="lipschitz"):
            SmoothSensitivity(lipschitz=bad, distances=np.zeros((2, 2)), growth=Growth(name="linear", gamma=1.0))


@pytest.mark.study
@pytest.mark.parametrize("growth", GROWTHS)
def test_bounds_on_200_by_200_cells(growth):
    rng = np.random.default_rng(12)
    domain = Domain.grid((200, 200), cell=1.0, unit="km")
    for _ in range(50):
        gamma = float(np.exp(rng.uniform(-6, 0.5)))
        lipschitz = random_field(rng, domain)
        exact = least_smooth_bound(domain, lipschitz=lipschitz, gamma=gamma, growth=growth).S
        rows = rng.integers(domain.size, size=40)
        distance = np.linalg.norm(domain.points[rows, None] - domain.points, axis=2)
        assert exact[rows] == pytest.approx(all_pairs(lipschitz, distance, gamma, growth), rel=ROUNDED)
        levels = level_set_bound(domain, lipschitz, lambda d, gamma=gamma: GROWTHS[growth](gamma, d))
        assert (levels >= exact).all()
        assert (levels <= 1.03 * exact).all()
