"""Ray generation: maps with zeros of the prior, limits that tables break, masters that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fixtures.eikonal_maps import random_map
from fixtures.mechanisms import design_of, optimal_design
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import load_problem
from mechdesign.base.time_budget import TimeBudget
from mechdesign.errors import SolverError
from mechdesign.solvers.column_generation import Decision, RayGeneration, generate
from mechdesign.solvers.incumbent import Incumbent
from mechdesign.solvers.lp import highs
from mechdesign.solvers.optimal import optimal_task

GAP = 1e-3
FINE = 1e-6
ROUNDED = 1e-12  # relative; a vertex solved for from its basis


def with_empty_cells(cells: int, zeros: int, seed: int) -> md.DesignProblem:
    """Philadelphia with nobody in some cells."""
    problem = load_problem("philadelphia", cells=cells)
    prior = problem.prior_array.copy()
    prior[np.random.default_rng(seed).choice(len(prior), zeros, replace=False)] = 0
    return replace(problem, prior=prior / prior.sum())


def scattered_problem(cells: int, seed: int) -> md.DesignProblem:
    """Philadelphia with weights over twelve orders of magnitude."""
    problem = load_problem("philadelphia", cells=cells)
    prior = 10.0 ** np.random.default_rng(seed).uniform(-12, 0, problem.domain.size)
    return replace(problem, prior=prior / prior.sum())


def generation(problem: md.DesignProblem, target: float = GAP) -> tuple[RayGeneration, Incumbent]:
    return RayGeneration("rays", optimal_task(problem), target), Incumbent(
        constant=problem.constant_loss, target=target
    )


@pytest.mark.parametrize(
    ("cells", "zeros", "seed"),  # without zeros: weights over many orders of magnitude
    few_by_default(
        [(*row, seed) for row in ((4, 2), (6, 1), (8, 18), (10, 30), (4, None), (6, None)) for seed in (0, 1)],
        *((cells, zeros, 0) for cells, zeros in ((4, 2), (6, 1), (8, 18), (4, None))),
    ),
)
def test_maps_with_empty_cells(cells: int, zeros: int | None, seed: int) -> None:
    problem = scattered_problem(cells, seed) if zeros is None else with_empty_cells(cells, zeros, seed)
    design = optimal_design(problem, gap=GAP)
    fine = optimal_design(problem, gap=FINE)
    assert design.stopped == fine.stopped == "gap"
    assert 0 < design.lower_bound <= fine.loss <= design.loss * (1 + ROUNDED)
    assert design.lower_bound <= fine.lower_bound * (1 + FINE)
    assert fine.loss - fine.lower_bound <= FINE * fine.loss


@pytest.mark.parametrize("cells", [5, 6])
def test_minimax_has_least_favourable_prior(cells: int) -> None:
    problem = load_problem("philadelphia", cells=cells)
    design = design_of(md.programs.Minimax(problem=problem), gap=GAP)
    assert design.stopped == "gap"
    assert design.multipliers is not None
    worst = optimal_design(replace(problem, prior=design.multipliers / design.multipliers.sum()), gap=GAP)
    assert design.lower_bound <= worst.loss * (1 + GAP)
    assert worst.lower_bound <= design.objective * (1 + ROUNDED)


def test_zero_point_of_highs_keeps_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole program first, as with short edges; its every point is zero, and rays find the table."""
    problem = load_problem("line", cells=6)
    solve = highs.solve_linear_program

    def return_zero(*arguments, **options):
        solution = solve(*arguments, **options)
        return replace(solution, x=np.zeros_like(solution.x))

    monkeypatch.setattr("mechdesign.solvers.incumbent.solve_linear_program", return_zero)
    design = design_of(md.programs.Minimax(problem=problem), gap=GAP)
    assert design.stopped == "gap"
    assert design.lower_bound <= design.objective <= design.lower_bound / (1 - GAP)


