"""M H^-1 M' for a banded factor of H, by products of dense matrices of the width of the band.

Let H = L L' with L lower triangular of width w, and X = L^-1 M', so that M H^-1 M' = X' X. The n rows are cut into
groups of at least w. X in a group I follows from the w rows K before it:

    X_I = L_II^-1 (M'_I - L_IK X_K).                                                                                (1)

X_I is 0 for sums without a member in the rows up to I. In the order of their first members these are the last ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import as_strided
from scipy.linalg import lapack

from mechdesign.base.arrays import Floats

_NARROWEST = 32  # rows of a group: products of smaller matrices cost more in calls than in numbers
_AT_ONCE = 4  # groups whose X is multiplied at once: products of taller matrices are faster


class _Group(NamedTuple):
    first: int
    stop: int
    right: Floats  # M'_I of the sums with a member up to here


class SchurPart:
    """The products of one matrix M (q, n), whose rows are in the order of their first members."""

    def __init__(self, sums: sp.csr_array, width: int) -> None:
        size, self.width = sums.shape[1], width
        first = np.minimum.reduceat(sums.indices, sums.indptr[:-1])
        assert (np.diff(first) >= 0).all()
        columns, step = sums.T.tocsr(), max(width, _NARROWEST)
        self.groups = []
        for start in range(0, size, step):
            stop = min(start + step, size)
            known = int(np.searchsorted(first, stop))
            self.groups.append(_Group(start, stop, columns[start:stop, :known].toarray()))
        # Entries of (1) outside the band are other numbers in memory.
        away = np.arange(step)[:, None] - np.arange(step)[None, :]
        self.own = (away >= 0) & (away <= width)
        self.before = away[:width, :width] <= 0

    def add(self, band: Floats, total: Floats) -> None:
        """Add M H^-1 M' to total (q, q); band (n, w + 1) has L(c + k, c) at (c, k)."""
        w, above = self.width, np.zeros((0, 0))
        for start in range(0, len(self.groups), _AT_ONCE):
            groups = self.groups[start : start + _AT_ONCE]
            known = groups[-1].right.shape[1]
            x = np.zeros((groups[-1].stop - groups[0].first, known))
            for first, stop, right in groups:
                solution = x[first - groups[0].first : stop - groups[0].first, : right.shape[1]]
                solution[:] = right
                rows = min(w, stop - first)
                if first:
                    left = np.where(self.before[:rows], _entries(band, first, first - w, (rows, w)), 0.0)
                    solution[:rows, : above.shape[1]] -= left @ above[len(above) - w :]
                own = self.own[: stop - first, : stop - first]
                triangle = np.where(own, _entries(band, first, first, own.shape), 0.0)
                solution[:] = lapack.dtrtri(triangle.T, lower=0)[0].T @ solution
                above = solution
            total[:known, :known] += x.T @ x


def _entries(band: Floats, row: int, column: int, shape: tuple[int, int]) -> Floats:
    # L(r, c) is at (w + 1) c + r - c: one step for each row, w for each column.
    width, unit = band.shape[1] - 1, band.itemsize
    return as_strided(band.ravel()[row + width * column :], shape, (unit, width * unit))
