"""The table of cases: design problems of every kind. A new metric, loss, domain or prior is added as one row here.

Laws of optimal mechanisms run over `CASES` (solvers/test_laws.py); every program runs over `SMALL`, from the solver to
the export (test_whole_path.py), whose two to nine secrets a reader in plain Python checks pair by pair in milliseconds.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from conftest import ROOT

from mechdesign import DesignProblem, Discrete, Domain, Eikonal, Euclidean, Graph, PrivacyLevel, Raster, priors
from mechdesign.extend import Metric
from mechdesign.geo import Plane, Streets, area_problem
from mechdesign.losses import Distance, Loss, SquaredDistance, TableLoss, ZeroOne, query_problem
from mechdesign.release import release_problem


def shipped(name: str) -> SimpleNamespace:
    """What the file of a shipped problem defines: its functions, and the figures that it knows."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "problems" / f"{name}.py")))


def varying_level(low: float = 0.5, high: float = 1.5, seed: int = 0) -> PrivacyLevel:
    """A kinked bilinear level over [0, 4]^2, in nats per cell."""
    values = np.random.default_rng(seed).uniform(low, high, (5, 4))
    axis = np.linspace(0.2, 3.9, 5), np.linspace(0.1, 3.7, 4)
    return PrivacyLevel(raster=Raster(x=axis[0], y=axis[1], values=values, unit="cell"), extend=True)


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
    metric = Eikonal(level=PrivacyLevel(raster=deep, extend=True), stencil=26)
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


def prior_of(size: int, seed: int) -> np.ndarray:
    return priors.proportional(0.2 + np.random.default_rng(seed).random(size))


def _small(domain: Domain, metric: Metric, loss: Loss, seed: int, **given: object) -> DesignProblem:
    prior = prior_of(domain.size, seed)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss, **given)  # type: ignore[arg-type]


def _small_level(seed: int) -> PrivacyLevel:
    """Over [0.3, 2.6]^2, kinked between the nodes and constant beyond them, in nats per cell."""
    nodes = np.linspace(0.3, 2.6, 3)
    values = np.random.default_rng(seed).uniform(0.5, 1.5, (3, 3))
    return PrivacyLevel(raster=Raster(x=nodes, y=nodes, values=values, unit="cell"), extend=True)


def _small_eikonal(stencil: int = 8) -> DesignProblem:
    return _small(grid((2, 3)), Eikonal(level=_small_level(2), stencil=stencil), SquaredDistance(), 1)


def _small_masked() -> DesignProblem:
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
    return _small(grid((3, 3), mask=mask), Eikonal(level=_small_level(3), stencil=16), Distance(), 3)


def _three_axes() -> DesignProblem:
    flat = _small_level(4).raster
    values = flat.values[:, :, None] * np.array([0.7, 1.2])
    deep = Raster(x=flat.x, y=flat.y, z=np.array([0.6, 1.3]), values=values, unit="cell")
    metric = Eikonal(level=PrivacyLevel(raster=deep, extend=True), stencil=26)
    return _small(grid((2, 2, 2)), metric, SquaredDistance(), 4)


def _ring() -> DesignProblem:
    metric = Graph(tail=[0, 1, 2, 3], head=[1, 2, 3, 0], length=[0.5, 0.9, 0.7, 1.3])
    return _small(Domain.nodes(4), metric, TableLoss(values=np.random.default_rng(5).random((4, 4))), 5)


def _path() -> DesignProblem:
    metric = Graph(tail=[0, 1, 2], head=[1, 2, 3], length=[0.5, 0.9, 0.7])
    return _small(Domain.nodes(4), metric, ZeroOne(), 17)


def line(size: int, epsilon: float = 0.8) -> DesignProblem:
    return _small(grid(size), Euclidean(epsilon=epsilon, unit="cell"), Distance(), 6)


def lattice(shape: tuple[int, int] = (2, 3)) -> DesignProblem:
    domain = Domain.grid(shape, cell=1.5, unit="km", origin=-2.0)
    return _small(domain, Euclidean(epsilon=0.7, unit="km"), SquaredDistance(), 7)


