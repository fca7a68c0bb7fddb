"""Sentences on how the mechanism of an area was chosen."""

from __future__ import annotations

from mechdesign.base.formatting import amount
from mechdesign.geo.choose import (
    BetweenPositions,
    BySize,
    CellsReason,
    Choice,
    LossOfCells,
    Named,
    NotInstalled,
    ProgramOfCells,
    TooCostly,
    TooManyCells,
)

_NAMES = {
    "optimal": "the optimal program",
    "cones": "the optimal program for any two positions",
    "columns": "weights of columns certified for any two positions",
    "noise": "noise certified for any two positions",
    "planar-laplace": "the planar Laplace mechanism",
    "eikonal": "eikonal weights",
}


# Sentences name arguments of Python, such as cell=200. The command line turns these into its options.
def reason_words(reason: CellsReason) -> str:
    """The reason to protect cells and not any position, as a clause that follows "because"."""
    match reason:
        case NotInstalled():
            return "this installation has no claims between positions"
        case ProgramOfCells(program=program):
            return f"program='{program}' protects only cells"
        case LossOfCells(loss=loss):
            return f"the {loss} loss depends only on the cell"
        case TooManyCells(cells=cells, max_cells=max_cells, cell=cell):
            return (
                f"protecting any position with levels that vary is limited to {max_cells:,} cells, got {cells:,} "
                f"(cell={cell:g} makes fewer)"
            )
        case TooCostly(any_loss=any_loss, cells_loss=cells_loss, unit=unit):
            return (
                f"with cells this coarse, protecting every position would cost {amount(any_loss, unit, up=True)} of "
                f"error instead of {amount(cells_loss, unit, up=True)}"
            )
        case _:
            return reason.message


def choice_words(choice: Choice) -> str:
    """The chosen program and the reason for it."""
    match choice:
        case Named(program=program):
            return f"{program}, as requested by `program`"
        case BySize(program=program, nats=nats, cells_in_a_minute=most_cells, cells=cells):
            limit = "takes about a minute up to" if cells <= most_cells else "takes over a minute above"
            rule = f"with {nats:.2g} nats between neighbouring cells, the optimal program {limit} {most_cells:,} cells"
            return f"{_NAMES[program]} ({rule}; this area has {cells:,})"
        case BetweenPositions(method=method, parts=parts):
            return _NAMES[method] + ("" if parts == 1 else f", with {parts} x {parts} rows a cell")
        case _:
            return "the optimal program with a limit on discs"
