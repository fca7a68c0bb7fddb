"""Places and coordinates: which cell a location falls into, and how few digits name a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain


def place_at(domain: Domain, location: Sequence[float]) -> int:
    """The place that stands for `location` (k,), in the unit of the domain.

    On a grid: the cell whose centre is within half a cell on every axis; on the border of two, the higher one; on the
    upper border of the grid, the last. Elsewhere: the place with exactly these coordinates. Computed in fractions.
    The claim is about places: locations of one cell cannot be told apart at all, and those of two cells by the distance
    of their cells, however close they are to the border.
    Raises: InputError for another number of axes, a location that is not finite, outside, in a masked cell, or none of
        the places; nothing is moved further than half a cell.
    """
    if len(location) != domain.dimension or not all(math.isfinite(x) for x in location):
        raise InputError(
            f"needs {domain.dimension} finite number(s), in {domain.unit}",
            field="at",
            value=_words(location),
            remedy="give one number per axis, or the number of the secret",
        )
    if domain.cell is None or domain.origin is None or domain.shape is None:
        found = np.flatnonzero((domain.points == np.asarray(location, float)).all(axis=1))
        if len(found) == 0:
            raise _elsewhere(domain, location, "none of the places")
        return int(found[0])
    index = []
    for x, low, cell, count in zip(location, domain.origin, domain.cell, domain.shape, strict=True):
        position = (Fraction(x) - Fraction(low)) / Fraction(cell)
        if not 0 <= position <= count:
            raise _elsewhere(domain, location, "outside the grid")
        index.append(min(math.floor(position), count - 1))
    place = int(domain.lookup[tuple(index)])
    if place < 0:
        raise _elsewhere(domain, location, "in a masked cell")
    return place


def identifying_digits(points: NDArray[np.float64]) -> tuple[int | None, ...]:
    """For places (n, k), the fewest decimals per axis that move no coordinate by more than 1/20 of the least gap there.

    Negative numbers are places before the point. None where all places share the coordinate: it names nothing.
    """
    digits: list[int | None] = []
    for values in points.T:
        gaps = np.diff(np.unique(values))
        gap = float(gaps.min()) if len(gaps) else None
        digits.append(None if gap is None else math.ceil(1 - math.log10(gap)))
    return tuple(digits)


def rounded(value: float, digits: int | None) -> float:
    """`value` to so many decimals, as `identifying_digits` counts them."""
    return float(value) if digits is None else round(float(value), digits)


def _elsewhere(domain: Domain, location: Sequence[float], message: str) -> InputError:
    with np.errstate(over="ignore"):
        nearest = int(np.argmin(((domain.points - np.asarray(location, float)) ** 2).sum(axis=1)))
    return InputError(
        message,
        field="at",
        value=_words(location),
        remedy=f"give a location within half a cell of a place (unit: {domain.unit}), or a place: {nearest} is nearest",
    )


def _words(location: Sequence[float]) -> str:
    return " ".join(f"{x:.12g}" for x in location)
