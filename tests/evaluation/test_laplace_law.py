from __future__ import annotations

import json
import math

import numpy as np
import pytest
from fixtures.integer_oracles import reference_violations
from scipy.integrate import quad
from scipy.spatial import cKDTree
from scipy.stats import kstest

from mechdesign import DesignProblem, Domain, Euclidean, baselines, priors, probabilities, verify
from mechdesign.closed_forms.finite_precision import (
    diameter,
    finite_precision_bound,
    finite_precision_epsilon,
    truncated,
)
from mechdesign.closed_forms.planar_laplace import mean_squared_error
from mechdesign.errors import InputError
from mechdesign.evaluation import radial_laplace
from mechdesign.losses import Distance

PRINTED = 5e-7  # absolute; the figures have six decimals
INTEGRAL = 1e-9  # tolerance of the adaptive quadrature
FUNCTION = 1e-13  # relative; SciPy's incomplete gamma functions against formulas that lose no digits
RATIO = 1e-9  # relative; edges are rounded down by 2^-43 and tables to integers
KOLMOGOROV = 1.95  # of sqrt(n) D: exceeded by a right law in one of a thousand runs, here with fixed seeds

EPSILON, CELL = 0.00404249, 150.0  # nats per m, m
CIRCLE = 2 * math.pi
# epsilon in nats per unit, step, angles of a turn, r_max
MACHINES = [(0.3, 1.0, 1000, 5.0), (0.1, 2.0, 1440, 12.0), (0.8, 1.0, 400, 4.5), (0.25, 1.0, 900, 6.0)]
HOLES = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]], bool)


def on_grid(shape, *, epsilon, cell=1.0, mask=None):
    domain = Domain.grid(shape, cell=cell, unit="m", mask=mask)
    metric = Euclidean(epsilon=epsilon, unit="m")
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance())


def bound_of(epsilon, step, angle, r_max):
    """The eps that Theorem 4.1 of Andres et al. guarantees of a machine run at `epsilon`."""
    q, grown = step / (r_max * angle), 2 * math.exp(epsilon * step)
    return epsilon + math.log((q + grown) / (q - grown)) / step


def planar_cdf(r, epsilon):
    return 1 - (1 + epsilon * r) * np.exp(-epsilon * r)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 3.0])
def test_the_radius_against_quadrature_and_back(epsilon, dimension):
    def density(r):
        return epsilon**dimension * r ** (dimension - 1) * math.exp(-epsilon * r) / math.factorial(dimension - 1)

    for r in (0.1 / epsilon, 2 / epsilon, 7 / epsilon):
        found, _ = quad(density, 0, r, epsabs=0, epsrel=INTEGRAL)
        assert radial_laplace.radius_cdf(r, epsilon, dimension) == pytest.approx(found, rel=10 * INTEGRAL)
        assert radial_laplace.radius_ppf(
            radial_laplace.radius_cdf(r, epsilon, dimension), epsilon, dimension
        ) == pytest.approx(r)


def test_the_moments_are_integrals_of_the_tail():
    for epsilon, dimension in ((0.4, 2), (0.4, 3), (2.0, 1)):

        def tail(r, epsilon=epsilon, dimension=dimension):
            return 1 - radial_laplace.radius_cdf(r, epsilon, dimension)

        mean, _ = quad(tail, 0, np.inf, epsrel=INTEGRAL)
        square, _ = quad(lambda r, tail=tail: 2 * r * tail(r), 0, np.inf, epsrel=INTEGRAL)
        assert radial_laplace.mean_radius(epsilon, dimension) == pytest.approx(mean, rel=1e-7)
        assert mean_squared_error(epsilon, dimension) == pytest.approx(square, rel=1e-7)
    assert radial_laplace.mean_radius(0.4) == pytest.approx(5)


def test_quantiles_of_the_plane():
    printed = [1.678347, 3.889720, 4.743865, 6.638352]
    found = radial_laplace.radius_ppf([0.5, 0.9, 0.95, 0.99], 0.25) * 0.25
    assert found == pytest.approx(printed, abs=PRINTED)
    assert planar_cdf(np.array(printed), 1.0) == pytest.approx([0.5, 0.9, 0.95, 0.99], abs=PRINTED)


