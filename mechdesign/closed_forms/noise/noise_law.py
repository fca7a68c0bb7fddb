r"""NoiseLaw: a symmetric law of noise on the line, as a distribution. Which privacy it gives stands with each law.

For the laws of paper 002 with polynomial tails an odds ratio r(|z|) in [0, inf) has a beta-prime law (a, b), so that

    P(Z > z) = I_{1/(1 + r)}(b, a) / 2,    P(0 < Z < z) = I_{r/(1 + r)}(a, b) / 2,    z > 0,

I the regularised incomplete beta function: small probabilities, in the tails as at the centre, keep all their digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.display import Shown
from mechdesign.errors import InputError

Array = NDArray[np.float64]

_NODES = 16  # of the Gauss-Legendre rule on narrow intervals
_NARROW = 4.0  # an interval whose half width is this many times below the distance to the nearest singularity is narrow


@dataclass(frozen=True)
class NoiseLaw(Shown, ABC):
    """A symmetric law with a density that falls off from 0; z is in multiples of the scale of the noise."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var Z in squared multiples of the scale; inf where it is infinite."""

    @abstractmethod
    def pdf(self, z: ArrayLike) -> Array:
        """The density at z."""

    @abstractmethod
    def tail(self, z: Array) -> Array:
        """P(Z > z) for z >= 0."""

    @abstractmethod
    def centre(self, z: Array) -> Array:
        """P(0 < Z < z) for z >= 0."""

    @abstractmethod
    def distance_of(self, probability: Array) -> Array:
        """The z >= 0 with P(|Z| > z) = `probability`."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        """Seeded draws of Z, for simulations only: floating-point noise added to a secret has been undone bit by bit.

        A live report is drawn from a mechanism on an output grid (closed_forms/mechanisms/release.py).
        """

    @abstractmethod
    def reach(self, z: Array) -> Array:
        """A lower bound of the distance from z > 0 to the nearest singularity of the density in the complex plane."""

    def cdf(self, z: ArrayLike) -> Array:
        """P(Z <= z), with all digits in the lower tail; use `mass` for the upper one."""
        at = np.asarray(z, float)
        beyond = self.tail(np.abs(at))
        return np.where(at > 0, 1.0 - beyond, beyond)

    def ppf(self, probability: ArrayLike) -> Array:
        """The z with P(Z <= z) = `probability`; -inf at 0, inf at 1.

        Raises: InputError outside [0, 1].
        """
        p = np.asarray(probability, float)
        if not ((p >= 0) & (p <= 1)).all():
            raise InputError(
                "must be in [0, 1]", field="probability", value=f"{p.min()} to {p.max()}", remedy="give probabilities"
            )
        return np.sign(p - 0.5) * self.distance_of(2 * np.minimum(p, 1 - p))

    def mass(self, low: ArrayLike, high: ArrayLike) -> Array:
        """P(low < Z < high) for low <= high, infinite ends allowed, to a relative 1e-12 however small it is.

        Narrow intervals by quadrature of the density, where differences of the cdf would cancel; intervals around 0 as
        a sum of two central probabilities; others as differences of tails or of central probabilities, wide enough not
        to cancel.
        """
        left, right = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        flip = right <= 0
        a, b = np.where(flip, -right, left), np.where(flip, -left, right)
        around = a < 0
        near, far = np.abs(a), np.abs(b)
        found = np.where(around, self.centre(near) + self.centre(far), self._apart(near, far))
        finite = np.isfinite(far) & ~around
        middle, half = np.where(finite, (near + far) / 2, 1.0), np.where(finite, (far - near) / 2, 0.0)
        narrow = finite & (_NARROW * half <= self.reach(middle))
        return np.where(narrow, self._quadrature(middle, half), found)

    def _apart(self, near: Array, far: Array) -> Array:
        beyond = self.tail(near)
        return np.where(beyond > 0.25, self.centre(far) - self.centre(near), beyond - self.tail(far))

    def _quadrature(self, middle: Array, half: Array) -> Array:
        total = np.zeros_like(middle)
        for node, weight in zip(*leggauss(_NODES), strict=True):
            total += weight * self.pdf(middle + half * node)
        return total * half


@dataclass(frozen=True)
class BetaLaw(NoiseLaw):
    """A law whose odds ratio r(|z|) is beta-prime; see the module docstring."""

    @property
    @abstractmethod
    def shape(self) -> tuple[float, float]:
        """(a, b)."""

    @abstractmethod
    def odds(self, z: Array) -> Array:
        """r(z) for z >= 0, increasing from 0."""

    @abstractmethod
    def from_odds(self, ratio: Array) -> Array:
        """The inverse of `odds`."""

    def tail(self, z: Array) -> Array:
        inside, smaller = self._smaller(z)
        return np.where(inside, 0.5 - smaller, smaller)

    def centre(self, z: Array) -> Array:
        inside, smaller = self._smaller(z)
        return np.where(inside, smaller, 0.5 - smaller)

    def _smaller(self, z: Array) -> tuple[NDArray[np.bool_], Array]:
        """Whether r(z) < 1; then P(0 < Z < z), else P(Z > z)."""
        from scipy.special import betainc

        a, b = self.shape
        with np.errstate(over="ignore"):
            ratio = self.odds(z)
        inside = ratio < 1
        near = np.where(inside, ratio, 0.0)
        return inside, np.where(inside, betainc(a, b, near / (1 + near)), betainc(b, a, 1 / (1 + ratio))) / 2

    def distance_of(self, probability: Array) -> Array:
        from scipy.special import betaincinv

        a, b = self.shape
        outer = betaincinv(b, a, np.minimum(probability, 0.5))
        inner = betaincinv(a, b, np.minimum(1 - probability, 0.5))
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.where(probability < 0.5, (1 - outer) / outer, inner / (1 - inner))
            return self.from_odds(ratio)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        a, b = self.shape
        distance = self.from_odds(rng.standard_gamma(a, size) / rng.standard_gamma(b, size))
        return distance * rng.choice(np.array([-1.0, 1.0]), size)
