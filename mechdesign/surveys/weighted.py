r"""Shares of areas from reports with survey weights, by domain, with missing answers, in a finite population.

Person i has the weight w_i, the inverse of the probability of being asked, up to a common factor. With a(y), the
weights of the linear estimator (surveys/linear_estimator.py), E a(y_i) is 1 for a person of the area and 0 for others:

    (1)  estimate = sum_i w_i a(y_i) / W,    W = sum_i w_i.
    (2)  variance = n / (n - 1) sum_i w_i^2 (a(y_i) - estimate)^2 / W^2.
    (3)  design effect = n sum_i w_i^2 / W^2,    effective sample size = n / design effect.
    (4)  variance - share (1 - share) / N    in a finite population of N persons.

(1) is the estimator of Horvitz and Thompson in the form of Hájek, (3) is Kish's. (2) contains the choice of the persons
and the noise of the mechanism. A finite population does not have all of the first part. With w_i N / W = 1 / pi_i the
excess is sum_i pi_i w_i^2 (g_i - p)^2 / W^2 = p (1 - p) / N, where g_i is 1 in the area. The noise stays.

An interval needs enough effective reports, (sum_i w_i^2 b_i^2)^2 / sum_i w_i^4 b_i^4 with b = a - estimate, padded as
in surveys/intervals.py. Domains are disjoint groups of persons: a domain differs from all others together by the
difference of two independent estimates, whose variances add. A missing answer is left out, or is a class of its own.
The shares of areas are then those of all persons, also of those who did not answer.

Source: J. Hájek, in Foundations of Statistical Inference (1971); L. Kish, Survey Sampling (1965), section 11.7; C.-E.
Särndal, B. Swensson and J. Wretman, Model Assisted Survey Sampling (1992), result 5.7.1. (4) and the rule are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Mask, Vector
from mechdesign.base.validation import as_numbers, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.geo.partition import Partition
from mechdesign.surveys.channel import channel_and_counts
from mechdesign.surveys.estimation import maximum_likelihood
from mechdesign.surveys.goodness_of_fit import fit_test
from mechdesign.surveys.intervals import Intervals, interval_reasons, quantile
from mechdesign.surveys.linear_estimator import Weights, linear_weights

NO_ANSWER = "no answer"
EVERYBODY = "everybody"
Missing = Literal["leave-out", "class"]
_FEWEST = 2  # persons of a domain: one has no variance
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


def with_class(weights: Weights, missing_share: float) -> Weights:
    """The weights with one more report and one more area: persons without an answer."""
    reports, areas = weights.values.shape
    values = np.zeros((reports + 1, areas + 1))
    values[:reports, :areas], values[reports, areas] = weights.values, 1.0
    law = np.append((1 - missing_share) * weights.law, missing_share)
    return replace(weights, values=values, bias=np.append(weights.bias, 0.0), law=law)


@validate_call
def weighted_shares(
    mechanism: xr.Dataset,
    reports: ArrayLike,
    areas: Partition,
    *,
    weights: ArrayLike | None = None,
    by: Sequence[str] | None = None,
    missing: Missing = "leave-out",
    population: float | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> xr.Dataset:
    """Shares of areas from one report of each person, with weights, by domain, in a finite population.

    Parameters
    ----------
    mechanism : xarray.Dataset
        The mechanism that made all reports.
    reports, weights : (n,) int array, (n,) array
        The report of each person, -1 for a missing answer; the inverse probability of asking each, up to a factor.
    areas : Partition
        Areas of the secrets.
    by : sequence of n values
        The domain of each person, such as an age group.
    missing : {"leave-out", "class"}
        Persons without an answer are left out, or are a class with a share of its own.
    population : float
        The number of persons whose shares are estimated; infinite by default.
    confidence, simultaneous : float, bool
        Of every interval, or of all intervals of shares together, and of all differences together (Bonferroni).

    Returns
    -------
    xarray.Dataset
        (domain, area): estimate, share (cut to [0, 1]), low, high (nan without an interval), standard_error, effective;
        with `by` also the difference from all other persons, difference_low and difference_high. (domain): persons,
        missing, design_effect, effective_sample. Attributes: reasons, fit_p, confidence, z, population.

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> areas = md.geo.Partition(names=("low", "high"), label=np.array([0, 0, 1]))
    >>> reports = np.repeat([0, 1, 2], [500, 300, 200])
    >>> shares = md.surveys.weighted_shares(mechanism, reports, areas, weights=np.repeat([1.0, 2.0], 500))
    >>> round(float(shares["design_effect"][0]), 3)
    1.111
    """
    numbers, weight, groups = _persons(reports, weights, by)
    channel, _, counted = channel_and_counts([mechanism], [_counts(numbers, mechanism)])
    if len(areas.label) != channel.secrets:
        raise InputError(f"must label {channel.secrets} places", field="areas", value=len(areas.label))
    names = list(areas.names)
    estimator = linear_weights(channel, areas.indicator, np.asarray(mechanism["prior"].values, float))
    is_missing, size = numbers < 0, channel.table.shape[1]
    if missing == "class":
        if NO_ANSWER in names:
            raise InputError(f"has an area named {NO_ANSWER}", field="areas", remedy="rename it")
        names, numbers = [*names, NO_ANSWER], np.where(is_missing, size, numbers)
        estimator, size = with_class(estimator, (is_missing.sum() + 1) / (len(numbers) + 2)), size + 1
    if population is not None and not population >= len(numbers):
        message = f"must be at least the {len(numbers):,} persons who were asked"
        raise InputError(message, field="population", value=population)
    is_used = np.ones(len(numbers), bool) if missing == "class" else ~is_missing
    domains = list(dict.fromkeys(groups.tolist()))
    z = quantile(confidence, intervals=len(names) * len(domains) if simultaneous else 1)
    chosen = {domain: is_used & (groups == domain) for domain in domains}
    total = float(weight[is_used].sum())

    def estimate(members: Mask, name: str) -> tuple[Sums, Intervals]:
        if members.sum() < _FEWEST:
            raise InputError("has fewer than two answers", field="by", value=name)
        sums = Sums.of(numbers[members], weight[members], size)
        # A domain has its share of the weights, and so of the population.
        within = None if population is None else population * sums.total / total
        return sums, weighted_intervals(sums, estimator, z, population=within)

    results = {domain: estimate(members, str(domain)) for domain, members in chosen.items()}
    data = _variables(results)
    if len(domains) > 1:
        others = [estimate(is_used & ~members, f"all but {domain}")[1] for domain, members in chosen.items()]
        data |= _differences([intervals for _, intervals in results.values()], others, z)
    data["missing"] = ("domain", np.array([int((is_missing & (groups == domain)).sum()) for domain in domains]))
    fit = fit_test(channel, counted, maximum_likelihood(counted, channel.table))
    attrs: dict[str, Any] = {
        "confidence": float(confidence),
        "z": z,
        "simultaneous": int(simultaneous),
        "fit_p": fit.p_value,
    }
    attrs |= {"population": np.inf if population is None else float(population), "missing_answers": missing}
    reasons = [intervals.reasons for _, intervals in results.values()]
    data["reason"] = (("domain", "area"), np.array([[reason or "" for reason in row] for row in reasons]))
    return xr.Dataset(data, coords={"domain": [str(domain) for domain in domains], "area": names}, attrs=attrs)


def _persons(reports: ArrayLike, weights: ArrayLike | None, by: Sequence[Any] | None) -> tuple[Indices, Vector, Any]:
    numbers = np.asarray(reports)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or len(numbers) < _FEWEST:
        raise InputError("must be the numbers of two reports or more", field="reports", value=f"{reports!s:.60}")
    weight = np.ones(len(numbers)) if weights is None else as_numbers(weights, "weights")
    groups = np.full(len(numbers), EVERYBODY) if by is None else np.asarray(by).astype(str)
    for name, values in {"weights": weight, "by": groups}.items():
        if values.shape != numbers.shape:
            raise InputError(f"must have {len(numbers)} values, one for each report", field=name, value=values.shape)
    refuse_entries(~(np.isfinite(weight) & (weight > 0)), weight, "must be positive and finite", field="weights")
    return numbers.astype(np.int64), weight, groups


def _counts(numbers: Indices, mechanism: xr.Dataset) -> Indices:
    size = channel_size(mechanism)
    refuse_entries((numbers >= size) | (numbers < -1), numbers, f"must be below {size}, or -1", field="reports")
    return np.bincount(numbers[numbers >= 0], minlength=size)


def channel_size(mechanism: xr.Dataset) -> int:
    """The number of reports of a mechanism, a table or factored."""
    return int(mechanism.sizes.get("report", mechanism.sizes["secret"]))


def _variables(results: dict[Any, tuple[Sums, Intervals]]) -> dict[str, Any]:
    listed = list(results.values())
    names = ("estimate", "share", "low", "high", "standard_error", "effective", "bias")
    data: dict[str, Any] = {
        name: (("domain", "area"), np.array([getattr(intervals, name) for _, intervals in listed])) for name in names
    }
    effects = np.array([sums.design_effect for sums, _ in listed])
    persons = np.array([sums.persons for sums, _ in listed])
    data |= {"persons": ("domain", persons), "design_effect": ("domain", effects)}
    return data | {"effective_sample": ("domain", persons / effects)}


def _differences(own: list[Intervals], others: list[Intervals], z: float) -> dict[str, Any]:
    """A domain less all other persons. The two are independent: variances add, and bounds of biases too."""
    rows: dict[str, list[Vector]] = {"difference": [], "difference_low": [], "difference_high": []}
    for one, rest in zip(own, others, strict=True):
        half = z * np.hypot(one.standard_error, rest.standard_error) + one.bias + rest.bias
        bounded = np.array(
            [first is None and second is None for first, second in zip(one.reasons, rest.reasons, strict=True)]
        )
        difference = one.estimate - rest.estimate
        # As in intervals.py: a clipped difference keeps the half length of its interval.
        possible = np.clip(difference, -1.0, 1.0)
        rows["difference"].append(difference)
        rows["difference_low"].append(np.where(bounded, np.maximum(possible - half, -1.0), np.nan))
        rows["difference_high"].append(np.where(bounded, np.minimum(possible + half, 1.0), np.nan))
    return {name: (("domain", "area"), np.array(values)) for name, values in rows.items()}
