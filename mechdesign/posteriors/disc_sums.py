"""The largest sum of a column in one disc of a radius: over listed sets, over cells by area, or by convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft2, next_fast_len, rfft2

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.validation import check_positive
from mechdesign.posteriors.discs import WIDER, Centres, cells_of_area, check_centres, disc_sets, largest_sums
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import Shape, shape_of, words_of

# Of columns (b, r) at places (b,): the largest sum in one disc (r,), or an upper bound.
LargestSums = Callable[[Matrix, Indices], Vector]
# Cells along a radius up to which sets anywhere are listed; measured: 23 shapes at 4.5, 58 at 6, in 6 s.
MAX_LISTED_RADIUS = 4.0
# Cells of a grid up to which they are; measured: 14,400 cells at 3 cells along a radius take 12 s.
MAX_LISTED_CELLS = 20_000
# Cells of a grid up to which discs anywhere are audited; measured: about a minute.
MAX_CELLS_ANYWHERE = 50_000
# (largest number of cells, centres along a cell): more centres give a closer bound, at the square of the work.
CENTRES_ALONG_CELL = ((4_000, 6), (10_000, 3), (MAX_CELLS_ANYWHERE, 2))
SUMS_AT_ONCE = 1 << 24  # doubles, 128 MB


@dataclass(frozen=True, kw_only=True)
class DiscKind:
    """The discs of an audit; exact is False if shares are upper bounds. Fields are keys of its document."""

    radius: float
    unit: str
    centres: Centres
    counted_at: str = "centres of cells"
    about: str = ""
    exact: bool = True
    shape: Shape = "disc"
    many: str = "cells"


# If the sets are too many to list, centres are those of a lattice finer than the cells, and discs are wider by half the
# diagonal of its cells. Every disc lies in one of these, and the sums, which are convolutions, are upper bounds.
def disc_sums(domain: Domain, radius: float, centres: Centres | None) -> tuple[DiscKind, LargestSums]:
    """The discs of a radius over a domain, and a function for the largest sums in one of them."""
    check_positive(radius, "radius")
    if centres is None:
        centres = "anywhere" if discs_anywhere(domain) else "places"
    check_centres(centres)
    words, about, exact = words_of(domain), "", True
    if centres == "area":
        largest: LargestSums = partial(_area_sums, cells=cells_of_area(domain, radius))
    elif centres == "anywhere" and domain.cell is not None and domain.dimension == 2 and _is_wide(domain, radius):
        largest, exact = _wider_sums(domain, radius), False
    else:
        largest = _listed_sums(disc_sets(domain, radius, centres))
    if centres == "places":
        about = f"about the centre of {words.a_one}" if domain.kind == "grid" else f"about one of the {words.many}"
    kind = DiscKind(
        radius=radius,
        unit=domain.unit,
        centres=centres,
        counted_at=words.centres if domain.kind == "grid" else words.many,
        about=about,
        exact=exact,
        shape=shape_of(domain),
        many=words.many,
    )
    return kind, largest


def discs_anywhere(domain: Domain) -> bool:
    """True if discs anywhere are searched by default: on a grid of one or two axes and at most 50,000 cells."""
    return domain.index is not None and domain.dimension <= 2 and domain.size <= MAX_CELLS_ANYWHERE


def _is_wide(domain: Domain, radius: float) -> bool:
    return radius > MAX_LISTED_RADIUS * min(domain.cell or (math.inf,)) or domain.size > MAX_LISTED_CELLS


def _area_sums(joint: Matrix, places: Indices, *, cells: int) -> Vector:
    return largest_sums(joint, cells)


def _listed_sums(sets: sp.csr_array) -> LargestSums:
    step = max(1, SUMS_AT_ONCE // sets.shape[0])

    def largest(joint: Matrix, places: Indices) -> Vector:
        members = sets[:, places]
        parts = [np.asarray((members @ joint[:, k : k + step]).max(axis=0)) for k in range(0, joint.shape[1], step)]
        return np.concatenate(parts)

    return largest


def _wider_sums(domain: Domain, radius: float) -> LargestSums:
    assert domain.cell is not None and domain.shape is not None and domain.index is not None
    index, side = domain.index, np.asarray(domain.cell)
    finer = next((centres for cells, centres in CENTRES_ALONG_CELL if domain.size <= cells), 1)
    # Wider by half the diagonal of a finer cell: any disc lies in the one about the nearest point of the finer lattice.
    wide = radius * WIDER + float(np.hypot(*side)) / 2 / finer
    # A kernel holds the steps from a centre to the cells of its disc. Centres are off the middle of their cell by less
    # than half a cell: hence one more step than in the radius.
    reach = np.minimum(np.ceil(wide / side), domain.shape).astype(np.int64) + 1
    steps = np.stack(np.meshgrid(*(np.arange(-k, k + 1) for k in reach), indexing="ij"), axis=-1) * side
    offsets = (np.arange(finer) + 0.5) / finer - 0.5
    kernels = [
        (np.hypot(*np.moveaxis(steps - np.array([a, b]) * side, -1, 0)) <= wide).astype(float)
        for a in offsets
        for b in offsets
    ]

    def largest(joint: Matrix, places: Indices) -> Vector:
        cells = index[places] - index[places].min(axis=0)
        window = cells.max(axis=0) + 1
        # Only the window of the places of a column: padded by the reach, so that nothing wraps around.
        size = [next_fast_len(int(n), real=True) for n in window + 2 * reach]
        transforms = [rfft2(kernel, size) for kernel in kernels]
        highest, step = np.empty(joint.shape[1]), max(1, SUMS_AT_ONCE // 8 // math.prod(size))
        for first in range(0, joint.shape[1], step):
            part = joint[:, first : first + step]
            values = np.zeros((part.shape[1], *window))
            values[:, cells[:, 0], cells[:, 1]] = part.T
            columns = rfft2(values, size)
            sums = [irfft2(columns * transform, size).max(axis=(1, 2)) for transform in transforms]
            highest[first : first + step] = np.max(sums, axis=0)
        return highest

    return largest
