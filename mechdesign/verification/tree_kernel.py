"""The kernel of `tree_bound`: amounts of trees handed over in 62 bits."""

from __future__ import annotations

import numba
import numpy as np

from mechdesign.mechanism.certificate_kernels import product
from mechdesign.verification.tree_bound import NOTHING_ARRIVES

_LARGEST = np.int64(1 << 61)


@numba.njit(cache=True, nogil=True)
def charge(costs, dual, steps, first, near, low, low_bits, high, high_bits, charges):  # type: ignore[no-untyped-def]
    """Raise charges (n,) to the deficits of trees; edges have low 2^-low_bits <= e^-d and high 2^-high_bits >= e^d."""
    m, n = costs.shape
    rest, parent, children = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    for y in range(m):
        children[:] = 0
        for v in range(n):
            rest[v], parent[v] = costs[y, v] - dual[v], (v + np.int64(steps[y, v])) & 0xFFFF
            if parent[v] >= n:
                parent[v] = v
            if parent[v] != v:
                children[parent[v]] += 1
        count = 0
        for v in range(n):
            if children[v] == 0:
                waiting[count] = v
                count += 1
        i = 0
        # Children come first. A place in a circle is never reached, and keeps its own.
        while i < count:
            v = waiting[i]
            p = parent[v]
            i += 1
            if p == v:
                continue
            children[p] -= 1
            if children[p] == 0:
                waiting[count] = p
                count += 1
            edge, end = first[v], first[v + 1]
            while edge < end:
                middle = (edge + end) // 2
                if near[middle] < p:
                    edge = middle + 1
                else:
                    end = middle
            # A parent that no edge joins to v gets nothing, nor does one at so many nats that no unit would arrive.
            if edge == first[v + 1] or near[edge] != p or low_bits[edge] >= NOTHING_ARRIVES:
                continue
            if rest[v] >= 0:
                rest[p] += _times_down(np.uint64(rest[v]), low[edge], low_bits[edge])
                rest[v] = 0
            else:
                taken = _times_up(np.uint64(-rest[v]), high[edge], high_bits[edge])
                if taken >= 0 and rest[p] > taken - 2 * _LARGEST:
                    rest[p] -= taken
                    rest[v] = 0
        for v in range(n):
            charges[v] = max(charges[v], -rest[v])


@numba.njit(inline="always")
def _times_down(amount, factor, bits):  # type: ignore[no-untyped-def]
    """The amount times factor 2^-bits, rounded down, for amounts and factors below 2^62 and bits from 61."""
    top, bottom = product(amount, factor)
    # Shifts by 64 and more are undefined.
    if bits >= 64:
        return np.int64(top >> np.uint64(min(bits - 64, 63)))
    return np.int64((top << np.uint64(64 - bits)) | (bottom >> np.uint64(bits)))


@numba.njit(inline="always")
def _times_up(amount, factor, bits):  # type: ignore[no-untyped-def]
    """At least amount factor 2^-bits, for bits up to 62; -1 where it may exceed 2^61."""
    top, bottom = product(amount, factor)
    if bits <= 3 or top >> np.uint64(max(bits - 3, 0)) != 0:
        return np.int64(-1)
    return np.int64((top << np.uint64(64 - bits)) | (bottom >> np.uint64(bits))) + 1
