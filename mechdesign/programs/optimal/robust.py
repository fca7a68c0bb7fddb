r"""The robust mechanism: the smallest expected loss under the worst of several priors.

    minimise    max over k of sum_u prior_k(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y

Source: the program of 003, equations (6.22)-(6.24), with the maximum over given priors.
Known: by duality the value is the largest that the optimal program takes under any mixture of the priors; so it is at
least that of the optimal program under each, and at most that of the minimax program. With all point priors it is the
minimax program, with one prior the optimal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.programs.optimal.coupled import Coupled, SideRows
from mechdesign.programs.program import lipschitz, simplex
from mechdesign.setting.objective.priors import check_prior

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Robust(Coupled):
    """The robust program of a design problem; see the module docstring.

    priors (k, n), each a prior over the secrets. The problem's own prior counts only where it is one of them.
    """

    priors: ArrayLike
    name = "robust"
    objective_of = "the largest expected loss over the priors"

    def __post_init__(self) -> None:
        given = np.asarray(self.priors, float)
        if given.ndim != 2 or not len(given):
            raise InputError(
                f"must have shape (k, {self.problem.domain.size})",
                field="priors",
                value=given.shape,
                remedy="stack the priors, one a row",
            )
        checked = np.stack([check_prior(prior, self.problem.domain.size) for prior in given])
        object.__setattr__(self, "priors", checked)

    @property
    def priors_array(self) -> NDArray[np.float64]:
        """The checked priors (k, n)."""
        return np.asarray(self.priors, float)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table = cp.Variable((self.problem.domain.size, self.problem.reports.size), name="P")
        loss = self.problem.loss_matrix
        costs = [prior[:, None] * loss for prior in self.priors_array]
        worst = cp.max(cp.hstack([cp.sum(cp.multiply(cost, table)) for cost in costs]))
        return cp.Problem(cp.Minimize(worst), simplex(table) + lipschitz(table, self.problem))

    def parameters(self) -> dict[str, Any]:
        return {"priors": self.priors_array.tolist()}

    def base_cost(self) -> NDArray[np.float64]:
        return np.zeros_like(self.problem.loss_matrix)

    def side_rows(self) -> SideRows:
        loss, priors = self.problem.loss_matrix, self.priors_array
        require_memory(len(priors), loss.size, tables=4, what="the rows of the priors")
        matrix = sp.csr_array((priors[:, :, None] * loss[None]).reshape(len(priors), -1))
        names = [f"the expected loss under prior {k}" for k in range(len(priors))]
        return SideRows(matrix=matrix, limit=np.zeros(len(priors)), share=np.ones(len(priors)), names=names)
