r"""Protection: the largest factor by which one report changes the odds between two people.

    factor = max over x, x' at most `within` apart on the ground, and reports y, of P(y|x) / P(y|x'), rounded up   (1)
    gap(k) = length of (|k| - 1)+ h, for cells of side h at a displacement of k cells                              (2)
    factor = max over cells u, v with gap < within (1 + excess), and y, of mass[u, y] / mass[v, y]                 (3)

Distances are straight lines. A plane lengthens them by up to 1 + excess; without a plane (3) is attained. If (3) is too
much work, and for factored mechanisms, the factor is e^d for the largest claimed distance d of such cells.
Mechanisms with a claim about positions: positions/protection.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from mechdesign.base.arrays import Indices, IntegerMatrix, Masses
from mechdesign.base.labels import join_labels
from mechdesign.base.registry import Role
from mechdesign.base.units import plural_unit
from mechdesign.mechanism.certificate import exp_lower, largest_ratio
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, all_pairs, displaced_pairs
from mechdesign.problem.metrics import Discrete, Eikonal, Euclidean
from mechdesign.problem.vocabulary import CELLS, INTERVALS, words_of

USUAL_FACTOR = 2.0  # its radius is stated by default
MAX_COMPARISONS = 4_000_000_000  # pairs of rows times reports: seconds, not minutes
MAX_PATH_CELLS = 20_000  # of a masked map, between whose cells shortest paths are searched
_ROUND_UP = 1 + 2.0**-50  # exceeds the 4 units in the last place by which (3) in doubles may be below the exact ratio
_SOURCES = 256  # cells per call of Dijkstra's search: bounds the table of path lengths
_MAX_LISTED_PAIRS = 50_000_000  # pairs of cells that are looked up; beyond, the largest over all pairs is used

Kind = Literal["positions", "cells", "places"]


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The protection of a mechanism, as results and pages state it."""

    kind: Kind
    subject: str  # `kind` in words
    unit: str  # of `within`, as printed
    within: float | None  # the radius in a straight line on the ground; None without a length
    factor: float | None  # (1) in that radius; inf without a bound, None if it needs too much work
    exact: bool  # True if two positions or places attain the factor
    between: str | None = None  # the pairs of places, if `within` does not define them
    along: str | None = None  # the curve along which `within` is measured, if it is not straight
    path: float | None = None  # the factor at a distance `within` along paths in a masked area
    epsilon: float | None = None  # the largest claimed level of positions, in nats per unit on the ground


class PositionProtection(Protocol):
    """Computes the protection of mechanisms with a claim about positions."""

    def protection(self, stored: MechanismFile, claim: PositionClaim, within: float | None) -> Protection:
        """`within` is in the unit of the domain."""
        ...


POSITION_PROTECTION: Role[PositionProtection] = Role("protection of positions")


def protection(stored: MechanismFile, within: float | None = None) -> Protection:
    """The protection of a certified mechanism, from its integers, or from its claim beyond `MAX_COMPARISONS`."""
    radius = _designed_radius(stored) if within is None else within
    if stored.positions is not None:
        return POSITION_PROTECTION.get().protection(stored, stored.positions, radius)
    return _cell_protection(stored, radius) if words_of(stored.domain) is CELLS else _place_protection(stored, radius)


def _designed_radius(stored: MechanismFile) -> float | None:
    radius = stored.parameters["problem_parameters"].get("within")
    # Files are untrusted: the stored parameter may be anything that JSON can hold.
    is_radius = isinstance(radius, (int, float)) and not isinstance(radius, bool) and 0 < radius < math.inf
    return float(radius) if is_radius else None


def factor_of(nats: Fraction | float) -> float:
    """e^nats, rounded up; inf beyond 709 nats, where doubles end."""
    exponent = rounded_up(Fraction(nats))
    # Beyond 80 nats `exp_lower` is not tight. The library's exp errs by some units in the last place, far below 2^-40.
    if exponent > 80:
        return math.exp(exponent) * (1 + 2.0**-40) if exponent < 709 else math.inf
    # `exp_lower` is below e^nats by at most 2^-60 of it, so 2^-59 more is above.
    digits, shift = exp_lower(exponent)
    return 1.0 if exponent == 0 else rounded_up(Fraction(digits) / Fraction(2) ** shift * (1 + Fraction(1, 1 << 59)))


def rounded_up(exact: Fraction) -> float:
    """The smallest double of at least `exact`, or the next one."""
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def stretch(domain: Domain) -> Fraction:
    """The largest ratio of a length on the plane of a domain to that on the ground."""
    if domain.plane is None:
        return Fraction(1)
    return 1 + Fraction(domain.plane.unlimited_excess(domain.max_position_radius)) * (1 + Fraction(1, 1 << 40))


def subject_of(domain: Domain) -> str:
    """The cells of a grid in words."""
    assert domain.cell is not None
    if domain.unit == "cell":
        return "cells, not positions"
    sides = list(dict.fromkeys(f"{side:,.6g}" for side in domain.cell))
    return f"cells of {' x '.join(sides)} {plural_unit(domain.unit, 1 if sides == ['1'] else 2)}, not positions"


