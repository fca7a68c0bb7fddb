"""DesignProblem: secrets, the distances that must not be distinguished, a prior and a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.problem.classes import check_shared_labels, in_class_order
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, shortest_paths
from mechdesign.problem.losses import APART, Loss, check_distance, check_loss
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import check_storable
from mechdesign.problem.priors import check_prior
from mechdesign.problem.queries import Query, QueryLoss

Parameter = int | float | str

# Stored as an array; `DesignProblem.__init__` lists the types that it accepts.
if TYPE_CHECKING:
    Prior: TypeAlias = Vector
else:
    Prior = ArrayLike


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignProblem(FrozenRecord):
    """A design problem: secrets, metric, prior and loss. Compared field by field.

    Parameters
    ----------
    domain, metric : Domain, Metric
        The n secrets, and the claim. A level per another unit is converted to that of the domain, and rounded down.
    prior : (n,) array
        Probabilities, of sum 1.
    loss : Loss
    reports : Domain
        The m possible reports; the domain itself by default, and where its places are the same.
    query : Query
    matched_distance : float
        The expected distance to which a comparison tunes every mechanism; None for the metric's own level.
    name, parameters : str, mapping
        Of the problem, stored in files.

    Examples
    --------
    >>> domain = md.Domain.grid((4, 3), 0.5)
    >>> problem = md.DesignProblem(domain, md.Euclidean(1.5), md.priors.uniform(domain), md.losses.Distance())
    >>> round(float(problem.edges.length.max()), 2)
    2.7
    """

    domain: Domain = field(kw_only=False)
    metric: Metric = field(kw_only=False)
    prior: Prior = field(kw_only=False)
    loss: Loss = field(kw_only=False)
    reports: Domain = field(default=None)  # type: ignore[assignment]
    query: Query | None = None
    matched_distance: float | None = None
    name: str = "problem"
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            domain: Domain,
            metric: Metric,
            prior: ArrayLike | Mapping[str, float],
            loss: Loss,
            *,
            reports: Domain | None = None,
            query: Query | None = None,
            matched_distance: float | None = None,
            name: str = "problem",
            parameters: Mapping[str, Parameter] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        # A file has only coordinates: equal places must be one object here too, for symmetries and anchors.
        if self.reports is None or self.reports.same_places(self.domain):
            object.__setattr__(self, "reports", self.domain)
        object.__setattr__(self, "parameters", _plain_parameters(self.parameters))
        prior = in_class_order(self.prior, "prior", self.domain)
        object.__setattr__(self, "prior", check_prior(prior, self.domain))
        object.__setattr__(self, "metric", self.metric.in_unit_of(self.domain))
        check_storable(self.metric, self.domain)
        if not isinstance(getattr(self.loss, "name", None), str):
            message = f"{type(self.loss).__name__} needs a class attribute name, stored in files"
            raise InputError(
                message, field="loss", remedy='write name = "mine" in it, and register md.extend.LOSSES["mine"]'
            )
        if self.loss.code is not None:
            self.domain.require_alike(self.reports)
            check_shared_labels(self.domain, self.reports)
            if self.loss.code != APART:
                self.domain.require_distances()
                self.reports.require_distances()
        # A table, or the class of a user: reading the property checks its values.
        else:
            self.loss_matrix  # noqa: B018
        if self.query is not None:
            self.query.check(self.domain, self.reports)
        if self.matched_distance is not None:
            object.__setattr__(self, "matched_distance", check_distance(self.matched_distance))

    @property
    def storable_parameters(self) -> dict[str, Parameter]:
        # JSON has no infinity: it is stored as the text "inf".
        items = self.parameters.items()
        return {name: str(value) if value in (math.inf, -math.inf) else value for name, value in items}

    @property
    def prior_array(self) -> Vector:
        return np.asarray(self.prior, float)

    def repr_fields(self) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "name": self.name,
            "secrets": self.domain,
            "metric": self.metric,
            "loss": self.loss,
            "reports": None if self.reports is self.domain else self.reports,
            "query": self.query,
            "matched_distance": self.matched_distance,
            "parameters": self.parameters or None,
        }
        return {name: value for name, value in facts.items() if value is not None}

    @cached_property
    def edges(self) -> Edges:
        return self.metric.edges(self.domain)

    @cached_property
    def distances(self) -> Matrix:
        require_memory(self.domain.size, self.domain.size, tables=3, noun="the distances between all secrets")
        return shortest_paths(self.edges, self.domain.size)

    @property
    def loss_matrix(self) -> Matrix:
        """l(u, y), (n, m), checked; computed at every call to free its memory."""
        require_memory(self.domain.size, self.reports.size, tables=3, noun="the table of losses")
        table = check_loss(self.loss.matrix(self.domain, self.reports))
        if table.shape != (self.domain.size, self.reports.size):
            raise InputError("must give a table over secrets and reports", field="loss", value=table.shape)
        return table

    @property
    def loss_unit(self) -> str:
        """The unit of losses and bounds, such as "m^2"; "1" for numbers without one."""
        return self.loss.unit(self.domain.unit)

    @cached_property
    def weighted_loss(self) -> Matrix:
        """prior(u) l(u, y), (n, m): the expected loss of a table P is the sum of cost * P."""
        return self.prior_array[:, None] * self.loss_matrix

    @cached_property
    def anchors(self) -> Indices:
        """The secret (m,) that every report stands for: itself if reports are the secrets, else the cheapest secret."""
        if self.reports is self.domain:
            return np.arange(self.domain.size)
        return np.argmin(self.loss_matrix, axis=0)

    @property
    def constant_loss(self) -> float:
        return float(self.weighted_loss[:, self.best_constant].sum())

    @cached_property
    def best_constant(self) -> int:
        return int(np.argmin(self.weighted_loss.sum(axis=0)))


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Parameter]:
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    for name, value in plain.items():
        if not (isinstance(name, str) and isinstance(value, (int, float, str)) and value == value):
            remedy = "use numbers and texts"
            raise InputError(
                "cannot be stored in a file", field="parameters", value=f"{name}: {value!r}", remedy=remedy
            )
    return plain


@validate_call
def query_problem(
    *, domain: Domain, metric: Metric, prior: ArrayLike, query: Query | ArrayLike, loss: QueryLoss = "zero-one"
) -> DesignProblem:
    """The design problem whose reports are the answers of a query.

    Parameters
    ----------
    domain, metric, prior : Domain, Metric, (n,) array
        The n secrets, the claim, and probabilities that sum to 1.
    query : Query or (n,) int array
        The query, or its labels.
    loss : {"zero-one", "distance"}
        See `Query.loss`.

    Returns
    -------
    DesignProblem, whose m reports are the answers

    Examples
    --------
    >>> domain = md.Domain.grid((4,), 1.0)
    >>> problem = md.losses.query_problem(
    ...     domain=domain, metric=md.Euclidean(1.0), prior=md.priors.uniform(domain), query=[0, 0, 1, 1]
    ... )
    >>> problem.reports.size
    2
    """
    query = query if isinstance(query, Query) else Query(labels=query)
    cost, reports = query.loss(loss, domain), query.reports(domain)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=cost, reports=reports, query=query)
