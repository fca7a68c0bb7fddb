r"""Hadamard response: a report among K = 2^ceil(log2(n + 1)), with odds e^eps for the half that is the secret's own.

    P(y|u) = e^eps c  where H(u + 1, y) = 1, c elsewhere,    c = 2 / (K (1 + e^eps))

H the K x K Hadamard matrix of Sylvester, whose rows but the first have K/2 ones, of which any two share K/4:
eps-locally private, and exactly so for n >= 2.
Known: N times the mean squared error is at most 4 n (e^eps + 1)^2 / (e^eps - 1)^2, the bound of the paper.
Source: Acharya, Sun and Zhang, Hadamard response, AISTATS 2019, sections 3 and 4 (high privacy).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism, shortest_edge
from mechdesign.setting.problems.problem import DesignProblem


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Hadamard response at `epsilon` nats (default: the smallest edge of the metric)."""
    level = shortest_edge(problem, epsilon)
    return estimating_mechanism(
        problem, table(problem.domain.size, level), name="hadamard_response", claimed_epsilon=level
    )


def table(size: int, epsilon: float) -> NDArray[np.float64]:
    """P(y|u), (n, K)."""
    count = 2 ** size.bit_length()  # the least power of 2 that is n + 1 or more
    own = scipy.linalg.hadamard(count)[1 : size + 1] == 1
    return np.asarray(np.where(own, 1.0, math.exp(-epsilon)) * (2 / (count * (1 + math.exp(-epsilon)))))
