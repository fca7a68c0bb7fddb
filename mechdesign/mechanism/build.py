"""Build the Dataset of a table from a problem, its certified integers, and further results of the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arrays import AnyArray, Masses, Matrix, Vector
from mechdesign.mechanism.certificate import max_log_ratio, violations
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.mechanism_file import COST, claim_sentence
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.mechanism.schema import TABLE, TABLE_SCHEMA, coordinates
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.position_loss import claim_cost
from mechdesign.problem.problem import DesignProblem

_PACKAGES = ("mechdesign", "numpy", "scipy", "highspy", "cvxpy", "xarray")


@dataclass(frozen=True, kw_only=True, eq=False)
class Extras:
    """Further results of a program."""

    # The claim is `scale` times the problem's metric. Arrays: dual (n,), multipliers of the row sums; multipliers (k,),
    # of the side rows; row_variables by name, the rows of limits that their last ones belong to. tree (m, n) proves the
    # bound. With `positions` the claim is between positions, at the problem's metric, and `scale` is that of the rows.

    scale: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claimed_epsilon: float | None = None
    dual: Vector | None = None
    lower_bound: float | None = None
    stopped: str | None = None
    reports: Domain | None = None
    multipliers: Vector | None = None
    tree: NDArray[np.uint16] | None = None
    row_variables: Mapping[str, AnyArray] | None = None
    attributes: Mapping[str, str | float] = field(default_factory=dict)
    positions: PositionClaim | None = None


PLAIN = Extras()  # a table at the claim itself


def build_dataset(problem: DesignProblem, mass: Masses, *, program: str, extras: Extras = PLAIN) -> xr.Dataset:
    """The sealed Dataset of integers (n, m) that are certified for `extras.scale` times the problem's metric."""
    metric, edges = problem.metric, problem.edges
    if extras.scale != 1:
        metric = extras.scale * problem.metric
        edges = metric.edges(problem.domain)
    reports = extras.reports or problem.reports
    loss = problem.loss_matrix
    if extras.reports is not None:
        loss = problem.loss.matrix(problem.domain, reports)
    attrs = {
        "schema": TABLE,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps(
            {"problem_parameters": problem.storable_parameters, **extras.parameters}, sort_keys=True
        ),
        "domain": problem.domain.describe_json(),
        "metric": json.dumps(metric.describe(), sort_keys=True),
        "claim": claim_sentence(metric, problem.domain, edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": _expected_loss(problem, mass, loss, reports, extras.positions),
        "scale": float(extras.scale),
        "ratio": _ratio(problem, mass, edges, extras.scale),
        "versions": versions(),
    }
    places = coordinates("secret", problem.domain) | coordinates("report", reports)
    if reports.labels != problem.domain.labels:
        attrs["reports"] = reports.describe_json()
    dataset = xr.Dataset(
        _variables(problem, mass, edges, loss, extras),
        coords=places,
        attrs=attrs | _optional_attributes(problem, extras),
    )
    return seal(dataset)


def _variables(
    problem: DesignProblem, mass: Masses, edges: Edges, loss: Matrix, extras: Extras
) -> dict[str, tuple[Any, ...]]:
    domain, loss_unit = problem.domain, problem.loss_unit
    variables: dict[str, tuple[Any, ...]] = {
        "mass": (("secret", "report"), mass, {"units": "2^-62"}),
        "edge_tail": ("edge", edges.tail.astype(np.int64)),
        "edge_head": ("edge", edges.head.astype(np.int64)),
        "edge_length": ("edge", edges.length.copy(), {"units": "nats"}),
        "prior": ("secret", problem.prior_array.copy(), {"units": "1"}),
    }
    level = problem.metric.level_at(domain)
    if level is not None:
        variables["level"] = ("secret", level, {"units": f"nats per {domain.unit}"})
    if extras.dual is not None:
        variables["dual"] = ("secret", np.array(extras.dual, float), {"units": loss_unit})
    # The file lists scaled lengths: those of the problem cannot be rebuilt from them exactly.
    if extras.scale != 1 and problem.metric.uses_stored_edges:
        unscaled = replace(problem.metric, scale=1.0).edges(domain)
        variables["problem_length"] = ("edge", unscaled.length.copy(), {"units": "nats"})
    if extras.multipliers is not None:
        variables["multiplier"] = ("side_row", np.array(extras.multipliers, float))
    if extras.tree is not None:
        variables["tree"] = (("report", "secret"), extras.tree.copy())
    for name, rows in (extras.row_variables or {}).items():
        variables[name] = (TABLE_SCHEMA.variables[name].dims, rows.copy())
    if problem.loss.tabled:
        variables["loss_table"] = (("secret", "report"), loss.copy(), {"units": loss_unit})
    if extras.positions is not None:
        variables |= extras.positions.variables(domain)
    return variables


def _optional_attributes(problem: DesignProblem, extras: Extras) -> dict[str, str | float]:
    attrs: dict[str, str | float] = {}
    if extras.lower_bound is not None:
        attrs["lower_bound"] = extras.lower_bound
    if extras.claimed_epsilon is not None:
        attrs["claimed_epsilon"] = extras.claimed_epsilon
    if extras.stopped is not None:
        attrs["stopped"] = extras.stopped
    if extras.scale != 1:
        attrs["problem_metric"] = json.dumps(problem.metric.describe(), sort_keys=True)
    if extras.positions is not None:
        attrs |= extras.positions.attributes(problem.metric, problem.domain)
    return attrs | dict(extras.attributes)


def _expected_loss(
    problem: DesignProblem,
    mass: Masses,
    loss: Matrix,
    reports: Domain,
    positions: PositionClaim | None,
) -> float:
    around = None if positions is None else positions.around
    return total_cost(mass, claim_cost(problem.loss, loss, problem.prior_array, problem.domain, reports, around))


def _ratio(problem: DesignProblem, mass: Masses, edges: Edges, scale: float) -> float:
    value = max_log_ratio(mass, problem.edges).value
    # Where the integers are at the claim the quotient of logarithms may round to above 1.
    if value > 1 and scale == 1 and violations(mass, edges) == 0:
        return 1.0
    return value


@cache
def versions() -> str:
    """The versions of the packages that figures depend on, as JSON."""
    return json.dumps({name: _version(name) for name in _PACKAGES}, sort_keys=True)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "source"