def test_objective_is_of_the_table_and_above_bound() -> None:
    problem = with_empty_cells(6, 7, 3)
    rays, incumbent = generation(problem, FINE)
    decide, decisions = rays.decide, []

    def check_and_decide(*arguments):
        table, objective = rays.master.table(), rays.master.objective
        assert (table * problem.weighted_loss).sum() == pytest.approx(objective, rel=1e-9)
        assert table.sum(axis=1) == pytest.approx(np.ones(36), abs=1e-9)
        assert incumbent.lower_bound <= objective * (1 + 1e-9)
        decisions.append(decide(*arguments))
        return decisions[-1]

    rays.decide = check_and_decide
    assert generate(rays, incumbent, TimeBudget()) == "gap"
    assert decisions[-1] is Decision.FINISH
    assert Decision.CONTINUE in decisions


def test_deadline_ends_rays() -> None:
    assert generate(*generation(with_empty_cells(4, 2, 0), FINE), TimeBudget(-np.inf)) == "time"


def test_failing_method_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    (rays, incumbent), solve, seen = generation(with_empty_cells(4, 2, 0)), highs.ColumnMaster.solve, []

    def fail_at_vertices(self, time_limit, *, interior=None):
        seen.append(interior is None)
        if interior is None:
            raise SolverError("no", field="solver", value="x", remedy="y")
        return solve(self, time_limit, interior=interior)

    monkeypatch.setattr(highs.ColumnMaster, "solve", fail_at_vertices)
    assert generate(rays, incumbent, TimeBudget()) == "gap"
    assert seen[:2] == [True, False]
    assert not any(seen[1:])
    monkeypatch.setattr(
        highs.ColumnMaster, "solve", lambda self, time_limit, *, interior=None: fail_at_vertices(self, time_limit)
    )
    with pytest.raises(SolverError):
        rays.master.solve(1.0, 0.0)


def test_cycling_simplex_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without iterations it ends before any vertex, and the interior-point method takes over.

    The test below has a map on which HiGHS once cycled until its time limit.
    """
    monkeypatch.setattr(highs, "_ITERATIONS", 0)
    problem = with_empty_cells(8, 18, 0)
    design = optimal_design(problem, gap=GAP)
    assert design.stopped == "gap"
    monkeypatch.undo()
    assert design.lower_bound <= optimal_design(problem, gap=FINE).loss <= design.loss


@pytest.mark.exhaustive
def test_map_that_made_highs_cycle() -> None:
    design = optimal_design(random_map(37, 4, 12), gap=1e-4, time_limit=120)
    assert design.stopped == "gap"


def test_master_point_and_multipliers_fit_its_basis() -> None:
    """Entries of 1e-11 next to 1, which HiGHS resolves only to its tolerance."""
    columns = np.array([[1.0, 1e-11, 0.0], [0.5, 1.0, 0.0], [0.0, 0.25, 1.0], [1.0, 1.0, 1.0]])
    cost = np.array([1.0, 2.0, 3.0, 9.0])
    master = highs.ColumnMaster(right=np.ones(3), linking=3, unit=1.0)
    master.add(columns, cost)
    solution = master.solve(np.inf)
    assert solution.x @ columns == pytest.approx(np.ones(3), rel=ROUNDED)
    assert columns[:3] @ solution.dual == pytest.approx(cost[:3], rel=ROUNDED)
    assert solution.objective == pytest.approx(float(cost @ solution.x), rel=ROUNDED)
    central = master.solve(np.inf, interior=1e-9)
    assert central.objective == pytest.approx(solution.objective, rel=FINE)


def test_limits_of_a_master_bind_from_above() -> None:
    master = highs.ColumnMaster(right=np.array([1.0, 0.25]), linking=1, unit=1.0)
    master.add(np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([1.0, 3.0]))
    solution = master.solve(np.inf)
    assert solution.x == pytest.approx([0.25, 0.75])
    assert solution.dual == pytest.approx([3.0, -2.0])


@pytest.mark.parametrize("extent", [800.0, 1e100])
def test_shared_answer_with_long_edges(extent):
    """With long edges secrets may reveal their answer; the remaining loss is the smallest mass in integers."""
    design = optimal_design(load_problem("neighbourhoods", cells=4, labels=2, extent=extent), gap=GAP)
    assert design.stopped == "gap"
    assert design.lower_bound >= 0
    assert design.loss <= FINE**2
