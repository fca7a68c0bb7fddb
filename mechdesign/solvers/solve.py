"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out."""

from __future__ import annotations

import math
from collections.abc import Callable

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.table import certified_multiple, make_mechanism
from mechdesign.programs.edge_average import EdgeAverage
from mechdesign.programs.eikonal_weights import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.setting.size import require_memory
from mechdesign.solvers.aggregation import Progress, aggregate
from mechdesign.solvers.edge_average import solve_edge_average
from mechdesign.solvers.eikonal import solve_weights

TABLES = 10  # 64-bit tables over secrets x reports that a solve holds at once


def solve(
    program: Program,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    report: Callable[[Progress], None] | None = None,
) -> xr.Dataset:
    """Solve a program and return its mechanism: repaired, certified, sealed.

    Certified at the claim of the problem's metric; the mechanism of `EdgeAverage`, which breaks that claim, at the
    smallest multiple that holds, with the lower bound of its own program among the parameters.

    How: `EikonalWeights` by one dense factorisation, or by its remedy where it has no solution (solvers/eikonal.py);
    `Optimal` by adaptive tree aggregation (solvers/aggregation.py), which starts from the whole linear program when
    that has at most 60,000 constraints, from the eikonal kernels otherwise, with HiGHS underneath; `EdgeAverage`
    as optimal programs of its own edge lengths (solvers/edge_average.py).
    Parameters: gap, target of (loss - lower_bound) / loss for `Optimal`; time_limit in seconds; report, called with a
    `Progress` after every round.
    Returns: the mechanism Dataset; attrs expected_loss and lower_bound enclose the optimum, stopped says why it ended.
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
        design = aggregate(problem, gap=gap, time_limit=time_limit, report=report)
        return make_mechanism(
            problem,
            design.mass,
            program=program.name,
            parameters={**program.parameters(), "gap": gap},
            dual=design.dual,
            lower_bound=design.lower_bound,
            stopped=design.stopped,
        )
    if isinstance(program, EdgeAverage):
        design = solve_edge_average(program, gap=gap, time_limit=time_limit, report=report)
        return make_mechanism(
            problem,
            design.mass,
            program=program.name,
            multiple=certified_multiple(problem, design.mass),
            parameters={**program.parameters(), "gap": gap, "program_lower_bound": design.lower_bound},
            stopped=design.stopped,
        )
    raise InputError(
        "no solver for this program",
        field="program",
        value=program.name,
        remedy="use Optimal, EikonalWeights or EdgeAverage",
    )


def check_targets(gap: float, time_limit: float) -> None:
    """Refuse a gap or a time limit that is not positive, with an InputError."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap, remedy="give a relative gap such as 1e-3")
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit, remedy="give seconds")
