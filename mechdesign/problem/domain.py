"""Domain: the finite set of secrets or reports, as cells of a grid, points, or nodes of a graph."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Integers, Matrix, Points
from mechdesign.base.json_fields import LARGEST, check_keys, finites, wholes, word
from mechdesign.base.labels import join_labels
from mechdesign.base.memory import require_memory, require_places
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import canonical_unit
from mechdesign.base.validation import as_numbers, refuse_entries, validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.classes import check_labels
from mechdesign.problem.plane import Plane
from mechdesign.problem.vocabulary import words_of

AXES = ("x", "y", "z")
MOST_PLACES = 2**31 - 1  # n < 2^31, so that n * n and place * n + place are 64-bit integers
UNDERFLOW_LIMIT = 2.0**-400  # the square of a smaller coordinate, below 2^-800, loses digits in products
MAX_LATTICE_CELLS, MAX_CELLS_PER_PLACE = 2**22, 2**12  # a lattice has at most 4 million cells, or 4096 for every place


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain(FrozenRecord):
    """n places; make them with `Domain.grid`, `Domain.points_at`, `Domain.nodes` or `Domain.classes`.

    Cells run with the last axis fastest, masked cells left out. Invariants: from two to 2^31 - 1 distinct places,
    coordinates within 2^500, a lattice of at most 2^22 cells or 4096 times its places. The plane stretches no length by
    more than 0.1 %.

    Attributes
    ----------
    kind : {"grid", "points", "nodes"}
        Cells, places with coordinates, or names alone.
    points : (n, k) array
        Coordinates, k = 1 to 3, in `unit`, a unit of length.
    shape, cell, origin : tuples
        Of a grid, per axis: cells, size of a cell and low corner in `unit`.
    index, plane : (n, k) int array, Plane or None
        Position on the lattice of a grid; where on Earth the cells or points of two axes lie.
    labels, ordered : tuple of str or None, bool
        The names of classes; True if their coordinates are ranks or positions, False if they are mere numbers.

    Examples
    --------
    >>> md.Domain.grid((2, 2), 0.5, unit="km").points
    array([[0.25, 0.25],
           [0.25, 0.75],
           [0.75, 0.25],
           [0.75, 0.75]])
    """

    kind: Literal["grid", "points", "nodes"]
    points: Points
    unit: str
    shape: tuple[int, ...] | None = None
    cell: tuple[float, ...] | None = None
    origin: tuple[float, ...] | None = None
    index: Integers | None = None
    plane: Plane | None = None
    labels: tuple[str, ...] | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        n, k = self.points.shape
        if self.labels is not None:
            if self.kind != "nodes" or k != 1:
                raise InputError("are for classes", field="labels", value=self.kind, remedy="use Domain.classes")
            object.__setattr__(self, "labels", check_labels(self.labels, n))
        if n < 2:
            masked = self.shape is not None and math.prod(self.shape) > 1
            raise InputError(
                "needs at least two places, or there is nothing to protect",
                field="mask" if masked else "domain",
                value=f"{n} place(s)",
            )
        _check_axes(k)
        if n > MOST_PLACES:
            raise InputError("must be at most 2^31 - 1 places", field="points", value=n)
        is_too_large = ~(np.abs(self.points) <= LARGEST)
        refuse_entries(
            is_too_large, self.points, "coordinates must be finite, and no larger than 1e150", field="points"
        )
        # Sorted, equal places are neighbours.
        ordered = self.points[np.lexsort(self.points.T[::-1])]
        is_repeated = (ordered[1:] == ordered[:-1]).all(axis=1)
        if is_repeated.any():
            place = ordered[np.argmax(is_repeated)]
            value = f"{place} at {np.flatnonzero((self.points == place).all(axis=1))[:2].tolist()}"
            raise InputError("two places coincide", field="points", value=value)
        if self.plane is not None:
            if self.kind == "nodes" or k != 2 or self.plane.unit != self.unit:
                description = f"{self.kind} on {k} axes, in {self.unit}; the plane in {self.plane.unit}"
                raise InputError("is for cells or points of two axes in its own unit", field="plane", value=description)
            self.plane.excess(self.max_radius)

    @classmethod
    @validate_call
    def grid(
        cls,
        shape: int | Sequence[int],
        cell: float | Sequence[float],
        *,
        unit: str = "1",
        origin: float | Sequence[float] = 0.0,
        mask: ArrayLike | None = None,
        plane: Plane | None = None,
    ) -> Domain:
        """The cells of a lattice of one to three axes, each represented by its centre.

        Parameters
        ----------
        shape, cell, origin : tuples, or one number for all axes
            Cells per axis, size of a cell and low corner, in `unit`.
        unit : str
            A length such as m, km, mi or ft, or any other name, such as EUR; "1" by default.
        mask, plane : bool array of shape `shape`, Plane
            True where a cell belongs to the domain; where the grid lies on Earth, its centre at (0, 0).

        Examples
        --------
        >>> md.Domain.grid((2, 2), 1.0, mask=[[True, True], [True, False]]).size
        3
        """
        counts = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        sizes = _per_axis(cell, len(counts), "cell")
        low = _per_axis(origin, len(counts), "origin")
        if not counts or any(not isinstance(c, (int, float, np.integer)) or c < 1 or c % 1 for c in counts):
            raise InputError("must be positive integers", field="cells", value=counts)
        if not min(sizes) > 0:
            raise InputError("must be positive and finite", field="cell", value=sizes)
        _check_axes(len(counts))
        counts = tuple(int(c) for c in counts)
        if mask is None:
            require_places(math.prod(counts))
        inside = None if mask is None else np.asarray(mask)
        if inside is not None and (inside.dtype != bool or inside.shape != counts):
            raise InputError(f"must be boolean of shape {counts}", field="mask", value=f"{inside.dtype} {inside.shape}")
        _check_lattice(counts, math.prod(counts) if inside is None else int(np.count_nonzero(inside)))
        # argwhere runs in the order of memory, with the last axis fastest.
        index = np.argwhere(np.ones(counts, bool) if inside is None else inside)
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
    @validate_call
    def points_at(cls, coordinates: ArrayLike, *, unit: str, plane: Plane | None = None) -> Domain:
        """Places at coordinates (n, k) or (n,), k = 1 to 3, in `unit`; plane: where they lie on Earth.

        Examples
        --------
        >>> md.Domain.points_at([0.0, 2.0, 5.0], unit="km").points.shape
        (3, 1)
        """
        return cls(kind="points", points=_as_points(coordinates), unit=canonical_unit(unit), plane=plane)

    @classmethod
    @validate_call
    def nodes(cls, nodes: int | ArrayLike, *, unit: str = "1") -> Domain:
        """The nodes of a graph: their number (coordinates are then 0..n-1), or their coordinates (n, k) in `unit`.

        Examples
        --------
        >>> md.Domain.nodes(3, unit="km").points[:, 0].tolist()
        [0.0, 1.0, 2.0]
        """
        if isinstance(nodes, (int, np.integer)):
            require_places(int(nodes))
            nodes = np.arange(nodes)
        return cls(kind="nodes", points=_as_points(nodes), unit=canonical_unit(unit))

    @classmethod
    @validate_call
    def classes(
        cls,
        labels: Sequence[str],
        *,
        ordered: bool = False,
        positions: ArrayLike | None = None,
        unit: str = "1",
    ) -> Domain:
        """Classes with names, such as the answers to a question.

        Parameters
        ----------
        labels : sequence of str
            The name of each class. Files, reports, tables and sentences use it.
        ordered : bool
            True if the classes lie on a line in this order: their distance is the difference of their ranks.
        positions, unit : (n,) array, str
            Ascending positions of ordered classes in `unit`, instead of ranks.

        Examples
        --------
        >>> md.Domain.classes(["low", "mid", "high"], ordered=True).points.ravel()
        array([0., 1., 2.])
        """
        if isinstance(labels, str):
            raise InputError("must be several labels", field="labels", value=labels, remedy='pass ["yes", "no"]')
        names = list(labels)
        at = np.arange(len(names), dtype=float) if positions is None else as_numbers(positions, "positions")
        if at.shape != (len(names),) or not (np.diff(at) > 0).all():
            value = f"{at.tolist()!s:.80}"
            raise InputError("must ascend, one for each class", field="positions", value=value)
        placed = ordered or positions is not None
        points = at.reshape(-1, 1)
        return cls(kind="nodes", points=points, unit=canonical_unit(unit), labels=tuple(names), ordered=placed)

    def name_of(self, place: int) -> str:
        """The label of a class, in other domains the number of the place.

        Examples
        --------
        >>> md.Domain.classes(["yes", "no"]).name_of(1)
        'no'
        """
        return str(place) if self.labels is None else self.labels[place]

    @property
    def has_distances(self) -> bool:
        """False for classes without an order, whose coordinates are mere numbers."""
        return self.labels is None or self.ordered

    def repr_fields(self) -> Mapping[str, object]:
        if self.labels is not None:
            order = " in order" if self.ordered else ""
            return {"classes": f"{self.size}{order}: {join_labels(self.labels)}"}
        unit = "" if self.unit == "1" else f" {self.unit}"
        places = f"{self.size} {self.kind} on {self.dimension} axes{unit and ', in' + unit}"
        if self.shape is not None and self.cell is not None:
            grid, cell = (" x ".join(f"{value:.6g}" for value in values) for values in (self.shape, self.cell))
            places = f"{self.size} {words_of(self).many} of a {grid} grid, {cell}{unit} each"
        return {"places": places} | ({} if self.plane is None else {"plane": self.plane.words()})

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @property
    def max_radius(self) -> float:
        """The largest distance of a place from the origin of its coordinates, in `unit`."""
        return float(np.sqrt((self.points**2).sum(axis=1)).max())

    @cached_property
    def max_position_radius(self) -> float:
        """The largest distance of a position in a cell from the origin, rounded up."""
        # 2^-50 exceeds the rounding of the two lengths and of their sum.
        return self.max_radius if self.cell is None else (self.max_radius + math.hypot(*self.cell) / 2) * (1 + 2.0**-50)

    @cached_property
    def spacing(self) -> float:
        """The shortest side of a cell on a grid, elsewhere the smallest distance between two places; in `unit`."""
        if self.cell is not None:
            return min(self.cell)
        from scipy.spatial import cKDTree

        return float(cKDTree(self.points).query(self.points, k=2)[0][:, 1].min())

    @cached_property
    def lookup(self) -> Integers:
        if self.shape is None or self.index is None:
            raise InputError("only a grid has a lattice", field="domain", value=self.kind, remedy="use Domain.grid")
        table = np.full(self.shape, -1, np.int64)
        table[tuple(self.index.T)] = np.arange(self.size)
        return table

    def euclidean_to(self, other: Domain) -> Matrix:
        """Euclidean distances (n, m) in `unit` from the places of this domain to those of `other`.

        Examples
        --------
        >>> line = md.Domain.grid(3, 2.0)
        >>> line.euclidean_to(line)[0].tolist()
        [0.0, 2.0, 4.0]
        """
        self.require_alike(other)
        for domain in (self, other):
            domain.require_distances()
        # A power of two scales exactly: it moves tiny coordinates away from subnormal squares.
        square = np.zeros((self.size, other.size))
        scale = _exact_scale(self.points, other.points)
        for a, b in zip(scale * self.points.T, scale * other.points.T, strict=True):
            # In place: n m doubles are the largest arrays of a problem.
            difference = a[:, None] - b[None, :]
            square += np.square(difference, out=difference)
        np.sqrt(square, out=square)
        return np.divide(square, scale, out=square)

    def same_places(self, other: Domain) -> bool:
        """True if both domains have the same places in the same order.

        Examples
        --------
        >>> md.Domain.grid(3, 1.0).same_places(md.Domain.nodes(3))
        False
        """
        return self is other or (
            (self.unit, self.labels) == (other.unit, other.labels) and np.array_equal(self.points, other.points)
        )

    def require_distances(self) -> None:
        """Refuse classes without an order.

        Examples
        --------
        >>> md.Domain.grid(3, 1.0).require_distances()
        """
        if not self.has_distances:
            remedy = "use md.Discrete and md.losses.ZeroOne, md.Matrix, or Domain.classes(..., ordered=True)"
            raise UnsuitableError(
                "classes without an order have no distances",
                field="domain",
                value=join_labels(self.labels or ()),
                remedy=remedy,
            )

    def require_alike(self, other: Domain) -> None:
        if (self.unit, self.dimension) != (other.unit, other.dimension):
            description = f"{other.unit}, {other.dimension}-D"
            raise UnsuitableError(
                "secrets and reports must share unit and dimension", field="reports", value=description
            )

    def describe(self) -> dict[str, Any]:
        """The JSON form without coordinates; `from_description` reads it.

        Examples
        --------
        >>> md.Domain.nodes(3).describe()["kind"]
        'nodes'
        """
        description: dict[str, Any] = {"kind": self.kind, "unit": self.unit}
        if self.kind == "grid":
            description |= {"shape": self.shape, "cell": self.cell, "origin": self.origin}
        if self.labels is not None:
            description |= {"labels": list(self.labels), "ordered": self.ordered}
        return description if self.plane is None else {**description, "plane": self.plane.describe()}

    def describe_json(self) -> str:
        return json.dumps(self.describe(), sort_keys=True)

    @classmethod
    def from_description(cls, description: dict[str, Any], coordinates: Points) -> Domain:
        """The domain of `describe` at `coordinates` (n, k), from untrusted data.

        Examples
        --------
        >>> line = md.Domain.nodes(3)
        >>> md.Domain.from_description(line.describe(), line.points).size
        3
        """
        if coordinates.dtype != np.float64 or coordinates.ndim != 2:
            raise _inconsistent(f"must be 64-bit floating-point numbers (n, k), not {coordinates.dtype}")
        grid = isinstance(description, dict) and description.get("kind") == "grid"
        lattice = ("shape", "cell", "origin") if grid else ()
        fields = check_keys(description, "domain", ("kind", "unit", *lattice), ("plane", "labels", "ordered"))
        kind, unit = word(fields["kind"], "domain"), canonical_unit(word(fields["unit"], "unit"))
        plane = Plane.from_description(fields["plane"], unit) if "plane" in fields else None
        if not grid:
            if kind not in ("points", "nodes"):
                raise InputError("unknown kind of places", field="domain", value=kind)
            ordered = fields.get("ordered", False)
            if not isinstance(ordered, bool) or (ordered and "labels" not in fields):
                raise _inconsistent("have no order")
            labels = check_labels(fields["labels"], len(coordinates)) if "labels" in fields else None
            return cls(kind=kind, points=coordinates, unit=unit, plane=plane, labels=labels, ordered=ordered)  # type: ignore[arg-type]
        if {"labels", "ordered"} & set(fields):
            raise InputError("are for classes", field="labels", value=kind)
        cell, origin = finites(fields["cell"], "cell"), finites(fields["origin"], "origin")
        axes = coordinates.shape[1]
        shape = tuple(wholes(fields["shape"], "shape", 1, MOST_PLACES).tolist())
        _check_axes(axes)
        if not len(shape) == len(cell) == len(origin) == axes:
            raise _inconsistent(f"have {axes} axes, unlike shape, cell and origin")
        if not (cell > 0).all():
            raise InputError("must be positive", field="cell", value=cell.tolist())
        _check_lattice(shape, len(coordinates))
        # Untrusted: compare as doubles before converting to integers, which overflow silently.
        with np.errstate(over="ignore", invalid="ignore"):
            position = np.rint((coordinates - origin) / cell - 0.5)
        if not ((position >= 0) & (position < shape)).all():
            raise _inconsistent("lie outside the lattice")
        mask = np.zeros(shape, bool)
        mask[tuple(position.astype(np.int64).T)] = True
        domain = cls.grid(shape, cell=cell.tolist(), unit=unit, origin=origin.tolist(), mask=mask, plane=plane)
        # Bit for bit: lengths of the claim are computed from the coordinates.
        if not np.array_equal(domain.points, coordinates):
            raise _inconsistent("are not the cell centres")
        return domain


def _exact_scale(*points: Points) -> float:
    """A power of two that keeps squares of tiny coordinates in the normal range of doubles; 1 for others."""
    return 2.0**700 if all((np.abs(coordinates) < UNDERFLOW_LIMIT).all() for coordinates in points) else 1.0


def _check_lattice(shape: tuple[int, ...], places: int) -> None:
    """Refuse a lattice that its places do not need, or that does not fit in memory, in Python's integers."""
    cells = math.prod(shape)
    if cells > max(MAX_LATTICE_CELLS, MAX_CELLS_PER_PLACE * places):
        raise InputError(
            f"leaves {places} places of a lattice of {cells} cells",
            field="mask",
            value=" x ".join(map(str, shape)),
            remedy=f"crop the lattice to at most {MAX_LATTICE_CELLS} cells, or {MAX_CELLS_PER_PLACE} per place",
        )
    # Tables of the size of the lattice: the lookup, and a part of one for points and index.
    columns = 1 + math.ceil(2 * len(shape) * places / cells)
    require_memory(cells, columns, tables=1, noun="a grid of so many cells")


