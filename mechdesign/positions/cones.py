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

from collections.abc import Callable
from fractions import Fraction

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Integers, Mask, Unsigned
from mechdesign.base.garbage import pause_collection
from mechdesign.base.threads import in_blocks
from mechdesign.mechanism.certificate_kernels import product

LEVEL_BITS = 60
HIGHEST = 4  # nats a cell: a higher level counts as this
_PAIRS = 1 << 13  # cells times reports at a time: their vectors stay near the processor
_SMALL, _LARGE = 20, 52  # bits: masses all below 2^20 are multiplied by 2^32; with one of 2^52 or more divided by 2^10
# Bound of the change of a part of G by nine remainders in [0, 1). The weights of a part sum to at most 24 on either
# side of 0, so that the change is below 24.
_REMAINDER = 36


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
    broken = np.zeros(len(level), np.int64)

    def count(start: int, stop: int) -> None:
        patches = np.moveaxis(mass[around[start:stop]], 1, 0).reshape(3, 3, -1)
        z = np.repeat(level[start:stop].T, mass.shape[1], axis=1)
        broken[start] = _count(patches, z)

    with pause_collection():  # the first call compiles
        in_blocks(count, len(level), max(1, _PAIRS // mass.shape[1]))
    return int(broken.sum())


def _count(patches: Unsigned, z: Unsigned) -> int:
    # Breaches among k pairs: masses (3, 3, k) of their patches, levels (4 or 16, k).
    p, remainder = _scale_masses(patches)
    if len(z) == 4:
        failed = ~_satisfies(p, remainder, z)
        p, remainder, z = p[..., failed], remainder[failed], z[:, failed]
        corners = _halve_levels(z.reshape(2, 2, -1))
        of_quarters = [corners[i : i + 2, j : j + 2].reshape(4, -1) for i, j in np.ndindex(2, 2)]
    else:  # these bound no polynomial of the whole cell; a quarter is half as wide, so that eps times its side is half
        of_quarters = list((z >> np.uint64(1)).reshape(4, 4, -1))
    # 16 times the masses of the quarters: their remainders are 16 times as large, too.
    fine, good = _along_y(_refine, _refine(p)), np.ones(len(remainder), np.bool_)
    for (i, j), levels in zip(np.ndindex(2, 2), of_quarters, strict=True):
        good &= _satisfies(fine[i : i + 3, j : j + 3], 16 * remainder, levels)
    return int(np.count_nonzero(~good))


def _scale_masses(masses: Unsigned) -> tuple[Integers, Integers]:
    # The masses of patches (3, 3, k), scaled below 2^52, and the bounds (k,) of the effect of their remainders.
    # One power of two for all nine brings masses of at most 2^62 below 2^52, since the conditions are homogeneous.
    # Small masses are multiplied by 2^32, which is exact, so that T, which drops 60 bits, keeps its digits.
    bits = np.bitwise_or.reduce(masses, axis=(0, 1))
    is_small, is_large = bits >> np.uint64(_SMALL) == 0, bits >> np.uint64(_LARGE) > 0
    up, down = np.where(is_small, 32, 0).astype(np.uint64), np.where(is_large, 10, 0).astype(np.uint64)
    # Rounds down: a remainder r / 2^10 in [0, 1) only adds to T, and `_REMAINDER` bounds its effect on a part of G.
    return ((masses << up) >> down).astype(np.int64), np.where(is_large, _REMAINDER, 0)


# Of masses along an axis, the first: twice the coefficients, times the binomials 1, 2, 1, so that all are integers.
def _values(p: Integers) -> Integers:
    low, middle, high = p
    return np.stack([low + middle, 4 * middle, middle + high])


def _slopes(p: Integers) -> Integers:
    low, middle, high = p
    return np.stack([2 * (middle - low), 2 * (high - low), 2 * (high - middle)])


def _refine(p: Integers) -> Integers:
    # Chaikin's rule: on cells of half the side the masses are (3 p_- + p_0, p_- + 3 p_0, 3 p_0 + p_+, p_0 + 3 p_+) / 4.
    # The lower half takes the first three, the upper half the last three. Four times these are integers.
    low, middle, high = p
    return np.stack([3 * low + middle, low + 3 * middle, 3 * middle + high, middle + 3 * high])


def _along_y(rule: Callable[[Integers], Integers], p: Integers) -> Integers:
    return np.moveaxis(rule(np.moveaxis(p, 1, 0)), 0, 1)


def _halve_levels(z: Unsigned) -> Unsigned:
    # The levels (3, 3, k) at the corners of quarters, from those (2, 2, k) of cells. A quarter is half as wide, so that
    # eps h is half. Every shift rounds down, which only tightens the conditions.
    one = np.uint64(1)
    corners = np.empty((3, 3, z.shape[2]), np.uint64)
    corners[::2, ::2] = z >> one
    corners[1, ::2] = (corners[0, ::2] + corners[2, ::2]) >> one
    corners[:, 1] = (corners[:, 0] + corners[:, 2]) >> one
    return corners


def _satisfies(p: Integers, remainder: Integers, z: Unsigned) -> Mask:
    # True (k,) where the conditions hold: masses (3, 3, k), bounds (k,) of remainders, levels (4, k) at the corners.
    is_constant = (z == z[0]).all(axis=0)
    if is_constant.any() and not is_constant.all():
        satisfied = np.empty(len(remainder), np.bool_)
        for chosen in (is_constant, ~is_constant):
            satisfied[chosen] = _satisfies(p[..., chosen], remainder[chosen], z[:, chosen])
        return satisfied
    # Tensor products: along x first, then along y.
    along_x = _values(p)
    value, slope_x, slope_y = _along_y(_values, along_x), _along_y(_values, _slopes(p)), _along_y(_slopes, along_x)
    # T_ac and G_ac of degree 3. Levels z_kl are weighed with 1 each: the binomials of degree 1.
    # One level on the cell: degree 2 suffices, with nine conditions. With N beyond C along y, and E beyond it along x,
    #     node    (E - W)^2 + (N - S)^2                              <= (2 z C)^2
    #     x edge  (4 (E - C))^2 + (N + NE - S - SE)^2                <= (2 z (C + E))^2          y edge alike
    #     corner  (2 (E + NE - C - N))^2 + (2 (N + NE - C - E))^2    <= (z (C + E + N + NE))^2      all four alike
    sides = 1 if is_constant.all() else 2
    level, satisfied = z.reshape(2, 2, -1), np.ones(len(remainder), np.bool_)
    for a, c in np.ndindex(2 + sides, 2 + sides):
        terms = [((k, m), (a - k, c - m)) for k, m in np.ndindex(sides, sides) if 0 <= a - k < 3 and 0 <= c - m < 3]
        top, bottom = np.zeros_like(z[0]), np.zeros_like(z[0])
        for corner, entry in terms:
            _add_product(value[entry], level[corner], top, bottom)
        x, y = (np.sum([slope[entry] for _, entry in terms], axis=0) for slope in (slope_x, slope_y))
        _keep_within(x, y, top, bottom, remainder, satisfied)
    return satisfied


@numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)
def _add_product(value, level, top, bottom):  # type: ignore[no-untyped-def]
    # Add value (k,) times level (k,) to the numbers of 128 bits (top, bottom).
    for k in range(len(value)):
        high, low = product(np.uint64(value[k]), level[k])
        low += bottom[k]
        top[k] += high + np.uint64(low < bottom[k])  # a low word that fell has wrapped: carry
        bottom[k] = low


@numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)
def _keep_within(x, y, top, bottom, remainder, satisfied):  # type: ignore[no-untyped-def]
    # Clear satisfied (k,) unless (|x| + remainder)^2 + (|y| + remainder)^2 <= t^2, t the bits of (top, bottom) from bit
    # 60 on. Levels have 60 bits behind the point: dropping them rounds T down, on the safe side. Masses are below 2^52,
    # of quarters below 2^56. The weights of sums of beta, and of either sign in G, sum to at most 36. So u and v are
    # below 36 * 2^56 < 2^62. Levels are at most 2^62, of quarters 2^61: T is below 2^123, and t below 2^63. The sum of
    # two squares stays below 2^125, and the carry into `high` is the only one.
    for k in range(len(x)):
        u, v = np.uint64(abs(x[k]) + remainder[k]), np.uint64(abs(y[k]) + remainder[k])
        t = (top[k] << np.uint64(4)) | (bottom[k] >> np.uint64(60))
        uh, ul = product(u, u)
        vh, vl = product(v, v)
        th, tl = product(t, t)
        low = ul + vl
        high = uh + vh + np.uint64(low < ul)
        satisfied[k] &= (high < th) | ((high == th) & (low <= tl))
