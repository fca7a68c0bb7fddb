"""The optimal program: independent values, known optima, limits, and results when time runs out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fixtures.integer_oracles import reference_violations
from fixtures.mechanisms import optimal_design
from fixtures.problems import grid, shipped_problem
from fixtures.rows import few_by_default
from fixtures.tolerances import BLOCKS, PRINTED, RESOLVED, SOLVED
from scipy.ndimage import label

from mechdesign import (
    DesignProblem,
    Eikonal,
    EikonalWeights,
    Euclidean,
    Optimal,
    PrivacyLevel,
    baselines,
    load_problem,
    priors,
    solve,
    verify,
)
from mechdesign.base import time_budget
from mechdesign.errors import InputError, SizeError, SolverError
from mechdesign.losses import Distance, SquaredDistance, TableLoss, ZeroOne

PHILADELPHIA = 0.769355  # 15 x 15, 8 neighbours, edges integrated exactly
PHILADELPHIA_ROUNDING = 2e-6
FARTHEST = 0.190525896  # 10 x 10: the whole program at five scalings of its variables, simplex method
WRONG_QUADRATURE = 0.77135  # the optimum with one 4-point Gauss rule per edge


def test_edges_below_the_repair_take_the_constant_report() -> None:
    """Below 2^-30 nats no table is repaired. The constant report is 1e-9 of the loss from the optimum there."""
    domain = grid(4)
    problem = DesignProblem(domain, Euclidean(1e-10, unit="cell"), [0.1, 0.2, 0.3, 0.4], Distance())
    made = solve(problem)
    assert made.attrs["stopped"] == "gap"
    assert made.attrs["expected_loss"] == pytest.approx(problem.constant_loss, rel=1e-12)
    assert made.attrs["lower_bound"] >= (1 - 1e-8) * problem.constant_loss
    assert verify(made).certified


@pytest.mark.parametrize(
    ("loss", "cells"),
    few_by_default(itertools.product(("squared", "distance"), (5, 8)), ("squared", 5), ("distance", 5)),
)
def test_independent_values_on_euclidean_lattices(loss: str, cells: int) -> None:
    published = shipped_problem("euclidean").published()[f"{loss} {cells}"]
    attrs = solve(Optimal(problem=load_problem("euclidean", cells=cells, loss=loss)), gap=PRINTED / 10).attrs
    assert attrs["expected_loss"] == pytest.approx(published, rel=PRINTED)
    assert attrs["lower_bound"] == pytest.approx(published, rel=PRINTED)


@pytest.mark.parametrize(("cells", "epsilon"), [(2, 0.3), (6, 0.9), (12, 2.5)])
def test_line_gives_the_truncated_geometric(cells: int, epsilon: float) -> None:
    published = shipped_problem("line").published(cells=cells, epsilon=epsilon)["optimal"]
    attrs = solve(Optimal(problem=load_problem("line", cells=cells, epsilon=epsilon)), gap=SOLVED).attrs
    assert attrs["lower_bound"] <= published * (1 + SOLVED)
    assert attrs["expected_loss"] == pytest.approx(published, rel=SOLVED)


@pytest.mark.parametrize(("secrets", "epsilon"), [(2, 0.1), (8, 1.5), (20, 4.0)])
def test_the_discrete_metric_gives_randomized_response(secrets: int, epsilon: float) -> None:
    published = shipped_problem("discrete").published(secrets=secrets, epsilon=epsilon)["optimal"]
    attrs = solve(Optimal(problem=load_problem("discrete", secrets=secrets, epsilon=epsilon)), gap=SOLVED).attrs
    assert attrs["expected_loss"] == pytest.approx(published, rel=SOLVED)


def test_philadelphia_at_the_default_size() -> None:
    attrs = solve(Optimal(problem=load_problem("philadelphia")), gap=1e-6).attrs
    assert attrs["lower_bound"] >= PHILADELPHIA - PHILADELPHIA_ROUNDING
    assert attrs["expected_loss"] <= PHILADELPHIA + PHILADELPHIA_ROUNDING
    assert abs(attrs["expected_loss"] - WRONG_QUADRATURE) > 1e-3


@pytest.mark.parametrize("stencil", [4, 16])
def test_a_richer_stencil_is_a_stronger_claim(stencil: int) -> None:
    eight = solve(Optimal(problem=load_problem("philadelphia", cells=8)), gap=1e-6).attrs
    other = solve(Optimal(problem=load_problem("philadelphia", cells=8, stencil=stencil)), gap=1e-6).attrs
    if stencil == 4:
        assert other["expected_loss"] < eight["lower_bound"]
    else:
        assert other["lower_bound"] >= eight["lower_bound"] * (1 - 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "rest"), few_by_default(itertools.product([0.1, 1.0, 5.0], [0.0, 1e-12, 1e-6]), (5.0, 1e-12))
)
def test_improbable_secrets_keep_the_bound_tight(epsilon: float, rest: float) -> None:
    domain = grid(40)
    prior = priors.proportional(np.r_[np.ones(20), np.full(20, rest)])
    problem = DesignProblem(domain=domain, metric=Euclidean(epsilon=epsilon, unit="cell"), prior=prior, loss=ZeroOne())
    attrs = solve(Optimal(problem=problem), gap=1e-3).attrs
    assert attrs["expected_loss"] - attrs["lower_bound"] <= 1e-3 * attrs["expected_loss"]


@pytest.mark.parametrize("method", few_by_default(("auto", "highs", "columns", "blocks"), "auto", "columns"))
def test_wide_distances_are_resolved(method: str) -> None:
    problem = load_problem("philadelphia", cells=10)  # edges of 4 to 26 nats
    design = optimal_design(problem, gap=1e-5, method=method)
    assert design.stopped == "gap"
    assert design.lower_bound <= FARTHEST <= design.loss * (1 + PRINTED)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_optimum_scales_with_the_unit_of_the_loss(unit: float) -> None:
    def bounds(values: np.ndarray) -> np.ndarray:
        domain, metric = grid(12), Euclidean(epsilon=0.5, unit="cell")
        problem = DesignProblem(
            domain=domain, metric=metric, prior=priors.uniform(domain), loss=TableLoss(values=values)
        )
        attrs = solve(Optimal(problem=problem), gap=1e-7).attrs
        return np.array([attrs["lower_bound"], attrs["expected_loss"]])

    steps = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    assert bounds(steps * unit) == pytest.approx(bounds(steps) * unit, rel=SOLVED)


@pytest.mark.parametrize("epsilon", [35.0, 1e6])
def test_zero_loss_meets_its_bound_absolutely(epsilon: float) -> None:
    attrs = solve(Optimal(problem=load_problem("line", cells=40, epsilon=epsilon))).attrs
    assert attrs["expected_loss"] < 1e-12
    assert attrs["stopped"] == "gap"


def test_limits_in_epsilon() -> None:
    def loss(epsilon: float) -> float:
        domain = grid((3, 3))
        metric = Euclidean(epsilon=epsilon, unit="cell")
        problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=SquaredDistance())
        return float(solve(Optimal(problem=problem), gap=1e-6).attrs["expected_loss"])

    best_constant = 4 / 3
    assert loss(1e-4) == pytest.approx(best_constant, rel=1e-3)
    assert loss(25.0) < 1e-8
    assert loss(0.5) > loss(1.0) > loss(2.0)


def random_problem(seed: int) -> DesignProblem:
    """Random shape, mask, level, stencil, prior (with improbable secrets) and loss."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(k) for k in rng.integers(2, 5, 2))
    mask = rng.random(shape) > 0.15
    if label(mask)[1] != 1:
        mask[:] = True
    stencil = int(rng.choice([4, 8, 16])) if mask.all() else 8
    domain = grid(shape, mask=mask)
    level = PrivacyLevel.from_values(grid(shape), np.exp(rng.uniform(np.log(0.05), np.log(4.0), shape)))
    prior = priors.proportional(rng.random(domain.size) * (rng.random(domain.size) > 0.2) + 1e-9)
    losses = (SquaredDistance(), Distance(), ZeroOne(), TableLoss(values=rng.random((domain.size, domain.size))))
    loss = losses[int(rng.integers(len(losses)))]
    return DesignProblem(domain=domain, metric=Eikonal(level=level, stencil=stencil), prior=prior, loss=loss)


