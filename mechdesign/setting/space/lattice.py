"""Which pairs of lattice cells are neighbours: stencils, and pairs that no cell between them implies."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
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
_FARTHEST = 2.0**27  # cells from zero, of the centres of a lattice that pairs are left out on
_SPARSE = 8  # a lattice with fewer than one cell in eight in the domain is searched pair by pair
_AXES = {1: "one axis", 2: "two axes", 3: "three axes"}


def stencil_pairs(domain: Domain, stencil: int) -> Pairs:
    """Neighbour pairs (tail < head) of a grid under a stencil.

    On one axis: the cells left and right, whatever the stencil. On two axes, 4, 8, 16, 32 or 64 neighbours: the base
    steps (1, 0); (1, 1); (2, 1); (3, 1), (3, 2); (4, 1), (4, 3), (5, 2), (5, 3), up to sign and order. On three axes,
    6, 18 or 26: the cells that share a face; or an edge; or a corner.

    A step is left out where it would cut through masked cells: every cell whose interior the segment between the two
    centres crosses must be in the domain, and where the segment passes from one of them to the next through an edge
    or a corner, so must some staircase of cells from the one to the other that changes one axis at a time.
    Raises: InputError off grids, and for a stencil that the number of axes does not have.
    Cost: O(s n) for s neighbours.
    """
    if domain.kind != "grid":
        raise InputError(
            "a stencil needs a grid", field="domain", value=domain.kind, remedy="use Domain.grid, or a graph metric"
        )
    known = _STENCILS[domain.dimension]
    if not isinstance(stencil, int) or stencil not in known:
        *others, last = known
        raise InputError(
            f"must be {', '.join(map(str, others))} or {last} on {_AXES[domain.dimension]}",
            field="stencil",
            value=stencil,
            remedy=f"choose one of {', '.join(map(str, known))}",
        )
    return _collect([_clear(domain.lookup, step) for base in known[stencil] for step in _turned(base)])


def irreducible_pairs(domain: Domain) -> Pairs:
    """Pairs (tail < head) of grid cells with no cell of the domain on the segment between them.

    Under a norm the constraint of any other pair follows from these, by adding lengths along the segment. Without a
    mask they are the pairs with coprime displacement. For points and nodes: all pairs.

    Centres are rounded, so that the cells on a segment lie beside it. With u = 2^-53, cells of size h along an axis and
    no coordinate or origin beyond M there, low + (i + 1/2) h is off by e <= 3.01 u M. Let L be the straight line from
    the first to the last of some centres on a segment. The steps between them have components along L that add up to
    it, and components across it that come from roundings alone: at most 4 e along an axis where the cells differ, none
    where they agree, because equal indices give equal coordinates. A step of length w, at least h - 2 e along each such
    axis, therefore exceeds its component along L by at most w (4 e / (h - 2 e))^2 / 1.97. For M <= 2^27 h that is a
    share of 150 u, and lengths rounded down by 2^-44 = 512 u, each right to 6 u, still add up to less than epsilon L.

    Raises: InputError for a grid with M > 2^27 h; SizeError where the pairs would not fit in memory.
    Cost: O(pairs), step by step; on a lattice with less than a cell in eight in the domain, O(n^2 log n) for its n
    cells, whatever the size of the lattice.
    """
    if domain.index is None or domain.shape is None:
        return all_pairs(domain)
    _check_centres(domain)
    if len(domain.shape) == 1:
        nearest = np.argsort(np.diff(domain.index[:, 0]), kind="stable")
        return nearest, nearest + 1
    if _SPARSE * domain.size < math.prod(domain.shape):
        return _nearest_in_their_direction(domain)
    _require_pairs(domain, 2)
    table = domain.lookup
    return _collect([_unblocked(table, step) for step in _half_space(table.shape)])


def displaced_pairs(domain: Domain, step: Step) -> Pairs:
    """Pairs (tail, head) of the cells of a grid domain with head `step` cells beyond tail. Cost: O(n)."""
    here, there = _ends(domain.lookup, step)
    joined = (here >= 0) & (there >= 0)
    return here[joined], there[joined]


def all_pairs(domain: Domain) -> Pairs:
    """All pairs (tail < head) of places. Raises: SizeError where they would not fit in memory."""
    _require_pairs(domain, 2)
    tail, head = np.triu_indices(domain.size, 1)
    return tail.astype(np.int64, copy=False), head.astype(np.int64, copy=False)


def _require_pairs(domain: Domain, tables: int) -> None:
    require_memory(domain.size, domain.size, tables=tables, what="the list of pairs")


def _check_centres(domain: Domain) -> None:
    assert domain.origin is not None and domain.cell is not None
    for low, cell, centres in zip(domain.origin, domain.cell, domain.points.T, strict=True):
        if not max(abs(low), float(np.abs(centres).max())) / cell <= _FARTHEST:
            raise InputError(
                "the centres of the cells cannot be told from their rounding",
                field="origin",
                value=f"{low:.17g}, for cells of {cell:.17g}",
                remedy="use an origin nearer to zero, or larger cells",
            )


def _nearest_in_their_direction(domain: Domain) -> Pairs:
    """The same pairs in the same order, found among all pairs: of those from one cell in one direction, the nearest.

    Indices are below 2^31 and ascend with the number of the cell: differences and their quotients are 64-bit integers.
    """
    assert domain.index is not None
    _require_pairs(domain, 6)
    tail, head = all_pairs(domain)
    step = domain.index[head] - domain.index[tail]
    pieces = np.gcd.reduce(step, axis=1)
    start_and_way = np.column_stack([tail, step // pieces[:, None]])
    order = np.lexsort((pieces, *start_and_way.T))
    first = np.append(True, (start_and_way[order][1:] != start_and_way[order][:-1]).any(axis=1))
    kept = order[first]
    kept = kept[np.lexsort((tail[kept], *step[kept].T[::-1]))]
    return tail[kept], head[kept]


def _turned(base: Step) -> list[Step]:
    """All changes of sign and of order of a step, of each opposite pair the one that leads to a later cell."""
    signs, orders = itertools.product((1, -1), repeat=len(base)), itertools.permutations(base)
    found = (tuple(map(mul, *both)) for both in itertools.product(signs, orders))
    return [step for step in dict.fromkeys(found) if step > (0,) * len(base)]


def _half_space(shape: tuple[int, ...]) -> Iterator[Step]:
    """Displacements within a lattice of this shape, of each opposite pair the one that leads to a later cell."""
    origin = (0,) * len(shape)
    for step in itertools.product(*(range(-k + 1, k) for k in shape)):
        if step > origin:
            yield step


def _unblocked(table: NDArray[np.int64], step: Step) -> Pairs:
    here, there = _ends(table, step)
    joined = (here >= 0) & (there >= 0)
    pieces = math.gcd(*step)
    for k in range(1, pieces):
        joined &= _beyond(table, step, k * (np.asarray(step) // pieces)) < 0
    return here[joined], there[joined]


def _clear(table: NDArray[np.int64], step: Step) -> Pairs:
    here, there = _ends(table, step)
    joined, at = (here >= 0) & (there >= 0), np.zeros(len(step), np.int64)
    for moves in _crossings(step):
        staircases = [at + np.cumsum(order, axis=0) for order in itertools.permutations(moves)]
        open_ones = [np.all([_beyond(table, step, cell) >= 0 for cell in cells], axis=0) for cells in staircases]
        joined &= np.any(open_ones, axis=0)
        at += np.sum(moves, axis=0)
    return here[joined], there[joined]


def _crossings(step: Step) -> list[list[NDArray[np.int64]]]:
    """Unit moves of the segment between the centres of two cells, in their order, those of one moment together.

    Along axis k the segment leaves a cell at the moments (2 m + 1) / (2 |step_k|), m = 0..|step_k| - 1.
    """
    moves: defaultdict[Fraction, list[NDArray[np.int64]]] = defaultdict(list)
    for s, axis in zip(step, np.eye(len(step), dtype=np.int64), strict=True):
        for m in range(abs(s)):
            moves[Fraction(2 * m + 1, 2 * abs(s))].append(np.sign(s) * axis)
    return [moves[moment] for moment in sorted(moves)]


def _ends(table: NDArray[np.int64], step: Step) -> Pairs:
    return _beyond(table, step, np.zeros(len(step), np.int64)), _beyond(table, step, np.asarray(step))


def _beyond(table: NDArray[np.int64], step: Step, offset: NDArray[np.int64]) -> NDArray[np.int64]:
    """The table at `offset`, between 0 and `step`, from every position that `step` leads on from within the lattice."""
    low = [max(0, -s) for s in step]
    high = [max(a, k - max(0, s)) for a, k, s in zip(low, table.shape, step, strict=True)]
    return table[tuple(slice(a + o, b + o) for a, b, o in zip(low, high, offset.tolist(), strict=True))]


def _collect(parts: list[Pairs]) -> Pairs:
    tails, heads = zip(*parts, strict=True)
    return np.concatenate(tails), np.concatenate(heads)
