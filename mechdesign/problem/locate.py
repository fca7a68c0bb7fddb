"""Places and coordinates: which cell a location falls into, and how few digits name a cell."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Mask, Points
from mechdesign.base.units import METRES
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.plane import WIDEST, Plane
from mechdesign.problem.vocabulary import words_of

_DEGREE = 111_195.0  # m of a degree of latitude, to 0.6 %
_RARE_SHARE = 1e-6  # of a map: positions that are meant in its unit do not lie there


def place_at(domain: Domain, location: Sequence[float]) -> int:
    """The place at `location` (k,): the cell of a grid, on a border the higher one; else the exact point."""
    if len(location) != domain.dimension or not all(math.isfinite(x) for x in location):
        message = f"needs {domain.dimension} finite number(s), in {domain.unit}, or the number of the secret"
        raise InputError(message, field="at", value=_format_location(location))
    if domain.cell is None or domain.origin is None or domain.shape is None:
        same = (domain.points == np.asarray(location, float)).all(axis=1)
        if not same.any():
            raise _not_a_place_error(domain, location, "is not one of the places")
        return int(np.argmax(same))
    # Fractions: doubles could put a location on a border into either cell.
    index = []
    for x, low, cell, count in zip(location, domain.origin, domain.cell, domain.shape, strict=True):
        position = (Fraction(x) - Fraction(low)) / Fraction(cell)
        if not 0 <= position <= count:
            raise _not_a_place_error(domain, location, "lies outside the grid")
        index.append(min(math.floor(position), count - 1))
    place = int(domain.lookup[tuple(index)])
    if place < 0:
        raise _not_a_place_error(domain, location, "lies in a masked cell")
    return place


def places_of(domain: Domain, points: Points) -> Indices:
    """The place of every point (k, axes), -1 for none: its cell, or the nearest place within half the spacing."""
    if domain.shape is None:
        from scipy.spatial import cKDTree

        away, place = cKDTree(domain.points).query(points)
        return np.where(away <= domain.spacing / 2, place, -1).astype(np.int64)
    shape = np.asarray(domain.shape)
    position = (points - np.asarray(domain.origin)) / np.asarray(domain.cell)
    inside = ((position >= 0) & (position <= shape)).all(axis=1)
    index = np.minimum(np.floor(position[inside]).astype(np.int64), shape - 1)
    place = np.full(len(points), -1, np.int64)
    place[inside] = domain.lookup[tuple(index.T)]
    return place


@validate_call
def nearest_node(domain: Domain, location: Sequence[float]) -> int:
    """The place of a domain with the least straight-line distance to a location; the first of equals.

    Users who share a node are indistinguishable. Others have the claim of their nodes' distance, which may exceed their
    own by twice the way to the nearest node. `Sampler` takes only the exact place of a node.

    Parameters
    ----------
    domain : Domain
        Places with coordinates.
    location : (k,) sequence of float
        In the unit of the domain.

    Returns
    -------
    int, the number of the place

    Examples
    --------
    >>> md.utility.nearest_node(md.Domain.points_at([0.0, 2.0, 5.0], unit="m"), [1.9])
    1
    """
    point = np.asarray(location, float)
    if point.shape != (domain.dimension,) or not np.isfinite(point).all():
        message = f"needs {domain.dimension} finite number(s), in {domain.unit}"
        raise InputError(message, field="location", value=list(location))
    with np.errstate(over="ignore"):
        return int(np.argmin(((domain.points - point) ** 2).sum(axis=1)))


def place_on_earth(domain: Domain, longitude: float, latitude: float) -> list[float]:
    """The location [x, y] of degrees in a domain with a plane; among points that of the nearest one."""
    degrees = f"{longitude} {latitude}"
    if domain.plane is None:
        message = "the mechanism has no position on Earth"
        raise InputError(message, field="lon, lat", value=degrees, remedy="give the location in the unit of the map")
    if not (abs(longitude) <= 180 and abs(latitude) <= 90):
        message = "must be a longitude within 180 and a latitude within 90 degrees"
        raise InputError(message, field="lon, lat", value=degrees)
    try:
        return _on_plane(domain, domain.plane, longitude, latitude)
    except InputError as error:
        raise _outside_error(domain, domain.plane, longitude, latitude, error.message) from error


def _on_plane(domain: Domain, plane: Plane, longitude: float, latitude: float) -> list[float]:
    point = plane.forward(np.array([longitude]), np.array([latitude]))[0]
    if domain.kind != "points":
        place_at(domain, point.tolist())
        return [float(x) for x in point]
    margin = reach_margin(domain)
    if not ((point >= domain.points.min(axis=0) - margin) & (point <= domain.points.max(axis=0) + margin)).all():
        raise InputError("lies outside the network", field="at", value=_format_location(point.tolist()))
    return [float(x) for x in domain.points[nearest_node(domain, point.tolist())]]


def _outside_error(domain: Domain, plane: Plane, longitude: float, latitude: float, message: str) -> InputError:
    east, north = plane.backward(domain.points)
    digits = plane.decimals(domain.spacing)
    reach = [f"{values.min():.{digits}f} to {values.max():.{digits}f}" for values in (east, north)]
    nearest = nearest_node(domain, plane.forward(np.array([longitude]), np.array([latitude]))[0].tolist())
    remedy = (
        f"places lie at longitudes {reach[0]} and latitudes {reach[1]}; the nearest one, place {nearest}, is at "
        f"{east[nearest]:.{digits}f} {north[nearest]:.{digits}f}"
    )
    if abs(longitude) <= 90:
        with contextlib.suppress(InputError):
            _on_plane(domain, plane, latitude, longitude)
            remedy = f"the two seem to be exchanged: give longitude {latitude:.9g} and latitude {longitude:.9g}"
    return InputError(message, field="lon, lat", value=f"{longitude:.9g} {latitude:.9g} degrees", remedy=remedy)


def reach_margin(domain: Domain) -> float:
    """The largest distance of a place to its nearest neighbour, in the unit of the domain. Cost: O(n log n)."""
    from scipy.spatial import cKDTree

    return float(cKDTree(domain.points).query(domain.points, k=2)[0][:, 1].max())


def refuse_degrees(domain: Domain, positions: Points, *, only_if_rare: bool = True) -> None:
    """Refuse positions (b, k) that may all be degrees in the places' box; only_if_rare: unless many are on the map."""
    if domain.plane is None or positions.shape[1:] != (2,) or not np.isfinite(positions).all():
        return
    # One degree of margin also finds degrees next to the map; without it if such numbers are common on the map.
    share, inside = _as_degrees(domain, positions, margin=1.0)
    if share > _RARE_SHARE:
        share, inside = _as_degrees(domain, positions, margin=0.0)
    if only_if_rare and share > _RARE_SHARE:
        return
    for is_swapped in (False, True):
        if inside[is_swapped].all():
            longitude, latitude = positions[0, ::-1] if is_swapped else positions[0]
            order = "latitude and longitude" if is_swapped else "longitude and latitude"
            message = f"are {order} in degrees, and the map is in {domain.unit}"
            remedy = f"use --lon {longitude:.9g} --lat {latitude:.9g}, in Python plane.forward of them"
            raise InputError(message, field="at", value=_format_location(positions[0].tolist()), remedy=remedy)


