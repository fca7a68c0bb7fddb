"""Areas on Earth: a GeoJSON file or a box in degrees becomes a grid of square cells on a plane about its middle.

A cell belongs to the domain when its centre lies in the area or on its border, and neither in nor on a forbidden area
(water, barracks). Edges are straight in degrees, as RFC 7946 has them, and go the short way around: an area across the
antimeridian is given either as RFC 7946 asks, cut into parts that meet at 180 and -180, or with edges from 179 to -179.
Needs pyproj and shapely (the extra `geo`).

What is guaranteed. A location becomes the cell around it, so the claim is about cells: for the geodesic distance g of
their centres, P(y|u) <= e^{eps g(u,u')} P(y|u') when the level on the plane is `plane_level(domain, eps)`. The plane
shortens no distance, and lengthens none by more than the factor that this takes away (`setting/space/plane.py`). A
level that varies over the area is divided in the same way; a path then costs no more than eps integrated along it on
the ground.
Source: paper 004, section 3 (the claim); the rest is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import require_places
from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.plane import WIDEST, Plane, require_pyproj

_DENSE = 64  # points along each edge, for the extent of an area in the plane


@dataclass(frozen=True, kw_only=True, eq=False)
class Area(Shown):
    """A region in degrees; make one with `Area.box`, or with `read_area` from GeoJSON.

    shape, a shapely geometry whose longitudes are counted from `middle` without a jump; middle, the longitude in the
    middle of the area. The border belongs to it.
    """

    shape: Any
    middle: float

    @classmethod
    @asked
    def box(cls, west: float, south: float, east: float, north: float) -> Area:
        """Between two longitudes and two latitudes in degrees; west > east goes across the antimeridian.

        Raises: InputError for degrees out of range, an empty box, latitudes beyond 85 degrees, a missing extra.
        """
        ring = np.array([[west, south], [east, south], [east, north], [west, north], [west, south]], float)
        if not (np.isfinite(ring).all() and south < north and west != east and (east - west) % 360 < 180):
            raise InputError(
                "must be west, south, east and north of an area, in degrees",
                field="box",
                value=f"{west:g} {south:g} {east:g} {north:g}",
                remedy="give south < north and west < east, less than 180 degrees apart; west > east goes over 180",
            )
        return area_of([[ring]])

    def contains(self, longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether positions (n,) in degrees lie in the area or on its border."""
        around = self.middle + unwrapped(np.asarray(longitude, float) - self.middle)
        return np.asarray(_shapely().intersects_xy(self.shape, around, np.asarray(latitude, float)), bool)

    def plane(self, unit: str = "m") -> Plane:
        """The plane about the middle of the area's degrees, to six decimals."""
        west, south, east, north = self.shape.bounds
        longitude = round(float(unwrapped(np.array([(west + east) / 2]))[0]), 6)
        return Plane(latitude=round((south + north) / 2, 6), longitude=longitude, unit=unit)

    @asked
    def grid(
        self, cell: float, *, unit: str = "m", plane: Plane | None = None, forbidden: Area | None = None
    ) -> Domain:
        """The square cells whose centres lie in the area and not in `forbidden`, as a masked grid with its plane.

        Parameters: cell, the side of a cell in `unit`; plane, by default about the middle of the area.
        The lattice is the smallest number of cells over the extent of the area in the plane, about its middle.
        Raises: InputError for a cell that is not positive, fewer than two cells, an area that the plane stretches by
            more than 0.1 %; SizeError for a lattice of more than 2^20 cells.
        """
        about = plane or self.plane(unit)
        if not (math.isfinite(cell) and cell > 0):
            raise InputError("must be positive and finite", field="cell", value=cell, remedy="give the side of a cell")
        outline = self._outline(about)
        low, high = outline.min(axis=0), outline.max(axis=0)
        about.excess(float(np.hypot(*np.abs(outline).T).max()))
        with np.errstate(over="ignore"):
            counts = np.maximum(np.ceil((high - low) / cell * (1 - 1e-9)), 1)
            require_places(float(counts.prod()), field="cell")
        origin = (low + high) / 2 - counts * (cell / 2)
        shape = (int(counts[0]), int(counts[1]))
        index = np.argwhere(np.ones(shape, bool))
        longitude, latitude = about.backward(origin + (index + 0.5) * cell)
        inside = self.contains(longitude, latitude)
        allowed = inside if forbidden is None else inside & ~forbidden.contains(longitude, latitude)
        if allowed.sum() < 2:
            kept = "" if forbidden is None else f" and {int(allowed.sum())} of them not in the forbidden area"
            raise InputError(
                f"{int(inside.sum())} cell centre(s) lie in the area{kept}; a design needs two",
                field="cell",
                value=f"{cell:g} {about.unit}",
                remedy="use smaller cells, or a larger area",
            )
        mask = allowed.reshape(shape)
        return Domain.grid(shape, cell=cell, unit=about.unit, origin=origin.tolist(), mask=mask, plane=about)

    def _outline(self, plane: Plane) -> NDArray[np.float64]:
        """Points (k, 2) of the plane along the border, dense enough for the extent of the area."""
        share = np.arange(_DENSE)[:, None, None] / _DENSE
        rings = [np.asarray(part.exterior.coords) for part in getattr(self.shape, "geoms", [self.shape])]
        dense = [(ring[:-1] * (1 - share) + ring[1:] * share).reshape(-1, 2) for ring in rings]
        degrees = np.concatenate(dense)
        return plane.forward(unwrapped(degrees[:, 0]), degrees[:, 1])


