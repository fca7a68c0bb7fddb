"""Exact passes over the rows of all secrets, on this machine's cores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.dataset import ROWS
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, row_block, sum_block
from mechdesign.solvers.factored.blocks import threads, whole_pass
from mechdesign.solvers.factored.step import OVER_ROWS


def all_rows(judged: LossData, *, told: Callable[[int], object] = lambda done: None) -> RowBlock:
    """Sums and losses of all rows; told is called with the rows done. Cost: the windows around the secrets, and 4 ns
    for each of their columns. Memory: that of a few blocks.
    """
    with threads() as crew:
        found = whole_pass(
            crew, row_block, judged, len(judged.prior), ROWS, over_rows=OVER_ROWS, name="rows", told=told
        )
        return RowBlock(**found)


def row_sums(factors: Factors, *, told: Callable[[int], object] = lambda done: None) -> NDArray[np.uint64]:
    """High and low 64 bits of S(u) (n, 2); the same for a quarter of the cost."""
    with threads() as crew:
        return whole_pass(
            crew, sum_block, factors, len(factors.inner), ROWS, over_rows=("row_sum",), name="sums", told=told
        )["row_sum"]
