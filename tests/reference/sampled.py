"""Is a large factored file private on a sample of its edges? Rows of both ends of every edge, from the statement alone.

The claim of a file whose table would not fit is a list of edges: a bound on each of them holds along shortest paths.
A sample does not prove it. It finds an error on a share p of the edges with probability 1 - (1 - p)^count.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from reference import factored, geometry
from reference.claims import read_claim
from reference.exact import Length, within
from reference.reading import File, Unreadable


def sampled_untruths(file: Mapping[str, Any], claim: str, count: int, *, seed: int = 0) -> list[str]:
    """Return the untruths about `count` edges of the claim of a factored file, as `untruths` has it for all of them.

    Both rows of an edge are built up again and summed, and P(k|u) <= e^d P(k|v) is compared both ways where the
    largest and the least ratio over the columns k are; the weights cancel.
    Cost: half a second a row of 40,000 places and 60,000 columns of 15 generators, two rows an edge.
    """
    read = File(attrs=dict(file["attrs"]), variables=dict(file["variables"]))
    said = read_claim(claim, read)
    held = factored.parts(read)
    if not len(held.inner) == said.secrets == len(held.stored_sums):
        raise Unreadable("secrets in different numbers")
    count = min(count, said.edges)
    if said.kind == "eikonal":
        lengths = geometry.some_eikonal(read, said.stencil, said.times, count, Random(seed))
    elif said.kind == "graph":
        kinds = (("tail", "int64"), ("head", "int64"), ("length", "float64"))
        lists = [read.values(f"claim_{part}", ("claimed",), kind) for part, kind in kinds]
        whole = geometry.listed_lengths(lists, said.secrets, said.times)
        lengths = {pair: whole[pair] for pair in Random(seed).sample(sorted(whole), count)}
    else:
        raise Unreadable(f"a sample of a metric that is {said.kind}")
    found = []
    for (u, v), length in lengths.items():
        first, second = held.row(u), held.row(v)
        for secret, row in ((u, first), (v, second)):
            if sum(row) != held.stored_sums[secret]:
                found.append(f"secret {secret}: another row sum is stored")
        for one, other, tail, head in ((first, second, u, v), (second, first, v, u)):
            if not _private(one, other, length):
                found.append(f"secrets {tail} and {head}: odds over {float(length):.6g} nats")
    return found


def _private(one: list[int], other: list[int], length: Length) -> bool:
    """True if P(k|one) <= e^length P(k|other) for all columns: where the ratio of masses is the largest."""
    high, low = one[0], other[0]
    for a, b in zip(one, other, strict=True):
        if a * low > high * b:
            high, low = a, b
    return within(high * sum(other), low * sum(one), length)
