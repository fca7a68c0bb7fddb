"""Persons as integers below 2^32, from counts of people, integers or not.

Limits on discs are proved in integers (rows.py), and only proportions of people matter. So counts are scaled before
they are rounded. Fractions of one small denominator get the least integer multiple, other counts a sum of almost 2^32.
A count above 0 never becomes 0. Rounded counts N of counts p have

    spread = max_u (N/p) / min_u (N/p).                                                                         (1)

A limit under N holds under p as if N were wrong counts (limits.py, fact 2, with r = spread).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arrays import Indices, IntegerMatrix, Vector
from mechdesign.errors import InputError

# All persons together are fewer, so that sums with halves of 31 bits stay below 2^63.
MAX_PERSONS = 2**32
# Largest denominator of a count that is recognised, such as of people spread evenly over as many cells; a guess.
_MAX_DENOMINATOR = 10_000
_EXACT = 2.0**-40  # relative rounding of a density times the area of a cell
_MAX_SPREAD = Fraction(5, 4)  # spread of rounded counts: a share of 60 % would become 55 %


def whole_persons(people: ArrayLike, size: int) -> tuple[IntegerMatrix, Fraction]:
    """Whole persons (priors, size) proportional to counts (size,) or (priors, size), and the largest spread."""
    counts = np.atleast_2d(np.asarray(people))
    if counts.ndim != 2 or counts.shape[1] != size or not len(counts):
        raise InputError(
            f"must have one count for each of {size} places", field="people", value=f"shape {counts.shape}"
        )
    if np.issubdtype(counts.dtype, np.integer):
        return _check_integers(counts), Fraction(1)
    if not np.issubdtype(counts.dtype, np.floating):
        raise InputError("must be counts of people", field="people", value=counts.dtype)
    if not (np.isfinite(counts).all() and counts.min() >= 0 and (counts.max(axis=1) > 0).all()):
        value = f"{counts.min():g} to {counts.max():g}"
        raise InputError("must be finite, not negative, and not all 0", field="people", value=value)
    rows = [_scale_to_persons(row.astype(float)) for row in counts]
    return np.stack([row for row, _ in rows]), max(spread for _, spread in rows)


def _check_integers(counts: NDArray[np.integer]) -> IntegerMatrix:
    if counts.min() < 0 or int(counts.max()) >= MAX_PERSONS:
        value = f"{counts.min()} to {counts.max()}"
        raise InputError("must be from 0 to 2^32 - 1 at a place", field="people", value=value)
    # No sum of 64 bits wraps: fewer than 2^31 places of less than 2^32.
    totals = counts.astype(np.int64).sum(axis=1)
    if totals.min() <= 0 or int(totals.max()) >= MAX_PERSONS:
        value = f"{totals.min()} to {totals.max()}"
        raise InputError("must be from 1 to 2^32 - 1 together", field="people", value=value)
    return counts.astype(np.int64)


def _scale_to_persons(counts: Vector) -> tuple[Indices, Fraction]:
    counts = counts / counts.max()  # else a sum of large counts could be infinite
    living = counts > 0
    # Fractions of persons spread over cells are multiples of one another: exact, if one scale makes all of them whole.
    for unit in (counts[living].min(), counts.max()):
        whole = _exact_multiple(counts / unit)
        if whole is not None:
            return whole, Fraction(1)
    # Rounding up adds less than one person a place, so the sum stays below 2^32.
    scale = (MAX_PERSONS - 1 - len(counts)) / counts.sum()
    whole = np.where(living, np.maximum(np.rint(scale * counts), 1), 0).astype(np.int64)
    # (1), rounded up. Above _MAX_SPREAD the limit would have to be lowered too much.
    ratio = whole[living] / (scale * counts[living])
    spread = Fraction(float(ratio.max() / ratio.min() * (1 + _EXACT)))
    if spread > _MAX_SPREAD:
        smallest = counts[living].min() / counts.sum()
        remedy = f"raise those below {4 / MAX_PERSONS:.1g} of the sum, or set them to 0 where nobody lives"
        message = "the smallest count is too small a share of all people"
        raise InputError(message, field="people", value=f"{smallest:.2g}", remedy=remedy)
    return whole, spread


def _exact_multiple(counts: Vector) -> Indices | None:
    """The least integer multiple of counts, or None if it is too large or not exact."""
    total, multiple = counts.sum(), 1
    if not total < MAX_PERSONS:
        return None
    for count in np.unique(counts):
        multiple = math.lcm(multiple, Fraction(count).limit_denominator(_MAX_DENOMINATOR).denominator)
        if not multiple * total < MAX_PERSONS - 1:
            return None
    scaled = counts * multiple
    whole = np.rint(scaled)
    exact = (np.abs(whole - scaled) <= _EXACT * scaled).all() and whole.sum() < MAX_PERSONS
    return whole.astype(np.int64) if exact else None
