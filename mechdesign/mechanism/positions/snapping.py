"""Snapping: the row that a position is drawn from, with whole numbers and exactly the weights of the spline.

A position is rounded to the point a h 2^-16, a in {-2^15, ..., 2^15}, from the centre of its own cell along each axis.
With M = 2^15 the weights of the steps -1, 0, +1 are (M - a)^2, 6 M^2 - 2 a^2 and (M + a)^2, of 2^33 together: a step is
what 33 uniform bits say, one number for each axis, and the report is drawn with bits of its own. Which step it was must
be kept from everybody: with it a report says more than the claim allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError
from mechdesign.mechanism.positions.claim import STEP_BITS
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.locate import place_at, refuse_degrees

HALF = 1 << (STEP_BITS - 1)  # M, the points from the centre of a cell to its side
WEIGHT_BITS = 2 * STEP_BITS + 1


def positions_given(domain: Domain, positions: ArrayLike) -> NDArray[np.float64]:
    """Positions (b, k) from (b, k) or (k,) numbers. Raises: InputError for anything else, and for degrees."""
    try:
        given = np.atleast_2d(np.asarray(positions, float))
    except (TypeError, ValueError):
        given = np.empty((0, 0))
    if given.ndim != 2 or given.shape[1] != domain.dimension or len(given) == 0:
        raise InputError(
            f"must be positions on {domain.dimension} axes, in {domain.unit}",
            field="at",
            value=f"{positions!s:.60}",
            remedy="give one number per axis, or a list of such positions",
        )
    refuse_degrees(domain, given)
    return given


def snapped(domain: Domain, positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells (b,) of positions (b, 2), in the unit of the domain, and the points (b, 2) in them, from -M to M.

    Computed in fractions; on the border of two cells, as `place_at` says.
    Raises: InputError for positions that are not finite, outside or in a masked cell.
    """
    assert domain.index is not None and domain.cell is not None and domain.origin is not None
    given = positions.tolist()
    cells = [place_at(domain, at) for at in given]
    points = []
    for at, index in zip(given, domain.index[cells].tolist(), strict=True):
        parts = zip(at, index, domain.origin, domain.cell, strict=True)
        shares = [(Fraction(x) - Fraction(low)) / Fraction(h) - i - Fraction(1, 2) for x, i, low, h in parts]
        points.append([math.floor(share * 2 * HALF + Fraction(1, 2)) for share in shares])
    return np.array(cells), np.array(points)


def step_weights(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """The weights (..., 3) of the steps -1, 0, +1 at points, whole numbers of sum 2^33."""
    return np.stack([(HALF - points) ** 2, 6 * HALF**2 - 2 * points**2, (HALF + points) ** 2], axis=-1)


def drawn_steps(points: NDArray[np.int64], bits: Callable[[int], bytes]) -> NDArray[np.int64]:
    """Places 0..8 (b,) in a row of `Patches.around` for points (b, 2): a step along each axis, 33 bits for each.

    Nothing depends on what is drawn but the numbers themselves.
    """
    words = np.frombuffer(bits(8 * points.size), "<u8").astype(np.uint64).reshape(points.shape)
    uniform = (words >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)
    low, middle, _ = np.moveaxis(step_weights(points), -1, 0)
    steps = (uniform >= low).astype(np.int64) + (uniform >= low + middle)
    return 3 * steps[:, 0] + steps[:, 1]
