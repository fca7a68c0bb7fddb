"""The eikonal weight system: closed forms, Laplace limits, the diagnosis and the remedies."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
import scipy.linalg
from fixtures.problems import CASES, grid
from fixtures.rows import few_by_default
from fixtures.tolerances import LINEAR_ALGEBRA, ORACLE

from mechdesign import (
    DesignProblem,
    Eikonal,
    EikonalWeights,
    Euclidean,
    Optimal,
    PrivacyLevel,
    Raster,
    load_problem,
    priors,
    solve,
    verify,
)
from mechdesign.errors import InputError
from mechdesign.extend import Metric
from mechdesign.losses import SquaredDistance
from mechdesign.problem.fast_marching import fast_marching, fast_marching_kernel
from mechdesign.solvers.eikonal import weights as eikonal
from mechdesign.solvers.eikonal.edge_budgets import edge_budget
from mechdesign.solvers.eikonal.negative_weights import diagnose
from mechdesign.solvers.eikonal.padding import pad_problem

PHILADELPHIA = 0.77062  # expected squared loss at 15 x 15, 8 neighbours, to five decimals


def flat(shape: int | tuple[int, ...], epsilon: float, metric: Metric | None = None) -> DesignProblem:
    domain = grid(shape)
    metric = metric or Eikonal(level=PrivacyLevel.constant(epsilon, "cell"), stencil=8)
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=SquaredDistance())


def weights(problem: DesignProblem) -> np.ndarray:
    kernel = EikonalWeights(problem=problem).kernel()
    return scipy.linalg.solve(kernel, np.ones(len(kernel)))


@cache
def sharp_hill() -> DesignProblem:
    """A level that rises from 0.4 to 1.6 over one cell: at the foot of the hill Laplacian(log eps) exceeds eps^2."""
    axis = np.arange(13) + 0.5
    x, y = np.meshgrid(axis, axis, indexing="ij")
    values = 0.4 + 1.2 / (1.0 + np.exp(2.0 * (np.hypot(x - 6.5, y - 6.5) - 2.5)))
    level = PrivacyLevel(raster=Raster(x=axis, y=axis, values=values, unit="cell"), extend=True)
    return flat((13, 13), 1.0, Eikonal(level=level, stencil=16))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_weights_on_a_line(epsilon: float) -> None:
    table = weights(flat(12, epsilon))
    expected = np.full(12, math.tanh(epsilon / 2))
    expected[[0, -1]] = 1 / (1 + math.exp(-epsilon))
    assert np.abs(table - expected).max() <= LINEAR_ALGEBRA / epsilon


@pytest.mark.parametrize(("epsilon", "limit"), [(1.0, 1.8413), (0.5, 1.9590), (0.25, 1.9896), (0.06, 1.9994)], ids=str)
def test_laplace_limit_on_a_line(epsilon: float, limit: float) -> None:
    """MSE eps^2 in the middle of a long line is 2 e^{-a} (a / (1 - e^{-a}))^2 with a = eps h, and tends to 2."""
    count = 2 * math.ceil(25 / epsilon) + 1
    problem = flat(count, epsilon)
    middle = count // 2
    row = np.exp(-problem.distances[middle]) * weights(problem)
    error = float(row @ (np.arange(count) - middle) ** 2) * epsilon**2
    exact = 2 * math.exp(-epsilon) * (epsilon / -math.expm1(-epsilon)) ** 2
    assert exact == pytest.approx(limit, abs=5e-4)
    assert error == pytest.approx(exact, rel=1e-6)
    assert error < 2


@pytest.mark.parametrize(
    ("epsilon", "count", "limit"),
    few_by_default([(1.0, 35, 5.789), (0.75, 41, 5.9092), (0.5, 65, 5.973)], (1.0, 35, 5.789)),
)
def test_laplace_limit_in_the_plane(epsilon: float, count: int, limit: float) -> None:
    """MSE eps^2 of the middle row under the Euclidean metric tends to 6; second route: the sum over the lattice."""
    problem = flat((count, count), epsilon, Euclidean(epsilon=epsilon, unit="cell"))
    kernel = np.exp(-epsilon * problem.domain.euclidean_to(problem.domain))
    middle = problem.domain.size // 2
    solved = scipy.linalg.solve(kernel, np.ones(len(kernel)), assume_a="pos")
    distance = problem.domain.euclidean_to(problem.domain)[middle]
    error = float((kernel[middle] * solved) @ distance**2) * epsilon**2
    step = np.arange(-200, 201)
    radius = np.hypot(step[:, None], step[None, :])
    lattice = np.exp(-epsilon * radius)
    exact = float((lattice * radius**2).sum() / lattice.sum()) * epsilon**2
    assert exact == pytest.approx(limit, rel=5e-4)
    assert error == pytest.approx(exact, rel=2e-3)


def test_the_statement_has_the_same_weights() -> None:
    problem = CASES["eikonal, 8 neighbours"]()
    program = EikonalWeights(problem=problem)
    statement = program.statement()
    assert statement.is_dcp()
    assert statement.solve(solver="HIGHS") == pytest.approx(
        float((problem.weighted_loss * program.kernel()).sum(axis=0) @ weights(problem)), rel=ORACLE
    )
    assert statement.variables()[0].value == pytest.approx(weights(problem), abs=ORACLE)


def test_philadelphia() -> None:
    mechanism = solve(EikonalWeights(problem=load_problem("philadelphia")))
    assert round(mechanism.attrs["expected_loss"], 5) == PHILADELPHIA
    assert json.loads(mechanism.attrs["parameters"])["negative_weights"] == 0
    assert verify(mechanism).certified
    optimum = solve(Optimal(problem=load_problem("philadelphia"))).attrs
    assert mechanism.attrs["lower_bound"] <= optimum["expected_loss"] <= mechanism.attrs["expected_loss"]


@pytest.mark.parametrize("epsilon", few_by_default([0.5, 0.3], 0.5))
def test_small_levels_fail_at_the_boundary(epsilon: float) -> None:
    problem = flat((7, 7), epsilon)
    signed = weights(problem)
    diagnosis = diagnose(problem, signed)
    assert len(diagnosis.cells) == (signed < 0).sum() > 0
    assert set(diagnosis.cause) == {"boundary"}
    assert (diagnosis.ring[diagnosis.cells] == 1).any()
    assert "boundary" in diagnosis.summary()
    mechanism = solve(EikonalWeights(problem=problem))
    parameters = json.loads(mechanism.attrs["parameters"])
    assert parameters["negative_weights"] == parameters["negative_by_boundary"] == len(diagnosis.cells)
    assert "frame" in parameters["remedy"]
    assert verify(mechanism).certified
    optimum = solve(Optimal(problem=problem), gap=1e-3).attrs
    assert mechanism.attrs["expected_loss"] >= optimum["lower_bound"]
    kernel = EikonalWeights(problem=problem).kernel()
    signed_loss = float((problem.weighted_loss * kernel).sum(axis=0) @ signed)
    assert mechanism.attrs["expected_loss"] <= 1.15 * signed_loss


def test_large_level_has_no_negative_weights() -> None:
    assert weights(flat((10, 10), 0.9)).min() > 0


@pytest.mark.study
def test_sharp_levels_fail_by_curvature() -> None:
    problem = sharp_hill()
    signed = weights(problem)
    diagnosis = diagnose(problem, signed)
    inside = [c for c in diagnosis.cells if diagnosis.ring[c] >= 3]
    assert inside
    cause = dict(zip(diagnosis.cells, diagnosis.cause, strict=True))
    assert sum(cause[c] == "curvature" for c in inside) >= 0.8 * len(inside)
    mechanism = solve(EikonalWeights(problem=problem))
    assert json.loads(mechanism.attrs["parameters"])["negative_by_curvature"] > 0
    assert verify(mechanism).certified


@pytest.mark.parametrize("limit", [0, 10**9])
def test_either_remedy_is_private(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eikonal, "LP_ENTRIES", limit)
    mechanism = solve(EikonalWeights(problem=flat((6, 6), 0.5)))
    assert ("linear program" in json.loads(mechanism.attrs["parameters"])["remedy"]) == (limit > 0)
    assert verify(mechanism).certified


def test_edge_budgets_respect_every_edge() -> None:
    """Before any repair the table of the remedy satisfies the claim to rounding; the signed solution does not."""
    problem = sharp_hill()
    table, late = edge_budget(problem, pad_problem(problem))
    assert not late
    tail, head, length = problem.edges.both_ways()
    rise = (np.log(table[tail]) - np.log(table[head])).max(axis=1)
    assert (rise <= length + 1e-9).all()
    assert table.sum(axis=1) == pytest.approx(1.0, abs=LINEAR_ALGEBRA)
    signed_loss = float(
        (problem.weighted_loss * EikonalWeights(problem=problem).kernel()).sum(axis=0) @ weights(problem)
    )
    assert (problem.weighted_loss * table).sum() <= 1.15 * signed_loss


def test_points_are_not_padded() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        problem = CASES["scattered points"]()
        domain = type(problem.domain).points_at(rng.uniform(0, 1.5, (9, 2)), unit="km")
        crowded = DesignProblem(domain=domain, metric=problem.metric, prior=priors.uniform(domain), loss=problem.loss)
        if weights(crowded).min() < 0:
            break
    mechanism = solve(EikonalWeights(problem=crowded))
    assert "frame of 0 cells" in json.loads(mechanism.attrs["parameters"])["remedy"]
    assert json.loads(mechanism.attrs["parameters"])["diagnosis"].count("unknown") == 1
    assert verify(mechanism).certified


@pytest.mark.usefixtures("skfmm")
def test_fast_marching_is_private() -> None:
    mechanism = solve(EikonalWeights(problem=load_problem("philadelphia", cells=10), distances="fast-marching"))
    graph = solve(EikonalWeights(problem=load_problem("philadelphia", cells=10)))
    assert verify(mechanism).certified
    assert graph.attrs["lower_bound"] <= mechanism.attrs["expected_loss"] <= 1.2 * graph.attrs["expected_loss"]


@pytest.mark.usefixtures("skfmm")
def test_fast_marching_losses_equal_the_docs() -> None:
    """Losses on 15 x 15 cells; the overshoot along edges, and the cut of the minorant, from the fields themselves."""
    problem = load_problem("philadelphia", cells=15)
    losses = [
        solve(EikonalWeights(problem=problem, distances=distances), bound=False).attrs["expected_loss"]
        for distances in ("graph", "fast-marching")
    ]
    assert [round(loss, 4) for loss in losses] == [0.7706, 0.7737]
    level, edges = problem.metric.level, problem.edges
    raw = np.column_stack([fast_marching(problem.domain, level, y) for y in range(problem.domain.size)])
    rise = np.abs(raw[edges.tail] - raw[edges.head]) / edges.length[:, None]
    assert round(float(rise.max()), 2) == 1.54
    assert round(float((rise > 1 + 1e-9).mean()), 2) == 0.11
    away = raw > 0
    taken = 1 - fast_marching_kernel(problem.domain, level, edges)[away] / raw[away]
    assert round(float(taken.mean()), 3) == 0.014
    assert round(float(taken.max()), 2) == 0.27


@pytest.mark.parametrize(
    ("case", "given", "field"),
    [
        ("reports apart from secrets", {}, "reports"),
        ("eikonal, 8 neighbours", {"distances": "sweeping"}, "distances"),
        ("discrete", {"distances": "fast-marching"}, "distances"),
    ],
)
def test_bad_programs(case: str, given: dict[str, str], field: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(EikonalWeights(problem=CASES[case](), **given))
    assert caught.value.field == field
