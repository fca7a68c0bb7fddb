r"""Levels of cells that are nowhere above the privacy level eps, for the cones of the gradient (cones.py).

A cell has levels at its four corners, and e is their bilinear interpolant. A raster eps is linear along each axis
between its node lines. So eps - e is bilinear on each rectangle that these lines cut from the cell, and its minimum is
at a corner of the rectangle. Hence e <= eps on the cell if and only if

    e <= eps at every crossing of the lines through the cell with each other and with its sides, and at its corners. (1)

It is checked there with a relative margin of 2^-30, which covers rounding as long as

    rho (M / g + 1) <= 2^16,    rho = largest / smallest eps,                                                        (2)

with M the largest coordinate, and g the smallest gap of nodes or the side of a cell. Other rasters are refused. Levels
may stand at the corners of the four quarters of every cell instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from mechdesign.base.arrays import Floats, Integers
from mechdesign.errors import UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Eikonal, Euclidean, plane_level_map

CORNERS = tuple(product((0, 1), repeat=2))  # ends of the sides of a cell, in the order of corner levels


@dataclass(frozen=True, kw_only=True)
class LevelConstants:
    """Constants of the levels, relative. The check rests on `margin` and `widest`, the others only cost accuracy."""

    margin: float = 2.0**-30  # of a level below eps: twice the error of both, by (2)
    widest: float = 2.0**16  # of (2)
    lowered: float = 1 - 2.0**-28  # of corner levels: four times the margin, so that their own check passes
    raised: float = 1 - 2.0**-27  # of eps, up to which levels are raised: eight times the margin
    rounds: int = 8  # of raising the corners of a cell, a guess: more gain nothing that shows


CONSTANTS = LevelConstants()
Crossing = tuple[Floats, Floats, Floats, Floats]


def corner_levels(domain: Domain, metric: Metric) -> Floats:
    """Levels (n, 4) at the corners of the cells, in nats per unit, whose bilinear interpolants nowhere exceed eps."""
    # Eps at the corners, times the least ratio of eps to their interpolant on the cell (1). A constant level lies below
    # its value in fractions, which the check compares it with.
    if isinstance(metric, Euclidean):
        return np.full((domain.size, 4), metric.epsilon * metric.scale * (1 - 2.0**-50))
    level = plane_level_map(metric)
    corners = _corner_points(domain)
    values = level.at(corners.reshape(-1, 2)).reshape(-1, 4) * metric.scale
    return values * np.minimum(1.0, _ratios(domain, metric, values))[:, None] * CONSTANTS.lowered


def raise_levels(domain: Domain, metric: Metric) -> Floats:
    """Levels (n, 4) as `corner_levels` gives them or larger. Cost: some 40 times as much."""
    level = corner_levels(domain, metric)
    if not isinstance(metric, Eikonal):
        return level
    share, eps = _shares(domain, metric)
    raised = level.copy()
    for round_ in range(CONSTANTS.rounds):
        # Half of the slack at first: a corner that took all of it would leave none to its neighbours. On 20 x 20 cells
        # over a raster of 18 x 9 nodes the mean corner level is then 2.7 % below eps, with quarters 0.6 %.
        for corner in range(4):
            part = share[:, :, corner]
            slack = eps * CONSTANTS.raised - np.einsum("npk,nk->np", share, raised)
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(part > 0, slack / part, np.inf).min(axis=1)
            raised[:, corner] += np.maximum(room, 0.0) * (0.5 if round_ < CONSTANTS.rounds - 1 else 1.0)
    # Raised levels are guesses of rounding errors: if the check refuses them, the lower ones stand.
    return level if level_faults(domain, metric, raised) else raised


def quarter_levels(domain: Domain, metric: Metric) -> Floats:
    """Levels (n, 16) at the corners of the quarters of cells; (n, 4) where the metric has one level."""
    if not isinstance(metric, Eikonal) or metric.level.smallest == metric.level.largest:
        return corner_levels(domain, metric)
    fine, squares = quarters(domain)
    return np.ascontiguousarray(raise_levels(fine, metric)[squares].reshape(-1, 16))


def level_faults(domain: Domain, metric: Metric, corner_level: Floats) -> list[str]:
    """Reasons why levels (n, 4 or 16) do not bound the level of the metric from below; empty if they do."""
    sized = corner_level.shape in ((domain.size, 4), (domain.size, 16))
    if not sized or not (np.isfinite(corner_level) & (corner_level > 0)).all():
        return ["corner_level: must be positive and finite, four for every cell or for every quarter of one"]
    if isinstance(metric, Euclidean):
        limit = Fraction(metric.epsilon) * Fraction(metric.scale)
        over = np.flatnonzero(
            [max(map(Fraction, levels)) > limit for levels in np.unique(corner_level, axis=0).tolist()]
        )
    else:
        cells, levels = domain, corner_level
        if corner_level.shape[1] == 16:
            cells, squares = quarters(domain)
            levels = np.empty((cells.size, 4))
            levels[squares.ravel()] = corner_level.reshape(-1, 4)
        over = np.flatnonzero(_ratios(cells, metric, levels) < 1 + CONSTANTS.margin)
    return [f"corner_level: {len(over)} cells have levels above that of the metric"] * bool(len(over))


def quarters(domain: Domain) -> tuple[Domain, Integers]:
    """The grid of squares of half the side, and the four squares (n, 4) of each cell."""
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    assert domain.index is not None
    fine = Domain.grid(
        tuple(2 * count for count in domain.shape),
        cell=tuple(side / 2 for side in domain.cell),
        unit=domain.unit,
        origin=domain.origin,
        mask=np.kron(domain.lookup >= 0, np.ones((2, 2))).astype(bool),
    )
    squares = 2 * domain.index[:, None, :] + np.asarray(CORNERS)
    return fine, fine.lookup[squares[..., 0], squares[..., 1]]


def _corner_points(domain: Domain) -> Floats:
    assert domain.index is not None
    return np.asarray(domain.origin) + (domain.index[:, None, :] + np.asarray(CORNERS)) * np.asarray(domain.cell)


def _ratios(domain: Domain, metric: Metric, values: Floats) -> Floats:
    level = plane_level_map(metric)
    raster, corners = level.raster, _corner_points(domain)
    low, high = corners[:, 0], corners[:, 3]
    gaps = [np.diff(nodes).min() for nodes in raster.axes if len(nodes) > 1]
    # (2): M is `reach`, and g the smaller of the gaps and the side. Computed shares of the way through a raster cell
    # are right to u (5 M / g + 5), u = 2^-53, so that eps and e are right to 2^-31 of eps. A larger spread could hide
    # an excess in rounding.
    reach = max(np.abs(corners).max(), *(np.abs(nodes).max() for nodes in raster.axes))
    spread = level.largest / level.smallest * (reach / min([*gaps, high[0, 0] - low[0, 0]]) + 1)
    if not spread <= CONSTANTS.widest:
        raise UnsuitableError(
            "the levels at the corners of cells cannot be distinguished from their rounding",
            field="epsilon",
            value=f"levels {level.smallest:.6g} to {level.largest:.6g}, {reach:.6g} {domain.unit} from the origin",
            remedy="use an origin nearer to the cells, or a map whose levels differ by less",
        )
    # The smallest ratio of eps to the interpolant over the crossings of (1): at least 1 means e <= eps on the cell.
    smallest = np.full(domain.size, np.inf)
    for x, y, s, t in crossings(domain, raster.axes):
        below = (1 - s) * ((1 - t) * values[:, 0] + t * values[:, 1]) + s * ((1 - t) * values[:, 2] + t * values[:, 3])
        smallest = np.minimum(smallest, level.at(np.column_stack([x, y])) * metric.scale / below)
    return smallest


def crossings(domain: Domain, axes: Sequence[Floats]) -> Iterator[Crossing]:
    """The crossings of (1), of all cells at a time: x, y and the shares s, t of the way through the cell, (n,) each."""
    # A cell with fewer lines than another has its upper sides several times.
    corners = _corner_points(domain)
    (left, below), (right, above) = corners[:, 0].T, corners[:, 3].T
    for x, y in product(_lines(axes[0], left, right).T, _lines(axes[1], below, above).T):
        yield x, y, (x - left) / (right - left), (y - below) / (above - below)


def _lines(nodes: Floats, low: Floats, high: Floats) -> Floats:
    first, last = np.searchsorted(nodes, low, side="right"), np.searchsorted(nodes, high, side="left")
    steps = first[:, None] + np.arange(int((last - first).max()))
    inside = np.where(steps < last[:, None], nodes[np.minimum(steps, len(nodes) - 1)], high[:, None])
    return np.column_stack([low, inside, high])


def _shares(domain: Domain, metric: Eikonal) -> tuple[Floats, Floats]:
    # For all p crossings (1) of a cell: the weights of its corners in the interpolant (n, p, 4), and eps (n, p).
    shares, levels = [], []
    for x, y, s, t in crossings(domain, metric.level.raster.axes):
        shares.append(np.column_stack([(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t]))
        levels.append(metric.level.at(np.column_stack([x, y])) * metric.scale)
    return np.stack(shares, axis=1), np.stack(levels, axis=1)
