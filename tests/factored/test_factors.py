"""The exact certificate of a factored mechanism: sums, ratios and edges in integers, against plain integers.

Also whole units of lengths, and the search of the step for weights that break the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.factored_mechanisms import constant
from fixtures.integer_oracles import reference_violations
from fixtures.problems import CASES
from fixtures.random_columns import every_sum
from fixtures.rows import few_by_default
from fixtures.tolerances import LINEAR_ALGEBRA
from reference.exact import lower_ratio
from reference.factored import KERNEL_BITS, STEP_BITS

from mechdesign import DesignProblem
from mechdesign.errors import DesignError, InputError
from mechdesign.extend import Edges
from mechdesign.factored import FactoredMechanism
from mechdesign.factored import certify as step
from mechdesign.factored.certificate import WEIGHT_BITS, Factors
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.factored.mechanism import _MOST_COLUMNS
from mechdesign.factored.rounds import ROUND_CONSTANTS, Units
from mechdesign.factored.row_sums import (
    OVER_ROWS,
    LossData,
    join_words,
    rounded_words,
    row_block,
    row_sums,
    split_words,
    sum_rows,
)
from mechdesign.factored.work_folder import Arrays, merge_blocks

STEP = int(1e-3 * 2**STEP_BITS)  # 2^-48 nats per unit
OVERSHOT = 4e-3  # of a factor: the largest reduction beyond the excess of a step
EVERY = pytest.mark.parametrize(
    "case",
    few_by_default(
        (name for name in CASES if name.startswith(("eikonal", "line", "graph"))),
        "line, zero-one",
        "eikonal, 8 neighbours",
        "eikonal, two floors",
        "graph, table loss",
    ),
)


def factors_of(case: str, *, share: float = 0.5, cap: int = 25_000, seed: int = 0) -> tuple[Factors, Edges]:
    """Edges at a share of their claimed lengths under random weights: row sums differ, some edges break the claim."""
    problem = CASES[case]()
    edges = problem.edges
    units = np.floor(share * edges.length / (STEP * 2.0**-STEP_BITS)).astype(np.uint16)
    metric = IntegerMetric(points=problem.domain.points, tail=edges.tail, head=edges.head, units=units, cap=cap)
    weight = np.random.default_rng(seed).integers(1, (1 << WEIGHT_BITS) + 1, problem.domain.size).astype(np.uint32)
    return Factors(metric=metric, step=STEP, weight=weight, inner=np.arange(problem.domain.size)), edges


def numerators(factors: Factors) -> list[list[int]]:
    """E(q(u, y)) W(y) as Python integers, secrets down."""
    kernel = factors.kernel.tolist()
    distances = factors.metric.from_sources(factors.inner).T.tolist()
    return [[kernel[q] * w for q, w in zip(row, factors.weight.tolist(), strict=True)] for row in distances]


@pytest.mark.parametrize("step", [1, STEP, 3 * STEP], ids=str)
def test_kernel_ratio_is_at_most_a_step(step: int) -> None:
    cap = 20_000 if step > 1 else 100
    ends = np.array([0]), np.array([1])
    metric = IntegerMetric(
        points=np.zeros((2, 1)),
        tail=ends[0],
        head=ends[1],
        units=np.array([5], np.uint16),
        cap=cap // (step // STEP or 1),
    )
    factors = Factors(metric=metric, step=step, weight=np.ones(2, np.uint32), inner=np.arange(2))
    kernel = [int(e) for e in factors.kernel]
    ratio, shift = lower_ratio(factors.nats_per_unit)
    assert kernel[0] == 1 << KERNEL_BITS
    assert len(kernel) == metric.cap + 1
    assert all(a >= b >= 1 for a, b in pairwise(kernel))
    assert all(a << shift <= ratio * b for a, b in pairwise(kernel))
    ideal = (1 << KERNEL_BITS) * np.exp(-factors.nats_per_unit * np.arange(metric.cap + 1))
    lifted = 1 / -math.expm1(-factors.nats_per_unit)  # the roundings up sum to a geometric series
    assert (np.array(kernel) >= ideal * (1 - 1e-9)).all()
    assert (np.array(kernel) <= ideal * (1 + 1e-9) + min(lifted, metric.cap) + 1).all()


@EVERY
@pytest.mark.obligation("windows")
def test_row_sums_equal_plain_integers(case: str) -> None:
    factors, _ = factors_of(case)
    expected = [sum(row) for row in numerators(factors)]
    assert every_sum(factors) == expected


@pytest.mark.obligation("no-wrap")
def test_row_sums_do_not_overflow() -> None:
    """The largest kernel value and weight at many places: sums beyond 64 bits, against the exact product."""
    size = 3000
    line = np.arange(size - 1)
    metric = IntegerMetric(
        points=np.arange(size)[:, None].astype(float),
        tail=line,
        head=line + 1,
        units=np.zeros(size - 1, np.uint16),
        cap=9,
    )
    weight = np.full(size, 1 << WEIGHT_BITS, np.uint32)
    factors = Factors(metric=metric, step=STEP, weight=weight, inner=np.arange(2))
    exact = size << (KERNEL_BITS + WEIGHT_BITS)
    assert every_sum(factors) == [exact, exact]


@EVERY
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.obligation("factor-inequalities")
def test_zero_breaches_implies_no_violated_triple(case: str, share: float) -> None:
    """Second route: every (edge, direction, report) triple of the fractions over a common denominator, as integers."""
    factors, edges = factors_of(case, share=share)
    rows = numerators(factors)
    sums = [sum(row) for row in rows]
    breaches = factors.breaches(edges, sums)
    common = math.lcm(*sums)
    table = np.array([[a * (common // s) for a in row] for row, s in zip(rows, sums, strict=True)], object)
    violated = reference_violations(table, edges)
    if breaches == 0:
        assert violated == 0
    if share <= 0.5:
        assert breaches == 0  # half the distances keep the claim under any weights
    if violated:
        assert breaches > 0


@pytest.mark.obligation("factor-inequalities")
def test_breach_by_one_unit_is_counted() -> None:
    """A row sum at the bound that the edge allows holds, one unit further does not; both ways."""
    factors, edges = factors_of("eikonal, 8 neighbours")
    one = Edges(tail=edges.tail[:1], head=edges.head[:1], length=edges.length[:1])
    slack = int(factors.slack(one)[0]) >> 28
    ratio, shift = lower_ratio(slack * 2.0**-20)
    small = 1 << 80
    bound = (ratio * small) >> shift
    u, v = int(one.tail[0]), int(one.head[0])
    for low, high in ((u, v), (v, u)):
        sums = [small] * factors.metric.size
        sums[low], sums[high] = small, bound
        assert factors.breaches(one, sums) == 0
        sums[high] = bound + 1
        assert factors.breaches(one, sums) == 1


def test_slack_of_edges_is_exact() -> None:
    factors, edges = factors_of("eikonal, 16 neighbours", share=0.9)
    step = Fraction(factors.step, 1 << STEP_BITS)
    for slack, length, units in zip(factors.slack(edges), edges.length, factors.units_of(edges), strict=True):
        exact = (Fraction(float(length)) - int(units) * step) * (1 << STEP_BITS)
        assert exact - 1 < int(slack) <= exact


def test_edge_missing_from_metric_breaks_claim() -> None:
    factors, edges = factors_of("eikonal, 8 neighbours")
    sums = every_sum(factors)
    fewer = replace(
        factors,
        metric=replace(
            factors.metric, tail=factors.metric.tail[1:], head=factors.metric.head[1:], units=factors.metric.units[1:]
        ),
    )
    assert factors.breaches(edges, sums) == 0
    assert fewer.breaches(edges, sums) == 2
    reversed_edges = Edges(tail=edges.head, head=edges.tail, length=edges.length)
    assert factors.breaches(reversed_edges, sums) == 0


def test_kernel_edge_longer_than_claim_breaks_it() -> None:
    factors, edges = factors_of("eikonal, 8 neighbours", share=1.0)
    level = [1 << 70] * factors.metric.size
    assert factors.breaches(edges, level) == 0
    short = Edges(tail=edges.tail, head=edges.head, length=edges.length * (1 - 1e-3))
    assert factors.breaches(short, level) > 0


def test_words_split_and_join() -> None:
    numbers = [0, 1, (1 << 64) - 1, 1 << 64, (1 << 102) + 12345]
    assert join_words(split_words(numbers)) == numbers
    assert split_words(numbers).dtype == np.uint64


def test_units_and_nats_agree() -> None:
    factors, edges = factors_of("eikonal, 8 neighbours", share=1.0)
    nats = factors.nats_per_unit * factors.units_of(edges)
    assert (nats <= edges.length).all()
    assert (nats > edges.length - factors.nats_per_unit * (1 + LINEAR_ALGEBRA)).all()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"weight": 0}, "weight"),
        ({"weight": (1 << WEIGHT_BITS) + 1}, "weight"),
        ({"step": 0}, "step"),
        ({"step": STEP * 10}, "step"),
    ],
    ids=str,
)
def test_factors_out_of_range_are_refused(change: dict[str, int], field: str) -> None:
    factors, _ = factors_of("eikonal, 8 neighbours")
    if "weight" in change:
        given: dict[str, object] = {"weight": np.full(factors.metric.size, change["weight"], np.uint32)}
    else:
        given = dict(change)
    with pytest.raises(InputError) as caught:
        replace(factors, **given)
    assert caught.value.field == field


@EVERY
def test_row_sums_report_progress_once(case: str) -> None:
    factors, _ = factors_of(case)
    done: list[int] = []
    assert join_words(row_sums(factors, on_done=done.append)) == [sum(row) for row in numerators(factors)]
    assert done[-1] == len(factors.inner)


def test_cumulative_masses_do_not_wrap() -> None:
    """All at the largest kernel value and weight, one less in the last bit: against multiples in integers."""
    none = np.zeros(0, np.int64)
    metric = IntegerMetric(
        points=np.zeros((_MOST_COLUMNS, 1)), tail=none, head=none, units=none.astype(np.uint16), cap=9
    )
    weight = np.full(_MOST_COLUMNS, (1 << WEIGHT_BITS) - 1, np.uint32)
    factors = Factors(metric=metric, step=STEP, weight=weight, inner=np.arange(2))
    mechanism = SimpleNamespace(factors=factors)
    high, low = FactoredMechanism._cumulative(mechanism, np.zeros(_MOST_COLUMNS, np.uint16))
    mass = ((1 << WEIGHT_BITS) - 1) << KERNEL_BITS
    for k in (0, 1, 1 << 19, 1 << 20, _MOST_COLUMNS - 1):
        assert (int(high[k]) << 43) + int(low[k]) == (k + 1) * mass
    assert (np.diff(high.astype(np.float64)) >= 0).all()


def test_units_are_largest_below_length_and_cap() -> None:
    limit = ROUND_CONSTANTS.usual_range
    units = Units.for_lengths(np.array([limit]))
    length = np.concatenate([np.random.default_rng(3).uniform(0, 1.2 * limit, 500), [0.0, limit, 40.0, 1e300]])
    whole = units.quantise(length)
    for units_of, nats in zip(whole.tolist(), length.tolist(), strict=True):
        fits = math.floor(math.ldexp(min(nats, 2 * limit), STEP_BITS)) // units.step  # in integers of any size
        assert units_of == min(fits, units.cap)
    assert whole.max() == units.cap


def heavy_place(ratio: float) -> tuple[DesignProblem, Factors, Edges]:
    """A constant level of half a nat, all lengths kept whole, and one place that weighs `ratio` times the others."""
    problem = constant((4, 4), 0.5)
    edges, units = problem.edges, Units.for_lengths(problem.edges.length)
    metric = IntegerMetric(
        points=problem.domain.points,
        tail=edges.tail,
        head=edges.head,
        units=units.quantise(edges.length).astype(np.uint16),
        cap=units.cap,
    )
    weight = np.full(problem.domain.size, 1000, np.uint32)
    weight[5] *= ratio
    factors = Factors(metric=metric, step=units.step, weight=weight, inner=np.arange(problem.domain.size))
    return problem, factors, edges


def search_step(
    ratio: float, exact: Callable[[LossData], Arrays], *, known: bool = False
) -> tuple[float, list[str], list[int]]:
    """The factor, the reported stages and the steps of all passes; if known, exact row sums are passed as expected."""
    problem, factors, claim = heavy_place(ratio)
    size = problem.domain.size
    expected = rounded_words(sum_rows(factors, np.arange(size))) if known else np.ones(size)
    stages: list[str] = []
    steps: list[int] = []

    def record_step(data: LossData) -> Arrays:
        steps.append(data.factors.step)
        return exact(data)

    def report(stage: str, *, done: int, total: int, kappa: float | None) -> None:
        assert done == total == size
        assert kappa is not None
        stages.append(stage)

    target = np.arange(size)
    certified = step.certify_factors(problem, factors, target, claim, expected, exact=record_step, report=report)
    data, rows, factor = certified.data, certified.rows, certified.factor
    assert data.factors.step == steps[-1]
    assert data.factors.breaches(problem.edges, join_words(rows.row_sum)) == 0
    assert factor == steps[-1] / factors.step
    return factor, stages, steps


def whole(data: LossData) -> Arrays:
    return merge_blocks(iter([row_block(data, 0, len(data.prior))]), OVER_ROWS)


@pytest.mark.parametrize("ratio", [1, 20, 1000])
def test_step_falls_until_integers_certify(ratio: float) -> None:
    factor, stages, steps = search_step(ratio, whole)
    assert 0.49 <= factor < 1  # full lengths leave nothing for row sums that differ, as they do at a border
    assert steps == sorted(steps, reverse=True)
    assert len(stages) == len(steps)
    assert stages[-1] == "certificate, 0 breaches"
    assert "certificate, 0 breaches" not in stages[:-1]


@pytest.mark.parametrize("ratio", few_by_default([3, 20], 3))
def test_known_row_sums_save_passes(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 42 edges all are tried alone, those of the heavy place among them: one pass over all rows is left."""
    monkeypatch.setattr(step, "STEP_SEARCH", replace(step.STEP_SEARCH, edge_share=1))
    factor, _, steps = search_step(ratio, whole, known=True)
    monkeypatch.setattr(step, "STEP_SEARCH", replace(step.STEP_SEARCH, edges=0))
    without, _, more = search_step(ratio, whole)
    assert len(steps) == 1
    assert len(more) > 1
    assert factor == pytest.approx(without, rel=OVERSHOT)


def test_half_of_distances_certifies_any_weights() -> None:
    def wrong_sums(data: LossData) -> Arrays:
        """Row sums of which the first is four times too large."""
        found = whole(data)
        found["row_sum"][0] *= 4
        return found

    with pytest.raises(DesignError, match="half of the distances break the claim"):
        search_step(1, wrong_sums)
