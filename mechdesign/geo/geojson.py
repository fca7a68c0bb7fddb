"""Polygons and lines of GeoJSON files, converted to degrees of WGS 84."""

from __future__ import annotations

import math
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Points
from mechdesign.base.files import readable
from mechdesign.base.json_fields import read_json
from mechdesign.base.log import log_note
from mechdesign.base.optional import import_optional
from mechdesign.base.validation import validate_call
from mechdesign.errors import FileFormatError
from mechdesign.geo.area import Area, area_of
from mechdesign.geo.layers import is_layer, read_layer
from mechdesign.problem.tables import Note

_NESTING = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}
_ESRI = {"spatialReference", "geometryType", "attributes", "rings", "curveRings", "paths"}
_CONVERT = "convert it: ogr2ogr -f GeoJSON -t_srs EPSG:4326 area.geojson FILE"
_WGS84 = "OGC:CRS84"
_LONGEST_EDGE = 1000.0  # m on a projected plane: a longer edge is cut, as it would bend by over 2 cm in degrees
_WORLD = 1e8  # m: no map of the Earth reaches further from its origin
_NEAR = 1.0  # degrees beyond the area that a system is meant for; a guess
_WORDS = {"Point": "point", "LineString": "line"}


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A shapely geometry in degrees, with the properties and id of the file."""

    geometry: Any
    properties: Any = None
    id: Any = None


# A position is a longitude from -360 to 360, then a latitude (RFC 7946); heights are dropped. pyproj converts other
# systems. The system is that of a `crs` member (GeoJSON of 2008), or `crs` for a file whose numbers are not degrees.
# TopoJSON, Esri JSON, duplicate names in an object and numbers that are not finite are refused.
@validate_call
def read_area(path: str | Path, *, crs: str | None = None, on_note: Note = log_note) -> Area:
    """Read the union of all polygons of a file. Heights, points and lines are ignored.

    Parameters
    ----------
    path : str or Path
        GeoJSON, or the only layer of a .gpkg, .shp or .fgb (extra `layers`).
    crs : str
        Coordinate system, such as "EPSG:27700", of a file that declares none and does not hold degrees.
    on_note : callable
        Called with a sentence about a projection, repaired polygons, or ignored parts.

    Returns
    -------
    Area

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> ring = [[12.45, 41.85], [12.55, 41.85], [12.55, 41.95], [12.45, 41.85]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "area.geojson"
    ...     _ = path.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    ...     round(md.geo.read_area(path).middle, 2)
    12.5
    """
    features = polygon_features(path, crs=crs, on_note=on_note)
    polygons = [polygon for feature in features for polygon in rings_of(feature)]
    return area_of(polygons, source=path, on_note=on_note)


def read_lines(path: str | Path) -> list[Points]:
    """Read the lines of a GeoJSON file and the borders of its polygons, each (k, 2) in degrees."""
    features = _read_features(path, "over", None, lambda _: None)
    lines = [line for feature in features for line in _lines(feature.geometry)]
    if not lines:
        raise FileFormatError("holds no lines in degrees, longitude before latitude", field="over", value=path)
    return lines


def polygon_features(path: str | Path, *, crs: str | None = None, on_note: Note) -> list[Feature]:
    """Read the features of a file that have polygons, without their other parts."""
    features, ignored = [], Counter[str]()
    for feature in _read_features(path, "area", crs, on_note):
        parts = list(_parts(feature.geometry))
        polygons = [part for part in parts if part.geom_type == "Polygon"]
        ignored.update(_WORDS[part.geom_type] for part in parts if part.geom_type != "Polygon")
        if polygons:
            shapely = import_optional("shapely", "geo")
            features.append(replace(feature, geometry=shapely.MultiPolygon(polygons)))
    others = " and ".join(f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in sorted(ignored.items()))
    if not features:
        problem = f"holds no polygon, only {others}" if others else "holds no polygon"
        raise FileFormatError(problem, field="area", value=path, remedy="give a Polygon or a MultiPolygon")
    if others:
        on_note(f"{Path(path).name}: {others} {'is' if ignored.total() == 1 else 'are'} ignored; only polygons count.")
    return features


def rings_of(feature: Feature) -> list[list[Points]]:
    """The polygons of a feature of `polygon_features`, each its rings (k, 2), the outer one first."""
    return [
        [np.asarray(ring.coords, float) for ring in (part.exterior, *part.interiors)] for part in feature.geometry.geoms
    ]


def _read_features(path: str | Path, field: str, crs: str | None, on_note: Note) -> list[Feature]:
    import_optional("shapely", "geo")
    if is_layer(path):
        listed = [(Feature(geometry=shape, properties=row), own) for shape, row, own in read_layer(path, field)]
        placed = [(feature, own) for feature, own in listed if feature.geometry and not feature.geometry.is_empty]
        return _in_degrees(placed, path, field, crs, on_note)
    with readable(path, field):
        content = Path(path).read_bytes()
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise FileFormatError("is empty", field=field, value=path)
    try:
        document = read_json(content)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(
            f"cannot be read as GeoJSON ({error})", field=field, value=path, remedy=_CONVERT
        ) from error
    try:
        features = list(_features(document, None))
    except _NotGeoJSON as error:
        raise FileFormatError(str(error), field=field, value=path, remedy=error.remedy) from error
    placed = [
        (feature, declared) for feature, declared in features if feature.geometry and not feature.geometry.is_empty
    ]
    return _in_degrees(placed, path, field, crs, on_note)


class _NotGeoJSON(Exception):
    def __init__(self, problem: str, remedy: str = _CONVERT) -> None:
        super().__init__(problem)
        self.remedy = remedy


def _features(document: Any, crs: Any) -> Iterator[tuple[Feature, Any]]:
    # A `crs` member applies to everything inside its object, unless an inner object declares another one.
    if not isinstance(document, Mapping):
        raise _NotGeoJSON(f"must be a JSON object, got {reprlib.repr(document)}")
    kind, crs = document.get("type"), document.get("crs") or crs
    if kind == "Topology":
        raise _NotGeoJSON("is TopoJSON, not GeoJSON")
    if kind is None and _ESRI & set(document):
        raise _NotGeoJSON("is Esri JSON, not GeoJSON")
    if kind == "FeatureCollection":
        features = document.get("features")
        if not isinstance(features, list):
            raise _NotGeoJSON(f"must have a list of features, got {reprlib.repr(features)}")
        for feature in features:
            yield from _features(feature, crs)
    elif kind == "Feature":
        geometry = document.get("geometry")
        inner = geometry.get("crs") if isinstance(geometry, Mapping) else None
        shape = None if geometry is None else _geometry(geometry)
        yield Feature(geometry=shape, properties=document.get("properties"), id=document.get("id")), inner or crs
    else:
        yield Feature(geometry=_geometry(document)), crs


def _geometry(document: Any) -> Any:
    import shapely
    from shapely.geometry import shape

    if not isinstance(document, Mapping):
        raise _NotGeoJSON(f"must have geometries that are objects, got {reprlib.repr(document)}")
    kind = document.get("type")
    if kind == "GeometryCollection" and isinstance(parts := document.get("geometries"), list):
        return shapely.GeometryCollection([_geometry(part) for part in parts])
    if kind not in _NESTING:
        is_esri = kind is None and _ESRI & set(document)
        raise _NotGeoJSON("is Esri JSON, not GeoJSON" if is_esri else f"has an object of type {reprlib.repr(kind)}")
    coordinates = _positions(document.get("coordinates"), _NESTING[kind])
    try:
        return shape({"type": kind, "coordinates": coordinates})
    except (ValueError, TypeError, IndexError, shapely.errors.ShapelyError) as error:
        raise _NotGeoJSON(
            f"has a {kind} that is not valid ({error})", "a line needs two positions, a ring four"
        ) from error


def _positions(value: Any, depth: int) -> Any:
    """Check positions in lists nested `depth` deep; drop heights and empty inner lists."""
    if not isinstance(value, list):
        raise _NotGeoJSON(f"must have coordinates in lists, got {reprlib.repr(value)}")
    if depth:
        return [_positions(part, depth - 1) for part in value if part != []]
    if len(value) >= 2 and all(type(x) in (int, float) and math.isfinite(x) for x in value[:2]):
        return tuple(map(float, value[:2]))
    if not value:
        return ()
    raise _NotGeoJSON(f"must have positions of two finite numbers or more, got {reprlib.repr(value)}")


def _in_degrees(
    features: list[tuple[Feature, Any]], path: str | Path, field: str, crs: str | None, on_note: Note
) -> list[Feature]:
    undeclared = [feature.geometry for feature, declared in features if declared is None]
    # `crs` applies only if a geometry cannot be in degrees, so that files in degrees keep working with it.
    assumed = None if all(map(_are_degrees, undeclared)) else crs
    if crs is not None and assumed is None:
        why = "holds degrees (WGS 84)" if undeclared else "declares its own coordinate system"
        on_note(f"{Path(path).name}: {why}; the coordinate system {crs} is not applied to it.")
    systems: dict[str, Callable[[Any], Any] | None] = {}
    projected = []
    for feature, declared in features:
        geometry, name = feature.geometry, assumed if declared is None else _name(declared, path, field)
        if name is not None:
            if name not in systems:
                systems[name] = _to_degrees(name, path, "crs" if declared is None else field, on_note)
            if (to_degrees := systems[name]) is not None:
                geometry = to_degrees(geometry)
        if not _are_degrees(geometry):
            _refuse_lengths(geometry, path, field, projected=name is not None)
        projected.append(replace(feature, geometry=geometry))
    return projected


def points_in_degrees(positions: Points, crs: str, path: str | Path, on_note: Note) -> Points:
    """Longitudes and latitudes (k, 2) in WGS 84 of positions (k, 2) in a named system, east before north."""
    shapely = import_optional("shapely", "geo")
    to_degrees = _to_degrees(crs, path, "crs", on_note)
    if to_degrees is None:
        return positions
    return np.asarray(shapely.get_coordinates(to_degrees(shapely.MultiPoint(positions))))


def _are_degrees(geometry: Any) -> bool:
    west, south, east, north = geometry.bounds
    return bool(west >= -360 and east <= 360 and south >= -90 and north <= 90)


def _refuse_lengths(geometry: Any, path: str | Path, field: str, *, projected: bool) -> None:
    import shapely

    positions = shapely.get_coordinates(geometry)
    wrong = positions[~((np.abs(positions[:, 0]) <= 360) & (np.abs(positions[:, 1]) <= 90))][0]
    swapped = (np.abs(positions[:, 1]) <= 360).all() and (np.abs(positions[:, 0]) <= 90).all()
    remedy = "write the longitude first" if swapped else f"name their system, crs='EPSG:27700', or {_CONVERT}"
    if projected:
        remedy = "the coordinates do not belong to the system that is declared"
    raise FileFormatError(
        "must be longitudes within 360 and latitudes within 90 degrees (WGS 84), longitude first",
        field=field,
        value=f"{path}: {wrong[0]:g}, {wrong[1]:g}",
        remedy=remedy,
    )


def _name(declared: Any, path: str | Path, field: str) -> str:
    properties = declared.get("properties") if isinstance(declared, Mapping) else None
    name = declared
    if isinstance(properties, Mapping):
        name = properties.get("name")
        if declared.get("type") == "EPSG" and "code" in properties:  # GeoJSON before 2008
            name = f"EPSG:{properties['code']}"
    if not isinstance(name, str) or not name.strip():
        problem = "declares a coordinate system without a name"
        raise FileFormatError(problem, field=field, value=f"{path}: {reprlib.repr(declared)}", remedy=_CONVERT)
    return name.strip()


def is_map(name: str, path: str | Path) -> bool:
    """True if a named coordinate system has lengths on a map, not degrees."""
    return bool(_system(name, path, "crs").is_projected)


def _system(name: str, path: str | Path, field: str) -> Any:
    pyproj = import_optional("pyproj", "geo")
    plain = re.sub(r"^EPSG::", "EPSG:", re.sub(r"^(OGC:+)?CRS84$", _WGS84, name, flags=re.I), flags=re.I)
    remedy = "use another name of it, such as EPSG:27700" if field == "crs" else _CONVERT
    try:
        system = pyproj.CRS.from_user_input(plain).to_2d()
    except pyproj.exceptions.ProjError as error:
        problem = "names an unknown coordinate system"
        raise FileFormatError(problem, field=field, value=f"{path}: {name}", remedy=remedy) from error
    if not (system.is_projected or system.is_geographic):
        problem = "names a coordinate system of neither degrees nor lengths on a map"
        raise FileFormatError(problem, field=field, value=f"{path}: {name}", remedy=remedy)
    return system


def _to_degrees(name: str, path: str | Path, field: str, on_note: Note) -> Callable[[Any], Any] | None:
    pyproj = import_optional("pyproj", "geo")
    import shapely

    system = _system(name, path, field)
    # Longitude first: files follow RFC 7946, not the order of axes in the register.
    transform = pyproj.Transformer.from_crs(system, _WGS84, always_xy=True).transform
    if system.equals(pyproj.CRS(_WGS84), ignore_axis_order=True):
        return None
    on_note(f"{Path(path).name}: projected from {system.name} to longitude and latitude (WGS 84).")
    metres = system.axis_info[0].unit_conversion_factor if system.is_projected and system.axis_info else 0.0

    def to_degrees(geometry: Any) -> Any:
        if metres and _are_degrees(geometry):
            problem = f"holds degrees, and its coordinate system is {system.name}, which is not in degrees"
            remedy = "name the system of its numbers" if field == "crs" else "remove its member crs, or correct it"
            raise FileFormatError(problem, field=field, value=path, remedy=remedy)
        if metres and np.abs(geometry.bounds).max() * metres > _WORLD:
            problem = f"has coordinates that do not belong to {system.name}"
            raise FileFormatError(problem, field=field, value=f"{path}: {np.abs(geometry.bounds).max():g}")
        dense = shapely.segmentize(geometry, _LONGEST_EDGE / metres) if metres else geometry
        in_degrees = shapely.transform(dense, lambda xy: np.column_stack(transform(xy[:, 0], xy[:, 1])))
        # Outside the area of a system a file may still be right; it is refused only if exchanged axes would fit.
        if metres and not _is_in_area_of_use(system, in_degrees):
            exchanged = shapely.transform(geometry, lambda xy: np.column_stack(transform(xy[:, 1], xy[:, 0])))
            if _is_in_area_of_use(system, exchanged):
                problem = f"lies outside the area that {system.name} is for"
                remedy = "x and y are exchanged; write the coordinate to the east first"
                raise FileFormatError(problem, field=field, value=path, remedy=remedy)
        return in_degrees

    return to_degrees


def _is_in_area_of_use(system: Any, geometry: Any) -> bool:
    import shapely

    if (region := system.area_of_use) is None:
        return True
    longitude, latitude = shapely.get_coordinates(geometry).T
    width = (region.east - region.west) % 360 or 360
    # Infinite coordinates, of points beyond a projection, have invalid remainders and are outside.
    with np.errstate(invalid="ignore"):
        across = (longitude - region.west + _NEAR) % 360 <= width + 2 * _NEAR
    return bool((across & (latitude >= region.south - _NEAR) & (latitude <= region.north + _NEAR)).any())


def _parts(geometry: Any) -> Iterator[Any]:
    for part in getattr(geometry, "geoms", [geometry]):
        if part is not geometry:
            yield from _parts(part)
        elif not part.is_empty:
            yield part


def _lines(geometry: Any) -> Iterator[Points]:
    for part in _parts(geometry):
        if part.geom_type == "Polygon":
            yield from (np.asarray(ring.coords, float) for ring in (part.exterior, *part.interiors))
        elif part.geom_type == "LineString":
            yield np.asarray(part.coords, float)
