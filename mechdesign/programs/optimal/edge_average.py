r"""The edge-average discretization of local privacy: a program that is not private.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                                     for every secret u
                |P(y|u) - P(y|v)| <= d_e (P(y|u) + P(y|v)) / 2                for every edge e = (u, v) and report y

Source: the differential form |grad_u P(y|u)| <= eps(u) P(y|u) of local privacy (paper 000, the program behind Table I)
with a difference along the edge for the gradient, the mean of its two ends for the value, and the line integral d_e of
eps for eps h.
Why it is not private. With a = d_e / 2 < 1 the constraint reads P(y|u) <= (1 + a) / (1 - a) P(y|v), both ways: it is
the optimal program for edges of 2 atanh(a) = d_e (1 + d_e^2 / 12 + ...) nats, longer than the claim. Where d_e >= 2
the constraint holds for any two numbers >= 0 and protects nothing: a cell may be told from the next one for certain.
Known: the optimum is at most that of the optimal program of the same edges, and tends to it as d_e -> 0. On a line at
constant eps with 0/1 loss it is the truncated geometric mechanism at 2 atanh(eps h / 2) nats per cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from mechdesign.programs.program import Program, expected_loss, simplex
from mechdesign.setting.metric.graph import Graph
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeAverage(Program):
    """The edge-average program of a design problem, for comparison only; see the module docstring."""

    name = "edge-average"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        n, edges = self.problem.domain.size, self.problem.edges
        table = cp.Variable((n, self.problem.reports.size), name="P")
        rows, ones = np.arange(len(edges.tail)), np.ones(len(edges.tail))
        at_tail, at_head = (sp.csr_array((ones, (rows, end)), shape=(len(rows), n)) for end in (edges.tail, edges.head))
        half_sum = sp.diags_array(edges.length / 2) @ (at_tail + at_head) @ table
        constraints = [*simplex(table), cp.abs((at_tail - at_head) @ table) <= half_sum]
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

    @property
    def binding(self) -> NDArray[np.bool_]:
        """The edges (e,) that constrain anything: those with d_e < 2."""
        return self.problem.edges.length < 2

    def parts(self) -> list[NDArray[np.int64]]:
        """The secrets, split where no binding edge joins them: between the parts the program constrains nothing."""
        edges, binding, n = self.problem.edges, self.binding, self.problem.domain.size
        joined = sp.csr_array((np.ones(binding.sum()), (edges.tail[binding], edges.head[binding])), shape=(n, n))
        count, label = connected_components(joined, directed=False)
        return [np.flatnonzero(label == part) for part in range(count)]

    def as_optimal(self, part: NDArray[np.int64]) -> DesignProblem:
        """The problem whose optimal program is this one on a part of two places or more: edges of 2 atanh(d_e / 2).

        Its prior is that of the part divided by its sum, uniform where that is zero.
        """
        problem, edges = self.problem, self.problem.edges
        place = np.full(problem.domain.size, -1, np.int64)
        place[part] = np.arange(len(part))
        inside = self.binding & (place[edges.tail] >= 0)
        length = 2 * np.arctanh(edges.length[inside] / 2)
        metric = Graph(tail=place[edges.tail[inside]], head=place[edges.head[inside]], length=length)
        if len(part) == problem.domain.size:
            return replace(problem, metric=metric)
        prior = problem.prior_array[part]
        return DesignProblem(
            domain=Domain.points_at(problem.domain.points[part], unit=problem.domain.unit),
            metric=metric,
            prior=priors.proportional(prior) if prior.any() else np.full(len(part), 1 / len(part)),
            loss=TableLoss(values=problem.loss_matrix[part]),
            reports=problem.reports,
        )

    def parameters(self) -> dict[str, Any]:
        binding = self.binding
        return {"edges": len(binding), "unconstrained_edges": int((~binding).sum()), "parts": len(self.parts())}
