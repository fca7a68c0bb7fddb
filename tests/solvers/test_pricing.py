"""Pricing over the privacy cone, and the lower bound that follows from any multipliers."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from fixtures.integer_oracles import distances
from fixtures.rows import few_by_default
from scipy.optimize import linprog

from mechdesign import Discrete, Domain, Eikonal, Euclidean, PrivacyLevel
from mechdesign.extend import Edges
from mechdesign.solvers.cone.pricing import ConePricer, homogeneous_bound, lower_bound

ROUNDED = 1e-9  # relative to sum |r g|: pivots stop at 1e-15 of it, the other solver at 1e-10
CONE = 1e-9  # relative: rays are built with lengths shortened by as much, against cycling
ULPS = 1e-14  # relative: a few dozen roundings
BELOW_THE_OPTIMUM = 1e-7  # relative: loss of a homogeneous bound by negative prices and by one more step
BELOW = 1e-12  # relative: the other solver may end this little below the true minimum


def random_graph(seed: int, n: int, shortest: float, longest: float) -> tuple[Edges, int]:
    rng = np.random.default_rng(seed)
    pairs = {(int(rng.integers(v)), v) for v in range(1, n)}
    pairs |= {tuple(sorted(map(int, rng.choice(n, 2, replace=False)))) for _ in range(n)}
    tail, head = np.array(sorted(pairs)).T
    return Edges(tail=tail, head=head, length=np.exp(rng.uniform(np.log(shortest), np.log(longest), len(tail)))), n


def lattice(metric: Eikonal | Euclidean | Discrete, shape: tuple[int, ...]) -> tuple[Edges, int]:
    domain = Domain.grid(shape, cell=1.0, unit="cell")
    return metric.edges(domain), domain.size


GRAPHS = {
    "two places": lambda: random_graph(0, 2, 0.5, 1.0),
    "random": lambda: random_graph(1, 9, 0.1, 2.0),
    "short edges": lambda: random_graph(2, 8, 1e-6, 1e-2),
    "spread lengths": lambda: random_graph(3, 10, 1e-3, 5.0),
    "line": lambda: lattice(Eikonal(level=PrivacyLevel.constant(0.7, "cell")), (10,)),
    "grid with ties": lambda: lattice(Eikonal(level=PrivacyLevel.constant(0.5, "cell"), stencil=4), (4, 4)),
    "grid of 8 neighbours": lambda: lattice(Eikonal(level=PrivacyLevel.constant(0.5, "cell")), (4, 4)),
    "euclidean": lambda: lattice(Euclidean(epsilon=0.9, unit="cell"), (3, 3)),
    "discrete": lambda: lattice(Discrete(epsilon=1.1), (7,)),
}
ALL = pytest.mark.parametrize("name", GRAPHS)


@cache
def graph(name: str) -> tuple[Edges, int]:
    return GRAPHS[name]()


def objectives(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Costs (n, 24) and multipliers (n,): costs of either sign, of one sign, of few values (ties), with zeros."""
    rng = np.random.default_rng(len(name))
    n = graph(name)[1]
    kinds = [
        rng.standard_normal((n, 6)),
        rng.random((n, 6)),
        rng.integers(-1, 2, (n, 6)).astype(float),
        np.where(rng.random((n, 6)) < 0.6, 0.0, rng.standard_normal((n, 6))),
    ]
    return np.hstack(kinds), 0.3 * rng.standard_normal(n)


def minimum(r: np.ndarray, anchor: int, edges: Edges) -> tuple[float, np.ndarray]:
    """min <r, g> over the cone with g(anchor) = 1, by another solver."""
    tail, head, length = edges.both_ways()
    rows = np.zeros((len(tail), len(r)))
    rows[np.arange(len(tail)), tail] = np.exp(-length / 2)
    rows[np.arange(len(tail)), head] = -np.exp(length / 2)
    fixed = np.eye(len(r))[anchor : anchor + 1]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solution = linprog(r, rows, np.zeros(len(tail)), fixed, [1.0], method="highs-ds", options=options)
    assert solution.status == 0
    return solution.fun, solution.x


