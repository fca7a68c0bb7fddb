r"""The side row that inequalities with auxiliary variables imply, by weak duality in exact fractions.

cvxpy writes inequalities in the table P and auxiliary variables w as cones: s = b - A P - B w with s in K. Take any y
in the dual cone of K with

    B' y = 0.                                                                                           (1)

Then 0 <= <y, s> for every P that has some w, and the auxiliary variables are eliminated:

    (A' y) P <= <b, y>.                                                                                 (2)

The multipliers y of the program close the gap, but a solver meets (1) only to its tolerance, and w need not be bounded.
Therefore (1) is solved in fractions: some entries of y, the pivots, are computed from the others. Whether y lies in the
dual cone is decided on the fractions. The row (2) is weakened by 2^-44 of its terms, for the rounding of A and b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Vector
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import SideRows, stack_rows
from mechdesign.programs.statements import expected_loss
from mechdesign.solvers.tangents import ERROR, solve_quietly

Row = dict[int, Fraction]


@dataclass(frozen=True, kw_only=True)
class EliminationOptions:
    """Guesses, on which no proof rests."""

    negligible: float = 1e-9  # share of the largest multiplier: smaller ones of linear rows become 0
    # Moves of multipliers into their cones, tried in turn: shares of the largest entry of a cone.
    inflations: tuple[float, ...] = (1e-9, 1e-7, 1e-5)
    cone_weight: float = 1e-9  # of a multiplier in a cone that is not linear: other pivots are preferred


_OPTIONS = EliminationOptions()
_SLACK = 1e-12  # relative: the error of math.exp, and of its argument up to 700


@dataclass(frozen=True, kw_only=True, eq=False)
class ConeForm:
    """Inequalities as s = limit - matrix P - auxiliary w in cones; P is flattened column by column."""

    matrix: sp.csr_array  # A (k, n m)
    auxiliary: sp.csr_array  # B (k, number of auxiliary variables)
    limit: Vector  # b (k,)
    equalities: int  # s = 0 in these first entries,
    inequalities: int  # s >= 0 in the next,
    norms: list[slice]  # then |(s_1, ...)| <= s_0,
    exponentials: list[slice]  # and s_1 exp(s_0 / s_1) <= s_2

    @classmethod
    def of(cls, program: Constrained) -> ConeForm | None:
        """The form of the inequalities with auxiliary variables; None if it has other cones."""
        import cvxpy as cp

        size = program.table.size
        # The objective numbers the entries of P: its coefficients show which columns are theirs.
        numbered = np.arange(1.0, size + 1) @ cp.vec(program.table, order="F")
        data, _, _ = cp.Problem(cp.Minimize(numbered), program.joint_inequalities).get_problem_data(cp.CLARABEL)
        dims, columns, matrix = data["dims"], np.round(data["c"]).astype(int), sp.csc_array(data["A"])
        if dims.psd or dims.p3d or getattr(dims, "pnd", None) or data.get("lower_bounds") is not None:
            return None
        if data.get("upper_bounds") is not None:
            return None
        order = np.argsort(columns, kind="stable")
        others, entries = order[: len(order) - size], order[len(order) - size :]
        ends = np.cumsum([dims.zero + dims.nonneg, *dims.soc, *(3 for _ in range(dims.exp))])
        cones = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        return cls(
            matrix=sp.csr_array(matrix[:, entries]),
            auxiliary=sp.csr_array(matrix[:, others]),
            limit=np.asarray(data["b"], float),
            equalities=dims.zero,
            inequalities=dims.nonneg,
            norms=cones[: len(dims.soc)],
            exponentials=cones[len(dims.soc) :],
        )

    def multipliers(self, program: Constrained, unit: float) -> Vector | None:
        """Approximate multipliers y (k,) of the program in which P meets this form; None if no solver gives them."""
        import cvxpy as cp

        w = cp.Variable(self.auxiliary.shape[1])
        s = self.limit - self.matrix @ cp.vec(program.table, order="F") - self.auxiliary @ w
        linear, cones = self.equalities + self.inequalities, [*self.norms, *self.exponentials]
        parts = [s[: self.equalities] == 0, -s[self.equalities : linear] <= 0]
        parts += [cp.SOC(s[part.start], s[part.start + 1 : part.stop]) for part in self.norms]
        parts += [cp.ExpCone(*(s[part.start + i] for i in range(3))) for part in self.exponentials]
        kept = [part for part in parts[:2] if part.size] + parts[2:]
        objective = cp.Minimize(expected_loss(program.table, program.problem) / unit)
        statement = cp.Problem(objective, [*program.private_and_other, *kept])
        for options in ({}, {"equilibrate_enable": False}):
            solver = cp.CLARABEL if cones or options else cp.HIGHS
            try:
                solve_quietly(statement, str(solver), options if solver == cp.CLARABEL else {})
            except (cp.error.SolverError, ValueError):
                continue
            y = np.zeros(len(self.limit))
            if self.equalities:
                y[: self.equalities] = -np.ravel(parts[0].dual_value)
            if self.inequalities:
                y[self.equalities : linear] = np.ravel(parts[1].dual_value)
            for part, cone in zip(cones, parts[2:], strict=True):
                y[part] = np.concatenate([np.ravel(value) for value in cone.dual_value])
            return y if np.isfinite(y).all() else None
        return None

    def in_dual_cone(self, y: dict[int, Fraction]) -> bool:
        """True if exact multipliers lie in the dual cone."""
        linear = self.equalities + self.inequalities
        zero = Fraction(0)
        if any(value < 0 for i, value in y.items() if self.equalities <= i < linear):
            return False
        for part in self.norms:
            first, *rest = (y.get(i, zero) for i in range(part.start, part.stop))
            if first < 0 or first * first < sum(value * value for value in rest):
                return False
        return all(_in_dual_exponential(*(y.get(part.start + i, zero) for i in range(3))) for part in self.exponentials)


def _in_dual_exponential(u: Fraction, v: Fraction, w: Fraction) -> bool:
    if u == 0:
        return v >= 0 and w >= 0
    power = float(v / u) - 1 if u < 0 else math.inf
    return power < 700 and w >= -u * Fraction(math.exp(power) * (1 + _SLACK))


def auxiliary_row(program: Constrained, unit: float) -> SideRows:
    """The row (2) of the inequalities with auxiliary variables, for an objective near `unit`; none where (1) fails."""
    entries = program.table.size
    form = ConeForm.of(program)
    y = None if form is None else form.multipliers(program, unit)
    if form is None or y is None:
        return stack_rows([], entries)
    for inflation in _OPTIONS.inflations:
        exact = _eliminate(form, y, inflation)
        if exact and form.in_dual_cone(exact):
            return _row(form, exact, program.table.shape)
    return stack_rows([], entries)


def _eliminate(form: ConeForm, approximate: Vector, inflation: float) -> dict[int, Fraction]:
    """Multipliers that meet (1) exactly, near approximate ones moved into their cones."""
    y, linear = approximate.copy(), form.equalities + form.inequalities
    largest = np.abs(y).max(initial=0.0)
    y[:linear][np.abs(y[:linear]) <= _OPTIONS.negligible * largest] = 0.0
    y[form.equalities : linear] = np.maximum(y[form.equalities : linear], 0.0)
    for part in form.norms:
        y[part.start] += inflation * np.abs(y[part]).max(initial=0.0)
    for part in form.exponentials:
        u, v, w = y[part]
        if u > -_OPTIONS.negligible * largest:
            y[part] = 0.0, max(v, 0.0), max(w, 0.0)
        else:
            y[part.start + 2] = w + inflation * max(abs(u), abs(v), abs(w))
    weight = np.abs(y)
    weight[linear:] *= _OPTIONS.cone_weight
    support = np.flatnonzero(y)
    rows = sp.csc_array(form.auxiliary[support])
    values = {int(i): Fraction(float(y[i])) for i in support}
    pivots = list[tuple[int, Row]]()
    # Columns of few entries first: they fill in least.
    for column in np.argsort(np.diff(rows.indptr), kind="stable"):
        part = slice(rows.indptr[column], rows.indptr[column + 1])
        equation = {
            int(support[i]): Fraction(float(x)) for i, x in zip(rows.indices[part], rows.data[part], strict=True)
        }
        for pivot, row in pivots:
            if factor := equation.pop(pivot, None):
                for i, x in row.items():
                    equation[i] = equation.get(i, Fraction(0)) + factor * x
        equation = {i: x for i, x in equation.items() if x}
        if equation:
            pivot = max(equation, key=lambda i: weight[i] * abs(equation[i]))
            scale = -equation.pop(pivot)
            pivots.append((pivot, {i: x / scale for i, x in equation.items()}))
    # A row contains only later pivots.
    for pivot, row in reversed(pivots):
        values[pivot] = sum((x * values[i] for i, x in row.items()), Fraction(0))
    return values


def _row(form: ConeForm, y: dict[int, Fraction], shape: tuple[int, int]) -> SideRows:
    """(2) in floating point over P flattened row by row: the left side rounded down, as P >= 0, the right side up."""
    left, size = [Fraction(0)] * form.matrix.shape[1], Fraction(0)
    right = Fraction(0)
    for i, value in y.items():
        part = slice(form.matrix.indptr[i], form.matrix.indptr[i + 1])
        for column, x in zip(form.matrix.indices[part], form.matrix.data[part], strict=True):
            left[column] += value * Fraction(float(x))
            size += abs(value * Fraction(float(x)))
        right += value * Fraction(float(form.limit[i]))
        size += abs(value * Fraction(float(form.limit[i])))
    scale = max((abs(x) for x in left), default=Fraction(0))
    if not scale:
        return stack_rows([], len(left))
    limit = float((right + Fraction(ERROR) * size) / scale)
    entries = np.array([np.nextafter(float(x / scale), -np.inf) if x else 0.0 for x in left])
    n, m = shape
    return SideRows(
        matrix=sp.csr_array(entries.reshape((m, n)).T.reshape(1, -1)),
        limit=np.array([np.nextafter(limit, np.inf)]),
        epigraph_coefficient=np.zeros(1),
        names=["constraints: your inequalities with auxiliary variables"],
    )
