"""Rebuild the program of a mechanism from its file, so that objective, limits and bound can be checked against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.programs.optimal.bounded import Bounded
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.programs.optimal.constraints import constraint_from
from mechdesign.programs.optimal.coupled import Coupled, objective
from mechdesign.programs.optimal.minimax import Minimax
from mechdesign.programs.optimal.robust import Robust
from mechdesign.programs.statistical.fisher_information import criterion
from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.pricing import ConePricer
from mechdesign.solvers.optimal.coupled import coupled_bound, project_dual
from mechdesign.solvers.statistical.criterion_bound import proved_bound, sides

AGREE = 1e-9  # relative agreement asked of figures that are recomputed in floating point

_PROGRAMS: dict[str, Callable[[DesignProblem, dict[str, Any]], Coupled]] = {
    "minimax": lambda problem, kept: Minimax(problem=problem),
    "robust": lambda problem, kept: Robust(problem=problem, priors=kept["priors"]),
    "bounded": lambda problem, kept: Bounded(problem=problem, worst_loss=kept["worst_loss"]),
    "constrained": lambda problem, kept: Constrained(
        problem=problem, constraints=[constraint_from(given) for given in kept["constraints"]]
    ),
}


def check_objective(stored: Stored) -> tuple[list[str], bool | None]:
    """What is wrong with the objective and the limits of a mechanism whose objective is not the loss, and its bound.

    Returns: reasons; whether the stored bound follows from the stored multipliers, None where the program has
    constraints of the user's own, which a file cannot hold.
    Raises: KeyError for an unknown program.
    """
    mechanism, kept = stored.mechanism, stored.parameters
    if mechanism.attrs["program"] == StatisticalDesign.name:
        return _check_criterion(mechanism, StatisticalDesign(problem=stored.problem))
    program = _PROGRAMS[mechanism.attrs["program"]](stored.problem, kept)
    rows, cost, problem = program.side_rows(), program.base_cost(), program.problem
    table = mechanism["mass"].values / float(ROW_SUM)
    reasons = figure_differences(mechanism, {"objective": objective(cost, rows, table)})
    over = np.flatnonzero(rows.excess_up(table))
    if len(over):
        reasons.append(f"{rows.names[over[0]]}: the limit is exceeded, there and at {len(over) - 1} other places")
    if kept.get("own_constraints") or "lower_bound" not in mechanism.attrs:
        return reasons, None
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    if multipliers.shape != rows.limit.shape or not (np.isfinite(multipliers).all() and np.isfinite(dual).all()):
        return reasons, False
    admissible = project_dual(multipliers, rows.share)
    found = coupled_bound(
        ConePricer(problem.edges, problem.domain.size, problem.anchors),
        rows.fold_down(cost, admissible),
        rows.limit,
        dual,
        admissible,
    )
    return reasons, bool(mechanism.attrs["lower_bound"] <= found + AGREE * max(abs(found), 1e-300))


def _check_criterion(mechanism: xr.Dataset, program: StatisticalDesign) -> tuple[list[str], bool | None]:
    """The same for a statistical design: its criterion, and the bound of every mechanism with the claim."""
    table = mechanism["mass"].values / float(ROW_SUM)
    reasons = figure_differences(mechanism, {"objective": criterion(table, program.problem.prior_array, program.norm)})
    if "lower_bound" not in mechanism.attrs:
        return reasons, None
    if "dual" not in mechanism or "multiplier" not in mechanism:
        return reasons, False
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    count = len(sides(program.problem))
    finite = np.isfinite(multipliers).all() and np.isfinite(dual).all() and (multipliers >= 0).all()
    if multipliers.shape != (count * (count + 1) // 2,) or not finite:
        return reasons, False
    return reasons, bool(mechanism.attrs["lower_bound"] <= proved_bound(program, dual, multipliers) * (1 + AGREE))


def figure_differences(mechanism: xr.Dataset, found: Mapping[str, float | None]) -> list[str]:
    """Which attributes differ from what was recomputed; figures that are None have no attribute to compare."""
    said: dict[str, float] = {name: mechanism.attrs.get(name, math.nan) for name in found}
    return [
        f"{name}: the file says {said[name]!r}, recomputed {value!r}"
        for name, value in found.items()
        if value is not None and not (abs(said[name] - value) <= AGREE * abs(value) < math.inf)
    ]


def bound_reasons(mechanism: xr.Dataset, follows: bool | None, loss: float) -> list[str]:
    """What is wrong with the lower bound, given whether it follows from the multipliers: it may not exceed what it
    bounds, the objective, or where there is none the recomputed loss.
    """
    reasons = ["lower_bound: does not follow from the stored multipliers"] * (follows is False)
    bound = mechanism.attrs.get("lower_bound", -math.inf)
    bounded = float(mechanism.attrs.get("objective", loss))
    if not bound <= bounded + AGREE * abs(bounded):
        reasons.append(f"lower_bound: {bound!r} exceeds {bounded!r}, which it should bound")
    return reasons
