"""solve: from a program to a certified mechanism with its bound.

`SOLVERS` has every program by name, with its solver and methods. `SOLVERS[Mine.name] = ProgramSpec(program=Mine,
solve=...)` adds one to `solve`, `verify`, `compare` and the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import xarray as xr

from mechdesign.base import interrupts
from mechdesign.base.memory import require_memory
from mechdesign.base.progress import progress_if
from mechdesign.base.registry import Registry
from mechdesign.base.time_budget import TimeBudget
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.best import best_closed_form
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.bounded import Bounded, read_bounds
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.constraints import constraint_from
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.matched import MatchedOptimal
from mechdesign.programs.minimax import Minimax
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.programs.queries import QueryWeights
from mechdesign.programs.robust import Robust
from mechdesign.solvers.choose import (
    FACTORED_SOLVER,
    METHODS,
    POOL_SOLVER,
    choose,
    rejection_reason,
    takes_factors,
)
from mechdesign.solvers.compilation import compile_kernels
from mechdesign.solvers.convex import solve_constrained
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.eikonal.weights import solve_weights
from mechdesign.solvers.estimate import default_gap, expected_words
from mechdesign.solvers.matched import solve_matched_optimal
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.queries import solve_query
from mechdesign.solvers.result import Progress, SolveResult, Targets, with_floor

TABLES = 7  # 64-bit tables over secrets x reports that a solve holds at once: 6.1 to 6.7 measured from 50 x 50 cells up
_LEAST_TIME = 1e-9  # seconds that a search gets


@validate_call
def solve(
    program: Program | DesignProblem,
    *,
    gap: float | None = None,
    time_limit: float = math.inf,
    method: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    bound: bool | None = None,
    options: object = None,
    verbose: bool = False,
) -> xr.Dataset:
    """Solve a program, for a problem its optimal program, and return the mechanism, certified at the problem's claim.

    The first table is the best closed form; the parameter closed_form has its name if no better table follows.

    Parameters
    ----------
    program : Program or DesignProblem
        The program, or a problem for its optimal program.
    gap, time_limit : float
        Target of (loss - lower_bound) / loss, not used for weights: by default 0.001, and 0.005 for a pool. Seconds
        after compilation.
    method : str
        For `Optimal`: "auto" or a route of solvers/choose.py; for `EikonalWeights`: "auto", "table" or "factored".
    on_progress : callable
        Called with a `Progress` after every round, iteration or block.
    bound : bool
        True to compute a lower bound for a program that does not need one: eikonal weights, `QueryWeights`,
        `StatisticalDesign`, and for `Positions` the bound between centres of cells. The factored form of weights
        computes it by default from 1,601 to 50,000 secrets.
    options, verbose : md.factored.FactoredOptions, bool
        Options of the factored form of weights; True to print a line of progress on standard error. In any case
        progress is logged by the logger `mechdesign`, at level INFO.

    Returns
    -------
    xarray.Dataset
        The mechanism. Attributes expected_loss and lower_bound enclose the optimum. If `objective_of` names another
        objective, `objective` and lower_bound do. `stopped` is the reason for the end: "gap", "time", "interrupt"
        (Ctrl-C; the result so far is certified) or "precision" (no method has higher accuracy). `Positions` by weights
        of columns: "columns" (the cheapest to `gap`). `StatisticalDesign`: "search" (no ray was found that gains more
        than `gap`; this proves nothing). Factored form: "kappa" (the weights satisfy the claim to 2e-5) or "rounds".

    Raises
    ------
    SolverError
        With an estimate, if the time limit is too short for any certified table.
    UnsuitableError
        For a program without a factored form, or a route that does not accept the problem.
    SizeError
        Before allocating a table that does not fit.

    Examples
    --------
    >>> mechanism = md.solve(md.load_problem("discrete", secrets=3))
    >>> round(mechanism.attrs["expected_loss"], 6), mechanism.attrs["stopped"]
    (0.308562, 'gap')
    """
    check_targets(1.0 if gap is None else gap, time_limit)
    if isinstance(program, DesignProblem):
        program = Optimal(program)
    if not isinstance(program, Program):
        raise InputError("must be a DesignProblem or a program", field="program", value=type(program).__name__)
    spec = program_spec(program)
    if method not in spec.methods:
        raise InputError(
            f"must be {' or '.join(spec.methods)} for the {program.name} program", field="method", value=method
        )
    gap = default_gap(program, method) if gap is None else gap
    # Before the clock starts: the time limit is that of the search.
    compile_kernels(program, method=method, verbose=verbose)
    title = f"{program.problem.name}, {program.name}"
    shown: dict[str, Any] = {"target": gap if spec.closes_gap else None, "limit": time_limit}
    shown["expected"] = expected_words(program, method, gap)
    with interrupts.two_steps(), progress_if(verbose, title, on_progress, **shown) as report:
        targets = Targets(
            gap=gap, time_limit=time_limit, method=method, on_progress=report, bound=bound, options=options
        )
        result = _run_solver(spec, program, targets)
        return _mechanism(program, spec, gap, result) if isinstance(result, SolveResult) else result


def check_targets(gap: float, time_limit: float) -> None:
    """Raise InputError unless gap and time limit are positive."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap)
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit)


