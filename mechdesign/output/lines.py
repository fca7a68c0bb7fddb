"""Lines of a GeoJSON file near the places of a domain, for maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.registry import Role
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

LINE_READER: Role[Callable[[str | Path], list[NDArray[np.float64]]]] = Role("lines")  # of a GeoJSON file, in degrees


def lines_over(path: str | Path | None, domain: Domain) -> list[NDArray[np.float64]]:
    """The lines (k, 2) near the places of a domain, in its unit; an empty list without a path."""
    if path is None:
        return []
    if domain.plane is None:
        raise InputError("is in degrees, and the mechanism does not say where on Earth it is", field="over", value=path)
    low, high = domain.points.min(axis=0), domain.points.max(axis=0)
    margin = float((high - low).max())
    near = []
    for line in LINE_READER.get()(path):
        # Points out of the reach of the plane are not finite. fmax and fmin skip NaN, and NaN interrupts the line.
        points = domain.plane.forward(line[:, 0], line[:, 1])
        if (np.fmax.reduce(points) >= low - margin).all() and (np.fmin.reduce(points) <= high + margin).all():
            near.append(np.where(np.isfinite(points).all(axis=1, keepdims=True), points, np.nan))
    return near
