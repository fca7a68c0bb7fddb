r"""The soft queries of Liang and Yi (CCS 2024) with their pointwise Lipschitz constants K and smooth sensitivities S.

| query | f(x) | K(x) |
|---|---|---|
| Threshold | clip((x - T) / tau + 1/2, 0, 1) | 1 / (r + tau), r the distance to the band [T - tau/2, T + tau/2] |
| BoundedRange | clip(min(x - a, b - x) / tau + 1/2, 0, 1) | c / (tau (r + c)), c = min(tau, (b - a + tau) / 2) |
| TwoWay | region whose corner is rounded by discs | 1 / (r + tau), r = max(\|s\| - tau/2, 0) |
| Region | clip(1/2 + s / tau, 0, 1), s a signed distance | at most 1 / (r + tau) |
| Kernel | e^{-a^2 / 2}, a = \|x - t\| / h | kappa(a) / h, see gaussian_chord.py |
| Ridge | phi(<v, x>) | \|v\| times the K of phi |
| Radial | phi(\|x - t\|) | the K of phi on the half-line of radii |

`mechdesign.release.band` defines K and S, and computes both for a band. In the band, of full width tau
in the unit of x, an answer is between 0 and 1. Places of a line are arrays of any shape. In a plane or space, the last
axis has the coordinates.

    S of a kernel density = max of kappa(u) / g(h |u - a|) / h over u between a and 1, where kappa peaks      (1)

If the maximum of (1) lies inside, one crossing on the curve of steepest chords gives it. All chords count: with a
horizon S would be smaller.
Source: Liang & Yi 2024, sections 4.1 to 4.4 and appendix C.3; Lemmas 4.1, 4.3, 4.5 to 4.8. The paper has no
linear growth, horizons, regions, or ranges narrower than their bands. Its first case for kernel densities (Lemmas 4.6
and 4.7) takes the stationary point of |f'|, not of the chord. That is not a smooth bound, and not used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from gaussian_chord import steepest, towards_peak
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.validation import check_finite, check_positive
from mechdesign.errors import InputError
from mechdesign.release.band import band_bound, band_distance, band_lipschitz
from mechdesign.release.growth import Growth, GrowthName

Array = NDArray[np.float64]


class SoftQuery(ABC):
    """f with K and S; `gamma` is per unit of x, S and K are in answers per unit."""

    @abstractmethod
    def values(self, x: ArrayLike) -> Array:
        """The answers f(x)."""

    @abstractmethod
    def lipschitz(self, x: ArrayLike) -> Array:
        """K(x)."""

    @abstractmethod
    def smooth(self, x: ArrayLike, gamma: float, growth: GrowthName = "exponential") -> Array:
        """S(x)."""


@dataclass(frozen=True)
class Band(SoftQuery):
    """clip(1/2 + s(x) / width, 0, 1); pairs beyond `horizon` are ignored."""

    width: float
    horizon: float = math.inf

    @abstractmethod
    def depth(self, x: ArrayLike) -> Array:
        """s(x), the signed distance to the middle of the band, positive inside."""

    @property
    def rise(self) -> float:
        """The distance from the edge of the band to the nearest peak."""
        return self.width

    def values(self, x: ArrayLike) -> Array:
        return np.clip(self.depth(x) / check_positive(self.width, "width") + 0.5, 0.0, 1.0)

    def lipschitz(self, x: ArrayLike) -> Array:
        """K(x), or an upper bound as for `Region`."""
        tau = check_positive(self.width, "width")
        return band_lipschitz(band_distance(self.depth(x), tau), tau, self.rise, self.horizon)

    def smooth(self, x: ArrayLike, gamma: float, growth: GrowthName = "exponential") -> Array:
        """S(x), or a smooth bound above it as for `Region`."""
        tau = check_positive(self.width, "width")
        law = Growth(name=growth, gamma=gamma)
        return band_bound(band_distance(self.depth(x), tau), tau, self.rise, law, self.horizon)


@dataclass(frozen=True, kw_only=True)
class Threshold(Band):
    """1 above `at`, 0 below."""

    at: float

    def depth(self, x: ArrayLike) -> Array:
        return check_finite(x, "x") - float(check_finite(self.at, "threshold"))


@dataclass(frozen=True, kw_only=True)
class BoundedRange(Band):
    """1 between low and high, 0 outside; the peak is below 1 if high - low is below the width."""

    low: float
    high: float

    @property
    def rise(self) -> float:
        """The width, or half the extent of a narrow range with its bands."""
        return min(self.width, (self.high - self.low + self.width) / 2)

    def depth(self, x: ArrayLike) -> Array:
        low, high = check_finite([self.low, self.high], "low and high")
        if not low < high:
            raise InputError("must be below high", field="low", value=f"{self.low} and {self.high}")
        place = check_finite(x, "x")
        return np.minimum(place - low, high - place)


@dataclass(frozen=True, kw_only=True)
class TwoWay(Band):
    """1 where both coordinates are above their thresholds (2,), rounded at the corner."""

    at: ArrayLike

    def depth(self, x: ArrayLike) -> Array:
        tau, corner = check_positive(self.width, "width"), check_finite(self.at, "thresholds")
        place = check_finite(x, "x")
        if corner.shape != (2,) or place.ndim == 0 or place.shape[-1] != 2:
            shapes = f"shape {corner.shape} for x of shape {place.shape}"
            raise InputError("must have shape (2,), for places (..., 2)", field="thresholds", value=shapes)
        # The region is the quadrant above c = T + (1 + 1/sqrt 2) tau grown by discs of radius tau (1/2 + 1/sqrt 2). Its
        # sides are the two thresholds. The band around its rounded corner begins in the corner (T1, T2).
        inner = tau / math.sqrt(2)
        above = place - (corner + inner + tau / 2)
        outside = np.hypot(*np.moveaxis(np.minimum(above, 0.0), -1, 0))
        return np.where(outside > 0, -outside, above.min(axis=-1)) + inner + tau / 2


@dataclass(frozen=True)
class Region(Band):
    """A region with signed distances x, for which |s(x) - s(x')| <= |x - x'| must hold, as for true distances.

    S and K are exact if the shortest path to the band continues straight to full depth: thresholds, strips, quadrants,
    large discs. Elsewhere they are upper bounds.
    """

    def depth(self, x: ArrayLike) -> Array:
        return check_finite(x, "signed_distance")


@dataclass(frozen=True)
class Kernel(SoftQuery):
    """e^{-|x - t|^2 / (2 h^2)}, the term of a person at x in n times a kernel density at t; K <= e^{-1/2} / h."""

    center: ArrayLike
    bandwidth: float

    def values(self, x: ArrayLike) -> Array:
        return np.exp(-(scaled_radius(x, self.center, self.bandwidth) ** 2) / 2)

    def lipschitz(self, x: ArrayLike) -> Array:
        return steepest(scaled_radius(x, self.center, self.bandwidth)) / self.bandwidth

    def smooth(self, x: ArrayLike, gamma: float, growth: GrowthName = "exponential") -> Array:
        """(1). Cost: a bisection of 64 steps on the array."""
        a = scaled_radius(x, self.center, self.bandwidth)
        scaled = Growth(name=growth, gamma=check_positive(gamma, "gamma") * self.bandwidth)
        u = towards_peak(a, scaled)
        return np.maximum(steepest(a), steepest(u) * np.exp(-scaled.log(np.abs(u - a)))) / self.bandwidth


@dataclass(frozen=True)
class Ridge(SoftQuery):
    """phi(<direction, x>)."""

    direction: ArrayLike
    profile: SoftQuery

    def along(self, x: ArrayLike) -> tuple[Array, float]:
        """<direction, x> (...) and |direction|."""
        place, way = check_finite(x, "x"), check_finite(self.direction, "direction")
        if way.ndim != 1 or place.ndim == 0 or place.shape[-1] != len(way) or not way.any():
            shapes = f"shape {way.shape} for x of shape {place.shape}"
            message = "must be a direction (k,) that is not 0, for places (..., k)"
            raise InputError(message, field="direction", value=shapes)
        return place @ way, float(np.linalg.norm(way))

    def values(self, x: ArrayLike) -> Array:
        return self.profile.values(self.along(x)[0])

    def lipschitz(self, x: ArrayLike) -> Array:
        t, length = self.along(x)
        return length * self.profile.lipschitz(t)

    def smooth(self, x: ArrayLike, gamma: float, growth: GrowthName = "exponential") -> Array:
        """|direction| times the S of phi at gamma / |direction| (Lemma 4.8)."""
        t, length = self.along(x)
        return length * self.profile.smooth(t, check_positive(gamma, "gamma") / length, growth)


@dataclass(frozen=True)
class Radial(SoftQuery):
    """phi(|x - center|).

    Profiles are defined on the whole line. So S is a smooth upper bound, and exact if its chords stay at radii >= 0.
    """

    center: ArrayLike
    profile: SoftQuery

    def values(self, x: ArrayLike) -> Array:
        return self.profile.values(scaled_radius(x, self.center, 1.0))

    def lipschitz(self, x: ArrayLike) -> Array:
        return self.profile.lipschitz(scaled_radius(x, self.center, 1.0))

    def smooth(self, x: ArrayLike, gamma: float, growth: GrowthName = "exponential") -> Array:
        return self.profile.smooth(scaled_radius(x, self.center, 1.0), gamma, growth)


def scaled_radius(x: ArrayLike, center: ArrayLike, bandwidth: float) -> Array:
    """|x - t| / h (...) of places (..., k)."""
    h, place, middle = check_positive(bandwidth, "bandwidth"), check_finite(x, "x"), check_finite(center, "center")
    if middle.ndim != 1 or place.ndim == 0 or place.shape[-1] != len(middle):
        shapes = f"shape {middle.shape} for x of shape {place.shape}"
        raise InputError("must have shape (k,), for places (..., k)", field="center", value=shapes)
    return np.linalg.norm(place - middle, axis=-1) / h
