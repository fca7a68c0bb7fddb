"""Rank and criterion of channels, and their norm, the dual Sobolev norm."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from fixtures.problems import grid
from fixtures.tolerances import LINEAR_ALGEBRA, REORDERED

import mechdesign as md
from mechdesign import Discrete, Domain, Euclidean, Graph, priors
from mechdesign.errors import InputError, SizeError
from mechdesign.extend import Edges
from mechdesign.surveys import asymptotic_mse, channel_rank
from mechdesign.surveys.error_norm import dual_sobolev_norm, neighbours, relative_neighbours
from mechdesign.surveys.information import criterion

NONE = Edges(tail=np.zeros(0, np.int64), head=np.zeros(0, np.int64), length=np.zeros(0))
DRAWS = 4000
SAMPLING = 5 / math.sqrt(DRAWS)  # 3.5 standard errors or more: one square spreads by at most sqrt(2) of its mean
MASK = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]], bool)
HOLLOW = np.array([[1, 0, 1, 1], [0, 1, 1, 1]], bool)
DOMAINS = {
    "line": grid(7),
    "square": grid((4, 4)),
    "flat cells": Domain.grid((3, 5), cell=(3.0, 1.0), unit="km"),
    "space": grid((3, 2, 4)),
    "masked": grid((3, 4), mask=MASK),
    "hollow": grid((2, 4), mask=HOLLOW),
    "points": Domain.points_at(np.random.default_rng(3).normal(size=(12, 2)), unit="km"),
}


def channel(n, m, seed, power=3):
    table = np.random.default_rng(seed).random((n, m)) ** power
    return table / table.sum(axis=1, keepdims=True)


def problem_on(domain, metric=None):
    metric = metric or Euclidean(epsilon=0.6, unit=domain.unit)
    return md.DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=md.losses.Distance())


@pytest.mark.parametrize("name", DOMAINS)
def test_neighbours_by_the_definition_and_by_the_stencil(name):
    """By loops over all triples; on whole grids a second route lists the faces."""
    domain = DOMAINS[name]
    distance = np.linalg.norm(domain.points[:, None] - domain.points[None], axis=2)
    expected = {
        (u, v)
        for u, v in itertools.combinations(range(domain.size), 2)
        if all(max(distance[u, w], distance[w, v]) >= distance[u, v] - 1e-9 for w in range(domain.size))
    }
    assert set(zip(*(part.tolist() for part in relative_neighbours(domain)), strict=True)) == expected
    assert set(zip(*(part.tolist() for part in neighbours(domain, NONE)), strict=True)) == expected


@pytest.mark.parametrize("name", DOMAINS)
def test_the_norm_is_the_largest_slope_that_neighbours_allow(name):
    """z^T L^+ z by the maximising function f, of unit slope, against all others: Cauchy-Schwarz with equality at f."""
    domain = DOMAINS[name]
    norm = dual_sobolev_norm(domain, NONE)
    tail, head = relative_neighbours(domain)
    length = np.linalg.norm(domain.points[tail] - domain.points[head], axis=1)
    random = np.random.default_rng(1)
    z = random.normal(size=domain.size)
    z -= z.mean()
    square = z @ norm @ z
    best = norm @ z / math.sqrt(square)
    assert (((best[tail] - best[head]) / length) ** 2).sum() == pytest.approx(1, rel=LINEAR_ALGEBRA)
    assert (best @ z) ** 2 == pytest.approx(square, rel=LINEAR_ALGEBRA)
    for _ in range(20):
        f = random.normal(size=domain.size)
        f /= math.sqrt((((f[tail] - f[head]) / length) ** 2).sum())
        assert (f @ z) ** 2 <= square * (1 + LINEAR_ALGEBRA)
    assert abs(norm.sum(axis=1)).max() <= LINEAR_ALGEBRA * abs(norm).max()


@pytest.mark.parametrize("cell", [1.0, 0.25, 150.0])
def test_on_a_line_the_norm_is_the_flow_across_the_borders(cell):
    z = np.array([0.3, -0.5, 0.1, 0.4, -0.3])
    norm = dual_sobolev_norm(Domain.grid(5, cell=cell, unit="m"), NONE)
    assert z @ norm @ z == pytest.approx(cell**2 * (np.cumsum(z)[:-1] ** 2).sum(), rel=LINEAR_ALGEBRA)


def test_without_coordinates_the_edges_count_one_each():
    complete = dual_sobolev_norm(Domain.nodes(5), Discrete(epsilon=3.0).edges(Domain.nodes(5)))
    assert complete == pytest.approx((np.eye(5) - 0.2) / 5, abs=LINEAR_ALGEBRA)
    path = Graph(tail=[0, 1, 2], head=[1, 2, 3], length=[0.1, 2.0, 0.7])
    assert dual_sobolev_norm(Domain.nodes(4), path.edges(Domain.nodes(4))) == pytest.approx(
        dual_sobolev_norm(grid(4), NONE), abs=LINEAR_ALGEBRA
    )


@pytest.mark.parametrize("wrong", [0.1, 0.35, 0.8])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_two_cells_by_hand(wrong, share):
    """One number is unknown: its estimate has the variance q (1 - q) / (1 - 2 wrong)^2 over N, at distance 3 km."""
    problem = problem_on(Domain.grid(2, cell=3.0, unit="km"))
    q = share * (1 - wrong) + (1 - share) * wrong
    found = asymptotic_mse([[1 - wrong, wrong], [wrong, 1 - wrong]], problem, truth=[share, 1 - share])
    assert found == pytest.approx(9 * q * (1 - q) / (1 - 2 * wrong) ** 2, rel=LINEAR_ALGEBRA)


@pytest.mark.parametrize(("n", "m", "seed"), [(3, 3, 0), (3, 5, 1), (4, 6, 5)])
def test_against_simulated_maximum_likelihood(n, m, seed):
    """N times the mean squared norm of the error over seeded draws of N = 10^6 reports, estimated by Bayes' rule."""
    people = 10**6
    random = np.random.default_rng(seed)
    table = 0.6 * channel(n, m, seed) + 0.4 * np.eye(n, m)
    truth = random.dirichlet(np.full(n, 20.0))
    counts = random.multinomial(people, truth @ table, size=DRAWS) / people
    estimate = np.tile(truth, (DRAWS, 1))
    for _ in range(400):
        estimate = estimate * ((counts / (estimate @ table)) @ table.T)
    error = estimate - truth
    norm = dual_sobolev_norm(grid(n), NONE)
    simulated = people * ((error @ norm) * error).sum(axis=1).mean()
    assert simulated == pytest.approx(criterion(table, truth, norm), rel=SAMPLING)


