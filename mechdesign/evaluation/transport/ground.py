"""Ground distance: the distance between the places between which mass is moved.

Euclidean between the places of a domain, in its unit, or a table that is checked to be a metric. Source: Alvim et al.
2018, section II, where the Kantorovich lifting takes any metric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from mechdesign.base.memory import require_memory
from mechdesign.base.validation import as_numbers
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

ROUNDING = 2.0**-40  # of the diameter: the breach of symmetry or of the triangle inequality that a table may have


@dataclass(frozen=True, kw_only=True, eq=False)
class Ground:
    """Distances between n places; make one with `Ground.of`.

    size: n. diameter: at least the largest distance, in `unit`. slack: the largest breach of d(x, z) <= d(x, y) +
    d(y, z) beyond the rounding of Euclidean distances, in `unit`. Either points (n, k) or table (n, n) is None.
    index: integers (n, k) that group near places when halved, or None.
    """

    size: int
    diameter: float
    slack: float
    unit: str
    points: NDArray[np.float64] | None = None
    table: NDArray[np.float64] | None = None
    index: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, places: Domain | ArrayLike) -> Ground:
        """The ground distance of a domain (Euclidean) or of a table (n, n), which has unit "1" and must be a metric.

        The triangle inequality may fail by 2^-40 of the largest entry. Cost: O(n) for a domain; O(n^3) for a table,
        half a second at 900 places.
        """
        if isinstance(places, Domain):
            return _of_points(places)
        table = _checked(as_numbers(places, "domain"))
        slack = float(_worst_detour(table).max(initial=0.0))
        diameter = float(table.max())
        if slack > ROUNDING * diameter:
            _refuse_detour(table, ROUNDING * diameter)
        return cls(size=len(table), diameter=diameter, slack=slack, unit="1", table=table)

    @property
    def line(self) -> bool:
        """True if the places lie on a line with Euclidean distance."""
        return self.points is not None and self.points.shape[1] == 1

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Distances (r, c) from the places `rows` (r,) to `columns` (c,), in `unit`."""
        require_memory(len(rows), len(columns), tables=1, what="the table of distances")
        if self.points is None:
            assert self.table is not None
            return self.table[np.ix_(rows, columns)]
        return np.asarray(cdist(self.points[rows], self.points[columns]))

    def along(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
        """Distances (e,) of the pairs (source[i], target[i]), in `unit`."""
        if self.points is None:
            assert self.table is not None
            return self.table[source, target]
        return np.sqrt(((self.points[source] - self.points[target]) ** 2).sum(axis=1))

    def extended(self, support: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(x) = min over y in `support` of values(y) + d(x, y), (n,): the largest 1-Lipschitz function below values.

        It is 1-Lipschitz up to rounding and `slack`. Cost: O(n |support|) time, O(n) memory.
        """
        if self.points is None:
            assert self.table is not None
            return _least_of_table(self.table, support, values)
        return extension(self.points, self.points[support], values)


def extension(
    points: NDArray[np.float64], support: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Min over support points y (c, k) of values(y) + |x - y|, at every point x (n, k). Memory O(n)."""
    return _least(np.array(points.T, order="C"), np.array(support.T, order="C"), values)


def _of_points(domain: Domain) -> Ground:
    points = np.ascontiguousarray(domain.points)
    extent = np.ptp(points, axis=0)
    index = domain.index
    if index is None:
        wide = extent[extent > 0]
        cell = float(np.prod(wide / extent.max()) / domain.size) ** (1 / len(wide)) * extent.max()
        index = np.floor((points - points.min(axis=0)) / cell).astype(np.int64)
    diameter = float(np.sqrt((extent**2).sum())) * (1 + 2.0**-50)
    return Ground(size=domain.size, diameter=diameter, slack=0.0, unit=domain.unit, points=points, index=index)


def _checked(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table made exactly symmetric, if it is square, finite, symmetric to rounding and separates places."""
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InputError("must be a Domain or a square table", field="domain", value=f"shape {table.shape}")

    def refuse(bad: NDArray[np.bool_], problem: str) -> None:
        if bad.any():
            x, y = np.argwhere(bad)[0]
            raise InputError(problem, field="domain", value=f"d({x}, {y}) = {float(table[x, y])!r}")

    own = np.eye(len(table), dtype=bool)
    refuse(~np.isfinite(table), "distances must be finite")
    refuse(own & (table != 0), "the distance of a place to itself must be 0")
    refuse(~own & (table <= 0), "the distance of two places must be positive: merge places at distance 0")
    unequal = abs(table - table.T) > ROUNDING * table.max()
    refuse(unequal, "a metric is symmetric")
    return np.ascontiguousarray((table + table.T) / 2)


def _refuse_detour(table: NDArray[np.float64], allowed: float) -> None:
    """Raise InputError for the first triple whose detour is shorter than the direct way by more than `allowed`."""
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
    worst, most = np.zeros(n), np.empty(n)
    for x in range(n):
        most[:] = 0.0
        for y in range(n):
            there = table[x, y]
            for z in range(n):
                excess = table[x, z] - there - table[y, z]
                if excess > most[z]:
                    most[z] = excess
        worst[x] = most.max()
    return worst


@numba.njit(cache=True, nogil=True)
def _least(points, support, values):  # type: ignore[no-untyped-def]
    least, square = np.full(points.shape[1], np.inf), np.empty(points.shape[1])
    for j in range(support.shape[1]):
        square[:] = 0.0
        for axis in range(points.shape[0]):
            place = support[axis, j]
            for i in range(points.shape[1]):
                step = place - points[axis, i]
                square[i] += step * step
        for i in range(points.shape[1]):
            value = values[j] + np.sqrt(square[i])
            if value < least[i]:
                least[i] = value
    return least


@numba.njit(cache=True, nogil=True)
def _least_of_table(table, support, values):  # type: ignore[no-untyped-def]
    least = np.full(table.shape[0], np.inf)
    for j in range(support.shape[0]):
        row = table[support[j]]
        for i in range(table.shape[0]):
            least[i] = min(least[i], values[j] + row[i])
    return least
