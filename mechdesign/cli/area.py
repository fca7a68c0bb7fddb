"""`mechdesign area`: from a GeoJSON area, or a box, to a certified mechanism file. Heavy imports happen inside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.base.numerals import real_number
from mechdesign.cli.options import (
    EpsilonOption,
    FactorOption,
    GapOption,
    JsonOption,
    LimitOption,
    NatsOption,
    OverwriteOption,
    PageOption,
    RadiusOption,
    VerboseOption,
    WithinOption,
    real,
    whole,
)
from mechdesign.cli.parsing import epsilon_asked
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.setting.metric.levels import PrivacyLevel
    from mechdesign.setting.problems.problem import DesignProblem
    from mechdesign.setting.space.area import Area
    from mechdesign.setting.space.domain import Domain
    from mechdesign.setting.space.raster import Raster
    from mechdesign.solvers.kernels.progress import Reported

PROGRAMS = ("auto", "optimal", "eikonal", "planar-laplace")
_LEAST_SECONDS = 1.0
_TABLES = 8  # 64-bit numbers for every pair of cells that a run holds at most, as measured

_PRIOR_HELP = "Raster the prior is proportional to: .tif, .nc or .asc. Uniform without."
_FROM_HELP = (
    "CSV of latitude, longitude, population: levels of --nats (2) over the radius that holds --people, eikonal metric; "
    "the prior too, without --prior. Nobody lives where --forbidden is."
)
_POSITIONS_HELP = (
    "Protect any two positions, or cells alone. Without: any, and cells only where any is not to be had, which is said."
)
_PATHS_HELP = "Distance between any two positions: in a straight line, or along paths inside a ragged area."
_LEVELS_HELP = "Raster of levels: eps(u) = slope levels(u) + epsilon, eikonal metric."


def area(
    cell: Annotated[float, real("--cell", help="Side of a cell, in the unit.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="NetCDF file to write.")],
    area: Annotated[Path | None, typer.Argument(help="GeoJSON file: Polygon or MultiPolygon, degrees.")] = None,
    box: Annotated[str | None, typer.Option("--box", metavar="W,S,E,N", help="Degrees, instead of a file.")] = None,
    within: WithinOption = None,
    factor: FactorOption = None,
    nats: NatsOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="Unit of length: m, km, mi, ...")] = "m",
    forbidden: Annotated[Path | None, typer.Option("--forbidden", help="GeoJSON of what is left out: water.")] = None,
    prior: Annotated[Path | None, typer.Option("--prior", help=_PRIOR_HELP)] = None,
    levels: Annotated[Path | None, typer.Option("--levels", help=_LEVELS_HELP)] = None,
    slope: Annotated[float, real("--slope", help="Of --levels, in nats per unit per unit of levels.")] = 0.0,
    levels_from: Annotated[Path | None, typer.Option("--levels-from", help=_FROM_HELP)] = None,
    people: Annotated[float | None, real("--people", help="Of --levels-from: how many; 2000.")] = None,
    least: Annotated[float | None, real("--least", help="Of --levels-from: the smallest radius; 500 m.")] = None,
    most: Annotated[float | None, real("--most", help="Of --levels-from: the largest radius; 5 km.")] = None,
    stencil: Annotated[int, whole("--stencil", help="Neighbours, for --levels and --levels-from.")] = 8,
    loss: Annotated[str, typer.Option("--loss", help="distance, squared or zero-one.")] = "distance",
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "auto",
    positions: Annotated[str | None, typer.Option("--positions", metavar="any|cells", help=_POSITIONS_HELP)] = None,
    paths: Annotated[str, typer.Option("--paths", metavar="straight|inside", help=_PATHS_HELP)] = "straight",
    gap: GapOption = 1e-3,
    time_limit: LimitOption = math.inf,
    radius: RadiusOption = None,
    level: Annotated[float | None, real("--level", help="As --nats.", hidden=True)] = None,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Design a mechanism for an area on Earth: any two positions are protected, by their distance on the ground."""
    started = time.monotonic()
    from mechdesign.base.memory import require_memory
    from mechdesign.mechanism.positions.claim import rounding_length
    from mechdesign.mechanism.storage.files import check_target, save
    from mechdesign.output.page.page import check_page_target, save_page
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.chosen import alternative, check_claim, sentences, worth
    from mechdesign.output.terminal.summary import print_summary, proved, summarise
    from mechdesign.setting.problems.area import area_problem
    from mechdesign.setting.readers.geojson import read_area
    from mechdesign.setting.readers.georeferenced import raster_on
    from mechdesign.solvers.solve import check_targets
    from mechdesign.solvers.table import LARGEST_TABLE

    if output.suffix != ".nc":
        raise InputError(
            "a mechanism is written as NetCDF, .nc",
            field="output",
            value=output,
            remedy=f"use -o {output.with_suffix('.nc')}, and mechdesign export for other formats",
        )
    check_target(output, overwrite=overwrite)
    if page is not None:
        check_page_target(page, overwrite=overwrite)
    check_targets(gap, time_limit)
    if (area is None) == (box is None):
        raise InputError(
            "one area is needed", field="area", value=box or "none", remedy="give a GeoJSON file, or --box W,S,E,N"
        )
    if program not in PROGRAMS:
        raise InputError("unknown program", field="program", value=program, remedy="use " + ", ".join(PROGRAMS))
    check_claim(positions, program)
    forms = {"factor": factor, "nats": nats, "level": level, "epsilon": epsilon}
    radii = {"people": people, "least": least, "most": most}
    eps: float = 0.0
    claimed: dict[str, float] = {}
    if levels_from is None:
        _refuse("--levels-from", radii)
        eps, claimed = epsilon_asked(within=within, radius=radius, **forms)
    else:
        _refuse("a single level", {"within": within, "radius": radius, "epsilon": epsilon, "levels": levels})
    left_out = None if forbidden is None else read_area(forbidden)
    given = area_of_box(box) if area is None else read_area(area)
    domain = given.grid(cell=cell, unit=unit, forbidden=left_out)
    by_factors = domain.size > LARGEST_TABLE and levels_from is not None and program in ("auto", "eikonal")
    if not by_factors:
        require_memory(domain.size, domain.size, tables=_TABLES, what="a mechanism for the area", field="cell")
    varying, density = None, None
    if levels_from is not None:
        varying, density, claimed = _elastic(domain, levels_from, water=left_out, radii=radii, forms=forms)
    stated = partial(
        area_problem,
        domain,
        epsilon=varying or eps,
        density=density if prior is None else raster_on(domain, prior),
        levels=None if levels is None else raster_on(domain, levels),
        slope=slope,
        stencil=stencil,
        loss=loss,
        paths=paths,
        name="box" if area is None else area.stem,
        parameters={**claimed, "cell": cell, "unit": domain.unit},
    )
    between = partial(stated, positions=True)
    if levels is None and "radius" in claimed:  # so that the factor holds within the radius, rounding included
        between = partial(between, epsilon=eps / (1 + 1.01 * rounding_length(cell) / claimed["radius"]))
    printing.note_compiling()
    with printing.progress("box" if area is None else area.stem) as on_progress:
        asked = Asked(program=program, positions=positions, gap=gap, time_limit=time_limit, on_progress=on_progress)
        varies = levels is not None or varying is not None
        made = designed(asked, domain, stated, between, loss=loss, varies=varies)
        problem = made.problem
        checked = proved(made.mechanism)
        summary = summarise(made.mechanism, checked, seconds=time.monotonic() - started, file=output)
        summary |= worth(problem, summary["position_loss"])
        summary |= {"chosen": made.why, **alternative(stated() if made.positions else problem, made.program)}
    assert domain.plane is not None
    summary |= {"positions": "any" if made.positions else "cells", "positions_reason": made.reason}
    summary |= {"plane": domain.plane.words(), "geodesic_epsilon": problem.parameters["geodesic_epsilon"]}
    save(made.mechanism, output, overwrite=overwrite)
    if page is not None:
        save_page(made.mechanism, page, overwrite=overwrite)
    if as_json:
        printing.print_json(summary)
    else:
        more = sentences(summary, problem)
        print_summary(
            summary, made.mechanism, checked, verbose=verbose, because=made.reason, limit=time_limit, more=more
        )


