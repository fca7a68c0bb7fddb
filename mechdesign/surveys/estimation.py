"""Estimate the distribution of secrets: by maximum likelihood, expectation maximization, or the reports as they are.

Every estimate has a proved bound on the distance of its log-likelihood from the maximum (surveys/likelihood.py).
Source: Alvim et al. 2018, section II. Given the secrets, reports are independent draws of P(y|u).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import as_numbers, check_positive, validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.schema import stored_points
from mechdesign.mechanism.views import probabilities
from mechdesign.surveys.likelihood import CertifiedPoint, Likelihood
from mechdesign.surveys.solve_likelihood import solve_likelihood, updates

SHARE = 1 / 4  # nats of deviance per secret of the maximum-likelihood support: a choice, not derived
LIMIT = 100_000  # steps of expectation maximization, unless `stop` is their number: a gap may be out of reach


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributionEstimate(FrozenRecord):
    """A distribution of secrets estimated from reports.

    Attributes
    ----------
    distribution : (n,) array
        Sums to 1.
    gap, log_likelihood : float
        In nats per report: a proved upper bound on L* - L, L* the maximum, infinite if a report is impossible; L.
    reports, iterations, method : int, int, str
        N; iterations of the method; its name.
    stopped, stop : str
        "gap", "deviance", "iterations", "stalled", "limit" or "direct"; the stopping rule in words.
    support : int or None
        The number of secrets of the maximum-likelihood distribution; None where it was not computed.

    Examples
    --------
    >>> md.surveys.maximum_likelihood([3, 1], np.eye(2)).reports
    4
    """

    distribution: Vector
    gap: float
    log_likelihood: float
    reports: int
    method: str
    iterations: int
    stopped: str
    stop: str
    support: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rule:
    """A stopping rule: its name and words, the last step, an upper bound on L*, and the support if known."""

    name: str
    words: str
    met: Callable[[CertifiedPoint], bool]
    last: int | None = None
    best: float = math.inf
    support: int | None = None


@validate_call
def maximum_likelihood(
    counts: ArrayLike, mechanism: xr.Dataset | ArrayLike, *, gap: float = 1e-9
) -> DistributionEstimate:
    """The distribution p that maximises sum_y counts(y) ln sum_u p(u) P(y|u).

    Of several equally likely distributions it usually returns one far from the border of their set.

    Parameters
    ----------
    counts, mechanism : (m,) int array, Dataset or (n, m) array
        The counts of reports; the mechanism, or its table P(y|u).
    gap : float
        In nats per report.

    Returns
    -------
    DistributionEstimate
        The distribution, with a proved gap. Cost: ten to twenty Newton steps of O(n^2 (n + k)), k the distinct reports:
        0.1 to 0.4 s for 900 secrets.

    Examples
    --------
    >>> md.surveys.maximum_likelihood([70, 30], [[0.8, 0.2], [0.2, 0.8]]).distribution.round(4)
    array([0.8333, 0.1667])
    """
    # Newton steps, and where these stall accelerated expectation maximization.
    program = _program(counts, mechanism)
    solution = solve_likelihood(program, gap=check_positive(gap, "gap"))
    return _estimate(
        program,
        solution.point,
        method=solution.method,
        iterations=solution.iterations,
        stopped="gap" if solution.point.gap <= gap else "stalled",
        stop=f"L* - L <= {gap:g} nats per report",
        support=support_size(solution.point),
    )


@validate_call
def expectation_maximization(
    counts: ArrayLike,
    mechanism: xr.Dataset | ArrayLike,
    *,
    stop: float | str = "deviance",
    maximum: DistributionEstimate | None = None,
) -> DistributionEstimate:
    """The iterative Bayesian update from the uniform distribution to a stopping rule.

    "deviance" stops before the steps fit the noise of the sample: at N (L* - L) <= SHARE |support of p*|, L* and p* of
    the maximum-likelihood solution.

    Parameters
    ----------
    counts, mechanism : (m,) int array, Dataset or (n, m) array
        The counts of reports; the mechanism, or its table P(y|u).
    stop : float, int or str
        "deviance"; a float, the proved gap in nats per report; an int, the number of steps (else at most 100,000).
    maximum : DistributionEstimate
        The result of `maximum_likelihood` for the same counts and mechanism, which "deviance" then reuses.

    Returns
    -------
    DistributionEstimate, in O(n k) time a step, k the distinct reports

    Examples
    --------
    >>> table = [[0.8, 0.2], [0.2, 0.8]]
    >>> md.surveys.expectation_maximization([70, 30], table, stop=1e-6).distribution.round(2)
    array([0.83, 0.17])
    """
    program = _program(counts, mechanism)
    rule = _rule(stop, program, maximum)
    last = LIMIT if rule.last is None else rule.last
    steps = enumerate(updates(program, np.full(program.size, 1 / program.size)))
    iteration, point = next((k, point) for k, point in steps if k == last or rule.met(point))
    return _estimate(
        program,
        point,
        # Both bound L* - L; rounding may take the second below 0.
        gap=max(min(point.gap, rule.best - point.log_likelihood), 0.0),
        method="expectation maximization",
        iterations=iteration,
        stopped=rule.name if rule.name == "iterations" or rule.met(point) else "limit",
        stop=rule.words,
        support=rule.support,
    )


@validate_call
def empirical(counts: ArrayLike, mechanism: xr.Dataset | ArrayLike) -> DistributionEstimate:
    """Take the reports for the secrets: counts / N, without inverting the mechanism.

    Parameters
    ----------
    counts, mechanism : (m,) int array, Dataset or (n, m) array
        The counts of reports; the mechanism, whose reports are the secrets.

    Returns
    -------
    DistributionEstimate

    Examples
    --------
    >>> md.surveys.empirical([3, 1], [[0.8, 0.2], [0.2, 0.8]]).distribution
    array([0.75, 0.25])
    """
    program = _program(counts, mechanism)
    n, m = program.table.shape
    apart = isinstance(mechanism, xr.Dataset) and not np.array_equal(
        stored_points(mechanism, "secret"), stored_points(mechanism, "report")
    )
    if n != m or apart:
        places = f"{n} secrets, {m} reports" + (" elsewhere" if apart else "")
        raise UnsuitableError("must have its secrets as reports", field="mechanism", value=places)
    return _estimate(
        program,
        program.judge(program.counts),
        method="empirical",
        iterations=0,
        stopped="direct",
        stop="none: reports as they are",
    )


def _estimate(
    program: Likelihood, point: CertifiedPoint, *, gap: float | None = None, **figures: Any
) -> DistributionEstimate:
    return DistributionEstimate(
        distribution=point.distribution,
        gap=point.gap if gap is None else gap,
        log_likelihood=point.log_likelihood,
        reports=program.reports,
        **figures,
    )


def support_size(point: CertifiedPoint) -> int:
    """The number of secrets with n p_u > |1 - g_u|, for a nearly optimal p."""
    # At the optimum g_u = 1 where p_u > 0 and g_u <= 1 elsewhere; a fixed threshold would count interior-point residue.
    distribution = point.distribution
    return int((len(distribution) * distribution > abs(1 - point.ratio)).sum())


def _rule(stop: float | str, program: Likelihood, maximum: DistributionEstimate | None) -> _Rule:
    """The rule that `stop` names. Solves the program if the rule needs L* and `maximum` is None."""
    if stop == "deviance":
        # The proved upper bound on L*, not L* itself, so that the true deviance is at most the limit.
        best, support = _bound_and_support(program, maximum)
        enough = best - SHARE * support / program.reports
        return _Rule(
            name="deviance",
            words=f"N (L* - L) <= {SHARE:g} |support| = {SHARE * support:g} nats",
            met=lambda point: point.log_likelihood >= enough,
            best=best,
            support=support,
        )
    # An int is a number of steps and a float a gap: 1 and 1.0 differ, and True is neither.
    if isinstance(stop, numbers.Integral) and not isinstance(stop, bool) and stop >= 0:
        return _Rule(name="iterations", words=f"{stop} steps", met=lambda point: False, last=int(stop))
    if isinstance(stop, (float, np.floating)) and 0 < stop < math.inf:
        gap = float(stop)
        return _Rule(name="gap", words=f"L* - L <= {gap:g} nats per report", met=lambda point: point.gap <= gap)
    message = 'must be "deviance", a gap above 0 in nats per report (float) or a number of steps (int)'
    raise InputError(message, field="stop", value=stop)


def _bound_and_support(program: Likelihood, maximum: DistributionEstimate | None) -> tuple[float, int]:
    if maximum is None:
        solution = solve_likelihood(program).point
        return solution.log_likelihood + solution.gap, support_size(solution)
    # A wrong maximum would stop the steps too early, or never. Sizes and counts are compared; the table cannot be.
    if maximum.support is None or maximum.reports != program.reports or len(maximum.distribution) != program.size:
        value = f"{maximum.method}, {maximum.reports} reports"
        raise InputError("is not the maximum-likelihood estimate from these reports", field="maximum", value=value)
    return maximum.log_likelihood + maximum.gap, maximum.support


def _program(counts: ArrayLike, mechanism: xr.Dataset | ArrayLike) -> Likelihood:
    if isinstance(mechanism, xr.Dataset):
        if "mass" not in mechanism:
            schema = mechanism.attrs.get("schema", "a Dataset")
            remedy = "FactoredMechanism.table makes one that fits in memory"
            raise InputError("has no table of probabilities", field="mechanism", value=schema, remedy=remedy)
        mechanism = probabilities(mechanism).values
    return Likelihood(table=as_numbers(mechanism, "mechanism"), counts=as_numbers(counts, "counts"))
