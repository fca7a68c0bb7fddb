"""overlay: lines of a GeoJSON file, coasts or streets, on the plane of a domain that stands on Earth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.readers.geojson import read_lines
from mechdesign.setting.space.domain import Domain


def lines_over(path: str | Path | None, domain: Domain) -> list[NDArray[np.float64]]:
    """Lines (k, 2) in the unit of the domain, those that come near its places; none without a path.

    Raises: InputError for a domain without a plane; what `read_lines` raises.
    """
    if path is None:
        return []
    if domain.plane is None:
        raise InputError(
            "the places do not say where on Earth they are",
            field="over",
            value=path,
            remedy="leave it out, or design for an area or for streets in degrees",
        )
    low, high = domain.points.min(axis=0), domain.points.max(axis=0)
    margin = float((high - low).max())
    near = []
    for line in read_lines(path):
        points = domain.plane.forward(line[:, 0], line[:, 1])
        if (np.fmax.reduce(points) >= low - margin).all() and (np.fmin.reduce(points) <= high + margin).all():
            near.append(np.where(np.isfinite(points).all(axis=1, keepdims=True), points, np.nan))
    return near
