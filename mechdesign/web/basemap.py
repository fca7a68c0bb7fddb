"""Lines of a page's map: cut to the area, simplified to a pixel of a screen, in 16 bits a coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.optional import import_optional
from mechdesign.problem.domain import Domain

MOST_POINTS = 40_000  # 4 bytes each: 160 kB before compression
_PIXELS = 1500  # across a large screen, of the longer side of the map
_FINEST = 65535  # numbers of a coordinate, from one side of the map to the other


def lines_beside(lines: Sequence[NDArray[np.float64]], domain: Domain) -> dict[str, NDArray[Any]]:
    """Arrays of lines (k, 2) in the unit of a domain: numbers of x and y from `over_box`, the first point of each."""
    if not lines:
        return {}
    shapely = import_optional("shapely", "geo")
    half = np.full(2, domain.spacing) / 2 if domain.cell is None else np.array(domain.cell) / 2
    low, high = domain.points.min(axis=0) - half, domain.points.max(axis=0) + half
    whole = shapely.MultiLineString([part for line in lines for part in _finite_parts(line)])
    shown = shapely.clip_by_rect(whole, *low.tolist(), *high.tolist())
    tolerance = float((high - low).max()) / _PIXELS
    simple = shown.simplify(tolerance)
    while shapely.get_num_coordinates(simple) > MOST_POINTS:
        tolerance *= 2
        simple = shown.simplify(tolerance)
    parts = [np.asarray(part.coords) for part in shapely.get_parts(simple)]
    if not parts:
        return {}
    steps = np.rint((np.concatenate(parts) - low) / (high - low) * _FINEST).astype(np.uint16)
    first = np.cumsum([0, *(len(part) for part in parts)])
    return {
        "over_box": np.concatenate([low, high]),
        "over_x": steps[:, 0].copy(),
        "over_y": steps[:, 1].copy(),
        "over_first": first.astype(np.uint32),
    }


def _finite_parts(line: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The parts of a line between points out of the reach of the plane, of two points or more."""
    finite = np.isfinite(line).all(axis=1)
    parts = np.split(line, np.flatnonzero(np.diff(finite)) + 1)
    return [part for part in parts if len(part) > 1 and np.isfinite(part).all()]
