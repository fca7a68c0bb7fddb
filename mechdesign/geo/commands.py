"""`mechdesign area`, from an area to a certified mechanism file; `mechdesign level`, from odds to an epsilon and back.

Heavy imports happen inside.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.base.numbers import number_list
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import (
    BoundOption,
    BoxOption,
    ColumnsOption,
    CrsOption,
    DiscOption,
    EpsilonOption,
    FactorOption,
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    ShareOption,
    VerboseOption,
    WithinOption,
    check_outputs,
    real,
    whole,
)
from mechdesign.cli.parsing import (
    as_options,
    parse_epsilon,
    parse_even_level,
    parse_limit,
    parse_radius,
    positive_number,
)
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.geo.area import Area
    from mechdesign.problem.domain import Domain
    from mechdesign.problem.levels import PrivacyLevel, Raster
    from mechdesign.problem.problem import DesignProblem

_ODDS = 2.0  # that the radius of `level --epsilon E` is for
PROGRAMS = ("auto", "optimal", "eikonal", "planar-laplace")
_PRIOR_HELP = "Raster of the people: .tif, .nc or .asc, pixels added up in each cell. The prior is uniform without."
_PRIOR_IS_HELP = "What a value of --prior is: people in a pixel, or per area. Without: guessed, and printed."
_NODATA_HELP = "Value of pixels of --prior that have none, 0 for nobody. Without: refused at centres of cells."
_VARIABLE_HELP = "Variable of a NetCDF file that has several, or band of a GeoTIFF: of --prior and --levels-from."
_STEEP_HELP = "Largest level that a raster may have, in nats across a cell."
_FROM_HELP = (
    "Levels that vary, eikonal metric. CSV of latitude, longitude, population: 2 nats, or --factor, over the radius "
    "that holds --people; the prior too, without --prior; nobody lives where --forbidden is. Or a raster (.tif, .nc, "
    ".asc) of levels, in nats per unit where it declares no other."
)
_COUNT_HELP = (
    "Of people: how many a radius holds; 2000. With --disc the CSV of latitude, longitude, population; the prior too, "
    "without --prior."
)
_RADII_HELP = "Of people: the smallest and the largest radius, as 500,5000; these, in metres, without."
_POSITIONS_HELP = (
    "Protect any two positions, by their distance in a straight line or along paths inside a ragged area; or cells "
    "alone. Without: any, and cells only where any is not to be had, which is said."
)


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
    levels_from: Annotated[Path | None, typer.Option("--levels-from", help=_FROM_HELP)] = None,
    nats_per_cell: Annotated[float, real("--nats-per-cell", metavar="NATS", help=_STEEP_HELP)] = 50.0,
    variable: Annotated[str | None, typer.Option("--variable", metavar="NAME", help=_VARIABLE_HELP)] = None,
    crs: CrsOption = None,
    people: Annotated[str | None, typer.Option("--people", metavar="COUNT|FILE", help=_COUNT_HELP)] = None,
    radii: Annotated[str | None, typer.Option("--radii", metavar="LEAST,MOST", help=_RADII_HELP)] = None,
    columns: ColumnsOption = None,
    disc: DiscOption = None,
    share: ShareOption = None,
    loss: Annotated[str, typer.Option("--loss", help="distance, squared or zero-one.")] = "distance",
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "auto",
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
    started = time.monotonic()
    from mechdesign.base.interrupts import two_steps
    from mechdesign.base.memory import require_memory
    from mechdesign.geo.area import area_problem
    from mechdesign.geo.design import HELD, Request, beside, check_claim, designed, sentences
    from mechdesign.geo.geojson import read_area
    from mechdesign.geo.georeferenced import prior_figures, raster_on
    from mechdesign.geo.people import read_people
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.output.reports.solve import design_exit_code, proved, summarise, summary_words
    from mechdesign.output.text_tables import note, note_compiling, progress, show
    from mechdesign.problem.levels import PrivacyLevel
    from mechdesign.problem.text import is_csv
    from mechdesign.solvers.choose import LARGEST_TABLE
    from mechdesign.solvers.solve import check_targets

    if output.suffix != ".nc":
        raise InputError("must end in .nc; mechdesign export writes other formats", field="output", value=output)
    check_outputs((output, check_target), overwrite=overwrite)
    check_targets(gap, time_limit)
    region = parse_area(area, box, crs)
    if program not in PROGRAMS:
        raise InputError("unknown program", field="program", value=program, remedy="use " + ", ".join(PROGRAMS))
    check_claim(positions, program)
    if bound is False and program == "optimal":
        message = "the optimal program works towards its bound: a larger --gap or a --time-limit ends it earlier"
        raise InputError(message, field="bound", value="--no-bound")
    if bound and program == "planar-laplace":
        raise InputError("planar Laplace noise is made without a bound", field="bound", value="--bound")
    paths = "inside" if positions == "inside" else "straight"
    positions = "any" if positions == "inside" else positions
    of_people = levels_from is not None and is_csv(levels_from)
    eps: float = 0.0
    claimed: dict[str, float] = {}
    census = Path(people) if people is not None and disc is not None else None
    count = None if people is None or census is not None else positive_number(people, "people")
    if not of_people:
        _refuse("levels from people", {"people": count, "radii": radii})
    if not of_people and census is None:
        _refuse("a CSV file of people", {"columns": columns})
    inputs = InputOptions(columns, crs, census)
    inputs.refuse_unused_system(area, forbidden, levels_from, prior, census)
    if prior is None:
        _refuse("--prior", {"prior-is": prior_is, "nodata-is": nodata_is})
    if prior is None and (levels_from is None or of_people):
        _refuse("a raster", {"variable": variable})
    if disc is not None or share is not None:
        if positions == "any" or program not in ("auto", "optimal"):
            message = "limits on discs are kept between cells, by the optimal program"
            raise InputError(message, field="disc", value=disc, remedy="leave --positions and --program out")
        positions = "cells"
    if levels_from is None:
        eps, claimed = parse_epsilon(within=within, factor=factor, epsilon=epsilon)
    else:
        _refuse("a single level", {"within": within, "epsilon": epsilon, **({} if of_people else {"factor": factor})})
    left_out = None if forbidden is None else read_area(forbidden, crs=crs, on_note=note)
    domain = region.grid(cell=cell, unit=unit, forbidden=left_out, on_note=note)
    by_factors = domain.size > LARGEST_TABLE and of_people and program in ("auto", "eikonal")
    if not by_factors:
        require_memory(domain.size, domain.size, tables=HELD, what="a mechanism for the area", field="cell")
    named = inputs.columns_of(*PEOPLE)
    varying, density = None, None
    if levels_from is not None and of_people:
        varying, density, claimed = _elastic(
            domain, levels_from, water=left_out, people=count, radii=radii, factor=factor, columns=named, crs=crs
        )
    elif levels_from is not None:
        varying = PrivacyLevel(raster=raster_on(domain, levels_from, variable=variable, crs=crs, on_note=note))
    limit = parse_limit(disc, share, inputs, domain)
    if census is not None and density is None:
        density = read_people(census, domain, water=left_out, columns=named, crs=crs).density
    people_words: dict[str, Any] = {}

    def say(text: str) -> None:
        note(as_options(text))

    if prior is not None:
        density = raster_on(
            domain, prior, variable=variable, crs=crs, prior_is=prior_is, nodata_is=nodata_is, on_note=say
        )
        people_words = prior_figures(density, domain)
    name = output.stem if area is None else area.stem
    setting: dict[str, Any] = {
        "density": density,
        "nats_per_cell": nats_per_cell,
        "stencil": 16,  # of a level that varies: at most 2.8 % above straight lines
        "loss": loss,
        "paths": paths,
        "name": name,
        "parameters": {**claimed, "cell": cell, "unit": domain.unit},
    }

    def stated(*, positions: bool = False) -> DesignProblem:
        level: float | PrivacyLevel = varying or eps
        if positions and varying is None and "within" in claimed:  # the factor holds within it, rounding included
            from mechdesign.positions.patches import rounding_length

            level = eps / (1 + 1.01 * rounding_length(cell) / claimed["within"])
        return area_problem(domain, epsilon=level, positions=positions, **setting)

    note_compiling()
    with two_steps(), progress(name) as on_progress:  # a first Ctrl-C ends a search: what it found is written
        request = Request(
            stated=stated,
            program=program,
            positions=positions,
            loss=loss,
            varies=levels_from is not None,
            limit=limit,
            gap=gap,
            ends=time.monotonic() + time_limit,
            bound=bound,
            on_progress=on_progress,
        )
        design = designed(request, domain)
        checked = proved(design.mechanism)
        # The file comes first: nothing that is said of a design may cost the design.
        save(design.mechanism, output, overwrite=overwrite)
        summary = summarise(design.mechanism, checked, seconds=time.monotonic() - started, file=output)
        between_cells = stated() if design.positions else design.problem
        summary |= {"chosen": design.why, **beside(between_cells, design.program, summary["position_loss"], limit)}
        assert domain.plane is not None
        summary |= {"positions": "any" if design.positions else "cells", "positions_reason": design.reason}
        summary |= {"middle": {"latitude": domain.plane.latitude, "longitude": domain.plane.longitude}}
        summary |= {"plane": domain.plane.words(), "geodesic_epsilon": design.problem.parameters["geodesic_epsilon"]}
        summary |= people_words
        more = sentences(summary, design.problem, limit)
    words = summary_words(
        summary, design.mechanism, checked, verbose=verbose, because=design.reason, limit=time_limit, more=more
    )
    show(summary, words, as_json=as_json)
    return design_exit_code(summary, design.mechanism, remedy="ask for a larger --gap, or larger cells")


def _refuse(owner: str, options: Mapping[str, object]) -> None:
    """Raises: InputError where an option is given that belongs to `owner`, which is not there, or excludes it."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"belongs to {owner}", field=name, value=value)


