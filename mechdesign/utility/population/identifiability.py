"""Whether reports identify the distribution of secrets, and how many it takes: rank and criterion of a mechanism.

programs/statistical/fisher_information.py states and derives both. A mechanism of the least expected loss can have few
reports, and then a rank below the number of secrets: no number of its reports tells some distributions apart.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.errors import InputError
from mechdesign.mechanism.sampling.sampler import drawn_rows
from mechdesign.mechanism.stored import stored_domain
from mechdesign.mechanism.table.dataset import stored_edges
from mechdesign.programs.statistical import fisher_information as information
from mechdesign.programs.statistical.dual_sobolev_norm import dual_sobolev_norm
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.problems.problem import DesignProblem


@asked
def channel_rank(mechanism: xr.Dataset | ArrayLike) -> int:
    """The rank of a mechanism, or of a table (n, m), as a channel: the number of directions that reports transmit.

    Less than n means that there are distributions of secrets that no number of reports can tell apart. Numerical:
    directions with less than 1e-10 of the information that the secrets themselves would give count as lost.
    Raises: InputError for a table that is none. Cost: O(n^2 m + n^3).
    """
    return information.channel_rank(_table(mechanism))


@asked
def asymptotic_mse(
    mechanism: xr.Dataset | ArrayLike, problem: DesignProblem | None = None, *, truth: ArrayLike | None = None
) -> float:
    """N times the asymptotic mean squared H^-1 error of the maximum-likelihood estimate from N reports.

    Parameters: mechanism, or a table (n, m), which needs the problem for its domain; truth (n,), the distribution that
    secrets are drawn from, by default the prior of the mechanism, of a table that of the problem.
    Returns: squared units of the domain (for nodes: of edges); infinite where the channel is singular.
    Raises: InputError for a table without a problem or of other secrets, or a truth that is no distribution; SizeError
        beyond 1,600 secrets. Cost: O(n^2 m + n^3).
    """
    table = _table(mechanism)
    if isinstance(mechanism, xr.Dataset):
        domain = stored_domain(mechanism)
        edges, prior = stored_edges(mechanism), mechanism["prior"].values
    elif problem is None:
        raise InputError(
            "a table does not say where its secrets are", field="problem", value="none", remedy="pass the problem"
        )
    else:
        domain, edges, prior = problem.domain, problem.edges, problem.prior_array
    if len(table) != domain.size:
        raise InputError(
            f"the problem has {domain.size} secrets",
            field="table",
            value=f"{len(table)} rows",
            remedy="give one row a secret",
        )
    at = check_prior(prior if truth is None else truth, domain.size)
    return information.criterion(table, at, dual_sobolev_norm(domain, edges))


def _table(mechanism: xr.Dataset | ArrayLike) -> NDArray[np.float64]:
    if isinstance(mechanism, xr.Dataset):
        return drawn_rows(mechanism)
    table = np.asarray(mechanism, float)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InputError(
            "must be an (n, m) array of probabilities", field="table", value=table.shape, remedy="give finite rows >= 0"
        )
    return table
