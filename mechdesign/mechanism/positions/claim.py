"""Claim: what a mechanism with positions promises, in one sentence, and what its file holds beside the table.

| variable or attribute | dims | meaning |
|---|---|---|
| around_row | secret, around | int64, the rows of the cells at the steps `AROUND` from each: shared rows included |
| corner_level | secret, corner | eps, or less, at the corners `CORNERS` of each cell, in nats per unit |
| quarter_level | secret, quarter_corner | in its place, at those of its quarters, both by `CORNERS` |
| position_rule | | RULE |
| position_claim | | the sentence |

A position x is rounded to the nearest of the points that split the sides of its own cell, in the unit of the domain,
into 2^16 parts: by at most h 2^-16 / sqrt(2), inside the cell. So between x, x' and their roundings D grows by no more
than sqrt(2) z 2^-16, z = h max eps, which the sentence adds to D. At the points themselves the table is exact.
What is drawn at the centre of a cell is a mean of nine rows, and no row alone. Rows may differ by more than e^{eps h}
between neighbours, since only such means are bounded. By the conditions of whole cells (cones.py) rows a and b of two
cells with a common side satisfy |a - b| <= z (a + b) / 2, so that for z < 2 a / b is at most (2 + z) / (2 - z), which
is e^{z + z^3 / 12 + ...}. By those of quarters that holds of (3 a + c) / 4 and (3 b + d) / 4 alone, c and d the rows
beside them, and rows themselves may differ by more: designs of 20 x 20 cells at one level had up to 1.117 times the
claim at z = 0.5. So the claim about rows has a multiple of its own, and no report is drawn from a row by its number.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from mechdesign.base.units import unit_word
from mechdesign.mechanism.positions.patches import Patches, level_range
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.space.domain import Domain

STEP_BITS = 16
RULE = "quadratic B-spline of 3 x 3 cells at steps of 2^-16 cells; a cell outside has the row of the first beside it"


def position_sentence(metric: Metric, domain: Domain, patches: Patches) -> str:
    """The claim in one sentence, rebuilt at verification; the digits of the list are a fingerprint of `patches`."""
    assert domain.shape is not None and domain.cell is not None
    unit, times = unit_word(domain.unit), "" if metric.scale == 1 else f"{float(metric.scale)!r} times "
    where = f"{domain.size} cells, {float(patches.side)!r} {unit} wide, of a {' x '.join(map(str, domain.shape))} grid"
    if domain.plane is not None:
        where += f" on the {domain.plane.words()}, {domain.plane.accuracy(domain.reach + patches.side)}"
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
    rounding = rounding_nats(metric, patches.side)
    return (
        f"One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in the "
        f"{where}, where D is {times}{distance} and r = {rounding:.2e} is for rounding positions to 2^-16 of a cell; "
        f"drawn by the quadratic B-spline of 3 x 3 cells, checked by the cones of its gradient (list "
        f"{_fingerprint(patches)}). k reports cost k times as much."
    )


def rounding_nats(metric: Metric, side: float) -> float:
    """What rounding two positions to 2^-16 of a cell of this side adds to D: r of the claim, with 1 % to spare."""
    return level_range(metric)[1] * metric.scale * rounding_length(side)


def rounding_length(side: float) -> float:
    """By how much rounding two positions to 2^-16 of a cell of this side parts them at most, with 1 % to spare."""
    return 1.01 * math.sqrt(2) * side / 2**STEP_BITS


def _fingerprint(patches: Patches) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(patches.around, "<i8").tobytes())
    digest.update(np.ascontiguousarray(patches.corner_level, "<f8").tobytes())
    return digest.hexdigest()[:12]
