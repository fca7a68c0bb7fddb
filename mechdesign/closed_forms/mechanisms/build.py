"""From the formula of a closed form to a mechanism that claims what it really satisfies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.table.dataset import certified_scale, make_mechanism
from mechdesign.mechanism.table.repair import round_to_integers
from mechdesign.setting.problems.problem import DesignProblem

Border = Literal["normalised", "clamped"]
Tables = Callable[[DesignProblem, float], NDArray[np.float64]]


@asked
def closed_form_mechanism(
    problem: DesignProblem,
    table: NDArray[np.float64],
    *,
    name: str,
    claimed_epsilon: float | None,
    parameters: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """The mechanism of probabilities `table` (n, m), unrepaired, at its true level.

    The integers are certified for `scale` times the problem's metric, the smallest scale that holds;
    `effective_epsilon` is that scale before rounding, so 1.525 means: not private at the claim, private at 1.525
    of it.
    """
    mass = round_to_integers(table, problem.edges)
    scale = certified_scale(problem, mass)
    return make_mechanism(
        problem, mass, program=name, scale=scale, parameters=parameters, claimed_epsilon=claimed_epsilon
    )


def bordered(border: Border, *, normalised: Tables, clamped: Tables) -> Tables:
    """The tables of one border: rows divided by their sums, or noise outside the domain moved to its border.

    Raises: InputError for another border.
    """
    tables = {"normalised": normalised, "clamped": clamped}
    if border not in tables:
        raise InputError("unknown border", field="border", value=border, remedy="use normalised or clamped")
    return tables[border]


def level_or_default(problem: DesignProblem, epsilon: float | None) -> float:
    """`epsilon`, or by default the smallest level of the metric: then eps |u - u'| <= d(u, u') everywhere.

    Raises: UnsuitableError where the metric has no level and none is given.
    """
    if epsilon is not None:
        return check_epsilon(epsilon, "epsilon")
    level = problem.metric.smallest_level
    if level is None:
        raise UnsuitableError(
            "this metric has no level per unit of length",
            field="epsilon",
            value=problem.metric.kind,
            remedy="pass epsilon",
        )
    return level


def lattice_problem(problem: DesignProblem, name: str) -> tuple[tuple[int, ...], float]:
    """Shape and cell size of a problem on square cells of one or two axes with reports = secrets.

    Raises: UnsuitableError for other problems.
    """
    domain = problem.domain
    if (
        domain.shape is None
        or domain.cell is None
        or domain.dimension > 2
        or len(set(domain.cell)) > 1
        or problem.reports is not domain
    ):
        raise UnsuitableError(
            f"{name} needs a 1-D or 2-D grid of square cells whose reports are its secrets",
            field="domain",
            value=f"{domain.kind}, cell {domain.cell}",
            remedy="use a square grid, or another mechanism",
        )
    return domain.shape, domain.cell[0]
