r"""Cones: |grad P(y|.)| <= eps P(y|.) on every cell, in integers, and tables repaired to satisfy it.

On a cell with masses p_ij of its patch, i, j in {-1, 0, 1}, P is a biquadratic polynomial. Along an axis it has
b(p) = ((p_- + p_0) / 2, p_0, (p_0 + p_+) / 2), and its Bernstein coefficients are beta_ij = b_i b_j: b taken along x
and then along y. Its derivatives by s, raised to the same degree, have g_i b_j and b_i g_j, g(p) = (p_0 - p_-,
(p_+ - p_-) / 2, p_+ - p_0). With z_kl = eps h at the corners, e their bilinear interpolant, the product e P is bicubic.
Polynomials of degrees 2 and 1 have a product of coefficients c_a, C(3, a) c_a = sum over i + k = a of C(2, i) b_i e_k,
a = 0..3. So

    T_ac = sum C(2, i) C(2, j) beta_ij z_kl,   G_ac = sum C(2, i) C(2, j) (g_i b_j, b_i g_j)      (i + k = a, j + l = c)

are C(3, a) C(3, c) times the coefficients of e P and of h grad P. The 16 conditions |G_ac| <= T_ac imply the bound on
the cell (`breaches`); if z is one number there, 9 of degree 2 suffice: |(g_i b_j, b_i g_j)| <= z b_i b_j.
Source: de Boor, A Practical Guide to Splines, chapters IX and XI; the conditions are ours.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Integers, Mask, Unsigned
from mechdesign.base.garbage import pause_collection
from mechdesign.base.threads import in_blocks
from mechdesign.mechanism.certificate_kernels import product

LEVEL_BITS = 60
HIGHEST = 4  # nats a cell: a higher level counts as this
_BLOCK = 128  # reports at a time
_CELLS = 64  # at a time, of a thread
_SMALL, _LARGE = 20, 52  # bits: masses all below 2^20 are multiplied by 2^32; with one of 2^52 or more divided by 2^10
# Bound of the change of a part of G by nine remainders in [0, 1). The weights of a part sum to at most 24 on either
# side of 0, so that the change is below 24.
_REMAINDER = 36

# Of functions that only `_count` calls: wrappers for Python and for C take a fifth of the time to compile.
_CALLEE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def integer_levels(corner_level: Floats, side: float) -> Unsigned:
    """Z = floor(2^60 min(level side, 4)) of levels (n, 4 or 16), exactly."""
    distinct, place = np.unique(corner_level, return_inverse=True)
    h = Fraction(side)
    whole = [min(int(Fraction(level) * h * (1 << LEVEL_BITS)), HIGHEST << LEVEL_BITS) for level in distinct.tolist()]
    return np.array(whole, np.uint64)[place].reshape(corner_level.shape)


def breaches(mass: Unsigned, around: Integers, level: Unsigned) -> int:
    """Number of (cell, report) pairs that satisfy neither the conditions of the cell nor those of its quarters."""
    # Bernstein polynomials B_ac are at least 0. So |G_ac| <= T_ac for all 16 implies
    #     |h grad P| = |sum B_ac G_ac| <= sum B_ac |G_ac| <= sum B_ac T_ac = e P,  each divided by C(3, a) C(3, c).
    # Where conditions fail for a cell and a report, the four quarters of the cell are checked instead, each with half
    # the levels of e at its corners. If levels (n, 16) stand at the corners of quarters, only the quarters are checked,
    # with half of those. z is rounded down to multiples of 2^-60, in quarters again. A level above 4 nats a cell counts
    # as 4. No product wraps, for any masses up to 2^62 and any levels.
    # 0 proves |grad P| <= eps P on every cell, for masses (n, m) of at most 2^62, the rows (n, 9) around each cell, and
    # `integer_levels` of levels nowhere above eps.
    mass = np.ascontiguousarray(mass)
    broken = np.zeros(len(level), np.int64)

    def count(start: int, stop: int) -> None:
        broken[start] = _count(mass, around[start:stop], level[start:stop], *_scratch())

    with pause_collection():  # the first call compiles
        in_blocks(count, len(level), _CELLS)
    return int(broken.sum())


@numba.njit(inline="always")
def _value(low, middle, high):  # type: ignore[no-untyped-def]
    return low + middle, 4 * middle, middle + high


@numba.njit(inline="always")
def _slope(low, middle, high):  # type: ignore[no-untyped-def]
    return 2 * (middle - low), 2 * (high - low), 2 * (high - middle)


class Coefficients(NamedTuple):
    """Scratch (9, reports) of the weighted Bernstein coefficients of a patch: values and slopes along both axes."""

    value: Integers
    slope_x: Integers
    slope_y: Integers


class Scratch(NamedTuple):
    """Arrays that a count overwrites, made by NumPy: compiling their making takes a second."""

    p: Integers  # (16, reports): the masses of a patch
    fine: Integers  # (16, reports): those of its quarters
    pad: Integers  # (reports,)
    sums: Integers  # (2, reports)
    work: Unsigned  # (2, reports)
    good: Mask  # (reports,): conditions that hold
    grid: Unsigned  # (3, 3): levels of quarters
    z: Unsigned  # (4,): levels at the corners


def _scratch() -> tuple[Coefficients, Scratch]:
    entries, patches, pairs = (9, _BLOCK), (16, _BLOCK), (2, _BLOCK)
    return Coefficients(*(np.zeros(entries, np.int64) for _ in range(3))), Scratch(
        p=np.zeros(patches, np.int64),
        fine=np.zeros(patches, np.int64),
        pad=np.zeros(_BLOCK, np.int64),
        sums=np.zeros(pairs, np.int64),
        work=np.zeros(pairs, np.uint64),
        good=np.zeros(_BLOCK, np.bool_),
        grid=np.zeros((3, 3), np.uint64),
        z=np.zeros(4, np.uint64),
    )


@numba.njit(**_CALLEE)
def _fill(p, start, coefficients, count):  # type: ignore[no-untyped-def]
    # Write the coefficients of the patches p[start + 4 i + j] of a (16, count) lattice, i, j < 3.
    # Tensor products: along x first, then every row of the result along y. Twice the coefficients along each axis,
    # times the binomials 1, 2, 1, so that all are integers. Loops over reports are innermost: they vectorise.
    b, gx, gy = coefficients.value, coefficients.slope_x, coefficients.slope_y
    for i in range(3):
        row = start + i
        for y in range(count):
            low, middle, high = p[row, y], p[row + 4, y], p[row + 8, y]
            b[i, y], b[3 + i, y], b[6 + i, y] = _value(low, middle, high)
            gx[i, y], gx[3 + i, y], gx[6 + i, y] = _slope(low, middle, high)
    for i in (0, 3, 6):
        for y in range(count):
            low, middle, high = b[i, y], b[i + 1, y], b[i + 2, y]
            b[i, y], b[i + 1, y], b[i + 2, y] = _value(low, middle, high)
            gy[i, y], gy[i + 1, y], gy[i + 2, y] = _slope(low, middle, high)
            gx[i, y], gx[i + 1, y], gx[i + 2, y] = _value(gx[i, y], gx[i + 1, y], gx[i + 2, y])


@numba.njit(**_CALLEE)
def _compare(x, y, top, bottom, pad, good, count):  # type: ignore[no-untyped-def]
    # Clear good (count,) unless (|x| + pad)^2 + (|y| + pad)^2 <= t^2, t the bits of (top, bottom) from bit 60 on.
    # Levels have 60 bits behind the point: dropping them rounds T down, on the safe side. Masses are below 2^52, of
    # quarters below 2^56. The weights of sums of beta, and of either sign in G, sum to at most 36. So u and v are below
    # 36 * 2^56 < 2^62. Levels are at most 2^62, of quarters 2^61: T is below 2^123, and t below 2^63. The sum of two
    # squares stays below 2^125, and the carry into `high` is the only one.
    for k in range(count):
        u, v = np.uint64(abs(x[k]) + pad[k]), np.uint64(abs(y[k]) + pad[k])
        t = (top[k] << np.uint64(4)) | (bottom[k] >> np.uint64(60))
        uh, ul = product(u, u)
        vh, vl = product(v, v)
        th, tl = product(t, t)
        low = ul + vl
        high = uh + vh + np.uint64(low < ul)
        good[k] &= (high < th) | ((high == th) & (low <= tl))


@numba.njit(**_CALLEE)
def _check(coefficients, z, pad, work, sums, good, count):  # type: ignore[no-untyped-def]
    # Clear good (count,) where a condition fails at levels z (4,); work and sums (2, count) are scratch.
    b, gx, gy = coefficients.value, coefficients.slope_x, coefficients.slope_y
    # One level on the cell: degree 2 suffices, with nine conditions. With N beyond C along y, and E beyond it along x,
    #     node    (E - W)^2 + (N - S)^2                              <= (2 z C)^2
    #     x edge  (4 (E - C))^2 + (N + NE - S - SE)^2                <= (2 z (C + E))^2          y edge alike
    #     corner  (2 (E + NE - C - N))^2 + (2 (N + NE - C - E))^2    <= (z (C + E + N + NE))^2      all four alike
    if z[0] == z[1] and z[0] == z[2] and z[0] == z[3]:
        for entry in range(9):
            for y in range(count):
                work[0, y], work[1, y] = product(np.uint64(b[entry, y]), z[0])
            _compare(gx[entry], gy[entry], work[0], work[1], pad, good, count)
        return
    # T_ac and G_ac of degree 3. Levels z_kl are weighed with 1 each: the binomials of degree 1.
    for a in range(4):
        for c in range(4):
            for y in range(count):
                work[0, y], work[1, y], sums[0, y], sums[1, y] = 0, 0, 0, 0
            for k in range(max(0, a - 2), min(2, a + 1)):
                for m in range(max(0, c - 2), min(2, c + 1)):
                    entry, level = 3 * (a - k) + c - m, z[2 * k + m]
                    for y in range(count):
                        high, low = product(np.uint64(b[entry, y]), level)
                        low += work[1, y]
                        work[0, y] += high + np.uint64(low < work[1, y])  # a low word that fell has wrapped: carry
                        work[1, y] = low
                        sums[0, y] += gx[entry, y]
                        sums[1, y] += gy[entry, y]
            _compare(sums[0], sums[1], work[0], work[1], pad, good, count)


@numba.njit(**_CALLEE)
def _refine(p, fine, count):  # type: ignore[no-untyped-def]
    # Write 16 times the masses of the quarters to fine (16, count), by Chaikin's rule along x and y; p is changed.
    # Along an axis the masses on cells of half the side are (3 p_- + p_0, p_- + 3 p_0, 3 p_0 + p_+, p_0 + 3 p_+) / 4.
    # The lower half takes the first three, the upper half the last three. Four times these are integers.
    for j in range(3):
        for y in range(count):
            low, middle, high = p[j, y], p[4 + j, y], p[8 + j, y]
            p[j, y], p[4 + j, y] = 3 * low + middle, low + 3 * middle
            p[8 + j, y], p[12 + j, y] = 3 * middle + high, middle + 3 * high
    for i in (0, 4, 8, 12):
        for y in range(count):
            low, middle, high = p[i, y], p[i + 1, y], p[i + 2, y]
            fine[i, y], fine[i + 1, y] = 3 * low + middle, low + 3 * middle
            fine[i + 2, y], fine[i + 3, y] = 3 * middle + high, middle + 3 * high


@numba.njit(**_CALLEE)
def _gather(mass, rows, first, p, pad, good, count):  # type: ignore[no-untyped-def]
    # Write reports first.. of nine rows, scaled below 2^52, to p[4 i + j], i, j < 3; set pad and good.
    for y in range(count):
        # One power of two for all nine brings masses of at most 2^62 below 2^52, since the conditions are homogeneous.
        # Small masses are multiplied by 2^32, which is exact, so that T, which drops 60 bits, keeps its digits.
        bits = np.uint64(0)
        for i in range(9):
            bits |= mass[rows[i], first + y]
        large = bits >> np.uint64(_LARGE) > 0
        up = np.uint64(32 if bits >> np.uint64(_SMALL) == 0 else 0)
        # Rounds down: a remainder r / 2^10 in [0, 1) only adds to T, and `pad` bounds its effect on either part of G.
        down = np.uint64(10 if large else 0)
        for i in range(9):
            p[4 * (i // 3) + i % 3, y] = np.int64((mass[rows[i], first + y] << up) >> down)
        pad[y], good[y] = _REMAINDER if large else 0, True


@numba.njit(**_CALLEE)
def _keep_failed(p, pad, good, count):  # type: ignore[no-untyped-def]
    # Move the patches p[4 i + j] that are not good to the front, with their pads, and return their number.
    failed = 0
    for y in range(count):
        if not good[y]:
            pad[failed] = 16 * pad[y]  # refined masses are 16 times as large, and so are their remainders
            for row in range(11):  # rows 3 and 7 of the lattice are unused: 4 i + j, i, j < 3, ends at 10
                p[row, failed] = p[row, y]
            failed += 1
    for y in range(failed):
        good[y] = True
    return failed


@numba.njit(**_CALLEE)
def _halve_levels(level, z):  # type: ignore[no-untyped-def]
    # A quarter is half as wide, so that eps h is half. Every shift rounds down, which only tightens the conditions.
    one = np.uint64(1)
    for k in range(4):
        z[2 * (k // 2), 2 * (k % 2)] = level[k] >> one
    for k in (0, 2):
        z[1, k] = (z[0, k] + z[2, k]) >> one
    for k in range(3):
        z[k, 1] = (z[k, 0] + z[k, 2]) >> one


@numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)
def _count(mass, around, level, coefficients, scratch):  # type: ignore[no-untyped-def]
    p, fine, pad, sums, work, good, grid, z = scratch
    bad = 0
    for v in range(len(around)):
        by_quarters = level.shape[1] == 16
        _halve_levels(level[v], grid)
        for first in range(0, mass.shape[1], _BLOCK):
            count = min(_BLOCK, mass.shape[1] - first)
            # q = -1 is the cell itself; its quarters, 0 to 3, are checked only for the reports that failed there.
            _gather(mass, around[v], first, p, pad, good, count)
            for q in range(-1, 4):
                if by_quarters and q < 0:  # levels of quarters bound no polynomial of the whole cell
                    for y in range(count):
                        good[y] = False
                    continue
                if q == 0:
                    count = _keep_failed(p, pad, good, count)
                    _refine(p, fine, count)
                if count == 0:
                    break
                for k in range(4):
                    if q < 0:
                        z[k] = level[v, k]
                    elif by_quarters:  # a quarter is half as wide, so that eps times its side is half
                        z[k] = level[v, 4 * q + k] >> np.uint64(1)
                    else:
                        z[k] = grid[q // 2 + k // 2, q % 2 + k % 2]
                _fill(p if q < 0 else fine, 0 if q < 0 else 4 * (q // 2) + q % 2, coefficients, count)
                _check(coefficients, z, pad, work, sums, good, count)
            for y in range(count):
                bad += not good[y]
    return bad
