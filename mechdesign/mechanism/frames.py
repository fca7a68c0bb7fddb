"""Reports of a frame of points, such as a GeoDataFrame, without importing its library: `.geometry` holds the points."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.base.arrays import Points
from mechdesign.base.threads import Rng
from mechdesign.errors import InputError
from mechdesign.mechanism.collection import Collection
from mechdesign.mechanism.sampler import Sampler


def is_frame(value: object) -> bool:
    """True for an object whose `.geometry` has coordinates x and y."""
    geometry = getattr(value, "geometry", None)
    return geometry is not None and hasattr(geometry, "x") and hasattr(geometry, "y")


def sample_frame(sampler: Sampler, frame: Any, *, rng: Rng = None) -> Any:
    """A copy of a frame whose points are reports, in its system, with columns report, accuracy and cost."""
    # Refuses a frame without a coordinate system, and points in no cell. Other columns stay as they are.
    collection = Collection(source=sampler, rng=rng)
    geometry = frame.geometry
    if getattr(geometry, "crs", None) is None:
        remedy = "set it: frame.set_crs('EPSG:4326')"
        raise InputError("has no coordinate system", field="at", value=type(frame).__name__, remedy=remedy)
    on_earth = geometry.to_crs("OGC:CRS84")
    located = collection.locate_degrees(np.column_stack([on_earth.x, on_earth.y]).astype(float))
    if not located.is_inside.all():
        outside = np.flatnonzero(~located.is_inside)
        value, remedy = f"{len(outside):,} of {len(on_earth):,} points", "leave them out first"
        raise InputError("lie outside the mechanism", field="at", value=value, remedy=remedy)
    drawn = collection.draw(located)
    if collection.report_degrees is None:
        raise InputError("are not places on Earth", field="reports", value="another unit")
    degrees: Points = collection.report_degrees[drawn.reports]
    points = type(geometry).from_xy(degrees[:, 0], degrees[:, 1], index=frame.index, crs="OGC:CRS84")
    result = frame.set_geometry(points.to_crs(geometry.crs))
    # A frame keeps the name of its column of points; set_geometry with a series renames it.
    if geometry.name is not None and result.geometry.name != geometry.name:
        result = result.drop(columns=[geometry.name], errors="ignore").rename_geometry(geometry.name)
    result["report"] = drawn.reports
    if collection.radii is not None:
        result["accuracy"] = collection.radii[drawn.reports]
    result["cost"] = float(sampler.cost)
    return result
