"""The Kantorovich distance: laws, closed forms and other solvers, over domains of every kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixtures.rows import few_by_default
from fixtures.tolerances import CERTIFIED, ORACLE, REORDERED
from fixtures.transport_oracles import Transport, pot
from scipy.stats import wasserstein_distance

from mechdesign import Domain
from mechdesign.errors import InputError
from mechdesign.evaluation.transport.program import excess
from mechdesign.utility import kantorovich

HOLES = np.ones((9, 14), bool)
HOLES[3:7, 2:9] = False
HOLES[0, 10:] = False


def table_of(domain):
    return domain.euclidean_to(domain)


def around(side):
    """Shortest ways over the 4-neighbour grid: a metric that is not Euclidean."""
    place = np.argwhere(np.ones((side, side), bool)).astype(float)
    return abs(place[:, None] - place[None]).sum(axis=2)


PLACES = {
    "grid": Domain.grid((13, 13), cell=150.0, unit="m"),
    "rectangle": Domain.grid((25, 6), cell=(2.0, 0.5), unit="km", origin=(-7.0, 3.0)),
    "masked": Domain.grid((9, 14), cell=1.0, unit="km", mask=HOLES),
    "line": Domain.grid(40, cell=3.0, unit="USD"),
    "row of a grid": Domain.grid((1, 60), cell=3.0, unit="m"),
    "space": Domain.grid((5, 6, 4), cell=1.0, unit="m"),
    "points": Domain.points_at(np.random.default_rng(3).normal(size=(90, 2)) * [1.0, 20.0], unit="m"),
    "points on a line": Domain.points_at(np.random.default_rng(4).normal(size=50), unit="m"),
    "nodes": Domain.nodes(np.random.default_rng(5).random((60, 3))),
    "two": Domain.points_at([[0.0, 0.0], [3.0, 4.0]], unit="m"),
    "table": around(9),
}


def size_of(places):
    return places.size if isinstance(places, Domain) else len(places)


def distances_of(places):
    return table_of(places) if isinstance(places, Domain) else places


def smooth(places, random):
    """A mixture of Gaussian bumps around some of the places."""
    distance = distances_of(places)
    width = distance.max() * random.uniform(0.1, 0.3, 3)
    centres = random.integers(0, len(distance), 3)
    weights = np.exp(-((distance[:, centres] / width) ** 2) / 2) @ random.random(3)
    return weights / weights.sum()


def sparse(places, random):
    """Visits of twenty people."""
    return np.bincount(random.integers(0, size_of(places), 20), minlength=size_of(places)) / 20


def dense(places, random):
    return random.dirichlet(np.ones(size_of(places)))


KINDS = {"smooth": smooth, "sparse": sparse, "dense": dense}


def pair(name, kind, seed=0):
    random = np.random.default_rng(seed)
    return KINDS[kind](PLACES[name], random), KINDS[kind](PLACES[name], random)


@pytest.mark.parametrize("name", few_by_default(PLACES, "masked", "line", "points on a line", "two"))
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_holds_and_closes(name, kind):
    """Bounds are recomputed here: the plan from its marginals and cost, the potentials over all pairs of places."""
    places, (p, q) = PLACES[name], pair(name, kind)
    found, distance = kantorovich(p, q, places), distances_of(PLACES[name])
    assert found.lower <= found.value <= found.upper
    assert found.gap == (found.upper - found.lower) / found.upper
    assert found.gap <= CERTIFIED
    f, scale = found.potentials, distance.max()
    assert (f[:, None] - f[None] - distance).max() <= REORDERED * scale
    assert f @ (p - q) == pytest.approx(found.lower, rel=CERTIFIED / 100)
    assert f @ (p - q) >= found.lower
    assert (found.mass > 0).all()
    moved = np.bincount(found.source, found.mass, len(p)) - np.bincount(found.target, found.mass, len(p))
    assert moved == pytest.approx(p - q, abs=REORDERED)
    assert found.mass @ distance[found.source, found.target] == pytest.approx(found.value, rel=REORDERED)
    assert found.unit == (places.unit if isinstance(places, Domain) else "1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", few_by_default(PLACES, "grid", "points on a line", "nodes", "table"))
def test_against_pot_on_the_whole_program(name, kind):
    p, q = pair(name, kind, 1)
    found = kantorovich(p, q, PLACES[name])
    assert found.value == pytest.approx(pot(p, q, distances_of(PLACES[name])), rel=CERTIFIED)
    assert found.gap <= CERTIFIED
    assert found.method == ("line" if "line" in name else "network")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["line", "points on a line"])
def test_on_a_line_against_scipy(name, kind):
    (p, q), line = pair(name, kind, 2), PLACES[name].points[:, 0]
    expected = wasserstein_distance(line, line, p, q)
    assert kantorovich(p, q, PLACES[name]).value == pytest.approx(expected, rel=REORDERED)
    assert kantorovich(p, q, table_of(PLACES[name])).value == pytest.approx(expected, rel=CERTIFIED)


@pytest.mark.parametrize("kind", few_by_default(KINDS, "sparse"))
@pytest.mark.parametrize("name", ["masked", "table", "points", "two"])
def test_the_statement_and_its_dual_have_one_value(name, kind):
    p, q = pair(name, kind, 3)
    found = kantorovich(p, q, PLACES[name])
    moved = excess(p / p.sum() - q / q.sum())
    cost = distances_of(PLACES[name])[np.ix_(moved.sources, moved.targets)]
    program = Transport(supply=moved.supply, demand=moved.demand, cost=cost)
    for stated in (program.statement(), program.dual()):
        assert stated.solve() == pytest.approx(found.value, rel=ORACLE)


@pytest.mark.parametrize("name", ["grid", "masked", "points", "space", "table"])
def test_metric_laws(name):
    p, q = pair(name, "dense", 4)
    r = smooth(PLACES[name], np.random.default_rng(5))
    pq, qp, qr, pr = (kantorovich(a, b, PLACES[name]) for a, b in ((p, q), (q, p), (q, r), (p, r)))
    assert pq.value == pytest.approx(qp.value, rel=CERTIFIED)
    assert pr.lower <= pq.upper + qr.upper
    assert pq.lower > 0
    share = 0.25
    assert kantorovich(p, (1 - share) * p + share * q, PLACES[name]).value == pytest.approx(
        share * pq.value, rel=CERTIFIED
    )


@pytest.mark.parametrize("name", ["line", "grid"])
def test_equal_distributions(name):
    p = smooth(PLACES[name], np.random.default_rng(6))
    found = kantorovich(p, p.copy(), PLACES[name])
    assert (found.value, found.lower, found.upper, found.gap) == (0.0, 0.0, 0.0, 0.0)
    assert not found.potentials.any()
    assert len(found.mass) == 0


@pytest.mark.parametrize("name", PLACES)
def test_differences_above_rounding_are_detected(name):
    p = np.full(size_of(PLACES[name]), 1 / size_of(PLACES[name]))
    q = p.copy()
    q[0], q[-1] = q[0] - 1e-10, q[-1] + 1e-10
    far = distances_of(PLACES[name])[0, -1]
    found = kantorovich(p, q, PLACES[name])
    assert 0 < found.lower <= 1e-10 * far * (1 + 1e-4)
    assert 1e-10 * far * (1 - 1e-4) <= found.upper
    q = p.copy()
    q[0] = np.nextafter(q[0], 1)
    rounding = kantorovich(p, q, PLACES[name])
    assert rounding.lower == 0.0
    assert 0 < rounding.upper <= 1e-14 * distances_of(PLACES[name]).max()
    assert rounding.gap == 1.0


@pytest.mark.parametrize("name", PLACES)
def test_from_one_place(name):
    """Between two places it is their distance; from a place to q the mean distance under q."""
    n, distance = size_of(PLACES[name]), distances_of(PLACES[name])
    at, other = np.eye(n)[0], np.eye(n)[n // 2]
    found = kantorovich(at, other, PLACES[name])
    assert found.value == pytest.approx(distance[0, n // 2], rel=REORDERED)
    assert found.potentials[0] - found.potentials[n // 2] == pytest.approx(distance[0, n // 2], rel=REORDERED)
    q = dense(PLACES[name], np.random.default_rng(7))
    assert kantorovich(at, q, PLACES[name]).value == pytest.approx(q @ distance[0], rel=CERTIFIED)


@pytest.mark.parametrize("shift", [(3, 0), (2, 5), (0, 4)])
def test_translates_are_as_far_apart_as_they_were_moved(shift):
    domain = Domain.grid((16, 16), cell=(2.0, 3.0), unit="km")
    random = np.random.default_rng(8)
    p = np.zeros((16, 16))
    p[:10, :10] = random.random((10, 10)) ** 4
    p /= p.sum()
    q = np.roll(p, shift, axis=(0, 1))
    found = kantorovich(p.ravel(), q.ravel(), domain)
    assert found.value == pytest.approx(math.hypot(2 * shift[0], 3 * shift[1]), rel=CERTIFIED)


def test_equal_masses_make_an_assignment():
    """Every basis is degenerate; the value is that of SciPy's assignment."""
    from scipy.optimize import linear_sum_assignment

    random = np.random.default_rng(9)
    domain = Domain.grid((16, 16), cell=1.0, unit="m")
    places = random.permutation(256)
    p, q = np.zeros(256), np.zeros(256)
    p[places[:128]], q[places[128:]] = 1 / 128, 1 / 128
    cost = table_of(domain)[np.ix_(places[:128], places[128:])]
    expected = cost[linear_sum_assignment(cost)].sum() / 128
    assert kantorovich(p, q, domain).value == pytest.approx(expected, rel=CERTIFIED)