def _refuse(owner: str, options: Mapping[str, object]) -> None:
    """Raises: InputError where an option is given that belongs to `owner`, which is not there, or excludes it."""
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"belongs to {owner}", field=name, value=value, remedy=f"leave out --{name}, or --levels-from"
            )


def _elastic(
    domain: Domain,
    path: Path,
    *,
    water: Area | None,
    radii: Mapping[str, float | None],
    forms: Mapping[str, float | None],
) -> tuple[PrivacyLevel, Raster, dict[str, float]]:
    """The level of --levels-from, the density of the people, and the parameters of the design."""
    from mechdesign.base.checks import positive
    from mechdesign.setting.metric.levels import PrivacyLevel
    from mechdesign.setting.readers.people import read_people
    from mechdesign.setting.space.plane import METRES

    metre = METRES[domain.unit]
    usual = {"people": 2000.0, "least": 500.0 / metre, "most": 5000.0 / metre}
    given = {name: usual[name] if value is None else value for name, value in radii.items()}
    if all(value is None for value in forms.values()):
        forms = {"nats": 2.0}
    nats, _ = epsilon_asked(within=1.0, **forms)
    density = read_people(path, domain, margin=positive(given["most"], "most"), water=water).density
    level = PrivacyLevel.elastic(density, nats=nats, **given)
    return level, density, {**given, "nats": nats}


