"""Areas on Earth: a GeoJSON file or a box in degrees becomes a grid of square cells on a plane about its middle.

A cell belongs to the domain if its centre lies in the area or on its border, and not in or on a forbidden area.
Edges are straight in degrees and go the short way around (RFC 7946).

Claim between cells, for the geodesic distance g of their centres (Andrés et al. 2013, section 3):

    P(y|u) <= e^{eps g(u,u')} P(y|u').                                                                          (1)

The plane lengthens distances by at most its excess and never shortens them (`problem/plane.py`). So (1) holds with the
level eps / (1 + excess) on the plane, and a varying level is divided by the same factor.                       (2)

A claim between positions follows paths inside its cells (positions/patches.py). So its cells are those of the
rectangle about the area, which contains every straight line. Outside the area the prior is 0 and no cell is reported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Mask, Points, Vector
from mechdesign.base.log import log_note
from mechdesign.base.memory import require_places
from mechdesign.base.optional import import_optional
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import check_epsilon, check_positive, validate_call
from mechdesign.errors import InputError
from mechdesign.geo.cell_squares import cut_cells, cut_weights, on_rectangle, weights_by_density
from mechdesign.problem.cell_amounts import from_density
from mechdesign.problem.domain import Domain
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.losses import named_loss
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Eikonal, Euclidean
from mechdesign.problem.plane import WIDEST, middle_longitude, wrap_degrees
from mechdesign.problem.plane import Plane as Plane
from mechdesign.problem.priors import uniform
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.raster import Raster
from mechdesign.problem.tables import Note

_DENSE = 64  # points along each edge, for the extent of an area in the plane
PATHS = ("straight", "inside")
STEEPEST = 50.0  # nats across a cell: e^50, so that a report names the true cell; larger ones are a wrong unit
_ALL_PAIRS = 1600  # secrets up to which a Euclidean metric is checked over all pairs of rows between positions


@dataclass(frozen=True, kw_only=True, eq=False)
class Area(FrozenRecord):
    """A region in degrees with its border; make one with `Area.box`, or with `read_area` from GeoJSON.

    Attributes
    ----------
    shape, middle : shapely geometry, float
        The region, and the longitude of its middle. Longitudes of `shape` do not jump at 180 degrees.

    Examples
    --------
    >>> area = md.geo.Area.box(12.45, 41.85, 12.55, 41.95)
    >>> area.grid(5000.0).size
    6
    """

    shape: Any
    middle: float

    @classmethod
    @validate_call
    def box(cls, west: float, south: float, east: float, north: float) -> Area:
        """The area between two longitudes and two latitudes in degrees; west > east crosses the antimeridian.

        Examples
        --------
        >>> md.geo.Area.box(12.4, 41.8, 12.6, 42.0).contains(12.5, 41.9).tolist()
        True
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

    def contains(self, longitude: Vector, latitude: Vector, *, border: bool = True) -> Mask:
        """True where positions (n,) in degrees lie in the area, or if `border` on its border.

        Examples
        --------
        >>> md.geo.Area.box(12.4, 41.8, 12.6, 42.0).contains([12.5, 13.0], [41.9, 41.9]).tolist()
        [True, False]
        """
        shapely = import_optional("shapely", "geo")
        # The turn of a longitude that is nearest to the area: 181 and -179 degrees are one meridian.
        nearest = self.middle + wrap_degrees(np.asarray(longitude, float) - self.middle)
        test = shapely.intersects_xy if border else shapely.contains_xy
        return np.asarray(test(self.shape, nearest, np.asarray(latitude, float)), bool)

    def plane(self, unit: str = "m") -> Plane:
        """The plane on which lengths of the area are measured.

        Examples
        --------
        >>> md.geo.Area.box(12.4, 41.8, 12.42, 41.82).plane().unit
        'm'
        """
        west, south, east, north = self.shape.bounds
        longitude = round(float(wrap_degrees(np.array([(west + east) / 2]))[0]), 6)
        return Plane(latitude=round((south + north) / 2, 6), longitude=longitude, unit=unit)

    def cell_for(self, cells: int) -> float:
        """The side in m, rounded up to two digits, of square cells of which `cells` are as large as the area.

        Examples
        --------
        >>> 100 < md.geo.Area.box(12.4, 41.8, 12.42, 41.82).cell_for(100) < 300
        True
        """
        plane, shapely = self.plane(), import_optional("shapely", "geo")
        parts = getattr(self.shape, "geoms", [self.shape])
        rings = (np.asarray(part.exterior.coords) for part in parts)
        size = sum(shapely.Polygon(plane.forward(wrap_degrees(ring[:, 0]), ring[:, 1])).area for ring in rings)
        unit = 10.0 ** (math.floor(math.log10(side := math.sqrt(size / cells))) - 1)
        return float(f"{math.ceil(side / unit) * unit:.2g}")

    @validate_call
    def grid(
        self,
        cell: float,
        *,
        unit: str = "m",
        plane: Plane | None = None,
        forbidden: Area | None = None,
        on_note: Note = log_note,
    ) -> Domain:
        """The masked grid of square cells of side `cell`, in `unit`, with centres in the area and not in `forbidden`.

        Its plane is by default about the middle of the area. `on_note` takes a sentence if `forbidden` removes no cell.

        Examples
        --------
        >>> md.geo.Area.box(12.4, 41.8, 12.42, 41.82).grid(cell=500.0).unit
        'm'
        """
        about = plane or self.plane(unit)
        check_positive(cell, "cell")
        outline = self._outline(about)
        low, high = outline.min(axis=0), outline.max(axis=0)
        # Raises if the area is too large for one plane, before any cell is made.
        about.excess(float(np.hypot(*np.abs(outline).T).max()))
        with np.errstate(over="ignore"):
            # Less by 1e-9: rounding of a side that cells fill exactly must not add a row of them.
            counts = np.maximum(np.ceil((high - low) / cell * (1 - 1e-9)), 1)
            require_places(float(counts.prod()), field="cell")
        origin = (low + high) / 2 - counts * (cell / 2)
        shape = (int(counts[0]), int(counts[1]))
        index = np.argwhere(np.ones(shape, bool))
        longitude, latitude = about.backward(origin + (index + 0.5) * cell)
        inside = self.contains(longitude, latitude)
        allowed = inside if forbidden is None else inside & ~forbidden.contains(longitude, latitude)
        if allowed.sum() < 2:
            remaining = "" if forbidden is None else f" and {int(allowed.sum())} of them not in the forbidden area"
            raise InputError(
                f"{int(inside.sum())} cell centre(s) lie in the area{remaining}; a design needs two",
                field="cell",
                value=f"{cell:g} {about.unit}",
                remedy="use smaller cells, or a larger area",
            )
        if forbidden is not None and (allowed == inside).all():
            on_note(_unused_forbidden_words(self, forbidden, longitude[inside], latitude[inside]))
        mask = allowed.reshape(shape)
        return Domain.grid(shape, cell=cell, unit=about.unit, origin=origin.tolist(), mask=mask, plane=about)

    def _outline(self, plane: Plane) -> Points:
        # Edges are straight in degrees and curved on the plane, so that corners alone miss a part of the extent.
        fraction = np.arange(_DENSE)[:, None, None] / _DENSE
        rings = [np.asarray(part.exterior.coords) for part in getattr(self.shape, "geoms", [self.shape])]
        dense = [(ring[:-1] * (1 - fraction) + ring[1:] * fraction).reshape(-1, 2) for ring in rings]
        degrees = np.concatenate(dense)
        return plane.forward(wrap_degrees(degrees[:, 0]), degrees[:, 1])


