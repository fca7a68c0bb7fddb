r"""Laws of the noise of releases: generalized Cauchy, Student and Laplace, and the privacy that each gives.

Pure privacy. Generalized Cauchy and Student noise at the scale of a smooth bound, y = f(x) + (B(x) / eta) Z, satisfies

    (1)  P(y|x) <= e^{eps d(x, x')} P(y|x')

where |f(x) - f(x')| <= B(x) d(x, x') for all x', and B(x) <= e^{gamma d(x, x')} B(x'). eps, gamma and eta are per unit
of d; B(x) / eta is in the unit of f. With density q, h = -(ln q)', c = sup |z h - 1| and s = sup |h|,

    (2)  separate   eps = gamma c + eta s
    (3)  joint      eps = sup_z [gamma |z h(z) - 1| + eta |h(z)|]  <=  (2), tight as d -> 0

Source: Liang & Yi 2024, section 3.2: Lemma 3.3 and Corollary 3.2 (generalized Cauchy), Lemma 3.5 (Student), for p >= 2
and nu >= 1; the joint form and its closed forms are ours. Linear growth 1 + gamma d <= e^{gamma d} is gamma-smooth too.

Approximate privacy by Laplace noise is (4), at `laplace_epsilon`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Booleans, Floats
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import check_epsilon
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.release.growth import GrowthName

# More than 400 lines on one subject: the laws of the noise, each with its privacy. A third are formulas and examples.
__all__ = [
    "GeneralizedCauchy",
    "Laplace",
    "NoiseLaw",
    "SmoothLaw",
    "StudentT",
    "laplace_epsilon",
    "laplace_eta",
]


_NODES = 16  # of the Gauss-Legendre rule on narrow intervals: its error there is below rounding
_SERIES = 1e-30  # x below which the second term of the series of I_x(a, b) is less than rounding
_NARROW = 4.0  # an interval whose half width is this many times below the distance to the nearest singularity is narrow


@dataclass(frozen=True)
class NoiseLaw(FrozenRecord, ABC):
    """A symmetric law with a density that falls off from 0; z is in multiples of the scale of the noise.

    Examples
    --------
    >>> issubclass(md.release.laws.Laplace, md.release.laws.NoiseLaw)
    True
    """

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var Z in squared multiples of the scale; may be inf."""

    @abstractmethod
    def pdf(self, z: ArrayLike) -> Floats:
        """The density at z.

        Examples
        --------
        >>> float(md.release.laws.Laplace().pdf(0.0))
        0.5
        """

    @abstractmethod
    def tail(self, z: Floats) -> Floats:
        """P(Z > z) for z >= 0.

        Examples
        --------
        >>> round(float(md.release.laws.Laplace().tail(np.array(1.0))), 6)
        0.18394
        """

    @abstractmethod
    def centre(self, z: Floats) -> Floats:
        """P(0 < Z < z) for z >= 0.

        Examples
        --------
        >>> round(float(md.release.laws.Laplace().centre(np.array(1.0))), 6)
        0.31606
        """

    @abstractmethod
    def reach(self, z: Floats) -> Floats:
        """A lower bound of the distance from z > 0 to the nearest singularity of the density in the complex plane.

        Examples
        --------
        >>> float(md.release.laws.StudentT(3).reach(np.array(1.0))) > 1
        True
        """

    def cdf(self, z: ArrayLike) -> Floats:
        """P(Z <= z), with all digits in the lower tail; use `mass` for the upper one.

        Examples
        --------
        >>> float(md.release.laws.Laplace().cdf(0.0))
        0.5
        """
        value = np.asarray(z, float)
        beyond = self.tail(np.abs(value))
        return np.where(value > 0, 1.0 - beyond, beyond)

    @abstractmethod
    def _quantile(self, beyond: Floats, inner: Floats) -> Floats:
        """The z >= 0 with P(Z > z) = beyond and P(0 < Z < z) = inner, which add up to 1/2."""

    def ppf(self, probability: ArrayLike) -> Floats:
        """The z with P(Z <= z) = probability, the inverse of `cdf`, with all digits in the lower tail.

        Examples
        --------
        >>> float(md.release.laws.Laplace().ppf(0.5))
        0.0
        """
        p = np.asarray(probability, float)
        if not ((p >= 0) & (p <= 1)).all():
            raise InputError("must be between 0 and 1", field="probability", value=p[~((p >= 0) & (p <= 1))].flat[0])
        # 1 - p and p - 1/2 are exact where p is at least 1/2, and where it is near 1/2.
        return np.copysign(self._quantile(np.minimum(p, 1 - p), np.abs(p - 0.5)), p - 0.5)

    def mass(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """P(low < Z < high) for low <= high, infinite ends allowed, to a relative 1e-12 however small it is.

        Examples
        --------
        >>> round(float(md.release.laws.Laplace().mass(-1.0, 1.0)), 6)
        0.632121
        """
        left, right = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        # Intervals left of 0 are mirrored: tails keep their digits on the right side only.
        flip = right <= 0
        a, b = np.where(flip, -right, left), np.where(flip, -left, right)
        around = a < 0
        near, far = np.abs(a), np.abs(b)
        mass = np.where(around, self.centre(near) + self.centre(far), self._apart(near, far))
        finite = np.isfinite(far) & ~around
        middle, half = np.where(finite, (near + far) / 2, 1.0), np.where(finite, (far - near) / 2, 0.0)
        # Differences of nearly equal tails lose digits; on a narrow interval quadrature of the density has them all.
        narrow = finite & (_NARROW * half <= self.reach(middle))
        return np.where(narrow, self._quadrature(middle, half), mass)

    def _apart(self, near: Floats, far: Floats) -> Floats:
        beyond = self.tail(near)
        # Beyond the quartile tails are the smaller numbers, before it the masses from 0.
        return np.where(beyond > 0.25, self.centre(far) - self.centre(near), beyond - self.tail(far))

    def _quadrature(self, middle: Floats, half: Floats) -> Floats:
        total = np.zeros_like(middle)
        for node, weight in zip(*leggauss(_NODES), strict=True):
            total += weight * self.pdf(middle + half * node)
        return total * half


@dataclass(frozen=True)
class SmoothLaw(NoiseLaw):
    """A law that gives pure privacy for gamma-smooth bounds.

    Examples
    --------
    >>> issubclass(md.release.laws.StudentT, md.release.laws.SmoothLaw)
    True
    """

    @property
    @abstractmethod
    def scale_rate(self) -> float:
        """The largest |z h(z) - 1|, c of (2)."""

    @property
    @abstractmethod
    def shift_rate(self) -> float:
        """The largest |h(z)|, s of (2)."""

    # Proof of (3). With d = d(x, x') join (f, ln B)(x) to (f, ln B)(x') by the straight line over [0, d]. Along it
    # |f'| <= min(B(x), B(x')) <= B_t and |(ln B)'| <= gamma. For w = (y - f) eta / B the log-density ln q(w) - ln B
    # has the derivative h(w) eta f' / B + (w h(w) - 1) (ln B)', at most eps in absolute value; integrate.
    @abstractmethod
    def _joint_epsilon(self, gamma: float, eta: float) -> float: ...

    @abstractmethod
    def _joint_eta(self, epsilon: float, gamma: float) -> float: ...

    def epsilon(self, gamma: float, eta: float, tight: bool = True) -> float:
        """The privacy level, in nats per unit of distance: (3) if `tight`, else (2), that of the paper.

        Examples
        --------
        >>> round(md.release.laws.StudentT(3).epsilon(0.1, 0.2), 3) > 0
        True
        """
        level, budget = _check_gamma(gamma), check_epsilon(eta, "eta")
        if tight:
            return self._joint_epsilon(level, budget)
        return level * self.scale_rate + budget * self.shift_rate

    def eta(self, epsilon: float, gamma: float, tight: bool = True) -> float:
        """The largest noise budget at privacy level epsilon, per unit of distance: the inverse of `epsilon` in eta.

        Examples
        --------
        >>> 0 < md.release.laws.StudentT(3).eta(1.0, 0.1) < 1
        True
        """
        level, total = _check_gamma(gamma), check_epsilon(epsilon)
        # eps >= gamma c at every eta, in (2) and (3): beyond this gamma no budget remains for the noise.
        limit = total / self.scale_rate
        if not level < limit:
            raise _beyond_budget(level, limit)
        if tight:
            return self._joint_eta(total, level)
        return (total - level * self.scale_rate) / self.shift_rate

    # The odds ratio r(|z|) in [0, inf) of a law with polynomial tails has a beta-prime law (a, b), so that for z > 0
    #     P(Z > z) = I_{1/(1 + r)}(b, a) / 2,    P(0 < Z < z) = I_{r/(1 + r)}(a, b) / 2,
    # I the regularised incomplete beta function, which keeps all digits of small probabilities.
    @property
    @abstractmethod
    def shape(self) -> tuple[float, float]:
        """(a, b) of the beta-prime law."""

    @abstractmethod
    def odds(self, z: Floats) -> Floats:
        """r(z) for z >= 0, increasing from 0.

        Examples
        --------
        >>> md.release.laws.StudentT(3).odds(np.array([1.0])).shape
        (1,)
        """

    @abstractmethod
    def _place(self, log_odds: Floats) -> Floats:
        """The z >= 0 with ln r(z) = log_odds."""

    def _quantile(self, beyond: Floats, inner: Floats) -> Floats:
        from scipy.special import betainc

        a, b = self.shape
        # The smaller of r / (1 + r) and 1 / (1 + r) is inverted, since 1 less the other would lose digits.
        inside = 2 * inner < betainc(a, b, 0.5)
        below = _log_odds(np.where(inside, 2 * inner, 0.0), a, b)
        return self._place(np.where(inside, below, -_log_odds(np.where(inside, 0.0, 2 * beyond), b, a)))

    def tail(self, z: Floats) -> Floats:
        inside, smaller = self._smaller(z)
        return np.where(inside, 0.5 - smaller, smaller)

    def centre(self, z: Floats) -> Floats:
        inside, smaller = self._smaller(z)
        return np.where(inside, smaller, 0.5 - smaller)

    def _smaller(self, z: Floats) -> tuple[Booleans, Floats]:
        """True if r(z) < 1; with P(0 < Z < z) if so, else P(Z > z)."""
        from scipy.special import betainc

        a, b = self.shape
        with np.errstate(over="ignore"):
            ratio = self.odds(z)
        inside = ratio < 1
        near = np.where(inside, ratio, 0.0)
        return inside, np.where(inside, betainc(a, b, near / (1 + near)), betainc(b, a, 1 / (1 + ratio))) / 2


@dataclass(frozen=True)
class GeneralizedCauchy(SmoothLaw):
    """Density p sin(pi / p) / (2 pi) / (1 + |z|^p), p > 1; finite variance for p > 3.

    Parameters
    ----------
    p : float
        Exponent of the density, above 1.

    Examples
    --------
    >>> law = md.release.laws.GeneralizedCauchy(4.0)
    >>> round(float(law.ppf(0.975)), 6), round(float(law.cdf(law.ppf(0.975))), 6)
    (1.793362, 0.975)
    """

    p: float

    def __post_init__(self) -> None:
        _require(self.p, 1.0, "p")

    @property
    def variance(self) -> float:
        return math.sin(math.pi / self.p) / math.sin(3 * math.pi / self.p) if self.p > 3 else math.inf

    @property
    def scale_rate(self) -> float:
        return max(1.0, self.p - 1)

    @property
    def shift_rate(self) -> float:
        return (self.p - 1) ** ((self.p - 1) / self.p)

    def _joint_epsilon(self, gamma: float, eta: float) -> float:
        from scipy.optimize import brentq

        # h = p z^{p-1} / (1 + z^p) and z h - 1 = ((p - 1) z^p - 1) / (1 + z^p). The derivative of (3) vanishes with
        # z h > 1 or z h < 1; comparing z with 1 / z decides by the sign of p - 2. So (3) is attained at the root z of
        #     p >= 2   z^p = p - 1 + p (gamma / eta) z,   eps = (p - 1) (gamma + eta / z)
        #     p < 2    z^p = p - 1 - p (gamma / eta) z,   eps = gamma + eta z^{p-1}
        p, slope = self.p, self.p * gamma / eta
        flat = (p - 1) ** (1 / p)
        if p >= 2:
            steep = slope ** (1 / (p - 1))
            low, high, sign = max(flat, steep), flat + steep, 1.0
        else:
            high = flat if slope == 0 else min(flat, (p - 1) / slope)
            low, sign = high / 2, -1.0
        # The ends are widened by 1e-9, because rounding may put the root just outside them.
        z = brentq(lambda x: x**p - (p - 1) - sign * slope * x, low * (1 - 1e-9), high * (1 + 1e-9), xtol=1e-300)
        return (p - 1) * (gamma + eta / z) if p >= 2 else gamma + eta * z ** (p - 1)

    def _joint_eta(self, epsilon: float, gamma: float) -> float:
        # The two equations of `_joint_epsilon`, solved for eta after z is eliminated: no root search is needed.
        p = self.p
        budget = epsilon / self.scale_rate - gamma
        if p >= 2:
            return budget * (p - 1 + p * gamma / budget) ** (1 / p)
        return budget * ((1 + p * gamma / budget) / (p - 1)) ** ((p - 1) / p)

    @property
    def shape(self) -> tuple[float, float]:
        return 1 / self.p, 1 - 1 / self.p

    def odds(self, z: Floats) -> Floats:
        return z**self.p

    def _place(self, log_odds: Floats) -> Floats:
        # r = z^p. An infinite z at probability 0 is right, so an overflow is silent.
        with np.errstate(over="ignore"):
            return np.exp(log_odds / self.p)

    def pdf(self, z: ArrayLike) -> Floats:
        with np.errstate(over="ignore"):
            tails = 1 + np.abs(np.asarray(z, float)) ** self.p
        return self.p * math.sin(math.pi / self.p) / (2 * math.pi) / tails

    def reach(self, z: Floats) -> Floats:
        # The poles are the roots of z^p = -1; the nearest one is at the angle pi / p on the unit circle.
        angle = math.pi / self.p
        return np.minimum(z, np.hypot(z - math.cos(angle), math.sin(angle)))


@dataclass(frozen=True)
class StudentT(SmoothLaw):
    """Student's law with nu > 0 degrees of freedom: density proportional to (1 + z^2 / nu)^{-(nu + 1) / 2}.

    Parameters
    ----------
    nu : float
        Degrees of freedom, positive.

    Examples
    --------
    >>> md.release.laws.StudentT(3.0).nu
    3.0
    """

    nu: float

    def __post_init__(self) -> None:
        _require(self.nu, 0.0, "nu")

    @property
    def variance(self) -> float:
        return self.nu / (self.nu - 2) if self.nu > 2 else math.inf

    @property
    def scale_rate(self) -> float:
        return max(1.0, self.nu)

    @property
    def shift_rate(self) -> float:
        return (self.nu + 1) / (2 * math.sqrt(self.nu))

    def _joint_epsilon(self, gamma: float, eta: float) -> float:
        # h = (nu + 1) z / (nu + z^2) and z h - 1 = nu (z^2 - 1) / (nu + z^2). With z = sqrt(nu) tan(phi / 2), (3) is a
        # sine wave plus a constant, so that its maximum has a closed form for every nu > 0.
        return gamma * abs(self.nu - 1) / 2 + (self.nu + 1) / 2 * math.hypot(gamma, eta / math.sqrt(self.nu))

    def _joint_eta(self, epsilon: float, gamma: float) -> float:
        root = 2 * (epsilon - gamma * abs(self.nu - 1) / 2) / (self.nu + 1)
        # The difference of squares as a product: near the limit of gamma it would cancel.
        return math.sqrt(self.nu * (root - gamma) * (root + gamma))

    @property
    def shape(self) -> tuple[float, float]:
        return 0.5, self.nu / 2

    def odds(self, z: Floats) -> Floats:
        # In this order z^2 does not overflow for large nu.
        return z * (z / self.nu)

    def _place(self, log_odds: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(log_odds / 2) * math.sqrt(self.nu)

    def pdf(self, z: ArrayLike) -> Floats:
        from scipy.special import betaln

        at = np.abs(np.asarray(z, float))
        with np.errstate(over="ignore"):
            tails = (1 + self.odds(at)) ** ((self.nu + 1) / 2)
        return math.exp(-betaln(0.5, self.nu / 2)) / math.sqrt(self.nu) / tails

    def reach(self, z: Floats) -> Floats:
        # The singularities are at +-i sqrt(nu).
        return np.hypot(z, math.sqrt(self.nu))


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """The Laplace law: density e^{-|z|} / 2.

    Examples
    --------
    >>> law = md.release.laws.Laplace()
    >>> float(law.mass(np.array(-np.inf), np.array(0.0)))
    0.5
    """

    @property
    def variance(self) -> float:
        return 2.0

    def pdf(self, z: ArrayLike) -> Floats:
        return np.exp(-np.abs(np.asarray(z, float))) / 2

    def tail(self, z: Floats) -> Floats:
        return np.exp(-z) / 2

    def centre(self, z: Floats) -> Floats:
        return -np.expm1(-z) / 2

    def _quantile(self, beyond: Floats, inner: Floats) -> Floats:
        # The smaller of the two probabilities has the digits: log1p near 0, the logarithm of the tail beyond.
        with np.errstate(divide="ignore"):
            return np.abs(np.where(inner < 0.25, np.log1p(-2 * np.minimum(inner, 0.25)), np.log(2 * beyond)))

    def reach(self, z: Floats) -> Floats:
        # The kink at 0 is the only singularity; the 1 limits the quadrature to half widths of 1/4, where it is exact
        # to rounding.
        return np.minimum(z, 1.0)


def laplace_epsilon(gamma: float, eta: float, delta: float, growth: GrowthName = "linear") -> float:
    """The eps of the (eps, delta) guarantee (4) of Laplace noise.

    Parameters
    ----------
    gamma, eta, delta : float
        gamma >= 0 and eta > 0 per unit of distance; delta in (0, 1), not scaled by distance.
    growth : {"linear"}
        Growth of the bound.

    Returns
    -------
    float, nats per unit of distance

    Examples
    --------
    >>> round(md.release.laws.laplace_epsilon(0.1, 1.0, 0.01), 6)
    1.460517
    """
    # Laplace noise has a fixed scale K / eps, K the global Lipschitz constant, or the scale B(x) / eta with B(x) >=
    # K(x) and B(x) <= (1 + gamma |x - x'|) B(x'). Then
    #     P(y in E | x) <= e^{eps |x - x'|} P(y in E | x') + delta,   eps = eta + gamma max(1, ln(1 / delta)).       (4)
    # Source: Liang & Yi 2024, Lemma 2.3, Corollary 3.1 (fixed scale) and Lemma 3.6 (linear growth).
    # (4): with d = |x - x'| the privacy loss is at most eta d + ln(1 + gamma d) where B(x) <= B(x'), and otherwise
    # eta d + |Z| gamma d. Outside an event of probability P(|Z| > ln(1 / delta)) = delta, |Z| is below ln(1 / delta).
    return check_epsilon(eta, "eta") + _check_gamma(gamma) * _slope(delta, growth)


def laplace_eta(epsilon: float, gamma: float, delta: float, growth: GrowthName = "linear") -> float:
    """The noise budget eta of (4) at a level epsilon: the scale of Laplace noise is B(x) / eta.

    Parameters
    ----------
    epsilon, gamma, delta : float
        Nats per unit of distance; gamma >= 0 per unit; delta in (0, 1).
    growth : {"linear"}
        Growth of the bound.

    Returns
    -------
    float, per unit of distance

    Examples
    --------
    >>> round(md.release.laws.laplace_eta(1.0, 0.1, 0.01), 6)
    0.539483
    """
    slope = _slope(delta, growth)
    eta = check_epsilon(epsilon) - _check_gamma(gamma) * slope
    if not eta > 0:
        raise _beyond_budget(gamma, epsilon / slope)
    return eta


def _log_odds(share: Floats, a: float, b: float) -> Floats:
    """The ln(x / (1 - x)) of the x with I_x(a, b) = share."""
    from scipy.special import betaincinv, betaln

    x = betaincinv(a, b, share)
    with np.errstate(divide="ignore"):
        # The first term of the series x^a / (a B(a, b)) has all digits there, and does not underflow.
        first_term = (np.log(share) + math.log(a) + betaln(a, b)) / a
        return np.where(x < _SERIES, first_term, np.log(x) - np.log1p(-x))


def _slope(delta: float, growth: GrowthName) -> float:
    # (4) has no counterpart: no multiple of d bounds |Z| (e^{gamma d} - 1).
    if growth == "exponential":
        remedy = "or use the generalized Cauchy or Student law"
        message = "Laplace noise needs a bound of linear growth"
        raise UnsuitableError(message, field="growth", value=growth, remedy=remedy)
    if growth != "linear":
        raise InputError("must be linear", field="growth", value=growth)
    if not 0 < delta < 1:
        raise InputError("must be between 0 and 1", field="delta", value=delta)
    return max(1.0, math.log(1 / delta))


def _check_gamma(gamma: float) -> float:
    value = float(gamma)
    if not (math.isfinite(value) and value >= 0):
        raise InputError("must be finite and not negative", field="gamma", value=value)
    return value


def _beyond_budget(gamma: float, limit: float) -> InputError:
    remedy = f"use a gamma below {limit:.6g} per unit, or a larger epsilon"
    return InputError("leaves no budget for the noise", field="gamma", value=gamma, remedy=remedy)


def _require(value: float, above: float, field: str) -> None:
    if not (math.isfinite(value) and value > above):
        raise InputError(f"must be finite and above {above:g}", field=field, value=value)
