r"""Patches: which rows a position of an area is drawn from, the level that bounds it there, and what is claimed of it.

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
|grad P(y|.)| <= eps P(y|.) on every cell, by integrating d ln P along the path. The check of that in integers is
in `cones.py`; it takes, for every cell, levels at its corners whose bilinear interpolant nowhere exceeds eps.

Corner levels. A raster eps is linear along each axis between its node lines, and so is the interpolant e of corner
levels within a cell: on each rectangle that the node lines cut from the cell, eps - e is bilinear, and least at a
corner of the rectangle. So e <= eps on the cell if and only if it holds at every crossing of the lines through the
cell with each other and with its sides, and at its corners. There it is checked, with a relative margin of 2^-30;
computed shares of the way through a raster cell are right to u (5 M / g + 5), u = 2^-53, M the largest coordinate and g
the least gap of nodes or the side of a cell, so that eps and e are right to 2^-31 of eps as long as
rho (M / g + 1) <= 2^16, rho = largest / smallest eps. Other rasters are refused. Levels may be given at the corners of
the four quarters of every cell instead: of the cells, each a square of half the side, of `quarters`.

Raising. `corner_levels` lowers the four corners of a cell by one factor, until their interpolant is nowhere above eps.
Where a valley of the raster crosses a part of the cell, only the corners near it have to give way: each is raised by
half of the room that it has, a few times around, and then by all of it, so that no corner can be raised further by
itself. Levels at the corners of the quarters of cells follow a raster whose node lines cross the cells: on 20 x 20
cells over a raster of 18 x 9 nodes the mean level lies 2.7 % below that of eps by the corners of cells, and 0.6 % by
those of quarters.
What a file holds beside the table.

| variable or attribute | dims | meaning |
|---|---|---|
| around_row | secret, around | int64, the rows of the cells at the steps `AROUND` from each: shared rows included |
| corner_level | secret, corner | eps, or less, at the corners `CORNERS` of each cell, in nats per unit |
| quarter_level | secret, quarter_corner | in its place, at those of its quarters, both by `CORNERS` |
| position_rule | | RULE |
| position_claim | | the sentence |

Rounding. A position x is rounded to the nearest of the points that split the sides of its own cell, in the unit of the
domain, into 2^16 parts: by at most h 2^-16 / sqrt(2), inside the cell. So between x, x' and their roundings D grows by
no more than sqrt(2) z 2^-16, z = h max eps, which the sentence adds to D. At the points themselves the table is exact.
What is drawn at the centre of a cell is a mean of nine rows, and no row alone. Rows may differ by more than e^{eps h}
between neighbours, since only such means are bounded. By the conditions of whole cells (cones.py) rows a and b of two
cells with a common side satisfy |a - b| <= z (a + b) / 2, so that for z < 2 a / b is at most (2 + z) / (2 - z), which
is e^{z + z^3 / 12 + ...}. By those of quarters that holds of (3 a + c) / 4 and (3 b + d) / 4 alone, c and d the rows
beside them, and rows themselves may differ by more: designs of 20 x 20 cells at one level had up to 1.117 times the
claim at z = 0.5. So the claim about rows has a multiple of its own, and no report is drawn from a row by its number.

Snapping. The row of a position is drawn in integers, with exactly the weights of the spline. The point of a
position is a h 2^-16, a in {-2^15, ..., 2^15}, from the centre of its own cell along each axis. With M = 2^15 the
weights of the steps -1, 0, +1 are (M - a)^2, 6 M^2 - 2 a^2 and (M + a)^2, of 2^33 together: a step is what 33 uniform
bits say, one number for each axis, and the report is drawn with bits of its own. Which step it was must be kept from
everybody: with it a report says more than the claim allows.
Source: quadratic B-splines, de Boor, A Practical Guide to Splines, chapter IX; the claim is ours.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.units import unit_word
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.claim import MechanismFile
from mechdesign.mechanism.schema import refused
from mechdesign.positions import cones
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_at
from mechdesign.problem.metric import Eikonal, Euclidean, Metric, level_range, plane_level_map

AROUND = tuple(product((-1, 0, 1), repeat=2))  # steps to the cells of a patch, in the order of `around`
STEP_BITS = 16
RULE = "quadratic B-spline of 3 x 3 cells at steps of 2^-16 cells; a cell outside has the row of the first beside it"
HALF = 1 << (STEP_BITS - 1)  # M, the points from the centre of a cell to its side
WEIGHT_BITS = 2 * STEP_BITS + 1
CORNERS = tuple(product((0, 1), repeat=2))  # ends of the sides of a cell, in the order of `corner_level`
_BESIDE = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_MARGIN = 2.0**-30  # relative, of a level below eps
_WIDEST = 2.0**16  # rho (M / g + 1) of the module docstring
_RAISED = 1 - 2.0**-27  # of eps, up to which levels are raised: well below what `level_faults` asks for
_ROUNDS = 8  # of raising the corners of a cell, all but the last by a half of their room
_WANTED = 0.01  # price from which a smaller cell is named
Crossing = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches:
    """Of the n cells of a domain: around (n, 9), the rows of the cells at the steps `AROUND` from each; corner_level
    (n, 4), eps or less at the corners `CORNERS` of each, or (n, 16), at those of its quarters, which have the order of
    `CORNERS` too, in nats per unit; side, of a cell, in the unit of the domain.
    """

    around: NDArray[np.int64]
    corner_level: NDArray[np.float64]
    side: float

    def breaches(self, mass: NDArray[np.uint64]) -> int:
        """How many (cell, report) pairs of a table (n, m) break the claim."""
        return cones.breaches(mass, self)

    def differences(self, mechanism: xr.Dataset, metric: Metric, domain: Domain) -> list[str]:
        """How the claim about positions in a file differs from what metric and geometry give."""
        attrs, reasons = mechanism.attrs, level_faults(domain, metric, self.corner_level)
        if not np.array_equal(mechanism["around_row"].values, self.around):
            reasons.append("around_row: the cells around a cell have other rows by the rule")
        if attrs["position_rule"] != RULE:
            reasons.append("position_rule: another rule than that of this version")
        if attrs["position_claim"] != self.sentence(metric, domain):
            reasons.append("position_claim: the stored sentence is not the one that the metric, levels and grid give")
        return reasons

    def variables(self, domain: Domain) -> dict[str, Any]:
        """The variables that a file keeps (see the module docstring)."""
        name, dim = {4: ("corner_level", "corner"), 16: ("quarter_level", "quarter_corner")}[self.corner_level.shape[1]]
        return {
            "around_row": (("secret", "around"), self.around.copy()),
            name: (("secret", dim), self.corner_level.copy(), {"units": f"nats per {domain.unit}"}),
        }

    def attributes(self, metric: Metric, domain: Domain) -> dict[str, str]:
        """The rule, and the claim in one sentence."""
        return {"position_rule": RULE, "position_claim": self.sentence(metric, domain)}

    def sentence(self, metric: Metric, domain: Domain) -> str:
        """The claim in one sentence, rebuilt at verification; the digits of the list are a fingerprint."""
        assert domain.shape is not None and domain.cell is not None
        unit, times = unit_word(domain.unit), "" if metric.scale == 1 else f"{float(metric.scale)!r} times "
        where = f"{domain.size} cells, {float(self.side)!r} {unit} wide, of a {' x '.join(map(str, domain.shape))} grid"
        if domain.plane is not None:
            where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.reach + self.side)}"
        low, high = level_range(metric)
        if isinstance(metric, Eikonal):
            distance = (
                f"the least integral of the bilinear privacy level eps ({low:.9g} to {high:.9g} nats per {unit}, map "
                f"{metric.level.raster.fingerprint()}) along paths inside the cells"
            )
        elif math.prod(domain.shape) == domain.size:
            distance = f"the Euclidean distance times {low:.17g} nats per {unit}"
        else:
            distance = f"the length of the shortest path inside the cells times {low:.17g} nats per {unit}"
        digest = hashlib.sha256(np.ascontiguousarray(self.around, "<i8").tobytes())
        digest.update(np.ascontiguousarray(self.corner_level, "<f8").tobytes())
        rounding = rounding_nats(metric, self.side)
        return (
            f"One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in "
            f"the {where}, where D is {times}{distance} and r = {rounding:.2e} is for rounding positions to 2^-16 of a "
            f"cell; drawn by the quadratic B-spline of 3 x 3 cells, checked by the cones of its gradient (list "
            f"{digest.hexdigest()[:12]}). k reports cost k times as much."
        )

    def advised_cell(self, metric: Metric, price: float) -> float | None:
        """The side of a cell at which the price falls to 1 %: it is of first order where the level varies, else of
        second (solve.py). None where it is not above that.
        """
        if price <= _WANTED:
            return None
        low, high = level_range(metric)
        return self.side * (_WANTED / price if low < high else math.sqrt(_WANTED / price))

    @staticmethod
    def snapped(domain: Domain, positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells (b,) of positions (b, 2), in the unit of the domain, and the points (b, 2) in them, from -M to M.

        Computed in fractions; on the border of two cells, as `place_at` says.
        Raises: InputError for positions that are not finite, outside or in a masked cell.
        """
        assert domain.index is not None and domain.cell is not None and domain.origin is not None
        listed = positions.tolist()
        cells = [place_at(domain, at) for at in listed]
        points = []
        for at, index in zip(listed, domain.index[cells].tolist(), strict=True):
            parts = zip(at, index, domain.origin, domain.cell, strict=True)
            shares = [(Fraction(x) - Fraction(low)) / Fraction(h) - i - Fraction(1, 2) for x, i, low, h in parts]
            points.append([math.floor(share * 2 * HALF + Fraction(1, 2)) for share in shares])
        return np.array(cells), np.array(points)

    @staticmethod
    def drawn_steps(points: NDArray[np.int64], bits: Callable[[int], bytes]) -> NDArray[np.int64]:
        """Places 0..8 (b,) in a row of `Patches.around` for points (b, 2): a step along each axis, 33 bits for each.

        Nothing depends on what is drawn but the numbers themselves.
        """
        words = np.frombuffer(bits(8 * points.size), "<u8").astype(np.uint64).reshape(points.shape)
        uniform = (words >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)
        low, middle, _ = np.moveaxis(step_weights(points), -1, 0)
        steps = (uniform >= low).astype(np.int64) + (uniform >= low + middle)
        return 3 * steps[:, 0] + steps[:, 1]


