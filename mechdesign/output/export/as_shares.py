"""Plans and estimates as files, by suffix.

| suffix | what is written |
|---|---|
| .nc | the sealed Dataset, whole |
| .csv | a plan: a row a design and area; an estimate: a row an area, or without areas a row a cell |
| .json | the document of `--json` |
| .geojson | an estimate on Earth: a feature a cell, its square in degrees (RFC 7946), or a point where it has none |

Comments before the header of a CSV file name the reports and the mechanisms; features have the properties cell,
probability, area, share, low, high and reason.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.spreadsheets import cells_of, comment_of
from mechdesign.errors import InputError
from mechdesign.mechanism.storage.files import check_target, save, write_atomically
from mechdesign.mechanism.stored import stored_domain
from mechdesign.output.tables.shares import cell_rows, estimate_document, plan_document, plan_rows, share_rows
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.population.plan import PLAN

KINDS = (".nc", ".csv", ".json", ".geojson")
_DIGITS = 2  # decimals of degrees beyond those that name a cell: corners of neighbours meet


def check_shares_target(path: str | Path, *, overwrite: bool = False, on_earth: bool = True) -> Path:
    """The path to write a plan or an estimate to. Raises: InputError for another suffix, or GeoJSON off the Earth."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(
            "unknown kind of file", field="output", value=target.name, remedy="use one of " + ", ".join(KINDS)
        )
    if target.suffix.lower() == ".geojson" and not on_earth:
        raise InputError(
            "GeoJSON is in degrees, and the mechanism does not say where on Earth it is, or this is a plan",
            field="output",
            value=target.name,
            remedy="write .csv, .json or .nc",
        )
    return target


def save_shares(result: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a plan or an estimate, atomically.

    Raises: as `check_shares_target`; FileFormatError if the disk refuses.
    """
    planned = result.attrs["schema"] == PLAN.name
    domain = stored_domain(result)
    target = check_shares_target(path, overwrite=overwrite, on_earth=domain.plane is not None and not planned)
    suffix = target.suffix.lower()
    if suffix == ".nc":
        return save(result, target, overwrite=overwrite)
    if suffix == ".csv":
        rows = plan_rows(result) if planned else share_rows(result) or cell_rows(result)
        write_atomically(target, lambda temporary: _write_csv(temporary, rows, _comments(result)))
        return target
    if suffix == ".json":
        document = plan_document(result) if planned else estimate_document(result)
    else:
        document = _features(result, domain)
    text = json.dumps(document, allow_nan=False, indent=None if suffix == ".geojson" else 2) + "\n"

    def write(temporary: Path) -> None:
        temporary.write_bytes(text.encode())

    write_atomically(target, write)
    return target


def _comments(result: xr.Dataset) -> dict[str, Any]:
    attrs = result.attrs
    kept = ("schema", "problem", "reports", "confidence", "simultaneous", "interval", "fit_p", "reports_sha256")
    told = {name: attrs[name] for name in kept if name in attrs}
    if "mechanisms" in attrs:
        told["mechanism_seals"] = ", ".join(each["sha256"] for each in json.loads(attrs["mechanisms"]))
    return told


def _write_csv(path: Path, rows: list[dict[str, Any]], comments: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        for name, value in comments.items():
            stream.write(f"# {name}: {comment_of(str(value))}\n")
        writer = csv.DictWriter(stream, list(cells_of(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(cells_of, rows))


def _features(estimate: xr.Dataset, domain: Domain) -> dict[str, Any]:
    """One feature a cell, counter-clockwise from its lower left corner; a point where places are no cells."""
    assert domain.plane is not None
    half = np.zeros(2) if domain.cell is None else np.asarray(domain.cell) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * half
    around = (domain.points[:, None, :] + corners).reshape(-1, 2)
    kept = domain.plane.decimals(domain.spacing) + _DIGITS
    degrees = np.round(np.column_stack(domain.plane.backward(around)), kept).reshape(-1, 5, 2).tolist()
    areas = {row["area"]: row for row in share_rows(estimate)}
    features = []
    for ring, cell in zip(degrees, cell_rows(estimate), strict=True):
        own = areas.get(cell.get("area", ""), {})
        properties: dict[str, Any] = {name: cell[name] for name in ("cell", "probability", "area") if name in cell}
        properties |= {name: own[name] for name in ("share", "low", "high", "reason") if name in own}
        geometry: dict[str, Any] = {"type": "Polygon", "coordinates": [ring]}
        if domain.cell is None:
            geometry = {"type": "Point", "coordinates": ring[0]}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    return {"type": "FeatureCollection", "features": features}
