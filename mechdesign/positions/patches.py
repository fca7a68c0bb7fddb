r"""Patches: the rows that a position of an area is drawn from, the level that bounds it there, and the claim.

**The mechanism.** On a grid of square cells of side h, a position is x = centre of cell v + h s, s in [-1/2, 1/2]^2.
It draws a row of the 3 x 3 cells around v, then a report from that row. The quadratic B-spline gives the weights,
(1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2 for the steps -1, 0, +1 along either axis:

    P(y|x) = sum over i in {-1, 0, 1}^2 of b_i(s) A[row of v + i, y] / 2^62                                          (1)

A lattice cell outside the domain that touches it shares the row of a neighbour (`_shared_rows`). Every lattice cell has
one row, so that P is one spline, continuously differentiable over the whole area.

**The claim.** The area is the union of the closed cells of the domain. With a level eps(x) > 0 in nats per unit,

    P(y|x) <= e^{D(x, x')} P(y|x'),  D the least integral of eps along paths from x to x' inside the area,           (2)

for all x, x' of one part of it. At constant eps on a full rectangle, D = eps |x - x'|. It follows from
|grad P(y|.)| <= eps P(y|.) on every cell, by integrating d ln P along the path. cones.py checks that in integers, with
levels that are nowhere above eps (levels.py).

**Rounding.** A position is rounded to the nearest of the points that split the sides of its own cell into 2^16 parts.
The sentence adds the growth of D (`rounding_length`). At the points themselves the table is exact: the point a h 2^-16
from the centre, a in {-M, ..., M}, M = 2^15, has the integer weights

    (M - a)^2,  6 M^2 - 2 a^2,  (M + a)^2,  of 2^33 together.                                                        (3)

The step must stay secret (`Patches.draw_steps`), and a report is never drawn from a row by its number.
Source: quadratic B-splines, de Boor, A Practical Guide to Splines, chapter IX; the claim is ours.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Floats, IntegerMatrix, Integers, Unsigned
from mechdesign.base.units import unit_word
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.schema import file_error
from mechdesign.positions import cones
from mechdesign.positions.levels import corner_levels, level_faults
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_at
from mechdesign.problem.located import floors, places_at
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Eikonal, level_range

AROUND = tuple(product((-1, 0, 1), repeat=2))  # steps to the cells of a patch, in the order of `around`
STEP_BITS = 16
RULE = "quadratic B-spline of 3 x 3 cells at steps of 2^-16 cells; a cell outside has the row of the first beside it"
HALF = 1 << (STEP_BITS - 1)  # M, the points from the centre of a cell to its side
WEIGHT_BITS = 2 * STEP_BITS + 1
_BESIDE = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_WANTED_PRICE = 0.01  # above which a smaller cell is advised


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches:
    """Rows around the n cells of a domain, levels at their corners, and the claim that they support."""

    around: IntegerMatrix  # (n, 9), the rows of the cells at the steps `AROUND` from each
    # In nats per unit, at most eps: (n, 4) at the corners `CORNERS` of each cell, or (n, 16) at those of its quarters.
    # Quarters have the order of `CORNERS` too.
    corner_level: Floats
    side: float  # of a cell, in the unit of the domain

    @cached_property
    def whole_level(self) -> Unsigned:
        return cones.integer_levels(self.corner_level, self.side)

    def breaches(self, mass: Unsigned) -> int:
        return cones.breaches(mass, self.around, self.whole_level)

    def differences(self, mechanism: xr.Dataset, metric: Metric, domain: Domain) -> list[str]:
        attrs, reasons = mechanism.attrs, level_faults(domain, metric, self.corner_level)
        if not np.array_equal(mechanism["around_row"].values, self.around):
            reasons.append("around_row: differs from the rows that the rule gives")
        if attrs["position_rule"] != RULE:
            reasons.append("position_rule: not the rule of this version")
        if attrs["position_claim"] != self.sentence(metric, domain):
            reasons.append("position_claim: differs from the sentence that metric, levels and grid give")
        if "any_lower_bound" in attrs and attrs["program"] != "positions":
            reasons.append("any_lower_bound: only the program between positions has one")
        return reasons

    # | variable or attribute | dims | meaning |
    # |---|---|---|
    # | around_row | secret, around | int64, rows of the cells at the steps `AROUND` from each: shared rows included |
    # | corner_level | secret, corner | eps, or less, at the corners `CORNERS` of each cell, in nats per unit |
    # | quarter_level | secret, quarter_corner | in its place, at those of its quarters, both by `CORNERS` |
    # | position_rule | | RULE |
    # | position_claim | | the sentence |
    def variables(self, domain: Domain) -> dict[str, Any]:
        name, dim = {4: ("corner_level", "corner"), 16: ("quarter_level", "quarter_corner")}[self.corner_level.shape[1]]
        return {
            "around_row": (("secret", "around"), self.around.copy()),
            name: (("secret", dim), self.corner_level.copy(), {"units": f"nats per {domain.unit}"}),
        }

    def attributes(self, metric: Metric, domain: Domain) -> dict[str, str]:
        return {"position_rule": RULE, "position_claim": self.sentence(metric, domain)}

    def sentence(self, metric: Metric, domain: Domain) -> str:
        assert domain.shape is not None and domain.cell is not None
        unit, times = unit_word(domain.unit), "" if metric.scale == 1 else f"{float(metric.scale)!r} times "
        where = f"{domain.size} cells, {float(self.side)!r} {unit} wide, of a {' x '.join(map(str, domain.shape))} grid"
        if domain.plane is not None:
            where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.max_radius + self.side)}"
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
        """The side of a cell at which the price falls to 1 %; None if it is at most that."""
        # The price is of first order in the side if the level varies, else of second (solve.py).
        if price <= _WANTED_PRICE:
            return None
        low, high = level_range(metric)
        return self.side * (_WANTED_PRICE / price if low < high else math.sqrt(_WANTED_PRICE / price))

    @staticmethod
    def snap(domain: Domain, positions: Floats) -> tuple[Integers, Integers]:
        """The cells (b,) of positions (b, 2), in the unit of the domain, and the points (b, 2) in them, -M to M."""
        # Exact floors: a rounding error at a border would draw by the weights of a point outside the cell. Positions on
        # a border belong to the cell of `place_at`, which refuses positions in no cell.
        assert domain.index is not None and domain.cell is not None and domain.origin is not None
        cells = places_at(domain, positions)
        for outside in np.flatnonzero(cells < 0)[:1].tolist():
            place_at(domain, positions[outside].tolist())
        index = domain.index[cells]
        axes = zip(positions.T, index.T, domain.origin, domain.cell, strict=True)
        # (x - low) / h - i - 1/2 in steps of 1 / (2 HALF), rounded to the nearest.
        points = [floors(x, low, h, parts=2 * HALF, half=True) - (2 * i + 1) * HALF for x, i, low, h in axes]
        return cells, np.column_stack(points)

    @staticmethod
    def draw_steps(points: Integers, bits: Callable[[int], bytes]) -> Integers:
        """Places 0..8 (b,) in a row of `Patches.around` for points (b, 2): a step along each axis, 33 bits for each."""
        # With the step a report would reveal more than the claim allows. In designs of 20 x 20 cells at one level,
        # eps h = 0.5, rows of neighbours differ by up to 1.117 eps h nats: the claim about rows has its own scale.
        # (3). Two comparisons instead of a search: no branch and no address depends on the secret draw.
        words = np.frombuffer(bits(8 * points.size), "<u8").astype(np.uint64).reshape(points.shape)
        uniform = (words >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)
        low, middle, _ = np.moveaxis(step_weights(points), -1, 0)
        steps = (uniform >= low).astype(np.int64) + (uniform >= low + middle)
        return 3 * steps[:, 0] + steps[:, 1]


def rounding_nats(metric: Metric, side: float) -> float:
    """An upper bound of the growth of D by rounding two positions to 2^-16 of a cell: r of the claim."""
    return level_range(metric)[1] * metric.scale * rounding_length(side)


def rounding_length(side: float) -> float:
    """An upper bound of the distance that rounding two positions to 2^-16 of a cell adds."""
    # Each of two positions moves by at most h 2^-16 / sqrt(2), so that D grows by at most sqrt(2) h 2^-16 max eps. 1 %
    # covers the rounding of the position that the caller gives.
    return 1.01 * math.sqrt(2) * side / 2**STEP_BITS


def step_weights(points: Integers) -> Integers:
    """The weights (..., 3) of the steps -1, 0, +1 at points: (3)."""
    return np.stack([(HALF - points) ** 2, 6 * HALF**2 - 2 * points**2, (HALF + points) ** 2], axis=-1)


def stored_claim(stored: MechanismFile) -> Patches:
    """Rows and levels of the claim about positions of a file, rebuilt but for the levels."""
    mechanism = stored.mechanism
    levels = [name for name in ("corner_level", "quarter_level") if name in mechanism]
    # A part of the claim alone would be a claim that nobody checks.
    present = ["around_row" in mechanism, len(levels) == 1]
    present += [name in mechanism.attrs for name in ("position_rule", "position_claim")]
    if not all(present):
        raise file_error("is incomplete", "position_claim", present, "rule, sentence, rows and levels of positions")
    return patches(stored.domain, stored.problem_metric, mechanism[levels[0]].values)


def patches(domain: Domain, metric: Metric, corner_level: Floats | None = None) -> Patches:
    """The patches of a grid; corner_level (n, 4) as of `corner_levels`, or smaller, or (n, 16) as for `quarters`."""
    square_cells(domain)
    table = np.pad(domain.lookup, 1, constant_values=-1)
    shared = _shared_rows(table)
    assert domain.index is not None and domain.cell is not None
    index = domain.index + 1  # in the padded table
    around = np.column_stack([shared[index[:, 0] + i, index[:, 1] + j] for i, j in AROUND])
    level = corner_levels(domain, metric) if corner_level is None else corner_level
    return Patches(around=around, corner_level=level, side=domain.cell[0])


def square_cells(domain: Domain) -> None:
    """Raise an UnsuitableError for other places than square cells on two axes."""
    if domain.cell is None or len(domain.cell) != 2 or domain.cell[0] != domain.cell[1]:
        raise UnsuitableError(
            f"positions need a grid of two axes and square cells, not {domain.kind} with cells of {domain.cell}",
            field="domain",
        )


def _shared_rows(table: Integers) -> Integers:
    # Side neighbours first, then diagonal ones; the first in the order of the domain. On a full rectangle this is
    # clamping.
    padded, shared, size = np.pad(table, 1, constant_values=-1), table.copy(), int(table.max()) + 1
    for steps in (_BESIDE, _DIAGONAL):
        neighbours = [padded[1 + i : padded.shape[0] - 1 + i, 1 + j : padded.shape[1] - 1 + j] for i, j in steps]
        first = np.min([np.where(rows < 0, size, rows) for rows in neighbours], axis=0)
        shared = np.where((shared < 0) & (first < size), first, shared)
    return shared
