"""Least smooth bounds on finitely many places: exact max-plus transforms, upper bounds for large grids, and HiGHS.

| method | places | growth | S |
|---|---|---|---|
| blocks | coordinates | named | exact, pairs that cannot matter left out |
| line | coordinates on a line | exponential | exact, two passes |
| graph | any, with a metric | exponential | exact, one shortest-path search over the metric's edges |
| pairs | any | any | exact, all pairs in runs of rows |
| levels | grid | any | at most 1.03 times the least bound, from distances to level sets |
| stencil | 2-D grid of square cells, no mask | exponential | above the least bound: shortest paths with gamma reduced |

Upper bounds are smooth bounds themselves: what is lost is accuracy of the answers, never privacy. The opposite, gamma
itself on the edges of neighbours, or a marching scheme, stays below the least bound and is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import finite, positive
from mechdesign.base.display import Shown
from mechdesign.closed_forms.sensitivity.growth import NAMED, Function, Growth, growth_of
from mechdesign.errors import InputError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.sensitivity.routes import MARGIN, ROUTES, SLACK, by_stencil, chords, transformed

Array = NDArray[np.float64]
Method = Literal["auto", "blocks", "line", "graph", "pairs", "levels", "stencil"]
METHODS = ("auto", "blocks", "line", "graph", "pairs", "levels", "stencil")
_EXACT = 100_000  # places up to which a grid is transformed exactly


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothBound(Shown):
    """A smooth upper bound S (n,) of pointwise Lipschitz constants, in their unit.

    method, how it was made; safe, "least" where S is the least bound up to rounding, "above" where it is a smooth bound
    above that; gap, S is at most this multiple of the least bound of the same L at any place.
    """

    S: Array
    method: str
    safe: Literal["least", "above"]
    gap: float


@asked
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
    """S(x) = max over places x' of L(x') / g(d(x, x')): the least smooth upper bound of L on the domain.

    Parameters: lipschitz, L (n,), not negative; or values, f (n,), whose steepest chords within `horizon` are L;
    gamma, per unit of d; growth, exponential, linear, or a function g of distances, which takes no gamma; metric, whose
    distances in nats are d (gamma is then per nat, L per nat); without one d is Euclidean, in the unit of the domain;
    method, see the module docstring.
    The bound is for secrets that are places of the domain. With `for_cells` on a grid, L holds for all of each cell
    (its supremum, or its value at the centre and in `lipschitz_slope` how much it changes at most per unit of
    distance), and S is `cell_smooth_bound` at the centres; a user elsewhere in a cell asks that for the own location.
    Raises: InputError for bad input, methods that do not fit, and a growth that is none; SizeError before a table that
    does not fit.
    Cost: for 200 x 200 cells blocks take half a second; pairs, n^2. The program is `programs.smooth_sensitivity`.
    """
    if method not in METHODS:
        raise InputError("unknown method", field="method", value=method, remedy="use one of " + ", ".join(METHODS))
    if (lipschitz is None) == (values is None):
        raise InputError(
            "needs either",
            field="lipschitz",
            value="both" if values is not None else "none",
            remedy="pass lipschitz or values",
        )
    named = growth_of(growth, gamma, reach=_reach(domain, metric) if callable(growth) else 1.0)
    limit = positive(horizon, "horizon", infinite=True)
    if values is None and limit < math.inf:
        raise InputError("belongs to values", field="horizon", value=limit, remedy="pass the lipschitz of that horizon")
    if not for_cells and lipschitz_slope != 0:
        raise InputError("belongs to cells", field="lipschitz_slope", value=lipschitz_slope, remedy="pass for_cells")
    if for_cells:
        return _over_cells(domain, lipschitz, lipschitz_slope, named, metric, method)
    if values is not None:
        given = chords(domain, _per_place(domain, values, "values"), metric, limit)
    else:
        given = _per_place(domain, lipschitz, "lipschitz", negative=False)
    if not given.any():
        return SmoothBound(S=given, method="constant", safe="least", gap=1.0)
    chosen = _chosen(method, domain, named, metric)
    height = _height(given)
    log_bound = ROUTES[chosen](domain, height, named, metric)
    gap = 1.0
    if chosen == "levels":
        gap = (1 + SLACK) * MARGIN**2
    elif chosen == "stencil":
        below = by_stencil(domain, height, named, 1.0)
        gap = float(np.exp((log_bound - below).max())) * MARGIN**2
    raised = np.exp(log_bound) * given.max() * (MARGIN if gap > 1 else 1.0)
    return SmoothBound(S=np.maximum(raised, given), method=chosen, safe="above" if gap > 1 else "least", gap=gap)


@asked
def cell_smooth_bound(
    domain: Domain,
    x: ArrayLike,
    *,
    lipschitz: ArrayLike,
    gamma: float,
    growth: str = "exponential",
    lipschitz_slope: float = 0.0,
) -> Array:
    """The largest, over cells j, of sup K(cell j) / g(max(0, |x - c_j| - rho)), rho half the diagonal of a cell, (m,).

    A smooth upper bound of K over all of the cells of a grid, not only their centres c_j. It is a function of x (m, k):
    a user takes its value at the own location, since one value per cell would jump at borders. lipschitz (n,) is
    sup K(cell), or K(c_j) with `lipschitz_slope`, a bound on |K(x) - K(x')| / |x - x'|, in out per unit^2.
    Raises: InputError off grids and for bad input.
    """
    named = growth_of(growth, gamma)
    radius = _half_diagonal(domain)
    slope = float(finite(lipschitz_slope, "lipschitz_slope"))
    if slope < 0:
        raise InputError("must not be negative", field="lipschitz_slope", value=slope, remedy="give a bound on |K'|")
    place = finite(x, "x")
    if place.ndim != 2 or place.shape[1] != domain.dimension:
        raise InputError(
            f"must have shape (m, {domain.dimension})", field="x", value=place.shape, remedy="one row per location"
        )
    largest = _per_place(domain, lipschitz, "lipschitz", negative=False) + radius * slope
    if not largest.any():
        return np.zeros(len(place))
    return largest.max() * np.exp(transformed(place, domain.points, _height(largest), named, radius))


def _height(lipschitz: Array) -> Array:
    """The logarithm of L less its maximum; -inf where L is 0."""
    with np.errstate(divide="ignore"):
        return np.log(lipschitz / lipschitz.max())


def _reach(domain: Domain, metric: Metric | None) -> float:
    """The largest distance that growth can be asked at, or more. Cost: all distances of a metric."""
    if metric is not None:
        return float(metric.distances(domain).max())
    return float(np.linalg.norm(np.ptp(domain.points, axis=0)))


def _per_place(domain: Domain, given: ArrayLike | None, name: str, *, negative: bool = True) -> Array:
    array = finite(np.nan if given is None else given, name)
    if array.shape != (domain.size,) or (not negative and array.min() < 0):
        raise InputError(
            f"must have shape ({domain.size},)" + ("" if negative else " and not be negative"),
            field=name,
            value=f"shape {array.shape}, from {array.min() if array.size else 0:.6g}",
            remedy="one number per place of the domain",
        )
    return array


def _chosen(method: str, domain: Domain, growth: Growth, metric: Metric | None) -> str:
    """The method meant by auto, or the given one. Raises: InputError for one that does not fit."""
    exponential, named = growth.name == "exponential", growth.name in NAMED
    flat = metric is None and domain.kind != "nodes"
    square = flat and domain.kind == "grid" and domain.dimension == 2 and len(set(domain.cell or ())) == 1
    fits = {
        "graph": metric is not None and exponential,
        "line": flat and exponential and domain.dimension == 1,
        "levels": flat and domain.kind == "grid",
        "stencil": square and exponential and domain.size == math.prod(domain.shape or ()),
        "blocks": flat and named,
        "pairs": metric is not None or flat,
    }
    if method == "auto":
        if domain.size > _EXACT and fits["levels"] and not fits["line"]:
            return "levels"
        method = next((name for name in ("graph", "line", "blocks") if fits[name]), "pairs")
    if not fits[method]:
        raise InputError(
            "does not fit these places, this metric or this growth",
            field="method",
            value=method,
            remedy="use auto, and for nodes of a graph a metric",
        )
    return method


def _over_cells(
    domain: Domain, lipschitz: ArrayLike | None, slope: float, growth: Growth, metric: Metric | None, method: str
) -> SmoothBound:
    """`cell_smooth_bound` at the centres."""
    if lipschitz is None or metric is not None or growth.name not in NAMED or method not in ("auto", "blocks"):
        raise InputError(
            "needs lipschitz over all of every cell, a named growth and Euclidean distances",
            field="for_cells",
            value=True,
            remedy="pass lipschitz, and neither metric, values nor another method",
        )
    found = cell_smooth_bound(
        domain, domain.points, lipschitz=lipschitz, gamma=growth.gamma, growth=growth.name, lipschitz_slope=slope
    )
    gap = float(np.exp(growth.log(np.array(_half_diagonal(domain)))))
    return SmoothBound(S=found, method="cells", safe="above", gap=gap)


def _half_diagonal(domain: Domain) -> float:
    if domain.cell is None:
        raise InputError("only a grid has cells", field="domain", value=domain.kind, remedy="use Domain.grid")
    return math.hypot(*domain.cell) / 2
