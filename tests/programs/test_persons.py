"""Counts of people become integers: never 0 where somebody lives, and limits hold for the counts themselves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.problem.discs import disc_sets
from mechdesign.programs.persons import MOST_PERSONS, whole_persons

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


@each_row("case", COUNTS)
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
    assert whole.sum() < MOST_PERSONS
    ratios = [Fraction(int(n)) / Fraction(p) for n, p in zip(whole, counts, strict=True) if p > 0]
    assert 1 < max(ratios) / min(ratios) <= spread < Fraction(101, 100)


@each_row("people", [[1e-12, 1.0], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [-0.5, 1.0], ["1", "2"], [1j, 1.0]])
def test_counts_that_no_persons_stand_for_are_refused(people: list[Any]) -> None:
    with pytest.raises(InputError, match="people"):
        whole_persons(np.array(people), 2)


@pytest.mark.parametrize("kind", ["cap", "lift", "prior"])
def test_limits_hold_for_fractions_of_persons(kind: str) -> None:
    """A town beside few people, a third of a person in every cell: in fractions, of the counts and not of integers.

    Rounded to whole persons these cells would be empty, and a limit would hold for nobody in them. Counts with
    irrational parts are rounded, and the limit is lower for it.
    """
    domain = md.Domain.grid((6, 3), cell=500.0, unit="m")
    counts = np.where(domain.points[:, 0] < 900, 200.0, 1 / 3)
    if kind == "lift":
        counts = counts * (1 + np.sqrt(np.arange(18)) / 10)
    problem = md.DesignProblem(domain, md.Euclidean(0.004, unit="m"), counts / counts.sum(), md.losses.Distance())
    people = None if kind == "prior" else counts
    limit: Any = md.programs.PosteriorCap(radius=520.0, share="9/10", people=people)
    if kind == "lift":
        limit = md.programs.PosteriorLift(radius=520.0, factor=40, people=people)
    program = md.programs.Constrained(problem, constraints=[limit])
    mechanism = md.solve(program, gap=1e-2)
    assert md.verify(mechanism).certified
    mass = mechanism["mass"].values.tolist()
    exact = [Fraction(count).limit_denominator(3) if kind != "lift" else Fraction(count) for count in counts]
    joint = [[people * units for units in row] for people, row in zip(exact, mass, strict=True)]
    sums = [sum(column) for column in zip(*joint, strict=True)]
    worst = Fraction(0)
    for inside in disc_sets(domain, 520.0).toarray() > 0:
        most = max(sum(joint[u][y] for u in np.flatnonzero(inside)) / sums[y] for y in range(18))
        worst = max(worst, most / (sum(exact[u] for u in np.flatnonzero(inside)) / sum(exact) if kind == "lift" else 1))
    limit_asked = 40 if kind == "lift" else Fraction(9, 10)
    assert 0.99 * limit_asked < worst <= limit_asked
