"""Transport programs: the certificate whatever it is given, the simplex method, pricing, and ground distances."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from fixtures.tolerances import CERTIFIED, REORDERED
from fixtures.transport_oracles import Transport
from scipy.optimize import linprog

from mechdesign import Domain
from mechdesign.evaluation.transport import solve as route
from mechdesign.evaluation.transport.certificate import Plan, balance, certify, in_order, marginals
from mechdesign.evaluation.transport.ground import Ground, extension
from mechdesign.evaluation.transport.network_simplex import TransportTree, _whole_units
from mechdesign.evaluation.transport.program import excess
from mechdesign.utility import kantorovich

PARTS = 1024  # masses are multiples of 1 / PARTS, so that they are exact
MARGIN = 1e-11  # relative; rounding errors that the bounds count are smaller on 64 places


def city(side):
    """Integer distances over side x side places."""
    place = np.argwhere(np.ones((side, side), bool)).astype(float)
    return abs(place[:, None] - place[None]).sum(axis=2)


def random_distribution(random, n, total=PARTS):
    """A distribution over n places whose masses are exact multiples of 1 / total."""
    return np.bincount(random.choice(n, total, p=random.dirichlet(np.full(n, 0.3))), minlength=n) / total


@pytest.mark.parametrize("seed", range(6))
def test_bounds_enclose_the_exact_distance(seed):
    """With integer distances and masses over 1024, 1024 K is an integer, as are basic solutions of the program."""
    random = np.random.default_rng(seed)
    p, q = random_distribution(random, 64), random_distribution(random, 64)
    found = kantorovich(p, q, city(8))
    exact = Fraction(round(found.value * PARTS), PARTS)
    assert Fraction(found.lower) < exact < Fraction(found.upper)
    assert found.gap <= MARGIN


@pytest.mark.parametrize("seed", range(6))
def test_bounds_enclose_the_exact_distance_on_a_line(seed):
    """Exact: whole coordinates, masses over 1024, and the closed form in fractions."""
    random = np.random.default_rng(seed)
    line = random.permutation(300)[:50]
    p, q = random_distribution(random, 50), random_distribution(random, 50)
    order = np.argsort(line)
    passing, exact = Fraction(0), Fraction(0)
    for left, right in pairwise(order):
        passing += Fraction(p[left]) - Fraction(q[left])
        exact += abs(passing) * int(line[right] - line[left])
    for places in (Domain.points_at(line.astype(float), unit="m"), abs(line[:, None] - line).astype(float)):
        found = kantorovich(p, q, places)
        assert Fraction(found.lower) < exact < Fraction(found.upper)
        assert found.gap <= MARGIN


@pytest.mark.parametrize("places", [Domain.grid((8, 8), cell=1.0, unit="m"), city(8)], ids=["points", "table"])
@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_holds_whatever_it_is_given(places, seed):
    random = np.random.default_rng(seed)
    p, q = random_distribution(random, 64), random_distribution(random, 64)
    ground, moved = Ground.of(places), excess(p - q)
    best = kantorovich(p, q, places)
    count = len(moved.targets)
    source, target = random.integers(0, 64, 200), random.integers(0, 64, 200)
    masses = random.normal(size=200) / 20
    masses[:3] = np.nan, np.inf, -np.inf
    for values in (random.normal(size=count) * 5, np.zeros(count), np.full(count, np.nan), np.full(count, 1e6)):
        for mass in (masses, np.zeros(200), abs(masses)):
            found = certify(ground, moved, values, Plan(source=source, target=target, mass=mass))
            assert found.lower <= best.upper
            assert best.lower <= found.cost <= found.upper < math.inf
            assert marginals(found.plan, 64) == pytest.approx(p - q, abs=REORDERED)
            distance = ground.between(np.arange(64), np.arange(64))
            f = found.potentials
            assert (f[:, None] - f[None] - distance).max() <= REORDERED * ground.diameter


def test_small_residual_costs_the_diameter():
    ground = Ground.of(Domain.grid((1, 3), cell=1.0, unit="m"))
    tiny = 2.0**-48
    moved = excess(np.array([0.5, -0.5, 0.0]))
    plan = Plan(source=np.array([0]), target=np.array([1]), mass=np.array([0.5 - tiny]))
    found = certify(ground, moved, np.zeros(1), plan)
    assert list(found.plan.mass) == [0.5 - tiny]
    assert found.upper >= 0.5 - tiny + 2 * tiny * 2.0


def test_balanced_removes_surplus_in_proportion():
    moved = excess(np.array([0.5, 0.25, -0.375, -0.375]))
    plan = Plan(source=np.array([0, 0, 1]), target=np.array([2, 3, 3]), mass=np.array([0.75, 0.25, -1.0]))
    found = balance(plan, moved, 4)
    table = np.zeros((4, 4))
    np.add.at(table, (found.source, found.target), found.mass)
    assert table[0, 2:] == pytest.approx([0.375, 0.125], rel=REORDERED)
    assert table[1, 2:] == pytest.approx([0.0, 0.25], rel=REORDERED)


def test_in_order_serves_first_come_first_served():
    rows, columns, mass = in_order(np.array([2.0, 0.0, 1.0, 4.0]), np.array([1.0, 3.0, 0.0, 2.0]))
    assert list(zip(rows, columns, mass, strict=True)) == [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (2, 1, 1.0),
        (3, 1, 1.0),
        (3, 3, 2.0),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_the_tree_solves_any_transport_program(seed):
    """Any costs, not those of a metric, all columns at once, rows without mass; against SciPy."""
    random = np.random.default_rng(seed)
    rows, columns = random.integers(1, 15, 2)
    supply, demand = random.integers(0, 5, rows).astype(float), random.integers(0, 5, columns).astype(float)
    supply[0], demand[0] = supply[0] + 1, demand[0] + 1
    demand *= supply.sum() / demand.sum()
    cost = random.integers(0, 9, (rows, columns)) / 8
    tree = TransportTree(supply, demand)
    i, j = (place.ravel() for place in np.indices(cost.shape))
    tree.add(i, j, cost.ravel())
    tree.start(random.permutation(len(i)) if seed % 2 else np.empty(0, np.int64))
    u, v, value = tree.solve()
    each = np.vstack([np.repeat(np.eye(rows), columns, axis=1), np.tile(np.eye(columns), rows)])
    oracle = linprog(cost.ravel(), A_eq=each[:-1], b_eq=np.concatenate([supply, demand])[:-1])
    assert value == pytest.approx(oracle.fun, rel=CERTIFIED, abs=1e-15)
    assert (u[:, None] - v[None] - cost).max() <= 1e-12
    assert supply @ u - demand @ v == pytest.approx(value, rel=CERTIFIED, abs=1e-15)
    at, to, mass = tree.plan()
    assert np.bincount(at, mass, rows) == pytest.approx(supply, abs=REORDERED)
    assert np.bincount(to, mass, columns) == pytest.approx(demand, abs=REORDERED)
    assert (mass * cost[at, to]).sum() == pytest.approx(value, rel=CERTIFIED, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_stays_strongly_feasible(seed):
    """Arcs without flow point to the root, at the start and after degenerate pivots: the method cannot cycle."""
    random = np.random.default_rng(seed)
    cost = random.integers(0, 9, (20, 20)) / 8
    tree = TransportTree(np.ones(20), np.ones(20))
    i, j = (place.ravel() for place in np.indices(cost.shape))
    tree.add(i, j, cost.ravel())
    tree.start(random.permutation(400)[:100])
    for _ in range(2):
        assert tree._up[:-1][tree._flow[:-1] == 0].all()
        assert (tree._flow >= 0).all()
        tree.solve()


def test_whole_masses_have_one_sum():
    random = np.random.default_rng(6)
    for _ in range(20):
        masses = random.random(200)
        whole = _whole_units(masses)
        assert whole.sum() == 2**60
        assert whole / 2**60 == pytest.approx(masses / masses.sum(), rel=REORDERED)


def test_excess_is_what_p_and_q_do_not_share_with_one_sum():
    found = excess(np.array([0.5, -0.25, 0.0, 0.25, -0.25]))
    assert list(found.sources) == [0, 3]
    assert list(found.targets) == [1, 4]
    assert list(found.supply) == [0.5, 0.25]
    assert list(found.demand) == [0.375, 0.375]


def test_tree_starts_with_shipments_through_the_root():
    tree = TransportTree(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    tree.add(np.array([0]), np.array([0]), np.array([0.25]))
    tree.start(np.array([0]))
    assert tree.solve()[2] == pytest.approx(0.25 + 2.0, rel=REORDERED)
    tree.add(np.array([1]), np.array([1]), np.array([1.0]))
    assert tree.solve()[2] == pytest.approx(1.25, rel=REORDERED)
    assert sorted(zip(*tree.plan(), strict=True)) == [(0, 0, 1.0), (1, 1, 1.0)]


@pytest.mark.parametrize("below", [np.inf, 0.1])
def test_pricing_by_definition(below):
    random = np.random.default_rng(0)
    cost, u, v = random.random((11, 7)), random.random(11), random.random(7)
    reduced = cost - u[:, None] + v
    keys, least = route.cheapest_columns(cost, u, v, 3, below)
    wanted = {(i, j) for i in range(11) for j in np.argsort(reduced[i])[:3] if reduced[i, j] < below}
    wanted |= {(i, j) for j in range(7) for i in np.argsort(reduced[:, j])[:3] if reduced[i, j] < below}
    assert list(keys) == sorted(i * 7 + j for i, j in wanted)
    assert least == pytest.approx(reduced.min(axis=1), rel=REORDERED)
    f, g = route.tighten(cost, v)
    assert f == pytest.approx((cost + v).min(axis=1), rel=REORDERED)
    assert g == pytest.approx((f[:, None] - cost).max(axis=0), rel=REORDERED)


def test_statement_and_dual_are_the_programs_of_scipy():
    random = np.random.default_rng(1)
    program = Transport(supply=np.array([0.5, 0.25]), demand=np.array([0.25, 0.5]), cost=random.random((2, 2)))
    costs = [(program.cost * [[x, 0.5 - x], [0.25 - x, x]]).sum() for x in (0.0, 0.25)]  # the two vertices of the plans
    for stated in (program.statement(), program.dual()):
        assert stated.solve() == pytest.approx(min(costs), rel=1e-6)


def test_a_solver_that_is_stopped_leaves_an_honest_gap(monkeypatch):
    random = np.random.default_rng(3)
    p, q = random.dirichlet(np.ones(225)), random.dirichlet(np.ones(225))
    domain = Domain.grid((15, 15), cell=1.0, unit="m")
    best = kantorovich(p, q, domain)
    monkeypatch.setattr(route, "_MAX_ROUNDS", 1)
    monkeypatch.setattr(route, "_FIRST_COLUMNS", 1)
    found = kantorovich(p, q, domain)
    assert found.lower <= best.upper
    assert found.upper >= best.lower
    assert found.gap > CERTIFIED


@pytest.mark.parametrize("shape", [(20, 20), (40, 9), (7, 7, 7)])
def test_coarse_programs_guess_potentials_near_the_best(shape):
    """A guess that is Lipschitz over the fine places gives most of the distance before anything fine is solved."""
    random = np.random.default_rng(4)
    domain = Domain.grid(shape, cell=1.0, unit="m")
    centre = domain.points.mean(axis=0)
    p = np.exp(-((domain.points - centre / 2) ** 2).sum(axis=1) / 20) + 0.01 * random.random(domain.size)
    q = np.exp(-((domain.points - centre * 1.4) ** 2).sum(axis=1) / 30) + 0.01 * random.random(domain.size)
    p, q = p / p.sum(), q / q.sum()
    moved, ground = excess(p - q), Ground.of(domain)
    guess = route._coarse_potentials(domain.points, domain.index, moved)
    nothing = Plan(source=np.array([0]), target=np.array([0]), mass=np.zeros(1))
    assert certify(ground, moved, guess, nothing).lower >= 0.95 * kantorovich(p, q, domain).value


def test_extension_by_definition():
    random = np.random.default_rng(5)
    points, values = random.random((30, 3)), random.random(10)
    every = Ground.of(Domain.points_at(points, unit="m"))
    table = Ground.of(np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)))
    support = np.arange(5, 15)
    distance = np.sqrt(((points[:, None] - points[support]) ** 2).sum(axis=2))
    wanted = (distance + values).min(axis=1)
    assert every.extend(support, values) == pytest.approx(wanted, rel=REORDERED)
    assert table.extend(support, values) == pytest.approx(wanted, rel=REORDERED)
    assert extension(points, points[support], values) == pytest.approx(wanted, rel=REORDERED)
    assert every.between(np.arange(30), support) == pytest.approx(distance, rel=REORDERED)
    assert table.along(np.arange(10), support) == pytest.approx(distance[np.arange(10), np.arange(10)], rel=REORDERED)
    assert every.diameter >= table.diameter
    assert table.slack <= 1e-15
    assert every.slack == 0.0