@pytest.mark.parametrize(
    "name", few_by_default(GRAPHS, "two places", "short edges", "spread lengths", "grid with ties", "discrete")
)
def test_value_is_the_minimum_over_the_cone(name: str) -> None:
    edges, n = graph(name)
    cost, dual = objectives(name)
    anchors = np.random.default_rng(5).integers(0, n, cost.shape[1])
    price = ConePricer(edges, n, anchors).price(cost, dual, rays=True)
    for y, anchor in enumerate(anchors):
        r = cost[:, y] - dual
        smallest, minimiser = minimum(r, int(anchor), edges)
        scale = np.abs(r * minimiser).sum()
        assert price.value[y] <= smallest + BELOW * scale
        assert price.value[y] >= smallest - ROUNDED * scale


@ALL
def test_rays_lie_in_the_cone_and_attain_the_value(name: str) -> None:
    edges, n = graph(name)
    cost, dual = objectives(name)
    anchors = np.random.default_rng(6).integers(0, n, cost.shape[1])
    price = ConePricer(edges, n, anchors).price(cost, dual, rays=True)
    tail, head, length = edges.both_ways()
    assert (price.rays > 0).all()
    assert (price.rays[np.arange(len(anchors)), anchors] == 1).all()
    assert (price.rays[:, tail] <= np.exp(length) * price.rays[:, head] * (1 + CONE)).all()
    reached = (price.rays * (cost - dual[:, None]).T).sum(axis=1)
    scale = (price.rays * np.abs(cost - dual[:, None]).T).sum(axis=1)
    assert (np.abs(reached - price.value) <= CONE * (1 + distances(edges, n).max()) * scale).all()


@ALL
def test_the_value_is_below_every_ray_of_the_cone(name: str) -> None:
    edges, n = graph(name)
    cost, dual = objectives(name)
    anchors = np.arange(cost.shape[1]) % n
    value = ConePricer(edges, n, anchors).price(cost, dual).value
    kernel = np.exp(-distances(edges, n) * (1 - 1e-12))
    rng = np.random.default_rng(7)
    for _ in range(30):
        ray = kernel @ rng.dirichlet(np.full(n, 0.3))
        for g in (ray, 1 / ray, np.ones(n)):
            assert (value <= (cost - dual[:, None]).T @ g / g[anchors]).all()


def test_pricing_repeats_to_the_bit() -> None:
    edges, n = graph("random")
    cost, dual = objectives("random")
    pricer = ConePricer(edges, n, np.arange(cost.shape[1]) % n)
    first = pricer.price(cost, dual, rays=True)
    pricer.price(-cost, dual)
    again = pricer.price(cost, dual, rays=True)
    assert np.array_equal(first.value, again.value)
    assert np.array_equal(first.rays, again.rays)


@ALL
def test_any_multipliers_bound_private_tables(name: str) -> None:
    edges, n = graph(name)
    rng = np.random.default_rng(8)
    cost = rng.dirichlet(np.ones(n))[:, None] * rng.random((n, n))
    distance = distances(edges, n)
    weight = np.exp(-distance / 2)
    exponential = weight / weight.sum(axis=1, keepdims=True)
    constants = cost.sum(axis=0)
    best = min((cost * exponential).sum(), constants.min(), ((exponential + 1 / n) / 2 * cost).sum())
    pricer = ConePricer(edges, n, np.arange(n))
    scale = cost.min(axis=1)
    bounds = []
    for trial in range(50):
        dual = [rng.standard_normal(n) * scale, scale * rng.random(n) * 3, cost.sum(axis=1) * rng.random(n) / n][
            trial % 3
        ]
        bounds.append(lower_bound(dual, pricer.price(cost, dual).value))
    assert min(bounds) >= 0
    assert max(bounds) <= best
    assert lower_bound(scale, pricer.price(cost, scale).value) == pytest.approx(scale.sum(), rel=1e-12)