def _small_scattered() -> DesignProblem:
    places = Domain.points_at(np.random.default_rng(12).uniform(0, 3, (5, 2)), unit="km")
    return _small(places, Euclidean(epsilon=1.2, unit="km"), Distance(), 12)


def _small_other_reports() -> DesignProblem:
    places = Domain.points_at([[0.5, 1.0], [1.5, 0.4]], unit="cell")
    return _small(grid((2, 2)), Euclidean(epsilon=0.8, unit="cell"), SquaredDistance(), 13, reports=places)


def _discrete() -> DesignProblem:
    return _small(Domain.nodes(4), Discrete(epsilon=1.2), ZeroOne(), 8)


def _streets() -> DesignProblem:
    places = Domain.points_at([[0.0, 0.0], [80.0, 5.0], [75.0, 90.0], [-4.0, 88.0], [40.0, 45.0]], unit="m")
    metric = Streets(
        epsilon=0.01, unit="m", tail=[0, 1, 2, 3, 0, 2], head=[1, 2, 3, 0, 4, 4],
        length=[81.0, 86.0, 80.0, 90.0, 61.0, 58.0],
    )  # fmt: skip
    return _small(places, metric, Distance(), 9)


def _streets_on_earth() -> DesignProblem:
    given = _streets()
    places = Domain.points_at(given.domain.points, unit="m", plane=Plane(latitude=48.85, longitude=2.35))
    return replace(given, domain=places, reports=places)


def _area() -> DesignProblem:
    plane = Plane(latitude=48.85, longitude=-2.35)
    domain = Domain.grid((2, 2), cell=200.0, unit="m", origin=-200.0, plane=plane)
    return area_problem(domain, epsilon=0.004)


def _framed() -> DesignProblem:
    """A constant level below 0.7 nats a step gets a frame of reports around the grid."""
    return _small(grid((2, 2)), Eikonal(level=PrivacyLevel.constant(0.6, "cell")), SquaredDistance(), 15)


def _flat_line() -> DesignProblem:
    return _small(grid(4), Eikonal(level=PrivacyLevel.constant(0.9, "cell")), Distance(), 14)


def _query() -> DesignProblem:
    given = _small_eikonal()
    return query_problem(domain=given.domain, metric=given.metric, prior=given.prior, query=[0, 0, 1, 0, 1, 1])


def _release() -> DesignProblem:
    given = line(4, 0.6)
    values = np.clip((given.domain.points[:, 0] - 1.0) / 2.0, 0, 1)
    return release_problem(
        domain=given.domain, metric=given.metric, prior=given.prior, values=values, outputs=np.linspace(-1, 2, 5),
        unit="km",
    )  # fmt: skip


def _multiplied(times: float, problem: DesignProblem) -> DesignProblem:
    return replace(problem, metric=times * problem.metric)


SMALL: dict[str, Callable[[], DesignProblem]] = {
    "eikonal": _small_eikonal,
    "eikonal, masked": _small_masked,
    "eikonal, three axes": _three_axes,
    "eikonal, framed": _framed,
    "eikonal, line": _flat_line,
    "euclidean lattice": lattice,
    "euclidean line": lambda: line(4),
    "scattered points": _small_scattered,
    "reports apart from secrets": _small_other_reports,
    "discrete": _discrete,
    "graph, table loss": _ring,
    "graph, doubled": lambda: _multiplied(2, _ring()),
    "graph, path": _path,
    "streets": _streets,
    "streets, multiplied": lambda: _multiplied(0.7, _streets()),
    "streets on a plane": _streets_on_earth,
    "area": _area,
    "query": _query,
    "release": _release,
}


def excess(rays, distances):
    """The largest v(u) / (e^{d(u, u')} v(u')) - 1 of columns v (n, k) over all pairs, in floating point."""
    logs = np.log(rays)
    rise = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    return float(np.expm1((rise - distances).max()))
