"""Metric: a distance in nats between secrets, as a finite list of edges that imply all pairs.

A mechanism is private for a metric d when P(y|u) <= e^{d(u,u')} P(y|u') for all secrets u, u' and reports y. Here d is
the shortest-path distance of an explicit edge list, so checking the edges suffices.

Lengths are doubles that never exceed the exact product of the doubles in a claim: the scale, epsilon, and the distance
between stored coordinates, the stored length of a street, or the integral of eps. With u = 2^-53, a Euclidean length is
right to 6 u before it is rounded down: the sum of squares to 5 u, its root to 2.5 u, and the root and two factors take
u each. A factor times ROUND_DOWN = 1 - 512 u, and its product with a length, are right to u each. So (1 - 512 u) (1 + 6
u) < 1 and, for every factor more, (1 - 512 u) (1 + u)^2 < 1. This holds for products of at least 2^-960
(`base/numbers.py`); smaller ones become 0, and edges that short are refused. The lengths of a graph and epsilon of the
discrete metric at scale 1 are exact.
Source: d-privacy, Alvim et al. 2018 section III; locally Lipschitz privacy, Koufogiannis & Pappas 2016 Definition 3.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.json_fields import SMALLEST, Reader, check_keys, finite, to_json, whole, word
from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Registry
from mechdesign.base.units import canonical_unit, rounded_down, unit_ratio, unit_word
from mechdesign.base.validation import check_epsilon, own_array, refuse_entries
from mechdesign.errors import InputError, UnitError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import (
    Edges,
    all_pairs,
    check_connected,
    check_stencil,
    irreducible_pairs,
    shortest_paths,
    stencil_pairs,
)
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.privacy_level import PrivacyLevel

Rebuilt = Literal["geometry", "streets", "edge list only"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(FrozenRecord, ABC):
    """A distance in nats. `0.9 * metric` is the same metric with every length multiplied: scale times 0.9.

    A user's class is a frozen dataclass with a row in `METRICS`. Invariants of `edges`: finite lengths rounded down,
    positive at scale 1, a connected graph. Scales multiply with rounding; no length exceeds the exact product with
    that.

    Attributes
    ----------
    scale : float
        Factor of every length.
    kind, described : str, tuple of (name, reader)
        Its name in `METRICS`; the other fields in a file, each with the reader of untrusted data.
    rebuilt : str
        Source of edges and lengths for verification: geometry, streets, or the list of edges in the file, already
        scaled.
    sparse, network : bool
        True if edges are few per place, as factored forms need; if pictures show them as streets.

    Examples
    --------
    >>> (0.9 * md.Discrete(2.0)).scale
    0.9
    """

    scale: float = 1.0
    kind: ClassVar[str]
    described: ClassVar[tuple[tuple[str, Reader], ...]] = ()
    rebuilt: ClassVar[Rebuilt] = "geometry"
    sparse: ClassVar[bool] = False
    network: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale >= 0):
            raise InputError("must be finite and not negative", field="scale", value=self.scale)

    def __rmul__(self, factor: float) -> Self:
        return replace(self, scale=self.scale * float(factor))

    def over(self, domain: Domain) -> Self:
        """The metric over `domain`, levels converted to its unit and rounded down."""
        return self

    def edges(self, domain: Domain) -> Edges:
        """Edges (one of each opposite pair) whose constraints, both ways, imply those of all pairs."""
        with np.errstate(over="ignore"):
            plain = self.unscaled_edges(domain)
            plain.check(domain.size)
            _check_lengths(plain, positive=True)
            edges = plain if self.scale == 1 else scaled_down(plain, self.scale)
            _check_lengths(edges, positive=False)
        check_connected(plain, domain.size)
        return edges

    def distances(self, domain: Domain) -> Matrix:
        """All distances d (n, n) in nats: shortest paths over `edges`. Cost: O(n (e + n log n))."""
        return shortest_paths(self.edges(domain), domain.size)

    def straight(self, domain: Domain) -> Matrix | None:
        """All distances (n, n) in nats where they need no search, right to 1e-12; None elsewhere."""
        return None

    @abstractmethod
    def unscaled_edges(self, domain: Domain) -> Edges:
        """The edges at scale 1."""

    @abstractmethod
    def claim(self, domain: Domain) -> str:
        """The name of d in words: which edges, how long, in which unit."""

    @abstractmethod
    def words(self, unit: str, axes: int) -> str:
        """The metric in a few words for a caption; axes: of its grid, 0 off grids."""

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, scale: float, listed: Edges | None) -> Self:
        """The metric of `describe`, from untrusted data; listed, the edges of a file for a metric that is its list."""
        return cls(scale=scale, **{name: read(description[name], name) for name, read in cls.described})

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "multiplier": self.scale, **self.parameters()}

    def parameters(self) -> dict[str, Any]:
        return {name: to_json(getattr(self, name)) for name, _ in self.described}

    @property
    def listed(self) -> bool:
        """True if the claim is the list of edges in a file, whose lengths are already scaled."""
        return self.rebuilt == "edge list only"

    def level_at(self, domain: Domain) -> Vector | None:
        return None

    @property
    def smallest_level(self) -> float | None:
        """A level eps with eps |u - u'| <= d(u, u') for all pairs, in nats per unit; None if no level has this."""
        return None

    def stated_level(self, unit: str) -> tuple[float, str] | None:
        """The single level times the scale, and its unit in words for lengths in `unit`; None without one."""
        return None


def check_unit(unit: str, domain: Domain) -> None:
    """Refuse a level per `unit` on a domain in another unit."""
    if canonical_unit(unit) != domain.unit:
        raise UnitError(f"epsilon is per {unit} while the domain is in {domain.unit}", field="unit", value=unit)


def scaled_down(edges: Edges, factor: float) -> Edges:
    """Every length times `factor`, rounded down; what falls below the range of doubles is 0."""
    scaled = edges.scaled(factor * ROUND_DOWN)
    sound = (scaled.length >= SMALLEST) & (factor >= SMALLEST)
    return replace(scaled, length=np.where(sound, scaled.length, 0.0))


def _check_lengths(edges: Edges, *, positive: bool) -> None:
    length = edges.length
    message = "an edge is longer than the largest double, in nats"
    refuse_entries(~np.isfinite(length), length, message, field="epsilon", remedy="use a smaller eps or unit")
    message = "an edge is shorter than 2^-960 nats"
    refuse_entries(positive & ~(length > 0), length, message, field="epsilon", remedy="use a larger eps or unit")


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

    def over(self, domain: Domain) -> Self:
        ratio = unit_ratio(self.unit, domain.unit)
        if ratio == 1:
            return self
        return replace(self, epsilon=rounded_down(Fraction(self.epsilon) / ratio), unit=domain.unit)

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

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.unit, domain)
        tail, head = irreducible_pairs(domain)
        square = np.zeros(len(tail))
        for axis in domain.points.T:
            square += (axis[tail] - axis[head]) ** 2
        length = self.epsilon * np.sqrt(square) * ROUND_DOWN
        length = np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)
        return Edges(tail=tail, head=head, length=length)

    def straight(self, domain: Domain) -> Matrix:
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
    unmasked square cells at constant eps it exceeds the Euclidean distance by up to 41.4, 8.24, 2.75, 1.31 or 0.755 %
    for 4, 8, 16, 32 or 64 neighbours, and by up to 73.2, 39.4 or 12.8 % for 6, 18 or 26 on three axes (18: 22.5 %
    between places far apart).

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

    def over(self, domain: Domain) -> Self:
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
    rebuilt = "edge list only"
    sparse = True

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, scale: float, listed: Edges | None) -> Self:
        """The graph of the edges listed, at scale 1: their lengths are multiplied already. Without a list, no edges."""
        none = np.empty(0, np.int64)
        edges = Edges(tail=none, head=none, length=np.empty(0)) if listed is None else listed
        graph = cls(tail=edges.tail, head=edges.head, length=np.ones_like(edges.length))
        # A file lists lengths that are multiplied already, by a scale that may be 0: verification checks them.
        object.__setattr__(graph, "length", own_array(edges.length, "length"))
        return graph

    def __post_init__(self) -> None:
        super().__post_init__()
        arrays = {name: own_array(getattr(self, name), name) for name in ("tail", "head", "length")}
        shapes = [values.shape for values in arrays.values()]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1:
            named = ", ".join(f"{name} {shape}" for name, shape in zip(arrays, shapes, strict=True))
            raise InputError("tail, head and length must be equally long rows", field="edges", value=named)
        for name, values in arrays.items():
            what, kinds = ("numbers", "iuf") if name == "length" else ("numbers of places", "iu")
            if len(values) and values.dtype.kind not in kinds:
                raise InputError(f"must be {what}", field=name, value=values.dtype)
            kept = own_array(values.astype(float if name == "length" else np.int64), name)
            object.__setattr__(self, name, kept)
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

    def over(self, domain: Domain) -> Self:
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


def metric_from_description(description: dict[str, Any], listed: Edges | None = None) -> Metric:
    """The metric of `Metric.describe`; listed, the edges of the file, without which a graph has no edge."""
    kind = word(description.get("kind"), "metric") if isinstance(description, dict) else ""
    if kind not in METRICS:
        raise InputError("unknown metric", field="metric", value=kind)
    fields = check_keys(description, "metric", ("kind", "multiplier", *dict(METRICS[kind].described)))
    scale = float(finite(fields["multiplier"], "multiplier"))
    if scale < 0:
        raise InputError("must not be negative", field="multiplier", value=scale)
    return METRICS[kind].from_description(fields, scale=scale, listed=listed)


def _check_pairs(edges: Edges) -> None:
    refuse_entries(edges.tail == edges.head, edges.tail, "self-loop: an edge joins a place to itself", field="edges")
    order = np.lexsort((edges.head, edges.tail))
    tail, head = edges.tail[order], edges.head[order]
    again = np.flatnonzero((tail[1:] == tail[:-1]) & (head[1:] == head[:-1]))
    if len(again):
        first, second = sorted(order[again[0] : again[0] + 2].tolist())
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
    if type(metric).__module__.startswith("mechdesign."):
        return
    listed = metric.edges(domain) if metric.listed else None
    try:
        description = json.loads(json.dumps(metric.parameters()))
        kept = type(metric).from_description(description, scale=metric.scale, listed=listed)
    except (TypeError, ValueError, KeyError) as error:
        kept, why = None, f"{error}"
    else:
        why = "a file would keep another metric"
    if kept is None or not (metric.listed or kept == metric):
        message = f"{type(metric).__name__} cannot be kept in a file: {why}"
        remedy = (
            "name every field in `described` with what reads it from JSON, or pass the edges as "
            "md.Graph(tail=..., head=..., length=...)"
        )
        raise InputError(message, field="metric", value=", ".join(dict(metric.described)) or "no field", remedy=remedy)


def level_range(metric: Metric) -> tuple[float, float]:
    """The smallest and largest eps of a metric at scale 1. Raises: UnsuitableError for a metric without a level."""
    if isinstance(metric, Euclidean):
        return metric.epsilon, metric.epsilon
    level = plane_level_map(metric)
    return level.smallest, level.largest


def plane_level_map(metric: Metric) -> PrivacyLevel:
    """The level map of two axes of an eikonal metric. Raises: UnsuitableError for other metrics."""
    if not isinstance(metric, Eikonal) or len(metric.level.raster.axes) != 2:
        wanted = "a Euclidean metric, or an eikonal one with a map of two axes"
        raise UnsuitableError(f"positions need {wanted}", field="metric", value=metric.kind)
    return metric.level