def rounding_nats(metric: Metric, side: float) -> float:
    """What rounding two positions to 2^-16 of a cell of this side adds to D: r of the claim, with 1 % to spare."""
    return level_range(metric)[1] * metric.scale * rounding_length(side)


def rounding_length(side: float) -> float:
    """By how much rounding two positions to 2^-16 of a cell of this side parts them at most, with 1 % to spare."""
    return 1.01 * math.sqrt(2) * side / 2**STEP_BITS


def step_weights(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """The weights (..., 3) of the steps -1, 0, +1 at points, integers of sum 2^33."""
    return np.stack([(HALF - points) ** 2, 6 * HALF**2 - 2 * points**2, (HALF + points) ** 2], axis=-1)


def stored_claim(stored: MechanismFile) -> Patches:
    """Rows and levels of the claim about positions of a file, rebuilt but for the levels.

    Raises: VerificationError where only a part of it is there, or the metric of the problem cannot be told.
    """
    mechanism = stored.mechanism
    levels = [name for name in ("corner_level", "quarter_level") if name in mechanism]
    there = ["around_row" in mechanism, len(levels) == 1]
    there += [name in mechanism.attrs for name in ("position_rule", "position_claim")]
    if not all(there):
        raise refused("is there in part", "position_claim", there, "rule, sentence, rows and levels of positions")
    return patches(stored.domain, stored.problem_metric, mechanism[levels[0]].values)


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
            f"positions need a grid of two axes and square cells, not {domain.kind} with cells of {domain.cell}",
            field="domain",
        )


