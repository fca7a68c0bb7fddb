r"""Primal-dual Newton steps for the maximum-likelihood program.

    minimise  sum_u p_u - sum_y w_y ln q_y,  q = P^T p,  over  p >= 0:     1 - g - z = 0,  p z = mu,  p, z >= 0,

g_u = sum_y w_y P(y|u) / q_y. sum_u p_u = 1 holds at the optimum by itself: along the ray t p the objective is t sum p
- ln t, least at t sum p = 1; every point is moved there. A step solves (H + z/p) dp = r with H = B B^T, B(u, y) =
P(y|u) sqrt(w_y) / q_y, for Mehrotra's predictor and corrector. The (k, k) form of Woodbury is smaller where fewer
reports than secrets were made, but it loses definiteness as z/p tends to 0.
Secrets whose probability tends to 0 have z/p far above H(u, u). As many as keep sum H(u, u) p_u / z_u below a tenth
leave the factorisation: their own block is within that of its diagonal, and one sweep of block Gauss-Seidel serves.
That is inexact, and moves no bound: the gap is that of the point, over all secrets
(programs/statistical/likelihood.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mechdesign.base.memory import require_memory
from mechdesign.programs.statistical.likelihood import CertifiedPoint, Likelihood

_ITERATIONS = 100
_PATIENCE = 8  # iterations without a smaller gap after which it has stalled
_FIRST = 0.1  # least first z, of the 1 that z and g sum to
_BACK = 0.995  # of the way to the nearest bound
_LEFT_OUT = 0.1  # sum of H(u, u) p_u / z_u over the secrets that leave the factorisation
_RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # of the largest entry of the diagonal, until the matrix factors
_TABLES = 4  # (n, n + k) at once

_Floats = NDArray[np.float64]


def newton(program: Likelihood, *, gap: float) -> tuple[CertifiedPoint, int]:
    """The point of the least gap, and the iterations: until it is at most `gap` (nats per report) or has stalled.

    Cost: O(n^2 (n + k)) an iteration at first, k the reports that were made, less as probabilities tend to 0.
    Raises: SizeError before matrices that do not fit in memory.
    """
    n, k = program.columns.shape
    require_memory(n, n + k, tables=_TABLES, what="the Newton steps of the likelihood")
    now = best = program.judge(np.full(n, 1 / n))
    slack = np.maximum(1 - now.ratio, _FIRST)
    since = 0
    for iteration in range(_ITERATIONS):
        if best.gap <= gap or since == _PATIENCE:
            return best, iteration
        step = _step(program, now, slack)
        if step is None:
            return best, iteration
        change, rise = step
        length = min(_length(now.distribution, change), _length(slack, rise))
        slack = slack + length * rise
        now = program.judge(now.distribution + length * change)
        best, since = (now, 0) if now.gap < best.gap else (best, since + 1)
    return best, _ITERATIONS


def _step(program: Likelihood, now: CertifiedPoint, slack: _Floats) -> tuple[_Floats, _Floats] | None:
    """The changes (dp, dz), each (n,), of predictor and corrector; None where the matrix does not factor."""
    p = now.distribution
    half = program.columns * (np.sqrt(program.share) / now.reported)
    solve = _solver(half, slack / p)
    if solve is None:
        return None
    stationary = 1 - now.ratio - slack
    change = solve(-stationary - slack)
    rise = -slack - slack / p * change
    mean = float(p @ slack)
    reach = _length(p, change), _length(slack, rise)
    predicted = float((p + reach[0] * change) @ (slack + reach[1] * rise))
    target = (predicted / mean) ** 3 * mean / len(p) - change * rise
    change = solve(target / p - slack - stationary)
    return change, target / p - slack - slack / p * change


def _solver(half: _Floats, barrier: _Floats) -> Callable[[_Floats], _Floats] | None:
    """Solves (half half^T + diag barrier) x = r for vectors (n,), half (n, k); None where it is not definite."""
    own = np.einsum("uy,uy->u", half, half)
    order = np.argsort(own / barrier)
    out = order[np.cumsum((own / barrier)[order]) <= _LEFT_OUT]
    kept = np.setdiff1d(order, out)
    inner, outer = half[kept], half[out]
    factor = _factor(inner @ inner.T, barrier[kept])
    diagonal = barrier[out] + own[out]

    def solve(right: _Floats) -> _Floats:
        found = np.empty(len(right))
        first = right[out] / diagonal
        found[kept] = cho_solve(factor, right[kept] - inner @ (first @ outer), check_finite=False)
        found[out] = (right[out] - outer @ (found[kept] @ inner)) / diagonal
        return found

    return None if factor is None else solve


def _factor(gram: _Floats, barrier: _Floats) -> tuple[_Floats, bool] | None:
    """The Cholesky factor of gram + diag barrier, with the least ridge that makes it definite in double precision."""
    top = float((gram.diagonal() + barrier).max(initial=0.0))
    for ridge in _RIDGES:
        matrix = gram.copy()
        matrix.flat[:: len(matrix) + 1] += barrier + ridge * top
        try:
            return cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
    return None


def _length(values: _Floats, change: _Floats) -> float:
    """The step length, at most 1, that keeps values + length * change positive."""
    return min(1.0, _BACK / max(float((-change / values).max()), np.finfo(float).tiny))
