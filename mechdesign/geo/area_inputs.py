"""Input files of an area's design: levels that vary, and the population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from mechdesign.base.units import METRES
from mechdesign.base.validation import check_positive
from mechdesign.errors import InputError
from mechdesign.evaluation.privacy_radius import nats_of_factor
from mechdesign.geo.area import Area
from mechdesign.geo.elastic import elastic_level
from mechdesign.geo.georeferenced import raster_on
from mechdesign.geo.people import People, PeoplePoints, read_points
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.raster import Raster
from mechdesign.problem.tables import Note

_RADII = 500.0, 5000.0  # m


@dataclass(frozen=True)
class RasterPrior:
    """A raster of the population.

    Parameters
    ----------
    path : str or Path
        GeoTIFF, NetCDF or ESRI ASCII.
    kind : {"counts", "density"}
        People in a pixel, or per unit of area. Guessed by default, with a note.
    nodata, variable : float, str
        Value of pixels without data; variable of a file that has several.

    Examples
    --------
    >>> md.geo.RasterPrior("people.tif", kind="counts").kind
    'counts'
    """

    path: str | Path
    _: KW_ONLY
    kind: str | None = None
    nodata: float | None = None
    variable: str | None = None


@dataclass(frozen=True)
class LevelsFromRaster:
    """Levels that vary, as a raster in nats per unit.

    Parameters
    ----------
    path, variable : str or Path, str
        GeoTIFF, NetCDF or ESRI ASCII; variable of a file that has several.

    Examples
    --------
    >>> md.geo.LevelsFromRaster("levels.tif").variable is None
    True
    """

    path: str | Path
    _: KW_ONLY
    variable: str | None = None


@dataclass(frozen=True)
class LevelsFromPeople:
    """Levels that vary with the population: nats over the radius of the disc that holds `people_per_disc` people.

    Parameters
    ----------
    people_per_disc, path : float, str or Path
        Number of people in the disc around a place; a CSV file of people, by default that of the design.
    least, most : float
        Minimum and maximum radius, in the unit of the area; 500 m and 5,000 m by default.

    Examples
    --------
    >>> md.geo.LevelsFromPeople(2000).people_per_disc
    2000
    """

    people_per_disc: float = 2000.0
    _: KW_ONLY
    least: float | None = None
    most: float | None = None
    path: str | Path | None = None


Levels = LevelsFromPeople | LevelsFromRaster | PrivacyLevel | None


def check_levels(levels: Levels, **single: float | None) -> None:
    """Refuse arguments of a single level combined with varying levels; levels from people accept a factor."""
    if levels is None:
        return
    for name, value in single.items():
        if value is not None and not (name == "factor" and isinstance(levels, LevelsFromPeople)):
            raise InputError(
                "applies only to a single level", field=name, value=value, remedy="leave it or `levels` out"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaInputs:
    """The input files of a design, on its domain. Each file of people is read once."""

    domain: Domain
    water: Area | None
    columns: Columns
    crs: str | None
    on_note: Note
    read: dict[str, PeoplePoints] = field(default_factory=dict)

    def points(self, path: str | Path) -> PeoplePoints:
        if str(path) not in self.read:
            self.read[str(path)] = read_points(path, columns=self.columns, crs=self.crs, on_note=self.on_note)
        return self.read[str(path)]

    def prior(self, prior: RasterPrior | str | Path) -> Raster:
        source = prior if isinstance(prior, RasterPrior) else RasterPrior(prior)
        return raster_on(
            self.domain,
            source.path,
            variable=source.variable,
            crs=self.crs,
            prior_is=source.kind,
            nodata_is=source.nodata,
            on_note=self.on_note,
        )

    def level(
        self,
        one_level: tuple[float, dict[str, float]] | None,
        levels: Levels,
        *,
        factor: float | None,
        people: str | Path | None,
    ) -> tuple[float | PrivacyLevel, People | None, dict[str, float]]:
        """The level, the people that it follows if any, and its parameters for files."""
        if isinstance(levels, LevelsFromPeople):
            return self._level_of_people(levels, factor, levels.path or people)
        if isinstance(levels, LevelsFromRaster):
            raster = raster_on(
                self.domain,
                levels.path,
                variable=levels.variable,
                crs=self.crs,
                prior_is="density",
                on_note=self.on_note,
            )
            return PrivacyLevel(raster=raster), None, {}
        if levels is not None:
            return levels, None, {}
        assert one_level is not None
        return one_level[0], None, one_level[1]

    def residents(self, people: str | Path | None, of_level: People | None) -> People | None:
        if people is None or (of_level is not None and of_level.path == Path(people)):
            return of_level
        return self.points(people).spread(self.domain, water=self.water)

    def density_of(self, people: str | Path | None) -> Callable[[Domain], Raster] | None:
        """The density of the people of a file on any grid of the area; None without a file."""
        if people is None:
            return None
        points = self.points(people)
        return lambda grid: points.spread(grid, water=self.water).density

    def _level_of_people(
        self, levels: LevelsFromPeople, factor: float | None, path: str | Path | None
    ) -> tuple[PrivacyLevel, People, dict[str, float]]:
        if path is None:
            remedy = "pass people='people.csv'"
            raise InputError("levels from people need a CSV file", field="people", value="none", remedy=remedy)
        metre = METRES[self.domain.unit]
        shortest, longest = (radius / metre for radius in _RADII)
        rule = {
            "people": float(levels.people_per_disc),
            "least": shortest if levels.least is None else float(levels.least),
            "most": longest if levels.most is None else float(levels.most),
        }
        nats = 2.0 if factor is None else nats_of_factor(factor)
        margin = check_positive(rule["most"], "most")
        # Discs of cells at the border reach beyond the domain by up to the maximum radius.
        residents = self.points(path).spread(self.domain, margin=margin, water=self.water)
        return elastic_level(residents.density, nats=nats, **rule), residents, {**rule, "nats": nats}
