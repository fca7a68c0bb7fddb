"""Largest values over all pairs of places, block by block: max-plus transforms and steepest chords.

Places are split at medians into blocks of at most 64. For every target block the source blocks come in the order of
their upper bounds, from boxes; the first that cannot raise any target ends the search. Each bound has the operations of
the value it bounds, in one order and monotone in floating point: the answers have the bits of all pairs. Cost: n^2 at
worst; on 40,000 cells 20 to 40 times less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from mechdesign.base.arrays import Indices, Points, Vector

LEAF = 64  # places of a block


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Places in an order in which blocks are runs: order (n,), start (b + 1,), boxes low and high (b, k)."""

    order: Indices
    start: Indices
    low: Points
    high: Points


def split(points: Points, leaf: int = LEAF) -> Blocks:
    """Blocks of points (n, k), halved along their longest side down to `leaf` places. Cost: O(n log n)."""
    rest, runs = [np.arange(len(points))], []
    while rest:
        run = rest.pop()
        if len(run) <= leaf:
            runs.append(run)
            continue
        axis = int(np.argmax(np.ptp(points[run], axis=0)))
        half = len(run) // 2
        run = run[np.argpartition(points[run, axis], half)]
        rest += [run[half:], run[:half]]
    return Blocks(
        order=np.concatenate(runs),
        start=np.concatenate([[0], np.cumsum([len(run) for run in runs])]),
        low=np.array([points[run].min(axis=0) for run in runs]),
        high=np.array([points[run].max(axis=0) for run in runs]),
    )


def transform(
    targets: Points,
    sources: Points,
    height: Vector,
    gamma: float,
    *,
    linear: bool,
    radius: float = 0.0,
    leaf: int = LEAF,
) -> Vector:
    """The largest over sources j of height_j - gamma d, or if `linear` of height_j / (1 + gamma d), shape (m,)."""
    near, far = split(targets, leaf), split(sources, leaf)
    top = np.maximum.reduceat(height[far.order], far.start[:-1])
    largest = np.empty(len(targets))
    largest[near.order] = _transform(
        targets[near.order], near.start, near.low, near.high,
        sources[far.order], far.start, far.low, far.high,
        height[far.order], top, gamma, linear, radius,
    )  # fmt: skip
    return largest


def steepest_chords(points: Points, values: Vector, horizon: float = math.inf, leaf: int = LEAF) -> Vector:
    """The largest |f(x) - f(x')| / |x - x'| (n,) over x' with 0 < |x - x'| <= horizon, 0 where there are none."""
    blocks = split(points, leaf)
    order, first = blocks.order, blocks.start[:-1]
    least = np.minimum.reduceat(values[order], first)
    most = np.maximum.reduceat(values[order], first)
    steepest = np.empty(len(points))
    steepest[order] = _chords(points[order], values[order], blocks.start, blocks.low, blocks.high, least, most, horizon)
    return steepest


@numba.njit(inline="always")
def _box_distance(low, high, other_low, other_high):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(low.size):
        gap = max(other_low[k] - high[k], low[k] - other_high[k], 0.0)
        total += gap * gap
    return math.sqrt(total)


@numba.njit(inline="always")
def _worth(height, distance, gamma, linear, radius):  # type: ignore[no-untyped-def]
    beyond = max(distance - radius, 0.0)
    return height / (1 + gamma * beyond) if linear else height - gamma * beyond


@numba.njit(cache=True, nogil=True)
def _transform(  # type: ignore[no-untyped-def]
    targets, start, low, high, sources, from_start, from_low, from_high, height, top, gamma, linear, radius
):
    largest = np.full(len(targets), -np.inf)
    bound = np.empty(len(top))
    for a in range(len(start) - 1):
        for b in range(len(top)):
            away = _box_distance(low[a], high[a], from_low[b], from_high[b])
            bound[b] = _worth(top[b], away, gamma, linear, radius)
        block = largest[start[a] : start[a + 1]]
        for b in np.argsort(-bound):
            if bound[b] <= block.min():
                break
            for i in range(start[a], start[a + 1]):
                away = _box_distance(targets[i], targets[i], from_low[b], from_high[b])
                best = largest[i]
                if _worth(top[b], away, gamma, linear, radius) <= best:
                    continue
                for j in range(from_start[b], from_start[b + 1]):
                    away = _box_distance(targets[i], targets[i], sources[j], sources[j])
                    best = max(best, _worth(height[j], away, gamma, linear, radius))
                largest[i] = best
    return largest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _chords(points, values, start, low, high, least, most, horizon):  # type: ignore[no-untyped-def]
    steepest = np.zeros(len(points))
    bound = np.empty(len(least))
    for a in range(len(least)):
        for b in range(len(least)):
            away = _box_distance(low[a], high[a], low[b], high[b])
            drop = max(most[b] - least[a], most[a] - least[b])
            bound[b] = 0.0 if away > horizon or drop == 0 else drop / away
        block = steepest[start[a] : start[a + 1]]
        for b in np.argsort(-bound):
            if bound[b] <= block.min():
                break
            for i in range(start[a], start[a + 1]):
                away = _box_distance(points[i], points[i], low[b], high[b])
                drop = max(most[b] - values[i], values[i] - least[b])
                best = steepest[i]
                if away > horizon or drop == 0 or drop / away <= best:
                    continue
                for j in range(start[b], start[b + 1]):
                    away = _box_distance(points[i], points[i], points[j], points[j])
                    if 0 < away <= horizon:
                        best = max(best, abs(values[i] - values[j]) / away)
                steepest[i] = best
    return steepest
