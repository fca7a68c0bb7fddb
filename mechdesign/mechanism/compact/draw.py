r"""One report from a compact map: the same place from the same random bytes, whoever reads the map.

**The order of places.** Seen from a secret u, the places with q(u, p) < cap are put in order of (q(u, p), p): nearer
ones first, among equally near ones the lower number first. Call them p_1, p_2, ..., p_B; p_1 = u. Since no edge has
fewer than 1 unit, the places at distance t are all known once those below t are settled: a search in buckets of one
unit, each bucket sorted by number, or a heap of (q, p), meets them in this order and can stop after any of them.

**The intervals.** With E, W, S of formulas.py, T the sum of W over all places, and floor = E(cap):

    a_i = (E(q(u, p_i)) - floor) W(p_i),       L = a_1 + ... + a_B,        S(u) = L + floor T

The whole numbers 0 <= t < S(u) are dealt out: first a_1 of them to p_1, then a_2 to p_2, ..., a_B to p_B; then, from L
on, floor W(p) of them to every place p in the order of its number. So t belongs

    to p_i where a_1 + ... + a_(i-1) <= t < a_1 + ... + a_i;
    else, where t < S(u), to the first p with W(0) + ... + W(p) > (t - L) div floor.

**The draw.** Let n be the number of binary digits of Sbar(u), a whole number under 2^121.

    1. Take 16 random bytes, as a little-endian whole number z < 2^128; t = z div 2^(128 - n).
    2. If t >= Sbar(u), go to 1.
    3. Settle places in order, until the sum of their a_i exceeds t: the last one is drawn. Only where no place is left
       and t >= L: if t < S(u), the place is found in the second part; else go to 1.

The report is the cell of that place (formulas.py).
Statement. If S(u) <= Sbar(u), every place is drawn with probability E(q(u, p)) W(p) / S(u), exactly, from independent
uniform bytes; a round of 1 to 3 ends with probability S(u) / 2^n, and one that passed 2 with S(u) / Sbar(u).
Proof. t is uniform on the 2^n > Sbar(u) whole numbers below 2^n. Those below S(u) <= Sbar(u) pass 2, and are dealt out
as above, a_i + floor W(p_i) = E(q(u, p_i)) W(p_i) of them to a place of the ball, floor W(p) = E(q(u, p)) W(p) to any
other, since q(u, p) = cap there. All others lead back to 1, where new bytes are independent of old ones: the place,
given that a round ends, is uniform over the t < S(u).

S(u) itself has to be known only in the last line of 3, and there the whole ball is settled. How many places are settled
depends on how far the report lies from the secret: what takes so long tells of the distance, so that a device answers
at a fixed time. With whole rounds instead of this order nothing else changes.
"""
