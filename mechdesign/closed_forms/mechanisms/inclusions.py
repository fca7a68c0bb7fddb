r"""Mechanisms whose reports are sets of secrets: what can be said from the inclusions, without listing the sets.

    H(u, c) = P(c in S | u),    h = H^T pi,    M(c, c') = sum_u pi(u) P(c in S and c' in S | u)

The inclusion estimator counts how often each secret is in a report, f with mean h, and solves H^T p = f. Its covariance
is A (M - h h^T) A^T / N with A = H^-T, so that tr(W A (M - h h^T) A^T) is N times its mean squared error in a norm W. A
report tells more than its inclusions one by one: this is the error of that estimator, which the papers use, and at
least the asymptotic error of the best one (equal for subset selection at the uniform distribution, where it is
Ye and Barg's; 3 to 11 % above it for the subset exponential mechanism on 4 x 4 cells).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Inclusions:
    """hit, H (n, n); pairs, M (n, n), its diagonal h; epsilon, the smallest scale of the problem's metric that the law
    satisfies.
    """

    hit: _Floats
    pairs: _Floats
    scale: float

    def mse(self, norm: _Floats) -> float:
        """N times the mean squared error of the inclusion estimator in a norm W (n, n), rows of sum 0, at the truth
        that `pairs` were taken at; infinite where H is singular. Cost: O(n^3).
        """
        mean = np.diag(self.pairs)
        try:
            spread = np.linalg.solve(self.hit.T, self.pairs - np.outer(mean, mean))
            covariance = np.linalg.solve(self.hit.T, spread.T)
        except np.linalg.LinAlgError:
            return math.inf
        return float((norm * covariance).sum())


def share(size: NDArray[np.int64] | int, chosen: int, total: int, most: int) -> _Floats:
    """C(size, chosen) / C(total, most), in floating point, 0 where size < chosen; any shape of size."""
    given = np.asarray(size)
    log = _log_binomial(np.maximum(given, chosen), chosen) - _log_binomial(np.array(total), most)
    return np.asarray(np.where((given >= chosen) & (chosen >= 0), np.exp(log), 0.0))


def _log_binomial(size: NDArray[np.int64], chosen: int) -> _Floats:
    gamma = scipy.special.gammaln
    return np.asarray(gamma(size + 1.0) - gamma(chosen + 1.0) - gamma(size - chosen + 1.0))
