"""Polygons and lines of layers that pyogrio reads (extra `layers`): GeoPackage, shapefile and FlatGeobuf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mechdesign.base.files import readable
from mechdesign.base.optional import import_optional
from mechdesign.errors import FileFormatError

SUFFIXES = (".gpkg", ".shp", ".fgb")
_CONVERT = "convert it: ogr2ogr -f GeoJSON -t_srs EPSG:4326 area.geojson FILE LAYER"


def is_layer(path: str | Path) -> bool:
    """True for the name of a file that `read_layer` reads."""
    return Path(path).suffix.lower() in SUFFIXES


def require_one_layer(path: str | Path, field: str, *, remedy: str | None = None) -> None:
    """Refuse a file with several layers by their names."""
    pyogrio = import_optional("pyogrio", "layers")
    layers = pyogrio.list_layers(path)
    if len(layers) != 1:
        names = ", ".join(map(str, layers[:, 0]))
        raise FileFormatError("must hold one layer", field=field, value=f"{Path(path).name}: {names}", remedy=remedy)


def read_layer(path: str | Path, field: str) -> list[tuple[Any, dict[str, Any], str | None]]:
    """The geometry, the properties and the declared coordinate system of every feature of the only layer of a file."""
    pyogrio = import_optional("pyogrio", "layers")
    shapely = import_optional("shapely", "geo")
    with readable(path, field):
        require_one_layer(path, field, remedy=_CONVERT)
        meta, _, geometries, columns = pyogrio.raw.read(path, force_2d=True)
        fields = [str(name) for name in meta["fields"]]
        rows = zip(*(column.tolist() for column in columns), strict=True) if fields else [()] * len(geometries)
        properties = [dict(zip(fields, row, strict=True)) for row in rows]
        shapes = shapely.from_wkb(geometries)
        return [(shape, each, meta["crs"]) for shape, each in zip(shapes, properties, strict=True)]