@ALL
def test_homogeneous_bound_is_at_least_lower_bound(name: str) -> None:
    edges, n = graph(name)
    rng = np.random.default_rng(9)
    cost = rng.dirichlet(np.full(n, 0.1))[:, None] * rng.random((n, n))
    pricer = ConePricer(edges, n, np.arange(n))
    loss = cost.sum(axis=0).min()
    for share in (0.3, 1.0, 3.0):
        dual = share * cost.min(axis=1) + 0.1 * rng.random(n) * loss / n
        bound = homogeneous_bound(pricer, cost, dual, loss=loss)
        assert bound.value == lower_bound(bound.dual, pricer.price(cost, bound.dual).value)
        assert lower_bound(dual, pricer.price(cost, dual).value) <= bound.value <= loss


def test_homogeneous_bound_tolerates_distant_errors() -> None:
    """A line with 4 nats a step, its far half without prior: an error of 1e-12 there is multiplied by e^60."""
    n, peopled = 16, 8
    edges = Edges(tail=np.arange(n - 1), head=np.arange(1, n), length=np.full(n - 1, 4.0))
    cost = (1 + np.abs(np.subtract.outer(np.arange(n), np.arange(n)))) / n
    cost[peopled:] = 0
    dual = cost.min(axis=1)
    pricer = ConePricer(edges, n, np.arange(n))
    exact = lower_bound(dual, pricer.price(cost, dual).value)
    assert exact == pytest.approx(peopled / n)
    dual[peopled:] = 1e-12
    assert lower_bound(dual, pricer.price(cost, dual).value) == 0
    bound = homogeneous_bound(pricer, cost, dual, loss=1.0)
    assert exact * (1 - BELOW_THE_OPTIMUM) <= bound.value
    assert bound.value == lower_bound(bound.dual, pricer.price(cost, bound.dual).value)


def test_useless_trials_are_skipped() -> None:
    edges, n = graph("random")
    cost, _ = objectives("random")
    cost = np.abs(cost)
    pricer = ConePricer(edges, n, np.arange(cost.shape[1]) % n)
    dual = cost.sum(axis=1)
    first = lower_bound(dual, pricer.price(cost, dual).value)
    for options in ({"known": dual.sum()}, {"enough": first}):
        assert homogeneous_bound(pricer, cost, dual, loss=1.0, **options).value == first


@pytest.mark.parametrize(
    ("dual", "value", "bound"),
    [
        ([1.0, 2.0], [0.5, 7.0], 3.0),
        ([1.0, 2.0], [-0.5, 7.0], 2.5),
        ([1.0, 2.0], [-5.0, 0.0], 0.0),
        ([-1.0, -2.0], [1.0, 1.0], 0.0),
        ([1.0, 2.0], [-np.inf, 1.0], 0.0),
        ([1e16, 1.0, -1e16], [0.0], 1.0),
    ],
)
def test_lower_bounds_that_are_known(dual: list[float], value: list[float], bound: float) -> None:
    result = lower_bound(np.array(dual), np.array(value))
    assert 0 <= result <= bound
    assert result == pytest.approx(bound, rel=1e-15)


@pytest.mark.parametrize("sign", [-1, 1])
def test_every_operation_is_rounded_down(sign: int) -> None:
    """One edge with all mass at its far end: the price is sign r e^{-sign d}, in Decimal to fifty digits."""
    rng = np.random.default_rng(sign + 5)
    with localcontext(prec=50):
        for _ in range(50):
            length, mass = rng.uniform(0.1, 9.0), rng.uniform(0.1, 1.0)
            edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([length]))
            cost, dual = np.array([[0.0], [max(sign * mass, 0.0)]]), np.array([0.0, max(-sign * mass, 0.0)])
            price = ConePricer(edges, 2, np.array([0])).price(cost, dual).value[0]
            exact = sign * Decimal(mass) * (Decimal(-sign) * Decimal(length)).exp()
            assert Decimal(float(price)) <= exact
            assert price == pytest.approx(float(exact), rel=ULPS)
