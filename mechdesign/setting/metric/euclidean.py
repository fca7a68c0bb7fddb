"""The Euclidean metric: geo-indistinguishability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.checks import check_epsilon
from mechdesign.base.descriptions import SMALLEST, finite, word
from mechdesign.base.units import canonical_unit, rounded_down, unit_ratio, unit_word
from mechdesign.setting.metric.levels import ROUND_DOWN
from mechdesign.setting.metric.metric import Metric, check_unit
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import irreducible_pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Euclidean(Metric):
    """d(u, u') = epsilon |u - u'|, epsilon in nats per `unit`: geo-indistinguishability (paper 004, Definition 3.1).

    Checked on all pairs; on a lattice the pairs with a cell of the domain between them are implied and left out.
    """

    epsilon: float
    unit: str
    kind = "euclidean"
    described = ("epsilon", "unit")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)
        canonical_unit(self.unit)

    @classmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        return cls(epsilon=finite(told["epsilon"], "epsilon"), unit=word(told["unit"], "unit"), scale=scale)

    def over(self, domain: Domain) -> Self:
        ratio = unit_ratio(self.unit, domain.unit)
        if ratio == 1:
            return self
        return replace(self, epsilon=rounded_down(Fraction(self.epsilon) / ratio), unit=domain.unit)

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.unit, domain)
        tail, head = irreducible_pairs(domain)
        square = np.zeros(len(tail))
        for axis in domain.points.T:
            square += (axis[tail] - axis[head]) ** 2
        length = self.epsilon * np.sqrt(square) * ROUND_DOWN
        length = np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)
        return Edges(tail=tail, head=head, length=length)

    def claim(self, domain: Domain) -> str:
        return f"the Euclidean distance over all pairs times {self.epsilon:.17g} nats per {unit_word(domain.unit)}"

    def words(self, unit: str, axes: int) -> str:
        return f"Euclidean metric, eps = {self.epsilon * self.scale:.3g} nats per {unit_word(unit)}"

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return np.full(domain.size, self.epsilon, float)

    @property
    def smallest_level(self) -> float:
        return self.epsilon * self.scale

    def stated_level(self, unit: str) -> tuple[float, str]:
        return float(self.epsilon) * self.scale, f"nats per {unit_word(unit)}"