def bumps(side, random):
    """Six Gaussian bumps over side x side cells: no mass is zero."""
    x, y = np.divmod(np.arange(side**2), side)
    weights = np.zeros(side**2)
    for _ in range(6):
        centre, width = random.uniform(0, side, 2), random.uniform(0.05, 0.25) * side
        weights += random.random() * np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * width**2))
    return weights / weights.sum()


@pytest.mark.parametrize("seed", few_by_default(range(4), 0))
def test_smooth_masses_from_coarse_to_fine(seed):
    random = np.random.default_rng(seed)
    domain = Domain.grid((30, 30), cell=150.0, unit="m")
    p, q = bumps(30, random), bumps(30, random)
    found = kantorovich(p, q, domain)
    assert found.gap <= CERTIFIED
    assert found.value == pytest.approx(pot(p, q, table_of(domain)), rel=CERTIFIED)


@pytest.mark.study
def test_smooth_masses_on_a_hundred_by_a_hundred_cells():
    random = np.random.default_rng(1)
    domain = Domain.grid((100, 100), cell=150.0, unit="m")
    assert kantorovich(bumps(100, random), bumps(100, random), domain).gap <= CERTIFIED


def test_a_loose_tolerance_gives_an_honest_gap():
    domain = Domain.grid((20, 20), cell=1.0, unit="m")
    random = np.random.default_rng(14)
    p, q = bumps(20, random), bumps(20, random)
    exact = kantorovich(p, q, domain)
    loose = kantorovich(p, q, domain, tolerance=0.2)
    assert loose.lower <= exact.upper
    assert exact.lower <= loose.upper
    assert loose.gap <= 0.2
    assert loose.gap > CERTIFIED


