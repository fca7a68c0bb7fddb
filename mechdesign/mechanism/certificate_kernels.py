"""Kernels of the certificate: exact comparisons of masses and of doubles, and the steepest edge.

`certificate.py` states the inequalities (1) to (3), and compares few triples without these.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from mechdesign.mechanism import certificate
from mechdesign.mechanism.certificate import SINGLE_MARGIN

_REPORTS = 256  # reports per block of the single-precision test (2): two rows of 1 kB stay in the cache

product = numba.njit(inline="always")(certificate.product)


@numba.njit(inline="always")
def exceeds(row, other, ratio):  # type: ignore[no-untyped-def]
    """True if an entry is more than `ratio` times that of the other row, either way."""
    # No branch in the loop, so that the compiler vectorises it.
    over = False
    for y in range(row.size):
        over |= (row[y] > ratio * other[y]) | (other[y] > ratio * row[y])
    return over


@numba.njit(cache=True, nogil=True)
def count_violations(mass, single, tail, head, factor, shift):  # type: ignore[no-untyped-def]
    """Count pairs with high 2^shift > factor low; entries <= 2^62, 2^61 <= factor < 2^62; single: mass, rounded."""
    violations = 0
    for e in range(tail.size):
        # With x' = x (1 + r), |r| <= 2^-24, the inequality rounded to single precision
        #     A[u, y]' <= ((1 - 2^-20) R 2^-s)' A[v, y]'                                                             (2)
        # implies (1). On the other edges every report is compared in integers.
        # R 2^-s is at least 2^62 here, which no ratio of two masses exceeds: (1) holds.
        if shift[e] < 0:
            continue
        u, v, ratio, bits = tail[e], head[e], factor[e], np.uint64(shift[e])
        limit, shift_right = np.float32(SINGLE_MARGIN * math.ldexp(np.float64(ratio), -shift[e])), np.uint64(63) - bits
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not exceeds(single[u, first:last], single[v, first:last], limit):
                continue  # (2) holds for the block, and so does (1)
            row, other = mass[u, first:last], mass[v, first:last]
            for y in range(row.size):
                # (1) both ways: the larger mass 2^s against R times the smaller one.
                high = max(row[y], other[y])
                top, bottom = product(ratio, min(row[y], other[y]))
                # high 2^bits in two words. Two shifts to the right, as a shift by 64 (bits = 0) is undefined.
                over, under = (high >> np.uint64(1)) >> shift_right, high << bits
                violations += (over > top) | ((over == top) & (under > bottom))
    return violations


@numba.njit(cache=True, nogil=True)
def steepest(mass, single, tail, head, length):  # type: ignore[no-untyped-def]
    """The largest log-ratio over length; blocks that cannot exceed the current maximum are skipped."""
    best, edge, report, is_descent_at_best = -1.0, 0, 0, False
    for e in range(tail.size):
        u, v = tail[e], head[e]
        largest, report_of_edge, is_descent = -1.0, 0, False
        # A block whose ratios stay below e^{best length} cannot raise the maximum; e^80 is finite in float32.
        limit = np.float32(SINGLE_MARGIN * math.exp(min(best * length[e], 80.0))) if best > 0 else np.float32(0)
        for first in range(0, mass.shape[1], _REPORTS):
            last = min(first + _REPORTS, mass.shape[1])
            if not exceeds(single[u, first:last], single[v, first:last], limit):
                continue
            for y in range(first, last):
                low, high = min(mass[u, y], mass[v, y]), max(mass[u, y], mass[v, y])
                # The difference is exact before it is rounded: a quotient of doubles loses it where rows are close.
                excess = np.float64(high - low) / np.float64(low)
                if excess > largest:
                    largest, report_of_edge, is_descent = excess, y, mass[v, y] > mass[u, y]
        if largest < 0:
            continue
        rise = math.log1p(largest)
        value = rise / length[e] if length[e] > 0 else (np.inf if rise > 0 else 0.0)
        if value > best:
            best, edge, report, is_descent_at_best = value, e, report_of_edge, is_descent
    return best, edge, report, is_descent_at_best


@numba.njit(cache=True, nogil=True)
def largest_ratio(mass, tail, head):  # type: ignore[no-untyped-def]
    """The largest ratio of masses over pairs of rows, both ways, in doubles."""
    # One division serves both directions: the smallest ratio is the largest of the opposite ones, inverted.
    high, low = 1.0, 1.0
    for e in range(tail.size):
        u, v = tail[e], head[e]
        for y in range(mass.shape[1]):
            ratio = np.float64(mass[u, y]) / np.float64(mass[v, y])
            high = max(high, ratio)
            low = min(low, ratio)
    return max(high, 1 / low)


@numba.njit(inline="always")
def _holds(a, i, b, j, factor, shift):  # type: ignore[no-untyped-def]
    """True if a 2^i <= factor 2^-shift b 2^j, exactly (3); a zero has a or b = 0."""
    if a == 0 or b == 0:
        return a == 0
    k = i + shift - j
    # a 2^k < 2^53 lies below R b >= 2^113 here,
    if k <= 0:
        return True
    # and a 2^k >= 2^115 lies above R b here. In between a 2^k has at most two words.
    if k >= 63:
        return False
    high, low = product(factor, b)
    bits = np.uint64(k)
    a_high, a_low = a >> (np.uint64(64) - bits), a << bits
    return a_high < high or (a_high == high and a_low <= low)


@numba.njit(cache=True, nogil=True)
def count_of_doubles(mantissa, exponent, tail, head, factor, shift, bad):  # type: ignore[no-untyped-def]
    """Write the number of breaches of (3) of every edge to bad (e,)."""
    for e in range(tail.size):
        u, v, r, s, count = tail[e], head[e], factor[e], shift[e], 0
        for y in range(mantissa.shape[1]):
            a, b, i, j = mantissa[u, y], mantissa[v, y], exponent[u, y], exponent[v, y]
            if not _holds(a, i, b, j, r, s):
                count += 1
            if not _holds(b, j, a, i, r, s):
                count += 1
        bad[e] = count


@numba.njit(cache=True, nogil=True)
def steepest_of_doubles(table, tail, head, length):  # type: ignore[no-untyped-def]
    """The largest log-ratio over length of a table of doubles, and the largest without a zero."""
    best, edge, report, is_descent_at_best = -1.0, 0, 0, False
    finite = 0.0
    for e in range(tail.size):
        u, v = tail[e], head[e]
        rise, report_of_edge, is_descent = 0.0, 0, False
        for y in range(table.shape[1]):
            p, q = table[u, y], table[v, y]
            if p == q:
                continue
            high, low = max(p, q), min(p, q)
            if low == 0:
                if rise < np.inf:
                    rise, report_of_edge, is_descent = np.inf, y, q > p
                continue
            # Near 1 the difference of two doubles is exact; far from 1 their quotient may overflow.
            log = math.log1p((high - low) / low) if high < 2 * low else math.log(high) - math.log(low)
            finite = max(finite, log / length[e])
            if log > rise:
                rise, report_of_edge, is_descent = log, y, q > p
        if rise / length[e] > best:
            best, edge, report, is_descent_at_best = rise / length[e], e, report_of_edge, is_descent
    return best, edge, report, is_descent_at_best, finite
