"""Estimates from reports: stopping rules of expectation maximization, attributes of an estimate, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import xarray as xr
from fixtures.problems import CASES
from fixtures.rows import few_by_default

from mechdesign import baselines, probabilities
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.surveys import empirical, estimation, expectation_maximization, maximum_likelihood
from mechdesign.surveys.likelihood import Likelihood
from mechdesign.surveys.solve_likelihood import updates

FLOAT = 1e-12  # sums of at most 10^3 positive terms in double precision
GAP = 1e-9  # nats per report: the default of maximum_likelihood
SEEDS = range(3)
OPEN = 1e-10  # nats per report: where a rule is met to this, rounding may decide


def mechanism_of(name):
    return baselines.exponential(CASES[name]())


def draw_counts(mechanism, reports, seed=0):
    random = np.random.default_rng(seed)
    table = probabilities(mechanism).values if isinstance(mechanism, xr.Dataset) else np.asarray(mechanism)
    shares = random.dirichlet(np.full(len(table), 0.5)) @ table
    return random.multinomial(reports, shares / shares.sum())


def log_likelihood(mechanism, counts, p):
    table = probabilities(mechanism).values
    return sum(c * math.log(p @ table[:, y]) for y, c in enumerate(counts) if c) / sum(counts)


def program_of(counts, mechanism):
    return Likelihood(table=probabilities(mechanism).values, counts=np.asarray(counts, float))


def steps(counts, mechanism, number):
    """The certified points of expectation maximization up to this step."""
    program = program_of(counts, mechanism)
    return list(itertools.islice(updates(program, np.ones(program.size)), number + 1))


def accelerated_point(counts, mechanism, gap):
    """The first extrapolated step with this gap."""
    program = program_of(counts, mechanism)
    return next(point for point in updates(program, np.ones(program.size), accelerate=True) if point.gap <= gap)


@pytest.mark.parametrize("name", CASES)
def test_an_estimate_says_what_it_is(name):
    mechanism = mechanism_of(name)
    counts = draw_counts(mechanism, 500)
    best = maximum_likelihood(counts, mechanism)
    assert (best.reports, best.stopped) == (500, "gap")
    assert 0 <= best.gap <= GAP
    assert best.log_likelihood == pytest.approx(log_likelihood(mechanism, counts, best.distribution), rel=FLOAT)
    assert best.method == "newton"
    assert best.support == (best.distribution > 1e-5 / len(best.distribution)).sum()
    other = accelerated_point(counts, mechanism, 1e-6)
    assert abs(other.log_likelihood - best.log_likelihood) <= 1e-6


def test_a_table_and_its_mechanism_give_the_same():
    mechanism = mechanism_of("scattered points")
    counts = draw_counts(mechanism, 80)
    one = maximum_likelihood(counts, mechanism)
    for same in (probabilities(mechanism), probabilities(mechanism).values, probabilities(mechanism).values.tolist()):
        other = maximum_likelihood(list(counts.astype(float)), same)
        np.testing.assert_array_equal(other.distribution, one.distribution)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", few_by_default(CASES, *list(CASES)[:1]))
def test_the_deviance_rule_stops_at_its_first_step(name, seed):
    """L* by the accelerated updates, the deviances step by step from their definition."""
    mechanism = mechanism_of(name)
    counts = draw_counts(mechanism, 3000, seed)
    found = expectation_maximization(counts, mechanism)
    best = accelerated_point(counts, mechanism, OPEN).log_likelihood
    path = steps(counts, mechanism, found.iterations)
    deviance = np.array([3000 * (best - log_likelihood(mechanism, counts, step.distribution)) for step in path])
    assert found.stopped == "deviance"
    assert deviance[-1] <= estimation.SHARE * found.support + 3000 * GAP
    assert (deviance[:-1] > estimation.SHARE * found.support - 3000 * GAP).all()
    assert best - found.log_likelihood <= found.gap + OPEN
    assert 3000 * found.gap <= estimation.SHARE * found.support + FLOAT
    assert found.support == maximum_likelihood(counts, mechanism).support


def test_the_rule_is_a_quarter_of_the_support():
    mechanism = mechanism_of("euclidean lattice")
    found = expectation_maximization(draw_counts(mechanism, 400), mechanism)
    assert found.stop == f"N (L* - L) <= 0.25 |support| = {found.support / 4:g} nats"


@pytest.mark.parametrize("name", ["line, zero-one", "scattered points", "reports apart from secrets"])
def test_a_gap_ends_at_the_first_step_that_proves_it(name):
    mechanism = mechanism_of(name)
    counts = draw_counts(mechanism, 300)
    found = expectation_maximization(counts, mechanism, stop=1e-3)
    path = steps(counts, mechanism, found.iterations)
    assert found.stopped == "gap"
    assert all(step.gap > 1e-3 for step in path[:-1])
    assert found.gap == path[-1].gap <= 1e-3
    assert (np.diff([step.log_likelihood for step in path]) >= -FLOAT).all()
    np.testing.assert_array_equal(found.distribution, path[-1].distribution)
    assert found.support is None


def test_a_count_is_that_many_updates_from_the_start():
    mechanism = mechanism_of("graph, table loss")
    table, counts = probabilities(mechanism).values, draw_counts(mechanism, 50)
    p = np.full(7, 1 / 7)
    for number in range(4):
        found = expectation_maximization(counts, mechanism, stop=np.int64(number))
        assert (found.iterations, found.stopped, found.stop) == (number, "iterations", f"{number} steps")
        assert found.distribution == pytest.approx(p, rel=FLOAT)
        p = p * (table @ (counts / 50 / (p @ table)))


@pytest.mark.parametrize("stop", ["deviance", 1e-9])
def test_a_limit_is_named_and_the_gap_stays_true(stop, monkeypatch):
    monkeypatch.setattr(estimation, "LIMIT", 3)
    mechanism = mechanism_of("line, squared, skewed prior")
    counts = draw_counts(mechanism, 10**6)
    found = expectation_maximization(counts, mechanism, stop=stop)
    best = maximum_likelihood(counts, mechanism)
    assert (found.iterations, found.stopped) == (3, "limit")
    assert best.log_likelihood - found.log_likelihood <= found.gap


def test_newton_that_stalls_is_reported_as_it_is(monkeypatch):
    from mechdesign.surveys import solve_likelihood as likelihood
    from mechdesign.surveys import solve_likelihood as likelihood_newton

    monkeypatch.setattr(likelihood_newton, "_ITERATIONS", 1)
    monkeypatch.setattr(likelihood, "_STEPS", 1)
    mechanism = mechanism_of("line, zero-one")
    found = maximum_likelihood(draw_counts(mechanism, 200), mechanism)
    assert (found.stopped, found.method) == ("stalled", "newton, accelerated")
    assert found.gap > GAP


def test_reports_as_they_are():
    mechanism = mechanism_of("line, zero-one")
    counts = draw_counts(mechanism, 40)
    found = empirical(counts, mechanism)
    assert found.distribution == pytest.approx(counts / 40, rel=FLOAT)
    assert found.log_likelihood == pytest.approx(log_likelihood(mechanism, counts, counts / 40), rel=FLOAT)
    best = maximum_likelihood(counts, mechanism)
    assert best.log_likelihood - found.log_likelihood <= found.gap
    assert found.stopped == "direct"
    assert empirical([3, 1], np.eye(2)).gap <= FLOAT
    swapped = empirical([3, 0], [[0.0, 1.0], [1.0, 0.0]])
    assert (swapped.gap, swapped.log_likelihood) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("counts", "mechanism"),
    [([1, 2, 3], np.full((2, 3), 1 / 3)), ([1, 2, 3], mechanism_of("reports apart from secrets"))],
)
def test_reports_that_are_no_secrets_cannot_be_taken_as_they_are(counts, mechanism):
    with pytest.raises(UnsuitableError) as caught:
        empirical(counts, mechanism)
    assert caught.value.field == "mechanism"


def test_reports_elsewhere_than_the_secrets_are_no_secrets():
    mechanism = mechanism_of("scattered points")
    moved = mechanism.assign_coords(report_x=mechanism["report_x"] + 1)
    with pytest.raises(UnsuitableError, match="elsewhere"):
        empirical(np.ones(9), moved)


TABLE = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]])
GOOD = [3, 4, 1, 0]
BAD = {
    "negative count": (lambda: maximum_likelihood([3, -1, 1, 0], TABLE), "counts", "-1 at report 1"),
    "share for a count": (lambda: maximum_likelihood([0.5, 0.5, 0, 0], TABLE), "counts", "0.5 at report 0"),
    "nan count": (lambda: maximum_likelihood([3, math.nan, 1, 0], TABLE), "counts", "nan at report 1"),
    "infinite count": (lambda: maximum_likelihood([3, math.inf, 1, 0], TABLE), "counts", "inf at report 1"),
    "report outside": (lambda: maximum_likelihood([3, 4, 1, 0, 2], TABLE), "counts", "(5,)"),
    "matrix of counts": (lambda: maximum_likelihood([GOOD, GOOD], TABLE), "counts", "(2, 4)"),
    "words for counts": (lambda: maximum_likelihood(["a", "b", "c", "d"], TABLE), "counts", "a"),
    "no report": (lambda: maximum_likelihood([0, 0, 0, 0], TABLE), "counts", "sum 0"),
    "impossible report": (lambda: maximum_likelihood([3, 4, 1, 2], TABLE), "counts", "report 3, made 2 times"),
    "row sums": (lambda: maximum_likelihood(GOOD, TABLE * 1.01), "mechanism", "row 0 sums to 1.01"),
    "row sums below": (lambda: maximum_likelihood(GOOD, TABLE * [[1], [0.9]]), "mechanism", "row 1 sums to 0.9"),
    "negative": (
        lambda: maximum_likelihood(GOOD, TABLE + np.array([0.1, -0.1, 0.1, -0.1])),
        "mechanism",
        "P(3|0) = -0.1",
    ),
    "nan entry": (lambda: maximum_likelihood(GOOD, TABLE * [[1], [math.nan]]), "mechanism", "P(0|1) = nan"),
    "ragged": (lambda: maximum_likelihood(GOOD, [[1.0], [0.5, 0.5]]), "mechanism", "[[1.0], [0.5, 0.5]]"),
    "vector": (lambda: maximum_likelihood(GOOD, TABLE[0]), "mechanism", "(4,)"),
    "empty": (lambda: maximum_likelihood([], np.ones((2, 0))), "mechanism", "(2, 0)"),
    "no table": (lambda: maximum_likelihood(GOOD, xr.Dataset(attrs={"schema": "x/1"})), "mechanism", "x/1"),
    "gap": (lambda: maximum_likelihood(GOOD, TABLE, gap=0), "gap", "0"),
    "nan gap": (lambda: maximum_likelihood(GOOD, TABLE, gap=math.nan), "gap", "nan"),
    "stop word": (lambda: expectation_maximization(GOOD, TABLE, stop="soon"), "stop", "soon"),
    "stop flag": (lambda: expectation_maximization(GOOD, TABLE, stop=True), "stop", "True"),
    "stop none": (lambda: expectation_maximization(GOOD, TABLE, stop=None), "stop", None),
    "stop below 0": (lambda: expectation_maximization(GOOD, TABLE, stop=-1), "stop", "-1"),
    "gap below 0": (lambda: expectation_maximization(GOOD, TABLE, stop=-1e-3), "stop", "-0.001"),
    "empirical": (lambda: empirical([0, 0], np.eye(2)), "counts", "sum 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    make, field, value = BAD[case]
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
    assert value is None or value in caught.value.value


def test_rows_may_miss_1_by_rounding():
    assert maximum_likelihood(GOOD, TABLE * (1 + 1e-7)).gap <= GAP


def test_wrong_maximum_is_refused():
    table = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    counts = np.array([40, 11, 9])
    maximum = maximum_likelihood(counts, table)
    alone, given = expectation_maximization(counts, table), expectation_maximization(counts, table, maximum=maximum)
    assert given.distribution.tolist() == alone.distribution.tolist()
    assert (given.gap, given.stop, given.iterations) == (alone.gap, alone.stop, alone.iterations)
    for wrong in (maximum_likelihood(2 * counts, table), empirical(counts, table)):
        with pytest.raises(InputError) as caught:
            expectation_maximization(counts, table, maximum=wrong)
        assert caught.value.field == "maximum"
