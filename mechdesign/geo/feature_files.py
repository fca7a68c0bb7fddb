"""Shapes with columns as a layer of a map: GeoJSON, GeoPackage and GeoParquet.

GeoJSON is in longitude and latitude (RFC 7946). GeoPackage and GeoParquet also hold other coordinate systems.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.atomic_write import write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.errors import InputError
from mechdesign.geo.shapes import DEGREES
from mechdesign.output.point_files.parquet_points import GEOMETRY, geo_metadata


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureLayer:
    """A named layer: shapely geometries (n,) in `system`, None for none, columns (n,), and texts beside them."""

    name: str
    shapes: Sequence[Any]
    columns: Mapping[str, Any]
    notes: Mapping[str, str] = field(default_factory=dict)
    system: str = DEGREES


def check_feature_file(path: Path, system: str = DEGREES) -> None:
    """Refuse GeoJSON in another system, and a format whose packages are not installed."""
    suffix = path.suffix.lower()
    if suffix == ".geojson" and system != DEGREES:
        remedy = "write .gpkg or .parquet"
        raise InputError("GeoJSON is in longitude and latitude", field="crs", value=system, remedy=remedy)
    for package, extra in _NEEDS[suffix]:
        import_optional(package, extra)


def write_features(layer: FeatureLayer, path: Path) -> None:
    """Write a layer in the format of the suffix, atomically."""
    check_feature_file(path, layer.system)
    write_atomically(path, lambda temporary: WRITERS[path.suffix.lower()](layer, temporary))


def _write_geojson(layer: FeatureLayer, path: Path) -> None:
    shapely = import_optional("shapely", "geo")
    shapes = [None if shape is None else json.loads(shapely.to_geojson(shape)) for shape in layer.shapes]
    columns = {name: _plain(values) for name, values in layer.columns.items()}
    with path.open("w", encoding="utf-8", newline="") as stream:
        notes = "".join(f"{json.dumps(name)}: {json.dumps(text)}, " for name, text in layer.notes.items())
        stream.write(f'{{"type": "FeatureCollection", {notes}"features": [')
        for k, shape in enumerate(shapes):
            properties = {name: values[k] for name, values in columns.items()}
            feature = {"type": "Feature", "id": k, "geometry": shape, "properties": properties}
            stream.write((",\n" if k else "\n") + json.dumps(feature, allow_nan=False))
        stream.write("\n]}\n")


def _write_geopackage(layer: FeatureLayer, path: Path) -> None:
    pyogrio, shapely = import_optional("pyogrio", "layers"), import_optional("shapely", "geo")
    kinds = _kinds(layer)
    kind = "MultiPolygon" if "MultiPolygon" in kinds else kinds[0] if kinds else "MultiPolygon"
    fields = [_field(values) for values in layer.columns.values()]
    # GDAL names the kind of a file by its suffix.
    named = path.with_name(path.name + ".gpkg")
    try:
        pyogrio.raw.write(
            named, shapely.to_wkb(np.array(layer.shapes, object)), [values for values, _ in fields],
            list(layer.columns), field_mask=[mask for _, mask in fields], geometry_type=kind, crs=layer.system,
            driver="GPKG", layer=layer.name, promote_to_multi=kind == "MultiPolygon", dataset_metadata=layer.notes,
        )  # fmt: skip
        named.replace(path)
    finally:
        named.unlink(missing_ok=True)


def _write_geoparquet(layer: FeatureLayer, path: Path) -> None:
    pa, parquet = import_optional("pyarrow", "parquet"), import_optional("pyarrow.parquet", "parquet")
    shapely = import_optional("shapely", "geo")
    columns = {name: _plain(values) for name, values in layer.columns.items()}
    columns[GEOMETRY] = pa.array(list(shapely.to_wkb(np.array(layer.shapes, object))), pa.binary())
    system = None
    if layer.system != DEGREES:
        system = import_optional("pyproj", "geo").CRS.from_user_input(layer.system).to_json_dict()
    metadata = geo_metadata(_kinds(layer), system)
    metadata |= {name.encode(): text.encode() for name, text in layer.notes.items()}
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), path, compression="zstd")


def _kinds(layer: FeatureLayer) -> list[str]:
    return sorted({shape.geom_type for shape in layer.shapes if shape is not None})


def _plain(values: Sequence[Any]) -> list[Any]:
    """Values of one type, None for a missing one; words where a column has several types."""
    listed = [None if value != value else value for value in np.asarray(values, object).tolist()]
    kinds = {type(value) for value in listed if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in listed]
    if len(kinds) <= 1 and not kinds & {list, dict}:
        return listed
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in listed]


def _field(values: Sequence[Any]) -> tuple[Any, Any]:
    """The values of a column as pyogrio takes them, and True where one is missing."""
    listed = _plain(values)
    missing = np.array([value is None for value in listed])
    kinds = {type(value) for value in listed if value is not None}
    if kinds and kinds <= {int, bool}:
        return np.array([0 if value is None else int(value) for value in listed], np.int64), missing
    if kinds <= {float}:
        return np.array([np.nan if value is None else value for value in listed], float), missing
    return np.array(listed, object), missing


WRITERS: dict[str, Callable[[FeatureLayer, Path], None]] = {
    ".geojson": _write_geojson,
    ".gpkg": _write_geopackage,
    ".parquet": _write_geoparquet,
}
_SHAPELY = ("shapely", "geo")
_NEEDS = {
    ".geojson": [_SHAPELY],
    ".gpkg": [_SHAPELY, ("pyogrio", "layers")],
    ".parquet": [_SHAPELY, ("pyarrow.parquet", "parquet")],
}
