"""A primal-dual interior-point method for restricted programs: one small block per report, coupled by n row sums.

    minimise c q   subject to   s = A q >= 0,   M q = 1        dual: lambda free, z >= 0, M' lambda + A' z = c      (1)

Mehrotra's predictor and corrector with up to two centrality correctors after Gondzio. A Newton step from (q, s, z,
lambda) towards products s z + r solves, for the errors of the point,

    M dq = 1 - M q,    ds = A dq + (A q - s),    z ds + s dz = r,    M' dlambda + A' dz = c - M' lambda - A' z.     (2)

With ds and dz eliminated, H = A' diag(z / s) A is block diagonal, one dense block per report, and

    H dq - M' dlambda = A' [(r - z (A q - s)) / s] - (c - M' lambda - A' z) = g,                                    (3)
    S dlambda = 1 - M q - M H^{-1} g,    S = sum_y M_y H_y^{-1} M_y'.                                               (4)

The dense Schur complement S, n x n, is the only matrix that couples reports: one factorisation an iteration.

Every constraint has a cone row s = q[upper] - e^{-slack} q[lower]. Side rows follow; each joins all variables of one
block (posteriors/). Row sums M q (n,) are sums over reports of q e^{-D}, plus the constant report.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mechdesign.base.arrays import Indices, Indices32, Vector
from mechdesign.base.threads import in_blocks, one_blas_thread
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.solvers.interior_point import longest_step
from mechdesign.solvers.lp.restricted import RestrictedProgram
from mechdesign.solvers.result import Stop

# Nats within which entries of M count in directions: coefficients above 1e-5. Residuals use all entries. Row sums then
# drift by a few 1e-6, and a restoration with the last factors removes the drift.
NEAR = 11.5
_RIDGE = 1e-13  # relative increase of the diagonal: row sums that say the same leave S singular
_PARTS = 32  # pieces of work handed to the cores


@dataclass(frozen=True, kw_only=True)
class BlockMethodOptions:
    """Constants of the method, guesses unless a comment says otherwise; the bound is valid for any values."""

    start_slack: float = 1e-2  # slack of a row at the start, against the larger of its two variables
    start_rarity: float = 1e3  # inverse of the probability of the constant report at the start
    iterations: int = 150
    step: float = 0.995  # share of the way to the boundary; usual in the literature
    row_error: float = 1e-5  # error of a row sum with which the method may end; restoration removes it
    many_secrets: int = 1500  # from which a factorisation costs more than the two centrality correctors
    correctors: int = 2
    centred: float = 0.1  # complementarity products are pushed into [0.1, 10] times their target (Gondzio)
    longer: float = 1.08  # a corrector aims at steps this much longer, and as much of a full step more
    corrector_gain: float = 0.02  # gain of the two step lengths together after which another corrector is tried
    short: float = 0.1  # share of the way below which a step towards the central path, without second order, is tried
    stuck: int = 2  # iterations without a better point from which it is always tried
    centring: float = 0.3  # its target, as a share of the mean product s z
    fine: float = 1e-4  # tolerance below which directions are refined once
    finest: float = 1e-6  # tolerance below which they are refined further
    refinements: int = 4  # so often: the last step left a dual error of 1e-6, and leaves 1e-12
    late: float = 1e-5  # gap below which they are, without side rows: before, rounding is small
    least_product: float = 0.3  # share of the tolerance at which the products s z are held
    stalled: int = 8  # iterations without a better point after which rounding is taken to have won
    closer: float = 0.9  # share of the largest violation that counts as progress: a start outside side rows takes long
    restorations: int = 4


_OPTIONS = BlockMethodOptions()


class Layout(NamedTuple):
    """The structure of a restricted program of m reports over n secrets, for the kernels: m + 1 blocks in order."""

    first: Indices  # (m + 2,): variables first[y]:first[y + 1] belong to block y
    rows: Indices  # (m + 2,): likewise for cone rows
    lower: Indices32  # (c,): variables of a cone row, numbered within its block
    upper: Indices32  # (c,)
    ratio: Vector  # (c,): e^{-slack} of a cone row, 0 for s = q
    members: Indices  # (m + 2,): near entries members[y]:members[y + 1] belong to block y
    secret: Indices32  # (k,): the secret of a near entry
    local: Indices32  # (k,): its variable within the block
    weight: Vector  # (k,): its coefficient e^{-D}
    squares: Indices  # (m + 2,): start of the inverse of a block, stored row by row
    side_rows: Indices  # (m + 2,): side rows side_rows[y]:side_rows[y + 1] belong to block y
    side_first: Indices  # (r + 1,): entries side_first[r]:side_first[r + 1] belong to side row r
    side_entry: Vector  # entries of side rows over the variables of their blocks

    @classmethod
    def of(cls, program: RestrictedProgram, side: sp.csr_array) -> Layout:
        m, n = program.component.shape
        block = np.repeat(np.arange(m + 1), np.diff(program.rows))
        # Every block has one more row, its first, s = q: a block may have no other row.
        place = np.arange(len(block)) + block
        rows = program.rows + np.arange(m + 2)
        total = int(rows[-1])
        lower, upper, ratio = np.zeros(total, np.int32), np.zeros(total, np.int32), np.zeros(total)
        # (1): s = q[upper] - e^{-slack} q[lower]. The first row of a block keeps ratio 0, which is s = q.
        lower[place], upper[place], ratio[place] = program.lower, program.upper, np.exp(-program.slack)
        is_near = program.distance < NEAR
        reports, secrets = np.nonzero(is_near)
        # A side row joins variables of one block, so its first column says which.
        joined = side.indices[side.indptr[:-1]] if side.nnz else np.zeros(0, np.int64)
        return cls(
            first=program.first,
            rows=rows,
            lower=lower,
            upper=upper,
            ratio=ratio,
            members=np.concatenate([[0], np.cumsum(np.append(is_near.sum(axis=1), n))]),
            secret=np.concatenate([secrets, np.arange(n)]).astype(np.int32),
            local=np.concatenate([program.component[reports, secrets], np.zeros(n, np.int32)]),
            weight=np.concatenate([np.exp(-program.distance[reports, secrets]), np.ones(n)]),
            squares=np.concatenate([[0], np.cumsum(np.diff(program.first) ** 2)]),
            side_rows=np.searchsorted(joined, program.first),
            side_first=side.indptr.astype(np.int64),
            side_entry=side.data,
        )


class BlockAlgebra:
    """Products and factors of a restricted program: m reports, n secrets, v variables, c cone rows, r side rows."""

    # A side row has an entry for every variable of one block; side rows are in the order of their blocks. Memory: 16
    # bytes per near entry, 16 per row, 8 for each entry of the m blocks, 8 n^2 for the Schur complement.

    def __init__(self, program: RestrictedProgram, side: sp.csr_array | None = None) -> None:
        self.program = program
        self.side = sp.csr_array((0, program.variables)) if side is None else side
        m, n = program.component.shape
        self.secrets, self._blocks = n, m + 1
        self.layout = Layout.of(program, self.side)
        offset = np.repeat(program.first[:-1], np.diff(self.layout.rows))
        self._tail, self.above = offset + self.layout.lower, offset + self.layout.upper
        self._inverse = np.empty(self.layout.squares[-1])
        self._schur: Vector = np.empty((n, n))

    @property
    def cone_rows(self) -> int:
        return len(self.layout.ratio)

    @property
    def rows(self) -> int:
        return self.cone_rows + int(self.side.shape[0])

    def cone(self, q: Vector) -> Vector:
        """A q (c,)."""
        return np.r_[q[self.above] - self.layout.ratio * q[self._tail], self.side @ q]

    def size(self, q: Vector) -> Vector:
        """The magnitude (c,) of each row of A q: its positive term, for side rows the sum of absolute terms."""
        return np.r_[q[self.above], abs(self.side) @ q]

    def cone_transposed(self, z: Vector) -> Vector:
        """A' z (v,)."""
        # bincount sums in a fixed order, so that a run repeats to the bit on any number of threads.
        cone = z[: self.cone_rows]
        above = np.bincount(self.above, cone, self.program.variables)
        below = np.bincount(self._tail, self.layout.ratio * cone, self.program.variables)
        return np.asarray(above - below + self.side.T @ z[len(cone) :], float)

    def sums(self, q: Vector) -> Vector:
        """M q (n,), all entries."""
        p = self.program

        def add(a: int, b: int, total: Vector) -> None:
            _sums(p.first[a:b], p.component[a:b], p.distance[a:b], q, total)

        return self._sum_of_parts(self._blocks - 1, add) + q[-1]

    def _sum_of_parts(self, blocks: int, add: Callable[[int, int, Vector], None]) -> Vector:
        """The sum (n,) over blocks a to b, part by part in a fixed order."""
        step = _part_size(blocks)
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

        in_blocks(work, self._blocks - 1, _part_size(self._blocks))
        total[-1] = dual.sum()
        return total

    def near_sums(self, q: Vector) -> Vector:
        """M q (n,), near entries."""
        return self._sum_of_parts(self._blocks, lambda a, b, total: _near_sums(self.layout, a, b, q, total))

    def near_sums_transposed(self, dual: Vector) -> Vector:
        """M' dual (v,), near entries."""
        total = np.zeros(self.program.variables)
        in_blocks(
            lambda a, b: _near_sums_transposed(self.layout, a, b, dual, total), self._blocks, _part_size(self._blocks)
        )
        return total

    def factor(self, theta: Vector) -> bool:
        """Invert the blocks H_y for theta = z / s (c,) and factor S (4); False if rounding makes S indefinite."""
        # Cost: O(sum of cubes of block sizes + sum of squares of near entries per report + n^3 / 3).

        def invert(a: int, b: int) -> None:
            _invert(self.layout, theta, a, b, self._inverse)

        def couple(a: int, b: int) -> None:
            self._schur[a:b] = 0.0
            _couple(self.layout, self._inverse, a, b, self._schur)

        try:
            # Our threads divide the blocks; threads of BLAS inside each would compete with them.
            with one_blas_thread():
                in_blocks(invert, self._blocks, _part_size(self._blocks, 4 * _PARTS))
        except np.linalg.LinAlgError:
            return False
        in_blocks(couple, self.secrets, _part_size(self.secrets))
        # Row sums that say the same make S singular; the refinement of directions removes the effect.
        self._schur[np.diag_indices(self.secrets)] *= 1 + _RIDGE
        # The transpose of row-major S is column-major: LAPACK factors it in place without a copy.
        _, failed = scipy.linalg.lapack.dpotrf(self._schur.T, lower=0, overwrite_a=1, clean=0)
        return failed == 0

    def solve(self, right: Vector) -> Vector:
        """S^{-1} right (n,), after `factor`."""
        return scipy.linalg.lapack.dpotrs(self._schur.T, right, lower=0)[0].ravel()

    def inverse(self, g: Vector) -> Vector:
        """H^{-1} g (v,), after `factor`."""
        result = np.empty_like(g)
        in_blocks(
            lambda a, b: _apply(self.layout, self._inverse, a, b, g, result), self._blocks, _part_size(self._blocks)
        )
        return result


