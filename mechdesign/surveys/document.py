"""Plans and estimates as documents: the rows and fields that the terminal, pages and files show."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.vocabulary import Words, words_of
from mechdesign.surveys.goodness_of_fit import REFUSED

Row = dict[str, Any]

_ESTIMATED = ("estimate", "share", "low", "high", "standard_error", "effective", "bias", "likelihood_share")
_COMPARED = ("against_estimate", "against_share", "difference", "difference_low", "difference_high")
_PLANNED = ("deviation", "standard_error", "error", "people", "fewest", "bias")


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanDocument:
    """A plan as the terminal, CSV and JSON show it."""

    planned: xr.Dataset

    @cached_property
    def areas(self) -> list[Row]:
        """One row per design and area: share, standard error, error and people, with and without privacy."""
        planned, names = self.planned, json.loads(self.planned.attrs["areas"])
        without = planned["deviation_without"].values / math.sqrt(planned.attrs["reports"])
        rows = []
        for d, design in enumerate(json.loads(planned.attrs["designs"])):
            for k, area in enumerate(names):
                row = {"design": design["name"], "area": area, "share": _number(planned["share"][k])}
                row |= {name: _number(planned[name][d, k]) for name in _PLANNED}
                row |= {"error_without": planned.attrs["z"] * float(without[k])}
                rows.append(row | {"people_without": _number(planned["people_without"][k])})
        return rows

    def as_json(self) -> dict[str, Any]:
        """The arguments, the worst area of every design, and the rows."""
        attrs, designs = self.planned.attrs, json.loads(self.planned.attrs["designs"])
        return {
            "problem": attrs["problem"],
            "people": int(attrs["reports"]),
            "wanted_error": float(attrs["wanted_error"]),
            "confidence": float(attrs["confidence"]),
            "simultaneous": bool(attrs["simultaneous"]),
            "people_without": _number(self.planned["people_without"].max()),
            "designs": [design | worst_of(self.planned, d) for d, design in enumerate(designs)],
            "areas": self.areas,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class EstimateDocument:
    """An estimate as the terminal, the page, CSV, JSON and GeoJSON show it."""

    estimate: xr.Dataset

    @cached_property
    def domain(self) -> Domain:
        return stored_domain(self.estimate)

    @cached_property
    def nouns(self) -> Words:
        return words_of(self.domain)

    @cached_property
    def mechanisms(self) -> list[Row]:
        """sha256, program, claim, and numbers of reports of every mechanism."""
        listed: list[Row] = json.loads(self.estimate.attrs["mechanisms"])
        return listed

    @property
    def makers(self) -> str:
        return "this mechanism" if len(self.mechanisms) == 1 else "these mechanisms"

    @property
    def fits(self) -> dict[str, float]:
        """The p values of the tests of fit, by the words for the reports tested."""
        attrs, p_values = self.estimate.attrs, {}
        for name, which in (("fit_p", "These reports"), ("against_fit_p", "The reports of the other period")):
            if name in attrs:
                p_values[which] = float(attrs[name])
        return p_values

    @property
    def is_misfit(self) -> bool:
        """True if a test of fit refuses the reports: they cannot have come from the mechanism."""
        return any(p < REFUSED for p in self.fits.values())

    @cached_property
    def areas(self) -> list[Row]:
        """One row per area, with the reason if it has no interval; empty without areas."""
        estimate, attrs = self.estimate, self.estimate.attrs
        if "areas" not in attrs:
            return []
        names, reasons = json.loads(attrs["areas"]), json.loads(attrs["reasons"])
        columns = [name for name in (*_ESTIMATED, *_COMPARED) if name in estimate]
        rows = [
            {"area": area, **{name: _number(estimate[name][k]) for name in columns}, "reason": reasons[k]}
            for k, area in enumerate(names)
        ]
        for row, reason in zip(rows, json.loads(attrs.get("difference_reasons", "[]")), strict=False):
            row["difference_reason"] = reason
        return rows

    @cached_property
    def cells(self) -> list[Row]:
        """One row per secret: coordinates (and degrees on Earth), probability, area."""
        estimate, domain = self.estimate, self.domain
        names = json.loads(estimate.attrs.get("areas", "[]"))
        columns: dict[str, list[Any]] = {} if domain.labels is None else {"label": list(domain.labels)}
        if domain.has_distances:
            columns |= dict(zip(AXES, domain.points.T.tolist(), strict=False))
        if domain.plane is not None:
            digits = domain.plane.decimals(domain.spacing)
            degrees = domain.plane.backward(domain.points)
            columns |= {
                name: np.round(values, digits).tolist()
                for name, values in zip(("longitude", "latitude"), degrees, strict=True)
            }
        columns["probability"] = estimate["distribution"].values.tolist()
        if names:
            columns["area"] = [names[k] for k in estimate["area_of"].values.tolist()]
        return [{"cell": u, **{name: values[u] for name, values in columns.items()}} for u in range(domain.size)]

    def as_json(self) -> dict[str, Any]:
        attrs = dict(self.estimate.attrs)
        for name in ("areas", "reasons", "difference_reasons", "domain", "versions"):
            attrs.pop(name, None)
        return {**attrs, "mechanisms": self.mechanisms, "areas": self.areas, "cells": self.cells}


def worst_of(planned: xr.Dataset, design: int) -> Row:
    """Figures of a design in its worst area, and the people it needs relative to no privacy."""
    error, people = (planned[name].values[design] for name in ("error", "people"))
    worst = int(np.argmax(error))
    times = people / planned["people_without"].values
    return {
        "worst_area": json.loads(planned.attrs["areas"])[worst],
        "worst_error": _number(error[worst]),
        "uninformative": uninformative(float(planned["share"].values[worst]), float(error[worst])),
        "worst_standard_error": _number(planned["standard_error"].values[design, worst]),
        "people": _number(people.max()),
        "fewest": _number(planned["fewest"].values[design].max()),
        "times_median": _number(np.median(times)),
        "times_worst": _number(times.max()),
    }


def uninformative(share: float, error: float | None) -> bool:
    """True if an interval of `error` around a share, clipped to [0, 1], is all of [0, 1]."""
    return error is None or not error < max(share, 1 - share)


def interval_words(low: float, high: float, *, lower: str, upper: str) -> str:
    """The interval of a share in words."""
    # An end at 0 or 1 holds for every share: only the other one is information.
    if low <= 0 < 1 <= high:
        return "no information, from 0 to 100 %"
    if low <= 0:
        return f"at most {upper} %"
    if high >= 1:
        return f"at least {lower} %"
    return f"between {lower} and {upper} %"


def _number(value: Any) -> float | None:
    # JSON has no infinity: an infinite error becomes null.
    number = float(value)
    return number if math.isfinite(number) else None
