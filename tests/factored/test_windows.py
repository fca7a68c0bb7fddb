"""Windows around tiles of sources: against Dijkstra, and sums over them against sums over all places, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures.rows import few_by_default
from reference.factored import KERNEL_BITS, STEP_BITS
from scipy.sparse.csgraph import dijkstra

import mechdesign as md
from mechdesign import Domain
from mechdesign.factored.certificate import Factors
from mechdesign.factored.integer_metric import BLOCK, LARGEST, IntegerMetric, Neighbours, Windows, tile_order
from mechdesign.factored.rounds import ROUND_CONSTANTS, Units
from mechdesign.factored.row_sums import join_words, row_sums, sum_block
from mechdesign.problem.lattice import stencil_pairs

STEP = int(1e-3 * 2**STEP_BITS)  # 2^-48 nats per unit


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Places and edges in whole units, and a cap that leaves windows smaller than the map."""

    points: np.ndarray
    ends: tuple[np.ndarray, np.ndarray]
    units: np.ndarray
    cap: int

    def metric(self) -> IntegerMetric:
        tail, head = self.ends
        units = np.minimum(self.units, self.cap).astype(np.uint16)
        return IntegerMetric(points=self.points, tail=tail, head=head, units=units, cap=self.cap)


def lattice(shape: tuple[int, ...], stencil: int, cap: int, hole: bool = False) -> Graph:
    mask = np.ones(shape, bool)
    if hole:
        mask[3:-2, shape[1] // 2] = False
    domain = Domain.grid(shape, cell=1.0, unit="km", mask=mask)
    tail, head = stencil_pairs(domain, stencil)
    apart = np.sqrt(((domain.points[tail] - domain.points[head]) ** 2).sum(axis=1))
    units = np.floor(apart * np.random.default_rng(3).integers(300, 900, len(tail)))
    return Graph(points=domain.points, ends=(tail, head), units=units, cap=cap)


def rings() -> Graph:
    """Both axes wrapped: edges join opposite sides."""
    place = np.arange(24 * 24).reshape(24, 24)
    others = [np.roll(place, (-a, -b), (0, 1)) for a, b in ((0, 1), (1, 0), (1, 1))]
    units = np.random.default_rng(4).integers(200, 600, 3 * place.size)
    ends = np.tile(place.ravel(), 3), np.concatenate([other.ravel() for other in others])
    return Graph(points=np.argwhere(place >= 0).astype(float), ends=ends, units=units, cap=2500)


def streets() -> Graph:
    """A random tree of long and short streets with shortcuts, double edges and loops, edges of length 0 among them."""
    rng = np.random.default_rng(5)
    size = 500
    head = np.arange(1, size)
    tail = np.maximum(0, head - rng.integers(1, 30, size - 1))
    more = rng.integers(0, size, (2, 60))
    ends = np.concatenate([tail, more[0], [7, 9], tail[:5]]), np.concatenate([head, more[1], [7, 9], head[:5]])
    return Graph(points=rng.random((size, 2)), ends=ends, units=rng.integers(0, 2, len(ends[0])) * 900, cap=3000)


GRAPHS = {
    "8 neighbours": lambda: lattice((26, 20), 8, 3000),
    "16 neighbours": lambda: lattice((22, 22), 16, 2500),
    "masked": lambda: lattice((20, 24), 8, 3000, hole=True),
    "line": lambda: lattice((600,), 4, 4000),
    "three axes": lambda: lattice((9, 8, 7), 6, 2000),
    "wrapped": rings,
    "streets": streets,
    "apart": lambda: Graph(
        points=np.zeros((4, 1)), ends=(np.zeros(0, int), np.zeros(0, int)), units=np.zeros(0), cap=9
    ),
    "cap of 1": lambda: lattice((6, 7), 8, 1),
}
EVERY = pytest.mark.parametrize("name", GRAPHS)


@cache
def metric_of(name: str) -> IntegerMetric:
    return GRAPHS[name]().metric()


@cache
def distances(name: str) -> np.ndarray:
    """Dijkstra on the same integers, one apart from 0: an edge of length 0 is stored as 2^-20."""
    metric = metric_of(name)
    size = metric.size
    table = np.full((size, size), np.inf)
    np.minimum.at(table, (metric.tail, metric.head), np.maximum(metric.units, 2.0**-20))
    table = np.minimum(table, table.T)
    finite = np.isfinite(table)
    graph = sp.csr_array((table[finite], np.nonzero(finite)), shape=(size, size))
    return np.minimum(np.floor(dijkstra(graph) + 2.0**-8), metric.cap).astype(int)


def random_factors(metric: IntegerMetric, step: int = STEP) -> Factors:
    weight = np.random.default_rng(7).integers(1, 1 << 28, metric.size).astype(np.uint32)
    return Factors(metric=metric, step=step, weight=weight, inner=np.arange(metric.size)[::-1].copy())


@EVERY
@pytest.mark.obligation("windows")
def test_windows_hold_places_below_cap(name: str) -> None:
    metric = metric_of(name)
    expected, order, room = distances(name), tile_order(metric.points), metric.windows()
    sizes = []
    for start in range(0, metric.size, BLOCK):
        sources = order[start : start + BLOCK]
        window = room.window_of(sources)
        found = np.full((metric.size, len(sources)), metric.cap)
        found[window.places] = window.field
        assert np.array_equal(found, expected[:, sources])
        assert np.array_equal(np.sort(window.places), np.flatnonzero((found < metric.cap).any(axis=1)))
        sizes.append(len(window.places))
    assert name in ("apart", "cap of 1", "three axes") or min(sizes) < metric.size


@EVERY
def test_sources_may_repeat_in_any_order(name: str) -> None:
    metric = metric_of(name)
    sources = np.random.default_rng(1).integers(0, metric.size, 40)
    assert np.array_equal(metric.from_sources(sources), distances(name)[:, sources])


@EVERY
@pytest.mark.obligation("windows")
def test_window_sums_equal_full_sums(name: str) -> None:
    """In integers: E at the cap times the sum of all weights stands for everything outside."""
    metric = metric_of(name)
    factors = random_factors(metric, step=min(STEP, int(30 * 2**STEP_BITS / metric.cap)))
    kernel, weight = factors.kernel.astype(object), factors.weight.astype(object)
    expected = (kernel[distances(name)[factors.inner]] * weight).sum(axis=1).tolist()
    found = [sum_block(factors, start, start + 2 * BLOCK) for start in range(0, len(factors.inner), 2 * BLOCK)]
    secrets = np.concatenate([block["secret"] for block in found])
    assert np.array_equal(np.sort(secrets), np.arange(len(factors.inner)))
    sums = join_words(np.concatenate([block["row_sum"] for block in found]))
    assert [expected[u] for u in secrets] == sums


@pytest.mark.obligation("no-wrap")
def test_largest_numbers_do_not_wrap() -> None:
    """A cap and edges that together are 65,535; weights of 2^28 on more places than one 64-bit sum takes."""
    line = np.arange(3000)
    metric = IntegerMetric(
        points=np.zeros((3001, 1)),
        tail=line,
        head=line + 1,
        units=np.full(3000, 30_000, np.uint16),
        cap=LARGEST - 30_000,
    )
    found = metric.from_sources(np.array([0, 2]))
    assert found[:5].T.tolist() == [[0, 30_000, 35_535, 35_535, 35_535], [35_535, 30_000, 0, 30_000, 35_535]]
    factors = Factors(metric=metric, step=1 << 34, weight=np.full(3001, 1 << 28, np.uint32), inner=np.arange(2))
    kernel = factors.kernel.tolist()
    assert kernel[0] == 1 << KERNEL_BITS
    row = kernel[0] + kernel[30_000] + 2999 * kernel[-1], kernel[0] + 2 * kernel[30_000] + 2998 * kernel[-1]
    assert join_words(sum_block(factors, 0, 2)["row_sum"]) == [total << 28 for total in row]


def test_scratch_is_reset_after_window() -> None:
    """A window equals the one that fresh scratch arrays give."""
    metric = metric_of("streets")
    room = Windows(metric.neighbours, metric.cap)
    for sources in (np.array([3]), np.arange(200), np.array([499, 0])):
        again, fresh = room.window_of(sources), metric.windows().window_of(sources)
        assert np.array_equal(again.places, fresh.places)
        assert np.array_equal(again.field, fresh.field)
    assert (room.scratch.distance == LARGEST).all()
    assert (room.rank == -1).all()
    assert (room.scratch.head == -1).all()


def test_neighbours_follow_edges() -> None:
    tail, head, units = np.array([2, 0, 2]), np.array([0, 1, 2]), np.array([5, 6, 7], np.uint16)
    rows = Neighbours.of(4, tail, head, units)
    assert rows.first.tolist() == [0, 2, 3, 6, 6]
    assert list(zip(rows.near.tolist(), rows.units.tolist(), strict=True)) == [
        (2, 5), (1, 6), (0, 6), (0, 5), (2, 7), (2, 7)
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(1,), (127,), (128,), (300,), (40, 30), (9, 10, 11)], ids=str)
def test_tiles_hold_close_places(shape: tuple[int, ...]) -> None:
    points = np.argwhere(np.ones(shape, bool)).astype(float)
    order = tile_order(points)
    assert np.array_equal(np.sort(order), np.arange(len(points)))
    for start in range(0, len(points), BLOCK):
        tile = points[order[start : start + BLOCK]]
        longest = (tile.max(axis=0) - tile.min(axis=0) + 1).max()
        assert longest <= 2.5 * BLOCK ** (1 / len(shape))