def _unused_forbidden_words(area: Area, forbidden: Area, longitude: Vector, latitude: Vector) -> str:
    shapely = import_optional("shapely", "geo")

    def near_area(degrees: Points) -> Points:
        return np.column_stack([area.middle + wrap_degrees(degrees[:, 0] - area.middle), degrees[:, 1]])

    moved = shapely.transform(forbidden.shape, near_area)
    if shapely.intersects(moved, area.shape):
        reason = "it lies between their centres; use smaller cells"
    elif forbidden.contains(latitude, longitude).any():
        reason = "longitude and latitude seem to be swapped; write the longitude first"
    else:
        south, north = (f"{abs(y):.4f} {'NS'[y < 0]}" for y in forbidden.shape.bounds[1::2])
        reason = f"it lies elsewhere, between {south} and {north}"
    return f"The forbidden area contains none of the {len(longitude):,} cells: {reason}."


def area_of(
    polygons: list[list[Points]],
    *,
    source: str | Path = "area",
    on_note: Note = log_note,
) -> Area:
    """The union of polygons, each a list of rings (k, 2) in degrees: the outer one, then holes."""
    shapely = import_optional("shapely", "geo")
    import_optional("pyproj", "geo")
    if not polygons:
        raise _area_error("holds no polygon", source, "none", "give a Polygon or a MultiPolygon")
    positions = np.concatenate([ring for rings in polygons for ring in rings])
    _check_degrees(positions, source)
    middle, width = middle_longitude(positions[:, 0])
    if width >= 180:
        wide = f"{width:g} degrees of longitude"
        raise _area_error("goes around a pole", source, wide, "use an area of less than 180 degrees")
    parts = []
    for rings in polygons:
        moved = [np.column_stack([middle + wrap_degrees(ring[:, 0] - middle), ring[:, 1]]) for ring in rings]
        part = shapely.Polygon(moved[0], moved[1:])
        parts.append(part if part.is_valid else _repair_polygon(part, source, on_note))
    return Area(shape=shapely.union_all(parts), middle=middle)


