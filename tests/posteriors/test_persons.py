"""Counts of people become integers: never 0 where somebody lives, and limits hold for the counts themselves."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.posteriors.persons import MAX_PERSONS, whole_persons

THIRD = Fraction(1, 3)
COUNTS: dict[str, list[Any]] = {
    "whole": [3, 0, 5],
    "a third beside a town": [THIRD, 6000, 0, THIRD],
    "shares of several cells": [Fraction(1, 7), Fraction(1, 2), Fraction(1, 3), 120],
    "a prior of whole persons": [Fraction(k, 136) for k in range(1, 17)],
    "large": [1e9, 3e9, 2e9],
    "huge": [1e300, 3e300],
    "tiny": [Fraction(1, 10**12), Fraction(3, 10**12)],
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts_of_one_small_unit_keep_their_proportions(case: str) -> None:
    """Against fractions: every product of two counts across."""
    exact = [Fraction(count) for count in COUNTS[case]]
    whole, spread = whole_persons(np.array([float(count) for count in exact]), len(exact))
    assert spread == 1
    assert all(
        a * int(q) == b * int(p)
        for a, p in zip(exact, whole[0], strict=True)
        for b, q in zip(exact, whole[0], strict=True)
    )


@pytest.mark.parametrize("people", [1000, 10**9])
def test_rounded_counts_are_within_their_spread_and_never_0(people: int) -> None:
    counts = np.random.default_rng(people).random(60) * people / 60
    counts[0], counts[1] = 1e-7 * people, 0.0
    (whole,), spread = whole_persons(counts, 60)
    assert whole[1] == 0 < whole[0]
    assert whole.sum() < MAX_PERSONS
    ratios = [Fraction(int(n)) / Fraction(p) for n, p in zip(whole, counts, strict=True) if p > 0]
    assert 1 < max(ratios) / min(ratios) <= spread < Fraction(101, 100)


@pytest.mark.parametrize(
    "people", [[1e-12, 1.0], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [-0.5, 1.0], ["1", "2"], [1j, 1.0]]
)
def test_counts_too_small_for_persons_are_refused(people: list[Any]) -> None:
    with pytest.raises(InputError, match="people"):
        whole_persons(np.array(people), 2)


def test_lowered_shares_hold_for_the_counts_themselves() -> None:
    """The worst table for rounding: one place rounded down most in the disc, one rounded up most outside.

    In fractions. The share of the rounded counts is at its limit there; that of the counts is at most the share asked.
    """
    counts = np.random.default_rng(0).random(40) ** 9 + 2e-9
    domain = md.Domain.grid((40,), cell=1.0, unit="m")
    problem = md.DesignProblem(domain, md.Euclidean(1.0, unit="m"), np.full(40, 1 / 40), md.losses.Distance())
    limit = md.posteriors.PosteriorCap(radius=1.0, share="3/5", people=counts).for_problem(problem)
    whole = [int(n) for n in np.asarray(limit.people)[0]]
    off = [Fraction(n) / Fraction(p) for n, p in zip(whole, counts, strict=True)]
    low, high = int(np.argmin(off)), int(np.argmax(off))
    assert off[high] / off[low] > Fraction(101, 100)
    # Rows A with whole[low] A[low] / (whole[low] A[low] + whole[high] A[high]) = limit.exact, nothing elsewhere.
    inside, outside = limit.exact / whole[low], (1 - limit.exact) / whole[high]
    true = Fraction(counts[low]) * inside, Fraction(counts[high]) * outside
    assert Fraction(599, 1000) < true[0] / sum(true) <= Fraction(3, 5)
    assert limit.exact < Fraction(598, 1000)


TOWN = np.where(np.arange(18) // 3 < 2, 200.0, 1 / 3)  # of 6 x 3 cells, 3 in a column
UNEVEN = TOWN * (1 + np.sqrt(np.arange(18)) / 10)  # no multiple of it is whole
MASK = np.arange(18).reshape(6, 3) != 10
KINDS: dict[str, tuple[Any, np.ndarray | None]] = {
    "cap": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=TOWN), None),
    "prior": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10"), None),
    "rounded": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=UNEVEN), None),
    "lift": (lambda: md.posteriors.PosteriorLift(radius=520.0, factor=40, people=UNEVEN), None),
    "day and night": (
        lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=np.stack([TOWN, UNEVEN[::-1]])),
        None,
    ),
    "places": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=UNEVEN, centres="places"), None),
    "area": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=UNEVEN, centres="area"), None),
    "masked": (lambda: md.posteriors.PosteriorCap(radius=520.0, share="9/10", people=UNEVEN[MASK.ravel()]), MASK),
}


@pytest.mark.parametrize("kind", few_by_default(KINDS, "lift", "masked"))
def test_limits_hold_for_fractions_of_persons(kind: str) -> None:
    """A town beside few people, a third of a person in every cell: in fractions, of the counts and not of integers.

    Rounded to whole persons these cells would be empty, and a limit would hold for nobody in them. Sets by distances of
    centres from lattice points every 25 m and from cells, or by area all sets of three cells.
    """
    limit, mask = KINDS[kind][0](), KINDS[kind][1]
    domain = md.Domain.grid((6, 3), cell=500.0, unit="m", mask=mask)
    prior = TOWN if mask is None else TOWN[mask.ravel()]
    problem = md.DesignProblem(domain, md.Euclidean(0.004, unit="m"), prior / prior.sum(), md.losses.Distance())
    mechanism = md.solve(md.programs.Constrained(problem, constraints=[limit]), gap=1e-2)
    assert md.verify(mechanism).certified
    x, y = np.meshgrid(np.arange(-500, 3501, 25.0), np.arange(-500, 2001, 25.0))
    centres = (
        domain.points if kind == "places" else np.concatenate([np.column_stack([x.ravel(), y.ravel()]), domain.points])
    )
    far = np.hypot(*(domain.points[None] - centres[:, None]).transpose(2, 0, 1))
    sets = {tuple(np.flatnonzero(row).tolist()) for row in far <= 520.0} - {()}
    if kind == "area":
        sets = set(combinations(range(domain.size), int(np.pi * 520**2 / 500**2)))
    worst = Fraction(0)
    for counts in np.atleast_2d(prior if limit.people is None else limit.people):
        people = [
            Fraction(count).limit_denominator(3) if count in (200, 1 / 3) else Fraction(count) for count in counts
        ]
        joint = np.array([[k * int(a) for a in row] for k, row in zip(people, mechanism["mass"].values, strict=True)])
        sums = joint.sum(axis=0)
        for inside in sets:
            before = sum(people[u] for u in inside) / sum(people) if kind == "lift" else 1
            worst = max(worst, *(joint[list(inside)].sum(axis=0) / sums / before))
    asked = 40 if kind == "lift" else Fraction(9, 10)
    assert 0.99 * asked < worst <= asked
