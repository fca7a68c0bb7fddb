"""The design for statistics: master problem, search, bound, certified mechanism, and its errors."""

from __future__ import annotations

import itertools
import json
import math
import signal
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from fixtures.forged_files import rewritten
from fixtures.integer_oracles import reference_violations
from fixtures.problems import excess, grid, varying_level
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, LINEAR_ALGEBRA, ORACLE, REORDERED

import mechdesign as md
from mechdesign import DesignProblem, Discrete, Domain, Eikonal, Euclidean, Graph, priors
from mechdesign.errors import InputError, SizeError
from mechdesign.solvers.symmetry import symmetries
from mechdesign.surveys import StatisticalDesign, asymptotic_mse, channel_rank
from mechdesign.surveys.a_optimal import optimal_weights
from mechdesign.surveys.criterion_bound import bound_criterion, proved_bound, sides
from mechdesign.surveys.solve_design import RaySearch, distinct

CONVERGED = 1e-8  # the master problem is solved to a relative 1e-9
PRECISE = 1e-6  # the semidefinite program is solved to 1e-8, and its multipliers prove a little less

MASK = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]], bool)
LINKS = ([0, 1, 2, 3, 0], [1, 2, 3, 4, 4], [0.7, 1.1, 0.4, 0.9, 1.3])


def _problem(domain, metric, seed=None, **given):
    prior = priors.uniform(domain)
    if seed is not None:
        prior = priors.proportional(0.2 + np.random.default_rng(seed).random(domain.size))
    loss = given.pop("loss", md.losses.Distance())
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss, **given)


def square(cells, epsilon, seed=None):
    domain = Domain.grid((cells, cells), cell=1.0, unit="km")
    return _problem(domain, Euclidean(epsilon=epsilon, unit="km"), seed)


KINDS = {
    "two cells": lambda: _problem(grid(2), Euclidean(epsilon=1.1, unit="cell"), 1),
    "line": lambda: _problem(grid(5), Euclidean(epsilon=0.8, unit="cell")),
    "square": lambda: square(2, 0.9, seed=2),
    "masked, levels that vary": lambda: _problem(grid((3, 3), mask=MASK), Eikonal(level=varying_level()), 3),
    "discrete": lambda: _problem(Domain.nodes(4), Discrete(epsilon=1.5), loss=md.losses.ZeroOne()),
    "graph": lambda: _problem(
        Domain.nodes(5), Graph(tail=LINKS[0], head=LINKS[1], length=LINKS[2]), 4, loss=md.losses.ZeroOne()
    ),
    "points": lambda: _problem(
        Domain.points_at(np.random.default_rng(5).normal(size=(6, 2)), unit="km"), Euclidean(epsilon=1.0, unit="km")
    ),
    "reports apart": lambda: _problem(
        grid(4), Euclidean(epsilon=0.5, unit="cell"), reports=Domain.points_at([0.0, 4.0], unit="cell")
    ),
}
ALL = pytest.mark.parametrize(
    "kind", few_by_default(KINDS, "two cells", "line", "masked, levels that vary", "graph", "reports apart")
)


@cache
def program_of(kind):
    return StatisticalDesign(problem=KINDS[kind]())


@cache
def solve_kind(kind):
    return md.solve(program_of(kind))


@cache
def design():
    """4 x 4 cells of 1 km at 0.6 nats per km."""
    return md.solve(StatisticalDesign(problem=square(4, 0.6)))


def table_of(mechanism):
    return md.probabilities(mechanism).values


def extreme_rays(problem):
    """All rays of the cone with tight constraints on a spanning tree, by enumeration of trees and directions."""
    n, d = problem.domain.size, problem.distances
    found = []
    for tree in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        for signs in itertools.product((1, -1), repeat=n - 1):
            height = np.full(n, np.nan)
            height[0] = 0.0
            for _ in range(n):
                for (u, v), sign in zip(tree, signs, strict=True):
                    if np.isnan(height[v]) and not np.isnan(height[u]):
                        height[v] = height[u] + sign * d[u, v]
                    elif np.isnan(height[u]) and not np.isnan(height[v]):
                        height[u] = height[v] - sign * d[u, v]
            if not np.isnan(height).any() and (height[:, None] - height[None] <= d + 1e-12).all():
                found.append(np.exp(height))
    return distinct(np.column_stack(found) / (problem.prior_array @ np.column_stack(found)))


