from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mechdesign.errors import InputError
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.metric.shortest_paths import (
    START_RADIUS,
    Edges,
    check_connected,
    fast_marching,
    fast_marching_kernel,
    lipschitz_minorant,
    shortest_paths,
)
from mechdesign.setting.space.domain import Domain

skfmm = pytest.importorskip("skfmm")

LIPSCHITZ = 1e-12  # of values up to tens of nats: a few roundings of 2^-53 each
COLLAPSE = 0.6  # a field below this share of the true distance is broken, not inaccurate (0.35 is seen)
CLOSE = 0.12  # fast marching against 16 neighbours on a steep hill, second order; from a circular front it is over 0.13
CLOSE_FLAT = 0.03  # the same at constant eps
OVERSHOOT = 1.005  # a field steeper than this on some edge is beyond any rounding

SIDE = 15
GRID = Domain.grid((SIDE, SIDE), cell=1.0, unit="cell")
HILL = PrivacyLevel.from_values(
    GRID, 0.4 + 1.6 * np.exp(-((GRID.points - SIDE / 2) ** 2).sum(axis=1) / 32).reshape(SIDE, SIDE)
)
FLAT = PrivacyLevel.constant(1.0, "cell")
EDGES = Eikonal(level=HILL).edges(GRID)
SOURCES = [0, 7, 112, 118, 200]


def max_log_ratio(field, edges=EDGES):
    return (np.abs(field[edges.tail] - field[edges.head]) / edges.length).max()


def raw_march(level, source, start):
    phi = np.ones(SIDE * SIDE)
    phi[source] = start
    speed = 1 / level.at(GRID.points).reshape(SIDE, SIDE)
    return np.asarray(skfmm.travel_time(phi.reshape(SIDE, SIDE), speed, dx=1.0, order=2)).ravel()


def beside(source):
    return np.abs(GRID.points - GRID.points[source]).sum(axis=1) == 1


