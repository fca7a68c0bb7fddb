"""The words of `geo`, by arguments of Python, as cell=200; the command line turns them into its options."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mechdesign.base.formatting import amount, length, percent
from mechdesign.geo.choose import (
    TABLES,
    BetweenPositions,
    BySize,
    CellsReason,
    Choice,
    LossOfCells,
    Named,
    NotInstalled,
    ProgramOfCells,
    TooFarOff,
    TooManyCells,
    two_digits,
)
from mechdesign.output.text_tables import Block, TextTable
from mechdesign.problem.metrics import level_range

if TYPE_CHECKING:
    from mechdesign.geo.area_design import AreaDesign, AreaReport

_PRICE = 0.075  # times the square of the nats along a cell: what any two positions cost beside cells, by the distance
_WANTED, _DEAR = 0.01, 0.05  # of that: what a smaller cell is to cost, and from where it is named
_USEFUL = 0.6  # of the error of the best constant report: above, a report says little
_BOX = 8.0  # nats along a square box at which that share is about a half
_NAMES = {
    "optimal": "the optimal program",
    "cones": "the optimal program between any two positions",
    "columns": "weights of columns certified between any two positions",
    "planar-laplace": "the planar Laplace mechanism",
    "eikonal": "eikonal weights",
}


def reason_words(reason: CellsReason) -> str:
    """Why cells are protected and not any position."""
    match reason:
        case NotInstalled():
            return "claims between positions are not part of this installation"
        case ProgramOfCells(program=program):
            return f"program='{program}' protects cells alone"
        case LossOfCells(loss=loss):
            return f"the {loss} loss counts cells"
        case TooManyCells(cells=cells, most=most, cell=cell):
            return (
                f"{cells:,} cells with levels that vary are more than the {most:,} for which that is designed "
                f"(cell={cell:g} makes fewer)"
            )
        case TooFarOff(any_loss=any_loss, cells_loss=cells_loss, unit=unit):
            return (
                f"on cells so coarse for their levels reports for any position would be "
                f"{amount(any_loss, unit, up=True)} off, not {amount(cells_loss, unit, up=True)}"
            )
        case _:
            return reason.message


def choice_words(choice: Choice) -> str:
    """Which program was chosen, and why."""
    match choice:
        case Named(program=program):
            return f"{program}, as `program` says"
        case BySize(program=program, nats=nats, most=most, cells=cells):
            within = "it takes about a minute up to"
            if cells > most:
                within = "the optimal program takes longer than a minute beyond"
            rule = f"with {nats:.2g} nats between neighbours {within} {most:,} cells, and these are {cells:,}"
            return f"{_NAMES[program]}: {rule}"
        case BetweenPositions(method=method):
            return _NAMES[method]
        case _:
            return "the optimal program with a limit on discs"


def area_sentences(report: AreaReport) -> str:
    """What a report is worth, what the level means, why this mechanism was made, and what the other one costs."""
    design, problem = report.design, report.design.problem
    plane = problem.domain.plane
    assert plane is not None
    parameters, unit = problem.parameters, problem.domain.unit
    parts = [
        f"The middle of the area is at {_degrees(plane.latitude, 'NS')}, {_degrees(plane.longitude, 'EW')}.",
        _prior(design),
        _little(report),
        _coarse(design),
    ]
    if "people" in parameters:
        within = f"{float(parameters['least']):.6g} {unit} and {float(parameters['most']):.6g} {unit}"
        disc = f"the disc that holds {float(parameters['people']):.6g} people, its radius between {within}"
        parts.append(f"The level is {float(parameters['nats']):.6g} nats over the radius of {disc}.")
    parts += [f"Made by {choice_words(design.choice)}.", _other(report)]
    return " ".join(filter(None, parts))


def _degrees(angle: float, ends: str) -> str:
    return f"{abs(angle):.4f} {ends[angle < 0]}"


def _prior(design: AreaDesign) -> str:
    if design.prior is None:
        return ""
    cells = design.problem.reports.size
    counted, empty = design.prior["people"], design.prior["empty_cells"]
    who = "The prior is a density" if counted is None else f"The prior counts {_people(counted)}"
    return f"{who} in {cells:,} cells, {empty:,} of them empty."


def _people(count: float) -> str:
    if count >= 1e6:
        return f"{count / 1e6:.3g} million people"
    return f"{count:,.0f} people" if count >= 100 else f"{count:.3g} people"


def _other(report: AreaReport) -> str:
    design = report.design
    problem, limit = design.problem, design.limit
    if report.alternative == "optimal":
        return "program='optimal' solves it all the same."
    placed, unit = report.alternative_position_loss, problem.domain.unit
    other = report.alternative_loss if placed is None else placed
    if other is None:
        return ""
    noise = "Planar Laplace noise that protects cells alone" if design.between_positions else "Planar Laplace noise"
    if placed is not None and problem.loss.name == "distance":
        said = f"{noise} would be {length(other, unit, up=True)} off"
    elif placed is not None and problem.loss.name == "squared":
        said = f"{noise} would be {length(math.sqrt(other), unit, up=True)} off (root mean square)"
    else:
        said = f"{noise} would have a loss of {amount(other, problem.loss.unit(unit), up=True)}"
    share = report.alternative_share
    if share is None or limit is None:
        return f"{said}."
    keeps = "keeps" if share <= limit.exact else "does not keep"
    lies = f"after its worst report {percent(share, up=True, digits=3)} of the probability lies"
    return f"{said}. It {keeps} the limit: {lies} in {'such cells' if limit.centres == 'area' else 'one such disc'}."


def _little(report: AreaReport) -> str:
    """That a report says little in a box that is small for its level, with the box and the level that would do."""
    problem, domain = report.design.problem, report.design.problem.domain
    constant, loss = report.constant_position_loss, report.figures.position_loss
    if constant is None or loss is None or problem.loss.name != "distance" or loss <= _USEFUL * constant:
        return ""
    warning = (
        f"A report says little: always reporting one place in the middle is {length(constant, domain.unit, up=False)} "
        f"off, this report {length(loss, domain.unit, up=True)}."
    )
    if report.design.limit is not None:  # a limit on discs binds in a larger box, and with a larger factor, too
        return warning
    level, area = float(problem.parameters["geodesic_epsilon"]), problem.reports.size * domain.spacing**2
    if level * math.sqrt(area) >= _BOX:
        return warning
    wanted = _BOX / math.sqrt(area)
    box = f"a box about {length(two_digits(_BOX / level), domain.unit)} wide"
    radius = problem.parameters.get("within")
    option = f"epsilon={two_digits(wanted):g}"
    if radius is not None and wanted * float(radius) < 20:
        option = f"factor={two_digits(math.exp(wanted * float(radius))):g}"
    return f"{warning} In {box}, or with {option}, a report is about half as far off as one place."


def _coarse(design: AreaDesign) -> str:
    """What protecting any position costs on cells that are coarse for one level, and the cell with which it is less."""
    domain, (level, highest) = design.problem.domain, level_range(design.problem.metric)
    if not design.between_positions or level != highest:
        return ""
    price = _PRICE * (level * domain.spacing) ** 2
    if price < _DEAR:
        return ""
    cell = max(math.sqrt(_WANTED / _PRICE) / level, domain.spacing * math.sqrt(domain.size / TABLES))
    if cell >= 0.8 * domain.spacing:
        return ""
    cell = two_digits(cell)
    less = percent(_PRICE * (level * cell) ** 2, digits=1)
    now = f"about {percent(price, digits=1)} more" if price < 1 else "far more"
    return f"On cells so coarse that costs {now} than cells alone; with cell={cell:g} about {less}."


def rule_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """The document of an audit of a rule in words: nats by distance, errors, and what was modelled."""
    yield f"No epsilon bounds {document['rule']}: {document['why']}."
    first, laplace = document["distances"][0], document["laplace"]
    heads = ["own cell" if k == "0" else f"{k} away" for k in first["cells"]]
    heads += [f"p >= {p}" for p in first["probabilities"]]
    rows = [
        [
            f"{row['distance']} m",
            f"{row['total_variation']:.3g}",
            f"{row['separated']:.0%}",
            *(f"{loss['nats_per_km']:.3g}" for loss in (*row["cells"].values(), *row["probabilities"].values())),
        ]
        for row in document["distances"]
    ]
    yield TextTable(["apart", "variation", "told apart", *heads], rows)
    yield {
        "figures": "largest nats per km between positions so far apart along one axis, of reports so many cells "
        "away, or of such probability"
        if heads
        else "0 nats within a cell, infinitely many across a border; the share of pairs that it tells apart",
        "error": f"{document['mean_distance']:.6g} m on average, {document['mean_squared_error']:.6g} m^2",
        "planar Laplace": f"{laplace['mean_distance']:.3g} nats per km at that mean, "
        f"{laplace['mean_squared_error']:.3g} at that square, for all reports and distances",
        "modelled": document["modelled"],
        "left out": document["left_out"],
    }
