"""The rules that choose the mechanism of an area if no program is named. Each answer is data.

Between positions. Rows are squares, k along each side of a cell. Cones take the smallest k with at most `FINE_NATS`
nats along a square, or the largest below it that keeps `MAX_CONE_OPERATIONS` multiplications a step. At one level,
weights of columns are taken instead if cones leave more than `WIDEST_NATS` along a square, or exceed the limit at k =
1. Their k is the smallest with `COLUMN_NATS` along a square, or the largest below with `MAX_COLUMN_ROWS` rows. Other
weights have k = 1, `MAX_COLUMN_OPERATIONS` and enough memory. If plain noise at the position is better than the design
by more than `MAX_NOISE_EXCESS`, noise on squares of `NOISE_NATS` is certified, and the better one is taken.

Levels that vary take cones only, up to `MAX_VARYING_CELLS`, and only if the loss is at most `MAX_LOSS_RATIO` times that
of eikonal weights. A requested bound allows a long search: `LONG_NATS` and `LONG_CONE_OPERATIONS` for cones.

Between cells. The optimal program is taken up to the cells of `CELLS_IN_A_MINUTE`. Beyond, a Euclidean metric gets the
planar Laplace mechanism, up to `MAX_PAIR_CELLS`; levels that vary get eikonal weights.

No rule looks at a clock: the same request makes the same file.
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
# Cells that the optimal program solves in about a minute of a core, measured on square maps with a uniform prior and
# the distance as loss. By metric: (minimum of nats between neighbours, cells), from the longest edges to the shortest.
CELLS_IN_A_MINUTE = {
    "euclidean": ((0.5, 1600), (0.3, 400), (0.0, 100)),
    "eikonal": ((0.5, 1600), (0.2, 576), (0.0, 225)),
}
# Multiplications of a step. Cones: about three seconds of a core in some 25 steps, reached at 310 cells, or at 700 of a
# rectangle with one level and one prior.
MAX_CONE_OPERATIONS, MAX_COLUMN_OPERATIONS = 3e10, 2.5e11
# Nats along a square of the rows: cones are then some 2 % above every mechanism's best, and 3 to 4 % at `WIDEST_NATS`.
# Noise at the position is some 5 % above it, and so are columns at 0.6. Squares along a cell: a guess, beyond which a
# smaller cell serves better.
FINE_NATS, WIDEST_NATS, COLUMN_NATS, MAX_PARTS = 0.6, 0.75, 0.4, 7
LONG_NATS, LONG_CONE_OPERATIONS = 0.4, 2e11  # if a bound is requested: some five minutes, and 2 % with it
MAX_COLUMN_ROWS = 4_000  # finer than reports: some 30 seconds of a core
# Certified noise is 0.7 % above noise at the position with 0.4 nats along a square, 0.9 % with 0.5. It replaces a
# design that is more than `MAX_NOISE_EXCESS` above that noise.
NOISE_NATS, MAX_NOISE_PARTS, MAX_NOISE_MASSES = 0.4, 10, 2.4e7  # masses: some minutes of a core, and 2 GB
MAX_NOISE_EXCESS = 0.01
_MAX_TABLE_CELLS = 12_000  # a table of 1.2 GB, of which seven are held
_SQUARE_SYMMETRIES = 8  # of a square map: the columns of up to 8 symmetric reports are computed once
MAX_VARYING_CELLS = 250  # for positions where levels vary; measured, some minutes
MAX_LOSS_RATIO = 1.5  # a guess at the extra loss that users accept who did not ask for positions
MAX_PAIR_CELLS = 4096  # all pairs of as many cells are checked within a minute or two
_CELL_MARGIN = 1.02  # the recommended cell is larger by this, as rounded borders add cells


@dataclass(frozen=True, kw_only=True)
class TooManyCells:
    """More cells than `max_cells`; `cell` is the side of larger cells that suffice."""

    cells: int
    max_cells: int
    cell: float


@dataclass(frozen=True, kw_only=True)
class TooCostly:
    """Protecting any position costs too much; losses to the true position, in `unit`."""

    any_loss: float
    cells_loss: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class ProgramOfCells:
    """The requested program protects only cells."""

    program: str


@dataclass(frozen=True, kw_only=True)
class LossOfCells:
    """The loss depends only on the cell."""

    loss: str


@dataclass(frozen=True)
class Refused:
    """The design between positions is too large or not possible; the message of the error."""

    message: str


@dataclass(frozen=True)
class NotInstalled:
    """The capability for claims between positions is not installed."""


CellsReason = NotInstalled | ProgramOfCells | LossOfCells | TooManyCells | TooCostly | Refused


@dataclass(frozen=True, kw_only=True)
class Named:
    """The caller named the program."""

    program: str


@dataclass(frozen=True)
class WithLimit:
    """The optimal program, the only one that supports a limit on discs."""

    program: str = "optimal"


@dataclass(frozen=True, kw_only=True)
class BySize:
    """The rule of `CELLS_IN_A_MINUTE`: minimum of nats between neighbours, cells in a minute, cells of the area."""

    program: str
    nats: float
    cells_in_a_minute: int
    cells: int


@dataclass(frozen=True, kw_only=True)
class BetweenPositions:
    """Method "cones", "columns" or "noise" of the program between positions; the squares along a cell as rows."""

    method: str
    parts: int = 1
    program: str = "positions"


Choice = Named | WithLimit | BySize | BetweenPositions


def check_program(program: str, positions: str | None, bound: bool | None) -> None:
    """Refuse unknown names and combinations that no program supports."""
    if program not in PROGRAMS:
        raise InputError("unknown program", field="program", value=program, remedy="use " + ", ".join(PROGRAMS))
    if positions not in (None, *POSITIONS):
        raise InputError("must be any, inside or cells", field="positions", value=positions)
    if positions in ("any", "inside") and program not in ("auto", "optimal"):
        message, remedy = f"{positions} requires the optimal program, got {program}", "use program='optimal'"
        raise InputError(message, field="positions", value=positions, remedy=remedy)
    if bound is False and program == "optimal":
        message = "the optimal program always computes its bound"
        remedy = "pass a larger `gap` or a `time_limit` to end it earlier"
        raise InputError(message, field="bound", value="bound=False", remedy=remedy)
    if bound and program == "planar-laplace":
        raise InputError("planar Laplace noise has no bound", field="bound", value="bound=True")


def cells_reason(domain: Domain, loss: str, *, varies: bool, program: str) -> CellsReason | None:
    """A reason to protect only cells that is known before the problem is stated, or None."""
    if "positions" not in capabilities():
        return NotInstalled()
    if program not in ("auto", "optimal"):
        return ProgramOfCells(program=program)
    if loss not in ("distance", "squared"):
        return LossOfCells(loss=loss)
    if varies and domain.size > MAX_VARYING_CELLS:
        return TooManyCells(cells=domain.size, max_cells=MAX_VARYING_CELLS, cell=cell_for(domain, MAX_VARYING_CELLS))
    return None


def too_costly(any_loss: float | None, cells_loss: float | None, unit: str) -> TooCostly | None:
    """The reason if protecting any position costs over `MAX_LOSS_RATIO` times as much as cells."""
    if any_loss is None or cells_loss is None or any_loss <= MAX_LOSS_RATIO * cells_loss:
        return None
    return TooCostly(any_loss=any_loss, cells_loss=cells_loss, unit=unit)


def cone_parts(problem: DesignProblem, *, long: bool = False) -> list[int]:
    """Numbers of squares along a cell to try as rows of cones, from the finest down to 1; finer for a long search."""
    finest = math.ceil(_nats_along_cell(problem) / (LONG_NATS if long else FINE_NATS))
    return list(range(min(finest, MAX_PARTS), 0, -1))


def column_parts(problem: DesignProblem, of_cones: int | None) -> int | None:
    """Squares along a cell as rows of columns, if they promise less loss than cones with `of_cones`; else None."""
    nats = _nats_along_cell(problem)
    if of_cones is not None and nats / of_cones <= WIDEST_NATS:
        return None
    fitting = math.isqrt(MAX_COLUMN_ROWS // problem.domain.size)
    parts = min(math.ceil(nats / COLUMN_NATS), MAX_PARTS, fitting)
    # Columns at half the nats are as good as cones.
    return parts if parts > max(1, 2 * (of_cones or 0)) else None


def noise_parts(problem: DesignProblem) -> int | None:
    """Squares along a cell as rows of certified noise; None if so many masses are too many."""
    nats, domain = _nats_along_cell(problem), problem.domain
    fitting = math.isqrt(int(MAX_NOISE_MASSES // (domain.size * problem.reports.size)))
    parts = min(math.ceil(nats / NOISE_NATS), MAX_NOISE_PARTS, fitting)
    return parts if parts >= 1 and nats / parts <= WIDEST_NATS else None


def _nats_along_cell(problem: DesignProblem) -> float:
    return level_range(problem.metric)[1] * problem.metric.scale * problem.domain.spacing


def takes_cones(program: Positions, *, long: bool = False) -> bool:
    """True if the program of cones keeps the limit of operations."""
    from mechdesign.positions.solve import operations

    most = LONG_CONE_OPERATIONS if long else MAX_CONE_OPERATIONS
    # A lower estimate, by the symmetries of a square, before any table.
    rows, reports = program.problem.domain.size, program.problem.reports.size / _SQUARE_SYMMETRIES
    if reports * rows * (rows / _SQUARE_SYMMETRIES) ** 2 > most:
        return False
    return operations(program, "cones") <= most


def positions_method(program: Positions, *, explicit: bool) -> str:
    """The method between positions by the rule of the module; an explicit choice has no limit on columns."""
    from mechdesign.positions.solve import operations

    problem = program.problem
    cells, (low, high) = problem.domain.size, level_range(problem.metric)
    # A rectangle with a uniform prior: symmetric reports have the same column, turned.
    symmetric = problem.reports is problem.domain and np.ptp(problem.prior_array) == 0
    if explicit or (
        cells <= _MAX_TABLE_CELLS and (cells / _SQUARE_SYMMETRIES if symmetric else cells) ** 3 <= MAX_COLUMN_OPERATIONS
    ):
        if operations(program, "cones") <= MAX_CONE_OPERATIONS:
            return "cones"
        if operations(program, "columns") <= (np.inf if explicit else MAX_COLUMN_OPERATIONS if low == high else 0.0):
            return "columns"
    # Cells that some program still accepts, for the remedy alone.
    accepted = 150 if low < high else 10_000 if symmetric else 4_000
    levels = " with levels that vary" if low < high else ""
    raise SizeError(
        f"{cells:,} cells{levels} are too many for protecting any position"
        + larger_cell_words(problem.domain, accepted),
        field="cell",
        value=problem.domain.spacing,
        remedy="use a larger `cell`, a smaller box, or positions='cells'",
    )


def chosen_program(problem: DesignProblem) -> BySize:
    """The program between cells by the rule of the module."""
    kind, cells = problem.metric.kind, problem.domain.size
    if kind == Euclidean.kind:
        check_pairs(problem.domain)
    shortest = float(np.min(problem.edges.length))
    limit = next(limit for nats, limit in CELLS_IN_A_MINUTE[kind] if shortest >= nats)
    program = "optimal" if cells <= limit else {"euclidean": "planar-laplace", "eikonal": "eikonal"}[kind]
    return BySize(program=program, nats=shortest, cells_in_a_minute=limit, cells=cells)


def check_pairs(domain: Domain) -> None:
    """Refuse cells whose pairs take longer than some minutes to check."""
    if domain.size > MAX_PAIR_CELLS:
        raise SizeError(
            f"{domain.size:,} cells have {pairs_words(domain)}{larger_cell_words(domain, MAX_PAIR_CELLS)}",
            field="cell",
            value=domain.spacing,
            remedy="use a smaller box, or positions='any'",
        )


def pairs_words(domain: Domain) -> str:
    """The number of pairs to check, and the minutes, in words."""
    # Measured: 0.3 n^3 comparisons, five times, a nanosecond each.
    minutes = max(0.3 * domain.size**3 * 5e-9 / 60, 1)
    return f"{domain.size**2 // 2:,} pairs to check in {domain.size:,} reports each, some {minutes:,.0f} minutes"


def larger_cell_words(domain: Domain, cells: int) -> str:
    """A recommended cell for at most `cells` cells, in brackets."""
    return f" (cell={cell_for(domain, cells):g} makes fewer)"


def cell_for(domain: Domain, cells: int) -> float:
    """The side, rounded up to two digits, with which a domain has at most some `cells` cells."""
    return two_digits(domain.spacing * math.sqrt(domain.size / cells) * _CELL_MARGIN)


def two_digits(value: float, *, up: bool = True) -> float:
    """Round to two digits, up or down."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{(math.ceil(value / unit) if up else math.floor(value / unit)) * unit:.3g}")
