r"""The least smooth upper bound of pointwise Lipschitz constants on finitely many places.

    minimise    sum_x S(x)
    over        S (n,)
    subject to  S(x) >= L(x)                                    for every place x
                S(x) <= g(d(x, x')) S(x')                       for all ordered pairs of places

Source: Liang & Yi 2024, Definition 8 and Lemma 3.2: the bounds are closed under minima, so the least one minimises
every sum with positive weights.
Known: the solution is the max-plus transform S(x) = max over x' of L(x') / g(d(x, x')).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.errors import InputError
from mechdesign.release.growth import Growth

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothSensitivity(FrozenRecord):
    """The program of the least smooth bound, as `mechdesign.release.program` states it.

    Parameters
    ----------
    lipschitz, distances : (n,) and symmetric (n, n) arrays
        L per unit of distance, not negative, not all 0; distances in that unit or in nats.
    growth : Growth
        With gamma per unit of `distances`.

    Examples
    --------
    >>> from mechdesign.release.growth import Growth
    >>> given = {"lipschitz": np.array([0.0, 1.0]), "distances": np.array([[0.0, 1.0], [1.0, 0.0]])}
    >>> md.release.SmoothSensitivity(**given, growth=Growth(name="linear", gamma=1.0)).statement().is_dcp()
    True
    """

    lipschitz: Vector
    distances: Matrix
    growth: Growth

    def __post_init__(self) -> None:
        n = len(self.lipschitz)
        if self.distances.shape != (n, n):
            raise InputError(f"must have shape ({n}, {n})", field="distances", value=self.distances.shape)
        if not (np.isfinite(self.lipschitz).all() and self.lipschitz.min() >= 0 and self.lipschitz.max() > 0):
            ends = f"{self.lipschitz.min()} to {self.lipschitz.max()}"
            raise InputError("must be finite, not negative, and positive somewhere", field="lipschitz", value=ends)

    def statement(self) -> cp.Problem:
        """The program in S."""
        import cvxpy as cp

        bound = cp.Variable(len(self.lipschitz), name="S")
        # All ordered pairs: those of neighbours imply the rest only for exponential g and their shortest-path distance.
        first, second = np.nonzero(~np.eye(len(self.lipschitz), dtype=bool))
        # sqrt(g) stands on either side of a constraint, so that coefficients stay near 1.
        half = np.exp(self.growth.log(self.distances[first, second]) / 2)
        smooth = cp.multiply(1 / half, bound[first]) <= cp.multiply(half, bound[second])
        return cp.Problem(cp.Minimize(cp.sum(bound)), [bound >= self.lipschitz, smooth])
