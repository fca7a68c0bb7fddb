"""Verification of a stored estimate: its figures are recomputed from its counts, mechanisms and areas."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Vector
from mechdesign.errors import InputError, VerificationError
from mechdesign.geo.partition import Partition
from mechdesign.mechanism.mechanism_file import verification_errors
from mechdesign.surveys.channel import Channel, channel_and_counts
from mechdesign.surveys.estimation import expectation_maximization, maximum_likelihood
from mechdesign.surveys.goodness_of_fit import fit_test
from mechdesign.surveys.intervals import fewest_effective, linear_intervals, quantile
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.shares import reports_digest

FIT = 1e-3  # relative, of the logarithm of a p value: its direction comes from a likelihood solved to 1e-6 nats
PRINTED = 1e-2  # of effective reports in a reason, which has three digits
SHARE = 1e-9  # of a share: sums in another order
ERRORS = 1e-6  # of a standard error: weights of nearly singular channels in another order of operations
_COMPARED = ("estimate", "share", "low", "high", "standard_error", "bias")
_TOO_FEW = re.compile(r"too few reports: effective sample size ([0-9.e+-]+), at least [0-9.e+-]+ needed")


def ordered_mechanisms(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The mechanisms in the order of the estimate. Refuses a missing or an extra one."""
    with verification_errors():
        wanted = [record["sha256"] for record in json.loads(estimate.attrs["mechanisms"])]
    by_digest = {str(mechanism.attrs["sha256"]): mechanism for mechanism in mechanisms}
    if len(mechanisms) != len(wanted) or set(by_digest) != set(wanted):
        missing = next((digest for digest in wanted if digest not in by_digest), "an extra mechanism")
        raise InputError(
            "do not match the mechanisms of the estimate",
            field="mechanisms",
            value=missing,
            remedy="pass each mechanism file of the estimate; verify -v prints its checksum",
        )
    return [by_digest[digest] for digest in wanted]


def check_estimate(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset] = ()) -> None:
    """Recompute the figures of an estimate from its counts; with all its mechanisms also likelihood, fit, intervals."""
    # The iterations and the differences from another period are not checked: the file does not have their counts.
    attrs, described = estimate.attrs, json.loads(estimate.attrs["mechanisms"])
    count, distribution = estimate["count"].values, estimate["distribution"].values
    parts = np.split(count, np.cumsum([record["reports"] for record in described])[:-1])
    _require_equal("reports", [int(part.sum()) for part in parts], [record["made"] for record in described])
    _require_equal("reports", int(count.sum()), attrs["reports"])
    _require_close("distribution", float(distribution.sum()), 1.0, SHARE)
    _require("distribution", bool((distribution >= 0).all() and (count >= 0).all()), distribution.min())
    if "areas" in attrs:
        names, reasons = json.loads(attrs["areas"]), json.loads(attrs["reasons"])
        simultaneous, confidence, z = attrs["simultaneous"], float(attrs["confidence"]), float(attrs["z"])
        _require("simultaneous", simultaneous in (0, 1), simultaneous)
        _require("confidence", 0.5 <= confidence < 1, confidence)
        _require_close("confidence", quantile(confidence, intervals=len(names) if simultaneous else 1), z, SHARE)
        label = estimate["area_of"].values
        shares = np.bincount(label, weights=distribution, minlength=len(names))
        for value, stored in zip(shares.tolist(), estimate["likelihood_share"].values.tolist(), strict=True):
            _require_close("likelihood_share", value, stored, SHARE)
        _check_reasons(estimate["effective"].values, reasons, z)
    if not mechanisms:
        return
    ordered = ordered_mechanisms(estimate, mechanisms)
    _require_equal("reports_sha256", reports_digest(ordered, parts), attrs["reports_sha256"])
    channel, _, numbers = channel_and_counts(ordered, parts)
    best = maximum_likelihood(numbers, channel.table)
    stopped = str(attrs["method"]).startswith("expectation")
    shown = expectation_maximization(numbers, channel.table, maximum=best) if stopped else best
    _require_equal("method", shown.method, attrs["method"])
    _require_equal("stop", shown.stop, attrs["stop"])
    observed = numbers > 0
    likelihood = float(numbers[observed] @ np.log(distribution @ channel.table[:, observed])) / float(numbers.sum())
    _require_close("log_likelihood", likelihood, float(attrs["log_likelihood"]), SHARE)
    # The stored gap is an upper bound: at least the true one, and not larger than the two that a solver can prove.
    lacking = best.log_likelihood + best.gap - likelihood
    _require("gap", float(attrs["gap"]) >= best.log_likelihood - likelihood - SHARE, attrs["gap"])
    _require("gap", float(attrs["gap"]) <= max(lacking, shown.gap) + SHARE, attrs["gap"])
    # The split of the test is random, but its seed is stored: the p value is reproduced.
    fit = fit_test(channel, numbers, best, seed=int(attrs.get("seed", 0)))
    # The statistic is N times a divergence: an error of 1e-9 nats per report in the likelihood is N times that in it.
    within = ERRORS * max(1.0, fit.statistic) + 10 * SHARE * float(numbers.sum())
    _require_close("fit_statistic", fit.statistic, float(attrs["fit_statistic"]), within)
    _require_equal("fit_freedom", fit.freedom, attrs["fit_freedom"])
    value, stored = (math.log(max(p, 1e-300)) for p in (fit.p_value, float(attrs["fit_p"])))
    _require_close("fit_p", value, stored, FIT * max(1.0, abs(value)))
    if "areas" in attrs:
        _check_intervals(estimate, channel, numbers, np.asarray(ordered[0]["prior"].values, float))


