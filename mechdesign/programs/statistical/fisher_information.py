r"""What the reports of a channel say about the distribution of secrets: information, rank, statistical criterion.

N people with secrets drawn from pi (n,) send one report each through the channel P (n, m); q = P^T pi (m,) is the
distribution of reports. Their counts are all that there is to estimate pi from.

    I = sum_y P_y P_y^T / q_y   (n, n)                  the Fisher information of one report about pi
    Cov = I^-1 - pi pi^T                                N times the covariance of the maximum-likelihood estimate
    criterion = tr(L^+ Cov) = tr(L^+ I^-1) - pi^T L^+ pi

Why. The log-likelihood of one report is log (P^T p)_y, with gradient P_y / q_y at p = pi and mean squared gradient I.
Estimates sum to 1, so their limiting covariance is that of the tangent space,
I^-1 - I^-1 1 1^T I^-1 / (1^T I^-1 1). Now I pi = sum_y P_y q_y / q_y = 1, because rows of P sum to 1: I^-1 1 = pi and
1^T I^-1 1 = 1, which leaves I^-1 - pi pi^T. With the channel that tells the truth this is diag(pi) - pi pi^T, the
multinomial covariance. The trace with L^+ is the expected squared norm of programs/statistical/dual_sobolev_norm.py.
Where pi has zeros this is the error of the estimate that may turn negative there.
Rank. A distribution of secrets shows in reports only up to the null space of P^T; with rank < n different ones give the
same reports, however many, the criterion is infinite and no estimate converges.
Source: background paper 001; van der Vaart, Asymptotic Statistics, section 5.5.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

READABLE = 1e-10  # relative information under which a direction counts as lost: it would take 10^10 reports to read it


def information(table: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """I (n, n) of a table (n, m) at truth (n,); reports of probability 0 are left out. Cost: O(n^2 m)."""
    reports = truth @ table
    seen = reports > 0
    scaled = table[:, seen] / np.sqrt(reports[seen])
    return np.asarray(scaled @ scaled.T)


def channel_rank(table: NDArray[np.float64]) -> int:
    """The number of directions that a table (n, m) transmits: n where distributions of secrets can be told apart.

    Counted are the eigenvalues above 1e-10 of the information at the uniform distribution, divided by n, of which the
    largest is 1: a share of what the secrets themselves would tell. Splitting a report, or merging proportional ones,
    changes nothing; reports of 1e-10 and less, such as the noise of a solver, count for nothing. Cost: O(n^2 m + n^3).
    """
    n = len(table)
    return int((np.linalg.eigvalsh(information(table, np.full(n, 1 / n)) / n) > READABLE).sum())


def criterion(table: NDArray[np.float64], truth: NDArray[np.float64], norm: NDArray[np.float64]) -> float:
    """tr(L^+ I^-1) - pi^T L^+ pi for a table (n, m) at truth (n,) in a norm L^+ (n, n), in the unit of the norm.

    N times the asymptotic mean squared norm of the error of the maximum-likelihood estimate from N reports; infinite
    where `channel_rank` is less than n, or where the information at the truth is singular. Cost: O(n^2 m + n^3).
    """
    if channel_rank(table) < len(table):
        return math.inf
    try:
        factor = scipy.linalg.cho_factor(information(table, truth))
    except np.linalg.LinAlgError:
        return math.inf
    return float(np.trace(scipy.linalg.cho_solve(factor, norm)) - truth @ norm @ truth)
