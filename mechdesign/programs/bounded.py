r"""The smallest expected loss with a bound on the loss at every secret.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)                                                     (1)
    over        private tables P (n, m)                                                                 (2)
    subject to  sum_y P(y|u) l(u, y) <= B(u)                    for every secret u                      (3)

Known: between the optimal program (B large) and the minimax program. With one B for all secrets it has a solution if
and only if B is at least the minimax value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Vector
from mechdesign.base.validation import as_numbers, refuse_entries
from mechdesign.errors import InputError
from mechdesign.programs.coupled import Coupled, SideRows, rows_per_secret
from mechdesign.programs.statements import expected_loss, private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounded(Coupled):
    """The program of least expected loss with a bound on the loss at every secret; see `mechdesign.programs.bounded`.

    Parameters
    ----------
    problem : DesignProblem
    worst_loss : float or (n,) array
        The bound in loss units, one or one per secret; inf for no bound.

    Examples
    --------
    >>> program = md.programs.Bounded(md.load_problem("discrete", secrets=3), worst_loss=0.5)
    >>> round(md.solve(program).attrs["objective"], 4)
    0.3086
    """

    worst_loss: ArrayLike
    name = "bounded"
    limits_field = "worst-loss"

    def __post_init__(self) -> None:
        values = as_numbers(self.worst_loss, "worst-loss", self.problem.domain.points)
        n = self.problem.domain.size
        if values.shape not in ((), (n,)):
            raise InputError(f"must be a number or have shape ({n},)", field="worst-loss", value=values.shape)
        refuse_entries(~(values > 0), values, "must be positive", field="worst-loss")
        object.__setattr__(self, "worst_loss", values)

    @property
    def bounds(self) -> Vector:
        """B (n,)."""
        return np.broadcast_to(np.asarray(self.worst_loss, float), (self.problem.domain.size,))

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        # Tables (2).
        table, constraints = private_table(self.problem)
        # (3): an infinite B(u) needs no constraint, and solvers take finite right-hand sides only.
        bounded = np.flatnonzero(np.isfinite(self.bounds))
        at_secret = cp.sum(cp.multiply(self.problem.loss_matrix, table), axis=1)
        constraints.append(at_secret[bounded] <= self.bounds[bounded])
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        bounds = np.asarray(self.worst_loss, float)
        stored = bounds.astype(object)
        # JSON has no infinity; `read_bounds` is the inverse.
        stored[~np.isfinite(bounds)] = None
        return {"worst_loss": stored.tolist()}

    def side_rows(self) -> SideRows:
        loss = self.problem.loss_matrix
        # (3), except where B(u) is at least every loss of the secret: that holds for every distribution.
        secrets = np.flatnonzero(self.bounds < loss.max(axis=1))
        return rows_per_secret(loss, limit=self.bounds, noun="the bound on the loss", secrets=secrets)


def read_bounds(stored: object) -> Any:
    """`worst_loss` of the parameters of a file, in which null means no bound."""
    bounds = [math.inf if bound is None else bound for bound in (stored if isinstance(stored, list) else [stored])]
    return bounds if isinstance(stored, list) else bounds[0]
