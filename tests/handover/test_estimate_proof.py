"""The proof of an estimate's page, in Node: every kind ends without a fault, every altered figure with one."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from estimates import PARTLY, WHOLE, estimate_of, forged_estimate, honest_estimate
from pages import NODE, in_node, proof_script, proved_in_node
from scipy.special import ndtr

from mechdesign.utility.population.goodness_of_fit import tail_bound

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
NAMES = (*WHOLE, *PARTLY)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    texts = [honest_estimate(name) for name in NAMES]
    return dict(zip(NAMES, proved_in_node(tmp_path_factory.mktemp("node"), texts), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_proved_as_far_as_it_can_be(outcomes, name):
    outcome = outcomes[name]
    assert outcome["faults"] == []
    assert outcome["found"]["told"]["whole"] is (name in WHOLE)
    proved, given = " ".join(outcome["proved"]), " ".join(outcome["given"])
    assert ("both ends of every interval" in proved) is (name not in ("cells", "pilot", "sealed"))
    assert ("inequalities" in proved) is (name != "sealed")
    assert ("No distribution makes these reports more likely" in proved) is (name not in ("stopped", "sealed"))
    assert ("Differences" in given) is (name == "two")
    assert ("not to be identifiable" in given) is (name == "lost")
    assert ("rest on a guess" in given) is (name == "pilot")
    assert ("neither privacy nor intervals" in outcome["found"]["told"]["words"]) is (name == "sealed")


def test_some_are_not_identifiable_and_some_have_too_few_reports():
    """The cases are what their names say."""
    reasons = {name: json.loads(estimate_of(name).attrs["reasons"]) for name in ("lost", "few", "linear")}
    assert all(reason.startswith("not identifiable") for reason in reasons["lost"])
    assert {reason is None for reason in reasons["few"]} == {True, False}
    assert set(reasons["linear"]) == {None}
    assert estimate_of("misfit").attrs["fit_p"] < 1e-3


def moved(name, key, by, at=0):
    values = estimate_of(name)[key].values.copy()
    values[at] += by
    return forged_estimate(name, **{key: values})


def exchanged(key):
    values = estimate_of("linear")[key].values.copy()
    one, two = 0, int(np.argmax(values != values[0]))
    values[[one, two]] = values[[two, one]]
    return forged_estimate("linear", **{key: values})


def lighter(name):
    """The page with one weight of one area a thousandth larger, sealed again."""
    texts = honest_estimate(name)
    data = bytearray(texts.arrays)
    told = json.loads(texts.contents)["beside"]["weights" if name == "linear" else "weights_low"]
    weights = np.frombuffer(data, "<f8", int(np.prod(told["shape"])), told["start"])
    weights[int(np.argmax(abs(weights)))] *= 1 + 1e-3
    return replace(texts, packed=base64.b64encode(gzip.compress(bytes(data), 1)).decode()).resealed()


def promised():
    return json.loads(honest_estimate("linear").contents)["saying"]["template"]


FORGERIES = {
    **{
        f"{key} of {name}": (lambda name=name, key=key, by=by: moved(name, key, by))
        for name in ("linear", "affine", "two")
        for key, by in (
            ("share", 1e-5),
            ("low", -1e-5),
            ("high", 1e-5),
            ("standard_error", 1e-6),
            ("effective", 1.0),
            ("likelihood_share", 1e-6),
        )
    },
    "bias": lambda: moved("linear", "bias", 1e-7),
    "count": lambda: moved("linear", "count", 1),
    "counts exchanged": lambda: exchanged("count"),
    "prior": lambda: moved("linear", "prior", 1e-6),
    "distribution": lambda: exchanged("distribution"),
    "distribution that sums to more": lambda: moved("cells", "distribution", 1e-6),
    "area_of": lambda: exchanged("area_of"),
    "places": lambda: moved("linear", "secret_x", 1.0),
    "share of nobody": lambda: moved("sealed", "likelihood_share", 1e-6),
    "lost share": lambda: forged_estimate("lost", share=np.full(2, 0.5)),
    "interval where there is none": lambda: forged_estimate("few", low=estimate_of("few")["share"].values - 0.01),
    "few as enough": lambda: forged_estimate("few", reasons=json.dumps([None] * 6)),
    "enough as few": lambda: forged_estimate(
        "linear", reasons=json.dumps(["too few reports: 3 effective ones, an interval takes 20"] + [None] * 5)
    ),
    "z": lambda: forged_estimate("linear", z=1.9),
    "confidence": lambda: forged_estimate("linear", confidence=0.99),
    "together": lambda: forged_estimate("linear", simultaneous=1),
    "likelihood": lambda: forged_estimate("cells", log_likelihood=estimate_of("cells").attrs["log_likelihood"] + 1e-6),
    "gap": lambda: forged_estimate("stopped", method="newton"),
    "statistic": lambda: forged_estimate("linear", fit_statistic=1e3),
    "fit": lambda: forged_estimate("misfit", fit_p=0.5),
    "freedom": lambda: forged_estimate("linear", fit_freedom=3),
    "number of reports": lambda: forged_estimate("linear", reports=3_001),
    "digest": lambda: forged_estimate("sealed", reports_sha256="0" * 64),
    "weights": lambda: lighter("linear"),
    "weights of a bound": lambda: lighter("affine"),
    "another mechanism": lambda: honest_estimate("linear").changed(
        said={"mechanisms/0/attrs/sha256": ["str", "0" * 64]}
    ),
    "one mechanism of two": lambda: honest_estimate("two").changed(
        said={"mechanisms": json.loads(honest_estimate("two").contents)["mechanisms"][:1]}
    ),
    "low of the sentence": lambda: honest_estimate("linear").changed(said={"saying/texts/low": "1"}),
    "high of the sentence": lambda: honest_estimate("sealed").changed(said={"saying/values/high": 99.0}),
    "reports of the sentence": lambda: honest_estimate("linear").changed(said={"saying/texts/reports": "30,000"}),
    "area of the sentence": lambda: honest_estimate("linear").changed(said={"saying/texts/area": "nowhere"}),
    "confidence of the sentence": lambda: honest_estimate("linear").changed(said={"saying/texts/confidence": "99"}),
    "factor of the sentence": lambda: honest_estimate("linear").changed(said={"saying/texts/factor": "1.1"}),
    "trust": lambda: honest_estimate("misfit").changed(
        said={"saying/template": json.loads(honest_estimate("linear").contents)["saying"]["template"]}
    ),
    "claim": lambda: honest_estimate("linear").changed(said={"facts/claims": ["nothing is given away"]}),
    "seal": lambda: honest_estimate("linear").changed(said={"facts/provenance/seal of its contents": "0" * 64}),
    "sha256sum": lambda: honest_estimate("linear").changed(said={"facts/provenance/sha256sum of the file": "none"}),
    "confidence where nothing was given": lambda: forged_estimate("sealed", confidence=0.99),
    "a promise of positions": lambda: honest_estimate("linear").changed(
        said={
            "saying/template": promised().replace(
                "protects cells of 150 m, not positions", "protects any two positions"
            )
        }
    ),
    "a fit that was found to fail": lambda: honest_estimate("linear").changed(said={"fit_p": 1e-9}),
}


def test_every_forgery_has_a_fault(tmp_path):
    outcomes = proved_in_node(tmp_path, [make() for make in FORGERIES.values()])
    for name, outcome in zip(FORGERIES, outcomes, strict=True):
        assert outcome["faults"], name
        shallow = ("the data cannot be read", "the seal of the file", "the data of this page were altered")
        assert not any(fault["text"].startswith(shallow) for fault in outcome["faults"]), (name, outcome["faults"])


def test_a_digit_that_was_changed_breaks_the_seal(tmp_path):
    texts = honest_estimate("linear")
    at = texts.contents.index('"reports"') + 20
    digit = next(k for k in range(at, len(texts.contents)) if texts.contents[k].isdigit())
    other = str((int(texts.contents[digit]) + 1) % 10)
    changed = replace(texts, contents=texts.contents[:digit] + other + texts.contents[digit + 1 :])
    outcome = proved_in_node(tmp_path, [changed])[0]
    assert "were altered" in outcome["faults"][0]["text"]


def test_tails_are_those_of_python(tmp_path):
    z, x = [0.6745, 1.0, 1.96, 3.5, 8.0], [1.0, 70.0, 500.0]
    found = in_node(
        tmp_path,
        f"{proof_script()}console.log(JSON.stringify([{z}.map(normalTail), {x}.map((x) => tailBound(x, 35))]))",
    )
    assert found[0] == pytest.approx(ndtr(-np.array(z)), rel=1e-10)  # a continued fraction of 400 terms
    assert found[1] == pytest.approx([tail_bound(value, 35) for value in x], rel=1e-12)