def _repair_polygon(polygon: Any, source: str | Path, on_note: Note) -> Any:
    shapely = import_optional("shapely", "geo")
    rings = [shapely.Polygon(ring) for ring in (polygon.exterior, *polygon.interiors)]
    # Ring by ring: make_valid alone would turn a hole outside its polygon into a part of the area.
    shell, *holes = shapely.make_valid(rings, method="structure", keep_collapsed=False)
    valid = shapely.difference(shell, shapely.union_all(holes))
    reason = re.sub(r"\[(\S+) (\S+)\]", r" at \1, \2", shapely.is_valid_reason(polygon))
    if valid.area == 0:
        raise _area_error("has a polygon of area 0", source, reason, "draw rings around an area")
    plane = Area(shape=valid, middle=0.0).plane("km")

    def size(shape: Any) -> str:
        def on_plane(degrees: Points) -> Points:
            return plane.forward(wrap_degrees(degrees[:, 0]), degrees[:, 1])

        return f"{shapely.transform(shape, on_plane).area:.4g} km²"

    # Parts of a ring that runs the other way round count as negative, until the repair.
    on_note(
        f"{Path(source).name}: an invalid polygon ({reason}) was repaired. Its signed area was {size(polygon)}; the "
        f"area is now {size(valid)}."
    )
    return valid


def _check_degrees(positions: Points, source: str | Path) -> None:
    wrong = ~((np.abs(positions[:, 0]) <= 360) & (np.abs(positions[:, 1]) <= 90))
    if wrong.any():
        remedy = "give longitude and latitude in degrees (WGS 84), longitude first, not projected lengths"
        position = f"{positions[wrong][0, 0]:g}, {positions[wrong][0, 1]:g}"
        raise _area_error("must be longitudes within 360 and latitudes within 90 degrees", source, position, remedy)
    polar = np.abs(positions[:, 1]) > WIDEST
    if polar.any():
        position = f"{positions[polar][0, 1]:g}"
        raise _area_error(
            f"reaches beyond {WIDEST:g} degrees of latitude", source, position, "use an area further from the poles"
        )


def _area_error(message: str, source: str | Path, value: str, remedy: str) -> InputError:
    return InputError(message, field="area", value=f"{source}: {value}" if value else source, remedy=remedy)


