"""Columns of a pool: from priced rays to generators, and from generators to fields over the places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Indices, Indices32, Integers, Singles
from mechdesign.factored.ball import Costs, Places, loss_between
from mechdesign.factored.columns import Columns
from mechdesign.factored.work_folder import Arrays
from mechdesign.solvers.cone.tree_simplex import ConeGraph

_EXPLAINED = 1e-5  # nats of tolerance of (1), since rays are in single precision; a constant of the kernel


# With depths f_v = ln max g - ln g(v), a ray g of the cone has the generators
#     {v : f_v < f_u + d for every edge (u, v) of length d},                                                         (1)
# the places that no neighbour explains. Its smallest extension is exp(-min over generators v of (f_v + D(v, u))): the
# ray itself if all generators are there, and private for any subset (certificate.py).
@dataclass(frozen=True, kw_only=True, eq=False)
class FieldTask:
    """Columns whose fields are wanted."""

    places: Places
    units: Integers  # lengths of their directed edges, as the graph has them, in steps
    step: float  # nats
    columns: Columns  # with offsets in steps
    target: Indices  # (c,), the places that they report
    keep: float  # nats to which fields are kept
    reach: float  # nats to which their losses are summed


class FieldData(NamedTuple):
    """Shared by the columns of a block: radii in steps, e^-step^t by t, the graph with lengths in steps, and costs."""

    reach: int
    keep: int
    kernel: Floats
    graph: ConeGraph
    units: Integers
    costs: Costs


class RayRows(NamedTuple):
    """Rays one after the other: the number of places of each, places and values."""

    counts: Integers
    place: Indices32
    ray: Singles


class Heap(NamedTuple):
    """Scratch of a search: a binary heap of keys and places; distances in steps (n,); the places touched."""

    key: Integers
    place: Indices32
    distance: Integers
    touched: Indices32


def columns_of(places: Places, rays: Arrays, *, step: float, deepest: float) -> Columns:
    """The columns of rays of `ratio_block`: generators to `deepest` nats below the top, in steps of `step` nats."""
    count, place, ray = rays["count"], rays["place"], rays["ray"]
    at_place, offset = np.empty(len(place), np.int64), np.empty(len(place))
    first = np.zeros(len(count) + 1, np.int64)
    depth = np.full(places.size, np.inf)
    _write_generators(RayRows(count, place, ray), places.graph, deepest, depth, at_place, offset, first)
    total = first[-1]
    whole = np.rint(offset[:total] / step).astype(np.int64)
    return Columns(place=at_place[:total].copy(), offset=whole, first=first[:-1].copy())


def field_block(task: FieldTask, start: int, stop: int) -> Arrays:
    """Fields g of the columns start..stop above e^-keep, and cost (b,), the sums of prior l g above e^-reach."""
    places, columns = task.places, task.columns
    n, costs = places.size, places.costs.read_only()
    first = columns.bounds[start : stop + 1]
    room = len(places.graph.near) + int(np.diff(first).max()) + 1
    heap = Heap(
        key=np.empty(room, np.int64),
        place=np.empty(room, np.int32),
        distance=np.full(n, np.iinfo(np.int64).max),
        touched=np.empty(n, np.int32),
    )
    nodes = np.empty(n, np.int32)
    reach, keep = int(task.reach / task.step), int(task.keep / task.step)
    kernel = np.exp(-task.step * np.arange(reach + 1))
    data = FieldData(reach, keep, kernel, places.graph, task.units, costs)
    count, cost = np.zeros(stop - start, np.int64), np.zeros(stop - start)
    at_place, values = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    field = np.empty(n, np.float32)
    for j in range(stop - start):
        part = slice(first[j], first[j + 1])
        k, cost[j] = _write_field(
            columns.place[part], columns.offset[part], task.target[start + j], data, heap, nodes, field
        )
        count[j] = k
        # The search ends places by distance; products want them in order.
        order = np.argsort(nodes[:k])
        at_place.append(nodes[order])
        values.append(field[order])
    return {"count": count, "cost": cost, "place": np.concatenate(at_place), "value": np.concatenate(values)}


@numba.njit(cache=True, nogil=True)
def _write_generators(rays, graph, deepest, depth, at_place, offset, first):  # type: ignore[no-untyped-def]
    # (1), for every ray. `depth` is infinity on entry and exit: places outside the ray explain nothing.
    count, place, ray = rays.counts, rays.place, rays.ray
    start, filled = 0, 0
    for j in range(count.size):
        top = np.inf
        for i in range(start, start + count[j]):
            if ray[i] > 0:
                depth[place[i]] = -math.log(ray[i])
                top = min(top, depth[place[i]])
        for i in range(start, start + count[j]):
            v = place[i]
            if depth[v] - top > deepest:
                continue
            explained = np.inf
            for e in range(graph.first[v], graph.first[v + 1]):
                explained = min(explained, depth[graph.near[e]] + graph.length[e])
            if depth[v] < explained - _EXPLAINED:
                at_place[filled], offset[filled] = v, depth[v] - top
                filled += 1
        for i in range(start, start + count[j]):
            depth[place[i]] = np.inf
        start += count[j]
        first[j + 1] = filled


@numba.njit(cache=True, nogil=True)
def _write_field(place, offset, report, data, heap, nodes, values):  # type: ignore[no-untyped-def]
    # Writes nodes[:k] and values[:k] within `keep` steps; returns k and the cost within `reach` steps.
    # Dijkstra from all generators at once, each starting at its offset. The distances of the heap are the largest
    # integer on entry and exit: only touched places are reset, since a column reaches few of n.
    key, heap_place, distance = heap.key, heap.place, heap.distance
    kernel, graph = data.kernel, data.graph
    far = distance[0]
    top, touched, filled, total = 0, 0, 0, 0.0
    for i in range(place.size):
        touched, top = _offer(heap, top, offset[i], place[i], far, touched)
    while top > 0:
        d, v = key[0], heap_place[0]
        top -= 1
        last, moved, slot = key[top], heap_place[top], 0
        while True:  # the last entry sinks from the root to its place
            c = 2 * slot + 1
            if c >= top:
                break
            if c + 1 < top and key[c + 1] < key[c]:
                c += 1
            if key[c] >= last:
                break
            key[slot], heap_place[slot] = key[c], heap_place[c]
            slot = c
        key[slot], heap_place[slot] = last, moved
        if d > distance[v]:
            continue
        if d > data.reach:
            break
        # Entries are never lowered in the heap but entered again; below its distance no later copy counts.
        distance[v] = d - 1
        if d <= data.keep:
            nodes[filled], values[filled] = v, kernel[d]
            filled += 1
        total += data.costs.prior[v] * loss_between(v, report, data.costs) * kernel[d]
        for e in range(graph.first[v], graph.first[v + 1]):
            touched, top = _offer(heap, top, d + data.units[e], graph.near[e], far, touched)
    for i in range(touched):
        distance[heap.touched[i]] = far
    return filled, total


@numba.njit(cache=True, nogil=True, inline="always")
def _offer(heap, top, d, v, far, touched):  # type: ignore[no-untyped-def]
    key, heap_place, distance = heap.key, heap.place, heap.distance
    if d >= distance[v]:
        return touched, top
    if distance[v] == far:
        heap.touched[touched] = v
        touched += 1
    distance[v] = d
    slot = top
    while slot > 0:
        p = (slot - 1) >> 1
        if key[p] <= d:
            break
        key[slot], heap_place[slot] = key[p], heap_place[p]
        slot = p
    key[slot], heap_place[slot] = d, v
    return touched, top + 1
