"""Shares of areas from reports with survey weights, by domain, with missing answers, in a finite population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Vector
from mechdesign.base.validation import as_numbers, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.geo.partition import Partition
from mechdesign.surveys.weighted_dataset import AnswerSums, sealed_shares
from mechdesign.surveys.weighted_sums import Sums

EVERYBODY = "everybody"
Missing = Literal["leave-out", "class"]
_FEWEST = 2  # reports: one has no variance


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
        Sealed. (domain, area): estimate, share (cut to [0, 1]), low, high (nan without an interval), standard_error,
        effective; with `by` also the difference from all other persons, difference_low and difference_high. With
        `population` also total, total_low and total_high, the persons of the domain in the area. (domain): persons,
        missing, design_effect, effective_sample. Attributes: domains, areas and reasons (JSON), fit_p.

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
    counts = _counts(numbers, mechanism)
    is_missing, has_class = numbers < 0, missing == "class"
    # The class of missing answers is the last answer.
    answers = np.where(is_missing, len(counts), numbers)
    is_used = np.ones(len(numbers), bool) if has_class else ~is_missing
    domains = list(dict.fromkeys(groups.tolist()))
    sums = {}
    for name in domains:
        members = is_used & (groups == name)
        sums[str(name)] = Sums.of(answers[members], weight[members], len(counts) + has_class)
    collected = AnswerSums(
        sums=sums,
        missing=np.array([int((is_missing & (groups == name)).sum()) for name in domains]),
        count=counts,
        has_class=has_class,
        population=population,
        confidence=confidence,
        simultaneous=simultaneous,
    )
    return sealed_shares(mechanism, collected, areas)


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
