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

import cvxpy as cp
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
    Format,
    Loss,
    Metric,
    Program,
    ProgramSpec,
    SolveResult,
    closed_form_mechanism,
    expected_loss,
    finite,
    finite_array,
    lipschitz,
    repair,
    simplex,
)
from mechdesign.plot import mechanism as plot_mechanism

TRUTH = 0.3  # least probability of the truth


@dataclass(frozen=True, kw_only=True, eq=False)
class Ladder(Metric):
    """d between neighbours in the order of places grows with the place: (k + 1) step nats."""

    step: float
    kind = "ladder"
    described = (("step", finite),)
    sparse = True

    def unscaled_edges(self, domain):
        tail = np.arange(domain.size - 1)
        return Edges(tail=tail, head=tail + 1, length=(tail + 1) * float(self.step))

    def describe(self):
        return {"kind": self.kind, "multiplier": self.scale, "step": self.step}

    def claim(self, domain):
        return f"a ladder of {self.step:.17g} nats a rung"

    def words(self, unit, axes):
        return f"a ladder of {self.step:.3g} nats"


@dataclass(frozen=True, kw_only=True, eq=False)
class Capped(Loss):
    """l(u, y) = min(|u - y|, 2)."""

    name = "capped"

    def matrix(self, secrets, reports):
        return np.minimum(secrets.euclidean_to(reports), 2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Truthful(Program):
    """The optimal program with P(u|u) >= 0.3."""

    name = "truthful"

    def statement(self):
        table = cp.Variable((self.problem.domain.size, self.problem.reports.size), name="P")
        rules = [*simplex(table), *lipschitz(table, self.problem), cp.diag(table) >= TRUTH]
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), rules)


def solve_truthful(program, targets):
    statement = program.statement()
    statement.solve(solver=cp.HIGHS)
    (table,) = statement.variables()
    return SolveResult(mass=repair(table.value, program.problem.edges, program.problem.weighted_loss))


def halves(problem):
    """The truth with probability 1/2, else any report."""
    n = problem.domain.size
    return closed_form_mechanism(problem, np.eye(n) / 2 + 0.5 / n, name="halves", claimed_epsilon=None)


def write_lines(content, path: Path) -> None:
    path.write_text("\n".join(f"{u} {sum(masses)}" for u, masses, _ in content.masses()))


@pytest.fixture
def outside(monkeypatch):
    monkeypatch.setitem(METRICS, "ladder", Ladder)
    monkeypatch.setitem(LOSSES, "capped", Capped())
    monkeypatch.setitem(BASELINES, "halves", halves)
    monkeypatch.setitem(SOLVERS, Truthful.name, ProgramSpec(program=Truthful, solve=solve_truthful, closes_gap=False))
    monkeypatch.setitem(FORMATS, ".lines", Format(write=write_lines))
    domain = md.Domain.grid(5, cell=1.0, unit="km")
    return md.DesignProblem(domain=domain, metric=Ladder(step=0.4), prior=md.priors.uniform(domain), loss=Capped())


def test_solve_verify_store_compare_sweep_and_export(outside, tmp_path):
    made = md.solve(Truthful(outside))
    free = md.solve(outside)
    assert made.attrs["expected_loss"] >= free.attrs["lower_bound"]
    assert np.diag(md.probabilities(made)).min() >= TRUTH * (1 - 1e-6)
    for mechanism in (made, free, md.baselines.exponential(outside), halves(outside)):
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
    assert losses["halves"] == halves(outside).attrs["expected_loss"]
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
    monkeypatch.delitem(SOLVERS, Truthful.name)
    with pytest.raises(InputError, match="no solver"):
        md.solve(Truthful(outside))


def test_the_text_of_extend_builds_one_of_each_kind(tmp_path):
    """Its examples alone, without the lines that take the entries out again."""
    tables = (METRICS, LOSSES, BASELINES, SOLVERS, FORMATS)
    before = [set(table) for table in tables]
    names: dict = {}
    parsed = doctest.DocTestParser().get_examples(md.extend.__doc__)
    try:
        for example in parsed:
            if "del " not in example.source:
                exec(compile(example.source, "extend", "exec"), names)
        added = [set(table) - old for table, old in zip(tables, before, strict=True)]
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
        for table, old in zip(tables, before, strict=True):
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


@pytest.fixture
def typed_package():
    """The typed package, registered; its entries are taken out again."""
    tables = (METRICS, LOSSES, BASELINES, SOLVERS, FORMATS)
    before = [set(table) for table in tables]
    downstream.register()
    yield downstream
    for table, old in zip(tables, before, strict=True):
        for name in set(table) - old:
            del table[name]


def test_typed_package_adds_one_of_each_kind(typed_package, tmp_path):
    problem = typed_package.problem({"low": 0.25, "mid": 0.5, "high": 0.25})
    assert problem.prior.tolist() == [0.25, 0.5, 0.25]
    for mechanism in (md.solve(problem), md.solve(typed_package.Truthful(problem)), typed_package.halves(problem)):
        assert md.verify(md.save(mechanism, tmp_path / "one.nc", overwrite=True)).certified
        assert md.export(mechanism, tmp_path / "one.lines", overwrite=True).stat().st_size > 0
    assert typed_package.shares(problem).sum() == pytest.approx(1)
    own = md.programs.Constrained(problem, constraints=[typed_package.fair])
    mine = {"fair": own, "truth": typed_package.Truthful(problem)}
    rows = md.compare(problem, mechanisms=mine).set_index("mechanism")
    assert {"typed halves", "fair", "truth"} <= set(rows.index)
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
