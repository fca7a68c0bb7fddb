"""A file taken apart and put together again: what mutations change, and what the reference reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from rewritten import rewritten


@dataclass
class Draft:
    """A file taken apart: attrs; variables name -> (dims, array, attrs); which of them are coordinates."""

    kind: str
    attrs: dict[str, Any]
    variables: dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]
    coords: set[str]

    @classmethod
    def of(cls, kind: str, honest: xr.Dataset) -> Draft:
        """A draft of the file of a kind."""
        draft = cls(kind=kind, attrs=dict(honest.attrs), variables={}, coords=set())
        draft.take(honest)
        return draft

    def take(self, mechanism: xr.Dataset) -> None:
        """Take over all variables of a file."""
        for name, variable in mechanism.variables.items():
            self.variables[str(name)] = (tuple(map(str, variable.dims)), variable.values.copy(), dict(variable.attrs))
        self.coords |= set(map(str, mechanism.coords))

    def put(self, name: str, values: np.ndarray | None = None, dims: tuple[str, ...] | None = None) -> None:
        """Replace the values or the dimensions of a variable."""
        old, array, attrs = self.variables[name]
        self.variables[name] = (old if dims is None else dims, array if values is None else values, attrs)

    def dataset(self) -> xr.Dataset:
        """The Dataset, sealed where it can be; a dimension that has two sizes becomes two dimensions."""
        sizes: dict[str, int] = {}
        parts: dict[str, Any] = {}
        for name, (dims, values, attrs) in self.variables.items():
            over = list(zip(dims, values.shape, strict=True))
            apart = [dim if sizes.setdefault(dim, k) == k else f"{dim}_{k}" for dim, k in over]
            if len(set(apart)) < len(apart):
                apart = [f"{dim}_{i}" for i, dim in enumerate(apart)]
            parts[name] = (apart, values, attrs)
        inside = {name: parts[name] for name in parts if name in self.coords}
        mutant = xr.Dataset({n: v for n, v in parts.items() if n not in inside}, coords=inside, attrs=self.attrs)
        try:
            return rewritten(mutant)
        except Exception:  # what cannot be hashed keeps the seal it has
            return mutant


def plain(mechanism: xr.Dataset) -> dict[str, Any]:
    """A Dataset as nested lists: what the reference reads."""
    return {
        "attrs": {str(name): _plain(value) for name, value in mechanism.attrs.items()},
        "variables": {
            str(name): {
                "dims": list(map(str, variable.dims)),
                "dtype": str(variable.dtype),
                "values": variable.values.tolist(),
                "attrs": {str(key): _plain(value) for key, value in variable.attrs.items()},
            }
            for name, variable in mechanism.variables.items()
        },
    }


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
