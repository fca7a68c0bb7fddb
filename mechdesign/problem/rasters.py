"""Readers of rasters: ESRI ASCII grids, NetCDF, GeoTIFF (the extra `geo`), CSV files, arrays of xarray."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Floats, Indices, Matrix, Vector
from mechdesign.base.files import readable
from mechdesign.base.optional import import_optional
from mechdesign.base.units import canonical_unit, require_unit
from mechdesign.base.validation import validated
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.problem.columns import number_column, refuse_line
from mechdesign.problem.raster import Raster
from mechdesign.problem.text import read_frame

if TYPE_CHECKING:
    import xarray as xr

_GEOGRAPHIC = re.compile(r"GEOGCS|GEOGCRS|GEODCRS|\"type\"\s*:\s*\"GeographicCRS\"|epsg:4326|latitude_longitude", re.I)
_PROJECTED = re.compile(r"PROJCS|PROJCRS|ProjectedCRS", re.I)
_MERCATOR = re.compile(r"(?<!transverse[_ ])(?<!oblique[_ ])mercator|epsg[\":, ]+(3857|3785|900913)\b", re.I)
_STRETCHED = re.compile(r"equirectangular|plate[_ ]?carr|equidistant[_ ]?cylindrical", re.I)
_ANGLES = re.compile(r"(geo|grid)?_?(lat|lon|lng|long|latitude|longitude)", re.I)
_CRS = ("crs_wkt", "spatial_ref", "proj4", "proj4_params", "epsg_code", "crs")  # attributes that PROJ understands
_ACROSS, _ALONG = re.compile(r"r?(x|lon|lng|east|col)", re.I), re.compile(r"r?(y|lat|north|row)", re.I)
_CSV_ACROSS, _CSV_ALONG = re.compile(r"x$|east|lon", re.I), re.compile(r"y$|north|lat", re.I)
_BOUNDS = re.compile(r"(.*_)?(bnds|bounds|vertices|nv|nbnd|nvertex)", re.I)  # CF: edges of cells and their dimension
_THOUSANDS = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+")
ASCII, NETCDF, GEOTIFF = {".asc", ".txt", ".grd"}, {".nc", ".nc4", ".cdf", ".h5"}, {".tif", ".tiff"}
_TURNED = 1e-3  # of a pixel, over the whole file: transforms that are rounded
_SPARSEST = 4  # nodes of a lattice for each one that a CSV file lists
_ESRI_NODATA = -9999.0  # where an ESRI ASCII grid declares none


@dataclass(frozen=True, kw_only=True, eq=False)
class Pixels:
    """A raster as its file has it: centres x, y in file order, values (columns, rows) on demand, crs or None."""

    name: str
    x: Vector
    y: Vector
    load: Callable[[Indices, Indices], Matrix]
    crs: str | Mapping[str, Any] | None = None
    words: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    value_unit: str = "1"
    title: str = ""

    def raster(self, unit: str) -> Raster:
        self.require_unit(unit)
        across, along = np.argsort(self.x, kind="stable"), np.argsort(self.y, kind="stable")
        values = self.load(np.arange(len(self.x)), np.arange(len(self.y)))[np.ix_(across, along)]
        return Raster(
            x=self.x[across], y=self.y[along], values=values, unit=unit, value_unit=self.value_unit, name=self.name
        )

    def require_unit(self, unit: str) -> None:
        for axis, declared in self.units.items():
            require_unit(declared, unit, field=f"{self.name}:{axis}" if axis else self.name)


@validated
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
        _refuse_stretched(pixels.words, wanted, pixels.name)
        return pixels.raster(wanted)


@contextmanager
def open_pixels(source: str | Path | xr.DataArray | xr.Dataset, variable: str | None = None) -> Iterator[Pixels]:
    """The raster of a file or of xarray, open for reading."""
    if not isinstance(source, (str, Path)):
        yield _in_memory(source, variable)
        return
    path = Path(source)
    suffix = path.suffix.lower()
    with readable(path, "raster"):
        if suffix in ASCII:
            if variable is not None:
                raise FileFormatError("an ESRI ASCII grid holds one raster", field="variable", value=variable)
            yield _read_ascii(path)
        elif suffix in NETCDF:
            with _netcdf(path) as data:
                yield _of_dataset(data, path.name, variable)
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
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)  # refused below
        with rasterio.open(source.resolve(strict=True), driver="GTiff") as data:
            yield data


def _of_geotiff(data: Any, name: str, variable: str | None) -> Pixels:
    """One band of an open GeoTIFF; masks and alpha bands make NODATA."""
    grid, band = data.transform, _band(data, variable)
    turned = max(abs(grid.b) * data.height, abs(grid.d) * data.width)
    if (
        turned > _TURNED * min(abs(grid.a), abs(grid.e))
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
        # a window for each run of columns: those around a seam lie at both ends of the file
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
    named = {**{str(k): k for k in bands}, **{data.descriptions[k - 1]: k for k in bands if data.descriptions[k - 1]}}
    if variable is None and len(bands) == 1:
        return int(bands[0])
    if variable is None or variable not in named:
        raise FileFormatError(
            f"holds {len(bands)} bands; choose one of {', '.join(named)}",
            field="raster",
            value=variable or data.name,
            remedy="choose one with variable=NAME",
        )
    return int(named[variable])


def _projection(source: Path) -> str | None:
    beside = source.with_suffix(".prj")
    return beside.read_text(encoding="utf-8-sig", errors="replace").strip() if beside.is_file() else None


def _read_ascii(source: Path) -> Pixels:
    """An ESRI ASCII grid: lines of a name and a number, then rows of values from north to south."""
    content = source.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    lines = _with_points(content.decode(encoding, errors="replace"), source).splitlines()
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


def _with_points(text: str, source: Path) -> str:
    numbers = re.findall(r"\S*,\S*", text)
    if not numbers:
        return text
    several = any(number.count(",") > 1 for number in numbers) or re.search(r"[0-9]\.[0-9]", text)
    if several or all(map(_THOUSANDS.fullmatch, numbers)):
        raise FileFormatError(
            "commas may be decimal or separate thousands or values; write decimal points and no other separator",
            field="raster",
            value=f"{source}: {numbers[0][:40]}",
        )
    return text.replace(",", ".")


def _read_csv(source: Path, variable: str | None) -> Pixels:
    """Columns of two axes, such as x and y, and one of values; every node once."""
    frame = read_frame(source, "raster")
    axes = [name for named in (_CSV_ACROSS, _CSV_ALONG) for name in frame.columns if named.match(name)][:2]
    values = [variable] if variable else [name for name in frame.columns if name not in (*axes, "")]
    if len(axes) < 2 or len(values) != 1 or values[0] not in frame.columns:
        raise FileFormatError("needs columns x, y and one of values", field="raster", value=", ".join(frame.columns))
    refuse_line(frame.duplicated(axes).to_numpy(), frame, axes, "raster", "a node is listed twice")
    for name in (*axes, *values):
        frame[name] = number_column(frame, (name,), "raster")
    nodes = math.prod(frame[name].nunique() for name in axes)
    if nodes > _SPARSEST * len(frame):
        raise FileFormatError(
            "lists points, and not the nodes of a raster",
            field="raster",
            value=f"{source.name}: {len(frame)} lines for {nodes:,} nodes",
            remedy="give points with people to levels_from=FILE, or to people=FILE where there are discs",
        )
    array = frame.set_index(axes)[values[0]].to_xarray()
    return _of_dataset(array.to_dataset(), source.name, values[0])


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


def _in_memory(source: xr.DataArray | xr.Dataset, variable: str | None) -> Pixels:
    import xarray as xr

    if isinstance(source, xr.DataArray):
        variable = "values" if source.name is None else str(source.name)
        source = source.rename(variable).to_dataset()
    if not isinstance(source, xr.Dataset):
        raise InputError("must be a file or an array of xarray", field="raster", value=type(source).__name__)
    decoded = xr.decode_cf(source, decode_times=False, decode_timedelta=False)
    return _of_dataset(decoded, variable or "values", variable)


def _of_dataset(data: xr.Dataset, name: str, variable: str | None) -> Pixels:
    array = _variable(data, variable)
    if array.ndim != 2 or not set(array.dims) <= set(data.coords):
        sizes = ", ".join(f"{name} {size}" for name, size in array.sizes.items())
        raise FileFormatError(
            "a raster has two axes with coordinates",
            field="variable",
            value=sizes,
            remedy="select one layer in Python, data.isel({'time': 0}), for md.geo.raster_on or md.read.raster",
        )
    if array.dtype.kind not in "biuf":
        raise FileFormatError("must hold real numbers", field="variable", value=f"{array.name}: {array.dtype}")
    across, along = _directions(array)
    axes = [data.coords[dimension] for dimension in (across, along)]
    holders = (data, array, *(data[other] for other in sorted(_mappings(data, array))))
    lowest, highest = _valid_range(array)

    def load(columns: Indices, rows: Indices) -> Matrix:
        values = array.isel({across: columns, along: rows}).transpose(across, along).values.astype(np.float64)
        return np.where((values < lowest) | (values > highest), np.nan, values)

    return Pixels(
        name=name,
        x=np.asarray(axes[0].values, np.float64),
        y=np.asarray(axes[1].values, np.float64),
        load=load,
        crs=_declared(data, array, axes),
        words=" ".join(
            str(holder.attrs[key]) for holder in holders for key in (*_CRS, "grid_mapping_name") if key in holder.attrs
        ),
        units={str(d): unit for d in array.dims if (unit := _axis_unit(data.coords[d])) is not None},
        value_unit=str(array.attrs.get("units", "")).strip() or "1",
        title=" ".join(str(word) for word in (name, array.name, array.attrs.get("long_name", ""))),
    )


def _variable(data: xr.Dataset, variable: str | None) -> xr.DataArray:
    keys = ("bounds", "climatology")
    bounds = {str(item.attrs[key]) for item in data.variables.values() for key in keys if key in item.attrs}
    candidates = {
        str(name): reduced
        for name, array in data.data_vars.items()
        if (reduced := _reduced(array)).ndim >= 2
        and reduced.dtype.kind in "biufc"
        and not (name in bounds or _BOUNDS.fullmatch(str(name)) or any(_BOUNDS.fullmatch(str(d)) for d in array.dims))
    }
    flat = [name for name, array in candidates.items() if array.ndim == 2] or list(candidates)
    if variable is not None and variable in data.data_vars:
        return _reduced(data[variable])
    if variable is None and len(flat) == 1:
        return candidates[flat[0]]
    raise FileFormatError(
        f"which variable is the raster? name one of {flat}",
        field="variable",
        value=variable,
        remedy="choose one with variable=NAME",
    )


def _reduced(array: xr.DataArray) -> xr.DataArray:
    single = [d for d in array.dims if array.sizes[d] == 1]
    single.sort(key=lambda d: bool(_ACROSS.match(str(d)) or _ALONG.match(str(d))))
    return array.isel(dict.fromkeys(single[: max(array.ndim - 2, 0)], 0))


def _directions(array: xr.DataArray) -> tuple[Any, Any]:
    words = {d: str(array.coords[d].attrs.get("axis", d)) for d in array.dims}
    across = next((d for d, word in words.items() if _ACROSS.match(word)), None)
    along = next((d for d, word in words.items() if _ALONG.match(word)), None)
    if across is None or along is None:
        raise FileFormatError("must have axes named x and y", field="raster", value=list(words.values()))
    return across, along


def _valid_range(array: xr.DataArray) -> tuple[float, float]:
    pair = array.attrs.get("valid_range", [array.attrs.get("valid_min", -np.inf), array.attrs.get("valid_max", np.inf)])
    ends = np.atleast_1d(np.asarray(pair))
    packed = {"scale_factor", "add_offset"} & set(array.encoding)
    if packed and ends.dtype.kind in "iu":  # CF: in the numbers that are stored
        ends = ends * array.encoding.get("scale_factor", 1.0) + array.encoding.get("add_offset", 0.0)
    return float(min(ends[0], ends[-1])), float(max(ends[0], ends[-1]))


def _axis_unit(axis: xr.DataArray) -> str | None:
    return str(axis.attrs["units"]) if "units" in axis.attrs else "degree" if _is_angle(axis) else None


def _is_angle(axis: xr.DataArray) -> bool:
    """True for an axis of degrees by its units, its standard name or, where it has no units, its name."""
    if "units" in axis.attrs:
        return str(axis.attrs["units"]).lower().startswith("degree")
    named = {str(axis.attrs.get(key, "")).lower() for key in ("standard_name", "long_name")}
    return bool(named & {"longitude", "latitude"}) or _ANGLES.fullmatch(str(axis.name)) is not None


def _mappings(data: xr.Dataset, array: xr.DataArray) -> list[str]:
    named = array.attrs.get("grid_mapping", array.encoding.get("grid_mapping"))
    return [name for name in dict.fromkeys([str(named), "spatial_ref", "crs"]) if name in data.variables]


def _declared(data: xr.Dataset, array: xr.DataArray, axes: list[xr.DataArray]) -> str | Mapping[str, Any] | None:
    """The coordinate system that a dataset declares; EPSG:4326 for axes in degrees without more."""
    mappings = [data[name] for name in _mappings(data, array)]
    for holder in (*mappings, array, data):
        for key in _CRS:
            if key in holder.attrs:
                text = str(holder.attrs[key])
                return f"EPSG:{text}" if text.isdecimal() else text
    for holder in mappings:
        if "grid_mapping_name" in holder.attrs:
            return dict(holder.attrs)
    return "EPSG:4326" if all(map(_is_angle, axes)) else None


def _refuse_stretched(text: str, unit: str, name: str) -> None:
    mercator = _MERCATOR.search(text)
    if unit != "degree" and (mercator or _STRETCHED.search(text)):
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
