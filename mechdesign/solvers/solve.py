"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Literal, cast

import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.mechanism.table.dataset import certified_scale, make_mechanism
from mechdesign.programs.eikonal.dictionary import Dictionary
from mechdesign.programs.eikonal.query_weights import QueryWeights
from mechdesign.programs.eikonal.weights import EikonalWeights
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.programs.optimal.coupled import Coupled
from mechdesign.programs.optimal.edge_average import EdgeAverage
from mechdesign.programs.optimal.near_pairs import STENCIL
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.solvers.eikonal.dictionary import solve_dictionary
from mechdesign.solvers.eikonal.query import solve_query
from mechdesign.solvers.eikonal.weights import WeightedDesign, solve_weights
from mechdesign.solvers.factored.run import Run, solve_factored, suits
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.solvers.optimal.aggregation import Method as Route
from mechdesign.solvers.optimal.aggregation import aggregate
from mechdesign.solvers.optimal.convex import solve_stated
from mechdesign.solvers.optimal.coupled import solve_coupled
from mechdesign.solvers.optimal.edge_average import solve_edge_average
from mechdesign.solvers.optimal.near_pairs import solve_near_pairs, takes_near_pairs
from mechdesign.solvers.statistical.statistical_design import solve_statistical

TABLES = 7  # 64-bit tables over secrets x reports that a solve holds at once: 6.1 to 6.7 measured from 50 x 50 cells up
LARGEST_TABLE = 1600  # secrets up to which "auto" keeps eikonal weights as a table: 40 x 40

Form = Literal["table", "factored"]
OptimalRoute = Route | Literal["graph"]
Method = OptimalRoute | Form


def solve(
    program: Program,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: Method = "auto",
    on_progress: Callable[[Reported], None] | None = None,
    rounds: int | None = None,
    work: str | Path | None = None,
    scheduler: str | None = None,
) -> xr.Dataset:
    """Solve a program and return its mechanism: repaired, certified, sealed.

    Certified at the claim of the problem's metric; the mechanism of `EdgeAverage`, which breaks that claim, at the
    smallest multiple that holds, with the lower bound of its own program among the parameters.

    How: `EikonalWeights` by one dense factorisation, or by its remedy where it has no solution
    (solvers/eikonal/weights.py), on more than 1,600 secrets as factors instead of a table (solvers/factored/run.py);
    `Optimal` by the whole linear program in HiGHS up to 60,000 constraints (10,000 on networks such as roads), beyond
    that by tree aggregation with a block interior-point method, then with HiGHS (solvers/optimal/aggregation.py has the
    rule), but where a Euclidean metric has many pairs by the constraints of near pairs, levelled and certified over all
    pairs, with a bound that leaves far pairs out (solvers/optimal/near_pairs.py);
    `Dictionary` as one linear program over its kernels (solvers/eikonal/dictionary.py); `QueryWeights` as one over
    kernels of label sets, with constraints where they are broken (solvers/eikonal/query.py); `Minimax`, `Robust`,
    `Bounded` and `Constrained` as one whole linear program (solvers/optimal/coupled.py), through cvxpy where a
    constraint is not affine (solvers/optimal/convex.py); `EdgeAverage` as optimal programs of its own edge lengths
    (solvers/optimal/edge_average.py); `StatisticalDesign` by weights of rays that a search extends
    (solvers/statistical/statistical_design.py), with reports of its own, each judged as the best place to read it as.
    Parameters: gap, target of (loss - lower_bound) / loss, not used for weights; time_limit in seconds; method, for
    `Optimal`: "auto", "whole", "blocks", "aggregation" or "graph" (of near pairs), for `EikonalWeights`: "auto",
    "table" or "factored"; on_progress, called with where the solve stands, after every round, iteration or block. For
    the factored form: rounds of weights and lengths, 24 by default; work, a folder for this run alone that keeps
    finished blocks, so that the same call goes on where a run ended, and at last mechanism.nc: delete it once the
    mechanism is saved; scheduler, the address of a dask scheduler whose workers compute the blocks.
    Returns: the mechanism Dataset; attrs expected_loss and lower_bound enclose the optimum, stopped says why it ended:
        "gap", "time", "interrupt" (a Ctrl-C; what was found by then is certified), "precision" (the accuracy of every
        method is exhausted), "relaxation" (`Constrained`, and `Optimal` by near pairs: the bound leaves constraints
        out) or "search" (`StatisticalDesign`: no ray was found that gains more than `gap`, which proves nothing); for
        the factored form, which has no bound, "kappa" (the weights keep the claim to 2e-5) or "rounds" (all are done)
        instead of "gap". Where attrs hold an objective, that and lower_bound enclose the optimum, and objective_of says
        what it is.
    The time limit ends a search; certifying what it found comes after, by near pairs also a round of levelling.
    Raises: InputError for a gap or limit that is not positive, or a method or option that the program has no use for;
        UnsuitableError for a program without a factored form, or for "graph" a metric without near pairs;
        SizeError before allocating a table that does not fit.
    """
    check_targets(gap, time_limit)
    choices = next((names for kind, names in _METHODS.items() if isinstance(program, kind)), ("auto",))
    if method not in choices:
        raise InputError(
            f"is no method of the {program.name} program",
            field="method",
            value=method,
            remedy="use " + " or ".join(choices),
        )
    given = {"rounds": rounds, "work": work, "scheduler": scheduler}
    if isinstance(program, EikonalWeights) and _factored(program, method):
        options = {name: value for name, value in given.items() if value is not None}
        return solve_factored(program, Run(time_limit=time_limit, on_progress=on_progress, **options))  # type: ignore[arg-type]
    for name, value in given.items():
        if value is not None:
            raise InputError(
                "is for the factored form of eikonal weights", field=name, value=value, remedy="pass method factored"
            )
    problem = program.problem
    require_memory(
        problem.domain.size, problem.reports.size, tables=TABLES, what=f"a table for the {program.name} program"
    )
    return _solve(
        program, _Targets(gap=gap, time_limit=time_limit, method=cast(OptimalRoute, method), on_progress=on_progress)
    )


