"""Rasters on Earth: values of a file at the places of a domain that has a plane."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Points, Vector
from mechdesign.base.formatting import percent
from mechdesign.base.json_fields import LARGEST
from mechdesign.base.log import log_note
from mechdesign.base.memory import require_bytes
from mechdesign.base.optional import import_optional
from mechdesign.base.units import METRES, canonical_unit
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.geo.pixel_shares import cell_sums, quad_areas
from mechdesign.problem.cell_amounts import amounts_in_cells, is_finer, pixel_edges
from mechdesign.problem.domain import Domain
from mechdesign.problem.pixels import Pixels
from mechdesign.problem.plane import Plane
from mechdesign.problem.raster import Raster
from mechdesign.problem.rasters import open_pixels

if TYPE_CHECKING:
    import xarray as xr

PRIORS = ("counts", "density")
_SAME = 1e-9  # degrees: origins of two planes that agree so far are the same
_NAMES = ("azimuthal equidistant", "modified azimuthal equidistant")
_MARGIN = 2  # pixels that are read around the lattice
_EDGE = 1e-9  # of a pixel: a centre on the border of the raster lies in it
_GAP = 1.5  # median steps: a smaller gap of longitudes counts as a step
_BYTES = 64  # of a pixel that is read: its value, its amount, and copies of both
_PARTLY = 1e-3  # of a cell: no note if less of it is without a value
_FARTHEST = (360.0, 90.0)  # degrees of longitude and latitude
# Units and names of values: per area, or how many.
_PER_AREA = re.compile(r"/|\bper\b|-2|\^2|\*\*2|²|⁻²|dens", re.I)
_COUNTED = re.compile(r"\b(people|persons?|inhabitants|counts?|number|residents|households|individuals)\b", re.I)
_DENSITIES = re.compile(r"dens(ity|ities|it|idad|ité|ität)|_pd_|per_?(sq_?)?k?m2?\b", re.I)


# A file in the coordinates of the plane, or without a declared system, keeps its nodes. Otherwise PROJ projects the
# centres of the cells, and the bilinear function of the file is evaluated there. Values beyond 1e150 are NODATA. A cell
# of the domain without a value at its centre is refused. Elsewhere a pixel without a value takes that of the nearest
# with one, but no people.
@validate_call
def raster_on(
    domain: Domain,
    path: str | Path | xr.DataArray,
    *,
    variable: str | None = None,
    crs: str | None = None,
    labels: bool = False,
    prior_is: str | None = None,
    nodata_is: float | None = None,
    on_note: Callable[[str], None] = log_note,
) -> Raster:
    r"""Read a raster as a function on the plane of a domain, in the domain's unit.

    Only the part of a GeoTIFF around the domain is read.

    Parameters
    ----------
    domain : Domain
        With a plane.
    path : str, Path or xarray.DataArray
        GeoTIFF, NetCDF or ESRI ASCII file, or an array.
    variable, crs : str
        Variable, or band, of a file with several; coordinate system, such as "EPSG:4326", if the file declares none.
    labels : bool
        True if the centres of the cells get the value of the nearest node.
    prior_is : {"counts", "density"}
        People per pixel, or per unit of area. By default the unit decides, then the name, then the size: pixels smaller
        than a cell are counts.
    nodata_is, on_note : float, callable
        The value of pixels without one; called with a sentence about assumptions and cells partly without values.

    Returns
    -------
    Raster

    Examples
    --------
    >>> import pathlib, tempfile
    >>> domain = md.geo.Area.box(12.45, 41.85, 12.55, 41.95).grid(5000.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "density.asc"
    ...     _ = path.write_text("ncols 2\nnrows 2\nxllcorner 12\nyllcorner 41\ncellsize 1\n5 7\n5 7\n")
    ...     md.geo.raster_on(domain, path, crs="EPSG:4326").unit
    'm'
    """
    plane = domain.plane
    if plane is None or domain.shape is None or domain.cell is None:
        raise InputError("the domain has no plane", field="domain", value=domain.kind, remedy="make it with Area.grid")
    if prior_is not in (None, *PRIORS):
        raise InputError("unknown kind of prior", field="prior_is", value=prior_is, remedy="use counts or density")
    with open_pixels(path, variable) as pixels:
        if pixels.crs and crs is not None:
            why = "declares its own coordinate system"
            on_note(f"{pixels.name}: {why}; the coordinate system {crs} is not applied to it.")
        frame = _frame(pixels, crs, plane)
        grid = _grid_near(pixels, frame, domain)
    if nodata_is is not None:
        if not np.isnan(grid.values).any():
            on_note(
                f"{pixels.name}: nodata_is={nodata_is:g} changes nothing, as every pixel around the area has a value."
            )
        grid = replace(grid, values=np.where(np.isnan(grid.values), nodata_is, grid.values))
    centres, axes = _lattice(domain)
    in_file = frame.from_plane(centres)
    _check_values(grid, in_file, domain, pixels.name)
    values, cell = _nearest_known(grid.values), math.prod(domain.cell)
    finer = is_finer(float(np.median(grid.middle.areas(frame))), cell)
    counts = not labels and _are_counts(pixels, finer, prior_is, on_note)
    make_raster = partial(Raster, unit=plane.unit, value_unit=pixels.value_unit, name=pixels.name, counts=counts)
    if frame.system is None:
        # The file is in the coordinates of the plane: pixels are rectangles there, and need no projection.
        amounts = np.nan_to_num(grid.values) * (1.0 if counts else np.multiply.outer(*map(np.diff, grid.edges)))
        if finer:
            known = Raster(x=grid.x, y=grid.y, values=1.0 * np.isfinite(grid.values), unit=plane.unit)
            _note_partial(amounts_in_cells(known, domain) / cell, pixels.name, on_note)
        return make_raster(x=grid.x, y=grid.y, values=values, amounts=amounts)
    function = Raster(x=grid.x, y=grid.y, values=values, name=pixels.name)
    at_centres = (function.nearest(in_file) if labels else function.at(in_file)).reshape(domain.shape)
    projected = None
    if finer and not labels:
        low, side = np.asarray(domain.origin), np.asarray(domain.cell)
        sums = cell_sums(
            grid.edges,
            grid.values,
            (domain.shape[0], domain.shape[1]),
            lambda corners: (frame.to_plane(corners) - low) / side,
            counts=counts,
            area=cell,
        )
        projected = sums.amounts
        _note_partial(sums.known[domain.lookup >= 0], pixels.name, on_note)
    elif counts and not labels:
        # Pixels larger than cells: a cell has the density at its centre times its area.
        density = replace(function, values=values / grid.areas(frame))
        projected = cell * density.at(in_file).reshape(domain.shape)
    return make_raster(x=axes[0], y=axes[1], values=at_centres, amounts=projected)


@dataclass(frozen=True, kw_only=True)
class PriorFigures:
    """Figures of a prior from a raster: "counts" or "density", people in all cells if counted, empty cells."""

    prior_is: str
    people: float | None
    empty_cells: int

    @classmethod
    def of(cls, raster: Raster, domain: Domain) -> PriorFigures:
        amounts = amounts_in_cells(raster, domain)
        return cls(
            prior_is=PRIORS[0] if raster.counts else PRIORS[1],
            people=float(amounts.sum()) if raster.counts else None,
            empty_cells=int((amounts == 0).sum()),
        )


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Converts between the plane and the coordinates of a file; `turn` is a full turn in the file's unit."""

    plane: Plane
    system: Any = None
    scale: float = 1.0
    turn: float | None = None

    @cached_property
    def middle(self) -> float:
        return float(self._out.transform(self.plane.longitude, self.plane.latitude)[0])

    @cached_property
    def _out(self) -> Any:
        return import_optional("pyproj", "geo").Transformer.from_crs("EPSG:4326", self.system, always_xy=True)

    def from_plane(self, points: Points) -> Points:
        if self.system is None:
            return points
        coordinates = self._transform(*self.plane.backward(points))
        # The turn of a longitude that is nearest to the middle of the area.
        if self.turn is not None:
            coordinates[:, 0] -= self.turn * np.rint((coordinates[:, 0] - self.middle) / self.turn)
        return coordinates

    def to_plane(self, points: Points) -> Points:
        if self.system is None:
            return points
        x, y = points.T
        # The outermost nodes may be poles, and their pixels reach beyond.
        if self.turn is not None:
            y = np.clip(y, -self.turn / 4, self.turn / 4)
        return self.plane.forward(*self._transform(x, y, direction="INVERSE").T)

    def _transform(self, x: Vector, y: Vector, **options: str) -> Points:
        try:
            return np.column_stack(self._out.transform(x, y, errcheck=True, **options))
        except import_optional("pyproj.exceptions", "geo").ProjError as error:
            message = "the coordinate system of the raster does not reach the area"
            raise InputError(message, field="raster", value=f"{error!s:.80}") from error


@dataclass(frozen=True, kw_only=True)
class _Grid:
    """Ascending centres of pixels around a domain, in the frame of the file, and values (kx, ky), NaN for none."""

    x: Vector
    y: Vector
    values: Matrix

    @property
    def edges(self) -> tuple[Vector, Vector]:
        # A single row or column has pixels as wide as those along the other axis.
        steps = [float(np.diff(nodes).mean()) for nodes in (self.x, self.y) if len(nodes) > 1] or [0.0]
        first, second = (
            pixel_edges(nodes) if len(nodes) > 1 else nodes[0] + np.array([-0.5, 0.5]) * steps[0]
            for nodes in (self.x, self.y)
        )
        return first, second

    @property
    def middle(self) -> _Grid:
        """The 3 x 3 pixels in the middle, whose areas stand for all."""
        across, along = (slice(max(k // 2 - 1, 0), k // 2 + 2) for k in self.values.shape)
        return _Grid(x=self.x[across], y=self.y[along], values=self.values[across, along])

    def areas(self, frame: _Frame) -> Matrix:
        corners = np.stack(np.meshgrid(*self.edges, indexing="ij"), axis=-1)
        return quad_areas(frame.to_plane(corners.reshape(-1, 2)).reshape(corners.shape))


def _frame(pixels: Pixels, crs: str | None, plane: Plane) -> _Frame:
    declared = pixels.crs or crs
    if declared is None:
        if not pixels.units:
            _refuse_undeclared_degrees(pixels)
        pixels.require_unit(plane.unit)
        return _Frame(plane=plane)
    system = _system(declared)
    axis = system.axis_info[0]
    pixels.require_unit("degree" if system.is_geographic else canonical_unit(axis.unit_name))
    if _is_plane(system, plane):
        return _Frame(plane=plane, scale=float(axis.unit_conversion_factor) / METRES[plane.unit])
    turn = 2 * math.pi / float(axis.unit_conversion_factor) if system.is_geographic else None
    return _Frame(plane=plane, system=system, turn=turn)


def _refuse_undeclared_degrees(pixels: Pixels) -> None:
    ends = [float(np.abs(axis).max()) for axis in (pixels.x, pixels.y)]
    if all(end <= most for end, most in zip(ends, _FARTHEST, strict=True)):
        raise InputError(
            "declares no coordinate system, and its coordinates may be degrees",
            field="raster",
            value=f"{pixels.name}: {pixels.x.min():.6g} to {pixels.x.max():.6g}, "
            f"{pixels.y.min():.6g} to {pixels.y.max():.6g}",
            remedy="say which it is; degrees are crs='EPSG:4326'",
        )


def _grid_near(pixels: Pixels, frame: _Frame, domain: Domain) -> _Grid:
    rows = np.argsort(pixels.y, kind="stable")
    columns = np.argsort(pixels.x, kind="stable")
    x, y = pixels.x[columns] * frame.scale, pixels.y[rows] * frame.scale
    if frame.turn is not None:
        columns, x = _order_longitudes(pixels.x, frame.middle, frame.turn)
    outline = frame.from_plane(_outline(domain))
    spans = [_span(nodes, side) for nodes, side in zip((x, y), outline.T, strict=True)]
    if any(low >= high for low, high in spans):
        raise _coverage_error(pixels.name, x, outline[:, 0])
    across, along = (slice(*span) for span in spans)
    require_bytes(
        _BYTES * len(columns[across]) * len(rows[along]),
        noun=f"{len(columns[across]):,} x {len(rows[along]):,} pixels",
        field="raster",
        value=pixels.name,
        remedy="use a coarser raster, or a smaller area",
    )
    values = pixels.load(columns[across], rows[along])
    return _Grid(x=x[across], y=y[along], values=np.where(np.abs(values) <= LARGEST, values, np.nan))


def _span(nodes: Vector, wanted: Vector) -> tuple[int, int]:
    low = int(np.searchsorted(nodes, wanted.min())) - _MARGIN
    high = int(np.searchsorted(nodes, wanted.max())) + _MARGIN
    return max(low, 0), min(high, len(nodes))


def _order_longitudes(longitude: Vector, middle: float, turn: float) -> tuple[Indices, Vector]:
    """Order (k,) and longitudes of columns from west to east, cut opposite to `middle` or at the largest gap."""
    on_circle = longitude % turn
    order = np.argsort(on_circle, kind="stable")
    gaps = np.diff(np.append(on_circle[order], on_circle[order[0]] + turn))
    step = float(np.median(np.sort(gaps)[:-1])) if len(gaps) > 1 else turn
    # A file may repeat its first meridian a turn later: of equal longitudes only one column remains.
    order = order[gaps > step / 1000]
    gaps = np.diff(np.append(on_circle[order], on_circle[order[0]] + turn))
    last = int(np.argmax(gaps))
    # A raster around the whole Earth is cut as far from the area as possible, a partial one where it has no columns.
    if len(order) > 1 and gaps[last] <= _GAP * step:
        start = middle - turn / 2
    else:
        start = float(on_circle[order[(last + 1) % len(order)]])
        start += turn * round((middle - start - (turn - float(gaps[last])) / 2) / turn)
    turns = np.ceil((start - longitude[order]) / turn - 1e-12)
    moved = longitude[order] + turn * turns
    ascending = np.argsort(moved, kind="stable")
    return order[ascending], moved[ascending]


def _lattice(domain: Domain) -> tuple[Points, list[Vector]]:
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    sizes = zip(domain.origin, domain.cell, domain.shape, strict=True)
    axes = [np.asarray(o + h * (np.arange(k) + 0.5), np.float64) for o, h, k in sizes]
    return np.column_stack([side.ravel() for side in np.meshgrid(*axes, indexing="ij")]), axes


def _outline(domain: Domain) -> Points:
    assert domain.shape is not None and domain.cell is not None and domain.origin is not None
    x, y = (o + h * np.arange(k + 1) for o, h, k in zip(domain.origin, domain.cell, domain.shape, strict=True))
    sides = [(x, np.full_like(x, end)) for end in y[[0, -1]]] + [(np.full_like(y, end), y) for end in x[[0, -1]]]
    return np.concatenate([np.column_stack(side) for side in sides])


def _check_values(grid: _Grid, centres: Points, domain: Domain, name: str) -> None:
    """Refuse cells beyond the raster or with their centre in NODATA; centres in the coordinates of the file."""
    needed = (domain.lookup >= 0).ravel()
    for edges, coordinates in zip(grid.edges, centres[needed].T, strict=True):
        slack = _EDGE * (edges[1] - edges[0])
        if coordinates.min() < edges[0] - slack or coordinates.max() > edges[-1] + slack:
            raise _coverage_error(name, edges, coordinates)
    known = Raster(x=grid.x, y=grid.y, values=1.0 * np.isfinite(grid.values)).nearest(centres) > 0
    missing = needed & ~known
    if missing.any():
        assert domain.plane is not None
        degrees = np.column_stack(domain.plane.backward(_lattice(domain)[0][missing]))
        middle = f"about {degrees[:, 0].mean():.4f} {degrees[:, 1].mean():.4f}"
        where = f"near {degrees[0, 0]:.4f} {degrees[0, 1]:.4f} (longitude, latitude)" if len(degrees) == 1 else middle
        raise InputError(
            f"has no value (NODATA) at the centre of {missing.sum()} of {needed.sum()} cells",
            field="raster",
            value=f"{name}: {where}",
            remedy="exclude these cells with forbidden=AREA, or fill the file, as gdal_fillnodata does; if nobody "
            "lives in pixels of a prior without a value, pass nodata_is=0",
        )


def _coverage_error(name: str, nodes: Vector, coordinates: Vector) -> InputError:
    return InputError(
        "does not cover the area",
        field="raster",
        value=f"{name}: from {nodes[0]:.9g} to {nodes[-1]:.9g}, needed from {coordinates.min():.9g} to "
        f"{coordinates.max():.9g}",
        remedy="use a raster that covers the area; if it declares no coordinate system, pass one such as "
        "crs='EPSG:32633'",
    )


def _nearest_known(values: Matrix) -> Matrix:
    missing = ~np.isfinite(values)
    if not missing.any() or missing.all():
        return np.nan_to_num(values)
    from scipy.ndimage import distance_transform_edt

    nearest = distance_transform_edt(missing, return_distances=False, return_indices=True)
    return np.asarray(values[tuple(nearest)])


def _are_counts(pixels: Pixels, finer: bool, prior_is: str | None, on_note: Callable[[str], None]) -> bool:
    """True for numbers in a pixel, False for values per unit of area; a note reports the assumption."""
    if prior_is is not None:
        return prior_is == "counts"
    unit, declared = pixels.value_unit.lower(), pixels.value_unit != "1"
    if declared and _PER_AREA.search(unit):
        counts = False
    elif declared and _COUNTED.search(unit):
        counts = True
    else:
        counts = finer and not _DENSITIES.search(pixels.title)
    taken, other = ("counts per pixel", "density") if counts else ("densities", "counts")
    reason = f", as their unit {pixels.value_unit} says" if declared else ""
    on_note(f"{pixels.name}: its values are read as {taken}{reason}; prior_is='{other}' reads them otherwise.")
    return counts


def _note_partial(known: Vector, name: str, on_note: Callable[[str], None]) -> None:
    """Report cells that are partly without values; known (n,) is the share of the area of each cell with one."""
    partly = known < 1 - _PARTLY
    if partly.any():
        share = percent(float((1 - known[partly]).mean()), digits=2)
        on_note(
            f"{name} has no value in parts of {partly.sum()} of {len(known)} cells, on average in {share} of a cell. "
            "Nobody is counted there."
        )


def _system(declared: str | Mapping[str, Any]) -> Any:
    pyproj = import_optional("pyproj", "geo")
    try:
        return pyproj.CRS.from_cf(declared) if isinstance(declared, Mapping) else pyproj.CRS.from_user_input(declared)
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise InputError(
            "unknown coordinate system",
            field="crs",
            value=f"{declared!s:.80}",
            remedy="name it as PROJ does, EPSG:4326",
        ) from error


def _is_plane(system: Any, plane: Plane) -> bool:
    if not system.is_projected or system.coordinate_operation.method_name.lower() not in _NAMES:
        return False
    values = {p.name.lower(): p.value * p.unit_conversion_factor for p in system.coordinate_operation.params}
    wanted = {
        "latitude of natural origin": math.radians(plane.latitude),
        "longitude of natural origin": math.radians(plane.longitude),
        "false easting": 0.0,
        "false northing": 0.0,
    }
    is_east_first = [axis.direction for axis in system.axis_info] == ["east", "north"]
    is_same = all(abs(values.get(name, math.inf) - value) <= math.radians(_SAME) for name, value in wanted.items())
    return is_east_first and is_same and "WGS" in str(system.ellipsoid.name) and "84" in str(system.ellipsoid.name)
