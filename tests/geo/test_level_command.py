from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

from mechdesign import DesignProblem, Domain, Euclidean, baselines, priors, probabilities, utility
from mechdesign.errors import InputError
from mechdesign.evaluation import privacy_radius
from mechdesign.geo.level import level_document
from mechdesign.losses import Distance

FLOAT = 1e-13  # a few products and logarithms

DOCUMENT = [
    "radius", "unit", "epsilon", "epsilon_unit", "nats", "factor", "nats_both_within", "factor_both_within",
    "disc_share", "expected_distance", "quantiles", "reports", "nats_together", "factor_together", "epsilon_each",
    "expected_distance_each", "interest", "confidence", "retrieval_radius",
]  # fmt: skip


@pytest.fixture
def run(run):
    return partial(run, "level")


@pytest.mark.parametrize(("radius", "nats"), [(200.0, math.log(2)), (0.2, 1.0), (1e-3, 40.0)])
def test_levels_and_radii_are_two_ways_of_one_statement(radius, nats):
    epsilon = utility.epsilon_within(radius, nats)
    assert epsilon * radius == pytest.approx(nats, rel=FLOAT)
    assert utility.nats_within(radius, epsilon) == pytest.approx(nats, rel=FLOAT)
    assert privacy_radius.odds_factor(nats) == pytest.approx(math.e**nats, rel=FLOAT)
    assert privacy_radius.nats_of_factor(privacy_radius.odds_factor(nats)) == pytest.approx(nats, rel=FLOAT)
    assert privacy_radius.odds_factor(1000.0) == math.inf


def test_certified_table_keeps_odds_factor():
    radius, factor = 2.0, 3.0
    domain = Domain.grid((5, 5), cell=1.0, unit="km")
    epsilon = utility.epsilon_within(radius, privacy_radius.nats_of_factor(factor))
    metric = Euclidean(epsilon=epsilon, unit="km")
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance())
    table = probabilities(baselines.planar_laplace(problem)).values
    prior = np.random.default_rng(0).random(25)
    posterior = prior[:, None] * table
    odds = (posterior[:, None] / posterior[None]) / (prior[:, None] / prior[None])[:, :, None]
    largest = odds.max(axis=2)
    away = domain.euclidean_to(domain)
    assert largest[away <= radius].max() <= factor
    assert largest[away <= radius].max() > 0.9 * factor  # and not by much less
    assert largest[away > radius].max() > factor


def test_the_document_in_three_forms():
    asked = {"radius": 200.0, "unit": "metres", "reports": 4, "interest": 300.0, "confidence": 0.9}
    epsilon = math.log(2) / 200
    content = level_document(**asked, epsilon=epsilon)
    assert list(content) == DOCUMENT
    expected = {
        "unit": "m", "epsilon": epsilon, "epsilon_unit": "nats per m", "nats": math.log(2), "factor": 2.0,
        "factor_both_within": 4.0, "expected_distance": 400 / math.log(2), "nats_together": math.log(16),
        "factor_together": 16.0, "epsilon_each": epsilon / 4, "expected_distance_each": 1600 / math.log(2),
        "retrieval_radius": 300 + 3.889720 / epsilon,
    }  # fmt: skip
    for name, value in expected.items():
        assert content[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-6)), name
    assert content["nats_both_within"] == 2 * content["nats"]
    assert [content["quantiles"][p] * epsilon for p in ("0.5", "0.9", "0.95", "0.99")] == pytest.approx(
        [1.678347, 3.889720, 4.743865, 6.638352], abs=5e-7
    )


def test_a_level_in_every_form(run):
    words = ("--within", 200, "--unit", "metres", "--reports", 4, "--json")
    first = json.loads(run(*words, "--factor", 2)[1])
    again = json.loads(run(*words, "--epsilon", repr(math.log(2) / 200))[1])
    for name, value in first.items():
        assert again[name] == (pytest.approx(value, rel=FLOAT) if isinstance(value, float | dict) else value), name


