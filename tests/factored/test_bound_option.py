"""`solve --bound` and `verify --no-bound`: a lower bound of a factored mechanism, computed and checked, or not."""

from __future__ import annotations

import pytest

SMALL = ["philadelphia", "--cells", 6, "--program", "eikonal", "--method", "factored", "--rounds", 6]


@pytest.fixture
def bounded_file(run_json, tmp_path):
    path = tmp_path / "bounded.nc"
    code, found = run_json("solve", *SMALL, "--bound", "-o", path)
    assert code == 0
    return path, found


def test_bound_option_prints_both_gaps(bounded_file, run):
    path, found = bounded_file
    bound, loss, remapped = found["lower_bound"], found["loss"], found["remapped_loss"]
    assert 0 < bound <= remapped <= loss
    assert found["gap"] == pytest.approx((loss - bound) / loss)
    assert found["remapped_gap"] == pytest.approx((remapped - bound) / remapped)
    assert "follows from its multipliers" in run("verify", path)[1]
    code, unchecked, _ = run("verify", path, "--no-bound")
    assert code == 0
    assert "lower bound not checked: its pricing was skipped" in " ".join(unchecked.split())


def test_small_mechanism_has_bound_only_on_request(run_json):
    found = run_json("solve", *SMALL)[1]
    for name in ("lower_bound", "gap", "remapped_gap"):
        assert found[name] is None


def test_bound_option_refused_for_tables(run):
    code, _, error = run("solve", "line", "--no-bound")
    assert code == 2
    assert error.count("bound") >= 1
