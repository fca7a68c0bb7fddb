"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.table import certified_multiple, make_mechanism
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import Coupled
from mechdesign.programs.dictionary import Dictionary
from mechdesign.programs.edge_average import EdgeAverage
from mechdesign.programs.eikonal_weights import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.setting.size import require_memory
from mechdesign.solvers.aggregation import Method, aggregate
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.dictionary import solve_dictionary
from mechdesign.solvers.edge_average import solve_edge_average
from mechdesign.solvers.eikonal import WeightedDesign, solve_weights
from mechdesign.solvers.progress import Progress
from mechdesign.solvers.stated import solve_stated

TABLES = 8  # 64-bit tables over secrets x reports that a solve holds at once


def solve(
    program: Program,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: Method = "auto",
    report: Callable[[Progress], None] | None = None,
) -> xr.Dataset:
    """Solve a program and return its mechanism: repaired, certified, sealed.

    Certified at the claim of the problem's metric; the mechanism of `EdgeAverage`, which breaks that claim, at the
    smallest multiple that holds, with the lower bound of its own program among the parameters.

    How: `EikonalWeights` by one dense factorisation, or by its remedy where it has no solution (solvers/eikonal.py);
    `Optimal` by the whole linear program in HiGHS up to 60,000 constraints, beyond that by tree aggregation with a
    block interior-point method, then with HiGHS (solvers/aggregation.py has the rule); `Dictionary` as one linear
    program over its kernels (solvers/dictionary.py); `Minimax`, `Robust`, `Bounded` and `Constrained` as one whole
    linear program (solvers/coupled.py), through cvxpy where a constraint is not affine (solvers/stated.py);
    `EdgeAverage` as optimal programs of its own edge lengths (solvers/edge_average.py).
    Parameters: gap, target of (loss - lower_bound) / loss, not used for weights; time_limit in seconds; method, for
    `Optimal`: "auto", "whole", "blocks" or "aggregation"; report, called with a `Progress` after every round and
    iteration.
    Returns: the mechanism Dataset; attrs expected_loss and lower_bound enclose the optimum, stopped says why it ended.
        Where attrs hold an objective, that and lower_bound enclose the optimum, and objective_of says what it is.
    Raises: InputError for a gap or limit that is not positive, or a method where there is no choice; SizeError before
        allocating a table that does not fit.
    """
    check_targets(gap, time_limit)
    if method != "auto" and not isinstance(program, Optimal):
        raise InputError(
            "is a choice of the optimal program", field="method", value=method, remedy="leave it out for this program"
        )
    problem = program.problem
    require_memory(
        problem.domain.size, problem.reports.size, tables=TABLES, what=f"a table for the {program.name} program"
    )
    return _solve(program, _Targets(gap=gap, time_limit=time_limit, method=method, report=report))


def check_targets(gap: float, time_limit: float) -> None:
    """Refuse a gap or a time limit that is not positive, with an InputError."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap, remedy="give a relative gap such as 1e-3")
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit, remedy="give seconds")


@dataclass(frozen=True, kw_only=True)
class _Targets:
    gap: float
    time_limit: float
    method: Method
    report: Callable[[Progress], None] | None


@singledispatch
def _solve(program: Program, targets: _Targets) -> xr.Dataset:
    raise InputError(
        "no solver for this program",
        field="program",
        value=program.name,
        remedy="use a program of this package, such as Optimal",
    )


@_solve.register
def _(program: EikonalWeights, targets: _Targets) -> xr.Dataset:
    return _weighted(program, solve_weights(program))


@_solve.register
def _(program: Optimal, targets: _Targets) -> xr.Dataset:
    design = aggregate(
        program.problem,
        gap=targets.gap,
        time_limit=targets.time_limit,
        method=targets.method,
        report=targets.report,
    )
    return make_mechanism(
        program.problem,
        design.mass,
        program=program.name,
        parameters={**program.parameters(), "gap": targets.gap},
        dual=design.dual,
        lower_bound=design.lower_bound,
        stopped=design.stopped,
    )


@_solve.register
def _(program: Dictionary, targets: _Targets) -> xr.Dataset:
    return _weighted(program, solve_dictionary(program, time_limit=targets.time_limit))


def _weighted(program: EikonalWeights | Dictionary, found: WeightedDesign) -> xr.Dataset:
    return make_mechanism(
        program.problem,
        found.mass,
        program=program.name,
        parameters=found.parameters,
        dual=found.dual,
        lower_bound=found.lower_bound,
    )


@_solve.register
def _(program: Coupled, targets: _Targets) -> xr.Dataset:
    if isinstance(program, Constrained) and program.beyond_rows:
        found = solve_stated(program, gap=targets.gap, time_limit=targets.time_limit)
        bounded = "the program without the constraints that are not affine"
    else:
        found = solve_coupled(program, gap=targets.gap, time_limit=targets.time_limit, report=targets.report)
        bounded = "the program"
    return make_mechanism(
        program.problem,
        found.mass,
        program=program.name,
        parameters={**program.parameters(), "gap": targets.gap},
        dual=found.dual,
        lower_bound=found.lower_bound,
        stopped=found.stopped,
        multipliers=found.multipliers,
        attributes={"objective": found.objective, "objective_of": program.objective_of, "lower_bound_of": bounded},
    )


@_solve.register
def _(program: EdgeAverage, targets: _Targets) -> xr.Dataset:
    design = solve_edge_average(program, gap=targets.gap, time_limit=targets.time_limit, report=targets.report)
    return make_mechanism(
        program.problem,
        design.mass,
        program=program.name,
        multiple=certified_multiple(program.problem, design.mass),
        parameters={**program.parameters(), "gap": targets.gap, "program_lower_bound": design.lower_bound},
        stopped=design.stopped,
    )
