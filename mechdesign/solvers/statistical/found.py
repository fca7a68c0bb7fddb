"""What the two ways to design for statistics have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.statistical.statistical_design import StatisticalDesign
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.statistical.criterion_bound import CriterionBound

LIGHT = 1e-6  # share of all reports under which a report is dropped from the design
_RIDGE = 1e-4  # of the trace of the norm: what the weights pay for directions that the error does not see


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """table (n, m), private up to rounding, rows of sum 1 up to the precision of the weights; stopped, why it ended;
    rounds, how many there were; gain, the largest gain of a ray that the last one found, relative to the objective;
    bound, None where there is none.
    """

    table: NDArray[np.float64]
    stopped: str
    rounds: int
    gain: float = math.inf
    bound: CriterionBound | None = None


def design_norm(program: StatisticalDesign) -> NDArray[np.float64]:
    """The norm W (n, n) that weights are chosen by: that of the program, for areas with a little of the squared error.

    The shares of few areas do not need all directions, and without them the information would end singular, and the
    distribution unidentified.
    """
    norm = program.norm
    if program.error != "areas":
        return norm
    n = len(norm)
    return np.asarray(norm + _RIDGE * np.trace(norm) / n * (np.eye(n) - 1 / n))


def ray_progress(
    number: int, value: float, bound: float, gap: float, size: tuple[int, ...], seconds: float
) -> Progress:
    """Where a search for rays stands: the objective before repair, and size (n, k) of the rays."""
    return Progress(
        method="rays",
        round=number,
        iteration=None,
        loss=value,
        lower_bound=bound,
        gap=gap,
        variables=size[1],
        constraints=size[0],
        seconds=seconds,
    )
