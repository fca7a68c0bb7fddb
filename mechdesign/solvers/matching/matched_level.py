"""Match one true level: the eps at which the largest log-ratio of a family per unit of distance is the one asked.

    largest eps > 0  with  ln P_eps(y|u) - ln P_eps(y|u') <= level |u - u'|   for all secrets u, u' and reports y

Mechanisms of different kinds are then equally private for the Euclidean metric, whatever they claim: where mechanisms
are matched by distance (paper 001, section III) their levels differ by an order of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.errors import InputError
from mechdesign.mechanism.table.double_certificate import worst_ratio
from mechdesign.programs.matching.matched_distance import Family, MatchedDistance, family_of
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.matching.matched_distance import Matched

ACCURACY = 1e-8  # of ln eps
_STEP = 2.0
_MOST = 60  # steps of a bracket


@asked
def match_smallest_epsilon(
    problem: DesignProblem,
    family: str | Family | Callable[[DesignProblem, float], NDArray[np.float64]],
    level: float,
) -> Matched:
    """The eps at which a family has the true level `level`, in nats per unit of Euclidean distance, over all pairs.

    family: as in `match_distance`; its true level rises with eps.
    Returns: eps to a relative 1e-8 with the expected distance it gives.
    Raises: InputError for a level that is not positive and finite, or that the family does not have.
    Cost: some ten tables and their ratios over all pairs: 20 s for 900 places on a grid.
    """
    check_epsilon(level, "level")
    program = MatchedDistance(problem=problem, family=family_of(family), distance=1.0)
    edges = Euclidean(epsilon=1.0, unit=problem.domain.unit).edges(problem.domain)

    def excess(log_epsilon: float) -> float:
        table = np.asarray(program.family.table(problem, math.exp(log_epsilon)), float)
        return math.log(worst_ratio(table, edges).finite / level)

    start = math.log(level * float(edges.length.min()) if program.family.nats else level)
    found = _root(excess, start)
    if found is None:
        raise InputError(
            f"{program.family.name} has no such true level",
            field="level",
            value=level,
            remedy="use a level whose inverse lies between the size of a cell and that of the domain",
        )
    epsilon = math.exp(found)
    return Matched(
        family=program.family.name,
        epsilon=epsilon,
        unit=program.unit,
        distance=program.expected_distance(epsilon),
    )


def _root(excess: Callable[[float], float], start: float) -> float | None:
    """The root of an increasing function near `start`, within `ACCURACY`; None where steps do not bracket it."""
    at = excess(start)
    if abs(at) <= ACCURACY:
        return start
    low = high = start
    for _ in range(_MOST):
        if at > 0:
            high, low = low, low - math.log(_STEP)
            if excess(low) <= 0:
                return float(brentq(excess, low, high, xtol=ACCURACY))
        else:
            low, high = high, high + math.log(_STEP)
            if excess(high) >= 0:
                return float(brentq(excess, low, high, xtol=ACCURACY))
    return None
