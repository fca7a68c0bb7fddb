r"""Intervals for shares of areas from counted reports, or the reason why an area has none.

    (1)  share -+ (z s / sqrt(N) + bias),    s^2 = sum_y f(y) (a(y) - mean)^2,     clipped to [0, 1]

share is the estimate, the mean of a(y), clipped to [0, 1]. The weights a (M, K) are fixed before the reports
(surveys/linear_estimator.py), so the estimate is a mean of N independent numbers of known expectation. An interval
needs enough effective reports (`fewest_effective`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from mechdesign.base.arrays import Floats, Mask, Matrix, Vector
from mechdesign.errors import InputError
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.linear_estimator import Weights

EFFECTIVE = 20.0  # effective reports for a 95 % interval, from simulations: see the module docstring
_CONSTANT = 1e-20  # E b^4 of weights that do not vary: an area that contains every secret


@dataclass(frozen=True, kw_only=True, eq=False)
class Means:
    """Means of weights over reports: mean, standard error and (2), each (..., K)."""

    mean: Floats
    standard_error: Floats
    effective: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Per area (K,): estimate, clipped share, its interval (1), or the reason why there is none."""

    estimate: Vector
    share: Vector
    low: Vector
    high: Vector
    standard_error: Vector
    effective: Vector
    bias: Vector
    reasons: list[str | None]


def quantile(confidence: float, *, intervals: int = 1) -> float:
    """The z at which that many two-sided intervals hold at once with `confidence`, by Bonferroni."""
    if isinstance(confidence, bool) or not 0.5 <= confidence < 1:
        raise InputError("must be from 0.5 to below 1", field="confidence", value=confidence)
    return -float(ndtri((1 - confidence) / 2 / intervals))


# If few reports have large weights the mean is not yet normal. Its effective number of reports is
#     (2)  N / kurtosis = N (E b^2)^2 / E b^4,    b = a - mean.
# It is measured with z^2 reports of the law fixed beforehand added to the N. With `EFFECTIVE` (z / 1.96)^2 of them the
# coverage of 95 % intervals was above 92.5 % in simulations (docs/results/surveys.md).
def fewest_effective(z: float) -> float:
    """The number of effective reports that an interval needs."""
    return EFFECTIVE * (z / 1.959963984540054) ** 2


def means(channel: Channel, weights: Matrix, law: Vector, shares: Floats, reports: int, z: float) -> Means:
    """Means of weights (M, K) over `reports` reports with these shares (..., M); law (M,), fixed beforehand."""
    # The sample variance of (1), and (2) with z^2 further reports.
    variance = channel.moments(shares, weights)
    # Without padding, reports of large weight that happened not to occur would make the kurtosis look harmless.
    padded = (reports * shares + z**2 * law) / (reports + z**2)
    fourth = channel.moments(padded, weights, order=4)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = (reports + z**2) * channel.moments(padded, weights) ** 2 / fourth
    return Means(
        mean=shares @ weights,
        standard_error=np.sqrt(variance / reports),
        effective=np.where(fourth > _CONSTANT, effective, np.inf),
    )


def linear_intervals(channel: Channel, counts: Vector, weights: Weights, z: float, *, strict: bool = True) -> Intervals:
    """Intervals (1) from counts (M,). A share that is not identifiable is nan, without an interval."""
    reports = int(counts.sum())
    measured = means(channel, weights.values, weights.law, counts / reports, reports, z)
    half = z * measured.standard_error + weights.bias
    reasons = interval_reasons(measured.effective, weights.identifiable, weights.bias, z)
    if strict and weights.identifiable.any() and all(reasons):
        largest = measured.effective[weights.identifiable].max()
        value = f"{reports} reports, of which at most {largest:.3g} are effective"
        remedy = f"collect more: an interval needs at least {fewest_effective(z):.3g} effective reports"
        raise InputError("are too few for any interval", field="reports", value=value, remedy=remedy)
    bounded = np.array([reason is None for reason in reasons])
    # (1). The interval lies around the clipped share. It contains the part in [0, 1] of that around the estimate. It is
    # not empty where the estimate lies far outside, as for a truth on the border.
    estimate = np.where(weights.identifiable, measured.mean, np.nan)
    share = np.clip(estimate, 0, 1)
    return Intervals(
        estimate=estimate,
        share=share,
        low=np.where(bounded, np.clip(share - half, 0, 1), np.nan),
        high=np.where(bounded, np.clip(share + half, 0, 1), np.nan),
        standard_error=measured.standard_error,
        effective=measured.effective,
        bias=weights.bias,
        reasons=reasons,
    )


def interval_reasons(effective: Vector, identifiable: Mask, bias: Vector, z: float) -> list[str | None]:
    """Per area the reason why it has no interval, or None."""
    needed = fewest_effective(z)
    reasons: list[str | None] = []
    for known, size, error in zip(identifiable.tolist(), effective.tolist(), bias.tolist(), strict=True):
        if not known:
            reasons.append(
                "not identifiable: distributions with different shares give the same reports (the best weights miss "
                f"it by {error:.2g})"
            )
        elif size < needed:
            reasons.append(f"too few reports: effective sample size {size:.3g}, at least {needed:.3g} needed")
        else:
            reasons.append(None)
    return reasons
