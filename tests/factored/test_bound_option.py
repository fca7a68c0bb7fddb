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


def test_both_gaps_are_told_and_the_bound_is_checked_again(solved, run):
    path, found = solved
    bound, loss, remapped = found["lower_bound"], found["loss"], found["remapped_loss"]
    assert 0 < bound <= remapped <= loss
    assert found["gap"] == pytest.approx((loss - bound) / loss)
    assert found["remapped_gap"] == pytest.approx((remapped - bound) / remapped)
    assert "follows from its multipliers" in run("verify", path)[1]
    code, unchecked, _ = run("verify", path, "--no-bound")
    assert (code, "lower bound    not checked: its pricing was left out" in unchecked) == (0, True)


def test_small_factored_mechanisms_have_a_bound_only_where_it_is_asked_for(run_json):
    found = run_json("solve", *SMALL)[1]
    assert (found["lower_bound"], found["gap"], found["remapped_gap"]) == (None, None, None)


def test_a_table_has_no_such_option(run):
    code, _, told = run("solve", "line", "--no-bound")
    assert code == 2
    assert told.count("bound") >= 1
