r"""The optimal program: the locally Lipschitz mechanism of least expected loss.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)                                                     (1)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u                      (2)
                P(y|u) <= e^{d_e} P(y|v)      for every edge e = (u, v), both ways, and report y        (3)

Source: Koufogiannis & Pappas 2016, section IV (the program behind Table I); Koufogiannis 2017, equations (6.22)-(6.24).
Under a Euclidean metric it is the optimal geo-indistinguishable mechanism of Bordenabe et al. 2014.
Known: 0/1 loss on a line gives the truncated geometric mechanism (Ghosh et al. 2012); the discrete metric gives
randomized response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mechdesign.programs.program import Program
from mechdesign.programs.statements import expected_loss, private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimal(Program):
    """The optimal program: the mechanism of least expected loss under the claim; see `mechdesign.programs.optimal`.

    Parameters
    ----------
    problem : DesignProblem

    Examples
    --------
    >>> program = md.Optimal(md.load_problem("discrete", secrets=3))
    >>> round(float(program.statement().solve(solver="HIGHS")), 6)
    0.308562
    """

    name = "optimal"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        # Constraints (2) and (3).
        table, constraints = private_table(self.problem)
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)
