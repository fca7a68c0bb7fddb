"""GeoJSON (RFC 7946): the polygons or the lines of a file, longitude before latitude, in degrees of WGS 84."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.errors import FileFormatError
from mechdesign.setting.space.area import Area, area_of

_LARGEST = 1 << 26  # bytes that will be parsed
_UNFOLDS = 32  # bytes of memory for a byte of text: lists of nothing
_Taken = TypeVar("_Taken")
_WGS84 = ("CRS84", "EPSG::4326", "EPSG:4326")


@asked
def read_area(path: str | Path) -> Area:
    """The union of all polygons of a GeoJSON file: Polygon, MultiPolygon, GeometryCollection, Feature(Collection).

    Heights are left aside. Raises: FileFormatError for a file that is missing, too large, no JSON, of another geometry
    or in another coordinate system; InputError for polygons that are none (`geographic.area_of`).
    """
    remedy = "give a Polygon or MultiPolygon, each ring closed and of four positions or more"
    return area_of(_read(path, _polygons, field="area", what="polygons", remedy=remedy), source=Path(path))


def read_lines(path: str | Path) -> list[NDArray[np.float64]]:
    """The lines of a GeoJSON file, and the borders of its polygons, each (k, 2) in degrees; points are passed over.

    Raises: FileFormatError for a file that is missing, too large, no JSON, without lines or in another coordinate
    system, and for degrees out of range.
    """
    remedy = "give a file of LineString, MultiLineString, Polygon or MultiPolygon, in degrees"
    return _read(path, _lines, field="over", what="lines", remedy=remedy)


def _read(
    path: str | Path,
    take: Callable[[dict[str, Any]], list[_Taken]],
    *,
    field: str,
    what: str,
    remedy: str,
) -> list[_Taken]:
    """What `take` finds in a file. Raises: FileFormatError where it finds none."""
    source = Path(path)
    with open_regular(source, field=field, remedy="give the path of a GeoJSON file") as stream:
        content = read_bytes(stream, source, field=field, most=_LARGEST, unfolds=_UNFOLDS)
    try:
        with within_memory(field, source):
            document = json.loads(content.decode())
            crs = json.dumps(document.get("crs")) if document.get("crs") else "CRS84"
            taken = take(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f"is no GeoJSON of {what} ({type(error).__name__}: {error})", field=field, value=source, remedy=remedy
        ) from error
    if not any(name in crs for name in _WGS84):
        raise FileFormatError(
            "declares another coordinate system", field=field, value=crs, remedy="convert it to WGS 84 degrees"
        )
    return taken


def _lines(document: dict[str, Any]) -> list[NDArray[np.float64]]:
    """Raises: ValueError where there are none."""
    lines = [_positions(line) for line in _found(document)]
    if not lines:
        raise ValueError("it holds none")
    return lines


def _found(document: dict[str, Any]) -> list[Any]:
    """The lists of positions of a geometry, a feature or a collection."""
    kind = document["type"]
    if kind == "FeatureCollection":
        return [line for feature in document["features"] for line in _found(feature)]
    if kind == "Feature":
        return [] if document["geometry"] is None else _found(document["geometry"])
    if kind == "GeometryCollection":
        return [line for geometry in document["geometries"] for line in _found(geometry)]
    if kind in ("Point", "MultiPoint"):
        return []
    if kind == "LineString":
        return [document["coordinates"]]
    if kind in ("MultiLineString", "Polygon"):
        return list(document["coordinates"])
    if kind == "MultiPolygon":
        return [ring for polygon in document["coordinates"] for ring in polygon]
    raise ValueError(f"a geometry of type {kind}")


def _positions(line: list[Any]) -> NDArray[np.float64]:
    if not isinstance(line, list) or any(type(number) not in (int, float) for at in line for number in at):
        raise ValueError("a position holds what is no number")
    points = np.array([position[:2] for position in line], float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
        raise ValueError("a line has fewer than two positions")
    if not (np.abs(points) <= (180.0, 90.0)).all():
        raise ValueError("a position is not in degrees, longitude before latitude")
    return points


def _polygons(document: dict[str, Any]) -> list[list[NDArray[np.float64]]]:
    kind = document["type"]
    if kind == "FeatureCollection":
        return [polygon for feature in document["features"] for polygon in _polygons(feature)]
    if kind == "Feature":
        return [] if document["geometry"] is None else _polygons(document["geometry"])
    if kind == "GeometryCollection":
        return [polygon for geometry in document["geometries"] for polygon in _polygons(geometry)]
    if kind == "MultiPolygon":
        return [_rings(polygon) for polygon in document["coordinates"] if polygon]
    if kind == "Polygon":
        return [_rings(document["coordinates"])] if document["coordinates"] else []
    raise ValueError(f"a geometry of type {kind}")


def _rings(polygon: list[Any]) -> list[NDArray[np.float64]]:
    if any(type(number) not in (int, float) for ring in polygon for position in ring for number in position):
        raise ValueError("a position holds what is no number")
    rings = [np.array([position[:2] for position in ring], float) for ring in polygon]
    for ring in rings:
        if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 4 or (ring[0] != ring[-1]).any():
            raise ValueError("a ring is not closed, or has fewer than four positions")
        if not np.isfinite(ring).all():
            raise ValueError("a position is not finite")
    return rings
