"""Steps that certify: whole units of lengths, and the search of the step for weights that break the claim."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from factored import constant
from reference.factored import STEP_BITS

from mechdesign import DesignProblem
from mechdesign.errors import DesignError
from mechdesign.extend import Edges
from mechdesign.maps import factored as step
from mechdesign.maps.certificate import Factors
from mechdesign.maps.integer_metric import IntegerMetric
from mechdesign.maps.rounds import RANGE, Units
from mechdesign.maps.row_sums import LossData, join_words, rounded_words, row_block, sum_rows
from mechdesign.maps.work_folder import Arrays, together

OVERSHOT = 4e-3  # of a factor: as much as is taken off at most beyond what a step breaks the claim by


def test_whole_units_are_the_most_that_fit_and_end_at_the_cap() -> None:
    units = Units.for_lengths(np.array([RANGE]))
    length = np.concatenate([np.random.default_rng(3).uniform(0, 1.2 * RANGE, 500), [0.0, RANGE, 40.0, 1e300]])
    whole = units.whole(length)
    for units_of, nats in zip(whole.tolist(), length.tolist(), strict=True):
        fits = math.floor(math.ldexp(min(nats, 2 * RANGE), STEP_BITS)) // units.step  # in integers of any size
        assert units_of == min(fits, units.cap)
    assert whole.max() == units.cap


def weighed(ratio: float) -> tuple[DesignProblem, Factors, Edges]:
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
    return problem, factors, edges


def searched(
    ratio: float, exact: Callable[[LossData], Arrays], *, known: bool = False
) -> tuple[float, list[str], list[int]]:
    """The factor, what was told and the steps of all passes; known, whether the row sums are expected as they are."""
    problem, factors, claim = weighed(ratio)
    size = problem.domain.size
    expected = rounded_words(sum_rows(factors, np.arange(size))) if known else np.ones(size)
    told: list[str] = []
    steps: list[int] = []

    def noted(data: LossData) -> Arrays:
        steps.append(data.factors.step)
        return exact(data)

    def report(stage: str, *, done: int, total: int, kappa: float | None) -> None:
        assert done == total == size
        assert kappa is not None
        told.append(stage)

    data, rows, factor = step.certified(problem, factors, np.arange(size), claim, expected, exact=noted, report=report)
    assert data.factors.step == steps[-1]
    assert data.factors.breaches(problem.edges, join_words(rows.row_sum)) == 0
    assert factor == steps[-1] / factors.step
    return factor, told, steps


def whole(data: LossData) -> Arrays:
    return together(iter([row_block(data, 0, len(data.prior))]), step.OVER_ROWS)


@pytest.mark.parametrize("ratio", [1, 20, 1000])
def test_steps_fall_until_the_integers_certify(ratio: float) -> None:
    factor, told, steps = searched(ratio, whole)
    assert 0.49 <= factor < 1  # full lengths leave nothing for row sums that differ, as they do at a border
    assert steps == sorted(steps, reverse=True)
    assert len(told) == len(steps)
    assert told[-1] == "certificate, 0 breaches"
    assert "certificate, 0 breaches" not in told[:-1]


@pytest.mark.parametrize("ratio", [3, 20])
def test_row_sums_that_are_known_save_passes(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 42 edges all are tried alone, those of the heavy place among them: one pass over all rows is left."""
    monkeypatch.setattr(step, "_SHARE", 1)
    factor, _, steps = searched(ratio, whole, known=True)
    monkeypatch.setattr(step, "_TRIED", 0)
    without, _, more = searched(ratio, whole)
    assert len(steps) == 1
    assert len(more) > 1
    assert factor == pytest.approx(without, rel=OVERSHOT)


def test_no_weights_break_half_the_distances() -> None:
    def broken(data: LossData) -> Arrays:
        """Row sums that are no row sums."""
        found = whole(data)
        found["row_sum"][0] *= 4
        return found

    with pytest.raises(DesignError, match="half the distances break the claim"):
        searched(1, broken)
