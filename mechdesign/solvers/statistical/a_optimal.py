r"""A-optimal weights of given rays: a primal-dual interior-point method on the convex master problem.

    minimise    f(theta) = tr(W I^-1),  I = V diag(theta) V^T       V (n, k), W (n, n) positive semidefinite
    over        theta >= 0 (k,)
    subject to  V theta = 1

With G = I^-1 W I^-1 the gradient is -diag(V^T G V) and the Hessian 2 (V^T I^-1 V) * (V^T G V), entry by entry, which is
positive semidefinite. Optimal where multipliers lambda (n,) of the rows satisfy lambda^T v_j >= v_j^T G v_j for every
ray, with equality where theta_j > 0; then sum lambda = f. The same inequality for a ray that is not given says whether
it can improve the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mechdesign.errors import SolverError

_STEPS = 100
_CENTRE = 0.1  # share of the complementarity that a step aims for
_BOUNDARY = 0.95  # share of the way to the boundary that a step may go
_PRECISION = 1e-9  # relative: of the gap, of the residual of the rows and of that of the multipliers
_ENOUGH = 1e-6  # the same, where rounding allows no better: short edges give information of a large condition number


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """theta (k,), multipliers (n,), value tr(W I^-1), and gain G (n, n), all at theta."""

    theta: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    value: float
    gain: NDArray[np.float64]

    def worth(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        """v^T G v - lambda^T v of rays (n, k), with pi^T v = 1: above 0 where a ray would improve the mixture (k,)."""
        return np.asarray(((self.gain @ rays) * rays).sum(axis=0) - self.multipliers @ rays)


def optimal_weights(rays: NDArray[np.float64], norm: NDArray[np.float64]) -> Experiment:
    """Solve the master problem for rays V (n, k) and norm W (n, n).

    Raises: SolverError where the rays do not span all directions, or no mixture of them is 1 at every secret.
    Cost: 10 to 30 Cholesky factorisations of (k, k).
    """
    k = rays.shape[1]
    theta, slack = np.full(k, 1.0 / k), np.full(k, 1.0)
    multipliers: NDArray[np.float64] | None = None
    for _ in range(_STEPS):
        value, gain, spread, curvature = _derivatives(rays, norm, theta)
        if multipliers is None:
            slack, multipliers = slack * value, np.full(len(rays), value / len(rays))
        rows, columns = 1.0 - rays @ theta, rays.T @ multipliers - spread - slack
        complementarity = float(theta @ slack)
        worst = max(complementarity / value, abs(rows).max(), abs(columns).max() / value)
        if worst <= _PRECISION:
            return Experiment(theta=theta, multipliers=multipliers, value=value, gain=gain)
        target = _CENTRE * complementarity / k
        curvature[np.diag_indices(k)] += slack / theta
        solved = _solve(curvature, np.column_stack([rays.T, target / theta - slack - columns]))
        turn = _solve(rays @ solved[:, :-1], rays @ solved[:, -1] - rows)
        step = solved[:, -1] - solved[:, :-1] @ turn
        change = (target - slack * (theta + step)) / theta
        length = min(1.0, _BOUNDARY * _reach(theta, step), _BOUNDARY * _reach(slack, change))
        theta, slack, multipliers = theta + length * step, slack + length * change, multipliers + length * turn
    if multipliers is not None and worst <= _ENOUGH:
        return Experiment(theta=theta, multipliers=multipliers, value=value, gain=gain)
    raise SolverError(
        "the weights of the rays did not settle",
        field="given",
        value=f"residual {worst:.1e}",
        remedy="give more rays, the constant among them, or use a larger eps",
    )


def _derivatives(
    rays: NDArray[np.float64], norm: NDArray[np.float64], theta: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """f, G, diag(V^T G V), and the Hessian, at theta."""
    inverse = _solve((rays * theta) @ rays.T, np.eye(len(rays)))
    gain = inverse @ norm @ inverse
    inner = rays.T @ gain @ rays
    return float((norm * inverse).sum()), gain, np.diag(inner).copy(), 2 * (rays.T @ inverse @ rays) * inner


def _solve(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The solution for a positive definite matrix."""
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), right))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise SolverError(
            "the rays do not span all directions",
            field="given",
            value=str(error),
            remedy="give more rays, the kernels of single places among them, or use a larger eps",
        ) from error


def _reach(point: NDArray[np.float64], step: NDArray[np.float64]) -> float:
    """The largest multiple of `step` that keeps `point` non-negative."""
    back = step < 0
    return float((point[back] / -step[back]).min(initial=np.inf))
