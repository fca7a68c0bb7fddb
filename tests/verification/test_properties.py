"""Laws that need no expected figure, on privacy, optima, bounds and files, over random problems."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from fixtures.integer_oracles import are_rows, reference_violations
from fixtures.tolerances import SOLVED
from hypothesis import given, settings
from hypothesis import strategies as some
from reference.checking import ROW_SUM

from mechdesign import DesignProblem, Domain, Euclidean, Graph, Optimal, audit, load, priors, save, solve, verify
from mechdesign.extend import repair
from mechdesign.losses import SquaredDistance, TableLoss
from mechdesign.mechanism.build import build_dataset
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound

SEEDS = some.integers(0, 2**20)
FEW = settings(derandomize=True, deadline=None, max_examples=15, database=None)
FEWER = settings(derandomize=True, deadline=None, max_examples=8, database=None)
GAP = 1e-6


def random_problem(seed: int) -> DesignProblem:
    """A connected random graph of 3 to 7 nodes with lengths from 1e-3 to 10 nats, and a random table loss."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 8))
    tail, head = np.triu_indices(n, 1)
    kept = (random.random(len(tail)) < 0.4) | (head == tail + 1)
    lengths = 10 ** random.uniform(-3, 1, int(kept.sum()))
    domain = Domain.nodes(n)
    return DesignProblem(
        domain=domain,
        metric=Graph(tail=tail[kept], head=head[kept], length=lengths),
        prior=priors.proportional(random.random(n) + 1e-3),
        loss=TableLoss(values=random.random((n, n))),
    )


def certified_masses(problem: DesignProblem, seed: int) -> np.ndarray:
    """Certified integers from a random table, a third of it zeros."""
    random = np.random.default_rng(seed + 1)
    table = random.random(problem.weighted_loss.shape) * (random.random(problem.weighted_loss.shape) > 1 / 3) + 1e-12
    return repair(table, problem.edges, problem.weighted_loss)


def line(reports: np.ndarray, epsilon: float) -> DesignProblem:
    domain = Domain.grid(4, cell=1.0, unit="km")
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit="km"),
        prior=priors.proportional([1.0, 2.0, 1.5, 0.5]),
        loss=SquaredDistance(),
        reports=Domain.points_at(reports, unit="km"),
    )


@given(seed=SEEDS)
@FEW
def test_merging_reports_keeps_the_certificate(seed):
    problem = random_problem(seed)
    mass = certified_masses(problem, seed)
    groups = np.random.default_rng(seed).integers(0, 3, mass.shape[1])
    merged = np.stack([mass[:, groups == k].sum(axis=1, dtype=np.uint64) for k in np.unique(groups)], axis=1)
    assert are_rows(merged)
    assert reference_violations(merged, problem.edges) == 0


@given(seed=SEEDS, share=some.integers(0, 64))
@FEW
def test_a_mixture_keeps_the_certificate(seed, share):
    problem = random_problem(seed)
    one, two = certified_masses(problem, seed), certified_masses(problem, seed + 7)
    mixed = share * one.astype(object) + (64 - share) * two.astype(object)
    for u, v, length in zip(problem.edges.tail, problem.edges.head, problem.edges.length, strict=True):
        assert all(a <= b * np.exp(length) * (1 + 2.0**-40) for a, b in zip(mixed[u], mixed[v], strict=True))
    chosen = np.concatenate([one // np.uint64(2), two // np.uint64(2)], axis=1)  # which table was used is said too
    chosen[:, 0] += np.uint64(ROW_SUM) - chosen.sum(axis=1, dtype=np.uint64)
    assert audit(chosen / ROW_SUM, problem).ratio < 1 + 1e-9


@given(seed=SEEDS)
@FEW
def test_relabelling_keeps_the_certificate(seed):
    problem = random_problem(seed)
    mass = certified_masses(problem, seed)
    random = np.random.default_rng(seed)
    assert reference_violations(mass[:, random.permutation(mass.shape[1])], problem.edges) == 0
    order = random.permutation(len(mass))
    metric = problem.metric
    moved = Graph(tail=order[metric.tail], head=order[metric.head], length=metric.length).edges(problem.domain)
    relabelled = np.empty_like(mass)
    relabelled[order] = mass
    assert reference_violations(relabelled, moved) == 0


@given(epsilon=some.floats(0.2, 2.0), factor=some.floats(1.01, 2.0), removed=some.integers(0, 5))
@FEWER
def test_optimum_falls_with_eps_and_with_more_reports(epsilon, factor, removed):
    places = np.array([-0.3, 0.5, 1.4, 2.0, 2.6, 3.5])
    optimum = solve(Optimal(problem=line(places, epsilon)), gap=GAP)
    looser = solve(Optimal(problem=line(places, factor * epsilon)), gap=GAP)
    fewer = solve(Optimal(problem=line(np.delete(places, removed), epsilon)), gap=GAP)
    assert looser.attrs["lower_bound"] <= optimum.attrs["expected_loss"]
    assert optimum.attrs["lower_bound"] <= fewer.attrs["expected_loss"]
    for result in (optimum, looser, fewer):
        assert 0 <= result.attrs["expected_loss"] - result.attrs["lower_bound"] <= GAP * result.attrs["expected_loss"]


@given(seed=SEEDS, spread=some.floats(0, 3))
@FEW
def test_any_multipliers_give_a_lower_bound(seed, spread):
    problem = random_problem(seed)
    mass = certified_masses(problem, seed)
    loss = float((problem.weighted_loss * (mass / ROW_SUM)).sum())
    dual = np.random.default_rng(seed).normal(0, spread, problem.domain.size)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    assert lower_bound(dual, pricer.price(problem.weighted_loss, dual).value) <= loss * (1 + SOLVED)
    assert lower_bound(np.zeros_like(dual), pricer.price(problem.weighted_loss, np.zeros_like(dual)).value) >= -SOLVED


@given(seed=SEEDS)
@settings(FEWER, max_examples=4)  # tests/laws has the same law over other files
def test_write_read_verify_is_the_identity(seed, tmp_path_factory):
    problem = random_problem(seed)
    mechanism = build_dataset(problem, certified_masses(problem, seed), program="repaired")
    path = tmp_path_factory.mktemp("files") / "m.nc"
    assert load(save(mechanism, path)).identical(mechanism)
    result = verify(path)
    assert result == verify(mechanism)
    assert result.certified


@given(seed=SEEDS, entry=some.integers(0, 10**6), bit=some.integers(0, 61))
@FEW
def test_a_changed_entry_is_refused(seed, entry, bit):
    problem = random_problem(seed)
    mechanism = build_dataset(problem, certified_masses(problem, seed), program="repaired")
    mass = mechanism["mass"].values.copy()
    mass.ravel()[entry % mass.size] ^= np.uint64(1 << bit)
    assert not verify(mechanism.assign(mass=(("secret", "report"), mass))).certified


@given(seed=SEEDS, factor=some.floats(0.1, 10.0))
@FEWER
def test_audit_scales_with_the_metric(seed, factor):
    problem = random_problem(seed)
    table = np.random.default_rng(seed).dirichlet(np.ones(3), problem.domain.size)
    scaled = dataclasses.replace(problem, metric=factor * problem.metric)
    result, other = audit(table, problem), audit(table, scaled)
    assert other.ratio * factor == pytest.approx(result.ratio, rel=1e-9)
