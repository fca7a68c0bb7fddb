"""Plans and estimates as files, by suffix.

| suffix | content |
|---|---|
| .nc | the sealed Dataset, whole |
| .csv | a plan: a row a design and area; an estimate: a row an area, or without areas a row a cell |
| .xlsx | the same rows, as a workbook of Excel |
| .json | the document of `--json` |
| .geojson .gpkg .parquet | an estimate on Earth as a layer of a map: a feature an area, or a cell |

A feature of an area has the polygon of the file that the area came from, and its properties. Other areas, and the
cells in no polygon, are unions of cells. A feature of a cell is its square, or a point where it has none.

A file next to a CSV table, FILE.csv-metadata.json, names the reports and the mechanisms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.base.spreadsheets import csv_of, metadata_of, write_workbook
from mechdesign.errors import InputError
from mechdesign.geo.area_shapes import AreaShapes
from mechdesign.geo.feature_files import FeatureLayer, check_feature_file, write_features
from mechdesign.geo.shapes import DEGREES, cell_shapes
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.storage import save
from mechdesign.output.text_tables import plain
from mechdesign.surveys.document import EstimateDocument, PlanDocument
from mechdesign.surveys.plan import PLAN

LAYERS = (".geojson", ".gpkg", ".parquet")
KINDS = (".nc", ".csv", ".xlsx", ".json", *LAYERS)


def check_shares_target(
    path: str | Path, *, overwrite: bool = False, on_earth: bool = True, system: str = DEGREES
) -> Path:
    """The path to write a plan or an estimate to. Refuses other suffixes, and layers without positions on Earth."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(f"must end in one of {', '.join(KINDS)}", field="output", value=target.name)
    if target.suffix.lower() in LAYERS:
        check_layer_target(target, on_earth=on_earth, system=system)
    if target.suffix.lower() == ".xlsx":
        import_optional("openpyxl", "xlsx")
    if target.suffix.lower() == ".csv":
        check_target(metadata_of(target), overwrite=overwrite)
    return target


def check_layer_target(target: Path, *, on_earth: bool, system: str = DEGREES) -> None:
    """Refuse a layer without positions on Earth or in a system that it cannot have, and a format without packages."""
    if not on_earth:
        message = "a layer is in degrees, and the mechanism does not say where on Earth it is, or this is a plan"
        raise InputError(message, field="output", value=target.name)
    check_feature_file(target, system)


def save_shares(
    result: xr.Dataset,
    path: str | Path,
    *,
    areas: AreaShapes | None = None,
    system: str = DEGREES,
    overwrite: bool = False,
) -> Path:
    """Write a plan or an estimate, atomically; a layer in `system` has a feature an area of `areas`, or else a cell."""
    planned = result.attrs["schema"] == PLAN.name
    document = PlanDocument(planned=result) if planned else EstimateDocument(estimate=result)
    domain = stored_domain(result)
    target = check_shares_target(
        path, overwrite=overwrite, on_earth=domain.plane is not None and not planned, system=system
    )
    suffix = target.suffix.lower()
    if suffix == ".nc":
        return save(result, target, overwrite=overwrite)
    rows = document.areas if isinstance(document, PlanDocument) else document.areas or document.cells
    if suffix == ".xlsx":
        write_atomically(target, lambda temporary: write_workbook(rows, temporary, sheet="mechdesign"))
        return target
    if suffix == ".csv":
        text = csv_of(rows)
        metadata = json.dumps({"url": target.name, **_provenance(result)}, indent=2)
        write_atomically(metadata_of(target), lambda temporary: temporary.write_bytes(metadata.encode()))
    elif suffix == ".json":
        text = json.dumps(document.as_json(), allow_nan=False, indent=2)
    else:
        assert isinstance(document, EstimateDocument)
        notes = {name: str(value) for name, value in _provenance(result).items()}
        layer = _cells(document, notes, system) if areas is None else area_layer(document.areas, areas, notes)
        write_features(layer, target)
        return target
    write_atomically(target, lambda temporary: temporary.write_bytes(text.encode()))
    return target


def _provenance(result: xr.Dataset) -> dict[str, Any]:
    attrs = result.attrs
    names = ("schema", "problem", "reports", "confidence", "simultaneous", "fit_p", "reports_sha256")
    provenance = {name: plain(attrs[name]) for name in names if name in attrs}
    if "mechanisms" in attrs:
        provenance["mechanism_seals"] = [record["sha256"] for record in json.loads(attrs["mechanisms"])]
    return provenance


def area_layer(rows: Sequence[Mapping[str, Any]], areas: AreaShapes, notes: Mapping[str, str]) -> FeatureLayer:
    """A feature a row, with the shape of its area."""
    shapes, columns = areas.shapes_of(rows), areas.columns(rows)
    return FeatureLayer(name="areas", shapes=shapes, columns=columns, notes=notes, system=areas.system)


def _cells(document: EstimateDocument, notes: Mapping[str, str], system: str) -> FeatureLayer:
    """One feature a cell, with the figures of its area."""
    by_area = {row["area"]: row for row in document.areas}
    rows = []
    for cell in document.cells:
        area = by_area.get(cell.get("area", ""), {})
        row = {name: cell[name] for name in ("cell", "probability", "area") if name in cell}
        rows.append(row | {name: area[name] for name in ("estimate", "share", "low", "high", "reason") if name in area})
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    shapes = cell_shapes(document.domain, system)
    return FeatureLayer(name="cells", shapes=shapes, columns=columns, notes=notes, system=system)
