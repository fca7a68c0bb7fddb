"""Raster: values at the nodes of a rectangular lattice, read as a multilinear function of the place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.descriptions import LARGEST, SMALLEST
from mechdesign.base.display import Shown
from mechdesign.base.units import canonical_unit, unit_ratio
from mechdesign.errors import InputError

_REACH = 0.5 + 1e-9  # steps beyond the outermost node that its value still covers

Places = Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster(Shown):
    """f(x, y) or f(x, y, z): linear along each axis between the nodes, constant beyond the outermost ones.

    Fields: x (kx,), y (ky,) and z (kz,), coordinates of the nodes, ascending, in `unit`; values (kx, ky) or
    (kx, ky, kz), in `value_unit`. A single node on an axis means: constant along that axis; so is z where it is left
    out, and where the values have two axes.
    Invariants: finite values, ascending nodes within 2^500 with gaps of at least 2^-960, matching shapes.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    values: NDArray[np.float64]
    unit: str = "1"
    value_unit: str = "1"
    name: str = "raster"

    def __post_init__(self) -> None:
        canonical_unit(self.unit, f"{self.name}.unit")
        for name in ("x", "y", "z", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        if any(axis.ndim != 1 for axis in (self.x, self.y, self.z)):
            raise InputError(
                "nodes must be rows of ascending numbers", field=self.name, value="x, y or z", remedy="pass (k,) arrays"
            )
        shape = (len(self.x), len(self.y), len(self.z))
        fitting = [shape[:2], shape] if len(self.z) == 1 else [shape]
        if self.values.shape not in fitting or self.values.size == 0:
            raise InputError(
                f"values must have shape {fitting[0]}",
                field=self.name,
                value=self.values.shape,
                remedy="one value per node, x first, z last",
            )
        for axis in (self.x, self.y, self.z):
            if not (np.abs(axis) <= LARGEST).all() or not (np.diff(axis) >= SMALLEST).all():
                raise InputError(
                    "nodes must ascend, within 1e150 of zero and at least 1e-289 apart",
                    field=self.name,
                    value="unordered axis",
                    remedy="sort the axis, or use another unit",
                )
        if not np.isfinite(self.values).all():
            count = int((~np.isfinite(self.values)).sum())
            raise InputError(
                "has nodes without a value",
                field=self.name,
                value=f"{count} NODATA or non-finite node(s)",
                remedy="fill them, or crop the raster to where it has data",
            )

    def facts(self) -> Mapping[str, object]:
        nodes = " x ".join(str(len(axis)) for axis in self.axes)
        least, most = (f"{value:.6g}" for value in (self.values.min(), self.values.max()))
        return {"nodes": f"{nodes} nodes in {self.unit}, {self.name} {least} to {most} {self.value_unit}"}

    @property
    def axes(self) -> tuple[NDArray[np.float64], ...]:
        """The nodes along each axis of `values`: x and y, or x, y and z."""
        return (self.x, self.y, self.z)[: self.values.ndim]

    def outside(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points (n, 1..3) lie further beyond the outermost nodes than half the way to the next ones."""
        found = np.zeros(len(points), bool)
        for nodes, at in zip(self.axes, coordinates(points), strict=False):
            if len(nodes) > 1:
                low, high = nodes[0] - _REACH * (nodes[1] - nodes[0]), nodes[-1] + _REACH * (nodes[-1] - nodes[-2])
                found |= (at < low) | (at > high)
        return found

    def require_cover(self, points: NDArray[np.float64]) -> None:
        """Refuse points (n, 1..3) of which some lie `outside`. Raises: InputError that counts them."""
        outside = self.outside(points)
        if outside.any():
            ends = " and ".join(
                f"{name} {nodes[0]:.6g} to {nodes[-1]:.6g}"
                for name, nodes in zip("xyz", self.axes, strict=False)
                if len(nodes) > 1
            )
            raise InputError(
                f"{outside.sum()} of {len(points)} places lie outside the raster ({ends} {self.unit})",
                field=self.name,
                value=", ".join(f"{x:.6g}" for x in points[outside.argmax()]),
                remedy="use a raster of the whole area, or pass extend=True to go on with its border values",
            )

    def in_unit(self, unit: str) -> Raster:
        """The raster with its nodes in another unit of length. Raises: UnitError where one of the two is none."""
        ratio = float(unit_ratio(self.unit, unit, self.name))
        if canonical_unit(self.unit) == canonical_unit(unit):
            return self
        return replace(self, x=self.x * ratio, y=self.y * ratio, z=self.z * ratio, unit=canonical_unit(unit))

    def at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values at points (n, 1..3); a missing coordinate is 0. Only +, -, * and / are used: the bits repeat."""
        return self.blend([_locate(nodes, at) for nodes, at in zip(self.axes, coordinates(points), strict=False)])

    def nearest(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (n,) at the nodes nearest to points (n, 1..3), the lower node half-way; a missing coordinate is 0."""
        places = [_locate(nodes, at) for nodes, at in zip(self.axes, coordinates(points), strict=False)]
        return self.values[tuple(node + (share > 0.5) for node, share in places)]

    def blend(self, places: Places) -> NDArray[np.float64]:
        """Values at the fractions s of the way from the nodes i to the next ones, places = [(i, s), ...] per axis.

        One axis after the other: along x first, along the last axis last.
        """
        return _blend(self.values, places, ())

    def stretched(self, *sizes: float, unit: str = "1") -> Raster:
        """The raster re-parametrised so that its cells fill [0, width] x [0, height], one size per axis of `values`.

        Node (c, r) moves to ((c + 1/2) width / kx, (r + 1/2) height / ky), the convention of paper 000 (section IV).
        """
        if len(sizes) != self.values.ndim:
            raise InputError(
                "one size per axis", field=self.name, value=sizes, remedy=f"give {self.values.ndim} lengths in {unit}"
            )
        moved = [(np.arange(k) + 0.5) * (size / k) for k, size in zip(self.values.shape, sizes, strict=True)]
        return replace(self, x=moved[0], y=moved[1], z=moved[2] if len(moved) > 2 else self.z, unit=unit)

    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of nodes and values."""
        digest = hashlib.sha256()
        for part in (*self.axes, self.values):
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        return digest.hexdigest()[:12]


def coordinates(points: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The coordinates (n,) along x, y and z of points (n, 1..3), 0 where they have none."""
    return [*points.T, *np.zeros((3 - points.shape[1], len(points)))]


def _blend(values: NDArray[np.float64], places: Places, corner: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
    if not places:
        return values[corner]
    *others, (node, share) = places
    beside = np.minimum(node + 1, values.shape[len(others)] - 1)
    return (1 - share) * _blend(values, others, (node, *corner)) + share * _blend(values, others, (beside, *corner))


def _locate(nodes: NDArray[np.float64], at: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Left node and fraction in [0, 1] of the way to the next, clamped to the outermost nodes."""
    if len(nodes) == 1:
        return np.zeros(at.shape, np.int64), np.zeros(at.shape)
    inside = np.clip(at, nodes[0], nodes[-1])
    left = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
    return left, (inside - nodes[left]) / (nodes[left + 1] - nodes[left])
