r"""How far designs on a torus can get: a bound of the criterion over mechanisms on a torus, and over nothing else.

On a torus any private mechanism may be averaged over all moves, and neither its criterion nor its claim gets worse: its
information at the uniform truth becomes J(u, v) = r(u - v). Products of the two sides of constraints,
a_e(u) = v(u + e) - c_e v(u) >= 0 with c_e = e^{-|e|} for short steps e, are linear in the autocorrelation r:

    minimise    sum over modes o != 0 of W(o) / x(o)                          x = Fourier transform of r, x(0) = n
    over        x >= 0, even under every symmetry of the torus
    subject to  r(t + f - e) - c_e r(t + f) - c_f r(t - e) + c_e c_f r(t) >= 0    for all moves t and steps e, f

A relaxation: products of three sides would raise it. A mechanism on a grid need not extend to the torus around it,
whose cells across the border are neighbours: the value bounds no design on a grid. It is that of the solver.
Source: ours, from solvers/statistical/criterion_bound.py; products of constraints as in Sherali and Adams 1990.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SolverError
from mechdesign.solvers.statistical.torus_mixture import Torus

_ROUNDS = 10
_FIRST = 3000  # rows to start with
_ADDED = 2000  # broken rows that come in for a round
_BROKEN = 1e-7  # relative to r(0): a row below minus this is added
_TIGHT = 1e-5  # the same: a row above this leaves
_SAME = 12  # digits to which rows are one


def torus_bound(torus: Torus, eigenvalue: NDArray[np.float64]) -> float:
    """The value of the relaxation for steps to the cells around, in the unit of the norm.

    eigenvalue (n - 1,), W(o), even under the symmetries of the torus, as for `choose_mixture`.
    Raises: SolverError where the solver finds no optimum. Cost: 1 s for 20 x 20 cells, 14 s for 30 x 30.
    """
    import cvxpy as cp

    n, orbit = math.prod(torus.shape), _orbits(torus)
    count = int(orbit.max()) + 1
    rows = _rows(torus, orbit) @ _waves(torus, orbit)
    rows /= abs(rows).max(axis=1, keepdims=True)
    paid = np.bincount(orbit.ravel(), np.r_[0.0, eigenvalue], count)
    mode = np.flatnonzero(np.arange(count) != orbit.flat[0])
    x = cp.Variable(count, nonneg=True)
    active = np.random.default_rng(0).permutation(len(rows))[:_FIRST]
    for _ in range(_ROUNDS):
        goal = cp.sum(cp.multiply(paid[mode], cp.inv_pos(x[mode])))
        relaxed = cp.Problem(cp.Minimize(goal), [x[int(orbit.flat[0])] == n, rows[active] @ x >= 0])
        relaxed.solve(solver="CLARABEL")
        if x.value is None:
            raise SolverError("the relaxation was not solved", field="torus", value=relaxed.status, remedy="use fewer")
        left = rows @ x.value / n
        broken = np.flatnonzero(left < -_BROKEN)
        if not len(broken):
            break
        worst = broken[np.argsort(left[broken], kind="stable")[:_ADDED]]
        active = np.union1d(active[left[active] < _TIGHT], worst)
    return float(relaxed.value)


def _orbits(torus: Torus) -> NDArray[np.int64]:
    """The number of the orbit of each cell, and of each mode, under the symmetries: (T1, T2)."""
    axes = [np.minimum(np.arange(t), t - np.arange(t)) for t in torus.shape]
    folded = np.meshgrid(*axes, indexing="ij")
    keys = [np.ravel_multi_index([folded[i] for i in order], torus.shape) for order in torus.orders]
    _, orbit = np.unique(np.min(keys, axis=0), return_inverse=True)
    return np.asarray(orbit.reshape(torus.shape))


def _waves(torus: Torus, orbit: NDArray[np.int64]) -> NDArray[np.float64]:
    """The matrix of r = waves @ x: autocorrelation at orbits of moves from the transform at orbits of modes."""
    count = int(orbit.max()) + 1
    found = np.zeros((count, count))
    for number in range(count):
        move = np.argwhere(orbit == number)[0]
        phase = [np.arange(t) * m / t for t, m in zip(torus.shape, move, strict=True)]
        wave = np.cos(2 * np.pi * np.add.reduce(np.meshgrid(*phase, indexing="ij")))
        found[number] = np.bincount(orbit.ravel(), wave.ravel(), count) / orbit.size
    return found


def _rows(torus: Torus, orbit: NDArray[np.int64]) -> NDArray[np.float64]:
    """The products of the module docstring, as rows over the orbits of moves, each once."""
    axes = tuple(range(len(torus.shape)))
    steps = [step for step in itertools.product((-1, 0, 1), repeat=len(axes)) if any(step)]
    shrink = {step: math.exp(-math.hypot(*np.multiply(step, torus.step))) for step in steps}
    found = []
    for one, other in itertools.product(steps, repeat=2):
        both = np.zeros((orbit.size, int(orbit.max()) + 1))
        away = [np.subtract(other, one), np.array(other), -np.array(one), np.zeros(len(axes), int)]
        weights = (1.0, -shrink[one], -shrink[other], shrink[one] * shrink[other])
        for move, weight in zip(away, weights, strict=True):
            at = np.roll(orbit, tuple(-move), axes).ravel()
            np.add.at(both, (np.arange(orbit.size), at), weight)
        found.append(np.unique(both.round(_SAME), axis=0))
    return np.asarray(np.unique(np.vstack(found), axis=0))
