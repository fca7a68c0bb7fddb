"""The discrete metric: local differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mechdesign.base.checks import check_epsilon
from mechdesign.base.descriptions import finite
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import all_pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrete(Metric):
    """d(u, u') = epsilon for all u != u', in nats: local differential privacy (paper 001, section I)."""

    epsilon: float = field(kw_only=False)
    kind = "discrete"
    described = ("epsilon",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)

    @classmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        return cls(epsilon=finite(told["epsilon"], "epsilon"), scale=scale)

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head = all_pairs(domain)
        return Edges(tail=tail, head=head, length=np.full(len(tail), float(self.epsilon)))

    def claim(self, domain: Domain) -> str:
        return f"the discrete metric, {self.epsilon:.17g} nats between any two secrets (local differential privacy)"

    def words(self, unit: str, axes: int) -> str:
        return f"discrete metric, eps = {self.epsilon * self.scale:.3g} nats"

    def stated_level(self, unit: str) -> tuple[float, str]:
        return float(self.epsilon) * self.scale, "nats"
