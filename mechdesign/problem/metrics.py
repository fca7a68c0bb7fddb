"""The metrics of the package, and the registry by which files name them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.json_fields import SMALLEST, Reader, check_keys, finite, whole, word
from mechdesign.base.registry import Registry
from mechdesign.base.units import canonical_unit, round_down, unit_ratio, unit_word
from mechdesign.base.validation import check_epsilon, frozen_copy, refuse_entries
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import (
    Edges,
    all_pairs,
    check_connected,
    check_stencil,
    irreducible_pairs,
    stencil_pairs,
)
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.metric import Metric, check_unit
from mechdesign.problem.privacy_level import PrivacyLevel


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrete(Metric):
    """The discrete metric: d(u, u') = epsilon for all u != u' (Alvim et al. 2018, section I).

    Parameters
    ----------
    epsilon, scale : float
        Distance of any two secrets, in nats; factor of every distance, 1 by default.

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(4), md.Discrete(1.0), [0.25] * 4, md.losses.ZeroOne())
    >>> problem.distances[0]
    array([0., 1., 1., 1.])
    """

    epsilon: float = field(kw_only=False)
    kind = "discrete"
    described = (("epsilon", finite),)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)

    def unscaled_edges(self, domain: Domain) -> Edges:
        tail, head = all_pairs(domain)
        return Edges(tail=tail, head=head, length=np.full(len(tail), float(self.epsilon)))

    def claim(self, domain: Domain) -> str:
        return f"the discrete metric, {self.epsilon:.17g} nats between any two secrets (local differential privacy)"

    def words(self, unit: str, axes: int) -> str:
        return f"discrete metric, eps = {self.epsilon * self.scale:.3g} nats"

    def stated_level(self, unit: str) -> tuple[float, str]:
        return float(self.epsilon) * self.scale, "nats"


@dataclass(frozen=True, kw_only=True, eq=False)
class PerLength(Metric):
    """A metric that is epsilon, in nats per `unit`, times a length."""

    epsilon: float = field(kw_only=False)
    unit: str = "1"
    described: ClassVar[tuple[tuple[str, Reader], ...]] = (("epsilon", finite), ("unit", word))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)
        canonical_unit(self.unit)

    def in_unit_of(self, domain: Domain) -> Self:
        # An exact fraction, rounded once and downwards: the claim never gets weaker.
        ratio = unit_ratio(self.unit, domain.unit)
        if ratio == 1:
            return self
        return replace(self, epsilon=round_down(Fraction(self.epsilon) / ratio), unit=domain.unit)

    def level_at(self, domain: Domain) -> Vector:
        return np.full(domain.size, self.epsilon, float)

    def stated_level(self, unit: str) -> tuple[float, str]:
        return float(self.epsilon) * self.scale, f"nats per {unit_word(unit)}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Euclidean(PerLength):
    """The Euclidean metric: d(u, u') = epsilon |u - u'|, geo-indistinguishability (Andrés et al. 2013, Definition 3.1).

    Checked on all pairs, except those of a lattice with a cell of the domain between them, which are implied.

    Parameters
    ----------
    epsilon, scale, unit : float, float, str
        Privacy level in nats per `unit`; factor of every distance, 1 by default; unit of length, "1" by default.

    Examples
    --------
    >>> metric = md.Euclidean(1.5, unit="km")
    >>> metric.edges(md.Domain.grid((3,), 1.0, unit="km")).length.round(6)
    array([1.5, 1.5])
    """

    kind = "euclidean"

    def in_unit_of(self, domain: Domain) -> Self:
        domain.require_distances()
        return super().in_unit_of(domain)

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.unit, domain)
        tail, head = irreducible_pairs(domain)
        square = np.zeros(len(tail))
        for axis in domain.points.T:
            square += (axis[tail] - axis[head]) ** 2
        length = self.epsilon * np.sqrt(square) * ROUND_DOWN
        # Below 2^-960 the error analysis of the product does not hold.
        length = np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)
        return Edges(tail=tail, head=head, length=length)

    def direct_distances(self, domain: Domain) -> Matrix:
        return np.asarray(self.epsilon * self.scale * domain.euclidean_to(domain))

    def claim(self, domain: Domain) -> str:
        return f"the Euclidean distance over all pairs times {self.epsilon:.17g} nats per {unit_word(domain.unit)}"

    def words(self, unit: str, axes: int) -> str:
        return f"Euclidean metric, eps = {self.epsilon * self.scale:.3g} nats per {unit_word(unit)}"

    @property
    def smallest_level(self) -> float:
        return self.epsilon * self.scale


def _stencil(value: object, field: str) -> int:
    return whole(value, field, 1, 64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Eikonal(Metric):
    """The shortest-path distance of a stencil graph: an edge is as long as the line integral of eps.

    d discretizes |grad d| = eps(u) (Koufogiannis & Pappas 2016, section III-A); the claim is the graph metric. On
    unmasked square cells at constant eps it exceeds the Euclidean distance by up to

        41.4, 8.24, 2.75, 1.31 or 0.755 % for 4, 8, 16, 32 or 64 neighbours, and on three axes by up to
        73.2, 39.4 or 12.8 % for 6, 18 or 26 neighbours (18: 22.5 % between places far apart).

    Parameters
    ----------
    level, scale : PrivacyLevel, float
        eps(u), in nats per unit of length; factor of every distance, 1 by default.
    stencil : int
        Neighbours of a cell: 4, 8, 16, 32 or 64 on one or two axes, 6, 18 or 26 on three.

    Examples
    --------
    >>> metric = md.Eikonal(md.PrivacyLevel.constant(0.5, "km"))
    >>> metric.edges(md.Domain.grid((3,), 2.0, unit="km")).length.round(6)
    array([1., 1.])
    """

    level: PrivacyLevel = field(kw_only=False)
    stencil: int = 8
    kind = "eikonal"
    described = (("stencil", _stencil), ("level", PrivacyLevel.from_description))
    sparse = True

    def in_unit_of(self, domain: Domain) -> Self:
        check_stencil(domain, self.stencil)
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

    def level_at(self, domain: Domain) -> Vector:
        return self.level.at(domain.points)

    @property
    def smallest_level(self) -> float:
        return self.level.smallest * self.scale


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph(Metric):
    """The shortest-path distance of given edges.

    Parameters
    ----------
    tail, head, length : (e,) arrays
        Place numbers of the ends, without self-loops and repeated pairs; lengths in nats, positive and finite.
    scale : float
        Factor of every length, 1 by default.

    Examples
    --------
    >>> metric = md.Graph(tail=[0, 1], head=[1, 2], length=[0.5, 0.25])
    >>> problem = md.DesignProblem(md.Domain.nodes(3), metric, [1 / 3] * 3, md.losses.ZeroOne())
    >>> round(float(problem.distances[0, 2]), 6)
    0.75
    """

    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "graph"
    edge_source = "edge list only"
    sparse = True

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, scale: float, stored_edges: Edges | None) -> Self:
        """Rebuild the graph from the stored edges, whose lengths include the scale already, so that it is 1."""
        none = np.empty(0, np.int64)
        edges = Edges(tail=none, head=none, length=np.empty(0)) if stored_edges is None else stored_edges
        graph = cls(tail=edges.tail, head=edges.head, length=np.ones_like(edges.length))
        # Stored lengths may be 0 (a scale of 0), which the constructor refuses; verification checks them.
        object.__setattr__(graph, "length", frozen_copy(edges.length, "length"))
        return graph

    def __post_init__(self) -> None:
        super().__post_init__()
        arrays = {name: frozen_copy(getattr(self, name), name) for name in ("tail", "head", "length")}
        shapes = [values.shape for values in arrays.values()]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1:
            named = ", ".join(f"{name} {shape}" for name, shape in zip(arrays, shapes, strict=True))
            raise InputError("tail, head and length must be equally long rows", field="edges", value=named)
        for name, values in arrays.items():
            noun, kinds = ("numbers", "iuf") if name == "length" else ("numbers of places", "iu")
            if len(values) and values.dtype.kind not in kinds:
                raise InputError(f"must be {noun}", field=name, value=values.dtype)
            copied = frozen_copy(values.astype(float if name == "length" else np.int64), name)
            object.__setattr__(self, name, copied)
        _check_pairs(self._edges)
        length = self._edges.length
        remedy = "leave an edge out where nothing joins two places, and merge places at distance 0"
        wrong = ~((length > 0) & (length < np.inf))
        refuse_entries(wrong, length, "must be positive and finite", field="length", remedy=remedy)

    @property
    def _edges(self) -> Edges:
        tail, head = np.asarray(self.tail), np.asarray(self.head)
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        return Edges(tail=low, head=high, length=np.asarray(self.length))

    def in_unit_of(self, domain: Domain) -> Self:
        _check_ends(self._edges, domain)
        check_connected(self._edges, domain.size)
        return self

    def unscaled_edges(self, domain: Domain) -> Edges:
        _check_ends(self._edges, domain)
        return self._edges

    def claim(self, domain: Domain) -> str:
        return "the shortest-path distance of the edges listed in this file"

    def words(self, unit: str, axes: int) -> str:
        return "graph metric"


# By kind; a class from outside the package is one entry more.
METRICS: Registry[type[Metric]] = Registry(
    "metrics", {metric.kind: metric for metric in (Discrete, Eikonal, Euclidean, Graph)}
)


def metric_from_description(description: dict[str, Any], stored_edges: Edges | None = None) -> Metric:
    """The metric of `Metric.describe`; a graph has the stored edges, or none."""
    kind = word(description.get("kind"), "metric") if isinstance(description, dict) else ""
    if kind not in METRICS:
        raise InputError("unknown metric", field="metric", value=kind)
    fields = check_keys(description, "metric", ("kind", "multiplier", *dict(METRICS[kind].described)))
    scale = float(finite(fields["multiplier"], "multiplier"))
    if scale < 0:
        raise InputError("must not be negative", field="multiplier", value=scale)
    return METRICS[kind].from_description(fields, scale=scale, stored_edges=stored_edges)


def _check_pairs(edges: Edges) -> None:
    refuse_entries(edges.tail == edges.head, edges.tail, "self-loop: an edge joins a place to itself", field="edges")
    # Sorted, equal pairs are neighbours; `_edges` has put the lower number of each pair first.
    order = np.lexsort((edges.head, edges.tail))
    tail, head = edges.tail[order], edges.head[order]
    repeated = np.flatnonzero((tail[1:] == tail[:-1]) & (head[1:] == head[:-1]))
    if len(repeated):
        first, second = sorted(order[repeated[0] : repeated[0] + 2].tolist())
        lengths = f"{edges.length[first]:.9g} at [{first}] and {edges.length[second]:.9g} at [{second}]"
        ends = f"{edges.tail[first]} and {edges.head[first]}"
        remedy = "give each pair of places once: a metric is symmetric"
        raise InputError(f"the edge between {ends} is given twice", field="edges", value=lengths, remedy=remedy)


def _check_ends(edges: Edges, domain: Domain) -> None:
    for ends in (edges.tail, edges.head):
        outside = (ends < 0) | (ends >= domain.size)
        refuse_entries(outside, ends, f"an edge ends outside the {domain.size} places of the domain", field="edges")


def check_storable(metric: Metric, domain: Domain) -> None:
    """Refuse a metric of a class from outside that a file could not hold."""
    # Verification rebuilds the claim from the description, so this round trip must give the same metric.
    if type(metric).__module__.startswith("mechdesign."):
        return
    stored_edges = metric.edges(domain) if metric.uses_stored_edges else None
    try:
        description = json.loads(json.dumps(metric.parameters()))
        restored = type(metric).from_description(description, scale=metric.scale, stored_edges=stored_edges)
    except (TypeError, ValueError, KeyError) as error:
        restored, why = None, f"{error}"
    else:
        why = "a file would restore another metric"
    if restored is None or not (metric.uses_stored_edges or restored == metric):
        message = f"{type(metric).__name__} cannot be stored in a file: {why}"
        remedy = (
            "list every field in `described` with its JSON reader, or pass the edges as "
            "md.Graph(tail=..., head=..., length=...)"
        )
        raise InputError(message, field="metric", value=", ".join(dict(metric.described)) or "no field", remedy=remedy)


def level_range(metric: Metric) -> tuple[float, float]:
    """The smallest and largest eps of a metric at scale 1; UnsuitableError for a metric without a level."""
    if isinstance(metric, Euclidean):
        return metric.epsilon, metric.epsilon
    level = plane_level_map(metric)
    return level.smallest, level.largest


def plane_level_map(metric: Metric) -> PrivacyLevel:
    """The level map of two axes of an eikonal metric; UnsuitableError for other metrics."""
    if not isinstance(metric, Eikonal) or len(metric.level.raster.axes) != 2:
        wanted = "a Euclidean metric, or an eikonal one with a map of two axes"
        raise UnsuitableError(f"positions need {wanted}", field="metric", value=metric.kind)
    return metric.level
