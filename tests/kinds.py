"""The table of kinds: a small honest file of every kind that the package writes, each made once.

Two to nine secrets, so that a reader in plain Python checks every pair of them in milliseconds. A new program, metric,
loss or schema is added as one row; test_mutations.py mutates every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import xarray as xr
from cases import grid

import mechdesign as md
from mechdesign.closed_forms.mechanisms import (
    constant,
    exponential,
    geometric,
    planar_laplace,
    randomized_response,
    release,
    tuples,
)
from mechdesign.closed_forms.noise.laws import StudentT
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.objective.losses import Loss


def _prior(size: int, seed: int) -> np.ndarray:
    return md.priors.proportional(0.2 + np.random.default_rng(seed).random(size))


def _on(domain: md.Domain, metric: Metric, loss: Loss, seed: int, **given: md.Domain) -> md.DesignProblem:
    return md.DesignProblem(domain=domain, metric=metric, prior=_prior(domain.size, seed), loss=loss, **given)


def _level(seed: int) -> md.PrivacyLevel:
    """Over [0.3, 2.6]^2, kinked between the nodes and constant beyond them, in nats per cell."""
    nodes = np.linspace(0.3, 2.6, 3)
    values = np.random.default_rng(seed).uniform(0.5, 1.5, (3, 3))
    return md.PrivacyLevel(raster=md.Raster(x=nodes, y=nodes, values=values, unit="cell"))


def _eikonal(stencil: int = 8) -> md.DesignProblem:
    return _on(grid((2, 3)), md.Eikonal(level=_level(2), stencil=stencil), md.losses.SquaredDistance(), 1)


def _masked() -> md.DesignProblem:
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
    return _on(grid((3, 3), mask=mask), md.Eikonal(level=_level(3), stencil=16), md.losses.Distance(), 3)


def _three_axes() -> md.DesignProblem:
    flat = _level(4).raster
    values = flat.values[:, :, None] * np.array([0.7, 1.2])
    deep = md.Raster(x=flat.x, y=flat.y, z=np.array([0.6, 1.3]), values=values, unit="cell")
    metric = md.Eikonal(level=md.PrivacyLevel(raster=deep), stencil=26)
    return _on(grid((2, 2, 2)), metric, md.losses.SquaredDistance(), 4)


def _ring() -> md.DesignProblem:
    metric = md.Graph(tail=[0, 1, 2, 3], head=[1, 2, 3, 0], length=[0.5, 0.9, 0.7, 1.3])
    return _on(md.Domain.nodes(4), metric, md.losses.TableLoss(values=np.random.default_rng(5).random((4, 4))), 5)


def _path() -> md.DesignProblem:
    metric = md.Graph(tail=[0, 1, 2], head=[1, 2, 3], length=[0.5, 0.9, 0.7])
    return _on(md.Domain.nodes(4), metric, md.losses.ZeroOne(), 17)


def _line(size: int, epsilon: float = 0.8) -> md.DesignProblem:
    return _on(grid(size), md.Euclidean(epsilon=epsilon, unit="cell"), md.losses.Distance(), 6)


def _plane(shape: tuple[int, int] = (2, 3)) -> md.DesignProblem:
    domain = md.Domain.grid(shape, cell=1.5, unit="km", origin=-2.0)
    return _on(domain, md.Euclidean(epsilon=0.7, unit="km"), md.losses.SquaredDistance(), 7)


def _scattered() -> md.DesignProblem:
    places = md.Domain.points_at(np.random.default_rng(12).uniform(0, 3, (5, 2)), unit="km")
    return _on(places, md.Euclidean(epsilon=1.2, unit="km"), md.losses.Distance(), 12)


def _other_reports() -> md.DesignProblem:
    places = md.Domain.points_at([[0.5, 1.0], [1.5, 0.4]], unit="cell")
    return _on(grid((2, 2)), md.Euclidean(epsilon=0.8, unit="cell"), md.losses.SquaredDistance(), 13, reports=places)


def _discrete() -> md.DesignProblem:
    return _on(md.Domain.nodes(4), md.Discrete(epsilon=1.2), md.losses.ZeroOne(), 8)


def _streets() -> md.DesignProblem:
    places = md.Domain.points_at([[0.0, 0.0], [80.0, 5.0], [75.0, 90.0], [-4.0, 88.0], [40.0, 45.0]], unit="m")
    metric = md.geo.Streets(
        epsilon=0.01, unit="m", tail=[0, 1, 2, 3, 0, 2], head=[1, 2, 3, 0, 4, 4],
        length=[81.0, 86.0, 80.0, 90.0, 61.0, 58.0],
    )  # fmt: skip
    return _on(places, metric, md.losses.Distance(), 9)


def _streets_on_earth() -> md.DesignProblem:
    given = _streets()
    places = md.Domain.points_at(given.domain.points, unit="m", plane=md.geo.Plane(latitude=48.85, longitude=2.35))
    return replace(given, domain=places, reports=places)


def _area() -> md.DesignProblem:
    plane = md.geo.Plane(latitude=48.85, longitude=-2.35)
    domain = md.Domain.grid((2, 2), cell=200.0, unit="m", origin=-200.0, plane=plane)
    return md.geo.area_problem(domain, epsilon=0.004)


def _small_plane(epsilon: float, loss: Loss) -> md.DesignProblem:
    """Constant levels below 0.7 nats a step get a frame of reports around the grid."""
    return _on(grid((2, 2)), md.Eikonal(level=md.PrivacyLevel.constant(epsilon, "cell")), loss, 15)


def _flat_line() -> md.DesignProblem:
    return _on(grid(4), md.Eikonal(level=md.PrivacyLevel.constant(0.9, "cell")), md.losses.Distance(), 14)


def _query_problem() -> md.DesignProblem:
    given = _eikonal()
    labels = [0, 0, 1, 0, 1, 1]
    return md.release.query_problem(domain=given.domain, metric=given.metric, prior=given.prior, query=labels)


def _release(problem: md.DesignProblem) -> xr.Dataset:
    values, bound = np.clip((problem.domain.points[:, 0] - 1.0) / 2.0, 0, 1), np.full(4, 0.5)
    asked = md.release.problem(
        domain=problem.domain, metric=problem.metric, prior=problem.prior, values=values,
        outputs=np.linspace(-1, 2, 5), unit="km",
    )  # fmt: skip
    return release.mechanism(asked, values, bound, law=StudentT(3), gamma=0.05)


def _optimal(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem))


def _near_pairs(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem), method="graph")


def _minimax(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.programs.Minimax(problem=problem))


def _robust(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.programs.Robust(problem=problem, priors=np.stack([problem.prior_array, _prior(4, 11)])))


def _bounded(problem: md.DesignProblem) -> xr.Dataset:
    worst = float(_minimax(problem).attrs["objective"])
    return md.solve(md.programs.Bounded(problem=problem, worst_loss=1.1 * worst))


def _constrained(problem: md.DesignProblem) -> xr.Dataset:
    caps = [
        md.programs.ReportCap(cap=0.6, reports=[0, 2]),
        md.programs.RequiredReport(report=1, least=0.1, secrets=[0]),
    ]
    return md.solve(
        md.programs.Constrained(problem=problem, constraints=[*caps, md.programs.ErrorCap(radius=1.2, share=0.6)])
    )


def _statistical(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.programs.StatisticalDesign(problem=problem), gap=0.1)


def _query(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.programs.QueryWeights(problem=problem))


def _normalised(problem: md.DesignProblem) -> xr.Dataset:
    return geometric.mechanism(problem, border="normalised")


def _remapped(problem: md.DesignProblem) -> xr.Dataset:
    return md.utility.bayes_remap(_normalised(problem))


def _tuples(problem: md.DesignProblem) -> xr.Dataset:
    return tuples.independent(problem, [geometric.mechanism(problem), geometric.mechanism(problem, 0.5)])


def _repaired(problem: md.DesignProblem) -> xr.Dataset:
    return md.baselines.repaired(np.random.default_rng(16).dirichlet(np.ones(4), 4), problem)


def _factored(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.EikonalWeights(problem=problem), method="factored", rounds=8)


KINDS: dict[str, tuple[Callable[[], md.DesignProblem], Callable[[md.DesignProblem], xr.Dataset]]] = {
    "eikonal": (_eikonal, _optimal),
    "eikonal, masked": (_masked, _optimal),
    "eikonal, three axes": (_three_axes, exponential.mechanism),
    "euclidean": (_plane, _optimal),
    "euclidean, near pairs": (lambda: _plane((3, 3)), _near_pairs),
    "euclidean, points": (_scattered, _optimal),
    "reports apart from secrets": (_other_reports, _optimal),
    "discrete": (_discrete, _optimal),
    "randomized response": (_discrete, randomized_response.mechanism),
    "graph, table loss": (_ring, _optimal),
    "graph, doubled, minimax": (lambda: replace(_ring(), metric=2 * _ring().metric), _minimax),
    "robust": (lambda: _line(4), _robust),
    "bounded": (lambda: _line(4), _bounded),
    "constrained": (lambda: _line(4), _constrained),
    "statistical": (lambda: _line(3), _statistical),
    "query": (_query_problem, _query),
    "release": (lambda: _line(4, 0.6), _release),
    "streets": (_streets, _optimal),
    "streets on a plane": (_streets_on_earth, _optimal),
    "area": (_area, planar_laplace.mechanism),
    "multiple above 1": (_plane, _normalised),
    "multiple below 1": (_streets, exponential.mechanism),
    "constant": (lambda: _line(3), constant.mechanism),
    "constant on a graph": (_ring, constant.mechanism),
    "tuples": (lambda: _line(2), _tuples),
    "remapped": (_plane, _remapped),
    "repaired": (lambda: _line(4), _repaired),
    "factored, framed": (lambda: _small_plane(0.6, md.losses.SquaredDistance()), _factored),
    "factored, distance": (_flat_line, _factored),
    "factored, graph": (_path, _factored),
    "factored, streets": (_streets, _factored),
}
FACTORED = tuple(kind for kind in KINDS if kind.startswith("factored"))


@cache
def made(kind: str, level: float = 1.0) -> xr.Dataset:
    """The file of a kind, in memory, at a multiple of its level; not to be changed in place."""
    problem, make = KINDS[kind]
    asked = problem()
    return make(asked if level == 1 else replace(asked, metric=level * asked.metric))
