"""Ground distance: the distance between the places between which mass is moved."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from mechdesign.base.arrays import Indices, IntegerMatrix, MaskMatrix, Matrix, Points, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import as_numbers
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

ROUNDING = 2.0**-40  # of the diameter: the breach of symmetry or of the triangle inequality that a table may have


# Euclidean between the places of a domain, in its unit, or a table that is checked to be a metric. Source: Alvim et al.
# 2018, section II, where the Kantorovich lifting takes any metric.
@dataclass(frozen=True, kw_only=True, eq=False)
class Ground:
    """Distances between n places; make one with `Ground.of`. Either `points` or `table` is None."""

    size: int  # n
    diameter: float  # at least the largest distance, in `unit`
    slack: float  # largest breach of d(x, z) <= d(x, y) + d(y, z) by a table, in `unit`
    unit: str
    points: Points | None = None
    table: Matrix | None = None
    index: IntegerMatrix | None = None  # (n, k), groups nearby places when halved

    @classmethod
    def of(cls, places: Domain | ArrayLike) -> Ground:
        """The ground distance of a domain (Euclidean) or of a table (n, n), which has unit "1" and must be a metric."""
        # Cost: O(n) for a domain; O(n^3) for a table.
        if isinstance(places, Domain):
            return _of_points(places)
        table = _symmetric_table(as_numbers(places, "domain"))
        slack = float(_worst_detour(table).max(initial=0.0))
        diameter = float(table.max())
        # Tables of path lengths in doubles break the inequality by rounding. `slack` lowers the bound by as much.
        if slack > ROUNDING * diameter:
            _refuse_detour(table, ROUNDING * diameter)
        return cls(size=len(table), diameter=diameter, slack=slack, unit="1", table=table)

    @property
    def line(self) -> bool:
        """True if the places lie on a line with Euclidean distance."""
        return self.points is not None and self.points.shape[1] == 1

    def between(self, rows: Indices, columns: Indices) -> Matrix:
        """Distances (r, c) from the places `rows` (r,) to `columns` (c,), in `unit`."""
        require_memory(len(rows), len(columns), tables=1, noun="the table of distances")
        if self.points is None:
            assert self.table is not None
            return self.table[np.ix_(rows, columns)]
        return np.asarray(cdist(self.points[rows], self.points[columns]))

    def along(self, source: Indices, target: Indices) -> Vector:
        """Distances (e,) of the pairs (source[i], target[i]), in `unit`."""
        if self.points is None:
            assert self.table is not None
            return self.table[source, target]
        return np.sqrt(((self.points[source] - self.points[target]) ** 2).sum(axis=1))

    def extend(self, support: Indices, values: Vector) -> Vector:
        """f(x) = min over y in `support` of values(y) + d(x, y), (n,): 1-Lipschitz up to rounding and `slack`."""
        if self.points is None:
            assert self.table is not None
            return _extend_over_table(self.table, support, values)
        return extension(self.points, self.points[support], values)


def extension(points: Points, support: Points, values: Vector) -> Vector:
    """Min over support points y (c, k) of values(y) + |x - y|, at every point x (n, k). Memory O(n)."""
    # Transposed: the inner loop runs over contiguous coordinates of one axis.
    return _extend_over_points(np.array(points.T, order="C"), np.array(support.T, order="C"), values)


def _of_points(domain: Domain) -> Ground:
    points = np.ascontiguousarray(domain.points)
    extent = np.ptp(points, axis=0)
    index = domain.index
    # Scattered places are binned into about n square bins, which are halved like the cells of a grid.
    if index is None:
        wide = extent[extent > 0]
        cell = float(np.prod(wide / extent.max()) / domain.size) ** (1 / len(wide)) * extent.max()
        index = np.floor((points - points.min(axis=0)) / cell).astype(np.int64)
    diameter = float(np.sqrt((extent**2).sum())) * (1 + 2.0**-50)
    return Ground(size=domain.size, diameter=diameter, slack=0.0, unit=domain.unit, points=points, index=index)


def _symmetric_table(table: Matrix) -> Matrix:
    """Check a table of distances, all but the triangle inequality, and make it exactly symmetric."""
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InputError("must be a Domain or a square table", field="domain", value=f"shape {table.shape}")

    def refuse(bad: MaskMatrix, problem: str) -> None:
        if bad.any():
            x, y = np.argwhere(bad)[0]
            raise InputError(problem, field="domain", value=f"d({x}, {y}) = {float(table[x, y])!r}")

    on_diagonal = np.eye(len(table), dtype=bool)
    refuse(~np.isfinite(table), "distances must be finite")
    refuse(on_diagonal & (table != 0), "the distance of a place to itself must be 0")
    refuse(~on_diagonal & (table <= 0), "the distance of two places must be positive: merge places at distance 0")
    unequal = abs(table - table.T) > ROUNDING * table.max()
    refuse(unequal, "a metric is symmetric")
    return np.ascontiguousarray((table + table.T) / 2)


def _refuse_detour(table: Matrix, allowed: float) -> None:
    """Raise InputError for the first triple whose detour is shorter than its distance by more than `allowed`."""
    x = int(np.argmax(_worst_detour(table) > allowed))
    excess = table[x][:, None] - (table[x][None, :] + table)  # (z, y): d(x, z) - d(x, y) - d(y, z)
    z, y = np.argwhere(excess > allowed)[0]
    raise InputError(
        f"breaks the triangle inequality: d({x}, {z}) = {table[x, z]:.12g} > "
        f"d({x}, {y}) + d({y}, {z}) = {table[x, y] + table[y, z]:.12g}",
        field="domain",
    )


@numba.njit(cache=True, nogil=True)
def _worst_detour(table):  # type: ignore[no-untyped-def]
    """Max over y, z of d(x, z) - d(x, y) - d(y, z), for every x, (n,)."""
    n = table.shape[0]
    worst, largest = np.zeros(n), np.empty(n)
    for x in range(n):
        # One maximum per z, without a branch across z, so that the inner loop is vectorised.
        largest[:] = 0.0
        for y in range(n):
            first_leg = table[x, y]
            for z in range(n):
                excess = table[x, z] - first_leg - table[y, z]
                if excess > largest[z]:
                    largest[z] = excess
        worst[x] = largest.max()
    return worst


@numba.njit(cache=True, nogil=True)
def _extend_over_points(points, support, values):  # type: ignore[no-untyped-def]
    minimum, square = np.full(points.shape[1], np.inf), np.empty(points.shape[1])
    for j in range(support.shape[1]):
        square[:] = 0.0
        for axis in range(points.shape[0]):
            place = support[axis, j]
            for i in range(points.shape[1]):
                step = place - points[axis, i]
                square[i] += step * step
        for i in range(points.shape[1]):
            value = values[j] + np.sqrt(square[i])
            if value < minimum[i]:
                minimum[i] = value
    return minimum


@numba.njit(cache=True, nogil=True)
def _extend_over_table(table, support, values):  # type: ignore[no-untyped-def]
    minimum = np.full(table.shape[0], np.inf)
    for j in range(support.shape[0]):
        row = table[support[j]]
        for i in range(table.shape[0]):
            minimum[i] = min(minimum[i], values[j] + row[i])
    return minimum
