"""The mechanism Dataset: one integer table, the claim it satisfies, and what it is for. Made only here.

| variable | dims | meaning |
|---|---|---|
| mass | secret, report | uint64, every entry >= 1, rows sum to exactly 2^62; probability = mass / 2^62 |
| edge_tail, edge_head, edge_length | edge | the claim: both ways, mass[tail, y] <= e^{length} mass[head, y] |
| prior, level, dual | secret | prior; eps(u), where there is one; multipliers of the row sums, where optimised |
| multiplier | side_row | multipliers of the side rows, where the program has some |
| cap_report, cap_disc, cap_cells | cap_row, the last by secret | only where posteriors are limited: what the last
multipliers are of; cap_cells where that is by area |
| loss_table | secret, report | only where the loss is a given table |
| around_row, corner_level or quarter_level | see positions/patches.py | only where positions are drawn |
| problem_length | edge | only where a graph is claimed at another scale than 1: its own lengths, before that |

The schema says which variables and attributes a mechanism has, and is compared before anything else looks at a file.
`check` reads dtype, dims, sizes, units and place numbers of every variable, and the type of every attribute. What a
schema does not name is refused. Whatever passes fits compiled code: arrays over one dimension are equally long, place
numbers lie inside it, and no dimension has more than 2^31 - 1 entries.

Integers of a file that arithmetic reaches, and why none wraps:

| expression | where | bound |
|---|---|---|
| mass sums | `row_sums_exact` | halves of 32 bits, at most 2^31 of them: under 2^63; compared as Python integers |
| R mass, mass 2^s | `certificate._count` | 128-bit words: R < 2^62, mass < 2^64, 0 <= s <= 61: under 2^126 |
| masses, levels of patches | `positions/cones.py` | said there: under 2^64, of 128-bit products under 2^125 |
| step units, d_e 2^48 | `Factors.spare` | units <= cap, step cap < 2^54; lengths cut at 2^13 nats: under 2^61 |
| E(t), S(u), R_e S(u) | `Factors`, factored/certificate.py | Python integers |
| f + q | `_gather` beside it | f + min(q, cap - f) <= cap <= 65,535 |
| E W in halves | `_row_sums` beside it | 29-bit halves of E <= 2^58, W <= 2^28: 64 products under 2^57 make 2^63 |
| cumulative E W | `FactoredMechanism` | at most 2,000,000 columns, limbs of 43 bits and a carry: under 2^64 |
| A m, 2^33 |s - s'|, 3 d | `devicemap/device_map.py` | A < 2^32, checked by `CompactMap`, m < 2^21: under 2^55 |
| differences added up | `devicemap/files.py` | fewer than 2^24 of 16 bits: under 2^40 |
| W added up | `devicemap/draw.py` | fewer than 2^24 under 2^28: under 2^52 |
| q + units | `maps/integer_metric._search`, `_lower` | cap + longest edge <= 65,535, checked by `IntegerMetric` |
| u n + v | keys of edges and near pairs | u, v < n < 2^31: under 2^62 |
| 2 e, places | compressed rows of 32 bits | at most 2^30 - 1 edges |
| (x - origin) / cell | `Domain.from_description` | compared as doubles before it becomes an integer |
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.validation import validated
from mechdesign.errors import DesignError, InputError, VerificationError
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio, violations
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.metric import Metric
from mechdesign.problem.position_loss import claim_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import words_of

KNOWN = "mechdesign file"  # in the encoding of a Dataset: the name of its contents, and the SHA-256 of its file
NAMED = "sha256"  # the attribute that names the contents of a Dataset in memory
COST = "one report; k reports cost k times the epsilon"
RESOLUTION = 1e-9  # of the loss of the best constant report: gaps are not measured finer
_SPARSE = 20  # times the places: more nodes are no grid's
_STEP = 2.0**-40  # relative; a scale is raised by this, then twice this and so on, until the integers hold
_VERSIONED = ("mechdesign", "numpy", "scipy", "highspy", "cvxpy", "xarray")
TABLE = "mechdesign/mechanism/1"
FACTORED = "mechdesign/factored/1"
MAY_BE_EMPTY = ("side_row",)  # of constraints that are all of the user's own
LARGEST = {"edge": (1 << 30) - 1}  # entries of a dimension; of any other 2^31 - 1


@dataclass(frozen=True, kw_only=True)
class Array:
    """A variable: its dtype and dims; names, the dimension that its entries are place numbers of; coordinate, whether
    it is one.
    """

    dtype: str
    dims: tuple[str, ...]
    optional: bool = False
    names: str | None = None
    coordinate: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a Dataset called `name` holds.

    arrays by name; places, the dimensions with coordinates DIM_x, DIM_y, DIM_z in one unit, as many axes as they have;
    lengths, dimensions of a fixed size; attributes, the types by name, and optional ones; other, what every variable
    that is not named must be, None to refuse it.
    """

    name: str
    arrays: Mapping[str, Array]
    places: tuple[str, ...] = ()
    lengths: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, type]
    optional: Mapping[str, type] = field(default_factory=dict)
    other: Array | None = None

    def array(self, name: str) -> Array | None:
        """What a variable must be; None for one that has no place in the schema."""
        dim, _, axis = name.rpartition("_")
        if dim in self.places and axis in AXES:
            return Array(dtype="float64", dims=(dim,), coordinate=True)
        return self.arrays.get(name, self.other)

    @property
    def dims(self) -> set[str]:
        """Every dimension."""
        arrays = (*self.arrays.values(), self.other)
        return {dim for array in arrays if array is not None for dim in array.dims}.union(self.places)


