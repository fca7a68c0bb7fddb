"""Which pairs of lattice cells are neighbours: stencils, and pairs that no cell between them implies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.domain import Domain

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

# One displacement of each opposite pair; the cells that the open segment crosses, where it crosses any.
_STENCILS: dict[int, tuple[tuple[int, int], ...]] = {4: ((1, 0), (0, 1))}
_STENCILS[8] = (*_STENCILS[4], (1, 1), (1, -1))
_STENCILS[16] = (*_STENCILS[8], (2, 1), (1, 2), (2, -1), (1, -2))


def stencil_pairs(domain: Domain, stencil: int) -> Pairs:
    """Neighbour pairs (tail < head) of a grid of one or two axes under a stencil of 4, 8 or 16 neighbours.

    On one axis every stencil has the two neighbours left and right. A step is left out where it would cut through a
    masked cell: a (1, 1) step when both cells beside it are masked, a (2, 1) step when either cell it crosses is.
    Raises: InputError for another stencil or domain.
    """
    if stencil not in _STENCILS:
        raise InputError("must be 4, 8 or 16", field="stencil", value=stencil, remedy="choose one of 4, 8, 16")
    if domain.kind != "grid" or domain.dimension > 2:
        raise InputError(
            "a stencil needs a grid of one or two axes",
            field="domain",
            value=f"{domain.kind}, {domain.dimension}-D",
            remedy="use Domain.grid, or a graph metric",
        )
    if domain.dimension == 1:
        return _collect([_shifted(domain.lookup[:, None], (1, 0))])
    table = domain.lookup
    return _collect([_clear_steps(table, step) for step in _STENCILS[stencil]])


def irreducible_pairs(domain: Domain) -> Pairs:
    """Pairs (tail < head) of grid cells with no cell of the domain on the segment between them.

    Under a norm the constraint of any other pair follows from these, by adding lengths along the segment. Without a
    mask they are the pairs with coprime displacement. For points and nodes: all pairs.
    Cost: O(pairs).
    """
    if domain.kind != "grid":
        tail, head = np.triu_indices(domain.size, 1)
        return tail.astype(np.int64), head.astype(np.int64)
    table = domain.lookup
    return _collect([_unblocked(table, step) for step in _half_space(table.shape)])


def _half_space(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Displacements within a lattice of this shape, one of each opposite pair."""
    origin = (0,) * len(shape)
    for step in itertools.product(*(range(-k + 1, k) for k in shape)):
        if step > origin:
            yield step


def _unblocked(table: NDArray[np.int64], step: tuple[int, ...]) -> Pairs:
    pieces = math.gcd(*step)
    tail, head, start = _shifted_at(table, step)
    clear = np.ones(len(tail), bool)
    unit = np.asarray(step) // pieces
    for k in range(1, pieces):
        clear &= table[tuple((start + k * unit).T)] < 0
        if not clear.any():
            break
    return tail[clear], head[clear]


def _clear_steps(table: NDArray[np.int64], step: tuple[int, int]) -> Pairs:
    tail, head, start = _shifted_at(table, step)
    a, b = step
    if abs(a) + abs(b) == 1:
        return tail, head
    if abs(a) == abs(b):
        beside = (np.array([a, 0]), np.array([0, b]))
        clear = (_present(table, start + beside[0])) | (_present(table, start + beside[1]))
    else:
        first = np.array([a // 2, 0]) if abs(a) == 2 else np.array([0, b // 2] if b > 0 else [0, -1])
        second = np.array([a, b]) - first
        clear = _present(table, start + first) & _present(table, start + second)
    return tail[clear], head[clear]


def _present(table: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.bool_]:
    return table[tuple(at.T)] >= 0


def _shifted(table: NDArray[np.int64], step: tuple[int, ...]) -> Pairs:
    tail, head, _ = _shifted_at(table, step)
    return tail, head


def _shifted_at(
    table: NDArray[np.int64], step: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cells (tail, head) of the domain that `step` joins, and the lattice positions of the tails."""
    low = [max(0, -s) for s in step]
    high = [k - max(0, s) for k, s in zip(table.shape, step, strict=True)]
    here = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    there = tuple(slice(a + s, b + s) for a, b, s in zip(low, high, step, strict=True))
    both = (table[here] >= 0) & (table[there] >= 0)
    return table[here][both], table[there][both], np.argwhere(both) + np.asarray(low)


def _collect(parts: list[Pairs]) -> Pairs:
    tail = np.concatenate([p[0] for p in parts]) if parts else np.zeros(0, np.int64)
    head = np.concatenate([p[1] for p in parts]) if parts else np.zeros(0, np.int64)
    return np.minimum(tail, head), np.maximum(tail, head)
