r"""Laws of one report in the plane about a position: cells, noise, an offset kept by a device, a zone without reports.

For positions spread evenly, the position given a report at y is y - s, where s has the law of the step from position to
report. So the share of a disc of radius R is the largest P(|s - c| <= R) over shifts c, and needs one integral:

    cells       area(cell and disc) / area(cell), both about the centre                                         (1)
    noise       E a(r, c) over r, a the share of directions into the disc                                       (2)

Mean errors are E|s|. Figures of (1) are doubles, of (2) sums over 20,000 quantiles of r, correct to 10^-4. A witness is
a pair of positions and an event that no level of some size allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaincinv, ndtr, ndtri

from mechdesign.base.arrays import Points, Vector

_QUANTILES = (np.arange(20_000) + 0.5) / 20_000
_DIGITS = 6  # of a mean in m, which the rule of integration has at least
_SHIFTS = 100  # distances of a disc from a report that are tried
_LIKELY = 1e-3  # probability of the event of a witness where the nats have no bound
_TAILS = -float(ndtri(_LIKELY))  # deviations
_NODES = 200  # of each Gauss rule of a mean distance or a share


@dataclass(frozen=True, kw_only=True)
class RuleWitness:
    """Two positions `distance` m apart, and the probability of an event from either; nats None if they are infinite."""

    distance: float
    event: str
    here: float
    there: float

    @property
    def nats(self) -> float | None:
        return math.log(self.here / self.there) if self.there else None


@dataclass(frozen=True, kw_only=True)
class CellLaw:
    """A report of the cell of a position, after a normal offset: its centre, or any position in it; sides 4 or 6."""

    height: float
    width: float
    sides: int = 4
    deviation: float = 0.0
    is_random: bool = False
    epsilon: None = None
    is_kept: bool = False

    def sample(self, points: Points, rng: np.random.Generator) -> Points:
        moved = points + self.deviation * rng.normal(size=points.shape) if self.deviation else points
        size = np.array([self.height, self.width])
        if self.sides == 4:
            inside = rng.random(points.shape) if self.is_random else 0.5
            return np.asarray((np.floor(moved / size) + inside) * size)
        # Centres of hexagons are two rectangular lattices: the nearer centre of both names the cell.
        step = np.array([math.sqrt(3) * self.width, self.width])
        centres = [np.round(moved / step - part) * step + part * step for part in (0.0, 0.5)]
        near, other = (np.hypot(*(moved - centre).T) for centre in centres)
        return np.asarray(np.where((near <= other)[:, None], *centres))

    def mean_error(self) -> float:
        if self.deviation:
            return self._polar_integral(math.inf, power=2)
        if self.is_random:
            nodes, weights = np.polynomial.legendre.leggauss(_NODES)
            part = (nodes + 1) / 2
            far = np.hypot(self.height * part[:, None], self.width * part)
            # The difference of two even positions has a triangular law on each axis.
            return float((weights * (1 - part)) @ far @ (weights * (1 - part)))
        return self._over_directions(lambda border: border**3 / 3) / self.area

    def share(self, disc: float) -> float:
        if self.deviation:
            return self._polar_integral(disc, power=1)
        # The rule of integration may end above 1 by rounding.
        return min(1.0, self._over_directions(lambda border: min(border, disc) ** 2 / 2) / self.area)

    def witness(self, distance: float) -> RuleWitness:
        if not self.deviation:
            return RuleWitness(distance=distance, event="the report is the cell of the first position", here=1, there=0)
        # By concavity of ln p the ratio of a half-plane of cells grows as it becomes rarer.
        there = float(ndtr(-_TAILS - distance / self.deviation))
        event = f"the cell is beyond a border {_TAILS * self.deviation:.0f} m from the first position"
        return RuleWitness(distance=distance, event=event, here=_LIKELY, there=there)

    @property
    def area(self) -> float:
        return self.height * self.width if self.sides == 4 else math.sqrt(3) / 2 * self.width**2

    def _over_directions(self, figure: Callable[[float], float]) -> float:
        """The integral of a figure of the distance to the border over all directions."""
        if self.sides == 6:
            return 12 * float(quad(lambda turn: figure(self.width / 2 / math.cos(turn)), 0, math.pi / 6, limit=200)[0])
        corner, half, wide = math.atan2(self.width, self.height), self.height / 2, self.width / 2
        first = quad(lambda turn: figure(half / math.cos(turn)), 0, corner, limit=200)[0]
        second = quad(lambda turn: figure(wide / math.cos(turn)), 0, math.pi / 2 - corner, limit=200)[0]
        return 4 * float(first + second)

    def _polar_integral(self, limit: float, *, power: int) -> float:
        """The integral of radius^(power - 1) times the density of the error within `limit`; square, deviation > 0."""
        # Gauss rules in polar form, over an eighth of the plane: the density is symmetric in both axes and their order.
        # It is a product of densities of U + s Z, with U even over the side of a cell and Z standard normal.
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        turn, reach = math.pi / 8 * (nodes + 1), self.height / 2 + 9 * self.deviation
        half = min(math.sqrt(2) * reach, limit) / 2
        radius = half * (nodes + 1)
        ends = np.array([self.height, -self.height]) / 2 / self.deviation
        steps = (radius[:, None] * side / self.deviation for side in (np.cos(turn), np.sin(turn)))
        east, north = ((ndtr(x + ends[0]) - ndtr(x + ends[1])) / self.height for x in steps)
        inner = ((radius**power * weights)[:, None] * east * north).sum(axis=0)
        return float(8 * (inner * weights).sum() * math.pi / 8 * half)


@dataclass(frozen=True, kw_only=True)
class NoiseLaw:
    """An even direction and a radius: its quantiles, its end, and the level or the deviation where it has one."""

    radius: Callable[[Vector], Vector]
    reach: float = math.inf
    epsilon: float | None = None
    deviation: float | None = None
    is_kept: bool = False  # True: a device draws it once

    def sample(self, points: Points, rng: np.random.Generator) -> Points:
        turn, radius = rng.uniform(0, 2 * np.pi, len(points)), self.radius(rng.random(len(points)))
        if self.is_kept:
            turn, radius = turn[:1], radius[:1]
        return np.asarray(points + radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]))

    def mean_error(self) -> float:
        return round(float(quad(lambda share: float(self.radius(np.array([share]))[0]), 0, 1, limit=200)[0]), _DIGITS)

    def share(self, disc: float) -> float:
        farthest = float(self.radius(np.array([0.999]))[0])
        return max(self._within(disc, shift) for shift in np.linspace(0, farthest, _SHIFTS))

    def witness(self, distance: float) -> RuleWitness | None:
        if self.epsilon is not None:
            return None
        if self.deviation is not None:
            event = f"the report is {_TAILS * self.deviation:.0f} m or more beyond the first position"
            there = float(ndtr(-_TAILS - distance / self.deviation))
            return RuleWitness(distance=distance, event=event, here=_LIKELY, there=there)
        event = f"the report is more than {self.reach:g} m from the second position"
        return RuleWitness(distance=distance, event=event, here=1 - self._within(self.reach, distance), there=0.0)

    @cached_property
    def _radii(self) -> Vector:
        return self.radius(_QUANTILES)

    def _within(self, disc: float, shift: float) -> float:
        """(2) for one shift."""
        radius = self._radii
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = (radius**2 + shift**2 - disc**2) / (2 * radius * shift)
        share = np.arccos(np.clip(cosine, -1, 1)) / np.pi if shift else (radius <= disc).astype(float)
        return float(share.mean())


@dataclass(frozen=True, kw_only=True)
class ZoneLaw:
    """No report within a radius of a home, and the true position elsewhere."""

    radius: float
    epsilon: None = None
    is_kept: bool = False

    def sample(self, points: Points, rng: np.random.Generator) -> Points:
        return np.where((np.hypot(*points.T) < self.radius)[:, None], np.nan, points)

    def mean_error(self) -> float:
        return 0.0

    def share(self, disc: float) -> float:
        return 1.0

    def witness(self, distance: float) -> RuleWitness:
        event = f"the report is the first position, and both are {self.radius:g} m or more from the home"
        return RuleWitness(distance=distance, event=event, here=1.0, there=0.0)


# Positions and reports (n, 2) in m, to the north and to the east; epsilon in nats per m, None if no level is finite.
Law: TypeAlias = CellLaw | NoiseLaw | ZoneLaw


def laplace(within: float) -> NoiseLaw:
    """Planar Laplace noise of 2 nats over a radius in m."""
    return NoiseLaw(radius=lambda share: np.asarray(gammaincinv(2, share)) * within / 2, epsilon=2 / within)


def normal(deviation: float) -> NoiseLaw:
    """A normal offset on each axis."""
    return NoiseLaw(radius=lambda share: deviation * np.sqrt(-2 * np.log1p(-share)), deviation=deviation)


def ring(inner: float, outer: float, *, is_kept: bool = False) -> NoiseLaw:
    """Even between two radii; a disc if the inner one is 0."""
    return NoiseLaw(
        radius=lambda share: np.sqrt(inner**2 + (outer**2 - inner**2) * share), reach=outer, is_kept=is_kept
    )


def even_radius(reach: float) -> NoiseLaw:
    """A radius that is even from 0, as of displaced survey clusters: it crowds at the middle."""
    return NoiseLaw(radius=lambda share: reach * share, reach=reach)
