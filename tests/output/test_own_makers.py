"""Programs and families f(problem, epsilon) in comparisons and on curves, and problem files that return a program."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError


def problem(epsilon: float = 0.9) -> md.DesignProblem:
    domain = md.Domain.grid(5, cell=1.0, unit="km")
    return md.DesignProblem(
        domain, md.Euclidean(epsilon, unit="km"), [0.3, 0.25, 0.2, 0.15, 0.1], md.losses.Distance(), name="five"
    )


def kernel_rows(stated: md.DesignProblem, epsilon: float) -> np.ndarray:
    """Rows of e^{-eps |u - y|}, divided by their sums, which costs privacy near the ends."""
    table = np.exp(-epsilon * stated.domain.euclidean_to(stated.domain))
    return table / table.sum(axis=1, keepdims=True)


def largest_level(table: np.ndarray) -> float:
    """The effective epsilon by hand: the largest log-ratio per km over all pairs."""
    logs, at = np.log(table), np.arange(5.0)
    pairs = [(u, v) for u in range(5) for v in range(5) if u != v]
    return max(float((logs[u] - logs[v]).max() / abs(at[u] - at[v])) for u, v in pairs)


def test_families_are_compared_at_nominal_and_effective_epsilon():
    rows = md.compare(problem(), mechanisms={"mine": kernel_rows}).set_index("mechanism")
    nominal, effective = rows.loc["mine"], rows.loc["mine (effective)"]
    assert nominal.claimed_epsilon == 0.9
    assert nominal.effective_epsilon == pytest.approx(largest_level(kernel_rows(problem(), 0.9)), rel=1e-9)
    assert nominal.effective_epsilon > 1.1
    assert effective.effective_epsilon == pytest.approx(0.9, rel=1e-6)
    assert effective.ratio <= 1
    # The second route: the same parameter from the package's search over a named family.
    table = kernel_rows(problem(), effective.claimed_epsilon)
    assert largest_level(table) == pytest.approx(0.9, rel=1e-6)
    assert effective.loss > nominal.loss > rows.loc["optimal", "loss"]


def test_programs_are_rows_and_lie_on_the_curve():
    stated = problem()
    capped = md.programs.Constrained(stated, constraints=[md.programs.ReportCap(cap=0.3)])
    mine = {"capped": capped, "worst": md.programs.Minimax(stated), "mine": kernel_rows}
    rows = md.compare(stated, mechanisms=mine).set_index("mechanism")
    assert rows.loc["capped", "loss"] == pytest.approx(md.solve(capped).attrs["expected_loss"])
    assert rows.loc["worst", "loss"] > rows.loc["optimal", "loss"]
    # The bound of a row: of all mechanisms, or of those that meet the constraints of a program of expected loss too.
    assert rows.loc["capped", "lower_bound"] == pytest.approx(md.solve(capped).attrs["lower_bound"], rel=1e-9)
    assert rows.loc["capped", "lower_bound"] > rows.loc["optimal", "lower_bound"] == rows.loc["worst", "lower_bound"]
    kinds = rows["lower_bound_of"]
    assert [kinds[name] for name in ("capped", "optimal", "worst")] == ["the program", *["any mechanism"] * 2]
    curve = md.sweep(stated, [0.5, 1.0], mechanisms=mine)
    assert float(curve["capped_loss"][1]) == pytest.approx(rows.loc["capped", "loss"], rel=2e-3)
    # At half the scale the program is that of half the metric.
    half = md.programs.Constrained(problem(0.45), constraints=capped.constraints)
    assert float(curve["capped_loss"][0]) == pytest.approx(md.solve(half).attrs["expected_loss"], rel=2e-3)
    assert (curve["mine (effective)_effective_scale"] <= curve["scale"] * (1 + 1e-12)).all()
    assert (curve["mine_effective_scale"] > curve["scale"]).all()
    assert len(md.plot.sweep(curve).axes) == 2


def test_unsuitable_mechanisms_of_the_user_are_named():
    other = md.Optimal(md.load_problem("line", cells=4))
    with pytest.raises(InputError, match="other secrets or reports"):
        md.compare(problem(), mechanisms={"other": other})
    with pytest.raises(InputError, match="shape"):
        md.compare(problem(), mechanisms={"short": lambda stated, epsilon: np.eye(4)})
    table = md.compare(problem(), mechanisms={"true": lambda stated, epsilon: np.eye(5)}).set_index("mechanism")
    assert np.isinf(table.loc["true", "ratio"])
    assert "true (effective)" not in table.index


PROGRAM = """
import mechdesign as md
from shares import CAP, prior

def problem(cells: int = 4):
    domain = md.Domain.grid(cells, cell=1.0, unit="km")
    metric = md.Euclidean(1.0, unit="km")
    stated = md.DesignProblem(domain, metric, prior(cells), md.losses.Distance())
    return md.programs.Constrained(stated, constraints=[md.programs.ReportCap(cap=CAP)])
"""
SHARES = """
import numpy as np

CAP = {cap}

def prior(cells):
    return np.full(cells, 1 / cells)
"""


@pytest.fixture
def files(tmp_path):
    """Two folders with a problem file each and a neighbour of one name: caps of 0.26 and of 0.5."""
    made = []
    for cap in (0.26, 0.5):
        folder = tmp_path / f"cap{cap}"
        folder.mkdir()
        (folder / "shares.py").write_text(SHARES.format(cap=cap))
        (folder / "capped.py").write_text(PROGRAM)
        made.append(folder / "capped.py")
    return made


def test_problem_files_return_programs_and_import_neighbours(files, run, tmp_path):
    code, out, err = run("solve", files[0], "-o", tmp_path / "capped.nc", "--json")
    assert code == 0, err
    assert json.loads(out)["program"] == "constrained"
    table = md.probabilities(md.load(tmp_path / "capped.nc")).values
    assert table.mean(axis=0).max() <= 0.26
    code, out, err = run("compare", files[0], "--json")
    assert code == 0, err
    rows = {row["mechanism"]: row["loss"] for row in json.loads(out)}
    assert rows["capped"] == pytest.approx(md.load(tmp_path / "capped.nc").attrs["expected_loss"])
    code, _, err = run("solve", files[0], "--program", "minimax")
    assert (code, "program of its own" in err) == (2, True)


def test_neighbours_of_one_name_in_two_folders_are_two_modules(files):
    caps = [md.programs.load_program(file).constraints[0].cap for file in (*files, files[0])]
    assert caps == [0.26, 0.5, 0.26]
    with pytest.raises(InputError, match="returns a program"):
        md.load_problem(files[0])
    assert md.programs.load_program("line", cells=4).name == "optimal"


@pytest.mark.parametrize(("kind", "program"), [("map", "optimal"), ("classes", "optimal"), ("program", "constrained")])
def test_new_files_solve(kind, program, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", "mine", "--kind", kind)[0] == 0
    code, out, err = run("solve", "mine.py", *(["--cells", 3] if kind != "classes" else []), "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["program"], document["certified"]) == (program, True)
    assert run("new", "mine", "--kind", kind)[0] == 2  # it is there already
    assert run("new", "for")[0] == run("new", "a b")[0] == run("new", "x", "--kind", "none")[0] == 2
