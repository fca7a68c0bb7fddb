"""What is true of the parts of an exported table, found by fractions and brute force: no code of the verifier."""

from __future__ import annotations

import json
import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, product

from exported import Forgery

REACH = {8: 1, 16: 2}  # cells along an axis to a neighbour, with no cell between
Lengths = dict[tuple[int, int], Fraction]


def holds(f: Forgery) -> bool:
    """Whether masses, edges and the claim are as said."""
    n, m, e = len(f.secrets), len(f.reports), len(f.edges)
    texts = [text for row in f.masses for text in row] + (f.sums or [])
    if any(not text.isascii() or not text.isdigit() or str(int(text)) != text for text in texts):
        return False
    rows = [list(map(int, row)) for row in f.masses]
    sums = [2**62] * n if f.sums is None else list(map(int, f.sums))
    if any(min(row) < 1 or sum(row) != total or len(row) != m for row, total in zip(rows, sums, strict=True)):
        return False
    lengths: Lengths = {}
    for tail, head, digits in f.listed():
        if {type(tail), type(head)} != {int} or float.fromhex(digits).hex() != digits or not 0 <= tail != head >= 0:
            return False
        if max(tail, head) >= n or (tail, head) in lengths:
            return False
        lengths[tail, head] = lengths[head, tail] = Fraction(float.fromhex(digits))
    for (u, v), length in lengths.items():
        power = Fraction(Context(prec=60).exp(Decimal(min(float(length), 300.0))).next_plus(Context(prec=60)))
        if any(a * sums[v] > power * b * sums[u] for a, b in zip(rows[u], rows[v], strict=True)):
            return False
    counts = [f.said[name].strip() for name in ("secrets", "reports", "edges")]
    return counts == [str(n), str(m), str(e)] and _claimed(f, lengths)


def _claimed(f: Forgery, lengths: Lengths) -> bool:
    """Whether every pair of secrets is as close as the metric of the claim says, and cells are those of its grid."""
    n, claim = len(f.secrets), f.claim
    metric, domain, kind = claim["metric"], claim["domain"], claim["metric"]["kind"]
    apart = _shortest(n, lengths)
    if domain["unit"] != json.loads(f.said["unit"]) or len(apart) < n * (n - 1):
        return False
    places = [[Fraction(text) for text in place[:2]] for place in f.secrets]
    cells = []
    if domain["kind"] == "grid":
        sides, low = ([Fraction(x) for x in domain[name]] for name in ("cell", "origin"))
        for place in places:
            at = [(x - start) / side - Fraction(1, 2) for x, start, side in zip(place, low, sides, strict=True)]
            cells.append(tuple(map(round, at)))
            if max(abs(x - k) for x, k in zip(at, cells[-1], strict=True)) > Fraction(1, 10**5):
                return False
        inside = all(0 <= k < size for cell in cells for k, size in zip(cell, domain["shape"], strict=True))
        if not inside or len(set(cells)) < n:
            return False
    if kind in ("graph", "streets"):
        return True
    levels = [at for row in metric["level"]["eps"] for at in row] if kind == "eikonal" else [metric["epsilon"]]
    limit = Fraction(max(levels)) * Fraction(metric["multiplier"])
    if kind == "discrete":
        return max(apart.values()) <= limit
    square = {pair: sum((a - b) ** 2 for a, b in zip(*(places[u] for u in pair), strict=True)) for pair in apart}
    if kind == "euclidean":
        return all(apart[pair] ** 2 <= limit**2 * square[pair] for pair in apart)
    if any(length**2 > limit**2 * square[pair] for pair, length in lengths.items()):
        return False
    if math.prod(domain["shape"]) > n:
        return True  # the table does not say which steps masked cells cut off
    steps = {
        (u, v): [abs(a - b) for a, b in zip(cells[u], cells[v], strict=True)] for u, v in combinations(range(n), 2)
    }
    reach = REACH[metric["stencil"]]
    return {pair for pair, step in steps.items() if max(step) <= reach and math.gcd(*step) == 1} <= set(lengths)


def _shortest(n: int, lengths: Lengths) -> Lengths:
    """The shortest-path distance of every pair that edges join (Floyd and Warshall)."""
    apart = dict(lengths)
    for w, u, v in product(range(n), repeat=3):
        if u != v and (u, w) in apart and (w, v) in apart:
            past = apart[u, w] + apart[w, v]
            apart[u, v] = min(apart.get((u, v), past), past)
    return apart
