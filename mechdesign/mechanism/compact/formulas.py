r"""What the 5 bytes of a place stand for: lengths, weights and bounds, in whole numbers from whole numbers.

Places are the cells of a rectangle of R x C, the last axis fastest: place p = i C + j. The n1 x n2 secrets are those
cells that are `frame` or more cells from the border, R = n1 + 2 frame, C = n2 + 2 frame. A place has

    l   level, 1 to 65,535, in `level_unit` nats per unit of length
    s   potential, -32,768 to 32,767, in 2^-15 nats; it approximates ln S(u), up to a constant, and is 0 in the frame
    b   weight, 0 to 255

**Edges.** Neighbours of (i, j) are (i, j) + k and (i, j) - k that lie in the rectangle, for k = (1, 0), (0, 1), (1, 1),
(1, -1) and, with 16 neighbours, (2, 1), (2, -1), (1, 2), (1, -2). The length of the edge from o to e = o + k, in
2^-48 nats, is d = A_k m, with m a sum of 24 levels, those of o and e and of cells between them:

    (1, 0), (0, 1)    12 (l(o) + l(e))
    (1, b)             8 (l(o) + l(e)) + 4 (l(i + 1, j) + l(i, j + b))
    (2, b)             5 (l(o) + l(e)) + 6 (l(i + 1, j) + l(i + 1, j + b)) + l(i, j + b) + l(i + 2, j)
    (1, 2 b)           5 (l(o) + l(e)) + 6 (l(i, j + b) + l(i + 1, j + b)) + l(i + 1, j) + l(i, j + 2 b)

    A_k = floor(2^48 level_unit |k| / 24),  |k|^2 = (k_1 h_1)^2 + (k_2 h_2)^2,  h the sides of a cell,

one A for (1, 0), for (0, 1), for (1, 1) and (1, -1), for (2, 1) and (2, -1), for (1, 2) and (1, -2): `advance`, in this
order (three of them with 8 neighbours). `level_unit` and h are doubles, taken as the exact numbers that they are.
Statement. d is never above 2^48 times the line integral of eps along the segment from centre to centre, eps the
function that is level_unit l at the centres and bilinear between them; it is below by less than m < 2^21.
Proof. Along (1, 0) eps is linear. Along (1, b) it is (1 - t)^2 l(o) + t (1 - t) (l(i + 1, j) + l(i, j + b)) + t^2 l(e),
whose integral is 1/3, 1/6, 1/6, 1/3 of the four. Along (2, b) the first half of the segment lies in the square of
(i, j), (i + 1, j), (i, j + b), (i + 1, j + b), on which the weights of these four integrate to 5/12, 1/3, 1/12, 1/6;
the second half is the first turned around; together 5/24 for both ends, 6/24 for (i + 1, j) and (i + 1, j + b), 1/24
for the other two. And A_k is rounded down.

**The claim.** P(y|u) <= exp(d(u, u')) P(y|u') for all reports y and all secrets u, u', d the shortest-path distance of
the edges between secrets, with the lengths above. No edge of the claim has a cell of the frame between its ends.

**Units of the kernel.** With `grain`, `step` (both in 2^-48 nats) and `cap` of the header, an edge has the units

    x = max(1, min(cap, floor(c / grain)))
    c = d                                                        where an end lies in the frame
    c = max(d - 2^29 - 2^33 |s(o) - s(e)|, floor(3 d / 10))      between secrets

and q(u, p) is the least sum of units over paths from u to p, or cap, whichever is smaller; cap + largest x <= 65,535.
Weights are W(p) = M[b mod 16] 2^(b div 16), with M[a] = 2^(12 + a / 16) rounded to the nearest (MANTISSAS); so
2^12 <= W < 2^28. The kernel is E(0) = 2^58, E(t + 1) = ceil(E(t) 2^shift / ratio) for t < cap, where ratio 2^-shift is
e^(step 2^-48) rounded down, 2^61 <= ratio < 2^62 (`exp_lower` of mechanism/table/certificate.py).

**The mechanism** is P(p|u) = E(q(u, p)) W(p) / S(u), S(u) the sum over all places p, frame included. The report of a
place (i, j) is the secret in row min(max(i - frame, 0), n1 - 1) and column min(max(j - frame, 0), n2 - 1), with number
row n2 + column. It is private as claimed if S(v) <= R_e S(u) and S(u) <= R_e S(v) for every edge e = (u, v) between
secrets, with ln R_e <= (d - x step) 2^-48 (mechanism/factored/certificate.py proves it; R_e is `exp_lower` of that
difference rounded down to whole 2^-20 nats).

**A bound of S.** With `bound` = (g, k), 2^30 <= g < 2^31, 0 <= k <= 64, G(0) = g, G(a + 1) = ceil(G(a) RISE / 2^30),
RISE = ceil(2^30 e^(1/128)) = 1,082,163,286:

    Sbar(u) = G(t div 256) (2^22 + 129 (t mod 256)) 2^k,      t = s(u) + 32,768.

It follows exp(s(u) 2^-15) to within 2^-15. That S(u) <= Sbar(u) <= 4 S(u) for every secret is not a matter of that: it
is a part of what is certified, secret by secret.

No number is large: d < 2^53 since A_k < 2^32 is required and m <= 24 * 65,535 < 2^20.6; E(q) W < 2^86;
S(u) < 2^118 for fewer than 2^31 places; Sbar(u) < 2^34 (2^22 + 2^15.1) 2^64 < 2^121. 3 d may exceed 2^53, but
floor(3 d / 10) = 3 (d div 10) + floor(3 (d mod 10) / 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

MANTISSAS = (4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845)
WEIGHTS = np.array([MANTISSAS[b % 16] << b // 16 for b in range(256)], np.uint32)
RISE = 1_082_163_286  # ceil(2^30 e^(1/128))
LOOSEST = 4  # times a sum that its bound may be
POTENTIAL_BITS = 15  # potentials are whole multiples of 2^-15 nats
LARGEST_LEVEL = 65_535
STENCILS = {8: 3, 16: 5}  # neighbours, and kinds of steps
STEPS = ((1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2))
_KINDS = ((1, 0), (0, 1), (1, 1), (2, 1), (1, 2))
_SLACK = np.int64(1 << 29)  # 2^-48 nats that an edge keeps free for the rounding of its certificate
_POTENTIAL = np.int64(1 << 48 - POTENTIAL_BITS)

Along = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def advances(level_unit: float, cell: tuple[float, ...], stencil: int) -> tuple[int, ...]:
    """A_k of the kinds of steps, exact: three with 8 neighbours, five with 16."""
    quantum = Fraction(level_unit) * (1 << 48) / 24
    first, second = (Fraction(side) for side in cell)
    squares = (quantum**2 * ((a * first) ** 2 + (b * second) ** 2) for a, b in _KINDS[: STENCILS[stencil]])
    return tuple(math.isqrt(math.floor(square)) for square in squares)


def lengths(level: NDArray[np.uint16], advance: tuple[int, ...], stencil: int) -> Iterator[Along]:
    """For every step of the stencil in turn the edges along it: numbers o (m,) and e (m,) of their ends, and their
    lengths d (m,) in 2^-48 nats. level (R, C).
    """
    rows, columns = level.shape
    number = np.arange(rows * columns).reshape(rows, columns)
    for a, b in STEPS[: stencil // 2]:
        here = slice(max(0, -b), max(0, -b, columns - max(0, b)))
        total = _weighed(level.astype(np.int64), a, b, here)
        origin = number[: max(0, rows - a), here].ravel()
        yield origin, origin + (a * columns + b), (advance[_KINDS.index((a, abs(b)))] * total).ravel()


def _weighed(level: NDArray[np.int64], a: int, b: int, here: slice) -> NDArray[np.int64]:
    """Sums m of the module docstring, of the edges along (a, b) from the columns `here`."""
    rows = max(0, len(level) - a)

    def at(i: int, j: int) -> NDArray[np.int64]:
        return level[i : i + rows, here.start + j : here.stop + j]

    ends, side = at(0, 0) + at(a, b), 1 if b > 0 else -1
    if a == 0 or b == 0:
        return 12 * ends
    if a == abs(b):
        return 8 * ends + 4 * (at(1, 0) + at(0, b))
    if a == 2:
        return 5 * ends + 6 * (at(1, 0) + at(1, b)) + at(0, b) + at(2, 0)
    return 5 * ends + 6 * (at(0, side) + at(1, side)) + at(1, 0) + at(0, b)


def kernel_lengths(edges: Along, inside: NDArray[np.bool_], potential: NDArray[np.int16]) -> NDArray[np.int64]:
    """Lengths c (m,) of edges along a step, in 2^-48 nats; inside (k,), whether a place is a secret; potential (k,)."""
    origin, end, length = edges
    apart = np.abs(potential[origin].astype(np.int64) - potential[end])
    least = 3 * (length // 10) + 3 * (length % 10) // 10
    both = inside[origin] & inside[end]
    return np.where(both, np.maximum(length - _SLACK - _POTENTIAL * apart, least), length)


def in_units(nats: NDArray[np.int64], grain: int, cap: int) -> NDArray[np.uint16]:
    """Units x (m,) of lengths c (m,)."""
    return np.clip(nats // grain, 1, cap).astype(np.uint16)


def growing(first: int) -> list[int]:
    """G(0) = first, ..., G(255)."""
    found = [first]
    while len(found) < 256:
        found.append(-(-found[-1] * RISE >> 30))
    return found


def bounds(bound: tuple[int, ...], potential: NDArray[np.int16]) -> list[int]:
    """Sbar (n,) of potentials (n,)."""
    grown = np.array(growing(bound[0]), np.uint64)
    shifted = (potential.astype(np.int64) + (1 << 15)).astype(np.uint64)
    fine = np.uint64(1 << 22) + np.uint64(129) * (shifted & np.uint64(255))
    return [int(value) << bound[1] for value in (grown[shifted >> np.uint64(8)] * fine).tolist()]
