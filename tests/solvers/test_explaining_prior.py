"""Which priors explain reported epsilons: the statement, the dual route, and what they say of paper 001."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechdesign.errors import InfeasibleError, InputError
from mechdesign.programs.matching.explaining_prior import ExplainingPrior
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.problems.problem_files import load_problem, read_problem_file
from mechdesign.solvers.matching.explaining_prior import distance_range, explain
from mechdesign.solvers.matching.matched_distance import match_distance

ORACLE = 1e-5  # cvxpy hands the program to another solver at its default tolerance; priors are square roots of it
SUMS = 1e-11  # residuals of the dual route are 1e-12, with room for another order of summation
DUALITY = 1e-8  # its multipliers weigh those residuals by thousands
PRINTED = 5e-3  # half of the last printed digit of the ranges, in m
PAPER = read_problem_file("paris").module.published()
FLAT = ("randomized_response", PAPER["randomized_response"])


def small() -> DesignProblem:
    return load_problem("paris", cells=5, distance=200.0)


@pytest.mark.parametrize(
    ("reported", "binding"),
    [
        ([("geometric_clamped", 0.0063)], False),
        ([("geometric_clamped", 0.0064), ("randomized_response", 3.15)], True),
        ([("geometric_clamped", 0.0057)], True),
        ([("randomized_response", 2.6)], True),
    ],
)
def test_the_nearest_prior_by_two_routes(reported: list[tuple[str, float]], binding: bool) -> None:
    program = ExplainingPrior(problem=small(), reported=reported, distance=200.0)
    found, statement = explain(program), program.statement()
    assert statement.is_dcp()
    assert statement.solve() == pytest.approx(found.chi_square, rel=ORACLE)
    assert statement.variables()[0].value == pytest.approx(found.prior, abs=ORACLE)
    assert found.lower_bound == pytest.approx(found.chi_square, abs=DUALITY)
    assert (found.prior == 0).any() == binding
    assert found.prior.min() >= 0
    assert math.fsum(found.prior) == pytest.approx(1, abs=SUMS)
    for family, epsilon in reported:
        assert match_distance(with_prior(found.prior), family, 200.0).epsilon == pytest.approx(epsilon, rel=1e-8)


def test_epsilons_of_a_known_prior_are_explained_by_one_no_further_from_uniform() -> None:
    places = small().domain.points
    known = 1 + (places**2).sum(axis=1) / 300.0**2
    known /= known.sum()
    names = ("geometric_clamped", "randomized_response", "laplacian_normalised")
    reported = [(name, match_distance(with_prior(known), name, 200.0).epsilon) for name in names]
    program = ExplainingPrior(problem=small(), reported=reported, distance=200.0)
    found = explain(program)
    assert 0 < found.chi_square <= program.chi_square(known) * (1 + SUMS)
    assert program.profiles @ found.prior == pytest.approx(np.full(3, 200.0), rel=SUMS)
    assert program.statement().solve() == pytest.approx(found.chi_square, rel=ORACLE)


def with_prior(prior: np.ndarray) -> DesignProblem:
    problem = small()
    return DesignProblem(domain=problem.domain, metric=problem.metric, prior=prior, loss=problem.loss)


@pytest.mark.parametrize("asked", [("laplacian_clamped", 0.007), ("randomized_response", 3.0)])
def test_ranges_by_two_routes(asked: tuple[str, float]) -> None:
    program = ExplainingPrior(problem=small(), reported=[("geometric_clamped", 0.0061)], distance=200.0)
    low, high = distance_range(program, *asked)
    least, most = (statement.solve(solver="HIGHS") for statement in program.range_statement(*asked))
    assert [low, high] == pytest.approx([least, most], rel=ORACLE)
    assert low < float(program.profile(*asked) @ explain(program).prior) < high


def test_randomized_response_sees_the_mean_distance_only() -> None:
    problem = small()
    program = ExplainingPrior(problem=problem, reported=[FLAT], distance=200.0)
    points = problem.domain.points
    away = np.array([math.fsum(math.dist(u, v) for v in points) for u in points])
    expected = away / (problem.domain.size - 1 + math.exp(FLAT[1]))
    assert program.profiles[0] == pytest.approx(expected, rel=SUMS)


def test_what_explains_the_epsilons_of_the_paper() -> None:
    problem = load_problem("paris")
    program = ExplainingPrior(
        problem=problem, reported=[FLAT, ("geometric_normalised", PAPER["geometric"])], distance=450.0
    )
    assert round(explain(program).chi_square, 3) == 0.048
    third = ("laplacian_normalised", PAPER["laplacian"])
    assert distance_range(program, *third) == pytest.approx((451.74, 452.88), abs=PRINTED)
    with pytest.raises(InfeasibleError) as caught:
        explain(ExplainingPrior(problem=problem, reported=[*program.reported, third], distance=450.0))
    assert caught.value.field == "reported"
    clamped = ExplainingPrior(
        problem=problem, reported=[FLAT, ("geometric_clamped", PAPER["geometric"])], distance=450.0
    )
    assert round(explain(clamped).chi_square, 3) == 0.206


@pytest.mark.parametrize(
    ("reported", "distance", "field"),
    [
        ([], 200.0, "reported"),
        ([("gaussian", 1.0)], 200.0, "family"),
        ([("geometric_clamped", -1.0)], 200.0, "reported"),
        ([("geometric_clamped", 0.006)], 0.0, "distance"),
        ([("geometric_clamped", 0.006)], math.nan, "distance"),
    ],
)
def test_bad_input_names_the_field(reported: list[tuple[str, float]], distance: float, field: str) -> None:
    with pytest.raises(InputError) as caught:
        ExplainingPrior(problem=small(), reported=reported, distance=distance)
    assert caught.value.field == field
