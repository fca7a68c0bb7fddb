r"""Patches: which rows a position of an area is drawn from, and the privacy level that bounds it there.

Mechanism. On a grid of square cells of side h, a position x = centre of cell v + h s, s in [-1/2, 1/2]^2, draws a row
of the 3 x 3 cells around v with the weights of the quadratic B-spline, (1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2 for
the steps -1, 0, +1 along either axis, then a report from that row:

    P(y|x) = sum over i in {-1, 0, 1}^2 of b_i(s) A[row of v + i, y] / 2^62

Shared rows. A lattice cell outside the domain that touches a cell v of it has no row of its own: it has that of the
first of the cells beside it, or where none is in the domain, of those that touch its corners; first in the order of the
domain. On a full rectangle this is clamping. The rule gives every lattice cell one row, so that P is one spline,
continuously differentiable over the whole area.

Claim. The area is the union of the closed cells of the domain. With a level eps(x) > 0 in nats per unit,

    P(y|x) <= e^{D(x, x')} P(y|x'),  D the least integral of eps along paths from x to x' inside the area,

for all x, x' of one part of it. At constant eps on a full rectangle, D = eps |x - x'|. It follows from
|grad P(y|.)| <= eps P(y|.) on every cell, by integrating d ln P along the path. The check of that in whole numbers is
in `cones.py`; it takes, for every cell, levels at its corners whose bilinear interpolant nowhere exceeds eps.

Corner levels. A raster eps is linear along each axis between its node lines, and so is the interpolant e of corner
levels within a cell: on each rectangle that the node lines cut from the cell, eps - e is bilinear, and least at a
corner of the rectangle. So e <= eps on the cell if and only if it holds at every crossing of the lines through the
cell with each other and with its sides, and at its corners. There it is checked, with a relative margin of 2^-30;
computed shares of the way through a raster cell are right to u (5 M / g + 5), u = 2^-53, M the largest coordinate and g
the least gap of nodes or the side of a cell, so that eps and e are right to 2^-31 of eps as long as
rho (M / g + 1) <= 2^16, rho = largest / smallest eps. Other rasters are refused. Levels may be given at the corners of
the four quarters of every cell instead: of the cells, each a square of half the side, of `quarters`.
Source: quadratic B-splines, de Boor, A Practical Guide to Splines, chapter IX; the claim is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import UnsuitableError
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.space.domain import Domain

AROUND = tuple(product((-1, 0, 1), repeat=2))  # steps to the cells of a patch, in the order of `around`
CORNERS = tuple(product((0, 1), repeat=2))  # ends of the sides of a cell, in the order of `corner_level`
_BESIDE = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
Crossing = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
_MARGIN = 2.0**-30
_WIDEST = 2.0**16


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches:
    """Of the n cells of a domain: around (n, 9), the rows of the cells at the steps `AROUND` from each; corner_level
    (n, 4), eps or less at the corners `CORNERS` of each, or (n, 16), at those of its quarters, which have the order of
    `CORNERS` too, in nats per unit; side, of a cell, in the unit of the domain.
    """

    around: NDArray[np.int64]
    corner_level: NDArray[np.float64]
    side: float


def patches(domain: Domain, metric: Metric, corner_level: NDArray[np.float64] | None = None) -> Patches:
    """The patches of a grid for a metric with a level. corner_level (n, 4) as `corner_levels` gives it, or
    smaller, or (n, 16) as it gives them for `quarters`.

    Raises: UnsuitableError for other places than square cells on two axes, or a metric without a level.
    """
    square_cells(domain)
    table = np.pad(domain.lookup, 1, constant_values=-1)
    shared = _shared_rows(table)
    assert domain.index is not None and domain.cell is not None
    at = domain.index + 1
    around = np.column_stack([shared[at[:, 0] + i, at[:, 1] + j] for i, j in AROUND])
    level = corner_levels(domain, metric) if corner_level is None else corner_level
    return Patches(around=around, corner_level=level, side=domain.cell[0])


def square_cells(domain: Domain) -> None:
    """Raises: UnsuitableError for other places than square cells on two axes."""
    if domain.cell is None or len(domain.cell) != 2 or domain.cell[0] != domain.cell[1]:
        raise UnsuitableError(
            "any position can be drawn only on a grid of square cells on two axes",
            field="domain",
            value=f"{domain.kind}, cells of {domain.cell}",
            remedy="use Domain.grid with two axes and one cell size",
        )


def corner_levels(domain: Domain, metric: Metric) -> NDArray[np.float64]:
    """Levels (n, 4) at the corners of the cells, in nats per unit, whose bilinear interpolants nowhere exceed eps.

    For each cell eps at its corners, times the least ratio of eps to their interpolant on the cell, rounded down.
    Raises: UnsuitableError for a metric without a level, or a raster that doubles cannot bound.
    Cost: O(n k) for k crossings of node lines a cell.
    """
    if isinstance(metric, Euclidean):
        return np.full((domain.size, 4), metric.epsilon * metric.scale * (1 - 2.0**-50))
    level = _level(metric)
    corners = _corner_points(domain)
    values = level.at(corners.reshape(-1, 2)).reshape(-1, 4) * metric.scale
    return values * np.minimum(1.0, _ratios(domain, metric, values))[:, None] * (1 - 2.0**-28)


def level_faults(domain: Domain, metric: Metric, corner_level: NDArray[np.float64]) -> list[str]:
    """How levels (n, 4 or 16) at corners fail to bound the level of the metric from below; empty where they do."""
    sized = corner_level.shape in ((domain.size, 4), (domain.size, 16))
    if not sized or not (np.isfinite(corner_level) & (corner_level > 0)).all():
        return ["corner_level: must be positive and finite, four for every cell or for every quarter of one"]
    if isinstance(metric, Euclidean):
        most = Fraction(metric.epsilon) * Fraction(metric.scale)
        over = np.flatnonzero(
            [max(map(Fraction, levels)) > most for levels in np.unique(corner_level, axis=0).tolist()]
        )
    else:
        cells, levels = domain, corner_level
        if corner_level.shape[1] == 16:
            cells, at = quarters(domain)
            levels = np.empty((cells.size, 4))
            levels[at.ravel()] = corner_level.reshape(-1, 4)
        over = np.flatnonzero(_ratios(cells, metric, levels) < 1 + _MARGIN)
    return [f"corner_level: {len(over)} cells have levels above that of the metric"] * bool(len(over))


def quarters(domain: Domain) -> tuple[Domain, NDArray[np.int64]]:
    """The squares of half the side that the cells consist of, and which of them (n, 4) are those of each cell."""
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    assert domain.index is not None
    fine = Domain.grid(
        tuple(2 * count for count in domain.shape),
        cell=tuple(side / 2 for side in domain.cell),
        unit=domain.unit,
        origin=domain.origin,
        mask=np.kron(domain.lookup >= 0, np.ones((2, 2))).astype(bool),
    )
    at = 2 * domain.index[:, None, :] + np.asarray(CORNERS)
    return fine, fine.lookup[at[..., 0], at[..., 1]]


def level_range(metric: Metric) -> tuple[float, float]:
    """The smallest and largest eps of a metric at scale 1. Raises: UnsuitableError for a metric without a level."""
    if isinstance(metric, Euclidean):
        return metric.epsilon, metric.epsilon
    return _level(metric).smallest, _level(metric).largest


def _level(metric: Metric) -> PrivacyLevel:
    if not isinstance(metric, Eikonal) or len(metric.level.raster.axes) != 2:
        raise UnsuitableError(
            "any position can be drawn only under a metric with a level on the plane",
            field="metric",
            value=metric.kind,
            remedy="use Euclidean, or Eikonal with a map of two axes",
        )
    return metric.level


def _shared_rows(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of every lattice cell that touches the domain, of `table` with a border of -1; elsewhere -1."""
    padded, found, size = np.pad(table, 1, constant_values=-1), table.copy(), int(table.max()) + 1
    for steps in (_BESIDE, _DIAGONAL):
        near = [padded[1 + i : padded.shape[0] - 1 + i, 1 + j : padded.shape[1] - 1 + j] for i, j in steps]
        first = np.min([np.where(rows < 0, size, rows) for rows in near], axis=0)
        found = np.where((found < 0) & (first < size), first, found)
    return found


