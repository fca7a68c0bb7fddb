"""What is true of the parts of an exported table, found by fractions and brute force: no code of the verifier."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, product

from exported import Forgery

PRINTED = Fraction(1, 10**8)  # twice what rounding hides of the coarsest number of a claim, one of nine digits
START = "One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all"
BUDGET = "one report; k reports cost k times the epsilon"
REACH = {"8": 1, "16": 2}  # cells along an axis to a neighbour, with no cell between
Lengths = dict[tuple[int, int], Fraction]


def holds(f: Forgery) -> bool:
    """Whether masses, edges and the words of the claim are as said, numbers of the claim to the digits printed."""
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
    return counts == [str(n), str(m), str(e)] and json.loads(f.said["budget"]) == BUDGET and _claimed(f, lengths)


def _claimed(f: Forgery, lengths: Lengths) -> bool:
    """Whether the claim is about these secrets and edges, and every pair of secrets is as close as its words say."""
    n, e = len(f.secrets), len(f.edges)
    start, words = f.claim.split(", where d is ")
    words, end = words.split("; checked on ")
    tails, heads, digits = zip(*f.listed(), strict=True)
    packed = struct.pack(f"<{2 * e}q{e}d", *tails, *heads, *map(float.fromhex, digits))
    listed = f"{e} edges (list {hashlib.sha256(packed).hexdigest()[:12]}). k reports cost k times as much."
    apart = _shortest(n, lengths)
    if end != listed or not start.startswith(f"{START} {n} secrets (") or len(apart) < n * (n - 1):
        return False
    if words == "the shortest-path distance of the edges listed in this file":
        return True
    times, words = words.split(" times the ", 1) if words[0].isdigit() else ("1", words.removeprefix("the "))
    if words.startswith("discrete metric, "):
        return max(apart.values()) <= _within(times) * _within(words.split()[2])
    if words.split(" nats per ")[1].split(",")[0] != ("unit" if f.said["unit"] == "1" else f.said["unit"]):
        return False
    if words.startswith("shortest-path distance along the streets listed in this file"):
        return True
    places = [[Fraction(text) for text in place[:2]] for place in f.secrets]
    square = {pair: sum((a - b) ** 2 for a, b in zip(*(places[u] for u in pair), strict=True)) for pair in apart}
    if words.startswith("Euclidean distance over all pairs times "):
        limit = _within(times) * _within(words.split()[6])
        return all(apart[pair] ** 2 <= limit**2 * square[pair] for pair in apart)
    limit = _within(times) * _within(words.split(" to ")[1].split()[0])
    if any(length**2 > limit**2 * square[pair] for pair, length in lengths.items()):
        return False
    if math.prod(map(int, start.split(" of a ")[1].split(" grid")[0].split(" x "))) > n:
        return True  # the table does not say which steps masked cells cut off
    ranks = [sorted(set(axis)) for axis in zip(*places, strict=True)]
    cells = [[rank.index(x) for rank, x in zip(ranks, place, strict=True)] for place in places]
    steps = {
        (u, v): [abs(a - b) for a, b in zip(cells[u], cells[v], strict=True)] for u, v in combinations(range(n), 2)
    }
    reach = REACH[words.split("-neighbour")[0].split()[-1]]
    return {pair for pair, step in steps.items() if max(step) <= reach and math.gcd(*step) == 1} <= set(lengths)


def _shortest(n: int, lengths: Lengths) -> Lengths:
    """The shortest-path distance of every pair that edges join (Floyd and Warshall)."""
    apart = dict(lengths)
    for w, u, v in product(range(n), repeat=3):
        if u != v and (u, w) in apart and (w, v) in apart:
            past = apart[u, w] + apart[w, v]
            apart[u, v] = min(apart.get((u, v), past), past)
    return apart


def _within(text: str) -> Fraction:
    """The largest number that a number of a claim can stand for."""
    return Fraction(text) * (1 + PRINTED)
