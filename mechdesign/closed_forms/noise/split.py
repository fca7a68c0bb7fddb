"""How a privacy level is split between the smoothness of the bound and the noise: the gamma with the least noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mechdesign.base.checks import check_epsilon
from mechdesign.base.display import Shown
from mechdesign.closed_forms.noise.smooth import SmoothLaw
from mechdesign.errors import InputError

_GRID = 64  # smoothness levels that are tried before the best one is refined


@dataclass(frozen=True, kw_only=True)
class Split(Shown):
    """A budget split: gamma and eta per unit of distance, scale = S(gamma) / eta in the unit of f."""

    gamma: float
    eta: float
    scale: float


def best_split(
    law: SmoothLaw, epsilon: float, tight: bool = True, *, sensitivity: Callable[[float], float] | None = None
) -> Split:
    """The smoothness gamma with the smallest noise S(gamma) / eta(epsilon, gamma), hence the smallest noise variance.

    sensitivity: S as a function of gamma in [0, epsilon / c), positive: the smooth sensitivity at a secret, or its root
    mean square under a prior, which minimises the expected variance; inf is allowed. By default S is 1 at every gamma:
    then gamma = 0, and the scale is relative to S.
    How: 64 levels of gamma, the best one refined by bounded scalar minimisation between its neighbours.
    Raises: InputError for a sensitivity that is not positive, or infinite everywhere.
    """
    from scipy.optimize import minimize_scalar

    limit = check_epsilon(epsilon) / law.scale_rate

    def scale(gamma: float) -> float:
        given = 1.0 if sensitivity is None else float(sensitivity(gamma))
        if not given > 0:
            raise InputError("must be positive", field="sensitivity", value=given, remedy="give S(gamma) > 0")
        return given / law.eta(epsilon, gamma, tight)

    levels = limit * np.arange(_GRID) / _GRID
    tried = [scale(float(gamma)) for gamma in levels]
    best = int(np.argmin(tried))
    if not math.isfinite(tried[best]):
        raise InputError(
            "is infinite at every gamma", field="sensitivity", value=math.inf, remedy="give a finite S(gamma)"
        )
    chosen = float(levels[best])
    found = minimize_scalar(
        scale,
        bounds=(levels[max(best - 1, 0)], levels[best] + limit / _GRID * (1 - 1e-9)),
        method="bounded",
        options={"xatol": 1e-10 * limit},
    )
    if found.fun < tried[best]:
        chosen = float(found.x)
    return Split(gamma=chosen, eta=law.eta(epsilon, chosen, tight), scale=scale(chosen))
