"""The metric along streets: shortest paths over streets whose lengths are given in units of length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import check_epsilon
from mechdesign.base.descriptions import finite, finites, wholes, word
from mechdesign.base.units import canonical_unit, rounded_down, unit_ratio, unit_word
from mechdesign.setting.metric.graph import Graph
from mechdesign.setting.metric.levels import ROUND_DOWN
from mechdesign.setting.metric.metric import Metric, check_unit, scaled_down
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import MOST_PLACES, Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class Streets(Metric):
    """d(u, u') = epsilon * (length of the shortest path from u to u' along streets), epsilon in nats per `unit`.

    tail, head (e,) place numbers, length (e,) in `unit`. Both directions of a street count the same: a metric is
    symmetric, whatever the traffic signs say. Lengths are the streets' own: where the nodes stand, on a plane or
    anywhere else, is no part of the claim. Where no street is shorter than the straight line between its ends,
    d >= epsilon |u - u'|: less private than geo-indistinguishability at the same epsilon, in exchange for less loss.
    Invariants: those of `Graph`. Source: d-privacy with the distance of a graph, paper 001 section III.
    """

    epsilon: float
    unit: str
    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "streets"
    described = ("epsilon", "unit", "tail", "head", "length")
    rebuilt = "streets"
    sparse = True
    network = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)
        canonical_unit(self.unit)

    @classmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        return cls(
            epsilon=finite(told["epsilon"], "epsilon"),
            unit=word(told["unit"], "unit"),
            tail=wholes(told["tail"], "tail", 0, MOST_PLACES),
            head=wholes(told["head"], "head", 0, MOST_PLACES),
            length=finites(told["length"], "length"),
            scale=scale,
        )

    def parameters(self) -> dict[str, Any]:
        lists = {name: np.asarray(getattr(self, name)).tolist() for name in ("tail", "head", "length")}
        return {"epsilon": self.epsilon, "unit": self.unit, **lists}

    def over(self, domain: Domain) -> Self:
        ratio = unit_ratio(self.unit, domain.unit)
        if ratio == 1:
            return self
        length = np.asarray(self.length, float) * ROUND_DOWN * float(ratio)
        epsilon = rounded_down(Fraction(self.epsilon) / ratio)
        return replace(self, epsilon=epsilon, unit=domain.unit, length=length)

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.unit, domain)
        streets = Graph(tail=self.tail, head=self.head, length=self.length).unscaled_edges(domain)
        return scaled_down(streets, self.epsilon)

    def claim(self, domain: Domain) -> str:
        return (
            "the shortest-path distance along the streets listed in this file, either way, times "
            f"{self.epsilon:.17g} nats per {unit_word(domain.unit)}"
        )

    def words(self, unit: str, axes: int) -> str:
        streets = len(np.asarray(self.length))
        return f"distance along {streets} streets, eps = {self.epsilon * self.scale:.3g} nats per {unit_word(unit)}"

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return np.full(domain.size, self.epsilon, float)

    def stated_level(self, unit: str) -> tuple[float, str]:
        return float(self.epsilon) * self.scale, f"nats per {unit_word(unit)}"
