"""The schema of a mechanism file: its variables and attributes, compared before anything else reads the file.

Capabilities add variables to this schema (the registry "table schema parts") and schemas of their own ("schemas").

`Schema.validate` compares dtype, dims, sizes, units and place numbers of every variable, and the type of every
attribute, and refuses names outside the schema. A Dataset that passes is safe for compiled code: arrays over one
dimension are equally long, place numbers lie inside it, and no dimension has more than 2^31 - 1 entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import AnyArray, Indices, Points
from mechdesign.base.registry import Registry
from mechdesign.errors import VerificationError
from mechdesign.mechanism.content import FileContent
from mechdesign.mechanism.grid_mapping import GRID_MAPPING, described_grid_mapping, grid_mapping
from mechdesign.problem.classes import label_arrays
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.lattice import Edges

if TYPE_CHECKING:
    import xarray as xr

# Integers of a file that arithmetic reaches, and why none wraps:
# * mass sums (row_sums_exact): halves of 32 bits, at most 2^31 of them: under 2^63; compared as Python integers
# * R mass, mass 2^s (certificate_kernels.py): 128-bit words: R < 2^62, mass < 2^64, 0 <= s <= 61: under 2^126
# * masses, levels of patches (positions/cones.py): see there: under 2^64, of 128-bit products under 2^125
# * step units, d_e 2^48 (Factors.slack): units <= cap, step cap < 2^54; lengths cut at 2^13 nats: under 2^61
# * E(t), S(u), R_e S(u) (Factors, factored/certificate.py): Python integers
# * f + q (factored/columns._gather): f + min(q, cap - f) <= cap <= 65,535
# * E W in halves (factored/certificate._row_sums): 29-bit halves of E <= 2^58, W <= 2^28: 64 products make < 2^63
# * cumulative E W (FactoredMechanism): at most 2,000,000 columns, limbs of 43 bits and a carry: under 2^64
# * A m, 2^33 |s - s'|, 3 d (devicemap/device_map.py): A < 2^32, checked by DeviceMap, m < 2^21: under 2^55
# * differences added up (devicemap/files.py): fewer than 2^24 of 16 bits: under 2^40
# * W added up (devicemap/draw.py): fewer than 2^24 under 2^28: under 2^52
# * q + units (factored/integer_metric._search_window, _relax): cap + longest edge <= 65,535: IntegerMetric
# * u n + v (keys of edges and near pairs): u, v < n < 2^31: under 2^62
# * 2 e, places (compressed rows of 32 bits): at most 2^30 - 1 edges
# * (x - origin) / cell (Domain.from_description): compared as doubles before it becomes an integer
TABLE = "mechdesign/mechanism/2"
# By dimension, 2^31 - 1 for others: SciPy's compressed rows count every edge twice in 32 bits.
_MAX_SIZES = {"edge": (1 << 30) - 1}
_MAY_BE_EMPTY = ("side_row",)  # if all constraints are of the user's classes
_ATTRIBUTE_TYPES = {str: (str,), int: (int, np.integer), float: (float, np.floating)}


@dataclass(frozen=True, kw_only=True)
class VariableSpec:
    """Dtype and dims of a variable; if its entries are place numbers, the dimension `places` that they number."""

    dtype: str
    dims: tuple[str, ...]
    optional: bool = False
    places: str | None = None
    is_coordinate: bool = False


@dataclass(frozen=True, kw_only=True)
class SchemaPart:
    """Optional variables, sizes and attributes that a capability adds to a schema."""

    variables: Mapping[str, VariableSpec]
    sizes: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, type] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Variables and attributes of a Dataset."""

    # places: dimensions with coordinates DIM_x, DIM_y, DIM_z in one unit; own_sizes: fixed sizes of dimensions.
    # attributes, optional: types by name; other: the specification of unnamed variables, None to refuse them.

    name: str
    own_variables: Mapping[str, VariableSpec]
    places: tuple[str, ...] = ()
    own_sizes: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, type]
    optional: Mapping[str, type] = field(default_factory=dict)
    other: VariableSpec | None = None
    parts: Mapping[str, SchemaPart] = field(default_factory=dict)

    @cached_property
    def variables(self) -> dict[str, VariableSpec]:
        variables = dict(self.own_variables)
        for part in self.parts.values():
            variables |= part.variables
        return variables

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes = dict(self.own_sizes)
        for part in self.parts.values():
            sizes |= part.sizes
        return sizes

    @cached_property
    def attribute_types(self) -> dict[str, type]:
        types = {**self.attributes, **self.optional}
        for part in self.parts.values():
            types |= part.attributes
        return types

    @cached_property
    def dims(self) -> set[str]:
        specs = [*self.variables.values(), *([] if self.other is None else [self.other])]
        return {dim for spec in specs for dim in spec.dims}.union(self.places)

    def variable(self, name: str) -> VariableSpec | None:
        if name == GRID_MAPPING:  # not of a file: the attributes have it
            return None
        dim, _, axis = name.rpartition("_")
        if dim in self.places and axis in AXES:
            return VariableSpec(dtype="float64", dims=(dim,), is_coordinate=True)
        if name in self.places:  # labels of classes, of their own width
            return VariableSpec(dtype="U", dims=(name,), is_coordinate=True)
        return self.variables.get(name, self.other)

    def validate(self, dataset: xr.Dataset) -> None:
        """Raise a VerificationError that names the first variable or attribute that the schema does not allow."""
        self._validate_attributes(dataset.attrs)
        required = [f"{dim}_x" for dim in self.places]
        required += [name for name, spec in self.variables.items() if not spec.optional]
        for name in required:
            if name not in dataset.variables:
                raise file_error("must be there", name, "no such variable", "the whole file")
        labels = label_arrays(dataset.attrs)
        for key, variable in dataset.variables.items():
            if key in self.places:
                _validate_labels(dataset, str(key), labels.get(str(key)))
                continue
            if key == GRID_MAPPING:
                _validate_grid_mapping(dataset)
                continue
            _validate_variable(str(key), variable, self.variable(str(key)), is_coordinate=key in dataset.coords)
        for dim, size in dataset.sizes.items():
            smallest = self.sizes.get(str(dim), int(dim not in _MAY_BE_EMPTY))
            largest = self.sizes.get(str(dim), _MAX_SIZES.get(str(dim), (1 << 31) - 1))
            if not smallest <= size <= largest:
                raise file_error("has an invalid size", str(dim), size, f"{smallest} to {largest}")
        # After the loops above both the place numbers and the dimension that they index are known to exist.
        for name, spec in self.variables.items():
            if spec.places is not None and name in dataset.variables:
                _validate_place_numbers(name, dataset[name].values, dataset.sizes[spec.places])
        for dim in self.places:
            _validate_coordinates(dataset, dim)

    def _validate_attributes(self, attrs: Mapping[Any, Any]) -> None:
        for name, kind in self.attributes.items():
            if name not in attrs:
                raise file_error("is missing", name, None, kind.__name__)
        for key, value in attrs.items():
            name = str(key)
            if name not in self.attribute_types:
                raise file_error("is not an attribute of this schema", name, value, "no such attribute")
            kind = self.attribute_types[name]
            # isinstance takes True for an int, which no attribute may be.
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, _ATTRIBUTE_TYPES[kind]):
                raise file_error("has another type", name, f"{type(value).__name__} {value!s:.80}", kind.__name__)
            if isinstance(value, str) and not value.isprintable():
                raise file_error("has unprintable characters", name, repr(value)[:80], "printable text")


