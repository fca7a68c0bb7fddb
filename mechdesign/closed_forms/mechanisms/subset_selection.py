r"""Subset selection: a random subset of k secrets, with odds e^eps for those that hold the true one.

    P(S|u) = e^eps / C  where u is in S, 1 / C elsewhere,    C = C(n-1, k-1) e^eps + C(n-1, k)

eps-locally private, and exactly so: a report with u and without v changes odds by e^eps. k is the better of the two
whole numbers around n / (e^eps + 1), at least 1, by the error below; k = 1 is randomized response.
Known: at the uniform truth N times the mean squared error is (n-1)^2 (k e^eps + n - k)^2 / (n k (n-k) (e^eps - 1)^2),
to leading order the least of all eps-locally private mechanisms.
Source: Ye and Barg 2018, Optimal schemes for discrete distribution estimation under locally differential privacy
(section III, their error); Wang et al. 2016, arXiv 1607.08025.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism, shortest_edge
from mechdesign.closed_forms.mechanisms.inclusions import Inclusions, share
from mechdesign.errors import UnsuitableError
from mechdesign.setting.problems.problem import DesignProblem

MOST = 5000  # reports of a mechanism that is kept as a table


def mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Subset selection at `epsilon` nats (default: the smallest edge of the metric), a report for each subset.

    Raises: UnsuitableError for more than 5,000 subsets, of which `inclusions` says what there is to say.
    """
    level = shortest_edge(problem, epsilon)
    size = subset_size(problem.domain.size, level)
    parameters = {"subset": size}
    return estimating_mechanism(
        problem,
        table(problem.domain.size, level, size),
        name="subset_selection",
        claimed_epsilon=level,
        parameters=parameters,
    )


def subset_size(size: int, epsilon: float) -> int:
    """The size k of the subsets of n = size secrets: of the two around n / (e^eps + 1), where the error is least as a
    function of real numbers, the one with the smaller error.
    """
    odds = math.exp(min(epsilon, 300.0))
    below = min(max(1, math.floor(size / (odds + 1))), size - 1)

    def error(k: int) -> float:
        return (k * odds + size - k) ** 2 / (k * (size - k))

    return min(below, min(below + 1, size - 1), key=error)


def check_count(count: int, field: str, remedy: str) -> None:
    """Refuse more reports than a table takes, with an UnsuitableError."""
    if count > MOST:
        raise UnsuitableError(
            f"has too many reports for a table, which takes at most {MOST}",
            field=field,
            value=f"{float(count):.3g} reports",
            remedy=remedy,
        )


def table(size: int, epsilon: float, subset: int) -> NDArray[np.float64]:
    """P(S|u), (n, C(n, k)), subsets in lexicographic order. Raises: UnsuitableError for more than 5,000."""
    check_count(math.comb(size, subset), "subset", "use fewer cells, or the inclusions")
    member = np.zeros((size, math.comb(size, subset)), bool)
    for number, chosen in enumerate(itertools.combinations(range(size), subset)):
        member[list(chosen), number] = True
    weight = np.where(member, 1.0, math.exp(-epsilon))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def inclusions(problem: DesignProblem, epsilon: float | None = None) -> Inclusions:
    """The inclusions at `epsilon` nats (default: the smallest edge). Cost: O(n^2)."""
    level, n = shortest_edge(problem, epsilon), problem.domain.size
    k = subset_size(n, level)
    with_true = [float(share(n - 1 - j, k - 1 - j, n, k)) for j in (0, 1, 2)]  # sets with j given others
    rest = [float(share(n - 1 - j, k - j, n, k)) for j in (0, 1, 2)]
    odds = math.exp(-level)
    total = with_true[0] + odds * rest[0]
    own, other = with_true[0] / total, (with_true[1] + odds * rest[1]) / total
    own_pair, other_pair = with_true[1] / total, (with_true[2] + odds * rest[2]) / total
    prior = problem.prior_array
    hit = np.full((n, n), other) + (own - other) * np.eye(n)
    pairs = other_pair + (own_pair - other_pair) * (prior[:, None] + prior[None, :])
    np.fill_diagonal(pairs, hit.T @ prior)
    return Inclusions(hit=hit, pairs=pairs, scale=level / float(problem.edges.length.min()))