@pytest.mark.parametrize(
    ("cells", "stencil", "rows"),
    few_by_default(
        [(20, 8, 400), (30, 16, 64), (60, 16, 128), (100, 16, 1500), (200, 8, 300)], (20, 8, 400), (30, 16, 64)
    ),
)
def test_map_row_sums_equal_sums_over_places(cells: int, stencil: int, rows: int) -> None:
    """At the cap of a certificate, rows drawn at random, against Dijkstra over the whole map."""
    problem = md.load_problem("philadelphia", cells=cells, stencil=stencil)
    units = Units.for_lengths(problem.edges.length, ROUND_CONSTANTS.widest_range)
    tail, head = problem.edges.tail, problem.edges.head
    whole = units.quantise(problem.edges.length).astype(np.uint16)
    metric = IntegerMetric(points=problem.domain.points, tail=tail, head=head, units=whole, cap=units.cap)
    factors = random_factors(metric, step=units.step)
    chosen = np.random.default_rng(8).choice(len(factors.inner), rows, replace=False)
    graph = sp.csr_array((whole.astype(float), (tail, head)), shape=(metric.size,) * 2)
    far = np.minimum(dijkstra(graph, directed=False, indices=factors.inner[chosen]), units.cap).astype(np.int64)
    kernel, weight = factors.kernel.tolist(), factors.weight.tolist()
    expected = [sum(kernel[q] * w for q, w in zip(row, weight, strict=True)) for row in far.tolist()]
    found = join_words(row_sums(factors))
    assert [found[u] for u in chosen.tolist()] == expected
