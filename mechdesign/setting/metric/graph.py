"""The metric of a graph: shortest paths over edges that are given in nats, or over a matrix of distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph(Metric):
    """Shortest-path distance of given edges: tail, head (e,) place numbers, length (e,) in nats.

    Invariants: no self-loop, no repeated pair, lengths positive and finite. A domain has fewer than 2^31 places, so
    that the number place * n + place of a pair is a 64-bit integer.
    """

    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "graph"
    rebuilt = "edge list only"
    sparse = True

    @classmethod
    @asked
    def from_matrix(cls, distances: ArrayLike) -> Self:
        """The graph of all pairs at the given distances (n, n) in nats, symmetric and positive off the zero diagonal.

        The triangle inequality need not hold: the claim is the shortest-path closure of the matrix,

            d(u, u') = min over paths from u to u' of the sum of their entries  <=  distances[u, u'],

        which is the matrix itself where the inequality holds. Left out are the edges that two others imply, compared as
        exact numbers: by induction over lengths the edges kept imply all entries.
        Raises: InputError for another shape, and for entries that are negative, not finite, zero off the diagonal, or
            unequal across it; SizeError where about three such tables do not fit in memory.
        Cost: O(n^3), 10 ns each.
        """
        given = _checked_matrix(distances)
        tail, head = np.triu_indices(len(given), 1)
        kept = ~_implied(given)[tail, head]
        return cls(tail=tail[kept], head=head[kept], length=given[tail, head][kept])

    @classmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        """The graph of the edges listed, at scale 1: their lengths are multiplied already. Without a list, no edges."""
        none = np.empty(0, np.int64)
        edges = Edges(tail=none, head=none, length=np.empty(0)) if listed is None else listed
        return cls(tail=edges.tail, head=edges.head, length=edges.length)

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head, length = (np.asarray(given) for given in (self.tail, self.head, self.length))
        if not (tail.shape == head.shape == length.shape) or tail.ndim != 1:
            raise InputError(
                "tail, head and length must be equally long",
                field="edges",
                value=tail.shape,
                remedy="one entry per edge",
            )
        for name, given, kinds in (("tail", tail, "iu"), ("head", head, "iu"), ("length", length, "iuf")):
            if len(given) and given.dtype.kind not in kinds:
                raise InputError(
                    "must be numbers of places" if kinds == "iu" else "must be numbers",
                    field=name,
                    value=given.dtype,
                    remedy="give whole numbers for the ends and nats for the length",
                )
        if len(tail) and not (min(tail.min(), head.min()) >= 0 and max(tail.max(), head.max()) < domain.size):
            raise InputError(
                "an edge ends outside the domain",
                field="edges",
                value="dangling edge",
                remedy=f"use places 0..{domain.size - 1}",
            )
        tail, head, length = tail.astype(np.int64), head.astype(np.int64), length.astype(float)
        if (tail == head).any():
            raise InputError("self-loop", field="edges", value=int(tail[tail == head][0]), remedy="drop it")
        if not (np.isfinite(length) & (length > 0)).all():
            raise InputError(
                "must be positive and finite",
                field="length",
                value=f"{length.min()}",
                remedy="merge places at distance 0",
            )
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        if len(np.unique(low * domain.size + high)) < len(low):
            raise InputError(
                "an edge is given twice", field="edges", value="repeated pair", remedy="keep the shorter one"
            )
        return Edges(tail=low, head=high, length=length)

    def claim(self, domain: Domain) -> str:
        return "the shortest-path distance of the edges listed in this file"

    def words(self, unit: str, axes: int) -> str:
        return "graph metric"


def _checked_matrix(distances: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(distances, float)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise _refused("must have shape (n, n)", given.shape, "give a distance for every pair of places")
    require_memory(*given.shape, tables=3, what="the distances between all secrets")
    apart = ~np.eye(len(given), dtype=bool)
    if not (np.isfinite(given).all() and (given[apart] > 0).all() and not given.diagonal().any()):
        raise _refused(
            "must be finite, 0 on the diagonal and positive off it",
            f"{given.min()} to {given.max()}",
            "merge places at distance 0, and give a finite distance in nats for every pair",
        )
    if not np.array_equal(given, given.T):
        u, v = (int(k) for k in np.argwhere(given != given.T)[0])
        raise _refused(
            "must be symmetric", f"{given[u, v]} and {given[v, u]} between {u} and {v}", "give the smaller of both"
        )
    return given


def _implied(given: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Pairs (n, n) with d(u, w) + d(w, v) <= d(u, v) for some other place w, compared without rounding.

    The rounded sum s decides unless it equals d(u, v); then the sign of its error e does, s + e being the exact sum.
    """
    found = np.zeros(given.shape, bool)
    with np.errstate(over="ignore"):
        for w in range(len(given)):
            near = given[:, w, None] + given[w] <= given
            near[w] = near[:, w] = False
            u, v = np.nonzero(near)
            first, second = given[u, w], given[w, v]
            total = first + second
            share = total - first
            error = (first - (total - share)) + (second - share)
            below = (total < given[u, v]) | (error <= 0)
            found[u[below], v[below]] = True
    return found


def _refused(message: str, value: object, remedy: str) -> InputError:
    return InputError(message, field="distances", value=value, remedy=remedy)
