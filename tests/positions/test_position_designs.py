"""Designs between positions: against Clarabel, against sampled gradients, and their bounds."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from fixtures.integer_oracles import mean_cost
from fixtures.mechanisms import design_of
from fixtures.rows import few_by_default
from fixtures.tolerances import ORACLE
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign import DesignProblem, Discrete, Domain, Eikonal, Euclidean, PrivacyLevel, priors
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.extend import SolveResult
from mechdesign.losses import LOSSES
from mechdesign.positions import Positions
from mechdesign.positions import solve as between
from mechdesign.positions import spline as spline_laplace
from mechdesign.positions.repair import repair
from mechdesign.positions.solve import cell_lower_bound
from mechdesign.positions.symmetry import Orbits, position_orbits

GAP = 1e-6
RESIDUAL = 1e-5  # of a bound from a point whose equations hold to the gap
PLANE_WAVE = 0.02  # relative: slack of the gradient's bound with cones at eps h = 0.3


def square(side: int, epsilon: float = 0.4, loss: str = "squared", shape: tuple[int, int] | None = None, **given):
    domain = Domain.grid(shape or (side, side), cell=1.0, unit="cell", **given)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit="cell"),
        prior=priors.uniform(domain),
        loss=LOSSES[loss],
    )


def varying() -> DesignProblem:
    domain = Domain.grid((3, 4), cell=0.5, unit="cell")
    corners = Domain.grid((4, 5), cell=0.5, unit="cell", origin=(-0.25, -0.25))
    level = PrivacyLevel.from_values(corners, np.random.default_rng(1).uniform(0.5, 1.0, (4, 5)))
    prior = np.random.default_rng(2).dirichlet(np.full(12, 4.0))
    return DesignProblem(domain=domain, metric=Eikonal(level=level), prior=prior, loss=LOSSES["squared"])


def masked_problem() -> DesignProblem:
    mask = np.ones((3, 4), bool)
    mask[1, 1] = mask[0, 3] = False
    return square(0, shape=(3, 4), mask=mask)


def group(program: Positions) -> Orbits:
    return position_orbits(program)[0]


CASES = {
    "square": lambda: Positions(square(4)),
    "rectangle, distance": lambda: Positions(square(0, loss="distance", shape=(2, 4))),
    "varying level": lambda: Positions(varying()),
    "masked": lambda: Positions(masked_problem()),
    "8 x 8": lambda: Positions(square(8)),
}


@cache
def design_case(case: str) -> SolveResult:
    return design_of(CASES[case](), gap=GAP)


@pytest.mark.parametrize("case", few_by_default(CASES, "rectangle, distance", "varying level"))
def test_design_equals_statement_by_clarabel(case: str) -> None:
    program, found = CASES[case](), design_case(case)
    stated = program.statement()
    stated.solve(solver="CLARABEL")
    assert found.stopped == "gap"
    assert found.lower_bound <= stated.value * (1 + ORACLE)
    assert stated.value * (1 - ORACLE) <= found.objective <= stated.value * (1 + 3 * GAP)
    assert program.patches.breaches(found.mass) == 0
    assert (found.mass.sum(axis=1) == ROW_SUM).all()


@pytest.mark.usefixtures("coarse_any_bound")
def test_symmetry_does_not_change_result() -> None:
    assert [len(group(CASES[case]()).ways) for case in CASES] == [8, 4, 1, 1, 8]
    program = CASES["square"]()
    tilted = program.problem.prior_array * np.linspace(1, 1 + 1e-5, 16)
    alone = Positions(
        DesignProblem(
            domain=program.problem.domain,
            metric=program.problem.metric,
            prior=tilted / tilted.sum(),
            loss=program.problem.loss,
        )
    )
    assert len(group(alone).ways) == 1
    assert design_of(alone, gap=GAP).objective == pytest.approx(design_case("square").objective, rel=1e-4)


@pytest.mark.parametrize("case", few_by_default(["square", "varying level"], "varying level"))
def test_gradients_are_within_level(case: str) -> None:
    """By derivatives of the spline itself, with the levels of the metric: cones suffice, and are nearly attained."""
    program = CASES[case]()
    problem, found = program.problem, design_case(case)
    table, side = found.mass / float(ROW_SUM), program.patches.side
    largest = 0.0
    for s, t in product(np.linspace(-0.5, 0.5, 7), repeat=2):
        w = [np.array([(0.5 - a) ** 2 / 2, 0.75 - a * a, (0.5 + a) ** 2 / 2]) for a in (s, t)]
        d = [np.array([a - 0.5, -2 * a, a + 0.5]) for a in (s, t)]
        rows = table[program.patches.around].reshape(-1, 3, 3, table.shape[1])
        p, gx, gy = (np.einsum("i,j,uijy->uy", *pair, rows) for pair in (w, (d[0], w[1]), (w[0], d[1])))
        points = problem.domain.points + side * np.array([s, t])
        level = 0.4 if case == "square" else problem.metric.level.at(points)[:, None]
        largest = max(largest, float((np.hypot(gx, gy) / (side * level * p)).max()))
    assert 1 - PLANE_WAVE - 0.1 * (case != "square") <= largest <= 1


def test_lower_corner_levels_cost_more() -> None:
    problem = square(4)
    lower = Positions(problem, corner_level=np.full((16, 4), 0.3))
    assert design_of(lower, gap=GAP).lower_bound > design_case("square").objective


@pytest.mark.usefixtures("coarse_any_bound")
def test_bound_holds_if_search_is_cut_short() -> None:
    program = CASES["varying level"]()
    whole, early = design_case("varying level"), design_of(program, gap=GAP, time_limit=1e-9)
    assert early.stopped == "time"
    assert early.lower_bound <= whole.objective
    assert program.patches.breaches(early.mass) == 0


def test_unsuitable_problems_are_refused() -> None:
    line = Domain.grid(4, cell=1.0, unit="cell")
    euclidean = Euclidean(epsilon=0.4, unit="cell")
    for domain, metric, loss in (
        (line, euclidean, "squared"),
        (Domain.grid((2, 2), cell=(1.0, 2.0), unit="cell"), euclidean, "squared"),
        (Domain.grid((2, 2), cell=1.0, unit="cell"), Discrete(epsilon=0.4), "squared"),
        (Domain.grid((2, 2), cell=1.0, unit="cell"), euclidean, "zero-one"),
    ):
        problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=LOSSES[loss])
        with pytest.raises(UnsuitableError):
            design_of(Positions(problem), gap=GAP)
    for wrong in (np.ones(4), np.zeros((16, 4)), np.full((16, 4), np.nan)):
        with pytest.raises(InputError, match="corner_level"):
            Positions(square(4), corner_level=wrong)


def test_too_large_blocks_are_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=100_000))
    with pytest.raises(SizeError, match="method columns"):
        design_of(Positions(square(4)), gap=GAP, method="cones")


@pytest.mark.study
@pytest.mark.parametrize(("epsilon", "most"), [(0.05, 0.1), (0.1, 0.3), (0.25, 1.5), (0.5, 6.0)])
def test_price_on_twenty_by_twenty_cells(epsilon: float, most: float) -> None:
    """In percent of a bound between centres, which the same method proves (docs/results/positions.md)."""
    program = Positions(square(20, epsilon))
    found = design_of(program, gap=1e-3)
    bound = cell_lower_bound(program, tolerance=5e-4, deadline=np.inf)
    assert found.stopped == "gap"
    assert bound is not None
    assert 0 < 100 * (found.objective / bound - 1) <= most
    assert found.parameters.get("cell_lower_bound", bound) == pytest.approx(bound, rel=1e-3)  # in time or not


def test_level_above_four_nats_counts_as_four() -> None:
    """The check of integers takes them for four: the repair of wider cones would cost more than they gain."""
    wide, four = (design_of(Positions(square(4, epsilon)), gap=GAP, bound=False) for epsilon in (9.0, 4.0))
    assert wide.stopped == "gap"
    assert wide.objective == pytest.approx(four.objective, rel=RESIDUAL)


@pytest.mark.parametrize("seconds", few_by_default([1e-9, 0.1], 1e-9))
def test_stopped_design_is_no_worse_than_noise(seconds: float) -> None:
    """Clamped noise and the best constant report, from their own tables; no bound below 0 is kept."""
    program = Positions(square(7))
    found = design_of(program, gap=GAP, time_limit=seconds)
    clamped = spline_laplace.spline_laplace(program.problem)["mass"].values
    known = mean_cost(clamped, program.cost), float(program.cost.sum(axis=0).min())
    assert found.stopped == "time"
    assert found.objective <= min(known) * (1 + RESIDUAL)
    assert program.patches.breaches(found.mass) == 0
    assert (found.lower_bound > 0) == (len(found.dual) > 0)


@pytest.mark.usefixtures("coarse_any_bound")
def test_reports_may_be_some_cells() -> None:
    """A rectangle with a corner without people, which is never reported: against Clarabel, by cones and by columns."""
    whole, mask = square(0, shape=(3, 4), loss="distance"), np.ones((3, 4), bool)
    mask[0, 2:] = False
    prior = mask.ravel() / mask.sum()
    problem = replace(whole, prior=prior, reports=Domain.grid((3, 4), cell=1.0, unit="cell", mask=mask))
    program = Positions(problem)
    by_cones, by_columns = (design_of(program, gap=GAP, method=method) for method in ("cones", "columns"))
    stated = program.statement()
    stated.solve(solver="CLARABEL")
    assert by_cones.mass.shape == by_columns.mass.shape == (12, 10)
    assert by_cones.lower_bound <= stated.value * (1 + ORACLE)
    assert stated.value * (1 - ORACLE) <= by_cones.objective <= stated.value * (1 + 3 * GAP)
    assert by_cones.lower_bound <= by_columns.objective <= 1.2 * by_cones.objective
    assert program.patches.breaches(by_cones.mass) == program.patches.breaches(by_columns.mass) == 0


def test_ctrl_c_in_bound_keeps_design(monkeypatch):
    """It comes before the search for that bound begins, waits, and ends it: the design is as without the bound."""
    real_near_edges = between.near_edges

    def interrupt(*arguments):
        signal.raise_signal(signal.SIGINT)
        return real_near_edges(*arguments)

    monkeypatch.setattr(between, "near_edges", interrupt)
    mechanism = md.solve(CASES["square"](), gap=0.01, bound=True)
    assert mechanism.attrs["stopped"] == "gap"
    assert "price" not in json.loads(mechanism.attrs["parameters"])
    assert md.verify(mechanism).certified


def test_column_progress_names_inner_gap():
    seen = []
    md.solve(CASES["square"](), method="columns", on_progress=seen.append)
    columns = [str(state) for state in seen if state.method == "columns"]
    assert columns
    assert all(text.startswith("inner gap ") and " %, columns, " in text for text in columns)


def test_time_limit_at_low_level_gives_design():
    """Clamped noise, computed besides the cones under a time limit, would need a table of 10^17 GB."""
    mechanism = md.solve(Positions(square(4, epsilon=1e-9, loss="distance")), time_limit=1e-9)
    assert mechanism.attrs["stopped"] == "time"
    assert md.verify(mechanism).certified


@pytest.mark.parametrize("epsilon", [1e-10, 3e-13, 1e-13])
def test_low_level_design_beats_constant_report(epsilon):
    """The repair of the table of the cones costs a third there; the bound is still that of the cones."""
    program = Positions(square(4, epsilon=epsilon, loss="distance"))
    mechanism = md.solve(program)
    assert mechanism.attrs["objective"] <= program.cost.sum(axis=0).min() * (1 + 1e-5)
    assert md.verify(mechanism).certified


def test_too_low_levels_are_refused_with_remedy():
    with pytest.raises(UnsuitableError, match="too low to certify") as caught:
        repair(np.full((16, 16), 1 / 16), Positions(square(4, epsilon=1e-16)).patches)
    assert caught.value.field == "epsilon"
    assert "protect cells" in caught.value.remedy
