"""Families tuned to one expected distance or to one true level, and the tables that they are made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from fixtures.rows import few_by_default
from numpy.polynomial.legendre import leggauss

from mechdesign import DesignProblem, Discrete, Domain, Euclidean, load_problem, priors
from mechdesign.closed_forms.planar_laplace import cell_masses, laplace_normalised, line_masses
from mechdesign.errors import InputError
from mechdesign.losses import Distance
from mechdesign.programs import matched
from mechdesign.utility import match_distance, match_effective_epsilon

ANCHOR = 1e-6  # the anchors are printed with seven digits or more
MATCHED = 1e-6  # asked of distances and levels
TUNED = 1e-10  # asked of eps
QUADRATURE = 1e-12  # asked of every cell
SUMMED = 1e-11  # tables are sums of at most 10^5 doubles
ANCHORS = {
    "randomized_response": 8.240410,
    "geometric_normalised": 0.0040154449,
    "geometric_clamped": 0.0040653848,
    "laplacian_normalised": 0.0040951271,
    "laplacian_clamped": 0.004136012,
}
HOLES = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]], bool)


def on(domain: Domain, seed: int | None = None, **given: object) -> DesignProblem:
    prior = priors.uniform(domain)
    if seed is not None:
        prior = priors.proportional(np.random.default_rng(seed).random(domain.size))
    metric = Euclidean(epsilon=1.0, unit=domain.unit)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=Distance(), **given)  # type: ignore[arg-type]


DOMAINS: dict[str, Callable[[], DesignProblem]] = {
    "line": lambda: on(Domain.grid(9, cell=3.0, unit="km"), seed=1),
    "grid": lambda: on(Domain.grid((4, 5), cell=2.0, unit="km"), seed=2),
    "masked": lambda: on(Domain.grid((3, 4), cell=2.0, unit="km", mask=HOLES), seed=3),
}


@pytest.mark.parametrize("name", few_by_default(ANCHORS, "randomized_response", "geometric_clamped"))
def test_the_anchors_of_paris(name: str) -> None:
    problem = on(Domain.grid((30, 30), cell=150.0, unit="m"))
    match = match_distance(problem, name, 450.0)
    assert match.epsilon == pytest.approx(ANCHORS[name], rel=ANCHOR)
    assert match.unit == ("nats" if name == "randomized_response" else "nats per m")


@pytest.mark.parametrize("case", DOMAINS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_randomized_response_has_a_closed_form(case: str, share: float) -> None:
    problem = DOMAINS[case]()
    points, size = problem.domain.points, problem.domain.size
    away = [math.fsum(math.dist(u, v) for v in points) for u in points]
    total = math.fsum(p * a for p, a in zip(problem.prior_array, away, strict=True))
    target = share * total / size
    expected = math.log(total / target - size + 1)
    assert match_distance(problem, "randomized_response", target).epsilon == pytest.approx(expected, rel=TUNED)


@pytest.mark.parametrize("name", matched.FAMILIES)
@pytest.mark.parametrize(
    ("case", "target"), few_by_default(itertools.product(DOMAINS, [0.2, 1.0, 2.5]), ("line", 2.5), ("masked", 1.0))
)
def test_the_distance_is_reached_and_falls_with_epsilon(case: str, name: str, target: float) -> None:
    """The second route adds prior, probability and distance entry by entry."""
    problem = DOMAINS[case]()
    match, points = match_distance(problem, name, target), problem.domain.points
    distances = []
    for factor in (0.99, 1.0, 1.01):
        table = matched.FAMILIES[name].table(problem, factor * match.epsilon)
        terms = (
            problem.prior_array[u] * table[u, y] * math.dist(points[u], points[y]) for u, y in np.ndindex(table.shape)
        )
        distances.append(math.fsum(terms))
    assert distances[1] == pytest.approx(target, rel=SUMMED)
    assert match.distance == pytest.approx(distances[1], rel=SUMMED)
    assert distances[0] > distances[1] > distances[2]


@pytest.mark.parametrize("name", matched.FAMILIES)
def test_unreachable_distance_is_refused_with_range(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With narrower limits than the shipped ones, which take seconds."""
    monkeypatch.setattr(matched, "MAX_DISPLACEMENTS", 10_000)
    monkeypatch.setattr(matched, "MAX_STEP_NATS", 5.0)
    problem = DOMAINS["grid"]()
    family = matched.FAMILIES[name]
    smallest, _, largest = family.epsilons(problem.domain)
    near, wide = map(family.expected_distances(problem), (largest, smallest))
    assert 0 < near < wide
    for target in (0.5 * near, 1.001 * wide):
        with pytest.raises(InputError, match="under this prior") as caught:
            match_distance(problem, name, target)
        assert caught.value.field == "distance"
        assert f"between {near:.6g} and {wide:.6g} km" in caught.value.message
    for target in (1.001 * near, 0.999 * wide):
        assert match_distance(problem, name, target).distance == pytest.approx(target, rel=SUMMED)