COMMON_ATTRIBUTES = dict.fromkeys(
    ("schema", "problem", "parameters", "domain", "metric", "versions", "sha256"), str
)  # of every Dataset with places and a metric
MECHANISM_ATTRIBUTES = COMMON_ATTRIBUTES | {
    "program": str, "claim": str, "cost": str, "loss": str, "expected_loss": float, "scale": float,
    "ratio": float,
}  # fmt: skip

TABLE_SCHEMA = Schema(
    name=TABLE,
    own_variables={
        # Every entry >= 1, rows sum to exactly 2^62; probability = mass / 2^62.
        "mass": VariableSpec(dtype="uint64", dims=("secret", "report")),
        # The claim, both ways: mass[tail, y] <= e^{length} mass[head, y].
        "edge_tail": VariableSpec(dtype="int64", dims=("edge",), places="secret"),
        "edge_head": VariableSpec(dtype="int64", dims=("edge",), places="secret"),
        "edge_length": VariableSpec(dtype="float64", dims=("edge",)),
        # The prior; eps(u), if the metric has one; multipliers of the row sums, if optimised.
        "prior": VariableSpec(dtype="float64", dims=("secret",)),
        "level": VariableSpec(dtype="float64", dims=("secret",), optional=True),
        "dual": VariableSpec(dtype="float64", dims=("secret",), optional=True),
        # Multipliers of the side rows, if the program has some.
        "multiplier": VariableSpec(dtype="float64", dims=("side_row",), optional=True),
        # (parent - place) mod 2^16 in the tree of every report, which prove the lower bound from the multipliers.
        "tree": VariableSpec(dtype="uint16", dims=("report", "secret"), optional=True),
        # The loss, if it is a table.
        "loss_table": VariableSpec(dtype="float64", dims=("secret", "report"), optional=True),
        # Lengths before scaling, for a graph claimed at another scale than 1.
        "problem_length": VariableSpec(dtype="float64", dims=("edge",), optional=True),
    },
    places=("secret", "report"),
    attributes=MECHANISM_ATTRIBUTES,
    optional={
        # JSON of the domain of the reports, where they are classes and not the secrets.
        "reports": str,
        "lower_bound": float, "lower_bound_of": str, "objective": float, "objective_of": str,
        "claimed_epsilon": float, "epsilon_lower_bound": float, "stopped": str, "problem_metric": str,
    },
    parts=Registry("table schema parts"),
)  # fmt: skip

