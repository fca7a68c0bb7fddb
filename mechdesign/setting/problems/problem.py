"""DesignProblem: what every program and every closed form takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import require_memory
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges, shortest_paths
from mechdesign.setting.objective.losses import Loss, check_distance, check_loss
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.objective.queries import Query, QueryLoss
from mechdesign.setting.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignProblem(Shown):
    """Secrets, what must be indistinguishable, who is likely, and what a report costs.

    Fields: domain, the n secrets; metric, the claim; prior (n,), sums to 1; loss; reports, the m possible reports
    (the domain itself by default); query, where the reports are its answers; matched_distance, the expected distance in
    units to which a comparison tunes every mechanism, None to compare at the metric's own level; name; parameters, the
    parameters it was built from (kept in files).
    Derived, computed once: edges, distances (n, n) in nats, cost (n, m) = prior times loss.
    A level per another unit of length is converted to that of the domain, and rounded down.
    Raises: InputError where shapes, signs or sums are off, units do not fit, or a map of levels does not reach all
    places; SizeError where a table over the secrets would not fit.
    """

    domain: Domain
    metric: Metric
    prior: ArrayLike
    loss: Loss
    reports: Domain = field(default=None)  # type: ignore[assignment]
    query: Query | None = None
    matched_distance: float | None = None
    name: str = "problem"
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reports is None:
            object.__setattr__(self, "reports", self.domain)
        object.__setattr__(self, "prior", check_prior(self.prior, self.domain.size))
        object.__setattr__(self, "metric", self.metric.over(self.domain))
        if self.loss.code is not None:
            self.domain.require_alike(self.reports)
        if self.query is not None:
            self.query.check(self.domain, self.reports)
        if self.matched_distance is not None:
            object.__setattr__(self, "matched_distance", check_distance(self.matched_distance))

    @property
    def prior_array(self) -> NDArray[np.float64]:
        """The checked prior (n,)."""
        return np.asarray(self.prior, float)

    def facts(self) -> Mapping[str, object]:
        told: dict[str, object] = {"name": self.name, "secrets": self.domain, "metric": self.metric, "loss": self.loss}
        other: dict[str, object] = {
            "reports": None if self.reports is self.domain else self.reports,
            "query": self.query,
        }
        other |= {"matched_distance": self.matched_distance, "parameters": self.parameters or None}
        return told | {name: value for name, value in other.items() if value is not None}

    @cached_property
    def edges(self) -> Edges:
        """The edges of the metric on the domain."""
        return self.metric.edges(self.domain)

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        """d(u, u') in nats, (n, n)."""
        require_memory(self.domain.size, self.domain.size, tables=3, what="the distances between all secrets")
        return shortest_paths(self.edges, self.domain.size)

    @property
    def loss_matrix(self) -> NDArray[np.float64]:
        """l(u, y), (n, m), checked; computed at every call, because a search works on the cost and needs the room."""
        require_memory(self.domain.size, self.reports.size, tables=3, what="the table of losses")
        return check_loss(self.loss.matrix(self.domain, self.reports))

    @cached_property
    def weighted_loss(self) -> NDArray[np.float64]:
        """prior(u) l(u, y), (n, m): the expected loss of a table P is the sum of cost * P."""
        return self.prior_array[:, None] * self.loss_matrix

    @cached_property
    def anchors(self) -> NDArray[np.int64]:
        """For every report the secret it stands for: itself where reports are the secrets, else the cheapest secret."""
        if self.reports is self.domain:
            return np.arange(self.domain.size)
        return np.argmin(self.loss_matrix, axis=0)

    @property
    def constant_loss(self) -> float:
        """The expected loss of the best constant report: the scale that losses are measured against."""
        return float(self.weighted_loss[:, self.best_constant].sum())

    @cached_property
    def best_constant(self) -> int:
        """The report y with the least expected loss when it is made from everywhere."""
        return int(np.argmin(self.weighted_loss.sum(axis=0)))


@asked
def query_problem(
    *, domain: Domain, metric: Metric, prior: ArrayLike, query: Query | ArrayLike, loss: QueryLoss = "zero-one"
) -> DesignProblem:
    """The design problem whose reports are the answers of a query.

    Parameters: domain, the n secrets; metric, the claim; prior (n,); query, or labels (n,) as whole numbers; loss,
    "zero-one" or "distance", see `Query.loss`.
    Raises: InputError for labels that do not fit.
    """
    asked = query if isinstance(query, Query) else Query(labels=query)
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=prior,
        loss=asked.loss(loss, domain),
        reports=asked.reports(domain),
        query=asked,
    )
