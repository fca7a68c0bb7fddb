"""Shares estimated from collections: intervals, reasons for none, differences, whether reports fit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from fixtures.problems import SMALL
from fixtures.report_collections import MECHANISMS, channel, simulate_counts, truths

import mechdesign as md
from mechdesign import (
    DesignProblem,
    Discrete,
    Domain,
    EikonalWeights,
    baselines,
    load_problem,
    losses,
    priors,
    probabilities,
    save,
    solve,
)
from mechdesign.errors import InputError, SizeError
from mechdesign.geo import Partition
from mechdesign.output.text_tables import TextTable
from mechdesign.surveys import channel as channels
from mechdesign.surveys import estimate_shares, load_estimate, maximum_likelihood, plan
from mechdesign.surveys.document import EstimateDocument, PlanDocument
from mechdesign.surveys.export import save_shares
from mechdesign.surveys.goodness_of_fit import REFUSED, fit_test, mean_bound, tail_bound
from mechdesign.surveys.intervals import linear_intervals
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.page import estimate_facts
from mechdesign.surveys.terminal import estimate_words, plan_words

SIDE = 6


@cache
def mechanism(epsilon=0.01):
    return baselines.geometric(load_problem("paris", cells=SIDE, epsilon=epsilon))


def areas(across=2, along=2):
    return Partition.blocks(load_problem("paris", cells=SIDE, epsilon=0.01).domain, across, along)


@cache
def truth():
    return np.random.default_rng(2).dirichlet(np.full(SIDE**2, 0.4))


def draw_counts(people, seed=0, made=None, p=None):
    law = (truth() if p is None else p) @ probabilities(made or mechanism()).values
    return np.random.default_rng(seed).multinomial(people, law / law.sum())


def test_an_estimate_holds_its_parts_and_is_stored_whole(tmp_path):
    counts = draw_counts(20_000)
    found = estimate_shares([mechanism()], [counts], areas())
    best = maximum_likelihood(counts, mechanism())
    np.testing.assert_array_equal(found["distribution"], best.distribution)
    np.testing.assert_allclose(found["likelihood_share"], best.distribution @ areas().indicator)
    weights = np.linalg.solve(channels.table_of(mechanism()), areas().indicator)
    estimate = counts / 20_000 @ weights
    error = np.sqrt((counts / 20_000 @ weights**2 - estimate**2) / 20_000)
    np.testing.assert_allclose(found["share"], estimate, rtol=1e-9)
    np.testing.assert_allclose(found["standard_error"], error, rtol=1e-9)
    np.testing.assert_allclose(found["high"] - found["low"], 2 * 1.959963984540054 * error, rtol=1e-9)
    assert (abs(found["share"] - truth() @ areas().indicator) <= 4 * error).all()
    assert json.loads(found.attrs["reasons"]) == [None] * 4
    assert found.attrs["fit_p"] == 1.0
    assert load_estimate(save(found, tmp_path / "e.nc")).identical(found)


def test_simultaneous_intervals_are_longer():
    counts = draw_counts(20_000)
    alone, together = (estimate_shares([mechanism()], [counts], areas(), simultaneous=s) for s in (False, True))
    ratio = (together["high"] - together["low"]) / (alone["high"] - alone["low"])
    np.testing.assert_allclose(ratio, NormalDist().inv_cdf(0.99375) / NormalDist().inv_cdf(0.975))
    stopped = estimate_shares([mechanism()], [counts], areas(), method="stopped")
    assert stopped.attrs["stopped"] == "deviance"
    assert abs(stopped["distribution"] - alone["distribution"]).max() > 1e-4
    np.testing.assert_array_equal(stopped["share"], alone["share"])


def test_few_reports_get_no_interval_and_the_reason():
    counts = draw_counts(150)
    found = estimate_shares([mechanism()], [counts], areas(3, 3))
    reasons = json.loads(found.attrs["reasons"])
    few = found["effective"].values < 20
    assert 0 < few.sum() < 9
    assert [reason is not None for reason in reasons] == few.tolist() == np.isnan(found["low"].values).tolist()
    assert all("too few reports" in reason for reason in reasons if reason)
    with pytest.raises(InputError, match="too few") as caught:
        estimate_shares([mechanism()], [draw_counts(20)], areas(3, 3))
    assert caught.value.field == "reports"


SIX_TENTHS = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])  # randomized response, ln 3 nats


@cache
def answers():
    """A mechanism of three classes, and areas that are the classes."""
    domain = Domain.nodes(3)
    problem = DesignProblem(
        domain=domain, metric=Discrete(epsilon=math.log(3)), prior=priors.uniform(domain), loss=losses.ZeroOne()
    )
    return baselines.randomized_response(problem), Partition(names=("yes", "no", "unknown"), label=np.arange(3))


@pytest.mark.parametrize(
    ("counts", "below", "above"),
    [
        ([202, 134, 64], ["unknown"], []),  # estimates 0.7625, 0.3375 and -0.1: shares alone add up to 110 %
        ([140, 185, 75], ["unknown"], []),  # -0.03 less its error is outside, and plus its error inside
        ([500, 250, 250], [], []),
        ([650, 180, 170], ["no", "unknown"], ["yes"]),
    ],
)
def test_estimates_stay_raw_beside_what_is_cut(counts, below, above, tmp_path):
    """Estimates are those of the inverse table. Every interval contains the part in [0, 1] of that around the estimate.

    It is never a point, and reads as "at most" or "at least" where the estimate is outside.
    """
    made, classes = answers()
    found = estimate_shares([made], [counts], classes)
    people, rows = sum(counts), {row["area"]: row for row in EstimateDocument(estimate=found).areas}
    raw = np.array(counts) / people @ np.linalg.inv(SIX_TENTHS)
    np.testing.assert_allclose(found["estimate"], raw, rtol=1e-6)
    assert float(found["estimate"].sum()) == pytest.approx(1, abs=1e-9)
    np.testing.assert_array_equal(found["share"], np.clip(found["estimate"], 0, 1))
    away = found["standard_error"].values * 1.959963984540054
    low, high = found["low"].values, found["high"].values
    assert (low <= np.clip(raw - away, 0, 1) + 1e-9).all()
    assert (high >= np.clip(raw + away, 0, 1) - 1e-9).all()
    assert (high - low >= away * (1 - 1e-9)).all()
    csv = save_shares(found, tmp_path / "e.csv")
    bars = {bar["name"]: bar["columns"] for bar in estimate_facts(found, [made])["bars"]["rows"]}
    spoken = list(estimate_words(EstimateDocument(estimate=found)))
    [listed] = [block.rows for block in spoken if isinstance(block, TextTable)]
    for names, words in ((below, "at most"), (above, "at least")):
        for name in names:
            end = rows[name]["high" if words == "at most" else "low"]
            assert (name, words) in {(text.split(": ")[0], " ".join(text.split(": ")[-1].split()[:2]))
                                     for text in spoken if isinstance(text, str) and ": " in text}  # fmt: skip
            assert f"{words} {100 * end:.2f} %" in bars[name]
    assert [row[1] for row in listed] == [f"{100 * value:.3f}" for value in found["estimate"].values]
    stored = pd.read_csv(csv)
    assert stored["estimate"].sum() == pytest.approx(1, abs=1e-9)


def test_intervals_about_cut_shares_hold_as_often_at_the_border():
    """With nobody in the third class the promised share of 2,000 simulated intervals contains the truth."""
    made, classes = answers()
    held = channels.Channel.of(channels.table_of(made))
    weights = linear_weights(held, classes.indicator, np.full(3, 1 / 3))
    drawn_counts = np.random.default_rng(5).multinomial(400, [0.4, 0.4, 0.2], 2_000)
    holds = [linear_intervals(held, counts.astype(float), weights, 1.959963984540054) for counts in drawn_counts]
    assert np.mean([each.low[2] <= 0 <= each.high[2] for each in holds]) >= 0.95
    assert min(each.high[2] for each in holds) > 0.05  # 1.96 times an error of some 4.5 points


def test_a_plan_advises_no_more_people_where_no_number_helps():
    """Every report is as likely from "no" as from "unknown": their shares are lost, and that of "yes" is not."""
    table = np.array([[0.7, 0.3], [0.4, 0.6], [0.4, 0.6]])
    planned = plan({"two": table}, answers()[1], Domain.nodes(3), people=10_000, truth=np.full(3, 1 / 3))
    document = PlanDocument(planned=planned).as_json() | {"epsilon_for_error": {}}
    said = " ".join(block for block in plan_words(document, "1") if isinstance(block, str))
    assert "cannot be estimated from any number" in said
    assert "For no, unknown a larger survey does not help" in said
    assert "More people" not in said


def test_lost_shares_get_no_interval():
    problem = load_problem("paris", cells=SIDE, epsilon=0.01)
    flat = baselines.constant(problem)
    counts = draw_counts(5_000, made=flat)
    found = estimate_shares([flat], [counts], areas())
    assert np.isnan(found["share"]).all()
    assert all("not identifiable" in reason for reason in json.loads(found.attrs["reasons"]))
    assert np.isnan(found["low"]).all()


def test_two_levels_in_one_collection_and_one_that_nobody_used():
    made = [mechanism(), mechanism(0.02), mechanism(0.03)]
    counts = [draw_counts(10_000, 1, made[0]), draw_counts(6_000, 2, made[1]), np.zeros(SIDE**2)]
    found = estimate_shares(made, counts, areas())
    errors = abs(found["share"] - truth() @ areas().indicator) / found["standard_error"]
    assert (errors < 4).all()
    for each, one in zip(made[:2], counts, strict=False):
        assert (found["standard_error"] < estimate_shares([each], [one], areas())["standard_error"]).all()
    told = json.loads(found.attrs["mechanisms"])
    assert [each["made"] for each in told] == [10_000, 6_000, 0]
    assert [each["sha256"] for each in told] == [each.attrs["sha256"] for each in made]


def test_differences_between_periods_hold():
    later = 0.7 * truth() + 0.3 * np.eye(SIDE**2)[0]
    then, now = draw_counts(30_000, 1), draw_counts(20_000, 2, p=later)
    found = estimate_shares([mechanism()], [now], areas(), against=[then])
    alone = estimate_shares([mechanism()], [then], areas())
    np.testing.assert_allclose(found["against_share"], alone["share"])
    np.testing.assert_allclose(found["difference"], found["share"] - alone["share"], atol=1e-12)
    error = np.hypot(found["standard_error"], alone["standard_error"])
    np.testing.assert_allclose(found["difference_high"] - found["difference_low"], 2 * 1.959963984540054 * error)
    moved = (later - truth()) @ areas().indicator
    assert (abs(found["difference"] - moved) <= 4 * error).all()
    assert found["difference_low"][0] > 0
    few = estimate_shares([mechanism()], [now], areas(), against=[draw_counts(5)])
    assert np.isnan(few["difference_low"]).all()
    assert "too few" in few.attrs["difference_reasons"]


def test_the_tail_bound_bounds_the_tail_of_the_relative_entropy():
    """Simulated at every kind of law: never above the bound, four standard errors allowed."""
    random = np.random.default_rng(0)
    for law, people in (
        (np.full(8, 1 / 8), 30),
        (random.dirichlet(np.full(20, 0.2)), 200),
        (np.array([0.99, 0.01]), 50),
    ):
        counts = random.multinomial(people, law, size=20_000)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(counts > 0, counts * np.log(counts / people / law), 0).sum(axis=1)
        for x in np.quantile(entropy, [0.5, 0.9, 0.99, 0.999]):
            share = (entropy >= x).mean()
            assert share <= tail_bound(x, len(law) - 1) + 4 * np.sqrt(share / 20_000)
    assert tail_bound(50.0, 10) == pytest.approx(np.exp(-50) * (np.e * 5) ** 10)
    assert tail_bound(10.0, 10) == tail_bound(3.0, 10) == 1.0


def fit_counts(held, counts):
    best = maximum_likelihood(counts, held.table)
    return fit_test(held, np.asarray(counts, float), best)


def test_the_mean_bound_bounds_the_tail_of_a_mean():
    random = np.random.default_rng(0)
    for values, law in ((np.array([0.0, 4.0]), [0.9, 0.1]), (np.array([0.5, 1.0, 3.0]), [0.3, 0.5, 0.2])):
        means = random.multinomial(60, law, size=20_000) @ values / 60
        largest = float(values @ law)
        for t in np.quantile(means, [0.6, 0.9, 0.99, 0.999]):
            share = (means >= t).mean()
            assert share <= mean_bound(t, largest, values.max(), 60) + 4 * np.sqrt(share / 20_000)
    assert mean_bound(1.0, 1.0, 2.0, 10) == 1.0
    assert mean_bound(2.0, 1.0, 2.0, 10) == pytest.approx(2.0**-10)


def test_reports_of_another_mechanism_do_not_fit():
    """Secrets sent in place of reports are noticed in 500 of them, too few for the bound of all reports."""
    held, p = channel("geometric, 0.004 per m"), truths()["check-ins"]
    for counts in simulate_counts(held, p, 5_000, 10):
        assert fit_counts(held, counts).p_value >= REFUSED
    honest = np.random.default_rng(0).multinomial(500, truths()["sparse"])
    found = fit_counts(held, honest)
    assert found.p_value < REFUSED
    assert found.p_value == 2 * min(found.p_all, found.p_halves) < REFUSED


@pytest.mark.study
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("truth", ["check-ins", "sparse"])
def test_the_test_of_fit_keeps_its_level(name, truth):
    """Of 200 collections in order none is refused at 1 per cent: both bounds are far above the p values."""
    held = channel(name)
    for counts in simulate_counts(held, truths()[truth], 2_000, 200):
        assert fit_counts(held, counts).p_value > 0.01


def test_factored_mechanisms_have_tables_up_to_a_size(monkeypatch):
    factored = solve(
        EikonalWeights(problem=load_problem("line", cells=6)),
        method="factored",
        options=md.factored.FactoredOptions(rounds=5),
    )
    table = channels.table_of(factored)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-9)
    counts = np.random.default_rng(0).multinomial(4_000, np.full(6, 1 / 6) @ table)
    found = estimate_shares([factored], [counts], Partition.of_labels([0, 0, 0, 1, 1, 1]))
    assert (abs(found["share"] - 0.5) <= 4 * found["standard_error"]).all()
    monkeypatch.setattr(channels, "MOST", 5)
    with pytest.raises(SizeError, match="at most 5") as caught:
        estimate_shares([factored], [counts])
    assert caught.value.field == "mechanism"


def test_an_estimate_without_areas_is_a_distribution():
    case = baselines.exponential(SMALL["scattered points"]())
    found = estimate_shares([case], [np.arange(5) * 10])
    assert "share" not in found
    assert found.attrs["reports"] == 100
    assert found["distribution"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"method": "moments"}, "method"),
        ({"rng": -1}, "rng"),
        ({"confidence": 95.0}, "confidence"),
        ({"areas": Partition.of_labels([0, 1])}, "areas"),
        ({"areas": None, "against": [np.ones(36)]}, "against"),
        ({"counts": [np.ones(35)]}, "counts"),
        ({"counts": [np.full(36, 0.5)]}, "counts"),
        ({"counts": [np.full(36, -1)]}, "counts"),
        ({"counts": [np.zeros(36)]}, "counts"),
        ({"counts": []}, "counts"),
    ],
)
def test_what_does_not_fit_is_refused(given, field):
    usual = {"counts": [draw_counts(1_000)], "areas": areas()}
    with pytest.raises(InputError) as caught:
        estimate_shares([mechanism()], **{**usual, **given})
    assert caught.value.field == field


def test_mechanisms_over_other_secrets_are_refused():
    other = baselines.exponential(SMALL["euclidean line"]())
    prior = priors.proportional(np.arange(1.0, 37.0))
    same = baselines.geometric(replace(load_problem("paris", cells=SIDE, epsilon=0.01), prior=prior))
    with pytest.raises(InputError, match="the secrets of the first"):
        estimate_shares([mechanism(), other], [draw_counts(100), np.ones(4)])
    with pytest.raises(InputError, match="twice"):
        estimate_shares([mechanism(), mechanism()], [draw_counts(100), draw_counts(100)])
    assert estimate_shares([mechanism(), same], [draw_counts(100), draw_counts(100)]).attrs["reports"] == 200
