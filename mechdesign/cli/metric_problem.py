"""The problem of `mechdesign audit --metric euclidean` or `discrete`, with a uniform prior."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from mechdesign.base.numbers import real_number
from mechdesign.errors import InputError
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import named_loss
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Discrete, Euclidean
from mechdesign.problem.places import read_places
from mechdesign.problem.priors import uniform
from mechdesign.problem.problem import DesignProblem

SETTINGS = {
    "euclidean": ("epsilon", "unit", "grid", "cell", "places", "reports", "loss"),
    "discrete": ("epsilon", "loss"),
}  # metric: its parameters


def named_problem(
    metric: str, parameters: Mapping[str, str], *, secrets: int, columns: Columns = None
) -> DesignProblem:
    """The problem of a metric with a uniform prior, for a table of `secrets` rows."""
    # euclidean: epsilon (nats per unit), unit, loss (squared by default), and either grid (AxB, AxBxC or A cells, the
    # last axis fastest) with cell, or places and reports (CSV files). discrete: epsilon (nats), loss (default
    # zero-one).
    if metric not in SETTINGS:
        remedy = "use one of " + ", ".join(SETTINGS)
        raise InputError("unknown metric", field="metric", value=metric, remedy=remedy)
    claim: Metric
    if metric == "discrete":
        reports = domain = Domain.nodes(secrets)
        claim, loss = Discrete(epsilon=_number(parameters, "epsilon")), "zero-one"
    else:
        unit = _parameter(parameters, "unit")
        reports = domain = _domain(parameters, unit, secrets, columns)
        if "reports" in parameters:
            reports = Domain.points_at(read_places(parameters["reports"], columns=columns), unit=unit)
        claim, loss = Euclidean(epsilon=_number(parameters, "epsilon"), unit=unit), "squared"
    return DesignProblem(
        domain=domain,
        metric=claim,
        prior=uniform(domain),
        loss=named_loss(parameters.get("loss", loss)),
        reports=reports,
        name=metric,
        parameters=parameters,
    )


def _domain(parameters: Mapping[str, str], unit: str, secrets: int, columns: Columns) -> Domain:
    options = {"grid", "cell", "places"} & set(parameters)
    if options == {"places"}:
        return Domain.points_at(read_places(parameters["places"], columns=columns), unit=unit)
    if options != {"grid", "cell"}:
        message = "the metric needs the places of the secrets: pass either --grid AxB --cell H or --places FILE.csv"
        raise InputError(message, field="grid" if options != {"grid"} else "cell", value=", ".join(parameters))
    grid = parameters["grid"]
    # Nine digits an axis: more would only fail later, for lack of memory.
    if re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9}){0,2}", grid) is None:
        raise InputError("must be cells per axis, such as 30x30", field="grid", value=grid)
    shape = [int(count) for count in grid.split("x")]
    if math.prod(shape) > max(secrets, 1):
        raise InputError(f"has {math.prod(shape)} cells, but the table has {secrets} rows", field="grid", value=grid)
    return Domain.grid(shape, cell=_number(parameters, "cell"), unit=unit)


def _parameter(parameters: Mapping[str, str], name: str) -> str:
    if name not in parameters:
        raise InputError(f"the metric needs --{name}", field=name, value="none")
    return parameters[name]


def _number(parameters: Mapping[str, str], name: str) -> float:
    word = _parameter(parameters, name)
    try:
        return real_number(word)
    except ValueError as error:
        raise InputError(str(error), field=name, value=word) from error
