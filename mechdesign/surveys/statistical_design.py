r"""The mechanism designed for statistics: the least error of the distribution of secrets estimated from reports.

    (1)  minimise    tr(W I^-1) - pi^T W pi + c sum_y min_z sum_u pi(u) P(y|u) l(u, z)
         over        P (n, m), any number m of reports
         subject to  P >= 0,  sum_y P(y|u) = 1                  for every secret u
                     P(y|u) <= e^{d_e} P(y|v)                   for every edge e = (u, v), both ways, and report y
         where       I = sum_y P_y P_y^T / (P^T pi)_y

pi is the problem's prior. information.py derives the criterion, error_norm.py the errors W (default L^+). c >= 0 is a
price on the expected loss, each report read as its best place z. The program over
rays is (2), at `StatisticalDesign.statement`.
Source: Alvim et al. 2018; Kairouz, Oh and Viswanath 2016 for extreme rays; Pukelsheim, Optimal Design of Experiments.
Known: the identity attains the minimum over all mechanisms, tr(W diag(pi)) - pi^T W pi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.validation import check_whole
from mechdesign.errors import InputError, SizeError
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import Program
from mechdesign.surveys.error_norm import ErrorKind, check_kind, error_norm, root_of
from mechdesign.surveys.information import criterion
from mechdesign.surveys.source_sets import source_sets

if TYPE_CHECKING:
    import cvxpy as cp

LARGEST = 64  # secrets of a search for rays: one takes minutes at this size
LARGEST_ON_GRIDS = 1600  # secrets of a grid, whose rays are kernels of a few cells
FAR = 50.0  # nats; rays take longer distances for this, a stricter metric, so that no entry vanishes


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticalDesign(Program):
    """The mechanism with the least error of the distribution of secrets estimated from its reports.

    Its statement is in `mechdesign.surveys.statistical_design`.

    Parameters
    ----------
    problem, seed : DesignProblem, int
        With a prior without zeros; the seed of the search for rays.
    error : {"transport", "square", "areas"}
        See surveys/error_norm.py.
    areas : (n,) int array
        For "areas": the label of each secret, -1 for none.
    loss_weight : float
        The price of the expected loss, in units of the error per unit of loss.

    Examples
    --------
    >>> mechanism = md.solve(md.surveys.StatisticalDesign(md.load_problem("discrete", secrets=3)))
    >>> mechanism.attrs["program"]
    'statistical'
    """

    seed: int = 0
    error: ErrorKind = "transport"
    areas: ArrayLike | None = None
    loss_weight: float = 0.0
    name = "statistical"

    def __post_init__(self) -> None:
        n = self.problem.domain.size
        _check_size(self.problem)
        if not self.problem.prior_array.min() > 0:
            zeros = f"{(self.problem.prior_array == 0).sum()} zeros"
            remedy = "mix it with the uniform distribution"
            raise InputError("must be positive at every secret", field="prior", value=zeros, remedy=remedy)
        object.__setattr__(self, "areas", check_kind(self.error, self.areas, n))
        object.__setattr__(self, "seed", check_whole(self.seed, "seed", minimum=0))
        if not 0 <= self.loss_weight < math.inf:
            raise InputError("must be finite and not negative", field="loss_weight", value=self.loss_weight)
        object.__setattr__(self, "loss_weight", float(self.loss_weight))

    @property
    def objective_of(self) -> str:
        error = {
            "transport": "mean squared H^-1 error of the distribution",
            "square": "mean squared error of the distribution, summed over the secrets,",
            "areas": "mean squared error of the shares of areas, summed over the areas,",
        }[self.error]
        priced = f", plus {self.loss_weight:g} times the expected loss" if self.loss_weight else ""
        return f"N times the {error} estimated from N reports{priced}"

    @cached_property
    def norm(self) -> Matrix:
        """W (n, n), rows of sum 0; for transport in squared units of the domain."""
        return error_norm(self.problem, self.error, self._labels)

    @property
    def _labels(self) -> Indices | None:
        return None if self.areas is None else np.asarray(self.areas)

    @cached_property
    def rays(self) -> Matrix:
        """The rays v (n, k) to start from, with pi^T v = 1."""
        rays = kernel_rays(self.problem)
        return np.asarray(rays / (self.problem.prior_array @ rays))

    @property
    def offset(self) -> float:
        """The pi^T W pi of (2)."""
        return float(self.problem.prior_array @ self.norm @ self.problem.prior_array)

    @cached_property
    def prices(self) -> Matrix:
        """The price c pi(u) l(u, z) of reading a report as place z, (n, m)."""
        return np.asarray(self.loss_weight * self.problem.weighted_loss)

    def costs(self, rays: Matrix) -> Vector:
        """The loss times c of rays (n, k) with pi^T v = 1, each read as its best place: (k,)."""
        if not self.loss_weight:
            return np.zeros(rays.shape[1])
        return np.asarray((self.prices.T @ rays).min(axis=0))

    def objective(self, table: Matrix, loss: float) -> float:
        """The objective of a table (n, m) whose expected loss is `loss`: infinite where its rank is below n."""
        return criterion(table, self.problem.prior_array, self.norm) + self.loss_weight * loss

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        # (1) is not convex in P. With P_y = theta_y v_y, v_y in the cone {v >= 0, v(u) <= e^{d_e} v(v)} and pi^T v_y =
        # 1, q_y = theta_y and
        #
        #     (2)  minimise    tr(W I(theta)^-1) - pi^T W pi + cost^T theta,    I(theta) = sum_y theta_y v_y v_y^T
        #          over        theta >= 0, one weight per ray
        #          subject to  sum_y theta_y v_y = 1                      at every secret
        #
        # is an A-optimal experiment, convex in theta. It is exact once the rays include the extreme ones that are
        # needed, at most n (n + 1) / 2 + n. cost_y = c min_z sum_u pi(u) v_y(u) l(u, z).
        # (2), over `rays`.
        theta = cp.Variable(self.rays.shape[1], name="theta")
        information = self.rays @ cp.diag(theta) @ self.rays.T
        objective = cp.matrix_frac(root_of(self.norm), information) - self.offset + self.costs(self.rays) @ theta
        return cp.Problem(cp.Minimize(objective), [theta >= 0, self.rays @ theta == 1])

    def parameters(self) -> dict[str, Any]:
        # Defaults are left out: who rebuilds the program assumes them (solve_design.py).
        values: dict[str, Any] = {"seed": self.seed}
        if self.problem.domain.size <= LARGEST:
            values["starting_rays"] = self.rays.shape[1]
        if self.error != "transport":
            values["error"] = self.error
        if self._labels is not None:
            values["areas"] = self._labels.tolist()
        if self.loss_weight:
            values["loss_weight"] = float(self.loss_weight)
        return values


def _check_size(problem: DesignProblem) -> None:
    domain, n = problem.domain, problem.domain.size
    # On such grids the kernels of a torus serve (grid_design.py); its distances are at most those of the grid.
    flat = domain.kind == "grid" and domain.dimension <= 2 and isinstance(problem.metric, Euclidean)
    most = LARGEST_ON_GRIDS if flat else LARGEST
    if n > most:
        raise SizeError(
            f"a statistical design takes at most {LARGEST} secrets, and on a grid of one or two axes with a Euclidean "
            f"metric {LARGEST_ON_GRIDS:,}",
            field="cells",
            value=n,
            remedy="design for the expected loss and look at asymptotic_mse",
        )


def kernel_rays(problem: DesignProblem) -> Matrix:
    """The constant, and e^{-f_S} and e^{f_S} (n, k) for the `source_sets` S, f_S the distance to S; places first."""
    distances = np.minimum(problem.distances, FAR)
    levels = np.column_stack([distances[:, source].min(axis=1) for source in source_sets(problem)[:-1]])
    return np.exp(np.column_stack([np.zeros(len(distances)), -levels, levels - levels.max(axis=0)]))
