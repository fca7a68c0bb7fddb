"""Source sets: the sets of places whose distance gives kernels e^{-f_S}, f_S(u) = min over s in S of d(u, s)."""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Indices
from mechdesign.problem.problem import DesignProblem

NEIGHBOURS = 8  # nearest places of a place that form pairs with it


def source_sets(problem: DesignProblem) -> list[Indices]:
    """Single places; every place with each of its 8 nearest; every place with its 2^j - 1 nearest; the whole domain."""
    n = problem.domain.size
    nearest = np.argsort(problem.distances, axis=1, kind="stable")
    # The place itself comes first, even where others are at distance 0.
    nearest = np.column_stack([np.arange(n), nearest[nearest != np.arange(n)[:, None]].reshape(n, n - 1)])
    sources: dict[bytes, Indices] = {}

    def add(source: Indices) -> None:
        ordered = np.sort(source).astype(np.int64)
        sources.setdefault(ordered.tobytes(), ordered)

    for u in range(n):
        add(nearest[u, :1])
    for u in range(n):
        for v in nearest[u, 1 : 1 + NEIGHBOURS]:
            add(np.array([u, v]))
    # Larger sets in powers of 2: with all sizes the sets, and so the rays to start from, would grow as n^2.
    size = 4
    while size < n:
        for u in range(n):
            add(nearest[u, :size])
        size *= 2
    add(np.arange(n))
    return list(sources.values())
