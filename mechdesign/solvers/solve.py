"""solve: from a program to a certified mechanism with its bound.

`SOLVERS` has every program by name, with its solver and methods. `SOLVERS[Mine.name] = Entry(program=Mine, solve=...)`
adds one to `solve`, `verify`, `compare` and the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import xarray as xr

from mechdesign.base import interrupts
from mechdesign.base.memory import require_memory
from mechdesign.base.progress import verbosely
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
from mechdesign.solvers.matched import solve_matched_optimal
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.queries import solve_query
from mechdesign.solvers.result import Design, Progress, Targets, with_floor

TABLES = 7  # 64-bit tables over secrets x reports that a solve holds at once: 6.1 to 6.7 measured from 50 x 50 cells up
_LEAST_TIME = 1e-9  # seconds that a search gets


@validate_call
def solve(
    program: Program | DesignProblem,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    bound: bool | None = None,
    options: object = None,
    verbose: bool = False,
) -> xr.Dataset:
    """Solve a program, for a problem its optimal program, and return the mechanism, certified at the problem's claim.

    The first table is the best closed form. If no better one is found, the parameter closed_form has its name.

    Parameters
    ----------
    program : Program or DesignProblem
        The program, or a problem for its optimal program.
    gap : float
        Target of (loss - lower_bound) / loss; not used for weights.
    time_limit : float
        Seconds after compilation, of which some are reserved for the last certificate.
    method : str
        For `Optimal`: "auto" or a route of solvers/choose.py; for `EikonalWeights`: "auto", "table" or "factored".
    on_progress : callable
        Called with a `Progress` after every round, iteration or block.
    bound : bool
        True to compute a lower bound for a program that does not need one: eikonal weights, `QueryWeights`,
        `StatisticalDesign`, and for `Positions` the bound between centres of cells. The factored form of weights
        computes it by default from 1,601 to 50,000 secrets.
    options : md.factored.FactoredOptions
        Of the factored form of weights.
    verbose : bool
        Print a line of progress on standard error.

    Returns
    -------
    xarray.Dataset
        The mechanism. Attributes expected_loss and lower_bound enclose the optimum. If `objective_of` names another
        objective, `objective` and lower_bound do. `stopped` is the reason for the end: "gap", "time", "interrupt"
        (Ctrl-C; the result so far is certified) or "precision" (no method has higher accuracy). `Positions` by weights
        of columns: "columns" (the cheapest to `gap`). `StatisticalDesign`: "search" (no ray was found that gains more
        than `gap`; this proves nothing). Factored form: "kappa" (the weights satisfy the claim to 2e-5) or "rounds"
        (all are done) instead of "gap".

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
    check_targets(gap, time_limit)
    if isinstance(program, DesignProblem):
        program = Optimal(program)
    if not isinstance(program, Program):
        raise InputError("must be a DesignProblem or a program", field="program", value=type(program).__name__)
    entry = entry_of(program)
    if method not in entry.methods:
        raise InputError(
            f"must be {' or '.join(entry.methods)} for the {program.name} program", field="method", value=method
        )
    compile_kernels(program, verbose=verbose)
    title = f"{program.problem.name}, {program.name}"
    target = gap if entry.closes_gap else None
    with interrupts.two_steps(), verbosely(verbose, title, on_progress, target=target, limit=time_limit) as report:
        targets = Targets(
            gap=gap, time_limit=time_limit, method=method, on_progress=report, bound=bound, options=options
        )
        design = _solve_entry(entry, program, targets)
        return _mechanism(program, entry, gap, design) if isinstance(design, Design) else design


