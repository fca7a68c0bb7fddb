"""Which mechanism `mechdesign area` makes when it is not told, why, and what the other one would have cost.

The rule. The optimal program takes longer the more cells there are and the fewer nats lie between neighbours. `MINUTE`
has the cells up to which it ends in about a minute of one processor, as measured on square maps with a
uniform prior and the loss of the distance; its time limit ends it in any case, with the best table so far. Beyond, a
Euclidean metric gets the planar Laplace mechanism, and levels that vary get eikonal weights.

Between positions. A design that is private between any two positions, and not between centres of cells alone, is made
where it costs less than 2 % in loss to the true position, on rectangles up to `_SHORT` nats along a cell
(solvers/positions/price.py; ragged areas pay more, up to 5.7 % measured), and where it takes about a minute, up to
`_PLACED` cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mechdesign.closed_forms.mechanisms import planar_laplace
from mechdesign.errors import InputError
from mechdesign.output.sentences import amount
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.true_position import position_loss

MINUTE = {  # metric: (least nats between neighbours, cells), from the longest edges to the shortest
    "euclidean": ((0.5, 1600), (0.3, 400), (0.0, 225)),
    "eikonal": ((0.5, 1600), (0.2, 576), (0.0, 225)),
}
_SHORT = 0.35  # 1.9 % between the 1.0 and 3.3 % measured at 0.25 and 0.5 nats, at second order
_PLACED = 400
TABLES = 4096  # cells up to which the planar Laplace mechanism is made only to tell its loss
_LARGE = {"euclidean": "planar-laplace", "eikonal": "eikonal"}
_WORDS = {
    "optimal": "the optimal program",
    "positions": "the optimal program between any two positions",
    "planar-laplace": "the planar Laplace mechanism",
    "eikonal": "eikonal weights",
}


def between_positions(domain: Domain, epsilon: float | None, loss: str, *, program: str, asked: str | None) -> bool:
    """Whether the mechanism of an area is private between any two positions: as asked ("any" or "cells"), else by the
    rule of the module; epsilon, the largest level in nats per unit where it is one, None where it varies.

    Raises: InputError for another word, or another program beside "any".
    """
    if asked not in (None, "any", "cells"):
        raise InputError("unknown claim", field="positions", value=asked, remedy="use any, or cells")
    if asked == "any" and program not in ("auto", "optimal"):
        raise InputError(
            "is made by the optimal program alone",
            field="positions",
            value=f"{asked}, with {program}",
            remedy="leave out --program, or take --positions cells",
        )
    if asked is not None or program != "auto" or epsilon is None or loss not in ("distance", "squared"):
        return asked == "any"
    whole = domain.shape is not None and domain.size == math.prod(domain.shape)
    return whole and domain.size <= _PLACED and epsilon * domain.spacing <= _SHORT


def chosen_for(problem: DesignProblem, *, positions: bool = False) -> tuple[str, str]:
    """The program for the problem of an area by the rule of the module, and why, in words."""
    if positions:
        return "positions", _WORDS["positions"]
    kind, cells = problem.metric.kind, problem.domain.size
    short = float(np.min(problem.edges.length))
    most = next(most for least, most in MINUTE[kind] if short >= least)
    program = "optimal" if cells <= most else _LARGE[kind]
    within = (
        "it takes about a minute up to" if cells <= most else "the optimal program takes longer than a minute beyond"
    )
    rule = f"with {short:.2g} nats between neighbours {within} {most:,} cells, and these are {cells:,}"
    return program, f"{_WORDS[program]}: {rule}"


def alternative(problem: DesignProblem, program: str) -> dict[str, Any]:
    """The mechanism that was not made: its name, its loss and the smallest epsilon that it has.

    The planar Laplace mechanism at the smallest level of the metric or, where that was made, the optimal program by
    name alone: its loss is not known without solving it. Beyond 4,096 cells the loss is that of planar Laplace noise
    in the whole plane, and null for a loss that has no closed form there.
    """
    if program == "planar-laplace":
        return {"alternative": "optimal", "alternative_loss": None, "alternative_smallest_epsilon": None}
    level = float(problem.metric.smallest_level or 0.0)
    if problem.domain.size > TABLES:
        closed = {"distance": planar_laplace.mean_radius, "squared": planar_laplace.mean_squared_error}
        loss = closed[problem.loss.name](level) if problem.loss.name in closed else None
        return {"alternative": "planar_laplace", "alternative_loss": loss, "alternative_smallest_epsilon": level}
    other = planar_laplace.mechanism(problem)
    return {
        "alternative": "planar_laplace",
        "alternative_loss": float(other.attrs["expected_loss"]),
        "alternative_position_loss": position_loss(other),
        "alternative_smallest_epsilon": level * float(other.attrs["effective_epsilon"]),
    }


def sentences(summary: Mapping[str, Any], problem: DesignProblem) -> str:
    """What the level means, why this mechanism was made, and what the other one costs, of the document of `area`."""
    told, unit = problem.parameters, problem.domain.unit
    columns = summary.get("method") == "columns"
    said = f"Made by {'weights of columns certified between any two positions' if columns else summary['chosen']}."
    if "people" in told:
        within = f"{float(told['least']):.6g} {unit} and {float(told['most']):.6g} {unit}"
        disc = f"the disc that holds {float(told['people']):.6g} people, its radius between {within}"
        said = f"The level is {float(told['nats']):.6g} nats over the radius of {disc}. {said}"
    if summary["alternative_loss"] is None and summary["alternative"] != "optimal":
        return said
    if summary["alternative_loss"] is None:
        return f"{said} --program optimal solves it all the same, until its --time-limit."
    placed = summary["program"] == "positions" and summary.get("alternative_position_loss") is not None
    cost = amount(
        summary["alternative_position_loss" if placed else "alternative_loss"], problem.loss.unit(unit), up=True
    )
    whose = ", private between centres of cells alone," if placed else ""
    return f"{said} The planar Laplace mechanism{whose} would have a loss of {cost}{' to it' * placed}."
