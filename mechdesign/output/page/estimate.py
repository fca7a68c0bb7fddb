"""The page of an estimate: two sentences for a board, the map, a bar for every area, and what the browser proves.

It carries the file of the estimate whole; beside it, where they are given and small enough, the mechanisms that made
the reports as their own pages carry them, and the weights (M, K) of every bound, so that a browser finds the intervals
again from the counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.base.units import lengths
from mechdesign.mechanism.protection import Protection
from mechdesign.mechanism.stored import read, stored_domain
from mechdesign.output.page.contents import FORMAT, MOST_MASSES, Arrays, degrees_of, file_part, mechanism_part
from mechdesign.output.page.facts import MOST_LISTED, exact, mechanism_facts, said_of
from mechdesign.output.sentences import Saying, protects
from mechdesign.output.tables.shares import share_rows
from mechdesign.utility.population.evidence import bound_weights, check_estimate, in_order
from mechdesign.utility.population.goodness_of_fit import REFUSED
from mechdesign.verification.verify import certified

MOST_WEIGHTS = 1_000_000  # of bounds in a page: 8 MB
_LONGEST = 60  # characters of an area's name in a sentence
_FIGURES = (
    *("reports", "confidence", "z", "interval", "log_likelihood", "gap"),
    *("fit_statistic", "fit_freedom", "fit_p", "reports_sha256"),
)  # that the browser finds again, or bounds
_OF_THE_MAXIMUM = ("gap", "fit_statistic")  # which it does not where the distribution is another


def estimate_contents(
    estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]
) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    """The object, the bytes and the facts of a page of an estimate; mechanisms, all that made its reports, or none.

    Raises: InputError for other mechanisms; VerificationError for one that `verify` does not certify, and for an
        estimate that does not follow from them; ValueError, TypeError or KeyError for a file that contradicts itself.
    """
    arrays, domain = Arrays(), stored_domain(estimate)
    reports = sum(each["reports"] for each in json.loads(estimate.attrs["mechanisms"]))
    if reports != estimate.sizes["report"]:
        raise ValueError(f"the mechanisms have {reports} reports, the counts {estimate.sizes['report']}")
    ordered = in_order(estimate, mechanisms) if mechanisms else []
    checked = [certified(mechanism) for mechanism in ordered]
    check_estimate(estimate, ordered)
    stored = [read(mechanism) for mechanism in ordered]
    parts = file_part(estimate, arrays)
    masses = reports * domain.size
    weights = bound_weights(estimate, ordered) if ordered else None
    kept = ordered and masses <= MOST_MASSES
    beside = {}
    if kept and weights is not None and weights[0].size <= MOST_WEIGHTS:
        names = ("weights",) if weights[0] is weights[1] else ("weights_low", "weights_high")
        beside = {name: arrays.place(values) for name, values in zip(names, weights, strict=False)}
    degrees = degrees_of(domain, domain.points)
    if degrees is not None:
        beside["degrees"] = arrays.place(degrees)
    fit = float(estimate.attrs["fit_p"])
    saying, area = board_saying(estimate, [found.protection for found in checked], fit)
    carried = [
        mechanism_part(held, found, arrays) | {"facts": mechanism_facts(held, found)}
        for held, found in zip(stored, checked, strict=True)
        if kept
    ]
    contents = {
        "format": FORMAT,
        "kind": "shares",
        "complete": True,
        **parts,
        "beside": beside,
        "network": any(held.metric.network for held in stored),
        "saying": {**saying.as_dict(), "area": area},
        "verification": {},
        "comparison": None,
        "refused_below": REFUSED,
        "fit_p": fit,
        "given_mechanisms": len(ordered),
        "mechanisms": carried,
    }
    return contents, arrays.packed(), _facts(estimate, saying)


def board_saying(
    estimate: xr.Dataset, mechanisms: Sequence[Protection | None], fit: float
) -> tuple[Saying, int | None]:
    """The interval of the largest share that has one, and what reports protect; fit, the p value of the test of fit.

    Returns: them, and the number of the area that the first speaks of; None where no area has an interval.
    """
    attrs, rows = estimate.attrs, share_rows(estimate)
    people = f"{int(attrs['reports']):,}"
    values: dict[str, float] = {"reports": int(attrs["reports"])}
    texts = {"reports": people}
    with_one = [k for k, row in enumerate(rows) if row["reason"] is None]
    area = max(with_one, key=lambda k: rows[k]["share"], default=None)
    if area is not None:
        low, high = 100 * rows[area]["low"], 100 * rows[area]["high"]
        values |= {"low": low, "high": high, "confidence": 100 * float(attrs["confidence"])}
        texts |= {"low": outward(low, high - low, up=False), "high": outward(high, high - low, up=True)}
        texts |= {"confidence": f"{values['confidence']:g}", "area": _cut(rows[area]["area"])}
        together = ", all areas together" if attrs["simultaneous"] else ""
        first = "Between {low} % and {high} % of people were in {area} ({confidence} % interval%s, {reports} reports)."
        first = first.replace("%s", together)
    elif rows:
        first = "No area's share can be told with an interval from these {reports} reports."
    else:
        first = f"{{reports}} reports tell how people were distributed over {estimate.sizes['secret']:,} places."
    if fit < REFUSED:
        which = "this mechanism" if len(json.loads(attrs["mechanisms"])) == 1 else "these mechanisms"
        first = f"Do not trust these shares, the reports cannot have come from {which}. {first}"
    promises = [protects(protection) for protection in mechanisms if protection is not None]
    promised = []
    for k, said in enumerate(promises):
        ending, who = "", "Every report"
        if len(promises) > 1:
            ending, who = f"_{k}", f"Mechanism {k + 1} ({json.loads(attrs['mechanisms'])[k]['made']:,} reports)"
        words = f"{who} {said.template[0].lower()}{said.template[1:]}"
        for name in said.values:
            words = words.replace(f"{{{name}}}", f"{{{name}{ending}}}")
        values |= {f"{name}{ending}": value for name, value in said.values.items() if f"{{{name}}}" in said.template}
        texts |= {f"{name}{ending}": text for name, text in said.texts.items()}
        promised.append(words)
    second = " ".join(promised) or "What a report gives away at most stands in the claim below."
    return Saying(template=f"{first} {second}", values=values, texts=texts), area


def outward(percent: float, wide: float, *, up: bool) -> str:
    """An end of an interval of `wide` points, rounded outwards to a step that is small against it, at most 1 point."""
    places = 0 if wide >= 3 else min(12, -math.floor(math.log10(max(wide, 1e-12) / 3)))
    shifted = percent * 10**places
    near = round(shifted)
    whole = (
        near if abs(shifted - near) <= 1e-9 * max(1, abs(near)) else math.ceil(shifted) if up else math.floor(shifted)
    )
    return f"{whole / 10**places:.{places}f}"


def _facts(estimate: xr.Dataset, saying: Saying) -> dict[str, Any]:
    attrs, domain = estimate.attrs, stored_domain(estimate)
    mechanisms = json.loads(attrs["mechanisms"])
    told = {f"mechanism {k + 1}" if len(mechanisms) > 1 else "mechanism": each for k, each in enumerate(mechanisms)}
    return said_of(
        estimate,
        "estimate",
        "",
        **{
            name: f"{visible(each['program'])}, seal of contents {visible(each['sha256'])}"
            for name, each in told.items()
        },
    ) | {
        "sentence": visible(saying.sentence),
        "subtitle": f"{int(attrs['reports']):,} reports, {domain.size:,} places"
        + (f", {estimate.sizes['area']:,} areas" if "area" in estimate.sizes else ""),
        "unit": lengths(domain.unit),
        "loss_unit": "",
        "same_places": True,
        "domain": json.loads(domain.describe_json()),
        "claims": [visible(each["claim"]) for each in mechanisms],
        "figures": [
            {"key": name, "name": name.replace("_", " "), "text": exact(attrs[name]), "unit": ""}
            for name in _FIGURES
            if name in attrs and not (name in _OF_THE_MAXIMUM and attrs["method"].startswith("expectation"))
        ],
        "listed": _listed(estimate),
    }


def _listed(estimate: xr.Dataset) -> dict[str, Any]:
    """The areas, largest share first; without areas the likeliest places."""
    if not (rows := share_rows(estimate)):
        p = estimate["distribution"].values
        order = np.argsort(-p, kind="stable")[:MOST_LISTED].tolist()
        told = [[str(u), f"{p[u]:.3g}"] for u in order]
        return {"head": ["place", "probability"], "rows": told, "rest": len(p) - len(order)}
    rows.sort(key=lambda row: -1.0 if row["share"] is None else row["share"], reverse=True)
    columns = ("share", "low", "high", "standard_error")
    return {
        "head": ["area", "share %", "from", "to", "standard error", "why there is no interval"],
        "rows": [
            [visible(row["area"]), *(_percent(row[name]) for name in columns), visible(row["reason"] or "")]
            for row in rows
        ],
        "rest": 0,
    }


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f}"


def _cut(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