_METHODS: dict[type[Program], tuple[str, ...]] = {
    Optimal: ("auto", "whole", "blocks", "aggregation", "graph"),
    EikonalWeights: ("auto", "table", "factored"),
}


def _factored(program: EikonalWeights, method: Method) -> bool:
    if method == "auto":
        return program.problem.domain.size > LARGEST_TABLE and suits(program) is None
    return method == "factored"


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
    method: OptimalRoute
    on_progress: Callable[[Reported], None] | None


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
    attributes: dict[str, str | float] = {}
    if takes_near_pairs(program.problem, targets.method):
        design = solve_near_pairs(
            program.problem, gap=targets.gap, time_limit=targets.time_limit, on_progress=targets.on_progress
        )
        attributes = {"bound_stencil": STENCIL, "lower_bound_of": f"the program of {STENCIL} neighbours alone"}
    else:
        design = aggregate(
            program.problem,
            gap=targets.gap,
            time_limit=targets.time_limit,
            method=cast(Route, targets.method),
            on_progress=targets.on_progress,
        )
    return make_mechanism(
        program.problem,
        design.mass,
        program=program.name,
        parameters={**program.parameters(), "gap": targets.gap},
        dual=design.dual,
        lower_bound=design.lower_bound,
        stopped=design.stopped,
        attributes=attributes,
    )


@_solve.register
def _(program: Dictionary, targets: _Targets) -> xr.Dataset:
    return _weighted(program, solve_dictionary(program, time_limit=targets.time_limit))


@_solve.register
def _(program: QueryWeights, targets: _Targets) -> xr.Dataset:
    return _weighted(program, solve_query(program, time_limit=targets.time_limit))


def _weighted(program: EikonalWeights | Dictionary | QueryWeights, found: WeightedDesign) -> xr.Dataset:
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
        found = solve_coupled(program, gap=targets.gap, time_limit=targets.time_limit, on_progress=targets.on_progress)
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
    design = solve_edge_average(
        program, gap=targets.gap, time_limit=targets.time_limit, on_progress=targets.on_progress
    )
    return make_mechanism(
        program.problem,
        design.mass,
        program=program.name,
        scale=certified_scale(program.problem, design.mass),
        parameters={**program.parameters(), "gap": targets.gap, "program_lower_bound": design.lower_bound},
        stopped=design.stopped,
    )


@_solve.register
def _(program: StatisticalDesign, targets: _Targets) -> xr.Dataset:
    found = solve_statistical(program, gap=targets.gap, time_limit=targets.time_limit, on_progress=targets.on_progress)
    bound = found.bound
    attributes: dict[str, str | float] = {"objective": found.objective, "objective_of": program.objective_of}
    if bound is not None:
        attributes["lower_bound_of"] = "any mechanism with this claim"
    return make_mechanism(
        found.problem,
        found.mass,
        program=program.name,
        parameters={**program.parameters(), "gap": targets.gap, **found.parameters},
        dual=None if bound is None else bound.dual,
        lower_bound=None if bound is None else bound.value,
        stopped=found.stopped,
        multipliers=None if bound is None else bound.multipliers,
        attributes=attributes,
    )
