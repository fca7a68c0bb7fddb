"""A loss from outside the package: one class and one row of the table, and everything works."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import mechdesign as md
from mechdesign.cli.metric_problem import named_problem
from mechdesign.errors import UnsuitableError, VerificationError
from mechdesign.output.captions import loss_words
from mechdesign.plot import mechanism as plot_mechanism


@dataclass(frozen=True, kw_only=True, eq=False)
class Huber(md.losses.Loss):
    """|u - y|^2 / 2 within a unit of length, |u - y| - 1/2 beyond."""

    name = "huber"

    def matrix(self, secrets: md.Domain, reports: md.Domain) -> np.ndarray:
        distance = secrets.euclidean_to(reports)
        return np.where(distance <= 1, distance**2 / 2, distance - 0.5)

    def unit(self, length: str) -> str:
        return "1" if length == "1" else f"{length}^2"

    def words(self) -> str:
        return "Huber loss"


@pytest.fixture
def register_loss(monkeypatch):
    monkeypatch.setitem(md.losses.LOSSES, "huber", Huber())


def problem(domain: md.Domain | None = None) -> md.DesignProblem:
    places = md.Domain.grid((3, 4), cell=0.9, unit="km") if domain is None else domain
    return md.DesignProblem(
        domain=places,
        metric=md.Eikonal(level=md.PrivacyLevel.constant(1.1, "km"), stencil=8),
        prior=md.priors.uniform(places),
        loss=Huber(),
    )


@pytest.mark.usefixtures("register_loss")
def test_outside_loss_works_everywhere(tmp_path):
    path = tmp_path / "huber.nc"
    md.save(md.solve(md.Optimal(problem=problem()), gap=1e-3), path)
    mechanism, checked = md.load(path), md.verify(path)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked
    assert "loss_table" not in mechanism
    domain = problem().domain
    table = md.probabilities(mechanism).values
    expected = (table * Huber().matrix(domain, domain)).sum() / 12
    assert checked.expected_loss == pytest.approx(expected, rel=1e-12)  # sums of 144 doubles
    md.export(mechanism, tmp_path / "huber.csv")
    assert '"loss": "huber"' in (tmp_path / "huber.csv-metadata.json").read_text()
    caption = " ".join(plot_mechanism(mechanism).get_suptitle().split())
    printed = re.search(r"The mean loss is ([\d.]+) km²\.", caption)[1]
    assert 0 <= float(printed) / expected - 1 <= 1e-3  # four digits, rounded up


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("squared", "1", ("squared distance", "squared units")),
        ("squared", "km^2", ("squared distance", "km²")),
        ("distance", "1", ("distance", "units")),
        ("distance", "m", ("distance", "m")),
        ("zero-one", "1", ("share of wrong reports", "")),
        ("table", "1", ("loss", "")),
        ("table", "km^2", ("loss", "km²")),
        ("huber", "1", ("Huber loss", "squared units")),
    ],
)
@pytest.mark.usefixtures("register_loss")
def test_captions_ask_the_loss(name, unit, words):
    assert loss_words(name, unit) == words


@pytest.mark.usefixtures("register_loss")
def test_problems_name_outside_loss():
    options = {"epsilon": "1", "unit": "km", "grid": "2x2", "cell": "1", "loss": "huber"}
    assert named_problem("euclidean", options, secrets=4).loss.name == "huber"
    assert md.load_problem("euclidean", cells=2, loss="huber").loss.name == "huber"


@pytest.mark.usefixtures("register_loss")
def test_factored_form_refuses_outside_loss():
    with pytest.raises(UnsuitableError, match="no factored form: factored mechanisms support only losses") as caught:
        md.solve(md.EikonalWeights(problem=problem()), method="factored")
    assert caught.value.field == "method"
    squared = md.DesignProblem(**{**vars(problem()), "loss": md.losses.SquaredDistance()})
    factored = md.solve(md.EikonalWeights(problem=squared), method="factored")
    with pytest.raises(VerificationError, match="computes its loss from coordinates"):
        md.verify(factored.assign_attrs(loss="huber"))
    with pytest.raises(md.errors.InputError, match="unknown loss") as caught:
        md.utility.adversary_error(md.solve(md.Optimal(problem=problem())), "huber")
    assert caught.value.remedy == "use squared or distance"


def test_without_a_row_of_the_table_its_files_are_refused(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(md.losses.LOSSES, "huber", Huber())
        mechanism = md.solve(md.Optimal(problem=problem()))
    with pytest.raises(VerificationError, match="unknown loss"):
        md.verify(mechanism)
