"""True if a claim about positions is true: sentence, rows, levels, and gradients by blossoms, in fractions.

A quadratic in s has one symmetric form f[s, t] that is affine in both with f[s, s] = f(s). Its Bernstein coefficients
on [a, b] are f[a, a], f[a, b], f[b, b]. A product q e with an affine e has the form below.

    weights of the spline: (1/2 - s)(1/2 - t) / 2, 3/4 - s t, (1/2 + s)(1/2 + t) / 2
    their derivatives: the means of s - 1/2, -2 s, s + 1/2 at s and t
    product: (q[s, t] e(u) + q[s, u] e(t) + q[t, u] e(s)) / 3
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, product
from operator import mul
from typing import Any

from reference.claims import excess_said, multiple, unit_word
from reference.geometry import Level, _cell, excess_on_ground
from reference.reading import File, Sentence, Unreadable

HALF = Fraction(1, 2)
Cells = dict[tuple[int, ...], int]


def position_untruths(file: File, sentence: object) -> Iterator[str]:
    """Return the untrue parts of the printed claim about positions."""
    if sentence is None:
        return
    grid, places = file.json_attribute("domain"), file.points("secret")
    shape, side = tuple(map(int, grid["shape"])), Fraction(grid["cell"][0])
    if len(shape) != 2 or Fraction(grid["cell"][1]) != side:
        yield "cells that are not squares of that side"
        return
    low = tuple(Fraction(x) for x in grid["origin"])
    cells = {_cell(place, tuple(zip(shape, (side, side), low, strict=True))): u for u, place in enumerate(places)}
    metric = file.json_attribute("problem_metric" if "problem_metric" in file.attrs else "metric")
    if "problem_metric" not in file.attrs and file.attribute("scale", float) != 1:
        metric["multiplier"] = 1.0  # that of the claim about rows is `scale` times it
    said = Sentence(sentence)
    said.says(
        "One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in the "
        f"{len(cells)} cells, {float(side)!r} {unit_word(grid)} wide, of a {shape[0]} x {shape[1]} grid"
    )
    if (excess := excess_said(said, grid)) is not None and not excess_on_ground(file) <= excess:
        yield "distances exceed geodesic ones by more"
    distance, level = _level(metric, unit_word(grid), len(cells) == math.prod(shape))
    said.says(f", where D is {multiple(metric)}{distance} and r = ")
    rounding = Fraction(said.number())
    said.says(
        " is for rounding positions to 2^-16 of a cell; drawn by the quadratic B-spline of 3 x 3 cells, checked by "
    )
    said.says("the cones of its gradient (list ")
    fingerprint = said.word()
    said.says("). k reports cost k times as much.")
    said.ends()
    rows, corners = file.values("around_row", ("secret", "around"), "int64"), _corners(file)
    packed = [struct.pack("<q", row) for own in rows for row in own]
    packed += [struct.pack("<d", float(x)) for own in corners for x in own]
    if hashlib.sha256(b"".join(packed)).hexdigest()[:12] != fingerprint or rows != _rows_around(cells):
        yield "other rows around a cell, or another list"
    largest = Fraction(0)
    for (i, j), u in cells.items():
        start = (low[0] + i * side, low[1] + j * side)
        for (a, b), own in _parts(corners[u]):
            part = side if len(corners[u]) == 4 else side / 2
            largest = max(largest, *_checked_levels(level, (start[0] + a * part, start[1] + b * part), part, own))
    if rounding**2 < 2 * (largest * side / 65536) ** 2:
        yield "rounding adds more"
    mass = file.values("mass", ("secret", "report"), "uint64")
    for u, own in enumerate(rows):
        for y in range(len(mass[0])):
            if not _gentle([mass[row][y] for row in own], [x * side for x in corners[u]]):
                yield f"report {y} is too steep in cell {u}"


def _corners(file: File) -> list[list[Fraction]]:
    names = {"corner_level": "corner", "quarter_level": "quarter_corner"}
    (name,) = [name for name in names if name in file.variables]
    return [[Fraction(x) for x in own] for own in file.values(name, ("secret", names[name]), "float64")]


def _parts(levels: list[Fraction]) -> list[tuple[tuple[int, int], list[Fraction]]]:
    """The cell with its four levels, or its quarters with theirs; the step to each."""
    return list(zip(product((0, 1), repeat=2), [levels[k : k + 4] for k in range(0, len(levels), 4)], strict=False))


def _level(metric: dict[str, Any], unit: str, whole: bool) -> tuple[str, Any]:
    """D in words, and eps: its values at places, and where it bends."""
    times = Fraction(metric["multiplier"])
    if metric["kind"] == "euclidean":
        way = "the Euclidean distance" if whole else "the length of the shortest path inside the cells"
        words = f"{way} times {float(metric['epsilon']):.17g} nats per {unit}"
        return words, (partial(_constant, times * Fraction(metric["epsilon"])), ([], []))
    if metric["kind"] != "eikonal":
        raise Unreadable("another distance of positions")
    raster = Level(metric["level"])
    said = raster.words()
    words = f"({said['low']} to {said['high']} nats per {unit}, map {said['map']}) along paths inside the cells"
    return f"the least integral of the {said['linear']} privacy level eps {words}", (
        lambda at: times * raster.at(at),
        raster.nodes,
    )


def _constant(epsilon: Fraction, at: object) -> Fraction:
    return epsilon


def _rows_around(cells: Cells) -> list[list[int]]:
    found = []
    for i, j in cells:
        own = []
        for a, b in product((-1, 0, 1), repeat=2):
            here = (i + a, j + b)
            sides = [cells.get((here[0] + c, here[1] + d)) for c, d in ((-1, 0), (1, 0), (0, -1), (0, 1))]
            tips = [cells.get((here[0] + c, here[1] + d)) for c, d in product((-1, 1), repeat=2)]
            choices = [[cells.get(here)], sides, tips]
            own.append(
                next(min(u for u in rank if u is not None) for rank in choices if any(u is not None for u in rank))
            )
        found.append(own)
    return found


def _checked_levels(level: Any, start: tuple[Fraction, ...], side: Fraction, corners: list[Fraction]) -> list[Fraction]:
    """Eps where it can be least over the interpolant of `corners`, or largest; it is nowhere below."""
    eps, bends = level
    lines = [
        [low, *(node for node in nodes if low < node < low + side), low + side]
        for low, nodes in zip(start, bends, strict=True)
    ]
    found = []
    for x, y in product(*lines):
        s, t = (x - start[0]) / side, (y - start[1]) / side
        found.append(eps((x, y)))
        if not 0 < _bilinear(corners, s, t) <= found[-1]:
            raise Unreadable(f"levels of a cell exceed eps at {float(x)}, {float(y)}")
    return found


def _bilinear(corners: list[Fraction], s: Fraction, t: Fraction) -> Fraction:
    return (1 - s) * ((1 - t) * corners[0] + t * corners[1]) + s * ((1 - t) * corners[2] + t * corners[3])


def _gentle(p: list[int], z: list[Fraction]) -> bool:
    """True if the coefficients on the cell, or on all four quarters, bound the gradient."""
    if len(z) == 16:
        return all(
            _coefficients_bounded(p, whole, one, (a * HALF - HALF, a * HALF), (b * HALF - HALF, b * HALF))
            for (a, b), own in _parts(z)
            for whole, one in [_as_of_cell(own, a, b)]
        )
    one = math.lcm(*(level.denominator for level in z))
    whole, ends = [int(level * one) for level in z], (-HALF, Fraction(0), HALF)
    if _coefficients_bounded(p, whole, one, (-HALF, HALF), (-HALF, HALF)):
        return True
    return all(_coefficients_bounded(p, whole, one, *quarter) for quarter in product(pairwise(ends), repeat=2))


def _as_of_cell(own: list[Fraction], a: int, b: int) -> tuple[list[int], int]:
    """The levels at the corners of a cell of the bilinear function that has `own` at those of a quarter."""
    found = [_bilinear(own, Fraction(2 * i - a), Fraction(2 * j - b)) for i, j in product((0, 1), repeat=2)]
    one = math.lcm(*(level.denominator for level in found))
    return [int(level * one) for level in found], one


def _coefficients_bounded(
    p: list[int], z: list[int], one: int, first: tuple[Fraction, ...], second: tuple[Fraction, ...]
) -> bool:
    for across, along, value in _coefficients(first, second, len(set(z)) == 1):
        x, y = (sum(map(mul, row, p)) for row in (across, along))
        t = sum(level * sum(map(mul, row, p)) for level, row in zip(z, value, strict=True))
        if (x * x + y * y) * one**2 > t * t:
            return False
    return True


@cache
def _coefficients(first: tuple[Fraction, ...], second: tuple[Fraction, ...], flat: bool) -> list[Any]:
    """For every coefficient on a rectangle, times one integer: the weights of nine masses in the derivatives.

    Also, for each corner of the cell, in the product with its level. The degree is 2 if the level is `flat`, else 3.
    """
    if flat:
        parts = [([(v, 0)], [(w, 0)]) for v in _degree_2(first) for w in _degree_2(second)]
    else:
        parts = list(product(_degree_3(first), _degree_3(second)))
    found, scale = [], 1
    for v, w in parts:
        pairs = list(product(v, w))
        across = [sum(a[1][i] * b[0][j] for (a, _), (b, _) in pairs) for i in range(3) for j in range(3)]
        along = [sum(a[0][i] * b[1][j] for (a, _), (b, _) in pairs) for i in range(3) for j in range(3)]
        corners = [[Fraction(k == c) for k in range(4)] for c in range(4)]
        value = [
            [
                sum(
                    a[0][i] * b[0][j] * (unit[0] if flat else _bilinear(unit, s + HALF, t + HALF))
                    for (a, s), (b, t) in pairs
                )
                for i in range(3)
                for j in range(3)
            ]
            for unit in corners
        ]
        found.append((across, along, value))
        scale = math.lcm(scale, *(Fraction(x).denominator for row in (across, along, *value) for x in row))
    return [
        (
            [int(x * scale) for x in across],
            [int(x * scale) for x in along],
            [[int(x * scale) for x in r] for r in value],
        )
        for across, along, value in found
    ]


@cache
def _forms(s: Fraction, t: Fraction) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The symmetric forms of the weights of the three steps, and of their derivatives, at s and t."""
    value = ((HALF - s) * (HALF - t) / 2, Fraction(3, 4) - s * t, (HALF + s) * (HALF + t) / 2)
    return value, ((s + t) / 2 - HALF, -(s + t), (s + t) / 2 + HALF)


def _degree_2(interval: tuple[Fraction, ...]) -> list[Any]:
    a, b = interval
    return [_forms(a, a), _forms(a, b), _forms(b, b)]


def _degree_3(interval: tuple[Fraction, ...]) -> list[Any]:
    """For every coefficient of degree 3 the three ways to give one argument to e and two to the quadratic."""
    a, b = interval
    triples = [(a, a, a), (a, a, b), (a, b, b), (b, b, b)]
    return [[(_forms(t[i - 1], t[i - 2]), t[i]) for i in range(3)] for t in triples]
