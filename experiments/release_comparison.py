"""The optimal release of a query beside smooth sensitivity and its baselines, on one problem and one grid of
outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from experiments.release_queries import Array, ReleaseQuery
from experiments.release_study import METHODS, SHARE, user_errors
from mechdesign.closed_forms.mechanisms import constant, release
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism, level_or_default
from mechdesign.closed_forms.noise.laws import StudentT
from mechdesign.errors import UnsuitableError
from mechdesign.output.tables.compare import AT_CLAIM
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.solve import solve
from mechdesign.utility.loss.remap import remapped_loss
from mechdesign.utility.release_error import error_of_mean, release_bias

_LAW = StudentT(3)


def release_mechanisms(
    problem: DesignProblem, query: ReleaseQuery, *, span: float, gap: float = 1e-3
) -> dict[str, xr.Dataset]:
    """The optimal release and its baselines by name, each certified at its true multiple of the metric.

    Parameters: problem, a release problem on a square grid whose values are those of the query; span, the distance at
    which local privacy is as strict as the metric, in the unit of the secrets; gap, of the optimal release.
    smooth and smooth_tight: T_3 with gamma = eps / 9, as `experiments.release_study`.
    Raises: UnsuitableError where query and secrets have another number of axes, or the metric no level; InputError.
    """
    places = places_of(problem, query)
    level = level_or_default(problem, None)
    values, outputs = query.values(places), problem.reports.points[:, 0]
    bound, gamma = query.sensitivity(places, level * SHARE), level * SHARE
    tables = {
        "lipschitz": release.lipschitz_table(values, outputs, constant=query.constant, epsilon=level),
        "input_perturbation": release.input_perturbation_table(problem.domain, values, outputs, epsilon=level),
        "ldp": release.local_table(values, outputs, span=1.0, epsilon=level * span),
    }
    return {
        "optimal": solve(Optimal(problem=problem), gap=gap),
        "smooth": release.mechanism(problem, values, bound, law=_LAW, gamma=gamma, tight=False),
        "smooth_tight": release.mechanism(problem, values, bound, law=_LAW, gamma=gamma, tight=True),
        **{
            name: closed_form_mechanism(problem, table, name=name, claimed_epsilon=level)
            for name, table in tables.items()
        },
        "constant": constant.mechanism(problem),
    }


def release_rows(
    made: Mapping[str, xr.Dataset],
    problem: DesignProblem,
    query: ReleaseQuery,
    *,
    span: float,
    users: Sequence[int] = (1, 100, 1_000_000),
    population: ArrayLike | None = None,
) -> pd.DataFrame:
    """A line per mechanism, errors in squared units of the outputs.

    Columns: mechanism; error, of one report under the prior; lower_bound of that error under the claim of the problem,
    empty for a mechanism that is not private as claimed; remapped, the error after the best post-processing of single
    reports; smallest_epsilon, nats per unit, the certified level; bias, of a report under the prior, in outputs;
    mean_of_n, the error of the mean of n users of the population (n,), by default the prior; continuous, that of the
    most users for the mechanism without a grid of outputs, which moves noise beyond the last outputs onto them and
    makes unbiased noise biased; empty for optimal and constant.
    """
    places, level = places_of(problem, query), level_or_default(problem, None)
    values = query.values(places)
    weights = problem.prior_array if population is None else check_prior(population, problem.domain.size)

    def continuous(name: str) -> float | None:
        if name not in METHODS:
            return None
        variance, bias = user_errors(name, query, places, level, span)
        average = float(weights @ bias)
        return (float(weights @ (variance + bias**2)) - average**2) / users[-1] + average**2

    lines = []
    for name, mechanism in made.items():
        effective = float(mechanism.attrs["effective_epsilon"])
        lines.append(
            {
                "mechanism": name,
                "error": float(mechanism.attrs["expected_loss"]),
                "lower_bound": made["optimal"].attrs["lower_bound"] if effective <= AT_CLAIM else None,
                "remapped": remapped_loss(mechanism),
                "smallest_epsilon": effective * level,
                "multiple": effective,
                "bias": float(mechanism["prior"].values @ release_bias(mechanism, values)),
                **{f"mean_of_{n}": error_of_mean(mechanism, values, n, population=weights) for n in users},
                "continuous": continuous(name),
            }
        )
    return pd.DataFrame(lines)


def places_of(problem: DesignProblem, query: ReleaseQuery) -> Array:
    """The secrets in the shape that the query takes. Raises: UnsuitableError for another number of axes."""
    if problem.domain.dimension != query.axes:
        raise UnsuitableError(
            f"the query is of {query.axes} axes",
            field="domain",
            value=f"{problem.domain.dimension} axes",
            remedy="use secrets with as many axes",
        )
    return problem.domain.points[:, 0] if query.axes == 1 else problem.domain.points
