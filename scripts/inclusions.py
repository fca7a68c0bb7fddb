r"""Probabilities that a secret, and a pair of secrets, is in a report that is a set of secrets.

    (1)  H(u, c) = P(c in S | u),    h = H^T pi,    M(c, c') = sum_u pi(u) P(c in S and c' in S | u)

The C(n, k) sets need not be listed.

The inclusion estimator takes the share of reports that contain each secret, f with mean h, and solves H^T p = f. With
A = H^-T its covariance is A (M - h h^T) A^T / N. So N times its mean squared error in a norm W is

    (2)  tr(W A (M - h h^T) A^T),

at least the asymptotic error of the best estimator.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from mechdesign.base.arrays import Floats, Integers, Matrix
from mechdesign.closed_forms.randomized_response import shortest_edge
from mechdesign.problem.problem import DesignProblem
from mechdesign.surveys.frequency_estimation import SAME_DISTANCE, subset_exponential_divisor, subset_size, wrong_bit


@dataclass(frozen=True, kw_only=True, eq=False)
class Inclusions:
    """H (n, n), M (n, n) with diagonal h, and the smallest scale of the problem's metric that the law satisfies."""

    hit: Matrix
    pairs: Matrix
    scale: float

    def mse(self, norm: Matrix) -> float:
        """N times the mean squared error in a norm W (n, n) with rows of sum 0; infinite where H is singular."""
        mean = np.diag(self.pairs)
        try:
            spread = np.linalg.solve(self.hit.T, self.pairs - np.outer(mean, mean))
            covariance = np.linalg.solve(self.hit.T, spread.T)
        except np.linalg.LinAlgError:
            return math.inf
        return float((norm * covariance).sum())


def subset_selection_inclusions(problem: DesignProblem, epsilon: float | None = None) -> Inclusions:
    """The inclusions of subset selection at `epsilon` nats. Cost: O(n^2)."""
    level, n = shortest_edge(problem, epsilon), problem.domain.size
    k = subset_size(n, level)
    # Sets that contain the true secret, and sets that do not, each with j given other secrets; as shares of all sets.
    with_true = [float(_share(n - 1 - j, k - 1 - j, n, k)) for j in (0, 1, 2)]
    rest = [float(_share(n - 1 - j, k - j, n, k)) for j in (0, 1, 2)]
    odds = math.exp(-level)
    total = with_true[0] + odds * rest[0]
    singles = with_true[0] / total, (with_true[1] + odds * rest[1]) / total
    pairs = with_true[1] / total, (with_true[2] + odds * rest[2]) / total
    return _symmetric_inclusions(problem, level, singles, pairs)


def unary_encoding_inclusions(problem: DesignProblem, epsilon: float | None = None) -> Inclusions:
    """The inclusions of unary encoding at `epsilon` nats: a set holds the bits that are 1. Cost: O(n^2)."""
    level = shortest_edge(problem, epsilon)
    wrong = wrong_bit(level)
    return _symmetric_inclusions(problem, level, (0.5, wrong), (0.5 * wrong, wrong**2))


def subset_exponential_inclusions(problem: DesignProblem, *, subset: int = 1) -> Inclusions:
    """The inclusions with sets of `subset` secrets; the empty report includes no secret. Cost: O(n^3)."""
    distances, prior, n = problem.distances, problem.prior_array, problem.domain.size
    mass, single, double = (np.zeros((n, n)) for _ in range(3))
    place = np.zeros((n, n), np.int64)
    for u in range(n):
        order = np.argsort(distances[u], kind="stable")
        ascending = distances[u][order]
        # Secrets at one distance are a shell. Distances that differ by rounding are equal.
        begins_shell = np.r_[True, np.diff(ascending) > SAME_DISTANCE * ascending[-1]]
        first = np.flatnonzero(begins_shell)
        place[u, order] = np.cumsum(begins_shell) - 1
        beyond = np.r_[n - first, 0]  # secrets at each distance or farther
        weight = np.exp(-ascending[first])
        for into, fixed in ((mass, 0), (single, 1), (double, 2)):
            free = beyond - fixed
            tail = _share(np.maximum(free, 0), subset - fixed, n, subset) * (free >= subset - fixed)
            into[u, : len(first)] = np.cumsum(weight * (tail[:-1] - tail[1:])) + weight * tail[1:]
            if not fixed:
                into[u, : len(first)] = np.cumsum(weight * (tail[:-1] - tail[1:]))
    total = np.array([mass[u, place[u].max()] for u in range(n)])
    size = subset_exponential_divisor(distances, total)
    hit = np.take_along_axis(single, place, axis=1) / size
    pairs = np.zeros((n, n))
    for u in range(n):
        nearer = np.minimum.outer(place[u], place[u])
        pairs += prior[u] * double[u][nearer] / size
    np.fill_diagonal(pairs, hit.T @ prior)
    return Inclusions(hit=hit, pairs=pairs, scale=1.0)


def _symmetric_inclusions(
    problem: DesignProblem, level: float, singles: tuple[float, float], pairs_of: tuple[float, float]
) -> Inclusions:
    """The inclusions of a symmetric law, from probabilities of the true secret and of another, alone and in pairs."""
    (true_single, other_single), (true_pair, other_pair) = singles, pairs_of
    n, prior = problem.domain.size, problem.prior_array
    hit = np.full((n, n), other_single) + (true_single - other_single) * np.eye(n)
    pairs = other_pair + (true_pair - other_pair) * (prior[:, None] + prior[None, :])
    np.fill_diagonal(pairs, hit.T @ prior)
    return Inclusions(hit=hit, pairs=pairs, scale=level / float(problem.edges.length.min()))


def _share(size: Integers | int, chosen: int, total: int, subset: int) -> Floats:
    """C(size, chosen) / C(total, subset), in floating point, 0 where size < chosen; any shape of size."""
    sizes = np.asarray(size)
    log = _log_binomial(np.maximum(sizes, chosen), chosen) - _log_binomial(np.array(total), subset)
    return np.asarray(np.where((sizes >= chosen) & (chosen >= 0), np.exp(log), 0.0))


def _log_binomial(size: Integers, chosen: int) -> Floats:
    return np.asarray(gammaln(size + 1.0) - gammaln(chosen + 1.0) - gammaln(size - chosen + 1.0))
