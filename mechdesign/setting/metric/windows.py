"""Windows: the places around a tile of sources, with the whole distances from all of them at once.

Statement. q is the shortest-path distance of whole lengths, capped at F (integer_metric.py). The window of sources
s_1..s_b are the places nearer than F to one of them, and the field its distances min(F, q(v, s_j)), (c, b); every other
place is at F from all of them. A path shorter than F stays in the window, so nothing outside is looked at.

1. A search by buckets from all sources together finds the window, in the order of the distance from the tile. A bucket
   is as wide as the shortest edge, rounded down to a power of two, and 1 at least: a place that left its bucket is
   never improved again. Places wait in lists with links both ways, one entry each.
2. Sweeps over the places in this order, outwards and back, all sources at once. The first places, among which paths
   cross the tile, are settled on their own. After a sweep each way every place is right but where a neighbour changed
   since: only those are looked at again, until none is left. That is a fixed point of every edge.

Nothing wraps: F and the longest edge together are at most 65,535. No compiled loop leaves its arrays, whoever wrote the
numbers: ends of edges are places, every place has one entry in the lists, and buckets repeat after the longest edge.
Source: Dial, Algorithm 360 (1969), for the search; the sweeps are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

BLOCK = 128  # sources of a tile: the distances of a place from them fill four cache lines
_UNSEEN = 65_535

Distances = NDArray[np.uint16]


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Compressed rows: place p has the neighbours near[first[p]:first[p + 1]], at `units`; first (k + 1,)."""

    first: NDArray[np.int64]
    near: NDArray[np.int32]
    units: NDArray[np.uint16]

    @classmethod
    def of(cls, size: int, tail: NDArray[np.int64], head: NDArray[np.int64], units: NDArray[np.uint16]) -> Neighbours:
        """Those of undirected edges between `size` places, in the order of the edges. Cost: O(k + e)."""
        first = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(tail, minlength=size) + np.bincount(head, minlength=size), out=first[1:])
        near, lengths = np.empty(2 * len(tail), np.int32), np.empty(2 * len(tail), np.uint16)
        _fill(tail, head, units, first[:-1].copy(), near, lengths)
        return cls(first=first, near=near, units=lengths)


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """places (c,), in the order of the search, and field (c, b), their distances from the sources."""

    places: NDArray[np.int32]
    field: Distances


