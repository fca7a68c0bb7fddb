"""The page of a weighted estimate: two sentences, a table of domains, a map of each domain, a bar for every share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import sentence
from mechdesign.base.streams import visible
from mechdesign.evaluation.protection import Protection
from mechdesign.mechanism.mechanism_file import verification_errors
from mechdesign.surveys.document import interval_words
from mechdesign.surveys.evidence import ordered_mechanisms
from mechdesign.surveys.page import (
    MEMBERSHIP,
    MOST_DRAWN,
    cut_name,
    fit_words,
    outward,
    promise_words,
    share_map,
    shared_facts,
)
from mechdesign.surveys.weighted_dataset import check_weighted
from mechdesign.surveys.weighted_sums import NO_ANSWER
from mechdesign.surveys.weighted_words import WeightedDocument
from mechdesign.verification.verify import require_certified
from mechdesign.web.page import Page

_MOST_MAPS = 6  # domains with a map; the bars have all


def weighted_facts(shares: xr.Dataset, mechanisms: Sequence[xr.Dataset]) -> dict[str, Any]:
    """Texts, maps and bars of the page. mechanisms: the one that made the reports, or an empty sequence."""
    ordered = ordered_mechanisms(shares, mechanisms) if mechanisms else []
    with verification_errors():
        checked = [require_certified(mechanism) for mechanism in ordered]
        check_weighted(shares, ordered)
        document = WeightedDocument(estimate=shares)
        words = summary_sentence(document, [verification.protection for verification in checked])
        facts = shared_facts(document, words, proved=bool(ordered))
    return facts | {"maps": _maps(document), "listed": _domains(document)}


def summary_sentence(document: WeightedDocument, mechanisms: Sequence[Protection | None]) -> str:
    """The interval of the largest share that has one, and the protection of reports."""
    attrs, rows = document.estimate.attrs, [row for row in document.areas if row["reason"] is None]
    people = f"{int(attrs['reports']):,} reports"
    if not rows:
        return f"{fit_words(document)}No area has an interval from {people}. {promise_words(document, mechanisms)}"
    row = max(rows, key=lambda row: float(row["share"]))
    wide = 100 * (row["high"] - row["low"])
    low, high = outward(100 * row["low"], wide, up=False), outward(100 * row["high"], wide, up=True)
    ends = sentence(interval_words(row["low"], row["high"], lower=low, upper=high))
    together = ", all intervals of shares together" if attrs["simultaneous"] else ""
    interval = f"{100 * float(attrs['confidence']):g} % interval{together}, {people}"
    whose = "people" if len(document.domains) == 1 else f"the people of domain {cut_name(row['domain'])}"
    among = f" Shares are those of {attrs['population']:,.0f} people." if "population" in attrs else ""
    is_missing = attrs["missing_answers"] == "class" and row["area"] == NO_ANSWER
    where = "gave no answer" if is_missing else f"{MEMBERSHIP[document.nouns.truth]} {cut_name(row['area'])}"
    first = f"{ends} of {whose} {where} ({interval}).{among}"
    return f"{fit_words(document)}{first} {promise_words(document, mechanisms)}"


def _maps(document: WeightedDocument) -> list[dict[str, Any]]:
    """A map of the shares of areas for each of the first domains; empty for nodes and for too many places."""
    shares, domain = document.estimate, document.domain
    if domain.size > MOST_DRAWN or domain.kind == "nodes":
        return []
    label = shares["area_of"].values
    several = len(document.domains) > 1
    return [
        share_map(
            domain,
            np.asarray(shares["share"].values[d])[label],
            "share of people in each area" + (f", {visible(one['domain'])}" if several else ""),
        )
        for d, one in enumerate(document.domains[:_MOST_MAPS])
    ]


def _domains(document: WeightedDocument) -> dict[str, Any]:
    rows = [
        [
            visible(one["domain"]),
            f"{one['persons']:,}",
            f"{one['missing']:,}",
            f"{one['design_effect']:.3f}",
            f"{one['effective_sample']:,.0f}",
        ]
        for one in document.domains
    ]
    head = ["domain", "persons", "missing answers", "design effect", "effective sample"]
    return {"head": head, "rows": rows, "rest": 0}


def weighted_page(shares: xr.Dataset, mechanisms: Sequence[xr.Dataset], *_: object) -> Page:
    """The page of a weighted estimate."""
    return Page(kind="estimate", facts=weighted_facts(shares, mechanisms))
