"""Readers of rasters: ESRI ASCII grids, NetCDF and GeoTIFF files. Units are checked at this border, once."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import require_bytes, require_memory, within_memory
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.base.units import canonical_unit, require_unit
from mechdesign.errors import FileFormatError, MechdesignError, UnitError
from mechdesign.setting.readers.geotiff import SUFFIXES, GeoTiff
from mechdesign.setting.space.raster import Raster

if TYPE_CHECKING:
    import xarray as xr

_HEADER = ("ncols", "nrows", "xllcorner", "yllcorner", "xllcenter", "yllcenter", "cellsize", "dx", "dy", "nodata_value")
_GEOGRAPHIC = re.compile(r"GEOGCS|GEOGCRS|GEODCRS|\"type\"\s*:\s*\"GeographicCRS\"|epsg:4326|latitude_longitude", re.I)
_PROJECTED = re.compile(r"PROJCS|PROJCRS|ProjectedCRS", re.I)
_MERCATOR = re.compile(r"(?<!transverse[_ ])(?<!oblique[_ ])mercator|epsg[\":, ]+(3857|3785|900913)\b", re.I)
_STRETCHED = re.compile(r"equirectangular|plate[_ ]?carr|equidistant[_ ]?cylindrical", re.I)
_ANGLES = re.compile(r"(geo|grid)?_?(lat|lon|lng|long|latitude|longitude)", re.I)
_CRS = ("crs", "crs_wkt", "spatial_ref", "proj4", "proj4_params", "grid_mapping_name", "epsg_code")
_ACROSS, _ALONG = re.compile(r"x|lon|lng|east|col", re.I), re.compile(r"y|lat|north|row", re.I)
_NETCDF = {".nc", ".nc4", ".cdf", ".h5"}
_REMEDY = "give the path of a raster"
_LARGEST = 1 << 28  # bytes of a text raster that will be parsed
_UNFOLDS = 24  # bytes of memory for a byte of text: numbers as Python's texts
_LONGEST = 1 << 20  # bytes of a .prj file
_COPIES = 4  # of a raster while it is read


@asked
def read_raster(path: str | Path, *, unit: str, variable: str | None = None) -> Raster:
    """A raster from an ESRI ASCII grid (.asc, .txt) or a NetCDF file (.nc, .nc4, .cdf) or a GeoTIFF (.tif), in `unit`.

    ESRI ASCII files name no unit, so `unit` is taken at your word, unless a .prj file beside them declares geographic
    coordinates. The others say their own. A source that declares degrees, or has axes named latitude and longitude, is
    never taken for lengths, nor is the Mercator plane of web maps, whose metres are 1 / cos(latitude) times too long.
    `raster_on` reads both.
    Raises: UnitError where the declared unit is another, or lengths are not those on the ground; FileFormatError for a
    missing, cut-short or malformed file; InputError for NODATA inside.
    """
    return read_nodes(path, unit=unit, variable=variable, on_ground=True)


def read_nodes(path: str | Path, *, unit: str, variable: str | None = None, on_ground: bool = False) -> Raster:
    """`read_raster`, of any coordinate system unless lengths have to be those on the ground."""
    source = Path(path)
    wanted = canonical_unit(unit)
    suffix = source.suffix.lower()
    try:
        with open_regular(source, field="raster", remedy=_REMEDY) as stream, within_memory("raster", source):
            if suffix in {".asc", ".txt", ".grd"}:
                if on_ground:
                    _refuse_stretched(_projection(source) or "", wanted, source)
                return _read_esri_ascii(stream, source, wanted)
            if suffix in _NETCDF:
                with _netcdf(stream, source) as data:
                    if on_ground:
                        _refuse_stretched(_stated_crs(data, variable), wanted, source)
                    return _read_netcdf(data, source, wanted, variable)
            if suffix in SUFFIXES:
                tiff = GeoTiff.of(source)
                if on_ground:
                    _refuse_stretched(tiff.crs or "", wanted, source)
                return tiff.read(wanted)
    except MechdesignError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"cannot be read ({type(error).__name__}: {error})",
            field="raster",
            value=source,
            remedy="check that the file is complete",
        ) from error
    raise FileFormatError(
        "unknown kind of raster",
        field="raster",
        value=source.name,
        remedy="use ESRI ASCII (.asc), NetCDF (.nc) or GeoTIFF (.tif)",
    )


def _projection(source: Path) -> str | None:
    """What the .prj file beside a file says, where there is one."""
    beside = source.parent / f"{source.stem}.prj"
    if not os.path.lexists(beside):
        return None
    with open_regular(beside, field="raster", remedy="remove it, or make it a file") as stream:
        return read_bytes(stream, beside, field="raster", most=_LONGEST, unfolds=1).decode(errors="replace")


def _read_esri_ascii(stream: BinaryIO, source: Path, unit: str) -> Raster:
    _refuse_geographic(_projection(source) or "", unit, source)
    header: dict[str, str] = {}
    content = read_bytes(stream, source, field="raster", most=_LARGEST, unfolds=_UNFOLDS).decode("ascii")
    lines = content.splitlines()
    if any("_" in line.lower().lstrip().removeprefix("nodata_value") for line in lines):
        raise ValueError("an underscore in a number")
    for line in lines:
        words = line.split()
        if len(words) != 2 or words[0].lower() not in _HEADER:
            break
        header[words[0].lower()] = words[1]
    columns, rows = (int(_required(header, key, source)) for key in ("ncols", "nrows"))
    try:
        numbers = np.array(" ".join(lines[len(header) :]).split(), float)
    except ValueError as error:
        raise FileFormatError(
            f"not a number ({error})", field="raster", value=source, remedy="repair the file"
        ) from error
    if numbers.size != rows * columns or rows < 1 or columns < 1:
        raise FileFormatError(
            f"header announces {rows} x {columns} values",
            field="raster",
            value=f"{numbers.size} values",
            remedy="the file is cut short or its header is wrong",
        )
    table = numbers.reshape(rows, columns)[::-1].T  # rows run north to south
    if "nodata_value" in header:
        table = np.where(table == float(header["nodata_value"]), np.nan, table)
    steps = [
        float(header[key]) if key in header else float(_required(header, "cellsize", source)) for key in ("dx", "dy")
    ]
    if not all(step > 0 for step in steps):
        raise FileFormatError(
            "cell size must be positive", field="raster", value=steps, remedy="correct cellsize, dx or dy"
        )
    axes: list[NDArray[np.float64]] = []
    for axis, step, count in zip("xy", steps, (columns, rows), strict=True):
        centred = f"{axis}llcenter" in header
        low = float(_required(header, f"{axis}llcenter" if centred else f"{axis}llcorner", source))
        axes.append(np.asarray(low + (np.arange(count) + (0.0 if centred else 0.5)) * step, np.float64))
    return Raster(x=axes[0], y=axes[1], values=table, unit=unit, name=source.name)


def _required(header: dict[str, str], key: str, source: Path) -> str:
    if key not in header:
        raise FileFormatError(f"header lacks {key}", field="raster", value=source, remedy="use an ESRI ASCII grid")
    return header[key]


@contextlib.contextmanager
def _netcdf(stream: BinaryIO, source: Path) -> Iterator[xr.Dataset]:
    """An open NetCDF file whose values are not read yet, but for coordinates.

    Raises: FileFormatError for values in other files, SizeError for coordinates that do not fit in memory.
    """
    import xarray as xr

    hdf5 = stream.read(4) == b"\x89HDF"
    if hdf5:
        _check_hdf5(stream, source)
    else:  # all values of such a file are read when it is opened
        require_bytes(_COPIES * stream.seek(0, os.SEEK_END), what="the raster", field="raster", value=source)
    stream.seek(0)
    with xr.open_dataset(stream, engine="h5netcdf" if hdf5 else "scipy", decode_times=False) as opened:
        yield opened


def _check_hdf5(stream: BinaryIO, source: Path) -> None:
    """Refuse links and values in other files, which are opened without asking, and too long coordinates."""
    import h5py

    need = 0
    with h5py.File(stream, "r") as file:
        for name in file:
            array = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
            elsewhere = isinstance(array, h5py.Dataset) and (array.is_virtual or array.external)
            if array is None or elsewhere:
                raise FileFormatError(
                    "values in other files or arrays are refused",
                    field="raster",
                    value=f"{source}: {name}",
                    remedy="copy it into one file",
                )
            if isinstance(array, h5py.Dataset) and array.ndim == 1:
                need += array.size * array.dtype.itemsize
    require_bytes(_COPIES * need, what="the coordinates", field="raster", value=source)


def _read_netcdf(data: xr.Dataset, source: Path, unit: str, variable: str | None) -> Raster:
    names = [str(n) for n, v in data.data_vars.items() if v.ndim == 2]
    name = variable or (names[0] if len(names) == 1 else None)
    if name is None or name not in data:
        raise FileFormatError(
            "which variable is the raster?", field="variable", value=variable or names, remedy=f"name one of {names}"
        )
    array = data[name]
    if array.ndim != 2:
        raise FileFormatError(
            "a raster file has two axes",
            field="variable",
            value=array.dims,
            remedy="select one layer, or use md.Raster",
        )
    require_memory(*array.shape, tables=_COPIES, what="the raster")
    mappings = {"spatial_ref", "crs", str(array.attrs.get("grid_mapping"))}
    for holder in (data, array, *(data[n] for n in sorted(mappings) if n in data.variables)):
        _refuse_geographic(" ".join(str(v) for v in holder.attrs.values()), unit, source)
    axes: list[NDArray[np.float64]] = []
    for dimension in array.dims:
        if dimension not in data.coords:
            raise FileFormatError(
                "axis has no coordinates",
                field="raster",
                value=dimension,
                remedy="give every axis a coordinate variable",
            )
        axis = data.coords[dimension]
        declared = str(axis.attrs.get("units", "degree" if _is_angle(axis) else unit))
        require_unit(declared, unit, field=f"{source.name}:{dimension}")
        axes.append(np.asarray(axis.values, float))
    names = [str(data.coords[d].attrs.get("axis", d)) for d in array.dims]
    values = np.asarray(array.values, float)
    if _ALONG.match(names[0]) and _ACROSS.match(names[1]):  # (y, x) order, the usual one
        axes, values = axes[::-1], values.T
    elif not (_ACROSS.match(names[0]) and _ALONG.match(names[1])):
        raise FileFormatError(
            "which axis runs east, which north?", field="raster", value=names, remedy="name the axes x and y"
        )
    for k in (0, 1):
        if len(axes[k]) > 1 and axes[k][0] > axes[k][-1]:
            axes[k], values = axes[k][::-1], np.flip(values, axis=k)
    return Raster(
        x=axes[0], y=axes[1], values=values, unit=unit, value_unit=str(array.attrs.get("units", "1")), name=source.name
    )


def _is_angle(axis: xr.DataArray) -> bool:
    """Whether an axis is one of degrees by its units, its standard name or, where it has no units, its name."""
    if "units" in axis.attrs:
        return str(axis.attrs["units"]).lower().startswith("degree")
    named = {str(axis.attrs.get(key, "")).lower() for key in ("standard_name", "long_name")}
    return bool(named & {"longitude", "latitude"}) or _ANGLES.fullmatch(str(axis.name)) is not None


def _stated_crs(data: xr.Dataset, variable: str | None) -> str:
    """What a NetCDF file says of its coordinate system, in one text."""
    arrays = [data[variable]] if variable is not None and variable in data else list(data.data_vars.values())
    names = {"spatial_ref", "crs", *(str(array.attrs.get("grid_mapping")) for array in arrays)}
    holders = [data, *arrays, *(data[name] for name in sorted(names) if name in data.variables)]
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
            remedy="warp it to a projection with true lengths, such as UTM, or use md.read.raster_on(domain, path)",
        )


def _refuse_geographic(text: str, unit: str, source: Path) -> None:
    if _GEOGRAPHIC.search(text) and not _PROJECTED.search(text):
        require_unit("degree", unit, field=source.name)


def declared_crs(path: str | Path, variable: str | None = None) -> str | None:
    """The coordinate system that an ESRI ASCII (.prj beside it) or NetCDF file declares: WKT, or EPSG:4326 for axes in
    degrees; None where there is none.
    """
    source = Path(path)
    if source.suffix.lower() not in _NETCDF:
        return _projection(source)
    try:
        with open_regular(source, field="raster", remedy=_REMEDY) as stream, _netcdf(stream, source) as data:
            return _declared(data, variable)
    except Exception:
        return None  # read_raster says what is wrong with it


def _declared(data: xr.Dataset, variable: str | None) -> str | None:
    arrays = [data[variable]] if variable is not None and variable in data else list(data.data_vars.values())
    named = [str(array.attrs.get("grid_mapping")) for array in arrays]
    for name in (*named, "spatial_ref", "crs"):
        for key in ("crs_wkt", "spatial_ref"):
            if name in data.variables and key in data[name].attrs:
                return str(data[name].attrs[key])
    return "EPSG:4326" if any(_is_angle(axis) for axis in data.coords.values()) else None
