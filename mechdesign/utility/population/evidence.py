"""What the intervals of a stored estimate rest on: the weights of its bounds, found again from its mechanisms.

A file of an estimate keeps counts and intervals, not weights. Weights of the linear estimator, and of affine bounds
around the prior, follow from the mechanisms and the areas alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, VerificationError
from mechdesign.setting.space.areas import Areas
from mechdesign.utility.population.affine_bounds import affine_weights
from mechdesign.utility.population.estimation import maximum_likelihood
from mechdesign.utility.population.goodness_of_fit import fit_test
from mechdesign.utility.population.intervals import affine_intervals, linear_intervals, quantile
from mechdesign.utility.population.linear_estimator import linear_weights
from mechdesign.utility.population.shares import collected

SHARE = 1e-9  # of a share: sums in another order
EFFECTIVE = 1e-6  # relative, of effective reports
FIT = 1e-3  # relative, of a p value: a statistic of some hundred nats is right to the gap of its likelihood times N
ERRORS = 1e-6  # of a standard error: weights of nearly singular channels in another order of operations
_COMPARED = ("share", "low", "high", "standard_error", "bias")

_Floats = NDArray[np.float64]


def in_order(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The mechanisms of an estimate in its own order. Raises: InputError where one lacks, or another is given."""
    wanted = [each["sha256"] for each in json.loads(estimate.attrs["mechanisms"])]
    held = {str(mechanism.attrs["sha256"]): mechanism for mechanism in mechanisms}
    if len(mechanisms) != len(wanted) or set(held) != set(wanted):
        missing = next((digest for digest in wanted if digest not in held), "none missing, but another is given")
        raise InputError(
            "are not those that the reports were made by",
            field="mechanisms",
            value=missing,
            remedy="give each mechanism file of the estimate: verify -v prints its seal",
        )
    return [held[digest] for digest in wanted]


def bound_weights(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> tuple[_Floats, _Floats] | None:
    """Weights (M, K) of the lower and of the upper bounds of an estimate: one array twice if they are linear.

    M counts the reports of the mechanisms that made some. None without areas, and for affine bounds around a guess
    that the file does not keep.
    Raises: InputError for other mechanisms; VerificationError where the intervals of the file do not follow from them.
    Cost: that of the intervals.
    """
    attrs, ordered = estimate.attrs, in_order(estimate, mechanisms)
    if "areas" not in attrs or attrs.get("guess", "prior") != "prior":
        return None
    ends = np.cumsum([each["reports"] for each in json.loads(attrs["mechanisms"])])
    channel, _, numbers = collected(ordered, np.split(estimate["count"].values, ends[:-1]))
    areas = Areas(names=tuple(json.loads(attrs["areas"])), label=estimate["area_of"].values)
    prior, z = np.asarray(ordered[0]["prior"].values, float), float(attrs["z"])
    together = len(areas.names) if attrs["simultaneous"] else 1
    if not math.isclose(z, quantile(float(attrs["confidence"]), intervals=together), rel_tol=SHARE):
        raise _unfounded("z", z)
    if attrs["interval"] == "linear":
        weights = linear_weights(channel, areas.indicator, prior)
        found = linear_intervals(channel, numbers, weights, z, strict=False)
        lower = upper = weights.values
    else:
        lower, upper, law = affine_weights(channel, areas.indicator, prior, int(numbers.sum()), z)
        found = affine_intervals(channel, numbers, lower, upper, law, z)
    slack = SHARE + ERRORS * found.standard_error
    for name in _COMPARED:
        own, said = getattr(found, name), estimate[name].values
        if not ((abs(own - said) <= slack) | (np.isnan(own) & np.isnan(said))).all():
            raise _unfounded(name, said.tolist()[:3])
    told = found.standard_error > SHARE
    if not np.isclose(found.effective, estimate["effective"].values, rtol=EFFECTIVE, atol=0)[told].all():
        raise _unfounded("effective", estimate["effective"].values.tolist()[:3])
    return lower, upper


def fit_found(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> float:
    """The p value of the test of fit, found again from the counts, or that of the file where it is smaller: its halves
    were drawn with a seed that a file need not keep.

    Raises: InputError for other mechanisms; VerificationError where the file says more than all reports allow.
    Cost: two maximum-likelihood solutions.
    """
    attrs = estimate.attrs
    ordered = in_order(estimate, mechanisms)
    ends = np.cumsum([each["reports"] for each in json.loads(attrs["mechanisms"])])
    channel, _, numbers = collected(ordered, np.split(estimate["count"].values, ends[:-1]))
    best = maximum_likelihood(numbers, channel.table)
    fit = fit_test(channel, numbers, log_likelihood=best.log_likelihood, gap=best.gap, seed=int(attrs.get("seed", 0)))
    said = float(attrs["fit_p"])
    if not 0 <= said <= min(1.0, 2 * fit.p_all) * (1 + FIT):
        raise _unfounded("fit_p", said)
    return min(said, fit.p_value)


def _unfounded(name: str, value: object) -> VerificationError:
    return VerificationError(
        "does not follow from the counts and the mechanisms",
        field=name,
        value=value,
        remedy="estimate again from the reports",
    )
