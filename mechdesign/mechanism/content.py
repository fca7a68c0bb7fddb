"""The content of a mechanism file as arrays: a cold `sample` or `verify` asks it as a Dataset, without xarray.

It has the members of a Dataset that the core uses. Any other one is taken from the Dataset, which is made then.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import AnyArray
from mechdesign.mechanism.grid_mapping import GRID_MAPPING, described_grid_mapping

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """An array with its dimensions and attributes, as an xarray.Variable has them."""

    dims: tuple[str, ...]
    values: AnyArray
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def size(self) -> int:
        return self.values.size


@dataclass(frozen=True, kw_only=True, eq=False)
class FileContent:
    """Variables and attributes of a table."""

    stands_for_a_dataset = True  # read by `validate_call`

    variables: Mapping[str, Values]
    coords: frozenset[str]  # names of variables
    attrs: dict[str, Any]
    encoding: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Lengths of dimensions; a ValueError if two variables differ in one."""
        sizes: dict[str, int] = {}
        for name, one in self.variables.items():
            for dim, size in zip(one.dims, one.values.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise ValueError(f"conflicting sizes for dimension {dim!r}: {name} has {size}, not {sizes[dim]}")
        return sizes

    @cached_property
    def indexes(self) -> dict[str, AnyArray]:
        return {name: one.values for name, one in self.variables.items() if one.dims == (name,)}

    def __getitem__(self, name: str) -> Values:
        return self.variables[name]

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    @cached_property
    def dataset(self) -> xr.Dataset:
        import xarray as xr

        # fastpath: otherwise xarray imports dask, 0.2 s, to see whether these are its arrays.
        variables = {
            name: xr.Variable(one.dims, one.values, one.attrs, fastpath=True) for name, one in self.variables.items()
        }
        made = xr.Dataset(variables, attrs=self.attrs).set_coords(sorted(self.coords))
        made.encoding = self.encoding
        system = described_grid_mapping(self.attrs)
        return made if system is None else made.assign_coords({GRID_MAPPING: system})

    def copy(self, *, deep: bool = False) -> FileContent:
        variables = dict(self.variables)
        if deep:
            variables = {name: replace(one, values=one.values.copy()) for name, one in variables.items()}
        return replace(self, variables=variables, attrs=dict(self.attrs), encoding=dict(self.encoding))

    def assign_attrs(self, attrs: Mapping[str, Any]) -> FileContent:
        return replace(self, attrs=self.attrs | dict(attrs))

    def assign_coords(self, coords: Mapping[str, tuple[str, AnyArray]]) -> FileContent:
        added = {name: Values(dims=(dim,), values=values) for name, (dim, values) in coords.items()}
        return replace(self, variables=dict(self.variables) | added, coords=self.coords | added.keys())


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn(Values):
    """Numbers of reports with their coordinates."""

    coords: dict[str, Values]

    def data_array(self) -> xr.DataArray:
        import xarray as xr

        coords = {name: xr.Variable(one.dims, one.values, one.attrs) for name, one in self.coords.items()}
        return xr.DataArray(self.values, dims=self.dims, coords=coords, name="report", attrs=self.attrs)


def is_dataset(source: object) -> bool:
    """True for an xarray.Dataset, which nobody can pass before xarray is imported, and for a `FileContent`."""
    xarray = sys.modules.get("xarray")
    return isinstance(source, FileContent) or (xarray is not None and isinstance(source, xarray.Dataset))
