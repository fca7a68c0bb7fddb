"""A proved lower bound of the expected loss of every mechanism with a claim, for any number of places.

A ladder of grids (start.py), each of half the cells of the next: passes on every one (passes.py), from the multipliers
of the one before; then, on the grid of the problem itself, the certificate (certificate.py). Reports are priced block
by block, on threads or the workers of a cluster: what comes out is the same to the bit on any number of them, and a
worker that dies costs its blocks.

On grids of Philadelphia, with edges of 8 neighbours, the bound ends 0.05 to 0.1 % below the optimum. Where priors range
over orders of magnitude from place to place it ends some per cent below. So up to `WHOLE` places the multipliers are
those of the optimal program itself, solved as a table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from mechdesign.base.descriptions import SMALLEST
from mechdesign.base.threads import OutOfTime
from mechdesign.mechanism.factored.dataset import ProvedBound
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Workers, in_order
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.local.certificate import MARGIN, WIDEST, certify, proved
from mechdesign.solvers.local.passes import Radii, State, advance
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, ratio_block
from mechdesign.solvers.local.start import flat_state, halved, interpolated
from mechdesign.solvers.optimal.aggregation import aggregate

WHOLE = 700  # places up to which the optimal program is solved as a table
WORK = 200_000  # reports priced by the passes on one grid, about
FEWEST, MOST = 6, 60  # passes on a grid
_GAP = 2e-4  # relative, of the optimal program
_SMALL = 3_000  # places up to which wider balls cost nothing
_WIDE = Radii(reach=18.0, core=10.0, keep=11.0)
_STILL = 1e-6  # relative gain of `_LATE` passes that ends them
_LATE = 5
_SAMPLE = 500  # reports
_MOST_SCALE = 10.0
_CERTIFICATE = 4.0  # passes that a certificate costs, about

Tell = Callable[[str, int, int], None]  # what is done, reports done of all


def local_bound(
    problem: DesignProblem,
    crew: Workers,
    *,
    deadline: float = math.inf,
    tell: Tell = lambda stage, done, total: None,
) -> ProvedBound | None:
    """A lower bound of the expected loss of every mechanism that is private for the metric of a problem whose reports
    are its secrets, with what proves it; None where the deadline, of time.monotonic(), leaves no time to certify one.

    Cost: CPU time of a minute on a grid of 100 x 100 cells, of a quarter of an hour on 200 x 200. Memory: 8 bytes for
    every place within 9 nats of a report.
    """
    if problem.domain.size <= WHOLE:
        return _of_the_table(problem, crew, deadline)
    tell = _in_time(tell, deadline)
    try:
        state, slowest = settled(problem, crew, deadline=deadline, tell=tell)
        if time.monotonic() + _CERTIFICATE * slowest > deadline:
            return None
        places = Places.of(problem)
        return certify(crew, places, state.dual, told=partial(_said, tell, "bound, certificate", places.size))
    except OutOfTime:
        return None


def _in_time(tell: Tell, deadline: float) -> Tell:
    """Tells, and raises OutOfTime after the deadline: what is told of is a block of a pass."""

    def told(stage: str, done: int, total: int) -> None:
        tell(stage, done, total)
        if done < total and time.monotonic() > deadline:
            raise OutOfTime

    return told


def settled(
    problem: DesignProblem,
    crew: Workers,
    *,
    deadline: float = math.inf,
    tell: Tell = lambda stage, done, total: None,
    last: int = MOST,
) -> tuple[State, float]:
    """Multipliers and weights after the passes on a ladder of grids, at most `last` of them on the finest, and the
    seconds of the slowest pass there.
    """
    ladder = [problem]
    while (coarser := halved(ladder[-1])) is not None:
        ladder.append(coarser)
    state: State | None = None
    slowest, before = 0.0, problem
    for grid in reversed(ladder):
        places = Places.of(grid)
        slowest *= places.size / before.domain.size if state is not None else 1.0
        state = flat_state(crew, places) if state is None else interpolated(state, before, grid)
        state = _rescaled(crew, places, state)
        most = last if grid is problem else MOST
        state, slowest = _settled(crew, places, state, deadline, tell, most, slowest)
        before = grid
    assert state is not None
    return state, slowest


def _of_the_table(problem: DesignProblem, crew: Workers, deadline: float) -> ProvedBound | None:
    """The bound of the multipliers of the optimal program; where balls leave out what it needs, that of multipliers
    lowered for them, if it is better.
    """
    left = deadline - time.monotonic()
    if left <= 0 or problem.constant_loss == 0:
        return None
    design = aggregate(problem, gap=_GAP, time_limit=left)
    if not len(design.dual):
        return None
    places = Places.of(problem)
    whole = ProvedBound(value=0.0, dual=design.dual, reach=WIDEST, core=WIDEST)
    whole = replace(whole, value=proved(crew, places, whole) * (1 - MARGIN))
    if whole.value >= (1 - _GAP) * design.lower_bound:
        return whole
    lowered = certify(crew, places, np.maximum(design.dual, 0.0), reach=WIDEST, core=WIDEST)
    return max(whole, lowered, key=lambda bound: bound.value)


def _said(tell: Tell, stage: str, total: int, done: int) -> None:
    tell(stage, done, total)


def _rescaled(crew: Workers, places: Places, state: State) -> State:
    """Multipliers times the mean ratio of a sample of reports, so that no pass is spent on their scale."""
    sample = np.arange(0, places.size, max(1, places.size // _SAMPLE))
    asked = Asked.all(places, state.dual, reach=Radii().reach, core=Radii().core, reports=sample)
    blocks = in_order(crew, ratio_block, asked, len(sample), BLOCK, folder=Folder(), name="sample")
    ratio = np.concatenate([found["ratio"] for _, _, found in blocks])
    share = state.dual[sample] / max(float(state.dual[sample].sum()), SMALLEST)
    scale = float(share @ np.clip(np.nan_to_num(ratio, nan=1.0), 1 / _MOST_SCALE, _MOST_SCALE))
    return replace(state, dual=state.dual * scale) if scale > 0 else state


def _settled(
    crew: Workers, places: Places, state: State, deadline: float, tell: Tell, most: int, slowest: float
) -> tuple[State, float]:
    """The state after the passes on one grid, and the seconds of the slowest; at first those that one takes, about."""
    radii = _WIDE if places.size <= _SMALL else Radii()
    count = min(max(FEWEST, WORK // places.size), most)
    worth: list[float] = []
    expected, slowest = slowest, 0.0
    for number in range(count):
        started = time.monotonic()
        if started + (1 + _CERTIFICATE) * (slowest or expected) > deadline or not state.dual.any():
            break
        stage = f"bound, pass {number + 1} of {count}" + (f", about {worth[-1]:.6g}" if worth else "")
        state, value = advance(crew, places, state, radii, partial(_said, tell, stage, places.size))
        slowest = max(slowest, time.monotonic() - started)
        worth.append(value)
        if number >= _LATE and value - worth[-1 - _LATE] < _STILL * value:
            break
    return state, slowest or expected
