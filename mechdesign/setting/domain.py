"""Domain: the finite set of secrets (or of reports), as cells of a grid, points, or nodes of a graph."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.setting.plane import Plane
from mechdesign.setting.units import canonical_unit

AXES = ("x", "y", "z")


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain:
    """n places with coordinates; make one with `Domain.grid`, `Domain.points` or `Domain.nodes`.

    Fields: kind; points, coordinates of shape (n, k), k = 1..3, in `unit`; for a grid also its shape (cells per
    axis), cell (size per axis, in `unit`), origin (the low corner, in `unit`) and index (n, k), the position of
    every place on the lattice. Cells run with the last axis fastest, masked cells left out. plane: where on Earth a
    grid of two axes lies, if anywhere.

    Invariants: at least two places, all finite and distinct, cell sizes positive, unit known; the plane has the unit of
    the domain, and stretches no length of the grid by more than 0.1 %.
    """

    kind: Literal["grid", "points", "nodes"]
    points: NDArray[np.float64]
    unit: str
    shape: tuple[int, ...] | None = None
    cell: tuple[float, ...] | None = None
    origin: tuple[float, ...] | None = None
    index: NDArray[np.int64] | None = None
    plane: Plane | None = None

    def __post_init__(self) -> None:
        n, k = self.points.shape
        if n < 2:
            raise InputError(
                "a domain needs at least two places, or there is nothing to protect",
                field="mask"
                if self.kind == "grid" and self.shape is not None and math.prod(self.shape) > 1
                else "domain",
                value=f"{n} place(s)",
                remedy="use a larger grid, or a mask that leaves more cells",
            )
        if not 1 <= k <= len(AXES):
            raise InputError("coordinates have 1 to 3 axes", field="points", value=k, remedy="pass an (n, 1..3) array")
        if not np.isfinite(self.points).all():
            raise InputError(
                "coordinates must be finite", field="points", value="nan or inf", remedy="drop such places"
            )
        if len(np.unique(self.points, axis=0)) < n:
            raise InputError(
                "two places coincide", field="points", value="duplicate coordinates", remedy="merge equal places"
            )
        if self.plane is not None:
            if self.kind != "grid" or k != 2 or self.plane.unit != self.unit:
                raise InputError(
                    "a plane is for a grid of two axes in its own unit",
                    field="plane",
                    value=f"{self.kind}, {k} axes, in {self.unit}; the plane in {self.plane.unit}",
                    remedy="use Domain.grid in the unit of the plane",
                )
            self.plane.excess(self.reach)

    @classmethod
    def grid(
        cls,
        shape: int | Sequence[int],
        *,
        cell: float | Sequence[float],
        unit: str,
        origin: float | Sequence[float] = 0.0,
        mask: ArrayLike | None = None,
        plane: Plane | None = None,
    ) -> Domain:
        """Cells of a 1- to 3-dimensional lattice, each represented by its centre.

        Parameters: shape, cells per axis; cell, size of a cell per axis in `unit` (one number: the same on every
        axis); unit, see `units.KNOWN_UNITS`; origin, the low corner in `unit`; mask, boolean of shape `shape`,
        True where a cell belongs to the domain; plane, where the grid lies on Earth, its centre at (0, 0).
        Raises: InputError for a non-positive size, a mask of another shape or one that leaves less than two cells.
        """
        counts = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        sizes = _per_axis(cell, len(counts), "cell")
        low = _per_axis(origin, len(counts), "origin")
        if not counts or any(int(c) != c or c < 1 for c in counts):
            raise InputError(
                "must be positive whole numbers", field="cells", value=counts, remedy="use at least 2 cells"
            )
        if any(not (s > 0 and math.isfinite(s)) for s in sizes):
            raise InputError(
                "must be positive and finite", field="cell", value=sizes, remedy="give a positive cell size"
            )
        counts = tuple(int(c) for c in counts)
        inside = np.ones(counts, bool) if mask is None else np.asarray(mask)
        if inside.dtype != bool or inside.shape != counts:
            raise InputError(
                f"must be boolean of shape {counts}",
                field="mask",
                value=f"{inside.dtype} {inside.shape}",
                remedy="pass True where a cell belongs to the domain",
            )
        index = np.argwhere(inside)
        with np.errstate(over="ignore"):
            points = np.asarray(low) + (index + 0.5) * np.asarray(sizes)
        return cls(
            kind="grid",
            points=points,
            unit=canonical_unit(unit),
            shape=counts,
            cell=sizes,
            origin=low,
            index=index,
            plane=plane,
        )

    @classmethod
    def points_at(cls, coordinates: ArrayLike, *, unit: str) -> Domain:
        """Arbitrary places: coordinates (n, k) or (n,), in `unit`."""
        return cls(kind="points", points=_as_points(coordinates), unit=canonical_unit(unit))

    @classmethod
    def nodes(cls, nodes: int | ArrayLike, *, unit: str = "1") -> Domain:
        """Nodes of a graph: their number (coordinates are then 0..n-1, without meaning), or their coordinates."""
        coordinates = np.arange(nodes) if isinstance(nodes, (int, np.integer)) else nodes
        return cls(kind="nodes", points=_as_points(coordinates), unit=canonical_unit(unit))

    @property
    def size(self) -> int:
        """Number of places n."""
        return len(self.points)

    @property
    def dimension(self) -> int:
        """Number of coordinate axes k."""
        return int(self.points.shape[1])

    @property
    def reach(self) -> float:
        """The largest distance of a place from the origin of its coordinates, in `unit`."""
        return float(np.sqrt((self.points**2).sum(axis=1)).max())

    @cached_property
    def lookup(self) -> NDArray[np.int64]:
        """For a grid, the place at every lattice position, -1 where masked; shape `shape`."""
        if self.shape is None or self.index is None:
            raise InputError("only a grid has a lattice", field="domain", value=self.kind, remedy="use Domain.grid")
        table = np.full(self.shape, -1, np.int64)
        table[tuple(self.index.T)] = np.arange(self.size)
        return table

    def euclidean_to(self, other: Domain) -> NDArray[np.float64]:
        """Euclidean distances (n, m) in `unit` from the places of this domain to those of `other`.

        Raises: UnsuitableError where units or dimensions differ.
        """
        if (self.unit, self.dimension) != (other.unit, other.dimension):
            raise UnsuitableError(
                "secrets and reports must share unit and dimension",
                field="reports",
                value=f"{other.unit}, {other.dimension}-D",
                remedy=f"give reports in {self.unit} with {self.dimension} coordinates",
            )
        square = np.zeros((self.size, other.size))
        for a, b in zip(self.points.T, other.points.T, strict=True):
            square += (a[:, None] - b[None, :]) ** 2
        return np.sqrt(square)

    def describe(self) -> dict[str, Any]:
        """What a file keeps so that `from_description` can rebuild the domain from its coordinates."""
        if self.kind != "grid":
            return {"kind": self.kind, "unit": self.unit}
        lattice = {"kind": self.kind, "unit": self.unit, "shape": self.shape, "cell": self.cell, "origin": self.origin}
        return lattice if self.plane is None else {**lattice, "plane": self.plane.describe()}

    def describe_json(self) -> str:
        """`describe` as canonical JSON."""
        return json.dumps(self.describe(), sort_keys=True)

    @classmethod
    def from_description(cls, description: dict[str, Any], coordinates: NDArray[np.float64]) -> Domain:
        """The domain of `describe` with the places at `coordinates` (n, k).

        Raises: InputError if the coordinates are not centres of cells of the described lattice.
        """
        if description["kind"] != "grid":
            return cls(kind=description["kind"], points=coordinates, unit=canonical_unit(description["unit"]))
        shape, cell, origin = description["shape"], np.asarray(description["cell"]), np.asarray(description["origin"])
        index = np.rint((coordinates - origin) / cell - 0.5).astype(np.int64)
        mask = np.zeros(shape, bool)
        if (index < 0).any() or (index >= np.asarray(shape)).any():
            raise InputError("outside the lattice", field="coordinates", value="", remedy="the file is inconsistent")
        mask[tuple(index.T)] = True
        unit, placed = description["unit"], description.get("plane")
        plane = None if placed is None else Plane.from_description(placed, unit)
        domain = cls.grid(shape, cell=cell.tolist(), unit=unit, origin=origin.tolist(), mask=mask, plane=plane)
        if not np.array_equal(domain.points, coordinates):
            raise InputError("not the cell centres", field="coordinates", value="", remedy="the file is inconsistent")
        return domain


def _per_axis(value: float | Sequence[float], axes: int, field: str) -> tuple[float, ...]:
    values = (float(value),) * axes if np.isscalar(value) else tuple(float(v) for v in value)  # type: ignore[union-attr,arg-type]
    if len(values) != axes or not all(math.isfinite(v) for v in values):
        raise InputError(f"one finite number or {axes} of them", field=field, value=value, remedy="give one per axis")
    return values


def _as_points(coordinates: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(coordinates, float)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2:
        raise InputError("must have shape (n, k)", field="points", value=points.shape, remedy="pass an (n, k) array")
    return points
