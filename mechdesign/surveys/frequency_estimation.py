r"""Mechanisms of the literature on estimating distributions, for comparison with designs for statistics."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
import xarray as xr
from scipy.spatial.distance import pdist

from mechdesign.base.arrays import Indices, IntegerMatrix, MaskMatrix, Matrix, Vector
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.closed_forms.lattice_noise import lattice_problem
from mechdesign.closed_forms.randomized_response import shortest_edge
from mechdesign.errors import UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.problem import DesignProblem

MOST = 5000  # reports of a table
_SMALL = 1e-3  # nats; below this the closed form of the width loses digits, and a series has them
SAME_DISTANCE = 1e-9  # relative; distances nearer than this are one


# Most are eps-locally private: eps in nats, by default the shortest edge of the metric. The subset exponential
# mechanism is d-private for the metric. Reports have no place: the loss of a report is that of its Bayes estimate.
def subset_selection(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Subset selection: a random subset of k secrets, with odds e^eps for those that contain the true one."""
    #     P(S|u) = e^eps / C  where u is in S, 1 / C elsewhere,    C = C(n-1, k-1) e^eps + C(n-1, k)
    # k is the better of the two integers around n / (e^eps + 1), by the error at the uniform truth. At most 5,000
    # subsets.
    # Source: Ye and Barg 2018, section III; Wang et al. 2016, arXiv 1607.08025.
    level, n = shortest_edge(problem, epsilon), problem.domain.size
    size = subset_size(n, level)
    table = subset_selection_table(n, level, size)
    return _estimating(problem, table, "subset_selection", level, subset=size)


