"""Column generation with multipliers in a box: by all pairs and by edges, against HiGHS and against vertices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fixtures.bump_rasters import bump_map
from fixtures.integer_oracles import are_rows, reference_violations
from fixtures.mechanisms import optimal_design
from fixtures.problems import grid
from fixtures.rows import few_by_default
from fixtures.tolerances import ORACLE, SOLVED

import mechdesign as md
from mechdesign import DesignProblem, Domain, Euclidean, Optimal, load_problem
from mechdesign.losses import Distance, SquaredDistance
from mechdesign.solvers import masters, optimal, routes
from mechdesign.solvers.choose import Attempt

GAP = 1e-3


def scattered_problem(
    count: int, *, level: float = 0.01, seed: int = 0, zeros: float = 0.0, squared: bool = False, reports: int = 0
) -> DesignProblem:
    """Places in a square of 1 km with all pairs as edges; a share of the priors is zero."""
    rng = np.random.default_rng(seed)
    domain = Domain.points_at(rng.uniform(0, 1000, (count, 2)), unit="m")
    prior = rng.uniform(0.2, 1.0, count) * (rng.random(count) >= zeros)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=level, unit="m"),
        prior=prior / prior.sum(),
        loss=SquaredDistance() if squared else Distance(),
        reports=Domain.points_at(domain.points[:reports], unit="m") if reports else None,
    )


def lattice(shape: tuple[int, ...], epsilon: float = 0.6) -> DesignProblem:
    mask = np.ones(shape, bool)
    if shape == (7, 6):
        mask[4:, 4:] = False  # paths must go around the corner
    domain = grid(shape, mask=mask)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit="cell"),
        prior=np.full(domain.size, 1 / domain.size),
        loss=Distance(),
    )


CASES: dict[str, Callable[[], DesignProblem]] = {
    "pairs": lambda: scattered_problem(20),
    "short pairs": lambda: scattered_problem(18, level=0.002, seed=1, squared=True),
    "priors of zero": lambda: scattered_problem(22, level=0.02, seed=2, zeros=0.6),
    "fewer reports": lambda: scattered_problem(14, level=0.004, seed=3, reports=6),
    "lattice": lambda: lattice((5, 5)),
    "lattice with a corner": lambda: lattice((7, 6)),
    "multiple of a metric": lambda: replace(lattice((4, 6)), metric=0.5 * Euclidean(epsilon=1.2, unit="cell")),
    "edges": lambda: load_problem("philadelphia", cells=6, extent=3.0),
    "long edges": lambda: load_problem("philadelphia", cells=6),
}


@cache
def case(name: str) -> DesignProblem:
    return CASES[name]()


@cache
def optimum(name: str) -> tuple[float, float]:
    """Bounds of the whole program by HiGHS."""
    whole = optimal_design(case(name), gap=1e-5, method="highs")
    return whole.lower_bound, whole.loss


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Force columns by the master in a box, whatever the edges."""
    monkeypatch.setattr(optimal, "optimal_attempts", lambda problem, method: [Attempt.BOXES])


