"""Mechanisms tuned to one expected distance, for `compare`: how Alvim et al. 2018 sets different kinds of eps side by
side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import xarray as xr

from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.mechanism.certificate import max_log_ratio
from mechdesign.problem.losses import check_distance
from mechdesign.problem.metric import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.matched_distance import FAMILIES
from mechdesign.programs.matched_optimal import MatchedOptimal, require_euclidean
from mechdesign.solvers.matched import match_distance
from mechdesign.solvers.solve import solve


def matched_makers(
    problem: DesignProblem, *, gap: float = 1e-3, time_limit: float = float("inf")
) -> dict[str, Callable[[], xr.Dataset]]:
    """What `compare` runs where the problem has a `matched_distance`, by row name."""
    require_euclidean(problem)
    makers: dict[str, Callable[[], xr.Dataset]] = {name: partial(matched_family, problem, name) for name in FAMILIES}
    return makers | {"optimal": partial(solve, MatchedOptimal(problem=problem), gap=gap, time_limit=time_limit)}


def matched_family(problem: DesignProblem, name: str) -> xr.Dataset:
    """The mechanism of a ready family at the problem's `matched_distance`."""
    distance = check_distance(problem.matched_distance)
    epsilon = match_distance(problem, name, distance).epsilon
    return family_mechanism(problem, name, epsilon, parameters={"matched_distance": distance})


def family_mechanism(
    problem: DesignProblem, name: str, epsilon: float, *, parameters: Mapping[str, float] | None = None
) -> xr.Dataset:
    """The mechanism of a ready family at `epsilon`, over the metric that the family claims there."""
    family = FAMILIES[name]
    own = replace(problem, metric=family.metric(problem.domain, epsilon))
    table = family.table(own, epsilon)
    return closed_form_mechanism(own, table, name=name, claimed_epsilon=epsilon, parameters=parameters)


def effective_epsilon(mechanism: xr.Dataset, problem: DesignProblem) -> float | None:
    """Largest log-ratio of a mechanism per unit of Euclidean distance over all pairs of secrets, in nats per unit.

    None where the metric of `problem` is not Euclidean. Cost: O(e m) for the e pairs that imply all others.
    """
    if not isinstance(problem.metric, Euclidean):
        return None
    level = problem.metric.smallest_level
    return max_log_ratio(mechanism["mass"].values, problem.edges).value * level
