"""GeoJSON (RFC 7946): the polygons or the lines of a file, longitude before latitude, in degrees of WGS 84."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.space.area import Area, area_of

_LARGEST = 1 << 26  # bytes that will be parsed
_UNFOLDS = 32  # bytes of memory for a byte of text: lists of nothing
_WGS84 = ("CRS84", "EPSG::4326", "EPSG:4326")
_POLYGONS = "give a Polygon or MultiPolygon, each ring closed and of four positions or more"
_Taken = TypeVar("_Taken")


@asked
def read_area(path: str | Path) -> Area:
    """The union of all polygons of a GeoJSON file: Polygon, MultiPolygon, GeometryCollection, Feature(Collection).

    Heights are left aside. Raises: FileFormatError for a file that is missing, too large, no JSON, of another geometry
    or in another coordinate system; InputError for polygons that are none (`geographic.area_of`).
    """
    return area_of(_read(path, _polygons, field="area", what="polygons", remedy=_POLYGONS), source=Path(path))


def read_lines(path: str | Path) -> list[NDArray[np.float64]]:
    """The lines of a GeoJSON file, and the borders of its polygons, each (k, 2) in degrees; points are passed over.

    Raises: FileFormatError for a file that is missing, too large, no JSON, without lines or in another coordinate
    system, and for degrees out of range.
    """
    remedy = "give a file of LineString, MultiLineString, Polygon or MultiPolygon, in degrees"
    return _read(path, _lines, field="over", what="lines", remedy=remedy)


@asked
def read_features(path: str | Path) -> list[tuple[Area, Any, Any]]:
    """Area, properties and id of every feature of a GeoJSON file with polygons; those without a geometry are left out.

    Raises: as `read_area`, and InputError for a file without such features.
    """
    source = Path(path)
    found = _read(source, _features, field="area", what="polygons", remedy=_POLYGONS)
    if not found:
        raise InputError(
            "holds no feature with polygons", field="area", value=source, remedy="give a FeatureCollection of areas"
        )
    return [(area_of(polygons, source=source), properties, given) for polygons, properties, given in found]


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
    lines = [_positions(line) for geometry in _geometries(document) for line in _found(geometry)]
    if not lines:
        raise ValueError("it holds none")
    return lines


def _geometries(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The bare geometries of a geometry, a feature or a collection, in turn."""
    kind = document["type"]
    if kind in ("FeatureCollection", "GeometryCollection"):
        for each in document["features" if kind == "FeatureCollection" else "geometries"]:
            yield from _geometries(each)
    elif kind != "Feature":
        yield document
    elif document["geometry"] is not None:
        yield from _geometries(document["geometry"])


def _found(geometry: dict[str, Any]) -> list[Any]:
    """The lists of positions of a bare geometry."""
    kind = geometry["type"]
    if kind in ("Point", "MultiPoint"):
        return []
    if kind == "LineString":
        return [geometry["coordinates"]]
    if kind in ("MultiLineString", "Polygon"):
        return list(geometry["coordinates"])
    if kind == "MultiPolygon":
        return [ring for polygon in geometry["coordinates"] for ring in polygon]
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


def _features(document: dict[str, Any]) -> list[tuple[list[list[NDArray[np.float64]]], Any, Any]]:
    """Polygons, properties and id of every feature that has polygons; a bare geometry is one feature."""
    listed = document["features"] if document["type"] == "FeatureCollection" else [document]
    found = [(_polygons(feature), feature.get("properties"), feature.get("id")) for feature in listed]
    return [entry for entry in found if entry[0]]


def _polygons(document: dict[str, Any]) -> list[list[NDArray[np.float64]]]:
    """The polygons of a geometry, a feature or a collection, each its rings."""
    return [_rings(polygon) for geometry in _geometries(document) for polygon in _filled(geometry)]


def _filled(geometry: dict[str, Any]) -> list[Any]:
    """The polygons of a bare geometry as they stand, but for empty ones."""
    kind = geometry["type"]
    if kind == "MultiPolygon":
        return [polygon for polygon in geometry["coordinates"] if polygon]
    if kind == "Polygon":
        return [geometry["coordinates"]] if geometry["coordinates"] else []
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
