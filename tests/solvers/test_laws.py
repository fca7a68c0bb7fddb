"""Laws of optimal mechanisms, over every case."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.integer_oracles import are_rows, reference_violations
from fixtures.mechanisms import ALL, optimal_design, optimum, problem_of
from fixtures.problems import CASES
from fixtures.rows import few_by_default
from fixtures.tolerances import BLOCKS, DESIGN_MARGIN, ORACLE, SOLVED

from mechdesign import DesignProblem, Optimal, baselines, probabilities, solve, verify
from mechdesign.extend import Edges
from mechdesign.utility import bayes_remap


@ALL
def test_the_bounds_meet(case: str) -> None:
    attrs = optimum(case).attrs
    assert attrs["lower_bound"] <= attrs["expected_loss"]
    assert attrs["expected_loss"] - attrs["lower_bound"] <= SOLVED * attrs["expected_loss"]
    assert attrs["stopped"] == "gap"


@ALL
def test_the_cvxpy_statement_has_the_same_optimum(case: str) -> None:
    statement = Optimal(problem=problem_of(case)).statement()
    assert statement.is_dcp()
    oracle = statement.solve(solver="HIGHS")
    assert oracle == pytest.approx(optimum(case).attrs["expected_loss"], rel=ORACLE)


@ALL
def test_the_whole_program_and_aggregation_agree(case: str) -> None:
    whole = optimal_design(problem_of(case), gap=SOLVED, method="highs")
    grown = optimal_design(problem_of(case), gap=SOLVED, method="columns")
    assert whole.lower_bound <= grown.loss
    assert grown.lower_bound <= whole.loss
    assert grown.loss == pytest.approx(whole.loss, rel=2 * SOLVED)


@pytest.mark.parametrize("case", few_by_default(CASES, "line, zero-one", "reports apart from secrets"))
def test_the_block_interior_point_agrees_with_the_whole_program(case: str) -> None:
    whole = optimal_design(problem_of(case), gap=SOLVED, method="highs")
    blocks = optimal_design(problem_of(case), gap=BLOCKS, method="blocks")
    assert whole.lower_bound <= blocks.loss
    assert blocks.lower_bound <= whole.loss
    assert blocks.loss == pytest.approx(whole.loss, rel=2 * BLOCKS)


@ALL
def test_both_checks_certify(case: str) -> None:
    mass, edges = optimum(case)["mass"].values, problem_of(case).edges
    assert are_rows(mass)
    assert reference_violations(mass, edges) == 0
    assert verify(optimum(case)).certified


@ALL
def test_private_at_the_claim_and_not_below_it(case: str) -> None:
    mechanism, problem = optimum(case), problem_of(case)
    assert mechanism.attrs["ratio"] <= 1
    assert mechanism.attrs["ratio"] >= 1 - 1e-6
    tighter = (0.99 * problem.metric).edges(problem.domain)
    assert reference_violations(mechanism["mass"].values, tighter) > 0


@ALL
def test_all_pairs_follow_from_the_edges(case: str) -> None:
    problem = problem_of(case)
    log = np.log(probabilities(optimum(case)).values)
    rise = (log[:, None, :] - log[None, :, :]).max(axis=2)
    assert (rise <= problem.distances + DESIGN_MARGIN).all()


@ALL
def test_no_closed_form_at_the_claim_beats_the_bound(case: str) -> None:
    problem, bound = problem_of(case), optimum(case).attrs["lower_bound"]
    forms = [baselines.exponential(problem), baselines.constant(problem)]
    if problem.reports is problem.domain:
        forms.append(baselines.randomized_response(problem))
    for baseline in forms:
        assert baseline.attrs["ratio"] <= 1 + DESIGN_MARGIN
        assert baseline.attrs["expected_loss"] >= bound * (1 - DESIGN_MARGIN)
        assert verify(baseline).certified


@ALL
def test_remapping_an_optimum_gains_nothing(case: str) -> None:
    remapped = bayes_remap(optimum(case))
    assert verify(remapped).certified
    assert remapped.attrs["expected_loss"] <= optimum(case).attrs["expected_loss"] * (1 + DESIGN_MARGIN)
    assert remapped.attrs["expected_loss"] >= optimum(case).attrs["lower_bound"] * (1 - DESIGN_MARGIN)


@ALL
def test_more_privacy_costs_more(case: str) -> None:
    problem = problem_of(case)
    tight = DesignProblem(
        domain=problem.domain,
        metric=0.8 * problem.metric,
        prior=problem.prior,
        loss=problem.loss,
        reports=problem.reports,
    )
    stricter = solve(Optimal(problem=tight), gap=SOLVED).attrs
    assert stricter["lower_bound"] > optimum(case).attrs["expected_loss"]


@ALL
def test_losing_an_edge_shows(case: str) -> None:
    """The mechanism is tight somewhere: tightening every edge of one secret breaks the certificate somewhere."""
    mass, edges = optimum(case)["mass"].values, problem_of(case).edges
    broken = 0
    for e in range(len(edges.tail)):
        one = Edges(tail=edges.tail[[e]], head=edges.head[[e]], length=0.98 * edges.length[[e]])
        broken += reference_violations(mass, one) > 0
    assert broken >= len(edges.tail) // 3
