r"""The square wave mechanism on a line of cells: a report within b cells of the truth has odds e^eps.

    P(y|u) = e^eps / C  where |y - u| <= b, 1 / C elsewhere, y = -b, ..., n - 1 + b,    C = (2 b + 1) e^eps + n - 1

eps-locally private, and exactly so. b = floor(n beta), beta = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)) the
width that maximises a bound of the mutual information on the unit interval: it falls from 1/2 at eps = 0 to 0.
Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric and Li, Estimating numerical distributions under local differential
privacy, SIGMOD 2020, section 5 (cells first, then noise).
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism, shortest_edge
from mechdesign.errors import UnsuitableError
from mechdesign.setting.problems.problem import DesignProblem

_SMALL = 1e-3  # nats; below this the closed form loses digits, and a series has them


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """The square wave mechanism at `epsilon` nats (default: the smallest edge of the metric).

    Raises: UnsuitableError off whole grids of one axis.
    """
    domain = problem.domain
    if domain.shape != (domain.size,):
        raise UnsuitableError(
            "the square wave mechanism needs a grid of one axis without a mask",
            field="domain",
            value=f"{domain.kind} of {domain.dimension} axes",
            remedy="use a line of cells, or disk_area on two axes",
        )
    level = shortest_edge(problem, epsilon)
    reach = math.floor(domain.size * width(level))
    return estimating_mechanism(
        problem,
        table(domain.size, level, reach),
        name="square_wave",
        claimed_epsilon=level,
        parameters={"reach": reach},
    )


def width(epsilon: float) -> float:
    """beta, in units of the interval."""
    if epsilon < _SMALL:
        return 0.5 - epsilon / 3 + epsilon**2 / 9
    return (epsilon - 1 + math.exp(-epsilon)) / (2 * (math.exp(min(epsilon, 700.0)) - 1 - epsilon))


def table(size: int, epsilon: float, reach: int) -> NDArray[np.float64]:
    """P(y|u), (n, n + 2 b) for b = reach."""
    near = abs(np.arange(-reach, size + reach) - np.arange(size)[:, None]) <= reach
    weight = np.where(near, 1.0, math.exp(-epsilon))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
