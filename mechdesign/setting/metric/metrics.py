"""Metric: what is claimed. A distance in nats between secrets, as a finite list of edges that imply all pairs.

A mechanism is private for a metric d when P(y|u) <= e^{d(u,u')} P(y|u') for all secrets u, u' and reports y. Here d is
always the shortest-path distance of an explicit edge list, so the edges are all that has to be checked.

Lengths are doubles that never exceed the exact product of the doubles that a claim names: the multiplier, epsilon, and
the distance between stored coordinates, the stored length of a street, or the integral of eps. With u = 2^-53, a
Euclidean length is right to 6 u before it is rounded down: the sum of squares is right to 5 u, its root to 2.5 u, and
the root and two factors take u each. A factor times ROUND_DOWN = 1 - 512 u, and its product with a length, are right to
u each. So (1 - 512 u) (1 + 6 u) < 1 and, for every factor more, (1 - 512 u) (1 + u)^2 < 1. This holds for products of
at least 2^-960 (`base/descriptions.py`); smaller ones are rounded down to 0, and edges that short are refused. What
is not multiplied is exact: the lengths of a graph, and epsilon of the discrete metric, at multiplier 1.
Source: d-privacy, paper 001 section III; locally Lipschitz privacy, paper 000 Definition 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import check_epsilon
from mechdesign.base.descriptions import SMALLEST, finite, finites, named, whole, wholes, word
from mechdesign.base.units import canonical_unit, unit_word
from mechdesign.errors import InputError, UnitError
from mechdesign.setting.metric.levels import ROUND_DOWN, PrivacyLevel
from mechdesign.setting.metric.shortest_paths import Edges, check_connected, shortest_paths
from mechdesign.setting.space.domain import MOST_PLACES, Domain
from mechdesign.setting.space.lattice import all_pairs, irreducible_pairs, stencil_pairs

_NAMES: dict[str, tuple[str, ...]] = {
    "graph": (),
    "discrete": ("epsilon",),
    "euclidean": ("epsilon", "unit"),
    "streets": ("epsilon", "unit", "tail", "head", "length"),
    "eikonal": ("stencil", "level"),
}  # what a metric is described by, beside kind and multiplier


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(ABC):
    """A distance in nats. `0.9 * metric` is the same metric with every length multiplied.

    Invariants of `edges`: lengths finite and rounded down, positive at multiplier 1, the graph connected. A multiple of
    a multiple has the rounded product as its multiplier, and no length exceeds the exact product with that.
    """

    multiplier: float = 1.0
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.multiplier) and self.multiplier >= 0):
            raise InputError(
                "must be finite and not negative",
                field="multiplier",
                value=self.multiplier,
                remedy="scale by a positive factor",
            )

    def __rmul__(self, factor: float) -> Self:
        return replace(self, multiplier=self.multiplier * float(factor))

    def edges(self, domain: Domain) -> Edges:
        """Edges (one of each opposite pair) whose constraints, both ways, imply those of all pairs.

        Raises: InputError if the domain does not fit the metric, or falls into parts that no edge joins, and for an
            edge that is too long or, at multiplier 1, too short for a double.
        """
        with np.errstate(over="ignore"):
            plain = self.unscaled_edges(domain)
            _check_lengths(plain, positive=True)
            edges = plain if self.multiplier == 1 else _scaled_down(plain, self.multiplier)
            _check_lengths(edges, positive=False)
        check_connected(plain, domain.size)
        return edges

    def distances(self, domain: Domain) -> NDArray[np.float64]:
        """All distances d (n, n) in nats: shortest paths over `edges`. Cost: O(n (e + n log n))."""
        return shortest_paths(self.edges(domain), domain.size)

    @abstractmethod
    def unscaled_edges(self, domain: Domain) -> Edges:
        """The edges at multiplier 1."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """kind, multiplier and parameters: enough for `metric_from_description` to rebuild the metric."""

    @abstractmethod
    def claim(self, domain: Domain) -> str:
        """The name of d in words: which edges, how long, in which unit."""

    def level_at(self, domain: Domain) -> NDArray[np.float64] | None:
        """eps(u) at the places of the domain in nats per unit of length, where the metric has one."""
        return None

    @property
    def smallest_level(self) -> float | None:
        """A privacy level eps with eps |u - u'| <= d(u, u') for all pairs, in nats per unit; None where there is
        none.
        """
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Euclidean(Metric):
    """d(u, u') = epsilon |u - u'|, epsilon in nats per `unit`: geo-indistinguishability (paper 004, Definition 3.1).

    Checked on all pairs; on a lattice the pairs with a cell of the domain between them are implied and left out.
    """

    epsilon: float
    unit: str
    kind = "euclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)
        canonical_unit(self.unit)

    def unscaled_edges(self, domain: Domain) -> Edges:
        if canonical_unit(self.unit) != domain.unit:
            raise InputError(
                f"epsilon is per {self.unit} while the domain is in {domain.unit}",
                field="unit",
                value=self.unit,
                remedy="state both in one unit",
            )
        tail, head = irreducible_pairs(domain)
        square = np.zeros(len(tail))
        for axis in domain.points.T:
            square += (axis[tail] - axis[head]) ** 2
        length = self.epsilon * np.sqrt(square) * ROUND_DOWN
        length = np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)
        return Edges(tail=tail, head=head, length=length)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "multiplier": self.multiplier, "epsilon": self.epsilon, "unit": self.unit}

    def claim(self, domain: Domain) -> str:
        return f"the Euclidean distance over all pairs times {self.epsilon:.17g} nats per {unit_word(domain.unit)}"

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return np.full(domain.size, self.epsilon, float)

    @property
    def smallest_level(self) -> float:
        return self.epsilon * self.multiplier


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrete(Metric):
    """d(u, u') = epsilon for all u != u', in nats: local differential privacy (paper 001, section I)."""

    epsilon: float
    kind = "discrete"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head = all_pairs(domain)
        return Edges(tail=tail, head=head, length=np.full(len(tail), float(self.epsilon)))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "multiplier": self.multiplier, "epsilon": self.epsilon}

    def claim(self, domain: Domain) -> str:
        return f"the discrete metric, {self.epsilon:.17g} nats between any two secrets (local differential privacy)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph(Metric):
    """Shortest-path distance of given edges: tail, head (e,) place numbers, length (e,) in nats.

    Invariants: no self-loop, no repeated pair, lengths positive and finite. A domain has fewer than 2^31 places, so
    that the number place * n + place of a pair is a 64-bit integer.
    """

    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "graph"

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head, length = (np.asarray(given) for given in (self.tail, self.head, self.length))
        if not (tail.shape == head.shape == length.shape) or tail.ndim != 1:
            raise InputError(
                "tail, head and length must be equally long",
                field="edges",
                value=tail.shape,
                remedy="one entry per edge",
            )
        for name, given, kinds in (("tail", tail, "iu"), ("head", head, "iu"), ("length", length, "iuf")):
            if len(given) and given.dtype.kind not in kinds:
                raise InputError(
                    "must be numbers of places" if kinds == "iu" else "must be numbers",
                    field=name,
                    value=given.dtype,
                    remedy="give whole numbers for the ends and nats for the length",
                )
        if len(tail) and not (min(tail.min(), head.min()) >= 0 and max(tail.max(), head.max()) < domain.size):
            raise InputError(
                "an edge ends outside the domain",
                field="edges",
                value="dangling edge",
                remedy=f"use places 0..{domain.size - 1}",
            )
        tail, head, length = tail.astype(np.int64), head.astype(np.int64), length.astype(float)
        if (tail == head).any():
            raise InputError("self-loop", field="edges", value=int(tail[tail == head][0]), remedy="drop it")
        if not (np.isfinite(length) & (length > 0)).all():
            raise InputError(
                "must be positive and finite",
                field="length",
                value=f"{length.min()}",
                remedy="merge places at distance 0",
            )
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        if len(np.unique(low * domain.size + high)) < len(low):
            raise InputError(
                "an edge is given twice", field="edges", value="repeated pair", remedy="keep the shorter one"
            )
        return Edges(tail=low, head=high, length=length)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "multiplier": self.multiplier}

    def claim(self, domain: Domain) -> str:
        return "the shortest-path distance of the edges listed in this file"


@dataclass(frozen=True, kw_only=True, eq=False)
class Streets(Metric):
    """d(u, u') = epsilon * (length of the shortest path from u to u' along streets), epsilon in nats per `unit`.

    tail, head (e,) place numbers, length (e,) in `unit`. Both directions of a street count the same: a metric is
    symmetric, whatever the traffic signs say. Where no street is shorter than the straight line between its ends,
    d >= epsilon |u - u'|: less private than geo-indistinguishability at the same epsilon, in exchange for less loss.
    Invariants: those of `Graph`. Source: d-privacy with the distance of a graph, paper 001 section III.
    """

    epsilon: float
    unit: str
    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "streets"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)
        canonical_unit(self.unit)

    def unscaled_edges(self, domain: Domain) -> Edges:
        if canonical_unit(self.unit) != domain.unit:
            raise UnitError(
                f"epsilon is per {self.unit} while the domain is in {domain.unit}",
                field="unit",
                value=self.unit,
                remedy="state both in one unit",
            )
        streets = Graph(tail=self.tail, head=self.head, length=self.length).unscaled_edges(domain)
        return _scaled_down(streets, self.epsilon)

    def describe(self) -> dict[str, Any]:
        lists = {name: np.asarray(getattr(self, name)).tolist() for name in ("tail", "head", "length")}
        return {
            "kind": self.kind,
            "multiplier": self.multiplier,
            "epsilon": self.epsilon,
            "unit": self.unit,
            **lists,
        }

    def claim(self, domain: Domain) -> str:
        return (
            "the shortest-path distance along the streets listed in this file, either way, times "
            f"{self.epsilon:.17g} nats per {unit_word(domain.unit)}"
        )

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return np.full(domain.size, self.epsilon, float)


@dataclass(frozen=True, kw_only=True, eq=False)
class Eikonal(Metric):
    """Shortest-path distance of a stencil graph whose edges have the line integral of eps as their length.

    d discretizes |grad d| = eps(u) (paper 000, section III-A). stencil is the number of neighbours: 4, 8, 16, 32 or 64
    on one or two axes, 6, 18 or 26 on three (`lattice.stencil_pairs`). On unmasked square cells at constant eps the
    graph distance exceeds the Euclidean one by up to 41.4, 8.24, 2.75, 1.31 or 0.755 % for 4, 8, 16, 32 or 64
    neighbours, and by up to 73.2, 39.4 or 12.8 % for 6, 18 or 26 on three axes (18: 22.5 % between places far apart):
    the claim is the graph metric.
    """

    level: PrivacyLevel
    stencil: int = 8
    kind = "eikonal"

    def unscaled_edges(self, domain: Domain) -> Edges:
        if canonical_unit(self.level.raster.unit) != domain.unit:
            raise InputError(
                f"eps is per {self.level.raster.unit} while the domain is in {domain.unit}",
                field="unit",
                value=self.level.raster.unit,
                remedy="state both in one unit",
            )
        tail, head = stencil_pairs(domain, self.stencil)
        return Edges(tail=tail, head=head, length=self.level.line_integrals(domain.points[tail], domain.points[head]))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "multiplier": self.multiplier,
            "stencil": self.stencil,
            "level": self.level.describe(),
        }

    def claim(self, domain: Domain) -> str:
        linear = "trilinear" if len(self.level.raster.axes) == 3 else "bilinear"
        return (
            f"the shortest-path distance of the {self.stencil}-neighbour graph, every edge as long as the line "
            f"integral of the {linear} privacy level eps ({self.level.smallest:.9g} to {self.level.largest:.9g} nats "
            f"per {unit_word(domain.unit)}, map {self.level.raster.fingerprint()})"
        )

    def level_at(self, domain: Domain) -> NDArray[np.float64]:
        return self.level.at(domain.points)

    @property
    def smallest_level(self) -> float:
        return self.level.smallest * self.multiplier


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


def _scaled_down(edges: Edges, factor: float) -> Edges:
    """Every length times `factor`, rounded down; what falls below the range of doubles is 0."""
    scaled = edges.scaled(factor * ROUND_DOWN)
    sound = (scaled.length >= SMALLEST) & (factor >= SMALLEST)
    return replace(scaled, length=np.where(sound, scaled.length, 0.0))


def metric_from_description(description: dict[str, Any]) -> Metric | None:
    """The metric that `Metric.describe` described; None for a graph, whose edges are themselves the claim.

    Raises: InputError that names the field where the description is another, misses or adds a name, or holds what is no
        finite number, whole number or list of them.
    """
    kind = word(description.get("kind"), "metric") if isinstance(description, dict) else ""
    if kind not in _NAMES:
        raise InputError("unknown metric", field="metric", value=kind, remedy="use a file written by this version")
    told = named(description, "metric", ("kind", "multiplier", *_NAMES[kind]))
    multiplier = float(finite(told["multiplier"], "multiplier"))
    if multiplier < 0:
        raise InputError("must not be negative", field="multiplier", value=multiplier, remedy="use an unaltered file")
    if kind == "graph":
        return None
    if kind == "eikonal":
        level, stencil = PrivacyLevel.from_description(told["level"]), whole(told["stencil"], "stencil", 1, 64)
        return Eikonal(level=level, stencil=stencil, multiplier=multiplier)
    epsilon = finite(told["epsilon"], "epsilon")
    if kind == "discrete":
        return Discrete(epsilon=epsilon, multiplier=multiplier)
    unit = word(told["unit"], "unit")
    if kind == "euclidean":
        return Euclidean(epsilon=epsilon, unit=unit, multiplier=multiplier)
    ends = {name: wholes(told[name], name, 0, MOST_PLACES) for name in ("tail", "head")}
    return Streets(epsilon=epsilon, unit=unit, length=finites(told["length"], "length"), multiplier=multiplier, **ends)
