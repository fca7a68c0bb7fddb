"""Check an exported mechanism table in integers: python verify_table.py TABLE.json, or .csv and its -metadata.json.

Rows. A[u][y] are integers >= 1, row u sums to S(u): exactly 2^62, or the column row_sum where there is one. A report y
is drawn at a secret u with P(y|u) = A[u][y] / S(u). For every edge (u, v) of the table, d nats long, and every y

    P(y|u) <= e^d P(y|v)   and   P(y|v) <= e^d P(y|u),

and the edges connect all secrets. Then P(y|u) <= e^D P(y|v) for all u, v, with D the length of the shortest path:
multiply along it. k reports cost k times as much. e^d is replaced by a number below it: 1 + t <= e^t, so
(1 + d / 2^K)^(2^K) <= e^d; K squarings, each rounded down.

Claim. Metric and domain are data of the file, compared with the table in exact fractions; the sentence that is printed
is put together from them. T is the multiplier of the metric, E its epsilon, B the largest of its levels, |p - q| the
distance of the coordinates of two secrets, as they stand.

    discrete       no edge is longer than T E, nor a shortest path between secrets without an edge
    euclidean      the same with T E |p - q|
    eikonal        no edge is longer than T B |p - q|, or of length 0 unless T is; all neighbours have an edge, if no
                   cell of the grid is masked
    streets, graph nothing: the list is the claim

Positions, where they are claimed. The cells are squares of side h. At a position x = centre of cell v + h s, s in
[-1/2, 1/2]^2, a row of the 3 x 3 cells around v is drawn with the weights (1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2
of the steps -1, 0, +1 along either axis, then a report y from it. A cell that is not there has the row of the first of
the cells beside it, or else of those that touch its corners. With a level eps that is nowhere below the bilinear e of
the levels listed for the corners of a cell, or of its four quarters,

    P(y|x) <= e^D P(y|x'),    D the least integral of eps along paths from x to x' inside the cells,

because |grad P| <= e P on every cell. Both sides are polynomials; the coefficients of grad P by Bernstein's are at most
those of e P, on the four quarters of the cell, in integers.

Trusted: coordinates, unit, place on Earth; that lengths are integrals, and a level that varies nowhere below e;
neighbours if cells are masked; lengths that are the claim themselves: `mechdesign verify` rebuilds these. Losses, names
and the checksum of the mechanism's file are repeated as they stand.

Limits on posteriors to over/under: after any report y, with N(u) people at the cell of u, for the cells of every disc,
or by area for any cells that are together no larger, under sum inside N(u) A(u, y) <= over sum N(u) A(u, y). A limit
has a radius, centres, people, and a share or a factor: another one is refused, and any beside a claim about positions.

Exit code: 0 proved, 1 refused, 2 no such table, or interrupted. It needs Python 3.10 alone. Cost: 0.2 microseconds for
each of 2 e m inequalities, 4 for a Euclidean pair without an edge, 30 to 3,000 for each cell and report of positions.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from fractions import Fraction
from itertools import chain, combinations, product
from operator import add, gt, mul, sub
from pathlib import Path
from typing import Any, NamedTuple

ROW_SUM, MOST_BYTES = 1 << 62, 1 << 31
BOUND_BITS = 62  # kept of the bound of e^d
SQUARINGS = 140  # (1 + d / 2^140)^(2^140) falls short of e^d by less than 2^-126 of it, for d <= 128
WORKING_BITS = 320  # the roundings of 140 squarings add up to less than 2^-179
DIGITS = 40  # of an integer: rows sum to less than 2^128
LONGEST = 128.0  # nats: a longer edge is held to this; no two probabilities are further apart than 10^40 = e^92.2
FORMAT, BESIDE = "mechdesign/table/1", "-metadata.json"  # after the name of a CSV table
LENGTHS = ("m", "km", "cm", "mm", "mi", "nmi", "ft", "yd", "in", "cell")  # other units measure values, not places
SAID, DEGREES = ("unit", "problem", "program"), "x, y, longitude, latitude"
KINDS = ("discrete", "euclidean", "eikonal", "streets", "graph")
NUMBER = r"[0-9]{1,25}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?"
# By numbers of axes and of neighbours: steps to neighbours, in any order and direction.
STENCILS = {(1, k): "1" for k in (4, 8, 16, 32, 64)} | {(3, 6): "100", (3, 18): "100 110", (3, 26): "100 110 111"}
STENCILS |= {(2, k): "10 11 21 31 32 41 43 52 53"[:end] for k, end in ((4, 2), (8, 5), (16, 8), (32, 14), (64, 26))}
AROUND, ENDS = list(product((-1, 0, 1), repeat=2)), list(product((0, 1), repeat=2))
CONES = [(0, 3, 1, 4), (1, 4, 2, 5), (3, 6, 4, 7), (4, 7, 5, 8), (4, 7, 1, 5, 3)]  # places in a patch
CONES += [(1, 4, 2, 5, 0, 3), (4, 7, 5, 8, 3, 6), (3, 4, 6, 7, 0, 1), (4, 5, 7, 8, 1, 2)]
GRADIENTS: dict[int, Any] = {  # at a corner, the node and the middle of an edge, with the value there
    4: lambda c, e, n, d: (2 * (e + d - c - n), 2 * (n + d - c - e), c + e + n + d),
    5: lambda c, e, w, n, s: (e - w, n - s, 2 * c),
    6: lambda c, e, n, d, s, f: (4 * (e - c), n + d - s - f, 2 * (c + e)),
}
SHARED = ((0, 1), (1, 0), (1, 2), (2, 1))  # cells that a half is a mean of, with weights 3 and 1
SPARE, HIGHEST = 2.0**-40, 1e150  # of radii, for rounding; of levels and sides whose products are numbers
ON_CIRCLE = 2.0**-37  # of a radius: how far off a circle a point may be that is taken for one on it
ONE = 1 << 60  # of integers for levels times the side of a cell, rounded down
WHOLE = 8 * ONE  # of four times these, over half the side
VALUE, SLOPE = ((1, 1, 0), (0, 4, 0), (0, 1, 1)), ((-2, 2, 0), (-2, 0, 2), (0, -2, 2))
SLOPES = ((SLOPE, VALUE), (VALUE, SLOPE), (VALUE, VALUE))
ROUNDED = 1.01 * math.sqrt(2) / 65536  # sides by which rounding to 2^-16 of a cell parts two positions, and a percent
Edge = tuple[int, int, float]
Integers = list[list[int]]
BROKEN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)  # where no table is


class BadInput(Exception):
    """Not a table of this kind: nothing can be said about it."""


class Refused(Exception):
    """A table that was altered."""


class Table(NamedTuple):
    """header, comments by name; rows (n, m); sums (n,); edges, (tail, head, nats); points (n, 1..3) of the secrets."""

    header: dict[str, Any]
    rows: Integers
    sums: list[int]
    edges: list[Edge]
    points: list[tuple[float, ...]]


def read(path: str | Path) -> Table:
    """The table in a file. Raises: BadInput where it is none, or not all of it; Refused where it was altered."""
    if (kind := Path(path).suffix.lower()) not in (".csv", ".json"):
        raise BadInput("the name must end in .csv or .json")
    table, data = _bytes(path), _bytes(f"{path}{BESIDE}" * (kind == ".csv") or path)
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    if data[start:] != b'"content_sha256": "%s"}\n' % hashlib.sha256(data[:start]).hexdigest().encode():
        raise Refused("the last line is not the checksum of the lines before it: altered, or cut short")
    try:
        header = _json(data.decode())
        if kind == ".csv" and header["table_sha256"] != hashlib.sha256(table).hexdigest():
            raise Refused(f"the table is not the one that its {BESIDE} tells of: altered, or cut short")
        if any(re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", part) for part in (data, table)):
            raise BadInput("holds control characters")
        return _from_csv(header, table.decode()) if kind == ".csv" else _from_json(header)
    except BROKEN as error:
        raise BadInput(f"not a mechanism table ({type(error).__name__}: {error})") from error


def _bytes(path: str | Path) -> bytes:
    try:
        if Path(path).is_file() and Path(path).stat().st_size <= MOST_BYTES:
            return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {error}") from error
    raise BadInput(f"{str(path)[-60:]} is not a regular file of at most {MOST_BYTES} bytes")


def _from_csv(header: dict[str, Any], text: str) -> Table:
    columns, body = (lines := text[:-1].split("\n"))[0].split(","), lines[1:]
    r, m, sums = columns.index("report"), columns.index("probability"), columns[-1] == "row_sum"  # sums: of factors
    axes = header.get("coordinates", "x, y, z").split(", ")
    named = ["secret", *(f"secret_{a}" for a in axes[: r - 1]), "report", *(f"report_{a}" for a in axes[: m - r - 1])]
    if columns != [*named, "probability", "mass", *["row_sum"] * sums] or header["format"] != FORMAT:
        raise BadInput("another format, or the columns are not secret, ..., report, ..., probability, mass")
    n, width = header["secrets"], header["reports"]
    if len(body) != n * width:
        raise BadInput(f"some rows only: not every report of every secret is there, {len(body)} of {n} x {width} lines")
    rows, points, places = [], [], [[str(y), *line.split(",")[r + 1 : m]] for y, line in enumerate(body[:width])]
    for u in range(n):
        own = [line.split(",") for line in body[u * width : (u + 1) * width]]
        start, end, masses = [str(u), *own[0][1:r]], own[0][m + 2 :], [_whole(line[m + 1]) for line in own]
        total = _whole(end[0]) if sums else ROW_SUM
        shares = [[repr(mass / total), str(mass)] for mass in masses]
        if own != [[*start, *place, *share, *end] for place, share in zip(places, shares, strict=True)]:
            raise BadInput(f"secret {u}: not in turn, not at the same places throughout, or another probability")
        points.append(list(map(_number, start[1:])))
        rows.append([*masses, total])
    divided, at = "row_sum" if sums else "2^62", [list(map(_number, place[1:])) for place in places]
    return _table(header, divided, rows, header.pop("edge"), points, at)


def _from_json(header: dict[str, Any]) -> Table:
    lists = masses, edges, points, places = [header.pop(k) for k in ("mass", "edge", "secret_points", "report_points")]
    if header["format"] != FORMAT or any(type(each) is not list for each in lists):
        raise BadInput("another format, or no lists of masses, edges and coordinates")
    return _table(header, "2^62", [[*map(_whole, row.split(" ")), ROW_SUM] for row in masses], edges, points, places)


def _json(text: str) -> Any:
    """JSON in which no name is said twice, at any depth, and every number is finite."""
    return json.loads(text, object_pairs_hook=_once, parse_int=_whole, parse_float=_number, parse_constant=_number)


def _once(pairs: list[Any]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise BadInput(f"a name is said twice among {[name for name, _ in pairs]}")
    return dict(pairs)


def _whole(text: str) -> int:
    """An integer in plain decimal: no plus, blank or leading zero that another reader could take otherwise."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS and (digits[0] != "0" or digits == "0")):
        raise BadInput(f"{text[:50]!r} is not a plain integer")
    return int(text)


