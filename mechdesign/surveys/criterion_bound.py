r"""A lower bound of the statistical criterion over all mechanisms with a claim, for any number of reports.

    (1)  minimise    tr(L^+ J^-1) - pi^T L^+ pi
         over        J (n, n) positive definite
         subject to  J pi = 1,   a_i^T J a_j >= 0   for all pairs of sides i <= j,

a side i = (u, v) is an edge in one of its directions, a_i^T x = x(v) - e^{-d} x(u). The information of a private
mechanism is feasible, so this semidefinite program is a relaxation. Any multipliers of it prove, converged or not,

    (2)  tr(L^+ I^-1) >= T^2 / S,   T = tr((R^T G_+ R)^{1/2}),  L^+ = R R^T

for every information I of a private mechanism; G_+ and S are derived in `proved_bound`.
Source: products of constraints as in Sherali and Adams 1990; Alvim et al. 2018.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import xarray as xr

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.evaluation.loss import mechanism_loss
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import sum_down
from mechdesign.surveys.error_norm import root_of
from mechdesign.surveys.statistical_design import StatisticalDesign
from mechdesign.verification.verify import AGREE, figure_differences

LARGEST = 36  # secrets: the semidefinite program takes half a minute there
_FIRST, _ADDED = 60, 60  # products per secret to start with, and to add in a round
_ROUNDS = 12  # of the semidefinite program
_BROKEN = 1e-6  # a product below minus this is added
_ACTIVE = 1e-9  # of the largest multiplier: products with less are left out of the next round
_ROUNDING = 2.0**-40  # relative: above the rounding of distances, exponentials and sums of them
_EIGEN = 64  # times n units: above the rounding of eigenvalues of (n, n) matrices, relative to the sum of their entries
_UNIT = 2.0**-52


@dataclass(frozen=True, kw_only=True, eq=False)
class CriterionBound:
    """value, the bound; dual lambda (n,); multipliers y (k (k + 1) / 2,) over the pairs i <= j of the k sides."""

    value: float
    dual: Vector
    multipliers: Vector


def bound_criterion(program: StatisticalDesign, *, time_limit: float = math.inf) -> CriterionBound | None:
    """The largest bound that a round proves; None beyond 36 secrets or without a positive bound. Times in seconds."""
    import cvxpy as cp

    started, problem = time.monotonic(), program.problem
    n, prior = problem.domain.size, problem.prior_array
    if n > LARGEST:
        return None
    scale = float(np.trace(program.norm))
    side, root = sides(problem), root_of(program.norm / scale)
    first, second = np.triu_indices(len(side))
    length = np.tile(problem.edges.length, 2)
    shuffled = np.random.default_rng(0).random(len(first))  # among equals: products of a few places alone bound nothing
    active = np.lexsort((shuffled, length[first] + length[second]))[: _FIRST * n]
    best: CriterionBound | None = None
    # (1) with the products that matter so far: all k (k + 1) / 2 of them would be too many for the solver.
    for _ in range(_ROUNDS):
        if time.monotonic() - started > time_limit:
            break
        products = side[first[active]][:, :, None] * side[second[active]][:, None, :]
        information = cp.Variable((n, n), symmetric=True)
        rows = information @ prior == 1
        cone = sp.csr_array(products.reshape(len(active), -1)) @ cp.vec(information, order="C") >= 0
        relaxed = cp.Problem(cp.Minimize(cp.matrix_frac(root, information)), [rows, cone])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # an inaccurate point still gives a bound that holds
                relaxed.solve(solver="CLARABEL")
        except cp.error.SolverError:
            break
        if relaxed.status not in ("optimal", "optimal_inaccurate"):
            break
        multipliers, dual = np.zeros(len(first)), np.asarray(rows.dual_value)
        multipliers[active] = np.maximum(cone.dual_value, 0.0)
        value = proved_bound(program, dual, multipliers)
        if value > (0.0 if best is None else best.value):
            best = CriterionBound(value=value, dual=dual, multipliers=multipliers)
        violation = (side @ information.value @ side.T)[first, second]
        worst = np.argsort(violation, kind="stable")[: _ADDED * n]
        worst = worst[violation[worst] < -_BROKEN]
        if len(worst) == 0:
            break
        used = active[multipliers[active] > _ACTIVE * multipliers.max()]
        active = np.union1d(used, worst)
    return best


def proved_bound(program: StatisticalDesign, dual: Vector, multipliers: Vector) -> float:
    """The bound that lambda (n,) and y prove, rounded down; at least 0. Cost: O(k^2 n), k sides."""
    problem = program.problem
    prior, side = problem.prior_array, sides(problem)
    first, second = np.triu_indices(len(side))
    used = np.flatnonzero(multipliers > 0)
    one, other, weight = side[first[used]], side[second[used]], multipliers[used]
    # Take any lambda (n,) and y >= 0, one per product, and G = sym(lambda pi^T) - sum y_ij sym(a_i a_j^T). Then
    # <G, I> <= sum lambda for every information I of a private mechanism, because I pi = 1 and a_i^T I a_j >= 0.
    outer = np.outer(dual, prior)
    matrix = outer - (one.T * weight) @ other
    size = float((abs(outer) + (abs(one).T * weight) @ abs(other)).sum())
    n = len(prior)
    off = (len(used) + _EIGEN * n) * _UNIT  # of sums of as many products, and of eigenvalues, relative to `size`
    if not math.isfinite(size):
        return 0.0
    value, vector = np.linalg.eigh((matrix + matrix.T) / 2)
    # Let G_+ be the positive part of G, and g the size of its most negative eigenvalue: <G_+, I> <= S = sum lambda +
    # g tr I. Eigenvalue and sums are increased by their largest rounding error.
    total = -sum_down(-dual) + (max(0.0, -float(value[0])) + off * size) * _largest_trace(problem)
    if not total > 0:
        return 0.0
    root = root_of(program.norm)
    inner = np.linalg.eigvalsh(root.T @ (vector * np.maximum(value, 0.0)) @ vector.T @ root)
    # Minimising tr(L^+ I^-1) + s <G_+, I> over I, then over s, gives (2). For T eigenvalues are decreased by their
    # largest rounding error before the square roots.
    lost = _EIGEN * n * _UNIT * float((root**2).sum()) * float(np.maximum(value, 0.0).sum())
    trace = float(np.sqrt(np.maximum(inner - lost, 0.0)).sum())
    return max(0.0, (trace**2 / total) * (1 - _ROUNDING) - program.offset * (1 + _ROUNDING))


def _largest_trace(problem: DesignProblem) -> float:
    """An upper bound of tr I."""
    # tr I <= sum_u max v(u)^2 over rays v of the cone, and v(u) <= 1 / sum_w pi(w) e^{-d(u, w)}.
    largest = 1 / (np.exp(-problem.distances) @ problem.prior_array)
    return float(largest @ largest) * (1 + _ROUNDING * 4)


def sides(problem: DesignProblem) -> Matrix:
    """The rows a_i (k, n) of (1): every edge, then every edge turned."""
    tail, head, length = problem.edges.both_ways()
    rows, values = np.arange(len(tail)), np.zeros((len(tail), problem.domain.size))
    # Factors are rounded down by a few units, so that the inequalities hold for every ray in exact arithmetic.
    values[rows, tail], values[rows, head] = -np.exp(-length) * (1 - 4 * _UNIT), 1.0
    return values


def check_statistical(stored: MechanismFile, program: StatisticalDesign) -> tuple[list[str], bool | None]:
    """Errors in the objective of a stored design, and True if its bound follows (None without a bound)."""
    mechanism = stored.mechanism
    value = program.objective(mechanism["mass"].values / float(ROW_SUM), mechanism_loss(mechanism))
    return figure_differences(mechanism, {"objective": value}), _criterion_follows(mechanism, program)


def _criterion_follows(mechanism: xr.Dataset, program: StatisticalDesign) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    if "dual" not in mechanism or "multiplier" not in mechanism:
        return False
    # The file is untrusted: a negative or missing multiplier would prove any bound.
    multipliers, dual = mechanism["multiplier"].values, mechanism["dual"].values
    count = len(sides(program.problem))
    finite = np.isfinite(multipliers).all() and np.isfinite(dual).all() and (multipliers >= 0).all()
    if multipliers.shape != (count * (count + 1) // 2,) or not finite:
        return False
    return bool(mechanism.attrs["lower_bound"] <= proved_bound(program, dual, multipliers) * (1 + AGREE))