# Keywords, most of them for one kind of level each, instead of one more object for users to make.
@validate_call
def area_problem(
    domain: Domain,
    *,
    epsilon: float | PrivacyLevel,
    density: Raster | None = None,
    levels: Raster | None = None,
    slope: float = 0.0,
    stencil: int = 8,
    loss: str = "distance",
    positions: bool = False,
    paths: str = "straight",
    parts: int = 1,
    extend: bool = False,
    nats_per_cell: float = STEEPEST,
    name: str = "area",
    parameters: Mapping[str, int | float | str] | None = None,
) -> DesignProblem:
    """The problem over a domain with a plane, at the level on the plane that holds on the ground.

    Its parameter `geodesic_epsilon` is epsilon, or the smallest level around the domain. Source: Andrés et al. 2013,
    section 3; levels that vary: Koufogiannis & Pappas 2016, section IV.

    Parameters
    ----------
    domain : Domain
        With a plane, as of `Area.grid`.
    epsilon : float or PrivacyLevel
        Nats per unit of geodesic distance (`md.utility.epsilon_within`), or a level of two axes on the ground.
    density : Raster
        The prior is proportional to it, by cell and by square of a cell; uniform by default.
    levels, slope : Raster, float
        With both, eps(u) = slope levels(u) + epsilon on the ground.
    stencil, loss : int, str
        Neighbours in the metric of a level that varies; a name of `LOSSES`.
    positions : bool
        True to protect any position in a cell, False only the centres.
    paths : {"straight", "inside"}
        Between positions: straight lines through the rectangle about the area, or paths inside its cells.
    parts : int
        Between positions, the rows of the mechanism are squares, `parts` along each side of a cell; reports are cells.
    extend, nats_per_cell : bool, float
        True if rasters extend as constants; the largest level that varies, in nats across a cell.
    name, parameters : str, mapping
        Stored in files.

    Returns
    -------
    DesignProblem

    Examples
    --------
    >>> domain = md.geo.Area.box(12.45, 41.85, 12.55, 41.95).grid(5000.0)
    >>> md.geo.area_problem(domain, epsilon=0.001).loss.name
    'distance'
    """
    ground = 0.0 if isinstance(epsilon, PrivacyLevel) else check_epsilon(epsilon)
    if paths not in PATHS:
        raise InputError("unknown paths", field="paths", value=paths, remedy="use " + ", or ".join(PATHS))
    reports = domain
    if positions and paths == "straight":
        domain = rectangle(domain)
    if parts < 1:
        raise InputError("must be at least 1", field="parts", value=parts)
    cells = domain
    if parts > 1:
        domain = cut_cells(cells, parts)
    if (levels is None) != (slope == 0):
        problem = "levels and slope must be passed together: a raster of levels and a slope other than 0"
        raise InputError(problem, field="slope", value=slope)
    if levels is not None and isinstance(epsilon, PrivacyLevel):
        raise InputError("pass either a varying epsilon or levels, not both", field="levels", value=levels.name)
    # (2): the plane lengthens distances by up to its excess, so a level lower by as much holds on the ground.
    ground_to_plane = plane_level(domain, 1.0, positions=positions)
    metric: Metric
    if isinstance(epsilon, PrivacyLevel):
        nearby = _level_near(epsilon.in_unit(domain.unit), domain)
        ground = nearby.smallest
        raster = replace(nearby.raster, values=nearby.raster.values * ground_to_plane)
        metric = Eikonal(level=replace(nearby, raster=raster), stencil=stencil)
        _refuse_steep(metric.level, domain, nats_per_cell)
    elif levels is None:
        flat = plane_level(domain, ground, positions=positions)
        metric = Euclidean(epsilon=flat, unit=domain.unit)
        # Checking all pairs would take longer than the design, so many cells get the metric of neighbours.
        # Nor are rows that are finer than reports checked over all pairs: none is drawn alone.
        if positions and (domain.size > _ALL_PAIRS or parts > 1):
            metric = Eikonal(level=PrivacyLevel.constant(flat, domain.unit), stencil=stencil)
    else:
        raster_levels = levels.in_unit(domain.unit)
        level = PrivacyLevel.affine(
            raster_levels, slope=slope * ground_to_plane, floor=ground * ground_to_plane, extend=extend
        )
        metric = Eikonal(level=level, stencil=stencil)
    weights = np.asarray(uniform(reports) if density is None else from_density(density, reports, extend=extend))
    fine = None
    if density is not None and parts > 1:
        fine = weights_by_density(weights, density, reports, parts)
        fine = fine if reports is cells else on_rectangle(fine, cut_cells(reports, parts), domain)
    if reports is not cells:
        weights = on_rectangle(weights, reports, cells)
    if parts > 1:
        if parts % 2:
            # The middle squares of cells: their centres are, to the last bit, those of rows.
            reported = np.ones(cells.size) if reports is cells else on_rectangle(np.ones(reports.size), reports, cells)
            reports = cut_cells(cells, parts, middles=np.append(reported, 0.0)[cells.lookup] > 0)
        weights = cut_weights(weights, cells, parts) if fine is None else fine
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=weights,
        loss=named_loss(loss),
        reports=reports,
        name=name,
        parameters={"geodesic_epsilon": ground, **({"parts": parts} if parts > 1 else {}), **(parameters or {})},
    )


