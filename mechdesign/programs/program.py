"""Program: a constrained program over the tables of a design problem, stated and assembled but never solved here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.setting.problems.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProgram:
    """minimise cost x subject to row_lower <= matrix x <= row_upper, x >= 0.

    The first `linking` rows are the row sums of the mechanism; their multipliers are the dual of the design.
    """

    cost: NDArray[np.float64]
    matrix: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    linking: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Program(Shown, ABC):
    """What is asked of a design problem. Subclasses are final; their module docstring states the program."""

    problem: DesignProblem = field(kw_only=False)
    name: ClassVar[str]

    @abstractmethod
    def statement(self) -> cp.Problem:
        """The program in cvxpy (DCP): the readable truth, and the oracle of the tests on small cases."""

    def parameters(self) -> dict[str, Any]:
        """Parameters of the program that a file keeps."""
        return {}


def simplex(table: cp.Variable) -> list[cp.Constraint]:
    """Rows of `table` (n, m) are probability distributions: table >= 0, sum over reports = 1."""
    import cvxpy as cp

    return [table >= 0, cp.sum(table, axis=1) == 1]


def lipschitz(table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
    """table(u, y) <= e^{d(u, v)} table(v, y) for every report y and every edge (u, v), both ways.

    Written with e^{-d/2} and e^{d/2} on the two sides, so that coefficients stay near 1.
    """
    tail, head, length = problem.edges.both_ways()
    half = np.exp(length / 2)
    n, e = problem.domain.size, len(tail)
    rows = np.arange(e)
    left = sp.csr_array((1 / half, (rows, tail)), shape=(e, n))
    right = sp.csr_array((half, (rows, head)), shape=(e, n))
    return [left @ table <= right @ table]


def expected_loss(table: cp.Variable, problem: DesignProblem) -> cp.Expression:
    """Sum over u, y of prior(u) table(u, y) loss(u, y)."""
    import cvxpy as cp

    return cp.sum(cp.multiply(problem.weighted_loss, table))