def corner_levels(domain: Domain, metric: Metric) -> NDArray[np.float64]:
    """Levels (n, 4) at the corners of the cells, in nats per unit, whose bilinear interpolants nowhere exceed eps.

    For each cell eps at its corners, times the least ratio of eps to their interpolant on the cell, rounded down.
    Raises: UnsuitableError for a metric without a level, or a raster that doubles cannot bound.
    Cost: O(n k) for k crossings of node lines a cell.
    """
    if isinstance(metric, Euclidean):
        return np.full((domain.size, 4), metric.epsilon * metric.scale * (1 - 2.0**-50))
    level = plane_level_map(metric)
    corners = _corner_points(domain)
    values = level.at(corners.reshape(-1, 2)).reshape(-1, 4) * metric.scale
    return values * np.minimum(1.0, _ratios(domain, metric, values))[:, None] * (1 - 2.0**-28)


def raised_levels(domain: Domain, metric: Metric) -> NDArray[np.float64]:
    """Levels (n, 4) as `corner_levels` gives them or larger, for `patches`. Raises: what `corner_levels` raises.

    Cost: O(n k) for k crossings of node lines a cell, some 40 times.
    """
    level = corner_levels(domain, metric)
    if not isinstance(metric, Eikonal):
        return level
    share, eps = _shares(domain, metric)
    raised = level.copy()
    for round_ in range(_ROUNDS):
        for corner in range(4):
            part = share[:, :, corner]
            left = eps * _RAISED - np.einsum("npk,nk->np", share, raised)
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(part > 0, left / part, np.inf).min(axis=1)
            raised[:, corner] += np.maximum(room, 0.0) * (0.5 if round_ < _ROUNDS - 1 else 1.0)
    return level if level_faults(domain, metric, raised) else raised