DESCRIBED = dict.fromkeys(("schema", "problem", "parameters", "domain", "metric", "versions", "sha256"), str)
_SAID = DESCRIBED | {
    "program": str, "claim": str, "cost": str, "loss": str, "expected_loss": float, "scale": float,
    "ratio": float,
}  # fmt: skip

MECHANISM = Schema(
    name=TABLE,
    arrays={
        "mass": Array(dtype="uint64", dims=("secret", "report")),
        "edge_tail": Array(dtype="int64", dims=("edge",), names="secret"),
        "edge_head": Array(dtype="int64", dims=("edge",), names="secret"),
        "edge_length": Array(dtype="float64", dims=("edge",)),
        "prior": Array(dtype="float64", dims=("secret",)),
        "level": Array(dtype="float64", dims=("secret",), optional=True),
        "dual": Array(dtype="float64", dims=("secret",), optional=True),
        "multiplier": Array(dtype="float64", dims=("side_row",), optional=True),
        "cap_report": Array(dtype="int64", dims=("cap_row",), names="report", optional=True),
        "cap_disc": Array(dtype="int64", dims=("cap_row",), optional=True),
        "cap_cells": Array(dtype="float64", dims=("cap_row", "secret"), optional=True),
        "loss_table": Array(dtype="float64", dims=("secret", "report"), optional=True),
        "problem_length": Array(dtype="float64", dims=("edge",), optional=True),
        "around_row": Array(dtype="int64", dims=("secret", "around"), optional=True, names="secret"),
        "corner_level": Array(dtype="float64", dims=("secret", "corner"), optional=True),
        "quarter_level": Array(dtype="float64", dims=("secret", "quarter_corner"), optional=True),
    },
    places=("secret", "report"),
    lengths={"around": 9, "corner": 4, "quarter_corner": 16},
    attributes=_SAID,
    optional={
        "lower_bound": float, "lower_bound_of": str, "objective": float, "objective_of": str,
        "claimed_epsilon": float, "epsilon_lower_bound": float, "stopped": str, "problem_metric": str,
        "position_rule": str, "position_claim": str,
    },
)  # fmt: skip

FACTORS = Schema(
    name=FACTORED,
    arrays={
        "weight": Array(dtype="uint32", dims=("column",)),
        "target": Array(dtype="int64", dims=("column",), names="secret"),
        "remap": Array(dtype="int64", dims=("column",), names="secret", optional=True),
        "first_generator": Array(dtype="int64", dims=("column",), names="generator", optional=True),
        "generator_place": Array(dtype="int64", dims=("generator",), names="place", optional=True),
        "generator_offset": Array(dtype="uint16", dims=("generator",), optional=True),
        "inner": Array(dtype="int64", dims=("secret",), names="place"),
        "edge_tail": Array(dtype="int64", dims=("edge",), names="place"),
        "edge_head": Array(dtype="int64", dims=("edge",), names="place"),
        "edge_units": Array(dtype="uint16", dims=("edge",)),
        "row_sum": Array(dtype="uint64", dims=("secret", "word")),
        "row_loss": Array(dtype="float64", dims=("secret",)),
        "prior": Array(dtype="float64", dims=("secret",)),
        "level": Array(dtype="float64", dims=("secret",), optional=True),
        "excess": Array(dtype="float64", dims=("secret",), optional=True),
        "ring": Array(dtype="int64", dims=("secret",), optional=True),
        "dual": Array(dtype="float64", dims=("secret",), optional=True),
        "claim_tail": Array(dtype="int64", dims=("claimed",), names="secret", optional=True),
        "claim_head": Array(dtype="int64", dims=("claimed",), names="secret", optional=True),
        "claim_length": Array(dtype="float64", dims=("claimed",), optional=True),
    },
    places=("secret", "place"),
    lengths={"word": 2},
    attributes=_SAID | {"step": int, "cap": int},
    optional={"remapped_loss": float, "stopped": str, "lower_bound": float, "bound_reach": float, "bound_core": float},
)

