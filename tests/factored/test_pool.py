"""The optimal program by a pool of columns: against the dense program, in integers, and part by part."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from fixtures.integer_oracles import reference_violations
from fixtures.problems import SMALL, grid, prior_of, varying_level
from fixtures.rows import few_by_default
from scipy.sparse import csr_array

import mechdesign as md
from mechdesign import DesignProblem, Eikonal
from mechdesign.base import threads as cores
from mechdesign.errors import UnsuitableError
from mechdesign.factored import FactoredMechanism
from mechdesign.factored import pool as run
from mechdesign.factored import pool_rounds as rounds
from mechdesign.factored.ball import Places
from mechdesign.factored.columns import Columns
from mechdesign.factored.field_matrix import FieldMatrix
from mechdesign.factored.fields import FieldTask, columns_of, field_block
from mechdesign.factored.pool_master import PlaceBlocks, conjugate_gradients
from mechdesign.factored.work_folder import threads
from mechdesign.losses import Distance, Loss, SquaredDistance, ZeroOne

NEAR = 3e-3  # relative width of the interval: the cost of whole steps and row sums on edges of half a nat and more
STEP = 2.0**-12
SINGLE = 1e-6  # fields are in single precision
SOLVED = 1e-6  # of the residual that conjugate gradients are asked for


def on_grid(size: int, loss: Loss, mask: np.ndarray | None = None, seed: int = 0) -> DesignProblem:
    domain = grid((size, size), mask=mask)
    metric = 1.5 * Eikonal(level=varying_level(seed=seed), stencil=8)
    prior = prior_of(domain.size, seed) * (np.arange(domain.size) % 9 > 0)  # with zeros
    return DesignProblem(domain=domain, metric=metric, prior=prior / prior.sum(), loss=loss)


def masked_grid() -> DesignProblem:
    mask = np.ones((7, 7), bool)
    mask[2:4, 1:6] = False
    return on_grid(7, Distance(), mask)


PROBLEMS = {
    "squared": lambda: on_grid(6, SquaredDistance()),
    "distance, masked": masked_grid,
    "zero-one": lambda: on_grid(6, ZeroOne(), seed=2),
    "streets": SMALL["streets"],
    "graph, table loss": SMALL["graph, table loss"],
}


@cache
def truth(name: str) -> float:
    return float(md.solve(md.Optimal(PROBLEMS[name]()), gap=1e-6).attrs["lower_bound"])


@pytest.mark.parametrize("name", few_by_default(PROBLEMS, "distance, masked"))
def test_interval_contains_optimum(name: str) -> None:
    mechanism = md.solve(md.Optimal(PROBLEMS[name]()), method="pool", gap=NEAR)
    loss, bound = mechanism.attrs["expected_loss"], mechanism.attrs["lower_bound"]
    assert bound <= truth(name) * (1 + 1e-6)
    assert truth(name) <= loss
    assert loss - bound <= NEAR * loss
    assert md.verify(mechanism).certified


def test_more_rounds_follow_a_wrong_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that end far too early are certified, miss the gap, and continue."""
    impatient = replace(rounds.CONSTANTS, enough=10.0)
    monkeypatch.setattr(rounds, "CONSTANTS", impatient)
    monkeypatch.setattr(run, "CONSTANTS", impatient)
    stages = []
    problem = PROBLEMS["squared"]()
    mechanism = md.solve(problem, method="pool", gap=NEAR, on_progress=lambda step: stages.append(step.method))
    assert sum(stage.startswith("row sums, round 1 of") for stage in stages) in (2, 3)
    assert mechanism.attrs["expected_loss"] - mechanism.attrs["lower_bound"] <= NEAR * mechanism.attrs["expected_loss"]


@pytest.fixture(scope="module")
def squared_mechanism() -> xr.Dataset:
    """The mechanism of the problem "squared", computed once."""
    with pytest.MonkeyPatch.context() as patched:
        return solve_as_columns(patched)


