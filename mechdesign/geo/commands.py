"""The commands `mechdesign area`, which designs for an area, and `mechdesign level`, which explains an epsilon."""

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
from mechdesign.cli.values import parse_box, parse_epsilon, parse_radius
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.geo.area import Area
    from mechdesign.geo.area_inputs import LevelsFromPeople, LevelsFromRaster
    from mechdesign.posteriors.limits import PosteriorCap

_DEFAULT_FACTOR = 2.0  # whose radius `level --epsilon E` prints
_PRIOR_HELP = "Raster of the population: .tif, .nc or .asc. Pixels are added up in each cell. Default: a uniform prior."
_PRIOR_IS_HELP = "Values of --prior: people per pixel, or per area. Default: guessed, with a note."
_NODATA_HELP = "Value of pixels of --prior without data, 0 for nobody. Default: an error at centres of cells."
_VARIABLE_HELP = "Variable of a NetCDF file with several, or band of a GeoTIFF, of --prior and --levels-from."
_STEEP_HELP = "Maximum level of a raster, in nats across a cell."
_FROM_HELP = (
    "Raster (.tif, .nc, .asc) of an epsilon that varies by place, in nats per unit unless it declares another unit."
)
_PEOPLE_HELP = (
    "CSV of latitude, longitude, population: the prior unless --prior is passed, and the people of --disc. Cells in "
    "--forbidden get no population."
)
_COUNT_HELP = (
    "Vary epsilon with --people: 2 nats, or --factor, over the radius that holds this many of them, such as 2000."
)
_RADII_HELP = "Minimum and maximum radius of --people-per-disc. Default: 500,5000 in metres."
_POSITIONS_HELP = (
    "Protect any two positions by their straight-line distance (any) or along paths inside the area (inside), or only "
    "cells. Default: any; falls back to cells, and says why."
)


class AreaExtra(Protocol):
    """Options of a capability for a limit on the share of the probability in a disc."""

    @property
    def has_disc(self) -> bool: ...

    def cap(self, unit: str) -> PosteriorCap | None:
        """The limit, with its radius in `unit`, or None."""
        ...


