"""Rebuild the program of a mechanism from its file, so that objective, limits and bound can be checked against it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr

from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.factored import SCHEMA as FACTORED
from mechdesign.mechanism.factored import stored_problem as factored_problem
from mechdesign.mechanism.information import criterion
from mechdesign.mechanism.table import claim_sentence, stored_domain, stored_edges, stored_points
from mechdesign.programs.bounded import Bounded
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.constraints import constraint_from
from mechdesign.programs.coupled import Coupled, objective
from mechdesign.programs.minimax import Minimax
from mechdesign.programs.robust import Robust
from mechdesign.programs.statistical_design import StatisticalDesign
from mechdesign.setting.domain import Domain
from mechdesign.setting.geodesic import Edges
from mechdesign.setting.losses import LOSSES, Loss, TableLoss
from mechdesign.setting.metrics import Graph, Metric, metric_from_description
from mechdesign.setting.problem import DesignProblem
from mechdesign.solvers.coupled import admit, coupled_bound
from mechdesign.solvers.criterion_bound import proved_bound, sides
from mechdesign.solvers.pricing import ConePricer

AGREE = 1e-9  # relative agreement asked of figures that are recomputed in floating point

_PROGRAMS: dict[str, Callable[[DesignProblem, dict[str, Any]], Coupled]] = {
    "minimax": lambda problem, kept: Minimax(problem=problem),
    "robust": lambda problem, kept: Robust(problem=problem, priors=kept["priors"]),
    "bounded": lambda problem, kept: Bounded(problem=problem, worst_loss=kept["worst_loss"]),
    "constrained": lambda problem, kept: Constrained(
        problem=problem, constraints=[constraint_from(given) for given in kept["constraints"]]
    ),
}


def check_objective(mechanism: xr.Dataset, domain: Domain, metric: Metric) -> tuple[list[str], bool | None]:
    """What is wrong with the objective and the limits of a mechanism whose objective is not the loss, and its bound.

    Returns: reasons; whether the stored bound follows from the stored multipliers, None where the program has
    constraints of the user's own, which a file cannot hold.
    Raises: KeyError for an unknown program.
    """
    if mechanism.attrs["program"] == StatisticalDesign.name:
        return _check_criterion(mechanism, StatisticalDesign(problem=rebuilt_problem(mechanism, domain, metric)))
    kept = json.loads(mechanism.attrs["parameters"])
    program = _PROGRAMS[mechanism.attrs["program"]](rebuilt_problem(mechanism, domain, metric), kept)
    rows, cost, problem = program.side_rows(), program.base_cost(), program.problem
    table = mechanism["mass"].values / float(ROW_SUM)
    reasons = []
    value, said = objective(cost, rows, table), float(mechanism.attrs["objective"])
    if not abs(value - said) <= AGREE * abs(value):
        reasons.append(f"objective: the file says {said!r}, recomputed {value!r}")
    over = np.flatnonzero(rows.excess_up(table))
    if len(over):
        reasons.append(f"{rows.names[over[0]]}: the limit is exceeded, there and at {len(over) - 1} other places")
    if kept.get("own_constraints"):
        return reasons, None
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    if multipliers.shape != rows.limit.shape or not (np.isfinite(multipliers).all() and np.isfinite(dual).all()):
        return reasons, False
    admissible = admit(multipliers, rows.share)
    found = coupled_bound(
        ConePricer(problem.edges, domain.size, problem.anchors),
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


def claim_differences(mechanism: xr.Dataset, domain: Domain, metric: Metric, edges: Edges) -> tuple[str, list[str]]:
    """The claim rebuilt from metric, level and grid, and how the file's claim and level differ from them."""
    reasons = []
    claim = claim_sentence(metric, domain, edges)
    if claim != mechanism.attrs["claim"]:
        reasons.append("claim: the stored sentence is not the one that the metric, level and grid give")
    level = metric.level_at(domain)
    if ("level" in mechanism) != (level is not None) or (
        level is not None and (level != mechanism["level"].values).any()
    ):
        reasons.append("level: differs from the level map of the metric")
    return claim, reasons


def figure_differences(mechanism: xr.Dataset, found: Mapping[str, float | None]) -> list[str]:
    """Which attributes differ from what was recomputed; figures that are None have no attribute to compare."""
    said: dict[str, float] = {name: mechanism.attrs.get(name, math.nan) for name in found}
    return [
        f"{name}: the file says {said[name]!r}, recomputed {value!r}"
        for name, value in found.items()
        if value is not None and not abs(said[name] - value) <= AGREE * abs(value)
    ]


def stored_problem(mechanism: xr.Dataset) -> DesignProblem:
    """The design problem of a mechanism, a table or a factored one, at the metric of its claim.

    Raises: InputError, KeyError or TypeError where the Dataset contradicts itself.
    """
    if mechanism.attrs["schema"] == FACTORED:
        return factored_problem(mechanism)
    domain = stored_domain(mechanism)
    edges, metric = stored_edges(mechanism), metric_from_description(json.loads(mechanism.attrs["metric"]))
    listed = metric or Graph(tail=edges.tail, head=edges.head, length=edges.length)
    return rebuilt_problem(mechanism, domain, listed)


def rebuilt_problem(mechanism: xr.Dataset, domain: Domain, metric: Metric) -> DesignProblem:
    """The design problem of a mechanism that is a table: its prior, loss and reports, for this domain and metric."""
    points = stored_points(mechanism, "report")
    own = np.array_equal(points, domain.points)
    kind: Literal["nodes", "points"] = "nodes" if domain.kind == "nodes" else "points"
    reports = domain if own else Domain(kind=kind, points=points, unit=mechanism["report_x"].attrs["units"])
    name = mechanism.attrs["loss"]
    loss: Loss = _table_loss(mechanism) if name == "table" else LOSSES[name]
    return DesignProblem(domain=domain, metric=metric, prior=mechanism["prior"].values, loss=loss, reports=reports)


def _table_loss(mechanism: xr.Dataset) -> TableLoss:
    table = mechanism["loss_table"]
    return TableLoss(values=table.values, units=str(table.attrs.get("units", "1")))
