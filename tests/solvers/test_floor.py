"""No design loses more than the best closed form with its claim, and no search continues after its time."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures.integer_oracles import are_rows, reference_violations
from fixtures.mechanisms import COUPLED, optimal_design, optimum, problem_of, program_of
from fixtures.problems import CASES, grid
from fixtures.rows import few_by_default
from fixtures.tolerances import CERTIFIED, ORACLE, SPARED, UP_TO_ROUNDING

import mechdesign as md
from mechdesign import priors
from mechdesign.baselines import BASELINES
from mechdesign.closed_forms import best
from mechdesign.errors import SolverError, UnsuitableError
from mechdesign.factored import design as factored
from mechdesign.solvers import blocks
from mechdesign.solvers.cone.pricing import ConePricer, anchor_multipliers, lower_bound
from mechdesign.solvers.coupled import task_of
from mechdesign.solvers.eikonal import edge_budgets
from mechdesign.solvers.eikonal.padding import pad_problem
from mechdesign.utility import remapped_loss

NO_TIME = 1e-9  # seconds
WITHOUT_TIME = few_by_default(
    itertools.product(CASES, ("auto", "columns", "blocks", "highs")),
    ("reports apart from secrets", "auto"),
    ("eikonal, masked", "auto"),
    ("line, zero-one", "columns"),
    ("discrete", "columns"),
    ("eikonal, 8 neighbours", "blocks"),
)


def private_losses(problem: md.DesignProblem) -> dict[str, float]:
    """Remapped losses of the public baselines that satisfy the claim of a problem."""
    losses = {}
    for name, make in BASELINES.items():
        try:
            mechanism = make(problem)
        except UnsuitableError:
            continue
        if mechanism.attrs["ratio"] <= UP_TO_ROUNDING:
            losses[name] = remapped_loss(mechanism)
    return losses


def plane(side: int) -> md.DesignProblem:
    """Cells of 100 m at 0.005 nats per m, more people in a corner."""
    domain = md.Domain.grid((side, side), cell=100.0, unit="m")
    where = domain.points / domain.points.max()
    prior = priors.proportional(np.exp(-4 * (where**2).sum(axis=1)) + 0.2)
    return md.DesignProblem(
        domain=domain, metric=md.Euclidean(epsilon=0.005, unit="m"), prior=prior, loss=md.losses.Distance()
    )


@pytest.mark.parametrize(
    "case",
    few_by_default(
        CASES, "line, zero-one", "discrete", "euclidean lattice", "eikonal, masked", "reports apart from secrets"
    ),
)
def test_best_closed_form_is_certified_and_best(case: str) -> None:
    problem = problem_of(case)
    best_form = best.best_closed_form(problem)
    assert best_form.loss <= min(private_losses(problem).values()) * (1 + SPARED)
    assert reference_violations(best_form.mass, problem.edges) == 0
    assert are_rows(best_form.mass)
    every = {form.name: form.loss for form in best.certified_closed_forms(problem)}
    assert best_form.loss <= min(every.values()) * (1 + SPARED)


@pytest.mark.parametrize(("case", "method"), WITHOUT_TIME)
def test_design_without_time_is_no_worse(case: str, method: str) -> None:
    problem = problem_of(case)
    design = md.solve(problem, method=method, time_limit=NO_TIME)
    assert design.attrs["expected_loss"] <= best.best_closed_form(problem).loss
    assert 0 < design.attrs["lower_bound"] <= optimum(case).attrs["expected_loss"] * (1 + CERTIFIED)
    checked = md.verify(design)
    assert checked.certified
    assert checked.lower_bound_checked


def test_file_names_the_closed_form() -> None:
    design = md.solve(plane(8), method="blocks", time_limit=NO_TIME)
    assert design.attrs["stopped"] == "time"
    assert '"closed_form": "geometric_clamped"' in design.attrs["parameters"]
    assert "closed_form" not in md.solve(plane(4)).attrs["parameters"]


@pytest.mark.parametrize("method", ["columns", pytest.param("pool", marks=pytest.mark.exhaustive)])
def test_the_other_routes_of_tables(method: str) -> None:
    problem = plane(6)
    if method == "pool":
        level = md.PrivacyLevel.constant(0.005, unit="m")
        problem = replace(problem, metric=md.Eikonal(level=level, stencil=8))
    design = md.solve(problem, method=method, time_limit=NO_TIME)
    assert design.attrs["expected_loss"] <= best.best_closed_form(problem).loss
    assert 0 < design.attrs["lower_bound"] <= md.solve(problem).attrs["expected_loss"]
    assert md.verify(design).certified


def test_constant_report_is_returned_if_best() -> None:
    """At a tiny level the constant report is optimal, and the interior-point method may miss that."""
    problem = replace(plane(6), metric=md.Euclidean(epsilon=1e-6, unit="m"))
    design = md.solve(problem, method="blocks", gap=0.5, time_limit=NO_TIME)
    assert design.attrs["expected_loss"] <= problem.constant_loss * (1 + SPARED)


def test_level_too_small_for_repair_gets_closed_form() -> None:
    """Edges below 2^-30 nats round to 0; the constant report is proved to be as good."""
    design = md.solve(md.load_problem("line", epsilon=1e-12))
    assert design.attrs["stopped"] == "gap"
    assert '"closed_form": "constant"' in design.attrs["parameters"]
    checked = md.verify(design)
    assert checked.certified
    assert checked.lower_bound_checked


def test_noise_worse_than_a_constant_is_skipped():
    names = {form.name for form in best.certified_closed_forms(md.load_problem("line", cells=25, epsilon=1e-6))}
    assert not any("clamped" in name or "laplace" in name for name in names)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("epsilon", "name"), [(0.05, "geometric_clamped"), (0.02, "exponential")])
def test_noise_is_computed_if_its_masses_are_quick(epsilon, name):
    """At the lower level noise reaches 45 / 0.02 cells on each axis; 0.9 % less loss would take 6 times as long."""
    assert best.best_closed_form(md.load_problem("flat", cells=30, epsilon=epsilon)).name == name


@COUPLED
def test_coupled_program_starts_from_closed_forms(program: str) -> None:
    case = "line, zero-one"
    stated = program_of(case, program)
    task, wanted = task_of(stated), math.inf
    for form in best.certified_closed_forms(stated.problem):
        table = task.assess(form.mass)
        wanted = wanted if table.excess.any() else min(wanted, table.objective)
    try:
        attrs = md.solve(stated, time_limit=NO_TIME).attrs
    except SolverError:
        assert wanted == math.inf
        return
    assert attrs["objective"] <= wanted
    assert attrs["lower_bound"] <= md.solve(stated).attrs["objective"] * (1 + ORACLE)


@pytest.mark.parametrize("case", ["euclidean lattice", "scattered points", "graph, table loss"])
def test_bound_without_pricing_is_valid(case: str) -> None:
    problem = problem_of(case)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    value, dual = anchor_multipliers(pricer, problem.weighted_loss)
    priced = pricer.price(problem.weighted_loss, dual).value
    assert 0 < value <= lower_bound(dual, priced)
    assert value <= md.solve(problem).attrs["expected_loss"]


def test_short_limit_is_refused_with_estimate(monkeypatch) -> None:
    monkeypatch.setattr(best, "certifying_seconds", lambda mass, edges: 100.0)
    monkeypatch.setattr(best, "_UNTIMED_WORK", 0)
    with pytest.raises(SolverError, match=r"time_limit: is too short to certify any table of 36 x 36 .* about 221 s"):
        md.solve(plane(6), time_limit=60.0)
    assert md.solve(plane(6), time_limit=1000.0).attrs["stopped"] == "gap"


class Clock:
    """A clock that only calls advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


