"""Settings named on the command line instead of by a problem file: a metric, its eps and the places."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from mechdesign.base.numerals import real_number
from mechdesign.errors import InputError
from mechdesign.setting.metric.discrete import Discrete
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import named_loss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.readers.table_files import read_places
from mechdesign.setting.space.domain import Domain

SETTINGS = {
    "euclidean": ("epsilon", "unit", "grid", "cell", "places", "reports", "loss"),
    "discrete": ("epsilon", "loss"),
}  # metric: its parameters


def named_problem(metric: str, parameters: dict[str, str], *, secrets: int) -> DesignProblem:
    """The problem of a metric with a uniform prior, for a table of `secrets` rows.

    euclidean: epsilon in nats per unit, unit, and either grid (AxB, AxBxC or A cells, the last axis fastest) with the
    cell size in that unit, or places, a CSV file with the coordinates of the secrets; reports, one with those of the
    reports, which are the secrets by default; loss, squared by default.
    discrete: epsilon in nats; loss, zero-one by default, with report k standing for secret k.
    Raises: InputError for a parameter that is missing, unknown, of another type or contradicts another one.
    """
    if metric not in SETTINGS:
        raise InputError(
            "unknown metric",
            field="metric",
            value=metric,
            remedy="use one of " + ", ".join(SETTINGS) + ", or --problem",
        )
    epsilon = _number("epsilon", _needed(parameters, "epsilon", metric))
    domain, claimed, reports, usual = _STATED[metric](parameters, epsilon, secrets)
    return DesignProblem(
        domain=domain,
        metric=claimed,
        prior=priors.uniform(domain),
        loss=named_loss(parameters.get("loss", usual)),
        reports=reports,
        name=metric,
        parameters=parameters,
    )


def _discrete(parameters: dict[str, str], epsilon: float, secrets: int) -> _Stated:
    domain = Domain.nodes(secrets)
    return domain, Discrete(epsilon=epsilon), domain, "zero-one"


def _euclidean(parameters: dict[str, str], epsilon: float, secrets: int) -> _Stated:
    unit = _needed(parameters, "unit", "euclidean")
    domain = _domain(parameters, unit, secrets)
    reports = Domain.points_at(read_places(parameters["reports"]), unit=unit) if "reports" in parameters else domain
    return domain, Euclidean(epsilon=epsilon, unit=unit), reports, "squared"


_Stated = tuple[Domain, Metric, Domain, str]  # secrets, metric, reports, name of the usual loss
_STATED: dict[str, Callable[[dict[str, str], float, int], _Stated]] = {"euclidean": _euclidean, "discrete": _discrete}


def _domain(parameters: dict[str, str], unit: str, secrets: int) -> Domain:
    if ("grid" in parameters) == ("places" in parameters):
        raise InputError(
            "the Euclidean metric needs to know where the secrets are",
            field="grid",
            value=", ".join(parameters),
            remedy="pass either --grid AxB --cell H or --places FILE.csv",
        )
    if "places" in parameters:
        if "cell" in parameters:
            raise InputError("belongs to --grid", field="cell", value=parameters["cell"], remedy="leave it out")
        return Domain.points_at(read_places(parameters["places"]), unit=unit)
    if re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9}){0,2}", parameters["grid"]) is None:
        raise InputError("must be cells per axis", field="grid", value=parameters["grid"], remedy="write 30x30")
    cell = _number("cell", _needed(parameters, "cell", "euclidean"))
    shape = [int(count) for count in parameters["grid"].split("x")]
    if math.prod(shape) > max(secrets, 1):
        raise InputError(
            f"is of {math.prod(shape)} cells, for a table of {secrets} rows",
            field="grid",
            value=parameters["grid"],
            remedy="give as many cells as the table has rows",
        )
    return Domain.grid(shape, cell=cell, unit=unit)


def _needed(parameters: dict[str, str], name: str, metric: str) -> str:
    if name not in parameters:
        raise InputError(f"the {metric} metric needs it", field=name, value="none", remedy=f"pass --{name}")
    return parameters[name]


def _number(name: str, word: str) -> float:
    try:
        return real_number(word)
    except ValueError as error:
        raise InputError(str(error), field=name, value=word, remedy="write decimal points") from error
