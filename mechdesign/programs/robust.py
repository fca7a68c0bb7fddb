r"""The smallest expected loss under the worst of several priors.

    minimise    max over k of sum_u prior_k(u) sum_y P(y|u) l(u, y)                                     (1)
    over        private tables P (n, m)                                                                 (2)

Known: by duality the value is the largest that the optimal program takes under any mixture of the priors. With all
point priors it is the minimax program, with one prior the optimal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import as_numbers
from mechdesign.errors import InputError
from mechdesign.problem.priors import check_prior
from mechdesign.programs.coupled import Coupled, SideRows
from mechdesign.programs.statements import private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Robust(Coupled):
    """The program of least expected loss under the worst of several priors; see `mechdesign.programs.robust`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric and loss. Its own prior counts only if it is one of `priors`.
    priors : (k, n) array
        Priors over the secrets.

    Examples
    --------
    >>> program = md.programs.Robust(md.load_problem("discrete", secrets=3), priors=[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    >>> round(md.solve(program).attrs["objective"], 4)
    0.3086
    """

    priors: ArrayLike
    name = "robust"
    objective_of = "the largest expected loss over the priors"

    def __post_init__(self) -> None:
        values = as_numbers(self.priors, "priors")
        if values.ndim < 2 or not len(values):
            n = self.problem.domain.size
            raise InputError(f"must have shape (k, {n}), one prior per row", field="priors", value=values.shape)
        checked = np.stack([check_prior(prior, self.problem.domain) for prior in values])
        object.__setattr__(self, "priors", checked)

    @property
    def priors_array(self) -> Matrix:
        return np.asarray(self.priors, float)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        # Tables (2).
        table, constraints = private_table(self.problem)
        costs = [prior[:, None] * self.problem.loss_matrix for prior in self.priors_array]
        # Objective (1).
        worst = cp.max(cp.hstack([cp.sum(cp.multiply(cost, table)) for cost in costs]))
        return cp.Problem(cp.Minimize(worst), constraints)

    def parameters(self) -> dict[str, Any]:
        return {"priors": self.priors_array.tolist()}

    def base_cost(self) -> Matrix:
        # (1) in epigraph form: the objective is t alone, and one side row a prior keeps its mean below t.
        return np.zeros_like(self.problem.loss_matrix)

    def side_rows(self) -> SideRows:
        loss, priors = self.problem.loss_matrix, self.priors_array
        require_memory(len(priors), loss.size, tables=4, noun="the rows of the priors")
        matrix = sp.csr_array((priors[:, :, None] * loss[None]).reshape(len(priors), -1))
        names = [f"the expected loss under prior {number}" for number in range(len(priors))]
        k = len(priors)
        return SideRows(matrix=matrix, limit=np.zeros(k), epigraph_coefficient=np.ones(k), names=names)