ITERATIONS = [(4, math.inf, 8), (4, 6.0, 5), (4, 5.5, 4), (4, 0.0, 0), (5, math.inf, 20)]


@pytest.mark.parametrize(("cells", "limit", "iterations"), few_by_default(ITERATIONS, *ITERATIONS[:4]))
def test_blocks_start_no_late_iteration(monkeypatch, cells: int, limit: float, iterations: int) -> None:
    """Every factorisation takes a second: the last one that fits is the last one that starts."""
    clock, taken = Clock(), []
    factor = blocks.BlockAlgebra.factor

    def slow(algebra, weights):
        clock.now += 1.0
        taken.append(clock.now)
        return factor(algebra, weights)

    monkeypatch.setattr(blocks.BlockAlgebra, "factor", slow)
    monkeypatch.setattr(blocks, "time", clock)
    problem = replace(plane(cells), metric=md.Eikonal(level=md.PrivacyLevel.constant(0.005, unit="m"), stencil=8))
    monkeypatch.setattr("mechdesign.base.time_budget.time", clock)
    optimal_design(problem, gap=1e-4, method="blocks", time_limit=limit)
    assert len(taken) >= iterations if limit == math.inf else len(taken) <= limit
    assert all(at <= max(limit, 0.0) for at in taken)