def good():
    return np.full(81, 1 / 81)


def with_entries(table, *changes):
    table = np.array(table, float)
    for place, value in changes:
        table[place] = value
    return table


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("p: must not be negative", {"p": with_entries(good(), (0, -1 / 81), (1, 3 / 81))}),
        ("q: must be finite", {"q": with_entries(good(), (0, np.nan))}),
        ("p: must sum to 1", {"p": good() * 2}),
        ("q: must sum to 1", {"q": good() * (1 + 2e-9)}),
        ("p: must have shape", {"p": np.full(80, 1 / 80)}),
        ("q: must have shape", {"q": np.full((81, 1), 1 / 81)}),
        ("tolerance: must lie between", {"tolerance": 0.0}),
        ("domain: distances must be finite", {"domain": with_entries(around(9), ((0, 1), np.inf), ((1, 0), np.inf))}),
        ("domain: the distance of a place to itself", {"domain": with_entries(around(9), ((3, 3), 0.1))}),
        ("domain: the distance of two places", {"domain": with_entries(around(9), ((3, 4), 0.0), ((4, 3), 0.0))}),
        ("domain: a metric is symmetric", {"domain": with_entries(around(9), ((3, 4), 1.5))}),
        ("domain: breaks the triangle inequality", {"domain": with_entries(around(9), ((0, 1), 3.5), ((1, 0), 3.5))}),
        ("domain: must be a Domain or a square", {"domain": np.zeros((81, 80))}),
    ],
)
def test_bad_input(words, arguments):
    given = {"p": good(), "q": np.eye(81)[0], "domain": around(9), **arguments}
    with pytest.raises(InputError) as caught:
        kantorovich(given.pop("p"), given.pop("q"), given.pop("domain"), **given)
    assert str(caught.value).startswith(words)
    assert caught.value.exit_code == 2


def test_the_first_broken_triple_is_named():
    table = with_entries(around(3), ((0, 1), 3.5), ((1, 0), 3.5))
    with pytest.raises(InputError, match=r"d\(0, 1\) = 3.5 > d\(0, 2\) \+ d\(2, 1\) = 3"):
        kantorovich(np.eye(9)[0], np.eye(9)[1], table)


def test_lower_bound_covers_rounding_of_the_table():
    table = around(9)
    p, q = pair("table", "dense", 11)
    exact = kantorovich(p, q, table)
    off = 1e-12 * table.max() / 2
    bent = kantorovich(p, q, with_entries(table, ((0, 80), table[0, 80] + off), ((80, 0), table[0, 80] + off)))
    assert bent.value == pytest.approx(exact.value, rel=CERTIFIED)
    assert bent.value - bent.lower > 0.5 * off
    assert bent.lower <= exact.value


def test_detours_too_short_are_refused():
    table = around(9)
    far = table[0, 80] + 1e-11 * table.max()
    with pytest.raises(InputError, match="triangle inequality"):
        kantorovich(good(), np.eye(81)[0], with_entries(table, ((0, 80), far), ((80, 0), far)))


def test_masses_are_divided_by_their_sums():
    p, q = pair("grid", "dense", 13)
    assert kantorovich(p * (1 + 5e-10), q * (1 - 5e-10), PLACES["grid"]).value == pytest.approx(
        kantorovich(p, q, PLACES["grid"]).value, rel=REORDERED
    )
