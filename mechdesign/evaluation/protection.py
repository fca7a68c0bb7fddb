r"""Protection: the largest factor by which one report changes the odds between two people.

Odds between people at x and x' change by max over reports y of P(y|x) / P(y|x'). `factor` is the largest of these,
rounded up, over all x, x' at most `within` apart in a straight line on the ground. A plane lengthens lines by up to
1 + excess: such positions lie at most within (1 + excess) apart on it.

Cells are half-open: a border belongs to the higher cell. Cells at a displacement of k > 0 along the axes hold positions
at every distance above their gap, the length of (|k| - 1)+ h, and at none below or at it. So the factor is the largest
over all pairs of cells with gap < within (1 + excess); without a plane it is attained. Gaps are compared in fractions.
At within = 0 these are the cells that touch. The factor of two cells is max over y of mass[u, y] / mass[v, y]. In
doubles it is within 4 units in the last place of the exact fraction, which 2^-50 exceeds. If that is too much work, and
for factors, it is e^d for the largest claimed distance d of such cells. Positions: positions/protection.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Protocol

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from mechdesign.base.registry import Role
from mechdesign.base.units import plural_unit
from mechdesign.base.validation import read_only
from mechdesign.mechanism.certificate import exp_lower
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, all_pairs, displaced_pairs
from mechdesign.problem.metrics import Discrete, Eikonal, Euclidean
from mechdesign.problem.vocabulary import CELLS, INTERVALS, words_of

USUAL = 2.0  # the factor whose radius is stated by default
MOST_WORK = 4_000_000_000  # pairs of rows times reports that are compared: some ten seconds
MOST_CELLS = 20_000  # of a masked map, between whose cells the shortest ways are searched
_UP = 1 + 2.0**-50
_SEARCHED = 256  # cells that are searched from at a time
_PAIRS = 50_000_000  # of cells that are taken one by one; beyond, all pairs of the map are

Kind = Literal["positions", "cells", "places"]


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The protection of a mechanism.

    subject: `kind` in words. unit: the unit of `within`, as printed. within: the radius in a straight line on the
    ground, None without a length. factor: the largest factor by which one report changes the odds within the radius,
    rounded up; inf without a bound, None if it needs too much work. exact: True if two positions or places attain it.
    between: the pairs of places, if `within` does not define them. along: the curve along which `within` is measured,
    if it is not straight. path: the factor at a distance `within` along paths in a masked area. epsilon: the largest
    claimed level of positions, in nats per unit on the ground.
    """

    kind: Kind
    subject: str
    unit: str
    within: float | None
    factor: float | None
    exact: bool
    between: str | None = None
    along: str | None = None
    path: float | None = None
    epsilon: float | None = None


class PositionProtection(Protocol):
    """Computes the protection of mechanisms with a claim about positions."""

    def protection(self, stored: MechanismFile, claim: PositionClaim, within: float | None) -> Protection:
        """`within` is in the unit of the domain."""
        ...


POSITION_PROTECTION: Role[PositionProtection] = Role("protection of positions")


def protection(stored: MechanismFile, within: float | None = None) -> Protection:
    """The protection of a certified mechanism, from its integers, or from its claim beyond `MOST_WORK`."""
    radius = _designed_radius(stored) if within is None else within
    if stored.positions is not None:
        return POSITION_PROTECTION.get().protection(stored, stored.positions, radius)
    return _cell_protection(stored, radius) if words_of(stored.domain) is CELLS else _place_protection(stored, radius)


def _designed_radius(stored: MechanismFile) -> float | None:
    radius = stored.parameters["problem_parameters"].get("within")
    known = isinstance(radius, (int, float)) and not isinstance(radius, bool) and 0 < radius < math.inf
    return float(radius) if known else None


def factor_of(nats: Fraction | float) -> float:
    """e^nats, rounded up; inf beyond 709 nats, where doubles end."""
    raised = rounded_up(Fraction(nats))
    if raised > 80:  # where `exp_lower` ends: the library's is right to some units in the last place
        return math.exp(raised) * (1 + 2.0**-40) if raised < 709 else math.inf
    digits, shift = exp_lower(raised)
    return 1.0 if raised == 0 else rounded_up(Fraction(digits) / Fraction(2) ** shift * (1 + Fraction(1, 1 << 59)))


