"""Repair: certified integers from any table of numbers, at near zero loss."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.integer_oracles import are_rows, distances, reference_violations
from reference.checking import ROW_SUM

from mechdesign.errors import DesignError, InputError
from mechdesign.extend import Edges, repair
from mechdesign.mechanism.repair import MARGIN, envelope, round_to_integers

SHORTEST = 2.0**-30  # nats, the shortest edge that is taken
UNCHANGED = 1e-9  # relative loss: the margin 2^-40, divided by the shortest length of these cases, 0.01 nats
ROUNDED = 2.0**-50  # relative: a probability times 2^62 in floating point
FLOAT = 1e-13  # relative: sums and exponentials of doubles


def connected_edges(rng: np.random.Generator, n: int, shortest: float, longest: float) -> Edges:
    """A random tree with random further edges, lengths spread over the decades."""
    pairs = {(int(rng.integers(v)), v) for v in range(1, n)}
    pairs |= {tuple(sorted(map(int, rng.choice(n, 2, replace=False)))) for _ in range(n)}
    tail, head = np.array(sorted(pairs)).T
    return Edges(tail=tail, head=head, length=np.exp(rng.uniform(np.log(shortest), np.log(longest), len(tail))))


def random_table(rng: np.random.Generator, n: int, m: int, zeros: float, noise: float) -> np.ndarray:
    """Rows that sum to 1, up to noise of either sign."""
    table = np.where(rng.random((n, m)) < zeros, 0.0, rng.random((n, m)))
    table[:, 0] += table.sum(axis=1) == 0
    return table / table.sum(axis=1, keepdims=True) + noise * rng.standard_normal((n, m))


def check_certified(mass: np.ndarray, edges: Edges) -> None:
    assert mass.dtype == np.uint64
    assert are_rows(mass)
    assert reference_violations(mass, edges) == 0


def loss_of(mass: np.ndarray, cost: np.ndarray) -> float:
    return float((cost * (mass / ROW_SUM)).sum())


def exponential(edges: Edges, n: int) -> np.ndarray:
    weight = np.exp(-distances(edges, n) / 2)
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-3])
@pytest.mark.parametrize(
    ("shortest", "longest"), [(1e-6, 50.0), (1e-6, 1e-5), (0.1, 2.0), (20.0, 50.0), (44.0, 60.0), (SHORTEST, 1)]
)
def test_any_table_becomes_a_certified_one(zeros: float, noise: float, shortest: float, longest: float) -> None:
    rng = np.random.default_rng(int(1e4 * zeros + longest) + round(-np.log(noise + 1e-20)))
    for _ in range(4):
        n, m = int(rng.integers(2, 12)), int(rng.integers(1, 12))
        edges = connected_edges(rng, n, shortest, longest)
        kernel = np.exp(-distances(edges, n)) if n == m else None
        check_certified(repair(random_table(rng, n, m, zeros, noise), edges, rng.random((n, m)), kernel), edges)


@pytest.mark.parametrize("scale", [1e-12, 0.3, 1e6])
def test_rows_need_not_sum_to_one(scale: float) -> None:
    rng = np.random.default_rng(3)
    edges = connected_edges(rng, 6, 0.1, 2.0)
    check_certified(repair(scale * rng.random((6, 5)), edges, rng.random((6, 5))), edges)


@pytest.mark.parametrize("seed", range(5))
def test_a_private_table_keeps_its_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    edges = connected_edges(rng, n, 0.01, 3.0)
    epsilon = float(edges.length.min())
    response = 1.0 + (np.exp(epsilon) - 1) * np.eye(n)
    cost = rng.dirichlet(np.ones(n))[:, None] * rng.random((n, n))
    private = [
        exponential(edges, n),
        response / response.sum(axis=1, keepdims=True),
        np.tile(rng.dirichlet(np.ones(n)), (n, 1)),
        np.eye(n)[np.zeros(n, int)],
    ]
    private.append(sum(private) / len(private))
    for table in private:
        mass = repair(table, edges, cost)
        check_certified(mass, edges)
        assert loss_of(mass, cost) == pytest.approx((cost * table).sum(), rel=UNCHANGED)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_infinite_table_is_refused(bad: float) -> None:
    edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([1.0]))
    with pytest.raises(InputError, match="must be finite"):
        repair(np.array([[bad, 0.5], [0.5, 0.5]]), edges, np.ones((2, 2)))


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_a_table_without_a_positive_entry_is_refused(value: float) -> None:
    edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([1.0]))
    with pytest.raises(InputError, match="positive entry"):
        repair(np.full((2, 2), value), edges, np.ones((2, 2)))


@pytest.mark.parametrize(
    ("length", "refused"), [(SHORTEST, False), (0.99 * SHORTEST, True), (1e-300, True), (0.0, True)]
)
def test_edges_too_short_for_the_lift_are_refused(length: float, refused: bool) -> None:
    edges = Edges(tail=np.array([0, 1]), head=np.array([1, 2]), length=np.array([1.0, length]))
    table = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    if not refused:
        check_certified(repair(table, edges, 1 - table), edges)
        return
    with pytest.raises(InputError, match="shorter than 2\\^-30") as caught:
        repair(table, edges, 1 - table)
    assert caught.value.field == "epsilon"


@pytest.mark.parametrize("seed", range(6))
def test_the_envelope_is_the_smallest_private_table_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 8, 5
    edges = connected_edges(rng, n, 0.01, 4.0)
    table = random_table(rng, n, m, 0.6, 0.0)
    raised = envelope(table, edges)
    distance = distances(edges, n)
    smallest = (np.exp(-distance)[:, :, None] * table[None]).max(axis=1)
    assert (raised >= table).all()
    assert (raised >= smallest * (1 - FLOAT)).all()
    assert (raised <= smallest * (1 + MARGIN) ** n * (1 + FLOAT)).all()
    tail, head, length = edges.both_ways()
    assert (raised[tail] * (1 + MARGIN) <= np.exp(length)[:, None] * raised[head] * (1 + FLOAT)).all()


def test_private_table_is_its_own_envelope() -> None:
    edges = connected_edges(np.random.default_rng(8), 7, 0.1, 2.0)
    table = exponential(edges, 7)
    assert np.array_equal(envelope(table, edges), table)


def test_a_kernel_is_never_worse_and_at_times_better() -> None:
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 8
        edges = Edges(tail=np.arange(n - 1), head=np.arange(1, n), length=rng.uniform(0.3, 1.5, n - 1))
        distance = distances(edges, n)
        kernel, cost = np.exp(-distance), distance / n
        table = kernel * np.linalg.solve(kernel, np.ones(n)) + 1e-4 * rng.random((n, n))
        plain, with_kernel = repair(table, edges, cost), repair(table, edges, cost, kernel)
        check_certified(with_kernel, edges)
        assert loss_of(with_kernel, cost) <= loss_of(plain, cost)
        better += loss_of(with_kernel, cost) < loss_of(plain, cost)
    assert better > 0


@pytest.mark.parametrize("shape", [(8, 7), (8, 8), (8, 9)])
def test_a_kernel_that_cannot_help_does_no_harm(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    edges = connected_edges(rng, 8, 0.1, 2.0)
    table, cost = rng.dirichlet(np.ones(8), 8), rng.random((8, 8))
    assert np.array_equal(repair(table, edges, cost, np.ones(shape)), repair(table, edges, cost))


@pytest.mark.parametrize("seed", range(5))
def test_rounding_keeps_every_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 10
    edges = connected_edges(rng, n, 0.01, 8.0)
    table = exponential(edges, n)
    mass = round_to_integers(table, edges)
    assert mass.dtype == np.uint64
    assert are_rows(mass)
    is_largest = np.zeros((n, n), bool)
    is_largest[np.arange(n), table.argmax(axis=1)] = True
    allowed = ROUNDED * table + (2 * n + 2) * 2.0**-62
    assert (np.abs(mass / ROW_SUM - table) <= np.where(is_largest, n * allowed, allowed)).all()


def test_rounding_puts_the_rest_on_the_largest_entry() -> None:
    edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([1.0]))
    mass = round_to_integers(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), edges)
    assert mass.tolist() == [[ROW_SUM - 2, 1, 1], [1, ROW_SUM - 2, 1]]


@pytest.mark.parametrize("row", [[np.nan, 1.0], [1.1, -0.1], [0.5, 0.5 + 1e-8], [0.0, 0.0], [np.inf, 0.0]])
def test_rounding_refuses_rows_not_summing_to_one(row: list[float]) -> None:
    edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([1.0]))
    with pytest.raises(InputError, match="probabilities"):
        round_to_integers(np.array([[0.5, 0.5], row]), edges)


def test_unrepairable_table_raises_design_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.mechanism.repair._ATTEMPTS", 0)
    edges = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([1.0]))
    with pytest.raises(DesignError, match="no slack"):
        repair(np.eye(2), edges, np.ones((2, 2)))
