"""From multipliers that are nearly admissible to a proved bound.

Lowering a multiplier never hurts a report that holds, so only violators are looked at again. Their values are those of
pivots that end early, which may be worse where less is asked: so the last pass is over all reports.

1. Multipliers above a cost outside a ball are lowered to it: that place can then be left out there.
2. An exact pass, rounded down (`value_block`), over all reports, then rounds over those with a negative value:
   where the minimising ray weighs most, lambda falls by what its ratio is below 1, and a little more every round; at
   last over all again, and what is negative then counts.

lower_bound = sum lambda + sum min(0, v), less a margin that covers the pivots of a repetition. It is proved by the
multipliers and the radii alone: `proved` repeats the exact pass.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.dataset import ProvedBound
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, in_order
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.kernels.pricing import lower_bound
from mechdesign.solvers.local.passes import Told, ceiling
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, Vector, value_block

REACH, CORE = 15.0, 6.0  # nats: a little more than the passes have, so that what they settled holds
WIDEST = 64.0  # nats: the widest ball that a file may ask for
_ROUNDS = 30  # of violators
_SPARE = 1e-6  # by which a multiplier falls more than a ratio asks for, at first
_MORE = 1.3  # times that in every round
_LOST = 1e-7  # of the bound; what negative values may take of it
MARGIN = 1e-8  # of a bound


def proved(crew: Workers, places: Places, proof: ProvedBound, told: Told = lambda done: None) -> float:
    """The lower bound that the multipliers of a proof give, its value aside. Cost: an exact pass."""
    return _exact(crew, Asked.all(places, proof.dual, reach=proof.reach, core=proof.core), told)[0]


def certify(
    crew: Workers, places: Places, dual: Vector, *, reach: float = REACH, core: float = CORE,
    told: Told = lambda done: None,
) -> ProvedBound:  # fmt: skip
    """A proved bound from multipliers (n,) >= 0. Cost: two passes, and as much as one over fewer and fewer reports."""
    asked = Asked.all(places, dual, reach=reach, core=core)
    best = ProvedBound(value=-math.inf, dual=asked.dual, reach=reach, core=core)
    every = asked.reports
    for number in range(_ROUNDS):
        value, blocks = _exact(crew, asked, told)
        whole, enough = asked.reports is every, value >= (1 - _LOST) * float(asked.dual.sum())
        if whole and value > best.value:
            best = replace(best, value=value, dual=asked.dual)
        if whole and enough:
            break
        if enough or number == _ROUNDS - 2:
            asked = _of(asked, every)
            continue
        short = asked.reports[np.concatenate([found["value"] for found in blocks]) < 0]
        asked = _of(replace(asked, dual=_mended(asked, blocks, _SPARE * _MORE**number)), short)
    return replace(best, value=best.value * (1 - MARGIN))


def _mended(asked: Asked, blocks: list[Arrays], spare: float) -> Vector:
    """Multipliers lowered by what exact blocks say of them, and by `spare` of themselves more."""
    fall = np.zeros(asked.places.size)
    for found in blocks:
        np.maximum.at(fall, found["place"], np.minimum(1.0, found["share"] + spare))
    return np.asarray(np.minimum(asked.dual * (1 - fall), ceiling(asked.places, blocks)))


def _of(asked: Asked, reports: NDArray[np.int64]) -> Asked:
    return replace(asked, reports=reports, start=np.ones(len(reports)))


def _exact(crew: Workers, asked: Asked, told: Told) -> tuple[float, list[Arrays]]:
    """The bound if all other reports hold, and the blocks of the pass."""
    blocks = _priced(crew, value_block, asked, told)
    return lower_bound(asked.dual, np.concatenate([found["value"] for found in blocks])), blocks


def _priced(crew: Workers, work: Work, asked: Asked, told: Told) -> list[Arrays]:
    found = []
    done = in_order(crew, work, asked, len(asked.reports), BLOCK, folder=Folder(), name="prices")
    with contextlib.closing(done):
        for _, stop, arrays in done:
            found.append(arrays)
            told(stop)
    return found
