"""A black-box auditor: how large an epsilon do draws of two secrets refute?

It uses only reports of a mechanism. Half of the draws choose an event, the other half test it. Let k of n draws of one
secret be in the event, and l of n draws of the other. Chernoff's bound (1952) gives p with P(X >= k) <= doubt / 2 for
chances below p, and q likewise above. Then ln(p / q) / d is below the true epsilon, except with probability `doubt`.
Standard library only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

HALVINGS = 60  # of the interval that holds a bound


def divergence(share: float, chance: float) -> float:
    """Kullback-Leibler divergence of a coin with `share` from one with `chance`, 0 < chance < 1, in nats."""
    parts = ((share, chance), (1 - share, 1 - chance))
    return sum(a * math.log(a / b) for a, b in parts if a > 0)


def bounds(count: int, draws: int, doubt: float) -> tuple[float, float]:
    """Chances below and above which so many of the draws have a chance of at most `doubt` each."""
    share, most = count / draws, -math.log(doubt) / draws

    def furthest(end: float) -> float:
        near, far = share, end
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            if 0 < middle < 1 and divergence(share, middle) <= most:
                near = middle
            else:
                far = middle
        return far

    return (furthest(0.0) if count else 0.0), (furthest(1.0) if count < draws else 1.0)


def event(first: Sequence[Hashable], second: Sequence[Hashable], doubt: float) -> set[Hashable]:
    """The reports, those most telling first, whose event refutes most on these draws."""
    one, other = Counter(first), Counter(second)
    ranked = sorted(one, key=lambda report: (one[report] + 1) / (other[report] + 1), reverse=True)
    best, chosen, k, l = -math.inf, 1, 0, 0
    for size, report in enumerate(ranked, 1):
        k, l = k + one[report], l + other[report]
        low, high = bounds(k, len(first), doubt)[0], bounds(l, len(second), doubt)[1]
        if low > 0 and math.log(low / high) > best:
            best, chosen = math.log(low / high), size
    return set(ranked[:chosen])


def refuted_epsilon(
    first: Sequence[Hashable], second: Sequence[Hashable], distance: float, doubt: float = 1e-9
) -> float:
    """The largest epsilon that draws of two secrets at a distance refute, but for a chance of `doubt`; 0 for none."""
    half, other = len(first) // 2, len(second) // 2
    chosen = event(first[:half], second[:other], doubt / 2)
    k = sum(report in chosen for report in first[half:])
    l = sum(report in chosen for report in second[other:])
    low, high = bounds(k, len(first) - half, doubt / 2)[0], bounds(l, len(second) - other, doubt / 2)[1]
    return max(0.0, math.log(low / high) / distance) if low > 0 else 0.0
