"""Convex constraints that are no side rows: solved through the cvxpy statement, with a margin that is checked.

The bound is that of the program without them, which holds but does not close.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.errors import DesignError, InfeasibleError, InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import relative_gap
from mechdesign.programs.constrained import Constrained
from mechdesign.solvers.coupled import solve_coupled, task_of
from mechdesign.solvers.design import Design, Targets

_MARGINS = (1e-7, 1e-6, 1e-5, 1e-4)  # absolute; HiGHS has a tolerance of 1e-7


def solve_constrained(program: Constrained, targets: Targets) -> Design:
    """`solve_coupled`, and with inequalities beyond side rows the statement; `stopped` is "relaxation" where the bound
    stays apart then.

    Every inequality must hold on the certified table with half its margin left, for the rounding of the check.
    Raises: InputError for what HiGHS does not take; InfeasibleError, DesignError as `solve_coupled`.
    """
    relaxed = solve_coupled(program, targets)
    if not program.beyond_rows:
        return relaxed
    import cvxpy as cp

    task = task_of(program)
    for margin in _MARGINS:
        statement = program.statement(margin)
        try:
            statement.solve(solver=cp.HIGHS)
        except (cp.error.SolverError, ValueError) as error:
            message = "HiGHS takes linear functions, maxima and absolute values only"
            inequalities = ", ".join(map(str, program.beyond_rows))
            raise InputError(message, field="constraints", value=inequalities) from error
        if statement.status not in ("optimal", "optimal_inaccurate"):
            message = f"no table keeps all constraints with a margin of {margin:g}: loosen one, or use a larger eps"
            raise InfeasibleError(message, field="constraints", value=f"HiGHS says {statement.status}")
        mass, excess = task.certify(np.asarray(program.table.value, float), task.cost)
        program.table.value = mass / float(ROW_SUM)
        if not excess.any() and max(float(np.max(own.expr.value)) for own in program.own) <= -margin / 2:
            value = task.value(mass)
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
