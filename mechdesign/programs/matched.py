r"""The least epsilon at which a mechanism comes within an expected distance.

    minimise    eps > 0
    subject to  sum_u prior(u) sum_y P(y|u) |u - y| <= distance                                         (1)
    over        the tables P = P_eps of a family with one parameter, or all tables P with
                P(y|u) <= e^{eps |u - v|} P(y|v) for all secrets u, v and reports y                     (2)

Source: Alvim et al. 2018, section III, equation (2). Mechanisms of different kinds are compared at one expected
distance, because their eps are in different units: nats for randomized response, nats per length for noise.

All tables. The least expected distance L(eps) falls with eps. A mechanism with L <= distance bounds the answer from
above, and an eps whose lower bound exceeds the distance bounds it from below. Both may use another metric: with
|u - v| <= g(u, v) <= k |u - v| for the shortest paths g of a graph, privacy for (eps / k) g implies privacy for
eps |u - v|, which implies privacy for eps g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Matrix
from mechdesign.base.memory import require_memory
from mechdesign.base.units import unit_word
from mechdesign.closed_forms.geometric import clamped_table, normalised_table
from mechdesign.closed_forms.lattice_noise import TAIL_NATS
from mechdesign.closed_forms.planar_laplace import laplace_clamped, laplace_normalised
from mechdesign.closed_forms.randomized_response import randomized_response_table
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance, check_distance
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Discrete, Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.near_pairs import excess, near_pairs
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program

if TYPE_CHECKING:
    import cvxpy as cp

# The range of eps that is searched for a family.
MAX_STEP_NATS = 24.0  # nats between the nearest places, or between any two: e^-24 is a noise of 4e-11
MIN_DOMAIN_NATS = 1e-12  # nats across the domain: wider noise moves no expected distance in its tenth digit
MAX_DISPLACEMENTS = 500_000  # displacements over which clamped noise is summed

MAX_DIRECT_PAIRS = 4_000  # pairs up to which the Euclidean metric is used itself; near pairs are faster beyond

TableOfEpsilon = Callable[[DesignProblem, float], Matrix]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Mechanisms with one parameter: table(problem, eps) is P_eps (n, m), with rows that sum to 1."""

    name: str
    table: TableOfEpsilon
    words: str = ""  # the name in sentences; by default `name`
    nats: bool = False  # True: eps is in nats, a claim of local privacy; else in nats per unit of length
    is_clamped: bool = False  # True: noise is summed beyond the domain, which limits its width

    def metric(self, domain: Domain, epsilon: float) -> Metric:
        return Discrete(epsilon=epsilon) if self.nats else Euclidean(epsilon=epsilon, unit=domain.unit)

    def unit(self, domain: Domain) -> str:
        return "nats" if self.nats else f"nats per {unit_word(domain.unit)}"

    def epsilons(self, domain: Domain) -> tuple[float, float, float]:
        """The smallest eps of a search, one at which noise is about a step wide, and the largest."""
        if self.nats:
            return MIN_DOMAIN_NATS, 1.0, MAX_STEP_NATS
        require_distances(domain)
        points = domain.points
        neighbours, _ = cKDTree(points).query(points, k=2)
        step = float(neighbours[:, 1].min())
        smallest = MIN_DOMAIN_NATS / math.dist(points.min(axis=0), points.max(axis=0))
        if self.is_clamped:
            # Noise reaches TAIL_NATS / eps in every direction, and the displacements in this range are counted.
            smallest = TAIL_NATS / (step * MAX_DISPLACEMENTS ** (1 / points.shape[1]))
        return smallest, 1 / step, MAX_STEP_NATS / step

    def expected_distances(self, problem: DesignProblem) -> Callable[[float], float]:
        """The left-hand side of (1), in units, as a function of eps; each call makes one table."""
        require_distances(problem.domain)
        sizes = problem.domain.size, problem.reports.size
        require_memory(*sizes, tables=2, noun="a table and its distances")
        # (1) is <weights, P>.
        weights = problem.prior_array[:, None] * problem.domain.euclidean_to(problem.reports)

        def expected_distance(epsilon: float) -> float:
            table = np.asarray(self.table(problem, epsilon), float)
            if table.shape != weights.shape:
                message = f"must give tables of shape {weights.shape}, one row per secret of the prior"
                raise InputError(message, field="family", value=table.shape)
            return float(np.vdot(table, weights))

        return expected_distance


