"""The table of cases: small design problems of every kind. Laws in test_laws.py run over all of them.

A new metric, loss, domain or prior is added as one row here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechdesign.setting.metric.discrete import Discrete
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.graph import Graph
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import Distance, SquaredDistance, TableLoss, ZeroOne
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.raster import Raster


def varying_level(low: float = 0.5, high: float = 1.5, seed: int = 0) -> PrivacyLevel:
    """A kinked bilinear level over [0, 4]^2, in nats per cell."""
    values = np.random.default_rng(seed).uniform(low, high, (5, 4))
    axis = np.linspace(0.2, 3.9, 5), np.linspace(0.1, 3.7, 4)
    return PrivacyLevel(raster=Raster(x=axis[0], y=axis[1], values=values, unit="cell"))


def grid(shape: int | tuple[int, ...], **given: object) -> Domain:
    """Unit cells."""
    return Domain.grid(shape, cell=1.0, unit="cell", **given)  # type: ignore[arg-type]


def _on(domain: Domain, metric: object, loss: object, seed: int | None = None, **given: object) -> DesignProblem:
    prior = priors.uniform(domain)
    if seed is not None:
        prior = priors.proportional(np.random.default_rng(seed).random(domain.size))
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss, **given)  # type: ignore[arg-type]


def _eikonal_grid(stencil: int) -> DesignProblem:
    return _on(grid((4, 4)), Eikonal(level=varying_level(), stencil=stencil), SquaredDistance(), seed=1)


def _masked() -> DesignProblem:
    mask = np.ones((4, 4), bool)
    mask[1, 1:3] = False
    return _on(grid((4, 4), mask=mask), Eikonal(level=varying_level(seed=3), stencil=16), Distance(), seed=2)


def _two_floors() -> DesignProblem:
    """Two masked cells cut the step between the cells that both of them touch; eps is larger upstairs."""
    mask = np.ones((3, 3, 2), bool)
    mask[0, 1, 0] = mask[1, 0, 0] = False
    flat = varying_level(seed=8).raster
    deep = Raster(
        x=flat.x, y=flat.y, z=np.array([0.7, 1.4]), values=flat.values[:, :, None] * np.array([0.6, 1.3]), unit="cell"
    )
    metric = Eikonal(level=PrivacyLevel(raster=deep), stencil=26)
    return _on(grid((3, 3, 2), mask=mask), metric, SquaredDistance(), seed=8)


def _ring_road() -> DesignProblem:
    domain = Domain.nodes(7)
    tail = np.arange(7)
    metric = Graph(tail=tail, head=(tail + 1) % 7, length=np.linspace(0.4, 1.4, 7))
    return _on(domain, metric, TableLoss(values=np.random.default_rng(4).random((7, 7))), seed=4)


def _other_reports() -> DesignProblem:
    reports = Domain.points_at([[0.5, 1.0], [2.5, 2.0], [1.7, 0.4]], unit="cell")
    return _on(grid((3, 3)), Euclidean(epsilon=0.8, unit="cell"), SquaredDistance(), reports=reports)


def _scattered() -> DesignProblem:
    places = Domain.points_at(np.random.default_rng(5).uniform(0, 3, (9, 2)), unit="km")
    return _on(places, Euclidean(epsilon=1.2, unit="km"), Distance(), seed=5)


CASES: dict[str, Callable[[], DesignProblem]] = {
    "line, zero-one": lambda: _on(grid(8), Eikonal(level=PrivacyLevel.constant(0.9, "cell")), ZeroOne()),
    "line, squared, skewed prior": lambda: _on(
        grid(8), Eikonal(level=PrivacyLevel.constant(0.4, "cell")), SquaredDistance(), seed=6
    ),
    "discrete": lambda: _on(Domain.nodes(6), Discrete(epsilon=1.5), ZeroOne()),
    "euclidean lattice": lambda: _on(grid((4, 4)), Euclidean(epsilon=1.0, unit="cell"), SquaredDistance()),
    "eikonal, 4 neighbours": lambda: _eikonal_grid(4),
    "eikonal, 8 neighbours": lambda: _eikonal_grid(8),
    "eikonal, 16 neighbours": lambda: _eikonal_grid(16),
    "eikonal, 32 neighbours": lambda: _eikonal_grid(32),
    "eikonal, masked": _masked,
    "eikonal, two floors": _two_floors,
    "eikonal, multiplied": lambda: _on(
        grid((3, 4)), 0.7 * Eikonal(level=varying_level(seed=7), stencil=8), SquaredDistance(), seed=7
    ),
    "graph, table loss": _ring_road,
    "reports apart from secrets": _other_reports,
    "scattered points": _scattered,
}