@pytest.mark.parametrize(
    ("name", "master"),
    few_by_default(
        itertools.product(CASES, ("boxes", "vertices", "boxes, then vertices")),
        ("fewer reports", "boxes"),
        ("lattice", "vertices"),
        ("long edges", "boxes, then vertices"),
    ),
)
def test_interval_contains_whole_program_optimum(name: str, master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [Attempt[name.upper()] for name in master.split(", then ")]
    monkeypatch.setattr(optimal, "optimal_attempts", lambda problem, method: attempts)
    low, high = optimum(name)
    mechanism = md.solve(Optimal(problem=case(name)), gap=GAP, method="columns")
    attrs = mechanism.attrs
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound"] <= high * (1 + SOLVED)
    assert attrs["expected_loss"] >= low * (1 - SOLVED)
    assert attrs["expected_loss"] - attrs["lower_bound"] <= GAP * attrs["expected_loss"]
    assert are_rows(mechanism["mass"].values)
    assert reference_violations(mechanism["mass"].values, case(name).edges) == 0
    checked = md.verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked


def test_optimum_equals_the_statement(boxes: None) -> None:
    problem = scattered_problem(8, level=0.003, seed=5)
    stated = Optimal(problem=problem).statement().solve()
    design = optimal_design(problem, gap=1e-5)
    assert design.lower_bound <= stated * (1 + ORACLE)
    assert design.loss >= stated * (1 - ORACLE)


def test_vertices_and_boxes_agree() -> None:
    problem = load_problem("philadelphia", cells=10)
    designs = {}
    for only in (Attempt.VERTICES, Attempt.BOXES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optimal, "optimal_attempts", lambda problem, method, only=only: [only])
            designs[only] = optimal_design(problem, gap=1e-4)
    assert max(design.lower_bound for design in designs.values()) <= min(design.loss for design in designs.values())
    assert {design.stopped for design in designs.values()} == {"gap"}


def test_orbit_representatives_enclose_the_optimum(boxes: None) -> None:
    """With symmetry and without: both intervals contain the optimum, and a sixth of the reports is priced."""
    problem, designs = lattice((7, 7), 0.4), {}
    for ways in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not ways:
                patch.setattr(routes, "symmetries", lambda problem, matrices: [])
            seen: list[Any] = []
            designs[ways] = optimal_design(problem, gap=GAP, on_progress=seen.append)
        assert seen[-1].constraints == (10 if ways else 49)
    assert max(design.lower_bound for design in designs.values()) <= min(design.loss for design in designs.values())
    assert {design.stopped for design in designs.values()} == {"gap"}


def test_wrong_symmetry_keeps_bounds_valid(boxes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flips of a map whose prior they change: the result is still private, and its bound holds."""
    problem = replace(lattice((4, 4), 0.4), prior=np.linspace(1, 3, 16) / 32)
    low, high = (optimal_design(problem, gap=GAP), optimal_design(problem, gap=GAP, method="highs"))
    flip = np.arange(16)[::-1].copy()
    monkeypatch.setattr(routes, "symmetries", lambda problem, matrices: [np.arange(16), flip])
    false = optimal_design(problem, gap=GAP, time_limit=20)
    assert reference_violations(false.mass, problem.edges) == 0
    assert 0 < false.lower_bound <= min(low.loss, high.loss)
    assert false.loss >= low.lower_bound


def test_gap_stays_open_without_pricing(monkeypatch: pytest.MonkeyPatch, boxes: None) -> None:
    """The first columns of each report give a private table that is not optimal."""
    taken = masters.BoxMaster.add

    def first(self: masters.BoxMaster, rays: np.ndarray, reports: np.ndarray) -> None:
        if self.variables < 2 * len(self.pricer.cost):
            taken(self, rays, reports)

    monkeypatch.setattr(masters.BoxMaster, "add", first)
    design = optimal_design(case("pairs"), gap=GAP)
    assert design.stopped == "precision"
    assert design.loss - design.lower_bound > GAP * design.loss
    assert reference_violations(design.mass, case("pairs").edges) == 0


@pytest.mark.parametrize("ends", ["time", "interrupt"])
def test_early_end_keeps_table_and_bound(ends: str, boxes: None) -> None:
    def stop(state: Any) -> None:
        if ends == "interrupt" and state.round == 6:
            raise KeyboardInterrupt

    limit = 1e-6 if ends == "time" else np.inf
    design = optimal_design(case("pairs"), gap=1e-9, time_limit=limit, on_progress=stop)
    assert design.stopped == ends
    assert reference_violations(design.mass, case("pairs").edges) == 0
    assert 0 < design.lower_bound <= optimum("pairs")[1] * (1 + SOLVED)


@pytest.mark.parametrize("count", few_by_default([16, 24, 40, 80], 16))
def test_scattered_places_with_zeros_and_long_pairs(count: int) -> None:
    """0.03 nats per m, pairs of up to 40 nats, four of five priors zero: HiGHS on the whole program says the same."""
    problem = scattered_problem(count, level=0.03, zeros=0.8, seed=count)
    design = optimal_design(problem, gap=1e-2)
    assert design.stopped == "gap"
    if count <= 40:
        whole = optimal_design(problem, gap=1e-2, method="highs")
        assert design.lower_bound <= whole.loss * (1 + SOLVED)
        assert whole.lower_bound <= design.loss * (1 + SOLVED)


@pytest.mark.study
@pytest.mark.parametrize("seed", range(5))
def test_bump_maps_of_20_cells_within_the_gap(seed: int, tmp_path: Path) -> None:
    assert gap_of(solve_certified(bump_map(tmp_path, seed, 20))) <= GAP


@pytest.mark.study
@pytest.mark.parametrize("cells", [12, 20])
def test_short_edges_within_the_gap(cells: int) -> None:
    assert gap_of(solve_certified(load_problem("philadelphia", cells=cells, extent=cells / 2))) <= GAP


@pytest.mark.study
@pytest.mark.parametrize(("count", "seed"), [(60, 0), (100, 0), (150, 1), (200, 0), (300, 0)])
def test_scattered_places_within_the_gap(count: int, seed: int) -> None:
    assert gap_of(solve_certified(scattered_problem(count, seed=seed))) <= GAP


@pytest.mark.study
def test_city_with_a_steep_prior() -> None:
    """Short edges, and priors that differ by a factor of some thousand: to a gap of 1 %."""
    problem = load_problem("philadelphia", cells=26, extent=35.0)
    offset = problem.domain.points - problem.domain.points.mean(axis=0)
    away = np.hypot(*offset.T)
    prior = np.exp(-9 * away / away.max() + np.random.default_rng(1).standard_normal(len(away)))
    mechanism = md.solve(Optimal(problem=replace(problem, prior=prior / prior.sum())), gap=1e-2, time_limit=150)
    assert mechanism.attrs["stopped"] == "gap"
    assert md.verify(mechanism).certified


@pytest.mark.study
def test_central_paris_over_all_pairs() -> None:
    mechanism = solve_certified(load_problem("paris"))
    assert gap_of(mechanism) <= GAP
    assert mechanism.attrs["stopped"] == "gap"
    assert "lower_bound_of" not in mechanism.attrs
    # the optimum lies between 432.48 and 432.63, as a run to a smaller gap has proved (docs/results/sizes.md)
    assert mechanism.attrs["lower_bound"] < 432.63
    assert 432.48 < mechanism.attrs["expected_loss"] < 432.75


def solve_certified(problem: DesignProblem) -> xr.Dataset:
    """The design at the gap of this file; its claim and its lower bound are certified."""
    mechanism = md.solve(Optimal(problem=problem), gap=GAP)
    assert mechanism.attrs["stopped"] == "gap"
    checked = md.verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked
    return mechanism


def gap_of(mechanism: xr.Dataset) -> float:
    return float(1 - mechanism.attrs["lower_bound"] / mechanism.attrs["expected_loss"])
