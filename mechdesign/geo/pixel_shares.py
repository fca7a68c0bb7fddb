"""The amounts of the pixels of a raster on Earth in the cells of a lattice on a plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Floats, Indices, Matrix, Points, Vector
from mechdesign.base.optional import import_optional

_BLOCK = 1 << 18  # pixels projected at a time, so that large rasters do not fill the memory
_INSIDE = 1e-9  # of a cell: a pixel that reaches less far into the next cell does not count there


@dataclass(frozen=True, kw_only=True)
class CellSums:
    """Sums by cell (columns, rows): amounts, only the negative ones if there are any; known, the share with values."""

    amounts: Matrix
    known: Matrix


# The projected corners of a pixel are joined by straight lines. Between corners 1 km apart its true border bends by
# some 2 cm. Neighbours share corners, so that pixels neither overlap nor leave gaps. Shapely cuts pixels across cells.
def cell_sums(
    edges: tuple[Vector, Vector],
    values: Matrix,
    shape: tuple[int, int],
    project: Callable[[Points], Points],
    *,
    counts: bool,
    area: float,
) -> CellSums:
    """Sum the amounts of pixels (kx, ky), NaN without data, in the cells of a lattice."""
    # `values` are per pixel if `counts`, else per unit of area, and `area` is that of a cell. `project` maps the
    # borders `edges` to the plane in units of cells. Cost: 10 us for a pixel across cells.
    size = shape[0] * shape[1]
    amounts, negative, known = np.zeros(size), np.zeros(size), np.zeros(size)
    step = max(_BLOCK // max(values.shape[1], 1), 1)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        corners = np.stack(np.meshgrid(edges[0][first : first + len(block) + 1], edges[1], indexing="ij"), axis=-1)
        on_plane = project(corners.reshape(-1, 2)).reshape(corners.shape)
        quads, flat = _quads(on_plane).reshape(-1, 4, 2), block.ravel()
        sizes = quad_areas(on_plane).ravel()
        in_pixel = np.nan_to_num(flat) * (1.0 if counts else sizes * area)
        pixels, cells, shares = _shares(quads, sizes, shape)
        table = sp.csr_array((shares, (cells, pixels)), shape=(size, len(quads)))
        amounts += table @ in_pixel
        negative += table @ np.minimum(in_pixel, 0)
        known += table @ (sizes * np.isfinite(flat))
    # Negative pixels would cancel with others unseen: a cell with one keeps its negative sum, which is refused later.
    amounts = np.where(negative < 0, negative, amounts)
    return CellSums(amounts=amounts.reshape(shape), known=known.reshape(shape))


def quad_areas(corners: Floats) -> Matrix:
    """Areas (kx, ky) of the quadrangles between corners (kx + 1, ky + 1, 2)."""
    quads = _quads(corners)
    # Half the cross product of the diagonals.
    diagonal, other = quads[..., 2, :] - quads[..., 0, :], quads[..., 3, :] - quads[..., 1, :]
    return np.abs(diagonal[..., 0] * other[..., 1] - diagonal[..., 1] * other[..., 0]) / 2


def _quads(corners: Floats) -> Floats:
    return np.stack([corners[:-1, :-1], corners[1:, :-1], corners[1:, 1:], corners[:-1, 1:]], axis=2)


def _shares(quads: Floats, sizes: Vector, shape: tuple[int, int]) -> tuple[Indices, Indices, Vector]:
    """Numbers of pixels and of cells, and the share of the pixel in the cell."""
    low = np.floor(quads.min(axis=1) + _INSIDE).astype(np.int64)
    high = np.maximum(np.ceil(quads.max(axis=1) - _INSIDE).astype(np.int64) - 1, low)
    meets = ((high >= 0) & (low < shape)).all(axis=1) & (sizes > 0)
    # Most pixels lie in one cell and need no geometry.
    is_whole = meets & (low == high).all(axis=1)
    pixels, cells, shares = [np.flatnonzero(is_whole)], [low[is_whole]], [np.ones(int(is_whole.sum()))]
    cut = np.flatnonzero(meets & ~is_whole)
    if len(cut):
        shapely = import_optional("shapely", "geo")
        spans = high[cut] - low[cut] + 1
        # A line for each cell of the box about a cut pixel: `owner` is the pixel, `order` counts the cells of its box.
        owner = np.repeat(np.arange(len(cut)), spans.prod(axis=1))
        order = np.arange(len(owner)) - np.repeat(
            np.cumsum(spans.prod(axis=1)) - spans.prod(axis=1), spans.prod(axis=1)
        )
        cell = low[cut][owner] + np.column_stack([order // spans[owner, 1], order % spans[owner, 1]])
        polygons = shapely.polygons(quads[cut])
        boxes = shapely.box(cell[:, 0], cell[:, 1], cell[:, 0] + 1, cell[:, 1] + 1)
        parts = shapely.area(shapely.intersection(polygons[owner], boxes))
        # Shares by the sum of the parts, not by the area of the pixel, so that they add up to 1.
        total = np.bincount(owner, parts, len(cut))
        counted = parts > _INSIDE * total[owner]
        pixels.append(cut[owner[counted]])
        cells.append(cell[counted])
        shares.append(parts[counted] / np.bincount(owner[counted], parts[counted], len(cut))[owner[counted]])
    # Cells beyond the lattice had to be cut too: their parts belong to the total of a pixel.
    cell = np.concatenate(cells)
    inside = ((cell >= 0) & (cell < shape)).all(axis=1)
    index = cell[inside, 0] * shape[1] + cell[inside, 1]
    return np.concatenate(pixels)[inside], index, np.concatenate(shares)[inside]
