"""Discs: the sets of cells, or of places, whose centres one disc of a given radius contains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Floats, IntegerMatrix, Mask, Matrix, Points, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import check_positive
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

Listed = Literal["anywhere", "places"]
Centres = Literal["anywhere", "places", "area"]
WIDER = 1 + 2.0**-40
MAX_STEPS = 2_000  # cells of a disc: shapes are found pair by pair
_ON_CIRCLE = 2.0**-37  # relative: points this near a circle count as on it, for the rounding of crossings
_MAX_COMPARED = 20_000  # sets up to which those that others contain are left out: pairs are compared


def check_centres(centres: str) -> None:
    """Refuse unknown centres."""
    if centres not in get_args(Centres):
        raise InputError("must be anywhere, places or area", field="centres", value=centres)


def disc_sets(domain: Domain, radius: float, centres: Listed = "anywhere", *, every: bool = False) -> sp.csr_array:
    """The distinct sets of places in discs, (k, n) of 0 and 1; only the largest, unless `every` is True."""
    check_positive(radius, "radius")
    if domain.kind == "nodes":
        raise InputError("nodes of a graph have no coordinates", field="radius", value=radius)
    if domain.index is None or domain.shape is None or domain.cell is None or domain.dimension > 2:
        if centres == "anywhere":
            remedy = "use a grid of one or two axes, or discs about places"
            raise InputError("discs anywhere need a lattice", field="centres", value=centres, remedy=remedy)
        require_memory(domain.size, domain.size, tables=2, noun="discs about places")
        sets = sp.csr_array(domain.euclidean_to(domain) <= radius * WIDER, dtype=np.int64)
        return _distinct(sets, every=every)
    shapes = disc_shapes(domain.cell, radius, centres, every=every)
    require_memory(sum(map(len, shapes)), domain.size, tables=2, noun="discs of so many cells")
    return _distinct(_translates(domain, shapes), every=every)


def cells_of_area(domain: Domain, radius: float) -> int:
    """The number of cells of a grid of two axes that fit into the area of a disc, at most all."""
    wide = check_positive(radius, "radius") * WIDER
    if domain.cell is None or domain.dimension != 2:
        remedy = "use a grid of two axes, or discs about places"
        raise InputError("areas need cells", field="centres", value="area", remedy=remedy)
    cells = math.pi * (wide / domain.cell[0]) * (wide / domain.cell[1])
    if not cells >= 1:
        raise InputError("a cell is larger than the disc", field="radius", value=radius, remedy="use smaller cells")
    return math.floor(min(cells, domain.size))


def largest_sums(values: Matrix, count: int) -> Vector:
    """The sum of the `count` largest values (m,) of each column (n, m)."""
    rest = max(len(values) - count, 0)
    return np.asarray(np.partition(values, rest, axis=0)[rest:].sum(axis=0))


# 1. Discs anywhere. Two or more points fit into a disc of radius R exactly if the discs of radius R about them meet.
#    Then their common part has a corner, where two of these circles cross. So every set in a disc is part of one in a
#    disc centred at a crossing of two circles. On a lattice discs are translates of a few shapes.
# 2. Parts. A limit on the share of a set holds for its parts, but a limit on the multiple of its people needs every
#    set in a disc. The circles cut the plane into faces, and all discs centred in one face contain the same points.
#    Each face has a crossing at its border, unless it is the disc about a lone point. A disc that moves off a
#    crossing in some direction contains those points on its circle that lie on that side.
# Facts 1 and 2 at `disc_shapes` say which sets suffice. Lengths are doubles. A centre counts as inside up to R (1 +
# 2^-40), far beyond their rounding, so that no disc of radius R contains more than a listed set. A verifier finds the
# same sets unless a length is that close to R.
def disc_shapes(cell: tuple[float, ...], radius: float, centres: Listed, *, every: bool = False) -> list[IntegerMatrix]:
    """The shapes (s, axes) of discs on a lattice, as steps from a corner; only the largest, unless `every` is True."""
    side, wide = np.asarray(cell), radius * WIDER
    steps = _steps_around(side, (2 if centres == "anywhere" else 1) * wide, radius)
    places = steps * side
    distance = np.sqrt((places**2).sum(axis=1))
    if centres == "places":
        return [steps[distance <= wide]]
    by_content: dict[bytes, IntegerMatrix] = {}
    # 1: discs centred at crossings suffice, and with `every` those that move off them (2). Translated to a corner,
    # equal shapes are one.
    for crossing in _crossings(places[distance <= 2 * wide], wide, every=every):
        insides = _faces(places - crossing, wide) if every else [_within(places - crossing, wide)]
        for inside in insides:
            shape = steps[inside] - steps[inside].min(axis=0)
            by_content.setdefault(shape.tobytes(), shape)
    shapes = sorted(by_content.values(), key=len, reverse=True)
    if every:
        return shapes
    return shapes[:1] if len(side) == 1 else _largest_shapes(shapes)


def _steps_around(side: Vector, reach: float, radius: float) -> IntegerMatrix:
    span = np.minimum(reach / side, 8 * MAX_STEPS)
    # Compared as doubles, before conversion: the radius of an untrusted file can overflow integers.
    if np.prod(2 * span + 1) > 8 * MAX_STEPS:
        raise InputError(
            f"a disc has more than {MAX_STEPS} cells", field="radius", value=radius, remedy="use larger cells"
        )
    axes = [np.arange(-k, k + 1) for k in np.floor(span).astype(np.int64)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _crossings(places: Points, wide: float, *, every: bool) -> list[Vector]:
    """Where the circle about the origin crosses those about places (k, axes); on one axis the ends of intervals."""
    middles = list(places / 2)
    if places.shape[1] == 2:
        half = [np.sqrt(max(wide**2 - float(middle @ middle), 0.0)) for middle in middles]
        across = [np.array([-m[1], m[0]]) / max(float(np.hypot(*m)), 1e-300) for m in middles]
        return [m + sign * h * a for m, h, a in zip(middles, half, across, strict=True) for sign in (-1, 1)]
    return [np.array([sign * wide]) for sign in (-1, 1)] if every else middles


def _largest_shapes(shapes: list[IntegerMatrix]) -> list[IntegerMatrix]:
    from scipy.signal import correlate  # takes a second to import

    masks = [np.zeros(shape.max(axis=0) + 1) for shape in shapes]
    for mask, shape in zip(masks, shapes, strict=True):
        mask[tuple(shape.T)] = 1

    def is_part(size: int, mask: Floats, other: Floats) -> bool:
        # The correlation counts common cells for every shift: all of them at one shift make a part of a larger shape.
        return other.sum() > size and correlate(other, mask, method="direct").max() > size - 0.5

    return [
        shape
        for mask, shape in zip(masks, shapes, strict=True)
        if not any(is_part(len(shape), mask, other) for other in masks)
    ]


def _within(offsets: Points, wide: float) -> Mask:
    return np.asarray(np.sqrt((offsets**2).sum(axis=1)) <= wide * WIDER)


def _faces(offsets: Points, wide: float) -> Iterator[Mask]:
    """Yield the points (k,) in the disc at a crossing, and in discs of the faces around it; offsets from there."""
    within = _within(offsets, wide)
    on_circle = within & (np.sqrt((offsets**2).sum(axis=1)) >= wide * (1 - _ON_CIRCLE))
    if offsets.shape[1] == 1:
        directions = np.array([[-1.0], [1.0]])
    else:
        angles = np.arctan2(offsets[on_circle, 1], offsets[on_circle, 0])
        across = np.sort(angles[:, None] + [-np.pi / 2, np.pi / 2], axis=None)
        # Between two such angles every direction keeps the same points on the circle: one direction each suffices.
        turns = np.unique(np.round(across % (2 * np.pi), 9))
        between = (turns + np.append(turns[1:], turns[:1] + 2 * np.pi)) / 2
        directions = np.stack([np.cos(between), np.sin(between)], axis=1)
    # 2, above `disc_shapes`: a disc that moves off the crossing loses the points of its circle that lie behind.
    for inside in [within, *(within & ~(on_circle & (offsets @ direction <= 0)) for direction in directions)]:
        if inside.any():
            yield inside


def _translates(domain: Domain, shapes: list[IntegerMatrix]) -> sp.csr_array:
    assert domain.shape is not None
    rows, columns, count = [], [], 0
    lattice = np.asarray(domain.shape)
    for shape in shapes:
        low, high = shape.min(axis=0), shape.max(axis=0)
        # Also corners beyond the lattice: a disc at the border contains part of a shape.
        starts = [np.arange(-b, k - a) for a, b, k in zip(low, high, lattice, strict=True)]
        corner = np.stack([axis.ravel() for axis in np.meshgrid(*starts, indexing="ij")], axis=1)
        for step in shape:
            cells = corner + step
            inside = np.flatnonzero(((cells >= 0) & (cells < lattice)).all(axis=1))
            place = domain.lookup[tuple(cells[inside].T)]
            rows.append(count + inside[place >= 0])
            columns.append(place[place >= 0])
        count += len(corner)
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_array((np.ones(len(row), np.int64), (row, column)), shape=(count, domain.size))


def _distinct(sets: sp.csr_array, *, every: bool = False) -> sp.csr_array:
    sets.sort_indices()
    numbers = {
        sets.indices[a:b].tobytes(): k for k, (a, b) in enumerate(zip(sets.indptr, sets.indptr[1:], strict=False))
    }
    numbers.pop(b"", None)
    sets = sets[np.sort(list(numbers.values()))]
    if every or sets.shape[0] > _MAX_COMPARED:
        return sets
    # common counts the places of two sets: a set is part of a larger one if it shares all of its own.
    size = np.asarray(sets.sum(axis=1)).ravel()
    common = sp.coo_array(sets @ sets.T)
    part = (common.data == size[common.row]) & (size[common.row] < size[common.col])
    return sets[np.setdiff1d(np.arange(sets.shape[0]), common.row[part])]
