"""Largest values over all pairs of places, block by block: max-plus transforms and steepest chords."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mechdesign.base.arrays import Indices, Points, Vector

LEAF = 64  # places of a block


class Blocks(NamedTuple):
    """Places in an order in which blocks are runs; a tuple, so that kernels take it as one argument."""

    order: Indices  # (n,), of the places given
    points: Points  # (n, k), in that order
    start: Indices  # (b + 1,), the first place of each block, then n
    low: Points  # (b, k), corners of the bounding boxes
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
    order = np.concatenate(runs)
    return Blocks(
        order=order,
        points=points[order],
        start=np.concatenate([[0], np.cumsum([len(run) for run in runs])]),
        low=np.array([points[run].min(axis=0) for run in runs]),
        high=np.array([points[run].max(axis=0) for run in runs]),
    )


# Places are split at medians into blocks of at most 64. For every target block the source blocks come in the order of
# their upper bounds, from boxes; the first that cannot raise any target ends the search. Each bound has the operations
# of the value it bounds, in one order and monotone in floating point: the answers have the bits of all pairs. Cost: n^2
# at worst; on 40,000 cells 20 to 40 times less.
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
    target_blocks, source_blocks = split(targets, leaf), split(sources, leaf)
    top = np.maximum.reduceat(height[source_blocks.order], source_blocks.start[:-1])
    largest = np.empty(len(targets))
    largest[target_blocks.order] = _transform(
        target_blocks, source_blocks, height[source_blocks.order], top, gamma, linear, radius
    )
    return largest


def steepest_chords(points: Points, values: Vector, horizon: float = math.inf, leaf: int = LEAF) -> Vector:
    """The largest |f(x) - f(x')| / |x - x'| (n,) over x' with 0 < |x - x'| <= horizon, 0 where there are none."""
    blocks = split(points, leaf)
    order, first = blocks.order, blocks.start[:-1]
    low = np.minimum.reduceat(values[order], first)
    high = np.maximum.reduceat(values[order], first)
    steepest = np.empty(len(points))
    steepest[order] = _chords(blocks, values[order], low, high, horizon)
    return steepest


@numba.njit(inline="always")
def _box_distance(low, high, other_low, other_high):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(low.size):
        gap = max(other_low[k] - high[k], low[k] - other_high[k], 0.0)
        total += gap * gap
    return math.sqrt(total)


@numba.njit(inline="always")
def _value(height, distance, gamma, linear, radius):  # type: ignore[no-untyped-def]
    # Both forms fall as the distance grows, also in floating point: a box bounds all its places.
    beyond = max(distance - radius, 0.0)
    return height / (1 + gamma * beyond) if linear else height - gamma * beyond


@numba.njit(cache=True, nogil=True)
def _transform(targets, sources, height, top, gamma, linear, radius):  # type: ignore[no-untyped-def]
    """Height (n,) and top (b,), its maximum over each block, in the order of `sources`."""
    largest = np.full(len(targets.points), -np.inf)
    bound = np.empty(len(top))
    for a in range(len(targets.low)):
        for b in range(len(top)):
            distance = _box_distance(targets.low[a], targets.high[a], sources.low[b], sources.high[b])
            bound[b] = _value(top[b], distance, gamma, linear, radius)
        block = largest[targets.start[a] : targets.start[a + 1]]
        # Best bound first: once a bound is below every maximum found so far, all later blocks are too.
        for b in np.argsort(-bound):
            if bound[b] <= block.min():
                break
            for i in range(targets.start[a], targets.start[a + 1]):
                point = targets.points[i]
                distance = _box_distance(point, point, sources.low[b], sources.high[b])
                best = largest[i]
                if _value(top[b], distance, gamma, linear, radius) <= best:
                    continue
                for j in range(sources.start[b], sources.start[b + 1]):
                    # A box of one point: the same operations as in the bound, so that the bound holds in the last bit.
                    distance = _box_distance(point, point, sources.points[j], sources.points[j])
                    best = max(best, _value(height[j], distance, gamma, linear, radius))
                largest[i] = best
    return largest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _chords(blocks, values, low, high, horizon):  # type: ignore[no-untyped-def]
    """Values (n,) in the order of `blocks`; low and high (b,), their extremes over each block."""
    points, start = blocks.points, blocks.start
    steepest = np.zeros(len(points))
    bound = np.empty(len(low))
    for a in range(len(low)):
        for b in range(len(low)):
            distance = _box_distance(blocks.low[a], blocks.high[a], blocks.low[b], blocks.high[b])
            drop = max(high[b] - low[a], high[a] - low[b])
            # Boxes that touch have distance 0 and an infinite bound, by error_model="numpy".
            bound[b] = 0.0 if distance > horizon or drop == 0 else drop / distance
        block = steepest[start[a] : start[a + 1]]
        for b in np.argsort(-bound):
            if bound[b] <= block.min():
                break
            for i in range(start[a], start[a + 1]):
                distance = _box_distance(points[i], points[i], blocks.low[b], blocks.high[b])
                drop = max(high[b] - values[i], values[i] - low[b])
                best = steepest[i]
                if distance > horizon or drop == 0 or drop / distance <= best:
                    continue
                for j in range(start[b], start[b + 1]):
                    distance = _box_distance(points[i], points[i], points[j], points[j])
                    if 0 < distance <= horizon:
                        best = max(best, abs(values[i] - values[j]) / distance)
                steepest[i] = best
    return steepest