def _number(text: str) -> float:
    if re.fullmatch("-?" + NUMBER, text) and math.isfinite(value := float(text)):
        return value
    raise BadInput(f"{text[:50]!r} is not a plain finite number")


def _table(header: dict[str, Any], divided: str, rows: Integers, edges: list[Any], *places: list[Any]) -> Table:
    """The table of rows (n, m + 1), the last column their sums. places are coordinates of secrets and of reports."""
    if header["claim"]["denominator"] != divided:
        raise BadInput("the claim does not say what masses are divided by")
    if missing := [name for name in SAID if not isinstance(header.get(name), str)]:
        raise BadInput(f"{missing[0]} is not said")
    unit = header["unit"]
    if not (0 < len(unit) <= 40 and unit.isprintable()) or unit.count(" ") > 3 or re.search(r'[,;:!?"]|\. ', unit):
        raise BadInput("the unit is not a printable name of at most 40 characters and four words")
    n, m, e = counts = [header[name] for name in ("secrets", "reports", "edges")]
    if any(type(count) is not int or count < 1 for count in counts):
        raise BadInput(f"{counts} are not numbers of secrets, reports and edges")
    if (len(rows), len(edges), *map(len, places)) != (n, e, n, m) or any(len(row) != m + 1 for row in rows):
        raise BadInput(f"not the {n} x {m} masses and {e} edges that it speaks of, or not as many coordinates")
    degrees = header.get("coordinates")
    for points in places:
        axes, kind = {len(point) for point in points}, {type(at) for point in points for at in point}
        if len(axes) > 1 or not axes <= {None: {1, 2, 3}, DEGREES: {4}}.get(degrees, set()) or not kind <= {int, float}:
            raise BadInput("coordinates are not 1 to 3 numbers for every place, or 4 where degrees are said")
    listed: dict[tuple[int, int], Edge] = {}
    for tail, head, digits in edges:
        if [type(tail), type(head), type(digits)] != [int, int, str] or digits != float.fromhex(digits).hex():
            raise BadInput(f"an edge is two integers and an exact float in hex, not {[tail, head, digits]!r}")
        length, pair = float.fromhex(digits), (min(tail, head), max(tail, head))
        if not 0 <= pair[0] < pair[1] < n or digits[0] != "0" or pair in listed:  # no sign, inf, nan
            raise BadInput(f"no edge can go from {tail} to {head} over {length} nats, or a second one")
        listed[pair] = (tail, head, length)
    sums, points = [row.pop() for row in rows], [tuple(point[:2] if degrees else point) for point in places[0]]
    return Table(header, rows, sums, list(listed.values()), points)


