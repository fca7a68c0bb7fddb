"""Columns with several generators: the integers, the certificate, and columns that are merged or doubled."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures.integer_oracles import reference_violations
from fixtures.problems import CASES
from fixtures.random_columns import (
    CAP,
    GRAPHS,
    column_mechanism,
    columns_of,
    draw_columns,
    every_sum,
    integer_metric,
    lists_of,
    mechanism_of,
    repair_columns,
    rows_in,
)
from fixtures.random_columns import rows_of as rows_of_columns
from fixtures.rows import few_by_default
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import DesignError, InputError
from mechdesign.factored.certificate import Factors
from mechdesign.factored.columns import Columns
from mechdesign.factored.integer_metric import LARGEST, IntegerMetric

EVERY = pytest.mark.parametrize("case", few_by_default(GRAPHS, "eikonal, masked", "line, zero-one"))
ONE = "eikonal, 16 neighbours"


def smallest_distances(factors: Factors) -> list[list[int]]:
    """q_k(u), secrets down, by the definition."""
    assert factors.columns is not None
    near = factors.metric.from_sources(factors.inner).T.tolist()
    return [
        [min([factors.metric.cap, *(f + row[v] for v, f in one)]) for one in lists_of(factors.columns)] for row in near
    ]


def same_rows(one: Factors, other: Factors, case: str, targets: tuple[np.ndarray, np.ndarray]) -> None:
    """Both have the same row sums and the same masses of every report."""
    problem, secrets = CASES[case](), np.arange(len(one.inner))
    masses = []
    for factors, target in zip((one, other), targets, strict=True):
        kernel, weight = factors.kernel.astype(object), factors.weight.astype(object)
        found = np.zeros((problem.domain.size, len(secrets)), object)
        np.add.at(found, target, kernel[factors.distances(secrets)] * weight[:, None])
        assert every_sum(factors) == found.sum(axis=0).tolist()
        masses.append(found)
    assert (masses[0] == masses[1]).all()


@EVERY
def test_rows_equal_plain_integer_rows(case: str) -> None:
    factors, _ = draw_columns(CASES[case](), 3)
    found = factors.distances(np.arange(len(factors.inner)))
    assert found.T.tolist() == smallest_distances(factors)
    kernel, weight = factors.kernel.tolist(), factors.weight.tolist()
    sums = [sum(kernel[q] * w for q, w in zip(row, weight, strict=True)) for row in smallest_distances(factors)]
    assert every_sum(factors) == sums


@EVERY
@pytest.mark.parametrize("share", [50, 70, 90, 100])
@pytest.mark.obligation("factor-inequalities")
def test_zero_breaches_implies_no_violated_triple(case: str, share: int) -> None:
    """Second route: every (edge, direction, column) triple of the fractions over a common denominator, as integers."""
    problem = CASES[case]()
    factors, _ = draw_columns(problem, share)
    factors = replace(factors, step=factors.step * share // 100)
    kernel, weight = factors.kernel.tolist(), factors.weight.tolist()
    rows = [[kernel[q] * w for q, w in zip(row, weight, strict=True)] for row in smallest_distances(factors)]
    sums = [sum(row) for row in rows]
    breaches, common = factors.breaches(problem.edges, sums), math.lcm(*sums)
    table = np.array([[a * (common // s) for a in row] for row, s in zip(rows, sums, strict=True)], object)
    if breaches == 0:
        assert reference_violations(table, problem.edges) == 0
    if share == 50:
        assert breaches == 0  # half the distances keep the claim under any weights and any columns


def test_columns_that_break_claim_are_refused() -> None:
    problem = CASES[ONE]()
    factors, target = draw_columns(problem, 0)
    assert factors.breaches(problem.edges, every_sum(factors)) > 0
    with pytest.raises(DesignError, match="break the claim"):
        mechanism_of(problem, factors, target)


@EVERY
def test_single_generators_equal_place_columns(case: str) -> None:
    problem = CASES[case]()
    plain = Factors(
        metric=integer_metric(problem),
        step=1 << 38,
        weight=np.random.default_rng(5).integers(1, 1 << 28, problem.domain.size).astype(np.uint32),
        inner=np.arange(problem.domain.size),
    )
    single = replace(plain, columns=columns_of([[(v, 0)] for v in range(problem.domain.size)]))
    target = np.arange(problem.domain.size)
    one, other = rows_in(problem, plain, target), rows_in(problem, single, target)
    assert np.array_equal(one.row_sum, other.row_sum)
    assert one.loss == pytest.approx(other.loss, rel=REORDERED)
    if problem.loss.name == "squared":
        assert one.moments == pytest.approx(other.moments, rel=REORDERED, abs=REORDERED * np.abs(one.moments).max())
    assert plain.distances(target).tobytes() == single.distances(target).tobytes()


@EVERY
def test_equivalent_generators_keep_masses(case: str) -> None:
    """A column cut in two with parts of its weight, generators repeated or implied by others, in another order."""
    problem, random = CASES[case](), np.random.default_rng(7)
    factors, target = draw_columns(problem, 11)
    assert factors.columns is not None
    lists = lists_of(factors.columns)
    part = (factors.weight // 3).astype(np.uint32)
    cut = np.flatnonzero(part)
    twice = replace(
        factors,
        weight=np.concatenate([factors.weight, part[cut]]),
        columns=columns_of(lists + [lists[k] for k in cut]),
    )
    twice.weight[cut] -= part[cut]
    same_rows(factors, twice, case, (target, np.concatenate([target, target[cut]])))
    near = factors.metric.from_sources(factors.inner).astype(int)
    implied = [
        [one[i] for i in random.permutation(len(one))]
        + [one[0], (other, min(int(near[one[-1][0], other]) + one[-1][1] + 5, CAP))]
        for one, other in zip(lists, random.integers(0, len(near), len(lists)).tolist(), strict=True)
    ]
    same_rows(factors, replace(factors, columns=columns_of(implied)), case, (target, target))
    order = random.permutation(len(lists))
    reordered = replace(factors, weight=factors.weight[order], columns=columns_of([lists[k] for k in order]))
    same_rows(factors, reordered, case, (target, target[order]))


@pytest.mark.obligation("no-wrap")
def test_largest_integers_do_not_wrap() -> None:
    """f + q would reach 131,068, and the row sums exceed 64 bits, against the exact numbers."""
    line, cap = np.arange(3), LARGEST - 1
    units = np.array([1, 1, 0], np.uint16)
    metric = IntegerMetric(points=np.arange(4.0)[:, None], tail=line, head=line + 1, units=units, cap=cap)
    lists = [[(0, cap)], [(0, cap - 1)], [(0, cap), (2, cap - 1)], [(3, 0), (0, 1)]] * 700
    factors = Factors(
        metric=metric,
        step=1 << 37,
        weight=np.full(2800, 1 << 28, np.uint32),
        inner=np.arange(4),
        columns=columns_of(lists),
    )
    found = factors.distances(np.arange(4))
    assert found[:4].tolist() == [[cap] * 4, [cap - 1, cap, cap, cap], [cap, cap, cap - 1, cap - 1], [1, 1, 0, 0]]
    kernel = factors.kernel.tolist()
    assert every_sum(factors) == [(700 << 28) * sum(kernel[q] for q in column) for column in found[:4].T.tolist()]


SOUND: dict[str, list[int]] = {"place": [0, 3, 1], "offset": [0, 7, CAP], "first": [0, 2]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"first": [0]}, "weight"),
        ({"first": [1, 2]}, "first_generator"),
        ({"first": [0, 0]}, "first_generator"),
        ({"first": [2, 0]}, "first_generator"),
        ({"first": [0, 3]}, "first_generator"),
        ({"first": [0, -1]}, "first_generator"),
        ({"first": [0, 2**63 - 1, 5 - 2**63, 2]}, "first_generator"),
        ({"offset": [0, 7, CAP + 1]}, "generator_offset"),
    ],
    ids=str,
)
@pytest.mark.obligation("column-generators")
def test_columns_out_of_range_are_refused(change: dict[str, list[int]], field: str) -> None:
    given = SOUND | change
    with pytest.raises(InputError) as caught:
        Factors(
            metric=integer_metric(CASES[ONE]()),
            step=1 << 38,
            weight=np.ones(2, np.uint32),
            inner=np.arange(16),
            columns=Columns(
                place=np.array(given["place"], np.int64),
                offset=np.array(given["offset"], np.uint16),
                first=np.array(given["first"], np.int64),
            ),
        )
    assert caught.value.field == field


@EVERY
def test_losses_equal_those_of_exact_rows(case: str) -> None:
    problem, mechanism = CASES[case](), rows_of_columns(case)
    exact = mechanism.probabilities(np.arange(mechanism.secrets))
    assert column_mechanism(case)["row_loss"].values == pytest.approx(
        (exact * problem.loss_matrix).sum(axis=1), rel=1e-10
    )
    for u in range(0, mechanism.secrets, 5):
        masses, total = mechanism.integers(u)
        assert np.array([m / total for m in masses]) == pytest.approx(exact[u], rel=1e-12)


@EVERY
def test_column_files_verify(case: str) -> None:
    checked = md.verify(column_mechanism(case))
    assert checked.certified, checked.reasons
    assert column_mechanism(case).sizes["column"] > column_mechanism(case).sizes["place"]


def test_remap_picks_best_cell_of_each_column() -> None:
    problem = CASES[ONE]()
    data, _ = repair_columns(problem, *draw_columns(problem, 0))
    factors, mechanism = data.factors, column_mechanism(ONE)
    mass = (factors.kernel * 2.0**-58)[factors.distances(np.arange(16))] * factors.weight[:, None]
    joint = mass / mass.sum(axis=0) * problem.prior_array
    losses = joint @ problem.loss_matrix
    assert mechanism.attrs["remapped_loss"] == pytest.approx(float(losses.min(axis=1).sum()), rel=1e-10)
    assert losses[np.arange(len(losses)), mechanism["remap"].values] == pytest.approx(losses.min(axis=1), rel=1e-10)
