"""Edges and shortest paths: neighbours on a lattice, and distances in nats over explicit edges.

Distances are exactly symmetric, obey the triangle inequality and are 1-Lipschitz on their edges.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.arrays import Floats, Indices, IntegerMatrix, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import read_only
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

if TYPE_CHECKING:
    import scipy.sparse as sp

Pairs = tuple[Indices, Indices]
Step = tuple[int, ...]
_LINE: tuple[Step, ...] = ((1,),)
_PLANE: tuple[Step, ...] = ((1, 0), (1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (4, 3), (5, 2), (5, 3))
_SPACE: tuple[Step, ...] = ((1, 0, 0), (1, 1, 0), (1, 1, 1))
# By number of axes and of neighbours: base steps, which stand for all their changes of sign and of order.
_STENCILS: dict[int, dict[int, tuple[Step, ...]]] = {
    1: dict.fromkeys((4, 8, 16, 32, 64), _LINE),
    2: {4: _PLANE[:1], 8: _PLANE[:2], 16: _PLANE[:3], 32: _PLANE[:5], 64: _PLANE},
    3: {6: _SPACE[:1], 18: _SPACE[:2], 26: _SPACE},
}
# Up to so many cells from zero, pairs with a cell between them may be omitted. Centres are rounded, so cells on a
# segment lie off it. With u = 2^-53, cells of size h along an axis and no coordinate or origin beyond M there, low + (i
# + 1/2) h is off by e <= 3.01 u M. Let L be the straight line from the first to the last of some centres on a segment.
# The components along L of the steps between them add up to L. Components across it come from roundings: at most 4 e
# along an axis where the cells differ, 0 where they agree. A step of length w, at least h - 2 e along each such axis,
# exceeds its component along L by at most w (4 e / (h - 2 e))^2 / 1.97. For M <= 2^27 h that is a share of 150 u.
# Lengths rounded down by 2^-44 = 512 u, each right to 6 u, add up to less than epsilon L.
_MAX_CELLS_FROM_ZERO = 2.0**27
_SPARSITY = 8  # pair by pair if fewer than one lattice cell in eight is in the domain: a guess, only time depends on it
_AXES = {1: "one axis", 2: "two axes", 3: "three axes"}
_SETS_PER_SEARCH = 64  # sources per search, which bounds the memory of the added nodes


def stencil_pairs(domain: Domain, stencil: int) -> Pairs:
    """Neighbour pairs (tail < head) of a grid under a stencil. Cost: O(s n) for s neighbours."""
    # A step must not cut through masked cells. Every cell whose interior its segment crosses is in the domain. Where
    # the segment passes through an edge or a corner, so is some staircase that changes one axis at a time.
    check_stencil(domain, stencil)
    bases = _STENCILS[domain.dimension][stencil]
    return _collect([_unobstructed_pairs(domain.lookup, step) for base in bases for step in _signed_permutations(base)])


def check_stencil(domain: Domain, stencil: int) -> None:
    """Refuse places that are not cells of a grid, and a stencil that their axes do not have."""
    if domain.kind != "grid":
        raise InputError("a stencil needs a grid", field="domain", value=domain.kind, remedy="use a graph metric")
    known = _STENCILS[domain.dimension]
    if not isinstance(stencil, int) or stencil not in known:
        *others, last = known
        choices = f"{', '.join(map(str, others))} or {last} on {_AXES[domain.dimension]}"
        raise InputError(f"must be {choices}", field="stencil", value=stencil)


def irreducible_pairs(domain: Domain) -> Pairs:
    """Pairs (tail < head) of grid cells with no cell of the domain on the segment between them."""
    # Under a norm these imply all others. Without a mask they have coprime displacements. For points and nodes: all
    # pairs. Cost: O(pairs); O(n^2 log n) where under an eighth of a lattice is in the domain.
    if domain.index is None or domain.shape is None:
        return all_pairs(domain)
    _check_centres(domain)
    if len(domain.shape) == 1:
        nearest = np.argsort(np.diff(domain.index[:, 0]), kind="stable")
        return nearest, nearest + 1
    if _SPARSITY * domain.size < math.prod(domain.shape):
        return _nearest_in_their_direction(domain)
    _require_pairs(domain, 2)
    origin = (0,) * len(domain.shape)
    displacements = itertools.product(*(range(-k + 1, k) for k in domain.shape))
    # Of each opposite pair of displacements the one that leads to a later cell.
    return _collect([_visible_pairs(domain.lookup, step) for step in displacements if step > origin])


def displaced_pairs(domain: Domain, step: Step) -> Pairs:
    """Pairs (tail, head) of the cells of a grid domain with head `step` cells beyond tail. Cost: O(n)."""
    tail, head = _ends(domain.lookup, step)
    is_joined = (tail >= 0) & (head >= 0)
    return tail[is_joined], head[is_joined]


def all_pairs(domain: Domain) -> Pairs:
    """All pairs (tail < head) of places; SizeError if they would not fit in memory."""
    _require_pairs(domain, 2)
    tail, head = np.triu_indices(domain.size, 1)
    return tail.astype(np.int64, copy=False), head.astype(np.int64, copy=False)


def _require_pairs(domain: Domain, tables: int) -> None:
    require_memory(domain.size, domain.size, tables=tables, noun="the list of pairs")


def _check_centres(domain: Domain) -> None:
    assert domain.origin is not None and domain.cell is not None
    for low, cell, centres in zip(domain.origin, domain.cell, domain.points.T, strict=True):
        if not max(abs(low), float(np.abs(centres).max())) / cell <= _MAX_CELLS_FROM_ZERO:
            description = f"{low:.17g}, for cells of {cell:.17g}"
            raise InputError("lies too far from zero for the rounding of centres", field="origin", value=description)


def _nearest_in_their_direction(domain: Domain) -> Pairs:
    """The same pairs in the same order, found among all pairs: of those from one cell in one direction, the nearest."""
    assert domain.index is not None
    _require_pairs(domain, 6)
    tail, head = all_pairs(domain)
    step = domain.index[head] - domain.index[tail]
    pieces = np.gcd.reduce(step, axis=1)
    # Runs of one tail and direction, by distance: the first of each is the nearest cell.
    start_and_way = np.column_stack([tail, step // pieces[:, None]])
    order = np.lexsort((pieces, *start_and_way.T))
    first = np.append(True, (start_and_way[order][1:] != start_and_way[order][:-1]).any(axis=1))
    nearest = order[first]
    # In the order of the other route, by displacement and then by tail: files list the edges so.
    nearest = nearest[np.lexsort((tail[nearest], *step[nearest].T[::-1]))]
    return tail[nearest], head[nearest]


def _signed_permutations(base: Step) -> list[Step]:
    """All changes of sign and order of a step; of two opposite ones, the one that leads to a later cell."""
    signs, orders = itertools.product((1, -1), repeat=len(base)), itertools.permutations(base)
    steps = (tuple(map(mul, *both)) for both in itertools.product(signs, orders))
    return [step for step in dict.fromkeys(steps) if step > (0,) * len(base)]


def _visible_pairs(table: IntegerMatrix, step: Step) -> Pairs:
    tail, head = _ends(table, step)
    is_joined = (tail >= 0) & (head >= 0)
    # The cells whose centres lie on the segment divide it into gcd pieces.
    pieces = math.gcd(*step)
    for k in range(1, pieces):
        is_joined &= _shift_table(table, step, k * (np.asarray(step) // pieces)) < 0
    return tail[is_joined], head[is_joined]


def _unobstructed_pairs(table: IntegerMatrix, step: Step) -> Pairs:
    tail, head = _ends(table, step)
    is_joined, corner = (tail >= 0) & (head >= 0), np.zeros(len(step), np.int64)
    # Axes crossed at one moment: the segment passes an edge or a corner, around which any order of unit moves will do.
    for moves in _crossings(step):
        staircases = [corner + np.cumsum(order, axis=0) for order in itertools.permutations(moves)]
        is_open = [np.all([_shift_table(table, step, cell) >= 0 for cell in cells], axis=0) for cells in staircases]
        is_joined &= np.any(is_open, axis=0)
        corner += np.sum(moves, axis=0)
    return tail[is_joined], head[is_joined]


def _crossings(step: Step) -> list[list[Indices]]:
    """Unit moves between two cells in order; axis k is crossed at (2 m + 1) / (2 |step_k|), m = 0..|step_k| - 1."""
    moves: defaultdict[Fraction, list[Indices]] = defaultdict(list)
    for s, axis in zip(step, np.eye(len(step), dtype=np.int64), strict=True):
        for m in range(abs(s)):
            moves[Fraction(2 * m + 1, 2 * abs(s))].append(np.sign(s) * axis)
    return [moves[moment] for moment in sorted(moves)]


def _ends(table: IntegerMatrix, step: Step) -> Pairs:
    return _shift_table(table, step, np.zeros(len(step), np.int64)), _shift_table(table, step, np.asarray(step))


def _shift_table(table: IntegerMatrix, step: Step, offset: Indices) -> IntegerMatrix:
    """The table at `offset`, between 0 and `step`, from every position that `step` leads on from within the lattice."""
    low = [max(0, -s) for s in step]
    high = [max(a, k - max(0, s)) for a, k, s in zip(low, table.shape, step, strict=True)]
    return table[tuple(slice(a + o, b + o) for a, b, o in zip(low, high, offset.tolist(), strict=True))]


def _collect(parts: list[Pairs]) -> Pairs:
    tails, heads = zip(*parts, strict=True)
    return np.concatenate(tails), np.concatenate(heads)


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Undirected edges of a metric; contiguous and read-only, as kernels are compiled for.

    Attributes
    ----------
    tail, head : (e,) int arrays
        Place numbers, tail < head.
    length : (e,) float array
        In nats.

    Examples
    --------
    >>> edges = md.load_problem("line", cells=3).edges
    >>> edges.tail, edges.head
    (array([0, 1]), array([1, 2]))
    """

    tail: Indices
    head: Indices
    length: Vector

    def __post_init__(self) -> None:
        for name, kind in (("tail", np.int64), ("head", np.int64), ("length", np.float64)):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(getattr(self, name), kind)))

    def check(self, size: int) -> None:
        count = len(self.length)
        shaped = self.tail.shape == self.head.shape == self.length.shape == (count,)
        if not shaped or not ((self.tail >= 0) & (self.tail < size) & (self.head >= 0) & (self.head < size)).all():
            raise InputError("an edge ends outside the domain", field="edges", value=f"{size} places")

    def scale(self, factor: float) -> Edges:
        """Return the edges with lengths times a factor.

        Examples
        --------
        >>> edges = md.Euclidean(0.5).edges(md.Domain.grid(2, 1.0))
        >>> edges.scale(2.0).length.round(6).tolist()
        [1.0]
        """
        return Edges(tail=self.tail, head=self.head, length=self.length * factor)

    def both_ways(self) -> tuple[Indices, Indices, Vector]:
        """Tails, heads and lengths of the edges in both directions.

        Examples
        --------
        >>> edges = md.Euclidean(0.5).edges(md.Domain.grid(2, 1.0))
        >>> [part.round(6).tolist() for part in edges.both_ways()]
        [[0, 1], [1, 0], [0.5, 0.5]]
        """
        return (
            np.concatenate([self.tail, self.head]),
            np.concatenate([self.head, self.tail]),
            np.concatenate([self.length, self.length]),
        )

    def matrix(self, size: int) -> sp.csr_array:
        """The lengths as a sparse matrix (size, size).

        Examples
        --------
        >>> edges = md.Euclidean(0.5).edges(md.Domain.grid(2, 1.0))
        >>> edges.matrix(2).toarray().round(6).tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        import scipy.sparse as sp

        tail, head, length = self.both_ways()
        return sp.csr_array((length, (tail, head)), shape=(size, size))


def check_connected(edges: Edges, size: int) -> None:
    """Refuse edges that leave the domain in parts: between parts nothing would be protected."""
    root = _roots(edges, size)
    first_places, label = np.unique(root, return_inverse=True)
    parts = len(first_places)
    if parts == 1:
        return
    first = [int(np.argmax(label == k)) for k in range(min(parts, 5))]
    description = f"{parts} parts, of {np.bincount(label)[:5].tolist()} places, around places {first}"
    message = "the domain falls into parts that no edge joins, and between them nothing would be protected"
    raise InputError(message, field="mask", value=description, remedy="design each part on its own")


def _roots(edges: Edges, size: int) -> Indices:
    """The first place (n,) of the part of each place: O(log n) passes, and no import of SciPy for a cold `sample`."""
    root = np.arange(size)
    while True:
        one, other = root[edges.tail], root[edges.head]
        if (one == other).all():
            return root
        # Join the root of each part to the smallest root beside it, which makes no circle.
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while (root[root] != root).any():
            root = root[root]


def shortest_paths(edges: Edges, size: int) -> Matrix:
    """All shortest-path distances (n, n) in nats, exactly symmetric. Cost: O(n (e + n log n)) time."""
    from scipy.sparse.csgraph import dijkstra

    # The matrix is symmetric, so that a directed search finds the same distances, in half the time.
    distances = dijkstra(edges.matrix(size), directed=True)
    # Sums along a path round differently in the two directions; the minimum is symmetric to the bit.
    return np.minimum(distances, distances.T)


def distances_to_sets(edges: Edges, size: int, sets: Sequence[Indices]) -> Matrix:
    """f_S(u) = min over s in S of d(u, s) in nats, (n, k) for k sets of place numbers. Cost: k O(e + n log n)."""
    distances = np.empty((len(sets), size))
    for start in range(0, len(sets), _SETS_PER_SEARCH):
        block = sets[start : start + _SETS_PER_SEARCH]
        source = np.repeat(np.arange(len(block)), [len(places) for places in block])
        places = np.concatenate(block)
        distances[start : start + _SETS_PER_SEARCH] = _from_sources(edges, size, len(block), source, places)
    return np.maximum(distances, 0.0, out=distances).T


def lipschitz_minorant(field: Vector, edges: Edges) -> Vector:
    """f(u) = min_v field(v) + d(u, v), (n,) in nats: the largest f <= field that is 1-Lipschitz on every edge."""
    size, base = len(field), float(field.min())
    distances = _from_sources(edges, size, 1, np.zeros(size, np.int64), np.arange(size), field - base)
    return np.minimum(distances[0] + base, field)


def _from_sources(
    edges: Edges,
    size: int,
    count: int,
    source: Indices,
    place: Indices,
    start: Floats | float = 0.0,
) -> Vector:
    """Distances (count, n) from added nodes, source[i] joined to place[i] at distance start[i] >= 0."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    tail, head, length = edges.both_ways()
    sources = size + np.arange(count)
    # scipy takes a stored zero for a missing edge. One nat is added to every first edge, and subtracted below.
    graph = sp.csr_array(
        (
            np.concatenate([length, np.broadcast_to(start + 1.0, place.shape)]),
            (np.concatenate([tail, size + source]), np.concatenate([head, place])),
        ),
        shape=(size + count, size + count),
    )
    return np.asarray(dijkstra(graph, directed=True, indices=sources))[:, :size] - 1.0
