"""Are sentences about limits on discs true? Read from their words, and found again in fractions of the integers.

Nothing of the package is used. Discs are drawn about the places and about a lattice of points: each has the radius that
is printed, so that a share above the printed one refutes the sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

Points = tuple[tuple[float, ...], ...]
_TIMES = " \N{MULTIPLICATION SIGN} 10"
_N = rf"[\d.,]+(?:{_TIMES}[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_DISC = rf"any (?P<area>cells that are together no larger than a )?disc of (?P<radius>{_N}|[\d.e+-]+) (?P<unit>\w+)"
_DISC += r"(?P<about> about the centre of a cell)?"
_WHOM = r"for somebody who counts people at the centres of cells(, by any of \d+ counts)?"
_OFF = "if each of those counts is up to {} times too high or too low"
SHARE = re.compile(
    rf"After any one report at most (?P<share>(under )?{_N}) % of the probability lies in {_DISC}, {_WHOM}"
    rf"(, also {_OFF.format(f'(?P<times>{_N})')}|; (?P<doubled>(under )?{_N}) % {_OFF.format(2)})\."
)
LIFT = re.compile(rf"Any one report multiplies the probability of {_DISC} by at most (?P<factor>{_N}), {_WHOM}\.")
SCRIPT = re.compile(
    r"after one report at most (?P<over>\d+)/(?P<under>\d+)(?P<lift> times its share before)? of the posterior lies in "
    rf"{_DISC}, for whoever"
)


@dataclass(frozen=True)
class Limit:
    """A share or a factor, in discs of a radius or in cells by area; wrong, shares if counts are off by a factor."""

    radius: float
    about_centres: bool
    by_area: bool
    share: Fraction | None = None
    factor: Fraction | None = None
    wrong: tuple[tuple[Fraction, Fraction], ...] = ()


def number(text: str) -> Fraction:
    """A figure as people read it."""
    digits, _, power = text.removeprefix("under ").replace(",", "").partition(_TIMES)
    return Fraction(digits) * Fraction(10) ** int(power.translate(_LOWERED) or 0)


def read_limits(words: str, unit: str) -> list[Limit]:
    """The limits that words state, in their order; radii in `unit`."""
    found = []
    for pattern in (SHARE, LIFT, SCRIPT):
        for said in pattern.finditer(words):
            given = said.groupdict()
            kilometres = 1000 if (given["unit"], unit) == ("km", "m") else 1
            disc = (float(number(given["radius"]) * kilometres), bool(given["about"]), bool(given["area"]))
            if pattern is SHARE:
                share = number(given["share"]) / 100
                wrong = ((Fraction(2), number(given["doubled"]) / 100),) if given["doubled"] else ()
                wrong = ((number(given["times"]), share),) if given["times"] else wrong
                found.append((said.start(), Limit(*disc, share=share, wrong=wrong)))
            elif pattern is LIFT:
                found.append((said.start(), Limit(*disc, factor=number(given["factor"]))))
            else:
                stated = Fraction(int(given["over"]), int(given["under"]))
                name = "factor" if given["lift"] else "share"
                found.append((said.start(), Limit(*disc, **{name: stated})))
    return [limit for _, limit in sorted(found, key=lambda pair: pair[0])]


def false_limits(
    limits: Sequence[Limit],
    people: Sequence[Sequence[Sequence[int]]],
    points: Points,
    cell: Sequence[float],
    mass: Sequence[Sequence[int]],
) -> Iterator[str]:
    """Which of the limits are false; people, for each limit the rows of counts that it is for."""
    if len(limits) != len(people):
        yield f"{len(limits)} limits are stated of {len(people)}"
        return
    for limit, rows in zip(limits, people, strict=True):
        for counts in rows:
            for column in zip(*mass, strict=True):
                joint = [Fraction(n) * a for n, a in zip(counts, column, strict=True)]
                yield from _broken(limit, joint, list(map(Fraction, counts)), points, cell)


def _broken(
    limit: Limit, joint: list[Fraction], counts: list[Fraction], points: Points, cell: Sequence[float]
) -> Iterator[str]:
    """The first set of places that breaks a limit after one report."""
    total = sum(joint)
    if limit.by_area:
        # one side after the other: the product of two that are tiny is 0
        most = math.floor(min(math.pi * (limit.radius / cell[0]) * (limit.radius / cell[1]), len(joint)))
        sets = [tuple(sorted(range(len(joint)), key=joint.__getitem__)[len(joint) - most :])]
    else:
        sets = discs(points, limit.radius, limit.about_centres)
    for inside in sets:
        share = Fraction(sum(joint[u] for u in inside), total)
        if limit.share is not None and share > limit.share:
            yield f"{float(share):.6g} in {inside}, stated {float(limit.share):.6g}"
            return
        before = Fraction(sum(counts[u] for u in inside), sum(counts))
        if limit.factor is not None and share > limit.factor * before:
            times = float(share / before) if before else math.inf
            yield f"{times:.6g} times in {inside}, stated {float(limit.factor):.6g}"
            return
        for off, stated in limit.wrong:
            if off**2 * share > stated * (1 + (off**2 - 1) * share):
                yield f"counts off by {float(off):.6g} put more than {float(stated):.6g} into {inside}"
                return


@lru_cache(maxsize=512)
def discs(points: Points, radius: float, about_centres: bool) -> list[tuple[int, ...]]:
    """Sets of places that discs of a radius contain."""
    axes = list(zip(*points, strict=True))
    ranges = [[min(axis) - radius + k * (max(axis) - min(axis) + 2 * radius) / 24 for k in range(25)] for axis in axes]
    centres = [*points, *(() if about_centres else product(*ranges))]
    found = {tuple(u for u, at in enumerate(points) if math.dist(at, centre) <= radius) for centre in centres}
    return sorted(found - {()})
