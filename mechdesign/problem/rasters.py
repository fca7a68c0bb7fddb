"""Readers of rasters: ESRI ASCII grids, NetCDF, GeoTIFF (the extra `geo`), CSV files, arrays of xarray."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Floats, Indices, Matrix, Vector
from mechdesign.base.files import readable
from mechdesign.base.optional import import_optional
from mechdesign.base.units import canonical_unit, require_unit
from mechdesign.base.validation import validate_call
from mechdesign.errors import FileFormatError, UnitError
from mechdesign.problem.cf_rasters import open_netcdf, pixels_in_memory, pixels_of_dataset
from mechdesign.problem.columns import number_column, refuse_line
from mechdesign.problem.pixels import Pixels
from mechdesign.problem.raster import Raster
from mechdesign.problem.text import read_frame

if TYPE_CHECKING:
    import xarray as xr

_GEOGRAPHIC = re.compile(r"GEOGCS|GEOGCRS|GEODCRS|\"type\"\s*:\s*\"GeographicCRS\"|epsg:4326|latitude_longitude", re.I)
_PROJECTED = re.compile(r"PROJCS|PROJCRS|ProjectedCRS", re.I)
_MERCATOR = re.compile(r"(?<!transverse[_ ])(?<!oblique[_ ])mercator|epsg[\":, ]+(3857|3785|900913)\b", re.I)
_CYLINDRICAL = re.compile(r"equirectangular|plate[_ ]?carr|equidistant[_ ]?cylindrical", re.I)
_CSV_ACROSS, _CSV_ALONG = re.compile(r"x$|east|lon", re.I), re.compile(r"y$|north|lat", re.I)
_THOUSANDS = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+")
ASCII, NETCDF, GEOTIFF = {".asc", ".txt", ".grd"}, {".nc", ".nc4", ".cdf", ".h5"}, {".tif", ".tiff"}
_MAX_ROTATION = 1e-3  # of a pixel over the whole file: rotations up to this are rounding
_NODES_PER_LINE = 4  # nodes of a lattice for each one that a CSV file lists
_ESRI_NODATA = -9999.0  # where an ESRI ASCII grid declares none


@validate_call
def read_raster(path: str | Path | xr.DataArray, *, unit: str, variable: str | None = None) -> Raster:
    r"""A raster from an ESRI ASCII grid (.asc, .txt), a NetCDF file (.nc, .nc4, .cdf), a GeoTIFF (.tif) or a CSV file.

    ESRI ASCII and CSV files declare no `unit`. Degrees are refused, and so is the Mercator plane of web maps, whose
    metres are 1 / cos(latitude) times too long; `md.geo.raster_on` reads both.

    Parameters
    ----------
    path : str, Path or xarray.DataArray
        The file, with columns x, y and values if CSV; or values over axes named x and y, in any order.
    unit, variable : str
        Unit of length of the coordinates; the NetCDF variable, or the number or description of the GeoTIFF band, of
        several.

    Returns
    -------
    Raster

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "density.asc"
    ...     _ = path.write_text("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 100\n5 7\n")
    ...     md.read.raster(path, unit="m").values.ravel()
    array([5., 7.])
    """
    wanted = canonical_unit(unit)
    with open_pixels(path, variable) as pixels:
        _refuse_geographic(pixels.words, wanted, pixels.name)
        _refuse_stretching(pixels.words, wanted, pixels.name)
        return pixels.raster(wanted)


@contextmanager
def open_pixels(source: str | Path | xr.DataArray | xr.Dataset, variable: str | None = None) -> Iterator[Pixels]:
    """The raster of a file or of xarray, open for reading."""
    if not isinstance(source, (str, Path)):
        yield pixels_in_memory(source, variable)
        return
    path = Path(source)
    suffix = path.suffix.lower()
    with readable(path, "raster"):
        if suffix in ASCII:
            if variable is not None:
                raise FileFormatError("an ESRI ASCII grid holds one raster", field="variable", value=variable)
            yield _read_ascii(path)
        elif suffix in NETCDF:
            with open_netcdf(path) as data:
                yield pixels_of_dataset(data, path.name, variable)
        elif suffix in GEOTIFF:
            with _geotiff(path) as data:
                yield _of_geotiff(data, path.name, variable)
        elif suffix == ".csv":
            yield _read_csv(path, variable)
        else:
            kinds = "ESRI ASCII (.asc), NetCDF (.nc), GeoTIFF (.tif) or CSV"
            raise FileFormatError(f"unknown kind of raster: use {kinds}", field="raster", value=path.name)


def _values(values: Floats) -> Callable[[Indices, Indices], Matrix]:
    return lambda columns, rows: values[np.ix_(columns, rows)]


@contextmanager
def _geotiff(source: Path) -> Iterator[Any]:
    rasterio = import_optional("rasterio", "geo")
    with warnings.catch_warnings():
        # A file without a transform is refused in `_of_geotiff`, with a remedy.
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(source.resolve(strict=True), driver="GTiff") as data:
            yield data


def _of_geotiff(data: Any, name: str, variable: str | None) -> Pixels:
    """One band of an open GeoTIFF; masks and alpha bands make NODATA."""
    grid, band = data.transform, _band(data, variable)
    rotation = max(abs(grid.b) * data.height, abs(grid.d) * data.width)
    if (
        rotation > _MAX_ROTATION * min(abs(grid.a), abs(grid.e))
        or grid.a == 0
        or grid.e == 0
        or (grid.is_identity and data.crs is None)
    ):
        raise FileFormatError(
            "must have rows and columns along its axes",
            field="raster",
            value=f"transform {tuple(grid)[:6]}",
            remedy="warp it, as gdalwarp -t_srs EPSG:4326 in.tif out.tif does",
        )
    if "complex" in data.dtypes[band - 1]:
        raise FileFormatError("holds complex numbers", field="raster", value=data.dtypes[band - 1])
    scale, offset = float(data.scales[band - 1]), float(data.offsets[band - 1])

    def load(columns: Indices, rows: Indices) -> Matrix:
        # One window per run of columns: columns around the antimeridian lie at both ends of the file.
        parts = np.split(columns, np.flatnonzero(np.abs(np.diff(columns)) != 1) + 1)
        return np.concatenate([_window(data, band, part, rows) for part in parts]) * scale + offset

    unit = None if data.crs is None else "degree" if data.crs.is_geographic else str(data.crs.linear_units)
    crs = None if data.crs is None else data.crs.to_wkt()
    return Pixels(
        name=name,
        x=np.asarray(grid.c + (np.arange(data.width) + 0.5) * grid.a, np.float64),
        y=np.asarray(grid.f + (np.arange(data.height) + 0.5) * grid.e, np.float64),
        load=load,
        crs=crs,
        words=crs or "",
        units={} if unit is None else {"": unit},
        value_unit=data.units[band - 1] or "1",
        title=f"{name} {data.descriptions[band - 1] or ''}",
    )


def _window(data: Any, band: int, columns: Indices, rows: Indices) -> Matrix:
    spans = [(int(axis.min()), int(axis.max()) + 1) for axis in (rows, columns)]
    values = np.ma.filled(data.read(band, window=tuple(spans), masked=True).astype(np.float64), np.nan)
    return np.asarray(values[np.ix_(rows - spans[0][0], columns - spans[1][0])].T)


def _band(data: Any, variable: str | None) -> int:
    bands = [k for k, kind in zip(data.indexes, data.colorinterp, strict=True) if kind.name != "alpha"]
    number_of_band = {
        **{str(k): k for k in bands},
        **{data.descriptions[k - 1]: k for k in bands if data.descriptions[k - 1]},
    }
    if variable is None and len(bands) == 1:
        return int(bands[0])
    if variable is None or variable not in number_of_band:
        raise FileFormatError(
            f"holds {len(bands)} bands; choose one of {', '.join(number_of_band)}",
            field="raster",
            value=variable or data.name,
            remedy="choose one with variable=NAME",
        )
    return int(number_of_band[variable])


def _projection(source: Path) -> str | None:
    projection_file = source.with_suffix(".prj")
    return (
        projection_file.read_text(encoding="utf-8-sig", errors="replace").strip() if projection_file.is_file() else None
    )


def _read_ascii(source: Path) -> Pixels:
    """An ESRI ASCII grid: lines of a name and a number, then rows of values from north to south."""
    content = source.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    lines = _with_decimal_points(content.decode(encoding, errors="replace"), source).splitlines()
    header: dict[str, float] = {}
    while lines and (words := lines[0].lower().split())[:1] and words[0][0].isalpha() and words[0] != "nan":
        header[words[0]] = float(_numbers(words[1])[0])
        lines.pop(0)

    def number(*names: str) -> float:
        for name in names:
            if name in header:
                return header[name]
        raise FileFormatError(f"header lacks {names[-1]}", field="raster", value=source)

    columns, rows = int(number("ncols")), int(number("nrows"))
    numbers = _numbers(" ".join(lines))
    if numbers.size != rows * columns or rows < 1 or columns < 1:
        description = f"{source}: {numbers.size} values"
        raise FileFormatError(f"header announces {rows} x {columns} values", field="raster", value=description)
    # The file runs from north to south and row by row; a raster has x first, ascending.
    values = numbers.reshape(rows, columns)[::-1].T
    values = np.where(values == header.get("nodata_value", _ESRI_NODATA), np.nan, values)
    axes: list[Vector] = []
    for axis, count in zip("xy", (columns, rows), strict=True):
        step = number(f"d{axis}", "cellsize")
        if not step > 0:
            raise FileFormatError("cell size must be positive", field="raster", value=f"{source}: {step:g}")
        shift = 0.0 if f"{axis}llcenter" in header else 0.5
        low = number(f"{axis}llcenter", f"{axis}llcorner")
        axes.append(np.asarray(low + (np.arange(count) + shift) * step, np.float64))
    crs = _projection(source)
    return Pixels(
        name=source.name, x=axes[0], y=axes[1], load=_values(values), crs=crs, words=crs or "", title=source.name
    )


def _numbers(text: str) -> Vector:
    """The numbers between spaces; ValueError for 1_0 and digits of other scripts, which NumPy reads too."""
    if "_" in text or not text.isascii():
        raise ValueError("must be numbers in the digits 0-9")
    return np.array(text.split(), float)


def _with_decimal_points(text: str, source: Path) -> str:
    # Commas are decimal marks if no number has a point or two commas, and not all of them group thousands.
    numbers = re.findall(r"\S*,\S*", text)
    if not numbers:
        return text
    is_ambiguous = any(number.count(",") > 1 for number in numbers) or re.search(r"[0-9]\.[0-9]", text)
    if is_ambiguous or all(map(_THOUSANDS.fullmatch, numbers)):
        raise FileFormatError(
            "commas may be decimal or separate thousands or values; write decimal points and no other separator",
            field="raster",
            value=f"{source}: {numbers[0][:40]}",
        )
    return text.replace(",", ".")


def _read_csv(source: Path, variable: str | None) -> Pixels:
    """Columns of two axes, such as x and y, and one of values; every node once."""
    frame = read_frame(source, "raster")
    axes = [name for pattern in (_CSV_ACROSS, _CSV_ALONG) for name in frame.columns if pattern.match(name)][:2]
    values = [variable] if variable else [name for name in frame.columns if name not in (*axes, "")]
    if len(axes) < 2 or len(values) != 1 or values[0] not in frame.columns:
        raise FileFormatError("needs columns x, y and one of values", field="raster", value=", ".join(frame.columns))
    refuse_line(frame.duplicated(axes).to_numpy(), frame, axes, "raster", "a node is listed twice")
    for name in (*axes, *values):
        frame[name] = number_column(frame, (name,), "raster")
    # Points of people would make a lattice that is almost empty.
    nodes = math.prod(frame[name].nunique() for name in axes)
    if nodes > _NODES_PER_LINE * len(frame):
        raise FileFormatError(
            "lists points, and not the nodes of a raster",
            field="raster",
            value=f"{source.name}: {len(frame)} lines for {nodes:,} nodes",
            remedy="give points with people to levels_from=FILE, or to people=FILE where there are discs",
        )
    array = frame.set_index(axes)[values[0]].to_xarray()
    return pixels_of_dataset(array.to_dataset(), source.name, values[0])


def _refuse_stretching(text: str, unit: str, name: str) -> None:
    mercator = _MERCATOR.search(text)
    if unit != "degree" and (mercator or _CYLINDRICAL.search(text)):
        raise UnitError(
            "lengths of the Mercator plane are 1 / cos(latitude) times those on the ground, 1.31 times at 40 degrees"
            if mercator
            else "lengths of this cylindrical plane are not those on the ground",
            field=name,
            value=unit,
            remedy="warp it to a projection with true lengths, such as UTM, or use md.geo.raster_on(domain, path)",
        )


def _refuse_geographic(text: str, unit: str, name: str) -> None:
    if _GEOGRAPHIC.search(text) and not _PROJECTED.search(text):
        require_unit("degree", unit, field=name)
