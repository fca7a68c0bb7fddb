r"""Solve the program between positions: cone blocks, one for each orbit of reports, repaired and certified; where that
does not go, weights of certified columns (columns.py).

Where a time limit may end the cones early the weights come first, and the better table is kept, with the bound of the
cones; where it may end the weights, they are compared with clamped noise and the best constant report.

The rule. "cones" where its blocks fit in memory and a step of it takes at most 10^12 operations, about an hour in all
(900 cells without symmetry, 4,400 with that of a square); else "columns", which bounds nothing from below.

Lower bound. For any z_y in the dual cones and any lambda with lambda(u) <= C(u, y) - (G' z_y)(u) for all u and y,

    sum C * P >= sum_y (C_y - G' z_y) P_y >= sum_u lambda(u) sum_y P(u, y) = sum_u lambda(u)

for every table of the program, since (G' z_y) P_y = z_y (G P_y) >= 0 and P >= 0. So the best lambda for the z of the
interior point is its minimum over y, and the bound holds whatever rounding did to the equations.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_bytes
from mechdesign.closed_forms.mechanisms import spline_laplace
from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.mechanism.positions.repair import repair
from mechdesign.mechanism.positions.spline_cones import SplineCones
from mechdesign.mechanism.table.dataset import certified_scale, total_cost
from mechdesign.programs.optimal.positions import Positions
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.pricing import sum_down
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.positions.columns import column_count, column_table, require_columns
from mechdesign.solvers.positions.cone_blocks import bytes_needed, goes, solve_cone_blocks, step_operations
from mechdesign.solvers.positions.price import cell_lower_bound
from mechdesign.solvers.positions.symmetry import SYMMETRIES, position_orbits, row_multipliers

Array = NDArray[np.float64]
Mass = NDArray[np.uint64]
Method = Literal["auto", "cones", "columns"]
METHODS = get_args(Method)

_LEAST_SECONDS = 15.0
_SHARE = 2.0  # of the seconds of the design, for the bound between centres
_PRICED = 5e-4  # relative gap of the bound between centres
_OBJECTIVE = "the mean loss to the true position"
_BOUNDED = "the program of cones: no other spline within them does better"


def solve_positions(
    program: Positions,
    *,
    gap: float,
    time_limit: float = np.inf,
    method: Method = "auto",
    priced: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """The optimal program between positions to a relative gap; by the method "columns", a table of the program whose
    weights are the cheapest to that gap.

    Returns: a table that is certified between any two positions at the metric, and between the cells as rows at the
    scale that holds there; by cones, its multipliers are the dual cones of one report of each orbit, (3 k r,); by
    columns there are none, no lower bound, and "columns" as the reason why it stopped.
    Raises: UnsuitableError for problems without positions, or without a loss to them; SizeError before blocks or
    columns that do not fit in memory.
    Cost: `solve_cone_blocks` on one block for each orbit of reports, some 10 to 60 iterations, and a repair; then up to
    twice as long, and at least fifteen seconds, for the bound between centres, which is left out where it takes longer
    or `priced` is false.
    By columns, `column_table`; then the same.
    """
    started = time.monotonic()
    if method == "cones":
        _require_room(program.cones, -(-program.problem.reports.size // SYMMETRIES))
    if method == "columns" or (method == "auto" and not _cones_go(program)):
        return _by_columns(
            program,
            gap=gap,
            started=started,
            deadline=started + time_limit,
            priced=priced,
            on_progress=on_progress,
        )
    cost = program.cost
    group, cones = position_orbits(program)
    _require_room(cones, len(group.reports))
    own = np.ascontiguousarray(cost[:, group.reports])

    def tell(iteration: int, primal: float, dual: float) -> None:
        if on_progress is not None:
            size = (own.size, cones.size * own.shape[1])
            on_progress(_progress("cone blocks", iteration, primal, dual, size, started))

    ends = started + time_limit
    first = None if time_limit == np.inf else _first_table(program, gap=gap, deadline=started + time_limit / 2)[0]
    point = solve_cone_blocks(cones, own, group.sums, tolerance=gap / 2, deadline=ends, on_progress=tell)
    mass = repair(group.table(point.table), program.patches)
    if point.stopped in ("time", "interrupt"):
        first = _first_table(program, gap=gap, deadline=np.inf)[0] if first is None else first
        mass = min(mass, first, key=lambda table: total_cost(table, cost))
    slack = point.slack.astype(np.float32).astype(float)  # half the file; the bound is of these
    dual = row_multipliers(cost, cones, group, slack)
    objective, bound = total_cost(mass, cost), sum_down(dual)
    stopped = "gap" if objective - bound <= gap * objective else point.stopped
    proved: dict[str, Any] = {}
    if bound > 0:
        proved = {
            "lower_bound": bound,
            "lower_bound_of": _BOUNDED,
            "dual": dual,
            "multipliers": slack.ravel(),
        }
    return Design(
        mass=mass,
        loss=total_cost(mass, program.problem.weighted_loss),
        objective=objective,
        objective_of=_OBJECTIVE,
        scale=certified_scale(program.problem, mass),
        stopped="precision" if stopped == "gap" and objective - bound > gap * objective else stopped,
        positions=program.patches,
        parameters=_priced(program, objective, gap, started, ends)
        if priced and point.stopped in ("gap", "precision")
        else {},
        **proved,
    )


def _first_table(
    program: Positions,
    *,
    gap: float,
    deadline: float,
    on_progress: Callable[[int, float, float, int, int], None] | None = None,
) -> tuple[Mass, str]:
    """The table of weights of columns, and why their search ended; where that was early and it is worse, clamped noise
    in its place, and where that is worse too, the best constant report.
    """
    mass, stopped = column_table(program, gap=gap / 2, deadline=deadline, on_progress=on_progress)
    if stopped == "columns":
        return mass, stopped
    cost, problem = program.cost, program.problem
    constant = np.zeros(cost.shape)
    constant[:, cost.sum(axis=0).argmin()] = 1.0
    tables = [mass, repair(constant, program.patches)]
    with contextlib.suppress(UnsuitableError):
        tables.append(spline_laplace.certified_mass(problem)[0])
    return min(tables, key=lambda table: total_cost(table, cost)), stopped


def _by_columns(
    program: Positions,
    *,
    gap: float,
    started: float,
    deadline: float,
    priced: bool,
    on_progress: Callable[[Progress], None] | None,
) -> Design:
    def tell(iteration: int, primal: float, dual: float, columns: int, rows: int) -> None:
        if on_progress is not None:
            on_progress(_progress("weights of columns", iteration, primal, dual, (columns, rows), started))

    mass, stopped = _first_table(program, gap=gap, deadline=deadline, on_progress=tell)
    objective = total_cost(mass, program.cost)
    return Design(
        mass=mass,
        loss=total_cost(mass, program.problem.weighted_loss),
        objective=objective,
        objective_of=_OBJECTIVE,
        scale=certified_scale(program.problem, mass),
        stopped=stopped,
        positions=program.patches,
        parameters={"method": "columns"}
        | (_priced(program, objective, gap, started, deadline) if priced and stopped == "columns" else {}),
    )


def _priced(program: Positions, objective: float, gap: float, started: float, deadline: float) -> dict[str, float]:
    """The bound between centres and the price beside it, where that does not take too long."""
    taken = time.monotonic() - started
    ends = min(deadline, started + taken + max(_SHARE * taken, _LEAST_SECONDS))
    beside = cell_lower_bound(program, tolerance=max(gap / 2, _PRICED), deadline=ends)
    return {} if beside is None else {"cell_lower_bound": beside, "price": objective / beside - 1}


def _progress(
    method: str, iteration: int, primal: float, dual: float, size: tuple[int, int], started: float
) -> Progress:
    return Progress(
        method=method,
        round=0,
        iteration=iteration,
        loss=primal,
        lower_bound=dual,
        gap=(primal - dual) / primal if primal > 0 else 0.0,
        variables=size[0],
        constraints=size[1],
        seconds=time.monotonic() - started,
    )


def _cones_go(program: Positions) -> bool:
    """Whether the rule of the module takes the program of cones."""
    cones, reports = program.cones, program.problem.reports.size
    fewest = -(-reports // SYMMETRIES)
    if not goes(cones, fewest, fewest):
        return False
    group, cones = position_orbits(program)
    return goes(cones, len(group.reports), group.sums.shape[0])


def operations(program: Positions, method: Method) -> float:
    """Multiplications of one step of the method "cones" or "columns", about: what a rule goes by that gives the same
    design on a machine at work; inf where it would not fit in memory.

    Steps: some 25 of cones, some 10 to 40 of columns. A core does about 10^10 in a second.
    """
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


def proved_bound(program: Positions, multipliers: Array) -> float:
    """The lower bound that multipliers (3 k r,) from anybody prove; minus infinity where they prove none."""
    group, cones = position_orbits(program)
    count = 3 * cones.size * len(group.reports)
    if multipliers.shape != (count,):
        return -np.inf
    return sum_down(row_multipliers(program.cost, cones, group, multipliers.reshape(3, cones.size, -1)))


def _require_room(cones: SplineCones, blocks: int) -> None:
    """Raises: SizeError before so many blocks of the cones of a column that do not fit in memory."""
    n = cones.bound.shape[1]
    require_bytes(
        bytes_needed(cones, blocks),
        what=f"designing {blocks} reports between positions, {cones.size} cones each,",
        field="cells",
        value=n,
        remedy="use fewer cells, the method columns, or the closed form: md.baselines.spline_laplace(problem)",
    )
