"""The lower bound that multipliers of the row sums and one parent for each report and place prove, in rationals."""

from __future__ import annotations

from fractions import Fraction

from reference.exact import exponential

BITS = 300


def proved_by_trees(
    cost: list[list[float]], dual: list[float], edges: list[tuple[int, int, float]], parents: list[list[int]]
) -> Fraction:
    """sum of dual less the largest charge at each place; ValueError unless the parents are trees of edges.

    cost[y][u] is that of secret u. A place with the sum T hands T e^-d to its parent where T >= 0, and T e^d where
    T < 0: rays of the privacy cone change by at most e^d along an edge, either way.
    """
    lengths = {(u, v): Fraction(d) for tail, head, d in edges for u, v in ((tail, head), (head, tail))}
    charge = [Fraction(0)] * len(dual)
    for costs, parent in zip(cost, parents, strict=True):
        rest = [Fraction(c) - Fraction(x) for c, x in zip(costs, dual, strict=True)]
        for v in deepest_first(parent):
            if parent[v] != v:
                # An upper bound of e^d, whichever way: the handed amount is rounded down.
                factor = Fraction(exponential(lengths[v, parent[v]], BITS)[1], 1 << BITS)
                handed = rest[v] / factor if rest[v] >= 0 else rest[v] * factor
                rest[parent[v]] += Fraction((handed.numerator << BITS) // handed.denominator, 1 << BITS)
                rest[v] = Fraction(0)
        charge = [max(old, -left) for old, left in zip(charge, rest, strict=True)]
    return sum(map(Fraction, dual), Fraction(0)) - sum(charge)


def deepest_first(parent: list[int]) -> list[int]:
    """The places of a tree, those with most edges to the root first."""
    depths = []
    for place in range(len(parent)):
        depth, above = 0, place
        while parent[above] != above:
            depth, above = depth + 1, parent[above]
            if depth > len(parent):
                raise ValueError("a cycle")
        depths.append(depth)
    return sorted(range(len(parent)), key=lambda v: -depths[v])