def area_of_box(words: str | None) -> Area:
    """The area of --box W,S,E,N. Raises: InputError for other words, and for degrees of no box."""
    from mechdesign.setting.space.area import Area

    try:
        west, south, east, north = map(real_number, (words or "").replace(",", " ").split())
    except ValueError as error:
        raise InputError(
            "must be four numbers of degrees", field="box", value=words, remedy="write --box 2.34,48.85,2.36,48.87"
        ) from error
    return Area.box(west=west, south=south, east=east, north=north)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Of the command: the program, which positions, the targets of a design, and what is told where it stands."""

    program: str
    positions: str | None
    gap: float
    time_limit: float
    on_progress: Callable[[Reported], None] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """A mechanism, its problem, the program that made it and why; positions, whether any two are protected; reason, why
    they are not, where nobody asked for cells.
    """

    mechanism: xr.Dataset
    problem: DesignProblem
    program: str
    why: str
    positions: bool
    reason: str | None


def designed(
    asked: Asked,
    domain: Domain,
    stated: Callable[[], DesignProblem],
    between: Callable[[], DesignProblem],
    *,
    loss: str,
    varies: bool,
) -> Made:
    """The mechanism of an area, between any two positions where that is to be had and nobody asked for cells.

    stated, the problem of the area between cells; between, that between positions.
    Raises: what a design raises; InputError for cells wider than the radius within which they are to protect people.
    """
    from mechdesign.errors import SizeError, UnsuitableError
    from mechdesign.output.terminal.chosen import cells_instead, check_cell, chosen_for, dearer, why_positions
    from mechdesign.utility.loss.true_position import position_loss

    ends, unit = time.monotonic() + asked.time_limit, domain.unit
    reason = None if asked.positions else cells_instead(domain, loss, varies=varies, program=asked.program)
    if asked.positions != "cells" and reason is None:
        problem = between()
        try:
            mechanism, method = _between_positions(asked, problem, ends)
        except (SizeError, UnsuitableError) as error:
            if asked.positions == "any":
                raise
            reason = error.message
        else:
            if varies and asked.positions is None:
                beside = _cells_loss(asked, stated(), ends)
                reason = dearer(position_loss(mechanism), beside, problem.loss.unit(unit))
            if reason is None:
                return Made(
                    mechanism=mechanism,
                    problem=problem,
                    program="positions",
                    why=why_positions(method),
                    positions=True,
                    reason=None,
                )
    problem = stated()
    radius = problem.parameters.get("radius")
    check_cell(domain, None if radius is None else float(radius), reason)
    program, why = asked.program, f"{asked.program}, as --program says"
    if program == "auto":
        program, why = chosen_for(problem)
    mechanism = _between_cells(asked, problem, program, ends)
    return Made(mechanism=mechanism, problem=problem, program=program, why=why, positions=False, reason=reason)


def _between_positions(asked: Asked, problem: DesignProblem, ends: float) -> tuple[xr.Dataset, str]:
    """The design between any two positions by the time that the command ends, and its method.

    Raises: SizeError, UnsuitableError where there is none.
    """
    from mechdesign.base.memory import require_memory
    from mechdesign.output.terminal.chosen import positions_method
    from mechdesign.programs.optimal.positions import Positions
    from mechdesign.solvers.solve import solve

    size = problem.domain.size
    require_memory(size, size, tables=_TABLES, what="any two positions of the area", field="cell")
    program = Positions(problem=problem)
    method = positions_method(program, asked=asked.positions == "any")
    mechanism = solve(
        program,
        gap=asked.gap,
        time_limit=max(ends - time.monotonic(), _LEAST_SECONDS),
        method=method,
        on_progress=asked.on_progress,
        bound=False,
    )
    return mechanism, method


def _between_cells(asked: Asked, problem: DesignProblem, program: str, ends: float) -> xr.Dataset:
    """The mechanism of a program between cells, by the time that the command ends."""
    from mechdesign.closed_forms.mechanisms import planar_laplace
    from mechdesign.output.terminal.chosen import note_pairs
    from mechdesign.programs.eikonal.weights import EikonalWeights
    from mechdesign.programs.optimal.optimal import Optimal
    from mechdesign.solvers.solve import solve

    if program == "planar-laplace":
        note_pairs(problem.domain)
        return planar_laplace.mechanism(problem)
    stated = EikonalWeights(problem=problem) if program == "eikonal" else Optimal(problem=problem)
    left = max(ends - time.monotonic(), _LEAST_SECONDS)
    return solve(stated, gap=asked.gap, time_limit=left, on_progress=asked.on_progress)


def _cells_loss(asked: Asked, problem: DesignProblem, ends: float) -> float | None:
    """The mean loss of eikonal weights between cells to the true position."""
    from mechdesign.utility.loss.true_position import position_loss

    return position_loss(_between_cells(asked, problem, "eikonal", ends))