def _mechanism(program: Program, spec: ProgramSpec, gap: float, result: SolveResult) -> xr.Dataset:
    target = {"gap": gap} if spec.closes_gap else {}
    named = {
        "objective": result.objective,
        "objective_of": result.objective_of,
        "lower_bound_of": result.lower_bound_of,
    }
    extras = Extras(
        scale=result.scale,
        parameters={**program.parameters(), **target, **result.parameters},
        claimed_epsilon=result.claimed_epsilon,
        dual=result.dual if len(result.dual) else None,
        lower_bound=result.lower_bound if math.isfinite(result.lower_bound) else None,
        stopped=str(result.stopped) or None,
        multipliers=result.multipliers,
        tree=result.tree,
        row_variables=result.row_variables,
        attributes={name: value for name, value in named.items() if value is not None} | dict(result.figures),
        positions=result.positions,
    )
    return build_dataset(result.problem or program.problem, result.mass, program=program.name, extras=extras)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramSpec:
    """The solver of a program and its options: a row of `SOLVERS`.

    Attributes
    ----------
    program, methods : type, tuple of str
        The class of the program; values of `md.solve(method=)`, the first by default.
    solve : callable
        solve(program, targets) returns a `SolveResult`, or a mechanism that is not a table.
    rebuild : callable
        The program from a stored problem and the parameters of its file; needed unless it minimises the expected loss.
    closes_gap : bool
        True if `solve` works towards a gap, which the file then names.
    takes_bound, takes_options : bool
        True if it accepts `md.solve(bound=...)`, because its bound is optional, and `md.solve(options=...)`.
    accepts_untabled : bool
        True if it also solves problems too large for a table.

    Examples
    --------
    >>> md.extend.SOLVERS["optimal"].program.__name__
    'Optimal'
    """

    program: type[Program]
    solve: Callable[[Any, Targets], SolveResult | xr.Dataset]
    methods: tuple[str, ...] = ("auto",)
    rebuild: Callable[[DesignProblem, Mapping[str, Any]], Program] | None = None
    closes_gap: bool = True
    takes_bound: bool = False
    takes_options: bool = False
    accepts_untabled: bool = False


def program_spec(program: Program) -> ProgramSpec:
    """The row of `SOLVERS` for a program, or for the nearest class that it derives from."""
    # A subclass of a known program, with further parameters, is solved as that program.
    for kind in type(program).__mro__:
        spec = SOLVERS.get(str(getattr(kind, "name", "")))
        if spec is not None and spec.program is kind:
            return spec
    raise InputError("has no solver: add one to solvers.solve.SOLVERS", field="program", value=program.name)


def rebuilt_program(name: str, problem: DesignProblem, parameters: Mapping[str, Any]) -> Program:
    """The program of a file; KeyError if its row of `SOLVERS` has no `rebuild`."""
    rebuild = SOLVERS[name].rebuild
    if rebuild is None:
        raise KeyError(name)
    return rebuild(problem, parameters)


