"""Planar Laplace noise at the true position: its loss by a lattice rule against random draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.evaluation.position_noise import NOISE_TOLERANCE, snapped_noise_loss

EPSILON = math.log(2) / 200


def drawn_distances(domain, reports, prior, epsilon):
    """From report to position, of 150,000 random positions, a gamma radius and a normal direction each."""
    rng, count = np.random.default_rng(11), 150_000
    cell = rng.choice(domain.size, count, p=prior)
    position = domain.points[cell] + domain.cell[0] * (rng.random((count, 2)) - 0.5)
    direction = rng.standard_normal((count, 2))
    noise = direction * (rng.gamma(2, 1 / epsilon, count) / np.linalg.norm(direction, axis=1))[:, None]
    distance = np.full(count, np.inf)
    report = np.zeros((count, 2))
    for place in reports.points:  # the nearest one, by comparing all
        away = np.linalg.norm(position + noise - place, axis=1)
        report[away < distance] = place
        distance = np.minimum(distance, away)
    return np.linalg.norm(report - position, axis=1)


def grid(shape, mask=None):
    return md.Domain.grid(shape, cell=400.0, unit="m", origin=(50.0, -900.0), mask=mask)


@pytest.mark.parametrize("case", few_by_default(["uniform", "people", "river"], "river"))
def test_noise_loss_agrees_with_random_draws(case):
    domain = grid((5, 4))
    weights = np.random.default_rng(2).random(20) ** 4 if case == "people" else np.ones(20)
    weights[7] = 0.0 if case == "people" else 1.0  # a cell where nobody lives
    reports = domain
    if case == "river":
        mask = np.ones((5, 4), bool)
        mask[2, 1:] = False
        reports = grid((5, 4), mask)
        weights = mask.ravel().astype(float)
    prior = weights / weights.sum()
    distances = drawn_distances(domain, reports, prior, EPSILON)
    for loss, drawn in ((md.losses.Distance(), distances), (md.losses.SquaredDistance(), distances**2)):
        value, error = snapped_noise_loss(domain, reports, prior, EPSILON, loss), drawn.std() / math.sqrt(drawn.size)
        assert abs(value - drawn.mean()) <= NOISE_TOLERANCE * drawn.mean() + 4 * error


def test_noise_on_fine_cells_has_the_error_of_the_plane():
    """It is 2 / eps on the whole plane, and the border of a box of 60 nats saves some of it."""
    domain = md.Domain.grid((100, 100), cell=0.6, unit="m")
    prior = np.full(domain.size, 1 / domain.size)
    assert 1.8 < snapped_noise_loss(domain, domain, prior, 1.0, md.losses.Distance()) < 2.0


def test_noise_has_no_loss_where_a_cell_has_no_positions():
    line = md.Domain.grid((4,), 1.0)
    assert snapped_noise_loss(line, line, np.full(4, 0.25), 1.0, md.losses.Distance()) is None
    cells = grid((2, 2))
    assert snapped_noise_loss(cells, cells, np.full(4, 0.25), 1.0, md.losses.ZeroOne()) is None
