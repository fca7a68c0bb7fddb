"""Rebuild the program of a mechanism from its file, so that objective, limits and bound can be checked against it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import total_cost
from mechdesign.programs.optimal.constrained import Constrained
from mechdesign.programs.optimal.coupled import Coupled, SideRows, objective
from mechdesign.programs.optimal.positions import Positions
from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.solvers.kernels.pricing import ConePricer
from mechdesign.solvers.optimal.coupled_bound import coupled_bound, project_dual
from mechdesign.solvers.positions.positions import proved_bound as cone_bound
from mechdesign.solvers.statistical.criterion_bound import proved_bound, sides
from mechdesign.solvers.table import rebuilt_program
from mechdesign.utility.loss.loss import mechanism_loss

AGREE = 1e-9  # relative agreement asked of figures that are recomputed in floating point


def check_objective(stored: Stored) -> tuple[list[str], bool | None]:
    """What is wrong with the objective and the limits of a mechanism whose objective is not the loss, and its bound.

    Returns: reasons; whether the stored bound follows from the stored multipliers, None where there is none, or where
    the program has constraints of the user's own, which a file cannot hold.
    Raises: KeyError for a program that cannot be stated again.
    """
    mechanism = stored.mechanism
    program = rebuilt_program(mechanism.attrs["program"], stored.problem, stored.parameters)
    table = mechanism["mass"].values / float(ROW_SUM)
    if isinstance(program, Positions):
        return _check_positions(stored, program)
    if isinstance(program, StatisticalDesign):
        value = program.objective(table, mechanism_loss(mechanism))
        return figure_differences(mechanism, {"objective": value}), _criterion_follows(mechanism, program)
    if not isinstance(program, Coupled):
        raise KeyError(program.name)
    rows = program.side_rows()
    reasons = figure_differences(mechanism, {"objective": objective(program.base_cost(), rows, table)})
    over = np.flatnonzero(rows.excess_up(table))
    if len(over):
        reasons.append(f"{rows.names[over[0]]}: the limit is exceeded, there and at {len(over) - 1} other places")
    if isinstance(program, Constrained) and stored.parameters.get("own_constraints"):
        return reasons, None
    return reasons, _coupled_follows(mechanism, program, rows)


def _coupled_follows(mechanism: xr.Dataset, program: Coupled, rows: SideRows) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    problem, multipliers, dual = program.problem, mechanism["multiplier"].values, mechanism["dual"].values
    if multipliers.shape != rows.limit.shape or not (np.isfinite(multipliers).all() and np.isfinite(dual).all()):
        return False
    admissible = project_dual(multipliers, rows.share)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    folded = rows.fold_down(program.base_cost(), admissible)
    found = coupled_bound(pricer, folded, rows.limit, dual, admissible)
    return bool(mechanism.attrs["lower_bound"] <= found + AGREE * max(abs(found), 1e-300))


def _criterion_follows(mechanism: xr.Dataset, program: StatisticalDesign) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    if "dual" not in mechanism or "multiplier" not in mechanism:
        return False
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    count = len(sides(program.problem))
    finite = np.isfinite(multipliers).all() and np.isfinite(dual).all() and (multipliers >= 0).all()
    if multipliers.shape != (count * (count + 1) // 2,) or not finite:
        return False
    return bool(mechanism.attrs["lower_bound"] <= proved_bound(program, dual, multipliers) * (1 + AGREE))


def _check_positions(stored: Stored, program: Positions) -> tuple[list[str], bool | None]:
    mechanism = stored.mechanism
    if stored.positions is None or stored.asked is None:
        return ["position_claim: the design is for positions, and its file claims nothing about them"], False
    problem, level = replace(program.problem, metric=stored.asked), stored.positions.corner_level
    stated = replace(program, problem=problem, corner_level=level)
    reasons = figure_differences(mechanism, {"objective": total_cost(mechanism["mass"].values, stated.cost)})
    if "lower_bound" not in mechanism.attrs:
        return reasons, None
    multipliers = mechanism["multiplier"].values if "multiplier" in mechanism else np.zeros(0)
    found = cone_bound(stated, multipliers)
    return reasons, bool(mechanism.attrs["lower_bound"] <= found + AGREE * max(abs(found), 1e-300))


def figure_differences(mechanism: xr.Dataset, found: Mapping[str, float | None]) -> list[str]:
    """Which attributes differ from what was recomputed; figures that are None have no attribute to compare."""
    said: dict[str, float] = {name: mechanism.attrs.get(name, math.nan) for name in found}
    return [
        f"{name}: the file says {said[name]!r}, recomputed {value!r}"
        for name, value in found.items()
        if value is not None and not (abs(said[name] - value) <= AGREE * abs(value) < math.inf)
    ]


def unchecked_bound(mechanism: xr.Dataset, follows: bool | None, *, asked: bool = True) -> str | None:
    """Why the lower bound of a file is not to be shown as proved; None where it is proved, or there is none."""
    if follows or "lower_bound" not in mechanism.attrs:
        return None
    if follows is False:
        return "it does not follow from the stored multipliers"
    return "it rests on constraints that a file cannot hold" if asked else "its pricing was left out"


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
