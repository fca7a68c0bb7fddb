"""The user's constraints hold on the certified integers and have the optimum of cvxpy, or are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import joined_text
from fixtures.forged_files import rewritten
from fixtures.mechanisms import (
    ALL,
    optimum,
    problem_of,
    solved_mechanism,
    table_of,
)
from fixtures.pages import texts_of
from fixtures.tolerances import ORACLE, SOLVED, UNRESOLVED
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign import load_problem
from mechdesign.errors import DesignError, InfeasibleError, InputError
from mechdesign.solvers import convex as stated


@ALL
def test_built_in_constraints_hold_on_the_certified_integers(case: str) -> None:
    problem, mechanism = problem_of(case), solved_mechanism(case, "constrained")
    probability = mechanism["mass"].values.astype(object)
    cap, lower = int(0.7 * ROW_SUM), math.ceil(0.03 * ROW_SUM)
    assert (probability[:, ::2] <= cap).all()
    assert probability[0, 1] >= lower
    assert mechanism.attrs["lower_bound_of"] == "the program"
    assert mechanism.attrs["objective"] >= optimum(case).attrs["lower_bound"]
    assert problem.reports.size == mechanism.sizes["report"]


def test_error_cap_holds_at_the_statement_value() -> None:
    case = "eikonal, 8 neighbours"
    problem = problem_of(case)
    beyond = problem.domain.euclidean_to(problem.reports) > 1.5
    free = (table_of(optimum(case)) * beyond).sum(axis=1)
    program = md.programs.Constrained(
        problem=problem, constraints=[md.programs.ErrorCap(radius=1.5, share=0.9 * float(free.max()))]
    )
    mechanism = md.solve(program, gap=SOLVED)
    far = (table_of(mechanism) * beyond).sum(axis=1)
    assert far.max() <= 0.9 * free.max()
    assert far.max() == pytest.approx(0.9 * free.max(), rel=ORACLE)
    assert mechanism.attrs["lower_bound"] > optimum(case).attrs["expected_loss"]
    assert program.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)
    assert md.verify(mechanism).certified


def test_contradictory_constraints_are_named() -> None:
    problem = problem_of("eikonal, masked")
    both = [md.programs.RequiredReport(report=2, least=0.5, secrets=[4]), md.programs.ReportCap(cap=0.4, reports=[2])]
    with pytest.raises(InfeasibleError, match=r"required-report.*report 2|report-cap.*report 2") as caught:
        md.solve(md.programs.Constrained(problem=problem, constraints=both))
    assert caught.value.field == "constraints"
    far = [md.programs.ErrorCap(radius=0.1, share=1e-4)]
    with pytest.raises(InfeasibleError, match="far report at secret"):
        md.solve(md.programs.Constrained(problem=problem, constraints=far))


def test_tight_limits_give_neither_proof_nor_table() -> None:
    problem = load_problem("discrete", secrets=4, epsilon=1.0)
    exact = 3 / (3 + math.e)
    with pytest.raises(DesignError) as caught:
        md.solve(md.programs.Bounded(problem=problem, worst_loss=exact * (1 - UNRESOLVED)))
    assert caught.value.exit_code == 1


def test_user_affine_constraints_have_a_tight_bound() -> None:
    case = "reports apart from secrets"
    problem = problem_of(case)
    cap = 0.8 * float(table_of(optimum(case))[:, 1].max())
    built_in = md.programs.Constrained(problem=problem, constraints=[md.programs.ReportCap(cap=cap, reports=[1])])
    stated = md.programs.Constrained(problem=problem, constraints=[lambda table: table[:, 1] <= cap])
    expected, attrs = (md.solve(program, gap=SOLVED).attrs for program in (built_in, stated))
    assert expected["lower_bound"] > optimum(case).attrs["expected_loss"]
    assert attrs["objective"] == pytest.approx(expected["objective"], rel=2 * SOLVED)
    assert attrs["stopped"] == "gap"
    mixed = md.programs.Constrained(
        problem=problem, constraints=[lambda P: [P[0, 1] - 2 * P[3, 2] >= 0.1, cp.sum(P[:, 0]) <= 2]]
    )
    mechanism = md.solve(mixed, gap=SOLVED)
    table = table_of(mechanism)
    assert table[0, 1] - 2 * table[3, 2] >= 0.1
    assert table[:, 0].sum() <= 2
    assert mixed.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)
    result = md.verify(mechanism)
    assert result.certified
    assert result.lower_bound_checked is None
    assert result.lower_bound_reason == "it depends on constraints that a file cannot hold"


def facts_of(mechanism: xr.Dataset) -> dict[str, Any]:
    """The facts that the page of a mechanism shows."""
    return json.loads(texts_of(mechanism).contents)["facts"]


def test_unstorable_constraints_hide_the_bound(run, tmp_path: Path) -> None:
    """Attack: a word in the parameters disables the check of the bound, which must then not be shown as proved."""
    honest = solved_mechanism("eikonal, masked", "bounded")
    figures = [figure["key"] for figure in facts_of(honest)["figures"]]
    assert {"lower_bound", "lower_bound_checked"} <= set(figures)
    parameters = json.loads(honest.attrs["parameters"]) | {"own_constraints": ["P[0, 0] <= 1"]}
    switched = honest.assign_attrs(parameters=json.dumps(parameters)).assign(dual=0 * honest["dual"])
    switched = rewritten(switched, multiplier=0 * honest["multiplier"])
    refused = md.verify(switched)  # a program that has no constraints of one's own
    assert not refused.certified
    assert not refused.lower_bound_checked
    forged = switched.assign_attrs(program="constrained", parameters=json.dumps(parameters | {"constraints": []}))
    forged["multiplier"] = ("side_row", np.zeros(0))
    forged = rewritten(forged, objective=forged.attrs["expected_loss"])
    checked = md.verify(forged)
    assert checked.certified
    assert checked.lower_bound_checked is None
    figures = {figure["key"]: figure["text"] for figure in facts_of(forged)["figures"]}
    assert "lower_bound" not in figures
    assert figures["lower_bound_reason"] == checked.lower_bound_reason
    file = md.save(forged, tmp_path / "forged.nc")
    printed = " ".join(run("verify", file)[1].split())
    assert "lower bound not checked: it depends on constraints that a file cannot hold" in printed
    for name in ("table.csv", "table.json"):
        assert "lower_bound" not in joined_text(md.export(forged, tmp_path / name))


def test_forbidden_reports_leave_the_problem() -> None:
    for case in ("eikonal, masked", "graph, table loss", "reports apart from secrets", "line, zero-one"):
        problem = problem_of(case)
        fewer = md.programs.without_reports(problem, [1])
        remaining = [y for y in range(problem.reports.size) if y != 1]
        assert (fewer.loss_matrix == problem.loss_matrix[:, remaining]).all()
        mechanism = md.solve(md.Optimal(problem=fewer), gap=SOLVED)
        assert mechanism.sizes["report"] == len(remaining)
        assert md.verify(mechanism).certified
        table = cp.Variable(problem.loss_matrix.shape)
        statement = md.Optimal(problem=problem).statement()
        (whole,) = statement.variables()
        oracle = cp.Problem(statement.objective, [*statement.constraints, whole[:, 1] == 0])
        assert table.shape == whole.shape
        assert oracle.solve(solver="HIGHS") == pytest.approx(mechanism.attrs["expected_loss"], rel=ORACLE)


LINE = load_problem("line", cells=4)
BAD = {
    "priors flat": (lambda: md.programs.Robust(problem=LINE, priors=np.full(4, 0.25)), "priors"),
    "priors none": (lambda: md.programs.Robust(problem=LINE, priors=np.zeros((0, 4))), "priors"),
    "prior unnormalised": (lambda: md.programs.Robust(problem=LINE, priors=np.ones((1, 4))), "prior"),
    "bound zero": (lambda: md.programs.Bounded(problem=LINE, worst_loss=0.0), "worst-loss"),
    "bound nan": (lambda: md.programs.Bounded(problem=LINE, worst_loss=math.nan), "worst-loss"),
    "bound shape": (lambda: md.programs.Bounded(problem=LINE, worst_loss=[1.0, 2.0]), "worst-loss"),
    "cap zero": (lambda: md.programs.ReportCap(cap=0.0), "cap"),
    "cap above one": (lambda: md.programs.ReportCap(cap=1.5), "cap"),
    "least zero": (lambda: md.programs.RequiredReport(report=0, least=0.0), "least"),
    "share zero": (lambda: md.programs.ErrorCap(radius=1.0, share=0.0), "share"),
    "radius negative": (lambda: md.programs.ErrorCap(radius=-1.0, share=0.5), "radius"),
    "forbidden outside": (lambda: md.programs.without_reports(LINE, [7]), "forbidden"),
    "forbidden all but one": (lambda: md.programs.without_reports(LINE, [0, 1, 2]), "forbidden"),
    "no constraint": (lambda: md.programs.Constrained(problem=LINE, constraints=[0.5]), "constraints"),  # type: ignore[list-item]
}
BAD_CONSTRAINTS = {
    "report outside": (md.programs.ReportCap(cap=0.5, reports=[4]), "reports"),
    "secret outside": (md.programs.RequiredReport(report=0, least=0.1, secrets=[-1]), "secrets"),
    "equality": (lambda table: [table[0, 0] == 0.5], "constraints"),
    "not convex": (lambda table: [cp.sqrt(table[0, 0]) <= 0.5], "constraints"),
    "an integer variable": (lambda table: [table[0, 0] <= cp.Variable(integer=True)], "constraints"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_programs(bad: str) -> None:
    make, field = BAD[bad]
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize("bad", BAD_CONSTRAINTS)
def test_bad_constraints(bad: str) -> None:
    constraints, field = BAD_CONSTRAINTS[bad]
    with pytest.raises(InputError) as caught:
        md.solve(md.programs.Constrained(problem=LINE, constraints=[constraints]))
    assert caught.value.field == field


def test_nodes_have_no_radius() -> None:
    with pytest.raises(InputError, match="nodes of a graph have none"):
        md.solve(
            md.programs.Constrained(
                problem=problem_of("discrete"), constraints=[md.programs.ErrorCap(radius=1.0, share=0.5)]
            )
        )


def test_zero_cap_names_the_remedy() -> None:
    with pytest.raises(InputError, match="without_reports"):
        md.programs.ReportCap(cap=0.0, secrets=[3])


def test_failing_margin_is_replaced_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    case = "eikonal, masked"
    free = table_of(optimum(case))
    limit = 0.8 * float(np.abs(free[0] - free[1]).sum())
    program = md.programs.Constrained(
        problem=problem_of(case), constraints=[lambda table: [cp.norm1(table[0] - table[1]) <= limit]]
    )
    monkeypatch.setattr(stated, "_OPTIONS", stated.TangentOptions(margins=(-1e-3,)))
    with pytest.raises(DesignError, match="no certified table"):
        md.solve(program)
    monkeypatch.setattr(stated, "_OPTIONS", stated.TangentOptions(margins=(-1e-3, 1e-6)))
    table = table_of(md.solve(program))
    assert np.abs(table[0] - table[1]).sum() <= limit


@pytest.mark.parametrize(
    ("stated", "figure"),
    [
        (lambda p: cp.sum_squares(p) <= 1.2, lambda table: 1.2 - (table**2).sum()),
        (lambda p: cp.norm2(p[0]) <= 0.55, lambda table: 0.55 - np.sqrt((table[0] ** 2).sum())),
        (lambda p: cp.sum(cp.entr(p)) >= 4.8, lambda table: -(table * np.log(table)).sum() - 4.8),
    ],
)
def test_squares_and_entropies_bind_and_hold(stated, figure):
    """Second route: the quantity of the certified table by NumPy; the optimum without the limit exceeds it."""
    problem = md.load_problem("line", cells=4)
    free, limited = (
        md.solve(md.programs.Constrained(problem, constraints=[lambda p, keep=keep: [stated(p)] if keep else [p <= 1]]))
        for keep in (False, True)
    )
    assert figure(md.probabilities(free).values) < 0 <= figure(md.probabilities(limited).values)
    assert md.verify(limited).certified
    assert limited.attrs["expected_loss"] > limited.attrs["lower_bound"]
