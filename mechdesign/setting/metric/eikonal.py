"""The eikonal metric: a privacy level that varies over the places, as shortest paths of a stencil graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.descriptions import whole
from mechdesign.base.units import unit_word
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.metric.metric import Metric, check_unit
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import stencil_pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Eikonal(Metric):
    """Shortest-path distance of a stencil graph whose edges have the line integral of eps as their length.

    d discretizes |grad d| = eps(u) (paper 000, section III-A). stencil is the number of neighbours: 4, 8, 16, 32 or 64
    on one or two axes, 6, 18 or 26 on three (`lattice.stencil_pairs`). On unmasked square cells at constant eps the
    graph distance exceeds the Euclidean one by up to 41.4, 8.24, 2.75, 1.31 or 0.755 % for 4, 8, 16, 32 or 64
    neighbours, and by up to 73.2, 39.4 or 12.8 % for 6, 18 or 26 on three axes (18: 22.5 % between places far apart):
    the claim is the graph metric.
    """

    level: PrivacyLevel = field(kw_only=False)
    stencil: int = 8
    kind = "eikonal"
    described = ("stencil", "level")
    sparse = True

    @classmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        level, stencil = PrivacyLevel.from_description(told["level"]), whole(told["stencil"], "stencil", 1, 64)
        return cls(level=level, stencil=stencil, scale=scale)

    def parameters(self) -> dict[str, Any]:
        return {"stencil": self.stencil, "level": self.level.describe()}

    def over(self, domain: Domain) -> Self:
        level = self.level.in_unit(domain.unit)
        if not level.extend:
            level.raster.require_cover(domain.points)
        return self if level is self.level else replace(self, level=level)

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.level.raster.unit, domain)
        tail, head = stencil_pairs(domain, self.stencil)
        return Edges(tail=tail, head=head, length=self.level.line_integrals(domain.points[tail], domain.points[head]))

    def claim(self, domain: Domain) -> str:
        linear = "trilinear" if len(self.level.raster.axes) == 3 else "bilinear"
        return (
            f"the shortest-path distance of the {self.stencil}-neighbour graph, every edge as long as the line "
            f"integral of the {linear} privacy level eps ({self.level.smallest:.9g} to {self.level.largest:.9g} nats "
            f"per {unit_word(domain.unit)}, map {self.level.raster.fingerprint()})"
        )

    def words(self, unit: str, axes: int) -> str:
        low, high = (f"{level * self.scale:.3g}" for level in (self.level.smallest, self.level.largest))
        eps = low if low == high else f"{low} to {high}"
        neighbours = 2 if axes == 1 else self.stencil
        return f"eikonal metric, {neighbours} neighbours, eps = {eps} nats per {unit_word(unit)}"

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return self.level.at(domain.points)

    @property
    def smallest_level(self) -> float:
        return self.level.smallest * self.scale
