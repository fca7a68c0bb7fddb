"""Rasters on Earth: values of a file at the places of a domain that has a plane.

Where the coordinates of the file are those of the plane (the same projection about the same centre, or a file that
declares none, taken at your word) its own nodes are kept. Otherwise the function of the file, bilinear in its own
coordinates (degrees, or those of its projection), is read at the centres of the cells, projected exactly, and is
bilinear between those: a file in degrees is never taken for lengths. Coordinate systems are PROJ's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import validated
from mechdesign.base.optional import import_optional
from mechdesign.base.units import METRES, canonical_unit
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.levels import Raster
from mechdesign.problem.plane import Plane
from mechdesign.problem.rasters import GEOTIFF, GeoTiff, declared_crs, read_nodes, read_raster

_SAME = 1e-9  # degrees and m: centres and offsets that agree so far are the same
_NAMES = ("azimuthal equidistant", "modified azimuthal equidistant")


@validated
def raster_on(
    domain: Domain, path: str | Path, *, variable: str | None = None, crs: str | None = None, labels: bool = False
) -> Raster:
    r"""The raster of a GeoTIFF, NetCDF or ESRI ASCII file as a function on the plane of a domain, in the domain's
    unit.

    Of a GeoTIFF only the part around the domain is read.

    Parameters
    ----------
    domain : Domain
        With a plane.
    path : str or Path
        The file.
    variable : str
        Of a NetCDF file of several.
    crs : str
        What the file should have declared, as PROJ names it ("EPSG:4326").
    labels : bool
        Whether the centres of the cells get the value of the nearest node, never one between nodes.

    Returns
    -------
    Raster
        On the plane.

    Raises
    ------
    InputError
        For a domain without a plane, NODATA, a file that does not reach half a pixel beyond every cell centre of the
        domain, or a coordinate system that PROJ does not know; what `md.read.raster` raises.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> domain = md.geo.Area.box(12.45, 41.85, 12.55, 41.95).grid(5000.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "density.asc"
    ...     _ = path.write_text("ncols 2\nnrows 2\nxllcorner 12\nyllcorner 41\ncellsize 1\n5 7\n5 7\n")
    ...     md.geo.raster_on(domain, path, crs="EPSG:4326").unit
    'm'
    """
    plane = domain.plane
    if plane is None:
        raise InputError("the domain has no plane", field="domain", value=domain.kind, remedy="make it with Area.grid")
    source = Path(path)
    tiff = GeoTiff.of(source) if source.suffix.lower() in GEOTIFF else None
    declared = crs or (tiff.crs if tiff is not None else declared_crs(source, variable))
    if declared is None:
        raster = read_raster(source, unit=domain.unit, variable=variable)
        _check_cover(raster, domain.points, source)
        return raster
    system = _system(declared)
    metres = float(system.axis_info[0].unit_conversion_factor)
    unit = "degree" if system.is_geographic else canonical_unit(system.axis_info[0].unit_name)
    if _is_plane(system, plane):
        raster, scale = read_nodes(source, unit=unit, variable=variable), metres / METRES[plane.unit]
        moved = replace(raster, x=raster.x * scale, y=raster.y * scale, unit=plane.unit)
        _check_cover(moved, domain.points, source)
        return moved
    lattice, axes = _lattice(domain)
    at = _projected(system, plane, lattice)
    if tiff is not None:
        at = _turned(system, at, tiff.ends)
        raster = tiff.read(unit, within=(*at.min(axis=0).tolist(), *at.max(axis=0).tolist()))
    else:
        raster = read_nodes(source, unit=unit, variable=variable)
        at = _turned(system, at, (float(raster.x[0]), float(raster.x[-1])))
    _check_cover(raster, at[(domain.lookup >= 0).ravel()], source)
    values = (raster.nearest(at) if labels else raster.at(at)).reshape(domain.lookup.shape)
    return Raster(x=axes[0], y=axes[1], values=values, unit=plane.unit, value_unit=raster.value_unit, name=source.name)


def _lattice(domain: Domain) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The centres (k, 2) of all cells, masked ones included, and the coordinates along both axes."""
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    sizes = zip(domain.origin, domain.cell, domain.shape, strict=True)
    axes = [np.asarray(o + h * (np.arange(k) + 0.5), np.float64) for o, h, k in sizes]
    return np.column_stack([side.ravel() for side in np.meshgrid(*axes, indexing="ij")]), axes


def _projected(system: Any, plane: Plane, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates (k, 2) in a coordinate system, east first, of points of the plane."""
    longitude, latitude = plane.backward(points)
    transformer = import_optional("pyproj", "geo").Transformer.from_crs("EPSG:4326", system, always_xy=True)
    return np.column_stack(transformer.transform(longitude, latitude, errcheck=True))


def _turned(system: Any, at: NDArray[np.float64], ends: tuple[float, float]) -> NDArray[np.float64]:
    """Longitudes moved by whole turns to within half a turn of the middle of the file, which may run to 180 or 360."""
    if not system.is_geographic:
        return at
    middle = (ends[0] + ends[1]) / 2
    return np.column_stack([at[:, 0] - 360 * np.rint((at[:, 0] - middle) / 360), at[:, 1]])


def _check_cover(raster: Raster, points: NDArray[np.float64], source: Path) -> None:
    for nodes, at in zip(raster.axes, points.T, strict=True):
        half = (nodes[1] - nodes[0]) / 2 if len(nodes) > 1 else 0.0
        slack = half * (1 + 1e-9)
        if at.min() < nodes[0] - slack or at.max() > nodes[-1] + slack:
            raise InputError(
                "does not cover the area",
                field="raster",
                value=f"{source}: {nodes[0]:.9g} to {nodes[-1]:.9g}, asked for {at.min():.9g} to {at.max():.9g}",
                remedy="use a raster of the area's surroundings, and let it declare its coordinate system",
            )


def _system(declared: str) -> Any:
    pyproj = import_optional("pyproj", "geo")
    try:
        return pyproj.CRS.from_user_input(declared)
    except pyproj.exceptions.CRSError as error:
        raise InputError(
            "unknown coordinate system", field="crs", value=declared[:80], remedy="name it as PROJ does, EPSG:4326"
        ) from error


def _is_plane(system: Any, plane: Plane) -> bool:
    """Whether a coordinate system is the plane, up to its unit."""
    if not system.is_projected or system.coordinate_operation.method_name.lower() not in _NAMES:
        return False
    values = {p.name.lower(): p.value * p.unit_conversion_factor for p in system.coordinate_operation.params}
    wanted = {
        "latitude of natural origin": math.radians(plane.latitude),
        "longitude of natural origin": math.radians(plane.longitude),
        "false easting": 0.0,
        "false northing": 0.0,
    }
    east = [axis.direction for axis in system.axis_info] == ["east", "north"]
    same = all(abs(values.get(name, math.inf) - value) <= math.radians(_SAME) for name, value in wanted.items())
    return east and same and "WGS" in str(system.ellipsoid.name) and "84" in str(system.ellipsoid.name)