MECHANISMS = {schema.name: schema for schema in (MECHANISM, FACTORS)}


def check(mechanism: xr.Dataset, *schemas: Schema, what: str = "a mechanism") -> Schema:
    """The schema among `schemas` that a Dataset has and satisfies; `what` is what they are called in errors.

    Cost: one look at every place number.
    Raises: VerificationError that names the variable or attribute, what it is and what it should be.
    """
    schema = schema_of(mechanism.attrs, *schemas, what=what)
    for name, kind in schema.attributes.items():
        if name not in mechanism.attrs:
            raise refused("is missing", name, None, kind.__name__)
    for key, value in mechanism.attrs.items():
        _check_attribute(str(key), value, (schema.attributes | schema.optional).get(str(key)))  # type: ignore[operator]
    required = [f"{dim}_x" for dim in schema.places] + [n for n, array in schema.arrays.items() if not array.optional]
    for needed in required:
        if needed not in mechanism.variables:
            raise refused("must be there", needed, "no such variable", "the whole file")
    for key, variable in mechanism.variables.items():
        _check_variable(str(key), variable, schema.array(str(key)), coordinate=key in mechanism.coords)
    for dim, size in mechanism.sizes.items():
        least = schema.lengths.get(str(dim), int(dim not in MAY_BE_EMPTY))
        most = schema.lengths.get(str(dim), LARGEST.get(str(dim), (1 << 31) - 1))
        if not least <= size <= most:
            raise refused("has a size that it cannot have", str(dim), size, f"{least} to {most}")
    # last: only now is it known that the array and the dimension it names places of are there
    for name, array in schema.arrays.items():
        if array.names is not None and name in mechanism.variables:
            values, count = mechanism[name].values, mechanism.sizes[array.names]
            if values.size and (values.min() < 0 or values.max() >= count):
                raise refused("must name places", name, f"{values.min()} to {values.max()}", f"0 to {count - 1}")
    for dim in schema.places:
        _check_places(mechanism, dim)
    return schema


def schema_of(attrs: Mapping[Any, Any], *schemas: Schema, what: str) -> Schema:
    """The schema among these that attributes name. Raises: VerificationError, with the version that wrote the file."""
    name = attrs.get("schema")
    for schema in schemas:
        if schema.name == name:
            return schema
    writer = re.search(r'"mechdesign": "([0-9a-z.+]{1,30})"', str(attrs.get("versions")))
    by = f", written by mechdesign {writer[1]}" if writer else ""
    raise refused(f"not {what} of this schema{by}", "schema", name, " or ".join(known.name for known in schemas))


def _check_attribute(name: str, value: object, kind: type | None) -> None:
    kinds = {str: (str,), int: (int, np.integer), float: (float, np.floating)}
    if kind is None:
        raise refused("is no attribute of this schema", name, value, "no such attribute")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds[kind]):
        raise refused("has another type", name, f"{type(value).__name__} {value!s:.80}", kind.__name__)
    if isinstance(value, str) and not value.isprintable():
        raise refused("has characters that cannot be printed", name, repr(value)[:80], "printable text")


def _check_variable(name: str, variable: xr.Variable, known: Array | None, *, coordinate: bool) -> None:
    if known is None:
        raise refused("is no variable of this schema", name, variable.dims, "no such variable")
    present = f"{variable.dtype} over {variable.dims}, {'a coordinate' if coordinate else 'data'}"
    if (variable.dtype, variable.dims, coordinate) != (np.dtype(known.dtype), known.dims, known.coordinate):
        raise refused(f"must be there as {known.dtype} over {known.dims}", name, present, "the array as it was written")
    units = variable.attrs.get("units", "1")
    if set(variable.attrs) - {"units", "meaning"} or not (isinstance(units, str) and units.isprintable()):
        raise refused("has attributes that it cannot have", name, f"{variable.attrs!s:.80}", "units alone")


