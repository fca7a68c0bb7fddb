"""A primal-dual interior-point method for restricted programs: one small block per report, coupled by n row sums.

    minimise c q   subject to   s = A q >= 0,   M q = 1        dual: lambda free, z >= 0, M' lambda + A' z = c

Mehrotra's predictor and corrector with up to two centrality correctors after Gondzio. A Newton step eliminates the
blocks H_y = A_y' diag(z / s) A_y and factors the dense Schur complement of the row sums, n x n: one factorisation an
iteration, whatever the number of variables.

Linear algebra, block by block (`BlockAlgebra`). Cone rows s = A q: one for every constraint, s = q[upper] - e^{-slack}
q[lower], and one s = q for the first variable of every block, which matters where a block has no other row; after them
side rows, each of which joins all variables of one block (capped.py). Row sums
M q (n,): sum over reports of q e^{-D}, and the constant report. Normal matrices: H_y, one dense block per report, and
their Schur complement S = sum_y M_y H_y^{-1} M_y', the only matrix that couples reports.

Row sums come in two forms: in full, for residuals, and over near entries only, D < 11.5 nats or coefficients above
1e-5, for the directions. Row sums then drift by a few 1e-6. A restoration with the last factors ends that: the point
then satisfies the row sums to rounding, and the repair of its table costs next to nothing.

Start. Profiles a little flatter than the eikonal ones, q = (1 + D / (D + 3)) / sum_u e^{-D}, hence inside the cone or
near it, and multipliers from the eikonal dual. Known to fail: tiny mu, profiles e^{theta D}.

All compiled functions stand in this file: Numba's cache does not notice a change of a callee in another file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mechdesign.base.threads import in_blocks
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.solvers.interior_point import longest_step
from mechdesign.solvers.lp.restricted import RestrictedProgram

Vector = NDArray[np.float64]
NEAR = 11.5  # nats
_RIDGE = 1e-13  # relative increase of the diagonal: row sums that say the same leave S singular
_PARTS = 32  # pieces of work handed to the cores
_FLOOR = 1e-2  # slack of a row at the start, against the larger of its two variables
_RARELY = 1e3  # inverse of the probability of the constant report at the start
_ITERATIONS = 150
_STEP = 0.995  # share of the way to the boundary
_ROWS = 1e-5  # error of a row sum with which the method may end; restoration removes it
_MANY = 1500  # secrets from which a factorisation costs more than the two centrality correctors
_CORRECTORS = 2
_CENTRED = 0.1  # complementarity products are pushed into [0.1, 10] times their target
_WIDER = 1.08  # a corrector aims at steps this much longer, and as much of a full step more
_WORTH = 0.02  # gain of the two step lengths together that makes a corrector worth another
_SHORT = 0.1  # share of the way below which a step towards the central path, without second order, is tried
_STUCK = 2  # iterations without a better point from which it is always tried
_CENTRING = 0.3  # its target, as a share of the mean product s z
_FINE = 1e-4  # tolerance below which directions are refined once
_FINEST, _REFINED = 1e-6, 4  # and beside side rows so often: the last step left a dual error of 1e-6, and leaves 1e-12
_LEAST = 0.3  # share of the tolerance at which the products s z are held
_STALLED = 8  # iterations without a better point after which rounding is taken to have won
_CLOSER = 0.9  # share of the largest violation that counts as progress: a start outside side rows takes many iterations
_RESTORATIONS = 4
_BLAS = ThreadpoolController()


class BlockAlgebra:
    """Products and factors for one restricted program of m reports over n secrets, v variables and c rows, the last of
    them side rows (r, v): every variable of one block has an entry in each, and blocks stand in order.

    Memory: 16 bytes per near entry, 16 per row, 8 for each entry of the m blocks, 8 n^2 for the Schur complement.
    """

    def __init__(self, program: RestrictedProgram, side: sp.csr_array | None = None) -> None:
        self.program = program
        m, n = program.component.shape
        self.secrets, self._blocks = n, m + 1
        block = np.repeat(np.arange(m + 1), np.diff(program.rows))
        place = np.arange(len(block)) + block
        self._rows = program.rows + np.arange(m + 2)
        total = int(self._rows[-1])
        self._lower, self._upper = np.zeros(total, np.int32), np.zeros(total, np.int32)
        self._ratio = np.zeros(total)
        self._lower[place], self._upper[place] = program.lower, program.upper
        self._ratio[place] = np.exp(-program.slack)
        offset = np.repeat(program.first[:-1], np.diff(self._rows))
        self._tail, self.above = offset + self._lower, offset + self._upper
        near = program.distance < NEAR
        reports, secrets = np.nonzero(near)
        self._members = np.concatenate([[0], np.cumsum(np.append(near.sum(axis=1), n))])
        self._secret = np.concatenate([secrets, np.arange(n)]).astype(np.int32)
        self._local = np.concatenate([program.component[reports, secrets], np.zeros(n, np.int32)])
        self._weight = np.concatenate([np.exp(-program.distance[reports, secrets]), np.ones(n)])
        self._squares = np.concatenate([[0], np.cumsum(np.diff(program.first) ** 2)])
        self._inverse = np.empty(self._squares[-1])
        self._schur: Vector = np.empty((n, n))
        self.side = sp.csr_array((0, program.variables)) if side is None else side
        joined = self.side.indices[self.side.indptr[:-1]] if self.side.nnz else np.zeros(0, np.int64)
        self._side_rows = np.searchsorted(joined, program.first)
        self._side_first = self.side.indptr.astype(np.int64)

    @property
    def cone_rows(self) -> int:
        """Number of cone rows."""
        return len(self._ratio)

    @property
    def rows(self) -> int:
        """Number of cone rows and side rows."""
        return self.cone_rows + int(self.side.shape[0])

    def cone(self, q: Vector) -> Vector:
        """A q (c,)."""
        return np.r_[q[self.above] - self._ratio * q[self._tail], self.side @ q]

    def size(self, q: Vector) -> Vector:
        """The larger term, or the sum of all, of A q (c,)."""
        return np.r_[q[self.above], abs(self.side) @ q]

    def cone_transposed(self, z: Vector) -> Vector:
        """A' z (v,)."""
        cone = z[: len(self._ratio)]
        above = np.bincount(self.above, cone, self.program.variables)
        below = np.bincount(self._tail, self._ratio * cone, self.program.variables)
        return np.asarray(above - below + self.side.T @ z[len(cone) :], float)

    def sums(self, q: Vector) -> Vector:
        """M q (n,), all entries."""
        p = self.program

        def add(a: int, b: int, total: Vector) -> None:
            _sums(p.first[a:b], p.component[a:b], p.distance[a:b], q, total)

        return self._summed(self._blocks - 1, add) + q[-1]

    def _summed(self, blocks: int, add: Callable[[int, int, Vector], None]) -> Vector:
        """The sum (n,) over blocks a to b, part by part in a fixed order."""
        step = _size(blocks)
        totals = np.zeros((-(-blocks // step), self.secrets))

        def work(a: int, b: int) -> None:
            add(a, b, totals[a // step])

        in_blocks(work, blocks, step)
        return np.asarray(totals.sum(axis=0))

    def sums_transposed(self, dual: Vector) -> Vector:
        """M' dual (v,), all entries."""
        p, total = self.program, np.zeros(self.program.variables)

        def work(a: int, b: int) -> None:
            _sums_transposed(p.first[a:b], p.component[a:b], p.distance[a:b], dual, total)

        in_blocks(work, self._blocks - 1, _size(self._blocks))
        total[-1] = dual.sum()
        return total

    def near_sums(self, q: Vector) -> Vector:
        """M q (n,), near entries."""

        def add(a: int, b: int, total: Vector) -> None:
            _near_sums(self.program.first, self._members, self._secret, self._local, self._weight, a, b, q, total)

        return self._summed(self._blocks, add)

    def near_sums_transposed(self, dual: Vector) -> Vector:
        """M' dual (v,), near entries."""
        total = np.zeros(self.program.variables)

        def work(a: int, b: int) -> None:
            _near_sums_transposed(
                self.program.first, self._members, self._secret, self._local, self._weight, a, b, dual, total
            )

        in_blocks(work, self._blocks, _size(self._blocks))
        return total

    def factor(self, theta: Vector) -> bool:
        """Invert the blocks for the row weights theta (c,) and factor their Schur complement.

        False where rounding has left it indefinite. Cost: O(sum of cubes of block sizes + sum of squares of near
        entries per report + n^3 / 3).
        """
        p = self.program

        def invert(a: int, b: int) -> None:
            _invert(p.first, self._rows, self._lower, self._upper, self._ratio, theta, self._squares,
                    self._side_rows, self._side_first, self.side.data, a, b, self._inverse)  # fmt: skip

        def couple(a: int, b: int) -> None:
            self._schur[a:b] = 0.0
            _couple(p.first, self._members, self._secret, self._local, self._weight, self._squares, self._inverse, a,
                    b, self._schur)  # fmt: skip

        try:
            with _BLAS.limit(limits=1):
                in_blocks(invert, self._blocks, _size(self._blocks, 4 * _PARTS))
        except np.linalg.LinAlgError:
            return False
        in_blocks(couple, self.secrets, _size(self.secrets))
        self._schur[np.diag_indices(self.secrets)] *= 1 + _RIDGE
        _, failed = scipy.linalg.lapack.dpotrf(self._schur.T, lower=0, overwrite_a=1, clean=0)
        return failed == 0

    def solve(self, right: Vector) -> Vector:
        """S^{-1} right (n,), after `factor`."""
        return scipy.linalg.lapack.dpotrs(self._schur.T, right, lower=0)[0].ravel()

    def inverse(self, g: Vector) -> Vector:
        """H^{-1} g (v,), after `factor`."""
        result = np.empty_like(g)

        def work(a: int, b: int) -> None:
            _apply(self.program.first, self._squares, self._inverse, a, b, g, result)

        in_blocks(work, self._blocks, _size(self._blocks))
        return result


def _size(total: int, parts: int = _PARTS) -> int:
    return max(1, -(-total // parts))


@numba.njit(cache=True, nogil=True)
def _sums(first, component, distance, q, total):  # type: ignore[no-untyped-def]
    for y in range(component.shape[0]):
        for u in range(component.shape[1]):
            total[u] += q[first[y] + component[y, u]] * np.exp(-distance[y, u])


@numba.njit(cache=True, nogil=True)
def _sums_transposed(first, component, distance, dual, total):  # type: ignore[no-untyped-def]
    for y in range(component.shape[0]):
        for u in range(component.shape[1]):
            total[first[y] + component[y, u]] += dual[u] * np.exp(-distance[y, u])


@numba.njit(cache=True, nogil=True)
def _near_sums(first, members, secret, local, weight, a, b, q, total):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(members[y], members[y + 1]):
            total[secret[i]] += weight[i] * q[first[y] + local[i]]


@numba.njit(cache=True, nogil=True)
def _near_sums_transposed(first, members, secret, local, weight, a, b, dual, total):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(members[y], members[y + 1]):
            total[first[y] + local[i]] += weight[i] * dual[secret[i]]


@numba.njit(cache=True, nogil=True)
def _invert(  # type: ignore[no-untyped-def]
    first, rows, lower, upper, ratio, theta, squares, side_rows, place, entry, start, stop, inverse
):
    for y in range(start, stop):
        k = first[y + 1] - first[y]
        block = np.zeros((k, k))
        for r in range(rows[y], rows[y + 1]):
            a, b, t, c = lower[r], upper[r], theta[r], ratio[r]
            block[b, b] += t
            if c != 0.0:
                block[a, a] += t * c * c
                block[a, b] -= t * c
                block[b, a] -= t * c
        for r in range(side_rows[y], side_rows[y + 1]):
            own, t = entry[place[r] : place[r + 1]], theta[ratio.size + r]
            for i in range(k):
                for j in range(k):
                    block[i, j] += t * own[i] * own[j]
        if k == 1:
            inverse[squares[y]] = 1 / block[0, 0]
        else:
            inverted = np.linalg.inv(block)
            for i in range(k):  # assigning the array compiles the text of an error too, for seconds
                for j in range(k):
                    inverse[squares[y] + i * k + j] = inverted[i, j]


@numba.njit(cache=True, nogil=True)
def _couple(first, members, secret, local, weight, squares, inverse, a, b, schur):  # type: ignore[no-untyped-def]
    """Rows a:b of the lower triangle of the Schur complement."""
    for y in range(first.size - 1):
        k = first[y + 1] - first[y]
        low, high = members[y], members[y + 1]
        start = low + np.searchsorted(secret[low:high], a)
        stop = low + np.searchsorted(secret[low:high], b)
        for i in range(start, stop):
            row, w, u = squares[y] + local[i] * k, weight[i], secret[i]
            for j in range(low, i + 1):
                schur[u, secret[j]] += w * weight[j] * inverse[row + local[j]]


@numba.njit(cache=True, nogil=True)
def _apply(first, squares, inverse, a, b, g, result):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        k = first[y + 1] - first[y]
        for i in range(k):
            total, row = 0.0, squares[y] + i * k
            for j in range(k):
                total += inverse[row + j] * g[first[y] + j]
            result[first[y] + i] = total


@dataclass(frozen=True, kw_only=True, eq=False)
class InteriorPoint:
    """The best point met: q (v,) inside the cone, dual (n,), multipliers side (r,), iterations, and why it
    stopped: "gap", "time", "interrupt" or "precision".
    """

    q: Vector
    dual: Vector
    side: Vector
    iterations: int
    stopped: str


def solve_blocks(
    program: RestrictedProgram,
    *,
    dual: Vector,
    tolerance: float,
    side: sp.csr_array | None = None,
    deadline: float = np.inf,
    on_progress: Callable[[int], None] | None = None,
) -> InteriorPoint:
    """Solve a restricted program to a relative complementarity gap.

    Parameters: dual (n,), multipliers to start from; side (r, v), rows with side q >= 0 as `BlockAlgebra` takes them;
    deadline, of time.monotonic(); on_progress, called with the
    number of every iteration. An interrupt (Ctrl-C) ends the method and returns its best point.
    Memory: `BlockAlgebra`, and a dozen vectors over rows.
    """
    algebra = BlockAlgebra(program, side)
    state = _start(program, algebra, dual)
    best, merit, mu, since, stopped, factored = state, np.inf, np.inf, 0, "precision", False
    outside = np.inf
    iteration, slowest, began = 0, 0.0, time.monotonic()
    try:
        for iteration in range(_ITERATIONS):
            errors = _Errors.of(program, algebra, state)
            error = max(errors.gap, errors.dual_share, float(np.abs(errors.row).max()) - _ROWS)
            closer = errors.violation < _CLOSER * outside
            since = 0 if error < merit or errors.mu < mu / 2 or closer else since + 1
            mu, outside = min(mu, errors.mu), errors.violation if closer else outside
            if error < merit:
                best, merit = state, error
            if on_progress is not None:
                on_progress(iteration)
            if error < tolerance:
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
            refinements = _REFINED if tolerance < _FINEST and algebra.side.shape[0] else int(tolerance < _FINE)
            newton = _Newton(algebra=algebra, at=state, errors=errors, refinements=refinements)
            least = _LEAST * tolerance * float(program.cost @ state.q) / algebra.rows
            state = newton.advanced(least=least, short=_SHORT if since < _STUCK else 1.0)
    except KeyboardInterrupt:
        stopped = "interrupt"
    q = _restored(algebra, best.q) if factored else best.q
    multipliers = best.z[len(best.z) - algebra.side.shape[0] :]
    return InteriorPoint(q=q, dual=best.dual, side=multipliers, iterations=iteration, stopped=stopped)


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

    @property
    def violation(self) -> float:
        """The largest violation of a row sum or a row."""
        return float(max(np.abs(self.row).max(), np.abs(self.slack).max()))

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
    s = np.maximum(algebra.cone(q), _FLOOR * algebra.size(q))
    mu = float(program.cost @ q) / algebra.rows
    z = mu / s
    room = float(program.cost[-1] - dual.sum())
    if room > 0:
        last = algebra.cone_rows - 1  # of the constant report; side rows come after it
        q[-1] = s[last] = min(mu / room, 1.0)
        z[last] = mu / q[-1]
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
