r"""What the 5 bytes of a place stand for: lengths, weights and bounds, in whole numbers from whole numbers.

Places are the cells of a rectangle of R x C, the last axis fastest: place p = i C + j. The n1 x n2 secrets are those
cells that are `frame` or more cells from the border, R = n1 + 2 frame, C = n2 + 2 frame. A place has

    l   level, 1 to 65,535, in `level_unit` nats per unit of length
    s   potential, -32,768 to 32,767, in 2^-15 nats; it approximates ln S(u), up to a constant, and is 0 in the frame
    b   weight, 0 to 255

**Edges.** Neighbours of (i, j) are (i, j) + k and (i, j) - k that lie in the rectangle, for k = (1, 0), (0, 1), (1, 1),
(1, -1) and, with 16 neighbours, (2, 1), (2, -1), (1, 2), (1, -2). The length of the edge from o to e = o + k, in units
of 2^-48 nats, is d = A_k m, with m a sum of 24 levels, those of o and e and of cells between them:

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
(i, j), (i + 1, j), (i, j + b), (i + 1, j + b), on which the weights of these four integrate to 5/12, 1/3, 1/12, 1/6; the
second half is the first turned around; together 5/24 for both ends, 6/24 for (i + 1, j) and (i + 1, j + b), 1/24 for
the other two. And A_k is rounded down.

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

**A bound of S.** With `bound` = (g, k), 2^30 <= g < 2^31, 0 <= k <= 64, and G(0) = g, G(a + 1) = ceil(G(a) RISE / 2^30),
RISE = ceil(2^30 e^(1/128)):

    Sbar(u) = G(t div 256) (2^22 + 129 (t mod 256)) 2^k,      t = s(u) + 32,768.

It follows exp(s(u) 2^-15) to within 2^-15. That S(u) <= Sbar(u) for every secret is not a matter of that: it is a part
of what is certified, secret by secret.

No number is large: d < 2^53 since A_k < 2^32 is required and m <= 24 * 65,535 < 2^20.6; E(q) W < 2^86;
S(u) < 2^118 for fewer than 2^31 places; Sbar(u) < 2^34 (2^22 + 2^15.1) 2^64 < 2^121. 3 d may exceed 2^53, but
floor(3 d / 10) = 3 (d div 10) + floor(3 (d mod 10) / 10).
"""
