"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out."""

from __future__ import annotations

import math
from collections.abc import Callable

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.table import make_mechanism
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import Coupled
from mechdesign.programs.dictionary import Dictionary
from mechdesign.programs.eikonal_weights import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.setting.size import require_memory
from mechdesign.solvers.aggregation import Method, Progress, aggregate
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.dictionary import solve_dictionary
from mechdesign.solvers.eikonal import solve_weights
from mechdesign.solvers.stated import solve_stated

TABLES = 10  # 64-bit tables over secrets x reports that a solve holds at once


def solve(
    program: Program,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: Method = "auto",
    report: Callable[[Progress], None] | None = None,
) -> xr.Dataset:
    """Solve a program and return its mechanism: repaired, certified at the claim of the problem's metric, sealed.

    How: `EikonalWeights` by one dense factorisation, or by its remedy where it has no solution (solvers/eikonal.py);
    `Optimal` by the whole linear program in HiGHS up to 60,000 constraints, beyond that by tree aggregation with a
    block interior-point method, then with HiGHS (solvers/aggregation.py has the rule); `Dictionary` as one linear
    program over its kernels (solvers/dictionary.py); `Minimax`, `Robust`, `Bounded` and `Constrained` as one whole
    linear program (solvers/coupled.py), through cvxpy where a constraint is not affine (solvers/stated.py).
    Parameters: gap, target of (loss - lower_bound) / loss, not used for weights; time_limit in seconds; method, for
    `Optimal`: "auto", "whole", "blocks" or "aggregation"; report, called with a `Progress` after every round and
    iteration.
    Returns: the mechanism Dataset; attrs expected_loss and lower_bound enclose the optimum, stopped says why it ended.
        Where attrs hold an objective, that and lower_bound enclose the optimum, and objective_of says what it is.
    Raises: InputError for a gap or limit that is not positive; SizeError before allocating a table that does not fit.
    """
    check_targets(gap, time_limit)
    problem = program.problem
    require_memory(
        problem.domain.size, problem.reports.size, tables=TABLES, what=f"a table for the {program.name} program"
    )
    if isinstance(program, EikonalWeights):
        weights = solve_weights(program)
        return make_mechanism(
            problem,
            weights.mass,
            program=program.name,
            parameters=weights.parameters,
            dual=weights.dual,
            lower_bound=weights.lower_bound,
        )
    if isinstance(program, Optimal):
        design = aggregate(problem, gap=gap, time_limit=time_limit, method=method, report=report)
        return make_mechanism(
            problem,
            design.mass,
            program=program.name,
            parameters={**program.parameters(), "gap": gap},
            dual=design.dual,
            lower_bound=design.lower_bound,
            stopped=design.stopped,
        )
    if isinstance(program, Dictionary):
        mixture = solve_dictionary(program, time_limit=time_limit)
        return make_mechanism(
            problem,
            mixture.mass,
            program=program.name,
            parameters=mixture.parameters,
            dual=mixture.dual,
            lower_bound=mixture.lower_bound,
        )
    if isinstance(program, Coupled):
        if isinstance(program, Constrained) and program.beyond_rows:
            found = solve_stated(program, gap=gap, time_limit=time_limit)
            bounded = "the program without the constraints that are not affine"
        else:
            found = solve_coupled(program, gap=gap, time_limit=time_limit, report=report)
            bounded = "the program"
        return make_mechanism(
            problem,
            found.mass,
            program=program.name,
            parameters={**program.parameters(), "gap": gap},
            dual=found.dual,
            lower_bound=found.lower_bound,
            stopped=found.stopped,
            multipliers=found.multipliers,
            attributes={
                "objective": found.objective,
                "objective_of": program.objective_of,
                "lower_bound_of": bounded,
            },
        )
    raise InputError(
        "no solver for this program",
        field="program",
        value=program.name,
        remedy="use a program of this package, such as Optimal",
    )


def check_targets(gap: float, time_limit: float) -> None:
    """Refuse a gap or a time limit that is not positive, with an InputError."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap, remedy="give a relative gap such as 1e-3")
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit, remedy="give seconds")
