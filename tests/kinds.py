"""The table of kinds: a small honest file of every kind that the package writes, each made once.

Two to nine secrets, so that a reader in plain Python checks every pair of them in milliseconds. A new program, metric,
loss or schema is added as one row; test_mutations.py mutates every row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import xarray as xr
from cases import grid

import mechdesign as md
from mechdesign.closed_forms import (
    constant,
    exponential,
    geometric,
    planar_laplace,
    randomized_response,
    release,
    tuples,
)
from mechdesign.closed_forms.noise import StudentT
from mechdesign.setting.losses import Loss
from mechdesign.setting.metrics import Metric


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
    return _on(grid((2, 3)), md.Eikonal(level=_level(2), stencil=stencil), md.SquaredDistance(), 1)


def _masked() -> md.DesignProblem:
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
    return _on(grid((3, 3), mask=mask), md.Eikonal(level=_level(3), stencil=16), md.Distance(), 3)


def _three_axes() -> md.DesignProblem:
    flat = _level(4).raster
    values = flat.values[:, :, None] * np.array([0.7, 1.2])
    deep = md.Raster(x=flat.x, y=flat.y, z=np.array([0.6, 1.3]), values=values, unit="cell")
    metric = md.Eikonal(level=md.PrivacyLevel(raster=deep), stencil=26)
    return _on(grid((2, 2, 2)), metric, md.SquaredDistance(), 4)


def _ring(factor: float = 1.0) -> md.DesignProblem:
    plain = md.Graph(tail=[0, 1, 2, 3], head=[1, 2, 3, 0], length=[0.5, 0.9, 0.7, 1.3])
    metric = plain if factor == 1 else factor * plain
    return _on(md.Domain.nodes(4), metric, md.TableLoss(values=np.random.default_rng(5).random((4, 4))), 5)


def _line(size: int, epsilon: float = 0.8) -> md.DesignProblem:
    return _on(grid(size), md.Euclidean(epsilon=epsilon, unit="cell"), md.Distance(), 6)


def _plane() -> md.DesignProblem:
    domain = md.Domain.grid((2, 3), cell=1.5, unit="km", origin=-2.0)
    return _on(domain, md.Euclidean(epsilon=0.7, unit="km"), md.SquaredDistance(), 7)


def _scattered() -> md.DesignProblem:
    places = md.Domain.points_at(np.random.default_rng(12).uniform(0, 3, (5, 2)), unit="km")
    return _on(places, md.Euclidean(epsilon=1.2, unit="km"), md.Distance(), 12)


def _other_reports() -> md.DesignProblem:
    places = md.Domain.points_at([[0.5, 1.0], [1.5, 0.4]], unit="cell")
    return _on(grid((2, 2)), md.Euclidean(epsilon=0.8, unit="cell"), md.SquaredDistance(), 13, reports=places)


def _discrete() -> md.DesignProblem:
    return _on(md.Domain.nodes(4), md.Discrete(epsilon=1.2), md.ZeroOne(), 8)


def _streets() -> md.DesignProblem:
    places = md.Domain.points_at([[0.0, 0.0], [80.0, 5.0], [75.0, 90.0], [-4.0, 88.0], [40.0, 45.0]], unit="m")
    metric = md.Streets(
        epsilon=0.01, unit="m", tail=[0, 1, 2, 3, 0, 2], head=[1, 2, 3, 0, 4, 4],
        length=[81.0, 86.0, 80.0, 90.0, 61.0, 58.0],
    )  # fmt: skip
    return _on(places, metric, md.Distance(), 9)


def _area() -> md.DesignProblem:
    plane = md.Plane(latitude=48.85, longitude=-2.35)
    domain = md.Domain.grid((2, 2), cell=200.0, unit="m", origin=-200.0, plane=plane)
    return md.area_problem(domain, epsilon=0.004)


def _release() -> xr.Dataset:
    domain, outputs = grid(4), np.linspace(-1, 2, 5)
    values, bound = np.clip((domain.points[:, 0] - 1.0) / 2.0, 0, 1), np.full(4, 0.5)
    problem = md.release_problem(
        domain=domain, metric=md.Euclidean(epsilon=0.6, unit="cell"), prior=_prior(4, 10), values=values,
        outputs=outputs, unit="km",
    )  # fmt: skip
    return release.mechanism(problem, values, bound, law=StudentT(3), gamma=0.05)


def _query() -> xr.Dataset:
    given = _eikonal()
    return md.solve(
        md.QueryWeights(
            problem=md.query_problem(
                domain=given.domain, metric=given.metric, prior=given.prior, query=[0, 0, 1, 0, 1, 1]
            )
        )
    )


def _robust() -> xr.Dataset:
    problem = _line(4)
    return md.solve(md.Robust(problem=problem, priors=np.stack([problem.prior_array, _prior(4, 11)])))


def _bounded() -> xr.Dataset:
    problem = _line(4)
    worst = float(md.solve(md.Minimax(problem=problem)).attrs["objective"])
    return md.solve(md.Bounded(problem=problem, worst_loss=1.1 * worst))


def _constrained() -> xr.Dataset:
    caps = [md.ReportCap(cap=0.6, reports=[0, 2]), md.RequiredReport(report=1, least=0.1, secrets=[0])]
    return md.solve(md.Constrained(problem=_line(4), constraints=[*caps, md.ErrorCap(radius=1.2, share=0.4)]))


def _optimal(problem: md.DesignProblem, **given: str) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem), **given)  # type: ignore[arg-type]


def _factored(problem: md.DesignProblem) -> xr.Dataset:
    return md.solve(md.EikonalWeights(problem=problem), method="factored", rounds=8)


def _factored_line(loss: Loss, epsilon: float = 0.9) -> md.DesignProblem:
    return _on(grid(4), md.Eikonal(level=md.PrivacyLevel.constant(epsilon, "cell")), loss, 14)


def _factored_plane() -> md.DesignProblem:
    raised = md.PrivacyLevel(raster=md.Raster(x=np.zeros(1), y=np.zeros(1), values=np.full((1, 1), 1.1), unit="cell"))
    return _on(grid((2, 2)), md.Eikonal(level=raised), md.SquaredDistance(), 15)


KINDS: dict[str, Callable[[], xr.Dataset]] = {
    "eikonal": lambda: _optimal(_eikonal()),
    "eikonal, masked": lambda: _optimal(_masked()),
    "eikonal, three axes": lambda: exponential.mechanism(_three_axes()),
    "euclidean": lambda: _optimal(_plane()),
    "euclidean, near pairs": lambda: _optimal(_plane(), method="graph"),
    "euclidean, points": lambda: _optimal(_scattered()),
    "reports apart from secrets": lambda: _optimal(_other_reports()),
    "discrete": lambda: _optimal(_discrete()),
    "randomized response": lambda: randomized_response.mechanism(_discrete()),
    "graph, table loss": lambda: _optimal(_ring()),
    "graph, doubled, minimax": lambda: md.solve(md.Minimax(problem=_ring(2.0))),
    "robust": _robust,
    "bounded": _bounded,
    "constrained": _constrained,
    "statistical": lambda: md.solve(md.StatisticalDesign(problem=_line(3)), gap=0.1),
    "query": _query,
    "release": _release,
    "streets": lambda: _optimal(_streets()),
    "area": lambda: planar_laplace.mechanism(_area()),
    "multiple above 1": lambda: geometric.mechanism(_plane(), border="normalised"),
    "multiple below 1": lambda: geometric.mechanism(_line(4), 0.5),
    "constant": lambda: constant.mechanism(_line(3)),
    "tuples": lambda: tuples.independent(_line(2), [geometric.mechanism(_line(2)), geometric.mechanism(_line(2), 0.5)]),
    "remapped": lambda: md.bayes_remap(geometric.mechanism(_plane(), border="normalised")),
    "audited and repaired": lambda: md.repaired(np.random.default_rng(16).dirichlet(np.ones(4), 4), _line(4)),
    "factored, squared": lambda: _factored(_factored_line(md.SquaredDistance())),
    "factored, distance": lambda: _factored(_factored_line(md.Distance())),
    "factored, plane": lambda: _factored(_factored_plane()),
    "factored, graph": lambda: _factored(
        _on(md.Domain.nodes(4), md.Graph(tail=[0, 1, 2], head=[1, 2, 3], length=[0.5, 0.9, 0.7]), md.ZeroOne(), 17)
    ),
}


@cache
def made(kind: str) -> xr.Dataset:
    """The file of a kind, in memory; not to be changed in place."""
    return KINDS[kind]()