def lower_bound(length: float) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^length and 2^61 <= R < 2^62. The double is taken as the exact number it is."""
    p, q = min(length, LONGEST).as_integer_ratio()
    value = (1 << WORKING_BITS) + (p << WORKING_BITS) // (q << SQUARINGS)
    for _ in range(SQUARINGS):
        value = value * value >> WORKING_BITS
    drop = value.bit_length() - BOUND_BITS
    return value >> drop, WORKING_BITS - drop


def breaches(rows: Integers, sums: list[int], edges: list[Edge]) -> list[tuple[int, int, int]]:
    """The (secret, other, report) with P(report|secret) > e^length P(report|other), over edges both ways.
    a / S(u) <= R 2^-s b / S(v) is checked as a S(v) 2^s <= R b S(u). Cost: 0.2 microseconds a triple.
    """
    breaches, bounds = [], {length: lower_bound(length) for length in {length for _, _, length in edges}}
    for tail, head, length in edges:
        factor, shift = bounds[length]
        for u, v in ((tail, head), (head, tail)):
            shared = math.gcd(sums[u], sums[v])
            left = (sums[v] // shared) << max(shift, 0)
            right = (factor * (sums[u] // shared)) << max(-shift, 0)
            over = list(map(gt, map(left.__mul__, rows[u]), map(right.__mul__, rows[v])))
            breaches += [(u, v, y) for y, breach in enumerate(over) if breach] if any(over) else []
    return breaches


def connected(n: int, edges: list[Edge]) -> bool:
    """Whether the edges lead from secret 0 to all n secrets."""
    beside: Integers = [[] for _ in range(n)]
    for tail, head, _ in edges:
        beside[tail].append(head)
        beside[head].append(tail)
    seen, waiting = {0}, [0]
    while waiting:
        waiting += (fresh := set(beside[waiting.pop()]) - seen)
        seen |= fresh
    return len(seen) == n


class Claim:
    """A metric as data: kind, stencil, the least and the largest level, scale, and rate, the product of these two."""

    def __init__(self, metric: dict[str, Any]) -> None:
        self.kind, self.stencil = metric["kind"], metric.get("stencil", 0)
        levels = _flat(metric["level"]["eps"]) if self.kind == "eikonal" else [metric.get("epsilon", 0)]
        self.least, self.most, self.scale = min(levels), max(levels), metric["multiplier"]
        numbers = all(type(value) in (int, float) and 0 <= value <= HIGHEST for value in [*levels, self.scale])
        if self.kind not in KINDS or not numbers or type(self.stencil) is not int:
            raise BadInput(f"the metric, {str(self.kind)[:50]}, is none that this program knows")
        self.rate = Fraction(self.most) * Fraction(self.scale)

    def words(self, inside: str, unit: str) -> str:
        """The distance in words; inside, what an integral runs along."""
        rate = f"{self.most!r} nats per {'unit' if unit == '1' else unit}"
        stencil = f"the edges of the {self.stencil}-neighbour graph"
        words = {
            "discrete": f"the discrete metric, {self.most!r} nats between any two secrets (local differential privacy)",
            "euclidean": f"the Euclidean distance{'' if inside else ' over all pairs'} times {rate}",
            "eikonal": f"the least integral of the level eps ({self.least!r} to {rate}) along {inside or stencil}",
            "streets": f"the shortest-path distance along the streets of this file, either way, times {rate}",
            "graph": "the shortest-path distance of the edges listed in this file",
        }
        scale = f"{self.scale!r} times " if self.scale != 1 and self.kind != "graph" else ""
        return scale + words[self.kind]


def _flat(values: Any) -> list[Any]:
    return [at for part in values for at in _flat(part)] if type(values) is list else [values]


def lattice(table: Table) -> list[tuple[int, ...]] | None:
    """The places of the secrets on the grid of the claim; None where they are not those of different cells of it."""
    shape, sides, origin = (table.header["claim"]["domain"][name] for name in ("shape", "cell", "origin"))
    wild = min(sides) < 1 / HIGHEST or max(sides) > HIGHEST
    if wild or len({*map(len, (shape, sides, origin, table.points[0]))}) > 1:
        return None
    cells = []
    for point in table.points:
        at = [(x - low) / h - 0.5 for x, low, h in zip(point, origin, sides, strict=True)]
        cells.append(tuple(map(round, at)))
        if any(abs(x - k) > 1e-6 or not 0 <= k < n for x, k, n in zip(at, cells[-1], shape, strict=True)):
            return None
    return cells if len(set(cells)) == len(cells) else None


def of_places(table: Table) -> bool:
    """True where secrets are places: in a length, or on two axes or three in no unit."""
    unit = table.header["claim"]["domain"]["unit"]
    return unit in LENGTHS or (unit == "1" and len(table.points[0]) > 1)


def sentence(table: Table) -> str:
    """The claim of the rows, put together from the data of the file."""
    claim = table.header["claim"]
    domain = claim["domain"]
    where = (
        f"{'cells' if of_places(table) else 'intervals'} of a {_grid(domain)}" if domain["kind"] == "grid" else "places"
    )
    distance = Claim(claim["metric"]).words("", claim["domain"]["unit"])
    return (
        f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {len(table.rows)} secrets "
        f"({where}), where d is {distance}; checked on {len(table.edges)} edges. k reports cost k times as much."
    )


def _grid(domain: dict[str, Any]) -> str:
    plane, size = domain.get("plane"), f"{' x '.join(f'{count:d}' for count in domain['shape'])} grid"
    return size if plane is None else f"{size} about {plane['latitude']:.9g}, {plane['longitude']:.9g} (WGS84)"


def claim_faults(table: Table) -> list[str]:
    """Where unit, grid, a length or a pair of secrets is not as the claim says."""
    data, n = table.header["claim"], len(table.points)
    claim, domain = Claim(data["metric"]), data["domain"]
    if domain["unit"] != table.header["unit"]:
        return [f"the claim is in nats per {domain['unit']}, and the coordinates are in {table.header['unit']}"]
    cells = lattice(table) if domain["kind"] == "grid" else [(u,) for u in range(n)]
    if cells is None:
        return [f"the coordinates are not those of different cells of a {_grid(domain)}"]
    if claim.kind in ("graph", "streets"):
        return []
    steps = STENCILS.get((len(table.points[0]), claim.stencil), "").split()
    if claim.kind == "eikonal" and not (domain["kind"] == "grid" and steps):
        return [f"no places have a graph of {claim.stencil} neighbours but those of a grid"]
    fine = max(at.as_integer_ratio()[1] for at in chain(*table.points))
    points = [tuple(int(Fraction(at) * fine) for at in point) for point in table.points]
    whole = max(length.as_integer_ratio()[1] for _, _, length in table.edges)
    p, q = ((claim.rate * whole / (1 if claim.kind == "discrete" else fine)) ** 2).as_integer_ratio()  # no roots

    def over(length: int, u: int, v: int) -> bool:
        square = 1 if claim.kind == "discrete" else sum((a - b) ** 2 for a, b in zip(points[u], points[v], strict=True))
        return length**2 * q > p * square

    listed: list[dict[int, int]] = [{} for _ in range(n)]
    for u, v, length in table.edges:
        listed[u][v] = listed[v][u] = int(Fraction(length) * whole)
        if over(listed[u][v], u, v) or (claim.kind == "eikonal" and length == 0 < claim.rate):
            return [f"the edge from {u} to {v} is {length} nats long, which is not what the claim says"]
    if claim.kind != "eikonal" or math.prod(domain["shape"]) > n:
        return [] if claim.kind == "eikonal" else _apart(cells, listed, over)
    at, moves = {cell: u for u, cell in enumerate(cells)}, product(range(-5, 6), repeat=len(cells[0]))
    near = [move for move in moves if "".join(sorted(map(str, map(abs, move)), reverse=True)) in steps]
    ends = ((u, at.get(tuple(map(add, cells[u], move)), u)) for u, move in product(range(n), near))
    return [f"no edge joins the neighbours {u} and {v}" for u, v in ends if u != v and v not in listed[u]][:1]


def _apart(cells: list[Any], listed: list[dict[int, int]], over: Any) -> list[str]:
    """The first pair that no path of edges was found to join within its limit. Paths lead over secrets between the two
    in the order of `cells`: none, then the last one in the same direction, then any.
    """
    order = sorted(range(len(cells)), key=cells.__getitem__)
    for i, u in enumerate(order if any(len(near) < len(cells) - 1 for near in listed) else ()):
        path = {u: 0}
        last: dict[Any, list[int]] = {}
        for v in order[i + 1 :]:
            step = [b - a for a, b in zip(cells[u], cells[v], strict=True)]
            way, near = tuple(s // (math.gcd(*step) or 1) for s in step), listed[v]
            lengths = (path[w] + near[w] for w in chain([u], last.get(way, ()), near) if w in path and w in near)
            path[v], last[way] = next((length for length in lengths if not over(length, u, v)), -1), [v]
            if path[v] < 0:
                return [f"no edges join {u} and {v} as closely as the claim says"]
    return []


def faults_of(table: Table) -> list[str]:
    """Why the claims of a table are not proved; empty where they are."""
    faults = claim_faults(table)
    if table.header["claim"]["positions"] is not None:
        faults += position_faults(table)
    faults += cap_faults(table)
    faults += [f"secret {u}: a mass is below 1" for u, row in enumerate(table.rows) if min(row) < 1]
    sums = enumerate(zip(map(sum, table.rows), table.sums, strict=True))
    faults += [f"secret {u}: the masses sum to {made}, not {total}" for u, (made, total) in sums if made != total]
    if not connected(len(table.rows), table.edges):
        faults.append("the edges do not connect all secrets")
    bad = breaches(table.rows, table.sums, table.edges) if min(table.sums) > 0 else []
    return faults + [f"{len(bad)} inequalities are broken, first P({y}|{u}) <= e^d P({y}|{v})" for u, v, y in bad[:1]]


def cap_faults(table: Table) -> list[str]:
    """Where a limit on the posterior of discs is broken, or not about this table."""
    faults, claim = [], table.header["claim"]
    for cap in claim.get("caps", []):
        name, (over, under), lift, people = cap_sentence(cap, table), _limit(cap, table), "factor" in cap, cap["people"]
        if any(total != ROW_SUM for total in table.sums) or claim["positions"] is not None:
            return ["limits on discs are about rows that sum to 2^62 and are drawn alone, not as means at positions"]
        weighted = [[k * mass for mass in row] for k, row in zip(people, table.rows, strict=True)]
        totals, alive = list(map(sum, zip(*weighted, strict=True))), sum(people)
        for disc in discs_of(cap, table, weighted):
            most = (over * sum(people[u] for u in disc), under * alive) if lift else (over, under)
            inside = map(sum, zip(*(weighted[u] for u in disc), strict=True))
            broken = [y for y, (a, b) in enumerate(zip(inside, totals, strict=True)) if most[1] * a > most[0] * b]
            if broken:
                faults.append(f"{name}: broken after report {broken[0]} by the secrets {sorted(disc)[:9]}")
                break
    return faults


def _limit(cap: dict[str, Any], table: Table) -> list[int]:
    """The two integers of a limit. Raises: BadInput for one that breaks a rule, whatever it is that it limits."""
    kind = "factor" if "factor" in cap else "share"
    over, under = cap[kind]
    people, radius = cap["people"], cap["radius"]
    if set(cap) != {"radius", "centres", "people", kind}:
        raise BadInput("a limit on discs has a radius, centres, people, and either a share or a factor, and no more")
    if [type(k) for k in (*people, over, under)] != [int] * (len(table.rows) + 2) or type(radius) not in (int, float):
        raise BadInput("people and limits are not integers, people one for each secret, or the radius is no number")
    if min(people) < 0 or not 0 < sum(people) < 1 << 32:
        raise BadInput("people are not from 0 on, or not at least one and fewer than 2^32 together")
    if not 0 < min(over, under) <= max(over, under) < 1 << 16 or (over <= under if kind == "factor" else over >= under):
        raise BadInput("a share is not between 0 and 1, a factor is not above 1, or a number is not below 2^16")
    if not 0 < radius < HIGHEST or cap["centres"] not in ("places", "anywhere", "area"):
        raise BadInput("no discs of this kind")
    return [over, under]


def discs_of(cap: dict[str, Any], table: Table, weighted: Integers) -> set[frozenset[int]]:
    """What discs about the points contain; and, where they are centred anywhere, discs through any two points: a set
    that some disc contains is part of one of these, as their common part has a corner where two of their circles cross.
    A factor needs every set that some disc contains, since its limit on a set says nothing of the parts. By area the
    cells that have most of a report: no others have more of it.
    """
    points, radius, centres, domain = table.points, cap["radius"], cap["centres"], table.header["claim"]["domain"]
    wide, middles = radius * (1 + SPARE), list(points)
    if centres == "area" and "factor" not in cap and domain["kind"] == "grid" and len(points[0]) == 2:
        a, b = domain["cell"]
        cells = math.floor(math.pi * (wide / a) * (wide / b))  # 0, where one is larger, stands for all: none is proved
        columns = zip(*weighted, strict=True)
        return {frozenset(sorted(range(len(points)), key=column.__getitem__)[-cells:]) for column in columns}
    if centres == "area" or len(points[0]) > 2:
        raise BadInput("no discs of this kind")
    for p, q in combinations(points if centres == "anywhere" else [], 2):
        if (apart := math.dist(p, q)) <= 2 * wide:
            middle, high = [(a + b) / 2 for a, b in zip(p, q, strict=True)], math.sqrt(max(wide**2 - apart**2 / 4, 0.0))
            aside = (0.0,) if len(p) == 1 else ((p[1] - q[1]) * high / apart, (q[0] - p[0]) * high / apart)
            middles += [tuple(m + sign * a for m, a in zip(middle, aside, strict=True)) for sign in (-1, 1)]
    if "factor" not in cap or centres == "places":
        return {frozenset(u for u, p in enumerate(points) if math.dist(p, m) <= wide * (1 + SPARE)) for m in middles}
    if len(points[0]) == 1:
        middles += [(x + sign * wide,) for (x,) in points for sign in (-1, 1)]
    return {face for middle in middles for face in _faces(points, middle, wide)}


def _faces(points: list[tuple[float, ...]], middle: tuple[float, ...], wide: float) -> set[frozenset[int]]:
    """The points inside the disc about a crossing of circles, and inside discs that are moved off it: one that moves in
    some direction keeps those points on its circle that lie on that side.
    """
    away = {u: math.dist(p, middle) for u, p in enumerate(points) if math.dist(p, middle) <= wide * (1 + SPARE)}
    on = {u: tuple(map(sub, points[u], middle)) for u, far in away.items() if far >= wide * (1 - ON_CIRCLE)}
    ways: list[tuple[float, ...]] = [(1.0,), (-1.0,)]
    if len(middle) == 2:
        turns = sorted(math.atan2(y, x) + sign * math.pi / 2 for x, y in on.values() for sign in (-1, 1))
        ends = sorted({round(turn % math.tau, 9) for turn in turns})
        halves = [(a + b) / 2 for a, b in zip(ends, [*ends[1:], *(a + math.tau for a in ends[:1])], strict=True)]
        ways = [(math.cos(half), math.sin(half)) for half in halves]
    behind = [{u for u, step in on.items() if sum(map(mul, step, way)) <= 0} for way in ways]
    return {frozenset(away), *(frozenset(set(away) - gone) for gone in behind if gone < set(away))}


def cap_sentence(cap: dict[str, Any], table: Table) -> str:
    """A limit on discs, or on cells by area, in words."""
    (over, under), times = _limit(cap, table), " times its share before" * ("factor" in cap)
    secrets, axis = ("cells" if of_places(table) else "intervals"), not of_places(table) and len(table.points[0]) == 1
    cells = f"{secrets} that are together no larger than a " * (cap["centres"] == "area")
    about = f" about the centre of {'an' if secrets[0] == 'i' else 'a'} {secrets[:-1]}" * (cap["centres"] == "places")
    size = f"{cap['radius']!r} {table.header['unit']}{' either way' * axis}{about}"
    disc = f"any {cells}{'interval' if axis else 'disc'} of {size}"
    return f"after one report at most {over}/{under}{times} of the posterior lies in {disc}"


def position_sentence(table: Table) -> str:
    """The claim about positions, put together from the data of the file."""
    data = table.header["claim"]
    claim, domain = Claim(data["positions"]["metric"]), data["domain"]
    side, unit = domain["cell"][0], "unit" if domain["unit"] == "1" else domain["unit"]
    distance = claim.words("paths inside the cells", domain["unit"])
    if math.prod(domain["shape"]) > len(table.rows):
        distance = distance.replace("the Euclidean distance", "the length of the shortest path inside the cells")
    return (
        f"One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in the "
        f"{len(table.rows)} cells, {side!r} {unit} wide, of a {_grid(domain)}, where D is {distance} and "
        f"r = {float(claim.rate) * side * ROUNDED:.3g} is for rounding positions to 2^-16 of a cell; drawn by the "
        "quadratic B-spline of 3 x 3 cells. k reports cost k times as much."
    )


def position_faults(table: Table) -> list[str]:
    """Where the claim about positions is not about this table, or a gradient is not proved to be small enough."""
    data: dict[str, Any] = table.header["claim"]
    patches: Any = table.header.get("patch")
    claim, cells = Claim(data["positions"]["metric"]), lattice(table)
    sides = set(data["domain"]["cell"])
    if not cells or len(cells[0]) != 2 or len(sides) > 1 or claim.kind not in ("euclidean", "eikonal"):
        return ["the claim about positions is not about squares on a plane, and a metric with a level"]
    if not any(all(list(map(type, patch)) == [int] * 9 + [str] * k for patch in patches) for k in (4, 16)):
        raise BadInput("a patch is nine integers and four or sixteen exact floats in hex")
    rows, levels = _rows_around(cells), [[float.fromhex(level) for level in patch[9:]] for patch in patches]
    if rows != [patch[:9] for patch in patches]:
        return ["the rows around a cell are not those of the claim about positions"]
    if not all(0 < level <= claim.rate for level in chain(*levels)):
        return ["the claim about positions is about lower levels"]
    if any(total != ROW_SUM for total in table.sums):
        return ["the claim about positions is about rows that sum to 2^62"]
    broken = steep_pairs(table.rows, rows, levels, sides.pop())
    return [f"{len(broken)} gradients of positions are too steep, first of P({y}|x) in cell {u}" for u, y in broken[:1]]


def _rows_around(cells: list[Any]) -> Integers:
    """The rows of the nine cells around each: a cell's own, or that of the nearest one, the first of several."""
    at = {cell: u for u, cell in enumerate(cells)}

    def row(x: int, y: int) -> int:
        return min((a * a + b * b, at[x + a, y + b]) for a, b in AROUND if (x + a, y + b) in at)[1]

    return [[row(x + i, y + j) for i, j in AROUND] for x, y in cells]


