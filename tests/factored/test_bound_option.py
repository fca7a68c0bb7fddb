"""`solve --bound` and `verify --no-bound`: a lower bound of a factored mechanism, computed and checked, or not."""

from __future__ import annotations

import pytest

SMALL = ["philadelphia", "--cells", 6, "--program", "eikonal", "--method", "factored", "--rounds", 6]


@pytest.fixture
def solved(run_json, tmp_path):
    path = tmp_path / "bounded.nc"
    code, found = run_json("solve", *SMALL, "--bound", "-o", path)
    assert code == 0
    return path, found


def test_bound_option_prints_both_gaps(solved, run):
    path, found = solved
    bound, loss, remapped = found["lower_bound"], found["loss"], found["remapped_loss"]
    assert 0 < bound <= remapped <= loss
    assert found["gap"] == pytest.approx((loss - bound) / loss)
    assert found["remapped_gap"] == pytest.approx((remapped - bound) / remapped)
    assert "follows from its multipliers" in run("verify", path)[1]
    code, unchecked, _ = run("verify", path, "--no-bound")
    assert (code, "lower bound    not checked: its pricing was skipped" in unchecked) == (0, True)


def test_small_mechanism_has_bound_only_on_request(run_json):
    found = run_json("solve", *SMALL)[1]
    assert (found["lower_bound"], found["gap"], found["remapped_gap"]) == (None, None, None)


def test_bound_option_refused_for_tables(run):
    code, _, told = run("solve", "line", "--no-bound")
    assert code == 2
    assert told.count("bound") >= 1
