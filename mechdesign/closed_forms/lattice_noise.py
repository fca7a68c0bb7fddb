"""Noise on a lattice: tables of translation-invariant masses, with all mass outside the domain moved to its border."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Floats, Matrix
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem

Border = Literal["normalised", "clamped"]
Tables = Callable[[DesignProblem, float], Matrix]
# Noise is computed this far beyond the domain. Planar Laplace noise leaves (1 + 45) e^-45 = 1.3e-18 of a row beyond,
# noise on the line e^-45 = 3e-20. Both are below the rounding of a double, 1.1e-16.
TAIL_NATS = 45.0


def tables_for(border: Border, *, normalised: Tables, clamped: Tables) -> Tables:
    """The tables of one border: rows divided by their sums, or outside mass moved to the border."""
    tables = {"normalised": normalised, "clamped": clamped}
    if border not in tables:
        raise InputError("unknown border", field="border", value=border, remedy="use normalised or clamped")
    return tables[border]


def lattice_problem(problem: DesignProblem, name: str) -> tuple[tuple[int, ...], float]:
    """Shape and cell size of a problem on square cells of one or two axes whose reports are its secrets."""
    domain = problem.domain
    if (
        domain.shape is None
        or domain.cell is None
        or domain.dimension > 2
        or len(set(domain.cell)) > 1
        or problem.reports is not domain
    ):
        message = f"{name} needs a 1-D or 2-D grid of square cells whose reports are its secrets"
        raise UnsuitableError(message, field="domain", value=f"{domain.kind}, cell {domain.cell}")
    return domain.shape, domain.cell[0]


def displacements(shape: tuple[int, ...], cell: float, epsilon: float) -> int:
    """Number of displacements 0, 1, ... cells for which masses of noise at `epsilon` per unit are computed."""
    # From any cell the domain ends within `max(shape)` cells; the tail comes on top.
    count = max(shape) + math.ceil(TAIL_NATS / (epsilon * cell))
    require_memory(2 * count, 2 * count if len(shape) > 1 else 1, tables=2, noun=f"noise at {epsilon:.3g} per unit")
    return count


def clamp_to_border(offsets: Floats, domain: Domain, parts: int = 1) -> Matrix:
    """The table (n, n) of noise with masses `offsets` at displacement (|a|, |b|), outside mass at the nearest cell.

    On a rectangle whose sides `parts` divides, reports are squares of parts x parts cells: (n, n / parts^2).
    """
    # offsets (k,) or (k, k) at non-negative displacements in cells, k at least the longest side a of the domain. Cost:
    # O(a k^2 + n a k) time, O(n^2 + k^2) memory.
    assert domain.shape is not None and domain.index is not None
    kernel = offsets[:, None] if offsets.ndim == 1 else offsets
    shape = (domain.shape[0], 1) if len(domain.shape) == 1 else (domain.shape[0], domain.shape[1])
    cells = shape[0] * shape[1]
    require_memory(cells, cells // parts**2, tables=2, noun="a closed form")
    # Masses depend on |a| and |b|, so a reflection gives all signed displacements.
    full = np.pad(kernel, [(side - 1, 0) for side in kernel.shape], mode="reflect")
    # Clamping acts on each axis alone: rows first, once for all cells of a row.
    table = np.empty((*shape, cells // parts**2))
    for i in range(shape[0]):
        rows = _clamp(full, i, shape[0], parts)
        for j in range(shape[1]):
            table[i, j] = _clamp(rows.T, j, shape[1], parts).T.ravel()
    inside = (domain.lookup >= 0).ravel()
    table = table.reshape(cells, -1)[inside]
    if inside.all():
        return table
    assert parts == 1
    # A mask: cells outside it move to their nearest cell inside. That is post-processing again, and keeps privacy.
    assert domain.cell is not None and domain.origin is not None
    everywhere = Domain.grid(domain.shape, cell=domain.cell, unit=domain.unit, origin=domain.origin)
    _, target = cKDTree(domain.points).query(everywhere.points)
    merged = np.zeros((domain.size, domain.size))
    np.add.at(merged.T, target, table.T)
    return merged


def _clamp(masses: Floats, position: int, side: int, parts: int) -> Floats:
    """Masses (side / parts, ...) on an axis, from those at all signed displacements of a place at `position`."""
    # Displacement 0 is in the middle, so the axis begins `position` before it.
    first = masses.shape[0] // 2 - position
    clamped = masses[first : first + side].copy()
    clamped[0] += masses[:first].sum(axis=0)
    clamped[-1] += masses[first + side :].sum(axis=0)
    return clamped if parts == 1 else np.asarray(clamped.reshape(side // parts, parts, -1).sum(axis=1))
