"""Which mechanism `mechdesign area` makes when it is not told, why, and what is told beside it.

Between positions. Any two positions are protected wherever a design of them ends: by the program of cones where a step
of it takes at most `CONES` multiplications (a core about three seconds, and a design some 25 of them: 310 cells, 700 of
a rectangle with one level and one prior), else by weights of columns, up to `COLUMNS` in a step and what fits in
memory. Where levels vary columns take longer than cones and do worse, and any position costs far more on cells that are
coarse for its levels: cones alone, up to `_VARYING` cells, and not where reports would be `_SANE` times as far off as
by eikonal weights between cells. Where that is not to be had cells are protected, and the reason is told first.

Between cells. The optimal program takes longer the more cells there are and the fewer nats lie between neighbours.
`MINUTE` has the cells up to which it ends in about a minute of one processor, as measured on square maps with a
uniform prior and the loss of the distance. Beyond, a Euclidean metric gets the planar Laplace mechanism, up to `TABLES`
cells, whose pairs take a minute to check; levels that vary get eikonal weights.

No rule looks at a clock: the same command makes the same file on a machine at work. `--time-limit` alone does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mechdesign.closed_forms.mechanisms import planar_laplace
from mechdesign.errors import InputError, SizeError
from mechdesign.mechanism.positions.patches import level_range
from mechdesign.output.figures import amount, length, percent
from mechdesign.output.terminal.printing import note
from mechdesign.programs.optimal.positions import Positions
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.objective.true_position import position_cost
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.positions.positions import Method, operations

MINUTE = {  # metric: (least nats between neighbours, cells), from the longest edges to the shortest
    "euclidean": ((0.5, 1600), (0.3, 400), (0.0, 100)),
    "eikonal": ((0.5, 1600), (0.2, 576), (0.0, 225)),
}
CONES, COLUMNS = 3e10, 2.5e11  # multiplications of a step
_MOST, _ORBIT = 12_000, 8  # cells of a table of 1.2 GB, of which seven are held; symmetries of a square
_VARYING = 250  # cells
_SANE = 1.5
TABLES = 4096  # cells up to which all pairs are checked within a minute or two
_PRICE = 0.075  # times the square of the nats along a cell: what any two positions cost beside cells, by the distance
_WANTED, _DEAR = 0.01, 0.05  # of that: what a smaller cell is to cost, and from where it is named
_USEFUL = 0.6  # of the error of the best constant report: above, a report says little
_BOX = 8.0  # nats along a square box at which that share is about a half
_WORDS = {
    "optimal": "the optimal program",
    "positions": "the optimal program between any two positions",
    "planar-laplace": "the planar Laplace mechanism",
    "eikonal": "eikonal weights",
}


def check_claim(asked: str | None, program: str) -> None:
    """Raises: InputError for another word than any and cells, or another program than optimal beside any."""
    if asked not in (None, "any", "cells"):
        raise InputError("unknown claim", field="positions", value=asked, remedy="use any, or cells")
    if asked == "any" and program not in ("auto", "optimal"):
        raise InputError(
            "is made by the optimal program alone",
            field="positions",
            value=f"{asked}, with {program}",
            remedy="leave out --program, or take --positions cells",
        )


def cells_instead(domain: Domain, loss: str, *, varies: bool, program: str) -> str | None:
    """Why cells are protected and not any position, as far as that shows before a design is stated; else None."""
    if program not in ("auto", "optimal"):
        return f"--program {program} protects cells alone"
    if loss not in ("distance", "squared"):
        return f"the {loss} loss counts cells"
    if varies and domain.size > _VARYING:
        return (
            f"{domain.size:,} cells with levels that vary are more than the {_VARYING:,} for which that is designed"
            f"{_larger(domain, _VARYING)}"
        )
    return None


def positions_method(program: Positions, *, asked: bool) -> Method:
    """The method by which any two positions are protected, by the rule of the module; asked, whether however long it
    takes.

    Raises: SizeError where it takes too long, or too much memory.
    """
    problem = program.problem
    level, cells = problem.metric.smallest_level, problem.domain.size
    alike = level is not None and problem.reports is problem.domain and np.ptp(problem.prior_array) == 0
    fewest = cells / _ORBIT if alike else cells
    if not asked and (cells > _MOST or fewest**3 > COLUMNS):
        raise _too_many(problem)
    if operations(program, "cones") <= CONES:
        return "cones"
    low, high = level_range(problem.metric)
    if operations(program, "columns") <= (np.inf if asked else COLUMNS if low == high else 0.0):
        return "columns"
    raise _too_many(problem)


def _too_many(problem: DesignProblem) -> SizeError:
    """The refusal of a design between positions."""
    low, high = level_range(problem.metric)
    if low < high:
        return SizeError(
            f"{problem.domain.size:,} cells with levels that vary are too many for that{_larger(problem.domain, 150)}",
            field="cell",
            value=problem.domain.spacing,
            remedy="use a larger --cell, a smaller box, or --positions cells",
        )
    symmetric = problem.reports is problem.domain and np.ptp(problem.prior_array) == 0
    return SizeError(
        f"{problem.domain.size:,} cells are too many for that{_larger(problem.domain, 10_000 if symmetric else 4_000)}",
        field="cell",
        value=problem.domain.spacing,
        remedy="use a larger --cell, a smaller box, or --positions cells",
    )


def _larger(domain: Domain, most: int) -> str:
    """The cell with which a domain has at most so many."""
    cell = _two_digits(domain.spacing * math.sqrt(domain.size / most) * 1.02)
    return f" (--cell {cell:g} makes fewer)"


def _two_digits(value: float, *, up: bool = True) -> float:
    """A number of two digits that is not below, or not above."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{(math.ceil(value / unit) if up else math.floor(value / unit)) * unit:.3g}")


