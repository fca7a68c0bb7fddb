"""Plans and estimates as rows and documents: what the terminal, CSV and JSON say of `plan` and `estimate`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.mechanism.claim import stored_domain
from mechdesign.problem.domain import AXES

Row = dict[str, Any]

_ESTIMATED = ("estimate", "share", "low", "high", "standard_error", "effective", "bias", "likelihood_share")
_COMPARED = ("against_estimate", "against_share", "difference", "difference_low", "difference_high")
_PLANNED = ("deviation", "standard_error", "error", "people", "fewest", "bias")


def plan_rows(planned: xr.Dataset) -> list[Row]:
    """A row for every design and area: share, standard error, error and people, beside those without privacy."""
    areas, designs = json.loads(planned.attrs["areas"]), json.loads(planned.attrs["designs"])
    without = planned["deviation_without"].values / math.sqrt(planned.attrs["reports"])
    rows = []
    for d, design in enumerate(designs):
        for k, area in enumerate(areas):
            row = {"design": design["name"], "area": area, "share": _number(planned["share"][k])}
            row |= {name: _number(planned[name][d, k]) for name in _PLANNED}
            row |= {"error_without": planned.attrs["z"] * float(without[k])}
            rows.append(row | {"people_without": _number(planned["people_without"][k])})
    return rows


def plan_document(planned: xr.Dataset) -> dict[str, Any]:
    """A plan as one document: what was asked, the worst area of every design, and the rows."""
    designs = json.loads(planned.attrs["designs"])
    return {
        "problem": planned.attrs["problem"],
        "people": int(planned.attrs["reports"]),
        "wanted_error": float(planned.attrs["wanted_error"]),
        "confidence": float(planned.attrs["confidence"]),
        "simultaneous": bool(planned.attrs["simultaneous"]),
        "people_without": _number(planned["people_without"].max()),
        "designs": [design | worst_of(planned, d) for d, design in enumerate(designs)],
        "areas": plan_rows(planned),
    }


def worst_of(planned: xr.Dataset, design: int) -> Row:
    """What a design of a plan gives its worst area, and how many times the people without privacy it takes."""
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
    """Whether an interval of `error` about a share, cut to 0 and 1, is all of it: no more than is known beforehand."""
    return error is None or not error < max(share, 1 - share)


def interval_words(low: float, high: float, *, lower: str, upper: str) -> str:
    """The interval of a share in words, with its ends as they are written: of one that reaches 0 or 1 the other end."""
    if low <= 0 < 1 <= high:
        return "no more than is known beforehand"
    if low <= 0:
        return f"at most {upper} %"
    if high >= 1:
        return f"at least {lower} %"
    return f"between {lower} and {upper} %"


def share_rows(estimate: xr.Dataset) -> list[Row]:
    """A row for every area of an estimate, with the reason where there is no interval; none without areas."""
    if "areas" not in estimate.attrs:
        return []
    names, reasons = json.loads(estimate.attrs["areas"]), json.loads(estimate.attrs["reasons"])
    columns = [name for name in (*_ESTIMATED, *_COMPARED) if name in estimate]
    rows = [
        {"area": area, **{name: _number(estimate[name][k]) for name in columns}, "reason": reasons[k]}
        for k, area in enumerate(names)
    ]
    for row, reason in zip(rows, json.loads(estimate.attrs.get("difference_reasons", "[]")), strict=False):
        row["difference_reason"] = reason
    return rows


def cell_rows(estimate: xr.Dataset) -> list[Row]:
    """A row for every secret: its coordinates, degrees too on Earth, its probability and the name of its area."""
    domain = stored_domain(estimate)
    names = json.loads(estimate.attrs.get("areas", "[]"))
    columns: dict[str, list[Any]] = dict(zip(AXES, domain.points.T.tolist(), strict=False))
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


def estimate_document(estimate: xr.Dataset) -> dict[str, Any]:
    """An estimate as one document: attributes in their types, areas and cells."""
    attrs = dict(estimate.attrs)
    for name in ("areas", "reasons", "difference_reasons", "domain", "versions"):
        attrs.pop(name, None)
    attrs["mechanisms"] = json.loads(attrs["mechanisms"])
    return {**attrs, "areas": share_rows(estimate), "cells": cell_rows(estimate)}


def _number(value: Any) -> float | None:
    """A double, None where it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None