def test_widest_noise_tends_to_uniform_or_corners() -> None:
    problem = DOMAINS["line"]()
    place, prior = problem.domain.points[:, 0], problem.prior_array
    uniform = float(prior @ abs(place[:, None] - place).mean(axis=1))
    ends = float(prior @ (abs(place - place[0]) + abs(place - place[-1]))) / 2
    for name, family in matched.FAMILIES.items():
        smallest, _, _ = family.epsilons(problem.domain)
        wide = family.expected_distances(problem)(smallest)
        assert wide == pytest.approx(ends if family.is_clamped else uniform, rel=1e-3), name


def test_any_function_is_a_family() -> None:
    problem = DOMAINS["grid"]()

    def rings(given: DesignProblem, epsilon: float) -> np.ndarray:
        weight = 1 / (1 + epsilon * given.domain.euclidean_to(given.reports)) ** 3
        return weight / weight.sum(axis=1, keepdims=True)

    match = match_distance(problem, rings, 1.5)
    assert match.family == "rings"
    assert match.unit == "nats per km"
    weights = problem.prior_array[:, None] * problem.domain.euclidean_to(problem.domain)
    assert float((rings(problem, match.epsilon) * weights).sum()) == pytest.approx(1.5, rel=SUMMED)


@pytest.mark.parametrize(
    ("family", "distance", "change", "field"),
    [
        ("geometric_clamped", 0.0, {}, "distance"),
        ("geometric_clamped", -1.0, {}, "distance"),
        ("geometric_clamped", math.nan, {}, "distance"),
        ("geometric_clamped", math.inf, {}, "distance"),
        ("geometric_clamped", "far", {}, "distance"),
        ("gaussian", 1.0, {}, "family"),
        (matched.Family(name="short", table=lambda problem, epsilon: np.eye(3)), 1.0, {}, "family"),
        ("laplacian_normalised", 1.0, {"domain": Domain.points_at([[0, 0], [1, 2]], unit="km")}, "domain"),
        ("geometric_normalised", 1.0, {"domain": Domain.nodes(4), "metric": Discrete(epsilon=1.0)}, "domain"),
    ],
)
def test_bad_input_names_the_field(family: object, distance: object, change: dict[str, object], field: str) -> None:
    setting: dict[str, object] = {"domain": Domain.grid((3, 3), cell=1.0, unit="km")}
    setting |= {"metric": Euclidean(epsilon=1.0, unit="km"), "loss": Distance()} | change
    setting["prior"] = priors.uniform(setting["domain"])  # type: ignore[arg-type]
    problem = DesignProblem(**setting)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        match_distance(problem, family, distance)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("distance", [0.0, -450.0, math.nan])
