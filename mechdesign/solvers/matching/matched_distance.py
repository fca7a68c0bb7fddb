"""Match one expected distance: the eps of a family, by bracketing and Brent's method on the logarithm of eps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.programs.matching.matched_distance import Family, MatchedDistance, family_of
from mechdesign.setting.problems.problem import DesignProblem

ACCURACY = 1e-12  # of ln eps; asked is 1e-10 of eps
_STEP = math.log(2)  # by which a bracket grows in ln eps


@dataclass(frozen=True, kw_only=True)
class Matched(Shown):
    """family; epsilon, relative accuracy 1e-10, in `unit` ("nats", or "nats per" unit of length); distance, what it
    gives under the prior, in units of length.
    """

    family: str
    epsilon: float
    unit: str
    distance: float


@asked
def match_distance(
    problem: DesignProblem,
    family: str | Family | Callable[[DesignProblem, float], NDArray[np.float64]],
    distance: float,
) -> Matched:
    """The eps at which a family has this expected distance (units) under the prior of `problem`.

    family: randomized_response, geometric_normalised, geometric_clamped, laplacian_normalised, laplacian_clamped, a
    `Family`, or a function of (problem, eps in nats per unit) that gives the table (n, m).
    Raises: InputError (distance) for a distance that is not positive, or that the family does not reach, with the range
    that it does reach; InputError (family); UnsuitableError off square grids where the family needs one.
    Cost: some ten tables.
    """
    return solve_matched_distance(MatchedDistance(problem=problem, family=family_of(family), distance=distance))


def solve_matched_distance(program: MatchedDistance) -> Matched:
    """Solve the program; see `match_distance`."""
    least, middle, most = map(math.log, program.epsilons)

    def excess(log_epsilon: float) -> float:
        return program.expected_distance(math.exp(log_epsilon)) - program.distance

    low = high = middle
    while excess(high) > 0:
        if high >= most:
            raise _unreachable(program)
        low, high = high, min(high + _STEP, most)
    while excess(low) < 0:
        if low <= least:
            raise _unreachable(program)
        low, high = max(low - _STEP, least), low
    epsilon = math.exp(brentq(excess, low, high, xtol=ACCURACY) if low < high else low)
    return Matched(
        family=program.family.name,
        epsilon=epsilon,
        unit=program.unit,
        distance=program.expected_distance(epsilon),
    )


def _unreachable(program: MatchedDistance) -> InputError:
    nearest, widest = program.reach
    unit = program.problem.domain.unit
    return InputError(
        f"{program.family.name} does not reach this expected distance under this prior",
        field="distance",
        value=program.distance,
        remedy=f"use one between {nearest:.6g} and {widest:.6g} {unit}",
    )
