"""What columns at the cap add to losses: T(u) = sum over columns of W l(u, report), for all secrets at once.

Squared distances by three sums, distances apart by a sum less the weight that stays, and lengths by a convolution on a
lattice: exact but for rounding where the coordinates are evenly spaced, elsewhere between nodes, right to some 1e-5 of
T. Every column is at the cap with a share of e^-28 or so: no figure needs more.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from mechdesign.setting.objective.losses import LENGTH, SQUARE

_NODES = {1: 4096, 2: 1024, 3: 96}  # of an axis whose coordinates are not evenly spaced, by the number of axes
_MOST = 1 << 22  # nodes in all
_EVEN = 1e-6  # of a step

Vector = NDArray[np.float64]


def far_losses(secrets: Vector, reports: Vector, weight: NDArray[np.uint32], code: int) -> Vector:
    """T (n,) of the module docstring, for secrets (n, a), reports (c, a) and weight (c,); code of the loss.

    Cost: O(n + c), for lengths and losses of being apart times a logarithm.
    """
    centre = secrets.mean(axis=0)
    u, y, w = secrets - centre, reports - centre, weight.astype(float)
    if code == SQUARE:
        return np.asarray((u**2).sum(axis=1) * w.sum() - 2 * u @ (w @ y) + w @ (y**2).sum(axis=1))
    if code == LENGTH:
        return _lengths(u, y, w)
    _, place = np.unique(np.concatenate([secrets, reports]), axis=0, return_inverse=True)
    place = place.ravel()
    return np.asarray(w.sum() - np.bincount(place[len(u) :], w, len(place))[place[: len(u)]])


def _lengths(u: Vector, y: Vector, weight: Vector) -> Vector:
    """The weights are spread to the nodes around each report, and what the nodes add up is read between them."""
    from scipy.signal import fftconvolve  # half a second, of which most programs need nothing

    axes = u.shape[1]
    sides = [_side(np.concatenate([u[:, a], y[:, a]]), axes) for a in range(axes)]
    if np.prod([float(count) for _, _, count in sides]) > _MOST:
        sides = [(low, step * (count - 1) / (_NODES[axes] - 1), _NODES[axes]) for low, step, count in sides]
    shape = tuple(count for _, _, count in sides)
    spread = np.zeros(np.prod(shape))
    for node, share in _corners(y, sides):
        spread += np.bincount(np.ravel_multi_index(node, shape), weight * share, len(spread))
    offsets = [step * np.arange(1 - count, count) for _, step, count in sides]
    apart = np.sqrt(np.sum(np.square(np.meshgrid(*offsets, indexing="ij")), axis=0))
    found = fftconvolve(apart, spread.reshape(shape), mode="valid")
    total = np.zeros(len(u))
    for node, share in _corners(u, sides):
        total += share * found[node]
    return total


def _side(values: Vector, axes: int) -> tuple[float, float, int]:
    """The low end, the step and the number of nodes of an axis."""
    nodes = np.unique(values)
    low, span = float(nodes[0]), float(nodes[-1] - nodes[0])
    step = span / max(len(nodes) - 1, 1)
    if step == 0:
        return low, 1.0, 1
    even = np.abs(nodes - low - step * np.arange(len(nodes))).max() <= _EVEN * step
    count = len(nodes) if even else _NODES[axes]
    return low, span / (count - 1), count


def _corners(
    points: Vector, sides: list[tuple[float, float, int]]
) -> list[tuple[tuple[NDArray[np.int64], ...], Vector]]:
    """The nodes around each point, and its shares of them."""
    at = []
    for values, (low, step, count) in zip(points.T, sides, strict=True):
        position = np.clip((values - low) / step, 0.0, count - 1)
        node = np.minimum(position.astype(np.int64), max(count - 2, 0))
        at.append([(node, 1 - position + node), (np.minimum(node + 1, count - 1), position - node)])
    return [
        (tuple(node for node, _ in chosen), np.prod([share for _, share in chosen], axis=0))
        for chosen in itertools.product(*at)
    ]
