"""The noise laws for smooth sensitivity: generalized Cauchy, Student and Laplace, by name.

`GeneralizedCauchy` and `StudentT` give pure privacy for bounds that grow by at most e^{gamma d}: noise_smooth.py has
the guarantee and its proof. `Laplace` has a fixed scale, or an approximate guarantee for bounds that grow by at most
1 + gamma d (noise_laplace.py). `best_split` chooses gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.closed_forms.noise.laplace import Laplace, laplace_epsilon, laplace_eta
from mechdesign.closed_forms.noise.noise_law import Array, NoiseLaw
from mechdesign.closed_forms.noise.smooth import SmoothLaw
from mechdesign.closed_forms.noise.split import Split, best_split
from mechdesign.errors import InputError

__all__ = [
    "GeneralizedCauchy",
    "Laplace",
    "NoiseLaw",
    "SmoothLaw",
    "Split",
    "StudentT",
    "best_split",
    "laplace_epsilon",
    "laplace_eta",
]


@dataclass(frozen=True)
class GeneralizedCauchy(SmoothLaw):
    """Density p sin(pi / p) / (2 pi) / (1 + |z|^p), p > 1; finite variance for p > 3.

    h = p z^{p-1} / (1 + z^p), z h - 1 = ((p - 1) z^p - 1) / (1 + z^p). The joint form is attained at the root z of

        p >= 2   z^p = p - 1 + p (gamma / eta) z,   eps = (p - 1) (gamma + eta / z)
        p < 2    z^p = p - 1 - p (gamma / eta) z,   eps = gamma + eta z^{p-1}

    where the derivative vanishes with z h > 1 or z h < 1: comparing z with 1 / z decides by the sign of p - 2.
    Source: paper 002, section 2.1, Lemma 3.3, Claim 3.4. Raises: InputError for p <= 1.
    """

    p: float

    def __post_init__(self) -> None:
        _require(self.p, 1.0, "p")

    @property
    def variance(self) -> float:
        """sin(pi / p) / sin(3 pi / p) for p > 3, in squared multiples of the scale; inf for p <= 3."""
        return math.sin(math.pi / self.p) / math.sin(3 * math.pi / self.p) if self.p > 3 else math.inf

    @property
    def scale_rate(self) -> float:
        return max(1.0, self.p - 1)

    @property
    def shift_rate(self) -> float:
        return (self.p - 1) ** ((self.p - 1) / self.p)

    def _joint_epsilon(self, gamma: float, eta: float) -> float:
        from scipy.optimize import brentq

        p, slope = self.p, self.p * gamma / eta
        flat = (p - 1) ** (1 / p)
        if p >= 2:
            steep = slope ** (1 / (p - 1))
            low, high, sign = max(flat, steep), flat + steep, 1.0
        else:
            high = flat if slope == 0 else min(flat, (p - 1) / slope)
            low, sign = high / 2, -1.0
        z = brentq(lambda x: x**p - (p - 1) - sign * slope * x, low * (1 - 1e-9), high * (1 + 1e-9), xtol=1e-300)
        return (p - 1) * (gamma + eta / z) if p >= 2 else gamma + eta * z ** (p - 1)

    def _joint_eta(self, epsilon: float, gamma: float) -> float:
        p = self.p
        left = epsilon / self.scale_rate - gamma
        if p >= 2:
            return left * (p - 1 + p * gamma / left) ** (1 / p)
        return left * ((1 + p * gamma / left) / (p - 1)) ** ((p - 1) / p)

    @property
    def shape(self) -> tuple[float, float]:
        return 1 / self.p, 1 - 1 / self.p

    def odds(self, z: Array) -> Array:
        return z**self.p

    def from_odds(self, ratio: Array) -> Array:
        return ratio ** (1 / self.p)

    def pdf(self, z: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            tails = 1 + np.abs(np.asarray(z, float)) ** self.p
        return self.p * math.sin(math.pi / self.p) / (2 * math.pi) / tails

    def reach(self, z: Array) -> Array:
        angle = math.pi / self.p
        return np.minimum(z, np.hypot(z - math.cos(angle), math.sin(angle)))


@dataclass(frozen=True)
class StudentT(SmoothLaw):
    """Student's law with nu > 0 degrees of freedom: density proportional to (1 + z^2 / nu)^{-(nu + 1) / 2}.

    h = (nu + 1) z / (nu + z^2), z h - 1 = nu (z^2 - 1) / (nu + z^2). With z = sqrt(nu) tan(phi / 2) the joint form is a
    sine wave: eps = gamma |nu - 1| / 2 + ((nu + 1) / 2) sqrt(gamma^2 + eta^2 / nu), for every nu > 0.
    Source: paper 002, section 2.1, Lemma 3.5. Raises: InputError for nu <= 0.
    """

    nu: float

    def __post_init__(self) -> None:
        _require(self.nu, 0.0, "nu")

    @property
    def variance(self) -> float:
        """Nu / (nu - 2) for nu > 2, in squared multiples of the scale; inf for nu <= 2."""
        return self.nu / (self.nu - 2) if self.nu > 2 else math.inf

    @property
    def scale_rate(self) -> float:
        return max(1.0, self.nu)

    @property
    def shift_rate(self) -> float:
        return (self.nu + 1) / (2 * math.sqrt(self.nu))

    def _joint_epsilon(self, gamma: float, eta: float) -> float:
        return gamma * abs(self.nu - 1) / 2 + (self.nu + 1) / 2 * math.hypot(gamma, eta / math.sqrt(self.nu))

    def _joint_eta(self, epsilon: float, gamma: float) -> float:
        reach = 2 * (epsilon - gamma * abs(self.nu - 1) / 2) / (self.nu + 1)
        return math.sqrt(self.nu * (reach - gamma) * (reach + gamma))

    @property
    def shape(self) -> tuple[float, float]:
        return 0.5, self.nu / 2

    def odds(self, z: Array) -> Array:
        return z * (z / self.nu)

    def from_odds(self, ratio: Array) -> Array:
        return np.sqrt(self.nu * ratio)

    def pdf(self, z: ArrayLike) -> Array:
        from scipy.special import betaln

        at = np.abs(np.asarray(z, float))
        with np.errstate(over="ignore"):
            tails = (1 + self.odds(at)) ** ((self.nu + 1) / 2)
        return math.exp(-betaln(0.5, self.nu / 2)) / math.sqrt(self.nu) / tails

    def reach(self, z: Array) -> Array:
        return np.hypot(z, math.sqrt(self.nu))


def _require(value: float, above: float, field: str) -> None:
    if not (math.isfinite(value) and value > above):
        raise InputError(
            f"must be finite and above {above:g}", field=field, value=value, remedy="3 is usual for nu, 4 for p"
        )
