"""Plane: longitude and latitude as x east and y north of a centre, and by how much it lengthens the ground.

    azimuthal equidistant: a point at geodesic distance r and azimuth a from the centre lies at r (sin a, cos a)

Within the radius r of the centre, with b the semi-minor axis of the ellipsoid,

    geodesic distance  <=  distance in the plane  <=  (1 + excess(r)) geodesic distance,
    excess(r) = t / sin t - 1  <=  t^2 / 6 (1 + t^2 / 8),  t = r / b <= 0.79                                        (1)

that is 4.1e-7 at 10 km and 4.1e-5 at 100 km. A mechanism for eps / (1 + excess) times the distance in the plane is
private for eps times the geodesic distance.
Source: Andrés et al. 2013, section 3; J. P. Snyder, Map Projections (USGS Professional Paper 1395), chapter 25,
computed by PROJ from geodesics. The bound is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.base.arrays import Points, Vector
from mechdesign.base.json_fields import check_keys, finite
from mechdesign.base.optional import import_optional
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import METRES, canonical_unit
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError

WIDEST = 85.0  # degrees of latitude: planes are for a city or a country, not for a pole
LARGEST_EXCESS = 1e-3  # areas that a plane stretches by more are refused: 492 km from the centre
ELLIPSOID = "WGS84"
_MINOR_AXIS = 6_356_752.314245  # b of WGS 84, in m


def wrap_degrees(degrees: Vector) -> Vector:
    """Differences of longitudes, or longitudes, in [-180, 180)."""
    return np.where(np.abs(degrees) < 180, degrees, (degrees + 180) % 360 - 180)


def middle_longitude(longitude: Vector) -> tuple[float, float]:
    """The middle, in (-180, 180], and the width of the shortest arc that holds all longitudes."""
    sorted_longitude = np.unique(longitude % 360)
    gaps = np.diff(np.append(sorted_longitude, sorted_longitude[0] + 360))
    # The largest gap lies outside the arc; the first longitude follows again at 360 degrees.
    last = int(np.argmax(gaps))
    width = 360 - float(gaps[last])
    middle = float(sorted_longitude[(last + 1) % len(sorted_longitude)]) + width / 2
    while middle > 180:
        middle -= 360
    return middle, width


@dataclass(frozen=True, kw_only=True)
class Plane(FrozenRecord):
    """A plane about a position on Earth, on which x goes east and y north. Projecting needs the extra `geo`.

    Parameters
    ----------
    latitude, longitude, unit : float, float, str
        Of the centre, in degrees (WGS 84), within 85 and 180; unit of length of x and y.

    Examples
    --------
    >>> plane = md.geo.Plane(latitude=48.857, longitude=2.348)
    >>> plane.forward([2.348], [48.857]).round(6)
    array([[0., 0.]])
    """

    latitude: float
    longitude: float
    unit: str = "m"

    def __post_init__(self) -> None:
        if not (abs(self.latitude) <= WIDEST and abs(self.longitude) <= 180):
            raise InputError(
                f"must be a latitude within {WIDEST:g} and a longitude within 180 degrees",
                field="latitude, longitude",
                value=f"{self.latitude}, {self.longitude}",
            )
        unit = canonical_unit(self.unit)
        if unit not in METRES:
            raise InputError(
                "is not a unit of length", field="unit", value=self.unit, remedy="use " + ", ".join(METRES)
            )
        object.__setattr__(self, "unit", unit)

    @validate_call
    def forward(self, longitude: Vector, latitude: Vector) -> Points:
        """Points (n, 2), x east and y north in `unit`, of degrees (n,).

        Examples
        --------
        >>> plane = md.geo.Area.box(12.4, 41.8, 12.42, 41.82).grid(cell=500.0).plane
        >>> plane.forward(np.array([12.41]), np.array([41.81])).shape
        (1, 2)
        """
        east, north = self._projection(np.asarray(longitude, float), np.asarray(latitude, float))
        return np.column_stack([east, north]) / METRES[self.unit]

    def backward(self, points: Points) -> tuple[Vector, Vector]:
        """Longitudes within (-180, 180] and latitudes (n,) in degrees of points (n, 2).

        Examples
        --------
        >>> plane = md.geo.Area.box(12.4, 41.8, 12.42, 41.82).grid(cell=500.0).plane
        >>> east, north = plane.backward(plane.forward(np.array([12.41]), np.array([41.81])))
        >>> round(float(east[0]), 6), round(float(north[0]), 6)
        (12.41, 41.81)
        """
        metres = np.asarray(points, float) * METRES[self.unit]
        longitude, latitude = self._projection(metres[:, 0], metres[:, 1], inverse=True)
        return np.asarray(longitude), np.asarray(latitude)

    def excess(self, radius: float) -> float:
        """An upper bound of distance in the plane / geodesic distance - 1, within `radius` (`unit`) of the centre.

        Examples
        --------
        >>> plane = md.geo.Area.box(12.4, 41.8, 12.42, 41.82).plane()
        >>> 0 < plane.excess(10_000.0) < 1e-3
        True
        """
        bound = self.unlimited_excess(radius)
        if not bound <= LARGEST_EXCESS:
            raise InputError(
                f"reaches {radius:.6g} {self.unit} from the centre of its plane, which would stretch lengths by more "
                f"than {LARGEST_EXCESS:.1%}",
                field="area",
                value=f"{bound:.3g}",
                remedy="use a smaller area, or put the centre in its middle",
            )
        return bound

    def unlimited_excess(self, radius: float) -> float:
        """`excess` without a limit; inf beyond 5,000 km, where the bound ends.

        Examples
        --------
        >>> plane = md.geo.Area.box(12.4, 41.8, 12.42, 41.82).plane()
        >>> 0 < plane.unlimited_excess(10_000.0) < 1e-3
        True
        """
        # (1). A step of the ground with components dr and r da in the plane has the length sqrt(dr^2 + m(r)^2 da^2) on
        # the ellipsoid. Here m'' + K m = 0, m(0) = 0, m'(0) = 1 along the geodesic, and 0 < K <= 1 / b^2, which is
        # largest on the equator. By Sturm's comparison b sin(r / b) <= m(r) <= r. Discs of such radii are convex on the
        # ground and in the plane, so that shortest paths stay within them.
        t = radius * METRES[self.unit] / _MINOR_AXIS
        return t * t / 6 * (1 + t * t / 8) if t <= 0.79 else math.inf

    def decimals(self, cell: float) -> int:
        """The fewest decimals of degrees that move no place by more than a tenth of `cell`, in `unit`.

        Examples
        --------
        >>> plane = md.geo.Area.box(12.4, 41.8, 12.42, 41.82).plane()
        >>> plane.decimals(100.0)
        4
        """
        # Rounding moves each axis by at most half a unit of the last digit, both together by sqrt(2) of that. A degree
        # has at most 111,700 m.
        return math.ceil(math.log10(111_700 * math.sqrt(0.5) / (cell * METRES[self.unit] / 10)))

    def words(self) -> str:
        ends = (
            f"{abs(self.latitude):.9g} {'NS'[self.latitude < 0]} {abs(self.longitude):.9g} {'EW'[self.longitude < 0]}"
        )
        return f"azimuthal equidistant plane about {ends}, {ELLIPSOID}"

    def accuracy(self, radius: float) -> str:
        return f"where distances exceed geodesic ones by less than {1.01 * self.excess(radius):.2e} of them"

    def describe(self) -> dict[str, Any]:
        return {
            "projection": "azimuthal equidistant",
            "latitude": self.latitude,
            "longitude": self.longitude,
            "ellipsoid": ELLIPSOID,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any], unit: str) -> Plane:
        parts = check_keys(description, "plane", ("projection", "latitude", "longitude", "ellipsoid"))
        degrees = [float(finite(parts[name], name)) for name in ("latitude", "longitude")]
        plane = cls(latitude=degrees[0], longitude=degrees[1], unit=unit)
        if plane.describe() != description:
            raise InputError("unknown plane", field="plane", value=description)
        return plane

    @cached_property
    def _projection(self) -> Any:
        pyproj = import_optional("pyproj", "geo")
        return pyproj.Proj(proj="aeqd", lat_0=self.latitude, lon_0=self.longitude, datum=ELLIPSOID, units="m")