class Windows:
    """Room for one window at a time: what `around` returns is overwritten by its next call.

    Memory: 22 bytes for every place of the metric; for every place of a window 2 bytes a source and 6 bytes an edge.
    """

    def __init__(self, rows: Neighbours, cap: int) -> None:
        size = len(rows.first) - 1
        self.rows, self.cap = rows, cap
        self.distance, self.rank = np.full(size, _UNSEEN, np.uint16), np.full(size, -1, np.int32)
        self.following, self.before, self.found = (np.empty(size, np.int32) for _ in range(3))
        self.shift = max(int(rows.units.min(initial=_UNSEEN)), 1).bit_length() - 1
        self.head = np.full((int(rows.units.max(initial=0)) >> self.shift) + 2, -1, np.int32)
        self.room, self.near, self.units = np.empty(0, np.uint16), np.empty(0, np.int32), np.empty(0, np.uint16)

    def around(self, sources: NDArray[np.int64]) -> Window:
        """The window of the places `sources` (b,), which may come twice.

        Cost: 0.2 microseconds for every place of the window, and 1 ns for each source.
        """
        rows, b = self.rows, len(sources)
        count, edges = _search(
            sources, self.cap, self.shift, rows.first, rows.near, rows.units, self.distance, self.head, self.following,
            self.before, self.found,
        )  # fmt: skip
        places = self.found[:count]
        if len(self.room) < count * b:
            self.room = np.empty(count * b * 5 // 4, np.uint16)
        if len(self.near) < edges:
            self.near, self.units = np.empty(edges * 5 // 4, np.int32), np.empty(edges * 5 // 4, np.uint16)
        ends = np.empty((count, 4), np.int64)
        _split(places, self.rank, self.cap, rows.first, rows.near, rows.units, ends, self.near, self.units)
        field = self.room[: count * b].reshape(count, b)
        field[:] = self.cap
        field[self.rank[sources], np.arange(b)] = 0
        self.distance[places], self.rank[places] = _UNSEEN, -1
        tile = min(count, 4 * b + 64)
        _settle(field, tile, ends, self.near, self.units, np.zeros(count, bool), np.empty(b, np.uint16))
        return Window(places=places, field=field)


def tiled(points: NDArray[np.float64], size: int = BLOCK) -> NDArray[np.int64]:
    """An order (n,) of points (n, a) in which `size` in a row, from a multiple of it on, lie close together.

    Halved along the longest side, at a multiple of `size`, until `size` are left. Cost: O(n log n).
    """
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= size:
            continue
        own = points[order[start:stop]]
        axis = int(np.argmax(own.max(axis=0) - own.min(axis=0)))
        order[start:stop] = order[start:stop][np.argsort(own[:, axis], kind="stable")]
        middle = start + ((stop - start) // size + 1) // 2 * size
        parts += [(start, middle), (middle, stop)]
    return order


@numba.njit(cache=True, nogil=True)
def _fill(tail, head, units, at, near, lengths):  # type: ignore[no-untyped-def]
    for e in range(tail.size):
        u, v = tail[e], head[e]
        near[at[u]], lengths[at[u]] = v, units[e]
        at[u] += 1
        near[at[v]], lengths[at[v]] = u, units[e]
        at[v] += 1


@numba.njit(cache=True, nogil=True)
def _search(sources, cap, shift, first, near, units, distance, head, following, before, found):  # type: ignore[no-untyped-def]
    """Write the places nearer than `cap` to a source to `found`, by buckets; how many they are, and of their edges.

    head is -1 in every bucket, before and after; distance is 65,535 everywhere before, and that from the sources at the
    places found after.
    """
    buckets = head.size
    waiting, count, edges = 0, 0, 0
    for s in sources:
        if distance[s] == 0:
            continue
        distance[s], before[s], following[s] = 0, -1, head[0]
        if head[0] >= 0:
            before[head[0]] = s
        head[0] = s
        waiting += 1
    bucket = 0
    while waiting > 0:
        while head[bucket] >= 0:
            p = head[bucket]
            head[bucket] = following[p]
            if following[p] >= 0:
                before[following[p]] = -1
            waiting -= 1
            found[count] = p
            count += 1
            d = np.int64(distance[p])
            edges += first[p + 1] - first[p]
            for e in range(first[p], first[p + 1]):
                y = near[e]
                reached, was = d + np.int64(units[e]), np.int64(distance[y])
                if reached >= cap or reached >= was:
                    continue
                if was < cap:  # it waits already, in a later place
                    if before[y] >= 0:
                        following[before[y]] = following[y]
                    else:
                        head[(was >> shift) % buckets] = following[y]
                    if following[y] >= 0:
                        before[following[y]] = before[y]
                else:
                    waiting += 1
                into = (reached >> shift) % buckets
                distance[y], before[y], following[y] = reached, -1, head[into]
                if head[into] >= 0:
                    before[head[into]] = y
                head[into] = y
        bucket = (bucket + 1) % buckets
    return count, edges


@numba.njit(cache=True, nogil=True)
def _split(places, rank, cap, first, near, units, ends, own_near, own_units):  # type: ignore[no-untyped-def]
    """Number the window in its order, rank (k,), and write its compressed rows by these numbers: of place i those
    before it from ends[i, 0] to ends[i, 1], those after it from ends[i, 2] to ends[i, 3].
    """
    for i in range(places.size):
        rank[places[i]] = i
    start = 0
    for i in range(places.size):
        p = places[i]
        low, high = start, start + first[p + 1] - first[p]
        start = high
        ends[i, 0], ends[i, 3] = low, high
        for e in range(first[p], first[p + 1]):
            r = rank[near[e]]
            if r < 0 or r == i or units[e] >= cap:
                continue
            if r < i:
                own_near[low], own_units[low] = r, units[e]
                low += 1
            else:
                high -= 1
                own_near[high], own_units[high] = r, units[e]
        ends[i, 1], ends[i, 2] = low, high


@numba.njit(cache=True, nogil=True)
def _lower(field, i, low, high, near, units, least):  # type: ignore[no-untyped-def]
    """Lower row i to what its neighbours low..high allow; whether a number changed.

    least (b,), room for a row: loops over it and one other row are vectorised, since the two never overlap.
    """
    row = field[i]
    for b in range(least.size):
        least[b] = row[b]
    for e in range(low, high):
        other, length = field[near[e]], units[e]
        for b in range(least.size):
            least[b] = min(least[b], np.uint16(other[b] + length))
    changed = np.uint16(0)
    for b in range(least.size):
        changed |= np.uint16(least[b] ^ row[b])
    if changed:
        for b in range(least.size):
            row[b] = least[b]
    return changed != 0


@numba.njit(cache=True, nogil=True)
def _mark(low, high, size, near, stale):  # type: ignore[no-untyped-def]
    """Mark the neighbours low..high among the first `size` places as stale; how many were not."""
    more = 0
    for e in range(low, high):
        if near[e] < size and not stale[near[e]]:
            stale[near[e]] = True
            more += 1
    return more


@numba.njit(cache=True, nogil=True)
def _settle(field, tile, ends, near, units, stale, least):  # type: ignore[no-untyped-def]
    """Lower the field, the cap but at the sources, to its fixed point, first that of its `tile` first places.

    stale (c,), False before and after: places with a neighbour that changed.
    """
    for size in (tile, field.shape[0]):
        for i in range(size):
            _lower(field, i, ends[i, 0], ends[i, 1], near, units, least)
        left = 0
        for k in range(size):
            i = size - 1 - k
            if _lower(field, i, ends[i, 2], ends[i, 3], near, units, least):
                left += _mark(ends[i, 0], ends[i, 1], size, near, stale)
                left += _mark(ends[i, 2], ends[i, 3], size, near, stale)
        while left > 0:
            for k in range(2 * size):
                i = k if k < size else 2 * size - 1 - k
                if not stale[i]:
                    continue
                stale[i] = False
                left -= 1
                inwards = _lower(field, i, ends[i, 0], ends[i, 1], near, units, least)
                if _lower(field, i, ends[i, 2], ends[i, 3], near, units, least) or inwards:
                    left += _mark(ends[i, 0], ends[i, 1], size, near, stale)
                    left += _mark(ends[i, 2], ends[i, 3], size, near, stale)
