"""The cells of a mechanism as a layer of a map: GeoJSON, GeoTIFF, GeoPackage and GeoParquet.

| column or band | content |
|---|---|
| prior | probability of the cell |
| level | nats per unit of length, where the mechanism has a level |
| expected_error | mean distance from the centre of the cell to its report, in the unit of the mechanism |
| probability | of each report from one place, where one is given |

A layer of polygons, or of points for places without cells, is in longitude and latitude (EPSG:4326). A polygon
across 180 degrees is cut there (RFC 7946, section 3.1.9). A GeoTIFF has one pixel for each cell, in the plane of the
mechanism, whose coordinate system is a PROJ string.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Vector
from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.base.units import METRES
from mechdesign.errors import InputError
from mechdesign.mechanism.sampler import Sampler
from mechdesign.output.point_files.parquet_points import GEOMETRY, geo_metadata
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_on_earth
from mechdesign.problem.plane import ELLIPSOID, Plane
from mechdesign.problem.position_loss import CENTRE_WEIGHTS
from mechdesign.verification.verify import require_certified

_MOST = 4_000  # cells for which the error is computed: that of all needs all n^2 probabilities
_BLOCK = 256  # rows at a time
_EXTRA_DIGITS = 2  # decimals of degrees beyond those that name a cell: corners of neighbours meet


def plane_system(plane: Plane) -> str:
    """The coordinate system of a plane as a PROJ string, in metres."""
    return f"+proj=aeqd +lat_0={plane.latitude!r} +lon_0={plane.longitude!r} +datum={ELLIPSOID} +units=m +no_defs"


@dataclass(frozen=True, kw_only=True, eq=False)
class CellLayer:
    """The cells of a certified mechanism on Earth; origin: longitude and latitude that reports are drawn from."""

    mechanism: xr.Dataset
    origin: tuple[float, float] | None = None

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(mechanism=self.mechanism)

    @property
    def domain(self) -> Domain:
        return self.sampler.certificate.domain

    @cached_property
    def plane(self) -> Plane:
        if self.domain.plane is None:
            message, value = "the mechanism does not say where on Earth its places are", self.mechanism.attrs["problem"]
            raise InputError(message, field="output", value=value, remedy="write .csv or .parquet tables")
        return self.domain.plane

    @cached_property
    def columns(self) -> dict[str, Vector]:
        """Figures (n,) by name."""
        columns = {name: self.mechanism[name].values for name in ("prior", "level") if name in self.mechanism}
        reports = self.sampler.rows.report_points
        if self.domain.size <= _MOST and reports.shape == self.domain.points.shape:
            columns["expected_error"] = self._errors(reports)
        if self.origin is not None:
            if not np.array_equal(reports, self.domain.points):
                raise InputError(
                    "has reports that are not its cells", field="from", value=self.mechanism.attrs["problem"]
                )
            columns["probability"] = self._probabilities(*self.origin)
        return columns

    def _errors(self, reports: Vector) -> Vector:
        """The mean distance (n,) from each centre to its report."""
        claim, rows, points = self.sampler.certificate.positions, self.sampler.rows, self.domain.points
        errors = np.zeros(self.domain.size)
        for start in range(0, self.domain.size, _BLOCK):
            cells = np.arange(start, min(start + _BLOCK, self.domain.size))
            distance = np.sqrt(((points[cells, None] - reports[None]) ** 2).sum(axis=2))
            if claim is None:
                errors[cells] = (rows.probabilities(cells) * distance).sum(axis=1)
            else:  # a centre draws one of the rows around it
                for step, weight in enumerate(CENTRE_WEIGHTS.tolist()):
                    table = rows.probabilities(claim.around[cells, step])
                    errors[cells] += weight * (table * distance).sum(axis=1)
        return errors

    def _probabilities(self, longitude: float, latitude: float) -> Vector:
        """The probability (n,) of each report from a place."""
        position = place_on_earth(self.domain, longitude, latitude)
        cell, point = self.sampler.place(at=[position])
        claim, rows = self.sampler.certificate.positions, self.sampler.rows
        if claim is None:
            return rows.probabilities([cell])[0]
        from mechdesign.positions.patches import step_weights

        across, along = step_weights(np.array([point]))[0].astype(float)
        weights = np.outer(across, along).ravel()
        return np.asarray(weights / weights.sum() @ rows.probabilities(claim.around[cell]))

    @property
    def notes(self) -> dict[str, str]:
        """Texts that a file has beside its columns."""
        unit = self.domain.unit
        notes = {
            "claim": self.sampler.certificate.claim,
            "mechanism": str(self.mechanism.attrs["sha256"]),
            "unit": unit,
        }
        if self.origin is not None:
            notes["from"] = f"{self.origin[0]!r} {self.origin[1]!r} degrees: the probability is of reports from there"
        return notes

    def shapes(self) -> Any:
        """Shapely geometries (n,) in longitude and latitude: polygons, cut at 180 degrees, or points."""
        shapely = import_optional("shapely", "geo")
        domain = self.domain
        digits = self.plane.decimals(domain.spacing) + _EXTRA_DIGITS
        if domain.cell is None:
            return shapely.points(np.round(np.column_stack(self.plane.backward(domain.points)), digits))
        half = np.asarray(domain.cell) / 2
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * half
        around = (domain.points[:, None, :] + corners).reshape(-1, 2)
        degrees = np.round(np.column_stack(self.plane.backward(around)), digits).reshape(-1, 5, 2)
        crosses = np.ptp(degrees[:, :, 0], axis=1) > 180
        shapes = shapely.polygons(degrees)
        for k in np.flatnonzero(crosses).tolist():
            ring = degrees[k] + np.column_stack([np.where(degrees[k, :, 0] < 0, 360.0, 0.0), np.zeros(5)])
            polygon = shapely.Polygon(ring)
            east = polygon.intersection(shapely.box(0, -90, 180, 90))
            west = polygon.intersection(shapely.box(180, -90, 360, 90))
            shapes[k] = shapely.MultiPolygon([east, shapely.transform(west, lambda xy: xy - [360.0, 0.0])])
        return shapely.orient_polygons(shapes)


def save_cells(
    mechanism: xr.Dataset, path: Path, *, origin: tuple[float, float] | None = None, overwrite: bool = False
) -> dict[str, Any]:
    """Verify a mechanism and write its cells as a layer in the format of the suffix; returns the columns written."""
    target = check_target(path, overwrite=overwrite)
    write = WRITERS[target.suffix.lower()]
    require_certified(mechanism)
    layer = CellLayer(mechanism=mechanism, origin=origin)
    layer.plane, layer.columns  # noqa: B018 - refused before anything is written
    write_atomically(target, lambda temporary: write(layer, temporary))
    system = plane_system(layer.plane) if write is _write_tiff else "EPSG:4326"
    return {"file": str(target), "cells": layer.domain.size, "columns": list(layer.columns), "crs": system}


def _write_geojson(layer: CellLayer, path: Path) -> None:
    shapely = import_optional("shapely", "geo")
    shapes = [json.loads(text) for text in shapely.to_geojson(layer.shapes())]
    columns = {name: values.tolist() for name, values in layer.columns.items()}
    with path.open("w", encoding="utf-8", newline="") as stream:
        notes = "".join(f"{json.dumps(name)}: {json.dumps(text)}, " for name, text in layer.notes.items())
        stream.write(f'{{"type": "FeatureCollection", {notes}"features": [')
        for k, shape in enumerate(shapes):
            properties = {"cell": k, **{name: values[k] for name, values in columns.items()}}
            feature = {"type": "Feature", "id": k, "geometry": shape, "properties": properties}
            stream.write((",\n" if k else "\n") + json.dumps(feature, allow_nan=False))
        stream.write("\n]}\n")


def _write_tiff(layer: CellLayer, path: Path) -> None:
    rasterio = import_optional("rasterio", "geo")
    domain = layer.domain
    if domain.shape is None or domain.cell is None or domain.origin is None:
        raise InputError("has places without cells", field="output", value=path.suffix, remedy="write .geojson")
    metres = METRES[domain.unit]
    (width, height), (east, north) = domain.shape, (metres * side for side in domain.cell)
    top = metres * domain.origin[1] + north * height
    pixels = rasterio.Affine(east, 0.0, metres * domain.origin[0], 0.0, -north, top)
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=len(layer.columns), dtype="float64", nodata=np.nan,
        crs=plane_system(layer.plane), transform=pixels, compress="deflate",
    ) as file:  # fmt: skip
        file.update_tags(**layer.notes)
        for band, (name, values) in enumerate(layer.columns.items(), 1):
            grid = np.full(domain.shape, np.nan)
            assert domain.index is not None
            grid[tuple(domain.index.T)] = values
            # Rows of a raster go from north to south, columns from west to east.
            file.write(grid.T[::-1], band)
            file.set_band_description(band, name)


def _write_geopackage(layer: CellLayer, path: Path) -> None:
    pyogrio = import_optional("pyogrio", "layers")
    shapely = import_optional("shapely", "geo")
    shapes = layer.shapes()
    kinds = {shape.geom_type for shape in shapes}
    kind = "MultiPolygon" if "MultiPolygon" in kinds else kinds.pop()
    # GDAL names the kind of a file by its suffix.
    named = path.with_name(path.name + ".gpkg")
    fields = [np.arange(layer.domain.size), *layer.columns.values()]
    try:
        pyogrio.raw.write(
            named, shapely.to_wkb(shapes), fields, ["cell", *layer.columns], geometry_type=kind, crs="EPSG:4326",
            driver="GPKG", layer="cells", promote_to_multi=kind == "MultiPolygon", dataset_metadata=layer.notes,
        )  # fmt: skip
        named.replace(path)
    finally:
        named.unlink(missing_ok=True)


def _write_geoparquet(layer: CellLayer, path: Path) -> None:
    pa, parquet = import_optional("pyarrow", "parquet"), import_optional("pyarrow.parquet", "parquet")
    shapely = import_optional("shapely", "geo")
    shapes = layer.shapes()
    columns = {"cell": np.arange(layer.domain.size), **layer.columns, GEOMETRY: list(shapely.to_wkb(shapes))}
    metadata = geo_metadata(sorted({shape.geom_type for shape in shapes}))
    metadata |= {name.encode(): text.encode() for name, text in layer.notes.items()}
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), path, compression="zstd")


WRITERS = {
    ".geojson": _write_geojson,
    ".tif": _write_tiff,
    ".tiff": _write_tiff,
    ".gpkg": _write_geopackage,
    ".parquet": _write_geoparquet,
}
