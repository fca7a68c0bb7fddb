"""A metric given as a full matrix: what is claimed, and which edges are left out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError

ROUNDED = 1e-13  # sums of a few edges along a path, against the closure by another order of sums


def closure(matrix: np.ndarray) -> list[list[Fraction]]:
    """Floyd and Warshall's recursion in exact fractions."""
    d = [[Fraction(x) for x in row] for row in matrix.tolist()]
    for w in range(len(d)):
        d = [[min(d[u][v], d[u][w] + d[w][v]) for v in range(len(d))] for u in range(len(d))]
    return d


def euclidean(size: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).uniform(0, 3, (size, 2))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def arbitrary(size: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).uniform(0.1, 3, (size, size))
    return np.triu(drawn, 1) + np.triu(drawn, 1).T


def line(size: int, step: float) -> np.ndarray:
    """Exact multiples of a step: every pair but the neighbours is implied, to the last bit where sums are exact."""
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))) * step


MATRICES = {
    "euclidean": euclidean(9, 1),
    "no triangle inequality": arbitrary(9, 2),
    "line": line(8, 0.25),
    "line, sums that round": line(8, 0.1),
    "discrete": 1.3 * (1 - np.eye(6)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_edges_kept_imply_all_entries_exactly_and_none_is_implied(name):
    matrix = MATRICES[name]
    graph = md.Graph.from_matrix(matrix)
    kept = np.full(matrix.shape, np.inf)
    tail, head, length = (np.asarray(given) for given in (graph.tail, graph.head, graph.length))
    assert np.array_equal(length, matrix[tail, head])
    exact = closure(matrix)
    direct = {(int(u), int(v)): Fraction(float(x)) for u, v, x in zip(tail, head, length, strict=True)}
    big = sum(direct.values())
    again = [
        [Fraction(0) if u == v else direct.get((min(u, v), max(u, v)), big) for v in range(len(kept))]
        for u in range(len(kept))
    ]
    for w in range(len(kept)):
        again = [[min(again[u][v], again[u][w] + again[w][v]) for v in range(len(kept))] for u in range(len(kept))]
    assert again == exact
    for (u, v), x in direct.items():
        assert all(exact[u][w] + exact[w][v] > x for w in range(len(kept)) if w not in (u, v))


def test_how_many_edges_are_left():
    assert len(np.asarray(md.Graph.from_matrix(MATRICES["line"]).tail)) == 7
    assert len(np.asarray(md.Graph.from_matrix(MATRICES["discrete"]).tail)) == 15
    assert len(np.asarray(md.Graph.from_matrix(MATRICES["no triangle inequality"]).tail)) < 36


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_a_matrix_designs_and_verifies(scale):
    domain = md.Domain.nodes(9)
    metric = scale * md.Graph.from_matrix(MATRICES["euclidean"])
    np.testing.assert_allclose(metric.distances(domain), scale * MATRICES["euclidean"], rtol=1e-12)  # rounded by 2^-44
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.ZeroOne())
    assert md.verify(md.solve(md.Optimal(problem=problem))).certified


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([1.0, 2.0], "shape"),
        (np.ones((2, 3)), "shape"),
        ([[0, 1], [2, 0]], "symmetric"),
        ([[0, -1], [-1, 0]], "positive"),
        ([[0, 0], [0, 0]], "positive"),
        ([[1, 1], [1, 0]], "0 on the diagonal"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[0, np.inf], [np.inf, 0]], "finite"),
    ],
)
def test_matrices_that_are_no_distances_are_refused(matrix, message):
    with pytest.raises(InputError, match=message) as caught:
        md.Graph.from_matrix(matrix)
    assert caught.value.field == "distances"
    assert caught.value.remedy
