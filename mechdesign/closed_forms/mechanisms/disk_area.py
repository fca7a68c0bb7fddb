r"""The disk area mechanism on square cells: a report whose centre is within b cells of the truth has odds e^eps.

    P(y|u) = e^eps / C  where |y - u| <= b cells, 1 / C elsewhere,    C = D e^eps + m - D

over the m cells within b of a cell of the domain, D of them in each disk, which are all whole: eps-locally private, and
exactly so. b = floor(L beta), L the cells along the longer side, beta = (2 x + sqrt(4 x^2 + pi x)) / pi the radius that
maximises a bound of the mutual information on the unit square, x = (1 - (1 - eps) e^eps) / (e^eps (e^eps - 1 - eps)),
twice the width of the square wave mechanism.
A cell belongs to a disk with its centre: the paper's variant without shrinking of cells that the circle cuts.
Source: Du et al., Numerical estimation of spatial distributions under differential privacy, arXiv 2412.06541; beta and
the rounding down as in its authors' public code.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism, lattice_problem, shortest_edge
from mechdesign.closed_forms.mechanisms.square_wave import width
from mechdesign.errors import UnsuitableError
from mechdesign.setting.problems.problem import DesignProblem


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """The disk area mechanism at `epsilon` nats (default: the smallest edge of the metric).

    Raises: UnsuitableError off grids of two axes with square cells.
    """
    shape, _ = lattice_problem(problem, "the disk area mechanism")
    if len(shape) != 2:
        raise UnsuitableError(
            "the disk area mechanism needs a grid of two axes",
            field="domain",
            value=f"{len(shape)} axis",
            remedy="use square_wave on a line",
        )
    level = shortest_edge(problem, epsilon)
    reach = math.floor(max(shape) * radius(level))
    assert problem.domain.index is not None
    return estimating_mechanism(
        problem,
        table(problem.domain.index, level, reach),
        name="disk_area",
        claimed_epsilon=level,
        parameters={"reach": reach},
    )


def radius(epsilon: float) -> float:
    """beta, in sides of the square."""
    x = 2 * width(epsilon)
    return (2 * x + math.sqrt(4 * x**2 + math.pi * x)) / math.pi


def table(cells: NDArray[np.int64], epsilon: float, reach: int) -> NDArray[np.float64]:
    """P(y|u) (n, m) for cells (n, 2) of a lattice and b = reach."""
    square = itertools.product(range(-reach, reach + 1), repeat=2)
    disk = np.array([step for step in square if step[0] ** 2 + step[1] ** 2 <= reach**2])
    reports = np.unique((cells[:, None, :] + disk).reshape(-1, 2), axis=0)
    near = ((cells[:, None, :] - reports) ** 2).sum(axis=2) <= reach**2
    weight = np.where(near, 1.0, math.exp(-epsilon))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
