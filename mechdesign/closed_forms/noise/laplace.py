r"""Laplace noise: at a fixed scale K / eps (global Lipschitz constant), or approximately at the scale B(x) / eta.

    y = f(x) + (B(x) / eta) Z,  B(x) >= K(x),  B(x) <= (1 + gamma |x - x'|) B(x')
    P(y in E | x) <= e^{eps |x - x'|} P(y in E | x') + delta,   eps = eta + gamma max(1, ln(1 / delta))

Source: paper 002, Lemma 2.3, Corollary 3.1 (fixed scale) and Lemma 3.6 (linear growth). Why: with d = |x - x'| the
loss is at most eta d + ln(1 + gamma d) where B(x) <= B(x'), and at most eta d + |Z| gamma d where B(x) > B(x');
P(|Z| > ln(1 / delta)) = delta. With exponential growth the second term is |Z| (e^{gamma d} - 1), which no multiple of
d bounds: gamma = 0.36, eta = 0.67, d = 4, delta = 5.3e-4 has a true delta of 1.0e-2. Hence it is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.checks import check_epsilon
from mechdesign.closed_forms.noise.noise_law import Array, NoiseLaw
from mechdesign.errors import InputError, UnsuitableError

Growth = Literal["linear", "exponential"]


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """Density e^{-|z|} / 2."""

    @property
    def variance(self) -> float:
        """2, in squared multiples of the scale."""
        return 2.0

    def pdf(self, z: ArrayLike) -> Array:
        return np.exp(-np.abs(np.asarray(z, float))) / 2

    def tail(self, z: Array) -> Array:
        return np.exp(-z) / 2

    def centre(self, z: Array) -> Array:
        return -np.expm1(-z) / 2

    def distance_of(self, probability: Array) -> Array:
        with np.errstate(divide="ignore"):
            return -np.log(probability)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        return rng.laplace(size=size)

    def reach(self, z: Array) -> Array:
        return np.minimum(z, 1.0)


def laplace_epsilon(gamma: float, eta: float, delta: float, growth: Growth = "linear") -> float:
    """The eps of the (eps, delta) guarantee, in nats per unit of distance, for B of linear growth.

    gamma >= 0 and eta > 0, per unit of distance; delta in (0, 1), not scaled by distance.
    Raises: InputError outside these; UnsuitableError for exponential growth.
    """
    return check_epsilon(eta, "eta") + check_gamma(gamma) * _slope(delta, growth)


def laplace_eta(epsilon: float, gamma: float, delta: float, growth: Growth = "linear") -> float:
    """The noise budget eta = eps - gamma max(1, ln(1 / delta)), per unit of distance: the scale is B(x) / eta.

    Raises: as `laplace_epsilon`; InputError where gamma leaves no budget.
    """
    slope = _slope(delta, growth)
    left = check_epsilon(epsilon) - check_gamma(gamma) * slope
    if not left > 0:
        raise beyond_budget(gamma, epsilon / slope)
    return left


def check_gamma(gamma: float) -> float:
    """A smoothness gamma, finite and not negative, or an InputError; 0 is that of a constant bound."""
    value = float(gamma)
    if not (math.isfinite(value) and value >= 0):
        raise InputError(
            "must be finite and not negative", field="gamma", value=value, remedy="give a smoothness per unit"
        )
    return value


def beyond_budget(gamma: float, limit: float) -> InputError:
    """The refusal of a smoothness that leaves nothing for the noise."""
    return InputError(
        "leaves no budget for the noise",
        field="gamma",
        value=gamma,
        remedy=f"use a gamma below {limit:.6g} per unit, or a larger eps",
    )


def _slope(delta: float, growth: Growth) -> float:
    if growth == "exponential":
        raise UnsuitableError(
            "Laplace noise of a scale that grows exponentially has no loss in proportion to distance",
            field="growth",
            value=growth,
            remedy="use a bound of linear growth, or the generalized Cauchy or Student law",
        )
    if growth != "linear":
        raise InputError("unknown growth", field="growth", value=growth, remedy="use linear")
    if not 0 < delta < 1:
        raise InputError(
            "must be between 0 and 1", field="delta", value=delta, remedy="give a small probability such as 1e-6"
        )
    return max(1.0, math.log(1 / delta))
