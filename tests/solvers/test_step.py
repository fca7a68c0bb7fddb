"""Steps that certify: whole units of lengths, and the search of the step for weights that break the claim."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from factored import constant

from mechdesign.errors import DesignError
from mechdesign.mechanism.factored.certificate import STEP_BITS, Factors
from mechdesign.mechanism.factored.row_sums import LossData, join_words
from mechdesign.setting.metric.integer_metric import IntegerMetric
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays, together
from mechdesign.solvers.factored.rounds import RANGE, Claim, Units
from mechdesign.solvers.factored.step import OVER_ROWS, certified, exact_block


def test_whole_units_are_the_most_that_fit_and_end_at_the_cap() -> None:
    units = Units.for_lengths(np.array([RANGE]))
    length = np.concatenate([np.random.default_rng(3).uniform(0, 1.2 * RANGE, 500), [0.0, RANGE, 40.0, 1e300]])
    whole = units.whole(length)
    for units_of, nats in zip(whole.tolist(), length.tolist(), strict=True):
        fits = math.floor(math.ldexp(min(nats, 2 * RANGE), STEP_BITS)) // units.step  # in integers of any size
        assert units_of == min(fits, units.cap)
    assert whole.max() == units.cap


def weighed(ratio: float) -> tuple[DesignProblem, Factors, Claim]:
    """A constant level of half a nat, all lengths kept whole, and one place that weighs `ratio` times the others."""
    problem = constant((4, 4), 0.5)
    edges, units = problem.edges, Units.for_lengths(problem.edges.length)
    metric = IntegerMetric(
        points=problem.domain.points,
        tail=edges.tail,
        head=edges.head,
        units=units.whole(edges.length).astype(np.uint16),
        cap=units.cap,
    )
    weight = np.full(problem.domain.size, 1000, np.uint32)
    weight[5] *= ratio
    factors = Factors(metric=metric, step=units.step, weight=weight, inner=np.arange(problem.domain.size))
    return problem, factors, Claim.whole(edges)


def searched(
    ratio: float, kappa: float, exact: Callable[[LossData, int], Arrays]
) -> tuple[float, list[str], list[int]]:
    problem, factors, claim = weighed(ratio)
    told: list[str] = []
    steps: list[int] = []

    def noted(judged: LossData, step: int) -> Arrays:
        assert judged.factors.step == step
        steps.append(step)
        return exact(judged, step)

    def tell(stage: str, done: int, kappa: float | None) -> None:
        assert done == problem.domain.size
        assert kappa is not None
        told.append(stage)

    target = np.arange(problem.domain.size)
    judged, rows, factor = certified(problem, factors, target, claim, kappa, exact=noted, told=tell)
    assert judged.factors.step == steps[-1]
    assert judged.factors.breaches(problem.edges, join_words(rows.row_sum)) == 0
    assert factor == steps[-1] / factors.step
    return factor, told, steps


def whole(judged: LossData, step: int) -> Arrays:
    return together(iter([exact_block(judged, 0, len(judged.prior))]), OVER_ROWS)


@pytest.mark.parametrize("ratio", [1, 20, 1000])
def test_steps_fall_until_the_integers_certify(ratio: float) -> None:
    factor, told, steps = searched(ratio, 1.0, whole)
    assert 0.49 <= factor < 1  # full lengths leave nothing for row sums that differ, as they do at a border
    assert steps == sorted(steps, reverse=True)
    assert len(told) == len(steps) > 1
    assert told[-1] == "certificate, 0 breaches"
    assert "certificate, 0 breaches" not in told[:-1]


def test_a_kappa_that_is_known_saves_a_pass() -> None:
    factor, _, steps = searched(20, 1.0, whole)
    again, _, fewer = searched(20, 1 / factor, whole)
    assert again == pytest.approx(factor, rel=1e-6)
    assert len(fewer) < len(steps)


def test_no_weights_break_half_the_distances() -> None:
    def broken(judged: LossData, step: int) -> Arrays:
        """Row sums that are no row sums."""
        found = whole(judged, step)
        found["row_sum"][0] *= 4
        return found

    with pytest.raises(DesignError, match="half the distances break the claim"):
        searched(1, 1.0, broken)