def _check_axes(axes: int) -> None:
    if not 1 <= axes <= len(AXES):
        raise InputError("coordinates have 1 to 3 axes", field="points", value=axes)


def _inconsistent(problem: str) -> InputError:
    return InputError(f"{problem}; the file is inconsistent", field="coordinates")


def _per_axis(value: float | Sequence[float], axes: int, field: str) -> tuple[float, ...]:
    values = (float(value),) * axes if np.isscalar(value) else tuple(float(v) for v in value)  # type: ignore[union-attr,arg-type]
    if len(values) != axes or not all(math.isfinite(v) for v in values):
        raise InputError(f"must be one finite number or {axes} of them", field=field, value=value)
    return values


def _as_points(coordinates: ArrayLike) -> Points:
    names = list(getattr(coordinates, "columns", []))
    if any(isinstance(name, str) for name in names):
        if sorted(names) != list(AXES[: len(names)]):
            shown = ", ".join(map(str, names))
            remedy = "pass frame[['x', 'y']]; longitudes and latitudes first through plane.forward"
            raise InputError("has other columns than x, y and z", field="points", value=shown, remedy=remedy)
        coordinates = coordinates[sorted(names)]  # type: ignore[call-overload,index]
    index = getattr(coordinates, "index", None)
    if index is not None and not callable(index) and not index.is_monotonic_increasing:
        # Labels would number the places in another order than the rows.
        message = "has labels that do not ascend"
        raise InputError(message, field="points", remedy="pass frame.reset_index(drop=True), or sort by label")
    points = as_numbers(coordinates, "points")
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2:
        raise InputError("must have shape (n, k)", field="points", value=points.shape)
    return points
