"""The commands `mechdesign area`, an area to a certified mechanism, and `mechdesign level`, odds to an epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from mechdesign.base.numbers import number_list
from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import (
    BoundOption,
    BoxOption,
    ColumnsOption,
    CrsOption,
    EpsilonOption,
    FactorOption,
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    VerboseOption,
    WithinOption,
    check_outputs,
    real,
    whole,
)
from mechdesign.cli.remedies import as_options, option_names
from mechdesign.cli.values import parse_box, parse_epsilon, parse_radius, positive_number
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.geo.area import Area
    from mechdesign.geo.area_inputs import LevelsFromPeople, LevelsFromRaster
    from mechdesign.posteriors.limits import PosteriorCap

_ODDS = 2.0  # that the radius of `level --epsilon E` is for
_PRIOR_HELP = "Raster of the people: .tif, .nc or .asc, pixels added up in each cell. The prior is uniform without."
_PRIOR_IS_HELP = "What a value of --prior is: people in a pixel, or per area. Without: guessed, and printed."
_NODATA_HELP = "Value of pixels of --prior that have none, 0 for nobody. Without: refused at centres of cells."
_VARIABLE_HELP = "Variable of a NetCDF file that has several, or band of a GeoTIFF: of --prior and --levels-from."
_STEEP_HELP = "Largest level that a raster may have, in nats across a cell."
_FROM_HELP = (
    "Raster (.tif, .nc, .asc) of levels that vary, in nats per unit where it declares no other; eikonal metric."
)
_PEOPLE_HELP = (
    "CSV of latitude, longitude, population: the prior, without --prior, and whom --disc counts; nobody lives where "
    "--forbidden is."
)
_COUNT_HELP = (
    "Levels that vary with --people, eikonal metric: 2 nats, or --factor, over the radius that holds so many of them, "
    "2000 for example."
)
_RADII_HELP = "Of --people-per-disc: the smallest and the largest radius, as 500,5000; these, in metres, without."
_POSITIONS_HELP = (
    "Protect any two positions, by their distance in a straight line or along paths inside a ragged area; or cells "
    "alone. Without: any, and cells only where any is not to be had, which is said."
)


class AreaExtra(Protocol):
    """Options that a capability adds, for a limit on the share of the probability in a disc."""

    @property
    def has_disc(self) -> bool: ...

    def cap(self, unit: str) -> PosteriorCap | None:
        """The limit, its radius in `unit`; None if none is asked for."""
        ...


@with_extra_options("area")
def area(
    cell: Annotated[float, real("--cell", help="Side of a cell, in the unit.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="NetCDF file to write.")],
    area: Annotated[Path | None, typer.Argument(help="GeoJSON file: Polygon or MultiPolygon, degrees.")] = None,
    box: BoxOption = None,
    within: WithinOption = None,
    factor: FactorOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit of length: m, km, mi, ...")] = "m",
    forbidden: Annotated[Path | None, typer.Option("--forbidden", help="GeoJSON of what is left out: water.")] = None,
    prior: Annotated[Path | None, typer.Option("--prior", help=_PRIOR_HELP)] = None,
    prior_is: Annotated[str | None, typer.Option("--prior-is", metavar="counts|density", help=_PRIOR_IS_HELP)] = None,
    nodata_is: Annotated[float | None, real("--nodata-is", help=_NODATA_HELP)] = None,
    levels_from: Annotated[Path | None, typer.Option("--levels-from", metavar="RASTER", help=_FROM_HELP)] = None,
    nats_per_cell: Annotated[float, real("--nats-per-cell", metavar="NATS", help=_STEEP_HELP)] = 50.0,
    variable: Annotated[str | None, typer.Option("--variable", metavar="NAME", help=_VARIABLE_HELP)] = None,
    crs: CrsOption = None,
    people: Annotated[str | None, typer.Option("--people", metavar="FILE", help=_PEOPLE_HELP)] = None,
    people_per_disc: Annotated[float | None, real("--people-per-disc", metavar="COUNT", help=_COUNT_HELP)] = None,
    radii: Annotated[str | None, typer.Option("--radii", metavar="LEAST,MOST", help=_RADII_HELP)] = None,
    columns: ColumnsOption = None,
    extra: AreaExtra | None = None,
    loss: Annotated[str, typer.Option("--loss", help="distance, squared or zero-one.")] = "distance",
    program: Annotated[str, typer.Option("--program", help="One of auto, optimal, eikonal, planar-laplace.")] = "auto",
    positions: Annotated[
        str | None, typer.Option("--positions", metavar="any|inside|cells", help=_POSITIONS_HELP)
    ] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = math.inf,
    bound: BoundOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> int:
    """Example: `mechdesign area --box 12.47,41.87,12.52,41.91 --cell 500 --within 200 --factor 2 -o rome.nc`.

    Design a mechanism for an area on Earth: any two positions are protected, by their distance on the ground.
    """
    from mechdesign.base.atomic_write import check_target
    from mechdesign.base.interrupts import two_steps
    from mechdesign.base.units import canonical_unit
    from mechdesign.geo.area_design import design
    from mechdesign.geo.area_inputs import LevelsFromPeople, LevelsFromRaster, RasterPrior
    from mechdesign.mechanism.storage import save
    from mechdesign.output.text_tables import note, note_compiling, progress, show

    if output.suffix != ".nc":
        raise InputError("must end in .nc; mechdesign export writes other formats", field="output", value=output)
    check_outputs((output, check_target), overwrite=overwrite)
    name = output.stem if area is None else area.stem
    levels, census = _people_options(
        levels_from, people, people_per_disc, radii, variable=variable, by_discs=extra is not None and extra.has_disc
    )
    if prior is None:
        _refuse("--prior", {"prior-is": prior_is, "nodata-is": nodata_is})
    if prior is None and not isinstance(levels, LevelsFromRaster):
        _refuse("a raster", {"variable": variable})
    if census is None and not isinstance(levels, LevelsFromPeople):
        _refuse("a CSV file of people", {"columns": columns})
    inputs = InputOptions(columns, crs, census)
    inputs.refuse_unused_system(area, forbidden, levels_from, prior, census)
    note_compiling()
    with two_steps(), progress(name) as on_progress:  # a first Ctrl-C ends a search: what it found is written
        with option_names(limit="disc"):
            made = design(
                parse_area(area, box, crs),
                cell,
                within=within,
                factor=factor,
                epsilon=epsilon,
                unit=unit,
                forbidden=forbidden,
                people=census,
                prior=None if prior is None else RasterPrior(prior, kind=prior_is, nodata=nodata_is, variable=variable),
                levels=levels,
                nats_per_cell=nats_per_cell,
                limit=None if extra is None else extra.cap(canonical_unit(unit)),
                loss=loss,
                program=program,
                positions=positions,
                gap=gap,
                time_limit=time_limit,
                bound=bound,
                columns=inputs.columns_of(*PEOPLE),
                crs=crs,
                name=name,
                on_note=lambda text: note(as_options(text)),
                on_progress=on_progress,
            )
        # The file comes first: nothing that is said of a design may cost the design.
        save(made.mechanism, output, overwrite=overwrite)
        report = made.report
        document = report.to_json() | {"file": str(output)}
        for words in ("chosen", "positions_reason"):
            document[words] = None if document[words] is None else as_options(document[words])
        blocks = report.blocks(document, verbose=verbose)
        show(document, (as_options(block) if type(block) is str else block for block in blocks), as_json=as_json)
    return replace(report.figures, file=str(output)).exit_code(remedy="ask for a larger --gap, or larger cells")


def _refuse(owner: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"belongs to {owner}", field=name, value=value)


def _people_options(
    levels_from: Path | None,
    people: str | None,
    people_per_disc: float | None,
    radii: str | None,
    *,
    variable: str | None,
    by_discs: bool,
) -> tuple[LevelsFromPeople | LevelsFromRaster | None, Path | None]:
    """Levels that vary, and the CSV file of people; older spellings are --levels-from FILE.csv and --people COUNT."""
    from mechdesign.geo.area_inputs import LevelsFromPeople, LevelsFromRaster
    from mechdesign.problem.text import is_csv

    own = levels_from if levels_from is not None and is_csv(levels_from) else None
    counts = people is not None and not by_discs and people_per_disc is None and not is_csv(Path(people))
    census = None if people is None or counts else Path(people)
    count = people_per_disc
    if people is not None and counts:
        count = positive_number(people, "people")
    by_people = own is not None or (people_per_disc is not None and levels_from is None)
    if not by_people:
        option = "people" if counts else "people-per-disc"
        _refuse("levels from people", {option: count, "radii": radii})
        return (None if levels_from is None else LevelsFromRaster(levels_from, variable=variable)), census
    least, most = (None, None) if radii is None else _parse_radii(radii)
    return LevelsFromPeople(2000.0 if count is None else count, least=least, most=most, path=own), census


def _parse_radii(words: str) -> list[float]:
    try:
        return number_list(words, count=2)
    except ValueError as error:
        remedy = "write two lengths, LEAST,MOST, as 500,5000"
        raise InputError(str(error), field="radii", value=words, remedy=remedy) from error


def parse_area(file: Path | None, box: str | None, crs: str | None = None) -> Area:
    """The area of a GeoJSON file, or of --box W,S,E,N."""
    from mechdesign.geo.area import Area
    from mechdesign.geo.geojson import read_area
    from mechdesign.output.text_tables import note

    if (file is None) == (box is None):
        raise InputError("one area is needed, a GeoJSON file or --box W,S,E,N", field="area", value=box)
    if file is not None:
        return read_area(file, crs=crs, on_note=note)
    west, south, east, north = parse_box(box or "")
    return Area.box(west=west, south=south, east=east, north=north)


class LevelExtra(Protocol):
    """Options that a capability adds, for a level by the share of the probability in a disc."""

    @property
    def is_given(self) -> bool: ...

    def level(self, unit: str) -> tuple[float, float]:
        """A radius in `unit`, and the epsilon that keeps the share where people live evenly."""
        ...


@with_extra_options("level")
def level(
    within: WithinOption = None,
    factor: FactorOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit: a length such as m, km, mi, or of values: USD, ...")] = "m",
    extra: LevelExtra | None = None,
    reports: Annotated[int, whole("--reports", help="How many reports of one person.")] = 1,
    interest: Annotated[
        float | None, real("--interest", help="Radius of an area to be retrieved, all of it with probability 0.95.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign level --within 200 --factor 2`.

    Say what a privacy level means: odds within a radius, Laplace noise, the cost of several reports.
    """
    from mechdesign.base.validation import positive

    by_discs = extra is not None and extra.is_given
    if not by_discs and (within, factor) == (None, None) and epsilon is not None:
        eps = positive(epsilon, "epsilon")
        radius = float(f"{math.log(_ODDS) / eps:.6g}")  # six digits: words and JSON name one radius
    elif extra is None or not by_discs:
        radius = parse_radius(within)
        eps, _ = parse_epsilon(within=radius, factor=factor, epsilon=epsilon)
    else:
        _refuse("a level by odds", {"within": within, "factor": factor, "epsilon": epsilon})
        radius, eps = extra.level(unit)
    from mechdesign.geo.level import level_document, level_words
    from mechdesign.output.text_tables import show

    document = level_document(radius=radius, epsilon=eps, unit=unit, reports=reports, interest=interest)
    show(document, level_words(document), as_json=as_json)
