"""Coupled programs: the statement against the linear program, the bound, the rounding, the files, the limits."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.mechanisms import (
    ALL,
    COUPLED,
    PROGRAMS,
    design_of,
    problem_of,
    program_of,
    solved_mechanism,
)
from fixtures.rows import few_by_default
from fixtures.tolerances import ORACLE, SOLVED
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign import load_problem
from mechdesign.closed_forms.best import certified_closed_forms
from mechdesign.errors import DesignError, InfeasibleError, SizeError, SolverError
from mechdesign.programs.coupled import SideRows, objective, stack_rows
from mechdesign.solvers import choose
from mechdesign.solvers import coupled as coupled_task
from mechdesign.solvers.cone.pricing import coupled_bound, project_dual
from mechdesign.solvers.lp.full import MOST_ROWS, assemble_whole
from mechdesign.solvers.lp.highs import solve_linear_program


@ALL
@COUPLED
def test_bounds_meet_at_the_statement(case: str, program: str) -> None:
    attrs = solved_mechanism(case, program).attrs
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound"] <= attrs["objective"] <= attrs["lower_bound"] * (1 + 2 * SOLVED)
    statement = program_of(case, program).statement()
    assert statement.is_dcp()
    assert statement.solve(solver="HIGHS") == pytest.approx(attrs["objective"], rel=ORACLE)


@ALL
@COUPLED
def test_file_proves_claim_and_bound(case: str, program: str) -> None:
    result = md.verify(solved_mechanism(case, program))
    assert result.certified
    assert result.lower_bound_checked is True


@pytest.mark.parametrize(
    ("case", "program"),
    few_by_default(
        itertools.product(("eikonal, 8 neighbours", "eikonal, masked"), ("minimax", "robust")),
        ("eikonal, 8 neighbours", "minimax"),
        ("eikonal, masked", "robust"),
    ),
)
def test_designs_reach_the_optimum(case: str, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stated, optimum = program_of(case, program), solved_mechanism(case, program).attrs
    monkeypatch.setattr(choose, "DESIGNS_FIRST", 0)
    monkeypatch.setattr(choose, "MOST_ROWS", 0)
    seen: list[str] = []
    design = design_of(stated, gap=1e-3, on_progress=lambda state: seen.append(state.method))
    assert design.stopped == "gap"
    assert set(seen) == {"designs"}
    assert design.lower_bound <= optimum["objective"] * (1 + SOLVED)
    assert design.objective >= optimum["lower_bound"] * (1 - SOLVED)


@pytest.mark.parametrize("limit", [0.05, np.inf])
def test_early_minimax_keeps_table_and_bound(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an interrupt after the first design, or with almost no time."""

    def stop(_: object) -> None:
        if limit == np.inf:
            raise KeyboardInterrupt

    monkeypatch.setattr(choose, "DESIGNS_FIRST", 0)
    program = md.programs.Minimax(problem=load_problem("philadelphia", cells=9))
    design = design_of(program, gap=1e-6, time_limit=limit, on_progress=stop)
    assert design.stopped == ("interrupt" if limit == np.inf else "time")
    assert 0 < design.lower_bound < design.objective


@pytest.mark.study
def test_minimax_of_fifteen_cells_within_the_gap() -> None:
    design = design_of(md.programs.Minimax(problem=load_problem("philadelphia", cells=15)), gap=1e-3)
    assert design.stopped == "gap"
    assert design.objective == pytest.approx(12.96, rel=1e-3)


@pytest.mark.study
def test_minimax_of_484_cells_within_one_in_a_hundred() -> None:
    """By designs of changing priors, whose weights end with a ratio of 100,000."""
    mechanism = md.solve(md.programs.Minimax(problem=load_problem("philadelphia", cells=22)), gap=1e-2, time_limit=300)
    assert mechanism.attrs["stopped"] == "gap"
    checked = md.verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked


