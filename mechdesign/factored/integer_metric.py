"""IntegerMetric: shortest paths in whole units, from many sources at once.

Integer distances are exactly symmetric, obey the triangle inequality exactly and change by at most an edge's length
along that edge. A cap keeps distances 1-Lipschitz.

Windows. The window of sources s_1..s_b are the places nearer than the cap F to one of them, and the field its distances
min(F, q(v, s_j)), (c, b). A path shorter than F stays in the window, so nothing outside is looked at.

1. A search by buckets from all sources together finds the window (`_search_window`).
2. Sweeps over the places in this order, all sources at once, reach the fixed point of every edge (`_settle`).

"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Floats, Indices, Indices32, Integers, Matrix
from mechdesign.errors import InputError

LARGEST = 65_535  # distances and lengths are 16-bit: the cap plus the longest edge may not exceed this
BLOCK = 128  # sources of a tile: the distances of a place from them fill four cache lines
_UNSEEN = 65_535
Distances = NDArray[np.uint16]


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Compressed rows: place p has the neighbours near[first[p]:first[p + 1]], at `units`; first (k + 1,)."""

    first: Integers
    near: Indices32
    units: NDArray[np.uint16]

    @classmethod
    def of(cls, size: int, tail: Integers, head: Integers, units: NDArray[np.uint16]) -> Neighbours:
        source, other = np.column_stack([tail, head]).ravel(), np.column_stack([head, tail]).ravel()
        order = np.argsort(source, kind="stable")
        first = np.append(0, np.cumsum(np.bincount(source, minlength=size)))
        return cls(first=first, near=other[order].astype(np.int32), units=np.repeat(units, 2)[order])

    @cached_property
    def range(self) -> tuple[int, int]:
        return int(self.units.min(initial=_UNSEEN)), int(self.units.max(initial=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """places (c,), in the order of the search, and field (c, b), their distances from the sources."""

    places: Indices32
    field: Distances

    def dense(self, size: int, cap: int) -> Distances:
        nearby = np.full((size, self.field.shape[1]), cap, np.uint16)
        nearby[self.places] = self.field
        return nearby


class SearchScratch(NamedTuple):
    """Arrays of one search: by place (k,), by bucket, and by place and directed edge of the window."""

    distance: NDArray[np.uint16]  # 65,535 between searches
    head: Indices32  # the first place of a bucket, -1 between searches
    following: Indices32  # the next place of the same bucket, -1 at the end
    before: Indices32  # the one before it, -1 at the head
    nearby: Indices32  # places in the order of the search
    start: Integers  # where the neighbours of the i-th of them begin
    seen: Indices32  # neighbours
    lengths: NDArray[np.uint16]  # of their edges


class Windows:
    """Arrays for one window at a time: the next call of `window_of` overwrites its result."""

    def __init__(self, rows: Neighbours, cap: int) -> None:
        size, edges = len(rows.first) - 1, len(rows.near)
        self.rows, self.cap = rows, cap
        self.rank = np.full(size, -1, np.int32)
        shortest, longest = rows.range
        # A bucket is as wide as the shortest edge, rounded down to a power of two, and 1 at least: a place that left
        # its bucket is never improved again.
        self.shift = max(shortest, 1).bit_length() - 1
        # Places that wait lie within one longest edge of the bucket that is emptied: this many never meet.
        buckets = (longest >> self.shift) + 2
        self.scratch = SearchScratch(
            distance=np.full(size, _UNSEEN, np.uint16),
            head=np.full(buckets, -1, np.int32),
            following=np.empty(size, np.int32),
            before=np.empty(size, np.int32),
            nearby=np.empty(size, np.int32),
            start=np.empty(size + 1, np.int64),
            seen=np.empty(edges, np.int32),
            lengths=np.empty(edges, np.uint16),
        )
        self.ends = np.empty((size, 4), np.int64)
        self.near, self.units = np.empty(edges, np.int32), np.empty(edges, np.uint16)
        self.room = np.empty(0, np.uint16)

    def window_of(self, sources: Integers, *, exact: bool = True) -> Window:
        """The window of sources (b,), which may repeat; unless exact, after one sweep, with few distances too long."""
        rows, scratch, b, sources = self.rows, self.scratch, len(sources), np.ascontiguousarray(sources)
        count = _search_window(sources, self.cap, self.shift, rows.first, rows.near, rows.units, scratch)
        places = scratch.nearby[:count]
        if len(self.room) < count * b:
            self.room = np.empty(count * b * 5 // 4, np.uint16)
        field = self.room[: count * b].reshape(count, b)
        field[:] = self.cap
        self.rank[places] = np.arange(count)
        field[self.rank[sources], np.arange(b)] = 0
        _split(count, self.rank, scratch.start, scratch.seen, scratch.lengths, self.ends, self.near, self.units)
        scratch.distance[places], self.rank[places] = _UNSEEN, -1
        tile = min(count, 4 * b + 64)  # places among which paths cross the tile; a guess that costs time alone
        _settle(field, tile, self.ends, self.near, self.units, np.zeros(count, bool), np.empty(b, np.uint16), exact)
        return Window(places=places, field=field)


def tile_order(points: Floats, size: int = BLOCK) -> Integers:
    """An order (n,) of points (n, a) in which `size` in a row, from a multiple of it on, lie close together."""
    # Halved along the longest side, at a multiple of `size`, until `size` remain.
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= size:
            continue
        part = points[order[start:stop]]
        axis = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
        order[start:stop] = order[start:stop][np.argsort(part[:, axis], kind="stable")]
        middle = start + ((stop - start) // size + 1) // 2 * size
        parts += [(start, middle), (middle, stop)]
    return order


# Source: Dial, Algorithm 360 (1969).
@numba.njit(cache=True, nogil=True)
def _search_window(sources, cap, shift, first, near, units, scratch):  # type: ignore[no-untyped-def]
    # (1): writes the places nearer than `cap` to a source to `nearby`, and returns their number.
    # The neighbours of the i-th are copied side by side, seen[start[i]:start[i + 1]], with `lengths`: the sweeps read
    # them in this order. Afterwards `distance` of the places found is that from the nearest source.
    distance, head, following, before = scratch.distance, scratch.head, scratch.following, scratch.before
    nearby, start, seen, lengths = scratch.nearby, scratch.start, scratch.seen, scratch.lengths
    buckets = head.size
    waiting, count, edge = 0, 0, 0
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
            nearby[count], start[count] = p, edge
            count += 1
            d = np.int64(distance[p])
            for e in range(first[p], first[p + 1]):
                y = near[e]
                seen[edge], lengths[edge] = y, units[e]
                edge += 1
                # No sum wraps: d + units is at most cap + longest edge <= 65,535.
                reached, previous = d + np.int64(units[e]), np.int64(distance[y])
                if reached >= cap or reached >= previous:
                    continue
                # It waits already, in a later place: taken out of its bucket, so that no place is met twice.
                if previous < cap:
                    if before[y] >= 0:
                        following[before[y]] = following[y]
                    else:
                        head[(previous >> shift) % buckets] = following[y]
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
    start[count] = edge
    return count


@numba.njit(cache=True, nogil=True)
def _split(count, rank, start, seen, lengths, ends, near, units):  # type: ignore[no-untyped-def]
    # Neighbours of place i before it stand from ends[i, 0] to ends[i, 1], those after it from ends[i, 2] to ends[i, 3].
    # Each is written at both ends and one end moves: no branch. Entries between, of rank -1, are never read.
    for i in range(count):
        low, high = start[i], start[i + 1]
        ends[i, 0], ends[i, 3] = low, high
        for e in range(start[i], start[i + 1]):
            r = rank[seen[e]]
            near[low], near[high - 1] = r, r
            units[low], units[high - 1] = lengths[e], lengths[e]
            low += (r >= 0) & (r < i)
            high -= r > i
        ends[i, 1], ends[i, 2] = low, high


@numba.njit(cache=True, nogil=True)
def _relax(field, i, low, high, near, units, scratch):  # type: ignore[no-untyped-def]
    # scratch (b,) is a copy of the row: the compiler vectorises loops over it, since it overlaps no row. No sum wraps:
    # an entry is at most the cap, and cap + longest edge at most 65,535.
    row = field[i]
    for b in range(scratch.size):
        scratch[b] = row[b]
    for e in range(low, high):
        other, length = field[near[e]], units[e]
        for b in range(scratch.size):
            scratch[b] = min(scratch[b], np.uint16(other[b] + length))
    # Written back only if an entry differs: a place without a change makes no neighbour stale.
    changed = np.uint16(0)
    for b in range(scratch.size):
        changed |= np.uint16(scratch[b] ^ row[b])
    if changed:
        for b in range(scratch.size):
            row[b] = scratch[b]
    return changed != 0


@numba.njit(cache=True, nogil=True)
def _mark(low, high, size, near, stale):  # type: ignore[no-untyped-def]
    more = 0
    for e in range(low, high):
        if near[e] < size and not stale[near[e]]:
            stale[near[e]] = True
            more += 1
    return more


@numba.njit(cache=True, nogil=True)
def _settle(field, tile, ends, near, units, stale, scratch, exact):  # type: ignore[no-untyped-def]
    # (2): outwards and back in the order of the search, first among the `tile` first places, among which paths cross
    # the tile. Then only places with a changed neighbour are looked at again, until none remains: stale (c,), False
    # before and after, marks them. The field starts at 0 at its sources and at the cap elsewhere, and only falls to
    # lengths of paths. The order of relaxations changes the time alone: the bits of the fixed point are the shortest
    # lengths.
    for size in (tile, field.shape[0]):
        for i in range(size):
            _relax(field, i, ends[i, 0], ends[i, 1], near, units, scratch)
        if size > tile and not exact:
            return
        waiting = 0
        for k in range(size):
            i = size - 1 - k
            if _relax(field, i, ends[i, 2], ends[i, 3], near, units, scratch):
                waiting += _mark(ends[i, 0], ends[i, 1], size, near, stale)
                waiting += _mark(ends[i, 2], ends[i, 3], size, near, stale)
        while waiting > 0:
            for k in range(2 * size):
                i = k if k < size else 2 * size - 1 - k
                if not stale[i]:
                    continue
                stale[i] = False
                waiting -= 1
                inwards = _relax(field, i, ends[i, 0], ends[i, 1], near, units, scratch)
                if _relax(field, i, ends[i, 2], ends[i, 3], near, units, scratch) or inwards:
                    waiting += _mark(ends[i, 0], ends[i, 1], size, near, stale)
                    waiting += _mark(ends[i, 2], ends[i, 3], size, near, stale)


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerMetric:
    """Shortest-path distances min(d, cap) of undirected edges with whole lengths."""

    # Nothing wraps: a distance is at most the cap and a length at most the longest, together at most 65,535; places and
    # directed edges are fewer than 2^31. No compiled loop leaves its arrays, because the schema of a file has every end
    # of an edge checked.

    points: Matrix  # (k, 1..3), coordinates: for nothing but the order of the work
    tail: Indices  # (e,), places
    head: Integers
    units: NDArray[np.uint16]  # (e,), lengths >= 0
    cap: int  # the largest distance that is distinguished

    def __post_init__(self) -> None:
        longest = int(self.units.max(initial=0))
        if not 0 < self.cap <= LARGEST - longest:
            message = f"must be positive, and with the longest edge ({longest}) at most {LARGEST}; use longer units"
            raise InputError(message, field="cap", value=self.cap)

    @property
    def size(self) -> int:
        return len(self.points)

    @cached_property
    def neighbours(self) -> Neighbours:
        return Neighbours.of(self.size, self.tail, self.head, self.units)

    def windows(self) -> Windows:
        return Windows(self.neighbours, self.cap)

    def from_sources(self, sources: Integers) -> Distances:
        """Distances (k, b) in units from b places. Cost: a window around them (`Windows.window_of`), and the result."""
        return self.windows().window_of(sources).dense(self.size, self.cap)