def test_command_prints_the_document(run):
    code, out, err = run("--within", 200, "--unit", "m", "--factor", 2, "--reports", 3, "--interest", 300)
    words = " ".join(out.split())
    assert (code, err) == (0, "")
    for text in (
        "epsilon 0.0034657359 nats per m",
        "places up to 200 m apart change by a factor of at most 2 (0.693148 nats)",
        "both within 200 m of a person: 4",
        "mean distance 577.079 m",
        "50% 484.269 m, 90% 1,122.34 m, 95% 1,368.79 m, 99% 1,915.43 m",
        "together a factor of at most 8",
        "0.00115524 nats per m for each report, mean distance 1,731.24 m",
        "1,668.79 m around the report",
    ):
        assert text in words
    code, out, _ = run("--within", 1, "--unit", "km", "--epsilon", 3, "--json")
    assert (code, json.loads(out)) == (0, level_document(radius=1, unit="km", epsilon=3))
    code, out, _ = run("--within", 1000, "--epsilon", 3, "--json")
    assert json.loads(out)["factor"] is None  # e^3000
    assert "split epsilon" not in run("--within", 1, "--factor", 2)[1]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((), "factor"),
        (("--factor", 2, "--epsilon", 1), "factor"),
        (("--factor", 1), "factor"),
        (("--factor", "inf"), "factor"),
        (("--epsilon", 0), "epsilon"),
        (("--factor", 2, "--unit", "degrees"), "unit"),
        (("--factor", 2, "--unit", "parsec"), "unit"),
        (("--factor", 2, "--reports", 0), "reports"),
        (("--factor", 2, "--interest", -1), "interest_radius"),
    ],
)
def test_refusals_name_the_field(words, field, run):
    code, out, _ = run("--within", 200, *words, "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, field)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((), "within"),
        (("--within", 0), "within"),
        (("--within", "inf"), "within"),
    ],
)
def test_one_radius_is_needed(words, field, run):
    code, out, _ = run("--factor", 2, *words, "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, field)


def test_radii_must_be_lengths():
    for radius in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError) as caught:
            level_document(radius=radius, epsilon=1.0)
        assert caught.value.field == "radius"


@needs("posteriors")
def test_discs_of_an_even_plane(run):
    """1 - (1 + x) e^-x against an integral of the noise over a disc, and back from a share to a level."""
    for x in (0.355, 0.824, 1.678, 3.89):
        r = np.linspace(0, x, 200_001)
        density = r * np.exp(-r)
        integral = float(((density[1:] + density[:-1]) / 2 * np.diff(r)).sum())
        assert privacy_radius.disc_share(x) == pytest.approx(integral, rel=1e-9)
        assert privacy_radius.nats_of_disc_share(privacy_radius.disc_share(x)) == pytest.approx(x, rel=1e-9)
    table = {0.05: 0.355, 0.1: 0.532, 0.2: 0.824, 0.25: 0.961, 0.5: 1.678, 0.75: 2.693, 0.9: 3.89}
    for share, nats in table.items():
        assert privacy_radius.nats_of_disc_share(share) == pytest.approx(nats, abs=5e-4)
    document = json.loads(run("--disc", "1850ft", "--share", "20%", "--json")[1])
    assert document["radius"] == pytest.approx(1850 * 0.3048, rel=FLOAT)
    assert document["disc_share"] == pytest.approx(0.2, rel=1e-9)
    assert document["expected_distance"] == pytest.approx(1368, abs=1)
    assert privacy_radius.disc_share(1e9) == 1
    for bad in (["--disc", "564"], ["--disc", "564", "--share", "1"], ["--disc", "5 6", "--share", "1/5"]):
        assert run(*bad)[0] == 2
    assert run("--disc", "564", "--share", "1/5", "--factor", "2")[0] == 2
