"""Checks of the objectives and limits of programs in stored mechanisms, and of bounds by pricing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Matrix
from mechdesign.base.registry import Registry
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import Coupled, SideRows, objective, stack_rows
from mechdesign.solvers.cone.pricing import ConePricer, coupled_bound, limit_terms, project_dual, sum_down
from mechdesign.solvers.cone.warm_pricing import proved_bound
from mechdesign.solvers.limits import limit_solver
from mechdesign.solvers.solve import rebuilt_program
from mechdesign.verification.tree_bound import tree_bound
from mechdesign.verification.verify import agrees, figure_differences

if TYPE_CHECKING:
    import xarray as xr

Check = Callable[[MechanismFile, Any], tuple[list[str], bool | None]]
CHECKS: Registry[Check] = Registry("objective checks")  # of programs that are not `Coupled`, by name


def check_objective(stored: MechanismFile) -> tuple[list[str], bool | None]:
    """Reasons to refuse objective, limits and bound of a program; True if the bound is proved, None if unchecked."""
    mechanism = stored.mechanism
    program = rebuilt_program(mechanism.attrs["program"], stored.problem, stored.parameters)
    if mechanism.attrs.get("objective_of") != program.objective_of:
        return [f"objective_of: is not {program.objective_of!r}"], None
    if program.name in CHECKS:
        return CHECKS[program.name](stored, program)
    if not isinstance(program, Coupled):
        # An extension states its program again and registers no check.
        raise KeyError(program.name)
    rows = program.side_rows()
    table = mechanism["mass"].values / float(ROW_SUM)
    reasons = figure_differences(mechanism, {"objective": objective(program.base_cost(), rows, table)})
    # Rounded up: a limit that holds in doubles only by rounding is refused.
    exceeded = np.flatnonzero(rows.excess_up(table))
    if len(exceeded):
        reasons.append(f"{rows.names[exceeded[0]]}: exceeds the limit, and so do {len(exceeded) - 1} other rows")
    if isinstance(program, Constrained):
        # Limits on discs are compared in integers by their own reader.
        limits = limit_solver(program)
        reasons += [] if limits is None else limits.breaches(mechanism["mass"].values)
    bounded = bounded_rows(stored, program)
    return reasons, None if bounded is None else _coupled_follows(mechanism, program, bounded)


def bounded_rows(stored: MechanismFile, program: Coupled) -> SideRows | None:
    """The side rows whose multipliers a file has; None if it has constraints that a file cannot hold."""
    rows = program.side_rows()
    if not isinstance(program, Constrained):
        return rows
    if stored.parameters.get("own_constraints"):
        return None
    limits = limit_solver(program)
    stored_rows = None if limits is None else limits.stored_rows(stored.mechanism)
    return rows if stored_rows is None else stack_rows([rows, stored_rows], rows.matrix.shape[1])


def _coupled_follows(mechanism: xr.Dataset, program: Coupled, rows: SideRows) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    problem, multipliers, dual = program.problem, mechanism["multiplier"].values, mechanism["dual"].values
    if multipliers.shape != rows.limit.shape or not (np.isfinite(multipliers).all() and np.isfinite(dual).all()):
        return False
    # Multipliers are untrusted: projected onto the dual cone, any numbers give a valid bound, at worst a poor one.
    admissible = project_dual(multipliers, rows.epigraph_coefficient)
    folded = rows.lagrangian_cost_down(program.base_cost(), admissible)
    by_trees = tree_bound(mechanism, problem.edges, folded)
    terms = limit_terms(rows.limit, admissible)
    if by_trees is not None and agrees(mechanism, sum_down(np.r_[by_trees, terms])):
        return True
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    return agrees(mechanism, coupled_bound(pricer, folded, rows.limit, dual, admissible))


def pricing_proves_bound(file: MechanismFile, loss: Matrix, cost: Matrix) -> bool:
    """True if pricing reports at the stored multipliers proves the lower bound of a table."""
    # Any anchors give a valid bound, so trying two choices is safe. Which ones the design used is not stored.
    choices = [np.argmin(loss, axis=0)]
    if file.same_places:
        choices.insert(0, np.arange(file.domain.size))
    direct = file.metric.direct_distances(file.domain)
    for anchors in choices:
        pricer = ConePricer(file.edges, file.domain.size, anchors, direct)
        if agrees(file.mechanism, proved_bound(pricer, cost, file.mechanism["dual"].values)):
            return True
    return False
