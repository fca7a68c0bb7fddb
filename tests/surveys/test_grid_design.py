"""Statistical designs on grids: symmetry, torus, kernels of clusters, other errors, a price on the loss, size."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.integer_oracles import asymptotic_error, reference_violations
from fixtures.problems import euclidean_grid, excess, grid
from fixtures.tolerances import DESIGN_MARGIN, LINEAR_ALGEBRA, ORACLE, REORDERED

import mechdesign as md
from mechdesign import Domain, Eikonal, PrivacyLevel, priors
from mechdesign.baselines import FREQUENCY_ORACLES
from mechdesign.errors import InputError, SizeError
from mechdesign.solvers.symmetry import no_symmetry, symmetry_group
from mechdesign.surveys import StatisticalDesign, asymptotic_mse, channel_rank
from mechdesign.surveys.a_optimal import optimal_weights
from mechdesign.surveys.error_norm import area_indicators
from mechdesign.surveys.grid_design import _columns, _pool, _unfold, torus_of
from mechdesign.surveys.statistical_design import kernel_rays
from mechdesign.surveys.torus_mixture import (
    Mixture,
    Torus,
    choose_mixture,
    first_clusters,
    move_to_corner,
    torus_weights,
)

SETTLED = 1e-6  # the weights of two routes, each found to 1e-9 of the value


MASK = np.ones((9, 9), bool)
MASK[0, :3] = MASK[5, 5] = False
QUARTERS = (np.indices((9, 9)) // 5 * np.array([2, 1])[:, None, None]).sum(axis=0).ravel()

LARGE = {
    "square": lambda: StatisticalDesign(euclidean_grid((9, 9), 0.6)),
    "line": lambda: StatisticalDesign(euclidean_grid(70, 0.8)),
    "oblong cells": lambda: StatisticalDesign(euclidean_grid(Domain.grid((7, 10), cell=(1.0, 0.7), unit="km"), 0.6)),
    "masked, skewed prior": lambda: StatisticalDesign(euclidean_grid(grid((9, 9), mask=MASK), 0.6, seed=1)),
    "squared error": lambda: StatisticalDesign(euclidean_grid((9, 9), 0.6), error="square"),
    "areas": lambda: StatisticalDesign(euclidean_grid((9, 9), 0.6), error="areas", areas=QUARTERS),
    "priced": lambda: StatisticalDesign(euclidean_grid(70, 0.8), loss_weight=30.0),
}


SLOW = ("square", "oblong cells", "squared error", "masked, skewed prior")
ALL = pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.exhaustive] * (k in SLOW)) for k in LARGE])


@cache
def program_of(kind):
    return LARGE[kind]()


@cache
def solve_kind(kind):
    return md.solve(program_of(kind), gap=0.05)


GROUPS = {
    "square": (lambda: euclidean_grid((4, 4), 0.6), 8, 4, 2),
    "oblong": (lambda: euclidean_grid((3, 4), 0.6), 4, 4, 1),
    "line": (lambda: euclidean_grid(5, 0.6), 2, 2, 1),
    "skewed": (lambda: euclidean_grid((3, 3), 0.6, seed=2), 1, 1, 1),
    "diagonal": (
        lambda: replace(euclidean_grid((3, 3), 0.6), prior=priors.proportional([1.0, 2, 3, 2, 4, 5, 3, 5, 6])),
        2,
        1,
        2,
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_orbits_stand_for_all_their_rays(name):
    """The weights of orbits, block by block, against weights for every single ray."""
    make, members, blocks, turns = GROUPS[name]
    problem = make()
    program = StatisticalDesign(problem)
    group = symmetry_group(problem, program.norm)
    assert (len(group.ways), len(group.blocks), len(group.coset_representatives)) == (members, blocks, turns)
    basis = np.column_stack(group.blocks)
    assert basis.T @ basis == pytest.approx(np.eye(problem.domain.size), abs=LINEAR_ALGEBRA)
    rays = np.random.default_rng(0).permutation(kernel_rays(problem).T)[: 3 * problem.domain.size].T
    rays = np.column_stack([np.ones(len(rays)), np.exp(-problem.distances / 2), rays])
    rays /= problem.prior_array @ rays
    every = np.unique(np.round(np.column_stack([rays[way] for way in group.ways]), 12), axis=1)
    alone = optimal_weights(every, program.norm)
    folded = optimal_weights(rays, program.norm, group=group)
    assert folded.value == pytest.approx(alone.value, rel=SETTLED)
    assert folded.multipliers.sum() == pytest.approx(folded.value, rel=SETTLED)
    assert folded.reduced_costs(every).max() <= SETTLED * folded.value
    table = _unfold(rays, folded.theta, group)
    assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), rel=1e-8)
    offset = program.offset
    assert asymptotic_error(table, problem.prior_array, program.norm) == pytest.approx(
        folded.value - offset, rel=SETTLED
    )


def test_without_symmetry_every_secret_is_its_own_orbit():
    group = no_symmetry(3)
    assert np.array_equal(group.mean, np.eye(3))
    assert [block.tolist() for block in group.blocks] == [np.eye(3).tolist()]


SHAPES = [((5, 5), (0.6, 0.6)), ((4, 7), (0.5, 0.5)), ((5, 5), (0.6, 0.9)), ((9,), (0.7,))]


@pytest.mark.parametrize(("shape", "step"), SHAPES)
def test_on_a_torus_the_criterion_is_a_sum_over_waves(shape, step):
    """By the Fisher information of the table of all moves of all images, for squared error."""
    torus = Torus(shape=shape, step=step)
    cluster = move_to_corner(
        tuple((0,) * len(shape) if k == 0 else (k,) + (k % 3,) * (len(shape) - 1) for k in range(3))
    )
    n = math.prod(shape)
    cells = np.indices(shape).reshape(len(shape), -1)
    away = np.ravel_multi_index([(c[:, None] - c) % t for c, t in zip(cells, shape, strict=True)], shape)
    images = torus.images(cluster)
    tables = [torus.kernel(image).ravel()[away] / len(images) for image in images]
    table = np.column_stack(tables)
    found = (1 / (n * torus.spectrum(cluster))).sum()
    assert table.sum(axis=1) == pytest.approx(np.ones(n), rel=LINEAR_ALGEBRA)
    assert asymptotic_error(table, np.full(n, 1 / n), np.eye(n) - 1 / n) == pytest.approx(found, rel=1e-9)


def test_weights_of_spectra_are_optimal():
    """Multipliers prove it; cvxpy agrees."""
    import cvxpy as cp

    random = np.random.default_rng(0)
    spectra, cost = random.random((12, 30)) ** 4, random.random(30)
    weights, value = torus_weights(spectra, cost)
    mixed = weights @ spectra
    assert (spectra @ (cost / mixed**2)).max() <= value * (1 + 2e-4)
    share = cp.Variable(12, nonneg=True)
    oracle = cp.Problem(cp.Minimize(cost @ cp.inv_pos(spectra.T @ share)), [cp.sum(share) == 1])
    assert value == pytest.approx(oracle.solve(solver="CLARABEL"), rel=1e-3)


def test_start_clusters_differ_and_have_one_colour():
    torus = Torus(shape=(12, 12), step=(0.6, 0.6))
    clusters = first_clusters(torus)
    assert len(clusters) == 513
    assert len({image for cluster in clusters for image in torus.images(cluster)}) == sum(
        len(torus.images(cluster)) for cluster in clusters
    )
    assert all(len({sum(cell) % 2 for cell in cluster}) == 1 for cluster in clusters)


def test_the_mixture_of_a_torus_beats_each_of_its_clusters():
    torus = Torus(shape=(12, 12), step=(0.6, 0.6))
    cost = np.ones(143)
    mixture = choose_mixture(torus, cost)
    alone = [(cost / 144 / torus.spectrum(cluster)).sum() for cluster in [*mixture.clusters, ((0, 0),)]]
    assert mixture.weights.sum() == pytest.approx(1)
    assert mixture.criterion < min(alone)


@ALL
def test_kernels_on_the_grid_are_in_the_cone_and_make_rows(kind):
    program = program_of(kind)
    torus, eigenvalue = torus_of(program)
    assert eigenvalue.shape == (math.prod(torus.shape) - 1,)
    assert eigenvalue.min() >= 0
    group = symmetry_group(program.problem, program.norm)
    axes = len(torus.shape)
    cluster = move_to_corner(((0,) * axes, (2,) + (0,) * (axes - 1), *([(1, 1)] if axes == 2 else [])))
    columns, weight = _columns(program, torus, cluster)
    assert columns @ weight == pytest.approx(np.ones(len(columns)), rel=LINEAR_ALGEBRA)
    assert excess(columns[:, ::17], program.problem.distances) <= 0
    rays, start = _pool(program, torus, Mixture(clusters=[cluster], weights=np.ones(1), criterion=1.0), group)
    rows = group.mean @ rays[:, : len(start)] @ start
    assert rows == pytest.approx(np.ones(len(rows)), rel=1e-10)
    assert len(np.unique(np.round(rays, 9), axis=1).T) == rays.shape[1]


@ALL
def test_designs_are_certified_and_their_objective_is_recomputed(kind):
    program, mechanism = program_of(kind), solve_kind(kind)
    attrs, found = mechanism.attrs, md.verify(mechanism)
    assert found.certified, found.reasons
    assert found.lower_bound_checked is None
    assert "lower_bound" not in attrs
    assert 1 - DESIGN_MARGIN <= attrs["ratio"] <= 1
    table = md.probabilities(mechanism).values
    value = (
        asymptotic_error(table, program.problem.prior_array, program.norm)
        + program.loss_weight * attrs["expected_loss"]
    )
    assert attrs["objective"] == pytest.approx(value, rel=REORDERED)
    assert attrs["objective_of"] == program.objective_of
    assert channel_rank(mechanism) == program.problem.domain.size
    baseline = md.baselines.exponential(program.problem)
    assert attrs["objective"] < program.objective(md.probabilities(baseline).values, baseline.attrs["expected_loss"])


def test_some_edges_in_plain_integers():
    mechanism, edges = solve_kind("areas"), program_of("areas").problem.edges
    some = slice(0, None, 97)
    fewer = replace(edges, tail=edges.tail[some], head=edges.head[some], length=edges.length[some])
    assert reference_violations(mechanism["mass"].values, fewer) == 0


@pytest.mark.study
def test_eighty_one_cells_beside_baselines_at_the_same_claim():
    problem = program_of("square").problem
    baselines = [FREQUENCY_ORACLES[name](problem) for name in ("subset_exponential", "disk_area", "hadamard_response")]
    baselines.append(md.baselines.geometric(problem))
    for baseline in baselines:
        assert baseline.attrs["ratio"] <= 1 + DESIGN_MARGIN
        assert solve_kind("square").attrs["objective"] < 0.7 * asymptotic_mse(baseline)


@pytest.mark.study
@pytest.mark.parametrize(("mine", "other"), [("squared error", "square"), ("areas", "square"), ("square", "areas")])
def test_each_design_is_better_at_its_own_error(mine, other):
    program = program_of(mine)
    tables = [md.probabilities(solve_kind(kind)).values for kind in (mine, other)]
    own, others = (program.objective(table, 0.0) for table in tables)
    assert own < others


def test_areas_are_judged_by_the_covariance_of_their_shares():
    """By hand: the variance of each share, summed, from the inverse information."""
    program, mechanism = program_of("areas"), solve_kind("areas")
    table, prior = md.probabilities(mechanism).values, program.problem.prior_array
    inverse = np.linalg.inv((table / (prior @ table)) @ table.T)
    inside = area_indicators(QUARTERS)
    variances = np.diag(inside.T @ (inverse - np.outer(prior, prior)) @ inside)
    assert mechanism.attrs["objective"] == pytest.approx(variances.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "epsilon", "weights"),
    [(4, 0.5, (0.0, 30.0, 300.0)), pytest.param((9, 9), 0.6, (0.0, 30.0, 300.0), marks=pytest.mark.exhaustive)],
)
def test_a_price_on_the_loss_trades_one_for_the_other(shape, epsilon, weights):
    """Along a sweep of the weight the loss falls and the criterion rises."""
    problem, found = euclidean_grid(shape, epsilon), []
    for weight in weights:
        mechanism = md.solve(StatisticalDesign(problem, loss_weight=weight), gap=0.02)
        found.append((mechanism.attrs["expected_loss"], asymptotic_mse(mechanism)))
        told = found[-1][1] + weight * found[-1][0]
        assert mechanism.attrs["objective"] == pytest.approx(told, rel=1e-9)
    for (loss, error), (nearer, worse) in itertools.pairwise(found):
        assert nearer < loss
        assert worse > error


@pytest.mark.parametrize(
    "given", [{"error": "square"}, {"error": "areas", "areas": [0, 0, 1, -1]}, {"loss_weight": 2.0}]
)
def test_other_errors_are_solved_and_proved(given):
    program = StatisticalDesign(euclidean_grid(4, 0.8), **given)
    oracle = program.statement().solve(solver="CLARABEL")
    found = optimal_weights(program.rays, program.norm, cost=program.costs(program.rays))
    value = found.value - program.offset + program.costs(program.rays) @ found.theta
    assert value == pytest.approx(oracle, rel=10 * ORACLE)
    mechanism = md.solve(program)
    checked = md.verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked
    assert 0 < mechanism.attrs["lower_bound"] <= mechanism.attrs["objective"] <= value * (1 + 1e-3)


@pytest.mark.parametrize(
    ("name", "value"), [("loss_weight", 31.0), ("error", "square"), ("areas", [0] * 69 + [1]), ("error", 3)]
)
def test_a_file_that_claims_another_objective_is_refused(name, value):
    mechanism = solve_kind("priced")
    told = json.loads(mechanism.attrs["parameters"]) | {name: value}
    altered = rewritten(mechanism, parameters=json.dumps(told))
    try:
        assert not md.verify(altered).certified
    except md.errors.VerificationError:
        assert name in ("areas", "error")


def test_files_keep_what_is_needed(tmp_path):
    for kind in ("areas", "priced"):
        md.save(solve_kind(kind), tmp_path / "design.nc", overwrite=True)
        assert md.verify(tmp_path / "design.nc").certified


def flat_eikonal():
    return replace(euclidean_grid((9, 9), 0.6), metric=Eikonal(level=PrivacyLevel.constant(0.6, "cell")))


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        (lambda: StatisticalDesign(euclidean_grid((41, 40), 0.6)), SizeError, "cells"),
        (lambda: StatisticalDesign(flat_eikonal()), SizeError, "cells"),
        (lambda: StatisticalDesign(euclidean_grid((5, 4, 4), 0.6)), SizeError, "cells"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="emd"), InputError, "error"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="areas"), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), areas=[0, 0, 1, 1]), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="areas", areas=[0, 0, 1]), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="areas", areas=[0, 0, 1, -2]), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="areas", areas=[0.0, 0, 1, 1]), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), error="areas", areas=[2, 2, 2, 2]), InputError, "areas"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), loss_weight=-1.0), InputError, "loss_weight"),
        (lambda: StatisticalDesign(euclidean_grid(4, 0.6), loss_weight=math.nan), InputError, "loss_weight"),
    ],
)
def test_refusals_name_the_field(make, error, field):
    with pytest.raises(error) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.study
@pytest.mark.parametrize(
    ("cells", "epsilon", "of_geometric", "of_baseline"),
    [(20, 0.3, 0.25, 0.3), (20, 0.6, 0.62, 0.66), (30, 0.6, 0.66, 0.7)],
)
def test_at_size_beside_the_best_of_what_else_there_is(cells, epsilon, of_geometric, of_baseline):
    problem = euclidean_grid((cells, cells), epsilon)
    mechanism = md.solve(StatisticalDesign(problem))
    assert md.verify(mechanism).certified
    assert mechanism.attrs["ratio"] <= 1
    objective = mechanism.attrs["objective"]
    assert objective <= of_geometric * asymptotic_mse(md.baselines.geometric(problem))
    assert objective <= of_baseline * asymptotic_mse(FREQUENCY_ORACLES["subset_exponential"](problem))
