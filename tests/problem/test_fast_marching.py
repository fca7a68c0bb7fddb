from __future__ import annotations

import numpy as np
import pytest

from mechdesign import Domain, Eikonal, PrivacyLevel
from mechdesign.errors import InputError
from mechdesign.problem.fast_marching import START_RADIUS, fast_marching, fast_marching_kernel
from mechdesign.problem.lattice import lipschitz_minorant

skfmm = pytest.importorskip("skfmm", reason="needs the extra: pip install 'mechdesign[fmm]'")

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


def neighbours_of(source):
    return np.abs(GRID.points - GRID.points[source]).sum(axis=1) == 1


@pytest.mark.parametrize(("level", "close"), [(HILL, CLOSE), (FLAT, CLOSE_FLAT)])
@pytest.mark.parametrize("source", SOURCES)
def test_fast_marching_approximates_graph_distance(source, level, close):
    field = fast_marching(GRID, level, source)
    distances = Eikonal(level=level, stencil=16).distances(GRID)[source]
    assert field[source] == 0
    np.testing.assert_allclose(field, distances, rtol=close)
    inside = np.linalg.norm(GRID.points - GRID.points[source], axis=1) <= START_RADIUS
    assert inside.sum() >= 4
    start = np.repeat(GRID.points[[source]], inside.sum(), axis=0)
    assert np.array_equal(field[inside], level.line_integrals(start, GRID.points[inside]))


@pytest.mark.parametrize("source", [22, 118, 200])
def test_march_from_a_single_cell_collapses(source):
    neighbours = neighbours_of(source)
    distances = Eikonal(level=HILL, stencil=16).distances(GRID)[source]
    assert (raw_march(HILL, source, 0.0)[neighbours] / distances[neighbours]).min() < COLLAPSE
    np.testing.assert_allclose(fast_marching(GRID, HILL, source)[neighbours], distances[neighbours], rtol=LIPSCHITZ)


@pytest.mark.parametrize("source", SOURCES)
def test_marched_fields_are_too_steep_and_minorants_are_not(source):
    field = fast_marching(GRID, HILL, source)
    assert max_log_ratio(raw_march(HILL, source, 0.0)) > OVERSHOOT
    assert max_log_ratio(field) > OVERSHOOT
    minorant = lipschitz_minorant(field, EDGES)
    assert max_log_ratio(minorant) <= 1 + LIPSCHITZ
    assert minorant[source] == 0
    assert (minorant <= field).all()


def test_a_signed_start_flattens_the_peak():
    source = 112
    signed, ours = raw_march(FLAT, source, -1.0), fast_marching(GRID, FLAT, source)
    neighbours = neighbours_of(source)
    assert signed[source] > 0.1
    assert (signed[neighbours] - signed[source]).max() < 0.2
    np.testing.assert_allclose(ours[neighbours] - ours[source], 1.0, rtol=LIPSCHITZ)


def test_kernel_columns_are_minorants():
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
