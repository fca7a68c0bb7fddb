"""Schema: which variables and attributes a stored mechanism has, compared before anything else looks at it.

`check` reads dtype, dims, sizes, units and place numbers of every variable, and the type of every attribute. What a
schema does not name is refused. Whatever passes fits compiled code: arrays over one dimension are equally long, place
numbers lie inside it, and no dimension has more than 2^31 - 1 entries.

Whole numbers of a file that arithmetic reaches, and why none wraps:

| expression | where | bound |
|---|---|---|
| mass sums | `row_sums_exact` | halves of 32 bits, at most 2^31 of them: under 2^63; compared as Python integers |
| R mass, mass 2^s | `certificate._count` | 128-bit words: R < 2^62, mass < 2^64, 0 <= s <= 61: under 2^126 |
| masses, levels of patches | `positions/cones.py` | said there: under 2^64, of 128-bit products under 2^125 |
| step units, d_e 2^48 | `Factors.spare` | units <= cap, step cap < 2^54; lengths cut at 2^13 nats: under 2^61 |
| E(t), S(u), R_e S(u) | `Factors` | Python integers |
| f + q | `columns._gather` | f + min(q, cap - f) <= cap <= 65,535 |
| E W in halves | `certificate._row_sums` | 29-bit halves of E <= 2^58, W <= 2^28: 64 products under 2^57 make 2^63 |
| cumulative E W | `FactoredMechanism` | at most 2^19 columns, limbs of 43 bits: under 2^63 |
| A m, 2^33 |s - s'|, 3 d | `compact/formulas.py` | A < 2^32, checked by `CompactMap`, m < 2^21: under 2^55 |
| differences added up | `compact/file.py` | fewer than 2^24 of 16 bits: under 2^40 |
| W added up | `compact/draw.py` | fewer than 2^24 under 2^28: under 2^52 |
| q + units | `windows._search`, `_lower` | cap + longest edge <= 65,535, checked by `IntegerMetric` |
| u n + v | keys of edges and near pairs | u, v < n < 2^31: under 2^62 |
| 2 e, places | compressed rows of 32 bits | at most 2^30 - 1 edges |
| (x - origin) / cell | `Domain.from_description` | compared as doubles before it becomes a whole number |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from mechdesign.errors import VerificationError
from mechdesign.setting.space.domain import AXES

TABLE = "mechdesign/mechanism/1"
FACTORED = "mechdesign/factored/1"
COLUMNED = "mechdesign/factored/2"
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


DESCRIBED = dict.fromkeys(("schema", "problem", "parameters", "domain", "metric", "versions", "sha256"), str)
_SAID = DESCRIBED | {
    "program": str, "claim": str, "cost": str, "loss": str, "expected_loss": float, "multiple": float,
    "effective_epsilon": float,
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
        "loss_table": Array(dtype="float64", dims=("secret", "report"), optional=True),
        "problem_length": Array(dtype="float64", dims=("edge",), optional=True),
        "around_row": Array(dtype="int64", dims=("secret", "around"), optional=True, names="secret"),
        "corner_level": Array(dtype="float64", dims=("secret", "corner"), optional=True),
    },
    places=("secret", "report"),
    lengths={"around": 9, "corner": 4},
    attributes=_SAID,
    optional={
        "lower_bound": float, "lower_bound_of": str, "bound_stencil": int, "objective": float, "objective_of": str,
        "claimed_epsilon": float, "least_epsilon": float, "stopped": str, "problem_metric": str,
        "position_rule": str, "position_claim": str,
    },
)  # fmt: skip

FACTORS = Schema(
    name=FACTORED,
    arrays={
        "weight": Array(dtype="uint32", dims=("place",)),
        "target": Array(dtype="int64", dims=("place",), names="secret"),
        "remap": Array(dtype="int64", dims=("place",), names="secret", optional=True),
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
        "block_sha256": Array(dtype="uint8", dims=("block", "byte")),
    },
    places=("secret", "place"),
    lengths={"word": 2, "byte": 32},
    attributes=_SAID | {"step": int, "cap": int, "block": int},
    optional={"remapped_loss": float, "stopped": str, "lower_bound": float, "bound_reach": float, "bound_core": float},
)

COLUMNS = replace(
    FACTORS,
    name=COLUMNED,
    arrays={
        **FACTORS.arrays,
        "weight": Array(dtype="uint32", dims=("column",)),
        "target": Array(dtype="int64", dims=("column",), names="secret"),
        "remap": Array(dtype="int64", dims=("column",), names="secret", optional=True),
        "first_generator": Array(dtype="int64", dims=("column",), names="generator"),
        "generator_place": Array(dtype="int64", dims=("generator",), names="place"),
        "generator_offset": Array(dtype="uint16", dims=("generator",)),
    },
)

MECHANISMS = {schema.name: schema for schema in (MECHANISM, FACTORS, COLUMNS)}


def check(mechanism: xr.Dataset, *schemas: Schema, what: str = "a mechanism") -> Schema:
    """The schema among `schemas` that a Dataset has and satisfies; `what` is what they are called in errors.

    Cost: one look at every place number.
    Raises: VerificationError that names the variable or attribute, what it is and what it should be.
    """
    said = mechanism.attrs.get("schema")
    schema = next((known for known in schemas if known.name == said), None)
    if schema is None:
        raise refused(f"not {what} of this schema", "schema", said, " or ".join(known.name for known in schemas))
    for name, kind in schema.attributes.items():
        if name not in mechanism.attrs:
            raise refused("is missing", name, None, kind.__name__)
    for key, value in mechanism.attrs.items():
        _check_attribute(str(key), value, (schema.attributes | schema.optional).get(str(key)))  # type: ignore[operator]
    placed = {
        f"{dim}_{axis}": Array(dtype="float64", dims=(dim,), coordinate=True) for dim in schema.places for axis in AXES
    }
    required = [f"{dim}_x" for dim in schema.places] + [n for n, array in schema.arrays.items() if not array.optional]
    for needed in required:
        if needed not in mechanism.variables:
            raise refused("must be there", needed, "no such variable", "the whole file")
    for key, variable in mechanism.variables.items():
        known = (placed | schema.arrays).get(str(key), schema.other)  # type: ignore[operator]
        _check_variable(str(key), variable, known, coordinate=key in mechanism.coords)
    for dim, size in mechanism.sizes.items():
        least = schema.lengths.get(str(dim), int(dim not in MAY_BE_EMPTY))
        most = schema.lengths.get(str(dim), LARGEST.get(str(dim), (1 << 31) - 1))
        if not least <= size <= most:
            raise refused("has a size that it cannot have", str(dim), size, f"{least} to {most}")
    for name, array in schema.arrays.items():
        if array.names is not None and name in mechanism.variables:
            values, count = mechanism[name].values, mechanism.sizes[array.names]
            if values.min() < 0 or values.max() >= count:
                raise refused("must name places", name, f"{values.min()} to {values.max()}", f"0 to {count - 1}")
    for dim in schema.places:
        _check_places(mechanism, dim)
    return schema


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
        raise refused(
            "is no variable of this schema", name, f"{variable.dtype} over {variable.dims}", "no such variable"
        )
    found = f"{variable.dtype} over {variable.dims}, {'a coordinate' if coordinate else 'data'}"
    if (variable.dtype, variable.dims, coordinate) != (np.dtype(known.dtype), known.dims, known.coordinate):
        raise refused(f"must be there as {known.dtype} over {known.dims}", name, found, "the array as it was written")
    units = variable.attrs.get("units", "1")
    if set(variable.attrs) - {"units", "meaning"} or not (isinstance(units, str) and units.isprintable()):
        raise refused("has attributes that it cannot have", name, f"{variable.attrs!s:.80}", "units alone")


def _check_places(mechanism: xr.Dataset, dim: str) -> None:
    """Finite coordinates on the axes x, y, z in turn, all in one unit."""
    found = [axis for axis in AXES if f"{dim}_{axis}" in mechanism.variables]
    units = {mechanism[f"{dim}_{axis}"].attrs.get("units") for axis in found}
    if tuple(found) != AXES[: len(found)] or len(units) > 1:
        raise refused("must have axes x, y, z in turn, in one unit", f"{dim}_x", f"{found} in {units}", "one unit")
    for axis in found:
        if not np.isfinite(mechanism[f"{dim}_{axis}"].values).all():
            raise refused("must be finite", f"{dim}_{axis}", "nan or inf", "coordinates")


def refused(message: str, field: str, value: object, wanted: object) -> VerificationError:
    """The error for a file that is not what its schema says; wanted, what stands there in an unaltered one."""
    return VerificationError(message, field=field, value=value, remedy=f"use an unaltered file, with {wanted}")
