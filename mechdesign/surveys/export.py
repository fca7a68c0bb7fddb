"""Plans and estimates as files, by suffix.

| suffix | content |
|---|---|
| .nc | the sealed Dataset, whole |
| .csv | a plan: a row a design and area; an estimate: a row an area, or without areas a row a cell |
| .json | the document of `--json` |
| .geojson | an estimate on Earth: a feature a cell, its square in degrees (RFC 7946), or a point where it has none |

A file next to a CSV table, FILE.csv-metadata.json, names the reports and the mechanisms.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.spreadsheets import csv_of, metadata_of
from mechdesign.errors import InputError
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.storage import save
from mechdesign.output.text_tables import plain
from mechdesign.surveys.document import EstimateDocument, PlanDocument
from mechdesign.surveys.plan import PLAN

KINDS = (".nc", ".csv", ".json", ".geojson")
_DIGITS = 2  # decimals of degrees beyond those that name a cell: corners of neighbours meet


def check_shares_target(path: str | Path, *, overwrite: bool = False, on_earth: bool = True) -> Path:
    """The path to write a plan or an estimate to. Refuses other suffixes, and GeoJSON without positions on Earth."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(f"must end in one of {', '.join(KINDS)}", field="output", value=target.name)
    if target.suffix.lower() == ".geojson" and not on_earth:
        message = "GeoJSON is in degrees, and the mechanism does not say where on Earth it is, or this is a plan"
        raise InputError(message, field="output", value=target.name)
    if target.suffix.lower() == ".csv":
        check_target(metadata_of(target), overwrite=overwrite)
    return target


def save_shares(result: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a plan or an estimate, atomically."""
    planned = result.attrs["schema"] == PLAN.name
    document = PlanDocument(planned=result) if planned else EstimateDocument(estimate=result)
    domain = stored_domain(result)
    target = check_shares_target(path, overwrite=overwrite, on_earth=domain.plane is not None and not planned)
    suffix = target.suffix.lower()
    if suffix == ".nc":
        return save(result, target, overwrite=overwrite)
    if suffix == ".csv":
        rows = document.areas if isinstance(document, PlanDocument) else document.areas or document.cells
        text = csv_of(rows)
        metadata = json.dumps({"url": target.name, **_provenance(result)}, indent=2)
        write_atomically(metadata_of(target), lambda temporary: temporary.write_bytes(metadata.encode()))
    elif suffix == ".json":
        text = json.dumps(document.as_json(), allow_nan=False, indent=2)
    else:
        assert isinstance(document, EstimateDocument)
        text = json.dumps(_features(document), allow_nan=False)
    write_atomically(target, lambda temporary: temporary.write_bytes(text.encode()))
    return target


def _provenance(result: xr.Dataset) -> dict[str, Any]:
    attrs = result.attrs
    names = ("schema", "problem", "reports", "confidence", "simultaneous", "fit_p", "reports_sha256")
    provenance = {name: plain(attrs[name]) for name in names if name in attrs}
    if "mechanisms" in attrs:
        provenance["mechanism_seals"] = [record["sha256"] for record in json.loads(attrs["mechanisms"])]
    return provenance


def _features(document: EstimateDocument) -> dict[str, Any]:
    """One feature a cell, counter-clockwise from its lower left corner; a point if places are not cells."""
    domain = document.domain
    assert domain.plane is not None
    half = np.zeros(2) if domain.cell is None else np.asarray(domain.cell) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * half
    around = (domain.points[:, None, :] + corners).reshape(-1, 2)
    # Rounded, so that the corners that neighbouring cells share are equal numbers.
    digits = domain.plane.decimals(domain.spacing) + _DIGITS
    degrees = np.round(np.column_stack(domain.plane.backward(around)), digits).reshape(-1, 5, 2).tolist()
    areas = {row["area"]: row for row in document.areas}
    features = []
    for ring, cell in zip(degrees, document.cells, strict=True):
        area = areas.get(cell.get("area", ""), {})
        properties: dict[str, Any] = {name: cell[name] for name in ("cell", "probability", "area") if name in cell}
        properties |= {name: area[name] for name in ("estimate", "share", "low", "high", "reason") if name in area}
        geometry: dict[str, Any] = {"type": "Polygon", "coordinates": [ring]}
        if domain.cell is None:
            geometry = {"type": "Point", "coordinates": ring[0]}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    return {"type": "FeatureCollection", "features": features}
