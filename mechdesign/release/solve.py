r"""Least smooth upper bounds on finitely many places, by exact max-plus transforms (release/program.py).

| metric | growth | S |
|---|---|---|
| none: Euclidean distances of coordinates | any | blocks: pairs that cannot matter are left out |
| given | exponential | graph: one shortest-path search over the edges of the metric |
| given | linear | pairs: all of them, in runs of rows |

A larger bound that is smooth costs accuracy of the answers, not privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Points, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import check_finite, check_positive, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import lipschitz_minorant
from mechdesign.problem.max_plus import steepest_chords, transform
from mechdesign.problem.metric import Metric
from mechdesign.release.growth import Growth, GrowthName

_ROWS = 64  # of the table of all pairs at a time: few enough for the cache, enough for the loop not to count


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothBound(FrozenRecord):
    """A smooth upper bound of pointwise Lipschitz constants.

    Attributes
    ----------
    S, method : (n,) array, str
        The bound, in the unit of the constants; the method.
    safe, gap : {"least", "above"}, float
        "least" up to rounding, or "above"; S is at most this multiple of the least bound at any place.

    Examples
    --------
    >>> md.release.least_smooth_bound(md.Domain.grid((3,), 1.0), lipschitz=[0.0, 1.0, 0.0], gamma=1.0).safe
    'least'
    """

    S: Vector
    method: str
    safe: Literal["least", "above"]
    gap: float


# Nine arguments: one of two inputs, the growth, the distance, and the places where L holds.
@validate_call
def least_smooth_bound(
    domain: Domain,
    *,
    lipschitz: ArrayLike | None = None,
    values: ArrayLike | None = None,
    gamma: float | None = None,
    growth: GrowthName = "exponential",
    metric: Metric | None = None,
    horizon: float = math.inf,
    for_cells: bool = False,
    lipschitz_slope: float = 0.0,
) -> SmoothBound:
    """The least smooth upper bound S(x) = max over places x' of L(x') / g(d(x, x')) of L on a domain.

    With `for_cells` on a grid, L holds for all of each cell, and S is `cell_smooth_bound` at the centres: other users
    evaluate that at their location. Source: Liang & Yi 2024, Definition 8 and Lemma 3.2.

    Parameters
    ----------
    domain, lipschitz : Domain, (n,) array
        The n places; L, not negative.
    values, horizon : (n,) array, float
        Instead of L: f, whose steepest chords within the horizon (in the unit of d) are L.
    gamma, growth : float, {"exponential", "linear"}
        Per unit of d; g(d) = e^{gamma d} or 1 + gamma d.
    metric : Metric
        Its distances in nats are d; without one d is Euclidean, in the unit of the domain.
    for_cells, lipschitz_slope : bool, float
        True if L holds for all of each cell; a bound of its slope if L is that of the centre, in out per unit^2.

    Returns
    -------
    SmoothBound
        S and its maximum ratio to the least bound. Cost: O(n^2) for linear growth over a metric.

    Examples
    --------
    >>> bound = md.release.least_smooth_bound(md.Domain.grid((3,), 1.0), lipschitz=[1.0, 0.0, 0.0], gamma=1.0)
    >>> bound.S.round(6)
    array([1.      , 0.367879, 0.135335])
    """
    if (lipschitz is None) == (values is None):
        raise InputError("pass either lipschitz or values", field="lipschitz")
    named = Growth(name=growth, gamma=check_positive(gamma, "gamma"))
    limit = check_positive(horizon, "horizon", infinite=True)
    if values is None and limit < math.inf:
        raise InputError("requires values: pass the lipschitz constants for that horizon", field="horizon", value=limit)
    if not for_cells and lipschitz_slope != 0:
        raise InputError("requires for_cells", field="lipschitz_slope", value=lipschitz_slope)
    if for_cells:
        return _over_cells(domain, lipschitz, lipschitz_slope, named, metric)
    if metric is None and domain.kind == "nodes":
        raise InputError("is required: nodes have no coordinates", field="metric")
    if values is not None:
        local = _chords(domain, _per_place(domain, values, "values"), metric, limit)
    else:
        local = _per_place(domain, lipschitz, "lipschitz", negative=False)
    if not local.any():
        return SmoothBound(S=local, method="constant", safe="least", gap=1.0)
    method, log_bound = _log_bound(domain, _log_share(local), named, metric)
    # exp(log) may round below L itself, which S must not.
    bound = np.maximum(np.exp(log_bound) * local.max(), local)
    return SmoothBound(S=bound, method=method, safe="least", gap=1.0)


@validate_call
def cell_smooth_bound(
    domain: Domain,
    x: ArrayLike,
    *,
    lipschitz: ArrayLike,
    gamma: float,
    growth: GrowthName = "exponential",
    lipschitz_slope: float = 0.0,
) -> Vector:
    """A smooth upper bound of K over all of the cells of a grid, and not only their centres c_j.

    It is a function of x: a user takes its value at the own location, since one value per cell would jump at borders.

    Parameters
    ----------
    domain, x : Domain, (m, k) array
        A grid; locations, in its unit.
    lipschitz, lipschitz_slope : (n,) array, float
        sup K(cell), or K(c_j) with a bound on |K(x) - K(x')| / |x - x'|, in out per unit^2.
    gamma, growth : float, {"exponential", "linear"}
        gamma per unit of distance; g(d) = e^{gamma d} or 1 + gamma d.

    Returns
    -------
    (m,) array

    Examples
    --------
    >>> domain = md.Domain.grid((3,), 1.0)
    >>> md.release.cell_smooth_bound(domain, [[0.5]], lipschitz=[1.0, 0.0, 0.0], gamma=1.0)
    array([1.])
    """
    named = Growth(name=growth, gamma=gamma)
    radius = _half_diagonal(domain)
    slope = float(check_finite(lipschitz_slope, "lipschitz_slope"))
    if slope < 0:
        raise InputError("must not be negative", field="lipschitz_slope", value=slope)
    place = check_finite(x, "x")
    if place.ndim != 2 or place.shape[1] != domain.dimension:
        raise InputError(f"must have shape (m, {domain.dimension})", field="x", value=place.shape)
    # Over cells j the largest of sup K(cell j) / g(max(0, |x - c_j| - rho)), rho half the diagonal of a cell: no point
    # of a cell is nearer to x than that.
    largest = _per_place(domain, lipschitz, "lipschitz", negative=False) + radius * slope
    if not largest.any():
        return np.zeros(len(place))
    return largest.max() * np.exp(_max_plus(place, domain.points, _log_share(largest), named, radius))


def _over_cells(
    domain: Domain, lipschitz: ArrayLike | None, slope: float, growth: Growth, metric: Metric | None
) -> SmoothBound:
    if lipschitz is None or metric is not None:
        raise InputError("requires lipschitz constants of cells, and no metric", field="for_cells")
    bound = cell_smooth_bound(
        domain, domain.points, lipschitz=lipschitz, gamma=growth.gamma, growth=growth.name, lipschitz_slope=slope
    )
    # Subtracting rho from a distance divides g by at most g(rho), for either growth.
    gap = float(np.exp(growth.log(np.array(_half_diagonal(domain)))))
    return SmoothBound(S=bound, method="cells", safe="above", gap=gap)


def _chords(domain: Domain, values: Vector, metric: Metric | None, horizon: float) -> Vector:
    """The steepest chord (n,) of f from every place to another within the horizon."""
    if metric is None:
        return steepest_chords(domain.points, values, horizon)
    distances = metric.distances(domain)
    steepest = np.zeros(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = distances[start : start + _ROWS]
        # A place has no chord to itself.
        near = (rows > 0) & (rows <= horizon)
        drop = np.abs(values[start : start + _ROWS, None] - values)
        steepest[start : start + _ROWS] = np.where(near, drop / np.where(near, rows, 1.0), 0.0).max(axis=1)
    return steepest


def _log_bound(domain: Domain, height: Vector, growth: Growth, metric: Metric | None) -> tuple[str, Vector]:
    """The method and ln S (n,) for height (n,), that of L; both less the largest ln L."""
    # Exact in every case: a marching scheme, or gamma on the edges between neighbours of a Euclidean domain, would stay
    # below the least bound and not be smooth.
    if metric is None:
        return "blocks", _max_plus(domain.points, domain.points, height, growth)
    if growth.name == "exponential":
        edges = metric.edges(domain).scale(growth.gamma)
        # The search needs finite values; paths longer than all edges together never matter.
        return "graph", -lipschitz_minorant(np.minimum(-height, float(edges.length.sum())), edges)
    require_memory(domain.size, domain.size, tables=4, noun="all pairs")
    distances = metric.distances(domain)
    log_bound = np.empty(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = slice(start, start + _ROWS)
        log_bound[rows] = (height - growth.log(distances[rows])).max(axis=1)
    return "pairs", log_bound


def _max_plus(x: Points, places: Points, height: Vector, growth: Growth, radius: float = 0.0) -> Vector:
    """The largest height_j - ln g(max(0, |x - x_j| - radius)) over the places j, (m,), of a named growth."""
    if growth.name == "linear":
        return np.log(transform(x, places, np.exp(height), growth.gamma, linear=True, radius=radius))
    return transform(x, places, height, growth.gamma, linear=False, radius=radius)


def _log_share(lipschitz: Vector) -> Vector:
    # ln 0 = -inf is right: a place with L = 0 bounds nothing.
    with np.errstate(divide="ignore"):
        return np.log(lipschitz / lipschitz.max())


def _per_place(domain: Domain, values: ArrayLike | None, name: str, *, negative: bool = True) -> Vector:
    array = check_finite(np.nan if values is None else values, name)
    if array.shape != (domain.size,):
        raise InputError(f"must have shape ({domain.size},)", field=name, value=array.shape)
    refuse_entries(~(array >= 0) & (not negative), array, "must not be negative", field=name)
    return array


def _half_diagonal(domain: Domain) -> float:
    if domain.cell is None:
        raise InputError("only a grid has cells", field="domain", value=domain.kind)
    return math.hypot(*domain.cell) / 2
