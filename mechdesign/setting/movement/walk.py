"""Walk: a random walk with stays on the neighbours of a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.descriptions import finite, named
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.movement.movement import Chain, Movement, stochastic
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import stencil_pairs

_STENCIL = {1: 4, 2: 8, 3: 26}  # by number of axes: cells that share an edge or a corner


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk(Movement):
    """At every tick: with probability `stay` no move, else to one of the neighbours, all alike.

    Neighbours on a grid are the cells around (two, eight or 26 of them) that no masked cell cuts off; elsewhere those
    that an edge of the metric joins, where the metric has few (a graph, streets). A place without neighbours stays.
    Raises: InputError unless 0 <= stay < 1; `over`: UnsuitableError off grids for a metric of all pairs.
    """

    stay: float = 0.9
    kind = "walk"

    def __post_init__(self) -> None:
        if not 0 <= self.stay < 1:
            raise InputError(
                "must be a probability below 1", field="stay", value=self.stay, remedy="use stay=0.9, or none"
            )

    def over(self, domain: Domain, metric: Metric, prior: NDArray[np.float64]) -> Chain:
        tail, head = _neighbours(domain, metric)
        n, ones = domain.size, np.ones(2 * len(tail))
        joined = sp.csr_array((ones, (np.concatenate([tail, head]), np.concatenate([head, tail]))), shape=(n, n))
        degree = np.asarray(joined.sum(axis=1)).ravel()
        moving = sp.diags_array(np.where(degree > 0, (1 - self.stay) / np.maximum(degree, 1), 0.0)) @ joined
        staying = sp.diags_array(np.where(degree > 0, self.stay, 1.0))
        matrix = stochastic(sp.csr_array(moving + staying), "stay")
        return Chain(size=n, initial=prior, place=np.arange(n), matrices=(matrix,))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "stay": float(self.stay)}

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        return cls(stay=float(finite(named(told, "movement", ("kind", "stay"))["stay"], "stay")))


def _neighbours(domain: Domain, metric: Metric) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if domain.kind == "grid":
        return stencil_pairs(domain, _STENCIL[domain.dimension])
    if not metric.sparse:
        raise UnsuitableError(
            "a walk needs a grid, or a metric with few edges",
            field="movement",
            value=domain.kind,
            remedy="give the model: md.traces.Transitions(matrix)",
        )
    edges = metric.edges(domain)
    return edges.tail, edges.head