def test_problem_refuses_invalid_distance(distance: float) -> None:
    with pytest.raises(InputError) as caught:
        on(Domain.grid((3, 3), cell=1.0, unit="km"), matched_distance=distance)
    assert caught.value.field == "distance"


@pytest.mark.parametrize("step", [0.05, 0.61, 1.0, 2.5])
def test_every_cell_of_the_laplace_mechanism_to_twelve_digits(step: float) -> None:
    """The second route has six panels of 24 nodes an axis; the cell around the cusp 200 angles."""
    masses, scale = cell_masses(5, 1.0, step), step**2 / (2 * math.pi)
    node, weight = leggauss(24)
    at = ((np.arange(6)[:, None] + (node + 1) / 2) / 6 - 0.5).ravel()
    share = np.tile(weight / 12, 6)
    for i, j in np.ndindex(5, 5):
        if i + j:
            fine = scale * (share[:, None] * share * np.exp(-step * np.hypot((i + at)[:, None], j + at))).sum()
            assert masses[i, j] == pytest.approx(fine, rel=QUADRATURE)
    angle, turn = leggauss(200)
    edge = step / 2 / np.cos((angle + 1) * math.pi / 8)
    assert masses[0, 0] == pytest.approx((turn * (1 - (1 + edge) * np.exp(-edge))).sum() / 2, rel=QUADRATURE)


@pytest.mark.parametrize("case", DOMAINS)
def test_laplace_rows_are_proportional_to_cell_masses(case: str) -> None:
    problem, epsilon = DOMAINS[case](), 0.7
    domain = problem.domain
    assert domain.index is not None
    assert domain.cell is not None
    table = laplace_normalised(problem, epsilon)
    masses = line_masses if domain.dimension == 1 else cell_masses
    quadrant = masses(20, domain.cell[0], epsilon)
    for u, y in np.ndindex(table.shape):
        whole = math.fsum(quadrant[tuple(abs(domain.index[u] - z))] for z in domain.index)
        assert table[u, y] == pytest.approx(quadrant[tuple(abs(domain.index[u] - domain.index[y]))] / whole, rel=SUMMED)


def paris():
    return load_problem("paris", cells=4, distance=150.0)


def max_log_ratio(table, problem):
    """Second route: the largest log-ratio per unit over all pairs and reports, without edges."""
    log = np.log(table)
    apart = problem.domain.euclidean_to(problem.domain) + np.diag(np.full(len(table), np.inf))
    return (abs(log[:, None, :] - log).max(axis=2) / apart).max()


@pytest.mark.parametrize("level", few_by_default([0.002, 0.007, 0.03], 0.007))
@pytest.mark.parametrize("name", matched.FAMILIES)
def test_matched_level_holds_for_all_pairs(name, level):
    problem = paris()
    match = match_effective_epsilon(problem, name, level)
    table = matched.FAMILIES[name].table(problem, match.epsilon)
    assert max_log_ratio(table, problem) == pytest.approx(level, rel=MATCHED)
    assert match.distance == pytest.approx(float(np.sum(table * problem.weighted_loss)), rel=1e-12)
    if name == "randomized_response":
        assert match.epsilon == pytest.approx(level * 150, rel=MATCHED)
        assert match.unit == "nats"
    elif name == "geometric_clamped":
        assert match.epsilon == pytest.approx(level, rel=MATCHED)
        assert match.unit == "nats per m"


@pytest.mark.parametrize("level", [0.0, -1.0, math.nan, math.inf])
def test_invalid_levels_are_refused(level):
    with pytest.raises(InputError) as caught:
        match_effective_epsilon(paris(), "geometric_normalised", level)
    assert caught.value.field == "level"


def test_family_without_the_level_is_refused():
    def constant(problem, epsilon):
        return np.full((16, 16), 1 / 16) + 0 * epsilon + 1e-9 * np.eye(16)

    with pytest.raises(InputError) as caught:
        match_effective_epsilon(paris(), constant, 0.01)
    assert caught.value.field == "level"
