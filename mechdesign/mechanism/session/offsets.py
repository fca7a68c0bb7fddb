"""The integers of a test "is the place far from s?" whose answers "no" cost nothing, and the inequalities they satisfy.

Theorem (sparse vector technique: Dwork, Naor, Reingold, Rothblum and Vadhan 2009; Lyu, Su and Li 2017; here with a
metric and integers). Let f_s be whole numbers with |f_s(u) - f_s(v)| <= d(u, v) / h for all places u, v. An offset
r in 0..R is drawn with probability p(r) once; at every tick the answer is "far" with probability q(f_s(x_t) - r),
for some s that depends on the transcript, until it is "far" for the first time. Let a = e^{h e1}, b = e^{h e2 / 2}, and

    (1) p(r) <= a p(r + 1) for r < R - 1        (2) p(R - 1) <= (a - 1) p(R)
    (3) q nondecreasing, 0 <= q <= 1            (4) q(j) <= b q(j - 1)        (5) q(j) = q(j0) for j <= j0 = max f - R

Then the answers satisfy P(z|x) <= e^{(e1 + e2) d_inf} P(z|x') for all traces x, x'; where "far" is not among them, even
without e2.

Proof. D = floor(d_inf / h) bounds |f(x_t) - f(x'_t)|, whole numbers. Extend p beyond R - 1 by p(R) (1 - 1/a) a^{R - r},
r >= R, whose sum is p(R); by (5) every answer has the same probability at r = R as at any r >= R, whatever the place,
so that answers have the same law with r drawn from the extension. By (1), and by (2) at r = R - 1, it satisfies
p(r) <= a p(r + 1) everywhere, hence p(r) <= a^D p(r + D). Compare x at r with x' at r + D. "Not far" at a tick:
f(x') - r - D <= f(x) - r, and q is nondecreasing, so that 1 - q does not fall: ratio at most 1, at any number of ticks.
"Far": f(x') - r - D >= f(x) - r - 2 D, ratio at most b^{2 D} by (4) and (5). So every term of P(z|x) is at most
a^D b^{2 D} = e^{h D (e1 + e2)} times a term of P(z|x'), and no two terms are the same one. With h D <= d_inf this is
the claim. Ticks outside a window, where x = x', obey the same two bounds.

p and q are whole numbers over 2^62, a and b lower bounds R 2^-s of the exponentials: `breaches` looks at nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError, InputError
from mechdesign.mechanism.table.certificate import ROW_BITS, ROW_SUM, exp_lower

MOST_LEVELS = 1 << 14  # of an offset, and of a distance
_FAINT = 14.0  # nats below 1 at which the probability of "far" stops falling


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """p (R + 1,) and q (R + 1,), whole numbers over 2^62; q[k] is the probability of "far" at j = max f - R + k.

    far: max f. Everything that a test draws from, and all that its certificate is about.
    """

    p: tuple[int, ...]
    q: tuple[int, ...]
    far: int

    def describe(self) -> dict[str, Any]:
        """The integers as JSON holds them."""
        return {"p": list(self.p), "q": list(self.q), "far": self.far}

    @property
    def top(self) -> int:
        """R."""
        return len(self.p) - 1

    def chance(self, distance: int, offset: int) -> int:
        """q(distance - offset), over 2^62."""
        return self.q[max(distance - offset - self.far + self.top, 0)]

    def drawn(self, word: int) -> int:
        """The offset for 62 uniform bits: the number of cumulative sums that do not exceed them. Reads all of p."""
        total, found = 0, 0
        for part in self.p:
            total += part
            found += total <= word
        return found

    def prior(self) -> NDArray[np.float64]:
        """P in floating point, for filters."""
        return np.array(self.p, float) / ROW_SUM

    def chances(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        """Q (R + 1, n) of every offset at distances (n,), in floating point, for filters."""
        at = distance[None, :] - np.arange(self.top + 1)[:, None] - self.far + self.top
        return (np.array(self.q, float) / ROW_SUM)[np.maximum(at, 0)]


def breaches(made: Offsets, once: Fraction, slope: Fraction) -> int:
    """How many of the inequalities the integers break, for h e1 = once and h e2 = slope. Zero proves the theorem.

    Raises: InputError for vectors that are no distribution, no probabilities, or of other lengths.
    """
    if len(made.p) != len(made.q) or len(made.p) < 2 or sum(made.p) != ROW_SUM or min(made.p) < 0:
        raise InputError(
            "are no distribution over offsets",
            field="offsets",
            value=f"{len(made.p)} and {len(made.q)}, sum {sum(made.p)}",
            remedy="use an unaltered file",
        )
    if not (0 <= made.far <= made.top) or min(made.q) < 0 or max(made.q) > ROW_SUM:
        raise InputError("are no probabilities", field="offsets", value=made.far, remedy="use an unaltered file")
    (a, bits), (b, shift) = exp_lower(below(once)), exp_lower(below(slope / 2))
    bad = sum((left << bits) > a * right for left, right in zip(made.p[:-2], made.p[1:-1], strict=True))
    bad += (made.p[-2] << bits) > (a - (1 << bits)) * made.p[-1]
    for left, right in zip(made.q[1:], made.q[:-1], strict=True):
        bad += left < right or (left << shift) > b * right
    return bad


def make_offsets(far: int, threshold: int, once: Fraction, slope: Fraction) -> Offsets:
    """Geometric p, its tail in its last entry, and q(j) = min(1, b^{j - threshold}), as integers without breaches.

    once = h e1 and slope = h e2, positive. R = far + 14 / (h e2 / 2), so that q falls to e^-14 where it becomes
    constant, but at most three times far. Raises: InputError where R would exceed 2^14; DesignError where rounding
    leaves a breach.
    """
    top = far + min(2 * far, math.ceil(2 * _FAINT / float(slope))) + 1
    if top > MOST_LEVELS:
        raise InputError("too many levels", field="units", value=top, remedy="use fewer units for a neighbour")
    (a, bits), (b, shift) = exp_lower(below(once)), exp_lower(below(slope / 2))
    p = _geometric(a, bits, top)
    q = [ROW_SUM]
    for _ in range(top + 1):
        q.append(max(-((-q[-1] << shift) // b), 1))  # rounded up: q(j) <= b q(j - 1)
    lowest = far - top
    vector = tuple(q[max(threshold - lowest - k, 0)] for k in range(top + 1))
    made = Offsets(p=p, q=vector, far=far)
    if breaches(made, once, slope):
        raise DesignError("the integers of the test break its inequalities", field="rule", remedy="report this")
    return made


def _geometric(a: int, bits: int, top: int) -> tuple[int, ...]:
    """p(r) close to (1 - 1/a) a^-r with (1) and (2), a standing for a / 2^bits."""
    first, slack = ROW_SUM - (ROW_SUM << bits) // a, 1
    while first > slack:
        p = [first - slack]
        for _ in range(top - 1):
            p.append(-((-p[-1] << bits) // a))
        rest = ROW_SUM - sum(p)
        if rest > 0 and (p[-1] << bits) <= (a - (1 << bits)) * rest:
            return (*p, rest)
        slack *= 2
    raise InputError(
        "is so small that no whole numbers hold its offsets", field="offset", value=2**-ROW_BITS, remedy="use 0.1"
    )


def below(value: Fraction) -> float:
    """The largest double that does not exceed a fraction."""
    found = float(value)
    return math.nextafter(found, -math.inf) if Fraction(found) > value else found
