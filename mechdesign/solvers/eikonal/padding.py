"""Pad a grid problem by a margin of cells outside the domain, whose reports are moved to the nearest cell inside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem

LEAST_NATS = 3.0  # the margin is at least this wide, measured at the smallest eps; a guess
MAX_CELLS = 6  # and, where tables hold its columns, at most this many cells


# Moving a report is post-processing, which keeps the claim. The added columns help at the boundary.
@dataclass(frozen=True, kw_only=True, eq=False)
class PaddedProblem:
    """A problem whose graph is extended by a margin of cells."""

    domain: Domain  # of k places
    edges: Edges
    inner: Indices  # (n,): the places that are the secrets
    target: Indices  # (k,): the secret that each place is moved to
    width: int  # of the margin in cells; 0 if the domain is not a grid

    @property
    def size(self) -> int:
        return len(self.target)

    def distances(self, length: Vector) -> Matrix:
        """Shortest paths (n, k) in nats from every secret to every place, for these edge lengths."""
        graph = Edges(tail=self.edges.tail, head=self.edges.head, length=length).matrix(self.size)
        return np.asarray(dijkstra(graph, directed=False, indices=self.inner))

    def gather(self, table: Matrix) -> Matrix:
        """Columns (n, k) merged into reports (n, n)."""
        merged = np.zeros((len(self.inner), len(self.inner)))
        # Several places can be moved to one secret, so their columns are added.
        np.add.at(merged.T, self.target, table.T)
        return merged


def padding_width(problem: DesignProblem, max_width: int = MAX_CELLS) -> int:
    """Cells of the margin of `pad_problem`."""
    domain, level = problem.domain, problem.metric.smallest_level
    if max_width == 0 or level is None or domain.cell is None or domain.shape is None:
        return 0
    return min(max_width, max(1, math.ceil(LEAST_NATS / (level * min(domain.cell)))))


def pad_problem(problem: DesignProblem, max_width: int = MAX_CELLS) -> PaddedProblem:
    """Extend a grid problem with a smallest level by a margin of at most max_width cells; others by a margin of 0."""
    domain, metric = problem.domain, problem.metric
    secrets = np.arange(domain.size)
    width = padding_width(problem, max_width)
    if width == 0:
        return PaddedProblem(domain=domain, edges=problem.edges, inner=secrets, target=secrets, width=0)
    assert domain.origin is not None and domain.shape is not None and domain.cell is not None
    # Cells of the margin exist everywhere, also beyond masked parts of the border.
    wide = Domain.grid(
        [k + 2 * width for k in domain.shape],
        cell=domain.cell,
        unit=domain.unit,
        origin=[o - width * h for o, h in zip(domain.origin, domain.cell, strict=True)],
        mask=np.pad(domain.lookup >= 0, width, constant_values=True),
    )
    core = wide.lookup[tuple(slice(width, -width) for _ in domain.shape)]
    inner = core[domain.lookup >= 0]
    _, target = cKDTree(domain.points).query(wide.points)
    target = np.asarray(target, np.int64)
    # A place of the domain stays where it is, even if rounding makes another one as near.
    target[inner] = secrets
    return PaddedProblem(domain=wide, edges=metric.edges(wide), inner=inner, target=target, width=width)