# --- cells -----------------------------------------------------------------------------------------------------------


def _cell_protection(stored: MechanismFile, within: float | None) -> Protection:
    domain, radius = stored.domain, 0.0 if within is None else within
    steps, is_sure = displacements_within(domain, Fraction(radius), stretch(domain))
    exact = not stored.is_factored and len(steps) * stored.mechanism["mass"].size <= MAX_COMPARISONS
    if exact:
        pairs = (displaced_pairs(domain, tuple(step)) for step in steps.tolist())
        factor: float | None = _largest_factor(stored.mechanism["mass"].values, pairs)
    else:
        nats = _claimed_distance(stored, steps)
        factor = None if nats is None else factor_of(nats)
    return Protection(
        kind="cells",
        subject=subject_of(domain),
        unit=plural_unit(domain.unit),
        within=radius,
        factor=factor,
        exact=exact and is_sure,
    )


def displacements_within(domain: Domain, radius: Fraction, stretch: Fraction) -> tuple[IntegerMatrix, bool]:
    """Displacements (k, axes) of cells with positions at most `radius` apart, nearest first, one of each pair."""
    # The second value is True if all of them have such positions however the plane stretches lengths.
    assert domain.cell is not None and domain.shape is not None
    sides = [Fraction(side) for side in domain.cell]
    # No gap exceeds the sum of the sides of the map, so a larger radius adds nothing.
    across = sum((count * side for count, side in zip(domain.shape, sides, strict=True)), Fraction(0))
    radius = min(radius, across)
    on_plane = radius * stretch
    farthest = [
        min(count - 1, math.floor(on_plane / side) + 1) for count, side in zip(domain.shape, sides, strict=True)
    ]
    ranges = [np.arange(-k if axis else 0, k + 1) for axis, k in enumerate(farthest)]
    steps = np.stack([axis.ravel() for axis in np.meshgrid(*ranges, indexing="ij")], axis=1)
    # Displacements come in opposite pairs with one factor, so the half after the origin suffices.
    steps = steps[math.prod(2 * k + 1 for k in farthest[1:]) // 2 + 1 :]
    # (2). Cells are half-open: a border belongs to the higher cell. So two cells hold positions at every distance above
    # their gap, and at none below it or equal to it.
    gap = np.maximum(np.abs(steps) - 1, 0)
    square = ((gap * np.asarray(domain.cell)) ** 2).sum(axis=1)
    limit = float(on_plane) ** 2
    is_near = square <= limit * (1 + 1e-9)
    steps, gap, square = steps[is_near], gap[is_near], square[is_near]
    is_near, is_sure = np.ones(len(steps), bool), True
    for k in np.flatnonzero(square > float(radius) ** 2 * (1 - 1e-9)):
        # Only displacements near the limit need fractions; floating point decides the others safely.
        exact = sum(((int(g) * side) ** 2 for g, side in zip(gap[k], sides, strict=True)), Fraction(0))
        # At radius 0 the cells that touch count.
        is_near[k] = exact < on_plane**2 if radius > 0 else exact == 0
        # Between the radius and `stretch` times it the plane decides. It keeps lengths along a row of cells exactly.
        along_a_row = exact == radius**2 and np.count_nonzero(gap[k]) == 1
        is_sure &= not is_near[k] or exact < radius**2 or radius == 0 or bool(along_a_row)
    order = np.argsort(square[is_near], kind="stable")
    return steps[is_near][order], is_sure


def _largest_factor(mass: Masses, pairs: Iterator[tuple[Indices, Indices]]) -> float:
    """(3) over pairs of rows."""
    table = np.ascontiguousarray(mass)
    ratios = (largest_ratio(table, tail, head) for tail, head in pairs if len(tail))
    largest = max(ratios, default=1.0)
    # A ratio of exactly 1 comes from equal rows alone, and needs no rounding.
    return 1.0 if largest == 1 else largest * _ROUND_UP


def _claimed_distance(stored: MechanismFile, steps: IntegerMatrix) -> Fraction | None:
    """An upper bound of the claimed distances in nats of cells at these displacements; None if unknown."""
    metric, domain = stored.metric, stored.domain
    assert domain.cell is not None and domain.shape is not None
    if len(steps) == 0 or not stored.edges.length.any():
        return Fraction(0)
    if isinstance(metric, Discrete):
        return Fraction(metric.epsilon) * Fraction(metric.scale)
    if isinstance(metric, Euclidean):
        # In each branch 2^-40 exceeds the rounding of the sums in doubles.
        away = float(np.sqrt(((steps * np.asarray(domain.cell)) ** 2).sum(axis=1)).max())
        return Fraction(metric.epsilon) * Fraction(metric.scale) * Fraction(away * (1 + 2.0**-40))
    if isinstance(metric, Eikonal) and domain.size == math.prod(domain.shape):
        return path_length_bound(stored.edges, domain, steps)
    if domain.size > MAX_PATH_CELLS:
        return None
    from scipy.sparse.csgraph import dijkstra

    graph, farthest = stored.edges.matrix(domain.size), 0.0
    pairs = []
    if len(steps) * domain.size <= _MAX_LISTED_PAIRS:
        pairs = [displaced_pairs(domain, tuple(step)) for step in steps.tolist()]
    # Masked maps: paths bend around water, so only a search knows their lengths.
    for start in range(0, domain.size, _SOURCES):
        sources = np.arange(start, min(start + _SOURCES, domain.size))
        path_length = np.asarray(dijkstra(graph, directed=False, indices=sources))
        if not pairs:
            farthest = max(farthest, float(path_length.max()))
        for tail, head in pairs:
            in_block = (tail >= start) & (tail < start + _SOURCES)
            farthest = max(farthest, float(path_length[tail[in_block] - start, head[in_block]].max(initial=0.0)))
    return Fraction(farthest * (1 + 2.0**-40))


def path_length_bound(edges: Edges, domain: Domain, steps: IntegerMatrix) -> Fraction:
    """An upper bound of the path length between cells at any of these displacements, on an unmasked lattice."""
    assert domain.index is not None
    step = np.abs(domain.index[edges.tail] - domain.index[edges.head])
    axes = [np.all(step == unit, axis=1) for unit in np.eye(domain.dimension, dtype=np.int64)]
    straight = np.array([edges.length[along].max(initial=0.0) for along in axes])
    away = np.abs(steps)
    # A path takes diagonal edges first, if there are any, then the axes. Every step counts as the longest of its kind.
    across = np.zeros(len(steps), np.int64)
    diagonal = 0.0
    both = np.all(step == 1, axis=1) if domain.dimension == 2 else np.zeros(len(step), bool)
    if both.any():
        across, diagonal = away.min(axis=1), float(edges.length[both].max())
    return Fraction(float(((away - across[:, None]) @ straight + across * diagonal).max()) * (1 + 2.0**-40))


# --- places ----------------------------------------------------------------------------------------------------------


def _place_protection(stored: MechanismFile, within: float | None) -> Protection:
    domain, metric = stored.domain, stored.metric
    plural = "values" if words_of(domain) is INTERVALS else words_of(domain).many
    subject, unit = f"these {domain.size:,} {plural}", plural_unit(domain.unit)
    if domain.labels is not None:
        subject += f" ({join_labels(domain.labels)})"
    of_places = partial(Protection, kind="places", subject=subject, unit=unit)
    streets: Any = metric
    if metric.edge_source == "streets":
        level = Fraction(streets.epsilon) * Fraction(streets.scale)
        shortest = float(np.min(np.asarray(streets.length, float)))
        radius = _radius(within, level, shortest)
        return of_places(within=radius, factor=factor_of(level * Fraction(radius)), exact=False, along="the streets")
    if isinstance(metric, Euclidean):
        level = Fraction(metric.epsilon) * Fraction(metric.scale)
        # Ranks have no usual radius: neighbours are one apart.
        near = domain.spacing if within is None and domain.labels is not None else within
        radius = _radius(near, level, domain.spacing)
        factor = _factor_within(stored, radius)
        if factor is not None:
            return of_places(within=radius, factor=factor, exact=True)
        return of_places(within=radius, factor=factor_of(level * Fraction(radius) * stretch(domain)), exact=False)
    edges = stored.edges
    between = "any two of them" if isinstance(metric, Discrete) else "two of them that an edge joins"
    if isinstance(metric, Eikonal):
        between = "two of them side by side"
    exact = not stored.is_factored and len(edges.tail) * stored.mechanism.sizes["report"] <= MAX_COMPARISONS
    factor = factor_of(float(edges.length.max()))
    if exact:
        factor = _largest_factor(stored.mechanism["mass"].values, iter([(edges.tail, edges.head)]))
    return of_places(within=None, factor=factor, exact=exact, between=between)


def _radius(within: float | None, level: Fraction, shortest: float) -> float:
    """`within`, or the radius of the factor `USUAL_FACTOR`; at least the minimum distance of two places."""
    if within is not None and within >= shortest:
        return within
    usual = math.log(USUAL_FACTOR) / float(level) if within is None and level > 0 else 0.0
    return usual if shortest <= usual < math.inf else shortest


def _factor_within(stored: MechanismFile, radius: float) -> float | None:
    """(1) over the places of a table, None if it is too much work."""
    domain = stored.domain
    ordered_comparisons = domain.size**2 * stored.mechanism.sizes["report"]
    if stored.is_factored or ordered_comparisons > 2 * MAX_COMPARISONS or domain.size > MAX_PATH_CELLS:
        return None
    tail, head = all_pairs(domain)
    apart = np.sqrt(((domain.points[tail] - domain.points[head]) ** 2).sum(axis=1))
    # Rounded outwards: a pair too many only raises the factor.
    is_near = apart <= radius * float(stretch(domain)) * (1 + 2.0**-40)
    return _largest_factor(stored.mechanism["mass"].values, iter([(tail[is_near], head[is_near])]))