MECHANISMS: Registry[Schema] = Registry("schemas", {TABLE: TABLE_SCHEMA})  # of Datasets that are mechanisms


def validate(dataset: xr.Dataset, *schemas: Schema, noun: str = "a mechanism") -> None:
    """Compare a Dataset with the one of these schemas that it names."""
    schema_of(dataset.attrs, *schemas, noun=noun).validate(dataset)


def schema_of(attrs: Mapping[Any, Any], *schemas: Schema, noun: str) -> Schema:
    """The schema among these that attributes name; the error names the version that wrote the file."""
    name = attrs.get("schema")
    for schema in schemas:
        if schema.name == name:
            return schema
    writer = re.search(r'"mechdesign": "([0-9a-z.+]{1,30})"', str(attrs.get("versions")))
    by = f", written by mechdesign {writer[1]}" if writer else ""
    raise file_error(f"not {noun} of this schema{by}", "schema", name, " or ".join(known.name for known in schemas))


def _validate_variable(name: str, variable: xr.Variable, known: VariableSpec | None, *, is_coordinate: bool) -> None:
    if known is None:
        raise file_error("is not a variable of this schema", name, variable.dims, "no such variable")
    present = f"{variable.dtype} over {variable.dims}, {'a coordinate' if is_coordinate else 'data'}"
    if (variable.dtype, variable.dims, is_coordinate) != (np.dtype(known.dtype), known.dims, known.is_coordinate):
        raise file_error(
            f"must be there as {known.dtype} over {known.dims}", name, present, "the array as it was written"
        )
    units = variable.attrs.get("units", "1")
    if set(variable.attrs) - {"units", "meaning"} or not (isinstance(units, str) and units.isprintable()):
        raise file_error("has invalid attributes", name, f"{variable.attrs!s:.80}", "units alone")


def _validate_labels(dataset: xr.Dataset, dim: str, known: AnyArray | None) -> None:
    """Refuse labels of secrets or reports that are not those of the attributes, which are the ones of the file."""
    variable = dataset.variables[dim]
    is_index = dim in dataset.coords and variable.dims == (dim,) and not variable.attrs
    if known is None or not is_index or [str(name) for name in variable.values.tolist()] != known.tolist():
        wanted = "no such variable" if known is None else "the labels of the domain"
        raise file_error("are not the labels of the classes", dim, f"{variable.values!s:.80}", wanted)