@pytest.mark.parametrize("seeds", few_by_default([range(1), *(range(at, at + 8) for at in range(0, 200, 8))], range(1)))
def test_every_method_encloses_random_optima(seeds: range) -> None:
    for seed in seeds:
        problem = random_problem(seed)
        designs = [optimal_design(problem, gap=BLOCKS, method=method) for method in ("highs", "blocks", "columns")]
        assert all(reference_violations(design.mass, problem.edges) == 0 for design in designs), seed
        assert max(design.lower_bound for design in designs) <= min(design.loss for design in designs), seed
        floor = RESOLVED * problem.constant_loss
        assert all(design.loss - design.lower_bound <= BLOCKS * max(design.loss, floor) for design in designs), seed


@pytest.mark.parametrize("method", ["blocks", "columns"])
def test_progress_is_monotone(method: str) -> None:
    seen: list[Any] = []
    optimal_design(load_problem("philadelphia", cells=4, extent=8.0), gap=1e-6, method=method, on_progress=seen.append)
    assert len(seen) > 1
    assert all(a.loss >= b.loss and a.lower_bound <= b.lower_bound for a, b in pairwise(seen))
    assert all(a.seconds <= b.seconds for a, b in pairwise(seen))
    assert all(state.memory_mb > 1 for state in seen)
    assert seen[-1].gap == (seen[-1].loss - seen[-1].lower_bound) / seen[-1].loss <= 1e-6


