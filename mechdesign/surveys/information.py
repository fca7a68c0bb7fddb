r"""Fisher information of reports about the distribution of secrets, its rank, and the error of estimates.

N people with secrets drawn from pi (n,) send one report each through P (n, m); q = P^T pi (m,).

    (1)  I = sum_y P_y P_y^T / q_y   (n, n)             the Fisher information of one report about pi
    (2)  Cov = I^-1 - pi pi^T                           N times the covariance of the maximum-likelihood estimate
    (3)  criterion = tr(L^+ Cov) = tr(L^+ I^-1) - pi^T L^+ pi

The trace with L^+ is the expected squared norm of surveys/error_norm.py. Where pi has zeros this is the error of the
estimate that may be negative there. With rank < n distributions give the same reports: the criterion is infinite.
Source: Alvim et al. 2018; van der Vaart, Asymptotic Statistics, section 5.5.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.validation import as_numbers, validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.schema import stored_edges
from mechdesign.problem.priors import check_prior
from mechdesign.problem.problem import DesignProblem
from mechdesign.surveys.error_norm import LARGEST, dual_sobolev_norm

READABLE = 1e-10  # relative information under which a direction counts as lost: it would take 10^10 reports to read it


def information(table: Matrix, truth: Vector) -> Matrix:
    """I (n, n) of (1) for a table (n, m) at truth (n,), without reports of probability 0. Cost: O(n^2 m)."""
    reports = truth @ table
    possible = reports > 0
    # The root on both sides keeps the product symmetric to the last bit.
    scaled = table[:, possible] / np.sqrt(reports[possible])
    return np.asarray(scaled @ scaled.T)


@validate_call
def channel_rank(mechanism: xr.Dataset | ArrayLike) -> int:
    """The rank of a mechanism as a channel: the number of directions, from 1 to n, that reports transmit.

    It counts the eigenvalues above 1e-10 of the information at the uniform distribution, divided by n. With rank < n no
    number of reports distinguishes some distributions of secrets.

    Parameters
    ----------
    mechanism : Dataset or (n, m) array
        A mechanism or a table.

    Returns
    -------
    int, in O(n^2 m + n^3) time

    Examples
    --------
    >>> md.surveys.channel_rank(np.full((3, 3), 1 / 3)), md.surveys.channel_rank(np.eye(3))
    (1, 3)
    """
    table = _table(mechanism)
    n = len(table)
    return int((np.linalg.eigvalsh(information(table, np.full(n, 1 / n)) / n) > READABLE).sum())


def criterion(table: Matrix, truth: Vector, norm: Matrix) -> float:
    """(3) for a table (n, m) at truth (n,) in a norm (n, n); infinite if singular."""
    # Rounding may let a singular matrix factor, so the rank is checked first.
    if channel_rank(table) < len(table):
        return math.inf
    try:
        factor = scipy.linalg.cho_factor(information(table, truth))
    except np.linalg.LinAlgError:
        return math.inf
    # Estimates sum to 1, so their limiting covariance is I^-1 - I^-1 1 1^T I^-1 / (1^T I^-1 1). Rows of P sum to 1, so
    # I pi = sum_y P_y q_y / q_y = 1, I^-1 1 = pi and 1^T I^-1 1 = 1: this is (2), and its trace is (3).
    return float(np.trace(scipy.linalg.cho_solve(factor, norm)) - truth @ norm @ truth)


@validate_call
def asymptotic_mse(
    mechanism: xr.Dataset | ArrayLike, problem: DesignProblem | None = None, *, truth: ArrayLike | None = None
) -> float:
    """N times the asymptotic mean squared H^-1 error of the maximum-likelihood estimate from N reports.

    Parameters
    ----------
    mechanism : Dataset or (n, m) array
        A mechanism, or a table, which needs the problem for its domain.
    problem, truth : DesignProblem, (n,) array
        Of a table; the distribution that secrets are drawn from, by default the prior.

    Returns
    -------
    float, in squared units of the domain (for nodes: of edges), infinite where the channel is singular

    Examples
    --------
    >>> md.surveys.asymptotic_mse(md.baselines.constant(md.load_problem("line", cells=3)))
    inf
    """
    table = _table(mechanism)
    if isinstance(mechanism, xr.Dataset):
        domain = stored_domain(mechanism)
        edges, prior = stored_edges(mechanism), mechanism["prior"].values
    elif problem is None:
        raise InputError("is required: a table does not contain the places of its secrets", field="problem")
    else:
        domain, edges, prior = problem.domain, problem.edges, problem.prior_array
    if len(table) != domain.size:
        raise InputError(f"must have a row for each of {domain.size} secrets", field="table", value=len(table))
    distribution = check_prior(prior if truth is None else truth, domain)
    return criterion(table, distribution, dual_sobolev_norm(domain, edges))


def _table(mechanism: xr.Dataset | ArrayLike) -> Matrix:
    if isinstance(mechanism, xr.Dataset):
        return drawn_rows(mechanism)
    table = as_numbers(mechanism, "mechanism")
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InputError("must be an (n, m) array of probabilities", field="table", value=table.shape)
    return table


def rank_and_mse(mechanism: xr.Dataset) -> tuple[int | None, float | None]:
    """`channel_rank` and `asymptotic_mse`; None beyond 1,600 secrets, and for an infinite error."""
    if mechanism.sizes["secret"] > LARGEST:
        return None, None
    error = asymptotic_mse(mechanism)
    return channel_rank(mechanism), error if math.isfinite(error) else None
