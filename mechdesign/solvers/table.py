"""The one table of programs: how each is solved, by which methods, and how a file's is stated again.

A program of another package is added by one line, `SOLVERS[Mine.name] = Entry(program=Mine, solve=...)`; `solve`,
`verify`, `compare` and the command line then know it by its `name`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.base.registry import PROVIDERS, Table, provider
from mechdesign.closed_forms.best import best_closed_form
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.metric import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.constrained import Constrained, constraint_from
from mechdesign.programs.coupled import Bounded, Minimax, Robust
from mechdesign.programs.dictionary import Dictionary
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.matched_optimal import MatchedOptimal
from mechdesign.programs.near_pairs import WIDEST, excess, near_pairs
from mechdesign.programs.program import Optimal, Program
from mechdesign.programs.query_weights import QueryWeights
from mechdesign.solvers.convex import solve_constrained
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.design import Design, Targets, with_floor
from mechdesign.solvers.dictionary import solve_dictionary
from mechdesign.solvers.matched import solve_matched_optimal
from mechdesign.solvers.near_pairs import solve_near_pairs
from mechdesign.solvers.optimal import Method, aggregate, takes_pool
from mechdesign.solvers.query import solve_query
from mechdesign.solvers.weights import solve_weights

TABLES = 7  # 64-bit tables over secrets x reports that a solve holds at once: 6.1 to 6.7 measured from 50 x 50 cells up
LARGEST_TABLE = 1600  # secrets up to which "auto" keeps eikonal weights as a table: 40 x 40
_LEAST_TIME = 1e-9  # seconds that a search gets
_OPTIONS = ("rounds", "work", "scheduler", "bound")  # of factored eikonal weights
MANY = 4_000_000  # edges times reports from which "auto" takes near pairs: 15 x 15 cells have 3.5 million


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """What is known of a program beside its statement.

    program, its class; solve: its design towards `Targets`, or a mechanism that is no table; methods: what
    `solve(method=)` takes, the first by default; rebuild: the program of a stored problem and the parameters that its
    file keeps, needed where the objective is not the expected loss; closes_gap: whether `solve` works towards a gap,
    which the file then names; options: those of `solve()` that it takes; large: whether it solves what has no room as a
    table too.
    """

    program: type[Program]
    solve: Callable[[Any, Targets], Design | xr.Dataset]
    methods: tuple[str, ...] = ("auto",)
    rebuild: Callable[[DesignProblem, Mapping[str, Any]], Program] | None = None
    closes_gap: bool = True
    options: tuple[str, ...] = ()
    large: bool = False


def entry_of(program: Program) -> Entry:
    """The entry of a program, or of the nearest class that it derives from. Raises: InputError for none."""
    for kind in type(program).__mro__:
        entry = SOLVERS.get(str(getattr(kind, "name", "")))
        if entry is not None and entry.program is kind:
            return entry
    raise InputError("has no solver: add one to solvers.table.SOLVERS", field="program", value=program.name)


def rebuilt_program(name: str, problem: DesignProblem, parameters: Mapping[str, Any]) -> Program:
    """The program of a file, stated again. Raises: KeyError for one without a way to do so."""
    rebuild = SOLVERS[name].rebuild
    if rebuild is None:
        raise KeyError(name)
    return rebuild(problem, parameters)


def takes_near_pairs(problem: DesignProblem, method: str) -> bool:
    """Whether a method designs by near pairs: "graph", and "auto" where all pairs are many and near ones can stand for
    them, with an excess of at most 2.
    """
    if method != "auto" or not isinstance(problem.metric, Euclidean):
        return method == "graph"
    if len(problem.edges.tail) * problem.reports.size < MANY:
        return False
    try:
        return excess(problem, near_pairs(problem)) <= WIDEST
    except UnsuitableError:
        return False


def solve_entry(program: Program, targets: Targets) -> Design | xr.Dataset:
    """What the solver of a program makes. Raises: InputError for options that it does not take; SizeError where a table
    does not fit; what the solver raises.
    """
    entry = entry_of(program)
    _check_options(targets, entry.options)
    if not entry.large:
        _require_table(program)
    return entry.solve(program, targets)


def _check_options(targets: Targets, taken: tuple[str, ...] = ()) -> None:
    for name, value in targets.options.items():
        if name not in taken:
            raise InputError("is for the method factored of eikonal weights", field=name, value=value)


def _require_table(program: Program) -> None:
    problem = program.problem
    what = f"a table for the {program.name} program"
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what=what)


def _optimal(program: Optimal, targets: Targets) -> Design | xr.Dataset:
    problem, size = program.problem, program.problem.domain.size
    pool = targets.method == "pool" or (targets.method == "auto" and takes_pool(problem))
    if pool and size > provider("pool").LARGEST_TABLE:
        mechanism: xr.Dataset = provider("pool").solve_pool(program, targets)
        return mechanism
    if not pool:
        _require_table(program)
    started = time.monotonic()
    floor = best_closed_form(problem, deadline=started + targets.time_limit)
    left = max(targets.time_limit - (time.monotonic() - started), _LEAST_TIME)
    if pool:
        design = provider("pool").solve_pool(program, replace(targets, time_limit=left))
        return with_floor(design, floor) if isinstance(design, Design) else design
    solve: Callable[..., Design] = solve_near_pairs
    if not takes_near_pairs(problem, targets.method):
        solve = partial(aggregate, method=targets.method)  # type: ignore[arg-type]
    return solve(problem, gap=targets.gap, time_limit=left, floor=floor, on_progress=targets.on_progress)


def _weights(program: EikonalWeights, targets: Targets) -> Design | xr.Dataset:
    large = program.problem.domain.size > LARGEST_TABLE
    many = targets.method == "auto" and large and "factored" in PROVIDERS
    maps: Any = provider("factored") if many or targets.method == "factored" else None
    if targets.method == "factored" or (maps is not None and maps.suits(program) is None):
        run = maps.Run(time_limit=targets.time_limit, on_progress=targets.on_progress, **targets.options)
        mechanism: xr.Dataset = maps.solve_factored(program, run)
        return mechanism
    _check_options(targets)
    _require_table(program)
    return solve_weights(program, targets)


SOLVERS: Table[Entry] = Table(
    "solvers",
    {
        "optimal": Entry(program=Optimal, solve=_optimal, methods=(*get_args(Method), "graph", "pool"), large=True),
        "eikonal": Entry(
            program=EikonalWeights,
            solve=_weights,
            methods=("auto", "table", "factored"),
            closes_gap=False,
            options=_OPTIONS,
            large=True,
        ),
        "dictionary": Entry(program=Dictionary, solve=solve_dictionary, closes_gap=False),
        "query": Entry(program=QueryWeights, solve=solve_query, closes_gap=False),
        "minimax": Entry(program=Minimax, solve=solve_coupled, rebuild=lambda problem, kept: Minimax(problem)),
        "bounded": Entry(
            program=Bounded,
            solve=solve_coupled,
            rebuild=lambda problem, kept: Bounded(problem, worst_loss=kept["worst_loss"]),
        ),
        "robust": Entry(
            program=Robust,
            solve=solve_coupled,
            rebuild=lambda problem, kept: Robust(problem, priors=kept["priors"]),
        ),
        "constrained": Entry(
            program=Constrained,
            solve=solve_constrained,
            rebuild=lambda problem, kept: Constrained(
                problem, constraints=[constraint_from(given) for given in kept["constraints"]]
            ),
        ),
        "matched": Entry(program=MatchedOptimal, solve=solve_matched_optimal),
    },
)  # by the name of the program
