"""The Paris problem: its data, and the comparison at one expected distance."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.table.dataset import probabilities
from mechdesign.output.figures import cell
from mechdesign.output.tables.compare import compare, each_mechanism, rows
from mechdesign.output.tables.files import write_rows
from mechdesign.output.tables.matched import matched_family, smallest_epsilon
from mechdesign.output.tables.sweep import sweep
from mechdesign.output.terminal.comparison import print_rows
from mechdesign.programs.matching.matched_distance import FAMILIES
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.problems.problem_files import load_problem, read_problem_file

MATCHED = 1e-6  # asked of the expected distance
PRINTED = 1e-5  # of levels with six digits
NAMES = [*FAMILIES, "optimal"]
# 450 m: true eps in nats per m over all pairs, effective eps
LEVELS = {
    "geometric_normalised": (0.00612368, 1.525),
    "geometric_clamped": (0.00406538, 1.000),
    "laplacian_normalised": (0.00522360, 1.276),
    "laplacian_clamped": (0.00413590, 1.000),
}


def test_check_ins_lie_where_the_file_says() -> None:
    with (ROOT / "problems/data/paris_checkins_30x30.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    counts = {(float(row["x_m"]), float(row["y_m"])): int(row["checkins"]) for row in table}
    assert sum(counts.values()) == 7542
    problem = load_problem("paris", prior="checkins")
    expected = [counts[tuple(place)] / 7542 for place in problem.domain.points.tolist()]
    assert problem.prior_array == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "laplacian_clamped" else pytest.mark.slow) for name in LEVELS]
)
def test_the_levels_of_the_paper_at_450_m(name: str) -> None:
    problem = load_problem("paris")
    [(_, made)] = each_mechanism(problem, only=[name])
    [row] = rows({name: made}, problem)
    true, effective = LEVELS[name]
    assert row["expected_distance"] == pytest.approx(450, rel=MATCHED)
    assert row["smallest_epsilon"] == pytest.approx(true, rel=PRINTED)
    assert round(row["effective_epsilon"], 3) == effective


def test_randomized_response_tells_the_truth_of_neighbours() -> None:
    """Its largest log-ratio is eps between cells one step of 150 m apart."""
    problem = load_problem("paris", cells=6, distance=200.0)
    made = matched_family(problem, "randomized_response")
    claimed = made.attrs["claimed_epsilon"]
    assert made.attrs["effective_epsilon"] == pytest.approx(1, abs=1e-9)
    assert smallest_epsilon(made, problem) == pytest.approx(claimed / 150, rel=1e-9)


def test_every_row_stands_at_one_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = load_problem("paris", cells=4, distance=150.0)
    made = dict(each_mechanism(problem))
    table = rows(made, problem)
    assert [row["mechanism"] for row in table] == NAMES
    for row in table:
        assert row["expected_distance"] == pytest.approx(150, rel=MATCHED)
        log = np.log(probabilities(made[row["mechanism"]]).values)  # type: ignore[arg-type]
        apart = problem.domain.euclidean_to(problem.domain) + np.diag(np.full(16, np.inf))
        rise = (abs(log[:, None, :] - log).max(axis=2) / apart).max()
        assert row["smallest_epsilon"] == pytest.approx(rise, rel=1e-9)
        assert row["least_epsilon"] is not None
        assert row["least_epsilon"] < row["smallest_epsilon"]
        if row["mechanism"] != "randomized_response":
            assert row["smallest_epsilon"] == pytest.approx(row["effective_epsilon"] * row["claimed_epsilon"], rel=1e-9)
    assert min(table, key=lambda row: row["smallest_epsilon"])["mechanism"] == "optimal"
    with write_rows(table, tmp_path / "rows.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["smallest_epsilon"]) for row in written] == [row["smallest_epsilon"] for row in table]
    print_rows(table, problem)
    shown = capsys.readouterr()
    for row in table:
        assert cell(row["smallest_epsilon"], "up 6") in shown.out
        assert row["mechanism"] in shown.out
    assert f"{table[0]['least_epsilon']:.6g} nats per m" in shown.err


def test_a_given_epsilon_is_the_metric_and_the_default_that_of_clamped_noise() -> None:
    assert load_problem("paris", cells=3, epsilon=0.01).metric.smallest_level == 0.01
    problem = load_problem("paris", cells=5, distance=200.0)
    claimed = matched_family(problem, "geometric_clamped").attrs["claimed_epsilon"]
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


def test_the_remark_and_the_script_tell_the_same_figures() -> None:
    said = " ".join(
        subprocess.run(
            [sys.executable, ROOT / "scripts/paris_epsilons.py"], check=True, capture_output=True, text=True
        ).stdout.split()
    )
    remark = read_problem_file("paris").remark(load_problem("paris"))
    assert remark is not None
    for figure in ("-0.09", "+0.78", "+1.30", "0.048", "451.74", "452.88"):
        assert figure in said
        assert figure in remark
