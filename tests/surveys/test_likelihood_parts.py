"""Parts of the likelihood solvers against their definitions: a step, a sweep, the fallbacks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from likelihoods import drawn, lattice_problem, program_of, skewed

from mechdesign.closed_forms import build as geometric
from mechdesign.surveys import solve_likelihood as likelihood
from mechdesign.surveys import solve_likelihood as likelihood_newton
from mechdesign.surveys import solve_likelihood as likelihood_updates
from mechdesign.surveys.estimation import support_size
from mechdesign.surveys.likelihood import CertifiedPoint, Likelihood

FLOAT = 1e-12  # sums of at most 10^3 positive terms in double precision
SOLVE = 1e-8  # dense systems of up to 30 rows with condition numbers up to 10^8
GAP = 1e-9  # nats per report: what the solvers are asked for


class Refusing:
    """A program whose every point has likelihood 0; keeps the points."""

    def __init__(self):
        self.points = []

    def judge(self, distribution):
        self.points.append(distribution)
        return CertifiedPoint(
            distribution=distribution, reported=None, ratio=None, log_likelihood=-math.inf, gap=math.inf
        )


def test_an_extrapolation_that_is_refused_goes_half_way_to_the_plain_step():
    program = program_of("euclidean lattice", 60)
    now, after, twice = itertools.islice(likelihood_updates.updates(program, skewed(16, 3) + 1), 3)
    refusing = Refusing()
    likelihood_updates._extrapolated(refusing, now, after)
    first = after.distribution - now.distribution
    second = twice.distribution - 2 * after.distribution + now.distribution
    factor = -np.linalg.norm(first) / np.linalg.norm(second)
    assert factor < -3
    for point in refusing.points[:-1]:
        expected = now.distribution - 2 * factor * first + factor**2 * second
        assert point == pytest.approx(np.maximum(expected, 1e-3 * twice.distribution), rel=SOLVE)
        factor = -1 - (-1 - factor) / 2
    assert -1.01 <= factor < -1
    assert refusing.points[-1] == pytest.approx(twice.distribution, rel=FLOAT)


def test_leaving_secrets_out_of_the_factorisation_moves_no_optimum(monkeypatch):
    table = geometric.normalised_table(lattice_problem(12), 0.003)
    program = Likelihood(table=table, counts=drawn(table, 300))
    some, _ = likelihood_updates.newton(program, gap=GAP)
    sizes = []
    factor = likelihood_newton._factor
    monkeypatch.setattr(likelihood_newton, "_LEFT_OUT", -1.0)
    monkeypatch.setattr(likelihood_newton, "_factor", lambda gram, own: sizes.append(len(gram)) or factor(gram, own))
    whole, _ = likelihood_updates.newton(program, gap=GAP)
    assert set(sizes) == {144}
    assert some.log_likelihood == pytest.approx(whole.log_likelihood, abs=GAP)
    assert support_size(some) == support_size(whole) == (whole.distribution > 1e-6 / 144).sum()


def test_the_matrix_is_solved_by_one_sweep_over_what_was_left_out(monkeypatch):
    """Against numpy on blocks of the whole matrix; with no secret left out, on the whole matrix."""
    random = np.random.default_rng(0)
    half, barrier, right = random.random((30, 20)), 10.0 ** random.uniform(-2, 6, 30), random.random(30)
    matrix = half @ half.T + np.diag(barrier)
    small = np.sort((matrix.diagonal() - barrier) / barrier)
    bound = small[np.cumsum(small) <= likelihood_newton._LEFT_OUT].max()
    out = (matrix.diagonal() - barrier) / barrier <= bound
    assert 5 <= out.sum() <= 25
    expected = right / matrix.diagonal()
    rest = right[~out] - matrix[np.ix_(~out, out)] @ expected[out]
    expected[~out] = np.linalg.solve(matrix[np.ix_(~out, ~out)], rest)
    expected[out] = (right[out] - matrix[np.ix_(out, ~out)] @ expected[~out]) / matrix.diagonal()[out]
    assert likelihood_newton._solver(half, barrier)(right) == pytest.approx(expected, rel=SOLVE)
    monkeypatch.setattr(likelihood_newton, "_LEFT_OUT", -1.0)
    assert likelihood_newton._solver(half, barrier)(right) == pytest.approx(np.linalg.solve(matrix, right), rel=SOLVE)


def test_a_step_is_a_predictor_and_a_corrector(monkeypatch):
    """Against numpy on the linearised conditions in p and z together, with the matrix of second derivatives."""
    monkeypatch.setattr(likelihood_newton, "_LEFT_OUT", -1.0)
    program = program_of("scattered points", 60)
    n = program.size
    now, slack = program.judge(skewed(n, 6) + 0.05), skewed(n, 7) + 0.01
    p, second = now.distribution, np.zeros((n, n))
    for w, column, q in zip(program.share, program.columns.T, now.reported, strict=True):
        second += w * np.outer(column, column) / q**2
    whole = np.block([[second, -np.eye(n)], [np.diag(slack), np.diag(p)]])
    residual = -(1 - now.ratio - slack)
    change, rise = np.split(np.linalg.solve(whole, np.append(residual, -p * slack)), 2)
    reach = [min(1.0, 0.995 / max((-way / at).max(), 1e-300)) for at, way in ((p, change), (slack, rise))]
    mean = p @ slack / n
    ahead = (p + reach[0] * change) @ (slack + reach[1] * rise) / n
    target = (ahead / mean) ** 3 * mean - change * rise
    expected = np.linalg.solve(whole, np.append(residual, target - p * slack))
    assert np.concatenate(likelihood_newton._step(program, now, slack)) == pytest.approx(expected, rel=SOLVE)


def test_a_matrix_that_is_not_definite_takes_the_least_ridge():
    gram = np.ones((3, 3)) - 1e-13 * np.eye(3)
    factor = likelihood_newton._factor(gram, np.zeros(3))
    lower = np.tril(factor[0])
    assert lower @ lower.T == pytest.approx(gram, abs=2e-12)
    assert likelihood_newton._factor(-np.eye(3), np.zeros(3)) is None


def test_where_newton_stalls_the_updates_go_on_from_there(monkeypatch):
    program = program_of("zeros", 60)
    best = likelihood_updates.newton(program, gap=GAP)[0].log_likelihood
    monkeypatch.setattr(likelihood_newton, "_ITERATIONS", 3)
    solution = likelihood_updates.solve_likelihood(program, gap=GAP)
    assert solution.method == "newton, accelerated"
    assert solution.iterations > 3
    assert solution.point.gap <= GAP
    monkeypatch.setattr(likelihood, "_STEPS", 2)
    unfinished = likelihood_updates.solve_likelihood(program, gap=GAP)
    assert unfinished.iterations == 5
    assert unfinished.point.gap > GAP
    assert GAP < best - unfinished.point.log_likelihood <= unfinished.point.gap


def test_matrices_that_do_not_factor_leave_the_start_to_the_updates(monkeypatch):
    monkeypatch.setattr(likelihood_newton, "_factor", lambda gram, barrier: None)
    solution = likelihood_updates.solve_likelihood(program_of("zeros", 60), gap=GAP)
    assert solution.method == "newton, accelerated"
    assert solution.point.gap <= GAP
