"""A primal-dual interior-point method for restricted programs: one small block per report, coupled by n row sums.

    minimise c q   subject to   s = A q >= 0,   M q = 1        dual: lambda free, z >= 0, M' lambda + A' z = c

Mehrotra's predictor and corrector with up to two centrality correctors after Gondzio. A Newton step eliminates the
blocks H_y = A_y' diag(z / s) A_y and factors the dense Schur complement of the row sums, n x n: one factorisation an
iteration, whatever the number of variables.

Directions leave out row-sum coefficients below 1e-5 (block_algebra.py); residuals do not, so that row sums drift by a
few 1e-6. A restoration with the last factors ends that: the point then satisfies the row sums to rounding, and the
repair of its table costs next to nothing.

Start. Profiles a little flatter than the eikonal ones, q = (1 + D / (D + 3)) / sum_u e^{-D}, hence inside the cone or
near it, and multipliers from the eikonal dual. Known to fail: tiny mu, profiles e^{theta D}.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.table.dataset import RESOLUTION
from mechdesign.programs.optimal.restricted import RestrictedProgram
from mechdesign.solvers.kernels.steps import longest_step
from mechdesign.solvers.optimal.block_algebra import BlockAlgebra

Vector = NDArray[np.float64]

_FLOOR = 1e-2  # slack of a row at the start, against the larger of its two variables
_STEP = 0.995  # share of the way to the boundary
_MANY = 1500  # secrets from which a factorisation costs more than the two centrality correctors
_CENTRED = 0.1  # complementarity products are pushed into [0.1, 10] times their target
_ROWS = 1e-5  # error of a row sum with which the method may end; restoration removes it
_ITERATIONS = 150
_RARELY = 1e3  # inverse of the probability of the constant report at the start
_CORRECTORS = 2
_WIDER = 1.08  # a corrector aims at steps this much longer, and as much of a full step more
_WORTH = 0.02  # gain of the two step lengths together that makes a corrector worth another
_RESTORATIONS = 4
_SHORT = 0.1  # share of the way below which a step towards the central path, without second order, is tried
_STUCK = 2  # iterations without a better point from which it is always tried
_CENTRING = 0.3  # its target, as a share of the mean product s z
_FINE = 1e-4  # tolerance below which directions are refined once
_LEAST = 0.3  # share of the tolerance at which the products s z are held
_STALLED = 8  # iterations without a better point after which rounding is taken to have won


@dataclass(frozen=True, kw_only=True, eq=False)
class InteriorPoint:
    """The best point met: q (v,) inside the cone, dual (n,), gap = complementarity / cost, iterations, and whether it
    stopped for "gap", "time", "interrupt" or "precision".
    """

    q: Vector
    dual: Vector
    gap: float
    iterations: int
    stopped: str


def solve_blocks(
    program: RestrictedProgram,
    *,
    dual: Vector,
    tolerance: float,
    deadline: float = np.inf,
    on_progress: Callable[[int], None] | None = None,
) -> InteriorPoint:
    """Solve a restricted program to a relative complementarity gap.

    Parameters: dual (n,), multipliers to start from; deadline, of time.monotonic(); on_progress, called with the
    number of every iteration. An interrupt (Ctrl-C) ends the method and returns its best point.
    Memory: `BlockAlgebra`, and a dozen vectors over rows.
    """
    algebra = BlockAlgebra(program)
    state = _start(program, algebra, dual)
    best, merit, mu, since, stopped, factored = state, np.inf, np.inf, 0, "precision", False
    iteration, slowest, began = 0, 0.0, time.monotonic()
    try:
        for iteration in range(_ITERATIONS):
            errors = _Errors.of(program, algebra, state)
            found = max(errors.gap, errors.dual_share, float(np.abs(errors.row).max()) - _ROWS)
            since = 0 if found < merit or errors.mu < mu / 2 else since + 1
            mu = min(mu, errors.mu)
            if found < merit:
                best, merit = state, found
            if on_progress is not None:
                on_progress(iteration)
            if found < tolerance:
                stopped = "gap"
                break
            now = time.monotonic()
            slowest, began = max(slowest, now - began), now
            if now + slowest > deadline:  # another iteration would not end in time
                stopped = "time"
                break
            if since >= _STALLED:
                break
            factored = False
            factored = algebra.factor(state.z / state.s)
            if not factored:
                break
            newton = _Newton(algebra=algebra, at=state, errors=errors, refinements=int(tolerance < _FINE))
            least = _LEAST * tolerance * float(program.cost @ state.q) / algebra.rows
            state = newton.advanced(least=least, short=_SHORT if since < _STUCK else 1.0)
    except KeyboardInterrupt:
        stopped = "interrupt"
    q = _restored(algebra, best.q) if factored else best.q
    return InteriorPoint(q=q, dual=best.dual, gap=merit, iterations=iteration, stopped=stopped)


@dataclass(frozen=True, kw_only=True, eq=False)
class _State:
    """A point or a direction: q (v,); slacks s and multipliers z (c,) of the rows; dual (n,), those of the sums."""

    q: Vector
    s: Vector
    z: Vector
    dual: Vector

    def moved(self, step: _State, along: float, across: float) -> _State:
        return _State(
            q=self.q + along * step.q,
            s=self.s + along * step.s,
            z=self.z + across * step.z,
            dual=self.dual + across * step.dual,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Errors:
    """What a point violates: dual (v,), row (n,), slack (c,); mu, the mean product s z; gap and dual_share, relative
    to the cost, or to 1e-9 of that of the constant report where the cost is less.
    """

    dual: Vector
    row: Vector
    slack: Vector
    mu: float
    gap: float
    dual_share: float

    @classmethod
    def of(cls, program: RestrictedProgram, algebra: BlockAlgebra, at: _State) -> _Errors:
        dual = program.cost - algebra.sums_transposed(at.dual) - algebra.cone_transposed(at.z)
        product = float(at.s @ at.z)
        cost = max(float(program.cost @ at.q), RESOLUTION * float(program.cost[-1]))
        return cls(
            dual=dual,
            row=1 - algebra.sums(at.q),
            slack=algebra.cone(at.q) - at.s,
            mu=product / algebra.rows,
            gap=product / cost,
            dual_share=float(np.abs(dual * at.q).sum()) / cost,
        )


def _start(program: RestrictedProgram, algebra: BlockAlgebra, dual: Vector) -> _State:
    widths = np.add.reduceat(algebra.sums_transposed(np.ones(algebra.secrets)), program.first[:-1])
    widths[-1] = _RARELY
    q = (1 + program.head / (program.head + 3)) / np.repeat(widths, np.diff(program.first))
    s = np.maximum(algebra.cone(q), _FLOOR * q[algebra.above])
    mu = float(program.cost @ q) / algebra.rows
    z = mu / s
    room = float(program.cost[-1] - dual.sum())
    if room > 0:
        q[-1] = s[-1] = min(mu / room, 1.0)
        z[-1] = mu / q[-1]
    return _State(q=q, s=s, z=z, dual=dual)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Newton:
    """Newton steps from one point with one factorisation; `refinements` of each against rounding."""

    algebra: BlockAlgebra
    at: _State
    errors: _Errors
    refinements: int

    def advanced(self, *, least: float, short: float) -> _State:
        """One iteration: predictor, corrector, centrality correctors while they lengthen the step.

        least: the product s z below which the target is not set, because rounding grows as it shrinks; short: a step
        shorter than this share of the way gives way to one towards the central path, if that is longer; not from
        1500 secrets, where that loses more than it gains.
        """
        at, rows = self.at, self.algebra.rows
        affine = self.direction(-at.s * at.z)
        ahead = at.moved(affine, longest_step(at.s, affine.s), longest_step(at.z, affine.z))
        target = max(self.errors.mu * (float(ahead.s @ ahead.z) / rows / self.errors.mu) ** 3, least)
        products = target - at.s * at.z - affine.s * affine.z
        step = self.direction(products)
        along, across = longest_step(at.s, step.s), longest_step(at.z, step.z)
        if min(along, across) < short and self.algebra.secrets < _MANY:
            plain = max(target, _CENTRING * self.errors.mu) - at.s * at.z
            centring = self.direction(plain)
            lengths = longest_step(at.s, centring.s), longest_step(at.z, centring.z)
            if min(lengths) > min(along, across):
                step, products, (along, across) = centring, plain, lengths
        for _ in range(_CORRECTORS if self.algebra.secrets >= _MANY else 0):
            wider = min(1.0, along * _WIDER + _WIDER - 1), min(1.0, across * _WIDER + _WIDER - 1)
            reached = (at.s + wider[0] * step.s) * (at.z + wider[1] * step.z)
            pull = np.clip(reached, _CENTRED * target, target / _CENTRED) - reached
            corrected = products + np.maximum(pull, -target / _CENTRED)
            trial = self.direction(corrected)
            longer = longest_step(at.s, trial.s), longest_step(at.z, trial.z)
            if min(longer) < min(along, across) or sum(longer) < along + across + _WORTH:
                break
            step, products, (along, across) = trial, corrected, longer
        return at.moved(step, min(1.0, _STEP * along), min(1.0, _STEP * across))

    def direction(self, products: Vector) -> _State:
        """The Newton step towards s z + `products`, and towards no errors."""
        algebra, at, errors = self.algebra, self.at, self.errors
        right = algebra.cone_transposed((products - at.z * errors.slack) / at.s) - errors.dual
        q, dual = _eliminate(algebra, right, errors.row)
        for _ in range(self.refinements):
            normal = algebra.cone_transposed(at.z / at.s * algebra.cone(q))
            left = right + algebra.near_sums_transposed(dual) - normal
            more, more_dual = _eliminate(algebra, left, errors.row - algebra.near_sums(q))
            q, dual = q + more, dual + more_dual
        s = algebra.cone(q) + errors.slack
        return _State(q=q, s=s, z=(products - at.z * s) / at.s, dual=dual)


def _eliminate(algebra: BlockAlgebra, right: Vector, row: Vector) -> tuple[Vector, Vector]:
    """The pair q, dual with H q - M' dual = right, M q = row."""
    free = algebra.inverse(right)
    dual = algebra.solve(row - algebra.near_sums(free))
    return free + algebra.inverse(algebra.near_sums_transposed(dual)), dual


def _restored(algebra: BlockAlgebra, q: Vector) -> Vector:
    """The point q moved onto the row sums, inside the cone, by a few steps with the last factors."""
    for _ in range(_RESTORATIONS):
        row = 1 - algebra.sums(q)
        step = algebra.inverse(algebra.near_sums_transposed(algebra.solve(row)))
        slack, change = algebra.cone(q), algebra.cone(step)
        inside = slack > 0
        if not inside.any():
            break
        moved = q + min(1.0, _STEP * longest_step(slack[inside], change[inside])) * step
        if not np.abs(1 - algebra.sums(moved)).max() < np.abs(row).max():
            break
        q = moved
    return q
