r"""Designs between positions by blocks of cones or by weights of columns, their bounds, and the price of such privacy.

Blocks of cones, one for each orbit of reports, or weights of certified columns (columns.py) are repaired and certified.
If a time limit may end the cones early, the weights come first. The better table is returned, with the bound of the
cones. If the limit may end the weights, they are compared with clamped noise and the best constant report.

The rule. "cones" if its blocks fit in memory and time (`_cones_fit`). Else "columns", which has no lower bound. "noise"
is never chosen here: the noise of the plane within the cones, for very many rows.

The price of privacy between positions, compared with privacy between the centres of cells, in loss to the true
position. The program between centres is a program of cones too: P(u, y) and P(v, y) satisfy each other's bound e^d if
and only if

    |P(u, y) - P(v, y)| <= tanh(d / 2) (P(u, y) + P(v, y)),                                                          (2)

so that the method and the proof of the bound are those above. Its bound holds for every mechanism that is
private between centres and draws the row of the cell.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr

from mechdesign.base import interrupts
from mechdesign.base.arrays import Floats, Masses
from mechdesign.base.memory import require_bytes
from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.mechanism.figures import certified_scale, total_cost
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.positions.any_bound import (
    AnyBound,
    any_bound,
    finest_squares,
    pair_cones,
    proved_any_bound,
)
from mechdesign.positions.columns import column_count, column_table, merged_mass, require_columns
from mechdesign.positions.cone_blocks import bytes_needed, fits_in_memory_and_time, solve_cone_blocks, step_operations
from mechdesign.positions.program import Positions
from mechdesign.positions.repair import repair
from mechdesign.positions.spline import SplineCones, certified_mass
from mechdesign.positions.symmetry import SYMMETRIES, edge_orbits, position_orbits, row_multipliers
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.position_loss import position_cost
from mechdesign.programs.near_pairs import near_edges
from mechdesign.solvers.cone.pricing import sum_down
from mechdesign.solvers.optimal_bound import BOUND_ENDS
from mechdesign.solvers.result import SolveResult, Stop, Targets, reporter
from mechdesign.solvers.solve import ProgramSpec
from mechdesign.verification.verify import AGREE, figure_differences

Method = Literal["auto", "cones", "columns", "noise"]
METHODS = get_args(Method)
_PRICE_SHARE, _LEAST_PRICE_SECONDS = 2.0, 15.0  # seconds of the bound between centres: times those of the design; least
_PRICE_GAP = 5e-4  # relative, of the bound between centres: prices are printed to 0.1 %
_ANY_GAP, _EARLY_ANY_GAP = 1e-3, 4e-3  # relative, of the bound over every mechanism, if requested and by default


class AnyOperations(NamedTuple):
    """Multiplications of a step of the bound over every mechanism, of which it takes some 25."""

    least: float = 2e8  # by default at least: under a second
    most: float = 2e10  # by default at most: some 45 seconds of a core
    requested: float = 2e11  # if it is requested: some eight minutes


_ANY_OPERATIONS = AnyOperations()
_BOUNDED = "the program of cones: no other spline within them does better"


def solve_positions(program: Positions, targets: Targets) -> SolveResult:
    """The optimal program between positions to a relative gap, certified between any two positions at the metric."""
    # By the method "columns", the weights are the cheapest to that gap. bound=True adds the bound between centres, but
    # not where rows are finer than reports.
    # The bound over every mechanism is found by default, by little effort. False leaves out both.
    started = time.monotonic()
    if targets.method == "cones":
        _require_room(program.cones, -(-program.problem.reports.size // SYMMETRIES))
    deadline = started + targets.time_limit
    parameters: dict[str, Any] = {}
    proof: dict[str, Any] = {}
    of_any = None
    if targets.method == "noise":
        mass, stopped, complete = merged_mass(program), "", True
        parameters["method"] = "noise"
    elif targets.method == "columns" or (targets.method == "auto" and not _cones_fit(program)):
        mass, stopped = _first_table(program, targets, deadline, reporter(targets.on_progress))
        parameters["method"], complete = "columns", stopped == "columns"
    else:
        mass, stopped, complete, proof = _by_cones(program, targets, deadline)
    objective = total_cost(mass, program.cost)
    if complete and targets.bound is not False:
        of_any = _any_bound(program, targets, started, deadline)
    # Rows finer than reports have no mechanism between centres to compare with.
    if complete and targets.bound and program.problem.parameters.get("parts", 1) == 1:
        parameters |= _price(program, objective, targets.gap, started, deadline)
    figures: dict[str, str | float] = {}
    if of_any is not None:
        figures = {"any_lower_bound": of_any.value, "any_squares": of_any.squares}
    return SolveResult(
        mass=mass,
        loss=objective,
        objective=objective,
        objective_of=program.objective_of,
        scale=certified_scale(program.problem, mass),
        stopped=Stop(stopped),
        positions=program.patches,
        parameters=parameters,
        figures=figures,
        row_variables=None if of_any is None else {"any_multiplier": of_any.multipliers},
        **proof,
    )


def _by_cones(program: Positions, targets: Targets, deadline: float) -> tuple[Masses, str, bool, dict[str, Any]]:
    # Returns the table, the reason to stop, True if the method ended by itself, and the proof of the bound.
    cost, report = program.cost, reporter(targets.on_progress)
    group, cones = position_orbits(program)
    _require_room(cones, len(group.reports))
    costs = np.ascontiguousarray(cost[:, group.reports])

    def on_iteration(iteration: int, primal: float, dual: float) -> None:
        _report_iteration(
            report, "cone blocks", "gap", iteration, primal, dual, costs.size, cones.size * costs.shape[1]
        )

    early = targets.time_limit < np.inf
    first, ended = _first_table(program, targets, deadline - targets.time_limit / 2) if early else (None, "")
    if first is not None and ended == "interrupt":
        return first, ended, False, {}
    point = solve_cone_blocks(
        cones, costs, group.sums, tolerance=targets.gap / 2, deadline=deadline, on_progress=on_iteration
    )
    mass = _repair_or_plain(program, group.average(point.table, group.reports))
    if point.stopped in ("time", "interrupt"):
        first = _first_table(program, targets, np.inf)[0] if first is None else first
        mass = min(mass, first, key=lambda table: total_cost(table, cost))
    # Single precision halves the file. (1) holds for any z, so the bound is computed from the rounded one.
    slack = point.slack.astype(np.float32).astype(float)
    dual = row_multipliers(cost, cones, group, slack)
    objective, bound = total_cost(mass, cost), sum_down(dual)
    # At low levels the repair may cost more than plain noise or one constant report.
    if objective - bound > targets.gap * objective:
        mass = min([mass, *_plain_tables(program)], key=lambda table: total_cost(table, cost))
        objective = total_cost(mass, cost)
    stopped = "precision" if point.stopped == "gap" else point.stopped
    if objective - bound <= targets.gap * objective:
        stopped = "gap"
    proof = {"lower_bound": bound, "lower_bound_of": _BOUNDED, "dual": dual, "multipliers": slack.ravel()}
    return mass, stopped, point.stopped in ("gap", "precision"), proof if bound > 0 else {}


def _repair_or_plain(program: Positions, table: Floats) -> Masses:
    # At levels near those that no integers satisfy, the repair of some tables fails: plain ones may still pass.
    try:
        return repair(table, program.patches)
    except UnsuitableError:
        tables = _plain_tables(program)
        if not tables:
            raise
        return min(tables, key=lambda mass: total_cost(mass, program.cost))


def _first_table(
    program: Positions, targets: Targets, deadline: float, report: Callable[..., None] | None = None
) -> tuple[Masses, str]:
    # If the search ended early, clamped noise or the best constant report may be better.
    on_iteration = None if report is None else partial(_report_iteration, report, "columns", "inner gap")
    result = interrupts.interruptible(
        lambda: column_table(program, gap=targets.gap / 2, deadline=deadline, on_progress=on_iteration), None
    )
    if result is not None and result[1] == "columns":
        return result
    tables = _plain_tables(program) + ([] if result is None else [result[0]])
    if not tables:
        raise KeyboardInterrupt  # before there was any table
    best = min(tables, key=lambda table: total_cost(table, program.cost))
    return best, "interrupt" if result is None else result[1]


def _plain_tables(program: Positions) -> list[Masses]:
    constant = np.zeros(program.cost.shape)
    constant[:, program.cost.sum(axis=0).argmin()] = 1.0
    makers: list[Callable[[], Masses]] = [
        lambda: repair(constant, program.patches),
        lambda: certified_mass(program.problem)[0],
    ]
    tables: list[Masses] = []
    for make in makers:
        with contextlib.suppress(UnsuitableError, SizeError):
            tables.append(make())
    return tables


def _report_iteration(
    report: Callable[..., None],
    method: str,
    gap_of: str,
    iteration: int,
    primal: float,
    dual: float,
    variables: int,
    rows: int,
) -> None:
    # gap_of is "inner gap" for columns: their optimal weights do not give a lower bound.
    gap = (primal - dual) / primal if primal > 0 else 0.0
    size = {"variables": variables, "constraints": rows}
    report(method, round=0, iteration=iteration, loss=primal, lower_bound=dual, gap=gap, gap_of=gap_of, **size)


def _cones_fit(program: Positions) -> bool:
    # A step of at most 10^12 operations, about an hour in all: 900 cells without symmetry, 4,400 with that of a square.
    # The cones without symmetry are known before the group, so an impossible case is refused at no cost.
    cones, reports = program.cones, program.problem.reports.size
    fewest = -(-reports // SYMMETRIES)
    if not fits_in_memory_and_time(cones, fewest, fewest):
        return False
    group, cones = position_orbits(program)
    return fits_in_memory_and_time(cones, len(group.reports), group.sums.shape[0])


def _require_room(cones: SplineCones, blocks: int) -> None:
    n = cones.bound.shape[1]
    require_bytes(
        bytes_needed(cones, blocks),
        noun=f"designing {blocks} reports between positions, {cones.size} cones each,",
        field="cells",
        value=n,
        remedy="use fewer cells, the method columns, or the closed form: md.positions.spline_laplace(problem)",
    )


def operations(program: Positions, method: Method) -> float:
    """Approximate multiplications of a step of the method "cones" or "columns"; inf if it does not fit in memory."""
    # Cones take some 25 steps, columns 10 to 40; a core does some 10^10 multiplications in a second. Counts, unlike
    # measured seconds, give the same design on a busy machine.
    problem, (group, cones) = program.problem, position_orbits(program)
    sums = group.sums.shape[0]
    if method == "cones":
        return step_operations(cones, len(group.reports), sums)
    columns = column_count(program, group)
    try:
        require_columns(problem.domain.size, columns, sums)
    except SizeError:
        return np.inf
    return float(sums) ** 2 * columns


# For any z_y in the dual cones and any lambda with lambda(u) <= C(u, y) - (G' z_y)(u) for all u and y,
#
#     sum C * P >= sum_y (C_y - G' z_y) P_y >= sum_u lambda(u) sum_y P(u, y) = sum_u lambda(u)                       (1)
#
# for every table of the program, since (G' z_y) P_y = z_y (G P_y) >= 0 and P >= 0, whatever the rounding of z.
def proved_bound(program: Positions, multipliers: Floats) -> float:
    """The lower bound (1) that untrusted multipliers (3 k r,) prove; minus infinity if they do not prove one."""
    group, cones = position_orbits(program)
    count = 3 * cones.size * len(group.reports)
    if multipliers.shape != (count,):
        return -np.inf
    return sum_down(row_multipliers(program.cost, cones, group, multipliers.reshape(3, cones.size, -1)))


def _any_bound(program: Positions, targets: Targets, started: float, deadline: float) -> AnyBound | None:
    # A step of a default bound takes at most twice as long as one of the design. On 81 cells of a city twice as many
    # operations raise the bound by 0.1 %, in twice the time.
    allowed, tolerance = _ANY_OPERATIONS.requested, _ANY_GAP
    if not targets.bound:
        design = operations(program, "columns" if targets.method == "columns" else "cones")
        allowed = min(max(2 * design, _ANY_OPERATIONS.least), _ANY_OPERATIONS.most)
        # The longest default bounds stop early, which loses 0.2 %.
        tolerance = _EARLY_ANY_GAP if allowed == _ANY_OPERATIONS.most else _ANY_GAP
    count = finest_squares(program, allowed)
    if count is None:
        return None
    ends = started + BOUND_ENDS * (deadline - started)
    return any_bound(program, count, tolerance=tolerance, deadline=ends)


def _price(program: Positions, objective: float, gap: float, started: float, deadline: float) -> dict[str, float]:
    # If the bound is not found in time, the design is returned without a price. On a few cells the price may be
    # negative: draws of a design between positions depend on the position in a cell.
    elapsed = time.monotonic() - started
    allowed = max(_PRICE_SHARE * elapsed, _LEAST_PRICE_SECONDS)
    ends = min(started + BOUND_ENDS * (deadline - started), started + elapsed + allowed)
    bound = cell_lower_bound(program, tolerance=max(gap / 2, _PRICE_GAP), deadline=ends)
    return {} if bound is None else {"cell_lower_bound": bound, "price": objective / bound - 1}


def cell_lower_bound(program: Positions, *, tolerance: float, deadline: float) -> float | None:
    """A lower bound of the loss to the true position of the program between centres; None if none was found."""
    # None if time or memory is short, or after Ctrl-C. Cost: `solve_cone_blocks` with one cone an edge. Under a
    # Euclidean metric the inequalities of near pairs imply those of all pairs.
    problem = program.problem
    edges = near_edges(problem.edges, problem.domain) if isinstance(problem.metric, Euclidean) else problem.edges
    cones = pair_cones(edges, problem.domain.size)
    if not fits_in_memory_and_time(cones, fewest := -(-problem.reports.size // SYMMETRIES), fewest):
        return None
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    assert cost is not None
    group, edges = edge_orbits(cost, problem.domain, problem.reports, edges)
    cones = pair_cones(edges, problem.domain.size)
    if not fits_in_memory_and_time(cones, len(group.reports), group.sums.shape[0]):
        return None
    costs = np.ascontiguousarray(cost[:, group.reports])
    point = solve_cone_blocks(cones, costs, group.sums, tolerance=tolerance, deadline=deadline)
    if point.stopped in ("time", "interrupt"):
        return None
    bound = sum_down(row_multipliers(cost, cones, group, point.slack))
    return bound if bound > 0 else None


def check_positions(stored: MechanismFile, program: Positions) -> tuple[list[str], bool | None]:
    """Faults of the objective of a stored design, and True if its bound follows; None if there is no bound."""
    mechanism = stored.mechanism
    if stored.positions is None or stored.problem_metric is None:
        return ["position_claim: missing, although the design is for positions"], False
    problem, level = replace(program.problem, metric=stored.problem_metric), stored.positions.corner_level
    stated = replace(program, problem=problem, corner_level=level)
    objective = total_cost(mechanism["mass"].values, stated.cost)
    reasons = figure_differences(mechanism, {"objective": objective})
    reasons += _any_bound_reasons(mechanism, stated, objective)
    if "lower_bound" not in mechanism.attrs:
        return reasons, None
    multipliers = mechanism["multiplier"].values if "multiplier" in mechanism else np.zeros(0)
    bound = proved_bound(stated, multipliers)
    return reasons, bool(mechanism.attrs["lower_bound"] <= bound + AGREE * max(abs(bound), 1e-300))


def _any_bound_reasons(mechanism: xr.Dataset, program: Positions, objective: float) -> list[str]:
    """Reasons to refuse the bound over every mechanism of a stored design; none if the file has no such bound."""
    attrs, name = mechanism.attrs, "any_lower_bound"
    parts = [name in attrs, "any_squares" in attrs, "any_multiplier" in mechanism]
    if not any(parts):
        return []
    if not all(parts):
        return [f"{name}: needs its multipliers and their number of squares"]
    bound = proved_any_bound(program, int(attrs["any_squares"]), mechanism["any_multiplier"].values)
    if not attrs[name] <= bound + AGREE * max(abs(bound), 1e-300):
        return [f"{name}: does not follow from the stored multipliers"]
    return [] if attrs[name] <= objective * (1 + AGREE) else [f"{name}: exceeds the loss, which it should bound"]


ENTRY = ProgramSpec(
    program=Positions,
    solve=solve_positions,
    methods=METHODS,
    takes_bound=True,
    rebuild=lambda problem, _: Positions(problem),
)