@pytest.mark.parametrize("p", [1e-300, 1e-17, 1e-12, 1e-9])
def test_tiny_probabilities_keep_their_digits(p):
    s = math.sqrt(2 * p)  # p = x^2 / 2 - x^3 / 3 + x^4 / 8 - ... inverted
    assert radial_laplace.radius_ppf(p, 2.0) == pytest.approx((s + s * s / 3 + 11 * s**3 / 72) / 2, rel=FUNCTION)


def test_the_ends_of_the_law():
    assert radial_laplace.radius_ppf([0, 1], 0.5).tolist() == [0, math.inf]
    assert radial_laplace.radius_cdf([0, math.inf], 0.5).tolist() == [0, 1]


@pytest.mark.parametrize(("dimension", "draws"), [(2, 100_000), (3, 100_000)])
def test_many_draws_have_the_law(dimension, draws):
    epsilon, place = 0.02, np.array([300.0, -1000.0, 70.0])[:dimension]
    drawn = radial_laplace.sample(place, epsilon, np.random.default_rng(4), draws)
    assert drawn.shape == (draws, dimension)
    noise = drawn - place
    radius = np.linalg.norm(noise, axis=1)
    x = epsilon * radius
    spherical = 1 - np.exp(-x) * (1 + x + (x * x / 2 if dimension == 3 else 0))
    assert kstest(spherical, "uniform").statistic * math.sqrt(draws) < KOLMOGOROV
    turn = (np.arctan2(noise[:, 1], noise[:, 0]) / CIRCLE) % 1
    assert kstest(turn, "uniform").statistic * math.sqrt(draws) < KOLMOGOROV
    if dimension == 3:
        height = (noise[:, 2] / radius + 1) / 2  # Archimedes: uniform
        assert kstest(height, "uniform").statistic * math.sqrt(draws) < KOLMOGOROV
    for far in (radius > np.median(radius), radius > 2 * np.median(radius)):  # the direction does not know the radius
        assert kstest(turn[far], "uniform").statistic * math.sqrt(far.sum()) < KOLMOGOROV
    assert radius.mean() == pytest.approx(radial_laplace.mean_radius(epsilon, dimension), rel=4 / math.sqrt(draws))
    assert (radius**2).mean() == pytest.approx(mean_squared_error(epsilon, dimension), rel=8 / math.sqrt(draws))


def polar_points(epsilon, angles, radius_precision, far):
    """Everything that a machine with these precisions can draw, and how likely: points (r, t, 2), masses (r, t)."""
    corner = np.arange(0, far, radius_precision)
    ring = np.diff(planar_cdf(corner, epsilon), append=1.0)
    theta = np.arange(angles) * (CIRCLE / angles)
    points = corner[:, None, None] * np.stack([np.cos(theta), np.sin(theta)], axis=1)
    return points, np.repeat(ring[:, None] / angles, angles, axis=1)


def observed_rate(epsilon, step, angles, r_max):
    """The largest |ln K(x)(z) - ln K(x')(z)| / |x - x'| of the machine over grid points at most r_max from z."""
    points, mass = polar_points(epsilon, angles, 0.9 * r_max * CIRCLE / angles, r_max + 2 * step)
    reach = math.floor(r_max / step)
    cell = np.rint(points / step).astype(int).reshape(-1, 2)
    kept = (abs(cell) <= reach).all(axis=1)
    gathered = np.zeros((2 * reach + 1,) * 2)
    np.add.at(gathered, tuple(cell[kept].T + reach), mass.ravel()[kept])
    at = np.argwhere(gathered >= 0) - reach
    at = at[np.hypot(*at.T) * step <= r_max]
    logs = np.log(gathered[tuple(at.T + reach)])
    apart = step * np.hypot(*(at[:, None] - at[None]).T)
    np.fill_diagonal(apart, np.inf)
    return float((abs(logs[:, None] - logs[None]) / apart).max())


