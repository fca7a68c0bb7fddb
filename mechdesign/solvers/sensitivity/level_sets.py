r"""Smooth upper bounds on a grid from the distances to level sets: above the least one, by a known factor at most.

Levels t_0 > t_1 > ... are ln(1 + slack) apart, and ln L is rounded up to a level. With A_k the cells above t_{k+1},

    ln S <= max over k of t_k - ln g(d(x, A_k)) <= ln S + ln(1 + slack)

One Euclidean distance transform per level gives it, for either growth. A cell that the levels so far have raised to t_k
adds nothing, since the bound so far is smooth; nor do levels under the least value of the bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.closed_forms.sensitivity.growth import Growth
from mechdesign.setting.space.domain import Domain


def level_set_bound(
    domain: Domain, height: NDArray[np.float64], growth: Growth, slack: float = 0.03
) -> NDArray[np.float64]:
    """An upper bound (n,) of ln S on a grid, at most ln(1 + slack) above it; height (n,) = ln L, -inf where L is 0.

    Cost: a distance transform per level, about 5 ms on 40,000 cells; at most ln g(longest distance) / slack levels.
    """
    from scipy.ndimage import distance_transform_edt

    assert domain.cell is not None
    inside = domain.lookup >= 0
    step, top = math.log1p(slack), float(height.max())
    level = np.floor((top - np.maximum(height, -1e300)) / step)
    level = np.where(
        top - (level + 1) * step >= height, level + 1, np.where(top - level * step < height, level - 1, level)
    )
    bound = np.full(domain.size, -np.inf)
    for k in np.unique(level).tolist():
        value = top - k * step
        if value <= bound.min():
            break
        rising = (level == k) & (bound < value)
        if not rising.any():
            continue
        away = np.ones(inside.shape, bool)
        away[inside] = ~rising
        distance = distance_transform_edt(away, sampling=domain.cell)[inside]
        bound = np.maximum(bound, value - growth.log(distance))
    return bound
