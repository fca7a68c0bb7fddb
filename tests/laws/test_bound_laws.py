"""Laws of optimal losses and their proved bounds, compared without a tolerance: bound <= optimum <= loss."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from strategies import SOLVED_LAW, WEIGHTS, problems

from mechdesign import DesignProblem, Domain, Euclidean, Optimal, priors, solve
from mechdesign.losses import Distance

GAP = 1e-6  # relative, asked of every solver
ROUNDED = 1 + 1e-12  # relative: sums of doubles


def bound_and_loss(problem: DesignProblem) -> tuple[float, float]:
    """The proved lower bound and the loss of the certified table."""
    mechanism = solve(Optimal(problem=problem), gap=GAP)
    return mechanism.attrs["lower_bound"], mechanism.attrs["expected_loss"]


@given(problems())
@SOLVED_LAW
def test_bound_is_at_most_the_loss_of_any_private_table(problem) -> None:
    """The bound is below the solved table, which the best constant report beats by no more than the gap."""
    bound, loss = bound_and_loss(problem)
    assert bound <= loss <= problem.constant_loss * (1 + GAP)


@given(arrays(float, 3, elements=WEIGHTS), some.floats(0.1, 3.0))
@SOLVED_LAW
def test_finer_report_cells_never_raise_the_loss(weights, epsilon: float) -> None:
    """A third of the cell keeps every centre, so that each coarse table is a fine one too."""
    coarse = Domain.grid(3, cell=1.0, unit="km")
    problem = DesignProblem(
        domain=coarse,
        metric=Euclidean(epsilon=epsilon, unit="km"),
        prior=priors.proportional(weights),
        loss=Distance(),
        reports=coarse,
    )
    fine = replace(problem, reports=Domain.grid(9, cell=1 / 3, unit="km"))
    assert bound_and_loss(fine)[0] <= bound_and_loss(problem)[1] * ROUNDED


@given(problems(4), some.data(), some.floats(0.0, 1.0))
@SOLVED_LAW
def test_optimal_loss_is_concave_in_the_prior(problem, data, share: float) -> None:
    """A table that serves a mixture of two priors serves each: knowing which one is true never costs."""
    other = data.draw(arrays(float, problem.domain.size, elements=WEIGHTS))
    first, second = problem.prior_array, other / other.sum()
    mixed = share * first + (1 - share) * second
    parts = [bound_and_loss(replace(problem, prior=priors.proportional(p)))[0] for p in (first, second)]
    loss = bound_and_loss(replace(problem, prior=priors.proportional(mixed)))[1]
    assert share * parts[0] + (1 - share) * parts[1] <= loss * ROUNDED
