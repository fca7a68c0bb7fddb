r"""A-optimal weights of given rays: a primal-dual interior-point method on the convex master problem.

    (1)  minimise    f(theta) = tr(W I^-1) + cost^T theta,  I = V diag(theta) V^T
         over        theta >= 0 (k,)
         subject to  V theta = 1                 V (n, k), W (n, n) positive semidefinite

With G = I^-1 W I^-1, theta is optimal if multipliers lambda (n,) of the rows satisfy, for every ray,

    (2)  lambda^T v_j >= v_j^T G v_j - cost_j,  with equality where theta_j > 0.

A ray outside V can improve the mixture only if it violates (2). Under a group of symmetries a ray represents its orbit
and I is the mean over the group. Rows are means over orbits of secrets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mechdesign.base.arrays import Floats, Matrix, Vector
from mechdesign.errors import SolverError
from mechdesign.solvers.symmetry import Symmetry, no_symmetry

_STEPS = 100  # of the interior-point method
_CENTRE = 0.1  # share of the complementarity that a step aims for; a usual value
_BOUNDARY = 0.95  # share of the way to the boundary that a step may go; a usual value
_PRECISION = 1e-9  # relative: of the gap, of the residual of the rows and of that of the multipliers
_ENOUGH = 1e-6  # the same, where rounding allows no better: short edges give information of a large condition number
_REMEDY = "use more rays, or a larger epsilon"


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureOptimum:
    """theta (k,), multipliers (n,), value tr(W I^-1), and gain G (n, n), all at theta."""

    theta: Vector
    multipliers: Vector
    value: float
    gain: Matrix

    def reduced_costs(self, rays: Matrix) -> Vector:
        """(2): v^T G v - lambda^T v (k,) of rays (n, k) with pi^T v = 1, above 0 where a ray improves the mixture."""
        return np.asarray(((self.gain @ rays) * rays).sum(axis=0) - self.multipliers @ rays)


def optimal_weights(
    rays: Matrix,
    norm: Matrix,
    *,
    cost: Vector | None = None,
    group: Symmetry | None = None,
    start: Vector | None = None,
    precision: float = _PRECISION,
) -> MixtureOptimum:
    """Solve (1) for rays (n, k) and norm (n, n); a weight is that of the whole orbit of its ray."""
    # `group` leaves the norm unchanged; `start` (k,) > 0 are initial weights; `precision` is relative. The value
    # excludes the cost.
    k = rays.shape[1]
    folded = _Folded(rays, norm, no_symmetry(len(rays)) if group is None else group)
    costs = np.zeros(k) if cost is None else cost
    theta, slack = np.full(k, 1.0 / k) if start is None else start, np.full(k, 1.0)
    multipliers: Vector | None = None
    for _ in range(_STEPS):
        value, gain, spread, curvature = folded.derivatives(theta)
        # Without a cost sum lambda = f at the optimum, so equal shares of f are a start of the right size.
        if multipliers is None:
            slack, multipliers = slack * value, np.full(len(folded.rows), value / len(folded.rows))
        rows, columns = 1.0 - folded.rows @ theta, folded.rows.T @ multipliers - spread + costs - slack
        complementarity = float(theta @ slack)
        worst = max(complementarity / value, abs(rows).max(), abs(columns).max() / value)
        if worst <= precision:
            return MixtureOptimum(theta=theta, multipliers=folded.spread_out(multipliers), value=value, gain=gain)
        # Newton step of the conditions of optimality, centred; the Hessian gets the barrier term slack / theta.
        target = _CENTRE * complementarity / k
        curvature[np.diag_indices(k)] += slack / theta
        # The step of theta as a function of that of the multipliers, then the rows determine the multipliers.
        solved = _solve(curvature, np.column_stack([folded.rows.T, target / theta - slack - columns]))
        shift = _solve(folded.rows @ solved[:, :-1], folded.rows @ solved[:, -1] - rows)
        step = solved[:, -1] - solved[:, :-1] @ shift
        change = (target - slack * (theta + step)) / theta
        length = min(1.0, _BOUNDARY * _reach(theta, step), _BOUNDARY * _reach(slack, change))
        theta, slack, multipliers = theta + length * step, slack + length * change, multipliers + length * shift
    # Short edges make the information ill-conditioned: rounding then stops the residuals above the target.
    if multipliers is not None and worst <= _ENOUGH:
        return MixtureOptimum(theta=theta, multipliers=folded.spread_out(multipliers), value=value, gain=gain)
    raise SolverError(f"the weights of the rays did not converge (residual {worst:.1e})", remedy=_REMEDY)


class _Folded:
    """Rays and norm in the blocks of a group (solvers/symmetry.py)."""

    def __init__(self, rays: Matrix, norm: Matrix, group: Symmetry) -> None:
        self._group, mean = group, group.mean
        self._rays = [[basis.T @ rays[turn] for turn in group.coset_representatives] for basis in group.blocks]
        self._norm = [basis.T @ norm @ basis for basis in group.blocks]
        self.rows = np.asarray(mean @ rays)

    def spread_out(self, multipliers: Vector) -> Vector:
        return np.asarray(self._group.mean.T @ multipliers)

    def derivatives(self, theta: Vector) -> tuple[float, Matrix, Vector, Matrix]:
        """tr(W I^-1), G, diag(V^T G V), and the Hessian, at theta."""
        k, turns = len(theta), len(self._group.coset_representatives)
        value, gain = 0.0, np.zeros((len(self._group.orbits),) * 2)
        spread, curvature = np.zeros(k), np.zeros((k, k))
        for basis, turned, norm in zip(self._group.blocks, self._rays, self._norm, strict=True):
            information = np.add.reduce([(rays * theta) @ rays.T for rays in turned]) / turns
            inverse = _solve(information, np.eye(len(information)))
            # A block of G, which gives the gradient cost - diag(V^T G V). The Hessian is 2 (V^T I^-1 V) * (V^T G V),
            # entry by entry, a product of semidefinite matrices: (1) is convex.
            inner = inverse @ norm @ inverse
            value += float((norm * inverse).sum())
            gain += basis @ inner @ basis.T
            left, right = turned[0].T @ inverse, turned[0].T @ inner
            spread += (right * turned[0].T).sum(axis=1)
            for rays in turned:
                curvature += (left @ rays) * (right @ rays)
        # Symmetric in exact arithmetic; averaged over the coset representatives of the group.
        return value, gain, spread, (curvature + curvature.T) / turns


def _solve(matrix: Matrix, right: Floats) -> Floats:
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), right))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise SolverError(f"the rays do not span all directions ({error})", remedy=_REMEDY) from error


def _reach(point: Vector, step: Vector) -> float:
    """The largest multiple of `step` that keeps `point` non-negative."""
    back = step < 0
    return float((point[back] / -step[back]).min(initial=np.inf))
