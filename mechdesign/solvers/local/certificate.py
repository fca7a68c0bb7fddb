"""From multipliers that are nearly admissible to a proved bound.

Lowering a multiplier never hurts a report that holds, so only violators, the reports with rho < 1, are looked at again.

1. Multipliers above a cost outside a ball are lowered to it: that place can then be left out there.
2. All ratios, at the radii of the certificate; lambda <- lambda min(1, rho)^1.5, and the violators again.
3. For some rounds, violators alone: lambda falls by the largest 1 - rho among each place and its
   neighbours, after some rounds theirs too.
4. One exact pass, rounded down (`value_block`), over all reports; those with a negative value go through 3 again, at
   most a few times. lower_bound = sum lambda + sum min(0, v), less a margin that covers the pivots of a repetition.

A bound is proved by its multipliers and the radii alone: `proved` repeats the exact pass.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.dataset import ProvedBound
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, in_order
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.kernels.pricing import lower_bound
from mechdesign.solvers.local.passes import Told, ceiling
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, Vector, ratio_block, value_block

REACH, CORE = 18.0, 8.0  # nats: what lies beyond costs the bound 3e-5 and 4e-5 of itself
WIDEST = 64.0  # nats: the widest ball that a file may ask for
_POWER = 1.5
_ROUNDS = 12  # of violators
_WIDER = 3  # rounds after which neighbours of neighbours fall too
_AGAIN = 4  # exact passes over violators
_NUDGE = 1e-6  # by which lambda falls more than a ratio asks for
_LOST = 1e-7  # of the bound; what negative values may take of it
MARGIN = 1e-8  # of a bound


def proved(crew: Workers, places: Places, proof: ProvedBound, told: Told = lambda done: None) -> float:
    """The lower bound that the multipliers of a proof give, its value aside. Cost: an exact pass."""
    return _exact(crew, Asked.all(places, proof.dual, reach=proof.reach, core=proof.core), told)[0]


def certify(
    crew: Workers, places: Places, dual: Vector, *, reach: float = REACH, core: float = CORE,
    told: Told = lambda done: None,
) -> ProvedBound:  # fmt: skip
    """A proved bound from multipliers (n,) >= 0. Cost: two passes, and some over a few reports."""
    asked = Asked.all(places, dual, reach=reach, core=core)
    for _ in range(2):
        asked = _lowered(crew, asked, told, power=_POWER)
    asked = _without_violators(crew, asked, told)
    everyone = replace(asked, reports=np.arange(places.size), start=np.ones(places.size))
    value, prices, most = _exact(crew, everyone, told)
    best = ProvedBound(value=value, dual=asked.dual, reach=reach, core=core)
    for _ in range(_AGAIN):
        if value >= (1 - _LOST) * float(asked.dual.sum()):
            break
        worse = prices < 0
        again = replace(asked, dual=np.minimum(asked.dual, most), reports=asked.reports)
        asked = _without_violators(crew, _of(again, everyone.reports[worse]), told)
        everyone = _of(asked, everyone.reports[worse])
        value, prices, most = _exact(crew, everyone, told)
        if value > best.value:
            best = replace(best, value=value, dual=asked.dual)
    return replace(best, value=best.value * (1 - MARGIN))


def _of(asked: Asked, reports: NDArray[np.int64]) -> Asked:
    return replace(asked, reports=reports, start=np.ones(len(reports)))


def _exact(crew: Workers, asked: Asked, told: Told) -> tuple[float, Vector, Vector]:
    """The bound if all other reports hold, the values (m,), and what the multipliers may be at most."""
    blocks = _priced(crew, value_block, asked, told)
    value = np.concatenate([found["value"] for found in blocks])
    return lower_bound(asked.dual, value), value, ceiling(asked.places, blocks)


def _lowered(crew: Workers, asked: Asked, told: Told, *, power: float) -> Asked:
    """Multipliers lowered by the ratios of the reports themselves, and the reports that had a ratio below 1."""
    if not len(asked.reports):
        return asked
    blocks = _priced(crew, ratio_block, asked, told)
    ratio = np.concatenate([found["ratio"] for found in blocks])
    dual = np.minimum(asked.dual, ceiling(asked.places, blocks))
    dual[asked.reports] *= np.minimum(1.0, ratio) ** power
    below = ratio < 1
    return replace(asked, dual=dual, reports=asked.reports[below], start=ratio[below])


def _without_violators(crew: Workers, asked: Asked, told: Told) -> Asked:
    """Rounds over violators until none is left; then reports is what was looked at last."""
    for number in range(_ROUNDS):
        if not len(asked.reports):
            break
        blocks = _priced(crew, ratio_block, asked, told)
        ratio = np.concatenate([found["ratio"] for found in blocks])
        fall = np.zeros(asked.places.size)
        fall[asked.reports] = np.where(ratio < 1, 1 - ratio + _NUDGE, 0.0)
        for _ in range(1 + number // _WIDER):
            fall = _around(asked.places, fall)
        dual = np.minimum(asked.dual, ceiling(asked.places, blocks)) * (1 - fall)
        below = ratio < 1
        asked = replace(asked, dual=dual, reports=asked.reports[below], start=np.minimum(ratio[below], 1.0))
    return asked


def _around(places: Places, values: Vector) -> Vector:
    """The largest value of every place and its neighbours."""
    edge = np.maximum.reduceat(values[places.near], places.first[:-1])
    return np.asarray(np.minimum(np.maximum(values, edge), 1.0))


def _priced(crew: Workers, work: Work, asked: Asked, told: Told) -> list[Arrays]:
    found = []
    done = in_order(crew, work, asked, len(asked.reports), BLOCK, folder=Folder(), name="prices")
    with contextlib.closing(done):
        for _, stop, arrays in done:
            found.append(arrays)
            told(stop)
    return found
