"""Distances in nats: shortest paths over explicit edges.

They are exactly symmetric, obey the triangle inequality and are 1-Lipschitz on their edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from mechdesign.errors import InputError

_SETS = 64  # sets that are searched from at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Undirected edges: tail and head (e,) place numbers with tail < head, length (e,) in nats; read-only."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    length: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("tail", "head", "length"):
            values = getattr(self, name)
            if isinstance(values, np.ndarray):
                values = values.view()
                values.flags.writeable = False
                object.__setattr__(self, name, values)

    def scaled(self, factor: float) -> Edges:
        """The same edges with every length multiplied."""
        return Edges(tail=self.tail, head=self.head, length=self.length * factor)

    def both_ways(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Directed edges (tail, head, length), each edge once in either direction; shape (2e,)."""
        return (
            np.concatenate([self.tail, self.head]),
            np.concatenate([self.head, self.tail]),
            np.concatenate([self.length, self.length]),
        )

    def matrix(self, size: int) -> sp.csr_array:
        """The symmetric sparse matrix (n, n) of lengths."""
        tail, head, length = self.both_ways()
        return sp.csr_array((length, (tail, head)), shape=(size, size))


def check_connected(edges: Edges, size: int) -> None:
    """Refuse edges that leave the domain in parts: between parts nothing would be protected.

    Raises: InputError that counts the parts and gives a place of each (at most five).
    """
    parts, label = connected_components(edges.matrix(size), directed=False)
    if parts == 1:
        return
    first = [int(np.argmax(label == k)) for k in range(min(parts, 5))]
    sizes = np.bincount(label)[:5].tolist()
    raise InputError(
        "the domain falls into parts that no edge joins, and between them nothing would be protected",
        field="mask",
        value=f"{parts} parts, of {sizes} places, around places {first}",
        remedy="design each part on its own, or open the mask between them",
    )


def shortest_paths(edges: Edges, size: int) -> NDArray[np.float64]:
    """All shortest-path distances (n, n) in nats, exactly symmetric. Cost: O(n (e + n log n)) time."""
    distances = dijkstra(edges.matrix(size), directed=False)
    return np.minimum(distances, distances.T)


def distances_to_sets(edges: Edges, size: int, sets: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """f_S(u) = min over s in S of d(u, s) in nats, (n, k) for k sets of place numbers: |grad f| = eps, f(S) = 0.

    edges over n = size places. Every set is one source beside the graph, joined to its places. Memory: the result.
    Cost: k searches of O(e + n log n).
    """
    tail, head, length = edges.both_ways()
    found = np.empty((len(sets), size))
    for start in range(0, len(sets), _SETS):
        block = sets[start : start + _SETS]
        source = np.repeat(np.arange(size, size + len(block)), [len(places) for places in block])
        # A stored zero is no edge for the search, so every place is one nat from its source.
        graph = sp.csr_array(
            (
                np.concatenate([length, np.ones(len(source))]),
                (np.concatenate([tail, source]), np.concatenate([head, *block])),
            ),
            shape=(size + len(block), size + len(block)),
        )
        paths = np.asarray(dijkstra(graph, directed=True, indices=np.arange(size, size + len(block))))
        found[start : start + _SETS] = paths[:, :size] - 1.0
    return np.maximum(found, 0.0, out=found).T


def lipschitz_minorant(field: NDArray[np.float64], edges: Edges) -> NDArray[np.float64]:
    """The largest f <= field with |f(u) - f(v)| <= length on every edge: f(u) = min_v field(v) + d(u, v).

    field (n,) in nats. Computed as one shortest-path search from a virtual source. Cost: O(e + n log n).
    """
    size = len(field)
    base = float(field.min())
    tail, head, length = edges.both_ways()
    # A stored zero is no edge for the search, so every start is one nat further than it has to be.
    starts = (field - base + 1.0, (np.full(size, size), np.arange(size)))
    graph = sp.csr_array(
        (
            np.concatenate([length, starts[0]]),
            (np.concatenate([tail, starts[1][0]]), np.concatenate([head, starts[1][1]])),
        ),
        shape=(size + 1, size + 1),
    )
    found = np.asarray(dijkstra(graph, directed=True, indices=size))[:size]
    return np.minimum(found - 1.0 + base, field)
