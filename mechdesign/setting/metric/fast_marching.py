"""Fast marching, by scikit-fmm (the extra `fmm`): fields made safe by a Lipschitz minorant, and signed distances.

A fast-marching field (the route of paper 000, section III) overshoots the privacy constraint: by 2 % at constant eps,
by a fifth to a half where eps changes steeply within a cell. It is offered here followed by its largest 1-Lipschitz
minorant on the graph, which removes the overshoot exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.metric.max_plus import transform
from mechdesign.setting.metric.shortest_paths import Edges, lipschitz_minorant
from mechdesign.setting.space.domain import Domain

START_RADIUS = 1.5  # cells: fast marching starts from a front that no cell this near to the source lies outside of
_INSIDE = 0.999  # the front lies between cells, never on one


def fast_marching(domain: Domain, level: PrivacyLevel, source: int, order: int = 2) -> NDArray[np.float64]:
    """Solve |grad f| = eps, f(source) = 0 by fast marching (scikit-fmm); f (n,) in nats, no metric yet.

    The front starts where the straight line integral from the source reaches its least value beyond 1.5 cells, and
    inside it f is that integral: started at a single cell, order 2 returns a third of the true value at some
    neighbours, a signed start flattens the peak, and a circle ignores that eps differs around it.
    Follow with `lipschitz_minorant` before any use in a mechanism.
    Raises: InputError off 2-D grids, where the front does not reach a cell, and where scikit-fmm is not installed.
    """
    if domain.kind != "grid" or domain.dimension != 2 or domain.cell is None:
        raise InputError("needs a 2-D grid", field="distances", value="fast-marching", remedy="use graph distances")
    table = domain.lookup
    inside = table >= 0
    assert domain.index is not None
    offset = domain.points - domain.points[source]
    radius = START_RADIUS * max(domain.cell)
    away = np.sqrt((offset**2).sum(axis=1))
    straight = level.line_integrals(np.repeat(domain.points[source : source + 1], domain.size, axis=0), domain.points)
    if not (away > radius).any():
        return straight
    skfmm = _skfmm("distances", "fast-marching", "use graph distances, or ")
    start = float(straight[away > radius].min()) * _INSIDE
    front = np.ma.masked_array(np.ones(table.shape), mask=~inside)
    front[inside] = straight - start
    speed = np.ones(table.shape)
    speed[inside] = 1.0 / level.at(domain.points)
    arrival = np.ma.filled(skfmm.travel_time(front, speed, dx=list(domain.cell), order=order), np.nan)[inside]
    field = np.where(straight <= start, straight, arrival + start)
    return _reached(field, "use graph distances")


def signed_distance(domain: Domain, level_set: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance (n,) of every cell centre to where `level_set` (n,) changes sign, negative where it is, in the unit of
    the domain: fast marching of order 2 (scikit-fmm), then the mean of the largest function below and the least
    function above with |s(x) - s(x')| <= |x - x'| for all pairs.

    level_set is any continuous function that is positive inside a region. The zero set is interpolated between cells;
    errors are under half a cell where it is smooth. The march alone has slopes of 1.35 there.
    Raises: InputError off 1- to 3-dimensional grids, for values that are not finite or of another shape, where the
    sign does not change, where the front does not reach a cell, and where scikit-fmm is not installed.
    """
    if domain.kind != "grid" or domain.cell is None:
        raise InputError("needs a grid", field="domain", value=domain.kind, remedy="use Domain.grid")
    values = np.asarray(level_set, float)
    if values.shape != (domain.size,) or not np.isfinite(values).all() or (values > 0).all() or (values <= 0).all():
        raise InputError(
            f"must be finite of shape ({domain.size},), positive at some cells and negative at others",
            field="level_set",
            value=f"shape {values.shape}",
            remedy="pass a function that is positive inside a region and negative outside",
        )
    skfmm = _skfmm("level_set", f"shape {values.shape}")
    front = np.ma.masked_array(np.ones(domain.lookup.shape), mask=domain.lookup < 0)
    front[domain.lookup >= 0] = values
    try:
        found = np.ma.filled(skfmm.distance(front, dx=list(domain.cell), order=2), np.nan)[domain.lookup >= 0]
    except ValueError as error:
        raise InputError(
            "no front between the cells", field="level_set", value=str(error), remedy="open the mask where signs change"
        ) from error
    found = _reached(found, "open the mask between the parts")
    below = -transform(domain.points, domain.points, -found, 1.0, linear=False)
    above = transform(domain.points, domain.points, found, 1.0, linear=False)
    return (below + above) / 2


def fast_marching_kernel(domain: Domain, level: PrivacyLevel, edges: Edges) -> NDArray[np.float64]:
    """Distances (n, n), column y the 1-Lipschitz minorant of the fast-marching field from y, in nats; not symmetric."""
    columns = [lipschitz_minorant(fast_marching(domain, level, y), edges) for y in range(domain.size)]
    return np.column_stack(columns)


def _reached(arrival: NDArray[np.float64], remedy: str) -> NDArray[np.float64]:
    """The arrival times (n,), all finite. Raises: InputError that counts those that are not."""
    missed = int((~np.isfinite(arrival)).sum())
    if missed:
        raise InputError("the front does not reach every cell", field="mask", value=f"{missed} cells", remedy=remedy)
    return arrival


def _skfmm(field: str, value: str, otherwise: str = "") -> Any:
    """The module skfmm. Raises: InputError with the command to run where it is not installed."""
    try:
        import skfmm
    except ImportError as error:
        raise InputError(
            "needs scikit-fmm, which is not installed",
            field=field,
            value=value,
            remedy=f"{otherwise}pip install 'mechdesign[fmm]'",
        ) from error
    return skfmm
