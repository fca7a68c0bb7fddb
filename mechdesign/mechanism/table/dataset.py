"""The mechanism Dataset: one integer table, the claim it satisfies, and what it is for. Made only here.

| variable | dims | meaning |
|---|---|---|
| mass | secret, report | uint64, every entry >= 1, rows sum to exactly 2^62; probability = mass / 2^62 |
| edge_tail, edge_head, edge_length | edge | the claim: both ways, mass[tail, y] <= e^{length} mass[head, y] |
| prior, level, dual | secret | prior; eps(u), where there is one; multipliers of the row sums, where optimised |
| multiplier | side_row | multipliers of the side rows, where the program has some |
| loss_table | secret, report | only where the loss is a given table |
| around_row, corner_level or quarter_level | see positions/claim.py | only where positions are drawn |
| problem_length | edge | only where a graph is claimed at another scale than 1: its own lengths, before that |
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.errors import DesignError
from mechdesign.mechanism.positions.claim import RULE, position_sentence
from mechdesign.mechanism.positions.patches import Patches
from mechdesign.mechanism.schema import TABLE
from mechdesign.mechanism.table.certificate import ROW_SUM, max_log_ratio, violations
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import AXES, Domain

COST = "one report; k reports cost k times the epsilon"
RESOLUTION = 1e-9  # of the loss of the best constant report: gaps are not measured finer
_STEP = 2.0**-40  # relative; a scale is raised by this, then twice this and so on, until the integers certify
_VERSIONED = ("mechdesign", "numpy", "scipy", "highspy", "cvxpy", "xarray")


def make_mechanism(
    problem: DesignProblem,
    mass: NDArray[np.uint64],
    *,
    program: str,
    scale: float = 1.0,
    parameters: Mapping[str, Any] | None = None,
    claimed_epsilon: float | None = None,
    dual: NDArray[np.float64] | None = None,
    lower_bound: float | None = None,
    stopped: str | None = None,
    reports: Domain | None = None,
    multipliers: NDArray[np.float64] | None = None,
    attributes: Mapping[str, str | float] | None = None,
    positions: Patches | None = None,
) -> xr.Dataset:
    """The Dataset of a mechanism for `problem` that claims `scale` times the problem's metric.

    Parameters: mass (n, m), certified for scale * metric; program, what made it; parameters, kept as JSON beside
    the problem's parameters; claimed_epsilon, the nominal parameter of a closed form; dual (n,), lower_bound and
    stopped of an optimised one; reports, where they differ from the problem's; multipliers (k,) of the side rows;
    attributes, what else to keep: objective, where it is not the expected loss; positions, without breaches at the
    problem's metric, where any position is to be drawn: `scale` is then that of the rows, by `certified_scale`.
    """
    metric: Metric = problem.metric if scale == 1 else scale * problem.metric
    edges = problem.edges if scale == 1 else metric.edges(problem.domain)
    places = reports or problem.reports
    loss = problem.loss_matrix if reports is None else problem.loss.matrix(problem.domain, places)
    at = max_log_ratio(mass, problem.edges)
    value = min(at.value, 1.0) if scale == 1 and violations(mass, edges) == 0 else at.value
    domain = problem.domain
    variables: dict[str, tuple[Any, ...]] = {
        "mass": (("secret", "report"), mass, {"units": "2^-62"}),
        "edge_tail": ("edge", edges.tail.astype(np.int64)),
        "edge_head": ("edge", edges.head.astype(np.int64)),
        "edge_length": ("edge", edges.length, {"units": "nats"}),
        "prior": ("secret", problem.prior_array, {"units": "1"}),
    }
    level = problem.metric.level_at(domain)
    if level is not None:
        variables["level"] = ("secret", level, {"units": f"nats per {domain.unit}"})
    if dual is not None:
        variables["dual"] = ("secret", np.asarray(dual, float), {"units": problem.loss.unit(domain.unit)})
    if scale != 1 and problem.metric.listed:
        plain = replace(problem.metric, scale=1.0).edges(domain)
        variables["problem_length"] = ("edge", plain.length, {"units": "nats"})
    if multipliers is not None:
        variables["multiplier"] = ("side_row", np.asarray(multipliers, float))
    if problem.loss.tabled:
        variables["loss_table"] = (("secret", "report"), loss, {"units": problem.loss.unit(domain.unit)})
    if positions is not None:
        level_unit = {"units": f"nats per {domain.unit}"}
        variables["around_row"] = (("secret", "around"), positions.around)
        dim = {4: "corner", 16: "quarter_corner"}[positions.corner_level.shape[1]]
        name = {"corner": "corner_level", "quarter_corner": "quarter_level"}[dim]
        variables[name] = (("secret", dim), positions.corner_level, level_unit)
    attrs: dict[str, str | int | float] = {
        "schema": TABLE,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps({"knobs": dict(problem.parameters), **(parameters or {})}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(metric.describe(), sort_keys=True),
        "claim": claim_sentence(metric, domain, edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": expected_loss(mass, problem.prior_array, loss),
        "multiple": float(scale),
        "effective_epsilon": value,
        "versions": versions(),
    }
    optional = {"lower_bound": lower_bound, "claimed_epsilon": claimed_epsilon, "stopped": stopped}
    attrs |= {name: given for name, given in optional.items() if given is not None}
    if scale != 1:
        attrs["problem_metric"] = json.dumps(problem.metric.describe(), sort_keys=True)
    if positions is not None:
        attrs |= {"position_rule": RULE, "position_claim": position_sentence(problem.metric, domain, positions)}
    attrs |= attributes or {}
    placed = coordinates("secret", domain) | coordinates("report", places)
    return seal(xr.Dataset(variables, coords=placed, attrs=attrs))


def claim_sentence(metric: Metric, domain: Domain, edges: Edges) -> str:
    """The claim in one sentence, rebuilt at verification: another metric, level map or grid reads differently.

    The digits after the number of edges are a fingerprint of the list: any other length reads differently too. The
    lengths that a graph lists are multiplied already. A plane is spoken of for grids: between points it only says where
    they are.
    """
    listed = metric.scale == 1 or metric.listed
    times = "" if listed else f"{float(metric.scale)!r} times "
    where = "places" if domain.shape is None else f"cells of a {' x '.join(map(str, domain.shape))} grid"
    if domain.plane is not None and domain.shape is not None:
        where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.reach)}"
    return (
        f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {domain.size} secrets "
        f"({where}), where d is {times}{metric.claim(domain)}; checked on {len(edges.tail)} edges "
        f"(list {_fingerprint(edges)}). "
        "k reports cost k times as much."
    )


def expected_loss(mass: NDArray[np.uint64], prior: NDArray[np.float64], loss: NDArray[np.float64]) -> float:
    """Sum over u, y of prior(u) mass(u, y) 2^-62 loss(u, y), in loss units, in floating point."""
    return math.fsum(p * float(row.astype(float) @ l) for p, row, l in zip(prior, mass, loss, strict=True)) / ROW_SUM


def total_cost(mass: NDArray[np.uint64], cost: NDArray[np.float64]) -> float:
    """Sum over u, y of mass(u, y) 2^-62 cost(u, y), rounded; for cost = prior times loss, the expected loss."""
    return math.fsum(float(row.astype(float) @ c) for row, c in zip(mass, cost, strict=True)) / ROW_SUM


def relative_gap(loss: float, bound: float, scale: float) -> float:
    """(loss - bound) / loss. Under a loss below 1e-9 of `scale`, that of the best constant report, (loss - bound) is
    measured against that instead: a table cannot resolve less.
    """
    return (loss - bound) / max(loss, RESOLUTION * scale)


def certified_scale(problem: DesignProblem, mass: NDArray[np.uint64]) -> float:
    """The smallest scale of the problem's metric that the integers (n, m) are certified for.

    Smallest to 2^-40 (to twice the rounding of the logarithms where lengths are under 1e-4 nats).
    Raises: DesignError where none holds.
    """
    scale, step = max(max_log_ratio(mass, problem.edges).value, 0.0), _STEP
    while math.isfinite(scale):
        if violations(mass, (scale * problem.metric).edges(problem.domain)) == 0:
            return scale
        scale, step = scale * (1 + step) + math.ulp(0.0), 2 * step
    raise DesignError("no multiple of the metric holds", field="table", remedy="report this mechanism")


@asked
def probabilities(mechanism: xr.Dataset) -> xr.DataArray:
    """P(y|u) = mass / 2^62 in floating point, dims (secret, report): for looking at, never for certifying."""
    return (mechanism["mass"] / float(ROW_SUM)).rename("probability").assign_attrs(units="1")


def stored_edges(mechanism: xr.Dataset) -> Edges:
    """The edges of the claim as the file lists them; `verify` compares them with those of the metric."""
    return Edges(
        tail=mechanism["edge_tail"].values, head=mechanism["edge_head"].values, length=mechanism["edge_length"].values
    )


def stored_points(mechanism: xr.Dataset, dim: str) -> NDArray[np.float64]:
    """Coordinates (n, k) of the secrets or reports of a mechanism."""
    names = [f"{dim}_{axis}" for axis in AXES if f"{dim}_{axis}" in mechanism.coords]
    return np.column_stack([mechanism[name].values for name in names])


def seal(mechanism: xr.Dataset) -> xr.Dataset:
    """The mechanism with its `sha256` attribute set to `checksum`."""
    return mechanism.assign_attrs(sha256=checksum(mechanism))


def checksum(mechanism: xr.Dataset) -> str:
    """SHA-256 over every variable and attribute, in a canonical order.

    Variables by name: name, dims, dtype, shape, little-endian bytes, attributes by name; then the global attributes by
    name, without `sha256` itself. Numbers enter as exact hexadecimal floats or decimal integers.
    """
    digest = hashlib.sha256()

    def put(*parts: object) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode()
            digest.update(len(data).to_bytes(8, "little") + data)

    for name in sorted(map(str, mechanism.variables)):
        variable = mechanism.variables[name]
        values = np.ascontiguousarray(variable.values)
        put("variable", name, *variable.dims, values.dtype.str.lstrip("<>|="), values.shape)
        put(values.astype(values.dtype.newbyteorder("<")).tobytes(), name in mechanism.coords)
        for key in sorted(map(str, variable.attrs)):
            put("attribute", key, _canonical(variable.attrs[key]))
    for key in sorted(map(str, mechanism.attrs)):
        if key != "sha256":
            put("global", key, _canonical(mechanism.attrs[key]))
    return digest.hexdigest()


def checksum_faults(mechanism: xr.Dataset) -> list[str]:
    """What is wrong with the checksum of a mechanism."""
    return [] if mechanism.attrs["sha256"] == checksum(mechanism) else ["sha256: does not match the content"]


def _canonical(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return f"bool {bool(value)}"
    if isinstance(value, (int, np.integer)):
        return f"int {int(value)}"
    if isinstance(value, (float, np.floating)):
        return f"float {float(value).hex()}"
    return f"{type(value).__name__} {value}"


def _fingerprint(edges: Edges) -> str:
    """Twelve hexadecimal digits of the SHA-256 of an edge list."""
    digest = hashlib.sha256()
    for part, dtype in ((edges.tail, "<i8"), (edges.head, "<i8"), (edges.length, "<f8")):
        digest.update(np.ascontiguousarray(part, dtype).tobytes())
    return digest.hexdigest()[:12]


def coordinates(dim: str, domain: Domain) -> dict[str, tuple[str, NDArray[np.float64], dict[str, str]]]:
    """The coordinates of a Dataset for the places of `domain`: dim_x, dim_y, dim_z over `dim`, with units."""
    return {
        f"{dim}_{axis}": (dim, np.ascontiguousarray(values), {"units": domain.unit})
        for axis, values in zip(AXES, domain.points.T, strict=False)
    }


@cache
def versions() -> str:
    """The versions of the packages that figures depend on, as JSON."""
    return json.dumps({name: _version(name) for name in _VERSIONED}, sort_keys=True)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "source"
