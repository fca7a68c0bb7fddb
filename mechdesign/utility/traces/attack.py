"""Whether homes are found from what was released over weeks, and the odds that bound any attack.

Three attacks on the released positions and reports, each names one point a person: the mean of the positions of the
nights, their mode, and the place where the filter believes the home to be, by least expected distance and by highest
probability, the better of the two. None is the best possible; the bound holds for all: over D days at C nats within a
radius r, the odds of two homes d apart change by a factor of at most e^{D C d / r}, as long as nothing else of the two
traces is farther apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechdesign.utility.traces.fit import nights
from mechdesign.utility.traces.setting import Released, Setting

ATTACKS = ("mean", "mode", "filter")


def homes_found(
    setting: Setting, released: Released, homes: NDArray[np.float64], *, within: float | None = None
) -> dict[str, float]:
    """The share of people whose home (people, 2) an attack names to `within`, by default the radius of the setting.

    "filter" is left out where no filter ran.
    """
    points, radius = setting.domain.points, setting.within if within is None else within
    days = released.estimates.shape[1] // setting.ticks
    dark = released.estimates[:, np.tile(nights(setting.ticks), days)]
    modes = [np.bincount(own, minlength=len(points)).argmax() for own in dark]
    guesses = {"mean": [points[dark].mean(axis=1)], "mode": [points[modes]]}
    if released.home is not None:
        best, _ = setting.estimate(released.home)
        guesses["filter"] = [points[best], points[released.home.argmax(axis=1)]]
    near = {name: [np.linalg.norm(guess - homes, axis=1) <= radius for guess in both] for name, both in guesses.items()}
    return {name: float(max(found.mean() for found in both)) for name, both in near.items()}
