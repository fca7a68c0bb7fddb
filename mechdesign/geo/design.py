"""Which mechanism `mechdesign area` makes where no program is named, why, and what its summary sets beside it.

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
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import amount, length, percent
from mechdesign.base.memory import require_memory
from mechdesign.base.registry import capabilities
from mechdesign.closed_forms.planar_laplace import laplace_clamped, mean_squared_error, planar_laplace_mechanism
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.evaluation.loss import position_loss
from mechdesign.evaluation.radial_laplace import mean_radius
from mechdesign.output.text_tables import note, where_possible
from mechdesign.posteriors.limits import PosteriorCap
from mechdesign.posteriors.rows import posterior_shares
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Euclidean, level_range
from mechdesign.problem.position_loss import position_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.program import Optimal, Program
from mechdesign.solvers.result import Progress
from mechdesign.solvers.solve import solve

if TYPE_CHECKING:
    from mechdesign.positions.program import Positions

MINUTE = {  # metric: (least nats between neighbours, cells), from the longest edges to the shortest
    "euclidean": ((0.5, 1600), (0.3, 400), (0.0, 100)),
    "eikonal": ((0.5, 1600), (0.2, 576), (0.0, 225)),
}
CONES, COLUMNS = 3e10, 2.5e11  # multiplications of a step
_MOST, _ORBIT = 12_000, 8  # cells of a table of 1.2 GB, of which seven are held; symmetries of a square
_VARYING = 250  # cells
_SANE = 1.5
TABLES = 4096  # cells up to which all pairs are checked within a minute or two
HELD = 8  # 64-bit numbers for every pair of cells that a run holds at most, as measured
_LEAST_SECONDS = 1.0
_PRICE = 0.075  # times the square of the nats along a cell: what any two positions cost beside cells, by the distance
_WANTED, _DEAR = 0.01, 0.05  # of that: what a smaller cell is to cost, and from where it is named
_USEFUL = 0.6  # of the error of the best constant report: above, a report says little
_BOX = 8.0  # nats along a square box at which that share is about a half
_WORDS = {
    "optimal": "the optimal program",
    "cones": "the optimal program between any two positions",
    "columns": "weights of columns certified between any two positions",
    "planar-laplace": "the planar Laplace mechanism",
    "eikonal": "eikonal weights",
}


def check_claim(claim: str | None, program: str) -> None:
    """Raises: InputError for another word than any, inside and cells, or another program than optimal beside the first
    two.
    """
    if claim not in (None, "any", "inside", "cells"):
        raise InputError("must be any, inside or cells", field="positions", value=claim)
    if claim in ("any", "inside") and program not in ("auto", "optimal"):
        raise InputError(f"{claim} is made by the optimal program alone, and not by {program}", field="positions")


def cells_instead(domain: Domain, loss: str, *, varies: bool, program: str) -> str | None:
    """Why cells are protected and not any position, as far as that shows before a design is stated; else None."""
    if "positions" not in capabilities():
        return "claims between positions are not part of this installation"
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


def positions_method(program: Positions, *, explicit: bool) -> str:
    """The method by which any two positions are protected, by the rule of the module; asked, whether however long it
    takes.
    """
    from mechdesign.positions.solve import operations

    problem = program.problem
    cells, (low, high) = problem.domain.size, level_range(problem.metric)
    symmetric = problem.reports is problem.domain and np.ptp(problem.prior_array) == 0
    if explicit or (cells <= _MOST and (cells / _ORBIT if symmetric else cells) ** 3 <= COLUMNS):
        if operations(program, "cones") <= CONES:
            return "cones"
        if operations(program, "columns") <= (np.inf if explicit else COLUMNS if low == high else 0.0):
            return "columns"
    most = 150 if low < high else 10_000 if symmetric else 4_000
    raise SizeError(
        f"{cells:,} cells{' with levels that vary' * (low < high)} are too many for that"
        f"{_larger(problem.domain, most)}",
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
    """Refuse cells wider than the radius within which they are to protect people; reason, why no position is."""
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
    """The program between cells for the problem of an area by the rule of the module, and why, in words."""
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
    """Refuse cells whose pairs, each with every report, take longer than some minutes to check."""
    if domain.size > TABLES:
        raise SizeError(
            f"{domain.size:,} cells have {_pairs(domain)}{_larger(domain, TABLES)}",
            field="cell",
            value=domain.spacing,
            remedy="use a smaller box, or --positions any",
        )


def _pairs(domain: Domain) -> str:
    """How many pairs there are to check, and the minutes of a core: 0.3 n^3 comparisons, five times, a nanosecond."""
    minutes = max(0.3 * domain.size**3 * 5e-9 / 60, 1)
    return f"{domain.size**2 // 2:,} pairs to check in {domain.size:,} reports each, some {minutes:,.0f} minutes"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a mechanism is asked for: stated, the problem of the area between `positions` or cells; the program, which
    positions, whether levels vary, a limit on discs, and the targets of the design, which ends at a moment of
    `time.monotonic`; bound, whether a bound is computed beside a mechanism that needs none, None as by default.
    """

    stated: Callable[..., DesignProblem]
    program: str
    positions: str | None
    loss: str
    varies: bool
    limit: PosteriorCap | None
    gap: float
    ends: float
    bound: bool | None = None
    on_progress: Callable[[Progress], None] | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return max(self.ends - time.monotonic(), _LEAST_SECONDS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """A mechanism, its problem, the program that made it and why; reason, why cells alone are protected where nobody
    asked for them.
    """

    mechanism: xr.Dataset
    problem: DesignProblem
    program: str
    why: str
    reason: str | None = None

    @property
    def positions(self) -> bool:
        """Whether any two positions are protected."""
        return self.program == "positions"


def designed(request: Request, domain: Domain) -> Made:
    """The mechanism of an area, between any two positions where that is to be had and nobody asked for cells.

    Raises: what a design raises; InputError for cells wider than the radius within which they are to protect people.
    """
    explicit = request.positions is not None
    reason = None if explicit else cells_instead(domain, request.loss, varies=request.varies, program=request.program)
    if request.positions != "cells" and reason is None:
        problem = request.stated(positions=True)
        try:
            mechanism, method = _between_positions(request, problem)
        except (SizeError, UnsuitableError) as error:
            if explicit:
                raise
            reason = error.message
        else:
            if request.varies and not explicit:
                beside = position_loss(_between_cells(request, request.stated(), "eikonal"))
                reason = dearer(position_loss(mechanism), beside, problem.loss.unit(domain.unit))
            if reason is None:
                return Made(mechanism=mechanism, problem=problem, program="positions", why=_WORDS[method])
    problem = request.stated()
    within = problem.parameters.get("within")
    check_cell(domain, None if within is None else float(within), reason)
    program, why = request.program, f"{request.program}, as --program says"
    if request.limit is not None:
        program, why = "optimal", "the optimal program with a limit on discs"
    elif program == "auto":
        program, why = chosen_for(problem)
    mechanism = _between_cells(request, problem, program)
    return Made(mechanism=mechanism, problem=problem, program=program, why=why, reason=reason)


def _between_positions(request: Request, problem: DesignProblem) -> tuple[xr.Dataset, str]:
    """The design between any two positions, and its method. Raises: SizeError, UnsuitableError where there is none."""
    from mechdesign.positions.program import Positions

    size = problem.domain.size
    require_memory(size, size, tables=HELD, what="any two positions of the area", field="cell")
    program = Positions(problem)
    method = positions_method(program, explicit=request.positions == "any")
    mechanism = solve(
        program,
        gap=request.gap,
        time_limit=request.left,
        method=method,
        on_progress=request.on_progress,
        bound=bool(request.bound),
    )
    return mechanism, method


def _between_cells(request: Request, problem: DesignProblem, program: str) -> xr.Dataset:
    """The mechanism of a program between cells."""
    if program == "planar-laplace":
        if problem.domain.size > TABLES:
            note(f"{problem.domain.size:,} cells have {_pairs(problem.domain)}")
        return planar_laplace_mechanism(problem)
    stated: Program = EikonalWeights(problem=problem) if program == "eikonal" else Optimal(problem=problem)
    if request.limit is not None:
        stated = Constrained(problem, constraints=[request.limit])
    bound = request.bound if program == "eikonal" else None
    return solve(stated, gap=request.gap, time_limit=request.left, on_progress=request.on_progress, bound=bound)


def beside(
    problem: DesignProblem, program: str, at_position: float | None, limit: PosteriorCap | None = None
) -> dict[str, Any]:
    """What stands beside the mechanism of a program, for the problem between cells: the error to the true position of
    the best constant report, and the mechanism that was not made with its losses.

    That is the planar Laplace mechanism at the smallest level of the metric or, where that was made, the optimal
    program by name alone: its loss is not known without solving it. Beyond 4,096 cells the loss is that of planar
    Laplace noise in the whole plane, and null for a loss that has no closed form there. at_position, the loss of the
    mechanism at true positions, where it is known; limit, the limit on discs of the design, beside which noise stands
    with its own largest share in one of them.
    """
    cost = None
    if at_position is not None or problem.domain.size <= TABLES:
        stated = problem.loss, problem.prior_array, problem.domain, problem.reports
        cost = where_possible("the best constant report", lambda: position_cost(*stated), None)
    level = float(problem.metric.smallest_level or 0.0)
    loss, placed, share = None, None, None
    if program != "planar-laplace" and problem.domain.size > TABLES:
        closed = {"distance": mean_radius, "squared": mean_squared_error}
        loss = closed[problem.loss.name](level) if problem.loss.name in closed else None
    elif program != "planar-laplace":
        table = where_possible("planar Laplace noise", lambda: laplace_clamped(problem, level), None)
        loss = None if table is None else float((problem.weighted_loss * table).sum())
        placed = None if table is None or cost is None else float((cost * table).sum())
        if table is not None and limit is not None:
            share = max(float(posterior_shares(table, caps).max()) for caps in limit.caps(problem))
    return {
        "constant_position_loss": None if cost is None or at_position is None else float(cost.sum(axis=0).min()),
        "alternative": "optimal" if program == "planar-laplace" else "planar_laplace",
        "alternative_loss": loss,
        "alternative_position_loss": placed,
        "alternative_share": share,
    }


def sentences(summary: Mapping[str, Any], problem: DesignProblem, limit: PosteriorCap | None = None) -> str:
    """What a report is worth, what the level means, why this mechanism was made, and what the other one costs, of the
    document of `area`; limit, the limit on discs of the design.
    """
    parameters, unit = problem.parameters, problem.domain.unit
    middle = summary["middle"]
    north, east = (
        f"{abs(middle[axis]):.4f} {ends[middle[axis] < 0]}" for axis, ends in (("latitude", "NS"), ("longitude", "EW"))
    )
    parts = [
        f"The middle of the area is at {north}, {east}.",
        _prior(summary, problem),
        _little(summary, problem, limit),
        _coarse(summary, problem),
    ]
    if "people" in parameters:
        within = f"{float(parameters['least']):.6g} {unit} and {float(parameters['most']):.6g} {unit}"
        disc = f"the disc that holds {float(parameters['people']):.6g} people, its radius between {within}"
        parts.append(f"The level is {float(parameters['nats']):.6g} nats over the radius of {disc}.")
    parts.append(f"Made by {summary['chosen']}.")
    parts.append(_other(summary, problem, limit))
    return " ".join(filter(None, parts))


def _prior(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """How many people the prior counts, and how many cells are empty, where it was read from a raster."""
    if "prior_is" not in summary:
        return ""
    counted, empty = summary["people"], summary["empty_cells"]
    who = "The prior is a density" if counted is None else f"The prior counts {_people(counted)}"
    return f"{who} in {problem.reports.size:,} cells, {empty:,} of them empty."


def _people(count: float) -> str:
    """A number of people in words: "13,100 people", "1.2 million people"."""
    if count >= 1e6:
        return f"{count / 1e6:.3g} million people"
    return f"{count:,.0f} people" if count >= 100 else f"{count:.3g} people"


def _other(summary: Mapping[str, Any], problem: DesignProblem, limit: PosteriorCap | None) -> str:
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
        said = f"{noise} would be {off} off{' (root mean square)' * squared}"
    else:
        said = f"{noise} would have a loss of {amount(other, problem.loss.unit(unit), up=True)}"
    share = summary["alternative_share"]
    if share is None or limit is None:
        return f"{said}."
    keeps = "keeps" if share <= limit.exact else "does not keep"
    lies = f"after its worst report {percent(share, up=True, digits=3)} of the probability lies"
    return f"{said}. It {keeps} the limit: {lies} in {'such cells' if limit.centres == 'area' else 'one such disc'}."


def _little(summary: Mapping[str, Any], problem: DesignProblem, limit: PosteriorCap | None) -> str:
    """That a report says little in a box that is small for its level, with the box and the level that would do."""
    constant, loss, domain = summary["constant_position_loss"], summary["position_loss"], problem.domain
    if constant is None or loss is None or problem.loss.name != "distance" or loss <= _USEFUL * constant:
        return ""
    warning = (
        f"A report says little: always reporting one place in the middle is {length(constant, domain.unit, up=False)} "
        f"off, this report {length(loss, domain.unit, up=True)}."
    )
    if limit is not None:  # a limit on discs binds in a larger box, and with a larger factor, too
        return warning
    level, area = float(problem.parameters["geodesic_epsilon"]), problem.reports.size * domain.spacing**2
    if level * math.sqrt(area) >= _BOX:
        return warning
    wanted = _BOX / math.sqrt(area)
    box = f"a box about {length(_two_digits(_BOX / level), domain.unit)} wide"
    radius = problem.parameters.get("within")
    option = f"--epsilon {_two_digits(wanted):g}"
    if radius is not None and wanted * float(radius) < 20:
        option = f"--factor {_two_digits(math.exp(wanted * float(radius))):g}"
    return f"{warning} In {box}, or with {option}, a report is about half as far off as one place."


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