def _run_solver(spec: ProgramSpec, program: Program, targets: Targets) -> SolveResult | xr.Dataset:
    _check_options(targets, takes_bound=spec.takes_bound, takes_options=spec.takes_options)
    if not spec.accepts_untabled:
        _require_table(program)
    result = spec.solve(program, targets)
    if not isinstance(result, (SolveResult, xr.Dataset)):
        message = f"has a solver that returns {type(result).__name__}: return a SolveResult or a mechanism"
        raise InputError(message, field="program", value=program.name)
    return result


def _check_options(targets: Targets, *, takes_bound: bool, takes_options: bool = False) -> None:
    if targets.options is not None and not takes_options:
        name, value = _first_option(targets.options)
        raise InputError("applies only to eikonal weights with the method factored", field=name, value=value)
    if targets.bound is not None and not takes_bound:
        message = "applies only to programs whose bound is optional: this one always computes its bound"
        raise InputError(message, field="bound", value=targets.bound)


def _first_option(options: object) -> tuple[str, object]:
    """The first option that is not at its default, or all of them."""
    for option in fields(options) if is_dataclass(options) else ():
        value = getattr(options, option.name)
        if value != option.default:
            return option.name, value
    return "options", type(options).__name__


def _require_table(program: Program) -> None:
    problem = program.problem
    noun = f"a table for the {program.name} program"
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, noun=noun)


def _optimal(program: Optimal, targets: Targets) -> SolveResult | xr.Dataset:
    problem = program.problem
    route: Any = choose(problem)[0] if targets.method == "auto" else targets.method
    reason = rejection_reason(route, problem)
    if reason is not None:
        raise UnsuitableError(f"does not accept the problem: {reason}", field="method", value=route)
    pool = POOL_SOLVER.get() if route == "pool" else None
    if pool is None or pool.makes_table(problem):
        _require_table(program)
    # A pool's result can be too large to compare with closed forms.
    if pool is not None and not pool.needs_closed_form(problem):
        return pool.solve(program, targets)
    # The closed form is found first: whatever time is left, no design loses more than it.
    budget = TimeBudget.of(targets.time_limit)
    floor = best_closed_form(problem, deadline=budget.deadline)
    targets = replace(targets, time_limit=max(budget.remaining(), _LEAST_TIME))
    if pool is not None:
        result = pool.solve(program, targets)
        return with_floor(result, floor) if isinstance(result, SolveResult) else result
    return solve_optimal(problem, targets, floor=floor)


def _weights(program: EikonalWeights, targets: Targets) -> SolveResult | xr.Dataset:
    if takes_factors(program, targets.method):
        return FACTORED_SOLVER.get().solve(program, targets)
    _check_options(targets, takes_bound=True)
    _require_table(program)
    return solve_weights(program, targets)


SOLVERS: Registry[ProgramSpec] = Registry(
    "solvers",
    {
        "optimal": ProgramSpec(program=Optimal, solve=_optimal, methods=("auto", *METHODS), accepts_untabled=True),
        "eikonal": ProgramSpec(
            program=EikonalWeights,
            solve=_weights,
            methods=("auto", "table", "factored"),
            closes_gap=False,
            takes_bound=True,
            takes_options=True,
            accepts_untabled=True,
        ),
        "query": ProgramSpec(program=QueryWeights, solve=solve_query, closes_gap=False, takes_bound=True),
        "minimax": ProgramSpec(
            program=Minimax, solve=solve_coupled, rebuild=lambda problem, parameters: Minimax(problem)
        ),
        "bounded": ProgramSpec(
            program=Bounded,
            solve=solve_coupled,
            rebuild=lambda problem, parameters: Bounded(problem, worst_loss=read_bounds(parameters["worst_loss"])),
        ),
        "robust": ProgramSpec(
            program=Robust,
            solve=solve_coupled,
            rebuild=lambda problem, parameters: Robust(problem, priors=parameters["priors"]),
        ),
        "constrained": ProgramSpec(
            program=Constrained,
            solve=solve_constrained,
            rebuild=lambda problem, parameters: Constrained(
                problem, constraints=[constraint_from(description) for description in parameters["constraints"]]
            ),
        ),
        "matched": ProgramSpec(program=MatchedOptimal, solve=solve_matched_optimal),
    },
)  # by the name of the program
