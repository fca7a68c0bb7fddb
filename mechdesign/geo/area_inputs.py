"""Input files of an area's design: levels that vary, and where people live."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from mechdesign.base.units import METRES
from mechdesign.base.validation import positive
from mechdesign.errors import InputError
from mechdesign.evaluation.privacy_radius import nats_of_factor
from mechdesign.geo.area import Area
from mechdesign.geo.elastic import elastic_level
from mechdesign.geo.georeferenced import raster_on
from mechdesign.geo.people import PeoplePoints, read_points
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.raster import Raster
from mechdesign.problem.tables import Note

_RADII = 500.0, 5000.0  # m


@dataclass(frozen=True)
class RasterPrior:
    """Where people live, as a raster.

    Parameters
    ----------
    path : str or Path
        GeoTIFF, NetCDF or ESRI ASCII.
    kind : {"counts", "density"}
        A value is a number of people in a pixel, or per unit of area; guessed, with a note, by default.
    nodata, variable : float, str
        The value of pixels without one; the variable of a file of several.

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
        GeoTIFF, NetCDF or ESRI ASCII; the variable of a file of several.

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
    """Levels that vary with where people live: nats over the radius of the disc that holds `people_per_disc` people.

    Parameters
    ----------
    people_per_disc, path : float, str or Path
        Number of people in the disc about a place; a CSV file of people, by default that of the design.
    least, most : float
        The smallest and the largest radius, in the unit of the area; 500 m and 5,000 m by default.

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
    """Refuse arguments of one level with levels that vary; those from people take a factor."""
    if levels is None:
        return
    for name, value in single.items():
        if value is not None and not (name == "factor" and isinstance(levels, LevelsFromPeople)):
            raise InputError("belongs to a single level", field=name, value=value)


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaInputs:
    """The files of a design, read on its domain; each file of people once."""

    domain: Domain
    water: Area | None
    columns: Columns
    crs: str | None
    on_note: Note
    read: dict[str, PeoplePoints] = field(default_factory=dict)

    def points(self, path: str | Path) -> PeoplePoints:
        if str(path) not in self.read:
            found = read_points(path, columns=self.columns, crs=self.crs, on_note=self.on_note)
            self.read[str(path)] = found
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
        flat: tuple[float, dict[str, float]] | None,
        levels: Levels,
        *,
        factor: float | None,
        people: str | Path | None,
    ) -> tuple[float | PrivacyLevel, Raster | None, dict[str, float]]:
        if isinstance(levels, LevelsFromPeople):
            return self._level_of_people(levels, factor, levels.path or people)
        if isinstance(levels, LevelsFromRaster):
            raster = raster_on(self.domain, levels.path, variable=levels.variable, crs=self.crs, on_note=self.on_note)
            return PrivacyLevel(raster=raster), None, {}
        if levels is not None:
            return levels, None, {}
        assert flat is not None
        return flat[0], None, flat[1]

    def _level_of_people(
        self, levels: LevelsFromPeople, factor: float | None, path: str | Path | None
    ) -> tuple[PrivacyLevel, Raster, dict[str, float]]:
        if path is None:
            raise InputError("levels from people need a CSV file of them", field="people")
        metre = METRES[self.domain.unit]
        usual = [radius / metre for radius in _RADII]
        rule = {
            "people": float(levels.people_per_disc),
            "least": usual[0] if levels.least is None else float(levels.least),
            "most": usual[1] if levels.most is None else float(levels.most),
        }
        nats = 2.0 if factor is None else nats_of_factor(factor)
        margin = positive(rule["most"], "most")
        density = self.points(path).spread(self.domain, margin=margin, water=self.water).density
        return elastic_level(density, nats=nats, **rule), density, {**rule, "nats": nats}