def test_edge_budgets_end_in_time_with_a_private_table(monkeypatch) -> None:
    clock, rounds = Clock(), []
    monkeypatch.setattr(edge_budgets, "time", clock)
    levelled = edge_budgets._level_rows

    def slow(kernel, weights):
        clock.now += 1.0
        rounds.append(clock.now)
        return levelled(kernel, weights)

    monkeypatch.setattr(edge_budgets, "_level_rows", slow)
    problem = md.load_problem("philadelphia", cells=6, extent=3.0)
    table, late = edge_budgets.edge_budget(problem, pad_problem(problem), deadline=6.0)
    assert late
    assert len(rounds) <= 6 + 1
    tail, head, length = problem.edges.both_ways()
    assert (np.log(table[tail] / table[head]) <= length[:, None] + CERTIFIED).all()


def test_weights_of_tables_and_of_factors_obey_a_limit() -> None:
    problem = md.load_problem("philadelphia", cells=6, extent=4.0)
    for method in ("table", "factored"):
        mechanism = md.solve(md.EikonalWeights(problem=problem), method=method, time_limit=NO_TIME)
        assert mechanism.attrs["stopped"] == "time"
        assert md.verify(mechanism).certified


def test_too_many_factors_are_refused_with_an_estimate(monkeypatch) -> None:
    """Every row takes 0.2 s on the clock of the test, three passes 0.2 * 64 * 3 s, on several cores less."""
    clock = Clock()
    monkeypatch.setattr(factored, "CONSTANTS", replace(factored.CONSTANTS, timed_rows=1))
    monkeypatch.setattr(factored, "time", clock)
    rows = factored.row_block

    def late(judged, start, stop):
        clock.now += 0.2
        return rows(judged, start, stop)

    monkeypatch.setattr(factored, "row_block", late)
    program = md.EikonalWeights(problem=md.load_problem("philadelphia", cells=8))
    with pytest.raises(SolverError, match=r"time_limit: is too short to certify 64 rows, which takes about \d+ s"):
        factored.solve_factored(program, time_limit=1.0, started=0.0)


@pytest.mark.parametrize(
    ("method", "seed"),
    [("highs", 0), pytest.param("highs", 1, marks=pytest.mark.exhaustive)],
)
def test_rows_without_prior_are_designed(method: str, seed: int) -> None:
    """HiGHS alone leaves these rows wrong; the optimum is that of rays."""
    built = md.load_problem("philadelphia", cells=5)
    prior = built.prior_array * (np.random.default_rng(seed).random(25) > 0.6)
    problem = replace(built, prior=prior / prior.sum())
    design, known = md.solve(problem, method=method), md.solve(problem, method="columns")
    assert design.attrs["stopped"] == "gap"
    assert md.verify(design).certified
    assert design.attrs["lower_bound"] <= known.attrs["expected_loss"]
    assert known.attrs["lower_bound"] <= design.attrs["expected_loss"]


def test_sweep_is_no_worse_than_closed_forms() -> None:
    problem = plane(3)
    curve = md.sweep(problem, [0.5, 1.0], time_limit=NO_TIME)
    for scale, loss in zip(curve["scale"].values, curve["loss"].values, strict=True):
        assert loss <= best.best_closed_form(replace(problem, metric=float(scale) * problem.metric)).loss


def test_comparison_skips_late_mechanisms() -> None:
    table = md.compare(problem_of("line, zero-one"), time_limit=NO_TIME)
    assert list(table["mechanism"]) == ["optimal"]


def test_other_grids_have_a_closed_form() -> None:
    for shape, loss in itertools.product(((7,), (3, 4), (2, 2, 2)), (md.losses.Distance(), md.losses.ZeroOne())):
        domain = grid(shape)
        problem = md.DesignProblem(
            domain=domain, metric=md.Euclidean(epsilon=1.0, unit="cell"), prior=priors.uniform(domain), loss=loss
        )
        assert best.best_closed_form(problem).loss <= min(private_losses(problem).values()) * (1 + SPARED)
