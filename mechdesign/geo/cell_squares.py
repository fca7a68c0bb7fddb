"""Squares of the cells of an area: rows of a mechanism that are finer than its reports, and their priors."""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Mask, Vector
from mechdesign.problem.cell_amounts import amounts_in_cells
from mechdesign.problem.domain import Domain
from mechdesign.problem.raster import Raster


def cut_cells(domain: Domain, parts: int, *, middles: Mask | None = None) -> Domain:
    """The grid of squares, `parts` along each side of a cell; or only the middle ones of `middles` (shape)."""
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    mask = np.kron(domain.lookup >= 0, np.ones((parts, parts))) > 0
    if middles is not None:
        mask = np.kron(middles, np.zeros((parts, parts))) > 0
        mask[parts // 2 :: parts, parts // 2 :: parts] = middles
    return Domain.grid(
        tuple(parts * count for count in domain.shape),
        cell=domain.cell[0] / parts,
        unit=domain.unit,
        origin=domain.origin,
        plane=domain.plane,
        mask=None if mask.all() else mask,
    )


def cut_weights(weights: Vector, domain: Domain, parts: int) -> Vector:
    """Weights (n,) of cells, spread evenly over their squares in the order of `cut_cells`."""
    squares = np.kron(np.append(weights, 0.0)[domain.lookup], np.full((parts, parts), parts**-2.0))
    return np.asarray(squares[np.kron(domain.lookup >= 0, np.ones((parts, parts))) > 0])


def weights_by_density(weights: Vector, density: Raster, domain: Domain, parts: int) -> Vector:
    """Weights (n,) of cells, spread over their squares in proportion to a density, evenly where it is 0."""
    squares = cut_cells(domain, parts)
    assert squares.index is not None
    cell, amounts = domain.lookup[tuple((squares.index // parts).T)], amounts_in_cells(density, squares, extend=True)
    total = np.bincount(cell, amounts, domain.size)[cell]
    shares = np.divide(amounts, total, out=np.full(squares.size, parts**-2.0), where=total > 0)
    return np.asarray(weights[cell] * shares)


def on_rectangle(weights: Vector, domain: Domain, whole: Domain) -> Vector:
    """Weights of a domain as those (n,) of the rectangle about it, 0 elsewhere."""
    assert domain.index is not None
    spread = np.zeros(whole.size)
    spread[whole.lookup[tuple((domain.index - domain.index.min(axis=0)).T)]] = weights
    return spread
