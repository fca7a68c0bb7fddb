"""Metric: what is claimed. A distance in nats between secrets, as a finite list of edges that imply all pairs.

A mechanism is private for a metric d when P(y|u) <= e^{d(u,u')} P(y|u') for all secrets u, u' and reports y. Here d is
always the shortest-path distance of an explicit edge list, so the edges are all that has to be checked.

Lengths are doubles that never exceed the exact product of the doubles that a claim names: the scale, epsilon, and
the distance between stored coordinates, the stored length of a street, or the integral of eps. With u = 2^-53, a
Euclidean length is right to 6 u before it is rounded down: the sum of squares is right to 5 u, its root to 2.5 u, and
the root and two factors take u each. A factor times ROUND_DOWN = 1 - 512 u, and its product with a length, are right to
u each. So (1 - 512 u) (1 + 6 u) < 1 and, for every factor more, (1 - 512 u) (1 + u)^2 < 1. This holds for products of
at least 2^-960 (`base/descriptions.py`); smaller ones are rounded down to 0, and edges that short are refused. What
is not multiplied is exact: the lengths of a graph, and epsilon of the discrete metric, at scale 1.
Source: d-privacy, paper 001 section III; locally Lipschitz privacy, paper 000 Definition 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.descriptions import SMALLEST
from mechdesign.base.display import Shown
from mechdesign.base.units import canonical_unit
from mechdesign.errors import InputError, UnitError
from mechdesign.setting.metric.levels import ROUND_DOWN
from mechdesign.setting.metric.shortest_paths import Edges, check_connected, shortest_paths
from mechdesign.setting.space.domain import Domain

Rebuilt = Literal["geometry", "streets", "edge list only"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(Shown, ABC):
    """A distance in nats. `0.9 * metric` is the same metric with every length multiplied: scale times 0.9.

    Invariants of `edges`: lengths finite and rounded down, positive at scale 1, the graph connected. A multiple of
    a multiple has the rounded product as its scale, and no length exceeds the exact product with that.

    A class of its own is a frozen dataclass with a row in `METRICS`. kind, its name there and in files; described, the
    fields that a file keeps beside kind and scale; rebuilt, where verification takes edges and lengths from: geometry,
    streets described with the metric, or nothing but the list of edges in the file, whose lengths are multiplied
    already; sparse, whether the edges are few, a number for every place, as the factored form needs them; network,
    whether pictures show the edges, as streets between places of the plane.
    """

    scale: float = 1.0
    kind: ClassVar[str]
    described: ClassVar[tuple[str, ...]] = ()
    rebuilt: ClassVar[Rebuilt] = "geometry"
    sparse: ClassVar[bool] = False
    network: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale >= 0):
            raise InputError(
                "must be finite and not negative",
                field="scale",
                value=self.scale,
                remedy="scale by a positive factor",
            )

    def __rmul__(self, factor: float) -> Self:
        return replace(self, scale=self.scale * float(factor))

    def over(self, domain: Domain) -> Self:
        """The metric as a problem over `domain` has it: levels per the unit of the domain, converted and rounded down.

        Raises: UnitError where one of the two units is no length; InputError for a map of levels that does not reach
        all places.
        """
        return self

    def edges(self, domain: Domain) -> Edges:
        """Edges (one of each opposite pair) whose constraints, both ways, imply those of all pairs.

        Raises: InputError if the domain does not fit the metric, or falls into parts that no edge joins, and for an
            edge that is too long or, at scale 1, too short for a double.
        """
        with np.errstate(over="ignore"):
            plain = self.unscaled_edges(domain)
            _check_lengths(plain, positive=True)
            edges = plain if self.scale == 1 else scaled_down(plain, self.scale)
            _check_lengths(edges, positive=False)
        check_connected(plain, domain.size)
        return edges

    def distances(self, domain: Domain) -> NDArray[np.float64]:
        """All distances d (n, n) in nats: shortest paths over `edges`. Cost: O(n (e + n log n))."""
        return shortest_paths(self.edges(domain), domain.size)

    @abstractmethod
    def unscaled_edges(self, domain: Domain) -> Edges:
        """The edges at scale 1."""

    @abstractmethod
    def claim(self, domain: Domain) -> str:
        """The name of d in words: which edges, how long, in which unit."""

    @abstractmethod
    def words(self, unit: str, axes: int) -> str:
        """The metric in a few words for a caption, levels times the scale.

        unit, that of the domain; axes, how many its grid has, 0 off grids.
        """

    @classmethod
    @abstractmethod
    def from_description(cls, told: dict[str, Any], *, scale: float, listed: Edges | None) -> Self:
        """The metric of `describe`; told has the names `described` and holds data from anybody.

        listed, the edges that a file lists: for a metric that is rebuilt from nothing else.
        Raises: InputError that names the field where a value is not of its type.
        """

    def describe(self) -> dict[str, Any]:
        """kind, scale (as "multiplier") and `parameters`: enough for `metric_from_description` to rebuild the metric,
        with the edges where it is `listed`.
        """
        return {"kind": self.kind, "multiplier": self.scale, **self.parameters()}

    def parameters(self) -> dict[str, Any]:
        """The values of `described` as JSON holds them."""
        return {name: getattr(self, name) for name in self.described}

    @property
    def listed(self) -> bool:
        """Whether the claim is the list of edges in a file, whose lengths are multiplied already."""
        return self.rebuilt == "edge list only"

    def level_at(self, domain: Domain) -> NDArray[np.float64] | None:
        """eps(u) at the places of the domain in nats per unit of length, where the metric has one."""
        return None

    @property
    def smallest_level(self) -> float | None:
        """A privacy level eps with eps |u - u'| <= d(u, u') for all pairs, in nats per unit; None where there is
        none.
        """
        return None

    def stated_level(self, unit: str) -> tuple[float, str] | None:
        """The single level that the metric is stated with, times the scale, and its unit in words, where lengths are in
        `unit`; None where it has none.
        """
        return None


def check_unit(unit: str, domain: Domain) -> None:
    """Raises: UnitError where a level per `unit` meets a domain in another unit."""
    if canonical_unit(unit) != domain.unit:
        raise UnitError(
            f"epsilon is per {unit} while the domain is in {domain.unit}",
            field="unit",
            value=unit,
            remedy="state both in one unit",
        )


def scaled_down(edges: Edges, factor: float) -> Edges:
    """Every length times `factor`, rounded down; what falls below the range of doubles is 0."""
    scaled = edges.scaled(factor * ROUND_DOWN)
    sound = (scaled.length >= SMALLEST) & (factor >= SMALLEST)
    return replace(scaled, length=np.where(sound, scaled.length, 0.0))


def _check_lengths(edges: Edges, *, positive: bool) -> None:
    length = edges.length
    if not np.isfinite(length).all():
        raise InputError(
            "an edge is longer than the largest double",
            field="epsilon",
            value=f"{length.max()} nats",
            remedy="use a smaller eps, or a smaller unit",
        )
    if positive and not (length > 0).all():
        raise InputError(
            "an edge is shorter than 2^-960 nats, where doubles lose their digits",
            field="epsilon",
            value=f"{length.min()} nats",
            remedy="use a larger eps, or a larger unit",
        )
