r"""Growth: how fast a smooth upper bound may change with distance.

    B(x) <= g(d(x, x')) B(x')                                   for all x, x'

with g(0) = 1, g non-decreasing and g(a + b) <= g(a) g(b). Two are named: exponential, g(d) = e^{gamma d}, which the
pure mechanisms take, and linear, g(d) = 1 + gamma d, which the approximate one takes; the least bound for exponential
growth is none for linear growth. gamma is per unit of the distance that g is given.
Source: Liang & Yi 2024, section 3.1.2 and Definition 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import positive
from mechdesign.errors import InputError

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]
NAMED = ("exponential", "linear")
_SAMPLES = 64  # distances at which a given g is checked, and all pairs of them
_ROUNDING = 1e-9  # relative; a given g may be rounded this much


@dataclass(frozen=True, kw_only=True, eq=False)
class Growth(ReprMixin):
    """g; name is exponential, linear or given; gamma per unit of distance, nan for a given function.

    `log(d)` is ln g(d) for distances of any shape. Make one with `growth_of`.
    """

    name: str
    gamma: float
    log: Function = field(repr=False)


def growth_of(growth: str | Function, gamma: float | None, *, reach: float = 1.0) -> Growth:
    """The growth of a name and gamma > 0 (per unit of distance), or of a function g of distances.

    A function takes an array of distances and is checked at 65 of them up to `reach`, the largest distance that is
    asked for, and at all their sums within it.
    Raises: InputError for an unknown name, gamma not positive and finite, and for a function that is not 1 at 0,
    decreases, or is not submultiplicative.
    """
    if callable(growth):
        if gamma is not None:
            raise InputError("belongs to a named growth, not to a function", field="gamma", value=gamma)
        _check_function(growth, reach)
        function = growth
        return Growth(name="given", gamma=float("nan"), log=lambda d: np.log(function(d)))
    if growth not in NAMED:
        raise InputError("must be exponential, linear or a function of distances", field="growth", value=growth)
    level = positive(gamma, "gamma")
    if growth == "exponential":
        return Growth(name=growth, gamma=level, log=lambda d: level * d)
    return Growth(name=growth, gamma=level, log=lambda d: np.log1p(level * d))


def _check_function(growth: Function, reach: float) -> None:
    """Refuse what is no growth function at the sampled distances."""
    sample = np.concatenate([[0.0], reach * np.geomspace(1e-6, 1.0, _SAMPLES // 2)])
    sample = np.sort(np.concatenate([sample, reach * np.arange(1, _SAMPLES // 2 + 1) / (_SAMPLES // 2 + 1)]))
    one, other = np.nonzero(sample[:, None] + sample <= reach)
    value = np.asarray(growth(sample), float)
    total = np.asarray(growth(sample[one] + sample[other]), float)

    if value.shape != sample.shape or not (np.isfinite(value).all() and np.isfinite(total).all()):
        shapes = f"shape {value.shape} for {sample.shape}"
        raise InputError("must give one finite number per distance", field="growth", value=shapes)
    if abs(value[0] - 1) > _ROUNDING:
        raise InputError("must be 1 at distance 0", field="growth", value=f"g(0) = {value[0]:.9g}")
    falls = np.flatnonzero(value[1:] < value[:-1] * (1 - _ROUNDING))
    if len(falls):
        steps = f"g({sample[falls[0]]:.6g}) = {value[falls[0]]:.9g}, then {value[falls[0] + 1]:.9g}"
        raise InputError("must not decrease", field="growth", value=steps)
    over = np.flatnonzero(total > value[one] * value[other] * (1 + _ROUNDING))
    if len(over):
        a, b = sample[one[over[0]]], sample[other[over[0]]]
        excess = f"g({a:.6g} + {b:.6g}) = {total[over[0]]:.9g}"
        raise InputError("must have g(a + b) <= g(a) g(b)", field="growth", value=excess)
