r"""Optimised unary encoding: one bit for each secret, the true one 1 with probability 1/2, the others with q.

    P(b|u) = 1/2 prod over c != u of q^{b_c} (1 - q)^{1 - b_c},    q = 1 / (e^eps + 1)

eps-locally private, and exactly so: the bits of u and v change odds by (1 - q) / q = e^eps.
Known: the variance of the estimated frequency of a rare secret is 4 e^eps / (e^eps - 1)^2 / N, as the paper prints
it, the least of unary encodings.
Source: Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation, USENIX Security
2017, section 4.2 (their table 2).
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism, shortest_edge
from mechdesign.closed_forms.mechanisms.inclusions import Inclusions
from mechdesign.closed_forms.mechanisms.subset_selection import check_count
from mechdesign.setting.problems.problem import DesignProblem


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Optimised unary encoding at `epsilon` nats (default: the smallest edge of the metric), a report for each string
    of n bits.

    Raises: UnsuitableError for more than 12 secrets, of which `inclusions` says what there is to say.
    """
    level = shortest_edge(problem, epsilon)
    return estimating_mechanism(
        problem, table(problem.domain.size, level), name="unary_encoding", claimed_epsilon=level
    )


def table(size: int, epsilon: float) -> NDArray[np.float64]:
    """P(b|u), (n, 2^n), strings as binary numbers, secret 0 the last digit. Raises: UnsuitableError beyond 12."""
    check_count(2**size, "cells", "use at most 12 cells, or the inclusions")
    bits = (np.arange(2**size)[None, :] >> np.arange(size)[:, None]) & 1
    wrong = 1 / (math.exp(min(epsilon, 700.0)) + 1)
    others = np.where(bits == 1, wrong, 1 - wrong)
    logs = np.log(others)
    return np.asarray(np.exp(logs.sum(axis=0) - logs) / 2)


def inclusions(problem: DesignProblem, epsilon: float | None = None) -> Inclusions:
    """The inclusions at `epsilon` nats (default: the smallest edge): the bits that are 1. Cost: O(n^2)."""
    level, n, prior = shortest_edge(problem, epsilon), problem.domain.size, problem.prior_array
    wrong = 1 / (math.exp(min(level, 700.0)) + 1)
    hit = np.full((n, n), wrong) + (0.5 - wrong) * np.eye(n)
    pairs = wrong**2 + (0.5 * wrong - wrong**2) * (prior[:, None] + prior[None, :])
    np.fill_diagonal(pairs, hit.T @ prior)
    return Inclusions(hit=hit, pairs=pairs, scale=level / float(problem.edges.length.min()))
