r"""A statistical design on a grid of many cells: kernels of small clusters, chosen on a torus, weighted on the grid."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.solvers.result import Targets, reporter
from mechdesign.solvers.symmetry import Symmetry, symmetry_group
from mechdesign.surveys.a_optimal import MixtureOptimum, optimal_weights
from mechdesign.surveys.criterion_bound import CriterionBound
from mechdesign.surveys.error_norm import area_indicators
from mechdesign.surveys.statistical_design import StatisticalDesign
from mechdesign.surveys.torus_mixture import Cluster, Mixture, Torus, choose_mixture

LIGHT = 1e-6  # share of all reports under which a report is dropped from the design
WIDER = 1.25  # torus, in sides of the grid
# Share of the trace of the norm, for directions that the error ignores: without it the information would be singular.
_RIDGE = 1e-4
_FIRST = 1400  # rays to start with, unless one kernel alone has more
_ADDED = 500  # rays that enter in a round
_POOL = 8000  # candidate rays: their table takes 100 MB for 1,600 cells
_SETTLED = 0.015  # relative improvement of a round under which it was the last
_ROUGH, _FINE = 1e-3, 1e-7  # relative, of the weights in between and at the end
_TRIMS = 3  # times at most that light rays are dropped and the others are weighted again
_IDLE = 1e-5  # share of all reports under which a ray leaves the master problem
_NEW = 0.1  # share of the reports with which new rays start
_MARGIN = 2.0**-38  # nats that distances on a shortest edge are shortened by: above the margin of the repair
_TABLES = 7  # of the design that the repair and the certificate hold at once
_SAME = 1e-6  # of a random sum of logarithms: rays nearer than this are one


# 1. The clusters are chosen on a torus a quarter wider than the grid (torus_mixture.py).  2. Each kernel at each
# position of the torus, restricted to the grid, is a ray.  3. The weights of the rays and their mirror images are exact
# for the prior and error of the program (a_optimal.py); rays that improve the mixture enter in rounds.  4. Light rays
# are dropped, and the table is repaired and certified. No bound is proved.
@dataclass(frozen=True, kw_only=True, eq=False)
class RayTable:
    """table (n, m), private up to rounding; gain, the largest relative gain of a ray in the last round."""

    table: Matrix
    stopped: str
    rounds: int
    gain: float = math.inf
    bound: CriterionBound | None = None


def design_norm(program: StatisticalDesign) -> Matrix:
    """The norm W (n, n) of the program; for areas with some squared error, so that the information is not singular."""
    norm = program.norm
    if program.error != "areas":
        return norm
    n = len(norm)
    return np.asarray(norm + _RIDGE * np.trace(norm) / n * (np.eye(n) - 1 / n))


def design_on_grid(program: StatisticalDesign, targets: Targets) -> RayTable:
    """The table of the design, before repair."""
    # Another round needs a ray that gains at least `gap` relative to the objective, and 1.5 % gained in the last round.
    started, report = time.monotonic(), reporter(targets.on_progress)
    norm = design_norm(program)
    group = symmetry_group(program.problem, program.norm, with_loss=program.loss_weight > 0)
    torus, eigenvalue = torus_of(program)
    pool, theta = _pool(program, torus, choose_mixture(torus, eigenvalue), group)
    chosen = np.arange(len(theta))
    costs, before, number = program.costs(pool), math.inf, 0
    while True:
        rays = pool[:, chosen]
        mixture = optimal_weights(rays, norm, cost=costs[chosen], group=group, start=theta, precision=_ROUGH)
        value = mixture.value - program.offset + float(costs[chosen] @ mixture.theta)
        reduced_cost = mixture.reduced_costs(pool) - costs
        gain = max(float(reduced_cost.max()), 0.0) / value
        size = {"variables": rays.shape[1], "constraints": rays.shape[0]}
        report("rays", round=number, loss=value, lower_bound=0.0, gap=1.0, **size)
        number, before, settled = number + 1, value, value > before * (1 - _SETTLED)
        if gain <= targets.gap or settled or time.monotonic() - started > targets.time_limit:
            stopped = "search" if gain <= targets.gap else "rounds" if settled else "time"
            break
        chosen, theta = _next(chosen, mixture, reduced_cost)
    rays, weights = _trim_light_rays(program, norm, group, rays, mixture.theta)
    return RayTable(table=_unfold(rays, weights, group), stopped=stopped, rounds=number, gain=gain)


def _trim_light_rays(
    program: StatisticalDesign, norm: Matrix, group: Symmetry, rays: Matrix, theta: Vector
) -> tuple[Matrix, Vector]:
    """The rays (n, k) that keep some weight, and their weights (k,), with rows of sum 1 to rounding."""
    for _ in range(_TRIMS):
        active = theta > _IDLE
        rays, start = rays[:, active], theta[active] / theta[active].sum()
        cost = program.costs(rays)
        theta = optimal_weights(rays, norm, cost=cost, group=group, start=start, precision=_FINE).theta
        if theta.min() > LIGHT:
            break
    # The least change of the weights that makes rows sum to 1.
    rows = group.mean @ rays
    return rays, theta + np.linalg.lstsq(rows, 1 - rows @ theta)[0]


def torus_of(program: StatisticalDesign) -> tuple[Torus, Vector]:
    """The torus around the grid of a program, and the eigenvalues of its norm there but the first (n - 1,)."""
    domain, level = program.problem.domain, program.problem.metric.smallest_level
    assert domain.shape is not None and domain.cell is not None and domain.index is not None and level is not None
    # Distances around a torus are at most those of the grid, so its kernels are private for the grid. Slightly shorter
    # steps leave room for their rounding.
    step = np.array(domain.cell) * level
    step *= 1 - _MARGIN / float(program.problem.edges.length.min())
    shape = tuple(math.ceil(WIDER * side) for side in domain.shape)
    torus = Torus(shape=shape, step=tuple(float(h) for h in step))
    if program.error == "square":
        return torus, np.ones(math.prod(shape) - 1)
    if program.error == "areas":
        assert program.areas is not None
        indicators = area_indicators(np.asarray(program.areas))
        laid = np.zeros((indicators.shape[1], *shape))
        laid[(slice(None), *domain.index.T)] = indicators.T
        # A A^T averaged over all moves on the torus, which is diagonal in Fourier modes.
        power = (np.abs(np.fft.fftn(laid, axes=range(1, laid.ndim))) ** 2).sum(axis=0)
        return torus, power.ravel()[1:] / math.prod(shape)
    # Eigenvalues of the lattice Laplacian L, axis by axis; the norm is L^+.
    waves = [(2 * np.sin(np.pi * np.arange(t) / t) / h) ** 2 for t, h in zip(shape, domain.cell, strict=True)]
    return torus, 1 / np.add.reduce(np.meshgrid(*waves, indexing="ij")).ravel()[1:]


def _pool(program: StatisticalDesign, torus: Torus, mixture: Mixture, group: Symmetry) -> tuple[Matrix, Vector]:
    """Rays (n, k) with pi^T v = 1, one for each orbit, and weights (s,) > 0 of the first s, with rows of sum 1."""
    # Rays are equal if a random sum of their logarithms is: comparing (n, k) tables of them all would take longer.
    mark = np.random.default_rng(program.seed).normal(size=program.problem.domain.size)
    place: dict[int, int] = {}
    rays: list[Matrix] = []
    start: Vector = np.zeros(0)
    for image, share in _layers(torus, mixture):
        if len(place) > _POOL:
            break
        columns, weight = _columns(program, torus, image)
        keys, known = _orbit_keys(columns, mark, group), len(place)
        numbers = np.array([place.setdefault(key, len(place)) for key in keys.tolist()])
        _, first = np.unique(numbers, return_index=True)
        rays.append(columns[:, first[numbers[first] >= known]])
        if known == 0 or (len(place) <= _FIRST and share > 0):
            start = np.pad(start, (0, len(place) - len(start))) + np.bincount(numbers, share * weight, len(place))
    return np.column_stack(rays), start / start.sum()


def _layers(torus: Torus, mixture: Mixture) -> Iterator[tuple[Cluster, float]]:
    """Every image of every cluster, the heaviest first, with its share of the reports; at last a single cell."""
    for cluster, share in zip(mixture.clusters, mixture.weights, strict=True):
        images = torus.images(cluster)
        yield from ((image, float(share) / len(images)) for image in images)
    yield ((0,) * len(torus.shape),), 0.0


def _columns(program: StatisticalDesign, torus: Torus, image: Cluster) -> tuple[Matrix, Vector]:
    """A kernel at every position of the torus, restricted to the grid: (n, t), and weights (t,) with row sums 1."""
    index = program.problem.domain.index
    assert index is not None
    # Positions outside the grid count too: near a border their kernels are rays that no position inside has.
    positions = np.indices(torus.shape).reshape(len(torus.shape), -1)
    away = [(index[:, axis, None] - positions[axis]) % side for axis, side in enumerate(torus.shape)]
    table = torus.kernel(image)[tuple(away)]
    reported = program.problem.prior_array @ table
    return table / reported, reported


def _orbit_keys(rays: Matrix, mark: Vector, group: Symmetry) -> Indices:
    """A number for each ray (n, k) that its mirror images share; a collision enters a ray twice, which is harmless."""
    logs = np.log(rays)
    return np.asarray(np.min([np.rint(mark @ logs[way] / _SAME) for way in group.ways], axis=0)).astype(np.int64)


def _next(chosen: Indices, mixture: MixtureOptimum, reduced_cost: Vector) -> tuple[Indices, Vector]:
    """The rays of the next round, those with weight and the best of the others, with weights to start from."""
    active = mixture.theta > _IDLE
    best = np.setdiff1d(np.argsort(-reduced_cost, kind="stable")[:_ADDED], chosen[active])
    best = best[reduced_cost[best] > 0]
    # The interior-point method starts from positive weights: new rays share the rest.
    theta = mixture.theta[active] * (1 - _NEW)
    return np.r_[chosen[active], best], np.r_[theta, np.full(len(best), (1 - theta.sum()) / max(1, len(best)))]


def _unfold(rays: Matrix, weights: Vector, group: Symmetry) -> Matrix:
    """The table (n, m) of rays (n, k) and all their mirror images, each with its share of the weight of the orbit."""
    require_memory(len(rays), rays.shape[1] * len(group.ways), tables=_TABLES, noun="a statistical design")
    mark = np.random.default_rng(0).normal(size=len(rays))
    logs = np.log(rays)
    keys = np.stack([np.rint(mark @ logs[way] / _SAME) for way in group.ways])
    parts = []
    for number, way in enumerate(group.ways):
        # A ray with symmetries of its own has equal images: the first one enters, with their joint weight.
        fresh = ~(keys[:number] == keys[number]).any(axis=0)
        same = (keys == keys[number]).sum(axis=0)
        parts.append((rays * (weights * same / len(group.ways)))[way][:, fresh])
    return np.column_stack(parts)
