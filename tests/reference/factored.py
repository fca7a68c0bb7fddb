"""The probabilities of a factored mechanism, from the statement alone.

    q(u, v) = the shortest path of integer edge lengths, capped at F
    q_k(u) = min of F and of f + q(u, v) over the generators (v, f) of column k
    E(0) = 2^58, E(t + 1) = ceil(E(t) / r) with r = R 2^-s <= e^step
    P(k|u) = E(q_k(u)) W(k) / S(u), W(k) the weight of column k, S(u) the sum over k

A file without generators has one column of offset 0 per place.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from reference import figures
from reference.exact import log_ratio, lower_ratio
from reference.geometry import Lengths
from reference.reading import File, Unreadable

STEP_BITS = 48
KERNEL_BITS = 58
LARGEST_WEIGHT = 1 << 28
FACTORED = "mechdesign/factored/2"
LOGARITHMS = 3e-14  # nats: two logarithms in doubles, of sums up to 2^118
ROUNDED_DOWN = 1e-5  # relative; lengths that the file does not list are rounded down, the more the wilder the level map


@dataclass(frozen=True)
class Parts:
    """The contents of a file: per column its weight, report and generators (place, offset); the place of every secret.

    Then the cap, the neighbours (place, units) of every place, the stored sums, and the nats of one unit.
    """

    weight: list[int]
    target: list[int]
    columns: list[list[tuple[int, int]]]
    inner: list[int]
    cap: int
    near: list[list[tuple[int, int]]]
    stored_sums: list[int]
    step: Fraction

    def row(self, secret: int) -> list[int]:
        """E(q_k(u)) W(k) of every column, for one secret."""
        distance = _distances(self.near, self.inner[secret], self.cap)
        reached = [min(self.cap, *(f + distance[v] for v, f in column)) for column in self.columns]
        kernel = _kernel(self.step, max(reached))
        return [kernel[q] * w for q, w in zip(reached, self.weight, strict=True)]


@dataclass(frozen=True)
class Built:
    """mass[u][k] = E(q_k(u)) W(k); sums S(u) and stored ones; the secret that each column reports; units of the edges
    between secrets, the nats of one unit.
    """

    mass: list[list[int]]
    sums: list[int]
    stored_sums: list[int]
    target: list[int]
    units: dict[tuple[int, int], int]
    step: Fraction


def parts(file: File) -> Parts:
    """The integers of a file, each in its range."""
    weight, target = file.values("weight", ("column",), "uint32"), file.values("target", ("column",), "int64")
    inner = file.values("inner", ("secret",), "int64")
    step, cap = file.attribute("step", int), file.attribute("cap", int)
    edges = [file.values(f"edge_{part}", ("edge",), kind) for part, kind in _PARTS]
    places = range(len(file.points("place")))
    columns = _columns(file, len(weight), len(places), cap)
    if not weight or min(weight) < 1 or max(weight) > LARGEST_WEIGHT or len(target) != len(weight):
        raise Unreadable("weights")
    if not set(target) <= set(range(len(inner))) or len(set(inner)) < len(inner) or not set(inner) <= set(places):
        raise Unreadable("places of the secrets, or secrets of the places")
    if not set(edges[0] + edges[1]) <= set(places) or step <= 0 or cap <= 0:
        raise Unreadable("edges, step or cap")
    near: list[list[tuple[int, int]]] = [[] for _ in places]
    for tail, head, units in zip(*edges, strict=True):
        near[tail].append((head, units))
        near[head].append((tail, units))
    stored = [(high << 64) + low for high, low in file.values("row_sum", ("secret", "word"), "uint64")]
    return Parts(weight, target, columns, inner, cap, near, stored, Fraction(step, 1 << STEP_BITS))


def build(file: File) -> Built:
    """The probabilities of a file as integers."""
    held = parts(file)
    mass = [held.row(u) for u in range(len(held.inner))]
    number = {place: secret for secret, place in enumerate(held.inner)}
    between = {}
    for tail, head, units in zip(*(file.values(f"edge_{part}", ("edge",), kind) for part, kind in _PARTS), strict=True):
        if tail in number and head in number:
            u, v = sorted((number[tail], number[head]))
            between[u, v] = units
    return Built(mass, [sum(row) for row in mass], held.stored_sums, held.target, between, held.step)


def _columns(file: File, count: int, places: int, cap: int) -> list[list[tuple[int, int]]]:
    """The generators (place, offset) of every column."""
    if not any(name in file.variables for name in ("first_generator", "generator_place", "generator_offset")):
        if count != places:
            raise Unreadable("weights of other places")
        return [[(v, 0)] for v in range(places)]
    first = file.values("first_generator", ("column",), "int64")
    place = file.values("generator_place", ("generator",), "int64")
    offset = file.values("generator_offset", ("generator",), "uint16")
    if len(place) != len(offset) or len(first) != count or not first or first[0] != 0:
        raise Unreadable("generators in different numbers")
    if any(not 0 <= v < places for v in place) or any(not 0 <= f <= cap for f in offset):
        raise Unreadable("generators out of range")
    columns = []
    for a, b in zip(first, [*first[1:], len(place)], strict=True):
        if not a < b:
            raise Unreadable("a column without generators")
        columns.append(list(zip(place[a:b], offset[a:b], strict=True)))
    return columns


_PARTS = (("tail", "int64"), ("head", "int64"), ("units", "uint16"))


def _distances(near: Sequence[Sequence[tuple[int, int]]], source: int, cap: int) -> list[int]:
    """Dijkstra in whole units; places at cap or further are at cap."""
    found = [cap] * len(near)
    found[source] = 0
    queue = [(0, source)]
    while queue:
        distance, place = heapq.heappop(queue)
        if distance > found[place]:
            continue
        for other, units in near[place]:
            if distance + units < found[other]:
                found[other] = distance + units
                heapq.heappush(queue, (distance + units, other))
    return found


def _kernel(nats: Fraction, last: int) -> list[int]:
    """E(0..last), and further where it is known already."""
    values, ratio, shift = _first_terms(nats)
    while len(values) <= last:
        values.append(-((-values[-1] << shift) // ratio))
    return values


@lru_cache(maxsize=16)
def _first_terms(nats: Fraction) -> tuple[list[int], int, int]:
    return [1 << KERNEL_BITS], *lower_ratio(nats)


def figure_untruths(
    file: File,
    built: Built,
    prior: Sequence[Fraction],
    loss: figures.Table,
    lengths: Lengths,
    printed: Mapping[str, Any],
):
    """Of the effective epsilon and the remapped loss.

    The effective epsilon is the largest (units * step + |ln S(u) - ln S(v)|) / d over the edges, at most 1: no
    log-ratio exceeds it, and on edges that are shortest paths it is attained.
    """
    said = printed["ratio"]
    if said is not None:
        steep = figures.steepest(built.mass, built.sums, lengths)
        shares = [
            (built.units[pair] * float(built.step) + abs(log_ratio(built.sums[pair[0]], built.sums[pair[1]])))
            / float(length)
            for pair, length in lengths.items()
        ]
        most, room = min(1.0, max(shares)), LOGARITHMS / min(map(float, lengths.values()))
        for shown in (said, file.attrs.get("ratio", said)):
            reached = shown * (1 + figures.AGREE) + room >= steep
            if not (reached and figures.between(most - room, shown, most * (1 + ROUNDED_DOWN) + room)):
                yield f"ratio {shown!r}, log-ratios over lengths reach {steep!r}"
    if "remapped_loss" in file.attrs:
        best = remapped_loss(file, built, prior)
        if not figures.close(file.attrs["remapped_loss"], best):
            yield f"remapped_loss {file.attrs['remapped_loss']!r}, which is {float(best)!r}"


def remapped_loss(file: File, built: Built, prior: Sequence[Fraction]) -> Fraction:
    """The expected loss when every column is replaced by the secret with the least posterior expected loss."""
    secrets = file.points("secret")
    loss = figures.losses(file, secrets, secrets)
    total = Fraction(0)
    for y in range(len(built.target)):
        share = [p * row[y] / s for p, row, s in zip(prior, built.mass, built.sums, strict=True)]
        total += min(sum(a * row[z] for a, row in zip(share, loss, strict=True)) for z in range(len(secrets)))
    return total
