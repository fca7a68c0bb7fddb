r"""The channel that the reports of a collection went through, and what they say about the distribution of secrets.

Channel. Mechanism j of J made N_j of the N reports, w_j = N_j / N. The channel sets their tables side by side, each
times its share: P(y|u) = w_j P_j(y|u) for the reports y of mechanism j, so that rows sum to 1 and the law of the
reports is q = P^T p. All that is said of the reports is said given N_1, ..., N_J: those of one mechanism are
multinomial. It takes that nobody's mechanism was chosen by where the person was.

Information. N people with secrets drawn from pi (n,) send one report each through P (n, m); q = P^T pi (m,) is the
distribution of reports. Their counts are all that there is to estimate pi from.

    I = sum_y P_y P_y^T / q_y   (n, n)                  the Fisher information of one report about pi
    Cov = I^-1 - pi pi^T                                N times the covariance of the maximum-likelihood estimate
    criterion = tr(L^+ Cov) = tr(L^+ I^-1) - pi^T L^+ pi

Why. The log-likelihood of one report is log (P^T p)_y, with gradient P_y / q_y at p = pi and mean squared gradient I.
Estimates sum to 1, so their limiting covariance is that of the tangent space,
I^-1 - I^-1 1 1^T I^-1 / (1^T I^-1 1). Now I pi = sum_y P_y q_y / q_y = 1, because rows of P sum to 1: I^-1 1 = pi and
1^T I^-1 1 = 1, which leaves I^-1 - pi pi^T. With the channel that tells the truth this is diag(pi) - pi pi^T, the
multinomial covariance. The trace with L^+ is the expected squared norm of surveys/error_norm.py.
Where pi has zeros this is the error of the estimate that may turn negative there.
Rank. A distribution of secrets shows in reports only up to the null space of P^T; with rank < n different ones give the
same reports, however many, the criterion is infinite and no estimate converges. A mechanism of the least expected loss
can have few reports, and such a rank.
Source: Alvim et al. 2018; van der Vaart, Asymptotic Statistics, section 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import as_numbers, validated
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.claim import MechanismFile, stored_domain
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_edges, stored_points
from mechdesign.output.compare import ChannelFigures
from mechdesign.problem.domain import Domain
from mechdesign.problem.priors import check_prior
from mechdesign.problem.problem import DesignProblem
from mechdesign.surveys.error_norm import LARGEST, dual_sobolev_norm

MOST = 4_000  # secrets: a dense eigenvalue decomposition of so many takes a minute
READABLE = 1e-10  # relative information under which a direction counts as lost: it would take 10^10 reports to read it
_TABLES = 4  # (n, m) at once
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel(FrozenRecord):
    """tables, P_j (n, m_j) of every mechanism, rows summing to 1; shares, w (J,), positive, summing to 1."""

    tables: tuple[_Floats, ...]
    shares: _Floats

    @classmethod
    def of(cls, *tables: _Floats, shares: Sequence[float] | None = None) -> Channel:
        """The channel of these tables, by default with equal shares."""
        return cls(tables=tables, shares=np.full(len(tables), 1 / len(tables)) if shares is None else np.array(shares))

    @property
    def secrets(self) -> int:
        """Number n of secrets."""
        return len(self.tables[0])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first report of every mechanism (J,)."""
        return np.cumsum([0, *(table.shape[1] for table in self.tables[:-1])])

    @cached_property
    def freedom(self) -> int:
        """M - J: how many shares of reports are free."""
        return sum(table.shape[1] - 1 for table in self.tables)

    @cached_property
    def table(self) -> _Floats:
        """P (n, M), the tables side by side, each times its share."""
        if len(self.tables) == 1:
            return self.tables[0]
        return np.hstack([w * table for w, table in zip(self.shares, self.tables, strict=True)])

    def moments(self, law: _Floats, weights: _Floats, *, order: int = 2) -> _Floats:
        """sum_y f(y) (a(y) - mean_j)^order for laws f (..., M) and weights a (M, K), as (..., K).

        mean_j is that of the mechanism which made report y. order: 2, N times the variance of sum_y f(y) a(y) where f
        are the shares of N reports; or 4.
        """
        powers = [weights**k for k in range(1, order + 1)]
        total = 0.0
        for j, start in enumerate(self.starts):
            end = start + self.tables[j].shape[1]
            raw = [law[..., start:end] @ power[start:end] for power in powers]
            mean = raw[0] / self.shares[j]
            if order == 2:
                total = total + raw[1] - mean * raw[0]
            else:
                total = total + raw[3] - 4 * mean * raw[2] + 6 * mean**2 * raw[1] - 3 * mean**3 * raw[0]
        return np.maximum(total, 0.0)


def table_of(mechanism: xr.Dataset) -> _Floats:
    """P(y|u) (n, m) of a mechanism in double precision, of factors too.

    Raises: VerificationError for another Dataset; SizeError beyond `MOST` secrets; UnsuitableError where positions
        draw by the rows of several cells.
    """
    size = int(mechanism.sizes["secret"])
    if size > MOST:
        raise SizeError(f"shares of areas take at most {MOST:,} secrets", field="mechanism", value=f"{size} secrets")
    if "around_row" in mechanism:
        message = "what its reports say of a cell depends on where in the cell people were"
        remedy = "collect reports with a mechanism of mechdesign area --positions cells"
        raise UnsuitableError(message, field="mechanism", remedy=remedy)
    rows = rows_of(mechanism)
    require_memory(size, rows.reports, tables=_TABLES, what="the table of the mechanism")
    return rows.probabilities(np.arange(size))


