"""Points of GeoJSON and GPX files, and of layers that pyogrio reads: GeoPackage, shapefile and FlatGeobuf.

Read: every feature is one point, or has no position. Coordinates are longitude and latitude of WGS 84 (GeoJSON, GPX),
or in the system that a layer declares. Written: reports as points in longitude and latitude. Heights are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from mechdesign.base.files import readable
from mechdesign.base.log import log_note
from mechdesign.base.optional import import_optional
from mechdesign.errors import FileFormatError, InputError
from mechdesign.geo.layers import require_one_layer
from mechdesign.output.point_files.parquet_points import point_wkb
from mechdesign.output.point_files.parts import ROWS, Part, PointFormat, ReportedPart

_FIELD = "points"
_GPX = "http://www.topografix.com/GPX/1/1"
_OURS = "https://mechdesign.invalid/gpx/1"  # a name space, not an address
_GPX_POINTS = ("wpt", "trkpt", "rtept")
_GPX_TEXTS = ("time", "name", "cmt", "desc", "src", "sym", "type")  # children of a point that are kept, in their order
_CRS84 = ("OGC:CRS84", "CRS84", "EPSG:4326", "EPSG::4326", "OGC:1.3:CRS84", "OGC::CRS84")


def read_geojson(path: Path, *, crs: str | None = None, on_note: Callable[[str], None] = log_note) -> Iterator[Part]:
    """Yield the features of a FeatureCollection of points in parts. Memory: the text of the file, and one part."""
    import pandas as pd

    with readable(path, _FIELD):
        text = path.read_text("utf-8-sig")
        columns: dict[str, None] = {}
        # Twice over the text: the first time for the names of all properties, which may differ between features.
        for feature in _features(text, path):
            columns |= dict.fromkeys(_properties(feature))
        features, first = _features(text, path), 1
        while listed := list(islice(features, ROWS)):
            properties = {name: [_properties(feature).get(name) for feature in listed] for name in columns}
            frame = pd.DataFrame(properties, index=range(len(listed)))
            frame = frame.astype({name: object for name in columns if frame[name].dtype.kind in "OUb"})
            degrees = np.array([_position(feature, path, first + k) for k, feature in enumerate(listed)])
            yield Part(frame=frame, first=first, degrees=degrees.reshape(-1, 2))
            first += len(listed)


def _properties(feature: Any) -> Mapping[str, Any]:
    properties = (feature.get("properties") or {}) if isinstance(feature, dict) else {}
    return {"id": feature["id"], **properties} if isinstance(feature, dict) and "id" in feature else properties


def _position(feature: Any, path: Path, number: int) -> tuple[float, float]:
    geometry = feature.get("geometry") if isinstance(feature, dict) else feature
    if geometry is None:
        return math.nan, math.nan
    position = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    if not isinstance(position, list) or len(position) < 2 or not all(type(x) in (int, float) for x in position[:2]):
        kind = geometry.get("type") if isinstance(geometry, dict) else geometry
        raise FileFormatError(
            "must hold points", field=_FIELD, value=f"{kind!s:.60} in feature {number} of {path.name}"
        )
    return float(position[0]), float(position[1])


def _features(text: str, path: Path) -> Iterator[Any]:
    """The features of a collection, decoded one by one; refuses a declared system that is not in degrees."""
    decoder, end = json.JSONDecoder(), _skip(text, 0)
    if end == len(text):
        raise FileFormatError("is empty", field=_FIELD, value=path)
    if text[end : end + 1] != "{":
        raise FileFormatError("must be a FeatureCollection of GeoJSON", field=_FIELD, value=path)
    end, has_features = _skip(text, end + 1), False
    while text[end : end + 1] not in ("}", ""):
        name, end = decoder.raw_decode(text, end)
        end = _skip(text, _skip(text, end) + 1)
        if name == "features" and text[end : end + 1] == "[":
            has_features, end = True, _skip(text, end + 1)
            while text[end : end + 1] not in ("]", ""):
                feature, end = decoder.raw_decode(text, end)
                yield feature
                end = _skip(text, end)
                end = _skip(text, end + 1) if text[end : end + 1] == "," else end
            end += 1
        else:
            value, end = decoder.raw_decode(text, end)
            if name == "crs" and value is not None:
                _refuse_system(value, path)
        end = _skip(text, end)
        end = _skip(text, end + 1) if text[end : end + 1] == "," else end
    if not has_features or text[end : end + 1] != "}":
        raise FileFormatError("must be a FeatureCollection of GeoJSON", field=_FIELD, value=path)


def _skip(text: str, start: int) -> int:
    while text[start : start + 1] in (" ", "\n", "\t", "\r") and start < len(text):
        start += 1
    return start


def _refuse_system(declared: Any, path: Path) -> None:
    name = str(declared.get("properties", {}).get("name", "")) if isinstance(declared, dict) else str(declared)
    if not name.upper().endswith(_CRS84):
        remedy = "convert it: ogr2ogr -f GeoJSON -t_srs EPSG:4326 points.geojson FILE"
        raise FileFormatError("is not in degrees (WGS 84)", field=_FIELD, value=f"{path.name}: {name}", remedy=remedy)


def write_geojson(path: Path, parts: Iterable[ReportedPart]) -> None:
    """Write a FeatureCollection, a feature a line; a row without a report has no geometry."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.write('{"type": "FeatureCollection", "features": [')
        is_first = True
        for part in parts:
            for row, position in _rows(part):
                geometry = None if position is None else {"type": "Point", "coordinates": position}
                feature = {"type": "Feature", "geometry": geometry, "properties": row}
                stream.write(("\n" if is_first else ",\n") + json.dumps(feature, allow_nan=False, default=str))
                is_first = False
        stream.write("\n]}\n")


