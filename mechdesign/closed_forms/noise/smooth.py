r"""Noise at the scale of a smooth bound: y = f(x) + (B(x) / eta) Z satisfies P(y|x) <= e^{eps d(x, x')} P(y|x').

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
from dataclasses import dataclass
from typing import Literal

from mechdesign.base.checks import check_epsilon
from mechdesign.closed_forms.noise.laplace import beyond_budget, check_gamma
from mechdesign.closed_forms.noise.noise_law import BetaLaw
from mechdesign.errors import InputError

OutputMetric = Literal["l1", "l2"]


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


def _check_output(dimension: int, metric: str) -> int:
    if metric not in ("l1", "l2"):
        raise InputError("unknown metric of outputs", field="metric", value=metric, remedy="use l1 or l2")
    if int(dimension) != dimension or dimension < 1:
        raise InputError("must be a whole number >= 1", field="dimension", value=dimension, remedy="count the outputs")
    return int(dimension)