def _check_places(mechanism: xr.Dataset, dim: str) -> None:
    """Finite coordinates on the axes x, y, z in turn, all in one unit."""
    axes = [axis for axis in AXES if f"{dim}_{axis}" in mechanism.variables]
    units = {mechanism[f"{dim}_{axis}"].attrs.get("units") for axis in axes}
    if tuple(axes) != AXES[: len(axes)] or len(units) > 1:
        raise refused("must have axes x, y, z in turn, in one unit", f"{dim}_x", f"{axes} in {units}", "one unit")
    for axis in axes:
        if not np.isfinite(mechanism[f"{dim}_{axis}"].values).all():
            raise refused("must be finite", f"{dim}_{axis}", "nan or inf", "coordinates")


def refused(message: str, field: str, value: object = None, wanted: object = None) -> VerificationError:
    """The error for a file that is not as the package writes it; wanted, what stands there in an unaltered one."""
    remedy = "use an unaltered file" + ("" if wanted is None else f", with {wanted}")
    return VerificationError(message, field=field, value=value, remedy=remedy)


@runtime_checkable
class PositionClaim(Protocol):
    """A claim between any two positions, of the capability positions: a position draws one of the rows `around` (n, 9)
    its cell.
    """

    @property
    def around(self) -> NDArray[np.int64]: ...

    @property
    def corner_level(self) -> NDArray[np.float64]: ...

    def breaches(self, mass: NDArray[np.uint64]) -> int:
        """How many (cell, report) pairs of a table (n, m) break the claim."""
        ...

    def differences(self, mechanism: xr.Dataset, metric: Metric, domain: Domain) -> list[str]:
        """How it differs in a file from what metric and geometry give."""
        ...

    def variables(self, domain: Domain) -> dict[str, Any]:
        """The variables that a file keeps beside the table."""
        ...

    def attributes(self, metric: Metric, domain: Domain) -> dict[str, str]:
        """The attributes that a file keeps: the rule, and the claim in one sentence."""
        ...

    def advised_cell(self, metric: Metric, price: float) -> float | None:
        """A cell at which claims between positions cost 1 % more than between centres, where they cost `price`."""
        ...

    def snapped(self, domain: Domain, positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells (b,) of positions (b, 2), and the points (b, 2) in them."""
        ...

    def drawn_steps(self, points: NDArray[np.int64], bits: Callable[[int], bytes]) -> NDArray[np.int64]:
        """Places 0..8 (b,) in a row of `around` for points (b, 2)."""
        ...


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
    cap_rows: Mapping[str, NDArray[Any]] | None = None,
    attributes: Mapping[str, str | float] | None = None,
    positions: PositionClaim | None = None,
) -> xr.Dataset:
    """The Dataset of a mechanism for `problem` that claims `scale` times the problem's metric.

    Parameters: mass (n, m), certified for scale * metric; program, what made it; parameters, kept as JSON beside
    the problem's parameters; claimed_epsilon, the nominal parameter of a closed form; dual (n,), lower_bound and
    stopped of an optimised one; reports, where they differ from the problem's; multipliers (k,) of the side rows,
    cap_rows, by name, the arrays (k,) or (k, n) that say what the last of them are of;
    attributes, what else to keep: objective, where it is not the expected loss; positions, without breaches at the
    problem's metric, where any position is to be drawn: `scale` is then that of the rows, by `certified_scale`.
    The Dataset shares no memory with the problem: what is written to the one does not reach the other.
    """
    metric: Metric = problem.metric if scale == 1 else scale * problem.metric
    edges = problem.edges if scale == 1 else metric.edges(problem.domain)
    places = reports or problem.reports
    loss = problem.loss_matrix if reports is None else problem.loss.matrix(problem.domain, places)
    around = None if positions is None else positions.around
    cost = claim_cost(problem.loss, loss, problem.prior_array, problem.domain, places, around)
    value = max_log_ratio(mass, problem.edges).value
    if value > 1 and scale == 1 and violations(mass, edges) == 0:
        value = 1.0  # its rounding
    domain = problem.domain
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
    if dual is not None:
        variables["dual"] = ("secret", np.array(dual, float), {"units": problem.loss.unit(domain.unit)})
    if scale != 1 and problem.metric.listed:
        plain = replace(problem.metric, scale=1.0).edges(domain)
        variables["problem_length"] = ("edge", plain.length.copy(), {"units": "nats"})
    if multipliers is not None:
        variables["multiplier"] = ("side_row", np.array(multipliers, float))
    for name, rows in (cap_rows or {}).items():
        variables[name] = (("cap_row", "secret")[: rows.ndim], rows.copy())
    if problem.loss.tabled:
        variables["loss_table"] = (("secret", "report"), loss.copy(), {"units": problem.loss.unit(domain.unit)})
    if positions is not None:
        variables |= positions.variables(domain)
    attrs: dict[str, str | int | float] = {
        "schema": TABLE,
        "problem": problem.name,
        "program": program,
        "parameters": json.dumps({"knobs": problem.kept_parameters, **(parameters or {})}, sort_keys=True),
        "domain": domain.describe_json(),
        "metric": json.dumps(metric.describe(), sort_keys=True),
        "claim": claim_sentence(metric, domain, edges),
        "cost": COST,
        "loss": problem.loss.name,
        "expected_loss": total_cost(mass, cost),
        "scale": float(scale),
        "ratio": value,
        "versions": versions(),
    }
    optional = {"lower_bound": lower_bound, "claimed_epsilon": claimed_epsilon, "stopped": stopped}
    attrs |= {name: figure for name, figure in optional.items() if figure is not None}
    if scale != 1:
        attrs["problem_metric"] = json.dumps(problem.metric.describe(), sort_keys=True)
    if positions is not None:
        attrs |= positions.attributes(problem.metric, domain)
    attrs |= attributes or {}
    placed = coordinates("secret", domain) | coordinates("report", places)
    return seal(xr.Dataset(variables, coords=placed, attrs=attrs))


def claim_sentence(metric: Metric, domain: Domain, edges: Edges) -> str:
    """The claim in one sentence, rebuilt at verification: another metric, level map or grid reads differently.

    The digits after the number of edges are a fingerprint of the list: any other length reads differently too. The
    lengths that a graph lists are multiplied already. Only grids speak of their plane.
    """
    times = "" if metric.scale == 1 or metric.listed else f"{float(metric.scale)!r} times "
    grid = f"{words_of(domain).many} of a {' x '.join(map(str, domain.shape or ()))} grid"
    where = "places" if domain.shape is None else grid
    if domain.plane is not None and domain.shape is not None:
        where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.reach)}"
    return (
        f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {domain.size} secrets "
        f"({where}), where d is {times}{metric.claim(domain)}; checked on {len(edges.tail)} edges "
        f"(list {_fingerprint(edges)}). "
        "k reports cost k times as much."
    )


def total_cost(mass: NDArray[np.uint64], cost: NDArray[np.float64]) -> float:
    """Sum over u, y of mass(u, y) 2^-62 cost(u, y), rounded; for cost = prior times loss, the expected loss."""
    return math.fsum(float(row.astype(float) @ c) for row, c in zip(mass, cost, strict=True)) / ROW_SUM


def relative_gap(loss: float, bound: float, scale: float) -> float:
    """(loss - bound) / loss, or 0 where rounding puts the bound above the loss.

    Under a loss below 1e-9 of `scale`, that of the best constant report, the denominator is that instead: a table
    cannot resolve less.
    """
    return max(0.0, (loss - bound) / max(loss, RESOLUTION * scale))


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
    raise DesignError("no scale of the metric holds", field="table", remedy="report this mechanism")


@validated
def probabilities(mechanism: xr.Dataset) -> xr.DataArray:
    """The probabilities P(y|u) = mass / 2^62 in floating point: for looking at, never for certifying.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    xarray.DataArray
        Dims (secret, report). Its `to_dataframe()` has a line for each; that of the whole Dataset crosses them with
        the edges of the claim.

    Raises
    ------
    InputError
        For a mechanism that is kept as factors.

    Examples
    --------
    >>> mechanism = md.baselines.randomized_response(md.load_problem("discrete", secrets=3))
    >>> float(md.probabilities(mechanism).sum())
    3.0
    """
    if "mass" not in mechanism:
        remedy = "use md.factored.FactoredMechanism(mechanism).probabilities(secrets)"
        raise InputError("has no table", field="mechanism", value=mechanism.attrs.get("schema"), remedy=remedy)
    return (mechanism["mass"] / float(ROW_SUM)).rename("probability").assign_attrs(units="1")


@validated
def on_grid(values: xr.DataArray) -> xr.DataArray:
    """The values over the axes of the grid, secret_y and secret_x (report_y and report_x), in the place of numbers of
    secrets (reports).

    NaN where the grid has no place. `md.on_grid(mechanism["prior"]).plot()` draws a map.

    Parameters
    ----------
    values : xarray.DataArray
        A variable of a mechanism, or `md.probabilities` of one.

    Returns
    -------
    xarray.DataArray
        The same values with two axes of space.

    Raises
    ------
    InputError
        For values without places on two axes or more, or whose places are no grid.

    Examples
    --------
    >>> mechanism = md.baselines.geometric(md.load_problem("flat", cells=3))
    >>> dict(md.on_grid(mechanism["prior"]).sizes)
    {'secret_y': 3, 'secret_x': 3}
    """
    parts = {str(dim): [f"{dim}_{a}" for a in reversed(AXES) if f"{dim}_{a}" in values.coords] for dim in values.dims}
    parts = {dim: names for dim, names in parts.items() if len(names) > 1}
    if not parts:
        raise InputError("has no places on two axes", field="values", value=f"dims {values.dims}")
    units = {name: values[name].attrs for names in parts.values() for name in names}
    for dim, names in parts.items():
        if math.prod(len(np.unique(values[name])) for name in names) > _SPARSE * values.sizes[dim]:
            raise InputError("the places are no grid", field="values", value=f"{values.sizes[dim]} places")
        values = values.set_index(dict[Any, Any]({dim: names})).unstack(dim)
    for name, attrs in units.items():
        values[name].attrs.update(attrs)
    return values


def stored_edges(mechanism: xr.Dataset) -> Edges:
    """The edges of the claim as the file lists them; `verify` compares them with those of the metric."""
    return Edges(**{part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "length")})


def stored_points(mechanism: xr.Dataset, dim: str) -> NDArray[np.float64]:
    """Coordinates (n, k) of the secrets or reports of a mechanism."""
    names = [f"{dim}_{axis}" for axis in AXES if f"{dim}_{axis}" in mechanism.coords]
    return np.column_stack([mechanism[name].values for name in names])


def seal(mechanism: xr.Dataset) -> xr.Dataset:
    """The Dataset with the attribute `sha256`, which names its contents: estimates, session designs, budgets and
    reports name a mechanism by it alone. Files do not have it, and `load` computes it again.
    """
    return mechanism.assign_attrs({NAMED: checksum(mechanism)})


def checksum(mechanism: xr.Dataset) -> str:
    """SHA-256 over every variable and attribute by name: another content has another one, however it is kept."""
    digest = hashlib.sha256()

    def put(*parts: bytes | str) -> None:
        for part in parts:
            content = part.encode() if isinstance(part, str) else part
            digest.update(len(content).to_bytes(8, "little") + content)

    for name in sorted(map(str, mechanism.variables)):
        variable = mechanism.variables[name]
        values = np.ascontiguousarray(variable.values)
        values = values.astype(values.dtype.newbyteorder("<"))
        put(name, str([variable.dims, values.dtype.str, values.shape, name in mechanism.coords]), values.tobytes())
        put(*(f"{key} {value!r}" for key, value in sorted(variable.attrs.items())))
    put(*(f"{key} {_plain(value)!r}" for key, value in sorted(mechanism.attrs.items()) if key != NAMED))
    return digest.hexdigest()


def known_checksum(dataset: xr.Dataset) -> str | None:
    """The SHA-256 of the file that a Dataset was read from or saved as; None where it was neither, or was changed."""
    name, digest = dataset.encoding.get(KNOWN, ("", None))
    return digest if name == checksum(dataset) else None


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _fingerprint(edges: Edges) -> str:
    """Twelve hexadecimal digits of the SHA-256 of an edge list."""
    return hashlib.sha256(edge_bytes(edges)).hexdigest()[:12]


def edge_bytes(edges: Edges) -> bytes:
    """An edge list as the names of claims hash it: tails, heads and lengths, little-endian."""
    parts = ((edges.tail, "<i8"), (edges.head, "<i8"), (edges.length, "<f8"))
    return b"".join(np.ascontiguousarray(part, dtype).tobytes() for part, dtype in parts)


def coordinates(dim: str, domain: Domain) -> dict[str, tuple[str, NDArray[np.float64], dict[str, str]]]:
    """The coordinates of a Dataset for the places of `domain`: dim_x, dim_y, dim_z over `dim`, with units."""
    return {
        f"{dim}_{axis}": (dim, values.copy(), {"units": domain.unit})
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
