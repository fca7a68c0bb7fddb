r"""The mechanism of a query (Algorithm 1 with few answers): kernels of label sets, and the rest for the true answer.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)                                                     (1)
    over        w >= 0, one weight per answer y and source set S: places with that label, or all places
    where       P(y|u) = sum over the sets of y of w(y, S) e^{-f_S(u)}    for every answer y, not q(u)  (2)
                P(q(u)|u) = 1 - sum over the other answers of P(y|u)      for every secret u            (3)
    subject to  P(y|u) <= e^{d_e} P(y|v)     for every edge e = (u, v), both ways, and y = q(u), q(v)   (4)

f_S(u) = min over s in S of d(u, s) solves |grad f| = eps with f = 0 on S. With S = q^{-1}(y) alone, columns away from
their label are those of Algorithm 1. On its label a column is the rest, so that rows sum to 1 by construction. Smaller
sets let an answer recede: from corners of three labels, from thin parts of its label, and from short edges.
Source: Koufogiannis & Pappas 2016, Algorithm 1 with a query q; the boundary condition is its "design choice".
Known: a column away from its own label is private for any weights, so the constraints listed imply all others. S = all
places makes constant mechanisms feasible: the value is at most the loss of the best constant report and at least that
of the optimal program. If w >= 0 solves K w = 1, Algorithm 1's mechanism is feasible. Let two labels meet on one edge
of length d, and let the sums of prior e^{-f} over them differ by at most a factor e^d, f the distance to the other
label. For zero-one loss the optimum is then P(wrong|u) = e^{d - f(u)} / (1 + e^d).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.errors import UnsuitableError
from mechdesign.problem.lattice import distances_to_sets
from mechdesign.problem.queries import Query
from mechdesign.programs.program import Program
from mechdesign.programs.statements import expected_loss, lipschitz, simplex

if TYPE_CHECKING:
    import cvxpy as cp

RECEDING = tuple(0.1 * 1.5**k for k in range(11))  # nats from other labels that the smaller sets keep
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the places of a label, by their shortest edge
MOST_ENTRIES = 80_000_000  # of the kernel: beyond, fewer distances are used, which costs much


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryWeights(Program):
    """The weight program of a problem with a query; see `mechdesign.programs.queries`.

    Parameters
    ----------
    problem : DesignProblem
        Made by `md.losses.query_problem`; report y answers the y-th smallest label.

    Examples
    --------
    >>> domain = md.Domain.grid((4,), 1.0)
    >>> problem = md.losses.query_problem(
    ...     domain=domain, metric=md.Euclidean(1.0), prior=md.priors.uniform(domain), query=[0, 0, 1, 1]
    ... )
    >>> md.solve(md.programs.QueryWeights(problem)).sizes["report"]
    2
    """

    name = "query"

    def __post_init__(self) -> None:
        if self.problem.query is None:
            raise UnsuitableError("needs a problem with a query: make it with query_problem", field="labels")

    @property
    def query(self) -> Query:
        assert self.problem.query is not None
        return self.problem.query

    @cached_property
    def distances(self) -> Matrix:
        """f_y(u) (n, m) in nats, the distance to the nearest place of label y."""
        return distances_to_sets(self.problem.edges, self.problem.domain.size, self.query.places)

    @cached_property
    def sources(self) -> list[tuple[int, Indices]]:
        """The smaller source sets, each once, with its answer."""
        n, m = self.distances.shape
        # Two sets a label are always there; each further distance gives two (with and without one other label).
        max_levels = (MOST_ENTRIES // (n * m) - 2 - len(SHARES)) // 2
        step = max(1, -(-len(RECEDING) // max(max_levels, 1)))
        levels = RECEDING[step // 2 :: step] if max_levels > 0 else ()
        # The distances to the nearest and to the second nearest other label; with two labels the second is missing.
        away = self.distances.copy()
        away[np.arange(n), self.query.answer] = np.inf
        away = np.column_stack([away, np.full(n, np.inf)]) if m == 2 else away
        nearest = np.partition(away, 1, axis=1)[:, :2]
        tail, head, length = self.problem.edges.both_ways()
        shortest = np.full(n, np.inf)
        np.minimum.at(shortest, tail, length)
        border = np.zeros(n, bool)
        border[tail[self.query.answer[tail] != self.query.answer[head]]] = True
        sources: dict[bytes, tuple[int, Indices]] = {}
        fits_alone = n * (border.sum() + m * (2 + 2 * len(levels) + len(SHARES))) <= MOST_ENTRIES // 2
        for y, places in enumerate(self.query.places):
            # Places at least t nats from every other label, or from all others but one; then those with long edges.
            sets = [places[nearest[places, j] >= t] for j in (1, 0) for t in levels]
            sets += [places[shortest[places] >= s] for s in np.quantile(shortest[places], SHARES if levels else ())]
            # Every place at the border alone, if these fill at most half the kernel.
            sets += list(places[border[places], None]) if fits_alone else []
            for source in sets:
                # The whole label is among the kernels already, and different distances can give the same set.
                if 0 < len(source) < len(places):
                    sources.setdefault(source.tobytes(), (y, source))
        return list(sources.values())

    @cached_property
    def answer(self) -> Indices:
        """The answer (k,) of each kernel, as a report number."""
        reports = np.arange(self.distances.shape[1])
        return np.concatenate([reports, reports, np.array([y for y, _ in self.sources], np.int64)])

    @cached_property
    def kernel(self) -> Matrix:
        """e^{-f_S(u)} (n, k): the set of every label, all places for every label, then the smaller sets."""
        n, m = self.distances.shape
        require_memory(n, len(self.answer), tables=3, noun="the kernels of a query")
        # Column-major, because kernels are read one at a time.
        kernel = np.ones((len(self.answer), n)).T
        np.exp(-self.distances, out=kernel[:, :m])
        if self.sources:
            smaller = distances_to_sets(self.problem.edges, n, [source for _, source in self.sources])
            np.exp(-smaller, out=kernel[:, 2 * m :])
        return kernel

    def table(self, weights: Vector) -> Matrix:
        """P (n, m) for weights (k,): rows sum to 1; entries are negative if constraints are violated."""
        n, m = self.distances.shape
        table = np.zeros((n, m))
        for y in range(m):
            # (2); few weights are positive
            used = np.flatnonzero((self.answer == y) & (weights != 0))
            table[:, y] = self.kernel[:, used] @ weights[used]
        # Equation (3).
        true_answer = np.arange(n), self.query.answer
        table[true_answer] = 0.0
        table[true_answer] = 1.0 - table.sum(axis=1)
        return table

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        m = self.problem.reports.size
        weights = cp.Variable(len(self.answer), name="w")
        true = self.query.answer[:, None] == np.arange(m)
        # Equations (2) and (3).
        columns = [self.kernel[:, self.answer == y] @ weights[self.answer == y] for y in range(m)]
        others = cp.multiply(~true, cp.vstack(columns).T)
        table = others + cp.multiply(true, 1 - cp.sum(others, axis=1, keepdims=True) @ np.ones((1, m)))
        # (4) with all edges and reports: more than it needs, which changes nothing (module docstring, Known).
        constraints = [weights >= 0, *simplex(table), *lipschitz(table, self.problem)]
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        return {"labels": self.query.values.tolist(), "kernels": len(self.answer)}
