"""Weighted estimates as sealed Datasets, computed from sums over persons, and their verification.

A Dataset (surveys/weighted_schema.py) has the sums by domain and answer. With the mechanism they give all figures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Indices, Vector
from mechdesign.errors import InputError, VerificationError
from mechdesign.geo.partition import Partition
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.schema import coordinates
from mechdesign.surveys.channel import channel_and_counts, shared_domain
from mechdesign.surveys.estimation import maximum_likelihood
from mechdesign.surveys.evidence import ERRORS, SHARE, ordered_mechanisms
from mechdesign.surveys.goodness_of_fit import fit_test
from mechdesign.surveys.intervals import Intervals, quantile
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.shares import mechanism_record, reports_digest
from mechdesign.surveys.weighted_schema import WEIGHTED
from mechdesign.surveys.weighted_sums import NO_ANSWER, Sums, among_all, weighted_intervals, with_class

_FEWEST = 2  # persons of a domain: one has no variance
_COUNTED = ("missing_answers", "reports_sha256", "reports", "fit_freedom", "simultaneous", "areas", "domains")
_PER_AREA = ("estimate", "share", "low", "high", "standard_error", "effective", "bias")


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerSums:
    """The sums of each domain by name, the missing answers (D,), the counts of reports (m,), and the options."""

    sums: dict[str, Sums]
    missing: Indices
    count: Indices
    has_class: bool
    population: float | None
    confidence: float
    simultaneous: bool

    @property
    def persons(self) -> int:
        """Persons whose answers count."""
        return sum(one.persons for one in self.sums.values())

    @property
    def all_persons(self) -> int:
        """All persons."""
        return self.persons + (0 if self.has_class else int(self.missing.sum()))

    def refuse_invalid(self) -> None:
        """Raise an InputError for a small population or a small domain."""
        if self.population is not None and not self.population >= self.all_persons:
            message = f"must be at least the {self.all_persons:,} persons who were asked"
            raise InputError(message, field="population", value=self.population)
        for name, sums in self.sums.items():
            if sums.persons < _FEWEST:
                raise InputError("has fewer than two answers", field="by", value=name)


def sealed_shares(mechanism: xr.Dataset, answers: AnswerSums, areas: Partition) -> xr.Dataset:
    """The sealed Dataset of all figures that follow from the answers."""
    answers.refuse_invalid()
    domain = shared_domain([mechanism])
    if len(areas.label) != domain.size:
        raise InputError(f"must label {domain.size} places", field="areas", value=len(areas.label))
    channel, counts, numbers = channel_and_counts([mechanism], [answers.count])
    estimator = linear_weights(channel, areas.indicator, np.asarray(mechanism["prior"].values, float))
    names = list(areas.names)
    if answers.has_class:
        if NO_ANSWER in names:
            raise InputError(f"has an area named {NO_ANSWER}", field="areas", remedy="rename it")
        names.append(NO_ANSWER)
        estimator = with_class(estimator, (int(answers.missing.sum()) + 1) / (answers.all_persons + 2))
    listed = list(answers.sums.values())
    together = len(names) * len(listed) if answers.simultaneous else 1
    z = quantile(answers.confidence, intervals=together)
    total = sum(one.total for one in listed)

    def intervals_of(sums: Sums) -> Intervals:
        # A domain has its share of the weights, and so of the population.
        within = None if answers.population is None else answers.population * sums.total / total
        return weighted_intervals(sums, estimator, z, population=within)

    own = [intervals_of(sums) for sums in listed]
    variables = _variables(listed, own, answers, areas)
    if len(listed) > 1:
        others = [intervals_of(sum_of([one for one in listed if one is not sums])) for sums in listed]
        variables |= _differences(own, others, z)
    if answers.population is not None:
        everybody = sum_of(listed)
        joined = [among_all(sums, everybody, estimator) for sums in listed]
        within = [weighted_intervals(*one, z, population=answers.population) for one in joined]
        variables |= _totals(within, answers.population)
    fit = fit_test(channel, numbers, maximum_likelihood(numbers, channel.table))
    attrs: dict[str, Any] = {
        "schema": WEIGHTED.name,
        "problem": mechanism.attrs["problem"],
        "domain": domain.describe_json(),
        "mechanisms": json.dumps([mechanism_record(mechanism, counts[0])]),
        "areas": json.dumps(names),
        "domains": json.dumps(list(answers.sums)),
        "reasons": json.dumps([intervals.reasons for intervals in own]),
        "missing_answers": "class" if answers.has_class else "leave-out",
        "reports_sha256": reports_digest([mechanism], counts),
        "versions": versions(),
        "confidence": float(answers.confidence),
        "z": z,
        "fit_statistic": fit.statistic,
        "fit_p": fit.p_value,
        "reports": int(counts[0].sum()),
        "fit_freedom": fit.freedom,
        "simultaneous": int(answers.simultaneous),
    }
    attrs |= {} if answers.population is None else {"population": float(answers.population)}
    return seal(xr.Dataset(variables, coords=coordinates("secret", domain), attrs=attrs))


def sum_of(listed: Sequence[Sums]) -> Sums:
    """The sums of several domains together."""
    return Sums(
        first=np.sum([one.first for one in listed], axis=0),
        second=np.sum([one.second for one in listed], axis=0),
        fourth=np.sum([one.fourth for one in listed], axis=0),
        persons=sum(one.persons for one in listed),
    )


def stored_answers(shares: xr.Dataset) -> AnswerSums:
    """The answers that a Dataset has."""
    sums = [shares[f"weights_{k}"].values for k in (1, 2, 4)]
    persons, names = shares["persons"].values.tolist(), json.loads(shares.attrs["domains"])
    listed = {
        str(name): Sums(first=sums[0][d], second=sums[1][d], fourth=sums[2][d], persons=persons[d])
        for d, name in enumerate(names)
    }
    _require("domains", len(listed) == len(names) == shares.sizes["domain"], len(names))
    return AnswerSums(
        sums=listed,
        missing=shares["missing"].values,
        count=shares["count"].values,
        has_class=shares.attrs["missing_answers"] == "class",
        population=shares.attrs.get("population"),
        confidence=float(shares.attrs["confidence"]),
        simultaneous=bool(shares.attrs["simultaneous"]),
    )


def check_weighted(shares: xr.Dataset, mechanisms: Sequence[xr.Dataset] = ()) -> None:
    """Compare a Dataset with its sums; with its mechanism compute every figure again."""
    answers, attrs = stored_answers(shares), shares.attrs
    names = json.loads(attrs["areas"])
    _require("areas", shares.sizes["area"] == len(names), len(names))
    _require("simultaneous", attrs["simultaneous"] in (0, 1), attrs["simultaneous"])
    _require("missing_answers", attrs["missing_answers"] in ("class", "leave-out"), attrs["missing_answers"])
    together = len(names) * len(answers.sums) if answers.simultaneous else 1
    _require("z", abs(quantile(answers.confidence, intervals=together) - float(attrs["z"])) <= SHARE, attrs["z"])
    least = min(answers.missing.min(), answers.count.min())
    _require("count", bool(least >= 0) and int(answers.count.sum()) == attrs["reports"], attrs["reports"])
    unanswered = int(answers.missing.sum()) if answers.has_class else 0
    _require("persons", answers.persons == attrs["reports"] + unanswered, answers.persons)
    for d, sums in enumerate(answers.sums.values()):
        powers = (sums.first, sums.second, sums.fourth)
        _require("weights_1", all((np.isfinite(power) & (power >= 0)).all() for power in powers), d)
        # By Cauchy and Schwarz, which every list of weights satisfies.
        possible = sums.total**2 <= sums.persons * float(sums.second.sum()) * (1 + SHARE)
        _require("weights_2", possible and sums.total > 0, d)
        _compare("design_effect", np.array(sums.design_effect), shares["design_effect"].values[d])
        _compare("effective_sample", np.array(sums.persons / sums.design_effect), shares["effective_sample"].values[d])
    if not mechanisms:
        return
    label, kinds = shares["area_of"].values, tuple(names[: len(names) - answers.has_class])
    again = sealed_shares(ordered_mechanisms(shares, mechanisms)[0], answers, Partition(names=kinds, label=label))
    for name in _COUNTED:
        _require(name, again.attrs[name] == attrs[name], attrs[name])
    for name in ("fit_statistic", "fit_p"):
        _require(name, bool(np.isclose(again.attrs[name], attrs[name], rtol=1e-3, atol=1e-6)), attrs[name])
    _require("variables", set(again.variables) == set(shares.variables), sorted(map(str, shares.variables)))
    for key in again.data_vars:
        _compare(str(key), again[key].values, shares[key].values)
    found, stored = (json.loads(one.attrs["reasons"]) for one in (again, shares))
    short = [[[(reason or "").split(":")[0] for reason in row] for row in rows] for rows in (found, stored)]
    _require("reasons", short[0] == short[1], attrs["reasons"][:80])
    _require("domain", stored_domain(again).describe() == stored_domain(shares).describe(), attrs["domain"])


def _compare(name: str, value: Vector, stored: Vector) -> None:
    same = value.shape == stored.shape and bool(
        np.isclose(value, stored, rtol=ERRORS, atol=SHARE, equal_nan=True).all()
    )
    _require(name, same, np.ravel(stored).tolist()[:3])


def _require(name: str, holds: bool, stored: object) -> None:
    if not holds:
        raise VerificationError("does not follow from the answers and the mechanism", field=name, value=stored)


def _variables(listed: list[Sums], own: list[Intervals], answers: AnswerSums, areas: Partition) -> dict[str, Any]:
    by_answer = {"weights_1": "first", "weights_2": "second", "weights_4": "fourth"}
    sums = {
        name: (("domain", "answer"), np.array([getattr(one, part) for one in listed]))
        for name, part in by_answer.items()
    }
    figures = {
        name: (("domain", "area"), np.array([getattr(one, name) for one in own]), {"units": "1"}) for name in _PER_AREA
    }
    effects, persons = np.array([one.design_effect for one in listed]), np.array([one.persons for one in listed])
    return {
        "count": ("report", np.asarray(answers.count, np.int64)),
        "area_of": ("secret", np.asarray(areas.label, np.int64)),
        **sums,
        "persons": ("domain", persons.astype(np.int64)),
        "missing": ("domain", np.asarray(answers.missing, np.int64)),
        "design_effect": ("domain", effects, {"units": "1"}),
        "effective_sample": ("domain", persons / effects, {"units": "1"}),
        **figures,
    }


def _differences(own: list[Intervals], others: list[Intervals], z: float) -> dict[str, Any]:
    """A domain less all other persons. The two are independent: variances add, and bounds of biases too."""
    rows: dict[str, list[Vector]] = {"difference": [], "difference_low": [], "difference_high": []}
    for one, rest in zip(own, others, strict=True):
        half = z * np.hypot(one.standard_error, rest.standard_error) + one.bias + rest.bias
        pairs = zip(one.reasons, rest.reasons, strict=True)
        bounded = np.array([first is None and second is None for first, second in pairs])
        difference = one.estimate - rest.estimate
        # As in intervals.py: a clipped difference keeps the half length of its interval.
        possible = np.clip(difference, -1.0, 1.0)
        rows["difference"].append(difference)
        rows["difference_low"].append(np.where(bounded, np.maximum(possible - half, -1.0), np.nan))
        rows["difference_high"].append(np.where(bounded, np.minimum(possible + half, 1.0), np.nan))
    return {name: (("domain", "area"), np.array(values), {"units": "1"}) for name, values in rows.items()}


def _totals(within: list[Intervals], population: float) -> dict[str, Any]:
    """Persons of each domain in each area, among all persons."""
    ends = {"total": "share", "total_low": "low", "total_high": "high"}
    numbers = {name: population * np.array([getattr(one, end) for one in within]) for name, end in ends.items()}
    return {name: (("domain", "area"), values, {"units": "persons"}) for name, values in numbers.items()}
