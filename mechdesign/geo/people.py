"""The density of a population, from weighted points on Earth such as centres of census block groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mechdesign.base.arrays import Mask, Points, Vector
from mechdesign.base.log import log_note
from mechdesign.base.memory import require_bytes
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import METRES
from mechdesign.base.validation import check_positive, validate_call
from mechdesign.errors import FileFormatError, InputError
from mechdesign.geo.area import Area
from mechdesign.geo.geojson import is_map, points_in_degrees
from mechdesign.problem.columns import (
    EASTING,
    LATITUDE,
    LONGITUDE,
    NORTHING,
    POPULATION,
    Columns,
    degree_columns,
    matching_columns,
    named_column,
    number_column,
    refuse_line,
)
from mechdesign.problem.domain import Domain
from mechdesign.problem.plane import WIDEST, Plane
from mechdesign.problem.raster import Raster
from mechdesign.problem.tables import Note
from mechdesign.problem.text import read_frame

REACH = 8000.0  # m: maximum distance of people from their point
_ROLES = ("latitude", "longitude", "x", "y", "population")
_WIDEST = 2.0**40  # cells beyond the domain: more than any memory holds, but still an integer
_BYTES = 160  # of a cell: its position on the plane and in degrees, its nearest point, its density, and copies


@dataclass(frozen=True, kw_only=True, eq=False)
class People(FrozenRecord):
    """People per square unit; the number of points with people; the people inside and outside the lattice; the file."""

    density: Raster
    points: int
    inside: float
    outside: float
    path: Path | None = None

    def by_place(self, domain: Domain) -> Vector:
        """The number of people (n,) at each place of the grid that they were spread on."""
        assert domain.cell is not None and domain.index is not None and domain.shape is not None
        persons = self.density.values * math.prod(domain.cell)
        # The lattice extends the domain by one margin on either side of each axis.
        margin = (np.array(persons.shape) - np.array(domain.shape)) // 2
        return np.asarray(persons[tuple((domain.index + margin).T)])


# The lattice is that of a domain, extended on all sides by `margin`. A dry cell belongs to the point nearest to its
# centre, if that lies within `reach`. The people of a point are spread evenly over its cells, or live in the nearest
# dry cell if it has none. The sum of density times the area of a cell is `inside`, to a relative 2^-40.
@validate_call
def read_people(
    path: str | Path,
    domain: Domain,
    *,
    margin: float = 0.0,
    reach: float | None = None,
    water: Area | None = None,
    columns: Columns = None,
    crs: str | None = None,
    on_note: Note = log_note,
) -> People:
    r"""Read the people of a CSV file of weighted points, and spread them over the lattice of a grid with a plane.

    Parameters
    ----------
    path : str or Path
        Columns of latitude, longitude and population, or of x, y and population with `crs`.
    domain, water : Domain, Area
        A grid with a plane; a region without people.
    margin, reach : float
        Extent of the lattice beyond the domain; largest distance of people from their point, by default 8 km. Both in
        the unit of the domain.
    columns, crs : mapping of str to str, str
        Our names of columns to those of the file; coordinate system of x and y, such as "EPSG:27700".
    on_note : callable
        Called with a sentence if positions are projected.

    Returns
    -------
    People

    Examples
    --------
    >>> import pathlib, tempfile
    >>> domain = md.geo.Area.box(12.45, 41.85, 12.55, 41.95).grid(5000.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.csv"
    ...     _ = path.write_text("latitude,longitude,population\n41.9,12.5,1000\n")
    ...     md.geo.read_people(path, domain).inside
    1000.0
    """
    _lattice(domain, margin)  # refuses a lattice that exceeds memory before the file is read
    points = read_points(path, columns=columns, crs=crs, on_note=on_note)
    return points.spread(domain, margin=margin, reach=reach, water=water)


@dataclass(frozen=True, kw_only=True, eq=False)
class PeoplePoints:
    """People (k,) at longitudes and latitudes (k, 2), as a file has them."""

    path: Path
    degrees: Points
    people: Vector

    def spread(
        self, domain: Domain, *, margin: float = 0.0, reach: float | None = None, water: Area | None = None
    ) -> People:
        far = REACH / METRES[domain.unit] if reach is None else check_positive(reach, "reach")
        lattice, people = _lattice(domain, margin), self.people
        longitude, latitude = self.degrees.T
        positions = lattice.plane.forward(longitude, latitude)
        inside = lattice.contains(positions)
        if not people[inside].any():
            # Perhaps the columns are exchanged: a longitude must be within the latitudes of a plane to be tried as one.
            fits = np.abs(longitude) <= WIDEST
            is_exchanged = lattice.contains(lattice.plane.forward(latitude[fits], longitude[fits])).any()
            raise InputError(
                "no people live in the area",
                field="people",
                value=f"{self.path}: {len(people)} points at latitudes {latitude.min():g} to {latitude.max():g}, "
                f"longitudes {longitude.min():g} to {longitude.max():g}",
                remedy="exchange latitude and longitude" if is_exchanged else "use points of the area",
            )
        return People(
            density=_density(lattice, positions[inside], people[inside], reach=far, water=water),
            points=int((people[inside] > 0).sum()),
            inside=float(people[inside].sum()),
            outside=float(people[~inside].sum()),
            path=self.path,
        )


@validate_call
def people_of_places(
    path: str | Path, domain: Domain, *, columns: Columns = None, crs: str | None = None, on_note: Note = log_note
) -> Vector:
    """The people (n,) of a CSV file at the places of a grid with a plane, spread as by `read_people`."""
    return read_people(path, domain, columns=columns, crs=crs, on_note=on_note).by_place(domain)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lattice:
    """A lattice on a plane; `origin` is the low corner of the cell with the numbers `first`, `cell` its sides."""

    plane: Plane
    shape: tuple[int, int]
    first: tuple[int, int]
    origin: Vector
    cell: Vector

    def contains(self, points: Points) -> Mask:
        cells = (points - self.origin) / self.cell + self.first
        return np.asarray(((cells >= 0) & (cells < self.shape)).all(axis=1))


def _lattice(domain: Domain, margin: float) -> _Lattice:
    if domain.plane is None or domain.shape is None:
        raise InputError("has no lattice on a plane; make it with Area.grid", field="domain", value=domain.kind)
    if not (math.isfinite(margin) and margin >= 0):
        raise InputError("must be finite and not negative", field="margin", value=margin)
    assert domain.cell is not None and domain.origin is not None
    east, north = (math.ceil(min(margin / side, _WIDEST)) for side in domain.cell)
    shape = (domain.shape[0] + 2 * east, domain.shape[1] + 2 * north)
    require_bytes(
        _BYTES * shape[0] * shape[1],
        noun=f"a map of {shape[0]:,} x {shape[1]:,} cells",
        field="cell",
        value=f"{min(domain.cell):g} {domain.unit}",
        remedy="use larger cells, or a smaller area",
    )
    origin, cell = np.asarray(domain.origin), np.asarray(domain.cell)
    return _Lattice(plane=domain.plane, shape=shape, first=(east, north), origin=origin, cell=cell)


def read_points(path: str | Path, *, columns: Columns, crs: str | None, on_note: Note) -> PeoplePoints:
    """Read and check the weighted points of a CSV file; positions with `crs` are projected to degrees."""
    source = Path(path)
    frame = read_frame(source, "people", columns=columns, roles=_ROLES, whole=POPULATION, encoding_errors="replace")
    of_degrees = [name for names in (LONGITUDE, LATITUDE) for name in matching_columns(frame, names)]
    of_plane = [name for names in (EASTING, NORTHING) for name in matching_columns(frame, names)]
    if of_degrees and crs is not None and is_map(crs, source):
        raise FileFormatError(
            f"has longitudes and latitudes, and {crs} is not in degrees",
            field="crs",
            value=f"{source}: {', '.join(of_degrees)}",
            remedy="leave the system out, or the columns of longitude and latitude",
        )
    if of_plane and not of_degrees and crs is None:
        raise FileFormatError(
            "has positions without a coordinate system",
            field="people",
            value=f"{source}: {', '.join(of_plane)}",
            remedy="name it, such as crs='EPSG:27700'; degrees are crs='EPSG:4326'",
        )
    names = (EASTING, NORTHING) if of_plane and not of_degrees else (LONGITUDE, LATITUDE)
    if crs is None or not is_map(crs, source):
        positions = degree_columns(frame, names, "people")
    else:
        positions = np.column_stack([number_column(frame, spellings, "people") for spellings in names])
    people = number_column(frame, POPULATION, "people", whole=True)
    if len(people) == 0:
        raise InputError("has no rows", field="people", value=source)
    refuse_line(people < 0, frame, [named_column(frame, POPULATION, "people")], "people", "must not be negative")
    degrees = positions if crs is None else points_in_degrees(positions, crs, source, on_note)
    return PeoplePoints(path=source, degrees=degrees, people=people)


def _density(lattice: _Lattice, points: Points, people: Vector, *, reach: float, water: Area | None) -> Raster:
    from scipy.spatial import cKDTree

    cell = lattice.cell
    axes = [
        start + (np.arange(count) - first + 0.5) * side
        for start, side, count, first in zip(lattice.origin, cell, lattice.shape, lattice.first, strict=True)
    ]
    centres = np.column_stack([side.ravel() for side in np.meshgrid(*axes, indexing="ij")])
    dry = np.ones(len(centres), bool)
    if water is not None:
        dry = ~water.contains(*lattice.plane.backward(centres))
        if not dry.any():
            raise InputError("covers every cell", field="water", value="the area", remedy="use a smaller region")
    # Voronoi cells of the points, cut at `reach`: the distance is infinite beyond it.
    distance, nearest = cKDTree(points).query(centres, distance_upper_bound=reach)
    owned = dry & np.isfinite(distance)
    cells = np.bincount(nearest[owned], minlength=len(points))
    residents = np.zeros(len(centres))
    residents[owned] = people[nearest[owned]] / cells[nearest[owned]]
    # Points closer together than the cells own none: their people live in the nearest dry cell.
    without_cells = np.flatnonzero((cells == 0) & (people > 0))
    if len(without_cells):
        dry_cells = np.flatnonzero(dry)
        home = dry_cells[cKDTree(centres[dry_cells]).query(points[without_cells])[1]]
        residents += np.bincount(home, people[without_cells], len(centres))
    unit = lattice.plane.unit
    values = (residents / cell.prod()).reshape(lattice.shape)
    return Raster(x=axes[0], y=axes[1], values=values, unit=unit, value_unit=f"people per {unit}^2", name="density")
