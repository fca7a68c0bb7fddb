"""GeoTIFF rasters, through rasterio (the extra `geo`): one band, nodes at pixel centres, north up."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory, within_memory
from mechdesign.base.opening import open_regular
from mechdesign.base.units import require_unit
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.space.raster import Raster

SUFFIXES = {".tif", ".tiff"}
_TABLES = 4  # copies of a raster while it is read
_MARGIN = 2  # pixels kept around the points that are asked for
Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class GeoTiff:
    """A file: its coordinate system as WKT and the unit of its axes, None where it declares none; its ends along x."""

    source: Path
    crs: str | None
    unit: str | None
    ends: tuple[float, float]

    @classmethod
    def of(cls, source: Path) -> GeoTiff:
        """Read the header. Raises: FileFormatError for a file that cannot be read; InputError without rasterio."""
        with _opened(source) as data:
            ends = (data.transform.c, data.transform.c + data.transform.a * data.width)
            if data.crs is None:
                return cls(source=source, crs=None, unit=None, ends=ends)
            unit = "degree" if data.crs.is_geographic else str(data.crs.linear_units)
            return cls(source=source, crs=data.crs.to_wkt(), unit=unit, ends=ends)

    def read(self, unit: str, within: Bounds | None = None) -> Raster:
        """The first band as a raster in `unit`, or the part around `within` (least x and y, largest x and y).

        Raises: UnitError where the file declares another unit; FileFormatError for several bands, or a raster that is
            turned; InputError for NODATA in the part that is read, or a part that is not there.
        """
        if self.unit is not None:
            require_unit(self.unit, unit, field=self.source.name)
        with _opened(self.source) as data:
            grid = data.transform
            if data.count != 1 or grid.b != 0 or grid.d != 0 or grid.a <= 0 or grid.e >= 0:
                raise FileFormatError(
                    "must be one band with north up",
                    field="raster",
                    value=f"{data.count} band(s), {tuple(grid)[:6]}",
                    remedy="select a band, or warp it to north up",
                )
            columns, rows = (0, data.width), (0, data.height)
            if within is not None:
                columns = _span((within[0] - grid.c) / grid.a, (within[2] - grid.c) / grid.a, data.width, self.source)
                rows = _span((within[3] - grid.f) / grid.e, (within[1] - grid.f) / grid.e, data.height, self.source)
            require_memory(rows[1] - rows[0], columns[1] - columns[0], tables=_TABLES, what="the raster")
            with within_memory("raster", self.source):
                band = data.read(1, window=(rows, columns), masked=True)
        values: NDArray[np.float64] = np.ma.filled(band.astype(float), np.nan)
        x = np.asarray(grid.c + (np.arange(*columns) + 0.5) * grid.a, np.float64)
        y = np.asarray(grid.f + (np.arange(*rows) + 0.5) * grid.e, np.float64)
        return Raster(x=x, y=y[::-1], values=values[::-1].T, unit=unit, name=self.source.name)


def _span(first: float, last: float, count: int, source: Path) -> tuple[int, int]:
    low, high = max(int(np.floor(first)) - _MARGIN, 0), min(int(np.ceil(last)) + _MARGIN, count)
    if low >= high:
        raise InputError(
            "does not cover the area", field="raster", value=source, remedy="use a raster of the area's surroundings"
        )
    return low, high


def _opened(source: Path) -> Any:
    try:
        import rasterio
    except ImportError as error:
        raise InputError(
            "needs rasterio, which is not installed",
            field="raster",
            value=source.name,
            remedy="pip install 'mechdesign[geo]'",
        ) from error
    open_regular(source, field="raster", remedy="give the path of a raster").close()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)  # has no axes: read as pixels
            return rasterio.open(source, driver="GTiff")
    except rasterio.errors.RasterioIOError as error:
        raise FileFormatError(
            f"cannot be read ({error})", field="raster", value=source, remedy="check that the file is complete"
        ) from error