def _rows(part: ReportedPart) -> Iterator[tuple[dict[str, Any], list[float] | None]]:
    """The properties of every row, missing ones as None, and its position."""
    assert part.degrees is not None
    names = [str(name) for name in part.frame.columns]
    columns = [_values(part.frame[name]) for name in part.frame.columns]
    for values, (east, north) in zip(zip(*columns, strict=True), part.degrees.tolist(), strict=True):
        yield dict(zip(names, values, strict=True)), None if east != east else [east, north]


def _values(column: Any) -> list[Any]:
    if column.dtype.kind == "O" or column.dtype.name.startswith(("str", "object")):
        return [None if value is not None and value != value else value for value in column.tolist()]
    missing = column.isna().tolist()
    return [None if is_missing else value for value, is_missing in zip(column.tolist(), missing, strict=True)]


def read_gpx(path: Path, *, crs: str | None = None, on_note: Callable[[str], None] = log_note) -> Iterator[Part]:
    """Yield waypoints and points of tracks and routes in the order of the file, in parts."""
    with readable(path, _FIELD):
        # Entities of a document type could expand to gigabytes. Without the zero bytes UTF-16 reads the same.
        if b"<!DOCTYPE" in path.read_bytes().replace(b"\0", b"").upper():
            raise FileFormatError("declares a document type", field=_FIELD, value=path, remedy="remove it")
        first, rows = 1, list[dict[str, Any]]()
        track = 0
        for _, element in ElementTree.iterparse(path, events=("end",)):  # noqa: S314 - without a document type
            kind = element.tag.rpartition("}")[2]
            if kind in ("trk", "rte"):
                track += 1
                element.clear()
            if kind not in _GPX_POINTS:
                continue
            texts = {child.tag.rpartition("}")[2]: child.text for child in element}
            row = {name: texts.get(name) or "" for name in _GPX_TEXTS}
            rows.append({"lon": element.get("lon"), "lat": element.get("lat"), "track": track, "kind": kind} | row)
            element.clear()
            if len(rows) == ROWS:
                yield _gpx_part(rows, first)
                first, rows = first + len(rows), []
        if rows:
            yield _gpx_part(rows, first)


def _gpx_part(rows: list[dict[str, Any]], first: int) -> Part:
    import pandas as pd

    degrees = np.array([_gpx_degrees(row, first + k) for k, row in enumerate(rows)])
    return Part(frame=pd.DataFrame(rows), first=first, degrees=degrees)


def _gpx_degrees(row: dict[str, Any], number: int) -> tuple[float, float]:
    degrees = []
    for name in ("lon", "lat"):
        try:
            degrees.append(float(row.pop(name)))
        except (TypeError, ValueError) as error:
            raise FileFormatError(f"has no number as {name}", field=_FIELD, value=f"point {number}") from error
    return degrees[0], degrees[1]


