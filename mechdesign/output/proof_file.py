"""Integers of a table for `mechdesign-check`, the program extracted from the proofs in `proofs/`.

A file holds one integer a token: the masses, then a section for each claim (proofs/README.md has the format). Every
section repeats the claim in exact integers: coordinates, levels and lengths are doubles, hence fractions whose
denominators are powers of 2.

| section | claim |
|---|---|
| edges | all metrics but the Euclidean one on one or two axes |
| plane | the Euclidean metric there: all pairs by coordinates, except pairs with a place between the two |
| positions | levels at the corners of quarters of cells, rounded down |
| sets | limits on posteriors, in the sets that verify_table.py compares |
| bound | multipliers and trees (proof_bound.py) |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mechdesign.errors import InputError
from mechdesign.output.proof_bound import bound_of
from mechdesign.output.table_formats import Content
from mechdesign.verification import verify_table
from mechdesign.verification.verify_table import TableFile

VERSION = 1
EDGES, PLANE, POSITIONS, SETS, LARGEST = 1, 2, 3, 4, 5  # numbers of sections
LENGTH_BITS = 80  # of the shortest length by distance: lengths of edges are right to 2^-44
DIRECT, THROUGH = 0, 1  # a pair is checked itself, or a place lies between the two
_AXES = 2  # of a plane; values on a line have y = 0


class PlaneClaim(NamedTuple):
    """Places of exact coordinates, over one denominator, and nats per unit of length."""

    points: list[tuple[int, int]]
    scale: int
    rate: Fraction

    def square(self, u: int, v: int) -> int:
        (x, y), (p, q) = self.points[u], self.points[v]
        return (x - p) ** 2 + (y - q) ** 2

    def length(self, square: int, denominator: int, *, up: bool = False) -> int:
        """The root of `square`, in nats times `denominator`, rounded down or up."""
        over, under = (self.rate.numerator * denominator) ** 2 * square, (self.rate.denominator * self.scale) ** 2
        root = math.isqrt(over // under)
        return root + 1 if up and root * root * under < over else root

    def denominator(self) -> int:
        """A power of 2 that leaves `LENGTH_BITS` to the shortest length that a pair can have."""
        sides = {abs(a - b) for k in range(_AXES) for a, b in pairwise(sorted({p[k] for p in self.points}))}
        shortest = self.rate * Fraction(min(sides, default=1), self.scale)
        return 1 << max(LENGTH_BITS, LENGTH_BITS - _exponent(shortest))


def write_proof(content: Content, path: Path) -> None:
    """Write the claims of a table, and its lower bound if it has one, one integer a line."""
    if content.stored.is_factored:
        remedy = "export its table()"
        raise InputError("factors have no masses to write", field="output", value=".proof", remedy=remedy)
    table = table_of(content)
    bound = bound_of(content.stored, plane_of(table))
    with path.open("w", encoding="ascii", newline="") as stream:
        for tokens in chain(claim_tokens(table), [] if bound is None else bound.tokens(), [[0]]):
            stream.write("".join(f"{token}\n" for token in tokens))


def table_of(content: Content) -> TableFile:
    """The table as verify_table.py reads it from an export."""
    header = {"unit": content.stored.domain.unit, **content.comments}
    if content.patches:
        header["patch"] = content.patches
    rows = [masses for _, masses, _ in content.masses()]
    edges = [verify_table.Edge(u, v, float.fromhex(length)) for u, v, length in content.edges]
    points = [tuple(point[: content.stored.domain.dimension]) for point in content.secrets]
    return TableFile(header, rows, [verify_table.ROW_SUM] * len(rows), edges, points)


def claim_tokens(table: TableFile) -> Iterator[Iterable[int]]:
    """The integers of all claims of a table, without the 0 that ends a file."""
    yield [VERSION, len(table.rows), len(table.rows[0])]
    yield from table.rows
    plane = plane_of(table)
    yield edge_tokens(table) if plane is None else plane_tokens(table, plane)
    if table.header["claim"]["positions"] is not None:
        yield position_tokens(table)
    for cap in table.header["claim"].get("caps", []):
        yield limit_tokens(table, cap)


def edge_tokens(table: TableFile) -> list[int]:
    """All edges, with the exact lengths of the file."""
    tokens, denominator = [EDGES, len(table.edges)], max(nats.as_integer_ratio()[1] for _, _, nats in table.edges)
    tokens.append(denominator)
    for tail, head, nats in table.edges:
        tokens += [tail, head, int(Fraction(nats) * denominator)]
    return tokens


def plane_of(table: TableFile) -> PlaneClaim | None:
    """The Euclidean metric on one or two axes; None for another claim."""
    metric = verify_table.Metric(table.header["claim"]["metric"])
    if metric.kind != "euclidean" or len(table.points[0]) > _AXES:
        return None
    scale = max(number.as_integer_ratio()[1] for number in chain(*table.points))
    points = [tuple(int(Fraction(number) * scale) for number in (*point, 0)[:_AXES]) for point in table.points]
    return PlaneClaim([(x, y) for x, y in points], scale, metric.rate)


def plane_tokens(table: TableFile, plane: PlaneClaim) -> Iterator[int]:
    """Every pair of places: its length by distance, or the number of a place between the two."""
    denominator = plane.denominator()
    yield from [PLANE, plane.scale, plane.rate.numerator, plane.rate.denominator, denominator]
    yield from chain(*plane.points)
    between, lengths = _places_between(table, plane), dict[int, int]()
    for u in range(len(plane.points)):
        for v in range(u + 1, len(plane.points)):
            if (u, v) in between:
                yield from (THROUGH, between[u, v])
                continue
            square = plane.square(u, v)
            if square not in lengths:
                lengths[square] = plane.length(square, denominator)
            yield from (DIRECT, lengths[square])


def _places_between(table: TableFile, plane: PlaneClaim) -> dict[tuple[int, int], int]:
    """A place on the segment between two, where exact coordinates have one, for pairs without an edge."""
    joined = {(min(tail, head), max(tail, head)) for tail, head, _ in table.edges}
    first: dict[tuple[int, int], int] = {}
    for u, start in enumerate(plane.points):
        # By direction from u, the nearest place: all others of the direction lie behind it.
        nearest: dict[tuple[int, int], tuple[int, int]] = {}
        seen = []
        for v, (x, y) in enumerate(plane.points):
            if v == u:
                continue
            dx, dy = x - start[0], y - start[1]
            times = math.gcd(dx, dy)
            step = (dx // times, dy // times)
            seen.append((step, times, v))
            nearest[step] = min(nearest.get(step, (times, v)), (times, v))
        for step, times, v in seen:
            if u < v and nearest[step][0] < times and (u, v) not in joined:
                first[u, v] = nearest[step][1]
    return first


def position_tokens(table: TableFile) -> Iterator[int]:
    """The rows around every cell, and the levels at the corners of its quarters, rounded down."""
    side = Fraction(table.header["claim"]["domain"]["cell"][0])
    # The script has four times the levels of quarters, so that all are integers.
    yield from [POSITIONS, 4 * verify_table.ONE, len(table.header["patch"])]
    for patch in table.header["patch"]:
        # A lower level only makes the condition stricter.
        levels = [int(Fraction(float.fromhex(level)) * side * verify_table.ONE) for level in patch[9:]]
        yield from patch[:9]
        yield from chain(*chain(*verify_table.corner_levels(levels)))


def limit_tokens(table: TableFile, cap: dict[str, Any]) -> Iterator[int]:
    """A limit on posteriors: any places by a threshold for each report, or the sets that imply it for all discs."""
    people, (over, under) = cap["people"], cap["factor" if "factor" in cap else "share"]
    weighted = [[count * mass for mass in row] for count, row in zip(people, table.rows, strict=True)]
    sets = [sorted(disc) for disc in verify_table.discs_of(cap, table, weighted)]
    if cap["centres"] == "area":
        # The script lists the largest entries of every report; here one threshold a report does.
        count = len(sets[0])
        thresholds = [sorted(column, reverse=True)[count - 1] for column in zip(*weighted, strict=True)]
        yield from [LARGEST, *people, over, under, count, *thresholds]
        return
    yield from [SETS, *people, len(sets)]
    for members in sorted(sets):
        limit = (over, under)
        if "factor" in cap:
            # The share before a report is that of the people.
            limit = (over * sum(people[u] for u in members), under * sum(people))
        yield from [*limit, len(members), *members]


def _exponent(value: Fraction) -> int:
    """A power of 2 of at most the value; 0 for 0."""
    return 0 if value == 0 else value.numerator.bit_length() - value.denominator.bit_length() - 1
