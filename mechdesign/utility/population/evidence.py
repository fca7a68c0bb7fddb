"""What a stored estimate rests on: its figures, and the weights of its bounds, found again from its mechanisms.

A file of an estimate keeps counts and intervals, not weights. Weights of the linear estimator, and of affine bounds
around the prior, follow from the mechanisms and the areas alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, VerificationError
from mechdesign.setting.space.areas import Areas
from mechdesign.utility.population.affine_bounds import affine_weights
from mechdesign.utility.population.estimation import expectation_maximization, maximum_likelihood
from mechdesign.utility.population.goodness_of_fit import fit_test
from mechdesign.utility.population.intervals import affine_intervals, fewest_effective, linear_intervals, quantile
from mechdesign.utility.population.linear_estimator import linear_weights
from mechdesign.utility.population.shares import collected, reports_digest

FIT = 1e-3  # of the logarithm of a p value: the direction of its halves comes from a likelihood to 1e-6 nats
PRINTED = 1e-2  # of effective reports in a reason, which has three digits
SHARE = 1e-9  # of a share: sums in another order
ERRORS = 1e-6  # of a standard error: weights of nearly singular channels in another order of operations
_COMPARED = ("share", "low", "high", "standard_error", "bias")
_TOO_FEW = re.compile(r"too few reports: ([0-9.e+-]+) effective ones, an interval takes [0-9.e+-]+")

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


def check_estimate(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset] = ()) -> None:
    """Find the figures of an estimate again: those that follow from its own counts, and with all its mechanisms the
    likelihood, how it was reached, and the test of fit; those of intervals are found by `bound_weights`.

    Iterations, and differences from another period, whose counts the file does not keep, are as it has them.
    Raises: InputError for other mechanisms; VerificationError that names the figure that does not follow.
    Cost: with mechanisms two maximum-likelihood solutions.
    """
    attrs, told = estimate.attrs, json.loads(estimate.attrs["mechanisms"])
    count, distribution = estimate["count"].values, estimate["distribution"].values
    parts = np.split(count, np.cumsum([each["reports"] for each in told])[:-1])
    _same("reports", [int(part.sum()) for part in parts], [each["made"] for each in told])
    _same("reports", int(count.sum()), attrs["reports"])
    _near("distribution", float(distribution.sum()), 1.0, SHARE)
    _require("distribution", bool((distribution >= 0).all() and (count >= 0).all()), distribution.min())
    if "areas" in attrs:
        names, reasons = json.loads(attrs["areas"]), json.loads(attrs["reasons"])
        simultaneous, confidence, z = attrs["simultaneous"], float(attrs["confidence"]), float(attrs["z"])
        _require("simultaneous", simultaneous in (0, 1), simultaneous)
        _require("confidence", 0.5 <= confidence < 1, confidence)
        _near("confidence", quantile(confidence, intervals=len(names) if simultaneous else 1), z, SHARE)
        label = estimate["area_of"].values
        shares = np.bincount(label, weights=distribution, minlength=len(names))
        for own, said in zip(shares.tolist(), estimate["likelihood_share"].values.tolist(), strict=True):
            _near("likelihood_share", own, said, SHARE)
        _check_reasons(estimate["effective"].values, reasons, z)
    if not mechanisms:
        return
    ordered = in_order(estimate, mechanisms)
    _same("reports_sha256", reports_digest(ordered, parts), attrs["reports_sha256"])
    channel, _, numbers = collected(ordered, parts)
    best = maximum_likelihood(numbers, channel.table)
    stopped = str(attrs["method"]).startswith("expectation")
    shown = expectation_maximization(numbers, channel.table, maximum=best) if stopped else best
    _same("method", shown.method, attrs["method"])
    _same("stop", shown.stop, attrs["stop"])
    made = numbers > 0
    likelihood = float(numbers[made] @ np.log(distribution @ channel.table[:, made])) / float(numbers.sum())
    _near("log_likelihood", likelihood, float(attrs["log_likelihood"]), SHARE)
    lacking = best.log_likelihood + best.gap - likelihood
    _require("gap", float(attrs["gap"]) >= best.log_likelihood - likelihood - SHARE, attrs["gap"])
    _require("gap", float(attrs["gap"]) <= max(lacking, shown.gap) + SHARE, attrs["gap"])
    fit = fit_test(channel, numbers, log_likelihood=best.log_likelihood, gap=best.gap, seed=int(attrs.get("seed", 0)))
    within = ERRORS * max(1.0, fit.statistic) + 10 * SHARE * float(numbers.sum())  # a gap is closed to 1e-9
    _near("fit_statistic", fit.statistic, float(attrs["fit_statistic"]), within)
    _same("fit_freedom", fit.freedom, attrs["fit_freedom"])
    own, said = (math.log(max(p, 1e-300)) for p in (fit.p_value, float(attrs["fit_p"])))
    _near("fit_p", own, said, FIT * max(1.0, abs(own)))


def _check_reasons(effective: _Floats, reasons: list[str | None], z: float) -> None:
    """An interval is given where reports are enough, and its reason says how many there are where they are not."""
    for own, reason in zip(effective.tolist(), reasons, strict=True):
        few = _TOO_FEW.fullmatch(reason or "")
        if few is not None:
            _near("reasons", float(few[1]), own, PRINTED * abs(own))
            _require("reasons", own < fewest_effective(z), reason)
        elif reason is None:
            _require("effective", own >= fewest_effective(z), own)


def _same(name: str, own: object, said: object) -> None:
    _require(name, own == said, said)


def _near(name: str, own: float, said: float, within: float) -> None:
    _require(name, abs(own - said) <= within, said)


def _require(name: str, holds: bool, said: object) -> None:
    """Raises: VerificationError where a figure does not follow."""
    if not holds:
        raise VerificationError(
            "does not follow from the counts and the mechanisms",
            field=name,
            value=said,
            remedy="estimate again from the reports",
        )


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
        fits = (abs(own - said) <= slack) | (np.isnan(own) & np.isnan(said))
        _require(name, bool(fits.all()), said.tolist()[:3])
    told = found.standard_error > SHARE
    effective = estimate["effective"].values
    _require(
        "effective",
        bool(np.allclose(found.effective[told], effective[told], rtol=ERRORS, atol=0.0)),
        effective.tolist()[:3],
    )
    kinds = [
        [(reason or "").split(":")[0] for reason in each] for each in (found.reasons, json.loads(attrs["reasons"]))
    ]
    _same("reasons", *kinds)
    return lower, upper
