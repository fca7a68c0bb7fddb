"""Rasters: functions of space, given at the nodes of a rectangular lattice and multilinear between them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mechdesign.base.arrays import Floats, Indices, Mask, Points, Vector
from mechdesign.base.json_fields import LARGEST, SMALLEST
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import canonical_unit, unit_ratio
from mechdesign.errors import InputError
from mechdesign.problem.domain import AXES

_COVERED_STEPS = 0.5 + 1e-9  # steps beyond the outermost node covered by its value: half a pixel
_NODATA = "has nodes without a value; fill them, or crop the raster to where it has data"


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster(FrozenRecord):
    """A function f(x, y) or f(x, y, z) of space: linear along each axis between nodes, constant beyond them.

    Parameters
    ----------
    x, y, z : (kx,), (ky,), (kz,) arrays
        Ascending nodes in `unit`, within 2^500 and 2^-960 apart. Along an axis with one node, as z by default, f is
        constant.
    values : (kx, ky) or (kx, ky, kz) array
        Finite values at the nodes, in `value_unit`.
    unit, value_unit, name : str
        Of coordinates and of values, "1" by default; name of the values.
    amounts, counts : array of the shape of values, bool
        Amounts in pixels for a prior, by default value times size; True if they count people or things.

    Examples
    --------
    >>> raster = md.Raster(x=[0.0, 1.0], y=[0.0, 1.0], values=[[0.0, 1.0], [2.0, 3.0]], unit="km")
    >>> raster.at(np.array([[0.5, 0.5]]))
    array([1.5])
    """

    x: Vector
    y: Vector
    z: Vector = field(default_factory=lambda: np.zeros(1))
    values: Floats
    unit: str = "1"
    value_unit: str = "1"
    name: str = "raster"
    amounts: Floats | None = None
    counts: bool = False

    def __post_init__(self) -> None:
        canonical_unit(self.unit, f"{self.name}.unit")
        for name in ("x", "y", "z", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        if any(axis.ndim != 1 for axis in (self.x, self.y, self.z)):
            raise InputError("nodes must be rows of ascending numbers", field=self.name, value="x, y or z")
        shape = (len(self.x), len(self.y), len(self.z))
        allowed_shapes = [shape[:2], shape] if len(self.z) == 1 else [shape]
        if self.values.shape not in allowed_shapes or self.values.size == 0:
            is_transposed = self.values.shape == (len(self.y), len(self.x))
            remedy = (
                "transpose them, x comes first; md.read.raster takes arrays of xarray in any order"
                if is_transposed
                else None
            )
            message = f"values must have shape {allowed_shapes[0]}"
            raise InputError(message, field=self.name, value=self.values.shape, remedy=remedy)
        for axis in (self.x, self.y, self.z):
            if not (np.abs(axis) <= LARGEST).all() or not (np.diff(axis) >= SMALLEST).all():
                message = "nodes must ascend, within 1e150 of zero and at least 1e-289 apart"
                raise InputError(message, field=self.name, value=f"least gap {np.diff(axis).min(initial=np.inf):.3g}")
        missing = int((~np.isfinite(self.values)).sum())
        if missing:
            raise InputError(_NODATA, field=self.name, value=f"{missing} NODATA or non-finite node(s)")
        if self.amounts is not None:
            object.__setattr__(self, "amounts", np.asarray(self.amounts, float))
            if self.amounts.shape != self.values.shape or not np.isfinite(self.amounts).all():
                message = "amounts must be finite and have the shape of values"
                raise InputError(message, field=self.name, value=self.amounts.shape)

    def repr_fields(self) -> Mapping[str, object]:
        nodes = " x ".join(str(len(axis)) for axis in self.axes)
        lowest, highest = (f"{value:.6g}" for value in (self.values.min(), self.values.max()))
        return {"nodes": f"{nodes} nodes in {self.unit}, {self.name} {lowest} to {highest} {self.value_unit}"}

    @property
    def axes(self) -> tuple[Vector, ...]:
        return (self.x, self.y, self.z)[: self.values.ndim]

    def outside(self, points: Points) -> Mask:
        """True where points (n, 1..3) lie beyond the outermost nodes by more than half the way to the next ones.

        Examples
        --------
        >>> raster = md.Raster(x=np.arange(3.0), y=np.arange(2.0), values=np.ones((3, 2)))
        >>> raster.outside(np.array([[1.0, 0.5], [9.0, 0.5]])).tolist()
        [False, True]
        """
        outside = np.zeros(len(points), bool)
        for nodes, position in zip(self.axes, coordinates(points), strict=False):
            if len(nodes) > 1:
                low, high = (
                    nodes[0] - _COVERED_STEPS * (nodes[1] - nodes[0]),
                    nodes[-1] + _COVERED_STEPS * (nodes[-1] - nodes[-2]),
                )
                outside |= (position < low) | (position > high)
        return outside

    def require_cover(self, points: Points) -> None:
        outside = self.outside(points)
        if outside.any():
            axes = [(name, nodes) for name, nodes in zip(AXES, self.axes, strict=False) if len(nodes) > 1]
            ends = " and ".join(f"{name} {nodes[0]:.6g} to {nodes[-1]:.6g}" for name, nodes in axes)
            raise InputError(
                f"{outside.sum()} of {len(points)} places lie outside the raster ({ends} {self.unit})",
                field=self.name,
                value=", ".join(f"{x:.6g}" for x in points[outside.argmax()]),
                remedy="use a raster of the whole area, or `extend` in Python to repeat its border values",
            )

    def in_unit(self, unit: str) -> Raster:
        """The raster with coordinates in another unit of length.

        Examples
        --------
        >>> md.Raster(x=np.arange(3.0), y=np.arange(2.0), values=np.ones((3, 2)), unit="km").in_unit("m").x.tolist()
        [0.0, 1000.0, 2000.0]
        """
        ratio = float(unit_ratio(self.unit, unit, self.name))
        if canonical_unit(self.unit) == canonical_unit(unit):
            return self
        return replace(self, x=self.x * ratio, y=self.y * ratio, z=self.z * ratio, unit=canonical_unit(unit))

    def at(self, points: Points) -> Vector:
        """Values at points (n, 1..3), 0 for a missing coordinate, by +, -, * and / alone: the bits repeat.

        Examples
        --------
        >>> raster = md.Raster(x=np.arange(3.0), y=np.arange(2.0), values=[[0, 0], [2, 2], [4, 4]])
        >>> raster.at(np.array([[0.5, 0.0]])).tolist()
        [1.0]
        """
        places = [left_nodes(nodes, position) for nodes, position in zip(self.axes, coordinates(points), strict=False)]
        return blend(self.values, [(node, share, 0.0) for node, share in places], ())[0]

    def nearest(self, points: Points) -> Vector:
        """Values (n,) at the nodes nearest to points (n, 1..3), the lower node half-way; a missing coordinate is 0.

        Examples
        --------
        >>> raster = md.Raster(x=np.arange(3.0), y=np.arange(2.0), values=[[0, 0], [2, 2], [4, 4]])
        >>> raster.nearest(np.array([[0.6, 0.0]])).tolist()
        [2.0]
        """
        places = [left_nodes(nodes, position) for nodes, position in zip(self.axes, coordinates(points), strict=False)]
        return self.values[tuple(node + (share > 0.5) for node, share in places)]

    def stretch(self, *sizes: float, unit: str = "1") -> Raster:
        """The raster with cells that fill [0, width] x [0, height], as in Koufogiannis & Pappas 2016, section IV.

        Examples
        --------
        >>> raster = md.Raster(x=np.arange(2.0), y=np.arange(2.0), values=np.ones((2, 2)))
        >>> raster.stretch(10.0, 10.0, unit="km").unit
        'km'
        """
        if len(sizes) != self.values.ndim:
            raise InputError("needs one size per axis", field=self.name, value=sizes)
        nodes = [(np.arange(k) + 0.5) * (size / k) for k, size in zip(self.values.shape, sizes, strict=True)]
        return replace(self, x=nodes[0], y=nodes[1], z=nodes[2] if len(nodes) > 2 else self.z, unit=unit)

    def fingerprint(self) -> str:
        # Nodes and values, little-endian: the claim of an eikonal metric names the map by this.
        digest = hashlib.sha256()
        for part in (*self.axes, self.values):
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        return digest.hexdigest()[:12]


def coordinates(points: Points) -> list[Vector]:
    """The coordinates (n,) along x, y and z of points (n, 1..3), 0 where they have none."""
    return [*points.T, *np.zeros((3 - points.shape[1], len(points)))]


def blend(
    values: Floats,
    places: Sequence[tuple[Indices, Vector, Vector | float]],
    corner: tuple[Indices, ...],
) -> tuple[Vector, Vector | float]:
    """Values between nodes, along x first, and their error bounds; places: nodes, fractions, errors by axis."""
    if not places:
        return values[corner], 0.0
    *others, (node, share, doubt) = places
    # (1) of line_integrals: if low is off by e, high by e' and the fraction s by d, then (1 - s) low + s high is off by
    # at most (1 - s + d) e + (s + d) e' + d |high - low|.
    following = np.minimum(node + 1, values.shape[len(others)] - 1)
    low, below = blend(values, others, (node, *corner))
    high, above = blend(values, others, (following, *corner))
    off = (1 - share + doubt) * below + (share + doubt) * above + doubt * np.abs(high - low)
    return (1 - share) * low + share * high, off


def left_nodes(nodes: Vector, points: Vector) -> tuple[Indices, Vector]:
    """Left node and fraction in [0, 1] of the way to the next, clamped to the outermost nodes."""
    if len(nodes) == 1:
        return np.zeros(points.shape, np.int64), np.zeros(points.shape)
    inside = np.clip(points, nodes[0], nodes[-1])
    left = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
    return left, (inside - nodes[left]) / (nodes[left + 1] - nodes[left])
