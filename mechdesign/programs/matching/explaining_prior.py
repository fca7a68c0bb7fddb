r"""The prior nearest to uniform under which reported epsilons all have one expected distance.

    minimise    n sum_u (prior(u) - 1/n)^2                      the chi-square distance to the uniform prior
    over        prior (n,)
    subject to  prior >= 0,  sum_u prior(u) = 1
                sum_u prior(u) a_k(u) = distance                for every reported (family, eps), k = 1, 2, ...

a_k(u) = sum_y P_k(y|u) |u - y|, the expected distance from secret u. The set of such priors is a polytope: the expected
distance of another mechanism over it fills an interval, whose ends are two linear programs.
Source: paper 001 prints three eps at one expected distance (section VI) under the prior of a sample that it does not
print: which priors explain them is the reverse of its equation (2).
Known: for randomized response over K secrets a(u) = sum_y |u - y| / (K - 1 + e^eps), so that it fixes the mean distance
to a uniform report and nothing else of the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.checks import check_epsilon
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.programs.matching.matched_distance import Family, distance_table, family_of
from mechdesign.programs.program import LinearProgram
from mechdesign.setting.objective.losses import check_distance
from mechdesign.setting.problems.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp

Reported = tuple[str | Family, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainingPrior(Shown):
    """The program for the secrets of a problem (its own prior takes no part); see the module docstring.

    Fields: reported, pairs of a family and its eps (nats, or nats per unit); distance, expected, in units.
    Raises: InputError for no pair, an unknown family, an eps or a distance that is not positive.
    """

    problem: DesignProblem
    reported: Sequence[Reported]
    distance: float

    def __post_init__(self) -> None:
        check_distance(self.distance)
        if not self.reported:
            raise InputError("needs a pair", field="reported", value="none", remedy="give (family, eps)")
        for family, epsilon in self.reported:
            family_of(family)
            check_epsilon(epsilon, "reported")

    @cached_property
    def profiles(self) -> NDArray[np.float64]:
        """a_k(u) in units, (k, n)."""
        return np.stack([self.profile(family, epsilon) for family, epsilon in self.reported])

    def profile(self, family: str | Family, epsilon: float) -> NDArray[np.float64]:
        """sum_y P(y|u) |u - y| in units for every secret, (n,)."""
        table = family_of(family).table(self.problem, check_epsilon(epsilon, "reported"))
        return np.einsum("uy,uy->u", table, distance_table(self.problem))

    def chi_square(self, prior: NDArray[np.float64]) -> float:
        """The chi-square distance of `prior` (n,) to the uniform prior: 0 for uniform, n - 1 for certainty."""
        return float(len(prior) * ((prior - 1 / len(prior)) ** 2).sum())

    def statement(self) -> cp.Problem:
        """The quadratic program in cvxpy."""
        import cvxpy as cp

        n = self.problem.domain.size
        prior = cp.Variable(n, name="prior")
        return cp.Problem(cp.Minimize(n * cp.sum_squares(prior - 1 / n)), self._feasible(prior))

    def range_statement(self, family: str | Family, epsilon: float) -> tuple[cp.Problem, cp.Problem]:
        """The least and the largest expected distance of another mechanism over all such priors, in cvxpy."""
        import cvxpy as cp

        prior = cp.Variable(self.problem.domain.size, name="prior")
        value = self.profile(family, epsilon) @ prior
        return cp.Problem(cp.Minimize(value), self._feasible(prior)), cp.Problem(
            cp.Maximize(value), self._feasible(prior)
        )

    def linear_program(self, cost: NDArray[np.float64]) -> LinearProgram:
        """Minimise sum_u cost(u) prior(u), (n,), over all such priors; distances relative to the one asked for."""
        matrix = np.vstack([np.ones(self.problem.domain.size), self.profiles / self.distance])
        one = np.ones(len(matrix))
        return LinearProgram(cost=cost, matrix=sp.csr_array(matrix), row_lower=one, row_upper=one, linking=len(matrix))

    def _feasible(self, prior: cp.Variable) -> list[cp.Constraint]:
        import cvxpy as cp

        return [prior >= 0, cp.sum(prior) == 1, self.profiles / self.distance @ prior == 1]