def test_minimax_where_far_entries_range_widely() -> None:
    problem = load_problem("philadelphia", cells=7)
    seen: list[Any] = []
    design = design_of(md.programs.Minimax(problem=problem), gap=1e-3, on_progress=seen.append)
    assert design.stopped == "gap"
    assert design.objective - design.lower_bound <= 1e-3 * design.objective
    assert seen[-1].lower_bound == design.lower_bound
    assert seen[-1].loss == design.objective


def test_any_multipliers_give_a_valid_bound() -> None:
    case = "eikonal, 8 neighbours"
    rng = np.random.default_rng(2)
    for name in PROGRAMS:
        task, mechanism = coupled_task.task_of(program_of(case, name)), solved_mechanism(case, name)
        value = mechanism.attrs["objective"]
        for _ in range(20):
            multipliers = mechanism["multiplier"].values * rng.uniform(-1, 3, task.rows.size) + rng.normal(size=1) / 50
            dual = mechanism["dual"].values + rng.normal(size=16) * value * rng.choice([1e-9, 1e-2, 1])
            admissible = project_dual(multipliers, task.rows.epigraph_coefficient)
            assert (admissible >= 0).all()
            assert math.fsum(admissible * task.rows.epigraph_coefficient) <= 1
            folded = task.rows.lagrangian_cost_down(task.cost, admissible)
            price = coupled_bound(task.pricer, folded, task.rows.limit, dual, admissible)
            assert price <= value


def test_folded_cost_is_rounded_down() -> None:
    rng = np.random.default_rng(5)
    entries = rng.normal(size=(40, 12)) * 10.0 ** rng.integers(-6, 6, (40, 12))
    rows = SideRows(
        matrix=stack_rows([], 12).matrix.__class__(entries),
        limit=np.zeros(40),
        epigraph_coefficient=np.zeros(40),
        names=[""] * 40,
    )
    cost, multipliers = rng.random((3, 4)), rng.random(40)
    folded = rows.lagrangian_cost_down(cost, multipliers).ravel()
    for j in range(12):
        pairs = zip(entries[:, j].tolist(), multipliers.tolist(), strict=True)
        exact = Fraction(float(cost.flat[j])) + sum(Fraction(a) * Fraction(b) for a, b in pairs)
        size = abs(float(cost.flat[j])) + float(np.abs(entries[:, j]) @ multipliers)
        assert Fraction(folded[j]) < exact
        assert float(exact) - folded[j] <= 1e-13 * size


def test_excess_is_rounded_up() -> None:
    thirds = np.full((1, 3), 1 / 3)
    matrix = stack_rows([], 3).matrix.__class__(np.ones((2, 3)))
    rows = SideRows(
        matrix=matrix, limit=np.array([1.0, 0.0]), epigraph_coefficient=np.array([0.0, 1.0]), names=["a", "b"]
    )
    assert 0 < rows.excess_up(thirds)[0] < 1e-14
    assert rows.excess_up(thirds)[1] == 0
    assert (rows.with_margin(np.array([-1e-9, 0.0])).excess_up(thirds) == 0).all()
    assert objective(np.ones((1, 3)), rows, thirds) == pytest.approx(2.0)


def test_scaling_keeps_the_optimum() -> None:
    program = program_of("eikonal, masked", "robust")
    task = coupled_task.task_of(program)
    values = []
    for cap, unit in ((9.0, 1.0), (2.0, 0.01), (18.0, 30.0)):
        whole = assemble_whole(program.problem, task.cost, task.rows, task.pricer.distance, cap=cap, unit=unit)
        values.append(solve_linear_program(whole.program).objective / whole.scale)
    assert values == pytest.approx([solved_mechanism("eikonal, masked", "robust").attrs["objective"]] * 3, rel=ORACLE)