def check_targets(gap: float, time_limit: float) -> None:
    """Raise InputError unless gap and time limit are positive."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap)
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit)


def _mechanism(program: Program, entry: Entry, gap: float, design: Design) -> xr.Dataset:
    target = {"gap": gap} if entry.closes_gap else {}
    named = {
        "objective": design.objective,
        "objective_of": design.objective_of,
        "lower_bound_of": design.lower_bound_of,
    }
    extras = Extras(
        scale=design.scale,
        parameters={**program.parameters(), **target, **design.parameters},
        claimed_epsilon=design.claimed_epsilon,
        dual=design.dual if len(design.dual) else None,
        lower_bound=design.lower_bound if math.isfinite(design.lower_bound) else None,
        stopped=str(design.stopped) or None,
        multipliers=design.multipliers,
        row_variables=design.row_variables,
        attributes={name: value for name, value in named.items() if value is not None} | dict(design.figures),
        positions=design.positions,
    )
    return build_dataset(design.problem or program.problem, design.mass, program=program.name, extras=extras)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """The solver of a program and its options: a row of `SOLVERS`.

    Attributes
    ----------
    program : type
        The class of the program.
    solve : callable
        solve(program, targets) returns a `Design`, or a mechanism that is not a table.
    methods : tuple of str
        Values of `md.solve(method=)`, the first by default.
    rebuild : callable
        The program from a stored problem and the parameters of its file; needed unless it minimises the expected loss.
    closes_gap : bool
        True if `solve` works towards a gap, which the file then names.
    takes_bound : bool
        True if the lower bound is optional: `md.solve(bound=False)` leaves it out.
    takes_options : bool
        True if it takes `md.solve(options=...)`.
    large : bool
        True if it also solves problems too large for a table.

    Examples
    --------
    >>> md.extend.SOLVERS["optimal"].program.__name__
    'Optimal'
    """

    program: type[Program]
    solve: Callable[[Any, Targets], Design | xr.Dataset]
    methods: tuple[str, ...] = ("auto",)
    rebuild: Callable[[DesignProblem, Mapping[str, Any]], Program] | None = None
    closes_gap: bool = True
    takes_bound: bool = False
    takes_options: bool = False
    large: bool = False


def entry_of(program: Program) -> Entry:
    """The entry of a program, or of the nearest class that it derives from."""
    for kind in type(program).__mro__:
        entry = SOLVERS.get(str(getattr(kind, "name", "")))
        if entry is not None and entry.program is kind:
            return entry
    raise InputError("has no solver: add one to solvers.solve.SOLVERS", field="program", value=program.name)


def rebuilt_program(name: str, problem: DesignProblem, parameters: Mapping[str, Any]) -> Program:
    """The program of a file; KeyError if its entry has no `rebuild`."""
    rebuild = SOLVERS[name].rebuild
    if rebuild is None:
        raise KeyError(name)
    return rebuild(problem, parameters)


def _solve_entry(entry: Entry, program: Program, targets: Targets) -> Design | xr.Dataset:
    _check_options(targets, takes_bound=entry.takes_bound, takes_options=entry.takes_options)
    if not entry.large:
        _require_table(program)
    result = entry.solve(program, targets)
    if not isinstance(result, (Design, xr.Dataset)):
        message = f"has a solver that returns {type(result).__name__}: return a Design or a mechanism"
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
    for each in fields(options) if is_dataclass(options) else ():
        value = getattr(options, each.name)
        if value != each.default:
            return each.name, value
    return "options", type(options).__name__


def _require_table(program: Program) -> None:
    problem = program.problem
    what = f"a table for the {program.name} program"
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what=what)


def _optimal(program: Optimal, targets: Targets) -> Design | xr.Dataset:
    problem = program.problem
    route: Any = choose(problem)[0] if targets.method == "auto" else targets.method
    reason = rejection_reason(route, problem)
    if reason is not None:
        raise UnsuitableError(f"does not accept the problem: {reason}", field="method", value=route)
    pool = POOL_SOLVER.get() if route == "pool" else None
    if pool is None or pool.makes_table(problem):
        _require_table(program)
    if pool is not None and not pool.needs_closed_form(problem):
        return pool.solve(program, targets)
    budget = TimeBudget.of(targets.time_limit)
    floor = best_closed_form(problem, deadline=budget.deadline)
    targets = replace(targets, time_limit=max(budget.remaining(), _LEAST_TIME))
    if pool is not None:
        design = pool.solve(program, targets)
        return with_floor(design, floor) if isinstance(design, Design) else design
    return solve_optimal(problem, targets, floor=floor)


def _weights(program: EikonalWeights, targets: Targets) -> Design | xr.Dataset:
    if takes_factors(program, targets.method):
        return FACTORED_SOLVER.get().solve(program, targets)
    _check_options(targets, takes_bound=True)
    _require_table(program)
    return solve_weights(program, targets)


SOLVERS: Registry[Entry] = Registry(
    "solvers",
    {
        "optimal": Entry(program=Optimal, solve=_optimal, methods=("auto", *METHODS), large=True),
        "eikonal": Entry(
            program=EikonalWeights,
            solve=_weights,
            methods=("auto", "table", "factored"),
            closes_gap=False,
            takes_bound=True,
            takes_options=True,
            large=True,
        ),
        "query": Entry(program=QueryWeights, solve=solve_query, closes_gap=False, takes_bound=True),
        "minimax": Entry(program=Minimax, solve=solve_coupled, rebuild=lambda problem, parameters: Minimax(problem)),
        "bounded": Entry(
            program=Bounded,
            solve=solve_coupled,
            rebuild=lambda problem, parameters: Bounded(problem, worst_loss=read_bounds(parameters["worst_loss"])),
        ),
        "robust": Entry(
            program=Robust,
            solve=solve_coupled,
            rebuild=lambda problem, parameters: Robust(problem, priors=parameters["priors"]),
        ),
        "constrained": Entry(
            program=Constrained,
            solve=solve_constrained,
            rebuild=lambda problem, parameters: Constrained(
                problem, constraints=[constraint_from(description) for description in parameters["constraints"]]
            ),
        ),
        "matched": Entry(program=MatchedOptimal, solve=solve_matched_optimal),
    },
)  # by the name of the program
