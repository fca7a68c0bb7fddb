"""Shapes of cells in a coordinate system: longitude and latitude, the plane of the mechanism, or another one.

In degrees a polygon across 180 degrees is cut there (RFC 7946, section 3.1.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechdesign.base.optional import import_optional
from mechdesign.base.units import METRES
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.plane import ELLIPSOID, Plane

DEGREES = "EPSG:4326"
PLANE = "plane"  # the word for the plane of the mechanism
_EXTRA_DIGITS = 2  # decimals of degrees beyond those that name a cell: corners of neighbours meet


def plane_system(plane: Plane) -> str:
    """The coordinate system of a plane as a PROJ string, in metres."""
    return f"+proj=aeqd +lat_0={plane.latitude!r} +lon_0={plane.longitude!r} +datum={ELLIPSOID} +units=m +no_defs"


def named_system(words: str | None, plane: Plane) -> str:
    """The system that an option names: `plane`, a code such as EPSG:32633, or a PROJ string; degrees by default."""
    if words is None:
        return DEGREES
    if words == PLANE:
        return plane_system(plane)
    pyproj = import_optional("pyproj", "geo")
    try:
        system = pyproj.CRS.from_user_input(words)
    except pyproj.exceptions.CRSError as error:
        remedy = f"write a code such as EPSG:32633, a PROJ string, or {PLANE}"
        raise InputError("is not a coordinate system", field="crs", value=words, remedy=remedy) from error
    if len(system.axis_info) != 2 or not (system.is_geographic or system.is_projected):
        raise InputError("must have two axes on the ground", field="crs", value=words)
    return DEGREES if system.equals(pyproj.CRS(DEGREES), ignore_axis_order=True) else words


def cell_shapes(domain: Domain, system: str = DEGREES) -> Any:
    """Shapely geometries (n,) of the places of a domain on Earth: polygons of cells, or points."""
    shapely = import_optional("shapely", "geo")
    assert domain.plane is not None
    if domain.cell is None:
        return shapely.points(_coordinates(domain, domain.points, system))
    half = np.asarray(domain.cell) / 2
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * half
    around = _coordinates(domain, (domain.points[:, None, :] + corners).reshape(-1, 2), system).reshape(-1, 5, 2)
    if _is_in_degrees(system):
        # The corners to the east of 180 degrees have negative longitudes.
        crosses = np.ptp(around[:, :, 0], axis=1) > 180
        around[crosses, :, 0] += np.where(around[crosses, :, 0] < 0, 360.0, 0.0)
        return shapely.orient_polygons(np.array([cut_at_180(shape) for shape in shapely.polygons(around)], object))
    return shapely.orient_polygons(shapely.polygons(around))


def project_shapes(shapes: Sequence[Any], plane: Plane, system: str) -> list[Any]:
    """Geometries in degrees, None for none, in a system."""
    if system == DEGREES:
        return list(shapes)
    shapely, pyproj = import_optional("shapely", "geo"), import_optional("pyproj", "geo")
    transform = pyproj.Transformer.from_crs(DEGREES, system, always_xy=True).transform

    def project(degrees: Any) -> Any:
        return _all_finite(np.column_stack(transform(degrees[:, 0], degrees[:, 1])), system)

    return [None if shape is None else shapely.transform(shape, project) for shape in shapes]


def cut_at_180(shape: Any) -> Any:
    """A polygon in degrees with its parts beyond 180 degrees moved by 360."""
    shapely = import_optional("shapely", "geo")
    west, _, east, _ = shape.bounds
    if west >= -180 and east <= 180:
        return shape
    parts = []
    for turn in (-360.0, 0.0, 360.0):
        part = shape.intersection(shapely.box(-180 + turn, -90, 180 + turn, 90))
        moved = shapely.transform(part, lambda xy, turn=turn: xy - [turn, 0.0])
        parts += [piece for piece in shapely.get_parts(moved) if piece.area > 0]
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def _coordinates(domain: Domain, points: Any, system: str) -> Any:
    """Points (n, 2) of the domain in a system, x or longitude first."""
    plane = domain.plane
    assert plane is not None
    if system == DEGREES:
        digits = plane.decimals(domain.spacing) + _EXTRA_DIGITS
        return np.round(np.column_stack(plane.backward(points)), digits)
    metres = points * METRES[plane.unit]
    if system == plane_system(plane):
        return metres
    pyproj = import_optional("pyproj", "geo")
    transform = pyproj.Transformer.from_crs(plane_system(plane), system, always_xy=True).transform
    return _all_finite(np.column_stack(transform(metres[:, 0], metres[:, 1])), system)


def _all_finite(found: Any, system: str) -> Any:
    if not np.isfinite(found).all():
        raise InputError("does not reach the map", field="crs", value=system)
    return found


def _is_in_degrees(system: str) -> bool:
    return system == DEGREES or bool(import_optional("pyproj", "geo").CRS.from_user_input(system).is_geographic)
