"""The exact row sums of all secrets, tile by tile, on this machine's cores."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.dataset import ROWS
from mechdesign.mechanism.factored.row_sums import sum_block
from mechdesign.solvers.factored.blocks import in_order, threads
from mechdesign.solvers.factored.work_folder import Folder


def exact_sums(
    factors: Factors, *, told: Callable[[int], object] = lambda done: None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """S(u) in whole numbers, a block of secrets after the other: their numbers (b,), and high and low 64 bits (b, 2).

    Every secret comes once, in the order of tiles (`Factors.order`); told is called with how many came so far.
    Cost: the windows around the secrets, and 1 ns for each of their columns. Memory: that of a few blocks.
    Raises: SolverError where a block fails.
    """
    with threads() as crew:
        blocks = in_order(crew, sum_block, factors, len(factors.inner), ROWS, folder=Folder(), name="sums")
        with contextlib.closing(blocks):
            for _, stop, found in blocks:
                yield found["secret"], found["row_sum"]
                told(stop)
