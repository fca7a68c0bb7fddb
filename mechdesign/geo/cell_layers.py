"""The cells of a mechanism as a layer of a map: GeoJSON, GeoTIFF, GeoPackage and GeoParquet.

A feature or pixel is a cell that reports name. Its rows are one, or k x k where rows are finer than reports.

| column or band | content |
|---|---|
| prior | probability of the cell |
| level | the largest level of its rows in nats per unit of length, where the mechanism has levels |
| expected_error | mean distance to the report, over the cell under the prior, in the unit of the mechanism |
| probability | of each report from one place, where one is given |

A layer of polygons, or of points for places without cells, is in longitude and latitude, or in a system of choice. A
GeoTIFF has one pixel for each cell, in the plane of the mechanism, whose coordinate system is a PROJ string.
"""

from __future__ import annotations

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
from mechdesign.evaluation.loss import mean_distances
from mechdesign.geo.feature_files import FeatureLayer, check_feature_file, write_features
from mechdesign.geo.report_cells import ReportCells
from mechdesign.geo.shapes import PLANE, cell_shapes, named_system, plane_system
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.sampler import Sampler
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import place_on_earth
from mechdesign.problem.plane import Plane
from mechdesign.verification.verify import require_certified

_MOST = 16_000_000  # probabilities for which the error is computed: 130 MB a table
RASTERS = (".tif", ".tiff")


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
    def cells(self) -> ReportCells:
        return ReportCells.of(MechanismFile.read(self.sampler.mechanism))

    @property
    def numbers(self) -> list[int | None]:
        """The number of each cell as reports name it, None without a report; of each row if reports are not cells."""
        if self.cells.report is None:
            return self.cells.kept.tolist()
        return [None if y < 0 else y for y in self.cells.report.tolist()]

    @cached_property
    def columns(self) -> dict[str, Vector]:
        """Figures (c,) of the cells by name."""
        mechanism, cells = self.sampler.mechanism, self.cells
        prior = np.asarray(mechanism["prior"].values, float)
        columns = {"prior": cells.sum_of(prior)}
        if "level" in mechanism:
            columns["level"] = cells.largest_of(mechanism["level"].values)
        if self.domain.size * self.sampler.rows.reports <= _MOST:
            errors = mean_distances(mechanism)
            if errors is not None:
                columns["expected_error"] = cells.mean_of(errors, prior)
        if self.origin is not None:
            if cells.report is None:
                raise InputError("has reports that are not cells", field="from", value=mechanism.attrs["problem"])
            probabilities = self._probabilities(*self.origin)
            columns["probability"] = np.where(cells.report >= 0, probabilities[cells.report], 0.0)
        return columns

    def _probabilities(self, longitude: float, latitude: float) -> Vector:
        """The probability (m,) of each report from a place."""
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
        if (parts := self.cells.parts) > 1:
            notes["cells"] = f"those that reports name, each of {parts} x {parts} rows"
        if self.origin is not None:
            notes["from"] = f"{self.origin[0]!r} {self.origin[1]!r} degrees: the probability is of reports from there"
        return notes


def save_cells(
    mechanism: xr.Dataset,
    path: Path,
    *,
    origin: tuple[float, float] | None = None,
    crs: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Verify a mechanism and write its cells as a layer in the format of the suffix; returns the columns written."""
    target = check_target(path, overwrite=overwrite)
    is_raster = target.suffix.lower() in RASTERS
    require_certified(mechanism)
    layer = CellLayer(mechanism=mechanism, origin=origin)
    system = named_system(PLANE if is_raster and crs is None else crs, layer.plane)
    if is_raster and system != plane_system(layer.plane):
        remedy = "write .gpkg, or project it: gdalwarp -t_srs"
        raise InputError("pixels are cells of the plane", field="crs", value=system, remedy=remedy)
    layer.columns  # noqa: B018 - refused before anything is written
    if is_raster:
        write_atomically(target, lambda temporary: _write_tiff(layer, temporary))
    else:
        check_feature_file(target, system)
        columns = {"cell": layer.numbers, **layer.columns}
        shapes = cell_shapes(layer.cells.domain, system)[layer.cells.kept]
        features = FeatureLayer(name="cells", shapes=shapes, columns=columns, notes=layer.notes, system=system)
        write_features(features, target)
    figures = {"cells": len(layer.cells.kept), "rows": layer.domain.size, "columns": list(layer.columns)}
    return {"file": str(target), **figures, "crs": system}


def _write_tiff(layer: CellLayer, path: Path) -> None:
    rasterio = import_optional("rasterio", "geo")
    domain = layer.cells.domain
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
            grid[tuple(domain.index[layer.cells.kept].T)] = values
            # Rows of a raster go from north to south, columns from west to east.
            file.write(grid.T[::-1], band)
            file.set_band_description(band, name)
