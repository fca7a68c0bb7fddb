"""Passes that better the multipliers of the row sums by the ratios of reports, priced in their balls.

The scheme of solvers/optimal/multiplier_passes.py, with rays kept within some nats of their reports: for multipliers
lambda let rho_y = min over rays of <c_y, g> / <lambda, g>, attained by g_y with g_y(y) = 1, and w_y the weights of the
reports, nearly P(y|y). A pass

1. prices the ratios, moves w by e^{-eta (rho - 1)}, and levels the row sums s = sum_y w_y g_y multiplicatively;
2. moves ln lambda by the series sum_{k <= K} (I - P)^k ln(P rho), (P v)(u) = sum_y w_y g_y(u) v_y / s(u) the channel,
   which undoes the smoothing of P, and by -beta ln s, without which the limit is not optimal. While the scale is off by
   more than 2 %, by ln(P rho) alone.

Source: ours; a mirror descent in both. No proof rests on a ratio. Multipliers of 0 stay 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

import numba
import numpy as np

from mechdesign.solvers.factored.blocks import Arrays, Workers, in_order
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.local.pricing import BLOCK, Asked, Places, Vector, ratio_block

_REPLY = 3.0
_LEVELLINGS = 5
_POWER = 1.5
_SETTLED = 0.02
_TERMS = 8
_STEP = 0.3
_ROWS = 0.1
_MOST = 1e3  # ratio, where the multipliers near a report are all 0
_FAINT = 1e-12  # row sums and weights below are kept there

Told = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Radii:
    """Radii of a pass in nats: of balls, of their cores, and of the rays that are kept."""

    reach: float = 14.0
    core: float = 6.0
    keep: float = 9.0


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """Multipliers dual (n,) >= 0 and weights weight (n,) > 0 of the reports; ratio (n,), the last ones found."""

    dual: Vector
    weight: Vector
    ratio: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rays of all reports as sparse rows, a block of reports after the other; sums are added in the order of blocks."""

    size: int
    blocks: list[tuple[int, int, Arrays]]

    def across(self, values: Vector) -> Vector:
        """Sum over places of g_y(u) values(u), for every report (n,)."""
        found = np.empty(self.size)
        for start, stop, rays in self.blocks:
            _across(rays["count"], rays["place"], rays["ray"], values, found[start:stop])
        return found

    def down(self, values: Vector) -> Vector:
        """Sum over reports of values_y g_y(u), for every place (n,)."""
        found = np.zeros(self.size)
        for start, stop, rays in self.blocks:
            _down(rays["count"], rays["place"], rays["ray"], values[start:stop], found)
        return found


def advance(
    crew: Workers, places: Places, state: State, radii: Radii, told: Told = lambda done: None
) -> tuple[State, float]:
    """The state after a pass, and what the multipliers before it are worth, sum lambda min(1, rho), without a proof.

    told is called with the number of reports done. Cost: that of `ratio_block` for all reports. Memory: 8 bytes for
    every place within `keep` nats of a report, 450 MB on a grid of 200 x 200 cells.
    """
    asked = Asked.all(places, state.dual, **asdict(radii), start=state.ratio)
    blocks = []
    with contextlib.closing(
        in_order(crew, ratio_block, asked, places.size, BLOCK, folder=Folder(), name="ratios")
    ) as done:
        for start, stop, found in done:
            blocks.append((start, stop, found))
            told(stop)
    ratio = np.concatenate([found["ratio"] for _, _, found in blocks])
    ratio = np.nan_to_num(np.minimum(ratio, _MOST), nan=_MOST)
    rows = Rows(size=places.size, blocks=blocks)
    worth = float(state.dual @ np.minimum(ratio, 1.0))
    moved = _moved(state, ratio, rows)
    return replace(moved, dual=np.minimum(moved.dual, ceiling(places, (found for _, _, found in blocks)))), worth


def ceiling(places: Places, blocks: Iterable[Arrays]) -> Vector:
    """What the multipliers (n,) may be at most, by what blocks say of places left out; infinity where by nothing."""
    most = np.full(places.size, np.inf)
    for found in blocks:
        np.minimum.at(most, found["missed"], found["cost"])
    return most


def _moved(state: State, ratio: Vector, rows: Rows) -> State:
    whole = rows.across(np.ones(rows.size))
    weight = np.maximum(state.weight * np.exp(-_REPLY * np.clip(ratio - 1, -0.2, 0.2)), _FAINT)
    for _ in range(_LEVELLINGS):
        sums = np.maximum(rows.down(weight), _FAINT)
        weight = np.maximum(weight * (rows.across(1 / sums) / whole) ** _POWER, _FAINT)
    sums = np.maximum(rows.down(weight), _FAINT)

    def channel(values: Vector) -> Vector:
        return np.asarray(rows.down(weight * values) / sums)

    change = np.maximum(channel(ratio), _FAINT)
    move = np.log(change)
    if abs(np.log(float(state.dual @ change) / float(state.dual.sum()))) <= _SETTLED:
        rest = move
        for _ in range(_TERMS):
            rest = rest - channel(rest)
            move = move + rest
    steps = np.clip(move, -_STEP, _STEP) - _ROWS * np.clip(np.log(sums), -0.5, 0.5)
    return State(dual=state.dual * np.exp(steps), weight=weight, ratio=ratio)


@numba.njit(cache=True, nogil=True)
def _across(count, place, ray, values, found):  # type: ignore[no-untyped-def]
    at = 0
    for y in range(count.size):
        total = 0.0
        for i in range(at, at + count[y]):
            total += ray[i] * values[place[i]]
        found[y] = total
        at += count[y]


@numba.njit(cache=True, nogil=True)
def _down(count, place, ray, values, found):  # type: ignore[no-untyped-def]
    at = 0
    for y in range(count.size):
        for i in range(at, at + count[y]):
            found[place[i]] += ray[i] * values[y]
        at += count[y]
