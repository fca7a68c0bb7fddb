r"""The mechanism designed for statistics: the least error of the distribution of secrets estimated from reports.

    minimise    tr(L^+ I^-1) - pi^T L^+ pi
    over        P (n, m), any number m of reports
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y
    where       I = sum_y P_y P_y^T / (P^T pi)_y

pi is the truth that the design expects, the problem's prior; programs/statistical/fisher_information.py derives the
criterion, and programs/statistical/dual_sobolev_norm.py has L^+. The loss of the problem plays no part.
In P the program is not convex. Written with rays it is: P_y = theta_y v_y with v_y in the cone
{v >= 0, v(u) <= e^{d_e} v(v)} and pi^T v_y = 1 has q_y = theta_y, so that

    minimise    tr(L^+ I(theta)^-1) - pi^T L^+ pi,    I(theta) = sum_y theta_y v_y v_y^T
    over        theta >= 0, one weight per ray
    subject to  sum_y theta_y v_y = 1                           at every secret

is an A-optimal experiment: convex in theta, and exact once the rays hold the extreme ones that are needed, of which
there are at most n (n + 1) / 2 + n. `statement` is this program over `rays`.
Source: background paper 001; Kairouz, Oh and Viswanath 2016 for extreme rays as reports under local privacy;
Pukelsheim, Optimal Design of Experiments, for A-optimality.
Known: a mechanism that tells the truth attains tr(L^+ diag(pi)) - pi^T L^+ pi, the criterion of the secrets themselves,
below which none gets; a larger multiple of the metric never does worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError, SizeError
from mechdesign.programs.eikonal.dictionary import source_sets
from mechdesign.programs.program import Program
from mechdesign.programs.statistical.dual_sobolev_norm import dual_sobolev_norm
from mechdesign.setting.problems.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp

LARGEST = 64  # secrets: minutes there
FAR = 50.0  # nats; rays take longer distances for this, a stricter metric, so that no entry vanishes
_OUTSIDE = 1e-9  # relative; a given ray may break the cone by this


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticalDesign(Program):
    """The statistical design of a problem; see the module docstring.

    given: rays (n, k) to start from, columns in the cone of the metric, at any scale; by default `kernel_rays`.
    seed: of the search for further rays, which makes it repeatable.
    Raises: SizeError beyond 64 secrets; InputError for a column that is not in the cone, or a prior with zeros.
    """

    given: ArrayLike | None = None
    seed: int = 0
    name = "statistical"
    objective_of = "N times the mean squared H^-1 error of the distribution estimated from N reports"

    def __post_init__(self) -> None:
        n = self.problem.domain.size
        if n > LARGEST:
            raise SizeError(
                f"a statistical design takes at most {LARGEST} secrets",
                field="cells",
                value=n,
                remedy="use fewer cells, or design for the expected loss and look at asymptotic_mse",
            )
        if not self.problem.prior_array.min() > 0:
            raise InputError(
                "must be positive at every secret: the design expects its distribution there",
                field="prior",
                value=f"{(self.problem.prior_array == 0).sum()} zeros",
                remedy="mix it with the uniform distribution",
            )
        if self.given is not None:
            rays = np.asarray(self.given, float)
            fits = rays.ndim == 2 and len(rays) == n and np.isfinite(rays).all() and (rays > 0).all()
            if not fits or excess(rays, self.problem.distances) > _OUTSIDE:
                raise InputError(
                    "must be columns of the privacy cone",
                    field="given",
                    value=rays.shape,
                    remedy="give positive columns (n, k) with v(u) <= e^d v(u') for all pairs",
                )

    @cached_property
    def norm(self) -> NDArray[np.float64]:
        """L^+ (n, n), in squared units of the domain."""
        return dual_sobolev_norm(self.problem.domain, self.problem.edges)

    @cached_property
    def rays(self) -> NDArray[np.float64]:
        """The rays v (n, k), in the cone, with pi^T v = 1."""
        rays = kernel_rays(self.problem) if self.given is None else np.asarray(self.given, float)
        return np.asarray(rays / (self.problem.prior_array @ rays))

    @property
    def offset(self) -> float:
        """pi^T L^+ pi, which the criterion takes off."""
        return float(self.problem.prior_array @ self.norm @ self.problem.prior_array)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        value, vector = np.linalg.eigh(self.norm)
        root = (vector * np.sqrt(np.maximum(value, 0.0)))[:, 1:]  # the first eigenvalue, of the constants, is 0
        theta = cp.Variable(self.rays.shape[1], name="theta")
        information = self.rays @ cp.diag(theta) @ self.rays.T
        objective = cp.matrix_frac(root, information) - self.offset
        return cp.Problem(cp.Minimize(objective), [theta >= 0, self.rays @ theta == 1])

    def parameters(self) -> dict[str, Any]:
        return {"seed": self.seed, "starting_rays": self.rays.shape[1]}


def kernel_rays(problem: DesignProblem) -> NDArray[np.float64]:
    """The constant, and e^{-f_S} and e^{f_S} for the `source_sets` S, f_S(u) the distance to S: (n, k), entries <= 1.

    The single places come first, and then they alone span all directions of most metrics.
    """
    distances = np.minimum(problem.distances, FAR)
    levels = np.column_stack([distances[:, source].min(axis=1) for source in source_sets(problem)[:-1]])
    return np.exp(np.column_stack([np.zeros(len(distances)), -levels, levels - levels.max(axis=0)]))


def excess(rays: NDArray[np.float64], distances: NDArray[np.float64]) -> float:
    """The largest v(u) / (e^{d(u, u')} v(u')) - 1 of columns v (n, k) over all pairs, in floating point."""
    logs = np.log(rays)
    rise = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    return float(np.expm1((rise - distances).max()))
