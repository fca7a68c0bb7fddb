"""The table of programs: how each is made for a design problem and solved. A program is added as one row here.

test_whole_path.py runs every row on every case of `cases.SMALL`; kinds.py makes files of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from cases import prior_of

import mechdesign as md
from mechdesign.programs import Program

WORST = 1.1  # times the largest loss of the best constant report: a bound that is kept, with room


@dataclass(frozen=True)
class Row:
    """How to make a program of a problem, and the options of `md.solve`."""

    make: Callable[[md.DesignProblem], Program]
    options: dict[str, Any]
    rounds: int | None = None  # of factored weights

    def solve(self, problem: md.DesignProblem) -> xr.Dataset:
        """The mechanism of the program."""
        options = None if self.rounds is None else md.factored.FactoredOptions(rounds=self.rounds)
        return md.solve(self.make(problem), options=options, **self.options)


def _row(make: Callable[..., Program], *, rounds: int | None = None, **options: Any) -> Row:
    return Row(make=make, options=options, rounds=rounds)


def _query(problem: md.DesignProblem) -> Program:
    """Every second secret has the other answer, where the problem asks no query of its own."""
    if problem.query is None:
        labels = np.arange(problem.domain.size) % 2
        problem = md.losses.query_problem(
            domain=problem.domain, metric=problem.metric, prior=problem.prior, query=labels
        )
    return md.programs.QueryWeights(problem=problem)


def _robust(problem: md.DesignProblem) -> Program:
    return md.programs.Robust(
        problem=problem, priors=np.stack([problem.prior_array, prior_of(problem.domain.size, 11)])
    )


def _bounded(problem: md.DesignProblem) -> Program:
    return md.programs.Bounded(
        problem=problem, worst_loss=WORST * float(problem.loss_matrix[:, problem.best_constant].max())
    )


def _constrained(problem: md.DesignProblem) -> Program:
    asked = [
        md.programs.ReportCap(cap=0.8, reports=[0]),
        md.programs.RequiredReport(report=1, least=0.1, secrets=[0]),
    ]
    return md.programs.Constrained(problem=problem, constraints=asked)


def _matched(problem: md.DesignProblem) -> Program:
    far = problem.prior_array @ problem.domain.euclidean_to(problem.reports)
    near = problem.prior_array @ problem.domain.euclidean_to(problem.reports).min(axis=1)
    return md.programs.MatchedOptimal(problem, distance=0.4 * float(near) + 0.6 * float(far.min()))


PROGRAMS: dict[str, Row] = {
    "optimal": _row(lambda problem: md.Optimal(problem=problem)),
    "optimal, columns": _row(lambda problem: md.Optimal(problem=problem), method="columns"),
    "eikonal": _row(lambda problem: md.EikonalWeights(problem=problem), method="table"),
    "eikonal, factored": _row(lambda problem: md.EikonalWeights(problem=problem), method="factored", rounds=8),
    "query": _row(_query),
    "minimax": _row(lambda problem: md.programs.Minimax(problem=problem)),
    "robust": _row(_robust),
    "bounded": _row(_bounded),
    "constrained": _row(_constrained),
    "matched": _row(_matched),
    "positions": _row(lambda problem: md.positions.Positions(problem)),
    "statistical": _row(lambda problem: md.surveys.StatisticalDesign(problem=problem), gap=0.1),
}
