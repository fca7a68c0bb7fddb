"""The routes to a smooth bound: what each takes and gives is in `smooth_sensitivity`, which chooses among them.

Every route takes (domain, height, growth, metric), height (n,) = ln L less its maximum, -inf where L is 0, and returns
ln S (n,) on the same scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.sensitivity.growth import Growth
from mechdesign.setting.metric.max_plus import steepest_chords, transform
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges, lipschitz_minorant
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import stencil_pairs
from mechdesign.solvers.sensitivity.level_sets import level_set_bound

Array = NDArray[np.float64]
SLACK = 0.029  # of the level-set bound
MARGIN = 1 + 2.0**-40  # upper bounds are raised by this: their rounding must not take them below the exact transform
_ROWS = 64  # of the table of all pairs at a time
_STENCIL = 32
# Between neighbouring steps of a stencil at an angle t, the path is longer than the straight line by 1 / cos(t / 2).
STRETCH = {
    stencil: 1 / math.cos(math.atan(slope) / 2) for stencil, slope in {8: 1.0, 16: 1 / 2, 32: 1 / 3, 64: 1 / 4}.items()
} | {4: math.sqrt(2)}


def chords(domain: Domain, values: Array, metric: Metric | None, horizon: float) -> Array:
    """The steepest chord (n,) of f from every place to another within the horizon."""
    if metric is None:
        return steepest_chords(domain.points, values, horizon)
    distances = metric.distances(domain)
    found = np.zeros(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = distances[start : start + _ROWS]
        near = (rows > 0) & (rows <= horizon)
        drop = np.abs(values[start : start + _ROWS, None] - values)
        found[start : start + _ROWS] = np.where(near, drop / np.where(near, rows, 1.0), 0.0).max(axis=1)
    return found


def transformed(x: Array, places: Array, height: Array, growth: Growth, radius: float = 0.0) -> Array:
    """The largest height_j - ln g(max(0, |x - x_j| - radius)) over the places j, (m,), of a named growth."""
    if growth.name == "linear":
        return np.log(transform(x, places, np.exp(height), growth.gamma, linear=True, radius=radius))
    return transform(x, places, height, growth.gamma, linear=False, radius=radius)


def by_blocks(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """All pairs that can matter."""
    return transformed(domain.points, domain.points, height, growth)


def by_line(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """Two running maxima, of ln L + gamma x from the left and ln L - gamma x from the right, place by place."""
    order = np.argsort(domain.points[:, 0])
    loss = growth.gamma * np.diff(domain.points[order, 0])
    found = height[order]
    for k in range(1, len(found)):
        found[k] = max(found[k], found[k - 1] - loss[k - 1])
    for k in range(len(found) - 2, -1, -1):
        found[k] = max(found[k], found[k + 1] - loss[k])
    back = np.empty_like(found)
    back[order] = found
    return back


def by_pairs(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """Runs of rows of the table of all pairs."""
    require_memory(domain.size, _ROWS if metric is None else domain.size, tables=4, what="all pairs")
    distances = None if metric is None else metric.distances(domain)
    found = np.empty(domain.size)
    for start in range(0, domain.size, _ROWS):
        rows = slice(start, start + _ROWS)
        if distances is None:
            away = np.linalg.norm(domain.points[rows, None] - domain.points, axis=2)
        else:
            away = distances[rows]
        found[rows] = (height - growth.log(away)).max(axis=1)
    return found


def by_graph(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """Shortest paths along the edges of the metric, one search."""
    assert metric is not None
    return _along_edges(metric.edges(domain).scaled(growth.gamma), height)


def by_levels(domain: Domain, height: Array, growth: Growth, metric: Metric | None) -> Array:
    """Distances to level sets."""
    return level_set_bound(domain, height, growth, SLACK)


def by_stencil(domain: Domain, height: Array, growth: Growth, stretch: float = STRETCH[_STENCIL]) -> Array:
    """Paths along a stencil are at most `stretch` times the straight line: with gamma divided by it, a bound above."""
    tail, head = stencil_pairs(domain, _STENCIL)
    length = np.linalg.norm(domain.points[tail] - domain.points[head], axis=1)
    return _along_edges(Edges(tail=tail, head=head, length=length * (growth.gamma / stretch)), height)


def _along_edges(edges: Edges, height: Array) -> Array:
    """The least majorant of ln L that changes by no more than the length of an edge along it; ln L may be -inf."""
    reach = float(edges.length.sum())
    return -lipschitz_minorant(np.minimum(-height, reach), edges)


ROUTES: dict[str, Any] = {
    "blocks": by_blocks,
    "line": by_line,
    "graph": by_graph,
    "pairs": by_pairs,
    "levels": by_levels,
    "stencil": lambda domain, height, growth, metric: by_stencil(domain, height, growth),
}
