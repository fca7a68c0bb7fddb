"""Second opinions on Kantorovich distances: the transport program and its dual in cvxpy, and POT's network simplex."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import ot
from numpy.typing import NDArray


def pot(p: NDArray[np.float64], q: NDArray[np.float64], distance: NDArray[np.float64]) -> float:
    """POT's value of the whole program, all places (n,) and not only those with an excess."""
    return float(ot.emd2(p / p.sum(), q / q.sum(), distance, numItermax=10**7))


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """The transport program of supply (r,), demand (c,) and cost (r, c); see the module docstring.

    supply and demand are >= 0 and have one sum, in any unit of mass; cost is >= 0, in a unit of length.
    """

    supply: NDArray[np.float64]
    demand: NDArray[np.float64]
    cost: NDArray[np.float64]

    def statement(self) -> cp.Problem:
        """The program on the left, in mass times length; its first variable is the plan (r, c)."""
        plan = cp.Variable(self.cost.shape, name="plan")
        constraints = [plan >= 0, cp.sum(plan, axis=1) == self.supply, cp.sum(plan, axis=0) == self.demand]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(self.cost, plan))), constraints)

    def dual(self) -> cp.Problem:
        """The program on the right, with v(0) = 0, which loses nothing where the sums agree."""
        rows, columns = self.cost.shape
        u, v = cp.Variable((rows, 1), name="u"), cp.Variable((1, columns), name="v")
        difference = u @ np.ones((1, columns)) - np.ones((rows, 1)) @ v
        value = self.supply @ u[:, 0] - v[0] @ self.demand
        return cp.Problem(cp.Maximize(value), [difference <= self.cost, v[0, 0] == 0])
