r"""The eikonal weight system (Algorithm 1).

    find        w (n)                    (if several exist: minimise sum_y w(y) sum_u prior(u) K(u, y) l(u, y))
    subject to  w >= 0,  K w = 1         with K(u, y) = e^{-f_y(u)}, f_y(u) = d(u, y)                   (1)
    then        P(y|u) = w(y) K(u, y)                                                                   (2)

f_y solves |grad f_y| = eps, f_y(y) = 0; here f_y is a distance of the metric, or a fast-marching field made
1-Lipschitz.
Source: Koufogiannis & Pappas 2016, Algorithm 1 and Theorem 6; Koufogiannis 2017, Algorithm 3; libqif's
`tight_constraints` is the same system. Known: constant eps on a bounded line gives w = tanh(eps h / 2) inside and
1 / (1 + e^{-eps h}) at the ends. On large grids the mechanism tends to the Laplace mechanism. K is square and
nonsingular, so one negative weight means that the system has no solution with these columns. Two causes are known: the
boundary (small eps h at the edge), and the curvature of the metric (curvature.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mechdesign.base.arrays import Matrix
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.fast_marching import fast_marching_kernel
from mechdesign.problem.metrics import Eikonal
from mechdesign.programs.program import Program

if TYPE_CHECKING:
    import cvxpy as cp

Distances = Literal["graph", "fast-marching"]


@dataclass(frozen=True, kw_only=True, eq=False)
class EikonalWeights(Program):
    """The weight system of a design problem whose reports are its secrets; see `mechdesign.programs.eikonal`.

    Parameters
    ----------
    problem : DesignProblem
    distances : {"graph", "fast-marching"}
        "graph", shortest paths of the metric (symmetric, exactly 1-Lipschitz), or "fast-marching" by scikit-fmm
        followed by the Lipschitz minorant (grids of two axes with an eikonal metric).

    Examples
    --------
    >>> mechanism = md.solve(md.EikonalWeights(md.load_problem("line", cells=4)))
    >>> mechanism.attrs["program"]
    'eikonal'
    """

    distances: Distances = "graph"
    name = "eikonal"

    def __post_init__(self) -> None:
        if self.problem.reports is not self.problem.domain:
            # (1) has one equation a secret and one weight a report: K must be square.
            raise UnsuitableError("the weight system needs reports = secrets", field="reports")
        if self.distances not in ("graph", "fast-marching"):
            raise InputError("must be graph or fast-marching", field="distances", value=self.distances)

    def kernel(self) -> Matrix:
        """K (n, n), entries e^{-f_y(u)}, one column per report.

        Examples
        --------
        >>> md.EikonalWeights(md.load_problem("line", cells=3)).kernel().shape
        (3, 3)
        """
        problem = self.problem
        if self.distances == "graph":
            return np.exp(-problem.distances)
        if not isinstance(problem.metric, Eikonal):
            raise InputError("fast marching needs an eikonal metric", field="distances", value=problem.metric.kind)
        field = fast_marching_kernel(problem.domain, problem.metric.level, problem.edges)
        return np.exp(-problem.metric.scale * field)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        kernel = self.kernel()
        weights = cp.Variable(self.problem.domain.size, name="w")
        # The expected loss of (2), linear in w.
        loss = (self.problem.weighted_loss * kernel).sum(axis=0) @ weights
        # The system (1).
        return cp.Problem(cp.Minimize(loss), [weights >= 0, kernel @ weights == 1])

    def parameters(self) -> dict[str, Any]:
        return {"distances": self.distances}
