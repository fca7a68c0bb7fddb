"""Weighted shares as a document, as text, and as files: `mechdesign estimate --weights`, `--by`, `--population`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.spreadsheets import csv_of
from mechdesign.errors import InputError
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.surveys.goodness_of_fit import REFUSED
from mechdesign.surveys.intervals import fewest_effective

KINDS = (".csv", ".json")
_ROWS = ("estimate", "share", "low", "high", "standard_error", "effective")
_DIFFERENCES = ("difference", "difference_low", "difference_high")
_MOST = 200  # lines of a table


def check_weighted_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a suffix that weighted shares are not written in, before any work."""
    if check_target(path, overwrite=overwrite).suffix.lower() not in KINDS:
        message = "must end in .csv or .json with --weights, --by, --missing or --population"
        raise InputError(message, field="output", value=path.name)


def weighted_rows(shares: xr.Dataset) -> list[dict[str, Any]]:
    """One row for each domain and area."""
    names = [name for name in (*_ROWS, *_DIFFERENCES) if name in shares]
    rows = []
    for d, domain in enumerate(shares["domain"].values.tolist()):
        for k, area in enumerate(shares["area"].values.tolist()):
            row = {"domain": domain, "area": area} | {name: _number(shares[name][d, k]) for name in names}
            rows.append(row | {"reason": str(shares["reason"][d, k].item()) or None})
    return rows


def weighted_document(shares: xr.Dataset) -> dict[str, Any]:
    """The domains with their persons, missing answers and design effects, and the rows."""
    names = ("persons", "missing", "design_effect", "effective_sample")
    domains = [
        {"domain": domain, **{name: shares[name][d].item() for name in names}}
        for d, domain in enumerate(shares["domain"].values.tolist())
    ]
    attrs = dict(shares.attrs) | {"simultaneous": bool(shares.attrs["simultaneous"])}
    attrs["population"] = _number(attrs["population"])
    return {**attrs, "domains": domains, "areas": weighted_rows(shares)}


def save_weighted(shares: xr.Dataset, path: Path) -> None:
    """Write the rows as CSV, or the document as JSON."""
    if path.suffix.lower() == ".csv":
        text = csv_of(weighted_rows(shares))
    else:
        text = json.dumps(weighted_document(shares), allow_nan=False, indent=2)
    write_atomically(path, lambda temporary: temporary.write_bytes(text.encode()))


def weighted_words(document: dict[str, Any]) -> Iterator[Block]:
    """The sentences and tables of a document."""
    domains, rows = document["domains"], document["areas"]
    persons, missing = (sum(one[name] for one in domains) for name in ("persons", "missing"))
    confidence = f"{100 * document['confidence']:g} %"
    yield _first_sentence(document, persons, missing)
    if document["fit_p"] < REFUSED:
        p = f"p at most {document['fit_p']:.1e}"
        yield f"The reports do not fit this mechanism ({p}). Do not trust the results below."
    yield TextTable(
        ["domain", "persons", "missing answers", "design effect", "effective sample"],
        [
            [
                one["domain"],
                *(f"{one[name]:,}" for name in ("persons", "missing")),
                f"{one['design_effect']:.3f}",
                f"{one['effective_sample']:,.0f}",
            ]
            for one in domains
        ],
    )
    columns: tuple[str, ...] = ("share", "low", "high", "standard_error")
    heads = ["domain", "area", "share %", "from", "to", "standard error"]
    if "difference" in rows[0]:
        columns, heads = (*columns, *_DIFFERENCES), [*heads, "less all others", "from", "to"]
    yield TextTable(heads, [[row["domain"], row["area"], *(_percent(row[c]) for c in columns)] for row in rows[:_MOST]])
    for row in rows[:_MOST]:
        if row["reason"]:
            yield f"No interval for {row['area']} of {row['domain']}: {row['reason']}."
    if document["simultaneous"]:
        yield f"With {confidence} confidence all intervals of shares hold at once, and so do all those of differences."
    else:
        yield f"Each interval holds with {confidence} confidence. --simultaneous covers all at once."
    yield (
        "Weights are inverse probabilities of asking a person (Horvitz-Thompson). The design effect is the factor by "
        "which unequal weights raise a variance. An interval needs at least "
        f"{fewest_effective(document['z']):.3g} effective reports."
    )


def _first_sentence(document: dict[str, Any], persons: int, missing: int) -> str:
    whom = "infinitely many" if document["population"] is None else f"{document['population']:,.0f}"
    first = f"Shares of {whom} persons, from the answers of {persons:,}"
    if document["missing_answers"] == "class":
        return f"{first}. {missing:,} of these gave no answer. They are a class: shares are those of all persons."
    if missing:
        return f"{first}. {missing:,} more gave no answer and are left out. Shares are those of persons who answer."
    return f"{first}."


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f}"
