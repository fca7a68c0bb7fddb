"""Another package adds a metric, a loss, a closed form, a program and an export format by one registry line each.

Then solve, verify, save, compare, sweep, plot, export and the command line accept them.
"""

from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from fixtures import downstream

import mechdesign as md
from mechdesign.errors import InputError, VerificationError
from mechdesign.extend import (
    BASELINES,
    FORMATS,
    LOSSES,
    METRICS,
    SOLVERS,
    Edges,
    Loss,
    Metric,
    Program,
    finite_array,
)
from mechdesign.plot import mechanism as plot_mechanism

TABLES = (METRICS, LOSSES, BASELINES, SOLVERS, FORMATS)


@pytest.fixture
def package():
    """The package, registered; its entries are taken out again."""
    before = [set(table) for table in TABLES]
    downstream.register()
    yield downstream
    for table, old in zip(TABLES, before, strict=True):
        for name in set(table) - old:
            del table[name]


@pytest.fixture
def outside(package):
    domain = md.Domain.grid(5, cell=1.0, unit="km")
    return md.DesignProblem(
        domain=domain, metric=package.Ladder(step=0.4), prior=md.priors.uniform(domain), loss=package.Capped()
    )


def test_solve_verify_store_compare_sweep_and_export(outside, tmp_path):
    made = md.solve(downstream.Truthful(outside))
    free = md.solve(outside)
    assert made.attrs["expected_loss"] >= free.attrs["lower_bound"]
    assert np.diag(md.probabilities(made)).min() >= downstream.TRUTH * (1 - 1e-6)
    for mechanism in (made, free, md.baselines.exponential(outside), downstream.halves(outside)):
        md.save(mechanism, tmp_path / "made.nc", overwrite=True)
        checked = md.verify(tmp_path / "made.nc")
        assert checked.certified
        assert checked.reasons == []
        assert "ladder" in checked.claim
        md.export(mechanism, tmp_path / "made.lines", overwrite=True)
        assert (tmp_path / "made.lines").read_text().splitlines() == [f"{u} {2**62}" for u in range(5)]
        assert 0 <= int(md.Sampler(mechanism).report(2)) < 5
    assert "ladder" in str(plot_mechanism(made).texts or plot_mechanism(made)._suptitle.get_text())
    table = md.compare(outside, mechanisms={"truthful": made})
    losses = dict(zip(table["mechanism"], table["loss"], strict=True))
    assert losses["truthful"] == made.attrs["expected_loss"]
    assert losses["halves"] == downstream.halves(outside).attrs["expected_loss"]
    curve = md.sweep(outside, [1.0])
    assert float(curve["halves_loss"][0]) == pytest.approx(losses["halves"])


def test_the_command_line_knows_them(outside, tmp_path, run, run_json, monkeypatch):
    monkeypatch.setitem(sys.modules, "outside", SimpleNamespace(asked=lambda: outside))
    file = tmp_path / "mine.py"
    file.write_text(
        '"""A problem of another package."""\n\nfrom outside import asked\n\n\ndef problem():\n    return asked()\n'
    )
    code, summary = run_json("solve", file, "--program", "truthful", "-o", tmp_path / "mine.nc")
    assert code == 0
    assert summary["program"] == "truthful"
    assert summary["certified"]
    assert run_json("verify", tmp_path / "mine.nc")[1]["certified"]
    assert run("export", tmp_path / "mine.nc", "-o", tmp_path / "mine.lines")[0] == 0
    code, rows = run_json("compare", file, "--with", tmp_path / "mine.nc")
    assert code == 0
    assert {"optimal", "halves", "mine"} <= {row["mechanism"] for row in rows}


def test_what_is_not_in_a_table_is_refused(outside, monkeypatch):
    made = md.solve(outside)
    monkeypatch.delitem(METRICS, "ladder")
    with pytest.raises(VerificationError, match="unknown metric"):
        md.verify(made)
    monkeypatch.delitem(SOLVERS, downstream.Truthful.name)
    with pytest.raises(InputError, match="no solver"):
        md.solve(downstream.Truthful(outside))


