"""The designed mechanism of an area, and its report as JSON and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import xarray as xr

from mechdesign.base.formatting import amount, length, percent
from mechdesign.base.records import FrozenRecord
from mechdesign.closed_forms.planar_laplace import laplace_clamped, mean_squared_error
from mechdesign.evaluation.position_noise import NOISE_TOLERANCE, snapped_noise_loss
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.geo.as_good_as_noise import cell_as_good_as_noise
from mechdesign.geo.choice_words import choice_words, reason_words
from mechdesign.geo.choose import MAX_PAIR_CELLS, BetweenPositions, CellsReason, Choice, two_digits
from mechdesign.geo.georeferenced import PriorFigures
from mechdesign.output.reports.solve import SolveReport
from mechdesign.output.text_tables import Block, where_possible
from mechdesign.problem.metrics import level_range
from mechdesign.problem.position_loss import position_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.verification.verify import Verification

if TYPE_CHECKING:
    from mechdesign.posteriors.limits import PosteriorCap

# Relative cost of protecting any position instead of cells: PRICE times the square of the nats along a cell. Measured
# on squares with one level, for the distance.
PRICE = 0.075
# A smaller cell is recommended if that cost exceeds the first number; its own cost is then the second.
COSTLY, RECOMMENDED_COST = 0.05, 0.01
USELESS_SHARE = 0.6  # of the error of the best constant report: above, the report warns that little is gained
USEFUL_NATS = 8.0  # along the side of a square box at which that share is about a half
_NOISE_AT_POSITIONS = "Planar Laplace noise drawn at the true position and moved to the nearest cell"
_UNPROVED = "That noise protects any two positions too, in real arithmetic; it is not proved here."


@dataclass(frozen=True, kw_only=True)
class Alternative(FrozenRecord):
    """The mechanism that was not made, for comparison: planar Laplace noise, or the optimal program if noise was made.

    Attributes
    ----------
    program, positions : str
        "planar_laplace" or "optimal"; "any" for noise drawn at the true position and moved to the nearest report,
        "cells" for a mechanism that protects cells.
    loss, position_loss : float or None
        Losses from cell centres and to the true position, None if unknown. Between cells, above 4,096 of them, `loss`
        is that of noise on the whole plane, without the border of the area.
    share : float or None
        Largest share of the posterior in one disc of a limit.

    Examples
    --------
    >>> area = md.geo.Area.box(2.34, 48.85, 2.36, 48.86)
    >>> md.geo.design(area, cell=400, epsilon=0.003, program="planar-laplace").report.alternative.program
    'optimal'
    """

    program: str
    positions: str = "cells"
    loss: float | None = None
    position_loss: float | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaReport(FrozenRecord):
    """The figures of an area's mechanism as `to_json`, and `sentences`.

    Attributes
    ----------
    design, figures : AreaDesign, SolveReport
        The subject of the report, and the figures of `mechdesign solve`.
    constant_position_loss : float or None
        Loss to the true position of the best constant report.
    alternative : Alternative

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
    alternative: Alternative

    def to_json(self) -> dict[str, Any]:
        design, other = self.design, self.alternative
        plane = design.problem.domain.plane
        assert plane is not None
        return {
            **self.figures.to_json(),
            "chosen": choice_words(design.choice),
            "constant_position_loss": self.constant_position_loss,
            "alternative": other.program,
            "alternative_positions": other.positions,
            "alternative_loss": other.loss,
            "alternative_position_loss": other.position_loss,
            "alternative_share": other.share,
            "positions": "any" if design.between_positions else "cells",
            "parts": design.choice.parts if isinstance(design.choice, BetweenPositions) else 1,
            "positions_reason": design.because,
            "middle": {"latitude": plane.latitude, "longitude": plane.longitude},
            "plane": plane.words(),
            "geodesic_epsilon": design.problem.parameters["geodesic_epsilon"],
            **({} if design.prior is None else asdict(design.prior)),
        }

    def sentences(self) -> str:
        """A better mechanism if there is one, the protection, the errors, the bound, and the other mechanism."""
        return str(next(self.blocks(self.to_json())))

    def blocks(self, document: Mapping[str, Any], *, verbose: bool = False) -> Iterator[Block]:
        solved = self.figures.to_json()
        further = {name: value for name, value in document.items() if name not in solved}
        report = replace(self.figures, file=document["file"], beside=further)
        because, limit = self.design.because, self.design.time_limit
        first = _better_noise_sentence(self)
        return report.words(verbose=verbose, because=because, limit=limit, first=first, more=_sentences(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaDesign(FrozenRecord):
    """The certified mechanism of an area, and its problem.

    Attributes
    ----------
    mechanism, verification : xarray.Dataset, Verification
        The certified mechanism, and the outcome of its verification.
    problem, cells_problem : DesignProblem
        The problem solved, and the same between cells.
    choice, reason : Choice, CellsReason or None
        The program with its reason. The reason to protect cells only, None if the caller asked for them.
    limit, prior : PosteriorCap or None, PriorFigures or None
        The limit on discs; the figures of a prior from a raster.
    time_limit, seconds : float
        Time limit and run time in seconds.

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
    prior: PriorFigures | None
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
        constant, other = _compare(self, figures.position_loss)
        return AreaReport(design=self, figures=figures, constant_position_loss=constant, alternative=other)


def _compare(design: AreaDesign, at_position: float | None) -> tuple[float | None, Alternative]:
    """The loss of the best constant report to the true position, and the alternative."""
    problem, program = design.cells_problem, design.choice.program
    cost, is_small = None, problem.domain.size <= MAX_PAIR_CELLS
    if at_position is not None or is_small:
        arguments = problem.loss, problem.prior_array, problem.domain, problem.reports
        cost = where_possible("the best constant report", lambda: position_cost(*arguments), None)
    constant = None if cost is None or at_position is None else float(cost.sum(axis=0).min())
    if program == "planar-laplace":
        return constant, Alternative(program="optimal")
    if design.between_positions:
        return constant, _noise_at_positions(design.problem)
    level = float(problem.metric.smallest_level or 0.0)
    if not is_small:
        # On the whole plane, without the border of the area: no table of so many cells is made for a comparison.
        closed = {"distance": mean_radius, "squared": mean_squared_error}
        loss = closed[problem.loss.name](level) if problem.loss.name in closed else None
        return constant, Alternative(program="planar_laplace", loss=loss)
    table = where_possible("planar Laplace noise", lambda: laplace_clamped(problem, level), None)
    if table is None:
        return constant, Alternative(program="planar_laplace")
    share = None
    if design.limit is not None:
        from mechdesign.posteriors.rows import posterior_shares

        share = max(float(posterior_shares(table, caps).max()) for caps in design.limit.caps(problem))
    return constant, Alternative(
        program="planar_laplace",
        loss=float((problem.weighted_loss * table).sum()),
        position_loss=None if cost is None else float((cost * table).sum()),
        share=share,
    )


def _noise_at_positions(problem: DesignProblem) -> Alternative:
    # At the smallest level, which every path of the claim exceeds or equals.
    loss = snapped_noise_loss(
        problem.domain, problem.reports, problem.prior_array, float(problem.metric.smallest_level or 0.0), problem.loss
    )
    return Alternative(program="planar_laplace", positions="any", position_loss=loss)


# ---- sentences ----


def _sentences(report: AreaReport) -> str:
    design, problem = report.design, report.design.problem
    plane = problem.domain.plane
    assert plane is not None
    sentences = [
        f"Centre of the area: {_degrees(plane.latitude, 'NS')}, {_degrees(plane.longitude, 'EW')}.",
        _prior_sentence(design),
        _usefulness_sentence(report),
        _cell_sentence(design),
        _level_sentence(problem),
        f"Method: {choice_words(design.choice)}.",
        _alternative_sentence(report),
    ]
    return " ".join(filter(None, sentences))


def _degrees(angle: float, ends: str) -> str:
    return f"{abs(angle):.4f} {ends[angle < 0]}"


def _prior_sentence(design: AreaDesign) -> str:
    if design.prior is None:
        return ""
    counted, empty = design.prior.people, design.prior.empty_cells
    subject = "The prior is a density" if counted is None else f"The prior counts {_people(counted)}"
    return f"{subject} in {design.problem.reports.size:,} cells, of which {empty:,} are empty."


def _people(count: float) -> str:
    if count >= 1e6:
        return f"{count / 1e6:.3g} million people"
    return f"{count:,.0f} people" if count >= 100 else f"{count:.3g} people"


def _level_sentence(problem: DesignProblem) -> str:
    parameters, unit = problem.parameters, problem.domain.unit
    if "people" not in parameters:
        return ""
    radii = f"{float(parameters['least']):.6g} {unit} and {float(parameters['most']):.6g} {unit}"
    disc = f"the disc that holds {float(parameters['people']):.6g} people, a radius between {radii}"
    return f"Epsilon varies by place: {float(parameters['nats']):.6g} nats over the radius of {disc}."


def _alternative_sentence(report: AreaReport) -> str:
    design, alternative = report.design, report.alternative
    problem, limit, share = design.problem, design.limit, alternative.share
    if alternative.program == "optimal":
        return "Pass program='optimal' for the optimal program."
    placed = alternative.position_loss
    loss = alternative.loss if placed is None else placed
    if loss is None:
        return ""
    if design.between_positions:
        return (
            "" if _noise_is_better(report) else f"{_NOISE_AT_POSITIONS} has {_error_words(report, loss)}. {_UNPROVED}"
        )
    noise = "Planar Laplace noise"
    if design.cells_problem.domain.size > MAX_PAIR_CELLS:  # a closed form: see `_compare`
        noise = f"On the whole plane, without the border of the area, {noise[0].lower()}{noise[1:]}"
    error = f"a mean loss of {amount(loss, problem.loss_unit, up=True)}"
    if placed is not None:
        error = _error_words(report, placed)
    sentence = f"{noise} has {error}."
    if share is None or limit is None:
        return sentence
    verb = "satisfies" if share <= limit.exact else "exceeds"
    where = "such cells" if limit.centres == "area" else "one such disc"
    return (
        f"{sentence} It {verb} the limit: after its worst report {percent(share, up=True, digits=3)} of the "
        f"probability lies in {where}."
    )


def _error_words(report: AreaReport, loss: float) -> str:
    """A loss to the true position in words."""
    problem = report.design.problem
    if problem.loss.name == "distance":
        return f"a mean error of {length(loss, problem.domain.unit, up=True)}"
    if problem.loss.name == "squared":
        return f"a root-mean-square error of {length(math.sqrt(loss), problem.domain.unit, up=True)}"
    return f"a mean loss of {amount(loss, problem.loss_unit, up=True)}"


def _noise_is_better(report: AreaReport) -> bool:
    """True if noise drawn at the true position has a smaller loss than the design."""
    noise, loss = report.alternative.position_loss, report.figures.position_loss
    if not report.design.between_positions or noise is None or loss is None:
        return False
    return noise * (1 + NOISE_TOLERANCE) < loss


def _better_noise_sentence(report: AreaReport) -> str:
    """The first sentence if plain noise is better than the design; else empty."""
    noise, loss = report.alternative.position_loss, report.figures.position_loss
    if not _noise_is_better(report) or noise is None or loss is None:
        return ""
    choice = report.design.choice
    assert isinstance(choice, BetweenPositions)
    advice = "This design is noise too, certified."
    if choice.method != "noise":
        cell = cell_as_good_as_noise(
            report.design.problem, parts=choice.parts, method=choice.method, loss=loss, noise=noise
        )
        advice = "No cell size near this one promises a design as good."
        if cell is not None:
            advice = f"With cell={cell:g}, a design is expected to be as good."
    return (
        f"Plain noise is better than this design. {_NOISE_AT_POSITIONS} has "
        f"{_error_words(report, noise)}, and this design {_error_words(report, loss)}. {advice} {_UNPROVED}"
    )


def _usefulness_sentence(report: AreaReport) -> str:
    """A warning if reports are hardly better than a constant, with the box or the level that would help."""
    problem, domain = report.design.problem, report.design.problem.domain
    constant, loss = report.constant_position_loss, report.figures.position_loss
    # The advice is for distances: the side of a box at which reports are useful was measured for them alone.
    if constant is None or loss is None or problem.loss.name != "distance" or loss <= USELESS_SHARE * constant:
        return ""
    warning = (
        "These reports are not much better than always reporting the same place: a mean error of "
        f"{length(loss, domain.unit, up=True)} instead of {length(constant, domain.unit, up=False)}."
    )
    # A limit on discs also binds in a larger box and with a larger factor, so that neither would help.
    if report.design.limit is not None:
        return warning
    area = problem.reports.size * report.design.cells_problem.domain.spacing**2
    level = float(problem.parameters["geodesic_epsilon"])
    if level * math.sqrt(area) >= USEFUL_NATS:
        return warning
    useful_level = USEFUL_NATS / math.sqrt(area)
    box = f"a box about {length(two_digits(USEFUL_NATS / level), domain.unit)} wide"
    radius = problem.parameters.get("within")
    option = f"epsilon={two_digits(useful_level):g}"
    # Above e^20 a factor means nothing to a reader.
    if radius is not None and useful_level * float(radius) < 20:
        option = f"factor={two_digits(math.exp(useful_level * float(radius))):g}"
    return f"{warning} In {box}, or with {option}, they would have about half the error of one place."


def _cell_sentence(design: AreaDesign) -> str:
    # `PRICE` was measured with one level only, so varying levels get no sentence.
    domain, (level, highest) = design.problem.domain, level_range(design.problem.metric)
    # With finer rows the price is that of the rows, and smaller cells could have coarser ones.
    if not isinstance(design.choice, BetweenPositions) or design.choice.parts > 1 or level != highest:
        return ""
    price = PRICE * (level * domain.spacing) ** 2
    if price < COSTLY:
        return ""
    # The cell of the recommended cost, but no smaller than a table of all pairs of cells allows.
    cell = max(math.sqrt(RECOMMENDED_COST / PRICE) / level, domain.spacing * math.sqrt(domain.size / MAX_PAIR_CELLS))
    if cell >= 0.8 * domain.spacing:
        return ""
    cell = two_digits(cell)
    lower = percent(PRICE * (level * cell) ** 2, digits=1)
    now = f"about {percent(price, digits=1)}" if price < 1 else "far"
    return f"At this cell size, protecting every position costs {now} more error than cells; with cell={cell:g} " + (
        f"about {lower}."
    )