def _refuse_steep(level: PrivacyLevel, domain: Domain, nats_per_cell: float) -> None:
    across, unit = float(level.at(domain.points).max()) * domain.spacing, domain.unit
    if across > nats_per_cell:
        raise InputError(
            f"reaches {across:.4g} nats across a cell of {domain.spacing:g} {unit}, above {nats_per_cell:g}: is the "
            "unit right?",
            field="levels",
            value=f"{across / domain.spacing:.4g} nats per {unit}",
            remedy=f"declare the unit of the values, such as 1/km, or pass nats_per_cell={math.ceil(across)}",
        )


@validate_call
def rectangle(domain: Domain) -> Domain:
    """The smallest rectangle of cells that contains a grid; the grid itself if it is one."""
    if domain.shape is None or domain.index is None or domain.cell is None or domain.origin is None:
        raise InputError("only a grid has a lattice", field="domain", value=domain.kind, remedy="use Area.grid")
    low, high = domain.index.min(axis=0), domain.index.max(axis=0) + 1
    if domain.size == math.prod(domain.shape):
        return domain
    return Domain.grid(
        tuple((high - low).tolist()),
        cell=domain.cell,
        unit=domain.unit,
        origin=(np.asarray(domain.origin) + low * np.asarray(domain.cell)).tolist(),
        plane=domain.plane,
    )


def _level_near(level: PrivacyLevel, domain: Domain) -> PrivacyLevel:
    # Only nodes next to the places: nodes far away must not lower the smallest level.
    slices = []
    for nodes, places in zip(level.raster.axes, domain.points.T, strict=False):
        first = max(int(np.searchsorted(nodes, places.min(), side="right")) - 1, 0)
        slices.append(slice(first, max(int(np.searchsorted(nodes, places.max())), first) + 1))
    x, y = (nodes[part] for nodes, part in zip(level.raster.axes, slices, strict=False))
    return replace(level, raster=replace(level.raster, x=x, y=y, values=level.raster.values[tuple(slices)]))


@validate_call
def plane_level(domain: Domain, epsilon: float, *, positions: bool = False) -> float:
    """The level on the plane of a domain that is private for epsilon times geodesic distances, rounded down.

    Parameters
    ----------
    domain, epsilon : Domain, float
        With a plane; nats per unit of geodesic distance.
    positions : bool
        True for any position in a cell, False for the places.

    Returns
    -------
    float, nats per unit on the plane

    Examples
    --------
    >>> domain = md.geo.Area.box(12.45, 41.85, 12.55, 41.95).grid(5000.0)
    >>> 0.000999 < md.geo.plane_level(domain, 0.001) < 0.001
    True
    """
    if domain.plane is None:
        raise InputError("the domain has no plane", field="domain", value=domain.kind, remedy="make it with Area.grid")
    radius = domain.max_position_radius if positions else domain.max_radius
    # (2); the excess grows with the distance from the middle of the plane.
    return check_epsilon(epsilon) / (1 + domain.plane.excess(radius)) * ROUND_DOWN
