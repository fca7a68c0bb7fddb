"""A metric from outside the package: one class and one row of the table, and everything works."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import VerificationError
from mechdesign.extend import METRICS, Edges, Metric, finite
from mechdesign.output.captions import metric_sentence
from mechdesign.plot import mechanism as plot_mechanism


@dataclass(frozen=True, kw_only=True, eq=False)
class Hex(Metric):
    """Steps to the six neighbours of a hexagonal lattice that is sheared to a square one, epsilon nats each."""

    epsilon: float
    kind = "hex"
    described = (("epsilon", finite),)
    sparse = True

    def unscaled_edges(self, domain: md.Domain) -> Edges:
        steps = {(0, 1), (1, 0), (1, -1)}
        position = domain.index.tolist()
        pairs = [
            (u, v)
            for u, a in enumerate(position)
            for v, b in enumerate(position)
            if (b[0] - a[0], b[1] - a[1]) in steps
        ]
        tail, head = np.array(pairs).T
        return Edges(tail=tail, head=head, length=np.full(len(pairs), float(self.epsilon)))

    def claim(self, domain: md.Domain) -> str:
        return f"the number of steps over a hexagonal lattice times {self.epsilon:.17g} nats"

    def words(self, unit: str, axes: int) -> str:
        return f"hexagonal steps of {self.epsilon * self.scale:.3g} nats"


@pytest.fixture
def register_metric(monkeypatch):
    monkeypatch.setitem(METRICS, "hex", Hex)


def problem(scale: float = 1.0) -> md.DesignProblem:
    domain = md.Domain.grid((3, 4), cell=1.0, unit="km")
    prior = md.priors.proportional(1 + np.arange(12) % 5)
    return md.DesignProblem(
        domain=domain, metric=scale * Hex(epsilon=0.8), prior=prior, loss=md.losses.Distance(), name="honeycomb"
    )


@pytest.mark.usefixtures("register_metric")
@pytest.mark.parametrize("scale", few_by_default([0.5, 1.0, 2.0], 0.5))
def test_outside_metric_works_everywhere(tmp_path, scale):
    path = tmp_path / "hex.nc"
    md.save(md.solve(md.Optimal(problem=problem(scale)), gap=1e-3), path)
    mechanism = md.load(path)
    checked = md.verify(path)
    assert checked.certified, checked.reasons
    assert checked.edge_source == "geometry"
    assert checked.violations == 0
    assert checked.lower_bound_checked
    assert f"times {0.8:.17g} nats" in checked.claim
    assert md.Sampler(mechanism=mechanism).certificate.cost == scale
    assert md.sample(mechanism, [5], 20, rng=1).size == 20
    md.export(mechanism, tmp_path / "hex.csv")
    assert '"kind": "hex"' in (tmp_path / "hex.csv-metadata.json").read_text()
    assert metric_sentence(mechanism) == f"hexagonal steps of {0.8 * scale:.3g} nats"
    assert metric_sentence(mechanism) in plot_mechanism(mechanism).get_suptitle()


@pytest.mark.usefixtures("register_metric")
@pytest.mark.parametrize("program", [md.EikonalWeights, md.programs.Minimax])
def test_other_programs_take_outside_metric(program):
    assert md.verify(md.solve(program(problem=problem()))).certified


@pytest.mark.usefixtures("register_metric")
def test_outside_metric_has_a_factored_form():
    mechanism = md.solve(md.EikonalWeights(problem=problem()), method="factored")
    checked = md.verify(mechanism)
    assert checked.certified, checked.reasons
    assert "level" not in mechanism
    assert metric_sentence(mechanism) == "hexagonal steps of 0.8 nats"


@pytest.mark.usefixtures("register_metric")
def test_a_comparison_takes_it():
    assert {"optimal", "exponential", "constant"} <= set(md.compare(problem())["mechanism"])


def test_without_a_row_of_the_table_its_files_are_refused(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(METRICS, "hex", Hex)
        mechanism = md.solve(md.Optimal(problem=problem()))
    with pytest.raises(VerificationError, match="unknown metric"):
        md.verify(mechanism)


@pytest.mark.usefixtures("register_metric")
@pytest.mark.parametrize(
    ("fields", "field"), [({"epsilon": "1"}, "epsilon"), ({}, "metric"), ({"epsilon": 1, "b": 2}, "metric")]
)
def test_outside_metric_description_is_untrusted(fields, field):
    mechanism = md.solve(problem())
    forged = rewritten(mechanism, metric=json.dumps({"kind": "hex", "multiplier": 1.0, **fields}))
    with pytest.raises(VerificationError) as caught:
        md.Sampler(forged)
    assert caught.value.field == field