def test_file_with_a_false_claim_is_refused(tmp_path: Path) -> None:
    case = "graph, table loss"
    for program in PROGRAMS:
        mechanism = solved_mechanism(case, program)
        for name, factor in (("objective", 0.99), ("lower_bound", 1.01)):
            forged = rewritten(mechanism, **{name: mechanism.attrs[name] * factor})
            result = md.verify(forged)
            assert not result.certified
            assert any(reason.startswith(name) for reason in result.reasons)
    tighter = json.loads(solved_mechanism(case, "bounded").attrs["parameters"])
    tighter["worst_loss"] *= 0.9
    forged = rewritten(solved_mechanism(case, "bounded"), parameters=json.dumps(tighter))
    assert any("bound on the loss at secret" in reason for reason in md.verify(forged).reasons)
    path = md.save(solved_mechanism(case, "robust"), tmp_path / "robust.nc")
    assert md.verify(path).lower_bound_checked is True


def test_remapped_minimax_drops_its_worst_case() -> None:
    remapped = md.utility.bayes_remap(solved_mechanism("eikonal, masked", "minimax"))
    assert "objective" not in remapped.attrs
    assert md.verify(remapped).certified


def test_oversized_program_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(md.programs.Minimax, "side_rows", lambda self: pytest.fail("allocated"))
    with pytest.raises(SizeError, match=str(MOST_ROWS)):
        md.solve(md.programs.Minimax(problem=load_problem("philadelphia", cells=31)))


def test_without_time_the_best_closed_form_is_returned() -> None:
    case = "line, zero-one"
    problem = problem_of(case)
    optimum = solved_mechanism(case, "minimax").attrs["objective"]
    design = design_of(md.programs.Minimax(problem=problem), gap=1e-3, time_limit=-1.0)
    assert design.stopped == "time"
    assert 0 < design.lower_bound <= optimum <= design.objective
    assert design.objective <= min(
        coupled_task.task_of(md.programs.Minimax(problem=problem)).assess(form.mass).objective
        for form in certified_closed_forms(problem)
    )
    tight = md.programs.Bounded(problem=problem, worst_loss=optimum * (1 + ORACLE))
    with pytest.raises(SolverError, match="before any table"):
        design_of(tight, gap=1e-3, time_limit=-1.0)


def test_interior_point_route_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "SIMPLEX_LIMIT", 0)
    case = "eikonal, 8 neighbours"
    for program in ("minimax", "bounded"):
        design = design_of(program_of(case, program), gap=1e-4)
        assert design.stopped == "gap"
        assert design.lower_bound <= solved_mechanism(case, program).attrs["objective"]
        assert design.objective >= solved_mechanism(case, program).attrs["lower_bound"]


@pytest.mark.parametrize("program", ["constrained", "bounded"])
def test_optimal_multipliers_restore_the_bound(program: str) -> None:
    case = "reports apart from secrets"
    task, mechanism = coupled_task.task_of(program_of(case, program)), solved_mechanism(case, program)
    multipliers = mechanism["multiplier"].values
    poor = task.bound(np.zeros(task.problem.domain.size), multipliers)
    polished = coupled_task.polished_bound(task, poor, SOLVED, math.inf)
    assert polished.folded.min(axis=1).max() > 0
    assert poor.value < 0.5 * mechanism.attrs["objective"]
    assert polished.value == pytest.approx(mechanism.attrs["objective"], rel=3 * SOLVED)
    assert polished.value <= mechanism.attrs["objective"]


def test_feasible_constraints_are_never_refused() -> None:
    program = program_of("eikonal, masked", "bounded")
    error = coupled_task.no_table(coupled_task.task_of(program), program)
    assert isinstance(error, DesignError)
    assert not isinstance(error, InfeasibleError)


def test_margin_grows_until_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.solvers.incumbent.FIRST_MARGIN", -1e-6)
    program = program_of("eikonal, 8 neighbours", "bounded")
    seen: list[Any] = []
    design = design_of(program, gap=1e-5, on_progress=seen.append)
    assert len(seen) > 1
    assert seen[0].loss == math.inf
    assert not coupled_task.task_of(program).rows.excess_up(design.mass / float(ROW_SUM)).any()
    assert design.stopped == "gap"
