"""Constraints of many pairs, taken in as a table breaks them: one row (secret, other, report) at a time.

A metric over all pairs has n (n - 1) constraints for each report, and few of them are tight. The program starts with
the pairs of a greedy spanner, along which no path is longer than `STRETCH` times the distance, for every report. After
each round a report takes in, for every secret v, the one pair (u, v) whose constraint its column breaks most,
P(u) e^{-d(u, v)} > P(v). The profile of variables keeps the distances over all pairs, so that whatever is left out the
slack d - D(v) + D(u) of a row is not negative.

Leaving rows out can only lower the optimum; bounds are priced over all pairs nonetheless. Adding whole pairs instead of
rows needs half of all pairs. Source: the spanner is that of Althofer et al., On sparse spanners of weighted graphs,
1993, section 2; for row generation in geo-indistinguishability, Bordenabe et al. 2014 solve on a spanner alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import in_blocks
from mechdesign.mechanism.repair import envelope
from mechdesign.problem.lattice import Edges, shortest_paths
from mechdesign.problem.metric import Graph
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.restricted import RestrictedProgram, restrict, with_rows
from mechdesign.solvers.pricing import ConePricer

STRETCH = 1.3  # 2.2 pairs for each of 100 to 300 points in the plane
_DENSE = 6  # edges for each one of the spanner from which rows are worth generating
_BROKEN = 3e-3  # of gap / n: a constraint that a table breaks by less waits
_REPORTS = 16  # reports searched at a time
_LEVELLINGS = 12
_LEVEL = 1e-5  # relative difference of row sums from which levelling gains less than it costs


def spanner(edges: Edges, size: int, stretch: float = STRETCH) -> Edges:
    """The edges, taken by increasing length, that shorten a path of more than `stretch` times their length.

    Along those no two of the `size` places are further apart than `stretch` times their shortest path.
    Cost: O(e) and O(size^2) for every edge of the spanner. Memory: 8 size^2 bytes.
    """
    order = np.argsort(edges.length, kind="stable")
    chosen = np.sort(order[_spanning(edges.tail[order], edges.head[order], edges.length[order], size, stretch)])
    return Edges(tail=edges.tail[chosen], head=edges.head[chosen], length=edges.length[chosen])


def suits_rows(problem: DesignProblem) -> bool:
    """Whether a metric has many more pairs than a spanner of it."""
    size, edges = problem.domain.size, problem.edges
    if len(edges.tail) < _DENSE * size:
        return False
    return len(edges.tail) >= _DENSE * len(spanner(edges, size).tail)


def levelled(table: NDArray[np.float64], edges: Edges) -> NDArray[np.float64]:
    """The last of `levellings`."""
    for latest in levellings(table, edges, _LEVELLINGS):
        table = latest
    return table


def levellings(table: NDArray[np.float64], edges: Edges, most: int) -> Iterator[NDArray[np.float64]]:
    """Tables (n, m) of rows of sum 1, each closer to one that is private: the envelope of the one before, every row
    divided by its sum; at most so many. Rows of the envelope differ less each time, and the slack of a repair falls
    with them.
    """
    for _ in range(most):
        raised = envelope(table, edges)
        rows = raised.sum(axis=1)
        table = raised / rows[:, None]
        yield table
        if rows.max() - rows.min() <= _LEVEL * rows.max():
            return


@dataclass(kw_only=True, eq=False)
class PairRows:
    """The rows in hand of a problem: those of a spanner, and (report, secret, other) that were broken, (k,) each."""

    problem: DesignProblem
    pricer: ConePricer
    report: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    secret: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    other: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        size = self.problem.domain.size
        base = spanner(self.problem.edges, size)
        self._base = replace(self.problem, metric=Graph(tail=base.tail, head=base.head, length=base.length))
        self._paths = shortest_paths(self.problem.edges, size)
        self._kernel = np.exp(-self._paths)

    def program(self, scale: float) -> RestrictedProgram:
        """The program of the rows in hand, every entry of the table a variable; scale as in `restrict`."""
        distance = self.pricer.distance
        restricted = restrict(self._base, scale, distance, self.pricer.parent, np.ones(distance.shape, np.bool_))
        return with_rows(restricted, self.report, self.secret, self.other, self._paths[self.secret, self.other])

    def extend(self, table: NDArray[np.float64], gap: float) -> bool:
        """Take in the rows that a table (n, m) breaks, the worst for each report and secret; whether there were any.

        Cost: O(n^2 m).
        """
        columns = np.ascontiguousarray(table.T)
        worst = np.empty(columns.shape, np.int32)
        least = _BROKEN * min(gap, 1e-3) / len(table)

        def search(start: int, stop: int) -> None:
            _most_broken(self._kernel, columns[start:stop], least, worst[start:stop])

        in_blocks(search, len(columns), _REPORTS)
        report, other = np.nonzero(worst >= 0)
        self.report = np.concatenate([self.report, report])
        self.secret = np.concatenate([self.secret, worst[report, other]])
        self.other = np.concatenate([self.other, other])
        return len(report) > 0


@numba.njit(cache=True, nogil=True)
def _spanning(tail, head, length, size, stretch):  # type: ignore[no-untyped-def]
    """Which of the edges (e,), by increasing length, the greedy spanner keeps."""
    path = np.full((size, size), np.inf)
    for u in range(size):
        path[u, u] = 0.0
    kept = np.zeros(tail.size, np.bool_)
    for e in range(tail.size):
        a, b, d = tail[e], head[e], length[e]
        if path[a, b] <= stretch * d:
            continue
        kept[e] = True
        for u in range(size):
            by_a, by_b = path[u, a] + d, path[u, b] + d
            if by_a < path[u, b]:
                path[u] = np.minimum(path[u], by_a + path[b])
            elif by_b < path[u, a]:
                path[u] = np.minimum(path[u], by_b + path[a])
    return kept


@numba.njit(cache=True, nogil=True)
def _most_broken(kernel, columns, least, worst):  # type: ignore[no-untyped-def]
    """For every column (n,) and place v the u with the largest P(u) e^{-d(u, v)}, where above P(v) + least, else -1."""
    for y in range(columns.shape[0]):
        p = columns[y]
        for v in range(p.size):
            most, at = p[v] + least, -1
            for u in range(p.size):
                if kernel[v, u] * p[u] > most:
                    most, at = kernel[v, u] * p[u], u
            worst[y, v] = at