@pytest.mark.parametrize("name", DOMAINS)
def test_telling_the_truth_leaves_the_multinomial_error(name):
    domain = DOMAINS[name]
    truth = np.random.default_rng(4).dirichlet(np.full(domain.size, 2.0))
    norm = dual_sobolev_norm(domain, NONE)
    multinomial = np.trace(norm @ (np.diag(truth) - np.outer(truth, truth)))
    assert criterion(np.eye(domain.size), truth, norm) == pytest.approx(multinomial, rel=LINEAR_ALGEBRA)


@pytest.mark.parametrize("seed", range(8))
def test_processing_reports_never_helps(seed):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 6)), int(random.integers(6, 9))
    table, truth, norm = channel(n, m, seed), random.dirichlet(np.ones(n)), dual_sobolev_norm(grid(n), NONE)
    value = criterion(table, truth, norm)
    for columns in (m - 1, m, m + 2):
        assert criterion(table @ channel(m, columns, seed + 1), truth, norm) >= value * (1 - LINEAR_ALGEBRA)
    share = random.random(m)
    split = np.column_stack([table * share, table * (1 - share), np.zeros(n)])
    assert criterion(split, truth, norm) == pytest.approx(value, rel=LINEAR_ALGEBRA)
    assert channel_rank(split) == channel_rank(table) == n


@pytest.mark.parametrize("rank", [1, 2, 4, 5])
def test_rank_of_products(rank):
    n, m = 5, 9
    table = channel(n, rank, 1) @ channel(rank, m, 2)
    faint = np.column_stack([table * (1 - 1e-13), 1e-13 * channel(n, n, 3)])
    noisy = faint / faint.sum(axis=1, keepdims=True)
    assert channel_rank(table) == channel_rank(noisy) == rank
    assert math.isinf(asymptotic_mse(table, problem_on(grid(n)))) == (rank < n)
    seen = np.column_stack([table * (1 - 1e-3), 1e-3 * channel(n, n, 3)])
    assert channel_rank(seen) == n


def test_optimal_mechanism_may_lose_identifiability():
    """4 x 4 cells at 0.6 nats a cell: four reports suffice for the least expected distance."""
    problem = problem_on(grid((4, 4)), Euclidean(epsilon=0.6, unit="cell"))
    optimal = md.solve(md.Optimal(problem=problem))
    assert channel_rank(optimal) == 4
    assert asymptotic_mse(optimal) == math.inf
    geometric = md.baselines.geometric(problem)
    assert channel_rank(geometric) == 16
    from_table = asymptotic_mse(md.probabilities(geometric).values, problem)
    assert asymptotic_mse(geometric) == pytest.approx(from_table, rel=REORDERED)
    skewed = priors.proportional(np.arange(1.0, 17.0) ** 4)
    at_skewed = criterion(md.probabilities(geometric).values, skewed, dual_sobolev_norm(problem.domain, NONE))
    assert asymptotic_mse(geometric, truth=skewed) == pytest.approx(at_skewed, rel=REORDERED)
    assert abs(at_skewed - from_table) > 1


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: asymptotic_mse(np.eye(3)), "problem"),
        (lambda: asymptotic_mse(np.eye(3), problem_on(grid(4))), "table"),
        (lambda: asymptotic_mse(np.eye(4), problem_on(grid(4)), truth=[0.5, 0.5]), "prior"),
        (lambda: channel_rank(np.eye(3) - 0.1), "table"),
        (lambda: channel_rank(np.ones(3)), "table"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


def test_too_many_secrets_are_refused_before_they_are_inverted():
    with pytest.raises(SizeError, match="at most 1600 secrets"):
        dual_sobolev_norm(grid((41, 40)), NONE)