def _validate_grid_mapping(dataset: xr.Dataset) -> None:
    """Refuse a coordinate system that is not that of the attributes, which are the ones of the file."""
    variable, known = dataset.variables[GRID_MAPPING], described_grid_mapping(dataset.attrs)
    if GRID_MAPPING not in dataset.coords or known is None or _parts(variable) != _parts(known):
        raise file_error("is not the coordinate system of the domain", GRID_MAPPING, f"{variable.attrs!s:.80}")


def _parts(variable: xr.Variable) -> tuple[Any, ...]:
    return variable.dims, variable.dtype, variable.values.tolist(), variable.attrs


def _validate_place_numbers(name: str, values: Indices, count: int) -> None:
    if values.size and (values.min() < 0 or values.max() >= count):
        raise file_error("must name places", name, f"{values.min()} to {values.max()}", f"0 to {count - 1}")


def _validate_coordinates(mechanism: xr.Dataset, dim: str) -> None:
    axes = [axis for axis in AXES if f"{dim}_{axis}" in mechanism.variables]
    units = {mechanism[f"{dim}_{axis}"].attrs.get("units") for axis in axes}
    if tuple(axes) != AXES[: len(axes)] or len(units) > 1:
        raise file_error("must have axes x, y, z in turn, in one unit", f"{dim}_x", f"{axes} in {units}", "one unit")
    for axis in axes:
        if not np.isfinite(mechanism[f"{dim}_{axis}"].values).all():
            raise file_error("must be finite", f"{dim}_{axis}", "nan or inf", "coordinates")


def file_error(message: str, field: str, value: object = None, wanted: object = None) -> VerificationError:
    """The error for an altered file; wanted: the value in an unaltered one."""
    remedy = "use an unaltered file" + ("" if wanted is None else f", with {wanted}")
    return VerificationError(message, field=field, value=value, remedy=remedy)


def stored_edges(mechanism: xr.Dataset) -> Edges:
    """The edges of the claim as the file lists them."""
    return Edges(**{part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "length")})


def stored_points(mechanism: xr.Dataset, dim: str) -> Points:
    """Coordinates (n, k) of the secrets or reports of a mechanism."""
    names = [f"{dim}_{axis}" for axis in AXES if f"{dim}_{axis}" in mechanism.coords]
    return np.column_stack([mechanism[name].values for name in names])


def coordinates(dim: str, domain: Domain) -> dict[str, Any]:
    """The coordinates of a Dataset for the places of `domain`: dim_x, dim_y, dim_z over `dim`, with units."""
    # Classes also have their labels, as the index of `dim`; places on Earth have their coordinate system.
    placed: dict[str, Any] = {
        f"{dim}_{axis}": (dim, values.copy(), {"units": domain.unit})
        for axis, values in zip(AXES, domain.points.T, strict=False)
    }
    if domain.plane is not None:
        placed[GRID_MAPPING] = grid_mapping(domain.plane)
    return placed if domain.labels is None else placed | {dim: (dim, np.array(domain.labels))}


def with_derived(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset of a file with the coordinates that its attributes imply: labels of classes, coordinate system."""
    labels = {dim: words for dim, words in label_arrays(dataset.attrs).items() if dim in dataset.sizes}
    for dim, words in labels.items():
        if len(words) != dataset.sizes[dim]:
            raise file_error("must be a label for each class", dim, len(words), dataset.sizes[dim])
    derived: dict[str, Any] = {dim: (dim, words) for dim, words in labels.items()}
    # A cold command reads no coordinate system of xarray.
    system = None if isinstance(dataset, FileContent) else described_grid_mapping(dataset.attrs)
    derived |= {} if system is None else {GRID_MAPPING: system}
    return dataset.assign_coords(derived) if derived else dataset


def without_derived(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset as a file holds it: labels and the coordinate system are in the attributes alone."""
    return dataset.drop_vars([name for name in ("secret", "report", GRID_MAPPING) if name in dataset.coords])