@ALL
def test_the_statement_and_the_own_method_have_one_optimum(kind):
    program = program_of(kind)
    statement = program.statement()
    assert statement.is_dcp()
    oracle = statement.solve(solver="CLARABEL")
    found = optimal_weights(program.rays, program.norm)
    assert found.value - program.offset == pytest.approx(oracle, rel=ORACLE)
    assert found.theta.min() > 0
    assert program.rays @ found.theta == pytest.approx(np.ones(program.problem.domain.size), rel=CONVERGED)


@ALL
def test_multipliers_prove_the_weights(kind):
    """No ray has a reduced cost above 0, those with weight have 0, and the multipliers sum to the value."""
    program = program_of(kind)
    found = optimal_weights(program.rays, program.norm)
    reduced_cost = found.reduced_costs(program.rays)
    assert reduced_cost.max() <= CONVERGED * found.value
    assert abs(reduced_cost @ found.theta) <= CONVERGED * found.value
    assert found.multipliers.sum() == pytest.approx(found.value, rel=CONVERGED)


@ALL
def test_worth_is_the_slope_of_the_value(kind):
    """By difference quotients of tr(L^+ I^-1) at a mixture with a little of a ray instead of all others."""
    program = program_of(kind)
    found = optimal_weights(program.rays, program.norm)
    random = np.random.default_rng(0)
    search = RaySearch(program, random)
    ray = search._perturb(np.ones(program.problem.domain.size))
    information = (program.rays * found.theta) @ program.rays.T
    step = 1e-6
    moved = [
        np.trace(program.norm @ np.linalg.inv(information + t * (np.outer(ray, ray) - information)))
        for t in (step, -step)
    ]
    slope = (moved[0] - moved[1]) / (2 * step)
    priced = found.reduced_costs(ray[:, None])[0] + found.multipliers @ ray - found.value
    assert -slope == pytest.approx(priced, rel=1e-4, abs=1e-6 * found.value)


@ALL
def test_rays_found_are_in_the_cone_and_improve_the_mixture(kind):
    program = program_of(kind)
    problem = program.problem
    half = np.exp(-problem.distances / 2)
    start = np.column_stack([np.ones(len(half)), half])
    start /= problem.prior_array @ start
    mixture = optimal_weights(start, program.norm)
    search = RaySearch(program, np.random.default_rng(0))
    rays, reduced_cost = search.find(mixture, start, start, 16)
    assert reduced_cost > 0
    assert mixture.reduced_costs(rays).max() == pytest.approx(reduced_cost, rel=CONVERGED)
    assert excess(rays, problem.distances) <= LINEAR_ALGEBRA
    assert problem.prior_array @ rays == pytest.approx(np.ones(rays.shape[1]), rel=LINEAR_ALGEBRA)
    better = optimal_weights(np.column_stack([start, rays]), program.norm)
    assert better.value < mixture.value


@ALL
def test_an_ascent_ends_where_no_tangent_rises(kind):
    """The last tangent is maximised over the cone once more, by another assembly of its constraints, for all pairs."""
    program = program_of(kind)
    problem, n = program.problem, program.problem.domain.size
    mixture = optimal_weights(program.rays, program.norm)
    search = RaySearch(program, np.random.default_rng(0))
    pairs = np.array([(u, v) for u in range(n) for v in range(n) if u != v])
    cone = np.eye(n)[pairs[:, 0]] - np.exp(problem.distances[tuple(pairs.T)])[:, None] * np.eye(n)[pairs[:, 1]]
    for _ in range(5):
        start = search._perturb(np.ones(n))
        ray = search._ascend(mixture, start)
        assert (
            mixture.reduced_costs(ray[:, None])[0]
            >= mixture.reduced_costs(start[:, None])[0] - CONVERGED * mixture.value
        )
        slope = 2 * mixture.gain @ ray - mixture.multipliers
        best = scipy.optimize.linprog(
            -slope, A_ub=cone, b_ub=np.zeros(len(cone)), A_eq=problem.prior_array[None], b_eq=[1.0], method="highs"
        )
        assert slope @ ray >= -best.fun - ORACLE * mixture.value