def unary_encoding(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Optimised unary encoding: one bit for each secret, the true one 1 with probability 1/2, the others with q."""
    #     P(b|u) = 1/2 prod over c != u of q^{b_c} (1 - q)^{1 - b_c},    q = 1 / (e^eps + 1)
    # The variance of the frequency of a rare secret is 4 e^eps / (e^eps - 1)^2 / N. At most 12 secrets.
    # Source: Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.2 (table 2).
    level = shortest_edge(problem, epsilon)
    return _estimating(problem, unary_encoding_table(problem.domain.size, level), "unary_encoding", level)


def hadamard_response(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Hadamard response: a report among K = 2^ceil(log2(n + 1)), with odds e^eps for the half of the secret."""
    #     P(y|u) = e^eps c  where H(u + 1, y) = 1, c elsewhere,    c = 2 / (K (1 + e^eps)),    H of Sylvester (K, K)
    # N times the mean squared error is at most 4 n (e^eps + 1)^2 / (e^eps - 1)^2.
    # Source: Acharya, Sun and Zhang, Hadamard response, AISTATS 2019, sections 3 and 4 (high privacy).
    level = shortest_edge(problem, epsilon)
    return _estimating(problem, hadamard_response_table(problem.domain.size, level), "hadamard_response", level)


def subset_exponential(problem: DesignProblem, *, subset: int = 1) -> xr.Dataset:
    """The subset exponential mechanism: sets of k = `subset` secrets, odds by the distance to the nearest."""
    #     P(S|u) = e^{-d(u, S)} / C,  d(u, S) = min over c in S of d(u, c).
    #     P(nothing|u) = 1 - T(u) / C,    T(u) = sum over S of e^{-d(u, S)}.
    #     C = max over u != v of (e^{d(u, v)} max(T(u), T(v)) - min(T(u), T(v))) / (e^{d(u, v)} - 1).
    # It is d-private for the metric: C is the smallest divisor at which that holds for the empty report. At most 5,000
    # sets. Source: Wang et al., Local private ordinal data distribution estimation, INFOCOM 2017, and its public code.
    table = subset_exponential_table(problem.distances, subset)
    return _estimating(problem, table, "subset_exponential", problem.metric.smallest_level, subset=subset)


def square_wave(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """The square wave mechanism on a grid of one axis: a report within b cells of the truth has odds e^eps."""
    #     P(y|u) = e^eps / C  where |y - u| <= b, 1 / C elsewhere,    C = (2 b + 1) e^eps + n - 1.
    # Reports are y = -b, ..., n - 1 + b. Here b = floor(n beta), and beta = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps -
    # 1 - eps)) maximises a bound of the mutual information on the unit interval. Source: Li et al., SIGMOD 2020,
    # section 5 (cells first, then noise).
    domain = problem.domain
    if domain.shape != (domain.size,):
        axes = f"{domain.kind} of {domain.dimension} axes"
        raise UnsuitableError("square_wave needs a grid of one axis without a mask", field="domain", value=axes)
    level = shortest_edge(problem, epsilon)
    reach = math.floor(domain.size * square_wave_width(level))
    return _estimating(problem, square_wave_table(domain.size, level, reach), "square_wave", level, reach=reach)


def disk_area(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """The disk area mechanism on square cells: a report with its centre within b cells of the truth has odds e^eps."""
    #     P(y|u) = e^eps / C  where |y - u| <= b cells, 1 / C elsewhere,    C = D e^eps + m - D.
    # The m cells lie within b of a cell of the domain, D of them in each disk (those whose centres it contains). Let L
    # be the number of cells along the longer side. Then b = floor(L beta) maximises a bound of the mutual information
    # on a square.
    # Source: Du et al., arXiv 2412.06541, and its authors' public code (beta and the rounding down).
    shape, _ = lattice_problem(problem, "the disk area mechanism")
    if len(shape) != 2:
        raise UnsuitableError("disk_area needs a grid of two axes", field="domain", value=f"{len(shape)} axis")
    level = shortest_edge(problem, epsilon)
    reach = math.floor(max(shape) * disk_area_radius(level))
    assert problem.domain.index is not None
    table = disk_area_table(problem.domain.index, level, reach)
    return _estimating(problem, table, "disk_area", level, reach=reach)


def with_bayes_losses(problem: DesignProblem, table: Matrix) -> tuple[DesignProblem, Indices]:
    """The problem with the m reports of `table` (n, m), and the Bayes estimates z(y) (m,) that define their losses."""
    # Reports with the same estimate lie in a row through its place, shorter than half the minimum distance of places.
    # The places of a domain are distinct, so reports of one estimate are moved apart. Losses do not depend on it.
    loss, places = problem.loss_matrix, problem.reports
    estimates = np.argmin((problem.prior_array[:, None] * table).T @ loss, axis=1)
    gap = float(pdist(places.points).min())
    points = places.points[estimates]
    for place in np.unique(estimates):
        row = np.flatnonzero(estimates == place)
        points[row, 0] += gap / 4 * (2 * np.arange(1, len(row) + 1) / (len(row) + 1) - 1)
    kind: Literal["nodes", "points"] = "nodes" if places.kind == "nodes" else "points"
    reports = Domain(kind=kind, points=points, unit=places.unit)
    return replace(problem, loss=TableLoss(values=loss[:, estimates]), reports=reports, query=None), estimates


def _estimating(
    problem: DesignProblem,
    table: Matrix,
    name: str,
    claimed_epsilon: float | None,
    **parameters: Any,
) -> xr.Dataset:
    """The mechanism of a table (n, m), its loss that of Bayes estimates, which its parameters store."""
    by_estimates, estimates = with_bayes_losses(problem, table)
    stored = {**parameters, "estimates": estimates.tolist(), "loss_of_estimates": problem.loss.name}
    return closed_form_mechanism(by_estimates, table, name=name, claimed_epsilon=claimed_epsilon, parameters=stored)


def subset_size(size: int, epsilon: float) -> int:
    """The subset size k for `size` secrets: of the two integers around n / (e^eps + 1), the better one."""
    odds = math.exp(min(epsilon, 300.0))
    below = min(max(1, math.floor(size / (odds + 1))), size - 1)

    # The error at the uniform truth, (n-1)^2 (k e^eps + n - k)^2 / (n k (n-k) (e^eps - 1)^2), without constant factors.
    def error(k: int) -> float:
        return (k * odds + size - k) ** 2 / (k * (size - k))

    return min(below, min(below + 1, size - 1), key=error)


def square_wave_width(epsilon: float) -> float:
    """Beta of the square wave, in units of the interval."""
    # Near 0 the closed form is 0 / 0.
    if epsilon < _SMALL:
        return 0.5 - epsilon / 3 + epsilon**2 / 9
    return (epsilon - 1 + math.exp(-epsilon)) / (2 * (math.exp(min(epsilon, 700.0)) - 1 - epsilon))


def disk_area_radius(epsilon: float) -> float:
    """Beta of the disk area mechanism, in sides of the square."""
    # beta = (2 x + sqrt(4 x^2 + pi x)) / pi with x = (1 - (1 - eps) e^eps) / (e^eps (e^eps - 1 - eps)).
    x = 2 * square_wave_width(epsilon)
    return (2 * x + math.sqrt(4 * x**2 + math.pi * x)) / math.pi


def subset_selection_table(size: int, epsilon: float, subset: int) -> Matrix:
    """P(S|u), (n, C(n, k)), subsets in lexicographic order."""
    _check_count(math.comb(size, subset), "subset", "use fewer cells, or the inclusions")
    member = np.zeros((size, math.comb(size, subset)), bool)
    for number, chosen in enumerate(itertools.combinations(range(size), subset)):
        member[list(chosen), number] = True
    return _with_odds(member, epsilon)


def unary_encoding_table(size: int, epsilon: float) -> Matrix:
    """P(b|u), (n, 2^n), strings as binary numbers, secret 0 the last digit."""
    _check_count(2**size, "cells", "use at most 12 cells, or the inclusions")
    bits = (np.arange(2**size)[None, :] >> np.arange(size)[:, None]) & 1
    wrong = wrong_bit(epsilon)
    logs = np.log(np.where(bits == 1, wrong, 1 - wrong))
    return np.asarray(np.exp(logs.sum(axis=0) - logs) / 2)


def hadamard_response_table(size: int, epsilon: float) -> Matrix:
    """P(y|u), (n, K)."""
    count = 2 ** size.bit_length()  # the least power of 2 that is n + 1 or more
    # Row 0 of the matrix is constant: its reports would not depend on the secret.
    in_half = scipy.linalg.hadamard(count)[1 : size + 1] == 1
    return np.asarray(np.where(in_half, 1.0, math.exp(-epsilon)) * (2 / (count * (1 + math.exp(-epsilon)))))


def square_wave_table(size: int, epsilon: float, reach: int) -> Matrix:
    """P(y|u), (n, n + 2 b) for b = reach."""
    return _with_odds(abs(np.arange(-reach, size + reach) - np.arange(size)[:, None]) <= reach, epsilon)


def disk_area_table(cells: IntegerMatrix, epsilon: float, reach: int) -> Matrix:
    """P(y|u) (n, m) for cells (n, 2) of a lattice and b = reach."""
    square = itertools.product(range(-reach, reach + 1), repeat=2)
    disk = np.array([step for step in square if step[0] ** 2 + step[1] ** 2 <= reach**2])
    reports = np.unique((cells[:, None, :] + disk).reshape(-1, 2), axis=0)
    return _with_odds(((cells[:, None, :] - reports) ** 2).sum(axis=2) <= reach**2, epsilon)


def subset_exponential_table(distances: Matrix, subset: int = 1) -> Matrix:
    """P(S|u) for distances (n, n) in nats: (n, C(n, k) + 1), the empty report last where it can be made at all."""
    n = len(distances)
    _check_count(math.comb(n, subset), "subset", "use fewer cells, a smaller subset, or the inclusions")
    chosen = np.array(list(itertools.combinations(range(n), subset)))
    weight = np.exp(-distances[:, chosen].min(axis=2))
    total = weight.sum(axis=1)
    empty = np.maximum(1 - total / subset_exponential_divisor(distances, total), 0.0)
    # All sums are equal, but for the order of their rounding: the empty report is never made.
    if empty.max() <= SAME_DISTANCE:
        return np.asarray(weight / total[:, None])
    return np.column_stack([weight * ((1 - empty) / total)[:, None], empty])


def subset_exponential_divisor(distances: Matrix, total: Vector) -> float:
    """The smallest C for sums T (n,) = total."""
    apart = ~np.eye(len(total), dtype=bool)
    high, low = np.maximum.outer(total, total)[apart], np.minimum.outer(total, total)[apart]
    return float((high + (high - low) / np.expm1(distances[apart])).max())


def _with_odds(near: MaskMatrix, epsilon: float) -> Matrix:
    """Rows (n, m) that sum to 1, with odds e^eps for the reports that are `near`."""
    weight = np.where(near, 1.0, math.exp(-epsilon))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def wrong_bit(epsilon: float) -> float:
    """The probability q of unary encoding."""
    return 1 / (math.exp(min(epsilon, 700.0)) + 1)


def _check_count(count: int, field: str, remedy: str) -> None:
    if count > MOST:
        message = f"has too many reports for a table, which takes at most {MOST}"
        raise UnsuitableError(message, field=field, value=f"{float(count):.3g} reports", remedy=remedy)
