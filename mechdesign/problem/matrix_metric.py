"""Matrix: the metric whose distances are the entries of a matrix.

The edges are all pairs, each as long as its entry. Files therefore hold it as a `Graph`, whose shortest paths are the
entries: no path is shorter than the pair itself, by the triangle inequality.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix as Array
from mechdesign.base.labels import words_of_rows
from mechdesign.base.memory import require_memory
from mechdesign.base.units import canonical_unit, unit_word
from mechdesign.base.validation import as_numbers, check_epsilon, refuse_entries
from mechdesign.errors import InputError
from mechdesign.problem.classes import label_positions
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Graph

NATS = "nats"
# Relative excess over a path that rounding explains: a sum of 2^12 doubles is right to 2^-40.
_ROUNDING = 2.0**-40


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix(Metric):
    """The metric d(u, u') = epsilon D[u, u'] of a symmetric matrix D.

    Parameters
    ----------
    distance : (n, n) array
        D: symmetric, 0 on the diagonal, positive elsewhere, and at most the sum of the entries along any path. The rows
        of a DataFrame whose labels are those of classes are matched by label.
    epsilon, unit, scale : float, str, float
        Privacy level in nats per `unit`, 1 by default; unit of D, "nats" by default; factor of every distance.
    close : bool
        True to take the shortest paths of D, where an infinite entry joins no pair.

    Examples
    --------
    >>> domain = md.Domain.classes(["low", "mid", "high"])
    >>> metric = md.Matrix([[0, 1, 2], [1, 0, 1], [2, 1, 0]], epsilon=0.5, unit="step")
    >>> problem = md.DesignProblem(domain, metric, [0.5, 0.3, 0.2], md.losses.ZeroOne())
    >>> float(problem.distances[0, 2])
    1.0
    """

    distance: ArrayLike = field(kw_only=False)
    epsilon: float = 1.0
    unit: str = NATS
    close: bool = False
    labels: tuple[str, ...] | None = None
    kind = Graph.kind
    edge_source = Graph.edge_source

    def __post_init__(self) -> None:
        # First, because the base class makes arrays of frames.
        if self.labels is None:
            words = words_of_rows(self.distance)
            object.__setattr__(self, "labels", tuple(words) if words else None)
        super().__post_init__()
        check_epsilon(self.epsilon)
        if self.unit != NATS:
            object.__setattr__(self, "unit", canonical_unit(self.unit))
        matrix = as_numbers(self.distance, "distance")
        object.__setattr__(self, "distance", _check_matrix(matrix, close=self.close))

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, scale: float, stored_edges: Edges | None) -> Self:
        """Refuse: files hold this metric as a graph."""
        raise InputError("is stored as a graph", field="metric", value=cls.__name__, remedy="read it as md.Graph")

    def in_unit_of(self, domain: Domain) -> Self:
        size = len(np.asarray(self.distance))
        if size != domain.size:
            value = f"{size} rows for {domain.size} places"
            raise InputError("must have a row for each place", field="distance", value=value)
        if self.labels is None or domain.labels is None:
            return self
        order = label_positions(self.labels, domain.labels, "distance", "secret")
        if order is None or (order == np.arange(size)).all():
            return self
        ordered = np.asarray(self.distance)[np.ix_(order, order)]
        return type(self)(
            ordered, scale=self.scale, epsilon=self.epsilon, unit=self.unit, close=self.close, labels=domain.labels
        )

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head = np.triu_indices(domain.size, 1)
        length = self.epsilon * np.asarray(self.distance, float)[tail, head]
        return Edges(tail=tail.astype(np.int64), head=head.astype(np.int64), length=length)

    def direct_distances(self, domain: Domain) -> Array:
        return self.scale * self.epsilon * np.asarray(self.distance, float)

    def claim(self, domain: Domain) -> str:
        return "the shortest-path distance of the edges listed in this file"

    def words(self, unit: str, axes: int) -> str:
        return "graph metric"

    def parameters(self) -> dict[str, Any]:
        return {}

    def stated_level(self, unit: str) -> tuple[float, str] | None:
        if self.unit == NATS:
            return None
        return self.epsilon * self.scale, f"nats per {unit_word(self.unit)}"


def _check_matrix(matrix: Array, *, close: bool) -> Array:
    """The matrix, or its shortest paths, if it is a metric; else an InputError that names entries."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError("must be a square matrix, a row for each place", field="distance", value=matrix.shape)
    require_memory(*matrix.shape, tables=4, noun="a metric as a matrix")
    refuse_entries(np.isnan(matrix), matrix, "must be numbers", field="distance")
    refuse_entries(matrix < 0, matrix, "must not be negative", field="distance")
    _refuse_pair(matrix != matrix.T, matrix, "must be symmetric")
    if np.diagonal(matrix).any():
        at = int(np.argmax(np.diagonal(matrix) != 0))
        raise InputError("must be 0 on the diagonal", field="distance", value=f"{matrix[at, at]:.9g} at [{at}, {at}]")
    from scipy.sparse.csgraph import floyd_warshall

    apart = ~np.eye(len(matrix), dtype=bool)
    zero = apart & (matrix == 0)
    refuse_entries(zero, matrix, "two places are at distance 0", field="distance", remedy="merge them")
    if not close:
        refuse_entries(
            np.isinf(matrix), matrix, "must be finite", field="distance", remedy="or pass close=True for shortest paths"
        )
    paths = floyd_warshall(np.where(apart, matrix, 0.0))
    paths = np.minimum(paths, paths.T)
    refuse_entries(np.isinf(paths), paths, "no path joins two places", field="distance")
    if close:
        return np.asarray(paths, float)
    is_long = matrix > paths * (1 + _ROUNDING)
    if is_long.any():
        u, v = (int(k) for k in np.argwhere(is_long)[0])
        ways = matrix[u] + matrix[:, v]
        ways[[u, v]] = math.inf
        through = int(np.argmin(ways))
        value = f"{matrix[u, v]:.9g} from {u} to {v}, {matrix[u, through] + matrix[through, v]:.9g} by way of {through}"
        remedy = "pass close=True for the shortest paths of the matrix"
        raise InputError("breaks the triangle inequality", field="distance", value=value, remedy=remedy)
    return matrix


def _refuse_pair(wrong: Any, matrix: Array, message: str) -> None:
    if wrong.any():
        u, v = (int(k) for k in np.argwhere(wrong)[0])
        value = f"{matrix[u, v]:.9g} at [{u}, {v}] and {matrix[v, u]:.9g} at [{v}, {u}]"
        raise InputError(message, field="distance", value=value, remedy="a metric is symmetric")
