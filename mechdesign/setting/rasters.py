"""Raster: values at the nodes of a rectangular lattice, read as a bilinear function of the place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.units import canonical_unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster:
    """f(x, y): bilinear between the nodes, constant beyond the outermost ones.

    Fields: x (kx,) and y (ky,), coordinates of the nodes, ascending, in `unit`; values (kx, ky), in `value_unit`.
    A single node on an axis means: constant along that axis.
    Invariants: finite values, ascending finite nodes, matching shapes.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    values: NDArray[np.float64]
    unit: str = "1"
    value_unit: str = "1"
    name: str = "raster"

    def __post_init__(self) -> None:
        canonical_unit(self.unit, f"{self.name}.unit")
        if self.values.shape != (len(self.x), len(self.y)) or self.values.size == 0:
            raise InputError(
                f"values must have shape ({len(self.x)}, {len(self.y)})",
                field=self.name,
                value=self.values.shape,
                remedy="one value per node, x first",
            )
        for axis in (self.x, self.y):
            if not np.isfinite(axis).all() or (np.diff(axis) <= 0).any():
                raise InputError("nodes must ascend", field=self.name, value="unordered axis", remedy="sort the axis")
        if not np.isfinite(self.values).all():
            count = int((~np.isfinite(self.values)).sum())
            raise InputError(
                "has nodes without a value",
                field=self.name,
                value=f"{count} NODATA or non-finite node(s)",
                remedy="fill them, or crop the raster to where it has data",
            )

    def at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at points (n, 1) or (n, 2); a missing second coordinate is 0."""
        x = points[:, 0]
        y = points[:, 1] if points.shape[1] > 1 else np.zeros(len(points))
        return self.evaluate(x, y)

    def evaluate(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at coordinates x, y of any one shape. Only +, -, * and / are used, so results repeat to the bit."""
        return self.blend(*_locate(self.x, x), *_locate(self.y, y))

    def blend(
        self, i: NDArray[np.int64], s: NDArray[np.float64], j: NDArray[np.int64], t: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Values the fractions s, t of the way from the nodes i, j to the next ones."""
        i1, j1 = np.minimum(i + 1, len(self.x) - 1), np.minimum(j + 1, len(self.y) - 1)
        low = (1 - s) * self.values[i, j] + s * self.values[i1, j]
        high = (1 - s) * self.values[i, j1] + s * self.values[i1, j1]
        return (1 - t) * low + t * high

    def stretched(self, width: float, height: float, unit: str = "1") -> Raster:
        """The raster re-parametrised so that its cells fill [0, width] x [0, height].

        Node (c, r) moves to ((c + 1/2) width / kx, (r + 1/2) height / ky), the convention of paper 000 (section IV).
        """
        kx, ky = self.values.shape
        return replace(self, x=(np.arange(kx) + 0.5) * (width / kx), y=(np.arange(ky) + 0.5) * (height / ky), unit=unit)

    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of nodes and values."""
        digest = hashlib.sha256()
        for part in (self.x, self.y, self.values):
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        return digest.hexdigest()[:12]


def _locate(nodes: NDArray[np.float64], at: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Left node and fraction in [0, 1] of the way to the next, clamped to the outermost nodes."""
    if len(nodes) == 1:
        return np.zeros(at.shape, np.int64), np.zeros(at.shape)
    inside = np.clip(at, nodes[0], nodes[-1])
    left = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
    return left, (inside - nodes[left]) / (nodes[left + 1] - nodes[left])
