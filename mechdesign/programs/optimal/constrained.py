r"""The optimal program with the user's own constraints.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y
                every constraint that is given

Source: the program of 003, equations (6.22)-(6.24), with further constraints.
Known: at least the value of the optimal program, and equal to it where its mechanism satisfies the constraints.

A constraint is one of programs/optimal/constraints.py, or a function from the cvxpy variable P (n, m) to a list of
cvxpy inequalities in P alone. Affine inequalities become side rows, with a bound that takes them into account. Other
convex ones (of what HiGHS takes: maxima, absolute values, their sums) are solved through the statement, and the bound
is then that of the program without them: valid, but not tight. Equalities are refused: a table of integers meets no
equality in real numbers exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.programs.optimal.constraints import Constraint
from mechdesign.programs.optimal.coupled import Coupled, SideRows, stack_rows
from mechdesign.programs.program import expected_loss, lipschitz, simplex

if TYPE_CHECKING:
    import cvxpy as cp

Given = Constraint | Callable[["cp.Variable"], Sequence["cp.Constraint"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Constrained(Coupled):
    """The optimal program of a design problem with `constraints`; see the module docstring."""

    constraints: Sequence[Given]
    name = "constrained"

    def __post_init__(self) -> None:
        for given in self.constraints:
            if not (isinstance(given, Constraint) or callable(given)):
                raise InputError(
                    "must be a constraint, or a function of the table",
                    field="constraints",
                    value=type(given).__name__,
                    remedy="give ReportCap(...), or lambda table: [table[0, 0] <= 0.1]",
                )

    @cached_property
    def table(self) -> cp.Variable:
        """P (n, m), the variable of the statement."""
        import cvxpy as cp

        return cp.Variable((self.problem.domain.size, self.problem.reports.size), name="P")

    @cached_property
    def own(self) -> list[cp.Constraint]:
        """The inequalities of the user's functions, checked."""
        functions = [given for given in self.constraints if not isinstance(given, Constraint)]
        return [_checked(made, self.table) for function in functions for made in function(self.table)]

    @property
    def beyond_rows(self) -> list[cp.Constraint]:
        """The inequalities among `own` that are convex but not affine."""
        return [own for own in self.own if not own.expr.is_affine()]

    def statement(self, margin: float = 0.0) -> cp.Problem:
        """The program in cvxpy, the given constraints with an absolute margin."""
        import cvxpy as cp

        asked = list(self.own)
        for given in self.constraints:
            asked += given.stated(self.table, self.problem) if isinstance(given, Constraint) else []
        constraints = [*simplex(self.table), *lipschitz(self.table, self.problem)]
        constraints += [given.expr <= -margin for given in asked]
        return cp.Problem(cp.Minimize(expected_loss(self.table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        described = [given.describe() for given in self.constraints if isinstance(given, Constraint)]
        return {"constraints": described, "own_constraints": [str(own) for own in self.own]}

    def base_cost(self) -> NDArray[np.float64]:
        return self.problem.weighted_loss

    def side_rows(self) -> SideRows:
        parts = [given.rows(self.problem) for given in self.constraints if isinstance(given, Constraint)]
        parts += [_affine_rows(own, self.table, k) for k, own in enumerate(self.own) if own.expr.is_affine()]
        return stack_rows(parts, self.problem.domain.size * self.problem.reports.size)


def _checked(made: cp.Constraint, table: cp.Variable) -> cp.Constraint:
    from cvxpy.constraints.nonpos import Inequality

    if not isinstance(made, Inequality):
        raise InputError(
            "must be inequalities: a table of integers meets no equality exactly",
            field="constraints",
            value=made,
            remedy="write an equality as two inequalities with a tolerance",
        )
    if [variable.id for variable in made.variables()] != [table.id] or made.parameters():
        raise InputError(
            "may contain the table and numbers only", field="constraints", value=made, remedy="state it in the table"
        )
    if not made.is_dcp():
        raise InputError(
            "must be convex (DCP)", field="constraints", value=made, remedy="see cvxpy's rules of convex programming"
        )
    return made


def _affine_rows(own: cp.Constraint, table: cp.Variable, number: int) -> SideRows:
    """expr(P) <= 0 for an affine expr as rows over P flattened row by row; cvxpy flattens column by column."""
    n, m = table.shape
    kept = table.value
    table.value = np.zeros((n, m))
    constant = np.atleast_1d(np.asarray(own.expr.value, float)).ravel(order="F")
    gradient = sp.csr_array(sp.csc_array(own.expr.grad[table]).T)
    table.value = kept
    place = np.arange(n * m).reshape((m, n)).T.ravel()  # column-major position of every entry, row by row
    matrix = sp.csr_array(gradient[:, place])
    names = [f"constraints: your inequality {number}, entry {k}" for k in range(len(constant))]
    return SideRows(matrix=matrix, limit=-constant, share=np.zeros(len(constant)), names=names)
