r"""Least smooth upper bounds on finitely many places, by exact max-plus transforms or, on large grids, from above.

| method | places | growth | S |
|---|---|---|---|
| blocks | coordinates | named | exact, pairs that cannot matter left out |
| graph | any, with a metric | exponential | exact, one shortest-path search over the metric's edges |
| pairs | any | any | exact, all pairs in runs of rows |
| levels | grid | any | at most 1.03 times the least bound, from distances to level sets |

Upper bounds are smooth bounds themselves: what is lost is accuracy of the answers, never privacy. The opposite, gamma
itself on the edges of neighbours, or a marching scheme, stays below the least bound and is no bound.

Level sets. Levels t_0 > t_1 > ... are ln(1 + slack) apart, and ln L is rounded up to a level. With A_k the cells above
t_{k+1},

    ln S <= max over k of t_k - ln g(d(x, A_k)) <= ln S + ln(1 + slack)

One Euclidean distance transform per level gives it, for either growth. A cell that the levels so far have raised to t_k
adds nothing, since the bound so far is smooth; nor do levels under the least value of the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import finite, positive, refuse_entries, validated
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import lipschitz_minorant
from mechdesign.problem.max_plus import steepest_chords, transform
from mechdesign.problem.metric import Metric
from mechdesign.release.growth import NAMED, Function, Growth, growth_of

Array = NDArray[np.float64]
Method = Literal["auto", "blocks", "graph", "pairs", "levels"]
SLACK = 0.029  # of the level-set bound
MARGIN = 1 + 2.0**-40  # upper bounds are raised by this: their rounding must not take them below the exact transform
_EXACT = 100_000  # places up to which a grid is transformed exactly; on a line all are
_ROWS = 64  # of the table of all pairs at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothBound(ReprMixin):
    """A smooth upper bound of pointwise Lipschitz constants.

    Attributes
    ----------
    S : (n,) array
        The bound, in the unit of the constants.
    method : str
        How it was made.
    safe : {"least", "above"}
        "least" where S is the least bound up to rounding, "above" where it is a smooth bound above that.
    gap : float
        S is at most this multiple of the least bound of the same constants at any place.

    Examples
    --------
    >>> md.release.least_smooth_bound(md.Domain.grid((3,), 1.0), lipschitz=[0.0, 1.0, 0.0], gamma=1.0).safe
    'least'
    """

    S: Array
    method: str
    safe: Literal["least", "above"]
    gap: float


@validated
def least_smooth_bound(
    domain: Domain,
    *,
    lipschitz: ArrayLike | None = None,
    values: ArrayLike | None = None,
    gamma: float | None = None,
    growth: str | Function = "exponential",
    metric: Metric | None = None,
    horizon: float = math.inf,
    method: Method = "auto",
    for_cells: bool = False,
    lipschitz_slope: float = 0.0,
) -> SmoothBound:
    """The least smooth upper bound S(x) = max over places x' of L(x') / g(d(x, x')) of L on a domain.

    The bound is for secrets that are places of the domain. With `for_cells` on a grid, L holds for all of each cell
    (its supremum, or its value at the centre and in `lipschitz_slope` how much it changes at most per unit of
    distance), and S is `cell_smooth_bound` at the centres; a user elsewhere in a cell asks that for the own location.

    Parameters
    ----------
    domain : Domain
        The n places.
    lipschitz : (n,) array
        L, not negative; or `values`.
    values : (n,) array
        f, whose steepest chords within `horizon` are L.
    gamma : float
        Per unit of d.
    growth : str or function
        "exponential", "linear", or a function g of distances, which takes no gamma.
    metric : Metric
        Its distances in nats are d (gamma is then per nat, L per nat); without one d is Euclidean, in the unit of the
        domain.
    horizon : float
        In the unit of d.
    method : str
        See the module docstring.
    for_cells : bool
        Whether L holds for cells.
    lipschitz_slope : float
        In out per unit^2.

    Returns
    -------
    SmoothBound
        S and how near to the least bound it is.

    Raises
    ------
    InputError
        For bad input, methods that do not fit, and a growth that is none.
    SizeError
        Before a table that does not fit.

    Notes
    -----
    Cost: for 200 x 200 cells blocks take half a second; pairs, n^2. The program is `SmoothSensitivity`.

    References
    ----------
    Liang & Yi 2024, Definition 8 and Lemma 3.2.

    Examples
    --------
    >>> found = md.release.least_smooth_bound(md.Domain.grid((3,), 1.0), lipschitz=[1.0, 0.0, 0.0], gamma=1.0)
    >>> found.S.round(6)
    array([1.      , 0.367879, 0.135335])
    """
    if method not in get_args(Method):
        raise InputError(f"must be one of {', '.join(get_args(Method))}", field="method", value=method)
    if (lipschitz is None) == (values is None):
        raise InputError("give either lipschitz or values", field="lipschitz")
    named = growth_of(growth, gamma, reach=_reach(domain, metric) if callable(growth) else 1.0)
    limit = positive(horizon, "horizon", infinite=True)
    if values is None and limit < math.inf:
        raise InputError("belongs to values: give the lipschitz of that horizon", field="horizon", value=limit)
    if not for_cells and lipschitz_slope != 0:
        raise InputError("belongs to for_cells", field="lipschitz_slope", value=lipschitz_slope)
    if for_cells:
        return _over_cells(domain, lipschitz, lipschitz_slope, named, metric, method)
    if values is not None:
        local = _chords(domain, _per_place(domain, values, "values"), metric, limit)
    else:
        local = _per_place(domain, lipschitz, "lipschitz", negative=False)
    if not local.any():
        return SmoothBound(S=local, method="constant", safe="least", gap=1.0)
    chosen = _chosen(method, domain, named, metric)
    log_bound = _log_bound(chosen, domain, _height(local), named, metric)
    gap = (1 + SLACK) * MARGIN**2 if chosen == "levels" else 1.0
    raised = np.exp(log_bound) * local.max() * (MARGIN if gap > 1 else 1.0)
    return SmoothBound(S=np.maximum(raised, local), method=chosen, safe="above" if gap > 1 else "least", gap=gap)


@validated
def cell_smooth_bound(
    domain: Domain,
    x: ArrayLike,
    *,
    lipschitz: ArrayLike,
    gamma: float,
    growth: str = "exponential",
    lipschitz_slope: float = 0.0,
) -> Array:
    """A smooth upper bound of K over all of the cells of a grid, and not only their centres c_j.

    It is the largest, over cells j, of sup K(cell j) / g(max(0, |x - c_j| - rho)), rho half the diagonal of a cell.
    It is a function of x: a user takes its value at the own location, since one value per cell would jump at borders.

    Parameters
    ----------
    domain : Domain
        A grid.
    x : (m, k) array
        Locations, in the unit of the domain.
    lipschitz : (n,) array
        sup K(cell), or K(c_j) with `lipschitz_slope`.
    gamma : float
        Per unit of distance.
    growth : str
        "exponential" or "linear".
    lipschitz_slope : float
        A bound on |K(x) - K(x')| / |x - x'|, in out per unit^2.

    Returns
    -------
    (m,) array
        The bound at x.

    Raises
    ------
    InputError
        Off grids and for bad input.

    Examples
    --------
    >>> domain = md.Domain.grid((3,), 1.0)
    >>> md.release.cell_smooth_bound(domain, [[0.5]], lipschitz=[1.0, 0.0, 0.0], gamma=1.0)
    array([1.])
    """
    named = growth_of(growth, gamma)
    radius = _half_diagonal(domain)
    slope = float(finite(lipschitz_slope, "lipschitz_slope"))
    if slope < 0:
        raise InputError("must not be negative", field="lipschitz_slope", value=slope)
    place = finite(x, "x")
    if place.ndim != 2 or place.shape[1] != domain.dimension:
        raise InputError(f"must have shape (m, {domain.dimension})", field="x", value=place.shape)
    largest = _per_place(domain, lipschitz, "lipschitz", negative=False) + radius * slope
    if not largest.any():
        return np.zeros(len(place))
    return largest.max() * np.exp(_transformed(place, domain.points, _height(largest), named, radius))


def _chosen(method: str, domain: Domain, growth: Growth, metric: Metric | None) -> str:
    """The method meant by auto, or the given one. Raises: InputError for one that does not fit."""
    exponential, named = growth.name == "exponential", growth.name in NAMED
    flat = metric is None and domain.kind != "nodes"
    fits = {
        "graph": metric is not None and exponential,
        "levels": flat and domain.kind == "grid",
        "blocks": flat and named,
        "pairs": metric is not None or flat,
    }
    if method == "auto":
        if domain.size > _EXACT and fits["levels"] and (domain.dimension > 1 or not named):
            return "levels"
        method = next((name for name in ("graph", "blocks") if fits[name]), "pairs")
    if not fits[method]:
        raise InputError("does not fit these places, this metric or this growth", field="method", value=method)
    return method


def _over_cells(
    domain: Domain, lipschitz: ArrayLike | None, slope: float, growth: Growth, metric: Metric | None, method: str
) -> SmoothBound:
    """`cell_smooth_bound` at the centres."""
    if lipschitz is None or metric is not None or growth.name not in NAMED or method not in ("auto", "blocks"):
        raise InputError(
            "needs lipschitz over all of every cell, a named growth, Euclidean distances and no other method",
            field="for_cells",
        )
    bound = cell_smooth_bound(
        domain, domain.points, lipschitz=lipschitz, gamma=growth.gamma, growth=growth.name, lipschitz_slope=slope
    )
    gap = float(np.exp(growth.log(np.array(_half_diagonal(domain)))))
    return SmoothBound(S=bound, method="cells", safe="above", gap=gap)


def _chords(domain: Domain, values: Array, metric: Metric | None, horizon: float) -> Array:
    """The steepest chord (n,) of f from every place to another within the horizon."""
    if metric is None:
        return steepest_chords(domain.points, values, horizon)
    distances = metric.distances(domain)
    steepest = np.zeros(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = distances[start : start + _ROWS]
        near = (rows > 0) & (rows <= horizon)
        drop = np.abs(values[start : start + _ROWS, None] - values)
        steepest[start : start + _ROWS] = np.where(near, drop / np.where(near, rows, 1.0), 0.0).max(axis=1)
    return steepest


def _log_bound(method: str, domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """The logarithm of S (n,) by a method that fits, for height (n,), that of L; both less the largest ln L."""
    if method == "levels":
        return _from_level_sets(domain, height, growth)
    if method == "blocks":
        return _transformed(domain.points, domain.points, height, growth)
    if method == "pairs":
        return _over_pairs(domain, height, growth, metric)
    assert metric is not None
    edges = metric.edges(domain).scaled(growth.gamma)
    return -lipschitz_minorant(np.minimum(-height, float(edges.length.sum())), edges)  # takes no infinite values


def _over_pairs(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    require_memory(domain.size, _ROWS if metric is None else domain.size, tables=4, what="all pairs")
    distances = None if metric is None else metric.distances(domain)
    log_bound = np.empty(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = slice(start, start + _ROWS)
        if distances is None:
            away = np.linalg.norm(domain.points[rows, None] - domain.points, axis=2)
        else:
            away = distances[rows]
        log_bound[rows] = (height - growth.log(away)).max(axis=1)
    return log_bound


def _transformed(x: Array, places: Array, height: Array, growth: Growth, radius: float = 0.0) -> Array:
    """The largest height_j - ln g(max(0, |x - x_j| - radius)) over the places j, (m,), of a named growth."""
    if growth.name == "linear":
        return np.log(transform(x, places, np.exp(height), growth.gamma, linear=True, radius=radius))
    return transform(x, places, height, growth.gamma, linear=False, radius=radius)


def _from_level_sets(domain: Domain, height: Array, growth: Growth) -> Array:
    """An upper bound (n,) of ln S on a grid, at most ln(1 + SLACK) above it.

    Cost: a distance transform per level, about 5 ms on 40,000 cells; at most ln g(longest distance) / SLACK levels.
    """
    from scipy.ndimage import distance_transform_edt

    assert domain.cell is not None
    inside = domain.lookup >= 0
    step, top = math.log1p(SLACK), float(height.max())
    level = np.floor((top - np.maximum(height, -1e300)) / step)
    level = np.where(
        top - (level + 1) * step >= height, level + 1, np.where(top - level * step < height, level - 1, level)
    )
    bound = np.full(domain.size, -np.inf)
    for k in np.unique(level).tolist():
        value = top - k * step
        if value <= bound.min():
            break
        rising = (level == k) & (bound < value)
        if not rising.any():
            continue
        away = np.ones(inside.shape, bool)
        away[inside] = ~rising
        distance = distance_transform_edt(away, sampling=domain.cell)[inside]
        bound = np.maximum(bound, value - growth.log(distance))
    return bound


def _height(lipschitz: Array) -> Array:
    """The logarithm of L less its maximum; -inf where L is 0."""
    with np.errstate(divide="ignore"):
        return np.log(lipschitz / lipschitz.max())


def _reach(domain: Domain, metric: Metric | None) -> float:
    """The largest distance that growth can be asked at, or more. Cost: all distances of a metric."""
    if metric is not None:
        return float(metric.distances(domain).max())
    return float(np.linalg.norm(np.ptp(domain.points, axis=0)))


def _per_place(domain: Domain, values: ArrayLike | None, name: str, *, negative: bool = True) -> Array:
    """Finite numbers (n,), one a place, or an InputError."""
    array = finite(np.nan if values is None else values, name)
    if array.shape != (domain.size,):
        raise InputError(f"must have shape ({domain.size},)", field=name, value=array.shape)
    refuse_entries(~(array >= 0) & (not negative), array, "must not be negative", field=name)
    return array


def _half_diagonal(domain: Domain) -> float:
    if domain.cell is None:
        raise InputError("only a grid has cells", field="domain", value=domain.kind)
    return math.hypot(*domain.cell) / 2