def write_gpx(path: Path, parts: Iterable[ReportedPart]) -> None:
    """Write waypoints of GPX 1.1 for rows with a report; columns that GPX does not have are extensions."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        stream.write(f'<gpx version="1.1" creator="mechdesign" xmlns="{_GPX}" xmlns:m="{_OURS}">\n')
        for part in parts:
            for row, position in _rows(part):
                if position is not None:
                    _write_waypoint(stream, row, position)
        stream.write("</gpx>\n")


def _write_waypoint(stream: TextIO, row: dict[str, Any], position: list[float]) -> None:
    stream.write(f'<wpt lat="{position[1]:.15g}" lon="{position[0]:.15g}">')
    for name in _GPX_TEXTS:
        if row.get(name):
            stream.write(f"<{name}>{escape(str(row[name]))}</{name}>")
    others = {name: value for name, value in row.items() if name not in _GPX_TEXTS and value is not None}
    fields = "".join(
        f"<m:field name={quoteattr(name)}>{escape(str(value))}</m:field>" for name, value in others.items()
    )
    stream.write(f"<extensions>{fields}</extensions></wpt>\n")


def read_layer(path: Path, *, crs: str | None = None, on_note: Callable[[str], None] = log_note) -> Iterator[Part]:
    """Yield the features of the only layer of a file in parts, points in the system that it declares or `crs` names."""
    import pandas as pd

    pyogrio = import_optional("pyogrio", "layers")
    pyproj = import_optional("pyproj", "geo")
    shapely = import_optional("shapely", "geo")
    with readable(path, _FIELD):
        require_one_layer(path, _FIELD)
        system = pyogrio.read_info(path)["crs"] or crs
        if system is None:
            remedy = "name it: crs='EPSG:27700'"
            raise FileFormatError("declares no coordinate system", field=_FIELD, value=path, remedy=remedy)
        transform = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(system), "OGC:CRS84", always_xy=True)
        first = 1
        while True:
            meta, _, geometry, fields = pyogrio.raw.read(
                path, skip_features=first - 1, max_features=ROWS, force_2d=True
            )
            if not len(geometry):
                return
            shapes = shapely.from_wkb(geometry)
            is_point = (shapely.get_type_id(shapes) == 0) | shapely.is_missing(shapes)
            if not is_point.all():
                kind = shapes[int(np.argmin(is_point))].geom_type
                raise FileFormatError("must hold points", field=_FIELD, value=f"{kind} in {path.name}")
            frame = pd.DataFrame(dict(zip(map(str, meta["fields"]), fields, strict=True)))
            x, y = shapely.get_x(shapes), shapely.get_y(shapes)
            degrees = np.full((len(x), 2), np.nan)
            has = np.isfinite(x) & np.isfinite(y)
            degrees[has] = np.column_stack(transform.transform(x[has], y[has]))
            yield Part(frame=frame, first=first, degrees=degrees)
            first += len(frame)


def write_geopackage(path: Path, parts: Iterable[ReportedPart]) -> None:
    """Write one layer of points, named reports, in longitude and latitude."""
    pyogrio = import_optional("pyogrio", "layers")
    # GDAL names the kind of a file by its suffix.
    layer = path.with_name(path.name + ".gpkg")
    try:
        for number, part in enumerate(parts):
            assert part.degrees is not None
            names, columns = [str(name) for name in part.frame.columns], [_array(part.frame[n]) for n in part.frame]
            geometry = np.array(point_wkb(part.degrees), object)
            pyogrio.raw.write(
                layer, geometry, [values for values, _ in columns], names, field_mask=[mask for _, mask in columns],
                geometry_type="Point", crs="EPSG:4326", driver="GPKG", layer="reports", append=number > 0,
            )  # fmt: skip
        layer.replace(path)
    finally:
        layer.unlink(missing_ok=True)


def _array(column: Any) -> tuple[Any, Any]:
    """The values of a column as pyogrio takes them, and True where one is missing."""
    missing = column.isna().to_numpy(bool)
    if column.dtype.kind == "i":
        return column.fillna(0).to_numpy(np.int64), missing
    if column.dtype.kind == "f":
        return column.to_numpy(float, na_value=np.nan), missing
    return np.array([None if value != value else str(value) for value in column.tolist()], object), missing


def _require_layers() -> None:
    for name, extra in (("pyogrio", "layers"), ("pyproj", "geo"), ("shapely", "geo")):
        import_optional(name, extra)


def _no_writer(path: Path, parts: Iterable[ReportedPart]) -> None:
    raise InputError("is read, and not written", field="output", value=path.suffix, remedy="write .gpkg")


GEOJSON = PointFormat(read=read_geojson, write=write_geojson, is_layer=True)
GPX = PointFormat(read=read_gpx, write=write_gpx, is_layer=True, allows_empty=False)
GEOPACKAGE = PointFormat(read=read_layer, write=write_geopackage, is_layer=True, require=_require_layers)
OTHER_LAYER = PointFormat(read=read_layer, write=_no_writer, is_layer=True, require=_require_layers)