def _part_size(total: int, parts: int = _PARTS) -> int:
    return max(1, -(-total // parts))


# All compiled functions are in this file: Numba's cache does not notice a change of a callee in another file.
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
def _near_sums(layout, a, b, q, total):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(layout.members[y], layout.members[y + 1]):
            total[layout.secret[i]] += layout.weight[i] * q[layout.first[y] + layout.local[i]]


@numba.njit(cache=True, nogil=True)
def _near_sums_transposed(layout, a, b, dual, total):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(layout.members[y], layout.members[y + 1]):
            total[layout.first[y] + layout.local[i]] += layout.weight[i] * dual[layout.secret[i]]


@numba.njit(cache=True, nogil=True)
def _invert(layout, theta, start, stop, inverse):  # type: ignore[no-untyped-def]
    """Fill `inverse` with H_y^{-1}, H_y = A_y' diag(theta) A_y, of the blocks start:stop."""
    for y in range(start, stop):
        k = layout.first[y + 1] - layout.first[y]
        block = np.zeros((k, k))
        for r in range(layout.rows[y], layout.rows[y + 1]):
            a, b, t, c = layout.lower[r], layout.upper[r], theta[r], layout.ratio[r]
            block[b, b] += t
            # Ratio 0 marks s = q: its row has one entry, and index a is not used.
            if c != 0.0:
                block[a, a] += t * c * c
                block[a, b] -= t * c
                block[b, a] -= t * c
        # A side row adds a dense matrix of rank one to its block.
        for r in range(layout.side_rows[y], layout.side_rows[y + 1]):
            entries = layout.side_entry[layout.side_first[r] : layout.side_first[r + 1]]
            t = theta[layout.ratio.size + r]
            for i in range(k):
                for j in range(k):
                    block[i, j] += t * entries[i] * entries[j]
        if k == 1:
            inverse[layout.squares[y]] = 1 / block[0, 0]
        else:
            inverted = np.linalg.inv(block)
            for i in range(k):  # assigning the array compiles the text of an error too, for seconds
                for j in range(k):
                    inverse[layout.squares[y] + i * k + j] = inverted[i, j]


@numba.njit(cache=True, nogil=True)
def _couple(layout, inverse, a, b, schur):  # type: ignore[no-untyped-def]
    """Add M_y H_y^{-1} M_y' of every block to rows a:b of the lower triangle of the Schur complement."""
    secret, local, weight = layout.secret, layout.local, layout.weight
    for y in range(layout.first.size - 1):
        k = layout.first[y + 1] - layout.first[y]
        low, high = layout.members[y], layout.members[y + 1]
        start = low + np.searchsorted(secret[low:high], a)
        stop = low + np.searchsorted(secret[low:high], b)
        for i in range(start, stop):
            row, w, u = layout.squares[y] + local[i] * k, weight[i], secret[i]
            # Secrets are sorted within a block, so j <= i fills the lower triangle only.
            for j in range(low, i + 1):
                schur[u, secret[j]] += w * weight[j] * inverse[row + local[j]]


@numba.njit(cache=True, nogil=True)
def _apply(layout, inverse, a, b, g, result):  # type: ignore[no-untyped-def]
    """Fill `result` with H_y^{-1} g of the blocks a:b."""
    first = layout.first
    for y in range(a, b):
        k = first[y + 1] - first[y]
        for i in range(k):
            total, row = 0.0, layout.squares[y] + i * k
            for j in range(k):
                total += inverse[row + j] * g[first[y] + j]
            result[first[y] + i] = total


@dataclass(frozen=True, kw_only=True, eq=False)
class InteriorPoint:
    """The best point of the iterations."""

    q: Vector  # (v,), inside the cone
    dual: Vector  # (n,): multipliers of the row sums
    side: Vector  # (r,): multipliers of the side rows
    iterations: int
    stopped: Stop  # GAP, TIME, INTERRUPT or PRECISION


def solve_blocks(
    program: RestrictedProgram,
    *,
    dual: Vector,  # (n,): multipliers to start from
    tolerance: float,
    side: sp.csr_array | None = None,  # (r, v): rows with side q >= 0
    deadline: float = np.inf,  # of time.monotonic()
    on_progress: Callable[[int], None] | None = None,  # takes the number of every iteration
) -> InteriorPoint:
    """Solve a restricted program to a relative complementarity gap; Ctrl-C ends it at the best point so far."""
    algebra = BlockAlgebra(program, side)
    start = _start(program, algebra, dual)
    run = _Run(algebra=algebra, best=start, tolerance=tolerance, deadline=deadline, on_progress=on_progress)
    try:
        stopped = run.iterate(start)
    except KeyboardInterrupt:
        stopped = Stop.INTERRUPT
    q = _restore_sums(run.algebra, run.best.q) if run.has_factors else run.best.q
    multipliers = run.best.z[len(run.best.z) - run.algebra.side.shape[0] :]
    return InteriorPoint(q=q, dual=run.best.dual, side=multipliers, iterations=run.iteration, stopped=stopped)


@dataclass(kw_only=True, eq=False)
class _Run:
    algebra: BlockAlgebra
    best: _State
    tolerance: float
    deadline: float
    on_progress: Callable[[int], None] | None
    best_error: float = np.inf
    least_product: float = np.inf  # mean of s z
    least_violation: float = np.inf
    stalled: int = 0  # iterations without progress
    iteration: int = 0
    has_factors: bool = False

    def iterate(self, state: _State) -> Stop:
        algebra = self.algebra
        slowest, began = 0.0, time.monotonic()
        for self.iteration in range(_OPTIONS.iterations):
            errors = _Errors.of(algebra.program, algebra, state)
            self._keep_best(state, errors)
            if self.on_progress is not None:
                self.on_progress(self.iteration)
            if errors.total < self.tolerance:
                return Stop.GAP
            now = time.monotonic()
            # The slowest iteration so far predicts the next one.
            slowest, began = max(slowest, now - began), now
            if now + slowest > self.deadline:  # another iteration would not end in time
                return Stop.TIME
            if self.stalled >= _OPTIONS.stalled:
                break
            # An interrupt during the factorisation must not let `_restore_sums` use half of it.
            self.has_factors = False  # while they are made
            self.has_factors = algebra.factor(state.z / state.s)
            if not self.has_factors:
                break
            state = self._next(state, errors)
        return Stop.PRECISION

    def _keep_best(self, state: _State, errors: _Errors) -> None:
        is_closer = errors.violation < _OPTIONS.closer * self.least_violation
        # Smaller products or residuals count too: the total error may rise for some steps near the boundary.
        has_gained = errors.total < self.best_error or errors.mu < self.least_product / 2 or is_closer
        self.stalled = 0 if has_gained else self.stalled + 1
        self.least_product = min(self.least_product, errors.mu)
        if is_closer:
            self.least_violation = errors.violation
        if errors.total < self.best_error:
            self.best, self.best_error = state, errors.total

    def _next(self, state: _State, errors: _Errors) -> _State:
        options, algebra = _OPTIONS, self.algebra
        refinements = int(self.tolerance < options.fine)
        # At 35 x 35 the dual error grows to 1e-4 without them, and a gap of 2e-7 is the last; with them 7e-8.
        if self.tolerance < options.finest and (algebra.side.shape[0] or errors.gap < options.late):
            refinements = options.refinements
        newton = _Newton(algebra=algebra, point=state, errors=errors, refinements=refinements)
        # Products far below the tolerance gain nothing, and rounding in H grows as they shrink.
        smallest_product = options.least_product * self.tolerance * float(algebra.program.cost @ state.q) / algebra.rows
        return newton.advance(
            smallest_product=smallest_product, short=options.short if self.stalled < options.stuck else 1.0
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _State:
    """A point or a direction: q (v,); slacks s and multipliers z (c,) of the rows; dual (n,), those of the sums."""

    q: Vector
    s: Vector
    z: Vector
    dual: Vector

    def plus(self, step: _State, along: float, across: float) -> _State:
        return _State(
            q=self.q + along * step.q,
            s=self.s + along * step.s,
            z=self.z + across * step.z,
            dual=self.dual + across * step.dual,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Errors:
    """The right-hand sides of (2), and errors relative to the cost."""

    dual: Vector  # (v,)
    row: Vector  # (n,)
    slack: Vector  # (c,)
    mu: float  # mean of s z
    gap: float
    dual_share: float

    @property
    def violation(self) -> float:
        return float(max(np.abs(self.row).max(), np.abs(self.slack).max()))

    @property
    def total(self) -> float:
        """The largest error; of row sums, the part that restoration cannot remove."""
        return max(self.gap, self.dual_share, float(np.abs(self.row).max()) - _OPTIONS.row_error)

    @classmethod
    def of(cls, program: RestrictedProgram, algebra: BlockAlgebra, point: _State) -> _Errors:
        dual = program.cost - algebra.sums_transposed(point.dual) - algebra.cone_transposed(point.z)
        product = float(point.s @ point.z)
        # A cost near zero has no relative gap; the resolution of a loss stands in for it.
        cost = max(float(program.cost @ point.q), RESOLUTION * float(program.cost[-1]))
        return cls(
            dual=dual,
            row=1 - algebra.sums(point.q),
            slack=algebra.cone(point.q) - point.s,
            mu=product / algebra.rows,
            gap=product / cost,
            dual_share=float(np.abs(dual * point.q).sum()) / cost,
        )


def _start(program: RestrictedProgram, algebra: BlockAlgebra, dual: Vector) -> _State:
    # Each report gets a total of about 1 over the secrets: row sums start near 1 if reports are as many. The profiles
    # 1 + D / (D + 3) are a little flatter than the eikonal ones, and therefore inside the cone or near it; profiles
    # e^{theta D} and a tiny mu fail.
    widths = np.add.reduceat(algebra.sums_transposed(np.ones(algebra.secrets)), program.first[:-1])
    widths[-1] = _OPTIONS.start_rarity
    q = (1 + program.head / (program.head + 3)) / np.repeat(widths, np.diff(program.first))
    # A slack at zero would pin its row at the boundary from the first step on.
    s = np.maximum(algebra.cone(q), _OPTIONS.start_slack * algebra.size(q))
    # All products s z start equal: the point is on the central path except for its residuals.
    mu = float(program.cost @ q) / algebra.rows
    z = mu / s
    # The reduced cost of the constant report, where it is positive, is its z: it is made as rare as that calls for.
    reduced_cost = float(program.cost[-1] - dual.sum())
    if reduced_cost > 0:
        last = algebra.cone_rows - 1  # of the constant report; side rows come after it
        q[-1] = s[last] = min(mu / reduced_cost, 1.0)
        z[last] = mu / q[-1]
    return _State(q=q, s=s, z=z, dual=dual)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Newton:
    """Newton steps from one point with one factorisation, each refined `refinements` times against rounding."""

    algebra: BlockAlgebra
    point: _State
    errors: _Errors
    refinements: int

    def advance(self, *, smallest_product: float, short: float) -> _State:
        """One iteration. smallest_product: of s z, as a target; short: step length below which centring is tried."""
        point, rows, options = self.point, self.algebra.rows, _OPTIONS
        # The predictor aims at products 0; its success sets the target mu (mu' / mu)^3 (Mehrotra).
        affine = self.direction(-point.s * point.z)
        ahead = point.plus(affine, longest_step(point.s, affine.s), longest_step(point.z, affine.z))
        target = max(self.errors.mu * (float(ahead.s @ ahead.z) / rows / self.errors.mu) ** 3, smallest_product)
        # The corrector aims there, less the second-order term of the predictor.
        products = target - point.s * point.z - affine.s * affine.z
        step = self.direction(products)
        along, across = longest_step(point.s, step.s), longest_step(point.z, step.z)
        is_large = self.algebra.secrets >= options.many_secrets
        # A blocked step is replaced by one towards the central path; with many secrets that loses more than it gains.
        if min(along, across) < short and not is_large:
            plain = max(target, options.centring * self.errors.mu) - point.s * point.z
            centring = self.direction(plain)
            lengths = longest_step(point.s, centring.s), longest_step(point.z, centring.z)
            if min(lengths) > min(along, across):
                step, products, (along, across) = centring, plain, lengths
        # A corrector costs a solve, not a factorisation, and pays only where the latter dominates.
        for _ in range(options.correctors if is_large else 0):
            # Gondzio: pull the products that a longer step would reach into a range around the target.
            longer = [min(1.0, way * options.longer + options.longer - 1) for way in (along, across)]
            reached = (point.s + longer[0] * step.s) * (point.z + longer[1] * step.z)
            pull = np.clip(reached, options.centred * target, target / options.centred) - reached
            corrected = products + np.maximum(pull, -target / options.centred)
            trial = self.direction(corrected)
            lengths = longest_step(point.s, trial.s), longest_step(point.z, trial.z)
            # A corrector that shortens either step, or gains little, is the last one.
            if min(lengths) < min(along, across) or sum(lengths) < along + across + options.corrector_gain:
                break
            step, products, (along, across) = trial, corrected, lengths
        return point.plus(step, min(1.0, options.step * along), min(1.0, options.step * across))

    def direction(self, products: Vector) -> _State:
        """The solution of (2) for r = `products`."""
        algebra, point, errors = self.algebra, self.point, self.errors
        right = algebra.cone_transposed((products - point.z * errors.slack) / point.s) - errors.dual  # (3)
        q, dual = _eliminate(algebra, right, errors.row)
        # Residuals use near entries as the factors do: the exact ones would not vanish under refinement.
        for _ in range(self.refinements):
            normal = algebra.cone_transposed(point.z / point.s * algebra.cone(q))
            residual = right + algebra.near_sums_transposed(dual) - normal
            more, more_dual = _eliminate(algebra, residual, errors.row - algebra.near_sums(q))
            q, dual = q + more, dual + more_dual
        s = algebra.cone(q) + errors.slack
        return _State(q=q, s=s, z=(products - point.z * s) / point.s, dual=dual)


def _eliminate(algebra: BlockAlgebra, right: Vector, row: Vector) -> tuple[Vector, Vector]:
    """Solve H q - M' dual = right (3), M q = row by (4); returns q and dual."""
    # (3) without dlambda, then (4) for it, then its effect on dq.
    free = algebra.inverse(right)
    dual = algebra.solve(row - algebra.near_sums(free))
    return free + algebra.inverse(algebra.near_sums_transposed(dual)), dual


def _restore_sums(algebra: BlockAlgebra, q: Vector) -> Vector:
    """Move the point q onto the row sums, inside the cone, by a few steps with the last factors."""
    for _ in range(_OPTIONS.restorations):
        # The step of least H-norm onto the row sums, all entries counted.
        row = 1 - algebra.sums(q)
        step = algebra.inverse(algebra.near_sums_transposed(algebra.solve(row)))
        slack, change = algebra.cone(q), algebra.cone(step)
        # Only rows inside limit the step: a row at 0 would forbid every one.
        is_inside = slack > 0
        if not is_inside.any():
            break
        nearer = q + min(1.0, _OPTIONS.step * longest_step(slack[is_inside], change[is_inside])) * step
        # Near entries cannot see the error of far ones: stop once it dominates.
        if not np.abs(1 - algebra.sums(nearer)).max() < np.abs(row).max():
            break
        q = nearer
    return q
