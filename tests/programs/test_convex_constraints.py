"""Constraints that are convex and not affine: the table satisfies them, and tangents close the gap.

The second route is cvxpy: the statement of the program written here again, solved by Clarabel. Tangents are held
against exact fractions of polynomials, and against values at random tables.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from fixtures.mechanisms import optimum, problem_of, table_of
from fixtures.tolerances import ORACLE, SOLVED

import mechdesign as md
from mechdesign.solvers.tangents import tangent_rows

GAP = 1e-3
N = 6
PRIOR = np.array([0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
ROUNDED = 1e-12  # sums of 36 products of numbers near 1, by NumPy


def problem() -> md.DesignProblem:
    domain = md.Domain.grid((3, 2), 1.0, unit="m")
    return md.DesignProblem(domain, md.Euclidean(1.1, unit="m"), PRIOR, md.losses.Distance())


def free_table() -> np.ndarray:
    return table_of(md.solve(problem()))


def information(table: Any) -> Any:
    """Mutual information of secret and report in nats."""
    reports = np.ones((N, 1)) @ (PRIOR[None] @ table)
    return cp.sum(cp.multiply(PRIOR[:, None], cp.kl_div(table, reports) + table - reports))


def vulnerability(table: Any) -> Any:
    """The chance of the best guess of the secret, two to the power of minus the conditional min-entropy."""
    return cp.sum(cp.max(cp.multiply(PRIOR[:, None], table), axis=0))


KINDS: dict[str, Any] = {
    "entropy": lambda table: [cp.sum(cp.entr(PRIOR @ table)) >= 1.57],
    "information": lambda table: [information(table) <= 0.216],
    "chi-square": lambda table: [N * cp.sum_squares(PRIOR @ table - 1 / N) <= 0.18],
    "vulnerability": lambda table: [vulnerability(table) <= 0.456],
    "fairness": lambda table: [cp.abs(table[0, 0] - table[1, 1]) <= 0.01, cp.norm1(table[2] - table[3]) <= 0.6],
    "several": lambda table: [cp.norm(table[0] - table[5], 2) <= 0.6, cp.square(table[:, 1]) <= 0.04],
}


def independent_optimum(kind: str, made: md.DesignProblem) -> float:
    """The optimum of the same program in cvxpy, without code of the package."""
    table, loss = cp.Variable((N, N)), made.loss_matrix
    constraints = [table >= 0, cp.sum(table, axis=1) == 1, *KINDS[kind](table)]
    apart = np.linalg.norm(made.domain.points[:, None] - made.domain.points[None], axis=2)
    constraints += [table[u] <= np.exp(1.1 * apart[u, v]) * table[v] for u in range(N) for v in range(N) if u != v]
    cost = cp.sum(cp.multiply(PRIOR[:, None] * loss, table))
    return float(cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("kind", KINDS)
def test_bound_of_a_convex_constraint_closes(kind):
    instance = problem()
    mechanism = md.solve(md.programs.Constrained(instance, constraints=[KINDS[kind]]), gap=GAP)
    attrs, expected = mechanism.attrs, independent_optimum(kind, instance)
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound_of"] == "the program"
    assert attrs["objective"] == pytest.approx(expected, rel=5 * ORACLE)
    assert attrs["objective"] * (1 - GAP) <= attrs["lower_bound"] <= expected * (1 + ORACLE)
    # The constraint binds: the bound without it is not the answer.
    assert attrs["lower_bound"] > md.solve(instance).attrs["expected_loss"] * (1 + 10 * GAP)
    variable = cp.Variable((N, N))
    inequalities = KINDS[kind](variable)
    variable.value = table_of(mechanism)
    assert all(np.max(inequality.expr.value) <= 0 for inequality in inequalities)
    checked = md.verify(mechanism)
    assert checked.certified
    assert checked.lower_bound_checked is None
    assert checked.lower_bound_reason == "it depends on constraints that a file cannot hold"


def test_one_tangent_is_enough_for_a_smooth_constraint():
    """One gradient by hand leaves a gap of about 1e-5, so one round must be enough."""
    for kind in ("entropy", "chi-square"):
        rounds: list[Any] = []
        program = md.programs.Constrained(problem(), constraints=[KINDS[kind]])
        attrs = md.solve(program, gap=GAP, on_progress=rounds.append).attrs
        assert [state.method for state in rounds].count("tangents") == 1
        assert 1 - attrs["lower_bound"] / attrs["objective"] <= 1e-4
        assert {state.gap_of for state in rounds if state.method != "tangents"} == {"inner gap"}


def test_slack_constraint_needs_no_tangent():
    rounds: list[Any] = []
    program = md.programs.Constrained(problem(), constraints=[lambda table: [cp.sum_squares(table) <= 36]])
    attrs = md.solve(program, gap=GAP, on_progress=rounds.append).attrs
    assert attrs["stopped"] == "gap"
    assert "tangents" not in {state.method for state in rounds}


def test_tables_with_a_norm_of_differences_meet_their_gap():
    case = "eikonal, masked"
    instance = problem_of(case)
    free = table_of(optimum(case))
    limit = 0.8 * float(np.abs(free[0] - free[1]).sum())
    program = md.programs.Constrained(instance, constraints=[lambda table: [cp.norm1(table[0] - table[1]) <= limit]])
    mechanism = md.solve(program, gap=1e-5)
    table = table_of(mechanism)
    assert np.abs(table[0] - table[1]).sum() <= limit
    assert mechanism.attrs["stopped"] == "gap"
    assert mechanism.attrs["lower_bound"] > optimum(case).attrs["expected_loss"] * (1 + SOLVED)
    assert program.statement().solve(solver="HIGHS") == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)


def polynomial(table: np.ndarray) -> Fraction:
    """6 |prior P - 1/6|^2 - 0.18 of the doubles that cvxpy gets, in exact fractions."""
    total = Fraction(0)
    for y in range(N):
        share = sum(Fraction(p) * Fraction(float(value)) for p, value in zip(PRIOR.tolist(), table[:, y], strict=True))
        total += (share - Fraction(1 / N)) ** 2
    return N * total - Fraction(0.18)


def random_tables(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [rng.dirichlet(np.full(N, 10.0 ** rng.uniform(-1.5, 1.5)), N) for _ in range(count)]


def on_the_border(table: np.ndarray) -> np.ndarray:
    """The last table on the way from an even one that satisfies the constraint, in fractions."""
    even, low, high = np.full((N, N), 1 / N), 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if polynomial(even + middle * (table - even)) <= 0 else (low, middle)
    return even + low * (table - even)


def test_tangents_hold_in_exact_fractions():
    """Tables on the border of the constraint leave a row no slack for an error."""
    rng, variable = np.random.default_rng(2), cp.Variable((N, N))
    (inequality,) = KINDS["chi-square"](variable)
    borders = [on_the_border(table) for table in random_tables(rng, 16) if polynomial(table) > 0]
    assert len(borders) >= 8
    for number, point in enumerate(borders):
        rows = tangent_rows(inequality, variable, point, rng)
        row, limit = [Fraction(value) for value in rows.matrix.toarray()[0].tolist()], Fraction(float(rows.limit[0]))
        rooms = [
            limit - sum(a * Fraction(b) for a, b in zip(row, table.ravel().tolist(), strict=True)) for table in borders
        ]
        assert min(rooms) >= 0
        assert rooms[number] < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_are_below_the_values_of_their_function(kind):
    """The excess of a row is at most g(P) for every table, feasible or not: (1) before g(P) <= 0 enters."""
    rng, variable = np.random.default_rng(4), cp.Variable((N, N))
    tables = [*random_tables(rng, 25), free_table(), np.full((N, N), 1 / N)]
    for inequality in KINDS[kind](variable):
        values = []
        for table in tables:
            variable.value = table
            values.append(np.max(inequality.expr.value))
        for point in tables[:3] + tables[-2:]:
            rows = tangent_rows(inequality, variable, point, rng)
            assert rows.size > 0
            for table, value in zip(tables, values, strict=True):
                assert np.max(rows.values(table) - rows.limit) <= value + ROUNDED


def test_a_point_without_a_value_has_no_tangent():
    variable = cp.Variable((2, 2))
    outside = cp.sum(cp.entr(variable - 0.75)) >= 0.1
    assert tangent_rows(outside, variable, np.full((2, 2), 0.5), np.random.default_rng(0)).size == 0


def test_tangent_search_obeys_its_limit_and_keeps_the_table():
    program = md.programs.Constrained(problem(), constraints=[KINDS["information"]])
    attrs = md.solve(program, gap=1e-9, time_limit=0.1).attrs
    assert attrs["stopped"] in ("time", "precision")
    assert attrs["lower_bound"] <= attrs["objective"]


def test_interrupt_among_tangents_keeps_the_table():
    def press(state):
        if state.method == "tangents":
            raise KeyboardInterrupt

    program = md.programs.Constrained(problem(), constraints=[KINDS["information"]])
    mechanism = md.solve(program, gap=1e-9, on_progress=press)
    assert mechanism.attrs["stopped"] == "interrupt"
    assert mechanism.attrs["lower_bound"] > md.solve(problem()).attrs["expected_loss"]
    assert md.verify(mechanism).certified