def area_of(polygons: list[list[NDArray[np.float64]]], *, source: str | Path = "area") -> Area:
    """The union of polygons, each a list of rings (k, 2) in degrees, the outer one first, then its holes.

    Raises: InputError for none, degrees out of range or beyond 85 degrees of latitude, rings that are not closed, cross
        themselves or have no area, and more than 180 degrees of longitude; for a missing extra.
    """
    shapely = _shapely()
    require_pyproj()
    if not polygons:
        raise _bad("holds no polygon", source, "none", "give a Polygon or a MultiPolygon")
    positions = np.concatenate([ring for rings in polygons for ring in rings])
    _check_degrees(positions, source)
    middle = _middle(positions[:, 0], source)
    parts = []
    for rings in polygons:
        moved = [np.column_stack([middle + unwrapped(ring[:, 0] - middle), ring[:, 1]]) for ring in rings]
        part = shapely.Polygon(moved[0], moved[1:])
        if not part.is_valid:
            reason = shapely.is_valid_reason(part)
            raise _bad(f"is no simple polygon ({reason})", source, "", "let no ring cross or touch itself or another")
        parts.append(part)
    return Area(shape=shapely.union_all(parts), middle=middle)


def unwrapped(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences of longitudes, or longitudes, in [-180, 180)."""
    return np.where(np.abs(degrees) < 180, degrees, (degrees + 180) % 360 - 180)


def _check_degrees(positions: NDArray[np.float64], source: str | Path) -> None:
    odd = ~((np.abs(positions[:, 0]) <= 180) & (np.abs(positions[:, 1]) <= 90))
    if odd.any():
        remedy = "give longitude and latitude in degrees (WGS 84), longitude first, not projected lengths"
        found = f"{positions[odd][0, 0]:g}, {positions[odd][0, 1]:g}"
        raise _bad("must be longitudes within 180 and latitudes within 90 degrees", source, found, remedy)
    polar = np.abs(positions[:, 1]) > WIDEST
    if polar.any():
        found = f"{positions[polar][0, 1]:g}"
        raise _bad(f"reaches beyond {WIDEST:g} degrees of latitude", source, found, "keep away from the poles")


def _middle(longitude: NDArray[np.float64], source: str | Path) -> float:
    """The middle of the shortest arc that holds all longitudes, in (-180, 180]."""
    around = np.unique(longitude % 360)
    gaps = np.diff(np.append(around, around[0] + 360))
    last = int(np.argmax(gaps))
    width = 360 - float(gaps[last])
    if width >= 180:
        raise _bad(
            "goes around a pole", source, f"{width:g} degrees of longitude", "use an area of less than 180 degrees"
        )
    start = float(around[(last + 1) % len(around)])
    middle = start + width / 2
    return middle - 360 if middle > 180 else middle


def _bad(message: str, source: str | Path, value: str, remedy: str) -> InputError:
    return InputError(message, field="area", value=f"{source}: {value}" if value else source, remedy=remedy)


def _shapely() -> Any:
    try:
        import shapely
    except ImportError as error:
        raise InputError(
            "needs shapely, which is not installed",
            field="geo",
            value="shapely",
            remedy="pip install 'mechdesign[geo]'",
        ) from error
    return shapely
