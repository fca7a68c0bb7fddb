"""A cell with which a design between positions is about as good as noise at the position, by an estimate.

Let z be the nats along a square of the rows. A design by cones exceeds the best mechanism of its reports by about
`CONES` z^2 of its loss, one by columns by `COLUMNS` z more. Both were measured for Rome's box, for 0.3 <= z <= 1.2. The
excess of noise hardly depends on the cell. So a design of loss d with z, beside noise of loss w, is as good as noise
with rows of z' nats if

    (1 + CONES z'^2) d / (1 + excess(z)) <= w.                                                                      (1)

The cell is the nearest to that of the design whose rows satisfy (1) and whose cones keep the limit of operations.
"""

from __future__ import annotations

import math

import numpy as np

from mechdesign.geo.choose import FINE_NATS, MAX_CONE_OPERATIONS, MAX_PARTS, two_digits
from mechdesign.problem.metrics import level_range
from mechdesign.problem.problem import DesignProblem

CONES, COLUMNS = 0.05, 0.055
WIDEST = 1.2  # nats, of (1); beyond it rows get at most `SAFE`
SAFE = 0.5
NARROWEST = 0.2  # nats: rows that (1) wants narrower than this are not proposed
_STEP, _STEPS = 1.1, 16  # cells that are tried: from a fifth to five times that of the design
_CONES_PER_ROW, _READING = 17, 1e4  # of `positions.cone_blocks.step_operations`


def cell_as_good_as_noise(
    problem: DesignProblem, *, parts: int, method: str, loss: float, noise: float
) -> float | None:
    """The cell, rounded to two digits; None if no cell nearby promises it."""
    domain, metric = problem.domain, problem.metric
    low, level = (bound * metric.scale for bound in level_range(metric))
    assert domain.shape is not None
    widest = _widest_rows(level * domain.spacing, method, loss / noise)
    if widest is None or low < level:
        return None
    sides = np.asarray(domain.shape) * domain.spacing
    is_symmetric = domain.size == math.prod(domain.shape) and np.ptp(problem.prior_array) == 0
    for step in range(1, _STEPS):
        for factor in (_STEP**-step, _STEP**step):
            cell = two_digits(domain.spacing * parts * factor, up=False)
            for cut in range(1, MAX_PARTS + 1):
                if level * cell / cut <= widest:
                    shape = np.ceil(sides / cell).astype(int).tolist()
                    if _operations(shape, cut, is_symmetric) <= MAX_CONE_OPERATIONS:
                        return cell
                    break
    return None


def _widest_rows(nats: float, method: str, ratio: float) -> float | None:
    """The largest z' of (1); None if it is too small."""
    if nats > WIDEST:
        return SAFE
    excess = CONES * nats**2 + (COLUMNS * nats if method == "columns" else 0.0)
    square = ((1 + excess) / ratio - 1) / CONES
    return min(math.sqrt(square), FINE_NATS) if square >= NARROWEST**2 else None


def _operations(shape: list[int], parts: int, is_symmetric: bool) -> float:
    # `step_operations` of a full rectangle, without making its cones.
    wide, high = shape
    symmetries = 1 if not is_symmetric else 8 if wide == high else 4
    rows = wide * high * parts**2
    blocks, sums, width = wide * high / symmetries, rows / symmetries, 2 * high * parts + 2
    return blocks * (rows * (width**2 + sums**2) + _READING * _CONES_PER_ROW * rows)
