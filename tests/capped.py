"""A small limit on discs, and a table that keeps it by less than one unit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

import mechdesign as md
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.posteriors.rows import Caps, posterior_shares
from mechdesign.posteriors.solve import PosteriorLimits

WIDER = 1.01  # of the level that a file claims over that of its table: room for a unit


def caps_of(program: md.programs.Constrained) -> Sequence[Caps]:
    """The rows of its limits, by limit and prior."""
    return PosteriorLimits(program=program).rows.caps


def capped(centres: Any = "anywhere") -> md.programs.Constrained:
    """A limit on discs of 1.2 cells, whose number of persons at a place is that of the place; four cells by area."""
    problem = md.load_problem("flat", cells=4)
    limit = md.posteriors.PosteriorCap(
        radius=1.2 * problem.domain.spacing, share="3/5", people=list(range(1, 17)), centres=centres
    )
    return md.programs.Constrained(problem, constraints=[limit])


@cache
def solved(centres: Any = "anywhere") -> xr.Dataset:
    """Its optimum, made once; not to be changed in place."""
    return md.solve(capped(centres))


def claimed(mass: np.ndarray, centres: Any = "anywhere", **given: object) -> xr.Dataset:
    """The file of these integers, with the limit and a claim of some room."""
    program = capped(centres)
    problem = md.DesignProblem(
        domain=program.problem.domain,
        metric=WIDER * program.problem.metric,
        prior=program.problem.prior,
        loss=program.problem.loss,
    )
    value = float((problem.weighted_loss * (mass / 2.0**62)).sum())
    figures = {"objective": value, "objective_of": program.objective_of}
    extras = Extras(parameters=program.parameters(), attributes=figures, **given)  # type: ignore[arg-type]
    return build_dataset(problem, mass, program="constrained", extras=extras)


@cache
def at_the_limit(centres: Any = "anywhere") -> tuple[np.ndarray, int, int, int]:
    """A table that keeps the limit, and the place and two reports between which one unit more breaks it.

    Made once; not to be changed in place.
    """
    program = capped(centres)
    caps, mass = caps_of(program)[0], solved(centres)["mass"].values.copy()
    report = int(np.argmax(posterior_shares(mass, caps)))
    (worst,) = (which for y, which in caps.most_exceeded(mass / 2.0**62, 1, -1.0) if y == report)
    place = int(np.flatnonzero(caps.membership(np.array([worst]))[0])[-1])
    other = int(np.argmax(mass[place] * (np.arange(16) != report)))
    low, high = 0, int(mass[place, report] // 1000)

    def moved(units: int) -> np.ndarray:
        table = mass.copy()
        table[place, report] += np.uint64(units)
        table[place, other] -= np.uint64(units)
        return table

    assert caps.breaches(moved(low)) == 0 < caps.breaches(moved(high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if caps.breaches(moved(middle)) == 0 else (low, middle)
    return moved(low), place, int(report), other


def one_more(mass: np.ndarray, place: int, report: int, other: int) -> np.ndarray:
    """The table with one unit more of a report at a place, and one less of another."""
    table = mass.copy()
    table[place, report] += np.uint64(1)
    table[place, other] -= np.uint64(1)
    return table
