"""Solve the dictionary program: a linear program with one row per secret and one column per source set.

Its bound is one on the optimal program.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from mechdesign.base import interrupts
from mechdesign.base.memory import require_memory
from mechdesign.errors import InfeasibleError
from mechdesign.mechanism.repair import repair
from mechdesign.programs.dictionary import Dictionary
from mechdesign.programs.program import LinearProgram
from mechdesign.solvers.lp.highs import solve_linear_program
from mechdesign.solvers.optimal import TABLE_ENDS, bound_beside
from mechdesign.solvers.result import Design, Status, Targets

_TABLES = 250  # tables (n, n) that n log n kernels and the simplex method take


def solve_dictionary(program: Dictionary, targets: Targets) -> Design:
    """Solve the dictionary program by the simplex method, repair and certify, price the multipliers.

    Raises: SizeError before kernels that do not fit; InfeasibleError where no mixture of given kernels sums to 1.
    """
    problem = program.problem
    n, started = problem.domain.size, time.monotonic()
    require_memory(n, n, tables=_TABLES, what="the dictionary of kernels")
    kernel = program.kernel
    scale = n / (problem.constant_loss or 1.0)
    solution = solve_linear_program(
        LinearProgram(
            cost=program.kernel_cost * scale,
            matrix=sp.csr_array(kernel),
            row_lower=np.ones(n),
            row_upper=np.ones(n),
            linking=n,
        ),
        time_limit=TABLE_ENDS * targets.time_limit,
    )
    if solution.status is Status.INFEASIBLE:
        message = f"no weights w >= 0 of {len(program.sets)} kernels sum to 1 at every secret: add the whole domain"
        raise InfeasibleError(message, field="sources")
    weights, dual = np.maximum(solution.x, 0.0), solution.dual / scale
    interrupts.hold()
    own = np.exp(-problem.distances) if problem.reports is problem.domain else None
    mass = repair(program.table(weights), problem.edges, problem.weighted_loss, own)
    bound = bound_beside(problem, (dual,), mass=mass, targets=targets, started=started)
    return Design(
        mass=mass,
        dual=bound.dual,
        lower_bound=bound.value,
        stopped=bound.stopped,
        parameters={**program.parameters(), "kernels_used": int((weights > 0).sum())},
    )
