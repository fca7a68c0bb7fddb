"""The linear algebra of a restricted program, block by block: what the interior-point method asks of it.

Cone rows s = A q: one for every constraint, s = q[upper] - e^{-slack} q[lower], and one s = q for the first variable of
every block, which matters where a block has no other row. Row sums M q (n,): sum over reports of q e^{-D}, and the
constant report. Normal matrices: H_y = A_y' diag(theta) A_y, one dense block per report, and their Schur complement
S = sum_y M_y H_y^{-1} M_y', the only matrix that couples reports.

Row sums come in two forms: in full, for residuals, and over near entries only, D < 11.5 nats or coefficients above
1e-5, for the directions. All compiled functions stand in this file: Numba's cache does not notice a change of a callee
in another file.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mechdesign.base.threads import in_blocks
from mechdesign.programs.optimal.restricted import RestrictedProgram

NEAR = 11.5  # nats
_RIDGE = 1e-13  # relative increase of the diagonal: row sums that say the same leave S singular
_PARTS = 32  # pieces of work handed to the cores
_BLAS = ThreadpoolController()

Vector = NDArray[np.float64]


class BlockAlgebra:
    """Products and factors for one restricted program of m reports over n secrets, v variables and c rows.

    Memory: 16 bytes per near entry, 16 per row, 8 for each entry of the m blocks, 8 n^2 for the Schur complement.
    """

    def __init__(self, program: RestrictedProgram) -> None:
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

    @property
    def rows(self) -> int:
        """Number of cone rows."""
        return len(self._ratio)

    def cone(self, q: Vector) -> Vector:
        """A q (c,)."""
        return np.asarray(q[self.above] - self._ratio * q[self._tail])

    def cone_transposed(self, z: Vector) -> Vector:
        """A' z (v,)."""
        above = np.bincount(self.above, z, self.program.variables)
        return np.asarray(above - np.bincount(self._tail, self._ratio * z, self.program.variables), float)

    def sums(self, q: Vector) -> Vector:
        """M q (n,), all entries."""
        p, parts = self.program, _parts(self._blocks - 1)
        found = np.zeros((len(parts), self.secrets))

        def work(k: int, _: int) -> None:
            a, b = parts[k]
            _sums(p.first[a:b], p.component[a:b], p.distance[a:b], q, found[k])

        in_blocks(work, len(parts), 1)
        return found.sum(axis=0) + q[-1]

    def sums_transposed(self, dual: Vector) -> Vector:
        """M' dual (v,), all entries."""
        p, found = self.program, np.zeros(self.program.variables)

        def work(a: int, b: int) -> None:
            _sums_transposed(p.first[a:b], p.component[a:b], p.distance[a:b], dual, found)

        in_blocks(work, self._blocks - 1, _size(self._blocks))
        found[-1] = dual.sum()
        return found

    def near_sums(self, q: Vector) -> Vector:
        """M q (n,), near entries."""
        parts = _parts(self._blocks)
        found = np.zeros((len(parts), self.secrets))

        def work(k: int, _: int) -> None:
            a, b = parts[k]
            _near_sums(self.program.first, self._members, self._secret, self._local, self._weight, a, b, q, found[k])

        in_blocks(work, len(parts), 1)
        return found.sum(axis=0)

    def near_sums_transposed(self, dual: Vector) -> Vector:
        """M' dual (v,), near entries."""
        found = np.zeros(self.program.variables)

        def work(a: int, b: int) -> None:
            _near_sums_transposed(
                self.program.first, self._members, self._secret, self._local, self._weight, a, b, dual, found
            )

        in_blocks(work, self._blocks, _size(self._blocks))
        return found

    def factor(self, theta: Vector) -> bool:
        """Invert the blocks for the row weights theta (c,) and factor their Schur complement.

        False where rounding has left it indefinite. Cost: O(sum of cubes of block sizes + sum of squares of near
        entries per report + n^3 / 3).
        """
        p = self.program

        def invert(a: int, b: int) -> None:
            _invert(p.first, self._rows, self._lower, self._upper, self._ratio, theta, self._squares, a, b,
                    self._inverse)  # fmt: skip

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
        found = np.empty_like(g)

        def work(a: int, b: int) -> None:
            _apply(self.program.first, self._squares, self._inverse, a, b, g, found)

        in_blocks(work, self._blocks, _size(self._blocks))
        return found


def _size(total: int, parts: int = _PARTS) -> int:
    return max(1, -(-total // parts))


def _parts(total: int) -> list[tuple[int, int]]:
    step = _size(total)
    return [(start, min(start + step, total)) for start in range(0, total, step)]


@numba.njit(cache=True, nogil=True)
def _sums(first, component, distance, q, found):  # type: ignore[no-untyped-def]
    for y in range(component.shape[0]):
        for u in range(component.shape[1]):
            found[u] += q[first[y] + component[y, u]] * np.exp(-distance[y, u])


@numba.njit(cache=True, nogil=True)
def _sums_transposed(first, component, distance, dual, found):  # type: ignore[no-untyped-def]
    for y in range(component.shape[0]):
        for u in range(component.shape[1]):
            found[first[y] + component[y, u]] += dual[u] * np.exp(-distance[y, u])


@numba.njit(cache=True, nogil=True)
def _near_sums(first, members, secret, local, weight, a, b, q, found):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(members[y], members[y + 1]):
            found[secret[i]] += weight[i] * q[first[y] + local[i]]


@numba.njit(cache=True, nogil=True)
def _near_sums_transposed(first, members, secret, local, weight, a, b, dual, found):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        for i in range(members[y], members[y + 1]):
            found[first[y] + local[i]] += weight[i] * dual[secret[i]]


@numba.njit(cache=True, nogil=True)
def _invert(first, rows, lower, upper, ratio, theta, squares, start, stop, inverse):  # type: ignore[no-untyped-def]
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
        if k == 1:
            inverse[squares[y]] = 1 / block[0, 0]
        else:
            inverse[squares[y] : squares[y + 1]] = np.linalg.inv(block).ravel()


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
def _apply(first, squares, inverse, a, b, g, found):  # type: ignore[no-untyped-def]
    for y in range(a, b):
        k = first[y + 1] - first[y]
        for i in range(k):
            total, row = 0.0, squares[y] + i * k
            for j in range(k):
                total += inverse[row + j] * g[first[y] + j]
            found[first[y] + i] = total
