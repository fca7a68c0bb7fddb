"""The edge-average program: two routes to one value, below every private mechanism, and the certificate says why."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from cases import CASES, grid, varying_level
from tolerances import ORACLE, SOLVED

from mechdesign.mechanism.table.certificate import violations
from mechdesign.mechanism.table.dataset import probabilities
from mechdesign.programs.optimal.edge_average import EdgeAverage
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import SquaredDistance
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.problems.problem_files import load_problem, read_problem_file
from mechdesign.solvers.optimal.edge_average import solve_edge_average
from mechdesign.solvers.solve import solve
from mechdesign.verification.verify import verify


def _half_vacuous() -> DesignProblem:
    """Edges from 1 to 3.5 nats: those of 2 and more constrain nothing, and cut the domain into parts."""
    domain = grid((4, 4))
    metric = Eikonal(level=varying_level(low=1.0, high=3.5), stencil=4)
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=SquaredDistance())


PROBLEMS = {
    "line": CASES["line, squared, skewed prior"],
    "4 neighbours": CASES["eikonal, 4 neighbours"],
    "8 neighbours": CASES["eikonal, 8 neighbours"],
    "reports apart": CASES["reports apart from secrets"],
    "half vacuous": _half_vacuous,
}
ALL = pytest.mark.parametrize("case", PROBLEMS)


@cache
def problem_of(case: str) -> DesignProblem:
    return PROBLEMS[case]()


@cache
def solved(case: str) -> xr.Dataset:
    return solve(EdgeAverage(problem=problem_of(case)), gap=SOLVED)


@ALL
def test_the_cvxpy_statement_has_the_same_optimum(case: str) -> None:
    statement = EdgeAverage(problem=problem_of(case)).statement()
    assert statement.is_dcp()
    assert statement.solve(solver="HIGHS") == pytest.approx(solved(case).attrs["expected_loss"], rel=ORACLE)


@ALL
def test_the_table_satisfies_the_statement(case: str) -> None:
    edges, table = problem_of(case).edges, probabilities(solved(case)).values
    tail, head = table[edges.tail], table[edges.head]
    assert (np.abs(tail - head) <= edges.length[:, None] * (tail + head) / 2 * (1 + 1e-12)).all()


@ALL
def test_it_costs_less_than_any_private_mechanism(case: str) -> None:
    optimal = solve(Optimal(problem=problem_of(case)), gap=SOLVED)
    assert solved(case).attrs["expected_loss"] < optimal.attrs["lower_bound"]


@ALL
def test_the_certificate_says_that_it_is_not_private(case: str) -> None:
    mechanism, problem = solved(case), problem_of(case)
    assert violations(mechanism["mass"].values, problem.edges) > 0
    assert mechanism.attrs["effective_epsilon"] > 1
    assert "lower_bound" not in mechanism.attrs
    checked = verify(mechanism)
    assert (checked.certified, checked.violations) == (True, 0)
    assert f"{float(mechanism.attrs['multiple'])!r} times" in str(checked.claim) or problem.metric.kind == "graph"


@pytest.mark.parametrize(("cells", "epsilon"), [(6, 0.3), (9, 1.9)])
def test_on_a_line_it_is_the_geometric_mechanism_of_longer_edges(cells: int, epsilon: float) -> None:
    longer = 2 * np.arctanh(epsilon / 2)
    published = read_problem_file("line").module.published(cells=cells, epsilon=longer)["optimal"]
    attrs = solve(EdgeAverage(problem=load_problem("line", cells=cells, epsilon=epsilon)), gap=SOLVED).attrs
    assert attrs["expected_loss"] == pytest.approx(published, rel=2 * SOLVED)
    assert attrs["effective_epsilon"] == pytest.approx(longer / epsilon, rel=1e-6)
    assert json.loads(attrs["parameters"])["program_lower_bound"] <= published * (1 + SOLVED)


def test_two_nats_and_more_constrain_nothing() -> None:
    problem = load_problem("line", cells=5, epsilon=2.1)
    program = EdgeAverage(problem=problem)
    assert program.parameters() == {"edges": 4, "unconstrained_edges": 4, "parts": 5}
    mechanism = solve(program)
    assert mechanism.attrs["expected_loss"] < 1e-9
    assert mechanism.attrs["effective_epsilon"] > 20  # 62 ln 2 nats over 2.1
    assert verify(mechanism).certified


def test_parts_are_held_together_by_the_edges_that_bind() -> None:
    program = EdgeAverage(problem=problem_of("half vacuous"))
    parts, edges = program.parts(), program.problem.edges
    assert sorted(np.concatenate(parts).tolist()) == list(range(16))
    assert 1 < len(parts) < 16
    label = np.empty(16, int)
    for k, part in enumerate(parts):
        label[part] = k
    assert (label[edges.tail] == label[edges.head])[edges.length < 2].all()


def test_a_finer_grid_brings_it_to_the_optimal_program() -> None:
    def excess(cell: float) -> float:
        problem = load_problem("flat", cells=4, cell=cell, stencil=4)
        coarse = solve(EdgeAverage(problem=problem), gap=SOLVED).attrs["expected_loss"]
        return 1 - coarse / solve(Optimal(problem=problem), gap=SOLVED).attrs["expected_loss"]

    assert 0 < excess(0.5) < excess(1.0) / 3 < excess(1.9)


def test_a_program_in_one_part_keeps_everything_but_the_metric() -> None:
    problem = replace(problem_of("line"), name="mine", parameters={"k": 1})
    program = EdgeAverage(problem=problem)
    (part,) = program.parts()
    own = program.as_optimal(part)
    assert (own.name, own.parameters, own.loss, own.reports) == ("mine", {"k": 1}, problem.loss, own.domain)
    assert (own.edges.length > problem.edges.length).all()


def test_time_running_out() -> None:
    design = solve_edge_average(EdgeAverage(problem=problem_of("line")), gap=1e-3, time_limit=-1.0)
    assert design.stopped == "time"
    loss = float((problem_of("line").weighted_loss * (design.mass / 2.0**62)).sum())
    assert 0 <= design.parameters["program_lower_bound"] <= loss
