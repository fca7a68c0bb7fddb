r"""The least smooth upper bound of pointwise Lipschitz constants on finitely many places.

    minimise    sum_x S(x)
    over        S (n,)
    subject to  S(x) >= L(x)                                    for every place x
                S(x) <= g(d(x, x')) S(x')                       for all ordered pairs of places

Source: paper 002, Definition 8 and Lemma 3.2: the bounds are closed under minima, so the least one minimises every sum
with positive weights. In s = ln S the constraints are differences, s(x) - s(x') <= ln g(d(x, x')), and the multipliers
of the solution are flows along shortest paths.
Known: the solution is the max-plus transform S(x) = max over x' of L(x') / g(d(x, x')). Neighbouring pairs imply all
only where g is exponential and d the shortest-path distance of the neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.closed_forms.sensitivity.growth import Growth
from mechdesign.errors import InputError
from mechdesign.programs.program import LinearProgram

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothSensitivity(Shown):
    """The program of the module docstring: lipschitz (n,), L per unit of distance, not negative, not all 0; distances
    (n, n), symmetric, in that unit or in nats; growth, with gamma per unit of `distances`.

    Raises: InputError for other shapes or values.
    """

    lipschitz: NDArray[np.float64]
    distances: NDArray[np.float64]
    growth: Growth

    def __post_init__(self) -> None:
        n = len(self.lipschitz)
        if self.distances.shape != (n, n):
            raise InputError(
                f"must have shape ({n}, {n})",
                field="distances",
                value=self.distances.shape,
                remedy="pass one distance per pair of places",
            )
        if not (np.isfinite(self.lipschitz).all() and self.lipschitz.min() >= 0 and self.lipschitz.max() > 0):
            raise InputError(
                "must be finite, not negative, and positive somewhere",
                field="lipschitz",
                value=f"{self.lipschitz.min()} to {self.lipschitz.max()}",
                remedy="a constant query needs no noise; otherwise pass pointwise Lipschitz constants",
            )

    @property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All ordered pairs (x, x') of distinct places, each (n (n - 1),)."""
        first, second = np.nonzero(~np.eye(len(self.lipschitz), dtype=bool))
        return first, second

    @property
    def floor(self) -> NDArray[np.float64]:
        """Lower bounds (n,) of ln S that hold for every solution: ln L, and what the largest L asks for anywhere."""
        top = int(np.argmax(self.lipschitz))
        with np.errstate(divide="ignore"):
            own = np.log(self.lipschitz)
        return np.maximum(own, own[top] - self.growth.log(self.distances[:, top]))

    def statement(self) -> cp.Problem:
        """The program in S, with sqrt(g) on either side of a constraint, so that coefficients stay near 1."""
        import cvxpy as cp

        bound = cp.Variable(len(self.lipschitz), name="S")
        first, second = self.pairs
        half = np.exp(self.growth.log(self.distances[first, second]) / 2)
        smooth = cp.multiply(1 / half, bound[first]) <= cp.multiply(half, bound[second])
        return cp.Problem(cp.Minimize(cp.sum(bound)), [bound >= self.lipschitz, smooth])

    def logarithmic_statement(self) -> cp.Problem:
        """The same set in s = ln S, as difference constraints; minimises sum_x s(x), which has the same solution."""
        import cvxpy as cp

        bound = cp.Variable(len(self.lipschitz), name="s")
        first, second = self.pairs
        smooth = bound[first] - bound[second] <= self.growth.log(self.distances[first, second])
        return cp.Problem(cp.Minimize(cp.sum(bound)), [bound >= self.floor, smooth])

    def linear_program(self) -> LinearProgram:
        """`logarithmic_statement` in z = s - floor >= 0: n columns, n (n - 1) rows with two entries each."""
        first, second = self.pairs
        rows = np.arange(len(first))
        entries = np.concatenate([np.ones(len(first)), -np.ones(len(first))])
        where = (np.concatenate([rows, rows]), np.concatenate([first, second]))
        n = len(self.lipschitz)
        return LinearProgram(
            cost=np.ones(n),
            matrix=sp.csr_array((entries, where), shape=(len(first), n)),
            row_lower=np.full(len(first), -np.inf),
            row_upper=self.growth.log(self.distances[first, second]) - self.floor[first] + self.floor[second],
            linking=0,
        )
