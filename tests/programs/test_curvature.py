"""Local weights and curvature: hyperbolic spaces, where they are exact, flat ones, lines, and solved weight systems."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from fixtures.problems import grid
from fixtures.tolerances import LINEAR_ALGEBRA
from scipy.integrate import quad

import mechdesign as md
from mechdesign.programs.curvature import LEAST_SHARE, TOTALS, curvature_excess, line_weights, local_weights

SECOND_ORDER = 2e-3  # second differences over a cell, 20 to 40 cells from where eps is singular


def hyperbolic(axes: int, scale: float) -> tuple[md.Domain, md.Eikonal]:
    """Eps = scale / z on cells far from z = 0: curvature -1 / scale^2."""
    shape = (4,) * (axes - 1) + (20,)
    domain = grid(shape, origin=(0.0,) * (axes - 1) + (20.0,))
    level = md.PrivacyLevel.from_values(domain, (scale / domain.points[:, -1]).reshape(shape))
    return domain, md.Eikonal(level=level, stencil=8 if axes == 2 else 26)


def inside(domain: md.Domain) -> np.ndarray:
    assert domain.index is not None
    return ((domain.index > 0) & (domain.index < np.array(domain.shape) - 1)).all(axis=1)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("scale", [2.5, 4.0])
def test_local_weights_are_exact_at_constant_negative_curvature(axes: int, scale: float) -> None:
    """Second route: 1 / w = integral of e^-r over hyperbolic space of curvature -1 / scale^2, by quadrature."""
    domain, metric = hyperbolic(axes, scale)
    sphere = 2 * math.pi if axes == 2 else 4 * math.pi
    total = sphere * quad(lambda r: math.exp(-r) * (scale * math.sinh(r / scale)) ** (axes - 1), 0, 400)[0]
    volume = metric.level.at(domain.points) ** axes
    weights = (local_weights(domain, metric) / volume)[inside(domain)]
    assert weights == pytest.approx(1 / total, abs=SECOND_ORDER / TOTALS[axes])


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize(("scale", "negative"), [(0.9, True), (1.1, False), (1.9, False), (2.1, False)])
def test_excess_changes_sign_with_growth_of_balls(axes: int, scale: float, negative: bool) -> None:
    """The integral of e^-r diverges at curvature -1 in the plane and -1/4 in space: scale 1 and 2."""
    domain, metric = hyperbolic(axes, scale)
    diverges = scale < (1 if axes == 2 else 2)
    assert diverges == negative or axes == 3
    assert ((curvature_excess(domain, metric) > 0)[inside(domain)] == diverges).all()


@pytest.mark.parametrize(("axes", "cell"), [(1, 0.3), (2, 0.5), (3, 0.2)])
def test_flat_levels_have_the_weights_of_the_laplace_density(axes: int, cell: float) -> None:
    domain = md.Domain.grid((3,) * axes, cell=cell, unit="1")
    metric = 0.5 * md.Eikonal(level=md.PrivacyLevel.constant(1.4), stencil=26 if axes == 3 else 8)
    assert local_weights(domain, metric) == pytest.approx((0.7 * cell) ** axes / TOTALS[axes])
    assert curvature_excess(domain, metric) == pytest.approx(-(0.7**2))
    sphere = {1: 2.0, 2: 2 * math.pi, 3: 4 * math.pi}[axes]
    assert TOTALS[axes] == pytest.approx(sphere * quad(lambda r: r ** (axes - 1) * math.exp(-r), 0, 100)[0])


def test_weights_stay_positive_at_positive_excess() -> None:
    domain, metric = hyperbolic(2, 0.5)
    level = metric.level.at(domain.points)
    assert local_weights(domain, metric)[inside(domain)] == pytest.approx(
        (LEAST_SHARE * level**2 / (2 * math.pi))[inside(domain)]
    )


def test_line_weights_solve_the_system_on_any_line() -> None:
    length = np.random.default_rng(0).uniform(0.01, 3, 12)
    place = np.append(0.0, np.cumsum(length))
    kernel = np.exp(-np.abs(place[:, None] - place))
    weights = line_weights(np.append(np.inf, length), np.append(length, np.inf))
    assert np.abs(kernel @ weights - 1).max() <= LINEAR_ALGEBRA
    assert (weights > 0).all()


@pytest.mark.study
def test_local_weights_are_close_to_the_solved_ones_inside() -> None:
    """A gentle hill: correlation and slope against the exact solve, ten rings from the border, then without eps^2."""
    side = 40
    domain = grid((side, side))
    square = ((domain.points - side / 2) ** 2).sum(axis=1)
    level = md.PrivacyLevel.from_values(domain, (0.4 + 0.5 * np.exp(-square / 60)).reshape(side, side))
    metric = md.Eikonal(level=level, stencil=16)
    problem = md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )
    solved = scipy.linalg.solve(np.exp(-problem.distances), np.ones(domain.size))
    assert domain.index is not None
    core = ((domain.index >= 10) & (domain.index < side - 10)).all(axis=1)
    local, flat = local_weights(domain, metric)[core], (metric.level.at(domain.points) ** 2 / (2 * math.pi))[core]
    slope, correlation = np.polyfit(local, solved[core], 1)[0], np.corrcoef(local, solved[core])[0, 1]
    assert correlation > 0.97
    assert slope == pytest.approx(1, abs=0.1)
    bend, ratio = local / flat, solved[core] / flat
    assert np.corrcoef(bend, ratio)[0, 1] > 0.8
    assert np.polyfit(bend, ratio, 1)[0] > 0.5
