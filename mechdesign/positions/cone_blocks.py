r"""A primal-dual interior-point method for columns in second-order cones, coupled by row sums alone.

    minimise    sum_y c_y x_y
    over        x_y (n,), a block per report y
    subject to  (bound x_y, slope_x x_y, slope_y x_y)_k in Q for every cone k and report y,    sum_y M x_y = b

with Q = {(a, b, c): |(b, c)| <= a}. Dual: z_yk in Q, M' lambda + G' z_y = c_y for every y, maximise b lambda.

Mehrotra's predictor and corrector use the scaling of Nesterov and Todd. A Newton step eliminates the blocks
H_y = G' W^-2 G and factors the Schur complement of the row sums. A cone touches 3 x 3 cells, so the blocks are banded.
Source: Andersen, Roos and Terlaky 2003; Vandenberghe, The CVXOPT linear and quadratic cone program solvers, section 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from mechdesign.base import interrupts
from mechdesign.base.arrays import Floats, Integers
from mechdesign.base.memory import max_items_in_memory
from mechdesign.base.threads import in_order, one_blas_thread
from mechdesign.positions.band_products import SchurPart
from mechdesign.positions.cone_algebra import Scaling, longest_step, product, quotient
from mechdesign.positions.spline import SplineCones


@dataclass(frozen=True, kw_only=True)
class ConeBlockConstants:
    """Constants of the interior-point method and of the choice of method."""

    step: float = 0.98  # share of the way to the boundary; usual values are 0.9 to 0.995
    iterations: int = 100  # at most, a guess: some 10 to 60 are taken
    stalled: int = 6  # iterations without a better point after which rounding has won, a guess
    start: float = 10.0  # mean costs of all reports of a row: mean product of its signs at the start, a guess
    cones_at_once: int = 1 << 18  # whose vectors stay near the processor
    numbers_per_cone: int = 30  # of a block in memory: vectors of a step, and temporaries
    most_operations: float = 1e12  # of a step: about an hour for all of them
    reading: float = 1e4  # multiplications in the time to read the vectors of a cone and block, a guess
    parts: int = 4  # of the blocks, on threads: each has a matrix of the row sums
    ridge: float = 1e-15  # of the diagonal of a block, added to it, against rounding


CONSTANTS = ConeBlockConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class ConePoint:
    """A point of the method, and the reason to stop: "gap", "time", "interrupt" or "precision"."""

    table: Floats  # (n, m)
    dual: Floats  # (q,), of the row sums
    slack: Floats  # (3, k, m), in the dual cones
    iterations: int
    stopped: str


def bytes_needed(cones: SplineCones, blocks: int) -> int:
    """Estimate the memory of `solve_cone_blocks`, in bytes."""
    # Vectors of a step, the band of every block, and dense matrices of the Schur complement.
    n, width = cones.bound.shape[1], bandwidth(cones)
    return 8 * (CONSTANTS.numbers_per_cone * (cones.size + n) * blocks + (width + 1) * n * blocks + 4 * n * n)


def fits_in_memory_and_time(cones: SplineCones, blocks: int, sums: int) -> bool:
    """True if a step of `solve_cone_blocks` fits in memory, and takes at most 10^12 operations."""
    # A step cannot be interrupted; it takes about m (n w^2 + q^2 n) operations for m blocks and q row sums.
    n = cones.bound.shape[1]
    operations = float(blocks) * n * (bandwidth(cones) ** 2 + float(sums) ** 2)
    return bytes_needed(cones, blocks) <= max_items_in_memory(1) and operations <= CONSTANTS.most_operations


def step_operations(cones: SplineCones, blocks: int, sums: int) -> float:
    """Approximate multiplications of a step; inf if the blocks do not fit in memory."""
    # Vectors of a cone and block are read from memory some fifty times, in the time of some 10,000 multiplications.
    n = cones.bound.shape[1]
    if bytes_needed(cones, blocks) > max_items_in_memory(1):
        return np.inf
    return float(blocks) * (n * (bandwidth(cones) ** 2 + float(sums) ** 2) + CONSTANTS.reading * cones.size)


def bandwidth(cones: SplineCones) -> int:
    """The largest distance w of two cells in one cone."""
    rows = cones.bound.tocsr()
    first, last = (
        np.minimum.reduceat(rows.indices, rows.indptr[:-1]),
        np.maximum.reduceat(rows.indices, rows.indptr[:-1]),
    )
    return int((last - first).max())


def solve_cone_blocks(
    cones: SplineCones,
    cost: Floats,
    sums: sp.csr_array,
    *,
    tolerance: float,
    deadline: float = np.inf,
    on_progress: Callable[[int, float, float], None] | None = None,
    start: float = CONSTANTS.start,
) -> ConePoint:
    """Solve to a relative gap, for cost (n, m) and sums (q, n) = M; Ctrl-C or the deadline returns the best point."""
    # b is the vector of row sums of M, so that the constant table 1 / m satisfies them.
    algebra = _Algebra(_with_signs(cones), sums)
    n, m = cost.shape
    total = np.asarray(sums.sum(axis=1)).ravel()
    # Costs of mean 1, so that tolerances do not depend on their unit.
    unit = float(np.abs(cost).mean()) * n
    scaled = cost / unit * n
    best, count = (np.full((n, m), 1.0 / m), *_start(algebra, scaled, start)), 0

    def run() -> str:
        nonlocal best, count
        (x, z, dual), merit, since = best, np.inf, 0
        began, step_seconds = time.monotonic(), 0.0
        for count in range(CONSTANTS.iterations):
            primal, bound = float((scaled * x).sum()), float(total @ dual)
            residual = (
                scaled - sums.T @ dual[:, None] - algebra.transpose_blocks(z),
                total - (sums @ x).sum(axis=1),
            )
            s = algebra.cone_rows_of_blocks(x)
            between = sum(float((rows * block).sum()) for rows, block in zip(s, z, strict=True))
            mu = between / (algebra.count * m)
            broken = max(float(np.abs(residual[0]).max()) / scaled.mean() / n, float(np.abs(residual[1]).max()))
            reached = max((primal - bound) / max(abs(primal), 1e-300), between / abs(primal), broken)
            if on_progress is not None:
                on_progress(count, primal * unit / n, bound * unit / n)
            # Near the optimum rounding makes later points worse: the best one is returned.
            since = 0 if reached < merit else since + 1
            if reached < merit:
                best, merit = (x, z, dual), reached
            if reached <= tolerance or since >= CONSTANTS.stalled:
                return "gap" if reached <= tolerance else "precision"
            step_seconds, began = time.monotonic() - began, time.monotonic()
            if began + step_seconds >= deadline:
                return "time"
            try:
                x, z, dual = _step(algebra, (x, z, dual), s, residual, mu)
            except np.linalg.LinAlgError:
                return "precision"
        return "precision"

    with one_blas_thread():
        stopped = interrupts.interruptible(run, "interrupt")
    x, z, dual = best
    slack = np.zeros((3, cones.size, m))
    slack[: len(z[0])] = np.concatenate([block[:, : cones.size] for block in z], axis=2) * (unit / n)
    return ConePoint(table=x, dual=dual * unit / n, slack=slack, iterations=count, stopped=stopped)


def _with_signs(cones: SplineCones) -> SplineCones:
    # The cones imply x >= 0. It is added because its dual takes up the residual of the others, see `_start`.
    n = cones.bound.shape[1]
    empty = sp.csr_array((n, n))
    return SplineCones(
        bound=sp.vstack([cones.bound, sp.eye_array(n)], format="csr"),
        slope_x=sp.vstack([cones.slope_x, empty], format="csr"),
        slope_y=sp.vstack([cones.slope_y, empty], format="csr"),
    )


def _start(algebra: _Algebra, cost: Floats, start: float) -> tuple[list[Floats], Floats]:
    # z is mu / s, except for the cones of signs: they take up the rest of c - M' lambda - G' z, which is at least mu /
    # x. So the point satisfies the equations of the dual and lies near the central path: no first phase is needed.
    n, m = cost.shape
    first = np.zeros((len(algebra.parts), algebra.count, 1))
    mu = start * float(cost.mean()) / m
    first[0, :-n] = mu / algebra.cone_rows(np.full((n, 1), 1.0 / m))[0, :-n]
    rest = cost - algebra.transpose(first)
    means = algebra.sums.tocoo()
    dual = np.full(means.shape[0], np.inf)
    np.minimum.at(dual, means.row, (rest.min(axis=1) - mu * m)[means.col] / means.data)
    rest -= (algebra.sums.T @ dual)[:, None]
    z = [np.repeat(first, part.stop - part.start, axis=2) for part in algebra.block_slices(m)]
    for part, block in zip(algebra.block_slices(m), z, strict=True):
        block[0, -n:] = rest[:, part]
    return z, dual


def _step(
    algebra: _Algebra,
    state: tuple[Floats, list[Floats], Floats],
    s: list[Floats],
    residual: tuple[Floats, Floats],
    mu: float,
) -> tuple[Floats, list[Floats], Floats]:
    # s is G x at every point, so that only the equations of the dual and the row sums have residuals.
    x, z, dual = state
    parts = algebra.block_slices(x.shape[1])
    scalings = in_order(lambda k: Scaling(s[k], z[k]), len(parts))
    algebra.factor(scalings)

    def dual_steps(ds: list[Floats], raised: list[Floats], way: float) -> tuple[list[Floats], float, float]:
        # dz = W^-1 (u - W^-1 G dx), where `raised` is W^-1 u, and steps of s and z: a share of the way, at most 1.
        def step(k: int) -> tuple[Floats, float, float]:
            dz = raised[k] - scalings[k].inverse_twice(ds[k])
            return dz, longest_step(s[k], ds[k]), longest_step(z[k], dz)

        changes, of_s, of_z = zip(*in_order(step, len(parts)), strict=True)
        return list(changes), min(1.0, way * min(of_s)), min(1.0, way * min(of_z))

    # Predictor: complementarity 0, whose right side W^-1 u is -z.
    raised = [-block for block in z]
    dx, _ = algebra.solve(residual[0] - algebra.transpose_blocks(raised), residual[1])
    ds = algebra.cone_rows_of_blocks(dx)
    dz, along, across = dual_steps(ds, raised, 1.0)
    # Mehrotra: the more of the products the predictor leaves, the more the corrector is centred.
    rows = zip(s, ds, z, dz, strict=True)
    left = sum(float(((a + along * da) * (b + across * db)).sum()) for a, da, b, db in rows)
    centring = min(1.0, (left / (algebra.count * x.shape[1] * mu)) ** 3)

    def corrector(k: int) -> Floats:
        # Corrector, in scaled variables: -l o l - (W^-1 ds) o (W dz) + centring mu e, with l = W^-1 s = W z.
        scaled = scalings[k].inverse(s[k])
        target = -product(scaled, scaled) - product(scalings[k].inverse(ds[k]), scalings[k].times(dz[k]))
        target[0] += centring * mu
        return scalings[k].inverse(quotient(scaled, target))

    raised, remaining = in_order(corrector, len(parts)), 1 - centring
    dx, dl = algebra.solve(remaining * residual[0] - algebra.transpose_blocks(raised), remaining * residual[1])
    # The steps of x and z differ in length: their equations are apart.
    dz, along, across = dual_steps(algebra.cone_rows_of_blocks(dx), raised, CONSTANTS.step)
    z = [block + across * change for block, change in zip(z, dz, strict=True)]
    return x + along * dx, z, dual + across * dl


class _Algebra:
    def __init__(self, cones: SplineCones, sums: sp.csr_array) -> None:
        self.sums = sums
        # Constraints of pairs have one slope. Their cones are plane, which spares a third of the numbers.
        parts = (cones.bound, cones.slope_x, cones.slope_y)
        self.parts = [rows.tocsr() for rows in (parts if cones.slope_y.nnz else parts[:2])]
        self.transposed_parts = [rows.T.tocsr() for rows in self.parts]
        self.count, self.size = cones.bound.shape
        self.map, self.row, self.column = _products(self.parts)
        self.width = int((self.row - self.column).max())
        self.schur_part = SchurPart(sums, self.width)

    def cone_rows(self, x: Floats) -> Floats:
        return np.stack([rows @ x for rows in self.parts])

    def transpose(self, z: Floats) -> Floats:
        return np.asarray(sum(rows @ part for rows, part in zip(self.transposed_parts, z, strict=True)))

    def transpose_blocks(self, z: list[Floats]) -> Floats:
        return np.concatenate(in_order(lambda k: self.transpose(z[k]), len(z)), axis=1)

    def cone_rows_of_blocks(self, x: Floats) -> list[Floats]:
        parts = self.block_slices(x.shape[1])
        return in_order(lambda k: self.cone_rows(x[:, parts[k]]), len(parts))

    def block_slices(self, blocks: int) -> list[slice]:
        # Small enough that the vectors of a slice stay in the cache.
        size = max(1, CONSTANTS.cones_at_once // self.count)
        return [slice(first, min(first + size, blocks)) for first in range(0, blocks, size)]

    def factor(self, scalings: list[Scaling]) -> None:
        n, m = self.size, sum(scaling.size.shape[1] for scaling in scalings)
        self.bands = np.zeros((m, n, self.width + 1))
        values = np.concatenate(
            in_order(lambda k: np.ascontiguousarray((self.map @ scalings[k].inverse_square()).T), len(scalings))
        )
        step = -(-m // CONSTANTS.parts)

        def couple(part: int) -> Floats:
            schur = np.zeros((self.sums.shape[0],) * 2)
            for y in range(part * step, min((part + 1) * step, m)):
                band = self.bands[y].T
                band[self.row - self.column, self.column] = values[y]
                # Late steps have blocks that are singular to rounding: a relative 1e-15 keeps their factors.
                band[0] *= 1 + CONSTANTS.ridge
                factor, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
                if info:
                    raise np.linalg.LinAlgError("a block is not positive definite")
                self.bands[y] = factor.T
                self.schur_part.add(self.bands[y], schur)
            return schur

        schur = np.sum(in_order(couple, -(-m // step)), axis=0)
        # Scaled to a unit diagonal: rows of cells with little mass are many orders smaller than the others.
        lower = np.tril(schur)
        scale = 1 / np.sqrt(np.diagonal(lower))
        self.schur_scale = scale
        self.schur, info = lapack.dpotrf(lower * scale[:, None] * scale, lower=1)
        if info:
            raise np.linalg.LinAlgError("the row sums are not positive definite")

    def _blocks(self, right: Floats) -> Floats:
        solution = np.empty_like(right)
        for y in range(right.shape[1]):
            solution[:, y] = lapack.dpbtrs(self.bands[y].T, right[:, y], lower=1)[0]
        return solution

    def solve(self, reduced: Floats, sums: Floats) -> tuple[Floats, Floats]:
        # dx (n, m) and dl (q,) satisfy H_y dx_y = M' dl - reduced_y and sum_y M dx_y = sums; dl comes first.
        inner = self._blocks(reduced)
        right = sums + (self.sums @ inner).sum(axis=1)
        dl = self.schur_scale * lapack.dpotrs(self.schur, self.schur_scale * right, lower=1)[0]
        dx = self._blocks((self.sums.T @ dl)[:, None] - reduced)
        return dx, dl


def _products(parts: list[sp.csr_array]) -> tuple[sp.csr_array, Integers, Integers]:
    # H_ij = sum over cones and entries (p, q) of W^-2: linear in these entries, so one sparse map serves every step.
    # Cones are grouped by the number of their cells, for arrays instead of loops.
    k, n = parts[0].shape
    pattern = sp.csr_array(sum(abs(rows) for rows in parts))
    size = np.diff(pattern.indptr)
    keys, values, places = [], [], []
    for count in np.unique(size):
        chosen = np.flatnonzero(size == count)
        nodes = pattern.indices[pattern.indptr[chosen][:, None] + np.arange(count)]
        entries = [np.asarray(rows[np.repeat(chosen, count), nodes.ravel()]).reshape(-1, count) for rows in parts]
        for i in range(count):
            for j in range(count):
                lower = nodes[:, i] >= nodes[:, j]
                entry = 0
                for p in range(len(parts)):
                    for q in range(p, len(parts)):
                        weight = entries[p][:, i] * entries[q][:, j]
                        if p != q:
                            weight = weight + entries[q][:, i] * entries[p][:, j]
                        nonzero = lower & (weight != 0)
                        keys.append(nodes[nonzero, i].astype(np.int64) * n + nodes[nonzero, j])
                        values.append(weight[nonzero])
                        places.append(entry * k + chosen[nonzero])
                        entry += 1
    unique, where = np.unique(np.concatenate(keys), return_inverse=True)
    columns = len(parts) * (len(parts) + 1) // 2 * k
    matrix = sp.csr_array((np.concatenate(values), (where, np.concatenate(places))), shape=(len(unique), columns))
    return matrix, unique // n, unique % n