@ALL
def test_certified_at_the_claim_with_a_bound_that_is_checked(kind):
    mechanism, program = solve_kind(kind), program_of(kind)
    attrs, found = mechanism.attrs, md.verify(solve_kind(kind))
    assert found.certified, found.reasons
    assert found.lower_bound_checked
    assert reference_violations(mechanism["mass"].values, program.problem.edges) == 0
    assert 1 - DESIGN_MARGIN <= attrs["ratio"] <= 1
    assert attrs["lower_bound"] <= attrs["objective"]
    assert attrs["objective"] == pytest.approx(asymptotic_mse(mechanism), rel=REORDERED)
    best = optimal_weights(program.rays, program.norm).value - program.offset
    assert attrs["objective"] <= best * (1 + CONVERGED)
    assert channel_rank(mechanism) == program.problem.domain.size
    assert attrs["lower_bound_of"] == "any mechanism with this claim"


@ALL
def test_no_mechanism_with_the_claim_is_below_the_bound(kind):
    problem, bound = program_of(kind).problem, solve_kind(kind).attrs["lower_bound"]
    baselines = [md.baselines.exponential(problem), md.solve(md.Optimal(problem=problem))]
    if problem.reports is problem.domain:
        baselines.append(md.baselines.randomized_response(problem))
    for baseline in baselines:
        assert baseline.attrs["ratio"] <= 1 + DESIGN_MARGIN
        assert asymptotic_mse(baseline) >= bound


@ALL
def test_reports_are_judged_by_their_best_place(kind):
    mechanism, problem = solve_kind(kind), program_of(kind).problem
    estimates = json.loads(mechanism.attrs["parameters"])["estimates"]
    joint = problem.prior_array[:, None] * table_of(mechanism)
    least = (joint.T @ problem.loss_matrix).min(axis=1)
    assert mechanism.attrs["expected_loss"] == pytest.approx(least.sum(), rel=DESIGN_MARGIN)
    moved = mechanism["report_x"].values - problem.reports.points[estimates, 0]
    gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(problem.reports.points, 2)]
    assert abs(moved).max() < min(gaps) / 4
    for place in set(estimates):
        assert moved[np.array(estimates) == place].mean() == pytest.approx(0, abs=LINEAR_ALGEBRA)


@pytest.mark.parametrize("metric", few_by_default([0.3, 1.0, 2.5], 0.3, 2.5))
@pytest.mark.parametrize("seed", few_by_default([None, 0, 1], None, 1))
def test_three_secrets_against_all_extreme_rays(metric, seed):
    problem = _problem(grid(3), Euclidean(epsilon=metric, unit="cell"), seed)
    program = StatisticalDesign(problem=problem)
    optimum = optimal_weights(extreme_rays(problem), program.norm).value - program.offset
    found = md.solve(program, gap=1e-6).attrs
    assert found["objective"] == pytest.approx(optimum, rel=CONVERGED)
    assert found["lower_bound"] <= optimum


@pytest.mark.parametrize("kind", ["square", "discrete"])
def test_four_secrets_against_all_extreme_rays(kind):
    program = program_of(kind)
    optimum = optimal_weights(extreme_rays(program.problem), program.norm).value - program.offset
    assert solve_kind(kind).attrs["objective"] == pytest.approx(optimum, rel=1e-3)
    assert solve_kind(kind).attrs["objective"] >= optimum * (1 - CONVERGED)
    assert solve_kind(kind).attrs["lower_bound"] <= optimum


