"""Integer metrics: against Dijkstra on the same integers, and the laws that the certificate rests on."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures.problems import CASES, grid, varying_level
from scipy.sparse.csgraph import dijkstra

from mechdesign import Eikonal
from mechdesign.errors import InputError
from mechdesign.factored.integer_metric import LARGEST, IntegerMetric

STEP = 1e-3  # nats per unit
RIVER = np.ones((9, 11), bool)
RIVER[4, :9] = False


def integer(points: np.ndarray, edges, step: float = STEP, cap: int = 50_000) -> IntegerMetric:
    units = np.minimum(np.floor(edges.length / step), cap // 4).astype(np.uint16)
    return IntegerMetric(points=points, tail=edges.tail, head=edges.head, units=units, cap=cap)


def reference(metric: IntegerMetric, **given: object) -> np.ndarray:
    both = np.concatenate([metric.units, metric.units]).astype(float)
    places = np.concatenate([metric.tail, metric.head]), np.concatenate([metric.head, metric.tail])
    return np.minimum(dijkstra(sp.csr_array((both, places), shape=(metric.size,) * 2), **given), metric.cap)


def shuffled_maze(seed: int) -> IntegerMetric:
    """A random tree with a few shortcuts, places in no order at all."""
    rng = np.random.default_rng(seed)
    size = 60
    head = np.arange(1, size)
    tail = np.array([rng.integers(max(0, h - 2), h) for h in head])
    name = rng.permutation(size)
    tail, head = np.append(name[tail], name[0]), np.append(name[head], name[-1])
    units = rng.integers(1, 900, len(tail)).astype(np.uint16)
    return IntegerMetric(points=rng.random((size, 2)), tail=tail, head=head, units=units, cap=LARGEST - 900)


METRICS = {
    **{name: lambda make=make: integer(make().domain.points, make().edges) for name, make in CASES.items()},
    "around a river": lambda: integer(
        (river := grid((9, 11), mask=RIVER)).points, Eikonal(level=varying_level(), stencil=16).edges(river)
    ),
    "capped": lambda: integer(grid((9, 11)).points, Eikonal(level=varying_level()).edges(grid((9, 11))), cap=4000),
    "maze 0": lambda: shuffled_maze(0),
    "maze 1": lambda: shuffled_maze(1),
}
EVERY = pytest.mark.parametrize("name", METRICS)


@cache
def metric_of(name: str) -> IntegerMetric:
    return METRICS[name]()


@EVERY
def test_distances_are_shortest_integer_paths(name: str) -> None:
    metric = metric_of(name)
    assert np.array_equal(metric.from_sources(np.arange(metric.size)), reference(metric))


@EVERY
def test_distances_are_metric_and_lipschitz(name: str) -> None:
    metric = metric_of(name)
    found = metric.from_sources(np.arange(metric.size)).astype(int)
    assert np.array_equal(found, found.T)
    assert (np.diagonal(found) == 0).all()
    assert (np.abs(found[metric.tail] - found[metric.head]) <= metric.units[:, None]).all()
    through = (found[:, :, None] + found[None, :, :]).min(axis=1)
    assert (found <= np.minimum(through, metric.cap)).all()


@EVERY
def test_distances_do_not_depend_on_blocks(name: str) -> None:
    metric = metric_of(name)
    sources = np.arange(metric.size)[::-1]
    apart = np.column_stack([metric.from_sources(sources[k : k + 1]) for k in range(metric.size)])
    assert np.array_equal(metric.from_sources(sources), apart)


def test_distances_go_around_river() -> None:
    straight = integer(grid((9, 11)).points, Eikonal(level=varying_level()).edges(grid((9, 11))))
    river = metric_of("around a river")
    domain = grid((9, 11), mask=RIVER)
    one, other = domain.lookup[3, 0], domain.lookup[5, 0]
    across = straight.from_sources(np.array([3 * 11]))[5 * 11, 0]
    assert river.from_sources(np.array([one]))[other, 0] > 5 * across


@pytest.mark.parametrize("cap", [0, LARGEST, LARGEST - 9])
def test_overflowing_distances_are_refused(cap: int) -> None:
    ends = np.array([0]), np.array([1])
    with pytest.raises(InputError) as caught:
        IntegerMetric(points=np.zeros((2, 1)), tail=ends[0], head=ends[1], units=np.array([10], np.uint16), cap=cap)
    assert caught.value.field == "cap"
    IntegerMetric(
        points=np.zeros((2, 1)), tail=ends[0], head=ends[1], units=np.array([10], np.uint16), cap=LARGEST - 10
    )
