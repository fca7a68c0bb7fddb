r"""Growth: how fast a smooth upper bound may change with distance.

    B(x) <= g(d(x, x')) B(x')  for all x, x',    g(d) = e^{gamma d} (exponential) or 1 + gamma d (linear)

Pure mechanisms take exponential growth, the approximate one linear growth. gamma is per unit of d.
Source: Liang & Yi 2024, section 3.1.2 and Definition 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mechdesign.base.arrays import Floats
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import check_positive
from mechdesign.errors import InputError

GrowthName = Literal["exponential", "linear"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Growth(FrozenRecord):
    """g, by its name and gamma > 0 per unit of distance."""

    # Linear growth is the stricter one: a bound that is smooth for exponential growth may not be for linear growth.
    name: GrowthName
    gamma: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in get_args(GrowthName):
            raise InputError("must be exponential or linear", field="growth", value=self.name)
        object.__setattr__(self, "gamma", check_positive(self.gamma, "gamma"))

    def log(self, distance: Floats) -> Floats:
        """The logarithm of g, for distances of any shape."""
        if self.name == "exponential":
            return self.gamma * distance
        return np.log1p(self.gamma * distance)
