"""Pixel shares: the part of every pixel of a raster on Earth in each cell of a lattice on a plane.

The projected corners of a pixel are joined by straight lines: between corners 1 km apart its border bends by some 2 cm.
Neighbours share corners, so the parts of a pixel add up to it. Shapely cuts pixels that lie in several cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.optional import import_optional

_BLOCK = 1 << 18  # pixels that are projected at a time
_INSIDE = 1e-9  # of a cell: a pixel that reaches less far into the next cell lies in one alone
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CellSums:
    """amounts by cell (columns, rows), only negative pixels if there are any; known, the area with values, in cells."""

    amounts: Array
    known: Array


def cell_sums(
    edges: tuple[Array, Array],
    values: Array,
    shape: tuple[int, int],
    project: Callable[[Array], Array],
    *,
    counts: bool,
    area: float,
) -> CellSums:
    """Amounts of pixels (kx, ky), NaN for none, in the cells of a lattice. Cost: 10 us a pixel on a border of cells.

    values: per pixel if `counts`, else per unit of `area`; edges: borders of pixels, which `project` maps to cells.
    """
    size = shape[0] * shape[1]
    amounts, negative, known = np.zeros(size), np.zeros(size), np.zeros(size)
    step = max(_BLOCK // max(values.shape[1], 1), 1)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        corners = np.stack(np.meshgrid(edges[0][first : first + len(block) + 1], edges[1], indexing="ij"), axis=-1)
        on_plane = project(corners.reshape(-1, 2)).reshape(corners.shape)
        quads, flat = _quads(on_plane).reshape(-1, 4, 2), block.ravel()
        sizes = quad_areas(on_plane).ravel()
        held = np.nan_to_num(flat) * (1.0 if counts else sizes * area)
        pixels, cells, shares = _shares(quads, sizes, shape)
        table = sp.csr_array((shares, (cells, pixels)), shape=(size, len(quads)))
        amounts += table @ held
        negative += table @ np.minimum(held, 0)
        known += table @ (sizes * np.isfinite(flat))
    # Negative pixels would cancel with others unseen: a cell with one keeps its negative sum, which is refused later.
    amounts = np.where(negative < 0, negative, amounts)
    return CellSums(amounts=amounts.reshape(shape), known=known.reshape(shape))


def quad_areas(corners: Array) -> Array:
    """Areas (kx, ky) of the quadrangles between corners (kx + 1, ky + 1, 2)."""
    quads = _quads(corners)
    diagonal, other = quads[..., 2, :] - quads[..., 0, :], quads[..., 3, :] - quads[..., 1, :]
    return np.abs(diagonal[..., 0] * other[..., 1] - diagonal[..., 1] * other[..., 0]) / 2


def _quads(corners: Array) -> Array:
    return np.stack([corners[:-1, :-1], corners[1:, :-1], corners[1:, 1:], corners[:-1, 1:]], axis=2)


def _shares(
    quads: Array, sizes: Array, shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    low = np.floor(quads.min(axis=1) + _INSIDE).astype(np.int64)
    high = np.maximum(np.ceil(quads.max(axis=1) - _INSIDE).astype(np.int64) - 1, low)
    near = ((high >= 0) & (low < shape)).all(axis=1) & (sizes > 0)
    # Most pixels lie in one cell and need no geometry.
    alone = near & (low == high).all(axis=1)
    pixels, cells, shares = [np.flatnonzero(alone)], [low[alone]], [np.ones(int(alone.sum()))]
    cut = np.flatnonzero(near & ~alone)
    if len(cut):
        shapely = import_optional("shapely", "geo")
        spans = high[cut] - low[cut] + 1
        which = np.repeat(np.arange(len(cut)), spans.prod(axis=1))
        order = np.arange(len(which)) - np.repeat(
            np.cumsum(spans.prod(axis=1)) - spans.prod(axis=1), spans.prod(axis=1)
        )
        cell = low[cut][which] + np.column_stack([order // spans[which, 1], order % spans[which, 1]])
        polygons = shapely.polygons(quads[cut])
        boxes = shapely.box(cell[:, 0], cell[:, 1], cell[:, 0] + 1, cell[:, 1] + 1)
        parts = shapely.area(shapely.intersection(polygons[which], boxes))
        # Shares by the sum of the parts, not by the area of the pixel, so that they add up to 1.
        total = np.bincount(which, parts, len(cut))
        some = parts > _INSIDE * total[which]
        pixels.append(cut[which[some]])
        cells.append(cell[some])
        shares.append(parts[some] / np.bincount(which[some], parts[some], len(cut))[which[some]])
    cell = np.concatenate(cells)
    inside = ((cell >= 0) & (cell < shape)).all(axis=1)
    index = cell[inside, 0] * shape[1] + cell[inside, 1]
    return np.concatenate(pixels)[inside], index, np.concatenate(shares)[inside]