def report_places(stored: MechanismFile) -> Domain:
    """Where the reports of a mechanism are."""
    if stored.same_places:
        return stored.domain
    points = stored_points(stored.mechanism, "report")
    on_earth = stored.report_unit == stored.domain.unit and points.shape[1] == 2
    return Domain.points_at(points, unit=stored.report_unit, plane=stored.domain.plane if on_earth else None)


def shared_domain(mechanisms: Sequence[xr.Dataset]) -> Domain:
    """The secrets of several mechanisms. Raises: InputError where they differ, or where one is given twice."""
    domains = [MechanismFile.read(mechanism).domain for mechanism in mechanisms]
    for mechanism, domain in zip(mechanisms, domains, strict=True):
        if domain.describe() != domains[0].describe() or not np.array_equal(domain.points, domains[0].points):
            problem = mechanism.attrs["problem"]
            raise InputError("has other secrets than the first mechanism", field="mechanisms", value=problem)
    if len({str(mechanism.attrs["sha256"]) for mechanism in mechanisms}) < len(mechanisms):
        raise InputError("a mechanism is given twice", field="mechanisms")
    return domains[0]


def information(table: _Floats, truth: _Floats) -> _Floats:
    """I (n, n) of a table (n, m) at truth (n,); reports of probability 0 are left out. Cost: O(n^2 m)."""
    reports = truth @ table
    seen = reports > 0
    scaled = table[:, seen] / np.sqrt(reports[seen])
    return np.asarray(scaled @ scaled.T)


@validated
def channel_rank(mechanism: xr.Dataset | ArrayLike) -> int:
    """The rank of a mechanism as a channel: the number of directions that reports transmit.

    Less than n means that there are distributions of secrets that no number of reports can tell apart. Counted are
    the eigenvalues above 1e-10 of the information at the uniform distribution, divided by n, of which the largest is
    1: a share of what the secrets themselves would tell. Splitting a report, or merging proportional ones, changes
    nothing; reports of 1e-10 and less, such as the noise of a solver, count for nothing.

    Parameters
    ----------
    mechanism : Dataset or (n, m) array
        A mechanism or a table.

    Returns
    -------
    int
        From 1 to n.

    Raises
    ------
    InputError
        For a table that is none.

    Notes
    -----
    Cost: O(n^2 m + n^3).

    Examples
    --------
    >>> md.surveys.channel_rank(np.full((3, 3), 1 / 3)), md.surveys.channel_rank(np.eye(3))
    (1, 3)
    """
    table = _table(mechanism)
    n = len(table)
    return int((np.linalg.eigvalsh(information(table, np.full(n, 1 / n)) / n) > READABLE).sum())


def criterion(table: _Floats, truth: _Floats, norm: _Floats) -> float:
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


@validated
def asymptotic_mse(
    mechanism: xr.Dataset | ArrayLike, problem: DesignProblem | None = None, *, truth: ArrayLike | None = None
) -> float:
    """N times the asymptotic mean squared H^-1 error of the maximum-likelihood estimate from N reports.

    Parameters
    ----------
    mechanism : Dataset or (n, m) array
        A mechanism, or a table, which needs the problem for its domain.
    problem : DesignProblem
        Of a table.
    truth : (n,) array
        The distribution that secrets are drawn from; by default the prior.

    Returns
    -------
    float
        In squared units of the domain (for nodes: of edges); infinite where the channel is singular.

    Raises
    ------
    InputError
        For a table without a problem or of other secrets, or a truth that is no distribution.
    SizeError
        Beyond 1,600 secrets.

    Notes
    -----
    Cost: O(n^2 m + n^3).

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
        raise InputError("a table does not say where its secrets are: pass the problem", field="problem")
    else:
        domain, edges, prior = problem.domain, problem.edges, problem.prior_array
    if len(table) != domain.size:
        raise InputError(f"must have a row for each of {domain.size} secrets", field="table", value=len(table))
    at = check_prior(prior if truth is None else truth, domain)
    return criterion(table, at, dual_sobolev_norm(domain, edges))


def _table(mechanism: xr.Dataset | ArrayLike) -> _Floats:
    if isinstance(mechanism, xr.Dataset):
        return drawn_rows(mechanism)
    table = as_numbers(mechanism, "mechanism")
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any():
        raise InputError("must be an (n, m) array of probabilities", field="table", value=table.shape)
    return table


class SurveyFigures(ChannelFigures):
    """`channel_rank` and `asymptotic_mse`; None beyond 1,600 secrets, and for an infinite error."""

    def rank_and_mse(self, mechanism: xr.Dataset) -> tuple[int | None, float | None]:
        if mechanism.sizes["secret"] > LARGEST:
            return None, None
        error = asymptotic_mse(mechanism)
        return channel_rank(mechanism), error if math.isfinite(error) else None


SURVEY_FIGURES = SurveyFigures()
