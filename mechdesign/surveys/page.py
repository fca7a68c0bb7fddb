"""The page of an estimate, without scripts: two sentences, maps of cells and areas, a bar for every area."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Vector
from mechdesign.base.formatting import number, sentence
from mechdesign.base.streams import visible
from mechdesign.evaluation.protection import Protection
from mechdesign.mechanism.mechanism_file import stored_domain, verification_errors
from mechdesign.output.sentences import protection_sentence
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import words_of
from mechdesign.surveys.document import EstimateDocument, interval_words
from mechdesign.surveys.evidence import check_estimate, ordered_mechanisms
from mechdesign.surveys.goodness_of_fit import REFUSED
from mechdesign.verification.verify import require_certified
from mechdesign.web.contents import MOST_LISTED
from mechdesign.web.identity import exact, identity_of
from mechdesign.web.page import Page

_LONGEST = 60  # characters of an area's name in a sentence
MOST_DRAWN = 20_000  # places of a map
_WIDE = 1000.0  # of a map, in its own units
_FIGURES = (
    *("reports", "confidence", "z", "log_likelihood", "gap"),
    *("population", "fit_statistic", "fit_freedom", "fit_p", "reports_sha256"),
)
# Every other stop of web/browser/view/colours.js, because this page runs no script.
STOPS = ((0, 32, 77), (55, 71, 107), (113, 108, 113), (169, 151, 117), (255, 234, 70))


# Its figures are recomputed from the counts, and from the mechanisms if given, before the page is written.
def estimate_facts(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> dict[str, Any]:
    """Texts, maps and bars of the page. mechanisms: all that made the reports, or an empty sequence."""
    ordered = ordered_mechanisms(estimate, mechanisms) if mechanisms else []
    with verification_errors():
        checked = [require_certified(mechanism) for mechanism in ordered]
        check_estimate(estimate, ordered)
        document = EstimateDocument(estimate=estimate)
        sentence = summary_sentence(document, [verification.protection for verification in checked])
        facts = shared_facts(document, sentence, proved=bool(ordered))
    maps = _maps(estimate, document.domain)
    return facts | {"maps": maps, "listed": None if document.areas else _likeliest(estimate)}


MEMBERSHIP = {"position": "were in", "value": "had a value in", "class": "were in the class"}


def summary_sentence(document: EstimateDocument, mechanisms: Sequence[Protection | None]) -> str:
    """The interval of the largest share that has one, and the protection of reports."""
    attrs, rows, words = document.estimate.attrs, document.areas, document.nouns
    people = f"{int(attrs['reports']):,}"
    with_one = [k for k, row in enumerate(rows) if row["reason"] is None]
    area = max(with_one, key=lambda k: rows[k]["share"], default=None)
    if area is not None:
        row, share = rows[area], 100 * (rows[area]["high"] - rows[area]["low"])
        low, high = outward(100 * row["low"], share, up=False), outward(100 * row["high"], share, up=True)
        together = ", all areas together" if attrs["simultaneous"] else ""
        interval = f"{100 * float(attrs['confidence']):g} % interval{together}, {people} reports"
        ends = interval_words(row["low"], row["high"], lower=low, upper=high)
        if row["low"] > 0 and row["high"] < 1:
            ends = f"between {low} % and {high} %"
        first = f"{sentence(ends)} of people {MEMBERSHIP[words.truth]} {cut_name(row['area'])} ({interval})."
        if row["low"] <= 0 < 1 <= row["high"]:
            first = f"The reports give no information about {cut_name(row['area'])}, the largest share ({interval})."
    elif rows:
        first = f"No area has an interval from these {people} reports."
    else:
        first = (
            f"The distribution of people over {document.domain.size:,} {words.many}, estimated from {people} reports."
        )
    return f"{fit_words(document)}{first} {promise_words(document, mechanisms)}"


def fit_words(document: EstimateDocument) -> str:
    """A warning in front of the first sentence where the reports do not fit, else nothing."""
    is_misfit = float(document.estimate.attrs["fit_p"]) < REFUSED
    return f"Do not trust these shares: the reports do not fit {document.makers}. " if is_misfit else ""


def promise_words(document: EstimateDocument, mechanisms: Sequence[Protection | None]) -> str:
    """The protection that every report has."""
    promises = [protection_sentence(protection) for protection in mechanisms if protection is not None]
    totals = [f"{record['made']:,}" for record in document.mechanisms]
    who = (
        [f"Mechanism {k + 1} ({count} reports)" for k, count in enumerate(totals)]
        if len(promises) > 1
        else ["Every report"]
    )
    second = " ".join(f"{one} {words[0].lower()}{words[1:]}" for one, words in zip(who, promises, strict=False))
    return second or "The claim below bounds how much a report reveals."


def outward(percent: float, wide: float, *, up: bool) -> str:
    """An end of an interval of `wide` points, rounded outwards to a step of at most a third of it, and 1 point."""
    # Outwards, so that the printed interval contains the computed one.
    places = 0 if wide >= 3 else min(12, -math.floor(math.log10(max(wide, 1e-12) / 3)))
    shifted = percent * 10**places
    nearest = round(shifted)
    # A number that is exact up to rounding is not moved by a whole step.
    whole = (
        nearest
        if abs(shifted - nearest) <= 1e-9 * max(1, abs(nearest))
        else math.ceil(shifted)
        if up
        else math.floor(shifted)
    )
    return f"{whole / 10**places:.{places}f}"


def shared_facts(document: EstimateDocument, sentence: str, *, proved: bool) -> dict[str, Any]:
    """The facts of the page but for its maps and its list."""
    estimate, domain, mechanisms = document.estimate, document.domain, document.mechanisms
    attrs = estimate.attrs
    by_name = {
        f"mechanism {k + 1}" if len(mechanisms) > 1 else "mechanism": record for k, record in enumerate(mechanisms)
    }
    made_by = {name: f"{visible(record['program'])}, {visible(record['sha256'])}" for name, record in by_name.items()}
    rows = sorted(document.areas, key=lambda row: -1.0 if row["share"] is None else row["share"], reverse=True)
    return identity_of(estimate, "estimate", **made_by) | {
        "sentence": visible(sentence),
        "subtitle": f"{int(attrs['reports']):,} reports, {domain.size:,} {document.nouns.many}"
        + (f", {estimate.sizes['area']:,} areas" if "area" in estimate.sizes else ""),
        "verdict": "Recomputed when this page was made",
        "saying": f"From the counts {'and the mechanisms' if proved else 'alone: no mechanism was given'}.",
        "fit": _fit(document),
        "bars": _bars(rows, 100 * float(attrs["confidence"]) if rows else 0.0),
        "reasons": [f"{_name_of(row)}: {visible(row['reason'])}." for row in rows if row["reason"]],
        "claims": [visible(record["claim"]) for record in mechanisms],
        "figures": [
            {"key": name, "name": name.replace("_", " "), "text": exact(attrs[name]), "unit": ""}
            for name in _FIGURES
            if name in attrs
        ],
    }


def _fit(document: EstimateDocument) -> dict[str, Any]:
    whose, texts = document.makers, []
    for which, p in document.fits.items():
        bound = number(max(p, 1e-300), up=True, digits=2)
        if p < REFUSED:
            texts.append(f"{which} do not fit {whose} (p at most {bound}). Do not trust the shares.")
        elif p < 0.05:
            texts.append(f"{which} fit {whose} poorly (p at most {bound}).")
        else:
            texts.append(f"{which} are consistent with {whose} (test of fit: p at most {bound}).")
    return {"text": " ".join(texts), "refused": any(p < REFUSED for p in document.fits.values())}


def _maps(estimate: xr.Dataset, domain: Domain) -> list[dict[str, Any]]:
    """Maps of the distribution and of the shares of areas; empty for nodes and for too many places."""
    if domain.size > MOST_DRAWN or domain.kind == "nodes":
        return []
    p = estimate["distribution"].values
    maps = [share_map(domain, p, f"share of people at each {words_of(domain).report_noun}")]
    if "area_of" in estimate:
        maps.append(
            share_map(domain, estimate["share"].values[estimate["area_of"].values], "share of people in each area")
        )
    return maps


def share_map(domain: Domain, values: Vector, words: str) -> dict[str, Any]:
    """A map with one square per cell, or a smaller one per point; places on a line lie in a row."""
    points = np.zeros((domain.size, 2))
    points[:, : min(domain.dimension, 2)] = domain.points[:, :2]
    side = np.full(2, 0.7 * domain.spacing)
    if domain.cell is not None:
        side = np.array([domain.cell[0], domain.cell[min(domain.dimension, 2) - 1]])
    size = np.ptp(points, axis=0) + side
    scale = _WIDE / size.max()
    (wide, tall), (right, high) = scale * side, scale * size
    known = values[np.isfinite(values)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    corners = scale * (points - points.min(axis=0))
    return {
        "words": f"{words}, {_percent(least)} to {_percent(most)}",
        "wide": f"{right:.6g}",
        "high": f"{high:.6g}",
        "cell": (f"{wide:.6g}", f"{tall:.6g}"),
        # Rows of an image run downwards, north is up: y is turned.
        "cells": [
            (f"{x:.6g}", f"{high - y - tall:.6g}", _shade(value, least, most))
            for (x, y), value in zip(corners.tolist(), values.tolist(), strict=True)
        ],
    }


def _shade(value: float, least: float, most: float) -> str:
    if not math.isfinite(value):
        return "#8888"
    position = (len(STOPS) - 1) * ((value - least) / (most - least) if most > least else 0.5)
    k = min(int(position), len(STOPS) - 2)
    return "#" + "".join(
        f"{round(a + (b - a) * (position - k)):02x}" for a, b in zip(STOPS[k], STOPS[k + 1], strict=True)
    )


def _bars(rows: list[dict[str, Any]], confidence: float) -> dict[str, Any] | None:
    """The table of areas: headings, and per area its figures, and its bar and interval in percent of the longest."""
    if not rows:
        return None
    end = max([row["high"] or row["share"] or 0.0 for row in rows]) or 1.0
    names = ("difference", "likelihood_share", "against_estimate", "total")
    compared, likely, other, counted = (name in rows[0] for name in names)
    heads = ["estimate", "share", f"{confidence:g} % interval", "standard error", "effective reports"]
    heads += ["most likely"] * likely + ["other period"] * other
    heads += ["difference" if other else "less all others"] * compared + ["persons"] * counted
    body = []
    for row in rows:
        bounded = row["reason"] is None
        columns = [_percent(row["estimate"]), _percent(row["share"])]
        columns.append(_interval(row["low"], row["high"]) if bounded else "none")
        columns += [_percent(row["standard_error"]), number(row["effective"], up=False, digits=3)]
        columns += [_percent(row[name]) for name in ("likelihood_share", "against_estimate") if name in row]
        if compared:
            known = row["difference_low"] is not None
            between = f"{_percent(row['difference'])} ({_range(row, 'difference_low', 'difference_high')})"
            columns.append(between if known else "none")
        if counted:
            known = row["total_low"] is not None
            between = f"{row['total']:,.0f} ({row['total_low']:,.0f} to {row['total_high']:,.0f})" if known else "none"
            columns.append(between)
        ends = {"low": 100 * row["low"] / end, "high": 100 * row["high"] / end} if bounded else {}
        bar = {"share": 100 * min(max(row["share"] or 0.0, 0.0), end) / end} | ends
        body.append({"name": _name_of(row), "columns": columns, "bar": {k: f"{v:.4g}%" for k, v in bar.items()}})
    return {"heads": heads, "rows": body, "end": _percent(end)}


def _name_of(row: dict[str, Any]) -> str:
    return visible(f"{row['domain']}: {row['area']}" if "domain" in row else row["area"])


def _interval(low: float, high: float) -> str:
    """The interval of a share, of which it has no part below 0 or above 1; of one that reaches 0 or 1 the other end."""
    low, high = max(low, 0.0), min(high, 1.0)
    if (low <= 0) != (high >= 1):
        return f"at most {_percent(high)}" if low <= 0 else f"at least {_percent(low)}"
    return f"{_percent(low)} to {_percent(high)}"


def _range(row: dict[str, Any], low: str, high: str) -> str:
    return f"{_percent(row[low])} to {_percent(row[high])}"


def _likeliest(estimate: xr.Dataset) -> dict[str, Any]:
    p = estimate["distribution"].values
    order = np.argsort(-p, kind="stable")[:MOST_LISTED].tolist()
    domain = stored_domain(estimate)
    rows = [[visible(domain.name_of(u)), f"{p[u]:.3g}"] for u in order]
    return {
        "head": [words_of(domain).report_noun, "probability"],
        "rows": rows,
        "rest": len(p) - len(order),
    }


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def cut_name(name: str) -> str:
    """A name of an area as a sentence has it."""
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def estimate_page(estimate: xr.Dataset, mechanisms: Sequence[xr.Dataset], *_: object) -> Page:
    """The page of an estimate."""
    return Page(kind="estimate", facts=estimate_facts(estimate, mechanisms))
