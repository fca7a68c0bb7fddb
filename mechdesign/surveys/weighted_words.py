"""Weighted shares as a document, as text, and as files: `mechdesign estimate --weights`, `--by`, `--population`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.base.spreadsheets import csv_of, write_workbook
from mechdesign.errors import InputError
from mechdesign.geo.area_shapes import AreaShapes
from mechdesign.geo.feature_files import write_features
from mechdesign.mechanism.storage import save
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.surveys.document import EstimateDocument, Row
from mechdesign.surveys.export import LAYERS, area_layer, check_layer_target
from mechdesign.surveys.goodness_of_fit import REFUSED
from mechdesign.surveys.intervals import fewest_effective

KINDS = (".csv", ".xlsx", ".json", ".nc", ".html", *LAYERS)
_ROWS = ("estimate", "share", "low", "high", "standard_error", "effective")
_DIFFERENCES = ("difference", "difference_low", "difference_high")
_TOTALS = ("total", "total_low", "total_high")
_PER_DOMAIN = ("persons", "missing", "design_effect", "effective_sample")
_ATTRIBUTES = ("problem", "reports", "reports_sha256", "missing_answers", "confidence", "z", "fit_statistic", "fit_p")
_MOST = 200  # lines of a table


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedDocument(EstimateDocument):
    """A weighted estimate as the terminal, the page, CSV, JSON and layers show it."""

    @cached_property
    def areas(self) -> list[Row]:
        """One row per domain and area: estimate, interval, difference, and the reason if it has no interval."""
        shares, attrs = self.estimate, self.estimate.attrs
        names = [name for name in (*_ROWS, *_DIFFERENCES, *_TOTALS) if name in shares]
        reasons, rows = json.loads(attrs["reasons"]), []
        for d, domain in enumerate(json.loads(attrs["domains"])):
            for k, area in enumerate(json.loads(attrs["areas"])):
                row = {"domain": domain, "area": area} | {name: _number(shares[name][d, k]) for name in names}
                rows.append(row | {"reason": reasons[d][k]})
        return rows

    @cached_property
    def domains(self) -> list[Row]:
        """One row per domain: persons, missing answers, design effect, effective sample."""
        names = json.loads(self.estimate.attrs["domains"])
        return [
            {"domain": domain, **{name: self.estimate[name][d].item() for name in _PER_DOMAIN}}
            for d, domain in enumerate(names)
        ]

    def as_json(self) -> dict[str, Any]:
        attrs = self.estimate.attrs
        document = {name: attrs[name] for name in _ATTRIBUTES} | {"population": attrs.get("population")}
        document |= {"simultaneous": bool(attrs["simultaneous"]), "mechanisms": self.mechanisms}
        return {**document, "domains": self.domains, "areas": self.areas}


def check_weighted_target(path: Path, *, on_earth: bool, system: str, overwrite: bool) -> None:
    """Refuse a suffix that weighted shares are not written in, before any work."""
    suffix = check_target(path, overwrite=overwrite).suffix.lower()
    if suffix not in KINDS:
        message = f"must end in one of {', '.join(KINDS)}"
        raise InputError(message, field="output", value=path.name)
    if suffix == ".xlsx":
        import_optional("openpyxl", "xlsx")
    if suffix in LAYERS:
        check_layer_target(path, on_earth=on_earth, system=system)


def save_weighted(shares: xr.Dataset, path: Path, *, areas: AreaShapes | None, overwrite: bool) -> None:
    """Write the Dataset, the rows as CSV, the document as JSON, or a layer with a feature for every row."""
    document, suffix = WeightedDocument(estimate=shares), path.suffix.lower()
    if suffix == ".nc":
        save(shares, path, overwrite=overwrite)
    elif suffix in LAYERS:
        assert areas is not None
        notes = {name: str(shares.attrs[name]) for name in ("schema", "reports_sha256", "confidence", "fit_p")}
        write_features(area_layer(document.areas, areas, notes), path)
    elif suffix == ".xlsx":
        write_atomically(path, lambda temporary: write_workbook(document.areas, temporary, sheet="mechdesign"))
    else:
        text = csv_of(document.areas) if suffix == ".csv" else json.dumps(document.as_json(), allow_nan=False, indent=2)
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
    totals = _TOTALS if "total" in rows[0] else ()
    heads += ["persons", "from", "to"] if totals else []
    yield TextTable(
        heads,
        [
            [row["domain"], row["area"], *(_percent(row[c]) for c in columns), *(_whole(row[c]) for c in totals)]
            for row in rows[:_MOST]
        ],
    )
    for row in rows[:_MOST]:
        if row["reason"]:
            yield f"No interval for {row['area']} of {row['domain']}: {row['reason']}."
    if document["simultaneous"]:
        yield f"With {confidence} confidence all intervals of shares hold at once, and so do all those of differences."
    else:
        yield f"Each interval holds with {confidence} confidence. --simultaneous covers all at once."
    yield (
        "Weights are inverse probabilities of asking a person, up to a factor (the estimator of Hájek). The design "
        "effect is the factor by which unequal weights raise a variance. An interval needs at least "
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


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
