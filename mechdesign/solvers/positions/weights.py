r"""Weights of given columns whose sum is 1 in every row: a dense linear program by an interior-point method.

    minimise    c w    over w >= 0    subject to    A w = 1

Dual: z = c - A' lambda >= 0, maximise the sum of lambda; c > 0, so that lambda = 0 is inside. Mehrotra's predictor and
corrector; a step factors A diag(w / z) A', a dense matrix with a row for each row of A.
Source: Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2, 1992.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mechdesign.solvers.kernels.steps import longest_step

Array = NDArray[np.float64]

_STEP = 0.99
_ITERATIONS = 80
_RIDGE = 1e-14  # of the diagonal
_EXACT = 1e-9  # of a row sum
_REFINED = 3
_STALLED = 5


def cheapest_weights(
    columns: Array,
    cost: Array,
    *,
    tolerance: float,
    deadline: float = np.inf,
    on_progress: Callable[[int, float, float], None] | None = None,
) -> tuple[Array, str]:
    """Weights w (k,) >= 0 of columns (r, k) >= 0 with costs (k,) > 0, to a relative gap, A w = 1 to 1e-9 where rounding
    and the deadline allow it, else the best of the points; and why it ended, "gap", "precision", "time" or "interrupt".

    on_progress is called with the iteration, the primal and the dual objective. A Ctrl-C ends it with its best point.
    Cost: O(r^2 k) a step, some 15 to 40 steps. Memory: a copy of the columns, and r^2 numbers.
    """
    scale = columns.mean(axis=0)
    matrix = np.asfortranarray(columns / scale)
    price = cost / scale
    unit = float(price.mean())
    c = price / unit
    rows, count = matrix.shape
    w, z, dual = np.full(count, 1.0 / count), c.copy(), np.zeros(rows)
    best, merit, since, stopped = w, np.inf, 0, "precision"
    try:
        for number in range(_ITERATIONS):
            row, wrong = 1 - matrix @ w, c - matrix.T @ dual - z
            mu, objective = float(w @ z) / count, float(c @ w)
            reached = max(mu * count / objective / tolerance, float(np.abs(row).max()) / _EXACT)
            if on_progress is not None:
                on_progress(number, objective * unit, float(dual.sum()) * unit)
            since = 0 if reached < merit else since + 1
            if reached < merit:
                best, merit = w, reached
            if reached <= 1 or since >= _STALLED:
                stopped = "gap" if reached <= 1 else stopped
                break
            if time.monotonic() >= deadline:
                stopped = "time"
                break
            newton = _Newton(matrix, w, z)
            dw, _, dz = newton.step(row, wrong, -w * z)
            ahead = float((w + longest_step(w, dw) * dw) @ (z + longest_step(z, dz) * dz)) / count
            dw, dl, dz = newton.step(row, wrong, mu * (ahead / mu) ** 3 - w * z - dw * dz)
            along, across = min(1.0, _STEP * longest_step(w, dw)), min(1.0, _STEP * longest_step(z, dz))
            w, dual, z = w + along * dw, dual + across * dl, z + across * dz
    except KeyboardInterrupt:
        stopped = "interrupt"
    except np.linalg.LinAlgError:
        stopped = "precision"
    return np.asarray(best / scale), stopped


class _Newton:
    """Newton steps from one point (w, z)."""

    def __init__(self, matrix: Array, w: Array, z: Array) -> None:
        self.matrix, self.w, self.z = matrix, w, z
        self.share = w / z
        normal = blas.dsyrk(1.0, matrix * np.sqrt(self.share), lower=1)
        self.unit = 1 / np.sqrt(np.diagonal(normal))
        normal *= self.unit[:, None] * self.unit
        normal[np.diag_indices_from(normal)] = 1 + _RIDGE
        while True:
            self.factor, broken = lapack.dpotrf(normal, lower=1)
            if not broken:
                break
            lifted = 100 * (normal[0, 0] - 1)
            if lifted > _EXACT:
                raise np.linalg.LinAlgError("the columns are not independent")
            normal[np.diag_indices_from(normal)] = 1 + lifted

    def step(self, row: Array, wrong: Array, products: Array) -> tuple[Array, Array, Array]:
        """The steps of w, multipliers and z: A dw = row, A' dl + dz = wrong, z dw + w dz = products."""
        right = row - self.matrix @ ((products - self.w * wrong) / self.z)
        dl = np.zeros(len(row))
        for _ in range(_REFINED):
            left = right - self.matrix @ (self.share * (self.matrix.T @ dl))
            dl += self.unit * lapack.dpotrs(self.factor, self.unit * left, lower=1)[0]
        dz = wrong - self.matrix.T @ dl
        return (products - self.w * dz) / self.z, dl, dz
