"""The lower bound that the trees of a file prove: one pass over reports and places in integers, without pricing.

The bound and its proof are those of solvers/cone/pricing_trees.py, whatever the trees are. Costs and multipliers become
integers, cost 2^k rounded down. Sums are integers of at most 2^62. Along an edge of length d the factors are R 2^-s at
most e^-d and U 2^-t at least e^d, with 62 bits, and products are rounded so that the bound only falls. A place whose
amount would overflow hands nothing over: it is charged there instead. Small tables are proved in integers of any size,
without a compiler. verify_table.py proves the same in other code.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Unsigned, Vector
from mechdesign.problem.lattice import Edges

if TYPE_CHECKING:
    import xarray as xr

_VACUOUS = 128.0  # nats from which on nothing is handed over: factors beyond exceed the ratio of any two masses
_WORKING_BITS = 220  # of the series, 158 more than factors have
_SUM_BITS = 60  # of the sum of all costs of a report, and of all multipliers
_FACTOR_BITS = 62
NOTHING_ARRIVES = 126  # s from which 2^62 R 2^-s is below 1: edges longer than 44 nats
_SMALL = 100_000  # entries of the table up to which Python adds up its integers, in 0.1 s
_PLAIN_SUM_BITS = 120  # of the same sums there
_DOUBLES = Fraction(2) ** 1000


def tree_bound(mechanism: xr.Dataset, edges: Edges, cost: Matrix) -> float | None:
    """The bound of the multipliers `dual` for the cost (n, m), rounded down; None for a file without trees."""
    if "tree" not in mechanism or "dual" not in mechanism:
        return None
    dual, steps = mechanism["dual"].values, mechanism["tree"].values
    # Finite, so that numbers below cannot overflow.
    if not math.isfinite(float(np.abs(cost).sum() + np.abs(dual).sum())):
        return None
    prove = _plain_bound if cost.size <= _SMALL else _integer_bound
    bound, bits = prove(cost, dual, edges, steps)
    exact = bound * Fraction(1 << max(-bits, 0), 1 << max(bits, 0))
    # Multipliers of a forged file may prove less than any double.
    return math.nextafter(float(exact), -math.inf) if abs(exact) < _DOUBLES else -math.inf


def _integer_bound(cost: Matrix, dual: Vector, edges: Edges, steps: Unsigned) -> tuple[int, int]:
    """The bound in units of 2^-bits, and these bits."""
    from mechdesign.verification.tree_kernel import charge

    size = len(dual)
    bits = _SUM_BITS - math.frexp(float(np.abs(cost).sum(axis=0).max() + np.abs(dual).sum()))[1]
    # ldexp is exact, and floor too: doubles from 2^53 on are integers. Where it underflows, floor gives 0 or -1.
    costs, multipliers = (np.floor(np.ldexp(values, bits)).astype(np.int64) for values in (cost.T, dual))
    graph = edges.matrix(size).tocsr()
    graph.sort_indices()
    factors = [values[_places_of(graph.data)] for values in _factors(np.unique(graph.data))]
    charges = np.zeros(size, np.int64)
    rows = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    charge(np.ascontiguousarray(costs), multipliers, np.ascontiguousarray(steps), *rows, *factors, charges)
    return sum(multipliers.tolist()) - sum(charges.tolist()), bits


def _plain_bound(cost: Matrix, dual: Vector, edges: Edges, steps: Unsigned) -> tuple[int, int]:
    """The same in Python's integers, whose amounts cannot overflow."""
    size = len(dual)
    bits = _PLAIN_SUM_BITS - math.frexp(float(np.abs(cost).sum(axis=0).max() + np.abs(dual).sum()))[1]
    multipliers = _scaled_down(dual, bits)
    lengths, place = np.unique(edges.length, return_inverse=True)
    factors = list(zip(*(values.tolist() for values in _factors(lengths)), strict=True))
    handed = {}
    for tail, head, k in zip(edges.tail.tolist(), edges.head.tolist(), place.tolist(), strict=True):
        handed[tail, head] = handed[head, tail] = factors[k]
    charges = [0] * size
    parents = (np.arange(size) + steps.astype(np.int64)) & 0xFFFF
    for own, parent in zip(cost.T, parents.tolist(), strict=True):
        rest = [amount - charged for amount, charged in zip(_scaled_down(own, bits), multipliers, strict=True)]
        for v in _children_first(parent):
            p, amount = parent[v], rest[v]
            low, low_bits, high, high_bits = handed.get((v, p), (0, NOTHING_ARRIVES, 0, 0))
            if low_bits < NOTHING_ARRIVES:
                rest[p] += (amount * low >> low_bits) if amount >= 0 else _shift_right(amount * high, high_bits)
                rest[v] = 0
        charges = [max(charge, -amount) for charge, amount in zip(charges, rest, strict=True)]
    return sum(multipliers) - sum(charges), bits


def _scaled_down(values: Vector, bits: int) -> list[int]:
    """floor(value 2^bits), exactly."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return [_shift_right(m, 53 - e - bits) for m, e in zip(whole.tolist(), exponent.tolist(), strict=True)]


def _shift_right(value: int, bits: int) -> int:
    """floor(value 2^-bits)."""
    return value >> bits if bits >= 0 else value << -bits


def _children_first(parent: list[int]) -> list[int]:
    """Places with a parent, after all their children; without those in a circle, and their ancestors."""
    size = len(parent)
    children = [0] * size
    for v, p in enumerate(parent):
        if p != v and p < size:
            children[p] += 1
    order = [v for v in range(size) if children[v] == 0]
    # The list grows while it is read.
    for v in order:
        p = parent[v]
        if p != v and p < size:
            children[p] -= 1
            if children[p] == 0:
                order.append(p)
    return order


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
