r"""The smallest worst-case loss over secrets, for any prior.

    minimise    max over secrets u of sum_y P(y|u) l(u, y)                                              (1)
    over        private tables P (n, m)                                                                 (2)

Source: the maximum over secrets in place of the mean; for the discrete metric Kairouz et al. 2014.
Known: by duality the value is the largest that the optimal program takes under any prior; the prior that attains it is
least favourable. Suppose that for any two secrets a symmetry of metric and loss maps one to the other. Then the uniform
prior is least favourable. The discrete metric with 0/1 loss gives randomized response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.arrays import Matrix
from mechdesign.programs.coupled import Coupled, SideRows, rows_per_secret
from mechdesign.programs.statements import private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Minimax(Coupled):
    """The program of least worst-case loss over secrets; see `mechdesign.programs.minimax`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric and loss.

    Examples
    --------
    >>> round(md.solve(md.programs.Minimax(md.load_problem("discrete", secrets=3))).attrs["objective"], 4)
    0.3086
    """

    name = "minimax"
    objective_of = "the largest loss over the secrets"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        # Tables (2).
        table, constraints = private_table(self.problem)
        at_secret = cp.sum(cp.multiply(self.problem.loss_matrix, table), axis=1)
        return cp.Problem(cp.Minimize(cp.max(at_secret)), constraints)

    def base_cost(self) -> Matrix:
        # (1) in epigraph form: the objective is t alone, and one side row a secret keeps its loss below t.
        return np.zeros_like(self.problem.loss_matrix)

    def side_rows(self) -> SideRows:
        limit = np.zeros(self.problem.domain.size)
        return rows_per_secret(self.problem.loss_matrix, limit=limit, epigraph_coefficient=1.0, noun="the loss")
