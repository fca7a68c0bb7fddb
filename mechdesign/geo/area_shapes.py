"""The shapes of areas on Earth: the polygons of the file that they came from, or the union of their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.log import log_note
from mechdesign.base.optional import import_optional
from mechdesign.geo.geojson import polygon_features
from mechdesign.geo.partition import Partition, are_polygons, names_of_features
from mechdesign.geo.shapes import DEGREES, cell_shapes, cut_at_180, project_shapes
from mechdesign.problem.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaShapes:
    """By name of area: a geometry in `system`, and the properties that the file has for it."""

    shapes: Mapping[str, Any]
    properties: Mapping[str, Mapping[str, Any]]
    system: str = DEGREES

    def columns(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        """The columns of rows, which name their `area`, then those properties of the file with other names."""
        own = dict.fromkeys(name for row in rows for name in row)
        others = dict.fromkeys(str(name) for one in self.properties.values() for name in one)
        columns = {name: [row.get(name) for row in rows] for name in own}
        # Formats compare names without case.
        taken = {name.lower() for name in own} | {"fid", "geom", "geometry"}
        for name in others:
            if name.lower() not in taken:
                taken.add(name.lower())
                columns[name] = [self.properties.get(row["area"], {}).get(name) for row in rows]
        return columns

    def shapes_of(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The geometry of each row, None for an area without polygon."""
        return [self.shapes.get(row["area"]) for row in rows]


def shapes_of_areas(
    source: str | Path,
    domain: Domain,
    areas: Partition,
    *,
    name_field: str | None = None,
    crs: str | None = None,
    system: str = DEGREES,
) -> AreaShapes:
    """The shapes of areas that `read_areas` read from `source`, in a system."""
    shapely = import_optional("shapely", "geo")
    shapes, properties = _polygons(Path(source), name_field, crs) if are_polygons(source) else ({}, {})
    assert domain.plane is not None
    found = dict(zip(shapes, project_shapes(list(shapes.values()), domain.plane, system), strict=True))
    cells = cell_shapes(domain, system)
    # Areas without a polygon, such as the cells outside all, are the unions of their cells.
    unions = {
        name: shapely.union_all(cells[areas.label == k]) for k, name in enumerate(areas.names) if name not in found
    }
    return AreaShapes(shapes=found | unions, properties=properties, system=system)


def _polygons(
    path: Path, name_field: str | None, crs: str | None
) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """The polygon in degrees of each area of a file, and its properties."""
    features = polygon_features(path, crs=crs, on_note=log_note)
    parts: dict[str, list[Any]] = {}
    properties: dict[str, Mapping[str, Any]] = {}
    for name, feature in zip(names_of_features(path, features, name_field, log_note), features, strict=True):
        parts.setdefault(name, []).append(feature.geometry)
        known = feature.properties if isinstance(feature.properties, Mapping) else {}
        # Several polygons are one area: it has the properties in which they agree.
        before = properties.get(name, known)
        properties[name] = {key: value for key, value in known.items() if key in before and before[key] == value}
    return {name: _one(listed) for name, listed in parts.items()}, properties


def _one(parts: list[Any]) -> Any:
    """One geometry of polygons, as they are if they need no change."""
    shapely = import_optional("shapely", "geo")
    shape = parts[0] if len(parts) == 1 else shapely.union_all(np.array(parts, object))
    single = shapely.get_parts(cut_at_180(shape))
    return shapely.orient_polygons(single[0] if len(single) == 1 else shapely.MultiPolygon(list(single)))
