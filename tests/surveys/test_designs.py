"""Minimax, robust and bounded designs: known values, and the order that theory gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixtures.mechanisms import (
    SLACK,
    loss_at_secrets,
    optimum,
    problem_of,
    several_priors,
    solved_mechanism,
)
from fixtures.problems import CASES
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, ORACLE, REORDERED, SOLVED

import mechdesign as md
from mechdesign import DesignProblem, load_problem, priors
from mechdesign.errors import InfeasibleError

DEFAULT = (  # one case of every kind
    "line, squared, skewed prior",
    "discrete",
    "eikonal, masked",
    "graph, table loss",
    "reports apart from secrets",
)
FEW = pytest.mark.parametrize("case", few_by_default(CASES, *DEFAULT))


@FEW
def test_minimax_is_at_least_the_optimum_under_every_prior(case: str) -> None:
    problem, worst = problem_of(case), solved_mechanism(case, "minimax")
    rng = np.random.default_rng(3)
    for power in (0, 1, 6):
        prior = priors.proportional(rng.random(problem.domain.size) ** power)
        judged = DesignProblem(
            domain=problem.domain, metric=problem.metric, prior=prior, loss=problem.loss, reports=problem.reports
        )
        assert md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["lower_bound"] <= worst.attrs["objective"]
    assert worst.attrs["objective"] <= loss_at_secrets(optimum(case), problem).max() * (1 + SOLVED)
    assert worst.attrs["objective"] == pytest.approx(loss_at_secrets(worst, problem).max(), rel=DESIGN_MARGIN)


@FEW
def test_least_favourable_prior_gives_minimax_value(case: str) -> None:
    problem, worst = problem_of(case), solved_mechanism(case, "minimax")
    prior = worst["multiplier"].values
    assert prior.min() >= 0
    assert math.fsum(prior) <= 1
    judged = DesignProblem(
        domain=problem.domain,
        metric=problem.metric,
        prior=priors.proportional(prior),
        loss=problem.loss,
        reports=problem.reports,
    )
    found = md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["expected_loss"]
    assert found == pytest.approx(worst.attrs["objective"], rel=3 * SOLVED)


@FEW
def test_robust_lies_between_every_prior_and_minimax(case: str) -> None:
    problem, attrs = problem_of(case), solved_mechanism(case, "robust").attrs
    for prior in several_priors(problem):
        judged = DesignProblem(
            domain=problem.domain, metric=problem.metric, prior=prior, loss=problem.loss, reports=problem.reports
        )
        assert md.solve(md.Optimal(problem=judged), gap=SOLVED).attrs["lower_bound"] <= attrs["objective"]
    assert attrs["lower_bound"] <= solved_mechanism(case, "minimax").attrs["objective"]
    each = several_priors(problem) @ loss_at_secrets(solved_mechanism(case, "robust"), problem)
    assert attrs["objective"] == pytest.approx(each.max(), rel=DESIGN_MARGIN)


@pytest.mark.parametrize("case", ["eikonal, masked", "graph, table loss", "reports apart from secrets"])
def test_robust_includes_minimax_and_optimal(case: str) -> None:
    problem = problem_of(case)
    points = md.solve(md.programs.Robust(problem=problem, priors=np.eye(problem.domain.size)), gap=SOLVED).attrs
    assert points["objective"] == pytest.approx(solved_mechanism(case, "minimax").attrs["objective"], rel=2 * SOLVED)
    one = md.solve(md.programs.Robust(problem=problem, priors=problem.prior_array[None]), gap=SOLVED).attrs
    assert one["objective"] == pytest.approx(optimum(case).attrs["expected_loss"], rel=2 * SOLVED)


@FEW
def test_bounds_on_the_loss_hold_and_cost_something(case: str) -> None:
    problem, mechanism = problem_of(case), solved_mechanism(case, "bounded")
    bound = SLACK * solved_mechanism(case, "minimax").attrs["objective"]
    assert (loss_at_secrets(mechanism, problem) <= bound).all()
    assert optimum(case).attrs["lower_bound"] <= mechanism.attrs["objective"]
    assert mechanism.attrs["objective"] == pytest.approx(mechanism.attrs["expected_loss"], rel=REORDERED)
    if loss_at_secrets(optimum(case), problem).max() > bound * (1 + SOLVED):
        assert mechanism.attrs["lower_bound"] > optimum(case).attrs["expected_loss"]


def test_a_bound_per_secret_binds_where_it_is_given() -> None:
    problem = problem_of("eikonal, 8 neighbours")
    free = loss_at_secrets(optimum("eikonal, 8 neighbours"), problem)
    bounds = np.full(16, np.inf)
    bounds[5] = 0.9 * free[5]
    mechanism = md.solve(md.programs.Bounded(problem=problem, worst_loss=bounds), gap=SOLVED)
    assert loss_at_secrets(mechanism, problem)[5] <= bounds[5]
    assert mechanism["multiplier"].shape == (1,)
    assert mechanism["multiplier"].values[0] > 0
    oracle = md.programs.Bounded(problem=problem, worst_loss=bounds).statement().solve(solver="HIGHS")
    assert oracle == pytest.approx(mechanism.attrs["objective"], rel=ORACLE)


@pytest.mark.parametrize("case", ["line, squared, skewed prior", "eikonal, masked", "reports apart from secrets"])
def test_a_bound_below_the_minimax_value_is_proved_impossible(case: str) -> None:
    problem, value = problem_of(case), solved_mechanism(case, "minimax").attrs["lower_bound"]
    with pytest.raises(InfeasibleError, match=r"proved.*bound on the loss at secret \d+") as caught:
        md.solve(md.programs.Bounded(problem=problem, worst_loss=0.8 * value))
    assert caught.value.field == "worst-loss"
    assert caught.value.exit_code == 1
    assert "25 %" in caught.value.remedy or "25.01 %" in caught.value.remedy
    assert md.solve(md.programs.Bounded(problem=problem, worst_loss=1.001 * value)).attrs["objective"] > 0


@pytest.mark.parametrize(("secrets", "epsilon"), [(2, 0.1), (8, 1.5), (12, 4.0)])
def test_discrete_minimax_is_randomized_response(secrets: int, epsilon: float) -> None:
    attrs = md.solve(
        md.programs.Minimax(problem=load_problem("discrete", secrets=secrets, epsilon=epsilon)), gap=SOLVED
    ).attrs
    published = (secrets - 1) / (secrets - 1 + math.exp(epsilon))
    assert attrs["lower_bound"] <= published * (1 + DESIGN_MARGIN)
    assert attrs["objective"] == pytest.approx(published, rel=SOLVED)


def test_minimax_on_a_ring_is_the_optimum_of_the_uniform_prior() -> None:
    places = np.arange(9)
    apart = np.abs(np.subtract.outer(places, places))
    problem = DesignProblem(
        domain=md.Domain.nodes(9),
        metric=md.Graph(tail=places, head=(places + 1) % 9, length=np.full(9, 0.7)),
        prior=priors.proportional(1.0 + places),
        loss=md.losses.TableLoss(values=np.minimum(apart, 9 - apart).astype(float)),
    )
    uniform = DesignProblem(
        domain=problem.domain, metric=problem.metric, prior=priors.uniform(problem.domain), loss=problem.loss
    )
    same = md.solve(md.Optimal(problem=uniform), gap=SOLVED).attrs["expected_loss"]
    assert md.solve(md.programs.Minimax(problem=problem), gap=SOLVED).attrs["objective"] == pytest.approx(
        same, rel=2 * SOLVED
    )


def test_minimax_of_two_secrets_in_closed_form() -> None:
    problem = load_problem("line", cells=2, epsilon=1.2)
    attrs = md.solve(md.programs.Minimax(problem=problem), gap=SOLVED).attrs
    assert attrs["objective"] == pytest.approx(1 / (1 + math.exp(1.2)), rel=SOLVED)
