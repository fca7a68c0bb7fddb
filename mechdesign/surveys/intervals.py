r"""Intervals for shares of areas from counted reports, with a reason where an area has no interval.

    share -+ (z s / sqrt(N) + bias),    s^2 = sum_y f(y) (a(y) - mean)^2,     cut to [0, 1]

share is the estimate, the mean of a(y), cut to [0, 1]: the interval about it contains the part in [0, 1] of the
interval about the estimate. a (M, K) are weights that were fixed before the reports (surveys/linear_estimator.py), so
that the estimate is a mean of N independent numbers of known expectation, also for a truth on the border.
Few reports of large weight make a mean that is not yet normal. Its effective number of reports is N / kurtosis =
N (E b^2)^2 / E b^4, b = a - mean, measured with z^2 reports of the law fixed beforehand added to those made. An
interval needs `EFFECTIVE` (z / 1.96)^2 effective reports: from there on the coverage of 95 % intervals stays above
92.5 % (docs/results/surveys.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mechdesign.errors import InputError
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.linear_estimator import Weights

EFFECTIVE = 20.0  # effective reports that a 95 % interval takes; at another z, times (z / 1.96)^2
_CONSTANT = 1e-20  # of E b^4: weights that do not vary, of an area that is everything

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Means:
    """Means of weights over reports: mean, standard_error and effective, each (..., K)."""

    mean: _Floats
    standard_error: _Floats
    effective: _Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Per area (K,): the estimate, the share cut to [0, 1], its interval, and the reason if there is no interval."""

    estimate: _Floats
    share: _Floats
    low: _Floats
    high: _Floats
    standard_error: _Floats
    effective: _Floats
    bias: _Floats
    reasons: list[str | None]


def quantile(confidence: float, *, intervals: int = 1) -> float:
    """The z of two-sided intervals that hold together with `confidence`, by Bonferroni."""
    if isinstance(confidence, bool) or not 0.5 <= confidence < 1:
        raise InputError("must be from 0.5 to below 1", field="confidence", value=confidence)
    return -float(ndtri((1 - confidence) / 2 / intervals))


def fewest_effective(z: float) -> float:
    """The effective reports from which on an interval is given."""
    return EFFECTIVE * (z / 1.959963984540054) ** 2


def means(channel: Channel, weights: _Floats, law: _Floats, shares: _Floats, reports: int, z: float) -> Means:
    """Means of weights (M, K) over `reports` reports with these shares (..., M); law (M,), fixed beforehand."""
    variance = channel.moments(shares, weights)
    padded = (reports * shares + z**2 * law) / (reports + z**2)
    fourth = channel.moments(padded, weights, order=4)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = (reports + z**2) * channel.moments(padded, weights) ** 2 / fourth
    return Means(
        mean=shares @ weights,
        standard_error=np.sqrt(variance / reports),
        effective=np.where(fourth > _CONSTANT, effective, np.inf),
    )


def linear_intervals(
    channel: Channel, counts: _Floats, weights: Weights, z: float, *, strict: bool = True
) -> Intervals:
    """Intervals of the linear estimator from counts (M,). A share that is not identifiable has none, and is nan."""
    reports = int(counts.sum())
    found = means(channel, weights.values, weights.law, counts / reports, reports, z)
    away = z * found.standard_error + weights.bias
    reasons = _reasons(found.effective, weights.identifiable, weights.bias, z)
    if strict and weights.identifiable.any() and all(reasons):
        most = found.effective[weights.identifiable].max()
        value = f"{reports} reports, of which at most {most:.3g} are effective"
        remedy = f"collect more: an interval takes {fewest_effective(z):.3g} effective ones"
        raise InputError("are too few for any interval", field="reports", value=value, remedy=remedy)
    bounded = np.array([reason is None for reason in reasons])
    estimate = np.where(weights.identifiable, found.mean, np.nan)
    share = np.clip(estimate, 0, 1)
    return Intervals(
        estimate=estimate,
        share=share,
        low=np.where(bounded, np.clip(share - away, 0, 1), np.nan),
        high=np.where(bounded, np.clip(share + away, 0, 1), np.nan),
        standard_error=found.standard_error,
        effective=found.effective,
        bias=weights.bias,
        reasons=reasons,
    )


def _reasons(effective: _Floats, identifiable: NDArray[np.bool_], bias: _Floats, z: float) -> list[str | None]:
    """Why there is no interval, for every area; None where there is one."""
    needed = fewest_effective(z)
    reasons: list[str | None] = []
    for known, own, off in zip(identifiable.tolist(), effective.tolist(), bias.tolist(), strict=True):
        if not known:
            reasons.append(
                "not identifiable: distributions that differ in this share give the same reports (no weights come "
                f"nearer to it than {off:.2g})"
            )
        elif own < needed:
            reasons.append(f"too few reports: {own:.3g} effective ones, an interval takes {needed:.3g}")
        else:
            reasons.append(None)
    return reasons
