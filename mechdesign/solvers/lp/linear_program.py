"""LinearProgram, and the rows of its cone constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Indices, Vector

LOOSE = 34.0  # slack of cone rows from which they are left out: e^34 exceeds a solver's range


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProgram:
    """minimise cost x subject to row_lower <= matrix x <= row_upper, x >= 0."""

    cost: Vector
    matrix: sp.csr_array
    row_lower: Vector
    row_upper: Vector
    linking: int  # the first rows: row sums of the mechanism, whose multipliers are the dual of the design


def cone_rows(slack: Vector, lower: Indices, upper: Indices, width: int) -> sp.csr_array:
    """The rows (c, width) of q[lower] - e^slack q[upper] <= 0, with e^{-slack/2} and e^{slack/2} on the two sides."""
    # e^{slack} up to e^34 on one side would leave the range that solvers scale well.
    rows = np.tile(np.arange(len(slack)), 2)
    entries = np.r_[np.exp(-slack / 2), -np.exp(slack / 2)]
    return sp.csr_array((entries, (rows, np.r_[lower, upper])), shape=(len(slack), width))
