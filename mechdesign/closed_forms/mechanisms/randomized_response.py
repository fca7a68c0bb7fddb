"""K-ary randomized response: the truth with probability e^eps / (K - 1 + e^eps), any other secret with 1 / (K - 1 +
e^eps).

eps-locally private (Kairouz et al. 2014; paper 001, section V); optimal for the discrete metric under 0/1 loss and a
uniform prior. eps in nats: the default is the smallest distance between two secrets, so that it is d-private.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism
from mechdesign.errors import UnsuitableError
from mechdesign.setting.problems.problem import DesignProblem

_LARGEST = 700.0  # nats: e^700 is a double


@asked
def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Randomized response at `epsilon` nats (default: the smallest edge of the metric) over the secrets.

    Raises: UnsuitableError where reports are not the secrets.
    """
    if problem.reports is not problem.domain:
        raise UnsuitableError(
            "randomized response reports secrets",
            field="reports",
            value="another domain",
            remedy="use reports = secrets",
        )
    level = float(problem.edges.length.min()) if epsilon is None else check_epsilon(epsilon, "epsilon")
    return closed_form_mechanism(
        problem, table(problem.domain.size, level), name="randomized_response", claimed_epsilon=level
    )


def table(size: int, epsilon: float) -> NDArray[np.float64]:
    """The (K, K) table for K = size; that of 700 nats where epsilon is larger."""
    odds = np.exp(min(epsilon, _LARGEST))
    other = 1.0 / (size - 1 + odds)
    probabilities = np.full((size, size), other)
    np.fill_diagonal(probabilities, other * odds)
    return probabilities
