r"""The least epsilon at which a family of mechanisms comes within an expected distance.

    minimise    eps > 0
    subject to  sum_u prior(u) sum_y P_eps(y|u) |u - y| <= distance
    over        a family eps -> P_eps (n, m) whose expected distance falls with eps

Source: Alvim et al. 2018, section III, equation (2): mechanisms of different kinds are compared at one expected
distance between secret and report, because their eps are not of one type: nats for randomized response, nats per unit
of length for noise.
Known: normalised rows e^{-eps |u - y|} have d/deps E = -sum prior Var(|u - y|) <= 0; noise that is moved to the border
comes nearer in every coordinate when it shrinks; randomized response over K secrets has E = K D / (K - 1 + e^eps) with
D the mean distance to a uniform report, which gives eps = ln(K D / distance - K + 1): of the prior it sees D only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.base.records import ReprMixin
from mechdesign.base.units import unit_word
from mechdesign.closed_forms.geometric import clamped_table, normalised_table
from mechdesign.closed_forms.lattice_noise import TAIL_NATS
from mechdesign.closed_forms.planar_laplace import laplace_clamped, laplace_normalised
from mechdesign.closed_forms.randomized_response import randomized_response_table
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import check_distance
from mechdesign.problem.metric import Discrete, Euclidean, Metric
from mechdesign.problem.problem import DesignProblem

LARGEST = 24.0  # nats between the nearest places, or between any two: e^-24 is a noise of 4e-11
SMALLEST = 1e-12  # nats across the domain: wider noise moves no expected distance in its tenth digit
FOLLOWED = 500_000  # displacements that noise is followed over at most


@dataclass(frozen=True, kw_only=True)
class Family:
    """Mechanisms with one parameter: table(problem, eps) is P_eps (n, m), rows summing to 1.

    nats: eps is in nats, a claim of local privacy; otherwise in nats per unit of length. followed: noise is followed
    beyond the domain, which bounds how wide it can be.
    """

    name: str
    table: Callable[[DesignProblem, float], NDArray[np.float64]]
    nats: bool = False
    followed: bool = False

    def metric(self, domain: Domain, epsilon: float) -> Metric:
        """What the family claims at `epsilon`."""
        return Discrete(epsilon=epsilon) if self.nats else Euclidean(epsilon=epsilon, unit=domain.unit)


def _respond(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    return randomized_response_table(problem.domain.size, epsilon)


_READY = (
    Family(name="randomized_response", table=_respond, nats=True),
    Family(name="geometric_normalised", table=normalised_table),
    Family(name="geometric_clamped", table=clamped_table, followed=True),
    Family(name="laplacian_normalised", table=laplace_normalised),
    Family(name="laplacian_clamped", table=laplace_clamped, followed=True),
)
FAMILIES = {family.name: family for family in _READY}


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedDistance(ReprMixin):
    """One family at one expected distance (in units, positive) under the prior of a problem; see the module docstring.

    Raises: InputError for a distance that is not positive and finite; UnsuitableError where places have no distance.
    """

    problem: DesignProblem
    family: Family
    distance: float

    def __post_init__(self) -> None:
        check_distance(self.distance)
        if self.problem.domain.kind == "nodes":
            raise UnsuitableError("nodes of a graph have no distance in units", field="domain")

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """prior(u) |u - y|, (n, m)."""
        return self.problem.prior_array[:, None] * self.problem.domain.euclidean_to(self.problem.reports)

    def expected_distance(self, epsilon: float) -> float:
        """sum_u prior(u) sum_y P_eps(y|u) |u - y| in units, floating point. Cost: one table.

        Raises: InputError for a table of another shape than secrets x reports.
        """
        table = np.asarray(self.family.table(self.problem, epsilon), float)
        if table.shape != self._weights.shape:
            message = f"must give tables of shape {self._weights.shape}, one row per secret of the prior"
            raise InputError(message, field="family", value=table.shape)
        return float(np.vdot(table, self._weights))

    @property
    def unit(self) -> str:
        """The unit of eps."""
        return "nats" if self.family.nats else f"nats per {unit_word(self.problem.domain.unit)}"

    @cached_property
    def epsilons(self) -> tuple[float, float, float]:
        """The smallest eps that is looked at, one at which noise is about a step wide, and the largest."""
        if self.family.nats:
            return SMALLEST, 1.0, LARGEST
        points = self.problem.domain.points
        apart, _ = cKDTree(points).query(points, k=2)
        step = float(apart[:, 1].min())
        least = SMALLEST / math.dist(points.min(axis=0), points.max(axis=0))
        if self.family.followed:
            least = TAIL_NATS / (step * FOLLOWED ** (1 / points.shape[1]))
        return least, 1 / step, LARGEST / step

    @property
    def reach(self) -> tuple[float, float]:
        """The expected distances in units at the largest and at the smallest eps that is looked at."""
        least, _, most = self.epsilons
        return self.expected_distance(most), self.expected_distance(least)


def family_of(family: str | Family | Callable[[DesignProblem, float], NDArray[np.float64]]) -> Family:
    """A ready family by name, a family, or the family of a function (problem, eps in nats per unit) -> table (n, m).

    Raises: InputError for an unknown name.
    """
    if isinstance(family, Family):
        return family
    if callable(family):
        return Family(name=getattr(family, "__name__", "family"), table=partial(family))
    if family not in FAMILIES:
        raise InputError("unknown family", field="family", value=family, remedy="use one of " + ", ".join(FAMILIES))
    return FAMILIES[family]
