from __future__ import annotations

import itertools

import numpy as np
import pytest
from fixtures.rows import few_by_default

from mechdesign import (
    DesignProblem,
    Discrete,
    Domain,
    Euclidean,
    Graph,
    baselines,
    priors,
    probabilities,
    solve,
    verify,
)
from mechdesign.errors import VerificationError
from mechdesign.losses import LOSSES, TableLoss
from mechdesign.mechanism import repair as table_remap
from mechdesign.utility import bayes_remap, expected_distance, mechanism_loss, remapped_loss

FLOAT = 1e-12  # sums of at most 10^3 positive terms in double precision
RANDOM = np.random.default_rng(11)
PLACES = RANDOM.uniform(0, 4, (5, 2))
APART = RANDOM.uniform(0, 4, (3, 2))
TABLE = RANDOM.random((5, 3))
MAKERS = {"optimal": solve, **baselines.BASELINES}


def scattered_problem(loss, reports=None):
    """Five places under a skewed prior."""
    domain = Domain.points_at(PLACES, unit="km")
    metric = Euclidean(epsilon=0.7, unit="km")
    prior = priors.proportional(np.arange(1.0, 6.0))
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss, reports=reports)


def grid_problem(prior=None):
    domain = Domain.grid((4, 3), cell=1.0, unit="km")
    prior = priors.uniform(domain) if prior is None else prior
    metric = Euclidean(epsilon=0.6, unit="km")
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=LOSSES["squared"])


def square(a, b):
    return ((a - b) ** 2).sum()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("squared", square),
        ("distance", lambda a, b: square(a, b) ** 0.5),
        ("zero-one", lambda a, b: float((a != b).any())),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_expected_loss_by_its_definition(name, function, apart):
    problem = scattered_problem(LOSSES[name], Domain.points_at(APART, unit="km") if apart else None)
    mechanism = baselines.exponential(problem)
    table = probabilities(mechanism).values
    places = APART if apart else PLACES
    expected = sum(
        (u + 1) / 15 * table[u, y] * function(PLACES[u], places[y])
        for u, y in itertools.product(range(5), range(len(places)))
    )
    assert mechanism_loss(mechanism) == pytest.approx(expected, rel=FLOAT)
    assert mechanism.attrs["expected_loss"] == pytest.approx(expected, rel=FLOAT)
    if name == "distance":
        assert expected_distance(mechanism) == pytest.approx(expected, rel=FLOAT)


def test_a_loss_table_is_stored_and_read_back():
    mechanism = baselines.exponential(scattered_problem(TableLoss(values=TABLE), Domain.points_at(APART, unit="km")))
    assert mechanism["loss_table"].values.tolist() == TABLE.tolist()
    direct = (np.arange(1, 6)[:, None] / 15 * TABLE * probabilities(mechanism).values).sum()
    assert mechanism_loss(mechanism) == pytest.approx(direct, rel=FLOAT)


def test_an_unknown_loss_is_refused():
    mechanism = baselines.exponential(scattered_problem(LOSSES["squared"])).assign_attrs(loss="regret")
    with pytest.raises(VerificationError, match="unknown loss") as caught:
        mechanism_loss(mechanism)
    assert caught.value.field == "loss"


@pytest.mark.parametrize("metric", [Discrete(epsilon=1.0), Graph(tail=[0, 1], head=[1, 2], length=[1.0, 0.5])])
def test_nodes_of_a_graph_have_no_distance(metric):
    domain = Domain.nodes(3)
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=LOSSES["zero-one"])
    assert expected_distance(baselines.exponential(problem)) is None


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", few_by_default([None, 0, 1], 0))
def test_remapping_keeps_certificate_and_loss(name, seed):
    skewed = None if seed is None else priors.proportional(np.random.default_rng(seed).exponential(size=12) ** 2)
    mechanism = MAKERS[name](grid_problem(skewed))
    remapped = bayes_remap(mechanism)
    assert mechanism_loss(remapped) <= mechanism_loss(mechanism) * (1 + FLOAT)
    assert remapped_loss(mechanism) == pytest.approx(remapped.attrs["expected_loss"], rel=FLOAT)
    assert remapped.attrs["ratio"] <= mechanism.attrs["ratio"] * (1 + FLOAT)
    checked = verify(remapped)
    assert checked.certified
    assert checked.reasons == []
    assert "lower_bound" not in remapped.attrs
    assert bayes_remap(remapped)["mass"].equals(remapped["mass"])


@pytest.mark.parametrize("name", ["squared", "distance", "zero-one", "table"])
@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1.5])
def test_remapping_is_the_best_relabelling(name, epsilon):
    random = np.random.default_rng(3)
    domain = Domain.points_at(PLACES[:4], unit="km")
    loss = TableLoss(values=random.random((4, 4))) if name == "table" else LOSSES[name]
    prior = priors.proportional(random.random(4) ** 2)
    metric = Euclidean(epsilon=epsilon, unit="km")
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss)
    mechanism = baselines.exponential(problem)
    table = probabilities(mechanism).values
    best = min(
        (problem.weighted_loss[:, list(labels)] * table).sum() for labels in itertools.product(range(4), repeat=4)
    )  # fmt: skip
    assert remapped_loss(mechanism) == pytest.approx(best, rel=FLOAT)
    assert bayes_remap(mechanism).attrs["expected_loss"] == pytest.approx(best, rel=FLOAT)


@pytest.mark.parametrize(("prior", "left"), [([0.5, 0.5], [0.0, 1.0]), ([0.95, 0.05], [0.0]), ([0.05, 0.95], [1.0])])
def test_two_reports(prior, left):
    domain = Domain.points_at([0.0, 1.0], unit="km")
    metric = Euclidean(epsilon=1.0, unit="km")
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=LOSSES["zero-one"])
    mechanism = baselines.geometric(problem, border="normalised")
    remapped = bayes_remap(mechanism)
    assert remapped["report_x"].values.tolist() == left
    assert verify(remapped).certified
    assert mechanism_loss(remapped) == pytest.approx(min(prior) if len(left) == 1 else 1 / (1 + np.e), rel=FLOAT)
    assert expected_distance(remapped) == pytest.approx(mechanism_loss(remapped), rel=FLOAT)


def test_remapping_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = MAKERS["geometric_normalised"](grid_problem())
    whole, value = bayes_remap(mechanism), remapped_loss(mechanism)
    monkeypatch.setattr(table_remap, "_BLOCK", 5)
    assert bayes_remap(mechanism)["mass"].identical(whole["mass"])
    assert remapped_loss(mechanism) == pytest.approx(value, rel=FLOAT)
    assert whole.sizes["report"] < mechanism.sizes["report"]
