"""The designs of every case, solved once: what test_designs, test_coupled and test_constraints share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases import CASES
from rows import few_by_default
from tolerances import SOLVED

import mechdesign as md
from mechdesign import DesignProblem, priors
from mechdesign.extend import SOLVERS, Design, Program, Targets
from mechdesign.solvers.optimal import solve_optimal

ALL = pytest.mark.parametrize(
    "case",
    few_by_default(
        CASES, "line, zero-one", "discrete", "eikonal, 8 neighbours", "eikonal, masked", "reports apart from secrets"
    ),
)
OWN_REPORTS = [name for name in CASES if name != "reports apart from secrets"]
SLACK = 1.05  # times the minimax value: bounds that bind, with room


def designed(problem: DesignProblem, *, start: Design | None = None, **targets: Any) -> Design:
    """What the solver of the optimal program makes of a problem."""
    return solve_optimal(problem, Targets(**{"gap": 1e-3} | targets), start=start)


def design_of(program: Program, **targets: Any) -> Design:
    """What the solver of a program makes of it, before it is a mechanism."""
    return SOLVERS[program.name].solve(program, Targets(**{"gap": 1e-3} | targets))


@cache
def problem_of(case: str) -> DesignProblem:
    return CASES[case]()


def several_priors(problem: DesignProblem) -> np.ndarray:
    rng = np.random.default_rng(11)
    drawn = [priors.proportional(rng.random(problem.domain.size) ** power) for power in (1, 4)]
    return np.stack([problem.prior_array, *drawn])


def half_of_the_reports(problem: DesignProblem) -> md.programs.ReportCap:
    return md.programs.ReportCap(cap=0.7, reports=range(0, problem.reports.size, 2))


PROGRAMS = {
    "minimax": lambda problem: md.programs.Minimax(problem=problem),
    "robust": lambda problem: md.programs.Robust(problem=problem, priors=several_priors(problem)),
    "bounded": lambda problem: md.programs.Bounded(
        problem=problem, worst_loss=SLACK * solved(problem.parameters["case"], "minimax").attrs["objective"]
    ),
    "constrained": lambda problem: md.programs.Constrained(
        problem=problem,
        constraints=[half_of_the_reports(problem), md.programs.RequiredReport(report=1, least=0.03, secrets=[0])],
    ),
}
COUPLED = pytest.mark.parametrize("program", PROGRAMS)


def program_of(case: str, program: str) -> Program:
    made = problem_of(case)
    object.__setattr__(made, "parameters", {"case": case})
    return PROGRAMS[program](made)


@cache
def solved(case: str, program: str) -> xr.Dataset:
    return md.solve(program_of(case, program), gap=SOLVED)


@cache
def optimum(case: str) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem_of(case)), gap=SOLVED)


def table_of(mechanism: xr.Dataset) -> np.ndarray:
    return md.probabilities(mechanism).values


def loss_at_secrets(mechanism: xr.Dataset, problem: DesignProblem) -> np.ndarray:
    return (problem.loss_matrix * table_of(mechanism)).sum(axis=1)