def _check_intervals(estimate: xr.Dataset, channel: Channel, numbers: Vector, prior: Vector) -> None:
    """Check shares, intervals and reasons against counts (M,) and the weights of the linear estimator."""
    reasons, z = json.loads(estimate.attrs["reasons"]), float(estimate.attrs["z"])
    areas = Partition(names=tuple(json.loads(estimate.attrs["areas"])), label=estimate["area_of"].values)
    intervals = linear_intervals(channel, numbers, linear_weights(channel, areas.indicator, prior), z, strict=False)
    slack = SHARE + ERRORS * intervals.standard_error
    for name in _COMPARED:
        value, stored = getattr(intervals, name), estimate[name].values
        fits = (abs(value - stored) <= slack) | (np.isnan(value) & np.isnan(stored))
        _require(name, bool(fits.all()), stored.tolist()[:3])
    # Weights that do not vary have no effective number of reports: 0 / 0, up to rounding.
    varying = intervals.standard_error > SHARE
    effective = estimate["effective"].values
    fits = np.isclose(intervals.effective[varying], effective[varying], rtol=ERRORS, atol=0.0)
    _require("effective", bool(fits.all()), effective.tolist()[:3])
    _require_equal(
        "reasons", *([(reason or "").split(":")[0] for reason in listed] for listed in (intervals.reasons, reasons))
    )


def _check_reasons(effective: Vector, reasons: list[str | None], z: float) -> None:
    """Check that exactly the areas with enough effective reports have an interval."""
    for value, reason in zip(effective.tolist(), reasons, strict=True):
        # The reason names a number with three digits; the number itself is in the file, and decides.
        few = _TOO_FEW.fullmatch(reason or "")
        if few is not None:
            _require_close("reasons", float(few[1]), value, PRINTED * abs(value))
            _require("reasons", value < fewest_effective(z), reason)
        elif reason is None:
            _require("effective", value >= fewest_effective(z), value)


def _require_equal(name: str, value: object, stored: object) -> None:
    _require(name, value == stored, stored)


def _require_close(name: str, value: float, stored: float, within: float) -> None:
    _require(name, abs(value - stored) <= within, stored)


def _require(name: str, holds: bool, stored: object) -> None:
    if not holds:
        raise VerificationError("does not follow from the counts and the mechanisms", field=name, value=stored)
