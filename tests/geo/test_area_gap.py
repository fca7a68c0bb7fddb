"""Output and exit code of `area` if its design ends far above the requested gap."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fixtures.mechanisms import optimal_design

from mechdesign import verify

AREA = ("area", "--box", "12.47,41.89,12.485,41.90", "--cell", "300", "--within", "300", "--factor", "2")


@pytest.mark.parametrize(("stopped", "bound", "expected"), [("precision", 0.5, 1), ("time", 0.5, 0), ("gap", 1.0, 0)])
def test_area_exits_with_1_far_above_its_gap(run, monkeypatch, tmp_path, stopped, bound, expected):
    """Half of the bound is proved; the file is certified and stays in any case."""

    def short(problem, targets, **_):
        result = optimal_design(problem, gap=1e-7)
        return replace(result, stopped=stopped, lower_bound=bound * result.lower_bound, dual=bound * result.dual)

    monkeypatch.setattr("mechdesign.solvers.solve.solve_optimal", short)
    file = tmp_path / "area.nc"
    words = (*AREA, "--positions", "cells", "--program", "optimal", "-o", file)
    code, out, err = run(*words)
    assert code == expected
    assert verify(file).certified
    first = {
        "precision": "Up to 51 % of the loss may be avoidable. Protects",
        "time": "Stopped at the time limit: up to",
    }
    assert " ".join(out.split()).startswith(first.get(stopped, "Protects"))
    assert (str(file) in err) == (expected == 1)
    code, out, _ = run(*words, "--overwrite", "--json")
    document = json.loads(out)
    assert (code, document["stopped"], document["file"]) == (expected, stopped, str(file))