def _elastic(
    domain: Domain,
    path: Path,
    *,
    water: Area | None,
    people: float | None,
    radii: str | None,
    factor: float | None,
    columns: dict[str, str] | None,
    crs: str | None,
) -> tuple[PrivacyLevel, Raster, dict[str, float]]:
    """The level of --levels-from, the density of the people, and the parameters of the design."""
    from mechdesign.base.units import METRES
    from mechdesign.base.validation import positive
    from mechdesign.evaluation.privacy_radius import nats_of_factor
    from mechdesign.geo.elastic import elastic_level
    from mechdesign.geo.people import read_people
    from mechdesign.output.text_tables import note

    metre = METRES[domain.unit]
    try:
        least, most = (500.0 / metre, 5000.0 / metre) if radii is None else number_list(radii, count=2)
    except ValueError as error:
        remedy = "write two lengths, LEAST,MOST, as 500,5000"
        raise InputError(str(error), field="radii", value=radii, remedy=remedy) from error
    rule = {"people": 2000.0 if people is None else people, "least": least, "most": most}
    nats = 2.0 if factor is None else nats_of_factor(factor)
    margin = positive(rule["most"], "most")
    density = read_people(path, domain, margin=margin, water=water, columns=columns, crs=crs, on_note=note).density
    level = elastic_level(density, nats=nats, **rule)
    return level, density, {**rule, "nats": nats}


