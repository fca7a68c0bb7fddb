"""K-ary randomized response: the true secret with probability e^eps / (K - 1 + e^eps), others with equal shares.

It is eps-locally private, and optimal for the discrete metric under 0/1 loss and a uniform prior. eps is in nats.
Source: Kairouz, Oh & Viswanath 2014; Alvim et al. 2018, section V.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.validation import check_epsilon, validate_call
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.errors import UnsuitableError
from mechdesign.problem.problem import DesignProblem

_MAX_NATS = 700.0  # e^700 is a double; integers of sum 2^62 distinguish no odds above e^43


@validate_call
def randomized_response_mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Randomized response over the secrets: the true one with odds e^epsilon against any other.

    Parameters
    ----------
    problem : DesignProblem
        A problem whose reports are its secrets.
    epsilon : float
        Nats; by default the smallest edge of the metric.

    Returns
    -------
    xarray.Dataset, certified at the smallest scale that holds

    Examples
    --------
    >>> mechanism = md.baselines.randomized_response(md.load_problem("discrete", secrets=3), epsilon=1.0)
    >>> round(float(md.probabilities(mechanism)[0, 0]), 6)
    0.576117
    """
    if problem.reports is not problem.domain:
        raise UnsuitableError("randomized response needs reports = secrets", field="reports")
    level = shortest_edge(problem, epsilon)
    return closed_form_mechanism(
        problem,
        randomized_response_table(problem.domain.size, level),
        name="randomized_response",
        claimed_epsilon=level,
    )


def randomized_response_table(size: int, epsilon: float) -> Matrix:
    """The (K, K) table for K = size; that of 700 nats for a larger epsilon."""
    odds = np.exp(min(epsilon, _MAX_NATS))
    other = 1.0 / (size - 1 + odds)
    probabilities = np.full((size, size), other)
    np.fill_diagonal(probabilities, other * odds)
    return probabilities


def shortest_edge(problem: DesignProblem, epsilon: float | None) -> float:
    """`epsilon` in nats, or by default the smallest distance between two secrets: then the table is d-private."""
    return float(problem.edges.length.min()) if epsilon is None else check_epsilon(epsilon, "epsilon")
