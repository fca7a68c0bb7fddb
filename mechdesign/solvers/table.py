"""The one table of programs: how each is solved, by which methods, and how a file's is stated again.

A program of another package is added by one line, `SOLVERS[Mine] = Entry(solve=...)`; `solve`, `verify`, `compare` and
the command line then know it by its `name`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from typing import Any, get_args

import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.mechanisms.best import ClosedForm, best_closed_form
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.programs.eikonal.dictionary import Dictionary
from mechdesign.programs.eikonal.query_weights import QueryWeights
from mechdesign.programs.eikonal.weights import EikonalWeights
from mechdesign.programs.matching.matched_optimal import MatchedOptimal
from mechdesign.programs.optimal.bounded import Bounded
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.programs.optimal.constraints import constraint_from
from mechdesign.programs.optimal.edge_average import EdgeAverage
from mechdesign.programs.optimal.minimax import Minimax
from mechdesign.programs.optimal.near_pairs import WIDEST, excess, near_pairs
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.programs.optimal.positions import Positions
from mechdesign.programs.optimal.robust import Robust
from mechdesign.programs.program import Program
from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.eikonal.dictionary import solve_dictionary
from mechdesign.solvers.eikonal.query import solve_query
from mechdesign.solvers.eikonal.weights import solve_weights
from mechdesign.solvers.factored.run import Run, solve_factored, suits
from mechdesign.solvers.kernels.design import Design, Targets, with_floor
from mechdesign.solvers.matching.matched_optimal import solve_matched_optimal
from mechdesign.solvers.optimal.aggregation import aggregate
from mechdesign.solvers.optimal.attempts import Method
from mechdesign.solvers.optimal.convex import solve_stated
from mechdesign.solvers.optimal.coupled import solve_coupled
from mechdesign.solvers.optimal.edge_average import solve_edge_average
from mechdesign.solvers.optimal.near_pairs import solve_near_pairs
from mechdesign.solvers.pool.run import LARGEST, POOLED, solve_pool
from mechdesign.solvers.pool.run import LARGEST_TABLE as SMALLEST_FACTORED
from mechdesign.solvers.pool.run import suits as suits_pool
from mechdesign.solvers.positions.positions import METHODS as POSITION_METHODS
from mechdesign.solvers.positions.positions import solve_positions
from mechdesign.solvers.statistical.statistical_design import solve_statistical

TABLES = 7  # 64-bit tables over secrets x reports that a solve holds at once: 6.1 to 6.7 measured from 50 x 50 cells up
LARGEST_TABLE = 1600  # secrets up to which "auto" keeps eikonal weights as a table: 40 x 40
_LEAST_TIME = 1e-9  # seconds that a search gets
MANY = 4_000_000  # edges times reports from which "auto" takes near pairs: 15 x 15 cells have 3.5 million


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """What is known of a program beside its statement.

    solve: its design towards `Targets`, or a mechanism that is no table; methods: what `solve(method=)` takes, the
    first by default; rebuild: the program of a stored problem and the parameters that its file keeps, needed where the
    objective is not the expected loss; closes_gap: whether `solve` works towards a gap, which the file then names.
    """

    solve: Callable[[Any, Targets], Design | xr.Dataset]
    methods: tuple[str, ...] = ("auto",)
    rebuild: Callable[[DesignProblem, Mapping[str, Any]], Program] | None = None
    closes_gap: bool = True


def entry_of(program: Program) -> Entry:
    """The entry of a program, or of the nearest class that it derives from. Raises: InputError for none."""
    for kind in type(program).__mro__:
        if kind in SOLVERS:
            return SOLVERS[kind]
    raise InputError(
        "no solver for this program",
        field="program",
        value=program.name,
        remedy="use a program of this package, such as Optimal, or add yours to solvers.table.SOLVERS",
    )


def rebuilt_program(name: str, problem: DesignProblem, kept: Mapping[str, Any]) -> Program:
    """The program of a file, stated again. Raises: KeyError for one without a way to do so."""
    rebuild = next((entry.rebuild for kind, entry in SOLVERS.items() if kind.name == name), None)
    if rebuild is None:
        raise KeyError(name)
    return rebuild(problem, kept)


def stated_programs(options: Collection[str]) -> dict[str, type[Program]]:
    """The programs that a problem and some of these options state, by name."""
    needed = {kind: {f.name for f in fields(kind) if f.default is MISSING} - {"problem"} for kind in SOLVERS}
    return {kind.name: kind for kind, names in needed.items() if names <= set(options)}


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


def _optimal(program: Optimal, targets: Targets) -> Design | xr.Dataset:
    large = POOLED < program.problem.domain.size <= LARGEST
    if targets.method == "pool" or (targets.method == "auto" and large and suits_pool(program.problem) is None):
        _check_no_options(targets)
        if program.problem.domain.size > SMALLEST_FACTORED:
            return solve_pool(program, targets)
        floor, targets = _with_floor(program, targets)
        found = solve_pool(program, targets)
        return with_floor(found, floor) if isinstance(found, Design) else found
    return _tabled(_optimal_table)(program, targets)


def _with_floor(program: Optimal, targets: Targets) -> tuple[ClosedForm, Targets]:
    """The best closed form, and the targets with the time that is left."""
    started = time.monotonic()
    floor = best_closed_form(program.problem, deadline=started + targets.time_limit)
    return floor, replace(targets, time_limit=max(targets.time_limit - (time.monotonic() - started), _LEAST_TIME))


def _optimal_table(program: Optimal, targets: Targets) -> Design:
    floor, targets = _with_floor(program, targets)
    given: dict[str, Any] = {
        "gap": targets.gap,
        "time_limit": targets.time_limit,
        "floor": floor,
        "on_progress": targets.on_progress,
    }
    if takes_near_pairs(program.problem, targets.method):
        return solve_near_pairs(program.problem, **given)
    return aggregate(program.problem, method=targets.method, **given)  # type: ignore[arg-type]


def _weights(program: EikonalWeights, targets: Targets) -> Design | xr.Dataset:
    large = program.problem.domain.size > LARGEST_TABLE
    if targets.method == "factored" or (targets.method == "auto" and large and suits(program) is None):
        run = Run(time_limit=targets.time_limit, on_progress=targets.on_progress, **targets.options)
        return solve_factored(program, run)
    return _tabled(_weights_table)(program, targets)


def _weights_table(program: EikonalWeights, targets: Targets) -> Design:
    return solve_weights(program, time_limit=targets.time_limit, on_progress=targets.on_progress)


def _coupled(program: Any, targets: Targets) -> Design:
    if isinstance(program, Constrained) and program.beyond_rows:
        return solve_stated(program, gap=targets.gap, time_limit=targets.time_limit)
    return _towards(solve_coupled)(program, targets)


def _positions(program: Positions, targets: Targets) -> Design:
    method: Any = targets.method
    priced = targets.options.get("bound") is not False
    return _towards(partial(solve_positions, method=method, priced=priced))(program, targets)


def _towards(solve: Callable[..., Design]) -> Callable[[Any, Targets], Design]:
    """A solver that takes the targets as arguments of these names."""
    return lambda program, targets: solve(
        program, gap=targets.gap, time_limit=targets.time_limit, on_progress=targets.on_progress
    )


def _in_time(solve: Callable[..., Design]) -> Callable[[Any, Targets], Design]:
    return lambda program, targets: solve(program, time_limit=targets.time_limit)


def _tabled(solve: Callable[[Any, Targets], Design], *taken: str) -> Callable[[Any, Targets], Design]:
    """A solver that makes a table, which must fit, and takes no options but these. Raises: SizeError, InputError."""

    def tabled(program: Program, targets: Targets) -> Design:
        _check_no_options(targets, *taken)
        problem = program.problem
        what = f"a table for the {program.name} program"
        require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what=what)
        return solve(program, targets)

    return tabled


def _check_no_options(targets: Targets, *taken: str) -> None:
    """Raises: InputError where an option was given, beside those taken, that only factored eikonal weights take."""
    for name, value in targets.options.items():
        if name in taken:
            continue
        raise InputError(
            "is for the factored form of eikonal weights", field=name, value=value, remedy="pass method factored"
        )


SOLVERS: dict[type[Program], Entry] = {
    Optimal: Entry(solve=_optimal, methods=(*get_args(Method), "graph", "pool")),
    EikonalWeights: Entry(solve=_weights, methods=("auto", "table", "factored"), closes_gap=False),
    Dictionary: Entry(solve=_tabled(_in_time(solve_dictionary)), closes_gap=False),
    QueryWeights: Entry(solve=_tabled(_in_time(solve_query)), closes_gap=False),
    Minimax: Entry(solve=_tabled(_coupled), rebuild=lambda problem, kept: Minimax(problem)),
    Bounded: Entry(
        solve=_tabled(_coupled), rebuild=lambda problem, kept: Bounded(problem, worst_loss=kept["worst_loss"])
    ),
    Robust: Entry(solve=_tabled(_coupled), rebuild=lambda problem, kept: Robust(problem, priors=kept["priors"])),
    Constrained: Entry(
        solve=_tabled(_coupled),
        rebuild=lambda problem, kept: Constrained(
            problem, constraints=[constraint_from(given) for given in kept["constraints"]]
        ),
    ),
    StatisticalDesign: Entry(
        solve=_tabled(_towards(solve_statistical)),
        rebuild=lambda problem, kept: StatisticalDesign(
            problem,
            error=kept.get("error", "transport"),
            areas=kept.get("areas"),
            loss_weight=kept.get("loss_weight", 0.0),
        ),
    ),
    MatchedOptimal: Entry(solve=_tabled(_towards(solve_matched_optimal))),
    EdgeAverage: Entry(solve=_tabled(_towards(solve_edge_average))),
    Positions: Entry(
        solve=_tabled(_positions, "bound"),
        methods=POSITION_METHODS,
        rebuild=lambda problem, kept: Positions(problem, subdivided=kept["subdivided"] is True),
    ),
}
