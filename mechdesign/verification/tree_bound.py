"""The lower bound that the trees of a file prove: one pass over reports and places in integers, without pricing.

The bound and its proof are those of solvers/cone/pricing_trees.py, whatever the trees are. Costs and multipliers become
integers, cost 2^k rounded down. Sums are integers of at most 2^62. Along an edge of length d the factors are R 2^-s at
most e^-d and U 2^-t at least e^d, with 62 bits, and products are rounded so that the bound only falls. A place whose
amount would overflow hands nothing over: it is charged there instead. verify_table.py proves the same in other code.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numba
import numpy as np
import xarray as xr

from mechdesign.base.arrays import Indices, Matrix, Unsigned, Vector
from mechdesign.mechanism.certificate import product
from mechdesign.problem.lattice import Edges

_VACUOUS = 128.0  # nats from which on nothing is handed over: factors beyond exceed the ratio of any two masses
_WORKING_BITS = 220  # of the series, 158 more than factors have
_SUM_BITS = 60  # of the sum of all costs of a report, and of all multipliers
_FACTOR_BITS = 62
_NOTHING_ARRIVES = 126  # s from which 2^62 R 2^-s is below 1: edges longer than 44 nats
_DOUBLES = Fraction(2) ** 1000
_LARGEST = np.int64(1 << 61)


def tree_bound(mechanism: xr.Dataset, edges: Edges, cost: Matrix) -> float | None:
    """The bound of the multipliers `dual` for the cost (n, m), rounded down; None for a file without trees."""
    if "tree" not in mechanism or "dual" not in mechanism:
        return None
    dual, steps = mechanism["dual"].values, mechanism["tree"].values
    # Finite, so that numbers below cannot overflow.
    if not math.isfinite(float(np.abs(cost).sum() + np.abs(dual).sum())):
        return None
    bound, bits = _integer_bound(cost, dual, edges, steps)
    exact = bound * Fraction(1 << max(-bits, 0), 1 << max(bits, 0))
    # Multipliers of a forged file may prove less than any double.
    return math.nextafter(float(exact), -math.inf) if abs(exact) < _DOUBLES else -math.inf


def _integer_bound(cost: Matrix, dual: Vector, edges: Edges, steps: Unsigned) -> tuple[int, int]:
    """The bound in units of 2^-bits, and these bits."""
    size = len(dual)
    bits = _SUM_BITS - math.frexp(float(np.abs(cost).sum(axis=0).max() + np.abs(dual).sum()))[1]
    # ldexp is exact, and floor too: doubles from 2^53 on are integers. Where it underflows, floor gives 0 or -1.
    costs, multipliers = (np.floor(np.ldexp(values, bits)).astype(np.int64) for values in (cost.T, dual))
    graph = edges.matrix(size).tocsr()
    graph.sort_indices()
    factors = [values[_places_of(graph.data)] for values in _factors(np.unique(graph.data))]
    charges = np.zeros(size, np.int64)
    rows = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    _charge(np.ascontiguousarray(costs), multipliers, np.ascontiguousarray(steps), *rows, *factors, charges)
    return sum(multipliers.tolist()) - sum(charges.tolist()), bits


def _places_of(lengths: Vector) -> Indices:
    return np.asarray(np.unique(lengths, return_inverse=True)[1])


def _factors(lengths: Vector) -> tuple[Unsigned, Indices, Unsigned, Indices]:
    """R and s, U and t of lengths d (k,): R 2^-s <= e^-d and e^d <= U 2^-t, with 2^61 <= R < 2^62 and U <= 2^62."""
    down = [_exp_minus_lower(nats) for nats in lengths.tolist()]
    # 2^123 / R is at most 2^62, and 2^(123 - s) / R is at least e^d.
    up = [(-(-(1 << 123) // factor), 123 - bits) for factor, bits in down]
    return (
        np.array([r for r, _ in down], np.uint64), np.array([s for _, s in down], np.int64),
        np.array([u for u, _ in up], np.uint64), np.array([t for _, t in up], np.int64),
    )  # fmt: skip


def _exp_minus_lower(length: float) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^-length and 2^61 <= R < 2^62, tight to a relative 2^-60 up to 128 nats."""
    exact = Fraction(min(length, _VACUOUS))
    # Taylor's series of e^x, x below 1/16, every term rounded up. The rest of the series is below its last term here.
    halvings = math.ceil(exact).bit_length() + 4
    x = -((-exact.numerator << _WORKING_BITS) // (exact.denominator << halvings))
    term = total = 1 << _WORKING_BITS
    k = 1
    while term > 1:
        term = -(-term * x // (k << _WORKING_BITS))
        total += term
        k += 1
    total += term
    for _ in range(halvings):
        total = -(-total * total >> _WORKING_BITS)
    # The inverse, rounded down, of an upper bound of e^length.
    bits = total.bit_length() + _FACTOR_BITS
    inverse = (1 << bits) // total
    drop = inverse.bit_length() - _FACTOR_BITS
    return inverse >> drop, bits - drop - _WORKING_BITS


@numba.njit(cache=True, nogil=True)
def _charge(costs, dual, steps, first, near, low, low_bits, high, high_bits, charges):  # type: ignore[no-untyped-def]
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
            if edge == first[v + 1] or near[edge] != p or low_bits[edge] >= _NOTHING_ARRIVES:
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
