r"""The bounded mechanism: the smallest expected loss with a bound on the loss at every secret.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y
                sum_y P(y|u) l(u, y) <= B(u)                    for every secret u

Source: the program of 003, equations (6.22)-(6.24), with the bounds as further rows.
Known: between the optimal program (B large) and the minimax program: with one B for all secrets it has a solution if
and only if B is at least the minimax value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError
from mechdesign.programs.optimal.coupled import Coupled, SideRows, rows_per_secret
from mechdesign.programs.program import expected_loss, lipschitz, simplex

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounded(Coupled):
    """The bounded program of a design problem; see the module docstring.

    worst_loss: B in loss units, one number or one per secret (n,); inf where there is no bound.
    """

    worst_loss: ArrayLike
    name = "bounded"
    limits_field = "worst-loss"

    def __post_init__(self) -> None:
        given = np.asarray(self.worst_loss, float)
        n = self.problem.domain.size
        if given.shape not in ((), (n,)):
            raise InputError(
                f"must be a number or have shape ({n},)",
                field="worst-loss",
                value=given.shape,
                remedy="give one bound, or one per secret",
            )
        if not (given > 0).all():
            raise InputError(
                "must be positive", field="worst-loss", value=f"{given.min():.6g}", remedy="give a bound in loss units"
            )

    @property
    def bounds(self) -> NDArray[np.float64]:
        """B (n,)."""
        return np.broadcast_to(np.asarray(self.worst_loss, float), (self.problem.domain.size,))

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table = cp.Variable((self.problem.domain.size, self.problem.reports.size), name="P")
        held = np.flatnonzero(np.isfinite(self.bounds))
        at_secret = cp.sum(cp.multiply(self.problem.loss_matrix, table), axis=1)
        constraints = [*simplex(table), *lipschitz(table, self.problem), at_secret[held] <= self.bounds[held]]
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        return {"worst_loss": np.asarray(self.worst_loss, float).tolist()}

    def base_cost(self) -> NDArray[np.float64]:
        return self.problem.weighted_loss

    def side_rows(self) -> SideRows:
        loss = self.problem.loss_matrix
        held = np.flatnonzero(self.bounds < loss.max(axis=1))  # a larger bound binds nobody
        return rows_per_secret(loss, limit=self.bounds, what="the bound on the loss", secrets=held)
