"""`design`: from an area on Earth to a certified mechanism and its report, in one call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.base.log import log_note
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.privacy_radius import level_of_odds
from mechdesign.geo import choose
from mechdesign.geo.area import STEEPEST, Area
from mechdesign.geo.area_inputs import AreaInputs, Levels, LevelsFromPeople, RasterPrior, check_levels
from mechdesign.geo.area_report import AreaDesign
from mechdesign.geo.area_search import TABLES_IN_MEMORY, AreaSearch, AreaStatement
from mechdesign.geo.choose import BetweenPositions
from mechdesign.geo.geojson import read_area
from mechdesign.geo.georeferenced import PriorFigures
from mechdesign.output.reports.solve import require_verified
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.tables import Note
from mechdesign.solvers.choose import LARGEST_TABLE
from mechdesign.solvers.result import Progress
from mechdesign.solvers.solve import check_targets

if TYPE_CHECKING:
    from mechdesign.posteriors.limits import PosteriorCap


# 23 arguments, not one object: a design is one call, and the command line has the same names.
@validate_call
def design(
    area: Area | str | Path,
    cell: float,
    *,
    within: float | None = None,
    factor: float | None = None,
    epsilon: float | None = None,
    unit: str = "m",
    forbidden: Area | str | Path | None = None,
    people: str | Path | None = None,
    prior: RasterPrior | str | Path | None = None,
    levels: Levels = None,
    nats_per_cell: float = STEEPEST,
    limit: PosteriorCap | None = None,
    loss: str = "distance",
    program: str = "auto",
    positions: str | None = None,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    bound: bool | None = None,
    columns: Columns = None,
    crs: str | None = None,
    name: str | None = None,
    on_note: Note = log_note,
    on_progress: Callable[[Progress], None] | None = None,
) -> AreaDesign:
    """Design a certified mechanism for an area on Earth.

    Any two positions are protected, by their distance on the ground, if such a design is feasible, else only cells.
    Source: Andrés et al. 2013, section 3.

    Parameters
    ----------
    area, forbidden : Area, str or Path
        An area, or a GeoJSON file of one; a region without cells, such as water.
    cell, unit : float, str
        The side of a cell, and the unit of length.
    within, factor, epsilon : float
        The level: a report changes the odds between places up to `within` apart by at most `factor`. Or nats per unit.
    people : str or Path
        CSV file of latitude, longitude and population: the prior by default, and the people of `limit`. Nobody lives
        in `forbidden`.
    prior : RasterPrior, str or Path
        A raster of people. The prior is uniform without it and `people`.
    levels, nats_per_cell : LevelsFromPeople, LevelsFromRaster or PrivacyLevel, float
        Levels that vary by place, those from people with `factor`, by default e^2; their maximum in nats across a cell.
    limit : PosteriorCap
        A limit on the share of the probability in a disc. It requires cells and the optimal program.
    loss, program : str
        "distance", "squared" or "zero-one"; "optimal", "eikonal" or "planar-laplace", by default by the size.
    positions : {"any", "inside", "cells"}
        Protect any two positions by straight lines, by paths inside the area, or only cells. By default any, if
        feasible.
    gap, time_limit : float
        Target of (loss - lower_bound) / loss; seconds, after which the search returns its best certified mechanism.
    bound : bool
        True to compute a lower bound for a mechanism that has none; between positions, some ten minutes for a smaller
        gap over every mechanism.
    columns : mapping of str to str
        Our names of columns to those in text files.
    crs, name : str
        Coordinate system of inputs that declare none; name of the problem.
    on_note, on_progress : callable
        Called with a sentence about an assumption, and with the progress of the search.

    Returns
    -------
    AreaDesign

    Examples
    --------
    >>> area = md.geo.Area.box(2.34, 48.85, 2.36, 48.86)
    >>> rome = md.geo.design(area, cell=400, within=400, factor=2, program="planar-laplace")
    >>> rome.mechanism.sizes["secret"]
    12
    """
    started = time.monotonic()
    check_targets(gap, time_limit)
    region = _as_area(area, crs, on_note)
    choose.check_program(program, positions, bound)
    if limit is not None:
        _check_limit(limit, program, positions)
        positions = "cells"
    check_levels(levels, within=within, factor=factor, epsilon=epsilon)
    one_level = None if levels is not None else level_of_odds(within=within, factor=factor, epsilon=epsilon)
    water = None if forbidden is None else _as_area(forbidden, crs, on_note)
    domain = region.grid(cell=cell, unit=unit, forbidden=water, on_note=on_note)
    _require_room(domain, levels, program)
    inputs = AreaInputs(domain=domain, water=water, columns=columns, crs=crs, on_note=on_note)
    level, residents, level_parameters = inputs.level(one_level, levels, factor=factor, people=people)
    residents = inputs.residents(people, residents)
    if limit is not None and people is not None and residents is not None:
        # The people of the prior: an adversary who counted those of forbidden cells too would have another posterior.
        limit = replace(limit, people=residents.by_place(domain))
    density = None if residents is None else residents.density
    figures = None
    if prior is not None:
        density = inputs.prior(prior)
        figures = PriorFigures.of(density, domain)
    if name is None:
        name = Path(area).stem if isinstance(area, (str, Path)) else "area"
    statement = AreaStatement(
        domain=domain,
        level=level,
        density=density,
        people=inputs.density_of(people) if prior is None else None,
        nats_per_cell=nats_per_cell,
        loss=loss,
        paths="inside" if positions == "inside" else "straight",
        name=name,
        parameters={**level_parameters, "cell": float(cell), "unit": domain.unit},
    )
    mechanism, problem, choice, reason = AreaSearch(
        statement=statement,
        program=program,
        positions="any" if positions == "inside" else positions,
        limit=limit,
        gap=gap,
        ends=time.monotonic() + time_limit,
        bound=bound,
        on_note=on_note,
        on_progress=on_progress,
    ).solve()
    verification = require_verified(mechanism)
    return AreaDesign(
        mechanism=mechanism,
        verification=verification,
        problem=problem,
        cells_problem=statement.problem() if isinstance(choice, BetweenPositions) else problem,
        choice=choice,
        reason=reason,
        limit=limit,
        prior=figures,
        time_limit=time_limit,
        seconds=time.monotonic() - started,
    )


def _as_area(area: Area | str | Path, crs: str | None, on_note: Note) -> Area:
    return area if isinstance(area, Area) else read_area(area, crs=crs, on_note=on_note)


def _check_limit(limit: PosteriorCap, program: str, positions: str | None) -> None:
    if positions in ("any", "inside") or program not in ("auto", "optimal"):
        message = "limits on discs require cells and the optimal program"
        remedy = "leave `positions` and `program` out"
        raise InputError(message, field="limit", value=f"{limit.radius:g}", remedy=remedy)


def _require_room(domain: Domain, levels: Levels, program: str) -> None:
    # Large areas with levels from people become factors, not tables.
    factored = isinstance(levels, LevelsFromPeople) and program in ("auto", "eikonal")
    if not (domain.size > LARGEST_TABLE and factored):
        require_memory(domain.size, domain.size, tables=TABLES_IN_MEMORY, noun="a mechanism for the area", field="cell")
