"""The loss to the true position against sums over many positions of a cell, drawn cell by cell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mechdesign import Domain, priors
from mechdesign.losses import LOSSES, Distance, SquaredDistance, ZeroOne
from mechdesign.problem.position_loss import position_cost

MIDPOINT = 1.1 / 60**2  # relative error of the midpoint rule of 60 x 60 positions a cell
EXACT = 1e-12  # polynomials, in floating point
GRID = Domain.grid((3, 4), cell=0.7, unit="m", origin=(1.0, -2.0))
PRIOR = np.random.default_rng(3).dirichlet(np.ones(12))


def neighbour_rows(shape: tuple[int, int]) -> np.ndarray:
    """The rows of the cells around each cell, by clamping."""
    i, j = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    columns = [
        np.clip(i + a, 0, shape[0] - 1) * shape[1] + np.clip(j + b, 0, shape[1] - 1)
        for a, b in product((-1, 0, 1), repeat=2)
    ]
    return np.stack(columns, axis=1)


def midpoint_cost(name: str, domain: Domain, prior: np.ndarray, spline: bool) -> np.ndarray:
    """The cost by the midpoint rule over positions."""
    offset = (np.arange(60) + 0.5) / 60 - 0.5
    weights = np.stack([(0.5 - offset) ** 2 / 2, 0.75 - offset**2, (0.5 + offset) ** 2 / 2])
    around, cost = neighbour_rows(domain.shape), np.zeros((domain.size, domain.size))
    for (u, centre), (y, place) in product(enumerate(domain.points), repeat=2):
        square = (centre[0] + 0.7 * offset - place[0])[:, None] ** 2 + (centre[1] + 0.7 * offset - place[1]) ** 2
        weighted_loss = prior[u] * (square if name == "squared" else np.sqrt(square)) / 3600
        if spline:
            np.add.at(cost[:, y], around[u], (weights @ weighted_loss @ weights.T).ravel())
        else:
            cost[u, y] = weighted_loss.sum()
    return cost


@pytest.mark.parametrize("name", ["squared", "distance"])
@pytest.mark.parametrize("spline", [False, True])
def test_the_cost_is_the_sum_over_positions(name: str, spline: bool) -> None:
    small = Domain.grid((2, 3), cell=0.7, unit="m")
    prior = PRIOR[:6] / PRIOR[:6].sum()
    around = neighbour_rows((2, 3)) if spline else None
    computed = position_cost(LOSSES[name], prior, small, small, around)
    assert computed == pytest.approx(midpoint_cost(name, small, prior, spline), rel=MIDPOINT)


def test_snapping_adds_a_sixth_of_squared_side() -> None:
    cost = position_cost(SquaredDistance(), PRIOR, GRID, GRID)
    between = PRIOR[:, None] * SquaredDistance().matrix(GRID, GRID)
    assert cost - between == pytest.approx(np.repeat(PRIOR[:, None] * 0.7**2 / 6, 12, axis=1), rel=EXACT, abs=EXACT)
    line = Domain.grid(4, cell=0.5, unit="m")
    for loss in (SquaredDistance(), Distance()):
        computed = position_cost(loss, PRIOR[:4], line, line)
        assert np.diagonal(computed) == pytest.approx(PRIOR[:4] * loss.within_cell(line), rel=EXACT)


def test_distance_within_cell_is_closed_form() -> None:
    computed = position_cost(Distance(), np.ones(12), GRID, GRID)
    assert np.diagonal(computed) == pytest.approx(Distance().within_cell(GRID), rel=EXACT)
    parts = position_cost(Distance(), np.ones(12), GRID, GRID, neighbour_rows((3, 4)))
    assert parts.sum() == pytest.approx(computed.sum(), rel=EXACT)


def test_the_spline_adds_half_the_squared_side_inside() -> None:
    """A place whose 5 x 5 cells around have one prior: the quadratic term is that of the proof."""
    domain = Domain.grid((7, 7), cell=0.7, unit="m")
    cost = position_cost(SquaredDistance(), np.full(49, 1 / 49), domain, domain, neighbour_rows((7, 7)))
    inside = 3 * 7 + 3
    between = SquaredDistance().matrix(domain, domain)[inside] / 49
    assert cost[inside] - between == pytest.approx(np.full(49, 0.7**2 / 2 / 49), rel=1e-10)


@pytest.mark.parametrize(
    ("loss", "domain", "reports"),
    [
        (ZeroOne(), GRID, GRID),
        (Distance(), Domain.grid((2, 2), cell=(1.0, 2.0), unit="m"), None),
        (Distance(), GRID, Domain.points_at([[0.0, 0.0], [1.0, 1.3]], unit="m")),
        (SquaredDistance(), Domain.points_at([[0.0, 0.0], [1.0, 1.3]], unit="m"), None),
        (SquaredDistance(), GRID, Domain.points_at([[0.0, 0.0], [1.0, 1.3]], unit="km")),
    ],
)
def test_position_cost_is_none_for_other_problems(loss, domain, reports) -> None:
    assert position_cost(loss, priors.uniform(domain), domain, reports or domain) is None
