"""Plans: equal to simulated standard errors, to sampling without privacy, and to their epsilon for an error."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from conftest import ROOT
from fixtures.report_collections import AREAS, MECHANISMS, SIDE, channel, simulate_counts, truths

from mechdesign import load_problem, save
from mechdesign.errors import InputError
from mechdesign.geo import Partition
from mechdesign.mechanism.storage import load_sealed
from mechdesign.programs.matched import FAMILIES
from mechdesign.surveys import epsilon_for, plan
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.plan import PLAN

SIMULATIONS = 4_000


@cache
def problem():
    return load_problem("paris", cells=SIDE, epsilon=0.004)


def make_plan(**given):
    usual = {"people": 1_000, "truth": truths()["check-ins"]}
    areas = given.pop("areas", Partition.blocks(problem().domain, 2, 2))
    tables = given.pop("tables", {name: channel(name).table for name in MECHANISMS})
    return plan(tables, areas, problem().domain, **{**usual, **given})


@pytest.mark.parametrize("truth", ["check-ins", "sparse"])
def test_the_plan_equals_the_simulated_standard_error(truth):
    """A standard deviation of 4,000 means is known to 1 / sqrt(8,000) of itself: four times that is 4.5 %."""
    made = make_plan(truth=truths()[truth], prior=truths()["check-ins"])
    wanted = Partition.blocks(problem().domain, 2, 2).indicator
    for d, name in enumerate(MECHANISMS):
        held = channel(name)
        weights = linear_weights(held, wanted, truths()["check-ins"])
        means = simulate_counts(held, truths()[truth], 1_000, SIMULATIONS) / 1_000 @ weights.values
        spread = means.std(axis=0, ddof=1)
        np.testing.assert_allclose(made["standard_error"][d], spread, rtol=4 / np.sqrt(2 * SIMULATIONS))
        np.testing.assert_allclose(means.mean(axis=0), made["share"], atol=4 * spread.max() / np.sqrt(SIMULATIONS))


def test_identity_table_is_plain_sampling():
    made = make_plan(tables={"truth": np.eye(100)})
    np.testing.assert_allclose(made["deviation"][0], made["deviation_without"], rtol=1e-9)
    np.testing.assert_array_equal(made["people"][0], made["people_without"])
    share = made["share"].values
    np.testing.assert_allclose(made["people_without"], np.ceil(1.959963984540054**2 * share * (1 - share) / 0.0004))


def test_people_and_error_agree():
    one = {"tables": {"": channel("randomized response, 3 nats").table}, "error": 0.03}
    people = int(make_plan(**one)["people"].max())
    assert 0.03 * (1 - 2 / people) <= make_plan(**one, people=people)["error"].max() <= 0.03 + 1e-9
    assert make_plan(**one, people=people - 1)["error"].max() > 0.03
    together = make_plan(simultaneous=True)
    assert together.attrs["z"] == pytest.approx(2.4977, abs=1e-4)


def test_lost_shares_are_infinite_and_those_of_everybody_known():
    table = np.repeat(np.eye(50), 2, axis=0)
    labels = np.zeros(100, int)
    labels[0], labels[2:4] = 1, 2
    made = make_plan(tables={"pairs": table}, areas=Partition.of_labels(labels))
    assert np.isinf(made["people"][0].values).tolist() == [True, True, False]
    assert made["bias"][0].values[:2].min() > 0.1
    everyone = make_plan(areas=Partition.of_labels(np.zeros(100, int)))
    assert everyone["standard_error"].values.max() <= 1e-7


@pytest.mark.parametrize("family", ["geometric_clamped", "randomized_response"])
def test_the_epsilon_for_an_error_is_the_least(family):
    areas = Partition.blocks(problem().domain, 3, 3)
    found = epsilon_for(problem(), family, areas, people=10_000, error=0.02)

    def worst(epsilon):
        table = FAMILIES[family].table(problem(), epsilon)
        return float(plan({"": table}, areas, problem().domain, people=10_000, truth=problem().prior)["error"].max())

    assert worst(found) <= 0.02 < worst(found * 0.999)
    assert epsilon_for(problem(), family, areas, people=100, error=0.02) is None


def test_a_plan_is_stored_whole(tmp_path):
    made = make_plan()
    again = load_sealed(save(made, tmp_path / "plan.nc"), PLAN, noun="a plan")
    assert again.identical(made)
    assert json.loads(again.attrs["areas"]) == ["1-1", "1-2", "2-1", "2-2"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"people": 0}, "people"),
        ({"people": 2.5}, "people"),
        ({"error": 0.0}, "error"),
        ({"error": 1.5}, "error"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"truth": np.full(100, 0.02)}, "prior"),
        ({"truth": np.full(99, 1 / 99)}, "prior"),
        ({"tables": {"other": np.eye(4)}}, "tables"),
        ({"areas": Partition.of_labels(AREAS["centre"][:50])}, "areas"),
    ],
)
def test_what_cannot_be_planned_is_refused(given, field):
    with pytest.raises(InputError) as caught:
        make_plan(**given)
    assert caught.value.field == field


def test_the_people_that_the_documentation_names():
    """The cost of privacy in people: 30 x 30 cells, nine areas, check-ins, clamped geometric noise."""
    paris = load_problem("paris", prior="checkins", epsilon=0.01)
    tables = {f"{e}": FAMILIES["geometric_clamped"].table(paris, e) for e in (0.0035, 0.01)}
    areas = Partition.blocks(paris.domain, 3, 3)
    made = plan(tables, areas, paris.domain, people=10_000, truth=paris.prior_array)
    assert [int(each.max()) for each in (*made["people"], made["people_without"])] == [396_927, 3_812, 1_658]
    text = (ROOT / "docs" / "results" / "surveys.md").read_text(encoding="utf-8")
    assert all(figure in text for figure in ("396,927", "3,812", "1,658"))
    assert (100 * made["standard_error"].max("area")).round(2).values.tolist() == [6.43, 0.63]
