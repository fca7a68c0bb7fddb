r"""The dictionary mechanism: eikonal kernels of small source sets, mixed at the least expected loss.

    minimise    sum_S w(S) sum_u prior(u) e^{-f_S(u)} l(u, y(S))
    over        w >= 0, one weight per source set S
    subject to  sum_S w(S) e^{-f_S(u)} = 1                      for every secret u
    then        P(y|u) = sum over S with y(S) = y of w(S) e^{-f_S(u)}

f_S(u) = min over s in S of d(u, s) solves |grad f_S| = eps with f_S = 0 on S; y(S) is the Bayes report of the kernel,
the y with the least sum_u prior(u) e^{-f_S(u)} l(u, y), so that every kernel has one column.
Source: Koufogiannis & Pappas 2016, Algorithm 1 with more kernels than one per place; its question which boundary
conditions to take is answered by the program, which takes any of the dictionary.
Known: e^{-f_S} is the largest of e^{-d(u, s)}, s in S, so every mixture is private, and the value is at least that of
the optimal program; with single places among the source sets it is at most that of the eikonal weights where these
exist with w >= 0; with the whole domain among them (a constant kernel) it always has a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import Program, place_numbers

if TYPE_CHECKING:
    import cvxpy as cp

NEIGHBOURS = 8  # nearest places of a place that form pairs with it


@dataclass(frozen=True, kw_only=True, eq=False)
class Dictionary(Program):
    """The program over weights of several kernels per place.

    Its statement is in `mechdesign.programs.dictionary`.

    Parameters
    ----------
    problem : DesignProblem
        A problem whose reports are its secrets.
    sources : sequence of sequences of int
        The source sets, of place numbers; by default those of `source_sets`.

    References
    ----------
    Koufogiannis & Pappas 2016, Algorithm 1.

    Examples
    --------
    >>> md.solve(md.programs.Dictionary(md.load_problem("line", cells=4))).attrs["program"]
    'dictionary'
    """

    sources: Sequence[Sequence[int]] | None = None
    name = "dictionary"

    def __post_init__(self) -> None:
        if self.sources is not None:
            self.sets  # noqa: B018

    @cached_property
    def sets(self) -> list[NDArray[np.int64]]:
        """The source sets k, each an array of place numbers."""
        if self.sources is None:
            return source_sets(self.problem)
        return [place_numbers(source, self.problem.domain.size, "sources") for source in self.sources]

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """e^{-f_S(u)}, (n, k)."""
        distances = self.problem.distances
        return np.exp(-np.column_stack([distances[:, source].min(axis=1) for source in self.sets]))

    @cached_property
    def report(self) -> NDArray[np.int64]:
        """y(S), (k,)."""
        return np.argmin(self.kernel.T @ self.problem.weighted_loss, axis=1)

    @property
    def kernel_cost(self) -> NDArray[np.float64]:
        """The expected loss of every kernel at weight 1, (k,)."""
        return (self.kernel * self.problem.weighted_loss[:, self.report]).sum(axis=0)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        weights = cp.Variable(self.kernel.shape[1], name="w")
        return cp.Problem(cp.Minimize(self.kernel_cost @ weights), [weights >= 0, self.kernel @ weights == 1])

    def table(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """P (n, m) for weights (k,)."""
        table = np.zeros((self.problem.domain.size, self.problem.reports.size))
        np.add.at(table.T, self.report, (self.kernel * weights).T)
        return table

    def parameters(self) -> dict[str, Any]:
        return {"source_sets": len(self.sets), "largest_source_set": max(map(len, self.sets))}


def source_sets(problem: DesignProblem) -> list[NDArray[np.int64]]:
    """Single places; every place with each of its 8 nearest; every place with its 2^j - 1 nearest; the whole domain.

    Nearest in nats, ties by place number; each set once. O(n log n) sets.
    """
    n = problem.domain.size
    nearest = np.argsort(problem.distances, axis=1, kind="stable")
    nearest = np.column_stack([np.arange(n), nearest[nearest != np.arange(n)[:, None]].reshape(n, n - 1)])
    sources: dict[bytes, NDArray[np.int64]] = {}

    def add(source: NDArray[np.int64]) -> None:
        ordered = np.sort(source).astype(np.int64)
        sources.setdefault(ordered.tobytes(), ordered)

    for u in range(n):
        add(nearest[u, :1])
    for u in range(n):
        for v in nearest[u, 1 : 1 + NEIGHBOURS]:
            add(np.array([u, v]))
    size = 4
    while size < n:
        for u in range(n):
            add(nearest[u, :size])
        size *= 2
    add(np.arange(n))
    return list(sources.values())
