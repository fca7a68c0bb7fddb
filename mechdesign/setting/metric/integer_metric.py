"""IntegerMetric: shortest paths in whole units, from many sources at once.

Lengths are whole numbers of a small unit, so distances are exactly symmetric, obey the triangle inequality exactly and
change by at most an edge's length along that edge; nothing is rounded on the way. All sources of a block are relaxed
together: sweeps over the places in a fixed order, forwards and backwards, each place taking the minimum over the
neighbours that come before it. A forward sweep leaves every place right with respect to those before it; when the sweep
back changes nothing, it is right with respect to those after it too. That is a fixed point of every edge, hence the
shortest-path distance, or the cap where that is smaller. A cap keeps distances 1-Lipschitz.

Nothing wraps: a field is at most the cap and a length at most the longest, which together are at most 65,535, so that
their sums are 16-bit numbers; places and directed edges are fewer than 2^31, so that the rows hold them in 32 bits; and
no compiled loop leaves its arrays, because every end of an edge is a place.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError

LARGEST = 65_535  # distances and lengths are 16-bit: the cap plus the longest edge may not exceed this
_MOST = 1 << 31
BLOCK = 128  # sources relaxed at once: a place's distances then fill two cache lines

Distances = NDArray[np.uint16]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Order:
    """Places in one order, and for each its neighbours that come before and after it (compressed rows)."""

    places: NDArray[np.int32]
    before: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint16]]
    after: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint16]]


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerMetric:
    """Shortest-path distances min(d, cap) of undirected edges with whole lengths.

    Fields: points (k, 1..3), coordinates, used for nothing but the order of the sweeps; tail, head (e,) place numbers;
    units (e,), lengths >= 0; cap, the largest distance told apart.
    Raises: InputError for arrays of another type or shape, an edge that ends outside the places, 2^31 places or 2^30
        edges, and where cap plus the longest edge exceeds 65,535.
    """

    points: NDArray[np.float64]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    units: NDArray[np.uint16]
    cap: int

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or not 1 <= self.points.shape[1] <= 3 or not 1 <= self.size < _MOST:
            raise _refused("must be coordinates (k, 1..3) of fewer than 2^31 places", "points", self.points.shape)
        for name, dtype in (("tail", np.int64), ("head", np.int64), ("units", np.uint16)):
            given = getattr(self, name)
            if given.dtype != dtype or given.shape != self.tail.shape or given.ndim != 1 or 2 * len(given) >= _MOST:
                found = f"{given.dtype} {given.shape}"
                raise _refused(f"must be {np.dtype(dtype)} (e,), one for each of fewer than 2^30 edges", name, found)
        for name, ends in (("tail", self.tail), ("head", self.head)):
            if ends.min(initial=0) < 0 or ends.max(initial=0) >= self.size:
                raise _refused("an edge ends outside the places", name, f"{ends.min()} to {ends.max()}")
        longest = int(self.units.max(initial=0))
        if not 0 < self.cap <= LARGEST - longest:
            raise InputError(
                f"must be positive, and with the longest edge ({longest}) at most {LARGEST}",
                field="cap",
                value=self.cap,
                remedy="use longer units",
            )

    @property
    def size(self) -> int:
        """Number of places k."""
        return len(self.points)

    def from_sources(self, sources: NDArray[np.int64]) -> Distances:
        """Distances (k, b) in units from b places. Cost: about 10 sweeps over the edges, b at once."""
        field = np.full((self.size, len(sources)), self.cap, np.uint16)
        field[sources, np.arange(len(sources))] = 0
        return self.minorant(field)

    def minorant(self, field: Distances) -> Distances:
        """The largest functions <= field (k, b), cap with |f(u) - f(v)| <= length on every edge; works in place.

        f(u) = min over v of field(v) + d(u, v): what makes a fast-marching field private.
        """
        np.minimum(field, np.uint16(self.cap), out=field)
        for order in itertools.cycle(self._orders):
            forwards = _sweep(field, order.places, *order.before, False)
            if _sweep(field, order.places, *order.after, True) == forwards:
                break
        return field

    @cached_property
    def _orders(self) -> tuple[_Order, ...]:
        tail = np.concatenate([self.tail, self.head])
        head = np.concatenate([self.head, self.tail])
        units = np.concatenate([self.units, self.units])
        axes = self.points.T
        made = []
        for pattern in range(1 << (len(axes) - 1)):
            signs = [1] + [-1 if pattern >> a & 1 else 1 for a in range(len(axes) - 1)]
            places = np.lexsort([sign * axis for sign, axis in zip(signs, axes, strict=True)][::-1])
            rank = np.empty(self.size, np.int64)
            rank[places] = np.arange(self.size)
            earlier = rank[head] < rank[tail]
            made.append(
                _Order(
                    places=places.astype(np.int32),
                    before=_rows(tail[earlier], head[earlier], units[earlier], self.size),
                    after=_rows(tail[~earlier], head[~earlier], units[~earlier], self.size),
                )
            )
        return tuple(made)


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=value, remedy="use an unaltered file")


def _rows(
    tail: NDArray[np.int64], head: NDArray[np.int64], units: NDArray[np.uint16], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint16]]:
    """Compressed rows: where the neighbours of each place start, the neighbours, the lengths."""
    order = np.lexsort((head, tail))
    start = np.searchsorted(tail[order], np.arange(size + 1)).astype(np.int32)
    return start, head[order].astype(np.int32), units[order]


@numba.njit(cache=True, nogil=True)
def _sweep(field, places, start, neighbour, units, backwards):  # type: ignore[no-untyped-def]
    """Relax every place over its listed neighbours, in order; the sum of the field afterwards."""
    total = np.uint64(0)
    for i in range(places.size):
        p = places[places.size - 1 - i] if backwards else places[i]
        row = field[p]
        for a in range(start[p], start[p + 1]):
            other, length = field[neighbour[a]], units[a]
            for b in range(row.size):
                row[b] = min(row[b], np.uint16(other[b] + length))
        for b in range(row.size):
            total += row[b]
    return total
