"""Passes that improve the multipliers of the row sums by the ratios of local pricing (pricing.py).

Let g_y with g_y(y) = 1 attain rho_y, and w_y be the weights of the reports, nearly P(y|y). A pass

1. prices the ratios, moves w by e^{-eta (rho - 1)}, and levels the row sums s = sum_y w_y g_y multiplicatively;     (1)
2. moves ln lambda by the series sum_{k <= K} (I - P)^k ln(P rho), (P v)(u) = sum_y w_y g_y(u) v_y / s(u), which undoes
   the smoothing of P, and by -beta ln s for an optimal limit. While the scale is off by more than 2 %, by ln(P rho).
                                                                                                                     (2)
Source: ours; a mirror descent in both. No proof rests on a ratio. Multipliers of 0 stay 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

import numba
import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.factored.ball import Places
from mechdesign.factored.pricing import BLOCK, LastTrees, PricingTask, Radii, ratio_block
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, Workers, all_blocks


@dataclass(frozen=True, kw_only=True)
class AscentConstants:
    """Constants of a pass: guesses that change how many passes are needed, and no proof."""

    weight_step: float = 3.0  # eta of (1)
    levellings: int = 5  # of the row sums in a pass
    levelling_power: float = 1.5
    terms: int = 8  # K of (2)
    largest_step: float = 0.3  # of ln lambda
    row_sum_step: float = 0.1  # beta of (2)
    settled_scale: float = 0.02  # relative: where the scale is off by more, (2) has its first term alone
    largest_ratio: float = 1e3  # where the multipliers near a report are all 0
    smallest: float = 1e-12  # row sums and weights below are kept there


CONSTANTS = AscentConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class DualState:
    """Multipliers dual (n,) >= 0 and weights weight (n,) > 0 of the reports; the last ratios (n,) and trees found."""

    dual: Vector
    weight: Vector
    ratio: Vector
    trees: LastTrees = field(default_factory=LastTrees.none)


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRays:
    """Rays of all reports as sparse rows, a block of reports after the other; sums are added in the order of blocks."""

    size: int
    blocks: list[Arrays]

    def across(self, values: Vector) -> Vector:
        return np.concatenate([_across(rays["count"], rays["place"], rays["ray"], values) for rays in self.blocks])

    def down(self, values: Vector) -> Vector:
        total, start = np.zeros(self.size), 0
        for rays in self.blocks:
            _down(rays["count"], rays["place"], rays["ray"], values[start:], total)
            start += len(rays["count"])
        return total


def dual_step(
    executor: Workers, places: Places, state: DualState, radii: Radii, on_done: OnDone = lambda done: None
) -> tuple[DualState, float]:
    """The state after a pass, and the bound before it, sum lambda min(1, rho), without a proof."""
    task = PricingTask.all(places, state.dual, **asdict(radii), start=state.ratio, last=state.trees)
    blocked = BlockedWork(work=ratio_block, state=task, total=places.size, block=BLOCK, name="ratios")
    blocks = all_blocks(executor, blocked, on_done=on_done)
    ratio = np.concatenate([arrays["ratio"] for arrays in blocks])
    # Where all multipliers near a report are 0, its ratio has a denominator of 0.
    ratio = np.nan_to_num(np.minimum(ratio, CONSTANTS.largest_ratio), nan=CONSTANTS.largest_ratio)
    value = float(state.dual @ np.minimum(ratio, 1.0))
    after = _move_state(state, ratio, SparseRays(size=places.size, blocks=blocks))
    # A multiplier above the cost of its place outside some ball would leave that report without a bound.
    return replace(after, dual=below_costs(places, after.dual, blocks), trees=LastTrees.of(blocks)), value


def below_costs(places: Places, dual: Vector, blocks: Iterable[Arrays]) -> Vector:
    """The multipliers (n,), at most the largest that blocks allow at the places they left out."""
    limit = np.full(places.size, np.inf)
    for arrays in blocks:
        np.minimum.at(limit, arrays["missed"], arrays["cost"])
    return places.hosts.fit(dual, limit)


def _move_state(state: DualState, ratio: Vector, rows: SparseRays) -> DualState:
    # (1). A weight grows by the mean of 1 / s over its ray, so that row sums above 1 pull it down.
    total = rows.across(np.ones(rows.size))
    weight = state.weight * np.exp(-CONSTANTS.weight_step * np.clip(ratio - 1, -0.2, 0.2))
    weight = np.maximum(weight, CONSTANTS.smallest)
    for _ in range(CONSTANTS.levellings):
        sums = np.maximum(rows.down(weight), CONSTANTS.smallest)
        weight = np.maximum(weight * (rows.across(1 / sums) / total) ** CONSTANTS.levelling_power, CONSTANTS.smallest)
    sums = np.maximum(rows.down(weight), CONSTANTS.smallest)

    def channel(values: Vector) -> Vector:
        return np.asarray(rows.down(weight * values) / sums)

    # (2). I - P maps a constant to 0, so only the first term of the series moves the scale: while the scale is wrong,
    # that term is taken alone.
    change = np.maximum(channel(ratio), CONSTANTS.smallest)
    move = np.log(change)
    if abs(np.log(float(state.dual @ change) / float(state.dual.sum()))) <= CONSTANTS.settled_scale:
        rest = move
        for _ in range(CONSTANTS.terms):
            rest = rest - channel(rest)
            move = move + rest
    steps = np.clip(move, -CONSTANTS.largest_step, CONSTANTS.largest_step)
    # Without the term in ln s the passes may settle where row sums are not 1, which is not optimal.
    steps = steps - CONSTANTS.row_sum_step * np.clip(np.log(sums), -0.5, 0.5)
    return DualState(dual=state.dual * np.exp(steps), weight=weight, ratio=ratio)


@numba.njit(cache=True, nogil=True)
def _across(count, place, ray, values):  # type: ignore[no-untyped-def]
    sums, start = np.empty(count.size), 0
    for y in range(count.size):
        total = 0.0
        for i in range(start, start + count[y]):
            total += ray[i] * values[place[i]]
        sums[y] = total
        start += count[y]
    return sums


@numba.njit(cache=True, nogil=True)
def _down(count, place, ray, values, total):  # type: ignore[no-untyped-def]
    start = 0
    for y in range(count.size):
        for i in range(start, start + count[y]):
            total[place[i]] += ray[i] * values[y]
        start += count[y]
