"""Random columns on the graphs of the cases: several generators a column, certified by a shorter step."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import xarray as xr
from cases import CASES
from drafts import Draft
from numpy.typing import NDArray
from reference.factored import STEP_BITS

import mechdesign as md
from mechdesign.factored import FactoredMechanism
from mechdesign.factored.certificate import WEIGHT_BITS, Factors
from mechdesign.factored.columns import Columns
from mechdesign.factored.dataset import loss_data, make_factored
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.factored.row_sums import CertifiedFactors, LossData, RowBlock, all_rows, join_words

STEP = int(1e-3 * 2**48)  # a thousandth of a nat per unit, in steps of 2^-STEP_BITS nats
CAP = 25_000
GRAPHS = ("eikonal, 16 neighbours", "eikonal, masked", "eikonal, two floors", "line, zero-one")


def columns_of(lists: list[list[tuple[int, int]]]) -> Columns:
    """Columns of lists of generators (place, offset)."""
    sizes = np.array([len(one) for one in lists])
    flat = np.array([generator for one in lists for generator in one], np.int64)
    return Columns(place=flat[:, 0].copy(), offset=flat[:, 1].astype(np.uint16), first=np.cumsum(sizes) - sizes)


def lists_of(columns: Columns) -> list[list[tuple[int, int]]]:
    """The generators (place, offset) of every column: the inverse of `columns_of`."""
    pairs = list(zip(columns.place.tolist(), columns.offset.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(columns.first, [*columns.first[1:], len(pairs)], strict=True)]


def every_sum(factors: Factors) -> list[int]:
    """S(u) of all secrets, from one window around all of them."""
    return factors.row_sums(factors.window_of(np.arange(len(factors.inner)), factors.metric.windows()))


def integer_metric(problem: md.DesignProblem) -> IntegerMetric:
    """The edges of the claim in thousandths of a nat, rounded down."""
    edges = problem.edges
    units = np.floor(np.minimum(edges.length / (STEP * 2.0**-STEP_BITS), CAP)).astype(np.uint16)
    return IntegerMetric(points=problem.domain.points, tail=edges.tail, head=edges.head, units=units, cap=CAP)


def drawn(problem: md.DesignProblem, seed: int) -> tuple[Factors, NDArray[np.int64]]:
    """One to three columns for every report, of one to four places with offsets of up to three nats, some of them above
    what others give; weights over three orders of magnitude. Private or not.
    """
    random, n = np.random.default_rng(seed), problem.domain.size
    target = np.repeat(np.arange(n), random.integers(1, 4, n))
    lists = [
        [(int(y), 0)] + [(int(v), int(f)) for v, f in zip(random.integers(0, n, more), offsets, strict=True)]
        for y, more in zip(target, random.integers(0, 4, len(target)), strict=True)
        for offsets in [random.integers(0, 3000, more)]
    ]
    weight = np.maximum(random.random(len(target)) ** 3 * (1 << WEIGHT_BITS), 1).astype(np.uint32)
    metric, inner = integer_metric(problem), np.arange(n)
    return Factors(metric=metric, step=STEP, weight=weight, inner=inner, columns=columns_of(lists)), target


def repaired(problem: md.DesignProblem, factors: Factors, target: NDArray[np.int64]) -> tuple[LossData, RowBlock]:
    """The factors with the longest step of 1, 0.95, ..., 0.5 at which they are private: half always is."""
    for share in range(100, 45, -5):
        data = loss_data(problem, replace(factors, step=factors.step * share // 100), target)
        rows = all_rows(data)
        if data.factors.breaches(problem.edges, join_words(rows.row_sum)) == 0:
            return data, rows
    raise AssertionError("half the distances are private under any weights")


def rows_in(problem: md.DesignProblem, factors: Factors, target: NDArray[np.int64]) -> RowBlock:
    """What is summed of every row."""
    return all_rows(loss_data(problem, factors, target))


def mechanism_of(
    problem: md.DesignProblem, factors: Factors, target: NDArray[np.int64], program: str = "columns"
) -> xr.Dataset:
    """The mechanism of factors as they are."""
    data = loss_data(problem, factors, target)
    certified = CertifiedFactors(data=data, rows=all_rows(data), target=target, factor=1.0)
    return make_factored(problem, certified, program=program, parameters={}, diagnosis={})


def sealed(problem: md.DesignProblem, factors: Factors, target: NDArray[np.int64]) -> xr.Dataset:
    """The mechanism of factors that are repaired first."""
    data, _ = repaired(problem, factors, target)
    return mechanism_of(problem, data.factors, target)


@cache
def made(case: str, seed: int = 0) -> xr.Dataset:
    """A mechanism of random columns over a case."""
    problem = CASES[case]()
    return sealed(problem, *drawn(problem, seed))


@cache
def rows_of(case: str, seed: int = 0) -> FactoredMechanism:
    return FactoredMechanism(dataset=made(case, seed))


def other_generators(draft: Draft, random: Random) -> None:
    """Other places, offsets and bounds between columns, in their range or at its end; of files that have some."""
    first, place, offset = (
        draft.variables[name][1].copy() for name in ("first_generator", "generator_place", "generator_offset")
    )
    at, cap = random.randrange(len(place)), int(draft.attrs["cap"])
    way = random.randrange(4)
    if way == 0:
        place[at] = random.choice((-1, random.randrange(10), int(place[at - 1]), 2**31, 2**62))
    elif way == 1:
        offset[at] = random.choice((0, 1, 65535, cap, min(cap + 1, 65535), random.randrange(min(cap, 65535) + 1)))
    elif way == 2:
        first[random.randrange(len(first))] += random.choice((-1, 1, 2, 2**62))
    else:
        order = random.sample(range(len(place)), len(place))
        place, offset = place[order], offset[order]
    for name, values in (("first_generator", first), ("generator_place", place), ("generator_offset", offset)):
        draft.put(name, values)
