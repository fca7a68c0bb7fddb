"""The maximum-likelihood program and its solvers. Routes: Newton, the cvxpy statement (Clarabel), expectation
maximization, the closed form of randomized response, brute force over a lattice of the simplex, and known answers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from fixtures.likelihood_programs import (
    ROWS,
    TABLES,
    draw_counts,
    lattice_problem,
    normalised_geometric,
    program_of,
    skewed_distribution,
    twins,
    with_zeros,
)
from fixtures.rows import few_by_default
from fixtures.tolerances import ORACLE

from mechdesign.surveys import solve_likelihood as likelihood
from mechdesign.surveys.estimation import support_size
from mechdesign.surveys.likelihood import CertifiedPoint, Likelihood

FLOAT = 1e-12  # sums of at most 10^3 positive terms in double precision
GAP = 1e-9  # nats per report: the target of the solvers
SOLVE = 1e-8  # dense systems of up to 30 rows with condition numbers up to 10^8
INTERIOR = 20  # Newton steps; more are a method that lost its order
NEAR = 1e-3  # distributions, largest difference: likelihoods 1e-9 apart, curvatures above 1e-2
LATTICE = 40  # steps of a side of the simplex
FEW = [*list(TABLES)[1:13:4], *list(TABLES)[13:]]  # mechanisms of cases are alike


def log_likelihood(table, counts, p):
    """The definition, as a sum over single reports."""
    total = 0.0
    for y, count in enumerate(counts):
        if count:
            total += count * math.log(math.fsum(p[u] * table[u, y] for u in range(len(p))))
    return total / sum(counts)


def worst_ratio(table, counts, p):
    """ln max over u of sum_y (N_y / N) P(y|u) / q_y, by its definition."""
    q = [math.fsum(p[u] * table[u, y] for u in range(len(p))) for y in range(len(counts))]
    sums = [math.fsum(c * row[y] / q[y] for y, c in enumerate(counts) if c) / sum(counts) for row in table]
    return math.log(max(sums))


@pytest.mark.parametrize("name", TABLES)
def test_the_certificate_by_its_definition(name):
    program = program_of(name, 60)
    p = 0.9 * skewed_distribution(program.size, 5) + 0.1 / program.size
    judged = program.judge(7 * p)
    assert judged.distribution == pytest.approx(p, rel=FLOAT)
    assert judged.log_likelihood == pytest.approx(log_likelihood(program.table, program.counts, p), rel=FLOAT)
    assert judged.gap == pytest.approx(worst_ratio(program.table, program.counts, p), rel=FLOAT, abs=FLOAT)
    assert judged.distribution @ judged.ratio == pytest.approx(1, rel=FLOAT)


@pytest.mark.parametrize(("name", "reports"), few_by_default(ROWS, *ROWS[::2]))
def test_newton_proves_its_gap(name, reports):
    program = program_of(name, reports)
    point, iterations = likelihood.newton(program, gap=GAP)
    assert point.gap <= GAP
    assert iterations <= INTERIOR
    assert point.distribution.min() >= 0
    assert point.distribution.sum() == pytest.approx(1, rel=FLOAT)
    assert worst_ratio(program.table, program.counts, point.distribution) <= GAP + FLOAT


@pytest.mark.parametrize("name", few_by_default(TABLES, *FEW))
def test_newton_against_the_statement(name):
    program = program_of(name, 60)
    stated = program.statement()
    stated.solve(solver="CLARABEL")
    theirs = program.judge(np.maximum(stated.variables()[0].value, 0))
    ours, _ = likelihood.newton(program, gap=GAP)
    assert ours.log_likelihood == pytest.approx(stated.value, abs=ORACLE)
    assert theirs.log_likelihood <= ours.log_likelihood + GAP
    assert ours.log_likelihood - theirs.log_likelihood <= theirs.gap + FLOAT


@pytest.mark.parametrize("name", few_by_default(TABLES, *FEW))
@pytest.mark.parametrize("seed", few_by_default([1, 2, 3], 1))
def test_bound_holds_anywhere_and_closes_at_optimum(name, seed):
    """A share s of anything else lowers every q by at most a factor 1 - s, and so raises ln max g by -ln(1 - s)."""
    program = program_of(name, 60, seed)
    best, _ = likelihood.newton(program, gap=GAP)
    for share in (0.5, 1e-2, 1e-4):
        judged = program.judge((1 - share) * best.distribution + share * skewed_distribution(program.size, seed + 10))
        assert best.log_likelihood - judged.log_likelihood <= judged.gap + FLOAT
        assert judged.gap <= best.gap - math.log1p(-share) + FLOAT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [lambda seed: with_zeros(3, 5, seed), lambda seed: twins(2, 4, seed)[:3]])
def test_no_point_of_a_lattice_of_the_simplex_is_better(make, seed):
    table = make(seed)
    program = Likelihood(table=table, counts=draw_counts(table, 25, seed))
    best, _ = likelihood.newton(program, gap=GAP)
    lattice = [(i, j, LATTICE - i - j) for i in range(LATTICE + 1) for j in range(LATTICE + 1 - i)]
    judged = [program.judge(np.array(place, float)) for place in lattice]
    assert max(found.log_likelihood for found in judged) <= best.log_likelihood + GAP
    for found in judged:
        assert best.log_likelihood - found.log_likelihood <= found.gap + FLOAT


@pytest.mark.parametrize("name", few_by_default(TABLES, *FEW))
def test_expectation_maximization_reaches_what_newton_finds(name):
    program = program_of(name, 60)
    best, _ = likelihood.newton(program, gap=GAP)
    point, _ = likelihood.accelerated_updates(program, np.ones(program.size), gap=GAP)
    assert point.gap <= GAP
    assert point.log_likelihood == pytest.approx(best.log_likelihood, abs=GAP)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("name", few_by_default(TABLES, *FEW))
def test_the_likelihood_never_falls_along_the_updates(name, accelerate):
    program = program_of(name, 60)
    best, _ = likelihood.newton(program, gap=GAP)
    points = list(
        itertools.islice(likelihood.updates(program, skewed_distribution(program.size, 4), accelerate=accelerate), 40)
    )
    values = np.array([point.log_likelihood for point in points])
    assert (np.diff(values) >= -FLOAT).all()
    for point in points:
        assert best.log_likelihood - point.log_likelihood <= point.gap + FLOAT


def test_an_update_is_the_posterior_mean():
    table, counts = with_zeros(6, 5, 4), np.array([3, 0, 4, 1, 0])
    start = skewed_distribution(6, 1)
    program = Likelihood(table=table, counts=counts)
    _, after = itertools.islice(likelihood.updates(program, start), 2)
    expected = np.zeros(6)
    for y in range(5):
        for _ in range(counts[y]):
            posterior = start * table[:, y]
            expected += posterior / posterior.sum() / counts.sum()
    assert after.distribution == pytest.approx(expected, rel=FLOAT)


def test_extrapolation_needs_far_fewer_steps():
    program = program_of("line, squared, skewed prior", 10**6)
    plain, fast = (
        next(k for k, point in enumerate(likelihood.updates(program, np.ones(8), accelerate=way)) if point.gap <= 1e-5)
        for way in (False, True)
    )
    assert 5 * fast <= plain


EXACT = [
    ([[10, 4, 2], [3, 9, 4], [1, 5, 10]], [4, 8, 4]),
    ([[12, 2, 1, 1], [0, 16, 0, 0], [2, 2, 8, 4]], [2, 10, 4]),
    ([[8, 8], [16, 0]], [15, 1]),
]


@pytest.mark.parametrize(("sixteenths", "weights"), EXACT)
def test_counts_in_exact_proportion_give_the_distribution_back(sixteenths, weights):
    table, truth = np.array(sixteenths) / 16, np.array(weights) / 16
    program = Likelihood(table=table, counts=256 * (truth @ table))
    assert program.judge(truth).gap <= FLOAT
    shares = truth @ table
    for point in (
        likelihood.solve_likelihood(program).point,
        likelihood.accelerated_updates(program, np.ones(program.size), gap=GAP)[0],
    ):
        assert point.log_likelihood == pytest.approx(float(shares[shares > 0] @ np.log(shares[shares > 0])), abs=GAP)
        assert point.distribution == pytest.approx(truth, abs=NEAR)


@pytest.mark.parametrize("name", few_by_default(TABLES, *FEW))
def test_reports_in_one_cell_select_likeliest_secret(name):
    table = TABLES[name]()
    y = table.shape[1] // 2
    counts = np.zeros(table.shape[1], int)
    counts[y] = 17
    point, _ = likelihood.newton(Likelihood(table=table, counts=counts), gap=GAP)
    assert point.log_likelihood == pytest.approx(math.log(table[:, y].max()), abs=GAP)


@pytest.mark.parametrize("name", ["scattered points", "zeros", "eikonal, 8 neighbours"])
def test_the_order_of_reports_and_secrets_does_not_matter(name):
    program = program_of(name, 60)
    random = np.random.default_rng(2)
    rows, columns = (random.permutation(length) for length in program.table.shape)
    moved = Likelihood(table=program.table[rows][:, columns], counts=program.counts[columns])
    here, there = likelihood.newton(program, gap=FLOAT)[0], likelihood.newton(moved, gap=FLOAT)[0]
    assert there.log_likelihood == pytest.approx(here.log_likelihood, abs=GAP)
    assert there.distribution == pytest.approx(here.distribution[rows], abs=NEAR)


@pytest.mark.parametrize("name", ["scattered points", "zeros", "line, zero-one"])
def test_reports_that_say_the_same_may_be_merged(name):
    """A report split into two at fixed odds, in any split of its count, changes L by a constant and p not at all."""
    program = program_of(name, 60)
    y = int(program.counts.argmax())
    table = np.column_stack([program.table, 0.7 * program.table[:, y]])
    table[:, y] *= 0.3
    count = int(program.counts[y])
    here = likelihood.newton(program, gap=FLOAT)[0]
    for kept in (0, 1, count):
        counts = np.append(program.counts, count - kept)
        counts[y] = kept
        split = likelihood.newton(Likelihood(table=table, counts=counts), gap=FLOAT)[0]
        added = (kept * math.log(0.3) + (count - kept) * math.log(0.7)) / 60
        assert split.log_likelihood == pytest.approx(here.log_likelihood + added, abs=GAP)
        assert split.distribution == pytest.approx(here.distribution, abs=NEAR)


def test_secrets_that_no_report_tells_apart_share_alike():
    point, _ = likelihood.newton(program_of("twins", 60), gap=GAP)
    assert point.distribution[::2] == pytest.approx(point.distribution[1::2], rel=1e-6)


@pytest.mark.parametrize(
    ("side", "reports"),
    [
        (12, 750),
        pytest.param(30, 750, marks=pytest.mark.exhaustive),
        pytest.param(30, 20_000, marks=pytest.mark.exhaustive),
    ],
)
def test_many_secrets(side, reports):
    table = normalised_geometric(lattice_problem(side), 0.0040154449)
    program = Likelihood(table=table, counts=draw_counts(table, reports))
    point, iterations = likelihood.newton(program, gap=GAP)
    assert point.gap <= GAP
    assert iterations <= INTERIOR
    best = point.log_likelihood + point.gap
    for judged in itertools.islice(likelihood.updates(program, np.ones(side**2), accelerate=True), 100):
        assert judged.log_likelihood <= best
    assert best - judged.log_likelihood <= 1e-3


class Refusing:
    """A program whose every point has likelihood 0; keeps the points."""

    def __init__(self):
        self.points = []

    def judge(self, distribution):
        self.points.append(distribution)
        return CertifiedPoint(
            distribution=distribution, reported=None, ratio=None, log_likelihood=-math.inf, gap=math.inf
        )


def test_refused_extrapolation_is_halved():
    program = program_of("euclidean lattice", 60)
    now, after, twice = itertools.islice(likelihood.updates(program, skewed_distribution(16, 3) + 1), 3)
    refusing = Refusing()
    likelihood._extrapolate(refusing, now, after)
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


def test_smaller_factorisation_keeps_the_optimum(monkeypatch):
    table = normalised_geometric(lattice_problem(12), 0.003)
    program = Likelihood(table=table, counts=draw_counts(table, 300))
    some, _ = likelihood.newton(program, gap=GAP)
    sizes = []
    factor = likelihood._factor
    monkeypatch.setattr(likelihood, "_LEFT_OUT", -1.0)
    monkeypatch.setattr(likelihood, "_factor", lambda gram, own: sizes.append(len(gram)) or factor(gram, own))
    whole, _ = likelihood.newton(program, gap=GAP)
    assert set(sizes) == {144}
    assert some.log_likelihood == pytest.approx(whole.log_likelihood, abs=GAP)
    assert support_size(some) == support_size(whole) == (whole.distribution > 1e-6 / 144).sum()


def test_matrix_is_solved_by_one_sweep(monkeypatch):
    """Against numpy on blocks of the whole matrix; with no secret left out, on the whole matrix."""
    random = np.random.default_rng(0)
    half, barrier, right = random.random((30, 20)), 10.0 ** random.uniform(-2, 6, 30), random.random(30)
    matrix = half @ half.T + np.diag(barrier)
    small = np.sort((matrix.diagonal() - barrier) / barrier)
    bound = small[np.cumsum(small) <= likelihood._LEFT_OUT].max()
    out = (matrix.diagonal() - barrier) / barrier <= bound
    assert 5 <= out.sum() <= 25
    expected = right / matrix.diagonal()
    rest = right[~out] - matrix[np.ix_(~out, out)] @ expected[out]
    expected[~out] = np.linalg.solve(matrix[np.ix_(~out, ~out)], rest)
    expected[out] = (right[out] - matrix[np.ix_(out, ~out)] @ expected[~out]) / matrix.diagonal()[out]
    assert likelihood._solver(half, barrier)(right) == pytest.approx(expected, rel=SOLVE)
    monkeypatch.setattr(likelihood, "_LEFT_OUT", -1.0)
    assert likelihood._solver(half, barrier)(right) == pytest.approx(np.linalg.solve(matrix, right), rel=SOLVE)


def test_a_step_is_a_predictor_and_a_corrector(monkeypatch):
    """Against numpy on the linearised conditions in p and z together, with the matrix of second derivatives."""
    monkeypatch.setattr(likelihood, "_LEFT_OUT", -1.0)
    program = program_of("scattered points", 60)
    n = program.size
    now, slack = program.judge(skewed_distribution(n, 6) + 0.05), skewed_distribution(n, 7) + 0.01
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
    assert np.concatenate(likelihood._step(program, now, slack)) == pytest.approx(expected, rel=SOLVE)


def test_a_matrix_that_is_not_definite_takes_the_least_ridge():
    gram = np.ones((3, 3)) - 1e-13 * np.eye(3)
    factor = likelihood._factor(gram, np.zeros(3))
    lower = np.tril(factor[0])
    assert lower @ lower.T == pytest.approx(gram, abs=2e-12)
    assert likelihood._factor(-np.eye(3), np.zeros(3)) is None


def test_where_newton_stalls_the_updates_go_on_from_there(monkeypatch):
    program = program_of("zeros", 60)
    best = likelihood.newton(program, gap=GAP)[0].log_likelihood
    monkeypatch.setattr(likelihood, "_ITERATIONS", 3)
    solution = likelihood.solve_likelihood(program, gap=GAP)
    assert solution.method == "newton, accelerated"
    assert solution.iterations > 3
    assert solution.point.gap <= GAP
    monkeypatch.setattr(likelihood, "_STEPS", 2)
    unfinished = likelihood.solve_likelihood(program, gap=GAP)
    assert unfinished.iterations == 5
    assert unfinished.point.gap > GAP
    assert GAP < best - unfinished.point.log_likelihood <= unfinished.point.gap


def test_singular_matrices_start_with_updates(monkeypatch):
    monkeypatch.setattr(likelihood, "_factor", lambda gram, barrier: None)
    solution = likelihood.solve_likelihood(program_of("zeros", 60), gap=GAP)
    assert solution.method == "newton, accelerated"
    assert solution.point.gap <= GAP
