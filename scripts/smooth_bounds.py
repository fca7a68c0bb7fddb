r"""Smooth upper bounds with any growth function (Liang and Yi 2024, Definition 8), and a fast bound on large grids.

    S(x) = max over places x' of L(x') / g(d(x, x'))            g(0) = 1, g non-decreasing, g(a + b) <= g(a) g(b)

is the least S >= L with S(x) <= g(d(x, x')) S(x') for all places (Lemma 3.2). `md.release.least_smooth_bound` has it
for exponential and linear growth.

Levels t_0 > t_1 > ... are ln(1 + slack) apart, ln L is rounded up to a level, and A_k are the cells above t_{k+1}:

    ln S <= max over k of t_k - ln g(d(x, A_k)) <= ln S + ln(1 + slack)                                  (1)
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

Array = NDArray[np.float64]
GrowthFunction = Callable[[Array], Array]
SLACK = 0.029  # of the level-set bound
MARGIN = 1 + 2.0**-40  # factor on the level-set bound: rounding must not lower it below the smallest one
SAMPLES = 64  # distances at which a growth function is checked, with all pairs of them
ROUNDING = 1e-9  # relative error that a growth function may have


def least_bound(lipschitz: Array, distances: Array, growth: GrowthFunction) -> Array:
    """S (n,) for L (n,) and distances (n, n). Cost: n^2."""
    check_growth(growth, float(distances.max()))
    return (lipschitz / growth(distances)).max(axis=1)


def check_growth(growth: GrowthFunction, farthest: float) -> None:
    """Refuse a function that violates growth at 65 sampled distances up to `farthest`, and at their sums."""
    sample = np.concatenate([[0.0], farthest * np.geomspace(1e-6, 1.0, SAMPLES // 2)])
    sample = np.sort(np.concatenate([sample, farthest * np.arange(1, SAMPLES // 2 + 1) / (SAMPLES // 2 + 1)]))
    one, other = np.nonzero(sample[:, None] + sample <= farthest)
    value = np.asarray(growth(sample), float)
    total = np.asarray(growth(sample[one] + sample[other]), float)

    if value.shape != sample.shape or not (np.isfinite(value).all() and np.isfinite(total).all()):
        shapes = f"shape {value.shape} for {sample.shape}"
        raise InputError("must give one finite number per distance", field="growth", value=shapes)
    if abs(value[0] - 1) > ROUNDING:
        raise InputError("must be 1 at distance 0", field="growth", value=f"g(0) = {value[0]:.9g}")
    falls = np.flatnonzero(value[1:] < value[:-1] * (1 - ROUNDING))
    if len(falls):
        steps = f"g({sample[falls[0]]:.6g}) = {value[falls[0]]:.9g}, then {value[falls[0] + 1]:.9g}"
        raise InputError("must not decrease", field="growth", value=steps)
    over = np.flatnonzero(total > value[one] * value[other] * (1 + ROUNDING))
    if len(over):
        a, b = sample[one[over[0]]], sample[other[over[0]]]
        excess = f"g({a:.6g} + {b:.6g}) = {total[over[0]]:.9g}"
        raise InputError("must have g(a + b) <= g(a) g(b)", field="growth", value=excess)


def level_set_bound(domain: Domain, lipschitz: Array, growth: GrowthFunction) -> Array:
    """A smooth bound (n,) on a grid, at most (1 + SLACK) MARGIN^2 times the smallest one, L (n,) not all 0.

    Cost: a distance transform per level; at most ln g(longest distance) / SLACK levels.
    """
    from scipy.ndimage import distance_transform_edt

    with np.errstate(divide="ignore"):
        height = np.log(lipschitz / lipschitz.max())
    inside = domain.lookup >= 0
    step = math.log1p(SLACK)
    # The level k of a cell is the last one with -k step >= height, also where the division was rounded.
    level = np.floor(-np.maximum(height, -1e300) / step)
    level = np.where(-(level + 1) * step >= height, level + 1, np.where(-level * step < height, level - 1, level))
    bound = np.full(domain.size, -np.inf)
    for k in np.unique(level).tolist():
        # (1): levels below the smallest value of the bound add nothing.
        value = -k * step
        if value <= bound.min():
            break
        # Nor do cells that earlier levels have raised to this one, because the bound so far is smooth.
        rising = (level == k) & (bound < value)
        if not rising.any():
            continue
        outside = np.ones(inside.shape, bool)
        outside[inside] = ~rising
        distance = distance_transform_edt(outside, sampling=domain.cell)[inside]
        bound = np.maximum(bound, value - np.log(growth(distance)))
    return np.maximum(np.exp(bound) * lipschitz.max() * MARGIN, lipschitz)
