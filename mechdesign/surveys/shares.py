"""Shares of areas from the reports of a collection: estimates, intervals, differences, whether the reports fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import AnyArray, Indices, Vector
from mechdesign.base.threads import Seed, seed_of
from mechdesign.errors import InputError
from mechdesign.geo.partition import Partition
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.schema import Schema, VariableSpec, coordinates
from mechdesign.mechanism.storage import load_sealed
from mechdesign.problem.domain import Domain
from mechdesign.surveys.channel import Channel, channel_and_counts, shared_domain
from mechdesign.surveys.estimation import DistributionEstimate, expectation_maximization, maximum_likelihood
from mechdesign.surveys.goodness_of_fit import FitTest, fit_test
from mechdesign.surveys.intervals import Intervals, linear_intervals, quantile
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.weighted_schema import WEIGHTED

METHODS = ("maximum-likelihood", "stopped")

_PER_AREA = VariableSpec(dtype="float64", dims=("area",), optional=True)
ESTIMATE = Schema(
    name="mechdesign/estimate/1",
    own_variables={
        "distribution": VariableSpec(dtype="float64", dims=("secret",)),
        "prior": VariableSpec(dtype="float64", dims=("secret",)),
        "count": VariableSpec(dtype="int64", dims=("report",)),
        "area_of": VariableSpec(dtype="int64", dims=("secret",), places="area", optional=True),
        **dict.fromkeys(
            ("estimate", "share", "low", "high", "standard_error", "effective", "bias", "likelihood_share"), _PER_AREA
        ),
        **dict.fromkeys(
            ("against_estimate", "against_share", "difference", "difference_low", "difference_high"), _PER_AREA
        ),
    },
    places=("secret",),
    attributes={
        **dict.fromkeys(("schema", "problem", "domain", "mechanisms", "method", "stop", "stopped"), str),
        **dict.fromkeys(("reports_sha256", "versions", "sha256"), str),
        **dict.fromkeys(("log_likelihood", "gap", "fit_statistic", "fit_p"), float),
        **dict.fromkeys(("reports", "fit_freedom", "iterations"), int),
    },
    optional={
        **dict.fromkeys(("areas", "reasons", "difference_reasons"), str),
        **dict.fromkeys(("confidence", "z"), float),
        **dict.fromkeys(("simultaneous", "seed", "against_reports"), int),
        "against_fit_p": float,
    },
)


# The distribution is estimated by maximum likelihood (estimation.py), shares by the linear estimator (intervals.py). An
# area without an interval has the reason instead. One sealed Dataset, `ESTIMATE`, contains everything.
def estimate_shares(
    mechanisms: Sequence[xr.Dataset],
    counts: Sequence[ArrayLike],
    areas: Partition | None = None,
    *,
    rng: Seed = 0,
    confidence: float = 0.95,
    simultaneous: bool = False,
    method: str = "maximum-likelihood",
    against: Sequence[ArrayLike] | None = None,
) -> xr.Dataset:
    """The distribution of secrets and the shares of areas, from how often each report of each mechanism was made.

    Parameters
    ----------
    mechanisms, counts : sequence of Dataset, sequence of (m_j,) int arrays
        Of one collection, over the same secrets; how often each report of each was made.
    areas, rng : Partition, int or numpy.random.Generator
        Areas of the secrets; seed or generator of the split in the test of fit. The file has the seed.
    confidence, simultaneous : float, bool
        Of every interval, or, if `simultaneous`, of all of them together (Bonferroni).
    method : {"maximum-likelihood", "stopped"}
        Of the distribution; "stopped": expectation maximization to a quarter of the support.
    against : sequence of (m_j,) int arrays
        The counts of another period from other people, for differences this - that.

    Returns
    -------
    xarray.Dataset
        Sealed. distribution (secret); for each area the unbiased estimate, share (cut to [0, 1]), low and high (nan
        without an interval), standard_error, effective reports, bias, likelihood_share, and differences. Attributes:
        reasons (JSON, null with an interval), fit_p (an upper bound of the p value), and the mechanisms (JSON).

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> estimate = md.surveys.estimate_shares([mechanism], [[500, 300, 200]])
    >>> round(float(estimate["distribution"].sum()), 6)
    1.0
    """
    if method not in METHODS:
        raise InputError("unknown method", field="method", value=method, remedy="use " + " or ".join(METHODS))
    seed = seed_of(rng)
    domain = shared_domain(mechanisms)
    channel, each_count, numbers = channel_and_counts(mechanisms, counts)
    prior = np.asarray(mechanisms[0]["prior"].values, float)
    best = maximum_likelihood(numbers, channel.table)
    shown = best if method == METHODS[0] else expectation_maximization(numbers, channel.table, maximum=best)
    # The test needs the maximum, whichever distribution the estimate shows.
    fit = fit_test(channel, numbers, best, seed=seed)
    variables: dict[str, Any] = {
        "distribution": ("secret", shown.distribution, {"units": "1"}),
        "prior": ("secret", prior, {"units": "1"}),
        "count": ("report", np.concatenate(each_count).astype(np.int64)),
    }
    attrs = _attributes(mechanisms, each_count, domain, shown, fit) | {"seed": seed}
    if areas is not None:
        if len(areas.label) != domain.size:
            raise InputError(f"must label {domain.size} places", field="areas", value=len(areas.label))
        z = quantile(confidence, intervals=len(areas.names) if simultaneous else 1)
        wanted = areas.indicator
        intervals = linear_intervals(channel, numbers, linear_weights(channel, wanted, prior), z)
        variables |= {"area_of": ("secret", areas.label)}
        variables |= _per_area(intervals, shown.distribution @ wanted)
        attrs |= {
            "areas": json.dumps(list(areas.names)),
            "reasons": json.dumps(intervals.reasons),
            "confidence": float(confidence),
            "z": z,
            "simultaneous": int(simultaneous),
        }
        if against is not None:
            more, attributes = _differences(mechanisms, against, channel, numbers, areas, prior, z)
            variables |= more
            attrs |= attributes
    elif against is not None:
        raise InputError("requires areas", field="against")
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain), attrs=attrs))


def load_estimate(path: Any) -> xr.Dataset:
    """Read an estimate that `md.save` wrote, and check its schema and checksum.

    Parameters
    ----------
    path : str or Path
        A NetCDF file.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> import tempfile
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> estimate = md.surveys.estimate_shares([mechanism], [[500, 300, 200]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     int(md.surveys.load_estimate(md.save(estimate, folder + "/estimate.nc")).attrs["reports"])
    1000
    """
    return load_sealed(path, ESTIMATE, WEIGHTED, noun="an estimate")


def reports_digest(mechanisms: Sequence[xr.Dataset], counts: Sequence[AnyArray]) -> str:
    """SHA-256 of the counts of reports and the checksums of the mechanisms that made them."""
    digest = hashlib.sha256()
    for mechanism, reports in zip(mechanisms, counts, strict=True):
        # In a fixed byte order, so that all machines compute one digest.
        digest.update(str(mechanism.attrs["sha256"]).encode() + np.ascontiguousarray(reports, "<i8").tobytes())
    return digest.hexdigest()


def _per_area(intervals: Intervals, likelihood_share: Vector) -> dict[str, Any]:
    names = ("estimate", "share", "low", "high", "standard_error", "effective", "bias")
    values = {name: getattr(intervals, name) for name in names} | {"likelihood_share": likelihood_share}
    return {name: ("area", column, {"units": "1"}) for name, column in values.items()}


def _differences(
    mechanisms: Sequence[xr.Dataset],
    against: Sequence[ArrayLike],
    channel: Channel,
    numbers: Vector,
    areas: Partition,
    prior: Vector,
    z: float,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Shares of this period less those of another, with intervals from both standard errors."""
    other, _, others = channel_and_counts(mechanisms, against)
    now, then = (
        linear_intervals(channel_of, reports, linear_weights(channel_of, areas.indicator, prior), z, strict=False)
        for channel_of, reports in ((channel, numbers), (other, others))
    )
    # The periods are independent, so variances add. Biases are bounds, which add themselves.
    half = z * np.hypot(now.standard_error, then.standard_error) + now.bias + then.bias
    reasons = [first or second for first, second in zip(now.reasons, then.reasons, strict=True)]
    bounded = np.array([reason is None for reason in reasons])
    known = np.isfinite(now.share) & np.isfinite(then.share)
    difference = np.where(known, now.estimate - then.estimate, np.nan)
    # As in intervals.py: a clipped difference keeps the half length of its interval.
    possible = np.clip(difference, -1.0, 1.0)
    columns = {
        "against_estimate": then.estimate,
        "against_share": then.share,
        "difference": difference,
        "difference_low": np.where(bounded, np.maximum(possible - half, -1.0), np.nan),
        "difference_high": np.where(bounded, np.minimum(possible + half, 1.0), np.nan),
    }
    fit = fit_test(other, others, maximum_likelihood(others, other.table))
    attributes = {
        "difference_reasons": json.dumps(reasons),
        "against_reports": int(others.sum()),
        "against_fit_p": fit.p_value,
    }
    return {name: ("area", values, {"units": "1"}) for name, values in columns.items()}, attributes


def _attributes(
    mechanisms: Sequence[xr.Dataset],
    counts: list[Indices],
    domain: Domain,
    shown: DistributionEstimate,
    fit: FitTest,
) -> dict[str, Any]:
    return {
        "schema": ESTIMATE.name,
        "problem": mechanisms[0].attrs["problem"],
        "domain": domain.describe_json(),
        "mechanisms": json.dumps([mechanism_record(*pair) for pair in zip(mechanisms, counts, strict=True)]),
        "method": shown.method,
        "stop": shown.stop,
        "stopped": shown.stopped,
        "reports_sha256": reports_digest(mechanisms, counts),
        "versions": versions(),
        "log_likelihood": shown.log_likelihood,
        "gap": shown.gap,
        "fit_statistic": fit.statistic,
        "fit_p": fit.p_value,
        "reports": sum(int(made.sum()) for made in counts),
        "fit_freedom": fit.freedom,
        "iterations": shown.iterations,
    }


def mechanism_record(mechanism: xr.Dataset, reports: Indices) -> dict[str, Any]:
    """Name, program and claim of a mechanism, and its numbers of reports."""
    described = {name: str(mechanism.attrs[name]) for name in ("sha256", "program", "claim")}
    return {**described, "reports": len(reports), "made": int(reports.sum())}