def rounded_up(exact: Fraction) -> float:
    """The smallest double of at least `exact`, or the next one."""
    near = float(exact)
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near


def stretch(domain: Domain) -> Fraction:
    """The largest ratio of a length on the plane of a domain to that on the ground."""
    if domain.plane is None:
        return Fraction(1)
    return 1 + Fraction(domain.plane.any_excess(domain.max_position_radius)) * (1 + Fraction(1, 1 << 40))


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
    steps, inner = near_steps(domain, Fraction(radius), stretch(domain))
    exact = not stored.is_factored and len(steps) * stored.mechanism["mass"].size <= MOST_WORK
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
        exact=exact and inner,
    )


def near_steps(domain: Domain, radius: Fraction, stretch: Fraction) -> tuple[NDArray[np.int64], bool]:
    """Displacements (k, axes) of cells with positions at most `radius` apart, nearest first, one of each opposite pair.

    The second value is True if all of them do so however the plane stretches lengths.
    """
    assert domain.cell is not None and domain.shape is not None
    sides = [Fraction(side) for side in domain.cell]
    across = sum((count * side for count, side in zip(domain.shape, sides, strict=True)), Fraction(0))
    radius = min(radius, across)  # every gap is shorter
    most = radius * stretch
    reach = [min(count - 1, math.floor(most / side) + 1) for count, side in zip(domain.shape, sides, strict=True)]
    ranges = [np.arange(-k if axis else 0, k + 1) for axis, k in enumerate(reach)]
    steps = np.stack([axis.ravel() for axis in np.meshgrid(*ranges, indexing="ij")], axis=1)
    # Displacements come in opposite pairs with one factor, so half of them suffices.
    steps = steps[math.prod(2 * k + 1 for k in reach[1:]) // 2 + 1 :]  # later than the origin
    gap = np.maximum(np.abs(steps) - 1, 0)
    square = ((gap * np.asarray(domain.cell)) ** 2).sum(axis=1)
    limit = float(most) ** 2
    near = square <= limit * (1 + 1e-9)
    steps, gap, square = steps[near], gap[near], square[near]
    near, sure = np.ones(len(steps), bool), True
    for k in np.flatnonzero(square > float(radius) ** 2 * (1 - 1e-9)):
        # Only displacements near the limit need fractions; floating point decides the others safely.
        exact = sum(((int(g) * side) ** 2 for g, side in zip(gap[k], sides, strict=True)), Fraction(0))
        near[k] = exact < most**2 if radius > 0 else exact == 0
        # Between the radius and `stretch` times it the plane decides. It keeps lengths along a row of cells exactly.
        along_a_row = exact == radius**2 and np.count_nonzero(gap[k]) == 1
        sure &= not near[k] or exact < radius**2 or radius == 0 or bool(along_a_row)
    order = np.argsort(square[near], kind="stable")
    return steps[near][order], sure


def _largest_factor(mass: NDArray[np.uint64], pairs: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> float:
    table = np.ascontiguousarray(mass)
    ratios = (float(_steepest(table, read_only(tail), read_only(head))) for tail, head in pairs if len(tail))
    largest = max(ratios, default=1.0)
    return 1.0 if largest == 1 else largest * _UP


@numba.njit(cache=True, nogil=True)
def _steepest(mass, tail, head):  # type: ignore[no-untyped-def]
    high, low = 1.0, 1.0
    for e in range(tail.size):
        u, v = tail[e], head[e]
        for y in range(mass.shape[1]):
            ratio = np.float64(mass[u, y]) / np.float64(mass[v, y])
            high = max(high, ratio)
            low = min(low, ratio)
    return max(high, 1 / low)


def _claimed_distance(stored: MechanismFile, steps: NDArray[np.int64]) -> Fraction | None:
    """An upper bound of the claimed distances in nats of cells at these displacements; None if unknown."""
    metric, domain = stored.metric, stored.domain
    assert domain.cell is not None and domain.shape is not None
    if len(steps) == 0 or not stored.edges.length.any():
        return Fraction(0)
    if isinstance(metric, Discrete):
        return Fraction(metric.epsilon) * Fraction(metric.scale)
    if isinstance(metric, Euclidean):
        away = float(np.sqrt(((steps * np.asarray(domain.cell)) ** 2).sum(axis=1)).max())
        return Fraction(metric.epsilon) * Fraction(metric.scale) * Fraction(away * (1 + 2.0**-40))
    if isinstance(metric, Eikonal) and domain.size == math.prod(domain.shape):
        return along_steps(stored.edges, domain, steps)
    if domain.size > MOST_CELLS:
        return None
    graph, farthest = stored.edges.matrix(domain.size), 0.0
    pairs = []
    if len(steps) * domain.size <= _PAIRS:
        pairs = [displaced_pairs(domain, tuple(step)) for step in steps.tolist()]
    # Masked maps: paths bend around water, so only a search knows their lengths.
    for start in range(0, domain.size, _SEARCHED):
        sources = np.arange(start, min(start + _SEARCHED, domain.size))
        ways = np.asarray(dijkstra(graph, directed=False, indices=sources))
        if not pairs:
            farthest = max(farthest, float(ways.max()))
        for tail, head in pairs:
            here = (tail >= start) & (tail < start + _SEARCHED)
            farthest = max(farthest, float(ways[tail[here] - start, head[here]].max(initial=0.0)))
    return Fraction(farthest * (1 + 2.0**-40))


def along_steps(edges: Edges, domain: Domain, steps: NDArray[np.int64]) -> Fraction:
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
    what = "values" if words_of(domain) is INTERVALS else words_of(domain).many
    subject, unit = f"these {domain.size:,} {what}", plural_unit(domain.unit)
    of_places = partial(Protection, kind="places", subject=subject, unit=unit)
    streets: Any = metric
    if metric.edge_source == "streets":
        level = Fraction(streets.epsilon) * Fraction(streets.scale)
        shortest = float(np.min(np.asarray(streets.length, float)))
        radius = _radius(within, level, shortest)
        return of_places(within=radius, factor=factor_of(level * Fraction(radius)), exact=False, along="the streets")
    if isinstance(metric, Euclidean):
        level = Fraction(metric.epsilon) * Fraction(metric.scale)
        radius = _radius(within, level, domain.spacing)
        factor = _near_factor(stored, radius)
        if factor is not None:
            return of_places(within=radius, factor=factor, exact=True)
        return of_places(within=radius, factor=factor_of(level * Fraction(radius) * stretch(domain)), exact=False)
    edges = stored.edges
    between = "any two of them" if isinstance(metric, Discrete) else "two of them that an edge joins"
    if isinstance(metric, Eikonal):
        between = "two of them side by side"
    exact = not stored.is_factored and len(edges.tail) * stored.mechanism.sizes["report"] <= MOST_WORK
    factor = factor_of(float(edges.length.max()))
    if exact:
        factor = _largest_factor(stored.mechanism["mass"].values, iter([(edges.tail, edges.head)]))
    return of_places(within=None, factor=factor, exact=exact, between=between)


def _radius(within: float | None, level: Fraction, least: float) -> float:
    """`within`, or the radius of the factor `USUAL`; at least the minimum distance of two places."""
    if within is not None and within >= least:
        return within
    usual = math.log(USUAL) / float(level) if within is None and level > 0 else 0.0
    return usual if least <= usual < math.inf else least


def _near_factor(stored: MechanismFile, radius: float) -> float | None:
    """None if it is too much work."""
    domain = stored.domain
    if stored.is_factored or domain.size**2 * stored.mechanism.sizes["report"] > 2 * MOST_WORK or domain.size > 20_000:
        return None
    tail, head = all_pairs(domain)
    apart = np.sqrt(((domain.points[tail] - domain.points[head]) ** 2).sum(axis=1))
    near = apart <= radius * float(stretch(domain)) * (1 + 2.0**-40)
    return _largest_factor(stored.mechanism["mass"].values, iter([(tail[near], head[near])]))
