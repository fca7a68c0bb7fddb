"""The normal equations of the master, (G' D G + R) x = b, by conjugate gradients with overlapping blocks.

G smooths over some nats, so that the inverse of G' D G is nearly local, as differential operators are: with the blocks
of secrets that lie together, each widened by some nats, inverted on their own (additive Schwarz, symmetric weights),
some tens of iterations do, on any size of the map.

Source: additive Schwarz methods, e.g. Toselli and Widlund, Domain Decomposition Methods, 2005; use here ours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg.lapack
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from mechdesign.base.threads import in_blocks
from mechdesign.solvers.local.pricing import Places
from mechdesign.solvers.pool.matrix import Matrix, Vector, dense_part

SIZE = 150  # secrets of a block, before it is widened
OVERLAP = 2.5  # nats
_LEAST = 1e-3  # of a field that a block sees
_LIFT, _HIGHER = 1e-6, 10.0  # of the unit diagonal, against rounding, and by how much more where it is not enough


class Blocks:
    """Overlapping blocks of places: by recursive halving of their coordinates, widened by `OVERLAP` nats."""

    def __init__(self, places: Places) -> None:
        self.size = places.size
        graph = csr_array((places.length, places.near, places.first), shape=(places.size, places.size))
        cores = _halved(places.points, np.arange(places.size))
        self.nodes = [
            np.flatnonzero(dijkstra(graph, indices=core, min_only=True, limit=OVERLAP) <= OVERLAP) for core in cores
        ]
        count = np.zeros(places.size)
        for nodes in self.nodes:
            count[nodes] += 1
        self.share = [1 / np.sqrt(count[nodes]) for nodes in self.nodes]
        self.inverse: list[NDArray[np.float32]] = []

    def factor(self, matrix: Matrix, scale: Vector, ridge: Vector) -> None:
        """Invert the blocks of G' diag(scale) G + diag(ridge). Memory: 4 bytes times the squares of their sizes."""
        root = np.sqrt(scale).astype(np.float32)
        transposed = matrix.transposed
        self.inverse = [np.zeros((0, 0), np.float32)] * len(self.nodes)

        def invert(start: int, stop: int) -> None:
            mark, columns = np.full(matrix.size, -1, np.int64), np.empty(matrix.size, np.int64)
            room = np.empty(0, np.float32)
            for i in range(start, stop):
                nodes = self.nodes[i]
                while True:
                    part = room[: room.size // len(nodes) * len(nodes)].reshape(-1, len(nodes))
                    rows = dense_part(nodes, *transposed, root, _LEAST, mark, columns, part)
                    if rows >= 0:
                        break
                    room = np.empty(-rows * len(nodes) * 5 // 4, np.float32)
                self.inverse[i] = _inverse(part[:rows], ridge[nodes], self.share[i])

        in_blocks(invert, len(self.nodes), 8)

    def apply(self, values: Vector) -> Vector:
        """The sum of the inverses of the blocks, applied to (n,)."""
        parts: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(self.nodes)
        single = values.astype(np.float32)

        def multiply(start: int, stop: int) -> None:
            for i in range(start, stop):
                parts[i] = self.inverse[i] @ single[self.nodes[i]]

        in_blocks(multiply, len(self.nodes), 64)
        found = np.zeros(self.size)
        for nodes, part in zip(self.nodes, parts, strict=True):
            found[nodes] += part
        return found


def conjugate_gradients(
    apply: Callable[[Vector], Vector], precondition: Callable[[Vector], Vector], right: Vector, *, tolerance: float,
    most: int,
) -> Vector:  # fmt: skip
    """X with apply(x) = right, to a tolerance of the preconditioned residual, or after `most` iterations."""
    x, residual = np.zeros_like(right), right.copy()
    guess = precondition(residual)
    direction, size = guess, float(residual @ guess)
    first = size
    for _ in range(most):
        if not size > tolerance**2 * first:
            break
        image = apply(direction)
        along = size / float(direction @ image)
        x += along * direction
        residual -= along * image
        guess = precondition(residual)
        before, size = size, float(residual @ guess)
        direction = guess + size / before * direction
    return x


def _halved(points: NDArray[np.float64], own: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    if len(own) <= SIZE:
        return [np.sort(own)]
    place = points[own]
    axis = int(np.argmax(np.ptp(place, axis=0)))
    order = np.argsort(place[:, axis], kind="stable")
    half = len(own) // 2
    return _halved(points, own[order[:half]]) + _halved(points, own[order[half:]])


def _inverse(part: NDArray[np.float32], ridge: Vector, share: Vector) -> NDArray[np.float32]:
    """The inverse of part' part + diag(ridge), weighted on both sides."""
    normal = (part.T @ part).astype(float)
    diagonal = np.arange(len(ridge))
    normal[diagonal, diagonal] += ridge
    unit = 1 / np.sqrt(normal[diagonal, diagonal])
    normal *= unit[:, None] * unit
    lift = _LIFT
    while True:
        normal[diagonal, diagonal] = 1 + lift
        factor, broken = scipy.linalg.lapack.dpotrf(normal, lower=1)
        if not broken:
            break
        lift *= _HIGHER
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    full = np.tril(lower) + np.tril(lower, -1).T
    outer = unit * share
    return np.asarray(full * (outer[:, None] * outer), np.float32)
