"""Convex constraints that are no side rows: solved through the cvxpy statement, with a margin that is checked.

The bound is that of the program without them, which holds but does not close.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mechdesign.errors import DesignError, InfeasibleError, InputError
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.optimal.coupled import solve_coupled
from mechdesign.solvers.optimal.coupled_task import task_of

_MARGINS = (1e-7, 1e-6, 1e-5, 1e-4)  # absolute; HiGHS is asked for 1e-7 there


def solve_stated(program: Constrained, *, gap: float, time_limit: float = math.inf) -> Design:
    """Solve a program with inequalities beyond side rows; `stopped` is "relaxation" where the bound stays apart.

    Every inequality must hold on the certified table with half its margin left, for the rounding of the check.
    Raises: InputError for what HiGHS does not take; InfeasibleError, DesignError as `solve_coupled`.
    """
    import cvxpy as cp

    relaxed = solve_coupled(program, gap=gap, time_limit=time_limit)
    task = task_of(program)
    for margin in _MARGINS:
        statement = program.statement(margin)
        try:
            statement.solve(solver=cp.HIGHS)
        except (cp.error.SolverError, ValueError) as error:
            raise InputError(
                "HiGHS takes linear functions, maxima and absolute values only",
                field="constraints",
                value=", ".join(map(str, program.beyond_rows)),
                remedy="state the constraint with these",
            ) from error
        if statement.status not in ("optimal", "optimal_inaccurate"):
            raise InfeasibleError(
                f"no table keeps all constraints with a margin of {margin:g}",
                field="constraints",
                value=f"HiGHS says {statement.status}",
                remedy="loosen a constraint, or use a larger eps",
            )
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
                stopped="gap" if reached <= gap else "relaxation",
            )
    raise DesignError(
        "no certified table keeps all constraints",
        field="constraints",
        value=f"margin {_MARGINS[-1]:g}",
        remedy="loosen a constraint",
    )