def _corner_points(domain: Domain) -> NDArray[np.float64]:
    """Coordinates (n, 4, 2) of the corners of the cells."""
    assert domain.index is not None
    return np.asarray(domain.origin) + (domain.index[:, None, :] + np.asarray(CORNERS)) * np.asarray(domain.cell)


def _ratios(domain: Domain, metric: Metric, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least ratio (n,) of eps to the interpolant of `values` (n, 4) at the corners of each cell."""
    level = _level(metric)
    raster, corners = level.raster, _corner_points(domain)
    low, high = corners[:, 0], corners[:, 3]
    gaps = [np.diff(nodes).min() for nodes in raster.axes if len(nodes) > 1]
    reach = max(np.abs(corners).max(), *(np.abs(nodes).max() for nodes in raster.axes))
    spread = level.largest / level.smallest * (reach / min([*gaps, high[0, 0] - low[0, 0]]) + 1)
    if not spread <= _WIDEST:
        raise UnsuitableError(
            "the levels at the corners of cells cannot be told from their rounding",
            field="epsilon",
            value=f"levels {level.smallest:.6g} to {level.largest:.6g}, {reach:.6g} {domain.unit} from the origin",
            remedy="use an origin nearer to the cells, or a map whose levels differ by less",
        )
    least = np.full(domain.size, np.inf)
    for x, y, s, t in crossings(domain, raster.axes):
        below = (1 - s) * ((1 - t) * values[:, 0] + t * values[:, 1]) + s * ((1 - t) * values[:, 2] + t * values[:, 3])
        least = np.minimum(least, level.at(np.column_stack([x, y])) * metric.scale / below)
    return least


def crossings(domain: Domain, axes: Sequence[NDArray[np.float64]]) -> Iterator[Crossing]:
    """Where the lines of nodes on two axes cross each other and the sides within each cell, and its corners: of all
    cells at a time, x, y and the shares s, t of the way through the cell along its sides, (n,) each.

    A cell with fewer lines than another has its upper sides several times.
    """
    corners = _corner_points(domain)
    (left, below), (right, above) = corners[:, 0].T, corners[:, 3].T
    for x, y in product(_lines(axes[0], left, right).T, _lines(axes[1], below, above).T):
        yield x, y, (x - left) / (right - left), (y - below) / (above - below)


def _lines(nodes: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sides of intervals (n,) and the nodes inside them, (n, k + 2), padded with the upper side."""
    first, last = np.searchsorted(nodes, low, side="right"), np.searchsorted(nodes, high, side="left")
    steps = first[:, None] + np.arange(int((last - first).max()))
    inside = np.where(steps < last[:, None], nodes[np.minimum(steps, len(nodes) - 1)], high[:, None])
    return np.column_stack([low, inside, high])