def dearer(any_loss: float | None, cells_loss: float | None, unit: str) -> str | None:
    """Why cells are protected where any position is to be had, but costs `_SANE` times as much; None where it does not.

    The losses are to the true position.
    """
    if any_loss is None or cells_loss is None or any_loss <= _SANE * cells_loss:
        return None
    return (
        f"on cells so coarse for their levels reports for any position would be {amount(any_loss, unit, up=True)} off, "
        f"not {amount(cells_loss, unit, up=True)}"
    )


def check_cell(domain: Domain, within: float | None, reason: str | None) -> None:
    """Refuse cells wider than the radius within which they are to protect people; reason, why no position is.

    Raises: InputError with the cell that would do.
    """
    if within is None or domain.spacing <= within:
        return
    unit = domain.unit
    why = "" if reason is None else f", and cells are protected, because {reason}"
    raise InputError(
        f"nothing within a cell is protected, and a cell of {length(domain.spacing, unit)} is wider than the "
        f"{length(within, unit)} of --within{why}",
        field="cell",
        value=domain.spacing,
        remedy=f"use --cell {_two_digits(within, up=False):g} or less" + ", or --positions any" * (reason is None),
    )


def chosen_for(problem: DesignProblem) -> tuple[str, str]:
    """The program between cells for the problem of an area by the rule of the module, and why, in words.

    Raises: SizeError beyond the cells whose pairs can be checked.
    """
    kind, cells = problem.metric.kind, problem.domain.size
    if kind == Euclidean.kind:
        check_pairs(problem.domain)
    short = float(np.min(problem.edges.length))
    most = next(most for least, most in MINUTE[kind] if short >= least)
    program = "optimal" if cells <= most else {"euclidean": "planar-laplace", "eikonal": "eikonal"}[kind]
    within = (
        "it takes about a minute up to" if cells <= most else "the optimal program takes longer than a minute beyond"
    )
    rule = f"with {short:.2g} nats between neighbours {within} {most:,} cells, and these are {cells:,}"
    return program, f"{_WORDS[program]}: {rule}"


def check_pairs(domain: Domain) -> None:
    """Raises: SizeError for cells whose pairs, each with every report, take longer than some minutes to check."""
    if domain.size > TABLES:
        raise SizeError(
            f"{domain.size:,} cells have {domain.size**2 // 2:,} pairs to check in {domain.size:,} reports each, some "
            f"{_minutes(domain.size)} minutes",
            field="cell",
            value=domain.spacing,
            remedy=f"use --cell {_two_digits(domain.spacing * math.sqrt(domain.size / TABLES) * 1.02):g}, "
            "a smaller box, or --positions any",
        )


def note_pairs(domain: Domain) -> None:
    """Say on stderr how long pairs of cells take to check, where that is more than a minute or two."""
    if domain.size > TABLES:
        note(f"{domain.size**2 // 2:,} pairs of cells to check, about {_minutes(domain.size)} minutes")


def _minutes(cells: int) -> str:
    """The minutes of a core that the pairs of cells take: 0.3 n^3 comparisons, five times, a nanosecond each."""
    return f"{max(0.3 * cells**3 * 5e-9 / 60, 1):,.0f}"


def why_positions(method: str) -> str:
    """Why a design between positions is made by a method, in words."""
    return {
        "cones": _WORDS["positions"],
        "columns": "weights of columns certified between any two positions",
    }[method]