def random_edges(size, seed):
    rng = np.random.default_rng(seed)
    tail, head = np.triu_indices(size, 1)
    kept = (rng.random(len(tail)) < 0.2) | (head == tail + 1)
    return Edges(tail=tail[kept], head=head[kept], length=rng.uniform(0.1, 3, kept.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_shortest_paths_are_a_metric_and_match_floyd_warshall(seed):
    edges = random_edges(25, seed)
    found = shortest_paths(edges, 25)
    assert np.array_equal(found, found.T)
    assert not found.diagonal().any()
    assert (found[:, None, :] <= (found[:, :, None] + found[None, :, :]) * (1 + LIPSCHITZ)).all()
    brute = np.full((25, 25), np.inf)
    brute[edges.tail, edges.head] = edges.length
    brute = np.minimum(np.minimum(brute, brute.T), np.where(np.eye(25), 0, np.inf))
    for k in range(25):
        brute = np.minimum(brute, brute[:, [k]] + brute[[k], :])
    np.testing.assert_allclose(found, brute, rtol=LIPSCHITZ)


def test_edges_go_both_ways_and_scale():
    edges = Edges(tail=np.array([0, 1]), head=np.array([2, 2]), length=np.array([1.0, 3.0]))
    matrix = edges.matrix(3)
    assert sp.issparse(matrix)
    assert matrix.toarray().tolist() == [[0, 0, 1], [0, 0, 3], [1, 3, 0]]
    assert edges.scaled(0.5).length.tolist() == [0.5, 1.5]


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
    below = lipschitz_minorant(field, edges)
    assert (below <= field).all()
    assert max_log_ratio(below, edges) <= 1 + LIPSCHITZ
    np.testing.assert_allclose(lipschitz_minorant(below, edges), below, rtol=0, atol=LIPSCHITZ)
    brute = (field[None, :] + shortest_paths(edges, 30)).min(axis=1)
    np.testing.assert_allclose(below, brute, rtol=0, atol=LIPSCHITZ)
    assert (below < field - 1).any()


@pytest.mark.parametrize(("level", "close"), [(HILL, CLOSE), (FLAT, CLOSE_FLAT)])
@pytest.mark.parametrize("source", SOURCES)
def test_fast_marching_is_near_the_graph_distance_and_zero_at_the_source(source, level, close):
    field = fast_marching(GRID, level, source)
    distances = Eikonal(level=level, stencil=16).distances(GRID)[source]
    assert field[source] == 0
    np.testing.assert_allclose(field, distances, rtol=close)
    inside = np.linalg.norm(GRID.points - GRID.points[source], axis=1) <= START_RADIUS
    assert inside.sum() >= 4
    start = np.repeat(GRID.points[[source]], inside.sum(), axis=0)
    assert np.array_equal(field[inside], level.line_integrals(start, GRID.points[inside]))


@pytest.mark.parametrize("source", [22, 118, 200])
def test_started_at_a_single_cell_the_march_collapses_beside_it(source):
    near = beside(source)
    distances = Eikonal(level=HILL, stencil=16).distances(GRID)[source]
    assert (raw_march(HILL, source, 0.0)[near] / distances[near]).min() < COLLAPSE
    np.testing.assert_allclose(fast_marching(GRID, HILL, source)[near], distances[near], rtol=LIPSCHITZ)


@pytest.mark.parametrize("source", SOURCES)
def test_marched_fields_are_too_steep_and_minorants_are_not(source):
    field = fast_marching(GRID, HILL, source)
    assert max_log_ratio(raw_march(HILL, source, 0.0)) > OVERSHOOT
    assert max_log_ratio(field) > OVERSHOOT
    below = lipschitz_minorant(field, EDGES)
    assert max_log_ratio(below) <= 1 + LIPSCHITZ
    assert below[source] == 0
    assert (below <= field).all()


def test_a_signed_start_flattens_the_peak():
    source = 112
    signed, ours = raw_march(FLAT, source, -1.0), fast_marching(GRID, FLAT, source)
    near = beside(source)
    assert signed[source] > 0.1
    assert (signed[near] - signed[source]).max() < 0.2
    np.testing.assert_allclose(ours[near] - ours[source], 1.0, rtol=LIPSCHITZ)


def test_the_kernel_has_the_minorant_of_every_source_as_a_column():
    mask = np.ones((6, 5), bool)
    mask[3, :3] = False
    domain = Domain.grid((6, 5), cell=(1.0, 2.0), unit="cell", mask=mask)
    edges = Eikonal(level=HILL).edges(domain)
    kernel = fast_marching_kernel(domain, HILL, edges)
    assert not kernel.diagonal().any()
    assert max(max_log_ratio(column, edges) for column in kernel.T) <= 1 + LIPSCHITZ
    for source in (0, 13, domain.size - 1):
        assert np.array_equal(kernel[:, source], lipschitz_minorant(fast_marching(domain, HILL, source), edges))


def test_a_domain_inside_the_first_circle_needs_no_march():
    domain = Domain.grid((2, 2), cell=1.0, unit="cell")
    assert fast_marching(domain, FLAT, 0) == pytest.approx([0, 1, 1, 2**0.5], rel=LIPSCHITZ)


@pytest.mark.parametrize(
    "domain", [Domain.grid(5, cell=1.0, unit="cell"), Domain.points_at([[0.0, 1.0], [1.0, 1.0]], unit="cell")]
)
def test_fast_marching_needs_a_plane_grid(domain):
    with pytest.raises(InputError, match="2-D grid") as caught:
        fast_marching(domain, FLAT, 0)
    assert caught.value.field == "distances"


def test_a_front_that_cannot_pass_is_reported():
    mask = np.ones((9, 3), bool)
    mask[4] = False
    with pytest.raises(InputError, match="does not reach") as caught:
        fast_marching(Domain.grid((9, 3), cell=1.0, unit="cell", mask=mask), FLAT, 0)
    assert (caught.value.field, caught.value.value) == ("mask", "12 cells")
