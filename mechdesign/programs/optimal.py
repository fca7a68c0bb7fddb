r"""The optimal locally Lipschitz mechanism.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y

Source: paper 000, section IV (the program behind Table I); 003, equations (6.22)-(6.24); the same program under a
Euclidean metric is the optimal geo-indistinguishable mechanism of Bordenabe et al. 2014.
Known: 0/1 loss on a line gives the truncated geometric mechanism (Ghosh et al. 2012); the discrete metric with 0/1 loss
gives K-ary randomized response.

Scaled variables. With D(u, y) the distance from the anchor of report y, E = min(D, cap), P(y|u) = q(u, y) e^{-E(u, y)}
the constraints read q(u, y) <= e^{k} q(v, y) with k = d_e - E(v, y) + E(u, y) in [0, 2 d_e]: the solver never sees
e^{d} at full range. Without the cap far entries would weigh nothing in the row sums and could take any value.

Restricted program. Cutting the shortest-path tree of a report at some nodes leaves components; giving all of a
component one q makes the profile inside it eikonal. With every node cut this is the whole program, with none it is
the eikonal weight system; any cut gives private tables by construction, hence an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.programs.program import LinearProgram, Program, expected_loss, lipschitz, simplex
from mechdesign.setting.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp

SMALLEST = 1e-9  # coefficients of the row sums below this are left out: HiGHS would drop them
CAPS = (18.0, 9.0)  # nats up to which variables are scaled: what the simplex and the interior-point method do best with
FAR = 20.0  # nats from the anchor beyond which the whole program starts from the eikonal profile
_LOOSE = 34.0  # constraints q_a <= e^k q_b with larger k are left out: e^34 exceeds the solver's range


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimal(Program):
    """The optimal program of a design problem; see the module docstring."""

    name = "optimal"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table = cp.Variable((self.problem.domain.size, self.problem.reports.size), name="P")
        constraints = simplex(table) + lipschitz(table, self.problem)
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictedProgram:
    """The optimal program with one variable per component of the cut trees.

    component (m, n): the variable of report y at secret u; kernel (m, n): e^{-E} at the head of the component, eikonal
    inside it; program: its linear program, whose last variable is a constant report that keeps it feasible.
    """

    program: LinearProgram
    component: NDArray[np.int64]
    kernel: NDArray[np.float64]
    constant: int

    def table(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mechanism table (n, m) of a point x of the linear program."""
        table = (x[self.component] * self.kernel).T.copy()
        table[:, self.constant] += x[-1]
        return table


def assemble(
    problem: DesignProblem,
    cost: NDArray[np.float64],
    distance: NDArray[np.float64],
    parent: NDArray[np.int64],
    cut: NDArray[np.bool_],
    cap: float = CAPS[0],
) -> RestrictedProgram:
    """The restricted program for given cuts, as a linear program for HiGHS.

    Parameters: cost (n, m), prior times loss in a scale that suits a solver; distance and parent (m, n), the
    shortest-path trees from the anchors (parent[y, anchor] = anchor); cut (m, n), True where a node starts its own
    component (all True gives the whole program); cap in nats.
    Cost: O(m (n log n + e log e)).
    """
    n, m = problem.domain.size, problem.reports.size
    tail, head, length = problem.edges.both_ways()
    kernel = np.empty((m, n))
    order = np.argsort(distance, axis=1, kind="stable")
    component = np.empty((m, n), np.int64)
    costs, rows, columns, gaps = [], [], [], []
    variables = 0
    for y in range(m):
        head_node = np.empty(n, np.int64)
        _components(order[y], parent[y], cut[y], head_node)
        nodes, component[y] = np.unique(head_node, return_inverse=True)
        scaled = distance[y] - np.maximum(distance[y, head_node] - cap, 0.0)
        kernel[y] = np.exp(-scaled)
        costs.append(np.bincount(component[y], cost[:, y] * kernel[y]))
        slack = np.maximum(length - scaled[head] + scaled[tail], 0.0)
        a, b = component[y, tail], component[y, head]
        across = (a != b) & (slack < _LOOSE)
        pair, slack = (a * len(nodes) + b)[across], slack[across]
        sort = np.lexsort((slack, pair))
        first = np.r_[True, np.diff(pair[sort]) > 0][: len(sort)]
        keep = sort[first]
        rows.append(variables + pair[keep] // len(nodes))
        columns.append(variables + pair[keep] % len(nodes))
        gaps.append(slack[keep])
        component[y] += variables
        variables += len(nodes)
    lower, upper, gap = np.concatenate(rows), np.concatenate(columns), np.concatenate(gaps)
    reports, secrets = np.nonzero(kernel > SMALLEST)
    sums = sp.csr_array(
        (
            np.r_[kernel[reports, secrets], np.ones(n)],
            (np.r_[secrets, np.arange(n)], np.r_[component[reports, secrets], np.full(n, variables)]),
        ),
        shape=(n, variables + 1),
    )
    count = len(gap)
    cone = sp.csr_array(
        (np.r_[np.exp(-gap / 2), -np.exp(gap / 2)], (np.tile(np.arange(count), 2), np.r_[lower, upper])),
        shape=(count, variables + 1),
    )
    constant = problem.best_constant
    program = LinearProgram(
        cost=np.r_[np.concatenate(costs), cost[:, constant].sum()],
        matrix=sp.csr_array(sp.vstack([sums, cone], format="csr")),
        row_lower=np.r_[np.ones(n), np.full(count, -np.inf)],
        row_upper=np.r_[np.ones(n), np.zeros(count)],
        linking=n,
    )
    return RestrictedProgram(program=program, component=component, kernel=kernel, constant=constant)


@numba.njit(cache=True)
def _components(order, parent, cut, head_node):  # type: ignore[no-untyped-def]
    head_node[order[0]] = order[0]
    for i in range(1, order.size):
        v = order[i]
        head_node[v] = v if cut[v] else head_node[parent[v]]
