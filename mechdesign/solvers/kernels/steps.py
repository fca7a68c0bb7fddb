"""How far a Newton step of an interior-point method may go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def longest_step(x: NDArray[np.float64], step: NDArray[np.float64]) -> float:
    """The largest a <= 1 with x + a step >= 0, for x > 0."""
    worst = float((-step / x).max())
    return min(1.0, 1.0 / worst) if worst > 0 else 1.0