# The expected distance E falls with eps in every family. Normalised rows e^{-eps |u - y|} have d/deps E = -sum prior
# Var(|u - y|) <= 0. Narrower noise, clamped, is nearer in every coordinate. Randomized response over K secrets has
# E = K D / (K - 1 + e^eps), with D the mean distance to a uniform report.
FAMILIES = {
    family.name: family
    for family in (
        Family(
            name="randomized_response",
            table=lambda problem, epsilon: randomized_response_table(problem.domain.size, epsilon),
            words="randomized response",
            nats=True,
        ),
        Family(name="geometric_normalised", table=normalised_table, words="normalised geometric noise"),
        Family(name="geometric_clamped", table=clamped_table, words="clamped geometric noise", is_clamped=True),
        Family(name="laplacian_normalised", table=laplace_normalised, words="normalised Laplace noise"),
        Family(name="laplacian_clamped", table=laplace_clamped, words="clamped Laplace noise", is_clamped=True),
    )
}


def family_of(family: str | Family | TableOfEpsilon) -> Family:
    """The family of this name or function."""
    if isinstance(family, Family):
        return family
    if callable(family):
        return Family(name=getattr(family, "__name__", "family"), table=family)
    if family not in FAMILIES:
        raise InputError("unknown family", field="family", value=family, remedy="use one of " + ", ".join(FAMILIES))
    return FAMILIES[family]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedOptimal(Program):
    """The mechanism of least epsilon at one expected distance; see `mechdesign.programs.matched`.

    Parameters
    ----------
    problem : DesignProblem
        Domain, prior and reports; its metric is Euclidean.
    distance : float
        Expected distance in units; by default the problem's `matched_distance`.

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
        euclidean, unit = self.at(1.0), self.problem.domain.unit
        # The constant report, private at every eps, meets the first; below the second no table meets (1).
        constant, nearest = euclidean.constant_loss, float(euclidean.weighted_loss.min(axis=1).sum())
        if self.target >= constant:
            message = f"must be below {constant:.6g} {unit}, the expected distance of the best constant report"
            raise InputError(message, field="distance", value=self.target)
        if self.target <= nearest:
            message = f"must be above {nearest:.6g} {unit}, the smallest expected distance that reports allow"
            raise InputError(message, field="distance", value=self.target)

    @property
    def target(self) -> float:
        return check_distance(self.problem.matched_distance if self.distance is None else self.distance)

    def parameters(self) -> dict[str, Any]:
        return {"matched_distance": self.target}

    def at(self, epsilon: float, *, graph: bool = False) -> DesignProblem:
        """The optimal program's problem at eps nats per unit: Euclidean, or for the graph of near pairs."""
        metric = Euclidean(epsilon=epsilon, unit=self.problem.domain.unit)
        euclidean = replace(self.problem, metric=metric, loss=Distance(), query=None, matched_distance=None)
        return near_pairs(euclidean) if graph and self.uses_graph else euclidean

    @cached_property
    def uses_graph(self) -> bool:
        """True if near pairs replace all pairs (near_pairs.py)."""
        domain = self.problem.domain
        return domain.kind == "grid" and domain.dimension <= 2 and len(self.problem.edges.tail) > MAX_DIRECT_PAIRS

    @cached_property
    def excess(self) -> float:
        """The factor k >= 1: the largest graph distance over Euclidean distance of the domain."""
        # Both are linear in eps, so their ratio at eps = 1 is the ratio at any.
        return excess(self.at(1.0), self.at(1.0, graph=True)) if self.uses_graph else 1.0

    def statement(self, epsilon: float | None = None) -> cp.Problem:
        """L(eps) in cvxpy, by default at the problem's own eps."""
        epsilon = self.problem.metric.smallest_level if epsilon is None else epsilon
        assert epsilon is not None
        return Optimal(problem=self.at(epsilon)).statement()


def require_euclidean(problem: DesignProblem) -> None:
    """Raise an UnsuitableError unless the metric is Euclidean."""
    if not isinstance(problem.metric, Euclidean):
        message = "must be euclidean: mechanisms are matched by distance only under that metric"
        raise UnsuitableError(message, field="metric", value=problem.metric.kind)


def require_distances(domain: Domain) -> None:
    """Raise an UnsuitableError unless places have coordinates."""
    if domain.kind == "nodes" and not (domain.labels and domain.ordered):
        raise UnsuitableError("needs places with coordinates: nodes of a graph have none", field="domain")
