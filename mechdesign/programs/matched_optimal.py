r"""The least epsilon at which any private mechanism comes within an expected distance.

    minimise    eps
    over        eps > 0,  P (n, m)
    subject to  sum_u prior(u) sum_y P(y|u) |u - y| <= distance
                P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{eps |u - v|} P(y|v)                for all secrets u, v and reports y

Source: Alvim et al. 2018, equation (2), for the optimal program (programs/program.py) instead of a family.
Known: the least expected distance L(eps) falls with eps, so that a mechanism with L <= distance bounds the answer from
above, and an eps whose lower bound exceeds the distance bounds it from below. Both may use another metric: with
|u - v| <= g(u, v) <= k |u - v| for the shortest paths g of a graph, privacy for (eps / k) g implies privacy for
eps |u - v|, which implies privacy for eps g. Convex combinations of private mechanisms are private, so that one which
comes nearer than the target is mixed with a constant report until it does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.losses import Distance, check_distance
from mechdesign.problem.metric import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.near_pairs import excess, near_pairs
from mechdesign.programs.program import Optimal, Program

if TYPE_CHECKING:
    import cvxpy as cp

DIRECT = 4_000  # pairs up to which the Euclidean metric stands for itself


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedOptimal(Program):
    """The mechanism of least epsilon at one expected distance.

    Its statement is in `mechdesign.programs.matched_optimal`.

    Parameters
    ----------
    problem : DesignProblem
        Domain, prior and reports; its metric is Euclidean.
    distance : float
        Expected distance in units; by default the problem's `matched_distance`.

    Raises
    ------
    UnsuitableError
        Where the problem's metric is not Euclidean.
    InputError
        For a distance that is not positive and finite, not below that of the best constant report, which every eps
        reaches, or not above that of the nearest reports, which none does.

    References
    ----------
    Alvim et al. 2018, equation (2).

    Examples
    --------
    >>> problem = md.load_problem("paris", cells=2, distance=60.0)
    >>> program = md.programs.MatchedOptimal(problem)
    >>> program.statement().is_dcp()
    True
    """

    distance: float | None = None
    name = "matched"

    def __post_init__(self) -> None:
        require_euclidean(self.problem)
        there = self.at(1.0)
        widest, nearest = there.constant_loss, float(there.weighted_loss.min(axis=1).sum())
        unit, message = self.problem.domain.unit, None
        if self.target >= widest:
            message = f"must be below {widest:.6g} {unit}: a report that tells nothing comes as near"
        elif self.target <= nearest:
            message = f"must be above {nearest:.6g} {unit}: no report comes as near"
        if message:
            raise InputError(message, field="distance", value=self.target)

    @property
    def target(self) -> float:
        """The target: an expected distance, in units."""
        return check_distance(self.problem.matched_distance if self.distance is None else self.distance)

    def parameters(self) -> dict[str, Any]:
        return {"matched_distance": self.target}

    def at(self, epsilon: float, *, graph: bool = False) -> DesignProblem:
        """The optimal program's problem at eps nats per unit: Euclidean, or for the graph that stands for it."""
        unit = self.problem.domain.unit
        metric = Euclidean(epsilon=epsilon, unit=unit)
        euclidean = replace(self.problem, metric=metric, loss=Distance(), query=None, matched_distance=None)
        return near_pairs(euclidean) if graph and self.graph else euclidean

    @cached_property
    def graph(self) -> bool:
        """Whether near pairs stand for all (programs/near_pairs.py): on grids of up to two axes with many pairs."""
        domain = self.problem.domain
        return domain.kind == "grid" and domain.dimension <= 2 and len(self.problem.edges.tail) > DIRECT

    @cached_property
    def excess(self) -> float:
        """The factor k >= 1: the largest graph distance over Euclidean distance of the domain."""
        return excess(self.at(1.0), self.at(1.0, graph=True)) if self.graph else 1.0

    def statement(self, epsilon: float | None = None) -> cp.Problem:
        """L(eps) in cvxpy, by default at the problem's own eps: the answer is the least eps at which its value is at
        most `distance`.
        """
        epsilon = self.problem.metric.smallest_level if epsilon is None else epsilon
        assert epsilon is not None
        return Optimal(problem=self.at(epsilon)).statement()


def require_euclidean(problem: DesignProblem) -> None:
    """Refuse a matched comparison under a metric that is not Euclidean, with an UnsuitableError."""
    if not isinstance(problem.metric, Euclidean):
        message = "mechanisms are matched by distance under the Euclidean metric alone"
        raise UnsuitableError(message, field="metric", value=problem.metric.kind)
