"""Restricted programs, their block algebra and the block interior-point method, against dense algebra and HiGHS."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures.problems import CASES
from fixtures.rows import few_by_default
from fixtures.tolerances import BLOCKS, SOLVED
from threadpoolctl import threadpool_info, threadpool_limits

from mechdesign import DesignProblem, load_problem
from mechdesign.base.threads import OutOfTime, in_blocks, in_order, one_blas_thread
from mechdesign.solvers.blocks import BlockAlgebra, solve_blocks
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.solvers.lp.highs import solve_linear_program
from mechdesign.solvers.lp.linear_program import LOOSE, LinearProgram, cone_rows
from mechdesign.solvers.lp.restricted import RestrictedProgram, restrict

CUTS = ("none", "some", "all")
ROUNDED = 1e-12  # relative: sums of a few hundred terms
SMALLEST = 1e-9  # coefficients of the row sums that HiGHS would drop
FARTHEST = 600.0  # nats beyond the cap: e^600 is a double, and so are its products with losses
RESTORED = 1e-5  # error of row sums at the end; restoration stops if only the constant report can move


@cache
def problem_of(case: str) -> DesignProblem:
    return CASES[case]()


@cache
def program_of(case: str, cuts: str) -> RestrictedProgram:
    problem = problem_of(case)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    chance = {"none": 0.0, "some": 0.4, "all": 1.0}[cuts]
    cut = np.random.default_rng(3).random(pricer.distance.shape) < chance
    return restrict(problem, 1 / problem.constant_loss, pricer.distance, pricer.parent, cut)


ALL_CUTS = ("line, zero-one", "eikonal, masked", "reports apart from secrets")
EVERY = [(case, cuts) for case in CASES for cuts in CUTS if cuts == "some" or case in ALL_CUTS]
every = pytest.mark.parametrize(
    ("case", "cuts"),
    few_by_default(
        EVERY,
        *(("line, zero-one", cuts) for cuts in CUTS),
        ("discrete", "some"),
        ("eikonal, masked", "some"),
        ("reports apart from secrets", "none"),
    ),
)


def dense_sums(program: RestrictedProgram) -> np.ndarray:
    """M (n, v), from the definition P(y|u) = q(component) e^{-D}."""
    m, n = program.component.shape
    sums = np.zeros((n, program.variables))
    for y in range(m):
        for u in range(n):
            sums[u, program.first[y] + program.component[y, u]] += np.exp(-program.distance[y, u])
    sums[:, -1] = 1.0
    return sums


@every
def test_program_points_are_private_tables_of_profiles(case: str, cuts: str) -> None:
    problem, program = problem_of(case), program_of(case, cuts)
    tail, head, length = problem.edges.both_ways()
    rng = np.random.default_rng(1)
    block = np.repeat(np.arange(len(program.first) - 1), np.diff(program.rows))
    lower, upper = program.first[block] + program.lower, program.first[block] + program.upper
    for _ in range(20):
        x = np.exp(rng.uniform(-0.5, 0.5, program.variables))
        x[-1] = 0.0
        table = program.table(x)
        holds = (x[lower] <= np.exp(program.slack) * x[upper] * (1 + ROUNDED)).all()
        private = (table[tail] <= np.exp(length)[:, None] * table[head] * (1 + ROUNDED)).all()
        assert holds == private
        assert (program.cost * x).sum() == pytest.approx(
            (problem.weighted_loss * table).sum() / problem.constant_loss, rel=ROUNDED
        )


@every
def test_row_sums_equal_the_dense_matrix(case: str, cuts: str) -> None:
    program = program_of(case, cuts)
    algebra, sums = BlockAlgebra(program), dense_sums(program)
    rng = np.random.default_rng(2)
    q, dual = rng.random(program.variables), rng.standard_normal(sums.shape[0])
    assert algebra.sums(q) == pytest.approx(sums @ q, rel=ROUNDED)
    assert algebra.sums_transposed(dual) == pytest.approx(dual @ sums, rel=ROUNDED, abs=ROUNDED)
    assert algebra.near_sums(q) @ dual == pytest.approx(q @ algebra.near_sums_transposed(dual), rel=ROUNDED)
    near = np.abs(algebra.near_sums(q) - algebra.sums(q)).max()
    assert near <= np.exp(-11.5) * q.max() * len(q)


@every
def test_factors_solve_the_normal_equations(case: str, cuts: str) -> None:
    program = program_of(case, cuts)
    algebra = BlockAlgebra(program)
    rng = np.random.default_rng(4)
    theta = np.exp(rng.uniform(-1, 1, algebra.rows))
    cone = np.array([algebra.cone(unit) for unit in np.eye(program.variables)]).T
    assert algebra.cone_transposed(theta) == pytest.approx(cone.T @ theta, rel=ROUNDED, abs=ROUNDED)
    normal = cone.T @ (theta[:, None] * cone)
    sums = np.array([algebra.near_sums(unit) for unit in np.eye(program.variables)]).T
    assert algebra.factor(theta)
    g, right = rng.standard_normal(program.variables), rng.standard_normal(algebra.secrets)
    exact = np.linalg.solve(normal, g)
    assert algebra.inverse(g) == pytest.approx(exact, rel=1e-9, abs=1e-9 * np.abs(exact).max())
    schur = sums @ np.linalg.solve(normal, sums.T)
    if np.linalg.matrix_rank(schur) < len(schur):
        return
    coupled = np.linalg.solve(schur, right)
    assert algebra.solve(right) == pytest.approx(coupled, rel=1e-7, abs=1e-7 * np.abs(coupled).max())


def linear_program(restricted: RestrictedProgram, cap: float) -> tuple[LinearProgram, np.ndarray]:
    """The restricted program as a linear program, and the scale (v,) by which its point is multiplied to give q.

    Variables are q e^{-max(head - cap, 0)}: without the cap entries further than `cap` nats would weigh nothing in the
    row sums and could take any value. Where that asks for an entry below e^{-cap} of its neighbour, equality is
    allowed: the envelope of the repair sees to the rest.
    """
    m, n = restricted.component.shape
    shift = np.clip(restricted.head - cap, 0.0, FARTHEST)
    block = np.repeat(np.arange(m + 1), np.diff(restricted.rows))
    lower, upper = restricted.first[block] + restricted.lower, restricted.first[block] + restricted.upper
    k = np.maximum(restricted.slack + shift[upper] - shift[lower], 0.0)
    near = k < LOOSE
    variable = restricted.first[:-2, None] + restricted.component
    kernel = np.exp(shift[variable] - restricted.distance)
    reports, secrets = np.nonzero(kernel > SMALLEST)
    total = restricted.variables
    sums = sp.csr_array(
        (
            np.r_[kernel[reports, secrets], np.ones(n)],
            (np.r_[secrets, np.arange(n)], np.r_[variable[reports, secrets], np.full(n, total - 1)]),
        ),
        shape=(n, total),
    )
    cone = cone_rows(k[near], lower[near], upper[near], total)
    scale = np.exp(shift)
    program = LinearProgram(
        cost=restricted.cost * scale,
        matrix=sp.csr_array(sp.vstack([sums, cone], format="csr")),
        row_lower=np.r_[np.ones(n), np.full(cone.shape[0], -np.inf)],
        row_upper=np.r_[np.ones(n), np.zeros(cone.shape[0])],
        linking=n,
    )
    return program, scale


@every
def test_the_interior_point_ends_where_highs_does(case: str, cuts: str) -> None:
    program = program_of(case, cuts)
    n = program.component.shape[1]
    point = solve_blocks(program, dual=np.zeros(n), tolerance=BLOCKS / 10)
    assert point.stopped == "gap"
    linear, scale = linear_program(program, 18.0)
    reference = solve_linear_program(linear, tolerance=SOLVED)
    assert program.cost @ point.q == pytest.approx(reference.objective, rel=BLOCKS)
    assert program.cost @ (reference.x * scale) == pytest.approx(reference.objective, rel=SOLVED)
    assert point.dual.sum() == pytest.approx(reference.objective, rel=BLOCKS)
    assert np.abs(program.table(point.q).sum(axis=1) - 1).max() <= RESTORED
    assert BlockAlgebra(program).cone(point.q).min() >= -BLOCKS * 1e-3


@pytest.mark.parametrize("tolerance", few_by_default([1e-1, 1e-3], 1e-3))
def test_restoration_corrects_row_sums(tolerance: float) -> None:
    problem = load_problem("philadelphia", cells=8)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    cut = np.random.default_rng(5).random(pricer.distance.shape) < 0.1
    program = restrict(problem, 1 / problem.constant_loss, pricer.distance, pricer.parent, cut)
    point = solve_blocks(program, dual=np.zeros(problem.domain.size), tolerance=tolerance)
    assert point.stopped == "gap"
    assert np.abs(program.table(point.q).sum(axis=1) - 1).max() <= ROUNDED


def test_all_cuts_give_the_whole_program() -> None:
    problem = problem_of("eikonal, 8 neighbours")
    program = program_of("eikonal, 8 neighbours", "all")
    assert program.variables == problem.domain.size**2 + 1
    assert len(program.slack) == 2 * len(problem.edges.tail) * problem.domain.size
    assert program.constraints == len(program.slack) + problem.domain.size


def test_time_and_interrupts_return_a_point_inside() -> None:
    program = program_of("eikonal, 8 neighbours", "some")

    def stop(iteration: int) -> None:
        if iteration == 3:
            raise KeyboardInterrupt

    start = np.zeros(program.component.shape[1])
    interrupted = solve_blocks(program, dual=start, tolerance=1e-9, on_progress=stop)
    late = solve_blocks(program, dual=start, tolerance=1e-9, deadline=0.0)
    assert interrupted.stopped == "interrupt"
    assert interrupted.iterations == 3
    assert late.stopped == "time"
    assert late.iterations == 0
    assert np.isfinite(interrupted.q).all()
    assert (interrupted.q > 0).all()
    assert (late.q > 0).all()


def test_work_blocks_cover_their_range_once() -> None:
    done = np.zeros(103, np.int64)

    def work(start: int, stop: int) -> None:
        done[start:stop] += 1

    in_blocks(work, len(done), 10)
    assert (done == 1).all()

    def fail(start: int, stop: int) -> None:
        raise ValueError(start)

    with pytest.raises(ValueError, match="0"):
        in_blocks(fail, 100, 10)


def test_results_of_threads_are_in_order() -> None:
    assert in_order(lambda k: k * k, 7) == [k * k for k in range(7)]


def test_one_blas_thread_is_restored() -> None:
    """NumPy's library and SciPy's, both of which solvers call."""

    def counts() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(3, user_api="blas"):
        before = counts()
        with one_blas_thread():
            assert set(counts()) == {1}
        assert counts() == before
    assert 3 in before


def test_no_work_block_starts_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block advances the clock of the test by a second."""
    done: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: float(len(done)))

    with pytest.raises(OutOfTime):
        in_blocks(lambda start, stop: done.append(start), 40, 1, deadline=2.5)
    assert 3 <= len(done) < 40  # threads that looked at the clock together may each begin another
