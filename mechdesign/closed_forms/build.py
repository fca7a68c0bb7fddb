"""A mechanism from a table of probabilities, and the parts that closed forms share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.validation import check_epsilon, validate_call
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.figures import certified_scale
from mechdesign.mechanism.repair import round_to_integers
from mechdesign.problem.problem import DesignProblem


@validate_call
def closed_form_mechanism(
    problem: DesignProblem,
    table: Matrix,
    *,
    name: str,
    claimed_epsilon: float | None,
    parameters: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """The mechanism of a table of probabilities, without repair, certified at the smallest scale that holds.

    Parameters
    ----------
    problem, table : DesignProblem, (n, m) array
        The metric, prior and loss; probabilities P(y|u).
    name : str
        The name of the mechanism in files.
    claimed_epsilon, parameters : float or None, mapping
        The nominal parameter, in nats per unit; further parameters for the file.

    Returns
    -------
    xarray.Dataset
        The mechanism. With attribute `ratio` 1.525 it is private at 1.525 times the claim, and not at the claim.

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> table = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(md.baselines.from_table(problem, table, name="mine", claimed_epsilon=1.0).attrs["ratio"], 4)
    1.0986
    """
    # No repair: a table that breaks the claim keeps its probabilities, and its scale says by how much it breaks it.
    mass = round_to_integers(table, problem.edges)
    scale = certified_scale(problem, mass)
    extras = Extras(scale=scale, parameters=parameters or {}, claimed_epsilon=claimed_epsilon)
    return build_dataset(problem, mass, program=name, extras=extras)


def decaying_table(distances: Matrix, rate: float) -> Matrix:
    """e^{-rate d} for distances d (n, m), each row divided by its sum."""
    # The nearest report has weight 1, so that no row underflows to 0. The shift cancels in the division.
    weight = np.exp(-rate * (distances - distances.min(axis=1, keepdims=True)))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def level_or_default(problem: DesignProblem, epsilon: float | None) -> float:
    """`epsilon`, or by default the smallest level of the metric: then eps |u - u'| <= d(u, u') everywhere."""
    if epsilon is not None:
        return check_epsilon(epsilon, "epsilon")
    level = problem.metric.smallest_level
    if level is None:
        raise UnsuitableError("the metric has no level: pass one", field="epsilon", value=problem.metric.kind)
    return level
