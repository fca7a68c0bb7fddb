"""The rules by which an area gets its mechanism where no program is named, each answer as data.

Between positions. Any two positions are protected by the program of cones if a step takes at most `CONES`
multiplications (about three seconds of a core, in some 25 steps: 310 cells, 700 of a rectangle with one level and one
prior). Else by weights of columns, up to `COLUMNS` in a step and the memory. Where levels vary: cones alone, up to
`VARYING` cells, and only if reports are less than `_SANE` times as far off as by eikonal weights between cells.

Between cells. `MINUTE` has the cells up to which the optimal program ends in about a minute of a core, by the nats
between neighbours, measured on square maps with a uniform prior and the loss of the distance. Beyond, a Euclidean
metric gets the planar Laplace mechanism, up to `TABLES` cells, whose pairs take a minute to check; levels that vary get
eikonal weights. No rule looks at a clock: the same request makes the same file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.registry import capabilities
from mechdesign.errors import InputError, SizeError
from mechdesign.problem.domain import Domain
from mechdesign.problem.metrics import Euclidean, level_range
from mechdesign.problem.problem import DesignProblem

if TYPE_CHECKING:
    from mechdesign.positions.program import Positions

PROGRAMS = ("auto", "optimal", "eikonal", "planar-laplace")
POSITIONS = ("any", "inside", "cells")
MINUTE = {  # metric: (least nats between neighbours, cells), from the longest edges to the shortest
    "euclidean": ((0.5, 1600), (0.3, 400), (0.0, 100)),
    "eikonal": ((0.5, 1600), (0.2, 576), (0.0, 225)),
}
CONES, COLUMNS = 3e10, 2.5e11  # multiplications of a step
_MOST, _ORBIT = 12_000, 8  # cells of a table of 1.2 GB, of which seven are held; symmetries of a square
VARYING = 250  # cells
_SANE = 1.5
TABLES = 4096  # cells up to which all pairs are checked within a minute or two


@dataclass(frozen=True, kw_only=True)
class TooManyCells:
    """The cells of a domain exceed `most`; `cell` is a side that makes fewer."""

    cells: int
    most: int
    cell: float


@dataclass(frozen=True, kw_only=True)
class TooFarOff:
    """Losses to the true position, in `unit`, of a design for any position and of one for cells."""

    any_loss: float
    cells_loss: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class ProgramOfCells:
    """The program that was named protects cells alone."""

    program: str


@dataclass(frozen=True, kw_only=True)
class LossOfCells:
    """The loss counts cells."""

    loss: str


@dataclass(frozen=True)
class Refused:
    """The message of an error: the design between positions is too large, or not possible."""

    message: str


@dataclass(frozen=True)
class NotInstalled:
    """Claims between positions are not part of this installation."""


CellsReason = NotInstalled | ProgramOfCells | LossOfCells | TooManyCells | TooFarOff | Refused


@dataclass(frozen=True, kw_only=True)
class Named:
    """The program was named by the caller."""

    program: str


@dataclass(frozen=True)
class WithLimit:
    """The optimal program, as the only one that keeps a limit on discs."""

    program: str = "optimal"


@dataclass(frozen=True, kw_only=True)
class BySize:
    """The program by the rule of `MINUTE`: nats between neighbours, cells in a minute at so many, and the cells."""

    program: str
    nats: float
    most: int
    cells: int


@dataclass(frozen=True, kw_only=True)
class BetweenPositions:
    """The method, "cones" or "columns", of the program between any two positions."""

    method: str
    program: str = "positions"


Choice = Named | WithLimit | BySize | BetweenPositions


def check_program(program: str, positions: str | None, bound: bool | None) -> None:
    """Refuse unknown words, a program that cannot protect the positions, and one without a bound to compute or omit."""
    if program not in PROGRAMS:
        raise InputError("unknown program", field="program", value=program, remedy="use " + ", ".join(PROGRAMS))
    if positions not in (None, *POSITIONS):
        raise InputError("must be any, inside or cells", field="positions", value=positions)
    if positions in ("any", "inside") and program not in ("auto", "optimal"):
        raise InputError(f"{positions} is made by the optimal program alone, and not by {program}", field="positions")
    if bound is False and program == "optimal":
        message = "the optimal program works towards its bound: a larger `gap` or a `time_limit` ends it earlier"
        raise InputError(message, field="bound", value="bound=False")
    if bound and program == "planar-laplace":
        raise InputError("planar Laplace noise is made without a bound", field="bound", value="bound=True")


def cells_reason(domain: Domain, loss: str, *, varies: bool, program: str) -> CellsReason | None:
    """The reason to protect cells and not any position, as far as it is known before a problem is stated."""
    if "positions" not in capabilities():
        return NotInstalled()
    if program not in ("auto", "optimal"):
        return ProgramOfCells(program=program)
    if loss not in ("distance", "squared"):
        return LossOfCells(loss=loss)
    if varies and domain.size > VARYING:
        return TooManyCells(cells=domain.size, most=VARYING, cell=cell_for(domain, VARYING))
    return None


def too_far_off(any_loss: float | None, cells_loss: float | None, unit: str) -> TooFarOff | None:
    """The reason to protect cells where any position costs `_SANE` times as much; losses to the true position."""
    if any_loss is None or cells_loss is None or any_loss <= _SANE * cells_loss:
        return None
    return TooFarOff(any_loss=any_loss, cells_loss=cells_loss, unit=unit)


def positions_method(program: Positions, *, explicit: bool) -> str:
    """The method that protects any two positions by the rule of the module; if explicit, however long it takes."""
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
    levels = " with levels that vary" if low < high else ""
    raise SizeError(
        f"{cells:,} cells{levels} are too many for that{fewer(problem.domain, most)}",
        field="cell",
        value=problem.domain.spacing,
        remedy="use a larger `cell`, a smaller box, or positions='cells'",
    )


def chosen_program(problem: DesignProblem) -> BySize:
    """The program between cells for the problem of an area, by the rule of the module."""
    kind, cells = problem.metric.kind, problem.domain.size
    if kind == Euclidean.kind:
        check_pairs(problem.domain)
    short = float(np.min(problem.edges.length))
    most = next(most for least, most in MINUTE[kind] if short >= least)
    program = "optimal" if cells <= most else {"euclidean": "planar-laplace", "eikonal": "eikonal"}[kind]
    return BySize(program=program, nats=short, most=most, cells=cells)


def check_pairs(domain: Domain) -> None:
    """Refuse cells whose pairs, each with every report, take longer than some minutes to check."""
    if domain.size > TABLES:
        raise SizeError(
            f"{domain.size:,} cells have {pairs(domain)}{fewer(domain, TABLES)}",
            field="cell",
            value=domain.spacing,
            remedy="use a smaller box, or positions='any'",
        )


def pairs(domain: Domain) -> str:
    """The pairs to check, in words, and the minutes of a core: 0.3 n^3 comparisons, five times, a nanosecond each."""
    minutes = max(0.3 * domain.size**3 * 5e-9 / 60, 1)
    return f"{domain.size**2 // 2:,} pairs to check in {domain.size:,} reports each, some {minutes:,.0f} minutes"


def fewer(domain: Domain, most: int) -> str:
    """The advice of a cell with which a domain has at most so many, in brackets."""
    return f" (cell={cell_for(domain, most):g} makes fewer)"


def cell_for(domain: Domain, most: int) -> float:
    """The side, to two digits, with which a domain has at most so many cells."""
    return two_digits(domain.spacing * math.sqrt(domain.size / most) * 1.02)


def two_digits(value: float, *, up: bool = True) -> float:
    """A number of two digits that is not below, or not above."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{(math.ceil(value / unit) if up else math.floor(value / unit)) * unit:.3g}")