def solve_as_columns(monkeypatch: pytest.MonkeyPatch, name: str = "squared", **given: object) -> xr.Dataset:
    """The mechanism as columns, as above the size of tables."""
    monkeypatch.setattr(run, "LARGEST_TABLE", 0)
    return md.solve(md.Optimal(PROBLEMS[name]()), method="pool", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", few_by_default(["squared", "distance, masked", "streets"], "squared"))
def test_columns_are_private_and_near_table(
    name: str, squared_mechanism: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Second route to the certificate: rows over a common denominator, every edge and report."""
    mechanism = squared_mechanism if name == "squared" else solve_as_columns(monkeypatch, name, gap=NEAR)
    checked = md.verify(mechanism)
    assert checked.certified
    assert checked.lower_bound_checked
    assert mechanism.attrs["lower_bound"] <= truth(name) * (1 + 1e-6)
    assert truth(name) <= mechanism.attrs["expected_loss"] <= truth(name) * (1 + NEAR)
    rows = FactoredMechanism(mechanism)
    found = [rows.integers(u) for u in range(rows.secrets)]
    common = int(np.lcm.reduce(np.array([s for _, s in found], object)))
    table = np.array([[a * (common // s) for a in row] for row, s in found], object)
    assert reference_violations(table, PROBLEMS[name]().edges) == 0


def test_loss_table_gives_mechanism_table(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "graph, table loss"
    assert "mass" in solve_as_columns(monkeypatch, name)
    monkeypatch.setattr(run, "TABLED", 0)
    with pytest.raises(UnsuitableError, match="computed from coordinates"):
        solve_as_columns(monkeypatch, name)


@pytest.mark.exhaustive
def test_pool_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for count in (1, 2):
        monkeypatch.setattr(run, "threads", lambda count=count: threads(count))
        monkeypatch.setattr(cores, "WORKERS", count)
        found.append(solve_as_columns(monkeypatch))
    assert found[0].identical(found[1])


@pytest.mark.parametrize("stage", few_by_default(["bound, pass", "round 2, pricing"], "bound, pass"))
def test_interrupted_pool_is_certified(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(state: object) -> None:
        if stage in str(state) and not raised:
            raised.append(stage)
            raise KeyboardInterrupt

    raised: list[str] = []
    mechanism = solve_as_columns(monkeypatch, on_progress=interrupt)
    assert raised
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified


@pytest.mark.exhaustive
def test_time_limit_ends_pool_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = solve_as_columns(monkeypatch, time_limit=1e-3)
    assert mechanism.attrs["stopped"] == "time"
    assert md.verify(mechanism).certified


def test_altered_columns_do_not_verify(squared_mechanism: xr.Dataset) -> None:
    for name in ("weight", "generator_offset", "generator_place", "edge_units", "dual"):
        altered = squared_mechanism.copy(deep=True)
        altered[name].values[0] += 1
        assert not md.verify(altered).certified


@pytest.mark.parametrize("name", ["reports apart from secrets", "discrete"])
def test_unsuitable_problem_is_refused_by_pool(name: str) -> None:
    with pytest.raises(UnsuitableError, match="pool"):
        md.solve(md.Optimal(SMALL[name]()), method="pool")


def spread(problem: DesignProblem, columns: Columns, target: np.ndarray) -> FieldTask:
    places = Places.of(problem)
    units = np.floor(places.graph.length / STEP).astype(np.int64)
    return FieldTask(places=places, units=units, step=STEP, columns=columns, target=target, keep=8.0, reach=50.0)


def test_fields_are_least_generator_distances() -> None:
    problem, random = on_grid(6, SquaredDistance()), np.random.default_rng(1)
    place, offset = np.array([3, 30, 7, 7, 20]), np.array([0, 900, 0, 100, 4000])
    columns, target = Columns(place=place, offset=offset, first=np.array([0, 2, 3])), np.array([3, 8, 21])
    asked = spread(problem, columns, target)
    graph = problem.edges
    whole = np.full((36, 36), np.inf)
    whole[np.arange(36), np.arange(36)] = 0
    units = np.floor(graph.length / STEP)
    whole[graph.tail, graph.head] = whole[graph.head, graph.tail] = units
    for k in range(36):  # Floyd and Warshall
        whole = np.minimum(whole, whole[:, k : k + 1] + whole[k])
    found = field_block(asked, 0, 3)
    matrix = FieldMatrix.of(found["count"], found["place"], found["value"], 36)
    dense = np.stack([matrix.down(row) for row in np.eye(3)])
    for k in range(3):
        part = slice(columns.bounds[k], columns.bounds[k + 1])
        nats = STEP * (columns.offset[part, None] + whole[columns.place[part]]).min(axis=0)
        assert dense[k] == pytest.approx(np.where(nats <= 8.0, np.exp(-nats), 0.0), rel=SINGLE, abs=0)
        loss = problem.weighted_loss[:, target[k]]
        assert found["cost"][k] == pytest.approx(float(loss @ np.exp(-nats)), rel=1e-12)
    vector = random.random(36)
    assert matrix.across(vector) == pytest.approx(dense @ vector, rel=1e-12)


def test_field_matrix_multiplies_as_a_dense_one() -> None:
    """Runs end at gaps and with their column, even if the next column begins at the next place."""
    random = np.random.default_rng(5)
    dense = random.random((40, 30)) * (random.random((40, 30)) < 0.6)
    dense[0, 7:] = dense[1, :7] = dense[2] = dense[-1] = 0
    dense[0, 3:7] = dense[1, 7:12] = 0.5
    dense = dense.astype(np.float32)

    def of(rows: np.ndarray) -> FieldMatrix:
        _, place = np.nonzero(rows)
        return FieldMatrix.of((rows > 0).sum(axis=1), place.astype(np.int32), rows[rows > 0], 30)

    matrix = of(dense[:25]).with_more(of(dense[25:]))
    vector, weight = random.standard_normal(30), random.random(40)
    for found, rows in ((matrix, dense), (matrix.visible, np.where(dense >= 1e-3, dense, 0))):
        assert found.across(vector) == pytest.approx(rows @ vector, rel=1e-12, abs=1e-12)
        assert found.down(weight) == pytest.approx(rows.T @ weight, rel=1e-12)
        assert found.normal(weight, vector) == pytest.approx(rows.T @ (weight * (rows @ vector)), abs=10 * SINGLE)
        first, column, value = found.transpose
        assert np.array_equal(csr_array((value, column, first), shape=(30, 40)).toarray(), rows.T)


def test_generators_reproduce_their_ray() -> None:
    """A ray of the cone is its own smallest extension: found again from the places that no neighbour explains."""
    problem, random = on_grid(6, SquaredDistance()), np.random.default_rng(2)
    nats = np.min(random.uniform(0, 2, 36)[:, None] + problem.distances, axis=0)
    rays = {"count": np.array([36]), "place": np.arange(36, dtype=np.int32), "ray": np.exp(-nats).astype(np.float32)}
    columns = columns_of(Places.of(problem), rays, step=2.0**-20, deepest=30.0)
    again = np.min(2.0**-20 * columns.offset[:, None] + problem.distances[columns.place], axis=0)
    assert again == pytest.approx(nats - nats.min(), abs=1e-4)
    assert columns.size == 1
    assert len(columns.place) < 36


def test_preconditioned_blocks_solve_normal_equations() -> None:
    problem, random = on_grid(18, SquaredDistance()), np.random.default_rng(3)
    n = problem.domain.size
    columns = Columns(place=np.arange(n), offset=np.zeros(n, np.int64), first=np.arange(n))
    found = field_block(spread(problem, columns, np.arange(n)), 0, n)
    matrix = FieldMatrix.of(found["count"], found["place"], found["value"], n)
    scale, ridge, right = random.random(n) ** 4, np.full(n, 1e-3), random.standard_normal(n)
    blocks = PlaceBlocks(Places.of(problem))
    blocks.factor(matrix.visible, scale, ridge)  # the visible entries precondition the equations of all entries
    applied = []

    def apply(x: np.ndarray) -> np.ndarray:
        applied.append(1)
        return matrix.down(scale * matrix.across(x)) + ridge * x

    x = conjugate_gradients(apply, blocks.apply, right, tolerance=1e-9, iterations=60)
    dense = np.stack([matrix.across(row) for row in np.eye(n)]).T
    expected = scipy.linalg.solve(dense.T @ (scale[:, None] * dense) + np.diag(ridge), right)
    assert np.abs(x - expected).max() <= SOLVED * np.abs(expected).max()
    assert len(applied) < 50
    assert len(blocks.nodes) > 1
    product = dense.T @ (scale * (dense @ right))
    assert matrix.normal(scale, right) == pytest.approx(product, rel=0, abs=SINGLE * float(np.abs(product).max()))
    seen = np.stack([matrix.visible.across(row) for row in np.eye(n)]).T
    assert np.array_equal(seen, np.where(dense >= 1e-3, dense, 0.0))
    assert matrix.visible.value.size < matrix.value.size


@pytest.mark.study
def test_pool_gap_on_fifty_by_fifty_cells() -> None:
    """Beyond tables: within 0.3 % of the proved bound."""
    problem = md.load_problem("philadelphia", cells=50)
    mechanism = md.solve(md.Optimal(problem), method="pool", gap=4e-3)
    loss, bound = mechanism.attrs["expected_loss"], mechanism.attrs["lower_bound"]
    assert 4.371 <= bound <= 4.374 <= loss <= bound * 1.003
    assert md.verify(mechanism).certified
