r"""Priors that explain reported epsilons: feasibility and ranges by linear programs, the nearest one by its dual.

With B (k + 1, n) the rows of ones and of a_k / distance, the program is: minimise n |p|^2 - 1 subject to B p = 1 and
p >= 0.
Its dual maximises the concave, once differentiable function

    g(z) = sum z - (1 / 4n) |max(0, B' z)|^2 - 1,      p = max(0, B' z) / 2n at the optimum,

over k + 1 numbers: Newton's method with the Hessian of the places where B' z > 0, and step halving. g bounds the
distance from below whatever z is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import InfeasibleError, SolverError
from mechdesign.programs.matching.explaining_prior import ExplainingPrior
from mechdesign.programs.matching.matched_distance import Family
from mechdesign.solvers.kernels.highs import solve_linear_program

RESIDUAL = 1e-12  # of sum prior and of the expected distances, relative, at which the dual has converged
_ITERATIONS = 200
_HALVINGS = 60
_RIDGE = 1e-14  # of the trace of the Hessian: keeps it invertible where few places are positive


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation(Shown):
    """prior (n,), sums to 1; chi_square, its distance to uniform; lower_bound, below which no such prior is."""

    prior: NDArray[np.float64]
    chi_square: float
    lower_bound: float


@asked
def explain(program: ExplainingPrior) -> Explanation:
    """The prior nearest to uniform that explains the reported epsilons.

    Raises: InfeasibleError where no prior does; SolverError where the dual does not converge, which happens where the
    only such priors sit on a few secrets.
    """
    _least(program, np.zeros(program.problem.domain.size))
    rows = program.linear_program(np.zeros(program.problem.domain.size)).matrix.toarray()
    k, n = rows.shape
    z = np.zeros(k)
    z[0] = 2.0
    for _ in range(_ITERATIONS):
        prior = np.maximum(0.0, rows.T @ z) / (2 * n)
        slope = 1 - rows @ prior
        if abs(slope).max() <= RESIDUAL:
            return Explanation(prior=prior, chi_square=program.chi_square(prior), lower_bound=_dual(rows, z))
        active = rows[:, prior > 0]
        hessian = active @ active.T / (2 * n)
        step = np.linalg.solve(hessian + _RIDGE * (np.trace(hessian) + 1 / n) * np.eye(k), slope)
        size = next((0.5**h for h in range(_HALVINGS) if _dual(rows, z + 0.5**h * step) > _dual(rows, z)), None)
        z = z + step * (1.0 if size is None else size)
    raise SolverError(
        "the dual of the nearest prior did not converge",
        field="reported",
        value=f"residual {abs(slope).max():.3g}",
        remedy="ask for fewer epsilons at once, or for their ranges",
    )


@asked
def distance_range(program: ExplainingPrior, family: str | Family, epsilon: float) -> tuple[float, float]:
    """The least and the largest expected distance (units) of a mechanism over the priors that explain the others.

    Raises: InfeasibleError where no prior explains them.
    """
    profile = program.profile(family, epsilon)
    return _least(program, profile), -_least(program, -profile)


def _least(program: ExplainingPrior, cost: NDArray[np.float64]) -> float:
    scale = float(abs(cost).max()) or 1.0
    solution = solve_linear_program(program.linear_program(cost / scale))
    if solution.status != "Optimal":
        raise InfeasibleError(
            f"no prior gives these mechanisms an expected distance of {program.distance:.9g}",
            field="reported",
            value=", ".join(
                f"{family if isinstance(family, str) else family.name} {e}" for family, e in program.reported
            ),
            remedy="leave one out, and look at its range under the others",
        )
    return solution.objective * scale


def _dual(rows: NDArray[np.float64], z: NDArray[np.float64]) -> float:
    return float(z.sum() - (np.maximum(0.0, rows.T @ z) ** 2).sum() / (4 * rows.shape[1]) - 1)