@pytest.mark.parametrize("nats", few_by_default([0.01, 0.5, 1.0, 4.0], 0.01, 4.0))
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_two_secrets_take_randomized_response(nats, share):
    """The best of two reports: the variance q (1 - q) / (1 - 2 p)^2 with p = 1 / (1 + e^d), by hand."""
    domain = grid(2)
    problem = replace(_problem(domain, Euclidean(epsilon=nats, unit="cell")), prior=[share, 1 - share])
    wrong = 1 / (1 + math.exp(nats))
    q = share * (1 - wrong) + (1 - share) * wrong
    found = md.solve(StatisticalDesign(problem=problem)).attrs
    assert found["objective"] == pytest.approx(q * (1 - q) / (1 - 2 * wrong) ** 2, rel=CONVERGED)


@pytest.mark.parametrize("kind", ["line", "masked, levels that vary", "graph", "points"])
def test_any_multipliers_prove_a_bound(kind):
    """Perturbed and random multipliers: never above the criterion of the design, which is attained."""
    program, value = program_of(kind), solve_kind(kind).attrs["objective"]
    best = bound_criterion(program)
    assert best is not None
    assert proved_bound(program, best.dual, best.multipliers) == best.value
    random = np.random.default_rng(0)
    for size in (1e-6, 1e-3, 0.1, 1.0, 100.0):
        for _ in range(20):
            dual = best.dual + size * abs(best.dual).mean() * random.normal(size=len(best.dual))
            change = size * best.multipliers.mean() * random.normal(size=len(best.multipliers))
            assert proved_bound(program, dual, np.maximum(best.multipliers + change, 0.0)) <= value
    assert proved_bound(program, best.dual, 0 * best.multipliers) < best.value
    assert len(best.multipliers) == len(sides(program.problem)) * (len(sides(program.problem)) + 1) // 2


@pytest.mark.parametrize("kind", ["two cells", "line", "reports apart"])
def test_on_a_line_the_relaxation_is_exact(kind):
    attrs = solve_kind(kind).attrs
    assert attrs["stopped"] == "gap"
    close = md.solve(program_of(kind), gap=PRECISE).attrs
    assert close["objective"] - close["lower_bound"] <= 1e-5 * close["objective"]


@pytest.mark.parametrize("kind", few_by_default(["square", "line", "masked, levels that vary"], "line"))
def test_less_privacy_never_costs(kind):
    problem = program_of(kind).problem
    values = []
    for multiple in (0.5, 1.0, 2.0):
        scaled = replace(problem, metric=multiple * problem.metric)
        values.append(md.solve(StatisticalDesign(problem=scaled)).attrs)
    for stricter, looser in itertools.pairwise(values):
        assert looser["objective"] < stricter["lower_bound"]
    program = program_of(kind)
    multinomial = np.trace(program.norm * problem.prior_array) - program.offset
    assert values[-1]["lower_bound"] > multinomial


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: square(3, 0.6), 8),
        (lambda: square(3, 0.6, seed=1), 1),
        (lambda: _problem(grid((2, 3)), Euclidean(epsilon=0.6, unit="cell")), 4),
        (lambda: _problem(grid(4), Euclidean(epsilon=0.6, unit="cell")), 2),
        (lambda: _problem(grid((3, 3)), Eikonal(level=varying_level())), 1),
        (lambda: _problem(grid((3, 3), mask=MASK), Euclidean(epsilon=0.6, unit="cell")), 1),
        (lambda: _problem(Domain.grid((3, 3), cell=(1.0, 2.0), unit="km"), Euclidean(epsilon=0.6, unit="km")), 4),
    ],
)
def test_mirror_images_change_nothing(make, count):
    program = StatisticalDesign(problem=make())
    ways = symmetries(program.problem, [program.problem.distances, program.norm])
    assert len({tuple(way) for way in ways}) == len(ways) == count
    for way in ways:
        assert program.norm[np.ix_(way, way)] == pytest.approx(program.norm, abs=LINEAR_ALGEBRA)
        assert program.problem.distances[np.ix_(way, way)] == pytest.approx(program.problem.distances)