def parse_area(file: Path | None, box: str | None, crs: str | None = None) -> Area:
    """The area of a GeoJSON file, or of --box W,S,E,N."""
    from mechdesign.geo.area import Area
    from mechdesign.geo.geojson import read_area
    from mechdesign.output.text_tables import note

    if (file is None) == (box is None):
        raise InputError("one area is needed, a GeoJSON file or --box W,S,E,N", field="area", value=box)
    if file is not None:
        return read_area(file, crs=crs, on_note=note)
    try:
        west, south, east, north = number_list(box or "", count=4)
    except ValueError as error:
        remedy = "write four numbers of degrees, W,S,E,N"
        raise InputError(str(error), field="box", value=box, remedy=remedy) from error
    return Area.box(west=west, south=south, east=east, north=north)


def level(
    within: WithinOption = None,
    factor: FactorOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit: a length such as m, km, mi, or of values: USD, ...")] = "m",
    disc: DiscOption = None,
    share: ShareOption = None,
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

    if (disc, share, within, factor) == (None, None, None, None) and epsilon is not None:
        eps = positive(epsilon, "epsilon")
        radius = float(f"{math.log(_ODDS) / eps:.6g}")  # six digits: words and JSON name one radius
    elif disc is None and share is None:
        radius = parse_radius(within)
        eps, _ = parse_epsilon(within=radius, factor=factor, epsilon=epsilon)
    else:
        _refuse("a level by odds", {"within": within, "factor": factor, "epsilon": epsilon})
        radius, eps = parse_even_level(disc, share, unit)
    from mechdesign.geo.level import level_document, level_words
    from mechdesign.output.text_tables import show

    document = level_document(radius=radius, epsilon=eps, unit=unit, reports=reports, interest=interest)
    show(document, level_words(document), as_json=as_json)
