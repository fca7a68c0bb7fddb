"""Designs for a survey over classes: randomized response, the optimum and the statistical design at each level.

The level of the discrete and of the Euclidean metric is its epsilon. Other metrics are multiplied by the level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from mechdesign.errors import InputError, SizeError, SolverError, UnsuitableError
from mechdesign.geo.partition import Partition
from mechdesign.problem.metrics import Discrete, Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.matched import family_of
from mechdesign.programs.optimal import Optimal
from mechdesign.solvers.solve import solve
from mechdesign.surveys.channel import table_of
from mechdesign.surveys.statistical_design import StatisticalDesign

RESPONSE = "randomized_response"
Tables = tuple[dict[str, Any], dict[str, Any]]  # tables (n, m) and their descriptions, by name


def over_classes(problem: DesignProblem) -> bool:
    """True for the problem of a survey over classes or nodes, which have no noise on a grid."""
    return problem.domain.kind == "nodes"


def at_level(problem: DesignProblem, level: float) -> DesignProblem:
    """The problem at a level: the epsilon of a discrete or Euclidean metric, else a scale."""
    metric = problem.metric
    if isinstance(metric, (Discrete, Euclidean)):
        return replace(problem, metric=replace(metric, epsilon=level, scale=1.0))
    return replace(problem, metric=level * metric)


def usual_level(problem: DesignProblem) -> float:
    """The level of the problem itself."""
    metric = problem.metric
    return metric.epsilon * metric.scale if isinstance(metric, (Discrete, Euclidean)) else 1.0


def class_tables(
    problem: DesignProblem,
    levels: Sequence[float],
    areas: Partition,
    *,
    on_note: Callable[[str], None],
    on_step: Callable[[str], None],
) -> Tables:
    """The tables of the designs at these levels; a design that does not fit the problem is noted and left out."""
    tables: dict[str, Any] = {}
    described: dict[str, Any] = {}
    for level in levels:
        at = at_level(problem, level)
        for name, make in _designs(at, level, areas).items():
            on_step(f"{name} {level:.4g}")
            try:
                made = make()
            except (InputError, SizeError, SolverError, UnsuitableError) as error:
                on_note(f"{name} does not fit this problem: {error}")
                continue
            tables[f"{name} {level:.4g}"] = table_of(made) if isinstance(made, xr.Dataset) else made
            described[f"{name} {level:.4g}"] = {"program": name, "epsilon": level}
    return tables, described


def _designs(problem: DesignProblem, level: float, areas: Partition) -> dict[str, Callable[[], Any]]:
    designs: dict[str, Callable[[], Any]] = {}
    if isinstance(problem.metric, Discrete) and problem.reports is problem.domain:
        designs[RESPONSE] = lambda: family_of(RESPONSE).table(problem, level)
    designs["optimal"] = lambda: solve(Optimal(problem=problem))
    if len(areas.names) > 1:
        designs["statistical"] = lambda: solve(StatisticalDesign(problem=problem, error="areas", areas=areas.label))
    return designs
