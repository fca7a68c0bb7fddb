"""Designs with limits on discs where people live unevenly: solved to their gap, and never worse than theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixtures.tight_limits import caps_of

import mechdesign as md

# A town of 6,000 beside nine homes of one person each, who are spread over the nearest cells.
_TOWN = np.array(
    [
        [400, 400, 200, 200, 1 / 3, 1 / 2, 1 / 2, 1 / 2, 1 / 2],
        [400, 400, 200, 200, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 5],
        [400, 400, 400, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 5, 1 / 5],
        [400, 400, 200, 200, 1 / 2, 1 / 4, 1 / 4, 1 / 5, 1 / 5],
        [400, 400, 200, 200, 1 / 2, 1 / 4, 1 / 4, 1 / 2, 1 / 2],
    ]
).T


def town() -> md.programs.Constrained:
    domain = md.Domain.grid((9, 5), cell=560.0, unit="m")
    people = _TOWN.ravel()
    metric = md.Euclidean(math.log(16) / 564, unit="m")
    problem = md.DesignProblem(domain, metric, people / people.sum(), md.losses.Distance())
    cap = md.posteriors.PosteriorCap(radius=564.0, share="60%", people=people)
    return md.programs.Constrained(problem, constraints=[cap])


@pytest.mark.study
def test_town_near_few_homes_is_solved_to_its_gap() -> None:
    """Its bound is checked from the multipliers. Rows of the homes are 10^-5 of those of the town."""
    mechanism = md.solve(town(), gap=1e-3)
    assert mechanism.attrs["stopped"] == "gap"
    assert mechanism.attrs["objective"] * (1 - 1e-3) <= mechanism.attrs["lower_bound"]
    assert md.verify(mechanism).lower_bound_checked


def test_a_design_without_time_is_no_worse_than_theory() -> None:
    """The least of the constant report and of the exponential mechanism mixed with it until it keeps the cap."""
    program = town()
    problem, caps = program.problem, caps_of(program)[0]
    mechanism = md.solve(program, time_limit=1e-9)
    assert mechanism.attrs["stopped"] == "time"
    assert md.verify(mechanism).certified
    far = np.exp(-problem.domain.euclidean_to(problem.domain) * math.log(16) / 564 / 2)
    far /= far.sum(axis=1, keepdims=True)
    constant = np.zeros_like(far)
    constant[:, problem.best_constant] = 1

    def satisfies_cap(table: np.ndarray) -> bool:
        joint = caps.persons[:, None] * table
        return bool((caps.sets @ joint <= 0.6 * joint.sum(axis=0)).all())

    shares = [share for share in np.linspace(0, 1, 101) if satisfies_cap(share * far + (1 - share) / 45)]
    mixed = max(shares) * far + (1 - max(shares)) / 45
    best = min(problem.constant_loss, float((problem.weighted_loss * mixed).sum()))
    assert mechanism.attrs["objective"] <= best * (1 + 1e-9)
