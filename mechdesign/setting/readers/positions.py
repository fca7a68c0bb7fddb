r"""Positions on Earth from a CSV file with a header, as points of a plane in m.

    spherical Mercator      x = R lambda,  y = R ln tan(pi / 4 + phi / 2),  R = 6,371,000 m
    azimuthal equidistant   about the middle of the positions, WGS 84, by PROJ

phi is the latitude, lambda the longitude, both in radians. A metre of the Mercator plane is cos(phi) metres on the
ground: at 40.7 degrees north 1 m on the ground is 1.32 m of the plane, so that 1 / 1000 nats per m of the plane are
1 / 758 on the ground, and more further north. The equidistant plane keeps ground metres: 10 km from its centre to one
part in a million, 100 km to one in ten thousand.
Source: paper 002, section 5 (Mercator); the other is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.setting.readers.microdata import read_columns
from mechdesign.setting.space.plane import WIDEST, Plane

Projection = Literal["mercator", "equidistant"]
RADIUS = 6_371_000.0  # of the sphere, in m
LATITUDES, LONGITUDES = ("latitude", "lat"), ("longitude", "lng", "lon", "long")


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates(Shown):
    """points (n, 2), x east and y north in m of the plane; projection; dropped, how many lines had no position."""

    points: NDArray[np.float64]
    projection: Projection
    dropped: int

    @property
    def unit(self) -> str:
        """The unit of the points: m, of the plane."""
        return "m"


@asked
def read_coordinates(path: str | Path, *, projection: Projection = "mercator") -> Coordinates:
    """Read columns of latitude and longitude (LATITUDE, lat; LONGITUDE, lng, lon, long; any case), in degrees.

    Lines with an empty field, or with 0 for either, which stands for no position in collision records, are dropped and
    counted.
    Raises: FileFormatError for a file that is missing, empty, without such columns, or with a field that is no number;
        InputError where nothing is left, for a latitude beyond 85 or a longitude beyond 180 degrees, for another
        projection, and with the command to run where pyproj is not installed (the extra `geo`; equidistant only).
    """
    if projection not in ("mercator", "equidistant"):
        raise InputError(
            "unknown projection", field="projection", value=projection, remedy="use mercator or equidistant"
        )
    columns = read_columns(path, {"latitude": LATITUDES, "longitude": LONGITUDES}, "coordinates")
    latitude, longitude = columns["latitude"], columns["longitude"]
    kept = ~(np.isnan(latitude) | np.isnan(longitude) | (latitude == 0) | (longitude == 0))
    latitude, longitude = latitude[kept], longitude[kept]
    if len(latitude) == 0:
        raise InputError("has no line with a position", field="coordinates", value=path, remedy="check the columns")
    odd = ~((np.abs(latitude) <= WIDEST) & (np.abs(longitude) <= 180))
    if odd.any():
        raise InputError(
            f"must be latitudes within {WIDEST:g} and longitudes within 180 degrees",
            field="coordinates",
            value=f"{latitude[odd][0]:g}, {longitude[odd][0]:g} ({odd.sum()} such)",
            remedy="give degrees, not projected metres",
        )
    project = mercator if projection == "mercator" else _equidistant
    return Coordinates(points=project(latitude, longitude), projection=projection, dropped=int((~kept).sum()))


def mercator(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (n, 2) of the spherical Mercator plane in m, of degrees (n,)."""
    north = np.log(np.tan(math.pi / 4 + np.radians(latitude) / 2))
    return RADIUS * np.column_stack([np.radians(longitude), north])


def _equidistant(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    middle = [(float(side.min()) + float(side.max())) / 2 for side in (latitude, longitude)]
    return Plane(latitude=middle[0], longitude=middle[1]).forward(longitude, latitude)
