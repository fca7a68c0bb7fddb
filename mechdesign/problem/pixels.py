"""The pixels of a raster file, in the order of the file and loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.units import require_unit
from mechdesign.problem.raster import Raster


@dataclass(frozen=True, kw_only=True, eq=False)
class Pixels:
    """A raster as its file has it: centres x, y in file order, values (columns, rows) on demand, crs or None."""

    name: str
    x: Vector
    y: Vector
    load: Callable[[Indices, Indices], Matrix]
    crs: str | Mapping[str, Any] | None = None
    words: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    value_unit: str = "1"
    title: str = ""

    def raster(self, unit: str) -> Raster:
        self.require_unit(unit)
        across, along = np.argsort(self.x, kind="stable"), np.argsort(self.y, kind="stable")
        values = self.load(np.arange(len(self.x)), np.arange(len(self.y)))[np.ix_(across, along)]
        return Raster(
            x=self.x[across], y=self.y[along], values=values, unit=unit, value_unit=self.value_unit, name=self.name
        )

    def require_unit(self, unit: str) -> None:
        for axis, declared in self.units.items():
            require_unit(declared, unit, field=f"{self.name}:{axis}" if axis else self.name)
