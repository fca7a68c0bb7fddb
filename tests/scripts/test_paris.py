"""The Paris problem: its data, the comparison at one expected distance, and scripts/paris.py."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import paris
import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs

from mechdesign import Eikonal, PrivacyLevel, compare, load_problem, probabilities, sweep
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.output.compare import each_mechanism, rows
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.utility import match_distance

MATCHED = 1e-6  # asked of the expected distance
ORACLE = 1e-5  # cvxpy hands the program to another solver at its default tolerance
PRINTED = 1e-5  # of levels with six digits
# 450 m: true eps in nats per m over all pairs, effective eps
LEVELS = {
    "geometric_normalised": (0.00612368, 1.525),
    "geometric_clamped": (0.00406538, 1.000),
    "laplacian_normalised": (0.00522360, 1.276),
    "laplacian_clamped": (0.00413590, 1.000),
}
NAMES = ["randomized_response", *LEVELS, "optimal"]


def test_check_ins_lie_where_the_file_says() -> None:
    with (ROOT / "problems/data/paris_checkins_30x30.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    counts = {(float(row["x_m"]), float(row["y_m"])): int(row["checkins"]) for row in table}
    assert sum(counts.values()) == 7542
    problem = load_problem("paris", prior="checkins")
    expected = [counts[tuple(place)] / 7542 for place in problem.domain.points.tolist()]
    assert problem.prior_array == pytest.approx(expected, rel=1e-12)


@pytest.mark.study
@pytest.mark.parametrize("name", LEVELS)
def test_the_levels_of_the_paper_at_450_m(run_json: Any, name: str) -> None:
    _, [row] = run_json("compare", "paris", "--only", name)
    true, effective = LEVELS[name]
    assert row["expected_distance"] == pytest.approx(450, rel=MATCHED)
    assert row["effective_epsilon"] == pytest.approx(true, rel=PRINTED)
    assert round(row["ratio"], 3) == effective


def test_randomized_response_tells_the_truth_of_neighbours(run_json: Any) -> None:
    """Its largest log-ratio is eps between cells one step of 150 m apart."""
    words = ("--cells", 6, "--distance", 200, "--only", "randomized_response")
    _, [row] = run_json("compare", "paris", *words)
    assert row["ratio"] == pytest.approx(1, abs=1e-9)
    assert row["effective_epsilon"] == pytest.approx(row["claimed_epsilon"] / 150, rel=1e-9)


def test_every_row_stands_at_one_distance() -> None:
    problem = load_problem("paris", cells=4, distance=150.0)
    made = dict(each_mechanism(problem))
    table = rows(made, problem)
    assert [row.mechanism for row in table] == NAMES
    for row in table:
        assert row.expected_distance == pytest.approx(150, rel=MATCHED)
        log = np.log(probabilities(made[row.mechanism]).values)  # type: ignore[arg-type]
        apart = problem.domain.euclidean_to(problem.domain) + np.diag(np.full(16, np.inf))
        rise = (abs(log[:, None, :] - log).max(axis=2) / apart).max()
        assert row.effective_epsilon == pytest.approx(rise, rel=1e-9)
        assert row.epsilon_lower_bound is not None
        assert row.epsilon_lower_bound < row.effective_epsilon
        if row.mechanism != "randomized_response":
            assert row.effective_epsilon == pytest.approx(row.ratio * row.claimed_epsilon, rel=1e-9)
    assert min(table, key=lambda row: row.effective_epsilon).mechanism == "optimal"


def test_a_matched_comparison_is_printed_and_written(tmp_path: Path, run: Any) -> None:
    words = ("--cells", 3, "--distance", 150, "-o", tmp_path / "rows.csv")
    code, out, err = run("compare", "paris", *words)
    with (tmp_path / "rows.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert code == 0
    assert [row["mechanism"] for row in written] == NAMES
    for row in written:
        effective = float(row["effective_epsilon"])
        shown = [float(word) for line in out.splitlines() for word in line.split() if re.fullmatch(r"0\.\d+", word)]
        assert any(0 <= figure / effective - 1 <= 1e-5 for figure in shown)  # six digits, rounded up
        assert row["mechanism"] in out
    assert f"{float(written[0]['epsilon_lower_bound']):.6g} nats per m" in err


def test_default_epsilon_is_that_of_clamped_noise() -> None:
    assert load_problem("paris", cells=3, epsilon=0.01).metric.smallest_level == 0.01
    problem = load_problem("paris", cells=5, distance=200.0)
    claimed = match_distance(problem, "geometric_clamped", 200.0).epsilon
    assert problem.metric.smallest_level == pytest.approx(claimed, rel=1e-10)


def test_a_sweep_takes_the_metric_of_the_problem() -> None:
    curve = sweep(load_problem("paris", cells=3, distance=150.0), [1.0])
    assert "eikonal_loss" in curve


def test_a_matched_comparison_needs_the_euclidean_metric() -> None:
    problem = load_problem("paris", cells=3, distance=150.0)
    metric = Eikonal(level=PrivacyLevel.constant(0.01, "m"))
    with pytest.raises(UnsuitableError) as caught:
        compare(replace(problem, metric=metric))
    assert caught.value.field == "metric"


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"prior": "tourists"}, "prior"),
        ({"prior": "checkins", "cells": 12}, "cells"),
        ({"cells": 1}, "cells"),
        ({"cells": 1000}, "cells"),  # a million places: no table fits in memory
        ({"distance": 0.0}, "distance"),
        ({"distance": -450.0}, "distance"),
        ({"distance": float("nan")}, "distance"),
        ({"distance": 1e5, "cells": 3}, "distance"),
        ({"epsilon": -0.01}, "epsilon"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        load_problem("paris", **parameters)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.study
@needs("surveys")
def test_the_remark_and_the_script_tell_the_same_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paris.py"])
    paris.main()
    said = " ".join(capsys.readouterr().out.split())
    remark = read_problem_file("paris").remark(load_problem("paris"))
    assert remark is not None
    for figure in ("-0.09", "+0.78", "+1.30", "0.048", "451.74", "452.88"):
        assert figure in said
        assert figure in remark


@pytest.mark.parametrize("border", paris.BORDERS)
def test_ranges_contain_figures_of_a_known_prior(border: str) -> None:
    """Epsilons matched under a prior of ours: it is one of those that explain them, none further from uniform."""
    problem = load_problem("paris", cells=8, epsilon=0.01)
    known = 1 + (problem.domain.points**2).sum(axis=1) / 300.0**2
    known /= known.sum()
    names = (paris.FLAT, f"geometric_{border}", f"laplacian_{border}")
    own = replace(problem, prior=known)
    reported = {name: match_distance(own, name, paris.DISTANCE).epsilon for name in names}
    chi_square, low, high = paris.explaining_priors(problem, reported)
    assert 0 < chi_square <= 64 * ((known - 1 / 64) ** 2).sum() * (1 + ORACLE)
    assert low * (1 - ORACLE) <= paris.DISTANCE <= high * (1 + ORACLE)


@pytest.mark.study
def test_figure_2_is_drawn_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    words = [
        "paris.py",
        "--figure",
        "--repetitions",
        "1",
        "--sizes",
        "50",
        "100",
        "--workers",
        "1",
        "--distance",
        "150",
    ]
    monkeypatch.setattr(sys, "argv", words)
    problem = load_problem("paris", cells=4, distance=150.0)
    counts = SimpleNamespace(counts=lambda domain, checkins: np.arange(16))
    file = SimpleNamespace(build=lambda prior, distance: problem, module=counts)
    monkeypatch.setattr(paris, "read_problem_file", lambda name: file)
    paris.main()
    with Path("paris_figure2.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 2 * 3 * (3 + 4)
    level = problem.metric.smallest_level
    for line in lines:
        equal, at = (
            ("expected_distance", 150.0) if line["equal"] == "expected distance" else ("effective_epsilon", level)
        )
        assert float(line[equal]) == pytest.approx(at, rel=MATCHED)
        assert float(line["low"]) <= float(line["mean"]) <= float(line["high"])
    assert Path("paris_figure2.png").stat().st_size > 10_000
