"""Amounts of a raster in the cells of a grid, and the prior in proportion to them.

    amount(c)  =  sum_k a_k |c ∩ k| / |k|         of the amounts a_k of pixels k, spread evenly over them           (1)

Cells that tile the raster hold its total, to rounding. Pixels larger than a cell do not say where in them people live.
There a cell takes the value of the raster at its centre.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Floats, Vector
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.priors import proportional
from mechdesign.problem.raster import Raster
from mechdesign.problem.rasters import read_raster

if TYPE_CHECKING:
    import xarray as xr

_EDGE_TOLERANCE = (
    1e-9  # of a cell: edges that agree so far are one, so that no sliver of a full pixel lies in an empty cell
)
_SIZE_TOLERANCE = 1e-6  # relative: pixels of the size of a cell are added up too


@validate_call
def from_density(density: Raster | xr.DataArray, domain: Domain, *, extend: bool = False) -> Vector:
    """Prior from a raster of a density or of counts, by cell.

    If pixels are larger than cells, or places are not cells, a place takes the value there.
    Source: Koufogiannis & Pappas 2016, section IV.

    Parameters
    ----------
    density : Raster or xarray.DataArray
        Nodes in another unit of length are converted. An array is read as by `md.read.raster`.
    domain, extend : Domain, bool
        The n places; True if the density is constant beyond its raster, else places there are refused.

    Returns
    -------
    (n,) array, of sum 1

    Examples
    --------
    >>> fine = md.Raster(x=[0.25, 0.75, 1.25, 1.75], y=[0.0], values=[[1.0], [0.0], [0.0], [3.0]])
    >>> md.priors.from_density(fine, md.Domain.grid((2, 1), 1.0), extend=True)
    array([0.25, 0.75])
    """
    raster = density if isinstance(density, Raster) else read_raster(density, unit=domain.unit)
    return proportional(amounts_in_cells(raster, domain, extend=extend), field="density")


def amounts_in_cells(raster: Raster, domain: Domain, *, extend: bool = False) -> Vector:
    """Amounts (n,) in the places of a domain; where these are not cells, amounts per area."""
    converted = raster.in_unit(domain.unit)
    if not extend:
        converted.require_cover(domain.points)
    edges = [pixel_edges(nodes) if len(nodes) > 1 else None for nodes in converted.axes]
    density = converted.values if converted.amounts is None else _per_area(converted.amounts, edges)
    # Pixels larger than cells: the value at the centre, times the area of a cell if the raster has amounts.
    if not _sums_pixels(edges, domain):
        flat = Raster(x=converted.x, y=converted.y, z=converted.z, values=density, unit=converted.unit)
        return flat.at(domain.points) * (
            1.0 if domain.cell is None or converted.amounts is None else math.prod(domain.cell)
        )
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    assert domain.index is not None
    # (1) axis by axis: |c ∩ k| / |k| is a product over the axes, so that each axis is one sparse matrix.
    for axis, (low, side, count) in enumerate(zip(domain.origin, domain.cell, domain.shape, strict=True)):
        pixels = edges[axis] if axis < len(edges) else None
        if pixels is not None:
            cells = np.asarray(low + side * np.arange(count + 1), np.float64)
            shares = _shared_lengths(cells, _snap(pixels, cells), extend=extend)
            density = _sum_along_axis(shares, density, axis)
        elif axis < density.ndim:
            density = np.repeat(density, count, axis=axis)
        # An axis that the raster does not have: constant along it.
        else:
            density = np.repeat(density[..., None], count, axis=axis)
    density = density.reshape(density.shape[: len(domain.shape)])
    return np.asarray(density[tuple(domain.index.T)])


def is_finer(pixel: float, cell: float) -> bool:
    """True if pixels of this area are added up in cells of this area."""
    return pixel <= cell * (1 + _SIZE_TOLERANCE)


def pixel_edges(nodes: Vector) -> Vector:
    """The k + 1 borders of pixels about k > 1 nodes, half-way between these."""
    inner = (nodes[1:] + nodes[:-1]) / 2
    return np.concatenate([[2 * nodes[0] - inner[0]], inner, [2 * nodes[-1] - inner[-1]]])


def _sums_pixels(edges: list[Vector | None], domain: Domain) -> bool:
    if domain.cell is None or any(side is not None for side in edges[domain.dimension :]):
        return False
    pairs = [(side, cell) for side, cell in zip(edges, domain.cell, strict=False) if side is not None]
    pixel = math.prod(float(np.diff(side).mean()) for side, _ in pairs)
    return bool(pairs) and is_finer(pixel, math.prod(cell for _, cell in pairs))


def _per_area(amounts: Floats, edges: list[Vector | None]) -> Floats:
    for axis, side in enumerate(edges):
        if side is not None:
            amounts = amounts / np.diff(side).reshape([-1 if k == axis else 1 for k in range(amounts.ndim)])
    return amounts


def _snap(edges: Vector, cells: Vector) -> Vector:
    nearest = np.clip(np.rint((edges - cells[0]) / (cells[1] - cells[0])), 0, len(cells) - 1).astype(np.int64)
    return np.where(np.abs(edges - cells[nearest]) <= _EDGE_TOLERANCE * (cells[1] - cells[0]), cells[nearest], edges)


def _shared_lengths(cells: Vector, edges: Vector, *, extend: bool) -> sp.csr_array:
    """Lengths (cells, pixels) that both have in common along an axis; with extend, the outermost pixels have no end."""
    # With extend the outermost pixels reach to the border of the grid.
    if extend:
        edges = np.concatenate([[min(edges[0], cells[0])], edges[1:-1], [max(edges[-1], cells[-1])]])
    # Between neighbouring cuts lies one pixel and one cell.
    cuts = np.unique(np.concatenate([cells, edges]))
    cuts = cuts[(cuts >= max(cells[0], edges[0])) & (cuts <= min(cells[-1], edges[-1]))]
    middle = (cuts[1:] + cuts[:-1]) / 2
    places = [np.clip(np.searchsorted(side, middle, side="right") - 1, 0, len(side) - 2) for side in (cells, edges)]
    return sp.csr_array((np.diff(cuts), (places[0], places[1])), shape=(len(cells) - 1, len(edges) - 1))


def _sum_along_axis(shares: sp.csr_array, density: Floats, axis: int) -> Floats:
    first = np.moveaxis(density, axis, 0)
    flat = first.reshape(len(first), -1)
    if (flat < 0).any() and (shares @ np.minimum(flat, 0)).any():
        raise InputError(
            "must not be negative in the pixels of a prior",
            field="density",
            value=f"{flat.min():.6g}",
            remedy="declare it as NODATA, as gdal_translate -a_nodata does, or replace it by 0",
        )
    return np.moveaxis((shares @ flat).reshape(-1, *first.shape[1:]), 0, axis)
