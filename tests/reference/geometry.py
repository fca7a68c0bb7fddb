"""How long d is between which secrets: the metrics of the sentences, from coordinates, lattices and level maps.

Lengths are exact: a rational factor times the square root of a rational. Pairs are (u, v) with u < v.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from random import Random
from typing import Any

from reference.exact import Length
from reference.reading import File, Unreadable

Place = tuple[Fraction, ...]
Lengths = dict[tuple[int, int], Length]
Cell = tuple[int, ...]

_STEPS = {
    1: {stencil: [(1,)] for stencil in (4, 8, 16, 32, 64)},
    2: {
        4: [(1, 0)],
        8: [(1, 0), (1, 1)],
        16: [(1, 0), (1, 1), (2, 1)],
        32: [(1, 0), (1, 1), (2, 1), (3, 1), (3, 2)],
        64: [(1, 0), (1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (4, 3), (5, 2), (5, 3)],
    },
    3: {6: [(1, 0, 0)], 18: [(1, 0, 0), (1, 1, 0)], 26: [(1, 0, 0), (1, 1, 0), (1, 1, 1)]},
}
_OFF_CENTRE = Fraction(1, 2)  # of a cell: a stored centre lies nearer to its place on the lattice than this
METRES = {"m": 1.0, "km": 1000.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "yd": 0.9144}
METRES |= {"mm": 0.001, "in": 0.0254, "nmi": 1852.0}
_MINOR_AXIS = 6_356_752.314245  # of WGS 84, in m


def euclidean(file: File, factor: Fraction) -> Lengths:
    """factor |u - v| for all pairs."""
    places = file.points("secret")
    return {(u, v): Length(factor, _square(p, q)) for (u, p), (v, q) in combinations(enumerate(places), 2)}


def discrete(size: int, factor: Fraction) -> Lengths:
    """factor for all pairs."""
    return {pair: Length(factor) for pair in combinations(range(size), 2)}


def listed_lengths(lists: Sequence[list[Any]], size: int, factor: Fraction) -> Lengths:
    """factor times the lengths of a list of edges: tails, heads, lengths. Edges must join all places; where reports
    tell nothing, lengths may be 0.
    """
    found: Lengths = {}
    for tail, head, length in zip(*lists, strict=True):
        if not (type(tail) is type(head) is int and 0 <= tail < size and 0 <= head < size):
            raise Unreadable(f"an edge from {tail} to {head}")
        pair = (min(tail, head), max(tail, head))
        if pair in found or tail == head or not Fraction(length) >= 0:
            raise Unreadable(f"edge {pair} of length {length}")
        found[pair] = Length(factor * Fraction(length))
    return _connected_lengths(found, size)


def eikonal(file: File, stencil: int, factor: Fraction) -> Lengths:
    """factor times the line integrals of the level map between the neighbours of a stencil."""
    grid = file.json_attribute("domain")
    shape, cell, origin = (tuple(grid[name]) for name in ("shape", "cell", "origin"))
    sides = tuple(zip(map(int, shape), map(Fraction, cell), map(Fraction, origin), strict=True))
    plain = _eikonal(file.attribute("metric", str), file.points("secret"), sides, stencil)
    return {pair: length.times(factor) for pair, length in plain.items()}


def some_eikonal(file: File, stencil: int, factor: Fraction, count: int, random: Random) -> Lengths:
    """Of `eikonal`, `count` pairs drawn at random: for maps whose lengths are too many."""
    grid, level = file.json_attribute("domain"), Level(file.json_attribute("metric")["level"])
    shape, cell, origin = (tuple(grid[name]) for name in ("shape", "cell", "origin"))
    sides = tuple(zip(map(int, shape), map(Fraction, cell), map(Fraction, origin), strict=True))
    places = file.points("secret")
    cells = {_cell(place, sides): u for u, place in enumerate(places)}
    if len(cells) < len(places):
        raise Unreadable("two secrets in one cell")
    pairs = set()
    while len(pairs) < count:
        here = _cell(random.choice(places), sides)
        beside = sorted(neighbours(here, stencil, cells))
        if beside:
            pairs.add(tuple(sorted((cells[here], random.choice(beside)))))
    return {
        (u, v): Length(level.mean(places[u], places[v]), _square(places[u], places[v])).times(factor)
        for u, v in sorted(pairs)
    }


@lru_cache(maxsize=64)
def _eikonal(metric: str, places: tuple[Place, ...], sides: tuple[tuple[Any, ...], ...], stencil: int) -> Lengths:
    level = Level(json.loads(metric)["level"])
    cells = {_cell(place, sides): u for u, place in enumerate(places)}
    if len(cells) < len(places):
        raise Unreadable("two secrets in one cell")
    found = {}
    for here, u in cells.items():
        for v in neighbours(here, stencil, cells):
            if u < v:
                found[u, v] = Length(level.mean(places[u], places[v]), _square(places[u], places[v]))
    return _connected_lengths(found, len(places))


def neighbours(cell: Cell, stencil: int, cells: dict[Cell, int]) -> Iterator[int]:
    """The cells that a stencil joins to a cell, of those that there are: index -> number."""
    for step in _steps(len(cell), stencil):
        v = cells.get(_neighbour(cell, step))
        if v is not None and _clear(cell, step, cells):
            yield v


def _connected_lengths(lengths: Lengths, size: int) -> Lengths:
    """The same, where the pairs join all places: else d is infinite between some."""
    reached, known = {0}, 0
    while len(reached) > known:
        known = len(reached)
        reached |= {place for pair in lengths for place in pair if reached & set(pair)}
    if known < size:
        raise Unreadable("no edges join the parts")
    return lengths


def _square(p: Place, q: Place) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(p, q, strict=True)), Fraction(0))


def _cell(place: Place, sides: tuple[tuple[Any, ...], ...]) -> Cell:
    found = []
    for at, (count, size, low) in zip(place, sides, strict=True):
        position = (at - low) / size - Fraction(1, 2)
        index = round(position)
        if not 0 <= index < count or abs(position - index) >= _OFF_CENTRE:
            raise Unreadable(f"{float(at)} is not the centre of a cell")
        found.append(index)
    return tuple(found)


def _neighbour(cell: Cell, step: Cell) -> Cell:
    return tuple(a + b for a, b in zip(cell, step, strict=True))


def _steps(axes: int, stencil: int) -> Iterator[Cell]:
    if stencil not in _STEPS.get(axes, {}):
        raise Unreadable(f"{stencil} neighbours on {axes} axes")
    turned = {
        tuple(sign * part for sign, part in zip(signs, order, strict=True))
        for base in _STEPS[axes][stencil]
        for order in permutations(base)
        for signs in product((1, -1), repeat=axes)
    }
    return iter(sorted(turned))


def _clear(start: Cell, step: Cell, cells: dict[Cell, int]) -> bool:
    """True if the segment from the centre of a cell to that of another stays in existing cells.

    It leaves a cell half-way between two centres on some axis. If that happens on several axes at once, it passes
    through an edge or a corner. Then some order of single moves must lead through existing cells.
    """
    crossings: dict[Fraction, list[Cell]] = {}
    for axis, length in enumerate(step):
        unit = tuple((length > 0) - (length < 0) if other == axis else 0 for other in range(len(step)))
        for k in range(abs(length)):
            crossings.setdefault(Fraction(2 * k + 1, 2 * abs(length)), []).append(unit)
    here = start
    for moment in sorted(crossings):
        ways = [_walk(here, order) for order in permutations(crossings[moment])]
        if not any(all(cell in cells for cell in way) for way in ways):
            return False
        here = ways[0][-1]
    return True


def _walk(start: Cell, moves: Sequence[Cell]) -> list[Cell]:
    way = [start]
    for move in moves:
        way.append(_neighbour(way[-1], move))
    return way[1:]


class Level:
    """eps as a metric describes it: nodes per axis and values at them, linear along each axis between nodes, constant
    beyond the outermost ones.
    """

    def __init__(self, grid: dict[str, Any]) -> None:
        deep = isinstance(grid["eps"][0][0], list)
        names = ("x", "y", "z")[: 3 if deep else 2]
        self.doubles = [[float(node) for node in grid[name]] for name in names]
        self.nodes = [[Fraction(node) for node in axis] for axis in self.doubles]
        self.values: dict[Cell, Fraction] = {}
        for index in product(*(range(len(axis)) for axis in self.nodes)):
            value = grid["eps"]
            for i in index:
                value = value[i]
            self.values[index] = Fraction(value)
        sizes = [len(grid["eps"]), len(grid["eps"][0]), *([len(grid["eps"][0][0])] if deep else [])]
        ascending = all(a < b for axis in self.nodes for a, b in pairwise(axis))
        if sizes != [len(axis) for axis in self.nodes] or not ascending or min(self.values.values()) <= 0:
            raise Unreadable("no level map")

    def words(self) -> dict[str, str]:
        """The map in the sentence: smallest and largest eps, its fingerprint, how it is read."""
        values = [float(value) for value in self.values.values()]
        digest = hashlib.sha256(b"".join(struct.pack("<d", x) for axis in [*self.doubles, values] for x in axis))
        return {
            "low": f"{min(values):.9g}",
            "high": f"{max(values):.9g}",
            "map": digest.hexdigest()[:12],
            "linear": "trilinear" if len(self.nodes) == 3 else "bilinear",
        }

    def mean(self, p: Place, q: Place) -> Fraction:
        """The mean of eps over the segment from p to q: between the nodes it is a cubic at most, for which Simpson's
        rule is exact.
        """
        p, q = ((*place, *[Fraction(0)] * (3 - len(place))) for place in (p, q))
        cuts = {Fraction(0), Fraction(1)}
        for nodes, a, b in zip(self.nodes, p, q, strict=False):
            if a != b:
                cuts |= {t for node in nodes if 0 < (t := (node - a) / (b - a)) < 1}
        times = sorted(cuts)
        total = Fraction(0)
        for start, end in pairwise(times):
            values = [
                self.at([a + t * (b - a) for a, b in zip(p, q, strict=True)]) for t in (start, (start + end) / 2, end)
            ]
            total += (end - start) * (values[0] + 4 * values[1] + values[2]) / 6
        return total

    def at(self, place: Sequence[Fraction]) -> Fraction:
        """eps at a place."""
        ends = []
        for nodes, x in zip(self.nodes, place, strict=False):
            inside = min(max(x, nodes[0]), nodes[-1])
            right = next((i for i, node in enumerate(nodes) if node >= inside), 0)
            left = max(right - 1, 0)
            share = (inside - nodes[left]) / (nodes[right] - nodes[left]) if right > left else Fraction(0)
            ends.append([(left, 1 - share), (right, share)])
        return sum(
            (
                self.values[tuple(index for index, _ in corner)] * math.prod(share for _, share in corner)
                for corner in product(*ends)
            ),
            Fraction(0),
        )


def excess_on_ground(file: File) -> float:
    """By which share distances in the plane of a file may exceed geodesic ones: t / sin t - 1, t = reach / b."""
    reach = math.sqrt(max(float(_square(place, (Fraction(0),) * len(place))) for place in file.points("secret")))
    t = reach * METRES[file.unit("secret")] / _MINOR_AXIS
    return t / math.sin(t) - 1 if 0 < t < 1 else math.inf
