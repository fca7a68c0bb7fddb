"""Convex constraints that are no side rows: solved through the cvxpy statement, with a margin that is checked.

HiGHS solves maxima and absolute values, Clarabel what is quadratic, exponential or a logarithm. The bound is that of
the program without them, which holds but does not close.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.errors import DesignError, InfeasibleError, InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import relative_gap
from mechdesign.programs.constrained import Constrained
from mechdesign.solvers.capped import solve_capped
from mechdesign.solvers.coupled import solve_coupled, task_of
from mechdesign.solvers.design import Design, Targets

_MARGINS = (1e-7, 1e-6, 1e-5, 1e-4)  # absolute; HiGHS has a tolerance of 1e-7, Clarabel of 1e-8


def _solved(statement: Any, program: Constrained) -> str:
    """Solve a statement by the first solver that takes it; its name. Raises: InputError where none does."""
    import cvxpy as cp

    refused: Exception | None = None
    for solver in (cp.HIGHS, cp.CLARABEL):
        try:
            statement.solve(solver=solver)
            return str(solver)
        except (cp.error.SolverError, ValueError) as error:
            refused = error
    message = "neither HiGHS nor Clarabel takes these inequalities"
    raise InputError(message, field="constraints", value=", ".join(map(str, program.beyond_rows))) from refused


def solve_constrained(program: Constrained, targets: Targets) -> Design:
    """`solve_capped` where posteriors of discs are limited, else `solve_coupled`; with inequalities beyond side rows
    the statement, `stopped` is "relaxation" where the bound stays apart then.

    Every inequality must hold on the certified table with half its margin left, for the rounding of the check.
    Raises: InputError for what neither HiGHS nor Clarabel takes; InfeasibleError, DesignError as `solve_coupled`.
    """
    if program.caps:
        return solve_capped(program, targets)
    relaxed = solve_coupled(program, targets)
    if not program.beyond_rows:
        return relaxed
    task = task_of(program)
    for margin in _MARGINS:
        statement = program.statement(margin)
        solver = _solved(statement, program)
        if statement.status not in ("optimal", "optimal_inaccurate"):
            message = f"no table keeps all constraints with a margin of {margin:g}: loosen one, or use a larger eps"
            raise InfeasibleError(message, field="constraints", value=f"{solver} says {statement.status}")
        mass, excess, value = task.certify(np.asarray(program.table.value, float), task.cost)
        program.table.value = mass / float(ROW_SUM)
        if not excess.any() and max(float(np.max(own.expr.value)) for own in program.own) <= -margin / 2:
            reached = relative_gap(value, relaxed.lower_bound, task.unit)
            return replace(
                relaxed,
                mass=mass,
                objective=value,
                lower_bound_of="the program without the constraints that are not affine",
                stopped="gap" if reached <= targets.gap else "relaxation",
            )
    message = f"no certified table keeps all constraints with a margin of {_MARGINS[-1]:g}: loosen one"
    raise DesignError(message, field="constraints")