@pytest.mark.parametrize(("epsilon", "step", "angles", "r_max"), MACHINES)
def test_a_machine_of_finite_precision_stays_below_the_bound(epsilon, step, angles, r_max):
    observed = observed_rate(epsilon, step, angles, r_max)
    bound = bound_of(epsilon, step, CIRCLE / angles, r_max)
    assert epsilon < observed <= bound  # the loss is real, so that a smaller level is needed
    running = finite_precision_epsilon(epsilon, step, CIRCLE / angles, r_max)
    assert observed_rate(running, step, angles, r_max) <= epsilon


@pytest.mark.parametrize(("epsilon", "step", "angles", "r_max"), MACHINES)
def test_level_is_the_largest_of_the_formula(epsilon, step, angles, r_max):
    angle = CIRCLE / angles
    running = finite_precision_epsilon(epsilon, step, angle, r_max)
    assert bound_of(running * (1 - FUNCTION), step, angle, r_max) <= epsilon
    assert bound_of(running * (1 + FUNCTION), step, angle, r_max) > epsilon


@pytest.mark.parametrize(("epsilon", "step", "angles", "r_max"), MACHINES)
def test_the_guarantee_is_theorem_4_1_and_its_inverse(epsilon, step, angles, r_max):
    """The logarithm of the theorem against the artanh of the package; both directions give the other back."""
    angle = CIRCLE / angles
    guaranteed = finite_precision_bound(epsilon, step, angle, r_max)
    assert guaranteed == pytest.approx(bound_of(epsilon, step, angle, r_max), rel=FUNCTION)
    running = finite_precision_epsilon(guaranteed, step, angle, r_max)
    assert running == pytest.approx(epsilon, rel=FUNCTION)
    assert finite_precision_bound(running, step, angle, r_max) <= guaranteed


def test_at_double_precision_nearly_nothing_is_lost():
    epsilon, step, angle, r_max = math.log(2) / 200, 100.0, 2.0**-50, 1e5
    running = finite_precision_epsilon(epsilon, step, angle, r_max)
    first_order = 4 * r_max * angle * math.exp(epsilon * step) / step**2
    assert epsilon - running == pytest.approx(first_order, rel=1e-4)  # 1e-11 of the level, in steps of 1e-16 of it
    assert running < epsilon


def test_where_no_level_is_small_enough():
    epsilon, step, r_max = 0.5, 2.0, 30.0
    threshold = step / (r_max * 2 / math.tanh(epsilon * step / 2))  # q = 2 / tanh(eps u / 2)
    found = finite_precision_epsilon(epsilon, step, threshold * 0.999, r_max)
    assert 0 < found < 0.01 * epsilon
    with pytest.raises(InputError, match="too coarse") as caught:
        finite_precision_epsilon(epsilon, step, threshold * 1.001, r_max)
    assert caught.value.field == "angle_precision"
    assert f"{threshold:.6g} radians" in caught.value.remedy


@pytest.mark.study
def test_paris_grid_is_private_and_matches_the_plane():
    problem = on_grid((20, 20), epsilon=EPSILON, cell=CELL)
    mechanism = baselines.planar_laplace(problem)
    assert max(mechanism.attrs["ratio"], mechanism.attrs["scale"]) <= 1
    assert verify(mechanism).certified
    table = probabilities(mechanism).values
    logs, away = np.log(table), problem.domain.euclidean_to(problem.domain)
    for u in range(0, 400, 31):  # all pairs of these, by definition
        apart = np.where(away[u] > 0, EPSILON * away[u], np.inf)
        assert (abs(logs - logs[u]).max(axis=1) / apart).max() <= 1
    mean = (table * away).sum(axis=1) / (2 / EPSILON) - 1
    margin = np.minimum(problem.domain.index, 19 - problem.domain.index).min(axis=1)  # cells between it and the border
    assert abs(mean[margin >= 8]).max() < 0.01
    assert mean[margin <= 3].max() < -0.05  # nearer the border the domain cuts the noise off


def test_the_diameter_of_many_places():
    rng = np.random.default_rng(0)
    domain = Domain.points_at(rng.normal(size=(700, 2)), unit="m")
    assert diameter(domain) == pytest.approx(domain.euclidean_to(domain).max(), rel=FUNCTION)


