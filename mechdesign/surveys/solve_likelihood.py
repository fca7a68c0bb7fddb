r"""Solve the maximum-likelihood program by Newton steps, and where these stall by expectation maximization.

Every point has the certificate of surveys/likelihood.py, over all secrets; the returned gap is proved.

Newton steps, primal-dual, with g_u = sum_y w_y P(y|u) / q_y:

    (1)  minimise  sum_u p_u - sum_y w_y ln q_y,  q = P^T p,  over  p >= 0:     1 - g - z = 0,  p z = mu,  p, z >= 0
    (2)  (H + z/p) dp = r,   H = B B^T,   B(u, y) = P(y|u) sqrt(w_y) / q_y

Expectation maximization, p_u -> p_u g_u, never lowers the log-likelihood (Alvim et al. 2018, section II). It is
accelerated by squared extrapolation (SQUAREM, Varadhan and Roland 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.surveys.likelihood import CertifiedPoint, Likelihood

_ITERATIONS = 100  # of Newton steps
_PATIENCE = 8  # iterations without a smaller gap after which it has stalled
_FIRST = 0.1  # least first z, of the 1 that z and g sum to
_BACK = 0.995  # of the way to the nearest bound; a usual value
_LEFT_OUT = 0.1  # sum of H(u, u) p_u / z_u over the secrets that leave the factorisation
_RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # of the largest entry of the diagonal, until the matrix factors
_TABLES = 4  # (n, n + k) at once
_STEPS = 5_000  # of accelerated expectation maximization
_PLAIN = -1.01  # extrapolations nearer to -1 than this are the plain double step
_FLOOR = 1e-3  # of p'': the smallest value of an extrapolated entry


@dataclass(frozen=True, kw_only=True, eq=False)
class LikelihoodSolution:
    """The point with its proved gap, the name of the method, and the iterations of all methods."""

    point: CertifiedPoint
    method: str
    iterations: int


def solve_likelihood(program: Likelihood, *, gap: float = 1e-9) -> LikelihoodSolution:
    """Solve to `gap` nats per report where double precision allows, else as far as both methods come."""
    point, iterations = newton(program, gap=gap)
    if point.gap <= gap:
        return LikelihoodSolution(point=point, method="newton", iterations=iterations)
    point, steps = accelerated_updates(program, point.distribution, gap=gap)
    return LikelihoodSolution(point=point, method="newton, accelerated", iterations=iterations + steps)


def newton(program: Likelihood, *, gap: float) -> tuple[CertifiedPoint, int]:
    """The point of the smallest gap, and the iterations, until it is at most `gap` nats per report or has stalled."""
    n, k = program.columns.shape
    require_memory(n, n + k, tables=_TABLES, noun="the Newton steps of the likelihood")
    now = best = program.judge(np.full(n, 1 / n))
    # z = 1 - g may be negative at the start; complementarity needs it positive.
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
        # `judge` scales the point to sum_u p_u = 1, which holds at the optimum of (1).
        now = program.judge(now.distribution + length * change)
        best, since = (now, 0) if now.gap < best.gap else (best, since + 1)
    return best, _ITERATIONS


def _step(program: Likelihood, now: CertifiedPoint, slack: Vector) -> tuple[Vector, Vector] | None:
    """The changes (dp, dz), each (n,), of predictor and corrector; None where the matrix does not factor."""
    # (2), for Mehrotra's predictor and corrector with one factorisation.
    p = now.distribution
    half = program.columns * (np.sqrt(program.share) / now.reported)
    solve = _solver(half, slack / p)
    if solve is None:
        return None
    stationary = 1 - now.ratio - slack
    # Predictor: the step below with target 0.
    change = solve(-stationary - slack)
    rise = -slack - slack / p * change
    mean = float(p @ slack)
    reach = _length(p, change), _length(slack, rise)
    predicted = float((p + reach[0] * change) @ (slack + reach[1] * rise))
    # Mehrotra: the cubed ratio of predicted to current complementarity sets the centring.
    target = (predicted / mean) ** 3 * mean / len(p) - change * rise
    change = solve(target / p - slack - stationary)
    return change, target / p - slack - slack / p * change


def _solver(half: Matrix, barrier: Vector) -> Callable[[Vector], Vector] | None:
    """Solves (half half^T + diag barrier) x = r for vectors (n,), half (n, k); None where it is not definite."""
    # Of H + z/p itself: the smaller (k, k) form of Woodbury loses definiteness as z/p tends to 0.
    squares = np.einsum("uy,uy->u", half, half)
    order = np.argsort(squares / barrier)
    # Secrets whose probability tends to 0 have z/p far above H(u, u), so their rows are nearly diagonal. Those of a sum
    # H(u, u) p_u / z_u below a tenth leave the factorisation, and one sweep of block Gauss-Seidel replaces it.
    outside = order[np.cumsum((squares / barrier)[order]) <= _LEFT_OUT]
    inside = np.setdiff1d(order, outside)
    inner, outer = half[inside], half[outside]
    factor = _factor(inner @ inner.T, barrier[inside])
    diagonal = barrier[outside] + squares[outside]

    def solve(right: Vector) -> Vector:
        solution = np.empty(len(right))
        first = right[outside] / diagonal
        solution[inside] = cho_solve(factor, right[inside] - inner @ (first @ outer), check_finite=False)
        solution[outside] = (right[outside] - outer @ (solution[inside] @ inner)) / diagonal
        return solution

    return None if factor is None else solve


def _factor(gram: Matrix, barrier: Vector) -> tuple[Matrix, bool] | None:
    """The Cholesky factor of gram + diag barrier, with the least ridge that makes it definite in double precision."""
    top = float((gram.diagonal() + barrier).max(initial=0.0))
    for ridge in _RIDGES:
        # The factorisation overwrites its argument, and may fail.
        matrix = gram.copy()
        matrix.flat[:: len(matrix) + 1] += barrier + ridge * top
        try:
            return cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
    return None


def _length(values: Vector, change: Vector) -> float:
    """The step length, at most 1, that keeps values + length * change positive."""
    return min(1.0, _BACK / max(float((-change / values).max()), np.finfo(float).tiny))


def accelerated_updates(program: Likelihood, start: Vector, *, gap: float) -> tuple[CertifiedPoint, int]:
    """The point of the least gap of at most 5,000 accelerated steps from weights `start` (n,), and their number."""
    points = updates(program, start, accelerate=True)
    best, steps = next(points), 0
    while best.gap > gap and steps < _STEPS:
        best = min(best, next(points), key=lambda point: point.gap)
        steps += 1
    return best, steps


def updates(program: Likelihood, start: Vector, *, accelerate: bool = False) -> Iterator[CertifiedPoint]:
    """Yield the certified points from `start` (n,) on, the start first, endlessly; zeros stay 0."""
    now = program.judge(start)
    while True:
        yield now
        after = program.judge(now.distribution * now.ratio)
        now = _extrapolate(program, now, after) if accelerate else after


def _extrapolate(program: Likelihood, now: CertifiedPoint, after: CertifiedPoint) -> CertifiedPoint:
    # Over two updates p -> p' -> p'', with r = p' - p and v = p'' - 2 p' + p, the next point is
    #     p - 2 a r + a^2 v,   a = -|r| / |v|,  at most -1, then one plain update.                                   (4)
    # (4): `twice` is p''.
    twice = after.distribution * after.ratio
    first = after.distribution - now.distribution
    second = twice - after.distribution - first
    bend = float(np.linalg.norm(second))
    factor = -float(np.linalg.norm(first)) / bend if bend > 0 else -1.0
    while factor < _PLAIN:
        point = now.distribution - 2 * factor * first + factor**2 * second
        # Extrapolation may leave the simplex; a floor relative to the plain double step keeps every entry alive.
        likelihood = program.judge(np.maximum(point, _FLOOR * twice))
        if likelihood.log_likelihood >= after.log_likelihood:
            return program.judge(likelihood.distribution * likelihood.ratio)
        # Half-way to -1, which is the plain double step and never lowers the likelihood.
        factor = (factor - 1) / 2
    return program.judge(twice)