def steep_pairs(masses: Integers, rows: Integers, levels: list[list[float]], side: float) -> list[tuple[int, int]]:
    """The cells and reports for which the coefficients of the four quarters of the cell do not prove the claim.

    A quarter at a constant level, the least of its corners, has nine conditions on its coefficients of degree 2: those
    of degree 3, at a level that varies, follow by convexity, and are compared only where one of the nine fails.
    """
    broken = []
    for u, (around, level) in enumerate(zip(rows, levels, strict=True)):
        own, steep = _own_levels([int(Fraction(each) * Fraction(side) * ONE) for each in level]), set()
        fine = _halved([masses[row] for row in around])
        for (i, j), corners in zip(ENDS, own, strict=True):
            least = min(chain(*corners))
            for shape in CONES:
                steep.update(outside([fine[i + k // 3][j + k % 3] for k in shape], least))
        for y in sorted(steep):
            parts = [[[at[y] for at in row[j : j + 3]] for row in fine[i : i + 3]] for i, j in ENDS]
            if not all(gentle(part, corners) for part, corners in zip(parts, own, strict=True)):
                broken.append((u, y))
    return broken


def _own_levels(z: list[int]) -> list[Integers]:
    """Four times the levels at the corners (2, 2) of each quarter, from those of the cell (4,) or of its quarters."""
    if len(z) == 4:
        a, b, c, d = z
        half = [[4 * a, 2 * (a + b), 4 * b], [2 * (a + c), sum(z), 2 * (b + d)], [4 * c, 2 * (c + d), 4 * d]]
        return [[row[j : j + 2] for row in half[i : i + 2]] for i, j in ENDS]
    return [[[4 * k for k in z[q + i : q + i + 2]] for i in (0, 2)] for q in range(0, 16, 4)]


def _halved(nine: Integers) -> list[Integers]:
    """16 times the masses of the same spline in the 4 x 4 cells of half the side, in and around a cell."""

    def half(c: list[int], a: list[int], b: list[int], d: list[int]) -> list[int]:
        return [9 * p + 3 * (q + r) + s for p, q, r, s in zip(c, a, b, d, strict=True)]

    return [[half(*(nine[3 * x + y] for x in xs for y in ys)) for ys in SHARED] for xs in SHARED]


def outside(lists: Integers, level: int) -> list[int]:
    """The reports whose gradient at a corner, the middle of an edge or the node is above a level, in units of WHOLE."""
    triples = enumerate(map(GRADIENTS[len(lists)], *lists))
    return [y for y, (across, along, value) in triples if (across**2 + along**2) * WHOLE**2 > (level * value) ** 2]


def gentle(p: Integers, z: Integers) -> bool:
    """Whether the gradient of the spline of p (3, 3) has coefficients at most those of it times z / WHOLE (2, 2)."""
    sums: dict[tuple[int, int], list[int]] = {}
    for i, j in product(range(3), repeat=2):
        parts = [sum(f[i][k] * g[j][m] * p[k][m] for k, m in product(range(3), repeat=2)) for f, g in SLOPES]
        for k, m in ENDS:
            sums_at = sums.setdefault((i + k, j + m), [0, 0, 0])
            sums[i + k, j + m] = list(map(add, sums_at, (parts[0], parts[1], parts[2] * z[k][m])))
    return all((x * x + y * y) * WHOLE**2 <= t * t for x, y, t in sums.values())


def say(line: str) -> None:
    """Print 2,000 characters of a line at most, escaped where they are not printable, or not on this terminal."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[:2000])
    encoding = sys.stdout.encoding or "ascii"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _summary(table: Table) -> list[str]:
    placed = table.header["claim"]["positions"] is not None
    if placed:
        say(f"claim:    {position_sentence(table)}")
    say(f"{'of rows:' if placed else 'claim:':10}{sentence(table)}")
    for cap in table.header["claim"].get("caps", []):
        say(f"limit:    {cap_sentence(cap, table)}, for whoever knows the people of the file")
    for name in (*SAID, "sha256"):
        say(f"{name + ':':10}{table.header.get(name)}")
    n, m, e = len(table.rows), len(table.rows[0]), len(table.edges)
    say(f"checked:  {n} x {m} masses, {n} row sums, {e} edges both ways: {2 * e * m} inequalities, in integers")
    low, high = (end(length for _, _, length in table.edges) for end in (min, max))
    say(f"lengths:  {low!r} to {high!r} nats: between the ends of an edge a report changes odds by e^{high!r} at most")
    if high > LONGEST:
        say("warning:  the longest edge hides nothing: no two probabilities of a table are so far apart")
    people = "; how many people live where" * bool(table.header["claim"].get("caps"))
    say(f"trusted:  coordinates and their unit; lengths and pairs as far as the claim does not tell them{people}")
    proved = "every gradient is within the levels, for any two positions, and " if placed else ""
    proved += "every inequality of the claim holds on the edges listed, and they connect all secrets"
    return [f"refused:  {fault}" for fault in faults_of(table)] or [f"proved:   {proved}"]


def main(arguments: list[str]) -> int:
    """Print the claims of a table, and what is wrong or proved; 0 proved, 1 refused, 2 no such table."""
    if len(arguments) != 1:
        say("usage: python verify_table.py TABLE.json or TABLE.csv")
        return 2
    try:
        lines = _summary(read(arguments[0]))
    except (BadInput, MemoryError, *BROKEN) as error:
        broken = f"not a mechanism table ({type(error).__name__}: {error})"
        say(f"no table: {arguments[0]}: {error if isinstance(error, BadInput) else broken}")
        return 2
    except Refused as error:
        lines = [f"refused:  {arguments[0]}: {error}"]
    for line in lines:
        say(line)
    return int(lines[0].startswith("refused"))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, KeyboardInterrupt):  # nobody reads what it prints
        os._exit(2)
