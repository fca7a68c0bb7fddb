"""Rasters in NetCDF files and in arrays of xarray, by the CF conventions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Indices, Matrix
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.pixels import Pixels

if TYPE_CHECKING:
    import xarray as xr

_ANGLES = re.compile(r"(geo|grid)?_?(lat|lon|lng|long|latitude|longitude)", re.I)
_CRS = ("crs_wkt", "spatial_ref", "proj4", "proj4_params", "epsg_code", "crs")  # attributes that PROJ understands
_ACROSS, _ALONG = re.compile(r"r?(x|lon|lng|east|col)", re.I), re.compile(r"r?(y|lat|north|row)", re.I)
_BOUNDS = re.compile(r"(.*_)?(bnds|bounds|vertices|nv|nbnd|nvertex)", re.I)  # CF: edges of cells and their dimension


@contextmanager
def open_netcdf(source: Path) -> Iterator[xr.Dataset]:
    """A NetCDF file of version 3 or 4, open for reading."""
    import xarray as xr

    with source.open("rb") as stream:
        engine = "h5netcdf" if stream.read(4) == b"\x89HDF" else "scipy"
        stream.seek(0)
        # h5netcdf prints a traceback while it closes a damaged file; h5py raises before.
        if engine == "h5netcdf":
            import h5py

            with h5py.File(stream, "r") as file:
                file.visititems(lambda name, item: None)
            stream.seek(0)
        with xr.open_dataset(stream, engine=engine, decode_times=False) as data:
            yield data


def pixels_in_memory(source: xr.DataArray | xr.Dataset, variable: str | None) -> Pixels:
    """The pixels of an array or Dataset of xarray."""
    import xarray as xr

    if isinstance(source, xr.DataArray):
        variable = "values" if source.name is None else str(source.name)
        source = source.rename(variable).to_dataset()
    if not isinstance(source, xr.Dataset):
        raise InputError("must be a file or an array of xarray", field="raster", value=type(source).__name__)
    decoded = xr.decode_cf(source, decode_times=False, decode_timedelta=False)
    return pixels_of_dataset(decoded, variable or "values", variable)


def pixels_of_dataset(data: xr.Dataset, name: str, variable: str | None) -> Pixels:
    """The pixels of one variable of a Dataset, with the units and coordinate system that it declares."""
    array = _variable(data, variable)
    if array.ndim != 2 or not set(array.dims) <= set(data.coords):
        sizes = ", ".join(f"{name} {size}" for name, size in array.sizes.items())
        raise FileFormatError(
            "must have two axes with coordinates",
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
        crs=_declared_crs(data, array, axes),
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
        if (reduced := _without_single_axes(array)).ndim >= 2
        and reduced.dtype.kind in "biufc"
        and not (name in bounds or _BOUNDS.fullmatch(str(name)) or any(_BOUNDS.fullmatch(str(d)) for d in array.dims))
    }
    flat = [name for name, array in candidates.items() if array.ndim == 2] or list(candidates)
    if variable is not None and variable in data.data_vars:
        return _without_single_axes(data[variable])
    if variable is None and len(flat) == 1:
        return candidates[flat[0]]
    raise FileFormatError(
        f"does not name one of {flat}",
        field="variable",
        value=variable,
        remedy="choose one with variable=NAME",
    )


def _without_single_axes(array: xr.DataArray) -> xr.DataArray:
    # Other axes than x and y go first, such as one moment of time.
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
    # CF: a range of integers is in the stored numbers, which a scale and an offset turn into values.
    packed = {"scale_factor", "add_offset"} & set(array.encoding)
    if packed and ends.dtype.kind in "iu":
        ends = ends * array.encoding.get("scale_factor", 1.0) + array.encoding.get("add_offset", 0.0)
    return float(min(ends[0], ends[-1])), float(max(ends[0], ends[-1]))


def _axis_unit(axis: xr.DataArray) -> str | None:
    return str(axis.attrs["units"]) if "units" in axis.attrs else "degree" if _is_angle(axis) else None


def _is_angle(axis: xr.DataArray) -> bool:
    """True for an axis of degrees by its units, its standard name or, where it has no units, its name."""
    if "units" in axis.attrs:
        return str(axis.attrs["units"]).lower().startswith("degree")
    names = {str(axis.attrs.get(key, "")).lower() for key in ("standard_name", "long_name")}
    return bool(names & {"longitude", "latitude"}) or _ANGLES.fullmatch(str(axis.name)) is not None


def _mappings(data: xr.Dataset, array: xr.DataArray) -> list[str]:
    named = array.attrs.get("grid_mapping", array.encoding.get("grid_mapping"))
    return [name for name in dict.fromkeys([str(named), "spatial_ref", "crs"]) if name in data.variables]


def _declared_crs(data: xr.Dataset, array: xr.DataArray, axes: list[xr.DataArray]) -> str | Mapping[str, Any] | None:
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
