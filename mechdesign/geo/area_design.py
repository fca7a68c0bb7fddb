"""`design`: from an area on Earth to a certified mechanism and its report, in one call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validated
from mechdesign.closed_forms.planar_laplace import laplace_clamped, mean_squared_error
from mechdesign.errors import InputError
from mechdesign.evaluation.privacy_radius import level_of_odds
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.geo import choose
from mechdesign.geo.area import STEEPEST, Area
from mechdesign.geo.area_inputs import AreaInputs, Levels, LevelsFromPeople, RasterPrior, check_levels
from mechdesign.geo.area_search import HELD, AreaSearch, AreaStatement
from mechdesign.geo.choose import BetweenPositions, CellsReason, Choice
from mechdesign.geo.geojson import read_area
from mechdesign.geo.georeferenced import prior_figures
from mechdesign.geo.people import persons_of
from mechdesign.geo.terminal import area_sentences, choice_words, reason_words
from mechdesign.output.reports.solve import SolveReport, proved
from mechdesign.output.text_tables import Block, where_possible
from mechdesign.problem.columns import Columns
from mechdesign.problem.position_loss import position_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.tables import Note, silent
from mechdesign.solvers.choose import LARGEST_TABLE
from mechdesign.solvers.result import Progress
from mechdesign.solvers.solve import check_targets
from mechdesign.verification.verify import Verification

if TYPE_CHECKING:
    from mechdesign.posteriors.limits import PosteriorCap


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaReport(FrozenRecord):
    """The figures of an area's mechanism as `to_json`, and `sentences`.

    Attributes
    ----------
    design, figures : AreaDesign, SolveReport
        The subject of the report, and the figures of `mechdesign solve`.
    constant_position_loss : float or None
        Loss to the true position of the best constant report.
    alternative, alternative_loss, alternative_position_loss, alternative_share : str, then float or None
        Planar Laplace noise, or the optimal program if noise was made: losses by cells and positions, share in a disc.

    Examples
    --------
    >>> area = md.geo.Area.box(2.34, 48.85, 2.36, 48.86)
    >>> report = md.geo.design(area, cell=400, epsilon=0.003, program="planar-laplace").report
    >>> report.to_json()["certified"]
    True
    """

    design: AreaDesign
    figures: SolveReport
    constant_position_loss: float | None
    alternative: str
    alternative_loss: float | None
    alternative_position_loss: float | None
    alternative_share: float | None

    def to_json(self) -> dict[str, Any]:
        design = self.design
        plane = design.problem.domain.plane
        assert plane is not None
        return {
            **self.figures.to_json(),
            "chosen": choice_words(design.choice),
            "constant_position_loss": self.constant_position_loss,
            "alternative": self.alternative,
            "alternative_loss": self.alternative_loss,
            "alternative_position_loss": self.alternative_position_loss,
            "alternative_share": self.alternative_share,
            "positions": "any" if design.between_positions else "cells",
            "positions_reason": design.because,
            "middle": {"latitude": plane.latitude, "longitude": plane.longitude},
            "plane": plane.words(),
            "geodesic_epsilon": design.problem.parameters["geodesic_epsilon"],
            **(design.prior or {}),
        }

    def sentences(self) -> str:
        """The protection, the errors, the bound, and the comparison with the other mechanism, in words."""
        return str(next(self.blocks(self.to_json())))

    def blocks(self, document: Mapping[str, Any], *, verbose: bool = False) -> Iterator[Block]:
        solved = self.figures.to_json()
        beside = {name: value for name, value in document.items() if name not in solved}
        report = replace(self.figures, file=document["file"], beside=beside)
        because, limit = self.design.because, self.design.time_limit
        return report.words(verbose=verbose, because=because, limit=limit, more=area_sentences(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaDesign(FrozenRecord):
    """The certified mechanism of an area, and its problem.

    Attributes
    ----------
    mechanism, verification : xarray.Dataset, Verification
        The certified mechanism, and what verification found.
    problem, cells_problem : DesignProblem
        The problem solved, and the same between cells.
    choice, reason : Choice, CellsReason or None
        The program with its reason, and the reason to protect cells alone, if nobody asked for them.
    limit, prior : PosteriorCap or None, dict or None
        On discs; of a prior from a raster: its kind, the people in all cells if counted, the empty cells.
    time_limit, seconds : float
        The limit of the design, and the time that it took.

    Examples
    --------
    >>> area = md.geo.Area.box(2.34, 48.85, 2.36, 48.86)
    >>> md.geo.design(area, cell=400, epsilon=0.003, program="planar-laplace").between_positions
    False
    """

    mechanism: xr.Dataset
    verification: Verification
    problem: DesignProblem
    cells_problem: DesignProblem
    choice: Choice
    reason: CellsReason | None
    limit: PosteriorCap | None
    prior: dict[str, Any] | None
    time_limit: float
    seconds: float

    @property
    def between_positions(self) -> bool:
        return isinstance(self.choice, BetweenPositions)

    @property
    def because(self) -> str | None:
        return None if self.reason is None else reason_words(self.reason)

    @cached_property
    def report(self) -> AreaReport:
        figures = SolveReport.of(self.mechanism, self.verification, seconds=self.seconds, file=None)
        return AreaReport(design=self, figures=figures, **alternative(self, figures.position_loss))


# Options rather than one object: a whole design is one call, and the command line has the same words.
@validated
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
    on_note: Note = silent,
    on_progress: Callable[[Progress], None] | None = None,
) -> AreaDesign:
    """Design a certified mechanism for an area on Earth.

    Any two positions are protected, by their distance on the ground, where such a design is feasible; else cells.
    Source: Andrés et al. 2013, section 3.

    Parameters
    ----------
    area, forbidden : Area, str or Path
        An area, or a GeoJSON file of one; a region without cells, such as water.
    cell, unit : float, str
        The side of a cell, and the unit of length.
    within, factor : float
        The level: a report changes the odds between places up to `within` apart by `factor` at most.
    epsilon : float
        The level in nats per unit instead.
    people : str or Path
        CSV file of latitude, longitude and population: the prior by default, and the people of `limit`.
    prior : RasterPrior, str or Path
        A raster of people; without this and `people` the prior is uniform.
    levels : LevelsFromPeople, LevelsFromRaster or PrivacyLevel
        Levels that vary, instead of one. Those from people take `factor`, e^2 by default.
    nats_per_cell : float
        The largest of levels that vary, in nats across a cell.
    limit : PosteriorCap
        A limit on the share of the probability in a disc, for cells and the optimal program.
    loss : str
        "distance", "squared" or "zero-one".
    program : {"auto", "optimal", "eikonal", "planar-laplace"}
        By default by the rules of the module `choose`.
    positions : {"any", "inside", "cells"}
        Protect any two positions by straight lines, by paths inside the area, or cells alone. By default any, if
        feasible.
    gap, time_limit : float
        Target of (loss - lower_bound) / loss; seconds, after which the best certified mechanism so far is taken.
    bound : bool
        True to compute a lower bound for a mechanism that has none.
    columns : mapping of str to str
        The columns of text files by our names.
    crs, name : str
        Coordinate system of inputs that declare none; name of the problem.
    on_note, on_progress : callable
        Take a sentence about an assumption, and the progress of the search.

    Returns
    -------
    AreaDesign
        The mechanism, its verification, and its report.

    Examples
    --------
    >>> area = md.geo.Area.box(2.34, 48.85, 2.36, 48.86)
    >>> rome = md.geo.design(area, cell=400, within=400, factor=2, program="planar-laplace")
    >>> rome.mechanism.sizes["secret"]
    12
    """
    started = time.monotonic()
    check_targets(gap, time_limit)
    region = area if isinstance(area, Area) else read_area(area, crs=crs, on_note=on_note)
    choose.check_program(program, positions, bound)
    if limit is not None:
        if positions in ("any", "inside") or program not in ("auto", "optimal"):
            message = "limits on discs are kept between cells, by the optimal program"
            remedy = "leave `positions` and `program` out"
            raise InputError(message, field="limit", value=f"{limit.radius:g}", remedy=remedy)
        positions = "cells"
    check_levels(levels, within=within, factor=factor, epsilon=epsilon)
    flat = None if levels is not None else level_of_odds(within=within, factor=factor, epsilon=epsilon)
    water = read_area(forbidden, crs=crs, on_note=on_note) if isinstance(forbidden, (str, Path)) else forbidden
    domain = region.grid(cell=cell, unit=unit, forbidden=water, on_note=on_note)
    by_people = isinstance(levels, LevelsFromPeople)
    if not (domain.size > LARGEST_TABLE and by_people and program in ("auto", "eikonal")):  # those are made of factors
        require_memory(domain.size, domain.size, tables=HELD, what="a mechanism for the area", field="cell")
    inputs = AreaInputs(domain=domain, water=water, columns=columns, crs=crs, on_note=on_note)
    level, density, claimed = inputs.level(flat, levels, factor=factor, people=people)
    if limit is not None and people is not None:
        limit = replace(limit, people=persons_of(inputs.points(people).spread(domain), domain))
    if people is not None and density is None:
        density = inputs.points(people).spread(domain, water=water).density
    figures = None
    if prior is not None:
        density = inputs.prior(prior)
        figures = prior_figures(density, domain)
    if name is None:
        name = Path(area).stem if isinstance(area, (str, Path)) else "area"
    search = AreaSearch(
        stated=AreaStatement(
            domain=domain,
            level=level,
            density=density,
            nats_per_cell=nats_per_cell,
            loss=loss,
            paths="inside" if positions == "inside" else "straight",
            name=name,
            parameters={**claimed, "cell": float(cell), "unit": domain.unit},
        ),
        program=program,
        positions="any" if positions == "inside" else positions,
        limit=limit,
        gap=gap,
        ends=time.monotonic() + time_limit,
        bound=bound,
        on_note=on_note,
        on_progress=on_progress,
    )
    mechanism, problem, choice, reason = search.solve()
    checked = proved(mechanism)
    return AreaDesign(
        mechanism=mechanism,
        verification=checked,
        problem=problem,
        cells_problem=search.stated.problem() if isinstance(choice, BetweenPositions) else problem,
        choice=choice,
        reason=reason,
        limit=limit,
        prior=figures,
        time_limit=time_limit,
        seconds=time.monotonic() - started,
    )


def alternative(design: AreaDesign, at_position: float | None) -> dict[str, Any]:
    """The best constant's error to the true position; losses of planar Laplace, None if unknown."""
    problem, noise_made = design.cells_problem, design.choice.program == "planar-laplace"
    cost = None
    if at_position is not None or problem.domain.size <= choose.TABLES:
        stated = problem.loss, problem.prior_array, problem.domain, problem.reports
        cost = where_possible("the best constant report", lambda: position_cost(*stated), None)
    level = float(problem.metric.smallest_level or 0.0)
    loss, placed, share, limit = None, None, None, design.limit
    if not noise_made and problem.domain.size > choose.TABLES:
        closed = {"distance": mean_radius, "squared": mean_squared_error}
        loss = closed[problem.loss.name](level) if problem.loss.name in closed else None
    elif not noise_made:
        table = where_possible("planar Laplace noise", lambda: laplace_clamped(problem, level), None)
        if table is not None:
            loss = float((problem.weighted_loss * table).sum())
            placed = None if cost is None else float((cost * table).sum())
        if table is not None and limit is not None:
            from mechdesign.posteriors.rows import posterior_shares

            share = max(float(posterior_shares(table, caps).max()) for caps in limit.caps(problem))
    return {
        "constant_position_loss": None if cost is None or at_position is None else float(cost.sum(axis=0).min()),
        "alternative": "optimal" if noise_made else "planar_laplace",
        "alternative_loss": loss,
        "alternative_position_loss": placed,
        "alternative_share": share,
    }
