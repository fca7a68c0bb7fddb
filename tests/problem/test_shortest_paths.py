from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mechdesign.errors import InputError
from mechdesign.extend import Edges
from mechdesign.problem.lattice import check_connected, lipschitz_minorant, shortest_paths

LIPSCHITZ = 1e-12  # of values up to tens of nats: a few roundings of 2^-53 each


def max_log_ratio(field, edges):
    return (np.abs(field[edges.tail] - field[edges.head]) / edges.length).max()


def random_edges(size, seed):
    rng = np.random.default_rng(seed)
    tail, head = np.triu_indices(size, 1)
    selected = (rng.random(len(tail)) < 0.2) | (head == tail + 1)
    return Edges(tail=tail[selected], head=head[selected], length=rng.uniform(0.1, 3, selected.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_shortest_paths_are_a_metric_and_match_floyd_warshall(seed):
    edges = random_edges(25, seed)
    distances = shortest_paths(edges, 25)
    assert np.array_equal(distances, distances.T)
    assert not distances.diagonal().any()
    assert (distances[:, None, :] <= (distances[:, :, None] + distances[None, :, :]) * (1 + LIPSCHITZ)).all()
    brute = np.full((25, 25), np.inf)
    brute[edges.tail, edges.head] = edges.length
    brute = np.minimum(np.minimum(brute, brute.T), np.where(np.eye(25), 0, np.inf))
    for k in range(25):
        brute = np.minimum(brute, brute[:, [k]] + brute[[k], :])
    np.testing.assert_allclose(distances, brute, rtol=LIPSCHITZ)


def test_edges_go_both_ways_and_scale():
    edges = Edges(tail=np.array([0, 1]), head=np.array([2, 2]), length=np.array([1.0, 3.0]))
    matrix = edges.matrix(3)
    assert sp.issparse(matrix)
    assert matrix.toarray().tolist() == [[0, 0, 1], [0, 0, 3], [1, 3, 0]]
    assert edges.scale(0.5).length.tolist() == [0.5, 1.5]


def test_parts_are_counted():
    edges = Edges(tail=np.array([0, 2]), head=np.array([1, 3]), length=np.ones(2))
    check_connected(Edges(tail=np.array([0]), head=np.array([1]), length=np.ones(1)), 2)
    with pytest.raises(InputError, match="parts") as caught:
        check_connected(edges, 5)
    assert caught.value.value == "3 parts, of [2, 2, 1] places, around places [0, 2, 4]"


@pytest.mark.parametrize("shift", [0.0, -7.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_minorant_is_the_largest_lipschitz_field_below(seed, shift):
    edges = random_edges(30, seed)
    field = np.random.default_rng(seed).uniform(0, 10, 30) + shift
    minorant = lipschitz_minorant(field, edges)
    assert (minorant <= field).all()
    assert max_log_ratio(minorant, edges) <= 1 + LIPSCHITZ
    np.testing.assert_allclose(lipschitz_minorant(minorant, edges), minorant, rtol=0, atol=LIPSCHITZ)
    brute = (field[None, :] + shortest_paths(edges, 30)).min(axis=1)
    np.testing.assert_allclose(minorant, brute, rtol=0, atol=LIPSCHITZ)
    assert (minorant < field - 1).any()