@pytest.mark.parametrize("mask", [None, pytest.param(HOLES, marks=pytest.mark.exhaustive)])
def test_truncated_tables_are_certified_below_the_level(mask):
    epsilon, angles = 0.8, 400
    problem = on_grid((4, 4), epsilon=epsilon, mask=mask)
    mechanism = truncated(problem, angle_precision=CIRCLE / angles)
    kept = json.loads(mechanism.attrs["parameters"])
    far = max(math.dist(a, b) for a in problem.domain.points for b in problem.domain.points)
    running = finite_precision_epsilon(epsilon, 1.0, CIRCLE / angles, far)
    assert (kept["r_max"], kept["running_epsilon"]) == (pytest.approx(far, rel=FUNCTION), pytest.approx(running))
    assert kept["angle_precision"] == CIRCLE / angles
    assert mechanism.attrs["claimed_epsilon"] == epsilon
    assert verify(mechanism).certified
    assert mechanism.attrs["scale"] <= running / epsilon * (1 + RATIO)
    assert reference_violations(mechanism["mass"].values, problem.edges) == 0

    points, mass = polar_points(running, angles, 0.9 * far * CIRCLE / angles, 30.0)
    nearest = cKDTree(problem.domain.points)
    machine = np.zeros((problem.domain.size,) * 2)
    for u, place in enumerate(problem.domain.points):
        landed = nearest.query((points + place).reshape(-1, 2))[1]
        machine[u] = np.bincount(landed, mass.ravel(), minlength=problem.domain.size)
    assert machine.sum(axis=1) == pytest.approx(np.ones(problem.domain.size))
    apart = problem.domain.euclidean_to(problem.domain) + np.diag(np.full(problem.domain.size, np.inf))
    logs = np.log(machine)
    assert (abs(logs[:, None] - logs[None]).max(axis=2) / apart).max() <= epsilon
    if mask is None:  # beside holes the table rounds to a cell of the grid first
        assert probabilities(mechanism).values == pytest.approx(machine, abs=0.02)  # the machine's sectors are coarse


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: radial_laplace.radius_cdf(-1.0, 1.0), "r"),
        (lambda: radial_laplace.radius_cdf(math.nan, 1.0), "r"),
        (lambda: radial_laplace.radius_ppf(1.5, 1.0), "p"),
        (lambda: radial_laplace.radius_ppf(-1e-9, 1.0), "p"),
        (lambda: radial_laplace.radius_ppf(math.nan, 1.0), "p"),
        (lambda: radial_laplace.radius_ppf(0.5, 0.0), "epsilon"),
        (lambda: radial_laplace.radius_ppf(0.5, 1.0, 0), "dimension"),
        (lambda: radial_laplace.mean_radius(1.0, 2.5), "dimension"),
        (lambda: radial_laplace.sample([[0.0, 0.0]], 1.0, np.random.default_rng(0), 1), "location"),
        (lambda: radial_laplace.sample([0.0, math.inf], 1.0, np.random.default_rng(0), 1), "location"),
        (lambda: radial_laplace.sample([0.0, 0.0], 1.0, np.random.default_rng(0), -1), "size"),
        (lambda: finite_precision_epsilon(1.0, 1.0, 0.1, 5.0), "angle_precision"),
        (lambda: finite_precision_epsilon(1.0, 0.0, 0.1, 5.0), "step"),
        (lambda: finite_precision_epsilon(1.0, 1.0, 0.1, math.inf), "r_max"),
        (lambda: finite_precision_epsilon(-1.0, 1.0, 0.1, 5.0), "epsilon"),
        (lambda: finite_precision_bound(1.0, 1.0, 0.1, 5.0), "running_epsilon"),
        (lambda: finite_precision_bound(0.0, 1.0, 1e-3, 5.0), "running_epsilon"),
        (lambda: finite_precision_bound(1e9, 1.0, 1e-9, 5.0), "running_epsilon"),
        (lambda: truncated(on_grid((4, 4), epsilon=0.8), angle_precision=0.5), "angle_precision"),
        (lambda: truncated(on_grid((4,), epsilon=0.8), angle_precision=1e-6), "domain"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
