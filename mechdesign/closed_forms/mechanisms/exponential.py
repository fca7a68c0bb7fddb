"""The exponential mechanism of a metric: P(y|u) proportional to e^{-d(u, y) / 2}, rows normalised.

Halving d pays for the row sums: ratios are at most e^{d/2} e^{d/2}, so it is d-private on any metric space
(McSherry and Talwar 2007; libqif's `exponential`).
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism
from mechdesign.setting.problems.problem import DesignProblem


@asked
def mechanism(problem: DesignProblem) -> xr.Dataset:
    """The exponential mechanism of the problem's metric; reports are reached through the secret they stand for."""
    return closed_form_mechanism(
        problem, table(problem), name="exponential", claimed_epsilon=problem.metric.smallest_level
    )


def table(problem: DesignProblem) -> NDArray[np.float64]:
    """e^{-d/2} with each row divided by its sum, (n, m)."""
    weight = np.exp(-problem.distances[:, problem.anchors] / 2)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