def quarter_levels(domain: Domain, metric: Metric) -> NDArray[np.float64]:
    """Levels (n, 16) at the corners of the quarters of cells, for `patches`; (n, 4) where the metric has one level.

    Raises: what `corner_levels` raises. Cost: four times that of `raised_levels`.
    """
    if not isinstance(metric, Eikonal) or metric.level.smallest == metric.level.largest:
        return corner_levels(domain, metric)
    fine, at = quarters(domain)
    return np.ascontiguousarray(raised_levels(fine, metric)[at].reshape(-1, 16))


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


def _shared_rows(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of every lattice cell that touches the domain, of `table` with a border of -1; elsewhere -1."""
    padded, shared, size = np.pad(table, 1, constant_values=-1), table.copy(), int(table.max()) + 1
    for steps in (_BESIDE, _DIAGONAL):
        near = [padded[1 + i : padded.shape[0] - 1 + i, 1 + j : padded.shape[1] - 1 + j] for i, j in steps]
        first = np.min([np.where(rows < 0, size, rows) for rows in near], axis=0)
        shared = np.where((shared < 0) & (first < size), first, shared)
    return shared


def _corner_points(domain: Domain) -> NDArray[np.float64]:
    """Coordinates (n, 4, 2) of the corners of the cells."""
    assert domain.index is not None
    return np.asarray(domain.origin) + (domain.index[:, None, :] + np.asarray(CORNERS)) * np.asarray(domain.cell)


def _ratios(domain: Domain, metric: Metric, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least ratio (n,) of eps to the interpolant of `values` (n, 4) at the corners of each cell."""
    level = plane_level_map(metric)
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


def _shares(domain: Domain, metric: Eikonal) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares (n, p, 4) of the corners in the interpolant at the crossings of node lines and sides, and eps (n, p)."""
    shares, levels = [], []
    for x, y, s, t in crossings(domain, metric.level.raster.axes):
        shares.append(np.column_stack([(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t]))
        levels.append(metric.level.at(np.column_stack([x, y])) * metric.scale)
    return np.stack(shares, axis=1), np.stack(levels, axis=1)