@pytest.mark.study
def test_sixteen_cells_beside_what_else_there_is():
    """The figures that the design is made for; each baseline at the same claim."""
    problem, attrs = square(4, 0.6), design().attrs
    assert attrs["objective"] <= 33
    assert attrs["lower_bound"] >= 22.6
    assert attrs["ratio"] <= 1
    assert md.verify(design()).certified
    geometric = md.baselines.geometric(problem)
    response = md.baselines.randomized_response(problem)
    assert asymptotic_mse(geometric) == pytest.approx(151.3, abs=0.1)
    assert asymptotic_mse(response) == pytest.approx(206.5, abs=0.1)
    assert math.isinf(asymptotic_mse(md.solve(md.Optimal(problem=problem))))


def _kantorovich(first, second, distance):
    """The exact optimal transport as a linear program, one row left out because it follows from the others."""
    n = len(first)
    out, into = sp.kron(sp.eye_array(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye_array(n))
    rows, sums = sp.vstack([out, into]).tocsr()[:-1], np.r_[first, second][:-1]
    solution = scipy.optimize.linprog(distance.ravel(), A_eq=rows, b_eq=sums, method="highs")
    assert solution.status == 0
    return solution.fun


def _likeliest(counts, table):
    """Maximum likelihood over the simplex to a relative optimality of 1e-7: Bayes' rule from the uniform, repeated.

    Extrapolated by SQUAREM; the gap is at most the logarithm of the largest entry of the gradient.
    """
    share, point = counts / counts.sum(), np.full(len(table), 1 / len(table))
    seen = share > 0
    share, table = share[seen], table[:, seen]

    def gradient(p):
        return table @ (share / (p @ table))

    for _ in range(20_000):
        slope = gradient(point)
        if math.log(slope.max()) <= 1e-7:
            return point
        one = point * slope
        two = one * gradient(one)
        first, turn = one - point, two - one - (one - point)
        length = -max(1.0, math.sqrt((first @ first) / max(turn @ turn, 1e-300)))
        guess = np.maximum(point - 2 * length * first + length**2 * turn, 1e-12)
        guess /= guess.sum()
        better = share @ np.log(guess @ table) >= share @ np.log(two @ table)
        point = guess if better else two
    raise AssertionError("the estimate did not settle")


def _mean_kantorovich(mechanism, truth, distance, people=20_000, draws=60):
    table, random = table_of(mechanism), np.random.default_rng(7)
    found = []
    for _ in range(draws):
        estimate = _likeliest(random.multinomial(people, truth @ table), table)
        found.append(_kantorovich(estimate, truth, distance))
    return float(np.mean(found))


@pytest.mark.study
def test_estimates_are_better_at_unexpected_truth():
    """Kantorovich distance in km from 20,000 reports, mean of 60 draws; the design knew the uniform prior only."""
    problem = square(4, 0.6)
    distance = problem.domain.euclidean_to(problem.domain)
    truth = priors.proportional(np.random.default_rng(0).random(16) ** 2 + 0.02)
    own = _mean_kantorovich(design(), truth, distance)
    baseline = _mean_kantorovich(md.baselines.geometric(problem), truth, distance)
    assert own <= 0.7 * baseline


def test_a_seed_makes_a_design_repeatable():
    first, again, other = (md.solve(StatisticalDesign(problem=square(2, 0.6), seed=seed)) for seed in (0, 0, 1))
    assert first.attrs["sha256"] == again.attrs["sha256"]
    assert other.attrs["sha256"] != first.attrs["sha256"]
    assert other.attrs["objective"] == pytest.approx(first.attrs["objective"], rel=1e-2)


def test_a_time_limit_ends_the_search_with_what_there_is():
    told = []
    found = md.solve(StatisticalDesign(problem=square(3, 0.6)), time_limit=1e-9, on_progress=told.append)
    assert found.attrs["stopped"] == "time"
    assert "lower_bound" not in found.attrs
    assert "lower_bound_of" not in found.attrs
    assert md.verify(found).certified
    assert md.verify(found).lower_bound_checked is None
    assert [state.method for state in told] == ["bound", "rays"]


@pytest.mark.parametrize("method", ["bound", "rays"])
def test_ctrl_c_in_the_bound_or_the_search_keeps_a_table(method):
    def on_progress(state):
        if state.method == method:
            signal.raise_signal(signal.SIGINT)

    found = md.solve(StatisticalDesign(problem=square(3, 0.6)), on_progress=on_progress)
    assert found.attrs["stopped"] == "interrupt"
    assert ("lower_bound" in found.attrs) == (method == "rays")
    assert md.verify(found).certified


def test_without_the_bound_a_statistical_design_has_none():
    found = md.solve(StatisticalDesign(problem=square(3, 0.6)), time_limit=1e-9, bound=False)
    assert "lower_bound" not in found.attrs


def test_file_content_is_recovered_or_refused():
    mechanism = solve_kind("line")
    value, bound = mechanism.attrs["objective"], mechanism.attrs["lower_bound"]
    for changed in (
        rewritten(mechanism, objective=value * (1 - 1e-6)),
        rewritten(mechanism, lower_bound=bound * (1 + 1e-6)),
        rewritten(mechanism, multiplier=mechanism["multiplier"] * 0),
        rewritten(mechanism, multiplier=-mechanism["multiplier"]),
        rewritten(mechanism, dual=mechanism["dual"] * math.nan),
        rewritten(mechanism.drop_vars("multiplier")),
        rewritten(mechanism.isel(side_row=slice(3))),
    ):
        assert not md.verify(changed).certified
    skewed = priors.proportional(np.arange(1.0, 6.0))
    assert not md.verify(rewritten(mechanism, prior=("secret", skewed, mechanism["prior"].attrs))).certified


def test_design_files_work_with_every_command(tmp_path):
    problem, mechanism = program_of("square").problem, solve_kind("square")
    file = tmp_path / "design.nc"
    md.save(mechanism, file)
    stored = md.load(file)
    assert stored.attrs["sha256"] == mechanism.attrs["sha256"]
    assert md.verify(file).certified
    assert asymptotic_mse(stored) == mechanism.attrs["objective"]
    exported = md.export(stored, tmp_path / "design.csv", with_verifier=True)
    assert "proved:" in _run(tmp_path / "verify_table.py", exported)
    assert md.audit(exported, problem).verdict == "holds"
    md.export(stored, tmp_path / "design.json")
    reports = md.Sampler(mechanism=stored).sample([0, 3], 500, rng=1)
    assert reports.shape == (2, 500)
    assert set(np.unique(reports)) <= set(range(mechanism.sizes["report"]))
    assert md.Sampler(mechanism=stored).report(2).attrs["claim"] == mechanism.attrs["claim"]
    remapped = md.utility.bayes_remap(stored)
    assert md.verify(remapped).certified
    assert asymptotic_mse(remapped) >= mechanism.attrs["objective"]


def _run(script, file):
    import subprocess
    import sys

    return subprocess.run([sys.executable, script, file], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: StatisticalDesign(problem=square(41, 0.6)), "cells"),
        (lambda: StatisticalDesign(problem=replace(square(2, 0.6), prior=[0.5, 0.5, 0.0, 0.0])), "prior"),
        (lambda: md.solve(StatisticalDesign(problem=square(2, 0.6)), gap=0.0), "gap"),
        (lambda: md.solve(StatisticalDesign(problem=square(2, 0.6)), method="whole"), "method"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


def test_the_command_line_designs_and_refuses(run_json, tmp_path):
    words, file = ["solve", "line", "--program", "statistical"], tmp_path / "line.nc"
    code, summary = run_json(*words, "--cells", 6, "-o", file)
    assert code == 0
    assert summary["certified"]
    assert summary["objective"] == pytest.approx(asymptotic_mse(md.load(file)), rel=REORDERED)
    assert 0 <= summary["gap"] <= 1e-3
    code, refused = run_json(*words, "--cells", 100)
    assert code == SizeError.exit_code
    assert refused["error"]["field"] == "cells"