# Options of typer stand in the signature, one for each option of the command. The body checks which belong together.
@with_extra_options("area")
def area(
    cell: Annotated[float, real("--cell", help="Side of a cell, in --unit.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="NetCDF file to write.")],
    area: Annotated[Path | None, typer.Argument(help="Polygons: .geojson in degrees, or .gpkg, .shp, .fgb.")] = None,
    box: BoxOption = None,
    within: WithinOption = None,
    factor: FactorOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit of length: m, km, mi, ...")] = "m",
    forbidden: Annotated[
        Path | None, typer.Option("--forbidden", help="Polygons of a region to exclude, such as water.")
    ] = None,
    prior: Annotated[Path | None, typer.Option("--prior", help=_PRIOR_HELP)] = None,
    prior_is: Annotated[str | None, typer.Option("--prior-is", metavar="counts|density", help=_PRIOR_IS_HELP)] = None,
    nodata_is: Annotated[float | None, real("--nodata-is", help=_NODATA_HELP)] = None,
    levels_from: Annotated[Path | None, typer.Option("--levels-from", metavar="RASTER", help=_FROM_HELP)] = None,
    nats_per_cell: Annotated[float, real("--nats-per-cell", metavar="NATS", help=_STEEP_HELP)] = 50.0,
    variable: Annotated[str | None, typer.Option("--variable", metavar="NAME", help=_VARIABLE_HELP)] = None,
    crs: CrsOption = None,
    people: Annotated[Path | None, typer.Option("--people", metavar="FILE", help=_PEOPLE_HELP)] = None,
    people_per_disc: Annotated[float | None, real("--people-per-disc", metavar="COUNT", help=_COUNT_HELP)] = None,
    radii: Annotated[str | None, typer.Option("--radii", metavar="MIN,MAX", help=_RADII_HELP)] = None,
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

    Design a mechanism for an area on Earth that protects any two positions by their distance on the ground.
    """
    from mechdesign.base.atomic_write import check_target
    from mechdesign.base.interrupts import two_steps
    from mechdesign.base.units import canonical_unit
    from mechdesign.geo.area_design import design
    from mechdesign.geo.area_inputs import LevelsFromRaster, RasterPrior
    from mechdesign.mechanism.storage import save
    from mechdesign.output.text_tables import note, note_compiling, progress, show

    if output.suffix != ".nc":
        remedy = "mechdesign export writes other formats"
        raise InputError("must end in .nc", field="output", value=output, remedy=remedy)
    check_outputs((output, check_target), overwrite=overwrite)
    name = output.stem if area is None else area.stem
    levels = _levels(levels_from, people_per_disc, radii, variable=variable)
    if prior is None:
        _refuse("--prior", {"prior-is": prior_is, "nodata-is": nodata_is})
    if prior is None and not isinstance(levels, LevelsFromRaster):
        _refuse("rasters", {"variable": variable})
    if people is None:
        _refuse("CSV files of people", {"columns": columns})
    inputs = InputOptions(columns, crs, people)
    inputs.refuse_unused_system(area, forbidden, levels_from, prior, people)
    note_compiling()
    with two_steps(), progress(name) as on_progress:  # the first Ctrl-C ends the search
        with option_names(limit="disc"):
            result = design(
                parse_area(area, box, crs),
                cell,
                within=within,
                factor=factor,
                epsilon=epsilon,
                unit=unit,
                forbidden=forbidden,
                people=people,
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
        # The file is saved first: a failure while reporting must not lose the design.
        save(result.mechanism, output, overwrite=overwrite)
        report = result.report
        document = report.to_json() | {"file": str(output)}
        for key in ("chosen", "positions_reason"):
            document[key] = None if document[key] is None else as_options(document[key])
        blocks = report.blocks(document, verbose=verbose)
        show(document, (as_options(block) if type(block) is str else block for block in blocks), as_json=as_json)
    return replace(report.figures, file=str(output)).exit_code(remedy="pass a larger --gap, or larger cells")


def _refuse(owner: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"applies only to {owner}", field=name, value=value, remedy="leave it out")


def _levels(
    levels_from: Path | None, people_per_disc: float | None, radii: str | None, *, variable: str | None
) -> LevelsFromPeople | LevelsFromRaster | None:
    """Levels that vary; None for a single one."""
    from mechdesign.geo.area_inputs import LevelsFromPeople, LevelsFromRaster

    if people_per_disc is None or levels_from is not None:
        _refuse("levels from people", {"people-per-disc": people_per_disc, "radii": radii})
        return None if levels_from is None else LevelsFromRaster(levels_from, variable=variable)
    least, most = (None, None) if radii is None else _parse_radii(radii)
    return LevelsFromPeople(people_per_disc, least=least, most=most)


def _parse_radii(words: str) -> list[float]:
    try:
        return number_list(words, count=2)
    except ValueError as error:
        remedy = "pass two lengths, such as 500,5000"
        raise InputError(str(error), field="radii", value=words, remedy=remedy) from error


def parse_area(file: Path | None, box: str | None, crs: str | None = None) -> Area:
    """Read the area of a GeoJSON file, or of --box W,S,E,N."""
    from mechdesign.geo.area import Area
    from mechdesign.geo.geojson import read_area
    from mechdesign.output.text_tables import note

    if (file is None) == (box is None):
        remedy = "pass either a GeoJSON file or --box W,S,E,N"
        raise InputError("exactly one area is required", field="area", value=box, remedy=remedy)
    if file is not None:
        return read_area(file, crs=crs, on_note=note)
    west, south, east, north = parse_box(box or "")
    return Area.box(west=west, south=south, east=east, north=north)


def _show_class_level(
    classes: int, factor: float | None, epsilon: float | None, reports: int, *, as_json: bool
) -> None:
    """Explain the level of --factor or --epsilon between any two classes."""
    from mechdesign.evaluation.privacy_radius import nats_of_factor
    from mechdesign.geo.class_level import class_level_document, class_level_words
    from mechdesign.output.text_tables import show

    if (factor is None) == (epsilon is None):
        raise InputError("one of --factor and --epsilon is required with --classes", field="factor", value=factor)
    nats = epsilon if factor is None else nats_of_factor(factor)
    document = class_level_document(classes=classes, epsilon=nats, reports=reports)  # type: ignore[arg-type]
    show(document, class_level_words(document), as_json=as_json)


class LevelExtra(Protocol):
    """Options of a capability for a level by the share of the probability in a disc."""

    @property
    def is_given(self) -> bool: ...

    def level(self, unit: str) -> tuple[float, float]:
        """A radius in `unit`, and the epsilon that keeps the share if people are spread evenly."""
        ...


@with_extra_options("level")
def level(
    within: WithinOption = None,
    factor: FactorOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[
        str, typer.Option("--unit", help="Unit of length such as m, km or mi, or of values such as USD.")
    ] = "m",
    extra: LevelExtra | None = None,
    reports: Annotated[int, whole("--reports", help="Number of reports of one person.")] = 1,
    interest: Annotated[
        float | None,
        real("--interest", help="Radius of the area of interest, to be retrieved whole with probability 0.95."),
    ] = None,
    classes: Annotated[
        int | None,
        whole("--classes", help="Number of classes, such as answers, instead of --within: epsilon between any two."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign level --within 200 --factor 2`.

    Explain a privacy level: odds within a radius, Laplace noise, the cost of several reports.
    """
    from mechdesign.base.validation import check_positive

    if classes is not None:
        _refuse("places", {"within": within, "interest": interest})
        _show_class_level(classes, factor, epsilon, reports, as_json=as_json)
        return

    by_discs = extra is not None and extra.is_given
    if not by_discs and (within, factor) == (None, None) and epsilon is not None:
        eps = check_positive(epsilon, "epsilon")
        # Six digits, so that the text and the JSON document have the same radius.
        radius = float(f"{math.log(_DEFAULT_FACTOR) / eps:.6g}")
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
