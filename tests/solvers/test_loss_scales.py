"""One program in other units of loss, from 1e-9 to 1e9: the same relative result and gap on every route.

Losses are multiplied as tables, or lengths are given in another unit, which multiplies losses and divides levels. The
two runs are two routes to one number; no tolerance of a solver may be absolute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import DesignProblem, Domain, Eikonal, Euclidean
from mechdesign.extend import Program
from mechdesign.problem.privacy_level import PrivacyLevel

SCALES = (1e-9, 1e9)
GAP = 1e-3
SAME = 2 * GAP  # relative: two results that each have the gap lie no further apart
ALIKE = 1e-4  # by which the gaps of two runs may differ: the multipliers that prove them need not be the same


def prior_of(size: int) -> np.ndarray:
    weights = np.random.default_rng(8).random(size) + 0.2
    return weights / weights.sum()


def eikonal(unit: float = 1.0, cells: int = 4) -> DesignProblem:
    """A map in a unit of length that makes numbers of lengths `unit` times as large."""
    domain = Domain.grid((cells, cells), unit, unit="m")
    metric = Eikonal(level=PrivacyLevel.constant(0.8 / unit, unit="m"), stencil=8)
    return DesignProblem(domain, metric, prior_of(domain.size), md.losses.Distance())


def euclidean(unit: float = 1.0) -> DesignProblem:
    domain = Domain.grid((4, 4), unit, unit="m")
    return DesignProblem(domain, Euclidean(0.8 / unit, unit="m"), prior_of(16), md.losses.Distance())


def answers(unit: float = 1.0) -> DesignProblem:
    """Few answers, each likely at secrets far from its anchor."""
    domain = Domain.grid((20,), unit, unit="m")
    return md.release.release_problem(
        domain=domain,
        metric=Euclidean(0.8 / unit, unit="m"),
        prior=prior_of(20),
        values=np.clip((domain.points[:, 0] / unit - 12) / 2, 0, 1),
        outputs=np.linspace(0, 1, 5),
    )


def labels_problem(unit: float = 1.0) -> DesignProblem:
    """Which of four columns of a map, judged by the distance to the column named."""
    problem = eikonal(unit)
    labels = np.arange(16) // 4
    return md.losses.query_problem(
        domain=problem.domain, metric=problem.metric, prior=problem.prior_array, query=labels, loss="distance"
    )


def in_loss(problem: DesignProblem, scale: float) -> DesignProblem:
    return replace(problem, loss=md.losses.TableLoss(scale * problem.loss_matrix))


@dataclass(frozen=True)
class Route:
    """A program of a problem, scaled by its losses, or by the unit of length for losses without a table.

    The objective is proportional to scale^power; power is 0 if it is not a loss.
    """

    make: Callable[[DesignProblem], Program] = md.Optimal
    problem: Callable[..., DesignProblem] = eikonal
    options: dict[str, Any] = field(default_factory=dict)
    by_length: bool = False
    power: int = 1

    def solve(self, scale: float) -> tuple[float, float]:
        """The objective and the bound, divided by the scale; the bound is nan if there is none."""
        problem = self.problem(scale) if self.by_length else in_loss(self.problem(), scale)
        program = self.make(problem)
        attrs = md.solve(program, **{"gap": GAP} | self.options).attrs
        value = attrs.get("objective", attrs["expected_loss"])
        unit = scale**self.power
        return value / unit, attrs.get("lower_bound", np.nan) / unit


def bounded_program(problem: DesignProblem) -> Program:
    return md.programs.Bounded(problem, worst_loss=1.02 * float(problem.loss_matrix[:, problem.best_constant].max()))


def robust(problem: DesignProblem) -> Program:
    return md.programs.Robust(problem, priors=[problem.prior_array, problem.prior_array[::-1]])


def capped_reports(problem: DesignProblem) -> Program:
    return md.programs.Constrained(problem, constraints=[md.programs.ReportCap(cap=0.4)])


def capped_discs(problem: DesignProblem) -> Program:
    cap = md.posteriors.PosteriorCap(radius=1.0, share=0.6, people=np.full(16, 10), centres="places")
    return md.programs.Constrained(problem, constraints=[cap])


def matched_program(problem: DesignProblem) -> Program:
    assert problem.domain.cell is not None
    return md.programs.MatchedOptimal(problem, distance=0.9 * problem.domain.cell[0])


def convex(problem: DesignProblem) -> Program:
    def spread(table):
        import cvxpy as cp

        return [cp.sum_squares(table) <= 2.0]

    return md.programs.Constrained(problem, constraints=[spread])


ROUTES = {
    "optimal": Route(),
    "highs": Route(options={"method": "highs"}),
    "columns": Route(options={"method": "columns"}),
    "blocks": Route(options={"method": "blocks"}),
    "pool": Route(options={"method": "pool"}, problem=lambda: eikonal(cells=8)),
    "answers": Route(problem=answers),
    "weights": Route(make=lambda problem: md.EikonalWeights(problem), options={"method": "table"}),
    "factored": Route(make=lambda problem: md.EikonalWeights(problem), options={"method": "factored"}, by_length=True),
    "queries": Route(make=lambda problem: md.programs.QueryWeights(problem), problem=labels_problem, by_length=True),
    "minimax": Route(make=md.programs.Minimax),
    "robust": Route(make=robust),
    "bounded": Route(make=bounded_program),
    "constrained": Route(make=capped_reports),
    "capped": Route(make=capped_discs),
    "convex": Route(make=convex),
    "matched": Route(make=matched_program, problem=euclidean, by_length=True),
    "positions": Route(make=lambda problem: md.positions.Positions(problem), problem=euclidean, by_length=True),
    "statistical": Route(make=lambda problem: md.surveys.StatisticalDesign(problem), options={"gap": 0.1}, power=0),
}

LEADING = ("optimal", "columns", "answers", "weights", "factored", "queries", "bounded", "convex", "matched")


@pytest.mark.parametrize("name", few_by_default(ROUTES, *LEADING))
def test_result_is_the_same_in_every_unit_of_loss(name):
    route = ROUTES[name]
    value, bound = route.solve(1.0)
    for scale in SCALES:
        other, other_bound = route.solve(scale)
        assert other == pytest.approx(value, rel=SAME), scale
        if not np.isnan(bound):
            assert 1 - other_bound / other <= max(GAP, 1 - bound / value + ALIKE), scale
            assert other_bound <= value * (1 + ALIKE)
