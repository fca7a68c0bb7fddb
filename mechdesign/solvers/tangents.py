r"""Tangents: rows that a convex inequality g(P) <= 0 implies, found from values of g alone.

Let x (n, m) be positive, h_i > 0 steps of its entries, and

    f_i = (g(x + h_i e_i) - g(x)) / h_i,     b_i = (g(x) - g(x - h_i e_i)) / h_i.

For any numbers s_i and w_i >= max(s_i - b_i, f_i - s_i)

    g(P) <= 0   implies   sum_i (s_i - w_i) P_i <= sum_i (s_i + w_i) x_i - g(x),                                  (1)

if values of g as cvxpy computes them are right to e = 2^-44 times the largest number that enters them. Proof: at
`tangent_rows`. Files cannot hold a user's function: `verify` reports such a bound as unchecked.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import UNLIMITED, TimeBudget
from mechdesign.programs.coupled import SideRows, stack_rows

if TYPE_CHECKING:
    import cvxpy as cp

# Of the largest number that enters a value: 512 roundings of it. The same values show that a table satisfies g <= 0.
ERROR = 2.0**-44
_ROUNDED = 2.0**-48  # relative: the sums of (1), of products with relative error 2^-52
_TINY = 1e-300  # below all sums of (1)


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Where tangents are drawn, and with which steps; guesses, on which no proof rests."""

    smallest_entry: float = 3e-6  # of x: smaller entries leave no room for steps
    long_step: float = 1e-4  # at most half of the entry
    off_kink: float = 1e-4  # share of an entry by which the point is moved at random, at most
    entries: int = 12  # of an inequality that get a tangent, those nearest to being broken


_STEPS = StepOptions()


def solve_quietly(statement: cp.Problem, solver: str, options: Mapping[str, object]) -> None:
    """Solve without the warnings of cvxpy, whose intervals multiply infinities; the result is certified afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        statement.solve(solver=solver, **options)


def value_of(inequality: cp.Constraint, table: cp.Variable, point: Matrix) -> Vector:
    """Values (k,) of an inequality g <= 0 at a point (n, m)."""
    table.value = point
    return np.atleast_1d(np.asarray(inequality.expr.value, float)).ravel(order="F")


def _largest_number(expression: Any) -> float:
    largest = float(np.max(np.abs(expression.value), initial=0.0)) if expression.value is not None else math.inf
    return max([largest, *(_largest_number(part) for part in expression.args)])


def tangent_rows(
    inequality: cp.Constraint,
    table: cp.Variable,
    point: Matrix,
    rng: np.random.Generator,
    *,
    budget: TimeBudget = UNLIMITED,
) -> SideRows:
    """Rows (1) of an inequality near a table (n, m), by 4 n m values of g; no row where g has no value."""
    # Proof of (1). For every P with D = P - x, g(P) >= g(x) + sum_i (b_i max(D_i, 0) - f_i max(-D_i, 0)): take t > 0
    # with sum_i t |D_i| / h_i <= 1. The point Q = x - t D is a convex combination of x and of the points x - sign(D_i)
    # h_i e_i, with weights t |D_i| / h_i, so g(Q) is at most the combination of their values. And x is the combination
    # of P and Q with weights t / (1 + t) and 1 / (1 + t), so g(x) <= (t g(P) + g(Q)) / (1 + t). Insert the first into
    # the second and solve for g(P). No gradient enters, and g need not be smooth. (1) follows with |D_i| <= P_i + x_i,
    # since both are >= 0.
    # At a kink of g the slopes on both sides differ, which makes (1) weak: x is moved off it at random.
    x = np.maximum(point, _STEPS.smallest_entry) * (1 + _STEPS.off_kink * rng.random(point.shape))
    value = value_of(inequality, table, x)
    error = ERROR * _largest_number(inequality.expr)
    chosen = np.argsort(-value, kind="stable")[: _STEPS.entries]
    if not (np.isfinite(value[chosen]).all() and math.isfinite(error)):
        return stack_rows([], x.size)
    slope, off = np.zeros((len(chosen), x.size)), np.full((len(chosen), x.size), np.inf)
    # Rounding adds 2 e / h to w, and curvature h g'' / 2, where g'' is about 1 / x for entropies: steps of sqrt(e x)
    # balance the two. Longer steps do better where g is flat. No step leaves x > 0, where g need not be defined.
    for steps in (np.sqrt(error * x), np.minimum(_STEPS.long_step, x / 2)):
        trial, width = _slopes(inequality, table, x, np.minimum(steps, x / 2), value[chosen], chosen, error, budget)
        is_narrower = width < off
        slope, off = np.where(is_narrower, trial, slope), np.where(is_narrower, width, off)
    parts = []
    for k, entry in enumerate(chosen):
        # (1): the left side is rounded down, which weakens it because P >= 0, and the right side up.
        matrix = np.nextafter(slope[k] - off[k], -np.inf)
        terms = np.r_[(slope[k] + off[k]) * x.ravel(), -value[entry], error]
        if np.isfinite(matrix).all() and np.isfinite(terms).all():
            limit = math.fsum(terms) + _ROUNDED * math.fsum(np.abs(terms)) + _TINY
            name = f"constraints: a tangent of {inequality}, entry {entry}"
            row = sp.csr_array(matrix[None])
            parts.append(SideRows(matrix=row, limit=np.array([limit]), epigraph_coefficient=np.zeros(1), names=[name]))
    return stack_rows(parts, x.size)


def _slopes(
    inequality: cp.Constraint,
    table: cp.Variable,
    x: Matrix,
    steps: Matrix,
    value: Vector,
    chosen: Indices,
    error: float,
    budget: TimeBudget,
) -> tuple[Matrix, Matrix]:
    """Slopes s and widths w of (1), both (k, n m), for the chosen entries with values (k,)."""
    forward, backward = (np.empty((len(chosen), x.size)) for _ in range(2))
    shorter = np.empty(x.size)
    with np.errstate(all="ignore"):
        for i in range(x.size):
            if budget.is_spent():
                raise OutOfTime
            up, down = x.copy(), x.copy()
            up.flat[i] += steps.flat[i]
            down.flat[i] -= steps.flat[i]
            # Exact differences of doubles, not the steps that were asked for.
            rise, fall = up.flat[i] - x.flat[i], x.flat[i] - down.flat[i]
            forward[:, i] = (value_of(inequality, table, up)[chosen] - value) / rise
            backward[:, i] = (value - value_of(inequality, table, down)[chosen]) / fall
            shorter[i] = min(rise, fall)
        slope = (forward + backward) / 2
        # 2 e / h for each quotient, and as much again for `slope`, which is made of both.
        rounding = 4 * error / shorter + _ROUNDED * np.abs(slope)
        off = np.abs(forward - backward) / 2 + rounding
        # A step outside the domain of g, or differences that no convex function has: an infinite width discards it.
        valid = np.isfinite(off) & (backward <= forward + rounding)
    return np.where(valid, slope, 0.0), np.where(valid, off, np.inf)
