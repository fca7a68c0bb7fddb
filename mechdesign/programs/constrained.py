r"""The optimal program with the user's own constraints.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)                                                     (1)
    over        private tables P (n, m)                                                                 (2)
    subject to  every constraint of the user, g(P) <= 0                                                 (3)

Source: Koufogiannis 2017, equations (6.22)-(6.24), with further constraints.
Known: at least the value of the optimal program, and equal to it if its mechanism satisfies the constraints.

A constraint is one of constraints.py, one that a capability adds to `CONSTRAINTS`, or a function from the cvxpy table
P (n, m) to a list of cvxpy inequalities in P and auxiliary variables. A `ClaimedLimit` has a solver of its own
(solvers/limits.py).

Affine inequalities become side rows, which the bound takes into account. Other convex ones are solved through the
statement, and the bound uses affine rows that they imply (solvers/tangents.py). Auxiliary variables are eliminated from
the bound (solvers/auxiliary.py). Equalities are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.errors import InputError
from mechdesign.programs.constraints import CONSTRAINTS, ClaimedLimit, Constraint, RowConstraint
from mechdesign.programs.coupled import Coupled, SideRows, stack_rows
from mechdesign.programs.statements import expected_loss, private_table

if TYPE_CHECKING:
    import cvxpy as cp


def claimed_limits(program: str, parameters: Mapping[str, Any]) -> list[ClaimedLimit]:
    """The limits that the file of a mechanism claims, by its program and parameters."""
    descriptions = parameters.get("constraints", []) if program == Constrained.name else []
    limits = []
    for description in descriptions:
        fields = dict(description)
        kind = CONSTRAINTS.get(fields.pop("constraint"))
        if kind is not None and issubclass(kind, ClaimedLimit):
            limits.append(kind.from_file(fields))
    return limits


UserConstraint = Constraint | Callable[["cp.Variable"], Sequence["cp.Constraint"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Constrained(Coupled):
    """The optimal program with constraints of your own; see `mechdesign.programs.constrained`.

    Parameters
    ----------
    problem : DesignProblem
    constraints : sequence
        `ReportCap`, `ErrorCap`, `RequiredReport`, or functions of the cvxpy variable (n, m).

    Examples
    --------
    >>> cap = md.programs.ReportCap(cap=0.6)
    >>> program = md.programs.Constrained(md.load_problem("discrete", secrets=3), constraints=[cap])
    >>> float(md.probabilities(md.solve(program)).max()) <= 0.6
    True
    """

    constraints: Sequence[UserConstraint]
    name = "constrained"

    def __post_init__(self) -> None:
        for constraint in self.constraints:
            if not (isinstance(constraint, Constraint) or callable(constraint)):
                message = "must be constraints as ReportCap(...), or functions as lambda table: [table[0, 0] <= 0.1]"
                raise InputError(message, field="constraints", value=type(constraint).__name__)
            if isinstance(constraint, Constraint):
                constraint.check(self.problem)
        completed = [
            constraint.for_problem(self.problem) if isinstance(constraint, ClaimedLimit) else constraint
            for constraint in self.constraints
        ]
        object.__setattr__(self, "constraints", completed)
        # The functions of the user are called here, so that their errors appear where the program is made.
        self.user_inequalities  # noqa: B018

    @cached_property
    def _private(self) -> tuple[cp.Variable, list[cp.Constraint]]:
        return private_table(self.problem)

    @property
    def table(self) -> cp.Variable:
        """P (n, m), the variable of the statement."""
        return self._private[0]

    @cached_property
    def user_inequalities(self) -> list[cp.Constraint]:
        """The inequalities of the user's functions, checked."""
        functions = [constraint for constraint in self.constraints if not isinstance(constraint, Constraint)]
        returned = (function(self.table) for function in functions)
        # A function may also return a single inequality.
        lists = (result if isinstance(result, (list, tuple)) else [result] for result in returned)
        return [_check_inequality(inequality) for inequalities in lists for inequality in inequalities]

    @property
    def joint_inequalities(self) -> list[cp.Constraint]:
        """Those of the user with auxiliary variables: they hold together, for one value of the variables."""
        return [inequality for inequality in self.user_inequalities if not self._is_in_table_alone(inequality)]

    @property
    def convex_inequalities(self) -> list[cp.Constraint]:
        """Those of the user in the table alone that are not affine."""
        alone = filter(self._is_in_table_alone, self.user_inequalities)
        return [inequality for inequality in alone if not inequality.expr.is_affine()]

    @property
    def private_and_other(self) -> list[cp.Constraint]:
        """The constraints of the statement without `joint_inequalities`."""
        alone = filter(self._is_in_table_alone, self.user_inequalities)
        own = [constraint for constraint in self.constraints if isinstance(constraint, Constraint)]
        stated = [inequality for constraint in own for inequality in constraint.inequalities(self.table, self.problem)]
        return [*self._private[1], *alone, *stated]

    def _is_in_table_alone(self, inequality: cp.Constraint) -> bool:
        return [variable.id for variable in inequality.variables()] == [self.table.id]

    def statement(self, margin: float = 0.0) -> cp.Problem:
        """The program in cvxpy, the constraints with an absolute margin.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> cap = md.programs.ReportCap(cap=0.5)
        >>> md.programs.Constrained(problem, constraints=[cap]).statement().is_dcp()
        True
        """
        import cvxpy as cp

        inequalities = list(self.user_inequalities)
        for constraint in self.constraints:
            inequalities += (
                constraint.inequalities(self.table, self.problem) if isinstance(constraint, Constraint) else []
            )
        # (2), then (3) with the margin: slack that rounding to integers may use up.
        constraints = [*self._private[1], *(constraint.expr <= -margin for constraint in inequalities)]
        return cp.Problem(cp.Minimize(expected_loss(self.table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        known = [constraint for constraint in self.constraints if isinstance(constraint, Constraint)]
        described = [constraint.describe() for constraint in known]
        return {"constraints": described, "own_constraints": [str(inequality) for inequality in self.user_inequalities]}

    @property
    def limits(self) -> list[ClaimedLimit]:
        return [constraint for constraint in self.constraints if isinstance(constraint, ClaimedLimit)]

    def side_rows(self) -> SideRows:
        """The side rows without those of claimed limits.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> cap = md.programs.ReportCap(cap=0.5)
        >>> md.programs.Constrained(problem, constraints=[cap]).side_rows().size
        9
        """
        parts = [
            constraint.rows(self.problem) for constraint in self.constraints if isinstance(constraint, RowConstraint)
        ]
        parts += [
            _affine_rows(inequality, self.table, k)
            for k, inequality in enumerate(self.user_inequalities)
            if inequality.expr.is_affine() and self._is_in_table_alone(inequality)
        ]
        return stack_rows(parts, self.problem.domain.size * self.problem.reports.size)


def _check_inequality(inequality: cp.Constraint) -> cp.Constraint:
    from cvxpy.constraints.nonpos import Inequality

    # A table of integers cannot meet an equality in real numbers.
    if not isinstance(inequality, Inequality):
        message = "must be inequalities: a table of integers meets no equality, write two with a tolerance"
        raise InputError(message, field="constraints", value=inequality)
    variables = inequality.variables()
    if not variables or inequality.parameters():
        message = "may contain the table, auxiliary variables and numbers only"
        raise InputError(message, field="constraints", value=inequality)
    if any(variable.attributes["integer"] or variable.attributes["boolean"] for variable in variables):
        raise InputError("may contain continuous variables only", field="constraints", value=inequality)
    if not inequality.is_dcp():
        raise InputError("must be convex by the rules of cvxpy (DCP)", field="constraints", value=inequality)
    return inequality


def _affine_rows(inequality: cp.Constraint, table: cp.Variable, number: int) -> SideRows:
    """(3) for an affine g, as side rows over P flattened row by row."""
    import scipy.sparse as sp

    n, m = table.shape
    # cvxpy evaluates at the current value of the variable. At P = 0 an affine g is its constant.
    value = table.value
    table.value = np.zeros((n, m))
    constant = np.atleast_1d(np.asarray(inequality.expr.value, float)).ravel(order="F")
    gradient = sp.csr_array(sp.csc_array(inequality.expr.grad[table]).T)
    table.value = value
    # cvxpy flattens column by column: the position there of every entry, row by row.
    column_major = np.arange(n * m).reshape((m, n)).T.ravel()
    matrix = sp.csr_array(gradient[:, column_major])
    names = [f"constraints: your inequality {number}, entry {k}" for k in range(len(constant))]
    return SideRows(matrix=matrix, limit=-constant, epigraph_coefficient=np.zeros(len(constant)), names=names)
