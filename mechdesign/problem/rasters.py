"""Readers of rasters: ESRI ASCII grids, NetCDF, GeoTIFF and CSV files, arrays of xarray.

Units are checked at this border, once.

GeoTIFF is read through rasterio (the extra `geo`): one band, nodes at pixel centres, north up.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import validated
from mechdesign.base.opening import readable
from mechdesign.base.optional import import_optional
from mechdesign.base.units import canonical_unit, require_unit
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.problem.levels import Raster
from mechdesign.problem.text import number_column, read_frame, refuse_line

if TYPE_CHECKING:
    import xarray as xr

_GEOGRAPHIC = re.compile(r"GEOGCS|GEOGCRS|GEODCRS|\"type\"\s*:\s*\"GeographicCRS\"|epsg:4326|latitude_longitude", re.I)
_PROJECTED = re.compile(r"PROJCS|PROJCRS|ProjectedCRS", re.I)
_MERCATOR = re.compile(r"(?<!transverse[_ ])(?<!oblique[_ ])mercator|epsg[\":, ]+(3857|3785|900913)\b", re.I)
_STRETCHED = re.compile(r"equirectangular|plate[_ ]?carr|equidistant[_ ]?cylindrical", re.I)
_ANGLES = re.compile(r"(geo|grid)?_?(lat|lon|lng|long|latitude|longitude)", re.I)
_CRS = ("crs", "crs_wkt", "spatial_ref", "proj4", "proj4_params", "grid_mapping_name", "epsg_code")
_ACROSS, _ALONG = re.compile(r"x|lon|lng|east|col", re.I), re.compile(r"y|lat|north|row", re.I)
_CSV_ACROSS, _CSV_ALONG = re.compile(r"x$|east|lon", re.I), re.compile(r"y$|north|lat", re.I)
ASCII, NETCDF, GEOTIFF = {".asc", ".txt", ".grd"}, {".nc", ".nc4", ".cdf", ".h5"}, {".tif", ".tiff"}
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
        with readable(source, "raster"), _opened(source) as data:
            ends = (data.transform.c, data.transform.c + data.transform.a * data.width)
            if data.crs is None:
                return cls(source=source, crs=None, unit=None, ends=ends)
            unit = "degree" if data.crs.is_geographic else str(data.crs.linear_units)
            return cls(source=source, crs=data.crs.to_wkt(), unit=unit, ends=ends)

    def read(self, unit: str, within: Bounds | None = None) -> Raster:
        """The first band as a raster in `unit`, or the part around `within` (least x and y, largest x and y)."""
        if self.unit is not None:
            require_unit(self.unit, unit, field=self.source.name)
        with readable(self.source, "raster"), _opened(self.source) as data:
            grid = data.transform
            if data.count != 1 or grid.b != 0 or grid.d != 0 or grid.a <= 0 or grid.e >= 0:
                description = f"{data.count} band(s), {tuple(grid)[:6]}"
                raise FileFormatError("must be one band with north up", field="raster", value=description)
            columns, rows = (0, data.width), (0, data.height)
            if within is not None:
                columns = _span((within[0] - grid.c) / grid.a, (within[2] - grid.c) / grid.a, data.width, self.source)
                rows = _span((within[3] - grid.f) / grid.e, (within[1] - grid.f) / grid.e, data.height, self.source)
            band = data.read(1, window=(rows, columns), masked=True)
        values = np.ma.filled(band.astype(float), np.nan)
        x = np.asarray(grid.c + (np.arange(*columns) + 0.5) * grid.a, np.float64)
        y = np.asarray(grid.f + (np.arange(*rows) + 0.5) * grid.e, np.float64)
        return Raster(x=x, y=y[::-1], values=values[::-1].T, unit=unit, name=self.source.name)


def _span(first: float, last: float, count: int, source: Path) -> tuple[int, int]:
    low, high = max(int(np.floor(first)) - _MARGIN, 0), min(int(np.ceil(last)) + _MARGIN, count)
    if low >= high:
        raise InputError("does not cover the area", field="raster", value=source)
    return low, high


def _opened(source: Path) -> Any:
    rasterio = import_optional("rasterio", "geo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)  # has no axes: read as pixels
        return rasterio.open(source.resolve(strict=True), driver="GTiff")


@validated
def read_raster(path: str | Path | xr.DataArray, *, unit: str, variable: str | None = None) -> Raster:
    r"""A raster from an ESRI ASCII grid (.asc, .txt), a NetCDF file (.nc, .nc4, .cdf), a GeoTIFF (.tif), a CSV file of
    columns x, y and one of values, or an array of xarray.

    ESRI ASCII and CSV files name no unit, so `unit` is taken at your word, unless a .prj file beside them declares
    geographic coordinates. The others say their own. A source that declares degrees, or has axes named latitude and
    longitude, is never taken for lengths, nor is the Mercator plane of web maps, whose metres are 1 / cos(latitude)
    times too long. `md.geo.raster_on` reads both.

    Parameters
    ----------
    path : str, Path or xarray.DataArray
        The file; or values over axes named x and y, in any order and direction.
    unit : str
        Unit of length of its coordinates.
    variable : str
        Of a NetCDF file of several variables.

    Returns
    -------
    Raster
        Values at the nodes.

    Raises
    ------
    UnitError
        Where the declared unit is another, or lengths are not those on the ground.
    FileFormatError
        For a missing, cut-short or malformed file.
    InputError
        For NODATA inside.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "density.asc"
    ...     _ = path.write_text("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 100\n5 7\n")
    ...     md.read.raster(path, unit="m").values.ravel()
    array([5., 7.])
    """
    if not isinstance(path, (str, Path)):
        name = "values" if path.name is None else str(path.name)
        data, source = path.rename(name).to_dataset(), Path(name)
        _refuse_stretched(_stated_crs(data, name), canonical_unit(unit), source)
        return _read_netcdf(data, source, canonical_unit(unit), name)
    return read_nodes(path, unit=unit, variable=variable, on_ground=True)


def read_nodes(path: str | Path, *, unit: str, variable: str | None = None, on_ground: bool = False) -> Raster:
    """`read_raster`, of any coordinate system unless lengths have to be those on the ground."""
    source, wanted = Path(path), canonical_unit(unit)
    suffix = source.suffix.lower()

    def check(declared: str) -> None:
        if on_ground:
            _refuse_stretched(declared, wanted, source)

    with readable(source, "raster"):
        if suffix in ASCII:
            declared = _projection(source) or ""
            _refuse_geographic(declared, wanted, source)
            check(declared)
            return _read_ascii(source, wanted)
        if suffix in NETCDF:
            with _netcdf(source) as data:
                check(_stated_crs(data, variable))
                return _read_netcdf(data, source, wanted, variable)
        if suffix in GEOTIFF:
            tiff = GeoTiff.of(source)
            check(tiff.crs or "")
            return tiff.read(wanted)
        if suffix == ".csv":
            return _read_csv(source, wanted, variable)
    kinds = "ESRI ASCII (.asc), NetCDF (.nc), GeoTIFF (.tif) or CSV"
    raise FileFormatError(f"unknown kind of raster: use {kinds}", field="raster", value=source.name)


def _projection(source: Path) -> str | None:
    """What the .prj file beside a file says, where there is one."""
    beside = source.with_suffix(".prj")
    return beside.read_text(encoding="utf-8", errors="replace") if beside.is_file() else None


def _read_ascii(source: Path, unit: str) -> Raster:
    """An ESRI ASCII grid: lines of a name and a number, then rows of values from north to south."""
    lines = source.read_text(encoding="ascii").splitlines()
    header: dict[str, float] = {}
    while lines and (words := lines[0].lower().split())[:1] and words[0][0].isalpha() and words[0] != "nan":
        header[words[0]] = float(words[1])
        lines.pop(0)

    def number(*names: str) -> float:
        for name in names:
            if name in header:
                return header[name]
        raise FileFormatError(f"header lacks {names[-1]}", field="raster", value=source)

    columns, rows = int(number("ncols")), int(number("nrows"))
    numbers = np.array(" ".join(lines).split(), float)
    if numbers.size != rows * columns or rows < 1 or columns < 1:
        description = f"{source}: {numbers.size} values"
        raise FileFormatError(f"header announces {rows} x {columns} values", field="raster", value=description)
    values = numbers.reshape(rows, columns)[::-1].T
    values = np.where(values == header.get("nodata_value", np.nan), np.nan, values)
    axes: list[NDArray[np.float64]] = []
    for axis, count in zip("xy", (columns, rows), strict=True):
        step = number(f"d{axis}", "cellsize")
        if not step > 0:
            raise FileFormatError("cell size must be positive", field="raster", value=f"{source}: {step:g}")
        shift = 0.0 if f"{axis}llcenter" in header else 0.5
        low = number(f"{axis}llcenter", f"{axis}llcorner")
        axes.append(np.asarray(low + (np.arange(count) + shift) * step, np.float64))
    return Raster(x=axes[0], y=axes[1], values=values, unit=unit, name=source.name)


def _read_csv(source: Path, unit: str, variable: str | None) -> Raster:
    """Columns of two axes, such as x and y, and one of values; every node once."""
    frame = read_frame(source, "raster")
    axes = [name for named in (_CSV_ACROSS, _CSV_ALONG) for name in frame.columns if named.match(name)][:2]
    values = [variable] if variable else [name for name in frame.columns if name not in axes]
    if len(axes) < 2 or len(values) != 1 or values[0] not in frame.columns:
        raise FileFormatError("needs columns x, y and one of values", field="raster", value=", ".join(frame.columns))
    refuse_line(frame.duplicated(axes).to_numpy(), frame, axes, "raster", "a node is listed twice")
    for name in (*axes, *values):
        frame[name] = number_column(frame, (name,), "raster")
    array = frame.set_index(axes)[values[0]].to_xarray()
    return _read_netcdf(array.to_dataset(), source, unit, values[0])


@contextmanager
def _netcdf(source: Path) -> Iterator[xr.Dataset]:
    import xarray as xr

    with source.open("rb") as stream:
        engine = "h5netcdf" if stream.read(4) == b"\x89HDF" else "scipy"
        stream.seek(0)
        if engine == "h5netcdf":  # it prints a traceback of its own on the way out of a file whose objects are damaged
            import h5py

            with h5py.File(stream, "r") as file:
                file.visititems(lambda name, item: None)
            stream.seek(0)
        with xr.open_dataset(stream, engine=engine, decode_times=False) as data:
            yield data


def _read_netcdf(data: xr.Dataset, source: Path, unit: str, variable: str | None) -> Raster:
    names = [str(n) for n, v in data.data_vars.items() if v.ndim == 2]
    name = variable or (names[0] if len(names) == 1 else None)
    if name is None or name not in data:
        raise FileFormatError(f"which variable is the raster? name one of {names}", field="variable", value=variable)
    array = data[name]
    if array.ndim != 2 or not set(array.dims) <= set(data.coords):
        raise FileFormatError("a raster has two axes with coordinates", field="variable", value=array.dims)
    for holder in (data, array, *(data[n] for n in sorted(_mappings(data, [array])))):
        _refuse_geographic(" ".join(str(v) for v in holder.attrs.values()), unit, source)
    for dimension in array.dims:
        axis = data.coords[dimension]
        declared = str(axis.attrs.get("units", "degree" if _is_angle(axis) else unit))
        require_unit(declared, unit, field=f"{source.name}:{dimension}")
    directions = {str(data.coords[d].attrs.get("axis", d)): d for d in array.dims}
    across = next((d for word, d in directions.items() if _ACROSS.match(word)), None)
    along = next((d for word, d in directions.items() if _ALONG.match(word)), None)
    if across is None or along is None:
        raise FileFormatError("must have axes named x and y", field="raster", value=list(directions))
    # ascending, as rasters from north to south would otherwise be read upside down
    turned = array.load().transpose(across, along).sortby([across, along])
    return Raster(
        x=turned[across].values,
        y=turned[along].values,
        values=turned.values,
        unit=unit,
        value_unit=str(array.attrs.get("units", "1")),
        name=source.name,
    )


def _is_angle(axis: xr.DataArray) -> bool:
    """Whether an axis is one of degrees by its units, its standard name or, where it has no units, its name."""
    if "units" in axis.attrs:
        return str(axis.attrs["units"]).lower().startswith("degree")
    named = {str(axis.attrs.get(key, "")).lower() for key in ("standard_name", "long_name")}
    return bool(named & {"longitude", "latitude"}) or _ANGLES.fullmatch(str(axis.name)) is not None


def _arrays(data: xr.Dataset, variable: str | None) -> list[xr.DataArray]:
    """The variable of that name, all without one."""
    return [data[variable]] if variable is not None and variable in data else list(data.data_vars.values())


def _mappings(data: xr.Dataset, arrays: list[xr.DataArray]) -> list[str]:
    """The variables that describe the coordinate system of arrays: those that they name first."""
    names = [*(str(array.attrs.get("grid_mapping")) for array in arrays), "spatial_ref", "crs"]
    return [name for name in dict.fromkeys(names) if name in data.variables]


def _stated_crs(data: xr.Dataset, variable: str | None) -> str:
    """What a NetCDF file says of its coordinate system, in one text."""
    arrays = _arrays(data, variable)
    holders = [data, *arrays, *(data[name] for name in sorted(_mappings(data, arrays)))]
    return " ".join(str(holder.attrs[key]) for holder in holders for key in _CRS if key in holder.attrs)


def _refuse_stretched(text: str, unit: str, source: Path) -> None:
    """Refuse a coordinate system whose lengths are not those on the ground."""
    mercator = _MERCATOR.search(text)
    if unit != "degree" and (mercator or _STRETCHED.search(text)):
        raise UnitError(
            "lengths of the Mercator plane are 1 / cos(latitude) times those on the ground, 1.31 times at 40 degrees"
            if mercator
            else "lengths of this cylindrical plane are not those on the ground",
            field=source.name,
            value=unit,
            remedy="warp it to a projection with true lengths, such as UTM, or use md.geo.raster_on(domain, path)",
        )


def _refuse_geographic(text: str, unit: str, source: Path) -> None:
    if _GEOGRAPHIC.search(text) and not _PROJECTED.search(text):
        require_unit("degree", unit, field=source.name)


def declared_crs(path: str | Path, variable: str | None = None) -> str | None:
    """The coordinate system that an ESRI ASCII (.prj beside it) or NetCDF file declares: WKT, or EPSG:4326 for axes in
    degrees; None where there is none. Raises: FileFormatError for a missing or malformed file.
    """
    source = Path(path)
    with readable(source, "raster"):
        if source.suffix.lower() not in NETCDF:
            return _projection(source)
        with _netcdf(source) as data:
            for name in _mappings(data, _arrays(data, variable)):
                for key in ("crs_wkt", "spatial_ref"):
                    if key in data[name].attrs:
                        return str(data[name].attrs[key])
            return "EPSG:4326" if any(_is_angle(axis) for axis in data.coords.values()) else None