@pytest.mark.parametrize(
    ("method", "when"),
    few_by_default([("blocks", 0), ("blocks", 1), ("blocks", 5), ("columns", 0)], ("blocks", 1), ("columns", 0)),
)
def test_interrupt_keeps_table_with_true_gap(method: str, when: int) -> None:
    calls = 0

    def stop(state: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > when:
            raise KeyboardInterrupt

    problem = load_problem("philadelphia", cells=6)
    design = optimal_design(problem, gap=1e-12, method=method, on_progress=stop)
    assert design.stopped == "interrupt"
    assert reference_violations(design.mass, problem.edges) == 0
    assert 0 <= design.lower_bound <= optimum_of_six() * (1 + SOLVED)
    assert optimum_of_six() <= design.loss * (1 + SOLVED)


@cache
def optimum_of_six() -> float:
    return optimal_design(load_problem("philadelphia", cells=6), gap=SOLVED, method="highs").loss


def test_time_running_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem("philadelphia", cells=12)
    clock = iter([0.0, 0.0, 1.0] + [100.0] * 100)
    monkeypatch.setattr(time_budget, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    design = optimal_design(problem, gap=1e-14, time_limit=50, on_progress=lambda _: None)
    assert design.stopped == "time"
    assert 0 < design.lower_bound < design.loss
    assert reference_violations(design.mass, problem.edges) == 0


def test_no_time_returns_the_exponential_mechanism() -> None:
    problem = load_problem("line")
    design = optimal_design(problem, gap=1e-3, time_limit=-1.0)
    attrs = baselines.exponential(problem).attrs
    assert design.stopped == "time"
    assert design.loss == pytest.approx(attrs["expected_loss"], rel=SOLVED)
    assert 0 <= design.lower_bound <= design.loss


def test_failing_solver_keeps_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SolverError("HiGHS gave no finite point", field="solver", value="", remedy="")

    optimum = optimum_of_six()
    monkeypatch.setattr("mechdesign.solvers.incumbent.solve_linear_program", fail)
    problem = load_problem("philadelphia", cells=6)
    design = optimal_design(problem, gap=1e-4)
    assert design.stopped == "gap"
    assert design.lower_bound <= optimum * (1 + SOLVED) <= design.loss * (1 + 2 * SOLVED)
    nothing = optimal_design(problem, gap=1e-4, method="highs")
    assert nothing.stopped == "precision"
    assert reference_violations(nothing.mass, problem.edges) == 0


def test_warm_start_gives_the_same_optimum() -> None:
    problem = load_problem("philadelphia", cells=3, extent=6.0)
    whole, half = (replace(problem, metric=factor * problem.metric) for factor in (1.0, 0.5))
    start = optimal_design(whole, gap=1e-3, method="blocks")
    cold, warm = (optimal_design(half, gap=1e-3, method="blocks", start=first) for first in (None, start))
    assert cold.stopped == warm.stopped == "gap"
    assert max(cold.lower_bound, warm.lower_bound) <= min(cold.loss, warm.loss)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="for the optimal program"):
        solve(Optimal(problem=load_problem("line")), method="magic")
    with pytest.raises(InputError, match="for the eikonal program"):
        solve(EikonalWeights(problem=load_problem("line")), method="blocks")


@pytest.mark.parametrize(
    ("given", "field"), [({"gap": 0.0}, "gap"), ({"gap": math.nan}, "gap"), ({"time_limit": 0.0}, "time-limit")]
)
def test_bad_targets(given: dict[str, float], field: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(Optimal(problem=load_problem("line")), **given)
    assert caught.value.field == field


def test_table_too_large_is_refused_early() -> None:
    with pytest.raises(SizeError, match="GB"):
        solve(Optimal(problem=load_problem("philadelphia", cells=300)))
