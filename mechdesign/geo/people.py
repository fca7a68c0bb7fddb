"""People: where they live, from weighted points on Earth such as centres of population of census block groups.

The lattice is that of a domain, continued on all sides by `margin`. A dry cell belongs to the point nearest to its
centre, if that lies within `reach`. The people of a point are spread evenly over its cells, or live in the nearest dry
cell if it has none. The sum of density times the area of a cell is `inside`, to a relative 2^-40; people of points
beyond the lattice are `outside`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
from mechdesign.problem.tables import Note, silent
from mechdesign.problem.text import read_frame

REACH = 8000.0  # m: maximum distance of people from their point
_ROLES = ("latitude", "longitude", "x", "y", "population")
_WIDEST = 2.0**40  # cells beyond the domain: no memory has room for them
_BYTES = 160  # of a cell, while its people are looked for: position in the plane and in degrees, nearest point, density


@dataclass(frozen=True, kw_only=True, eq=False)
class People(FrozenRecord):
    """density, people per square unit; points, the number with people; inside and outside, numbers of people; path."""

    density: Raster
    points: int
    inside: float
    outside: float
    path: Path | None = None

    def by_place(self, domain: Domain) -> NDArray[np.float64]:
        """The number of people (n,) at each place of the grid that they were spread on."""
        assert domain.cell is not None and domain.index is not None and domain.shape is not None
        persons = self.density.values * math.prod(domain.cell)
        # The lattice extends the domain by one margin on either side of each axis.
        margin = (np.array(persons.shape) - np.array(domain.shape)) // 2
        return np.asarray(persons[tuple((domain.index + margin).T)])


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
    on_note: Note = silent,
) -> People:
    r"""The people of a CSV file of weighted points, on the lattice of a grid with a plane.

    Parameters
    ----------
    path : str or Path
        Columns of latitude, longitude and population, or of x, y and population with `crs`.
    domain, water : Domain, Area
        A grid with a plane; a region without people.
    margin, reach : float
        In its unit: extent of the lattice beyond the domain; largest distance of people from their point, 8 km by
        default.
    columns, crs, on_note : mapping of str to str, str, callable
        The columns of the file by our names; coordinate system of positions that are not degrees ("EPSG:27700"); takes
        a sentence where they were projected.

    Returns
    -------
    People
        `density`, in people per square unit, and how many live inside and outside.

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
    degrees: NDArray[np.float64]
    people: NDArray[np.float64]

    def spread(
        self, domain: Domain, *, margin: float = 0.0, reach: float | None = None, water: Area | None = None
    ) -> People:
        far = REACH / METRES[domain.unit] if reach is None else check_positive(reach, "reach")
        lattice, people = _lattice(domain, margin), self.people
        longitude, latitude = self.degrees.T
        at = lattice.plane.forward(longitude, latitude)
        here = lattice.inside(at)
        if not people[here].any():
            fit = np.abs(longitude) <= WIDEST
            turned = lattice.inside(lattice.plane.forward(latitude[fit], longitude[fit])).any()
            raise InputError(
                "no people live in the area",
                field="people",
                value=f"{self.path}: {len(people)} points at latitudes {latitude.min():g} to {latitude.max():g}, "
                f"longitudes {longitude.min():g} to {longitude.max():g}",
                remedy="latitude and longitude seem to be exchanged" if turned else "use points of the area",
            )
        return People(
            density=_density(lattice, at[here], people[here], reach=far, water=water),
            points=int((people[here] > 0).sum()),
            inside=float(people[here].sum()),
            outside=float(people[~here].sum()),
            path=self.path,
        )


@validate_call
def people_of_places(
    path: str | Path, domain: Domain, *, columns: Columns = None, crs: str | None = None, on_note: Note = silent
) -> NDArray[np.float64]:
    """The people (n,) of a CSV file at the places of a grid with a plane, spread as by `read_people`."""
    return read_people(path, domain, columns=columns, crs=crs, on_note=on_note).by_place(domain)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lattice:
    """A lattice on a plane; origin (2,) is the low corner of cell number `first` (2,), cell (2,) its sizes."""

    plane: Plane
    shape: tuple[int, int]
    first: tuple[int, int]
    origin: NDArray[np.float64]
    cell: NDArray[np.float64]

    def inside(self, at: NDArray[np.float64]) -> NDArray[np.bool_]:
        position = (at - self.origin) / self.cell + self.first
        return np.asarray(((position >= 0) & (position < self.shape)).all(axis=1))


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
        what=f"a map of {shape[0]:,} x {shape[1]:,} cells",
        field="cell",
        value=f"{min(domain.cell):g} {domain.unit}",
        remedy="use larger cells, or a smaller area",
    )
    origin, cell = np.asarray(domain.origin), np.asarray(domain.cell)
    return _Lattice(plane=domain.plane, shape=shape, first=(east, north), origin=origin, cell=cell)


def read_points(path: str | Path, *, columns: Columns, crs: str | None, on_note: Note) -> PeoplePoints:
    """Read and check the people of a CSV file."""
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
            "does not say in which coordinate system its positions are",
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
        raise InputError("has no line", field="people", value=source)
    refuse_line(people < 0, frame, [named_column(frame, POPULATION, "people")], "people", "must not be negative")
    degrees = positions if crs is None else points_in_degrees(positions, crs, source, on_note)
    return PeoplePoints(path=source, degrees=degrees, people=people)


def _density(
    lattice: _Lattice, points: NDArray[np.float64], people: NDArray[np.float64], *, reach: float, water: Area | None
) -> Raster:
    from scipy.spatial import cKDTree

    cell = lattice.cell
    axes = [
        start + (np.arange(count) - more + 0.5) * side
        for start, side, count, more in zip(lattice.origin, cell, lattice.shape, lattice.first, strict=True)
    ]
    centres = np.column_stack([side.ravel() for side in np.meshgrid(*axes, indexing="ij")])
    dry = np.ones(len(centres), bool)
    if water is not None:
        dry = ~water.contains(*lattice.plane.backward(centres))
        if not dry.any():
            raise InputError("leaves no dry cell", field="water", value="the area")
    # Voronoi cells of the points, cut at `reach`.
    away, nearest = cKDTree(points).query(centres, distance_upper_bound=reach)
    owned = dry & np.isfinite(away)
    cells = np.bincount(nearest[owned], minlength=len(points))
    living = np.zeros(len(centres))
    living[owned] = people[nearest[owned]] / cells[nearest[owned]]
    # Points closer together than the cells own none: their people live in the nearest dry cell.
    lone = np.flatnonzero((cells == 0) & (people > 0))
    if len(lone):
        places = np.flatnonzero(dry)
        home = places[cKDTree(centres[places]).query(points[lone])[1]]
        living += np.bincount(home, people[lone], len(centres))
    unit = lattice.plane.unit
    values = (living / cell.prod()).reshape(lattice.shape)
    return Raster(x=axes[0], y=axes[1], values=values, unit=unit, value_unit=f"people per {unit}^2", name="density")
