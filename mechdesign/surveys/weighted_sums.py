r"""The estimator of weighted shares, its variance and its intervals, from sums over the persons of a domain.

Person i has the weight w_i, the inverse of the probability of being asked, up to a common factor. With a(y), the
weights of the linear estimator (surveys/linear_estimator.py), E a(y_i) is 1 for a person of the area and 0 for others:

    (1)  estimate = sum_i w_i a(y_i) / W,    W = sum_i w_i.
    (2)  variance = n / (n - 1) sum_i w_i^2 (a(y_i) - estimate)^2 / W^2.
    (3)  design effect = n sum_i w_i^2 / W^2,    effective sample size = n / design effect.
    (4)  variance - share (1 - share) / N    in a finite population of N persons.

(1) is Hájek's: the ratio of the estimators of Horvitz and Thompson of two totals, persons of the area and all. It needs
no scale of the weights. (3) is Kish's. (2) contains the choice of the persons
and the noise of the mechanism. A finite population does not have all of the first part. With w_i N / W = 1 / pi_i the
excess is sum_i pi_i w_i^2 (g_i - p)^2 / W^2 = p (1 - p) / N, where g_i is 1 in the area. The noise stays.

With N known, the persons of a domain in an area are N times the share (1) of being in both. Its sums are over all
persons, and a person of another domain has a = 0. So the interval of the total is N times an interval of (1) and (2).

An interval needs enough effective reports, (sum_i w_i^2 b_i^2)^2 / sum_i w_i^4 b_i^4 with b = a - estimate, padded as
in surveys/intervals.py. Domains are disjoint groups of persons: a domain differs from all others together by the
difference of two independent estimates, whose variances add. A missing answer is left out, or is a class of its own.
The shares of areas are then those of all persons, also of those who did not answer.

Source: J. Hájek, in Foundations of Statistical Inference (1971); L. Kish, Survey Sampling (1965), section 11.7; C.-E.
Särndal, B. Swensson and J. Wretman, Model Assisted Survey Sampling (1992), result 5.7.1. (4) and the rule are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base.arrays import Indices, Vector
from mechdesign.surveys.intervals import Intervals, interval_reasons
from mechdesign.surveys.linear_estimator import Weights

NO_ANSWER = "no answer"
_CONSTANT = 1e-20  # as in intervals.py: weights that do not vary


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums over the persons of a domain, by report (M,): of w, w^2 and w^4; and the number of persons n."""

    first: Vector
    second: Vector
    fourth: Vector
    persons: int

    @classmethod
    def of(cls, reports: Indices, weights: Vector, size: int) -> Sums:
        powers = [np.bincount(reports, weights**k, minlength=size).astype(np.float64) for k in (1, 2, 4)]
        return cls(first=powers[0], second=powers[1], fourth=powers[2], persons=len(reports))

    @property
    def total(self) -> float:
        return float(self.first.sum())

    @property
    def design_effect(self) -> float:
        """(3): 1 for equal weights."""
        return self.persons * float(self.second.sum()) / self.total**2


def weighted_intervals(sums: Sums, weights: Weights, z: float, *, population: float | None = None) -> Intervals:
    """Intervals of (1) and (2), or of (1) and (4), for each column of `weights`."""
    a = weights.values
    estimate = sums.first @ a / sums.total
    away = a - estimate
    spread = sums.second @ away**2
    variance = sums.persons / (sums.persons - 1) * spread / sums.total**2
    share = np.clip(estimate, 0, 1)
    if population is not None:
        variance = np.maximum(variance - share * (1 - share) / population, 0.0)
    # z^2 further persons of mean weight, so that large weights that happened not to occur count.
    mean_second, mean_fourth = (float(sum_.sum()) / sums.persons for sum_ in (sums.second, sums.fourth))
    padded = spread + z**2 * mean_second * (weights.law @ away**2)
    fourth = sums.fourth @ away**4 + z**2 * mean_fourth * (weights.law @ away**4)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(fourth > _CONSTANT, padded**2 / fourth, np.inf)
    reasons = interval_reasons(effective, weights.identifiable, weights.bias, z)
    half = z * np.sqrt(variance) + weights.bias
    bounded = np.array([reason is None for reason in reasons])
    return Intervals(
        estimate=np.where(weights.identifiable, estimate, np.nan),
        share=np.where(weights.identifiable, share, np.nan),
        low=np.where(bounded, np.clip(share - half, 0, 1), np.nan),
        high=np.where(bounded, np.clip(share + half, 0, 1), np.nan),
        standard_error=np.sqrt(variance),
        effective=effective,
        bias=weights.bias,
        reasons=reasons,
    )


def among_all(own: Sums, everybody: Sums, weights: Weights) -> tuple[Sums, Weights]:
    """The sums of everybody and the weights, with one more report of persons of other domains, who are in no area."""
    parts = {name: (getattr(own, name), getattr(everybody, name)) for name in ("first", "second", "fourth")}
    # A difference of nearly equal sums may be negative by rounding.
    extended = {name: np.append(mine, max(float(all_.sum() - mine.sum()), 0.0)) for name, (mine, all_) in parts.items()}
    sums = Sums(**extended, persons=everybody.persons)
    others = float(sums.first[-1]) / sums.total
    values = np.vstack([weights.values, np.zeros((1, weights.values.shape[1]))])
    return sums, replace(weights, values=values, law=np.append((1 - others) * weights.law, others))


def with_class(weights: Weights, missing_share: float) -> Weights:
    """The weights with one more report and one more area: persons without an answer."""
    reports, areas = weights.values.shape
    values = np.zeros((reports + 1, areas + 1))
    values[:reports, :areas], values[reports, areas] = weights.values, 1.0
    law = np.append((1 - missing_share) * weights.law, missing_share)
    return replace(weights, values=values, bias=np.append(weights.bias, 0.0), law=law)
