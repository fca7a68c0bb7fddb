"""GeoJSON (RFC 7946): the polygons of a file, longitude before latitude, in degrees of WGS 84."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.space.area import Area, area_of

_LARGEST = 1 << 26  # bytes that will be parsed
_UNFOLDS = 32  # bytes of memory for a byte of text: lists of nothing
_WGS84 = ("CRS84", "EPSG::4326", "EPSG:4326")
_Taken = TypeVar("_Taken")


def read_area(path: str | Path) -> Area:
    """The union of all polygons of a GeoJSON file: Polygon, MultiPolygon, GeometryCollection, Feature(Collection).

    Heights are left aside. Raises: FileFormatError for a file that is missing, too large, no JSON, of another geometry
    or in another coordinate system; InputError for polygons that are none (`geographic.area_of`).
    """
    source = Path(path)
    return area_of(_read(source, _polygons), source=source)


def read_features(path: str | Path) -> list[tuple[Area, Any, Any]]:
    """Area, properties and id of every feature of a GeoJSON file with polygons; those without a geometry are left out.

    Raises: as `read_area`, and InputError for a file without such features.
    """
    source = Path(path)
    found = _read(source, _features)
    if not found:
        raise InputError(
            "holds no feature with polygons", field="area", value=source, remedy="give a FeatureCollection of areas"
        )
    return [(area_of(polygons, source=source), properties, given) for polygons, properties, given in found]


def _read(source: Path, take: Callable[[dict[str, Any]], _Taken]) -> _Taken:
    """What `take` makes of the document of a file."""
    with open_regular(source, field="area", remedy="give the path of a GeoJSON file") as stream:
        content = read_bytes(stream, source, field="area", most=_LARGEST, unfolds=_UNFOLDS)
    try:
        with within_memory("area", source):
            document = json.loads(content.decode())
            crs = json.dumps(document.get("crs")) if document.get("crs") else "CRS84"
            taken = take(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f"is no GeoJSON of polygons ({type(error).__name__}: {error})",
            field="area",
            value=source,
            remedy="give a Polygon or MultiPolygon, each ring closed and of four positions or more",
        ) from error
    if not any(name in crs for name in _WGS84):
        raise FileFormatError(
            "declares another coordinate system", field="area", value=crs, remedy="convert it to WGS 84 degrees"
        )
    return taken


def _features(document: dict[str, Any]) -> list[tuple[list[list[NDArray[np.float64]]], Any, Any]]:
    """Polygons, properties and id of every feature that has polygons; a bare geometry is one feature."""
    listed = document["features"] if document["type"] == "FeatureCollection" else [document]
    found = [(_polygons(feature), feature.get("properties"), feature.get("id")) for feature in listed]
    return [entry for entry in found if entry[0]]


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
