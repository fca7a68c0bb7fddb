"""`mechdesign compare`: mechanisms of one's own, tables as files, and what Ctrl-C leaves."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechdesign as md
from mechdesign.output import compare as module


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """Run the command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")  # wide enough for a table in one piece
    return run


@pytest.fixture
def own(run, tmp_path):
    """Two mechanisms of one's own: mine.npy and theirs.nc."""
    np.save(tmp_path / "mine.npy", 0.5 * np.eye(4) + 0.5 / 4)
    md.save(md.baselines.exponential(md.load_problem("line", cells=4)), tmp_path / "theirs.nc")
    return ("--with", "mine.npy", "--with", "theirs.nc")


def test_compare_with_user_files(run, own):
    code, out, _ = run("compare", "line", "--cells", 4, *own, "--json")
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert (code, list(rows)[-2:]) == (0, ["mine", "theirs"])
    assert rows["theirs"]["loss"] == pytest.approx(rows["exponential"]["loss"], rel=1e-9)
    code, out, _ = run("compare", "line", "--cells", 4, *own, "--only", "mine")
    assert (code, [line.split()[0] for line in out.splitlines() if line.startswith("mine")]) == (0, ["mine"])


def test_sweep_with_user_files(run, own):
    code, out, _ = run("compare", "line", "--cells", 4, "--scales", "0.25:4:2", *own, "--json", "-o", "c.nc")
    rows = json.loads(out)
    assert (code, [row["scale"] for row in rows]) == (0, [0.25, 4])
    assert rows[0]["mine_loss"] == rows[1]["mine_loss"] > 0
    code, out, _ = run("compare", "line", "--cells", 4, "--scales", "0.25:4:2", *own, "-o", "c.tex")
    assert code == 0
    assert "mine" in out


@pytest.mark.parametrize("scales", [(), ("--scales", "1,2")])
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--with", "absent.npy"), "table"),
        (("--with", "absent.nc"), "file"),
        (("--with", "mine.npy", "--with", "mine.npy"), "with"),
        (("--with", "mine.npy", "--cells", "5"), "table"),
        (("--with", "theirs.nc", "--cells", "5"), "mechanisms"),
        (("-o", "x.ods"), "output"),
    ],
)
def test_non_mechanism_is_refused(run, own, tmp_path, scales, words, field):
    before = sorted(tmp_path.iterdir())
    given = words if "--cells" in words else (*words, "--cells", "4")
    code, out, _ = run("compare", "line", *given, *scales, "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, field)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("suffix", ["csv", "json", "tex"])
def test_tables_as_files(run, tmp_path, suffix):
    code, _, _ = run("compare", "discrete", "--secrets", 3, "-o", f"t.{suffix}")
    assert code == 0
    assert "randomized" in (tmp_path / f"t.{suffix}").read_text()


def interrupt_at(monkeypatch, name):
    made = module.makers

    def makers(*given, **settings):
        def fail():
            raise KeyboardInterrupt

        return made(*given, **settings) | {name: fail}

    monkeypatch.setattr(module, "makers", makers)


def test_an_interrupt_keeps_the_rows_that_are_finished(run, tmp_path, monkeypatch):
    interrupt_at(monkeypatch, "geometric_clamped")
    code, out, err = run("compare", "line", "--cells", 3, "-o", "t.csv")
    kept = ["optimal", "eikonal", "exponential"]
    assert code == 130
    assert [line.split(",")[0] for line in (tmp_path / "t.csv").read_text().splitlines()[1:]] == kept
    assert [line.split()[0] for line in out.splitlines() if line.startswith(tuple(kept))] == kept
    assert err.splitlines()[-1].startswith("error: run: interrupted")
    code, out, err = run("compare", "line", "--cells", 3, "--json")
    assert (code, [row["mechanism"] for row in json.loads(out)]) == (130, kept)
    assert "interrupted" in err


def test_an_interrupt_before_the_first_row_leaves_nothing(run, tmp_path, monkeypatch):
    interrupt_at(monkeypatch, "optimal")
    code, out, err = run("compare", "line", "--cells", 3, "-o", "t.csv")
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "error: run: interrupted; no unfinished file remains"
    assert list(tmp_path.iterdir()) == []


def test_a_design_that_an_interrupt_ended_is_the_last_row(run, monkeypatch):
    solve = module.solve
    monkeypatch.setattr(module, "solve", lambda *a, **k: solve(*a, **k).assign_attrs(stopped="interrupt"))
    code, out, err = run("compare", "line", "--cells", 3, "--json")
    assert (code, [row["mechanism"] for row in json.loads(out)]) == (130, ["optimal"])
    assert "interrupted" in err


def test_progress_has_a_denominator():
    said = []
    problem = md.load_problem("discrete", secrets=3)
    md.compare(problem, mechanisms={"mine": np.full((3, 3), 1 / 3)}, on_progress=said.append)
    assert said[0] == "1 of 9: optimal"
    assert said[-1] == "9 of 9: mine"
