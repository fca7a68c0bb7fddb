r"""The subset exponential mechanism for geo-indistinguishability: k secrets, odds by the distance to the nearest.

    P(S|u) = e^{-d(u, S)} / C  for every set S of k secrets, d(u, S) = min over c in S of d(u, c)
    P(nothing|u) = 1 - T(u) / C,    T(u) = sum over S of e^{-d(u, S)}
    C = max over u != v of (e^{d(u, v)} max(T(u), T(v)) - min(T(u), T(v))) / (e^{d(u, v)} - 1)

d-private for the metric itself, in place of a local privacy that knows no distances: e^{-d(u, S)} is, and C is the
least divisor for which the empty report is. For k = 1 the law is a table of n + 1 reports.
Source: Wang et al., Local private ordinal data distribution estimation, INFOCOM 2017, for subsets and the divisor as in
its public code; a rival in arXiv 2412.06541.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.build import estimating_mechanism
from mechdesign.closed_forms.mechanisms.inclusions import Inclusions, share
from mechdesign.closed_forms.mechanisms.subset_selection import check_count
from mechdesign.setting.problems.problem import DesignProblem

_SAME = 1e-9  # relative; distances nearer than this are one


def mechanism(problem: DesignProblem, *, subset: int = 1) -> xr.Dataset:
    """The subset exponential mechanism of the problem's metric with sets of `subset` secrets.

    Raises: UnsuitableError for more than 5,000 sets, of which `inclusions` says what there is to say.
    """
    return estimating_mechanism(
        problem,
        table(problem.distances, subset),
        name="subset_exponential",
        claimed_epsilon=problem.metric.smallest_level,
        parameters={"subset": subset},
    )


def table(distances: NDArray[np.float64], subset: int = 1) -> NDArray[np.float64]:
    """P(S|u) for distances (n, n) in nats: (n, C(n, k) + 1), the empty report last where it can be made at all."""
    n = len(distances)
    check_count(math.comb(n, subset), "subset", "use fewer cells, a smaller subset, or the inclusions")
    chosen = np.array(list(itertools.combinations(range(n), subset)))
    weight = np.exp(-distances[:, chosen].min(axis=2))
    total = weight.sum(axis=1)
    empty = np.maximum(1 - total / divisor(distances, total), 0.0)
    reported = weight * ((1 - empty) / total)[:, None]
    return np.column_stack([reported, empty]) if empty.max() > 0 else reported


def divisor(distances: NDArray[np.float64], total: NDArray[np.float64]) -> float:
    """C for T (n,) = total."""
    apart = ~np.eye(len(total), dtype=bool)
    high, low = np.maximum.outer(total, total)[apart], np.minimum.outer(total, total)[apart]
    return float((high + (high - low) / np.expm1(distances[apart])).max())


def inclusions(problem: DesignProblem, *, subset: int = 1) -> Inclusions:
    """The inclusions with sets of `subset` secrets, the empty report holding none. Cost: O(n^3)."""
    distances, prior, n = problem.distances, problem.prior_array, problem.domain.size
    mass, single, double = (np.zeros((n, n)) for _ in range(3))
    place = np.zeros((n, n), np.int64)
    for u in range(n):
        order = np.argsort(distances[u], kind="stable")
        near = distances[u][order]
        fresh = np.r_[True, np.diff(near) > _SAME * near[-1]]
        first = np.flatnonzero(fresh)
        place[u, order] = np.cumsum(fresh) - 1
        beyond = np.r_[n - first, 0]  # secrets at each distance or farther
        weight = np.exp(-near[first])
        for into, fixed in ((mass, 0), (single, 1), (double, 2)):
            left = beyond - fixed
            tail = share(np.maximum(left, 0), subset - fixed, n, subset) * (left >= subset - fixed)
            into[u, : len(first)] = np.cumsum(weight * (tail[:-1] - tail[1:])) + weight * tail[1:]
            if not fixed:
                into[u, : len(first)] = np.cumsum(weight * (tail[:-1] - tail[1:]))
    total = np.array([mass[u, place[u].max()] for u in range(n)])
    size = divisor(distances, total)
    hit = np.take_along_axis(single, place, axis=1) / size
    pairs = np.zeros((n, n))
    for u in range(n):
        nearer = np.minimum.outer(place[u], place[u])
        pairs += prior[u] * double[u][nearer] / size
    np.fill_diagonal(pairs, hit.T @ prior)
    return Inclusions(hit=hit, pairs=pairs, scale=1.0)
