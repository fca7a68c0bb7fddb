"""Metric: a distance in nats between secrets, as a finite list of edges that imply all pairs.

A mechanism is private for a metric d when P(y|u) <= e^{d(u,u')} P(y|u') for all secrets u, u' and reports y. Here d is
the shortest-path distance of an explicit edge list, so checking the edges suffices.

Lengths are doubles that never exceed the exact product of the doubles in a claim. Its factors are the scale, epsilon,
and a distance, the stored length of a street, or the integral of eps.
Source: d-privacy, Alvim et al. 2018 section III; locally Lipschitz privacy, Koufogiannis & Pappas 2016 Definition 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.json_fields import SMALLEST, Reader, to_json
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import canonical_unit
from mechdesign.base.validation import refuse_entries
from mechdesign.errors import InputError, UnitError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import (
    Edges,
    check_connected,
    shortest_paths,
)
from mechdesign.problem.line_integrals import ROUND_DOWN

EdgeSource = Literal["geometry", "streets", "edge list only"]


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
    edge_source : str
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
    edge_source: ClassVar[EdgeSource] = "geometry"
    sparse: ClassVar[bool] = False
    network: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale >= 0):
            raise InputError("must be finite and not negative", field="scale", value=self.scale)

    def __rmul__(self, factor: float) -> Self:
        return replace(self, scale=self.scale * float(factor))

    def in_unit_of(self, domain: Domain) -> Self:
        """The metric over `domain`, levels converted to its unit and rounded down.

        Examples
        --------
        >>> metric = md.Euclidean(2.0, unit="km").in_unit_of(md.Domain.grid(3, 1.0, unit="m"))
        >>> round(metric.epsilon, 6)
        0.002
        """
        return self

    def edges(self, domain: Domain) -> Edges:
        """Edges (one of each opposite pair) whose constraints, both ways, imply those of all pairs.

        Examples
        --------
        >>> md.Euclidean(0.5).edges(md.Domain.grid(3, 1.0)).length.round(9).tolist()
        [0.5, 0.5]
        """
        with np.errstate(over="ignore"):
            # At scale 1 a length of 0 is an error; a scale may be 0, which claims a constant mechanism.
            plain = self.unscaled_edges(domain)
            plain.check(domain.size)
            _check_lengths(plain, positive=True)
            edges = plain if self.scale == 1 else scale_down(plain, self.scale)
            _check_lengths(edges, positive=False)
        check_connected(plain, domain.size)
        return edges

    def distances(self, domain: Domain) -> Matrix:
        """All distances d (n, n) in nats: shortest paths over `edges`. Cost: O(n (e + n log n)).

        Examples
        --------
        >>> md.Euclidean(0.5).distances(md.Domain.grid(3, 1.0))[0].round(9).tolist()
        [0.0, 0.5, 1.0]
        """
        return shortest_paths(self.edges(domain), domain.size)

    def direct_distances(self, domain: Domain) -> Matrix | None:
        """All distances (n, n) in nats where they need no search, right to 1e-12; None elsewhere.

        Examples
        --------
        >>> md.Euclidean(0.5).direct_distances(md.Domain.grid(3, 1.0))[0].tolist()
        [0.0, 0.5, 1.0]
        """
        return None

    @abstractmethod
    def unscaled_edges(self, domain: Domain) -> Edges:
        """The edges at scale 1.

        Examples
        --------
        >>> (2 * md.Euclidean(0.5)).unscaled_edges(md.Domain.grid(2, 1.0)).length.round(9).tolist()
        [0.5]
        """

    @abstractmethod
    def claim(self, domain: Domain) -> str:
        """The name of d in words: which edges, how long, in which unit.

        Examples
        --------
        >>> "0.5" in md.Euclidean(0.5).claim(md.Domain.grid(3, 1.0))
        True
        """

    @abstractmethod
    def words(self, unit: str, axes: int) -> str:
        """The metric in a few words for a caption; axes: of its grid, 0 off grids.

        Examples
        --------
        >>> md.Discrete(1.1).words("1", 0)
        'discrete metric, eps = 1.1 nats'
        """

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, scale: float, stored_edges: Edges | None) -> Self:
        """The metric of `describe`, from untrusted data; stored_edges: the edges of the file, if they are the claim."""
        return cls(scale=scale, **{name: read(description[name], name) for name, read in cls.described})

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "multiplier": self.scale, **self.parameters()}

    def parameters(self) -> dict[str, Any]:
        return {name: to_json(getattr(self, name)) for name, _ in self.described}

    @property
    def uses_stored_edges(self) -> bool:
        """True if the claim is the list of edges in a file, whose lengths are already scaled."""
        return self.edge_source == "edge list only"

    def level_at(self, domain: Domain) -> Vector | None:
        return None

    @property
    def smallest_level(self) -> float | None:
        """A level eps with eps |u - u'| <= d(u, u') for all pairs, in nats per unit; None if no level has this."""
        return None

    def stated_level(self, unit: str) -> tuple[float, str] | None:
        """The single level times the scale, and its unit in words for lengths in `unit`; None without one.

        Examples
        --------
        >>> md.Euclidean(0.5, unit="km").stated_level("km")
        (0.5, 'nats per km')
        """
        return None


def check_unit(unit: str, domain: Domain) -> None:
    """Refuse a level per `unit` on a domain in another unit."""
    if canonical_unit(unit) != domain.unit:
        raise UnitError(f"epsilon is per {unit} while the domain is in {domain.unit}", field="unit", value=unit)


def scale_down(edges: Edges, factor: float) -> Edges:
    """Every length times `factor`, rounded down; lengths below 2^-960 become 0."""
    # u = 2^-53. A Euclidean length is right to 6 u before it is rounded down: the sum of squares to 5 u, its root to
    # 2.5 u, and the root and two factors take u each. A factor times ROUND_DOWN = 1 - 512 u, and its product with a
    # length, are right to u each. So (1 - 512 u) (1 + 6 u) < 1 and, for every factor more, (1 - 512 u) (1 + u)^2 < 1.
    # This holds for products of at least 2^-960 (`SMALLEST`); smaller ones become 0, and edges that short are refused
    # at scale 1.
    scaled = edges.scale(factor * ROUND_DOWN)
    is_in_range = (scaled.length >= SMALLEST) & (factor >= SMALLEST)
    return replace(scaled, length=np.where(is_in_range, scaled.length, 0.0))


def _check_lengths(edges: Edges, *, positive: bool) -> None:
    length = edges.length
    message = "an edge is longer than the largest double, in nats"
    refuse_entries(~np.isfinite(length), length, message, field="epsilon", remedy="use a smaller eps or unit")
    message = "an edge is shorter than 2^-960 nats"
    refuse_entries(positive & ~(length > 0), length, message, field="epsilon", remedy="use a larger eps or unit")
