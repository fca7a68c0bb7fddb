r"""Affine bounds of a share: weights that may be biased, but on the safe side only.

    lower bound   maximise    q0^T a - z s0(a) / sqrt(N)
                  over        a (M,)
                  subject to  P a <= g;                             the upper bound is 1 - that of 1 - g

q0 = P^T p0 is the law of reports under a guess p0 and s0(a) the standard deviation of a(y) there. Whatever the truth p,
p^T P a <= p^T g: the mean of a over N reports, less z of its standard errors, exceeds the share with the probability
that the normal law gives. A good guess makes the bounds short, a bad one makes them long, none makes them wrong, as
long as the guess was made before the reports: weights that are chosen after the same reports cover 40 % of the shares
that they should cover to 95 %. The share need not be identifiable.
Dual, with c^2 = z^2 / N and M = P D^-1 P^T, D = diag q0:

    minimise    g^T p     over  p >= 0,  sum p = 1,  p^T M p <= 1 + c^2

the least share among the distributions whose reports are within a chi-square distance of z^2 from those of the guess.
With its multipliers nu and mu / 2 the optimal weights are a = nu - mu D^-1 P^T (p - p0). For any mu the minimum of
g^T p + (mu / 2) (p - p0)^T M (p - p0) over the simplex gives weights that satisfy P a <= g: mu is found by a few such
quadratic programs, and the weights are lowered until P a <= g in double precision. What a solver leaves open makes
bounds longer, never wrong.
Source: M. Stanley, P. Patil and M. Kuusela, "Uncertainty quantification for wide-bin unfolding", arXiv 2111.01091
(prior-optimized intervals). The quadratic programs are solved by primal-dual interior-point steps.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mechdesign.utility.population.channel import Channel
from mechdesign.utility.population.linear_estimator import UNIFORM, law_beforehand

ACCURACY = 1e-4  # of the length of a bound: how much longer than the shortest it may be
_ROUNDS = 8  # quadratic programs
_STEPS = 60
_FASTEST = 0.01  # of mu, that it may become in a round
_CENTRE = 0.1  # of the mean complementarity that a step aims at
_BACK = 0.995  # of the way to the nearest bound
_CLOSE = 0.02  # relative: mu this near to the best changes a bound by less than its square

_Floats = NDArray[np.float64]


def affine_weights(
    channel: Channel, wanted: _Floats, guess: _Floats, reports: int, z: float
) -> tuple[_Floats, _Floats, _Floats]:
    """Weights (M, K) of lower and of upper bounds of the shares g (n, K), and the law of reports (M,) of the guess.

    Parameters: guess (n,), a distribution that was fixed before the reports; 1 % of the uniform one is mixed in;
        reports, N; z, of each bound.
    Cost: three to five quadratic programs a bound, each some 12 factorisations of n^3 / 3: 2 s for 900 secrets.
    """
    law = law_beforehand(channel, guess)
    start = (1 - UNIFORM) * guess + UNIFORM / channel.secrets
    scaled = channel.table / np.sqrt(law)
    chi = scaled @ scaled.T
    lower = [_lower(channel, column, chi, law, start, z * z / reports) for column in wanted.T]
    upper = [1 - _lower(channel, 1 - column, chi, law, start, z * z / reports) for column in wanted.T]
    return np.column_stack(lower), np.column_stack(upper), law


def _lower(channel: Channel, wanted: _Floats, chi: _Floats, law: _Floats, start: _Floats, radius: float) -> _Floats:
    """The weights (M,) of the lower bound of one share."""
    best, found = 0.0, np.zeros(len(law))  # a = 0 bounds every share
    mu = math.sqrt(max(float(start @ wanted) * float(start @ (1 - wanted)), UNIFORM**2) / radius)
    for _ in range(_ROUNDS):
        try:
            p, nu = _quadratic(wanted / mu, chi, start, ACCURACY * radius)
        except LinAlgError:
            break
        weights = mu * (nu - ((p - start) @ channel.table) / law)
        weights -= max(float((channel.table @ weights - wanted).max()), 0.0)
        value = float(law @ weights) - math.sqrt(radius * float(channel.moments(law, weights[:, None])[0]))
        if value > best:
            best, found = value, weights
        apart = math.sqrt(max(float((p - start) @ chi @ (p - start)), 0.0) / radius)
        if abs(apart - 1) <= _CLOSE:
            break
        mu *= max(apart, _FASTEST)
    return found


def _quadratic(cost: _Floats, chi: _Floats, start: _Floats, accuracy: float) -> tuple[_Floats, float]:
    """The p (n,) and multiplier nu of: minimise cost^T p + (p - p0)^T chi (p - p0) / 2 over p >= 0, sum p = 1."""
    n = len(cost)
    p, nu = start.copy(), float(cost.min()) - 1.0 / n
    s = cost - nu
    for _ in range(_STEPS):
        residual = cost + chi @ (p - start) - nu - s
        mean = float(p @ s) / n
        if mean * n <= accuracy and abs(residual).max() <= accuracy:
            break
        matrix = chi.copy()
        matrix.flat[:: n + 1] += s / p
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        one = cho_solve(factor, np.ones(n), check_finite=False)
        solve = partial(_step, factor, one, p, s, residual)
        dp, ds, _ = solve(0.0)
        predicted = float((p + _reach(p, dp) * dp) @ (s + _reach(s, ds) * ds)) / n
        dp, ds, rise = solve(max((predicted / mean) ** 3, _CENTRE**3) * mean - dp * ds)
        length = min(_reach(p, dp), _reach(s, ds))
        p, s, nu = p + length * dp, s + length * ds, nu + length * rise
    return p, nu


def _step(
    factor: tuple[_Floats, bool], one: _Floats, p: _Floats, s: _Floats, residual: _Floats, aim: _Floats | float
) -> tuple[_Floats, _Floats, float]:
    """The changes of p, s and nu that lead to p s = aim; one (n,), the solution for a right side of ones."""
    first = cho_solve(factor, aim / p - s - residual, check_finite=False)
    rise = -first.sum() / one.sum()
    change = first + rise * one
    return change, aim / p - s - s / p * change, float(rise)


def _reach(values: _Floats, change: _Floats) -> float:
    """The step length, at most 1, that keeps values + length * change positive."""
    return min(1.0, _BACK / max(float((-change / values).max()), np.finfo(float).tiny))
