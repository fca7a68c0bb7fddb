"""Every shipped problem, at its defaults and at twenty settings of its parameters, ends at the gap that was asked for.

The second route is the cvxpy statement of the program, solved by HiGHS without any scaling of ours, where it is small.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from fixtures.rows import few_by_default
from fixtures.tolerances import ORACLE, RESOLVED

import mechdesign as md

GAP = 1e-3
SMALL = 12_000  # constraints of a statement that cvxpy solves in half a second
Settings = dict[str, Any]


def grid(**choices: tuple[Any, ...]) -> list[Settings]:
    """All combinations of choices."""
    return [dict(zip(choices, row, strict=True)) for row in itertools.product(*choices.values())]


SETTINGS: dict[str, list[Settings]] = {
    "income": [
        *grid(threshold=(50e3, 120e3, 250e3, 800e3, 1.1e6)),
        *grid(epsilon=(1 / 1000, 1 / 3000, 1 / 6000, 1 / 24_000, 1 / 50_000, 1 / 200_000)),
        *grid(cells=(2, 7, 24, 60, 200)),
        *grid(outputs=(2, 5, 21, 31, 81)),
        # Long edges and more outputs than cells; answers whose loss is a 10^-9th of that of a constant.
        {"threshold": 66_398.0, "epsilon": 0.00115, "cells": 41, "outputs": 55},
        {"threshold": 155_737.0, "epsilon": 0.00153, "cells": 88, "outputs": 17},
    ],
    "discrete": grid(secrets=(2, 3, 10, 30), epsilon=(0.01, 0.1, 1.0, 5.0, 12.0)),
    "line": grid(cells=(2, 5, 20, 60), epsilon=(0.01, 0.1, 0.9, 3.0, 12.0)),
    "euclidean": grid(cells=(2, 4, 7), epsilon=(0.05, 0.5, 3.0), loss=("squared", "distance", "zero-one")),
    "flat": grid(cells=(3, 6, 10), epsilon=(0.05, 0.3, 1.0, 3.0), stencil=(4, 16)),
    "neighbourhoods": grid(cells=(6, 10, 16), labels=(2, 4, 6), loss=("zero-one", "distance"))
    + grid(cells=(8,), extent=(5.0, 100.0)),
    "philadelphia": grid(cells=(4, 8, 12), extent=(5.0, 20.0, 100.0, 400.0))
    + grid(cells=(8,), slope=(1e-5, 1e-3), floor=(0.05, 0.4, 2.0))
    + grid(cells=(8,), stencil=(4, 16)),
    "paris": grid(cells=(6, 9, 12), distance=(200.0, 300.0, 450.0)) + grid(cells=(5, 7, 10), epsilon=(5e-4, 4e-3, 1e-2))
    + grid(cells=(8,), epsilon=(1e-3, 3e-2)),
    "streets": grid(nodes=(20, 60, 150), epsilon=(0.001, 0.01, 0.05)) + grid(nodes=(40,), seed=range(2, 8))
    + grid(nodes=(40,), seed=range(1, 6), epsilon=(0.1,)),
    "northeast": grid(cells=(4, 8, 12), nats=(0.5, 2.0, 8.0)) + grid(cells=(6,), inhabitants=(100.0, 1000.0))
    + grid(cells=(6,), cell=(100.0, 250.0, 2000.0, 10_000.0)) + grid(cells=(6,), stencil=(4, 32))
    + grid(cells=(6,), least=(100.0,)) + grid(cells=(6,), most=(50_000.0, 20_000.0)),
}  # fmt: skip
SLOW_DEFAULTS = ("flat", "paris", "northeast", "philadelphia", "streets")
POOL_GAP = 5e-3  # target for the defaults of the largest problem, with 10,000 secrets


def solve(name: str, settings: Settings, gap: float = GAP) -> tuple[md.DesignProblem, float, float]:
    """Solve and assert that the gap is met; returns the problem, the loss and the bound."""
    problem = md.load_problem(name, **settings)
    attrs = md.solve(problem, gap=gap).attrs
    loss, bound = attrs["expected_loss"], attrs["lower_bound"]
    assert attrs["stopped"] == "gap"
    assert 0 <= bound <= loss
    assert loss - bound <= gap * max(loss, RESOLVED * problem.constant_loss), (name, settings)
    return problem, loss, bound


def test_every_shipped_problem_is_listed():
    shipped = {path.stem for path in Path(ROOT / "problems").glob("*.py")}
    assert set(SETTINGS) == shipped
    assert all(len(settings) >= 20 for settings in SETTINGS.values())


@pytest.mark.parametrize(
    "name", few_by_default(["income", "discrete", "line", "euclidean", "neighbourhoods"], "income", "discrete", "line")
)
def test_small_shipped_problem_meets_its_gap(name):
    for settings in [{}, *SETTINGS[name][::7]]:
        problem, loss, bound = solve(name, settings)
        if 2 * len(problem.edges.tail) * problem.reports.size <= SMALL:
            optimum = float(md.Optimal(problem).statement().solve(solver="HIGHS"))
            assert bound <= optimum + ORACLE * problem.constant_loss, settings
            assert loss >= optimum - ORACLE * problem.constant_loss, settings


def test_income_has_the_loss_of_the_documents():
    """HiGHS alone, through cvxpy, finds the same seven digits; docs/results/numbers.md prints four."""
    problem, loss, bound = solve("income", {}, gap=1e-6)
    optimum = float(md.Optimal(problem).statement().solve(solver="HIGHS"))
    assert loss == pytest.approx(optimum, rel=5e-6)
    assert bound <= 7.8260e-4
    assert loss >= 7.8258e-4


@pytest.mark.study
@pytest.mark.parametrize("name", SETTINGS)
def test_shipped_problem_meets_its_gap_at_every_setting(name):
    for settings in SETTINGS[name]:
        _, loss, bound = solve(name, settings)
        assert loss > 0
        assert bound <= loss


@pytest.mark.study
@pytest.mark.parametrize("name", SLOW_DEFAULTS)
def test_large_shipped_problem_meets_its_gap(name):
    if name != "northeast":
        solve(name, {})
        return
    attrs = md.solve(md.load_problem(name), gap=POOL_GAP).attrs
    assert (attrs["expected_loss"] - attrs["lower_bound"]) / attrs["expected_loss"] <= POOL_GAP
