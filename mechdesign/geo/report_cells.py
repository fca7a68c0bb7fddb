"""The cells that reports name, and the rows of a mechanism in each.

Rows may be k x k times finer than reports. A cell then has k rows along each side and its report in the middle, which
for an even k is a corner of rows. Rows may also go beyond the reports, over the rectangle about an area.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Vector
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.problem.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCells:
    """Cells that have a report or prior probability.

    Attributes
    ----------
    domain : Domain
        All cells, also those that are left out.
    kept : (c,) int array
        The cells in the domain.
    rows : (n,) int array
        The place in `kept` of the cell of each row, -1 for one that is left out.
    report : (c,) int array or None
        The report of each cell, -1 for none; None if reports are not cells.
    parts : int
        Rows along each side of a cell.
    """

    domain: Domain
    kept: Indices
    rows: Indices
    report: Indices | None
    parts: int = 1

    @classmethod
    def of(cls, stored: MechanismFile) -> ReportCells:
        """The cells of a mechanism; its rows, where its reports are not cells."""
        domain, places = stored.domain, stored.report_cells
        every = np.arange(domain.size)
        if places is None:
            return cls(domain=domain, kept=every, rows=every, report=None)
        cells, owner, parts = domain, every, stored.row_parts
        if parts > 1:
            assert domain.index is not None
            cells = _coarser(domain, parts)
            owner = cells.lookup[tuple((domain.index // parts).T)]
        if len(np.unique(owner[places])) < len(places):
            return cls(domain=domain, kept=every, rows=every, report=None)
        report = np.full(cells.size, -1, np.int64)
        report[owner[places]] = np.arange(len(places))
        prior = np.bincount(owner, stored.mechanism["prior"].values, cells.size)
        kept = np.flatnonzero((report >= 0) | (prior > 0))
        place = np.full(cells.size, -1, np.int64)
        place[kept] = np.arange(len(kept))
        return cls(domain=cells, kept=kept, rows=place[owner], report=report[kept], parts=parts)

    def sum_of(self, values: Vector) -> Vector:
        """The sum (c,) over the rows of each cell of values (n,)."""
        shown = self.rows >= 0
        return np.bincount(self.rows[shown], values[shown], len(self.kept)).astype(np.float64)

    def largest_of(self, values: Vector) -> Vector:
        """The largest (c,) of the values (n,) of the rows of each cell."""
        largest, shown = np.full(len(self.kept), -np.inf), self.rows >= 0
        np.maximum.at(largest, self.rows[shown], values[shown])
        return largest

    def mean_of(self, values: Vector, weights: Vector) -> Vector:
        """The weighted mean (c,) over the rows of each cell of values (n,); of equal weights where all are 0."""
        weighed = np.where(self.sum_of(weights)[self.rows] > 0, weights, 1.0)
        return self.sum_of(weighed * values) / self.sum_of(weighed)


def _coarser(domain: Domain, parts: int) -> Domain:
    """The grid of cells of `parts` x `parts` cells of a grid."""
    assert domain.shape is not None and domain.cell is not None and domain.index is not None
    assert domain.origin is not None
    shape = tuple(-(-count // parts) for count in domain.shape)
    mask = np.zeros(shape, bool)
    mask[tuple((domain.index // parts).T)] = True
    cell = tuple(parts * side for side in domain.cell)
    return Domain.grid(shape, cell, unit=domain.unit, origin=domain.origin, mask=mask, plane=domain.plane)