def test_the_text_of_extend_builds_one_of_each_kind(tmp_path):
    """Its examples alone, without the lines that take the entries out again."""
    before = [set(table) for table in TABLES]
    names: dict = {}
    parsed = doctest.DocTestParser().get_examples(md.extend.__doc__)
    try:
        for example in parsed:
            if "del " not in example.source:
                exec(compile(example.source, "extend", "exec"), names)
        added = [set(table) - old for table, old in zip(TABLES, before, strict=True)]
        assert [len(new) for new in added] == [1, 1, 1, 1, 1]
        problem = names["problem"]
        for mechanism in (md.solve(names["Truthful"](problem)), names["halves"](problem), md.solve(problem)):
            path = md.save(mechanism, tmp_path / "one.nc", overwrite=True)
            checked = md.verify(path)
            assert (checked.certified, checked.reasons) == (True, [])
            assert checked.edge_source == "geometry"
            md.export(md.load(path), tmp_path / "one.lines", overwrite=True)
        assert "halves" in md.compare(problem)["mechanism"].tolist()
    finally:
        for table, old in zip(TABLES, before, strict=True):
            for name in set(table) - old:
                del table[name]
    for base in (Metric, Loss, Program):
        for method in base.__abstractmethods__:
            assert f"def {method}(" in md.extend.__doc__


def test_metrics_with_arrays_are_kept_bit_for_bit(monkeypatch, tmp_path):
    """A field of two axes, which a file holds as JSON."""

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Table(Metric):
        away: np.ndarray
        kind = "table of distances"
        described = (("away", finite_array(2)),)

        def unscaled_edges(self, domain):
            tail, head = np.triu_indices(domain.size, 1)
            return Edges(tail=tail, head=head, length=np.asarray(self.away)[tail, head])

        def claim(self, domain):
            return f"a table of distances that sums to {np.sum(self.away):.17g} nats"

        def words(self, unit, axes):
            return "a table of distances"

    monkeypatch.setitem(METRICS, Table.kind, Table)
    away = np.array([[0.0, 1.0, 4 / 3], [1.0, 0.0, 1.1], [4 / 3, 1.1, 0.0]])
    domain = md.Domain.classes(["a", "b", "c"])
    problem = md.DesignProblem(domain, 0.5 * Table(away=away), [0.5, 0.25, 0.25], md.losses.ZeroOne())
    path = md.save(md.solve(problem), tmp_path / "table.nc")
    checked = md.verify(path)
    assert (checked.certified, checked.reasons, checked.edge_source) == (True, [], "geometry")
    # One bit of the array changed in the file: the edges no longer follow from the metric.
    forged = md.load(path)
    changed = forged.attrs["metric"].replace(repr(4 / 3), repr(float(np.nextafter(4 / 3, 2))), 1)
    assert changed != forged.attrs["metric"]
    assert not md.verify(forged.assign_attrs(metric=changed)).certified


def test_typed_package_adds_one_of_each_kind(package, tmp_path):
    problem = package.problem({"low": 0.25, "mid": 0.5, "high": 0.25})
    assert problem.prior.tolist() == [0.25, 0.5, 0.25]
    for mechanism in (md.solve(problem), md.solve(package.Truthful(problem)), package.halves(problem)):
        assert md.verify(md.save(mechanism, tmp_path / "one.nc", overwrite=True)).certified
        assert md.export(mechanism, tmp_path / "one.lines", overwrite=True).stat().st_size > 0
    assert package.shares(problem).sum() == pytest.approx(1)
    own = md.programs.Constrained(problem, constraints=[package.fair])
    mine = {"fair": own, "truth": package.Truthful(problem)}
    rows = md.compare(problem, mechanisms=mine).set_index("mechanism")
    assert {"halves", "fair", "truth"} <= set(rows.index)
    assert rows.loc["fair", "lower_bound"] >= rows.loc["optimal", "lower_bound"]


@pytest.mark.exhaustive
def test_typed_package_passes_strict_type_checks(tmp_path):
    """And a wrong type in it does not."""
    pytest.importorskip("mypy")
    text = Path(downstream.__file__).read_text(encoding="utf-8")
    wrong = text.replace("return np.asarray(stated.prior @", "return str(stated.prior @")
    assert wrong != text
    for source, code in ((text, 0), (wrong, 1)):
        file = tmp_path / "downstream.py"
        file.write_text(source, encoding="utf-8")
        words = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
        done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == code, done.stdout
