r"""Noise laws for smooth sensitivity: y = f(x) + (B(x) / eta) Z satisfies P(y|x) <= e^{eps d(x, x')} P(y|x').

B is a gamma-smooth bound of the pointwise Lipschitz constant: |f(x) - f(x')| <= B(x) d(x, x') for all x', and
B(x) <= e^{gamma d(x, x')} B(x'). eps, gamma and eta are per unit of d; B(x) / eta is in the unit of f. With density q,
h = -(ln q)', c = sup |z h - 1| and s = sup |h|,

    separate (paper 002)   eps = gamma c + eta s
    joint                  eps = sup_z [gamma |z h(z) - 1| + eta |h(z)|]  <=  the separate one, tight as d -> 0

Proof of the joint form. With d = d(x, x') join (f, ln B)(x) to (f, ln B)(x') by the straight line over [0, d]. Along it
|f'| <= min(B(x), B(x')) <= B_t and |(ln B)'| <= gamma. For w = (y - f) eta / B the log-density ln q(w) - ln B has the
derivative h(w) eta f' / B + (w h(w) - 1) (ln B)', at most eps in absolute value; integrate. Both signs and both bounds
can be attained at once, so nothing smaller holds for all f and B.

Vector outputs of dimension m with independent coordinates. Under the l1 metric the shift is worst in one coordinate:
eps_m(gamma, eta) = (m - 1) gamma c + eps_1(gamma, eta). Under l2 the worst is the largest sum of eps_1(gamma, eta v_i)
over sum v_i^2 = 1, and eps_1 is concave in eta^2 (h(z) / eta falls as eta grows): eps_m = m eps_1(gamma, eta / sqrt m).
Source: paper 002, section 3.2: Lemma 3.3 and Corollary 3.2 (generalized Cauchy), Lemma 3.5 (Student), for p >= 2 and
nu >= 1; the joint form and its closed forms are ours. Linear growth 1 + gamma d <= e^{gamma d} is gamma-smooth too.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.closed_forms.noise_laplace import (
    Laplace,
    beyond_budget,
    check_gamma,
    laplace_epsilon,
    laplace_eta,
)
from mechdesign.closed_forms.noise_law import Array, BetaLaw, NoiseLaw
from mechdesign.errors import InputError
from mechdesign.setting.levels import check_epsilon

__all__ = [
    "GeneralizedCauchy",
    "Laplace",
    "NoiseLaw",
    "Split",
    "StudentT",
    "best_split",
    "laplace_epsilon",
    "laplace_eta",
]

OutputMetric = Literal["l1", "l2"]
_GRID = 64  # smoothness levels that are tried before the best one is refined


@dataclass(frozen=True)
class SmoothLaw(BetaLaw):
    """A law that gives pure privacy for gamma-smooth bounds; `scale_rate` is c, `shift_rate` s of the module."""

    @property
    @abstractmethod
    def scale_rate(self) -> float:
        """The largest |z h(z) - 1|, c of the module."""

    @property
    @abstractmethod
    def shift_rate(self) -> float:
        """The largest |h(z)|, s of the module."""

    @abstractmethod
    def _joint_epsilon(self, gamma: float, eta: float) -> float: ...

    @abstractmethod
    def _joint_eta(self, epsilon: float, gamma: float) -> float: ...

    def epsilon(
        self, gamma: float, eta: float, tight: bool = True, *, dimension: int = 1, metric: OutputMetric = "l1"
    ) -> float:
        """The privacy level, in nats per unit of distance, at smoothness gamma >= 0 and noise budget eta > 0.

        tight: the joint form, else that of the paper. dimension m and metric of vector outputs, for the Lipschitz
        constant that B bounds. Raises: InputError outside the domain.
        """
        level, budget = check_gamma(gamma), check_epsilon(eta, "eta")
        single = self._joint_epsilon if tight else self._separate_epsilon
        count = _check_output(dimension, metric)
        if metric == "l1":
            return (count - 1) * level * self.scale_rate + single(level, budget)
        return count * single(level, budget / math.sqrt(count))

    def eta(
        self, epsilon: float, gamma: float, tight: bool = True, *, dimension: int = 1, metric: OutputMetric = "l1"
    ) -> float:
        """The largest noise budget at privacy level epsilon, per unit of distance: the inverse of `epsilon` in eta.

        Raises: InputError outside the domain, and for gamma >= epsilon / (m c), which leaves no budget.
        """
        level, total = check_gamma(gamma), check_epsilon(epsilon)
        count = _check_output(dimension, metric)
        limit = total / (count * self.scale_rate)
        if not level < limit:
            raise beyond_budget(level, limit)
        single = self._joint_eta if tight else self._separate_eta
        if metric == "l1":
            return single(total - (count - 1) * level * self.scale_rate, level)
        return math.sqrt(count) * single(total / count, level)

    def _separate_epsilon(self, gamma: float, eta: float) -> float:
        return gamma * self.scale_rate + eta * self.shift_rate

    def _separate_eta(self, epsilon: float, gamma: float) -> float:
        return (epsilon - gamma * self.scale_rate) / self.shift_rate


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


@dataclass(frozen=True, kw_only=True)
class Split:
    """A budget split: gamma and eta per unit of distance, scale = S(gamma) / eta in the unit of f."""

    gamma: float
    eta: float
    scale: float


def best_split(
    law: SmoothLaw, epsilon: float, tight: bool = True, *, sensitivity: Callable[[float], float] | None = None
) -> Split:
    """The smoothness gamma with the smallest noise S(gamma) / eta(epsilon, gamma), hence the smallest noise variance.

    sensitivity: S as a function of gamma in [0, epsilon / c), positive: the smooth sensitivity at a secret, or its root
    mean square under a prior, which minimises the expected variance; inf is allowed. By default S is 1 at every gamma:
    then gamma = 0, and the scale is relative to S.
    How: 64 levels of gamma, the best one refined by bounded scalar minimisation between its neighbours.
    Raises: InputError for a sensitivity that is not positive, or infinite everywhere.
    """
    from scipy.optimize import minimize_scalar

    limit = check_epsilon(epsilon) / law.scale_rate

    def scale(gamma: float) -> float:
        given = 1.0 if sensitivity is None else float(sensitivity(gamma))
        if not given > 0:
            raise InputError("must be positive", field="sensitivity", value=given, remedy="give S(gamma) > 0")
        return given / law.eta(epsilon, gamma, tight)

    levels = limit * np.arange(_GRID) / _GRID
    tried = [scale(float(gamma)) for gamma in levels]
    best = int(np.argmin(tried))
    if not math.isfinite(tried[best]):
        raise InputError(
            "is infinite at every gamma", field="sensitivity", value=math.inf, remedy="give a finite S(gamma)"
        )
    chosen = float(levels[best])
    found = minimize_scalar(
        scale,
        bounds=(levels[max(best - 1, 0)], levels[best] + limit / _GRID * (1 - 1e-9)),
        method="bounded",
        options={"xatol": 1e-10 * limit},
    )
    if found.fun < tried[best]:
        chosen = float(found.x)
    return Split(gamma=chosen, eta=law.eta(epsilon, chosen, tight), scale=scale(chosen))


def _require(value: float, above: float, field: str) -> None:
    if not (math.isfinite(value) and value > above):
        raise InputError(
            f"must be finite and above {above:g}", field=field, value=value, remedy="3 is usual for nu, 4 for p"
        )


def _check_output(dimension: int, metric: str) -> int:
    if metric not in ("l1", "l2"):
        raise InputError("unknown metric of outputs", field="metric", value=metric, remedy="use l1 or l2")
    if int(dimension) != dimension or dimension < 1:
        raise InputError("must be a whole number >= 1", field="dimension", value=dimension, remedy="count the outputs")
    return int(dimension)