def alternative(problem: DesignProblem, program: str) -> dict[str, Any]:
    """The mechanism that was not made, for a problem between cells: its name, and its losses.

    The planar Laplace mechanism at the smallest level of the metric or, where that was made, the optimal program by
    name alone: its loss is not known without solving it. Beyond 4,096 cells the loss is that of planar Laplace noise
    in the whole plane, and null for a loss that has no closed form there.
    """
    if program == "planar-laplace":
        return {"alternative": "optimal", "alternative_loss": None, "alternative_position_loss": None}
    found: dict[str, Any] = {"alternative": "planar_laplace"}
    level = float(problem.metric.smallest_level or 0.0)
    if problem.domain.size > TABLES:
        closed = {"distance": planar_laplace.mean_radius, "squared": planar_laplace.mean_squared_error}
        loss = closed[problem.loss.name](level) if problem.loss.name in closed else None
        return {**found, "alternative_loss": loss, "alternative_position_loss": None}
    table = planar_laplace.clamped_table(problem, level)
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    return {
        **found,
        "alternative_loss": float((problem.weighted_loss * table).sum()),
        "alternative_position_loss": None if cost is None else float((cost * table).sum()),
    }


def worth(problem: DesignProblem, loss: float | None) -> dict[str, float | None]:
    """The error of the best constant report, beside which an error to the true position says what a report is worth."""
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    return {"constant_position_loss": None if cost is None or loss is None else float(cost.sum(axis=0).min())}


def sentences(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """What a report is worth, what the level means, why this mechanism was made, and what the other one costs, of the
    document of `area`.
    """
    told, unit = problem.parameters, problem.domain.unit
    said = [_little(summary, problem), _coarse(summary, problem)]
    if "people" in told:
        within = f"{float(told['least']):.6g} {unit} and {float(told['most']):.6g} {unit}"
        disc = f"the disc that holds {float(told['people']):.6g} people, its radius between {within}"
        said.append(f"The level is {float(told['nats']):.6g} nats over the radius of {disc}.")
    said.append(f"Made by {summary['chosen']}.")
    said.append(_other(summary, problem))
    return " ".join(filter(None, said))


def _other(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """What the mechanism that was not made would have cost, at true positions where that is known."""
    if summary["alternative"] == "optimal":
        return "--program optimal solves it all the same."
    placed, unit = summary["alternative_position_loss"], problem.domain.unit
    other = summary["alternative_loss"] if placed is None else placed
    if other is None:
        return ""
    noise = "Planar Laplace noise" + " that protects cells alone" * (summary["positions"] == "any")
    if placed is not None and problem.loss.name in ("distance", "squared"):
        squared = problem.loss.name == "squared"
        off = length(math.sqrt(other) if squared else other, unit, up=True)
        return f"{noise} would be {off} off{' (root mean square)' * squared}."
    return f"{noise} would have a loss of {amount(other, problem.loss.unit(unit), up=True)}."


def _little(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """That a report says little in a box that is small for its level, with the box and the level that would do."""
    constant, loss, domain = summary["constant_position_loss"], summary["position_loss"], problem.domain
    if constant is None or loss is None or problem.loss.name != "distance" or loss <= _USEFUL * constant:
        return ""
    said = (
        f"A report says little: always reporting one place in the middle is {length(constant, domain.unit, up=False)} "
        f"off, this report {length(loss, domain.unit, up=True)}."
    )
    level, area = float(problem.parameters["geodesic_epsilon"]), problem.reports.size * domain.spacing**2
    if level * math.sqrt(area) >= _BOX:
        return said
    wanted = _BOX / math.sqrt(area)
    box = f"a box about {length(_two_digits(_BOX / level), domain.unit)} wide"
    radius = problem.parameters.get("radius")
    asked = f"--epsilon {_two_digits(wanted):g}"
    if radius is not None and wanted * float(radius) < 20:
        asked = f"--factor {_two_digits(math.exp(wanted * float(radius))):g}"
    return f"{said} In {box}, or with {asked}, a report is about half as far off as one place."


def _coarse(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """What protecting any position costs on cells that are coarse for one level, and the cell with which it is less."""
    side = problem.domain.spacing
    if summary["positions"] != "any":
        return ""
    level, highest = level_range(problem.metric)
    if level != highest:
        return ""
    price = _PRICE * (level * side) ** 2
    if price < _DEAR:
        return ""
    cell = max(math.sqrt(_WANTED / _PRICE) / level, side * math.sqrt(problem.domain.size / TABLES))
    if cell >= 0.8 * side:
        return ""
    cell = _two_digits(cell)
    less = percent(_PRICE * (level * cell) ** 2, digits=1)
    now = f"about {percent(price, digits=1)} more" if price < 1 else "far more"
    return f"On cells so coarse that costs {now} than cells alone; with --cell {cell:g} about {less}."