def _as_degrees(domain: Domain, positions: Points, *, margin: float) -> tuple[float, tuple[Mask, Mask]]:
    """The share of the map that its degrees take as numbers, and the positions among them, in either order."""
    assert domain.plane is not None
    scale = METRES[domain.unit] / _DEGREE
    # 1.01 covers the 0.6 % of `_DEGREE`. A degree of longitude is shorter, by the cosine of the latitude.
    half = 1.01 * np.abs(domain.points).max(axis=0) * scale
    half[0] /= math.cos(math.radians(min(abs(domain.plane.latitude) + half[1], WIDEST)))
    half += margin
    extent = np.ptp(domain.points, axis=0) + domain.spacing
    share = float(np.prod(np.minimum(2 * half, 360)) / np.prod(extent))
    east, north = positions.T
    inside_by_order = []
    for longitude, latitude in ((east, north), (north, east)):
        away = np.abs((longitude - domain.plane.longitude + 180) % 360 - 180)
        inside = (away <= half[0]) & (np.abs(latitude - domain.plane.latitude) <= half[1])
        inside_by_order.append(inside & (np.abs(longitude) <= 180) & (np.abs(latitude) <= 90))
    return share, (inside_by_order[0], inside_by_order[1])


def identifying_digits(points: Points) -> tuple[int | None, ...]:
    """The fewest decimals by axis that move no place (n, k) by over 1/20 of the least gap; None if it is constant."""
    digits: list[int | None] = []
    for values in points.T:
        gaps = np.diff(np.sort(values))
        gap = float(gaps[gaps > 0].min()) if gaps.any() else None
        digits.append(None if gap is None else math.ceil(1 - math.log10(gap)))
    return tuple(digits)


def round_coordinate(value: float, digits: int | None) -> float:
    """`value` to so many decimals, as `identifying_digits` counts them."""
    # 0.0 + -0.0 is 0.0: no coordinate is written as -0.
    return 0.0 + (float(value) if digits is None else round(float(value), digits))


def _not_a_place_error(domain: Domain, location: Sequence[float], message: str) -> InputError:
    nearest = nearest_node(domain, location)
    return InputError(
        message,
        field="at",
        value=_format_location(location),
        remedy=f"use a location in a cell (unit: {domain.unit}), or the nearest place, number {nearest}",
    )


def _format_location(location: Sequence[float]) -> str:
    return " ".join(f"{x:.12g}" for x in location)


def _shape_message(domain: Domain) -> str:
    axes = f"{domain.dimension} ax{'i' if domain.dimension == 1 else 'e'}s"
    return f"must be {words_of(domain).truths} on {axes}, in {domain.unit}"


def as_positions(domain: Domain, positions: ArrayLike) -> Points:
    """Positions (b, k) from (b, k) or (k,) numbers."""
    try:
        array = np.atleast_2d(np.asarray(positions, float))
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 2 or array.shape[1] != domain.dimension or len(array) == 0:
        message, is_scalar = _shape_message(domain), domain.dimension == 1
        remedy = "pass one number, e.g. 85000 (no thousands separator)" if is_scalar else None
        raise InputError(message, field="at", value=f"{positions!s:.60}", remedy=remedy)
    refuse_degrees(domain, array)
    return array
