"""Check an exported mechanism table in integers: python verify_table.py TABLE.json, or .csv and its -metadata.json.

Rows (`check_rows`, `check_edges`). A[u][y] are integers >= 1, row u sums to S(u): exactly 2^62, or the column row_sum
if there is one. At a secret u a report y has P(y|u) = A[u][y] / S(u). For every edge (u, v) of the table, d nats long,
and every y

    P(y|u) <= e^d P(y|v)   and   P(y|v) <= e^d P(y|u),

and the edges connect all secrets. Multiplying along the shortest path from u to v, of length D, gives
P(y|u) <= e^D P(y|v). k reports cost k times as much. A lower bound replaces e^d: 1 + t <= e^t, so
(1 + d / 2^K)^(2^K) <= e^d                                                                                       (1)
by K squarings, each rounded down.

Claim (`check_metric`). Metric and domain are data of the file. They are compared with the table in exact fractions, and
the printed sentence is made from them. T is the scale of the metric, E its epsilon, B the largest of its levels, and
|p - q| the distance between the coordinates of two secrets.

Positions (`check_positions`) and limits on posteriors (`check_posterior_limits`) are checked if they are claimed. The
lower bound and the expected loss (`proved_figures`) are recomputed if the file has trees.

The script trusts coordinates, unit and place on Earth. It trusts that lengths are integrals, that a varying level is
nowhere below e, and the neighbours if cells are masked. It trusts lengths that are the claim themselves, which
`mechdesign verify` rebuilds. It trusts the prior, names and the checksum of the mechanism's file.

Exit code: 0 proved, 1 refused, 2 not a table, or interrupted. It needs Python 3.10 alone. Cost: 0.2 microseconds for
each of 2 e m inequalities, 4 for a Euclidean pair without an edge, 30 to 3,000 for each cell and report of positions.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from operator import add, gt, mul, neg, sub
from pathlib import Path
from typing import Any, NamedTuple

# The format of a file.
FORMAT = "mechdesign/table/1"
METADATA = "-metadata.json"  # follows the name of a CSV table
MOST_BYTES = 1 << 31
DIGITS = 40  # of an integer: rows sum to less than 2^128
NUMBER = re.compile(r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?")
CONTROL_CHARACTERS = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")
TEXTS = ("unit", "problem", "program")  # of the header
DEGREES = "x, y, longitude, latitude"  # of coordinates with a place on Earth
AXES = {None: {1, 2, 3}, DEGREES: {4}}  # numbers of a place
LENGTHS = ("m", "km", "cm", "mm", "mi", "nmi", "ft", "yd", "in", "cell")  # other units measure values, not places
KINDS = ("discrete", "euclidean", "eikonal", "streets", "graph")

# Rows and edges.
ROW_SUM = 1 << 62
BOUND_BITS = 62  # kept of the bound of e^d
SQUARINGS = 140  # (1 + d / 2^140)^(2^140) falls short of e^d by less than 2^-126 of it, for d <= 128
WORKING_BITS = 320  # the roundings of 140 squarings add up to less than 2^-179
LONGEST = 128.0  # nats: a longer edge is held to this; no two probabilities are further apart than 10^40 = e^92.2
HIGHEST = 1e150  # of levels and sides: their products are doubles

# Steps to the neighbours of a cell, up to order and direction, by numbers of axes and of neighbours.
_PLANE_STEPS = ((1, 0), (1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (4, 3), (5, 2), (5, 3))
STENCILS: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {(1, k): ((1,),) for k in (4, 8, 16, 32, 64)}
STENCILS |= {(2, k): _PLANE_STEPS[:steps] for k, steps in ((4, 1), (8, 2), (16, 3), (32, 5), (64, 9))}
STENCILS |= {(3, 6): ((1, 0, 0),), (3, 18): ((1, 0, 0), (1, 1, 0)), (3, 26): ((1, 0, 0), (1, 1, 0), (1, 1, 1))}
LONGEST_STEP = 5  # cells along an axis

# Positions: the 3 x 3 rows around a cell, and the places in such a patch at which a gradient is compared.
AROUND = list(product((-1, 0, 1), repeat=2))
QUARTERS = list(product((0, 1), repeat=2))
CONES = [
    *((0, 3, 1, 4), (1, 4, 2, 5), (3, 6, 4, 7), (4, 7, 5, 8)),  # corners
    (4, 7, 1, 5, 3),  # the node
    *((1, 4, 2, 5, 0, 3), (4, 7, 5, 8, 3, 6), (3, 4, 6, 7, 0, 1), (4, 5, 7, 8, 1, 2)),  # middles of edges
]
SHARED = ((0, 1), (1, 0), (1, 2), (2, 1))  # cells that a half is a mean of, with weights 3 and 1
ONE = 1 << 60  # of integers for levels times the side of a cell, rounded down
WHOLE = 8 * ONE  # of four times these, over half the side
VALUE = ((1, 1, 0), (0, 4, 0), (0, 1, 1))  # Bernstein coefficients of the three B-splines along an axis
SLOPE = ((-2, 2, 0), (-2, 0, 2), (0, -2, 2))  # of their derivatives
SLOPES = ((SLOPE, VALUE), (VALUE, SLOPE), (VALUE, VALUE))  # along the two axes: both slopes, and the value
ROUNDED = 1.01 * math.sqrt(2) / 65536  # sides by which rounding to 2^-16 of a cell parts two positions, and a percent

# The lower bound.
STEPS = 1 << 16  # a tree lists parent - place modulo this
DECAY_BITS = 250  # of bounds of e^-d: 64 and more are left of e^-128
COST_BITS = 100  # of the largest cost
PRIOR_SLACK = 2.0**-20  # of the sum of a prior of doubles, as of the package
AGREE = 1e-9  # relative: figures of the package are sums of doubles
ROOT_BITS = 64  # of a distance, after those of coordinates
# Losses of squared distances in units of 4^-k, and the bits of the unit of such a loss, from k.
LOSSES: dict[str, tuple[Callable[[int], int], Callable[[int], int]]] = {
    "squared": (lambda square: square, lambda k: 2 * k),
    "distance": (lambda square: math.isqrt(square << 2 * ROOT_BITS), lambda k: k + ROOT_BITS),
    "zero-one": (lambda square: int(square > 0), lambda k: 0),
}

# Limits on posteriors.
SPARE = 2.0**-40  # of radii, for rounding
ON_CIRCLE = 2.0**-37  # of a radius: how far off a circle a point may be that is taken for one on it

Integers = list[list[int]]
Point = tuple[float, ...]
# Raised by code that reads a file of another shape: the file is not a table then.
BROKEN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


class BadInput(Exception):
    """The file is not a table of this kind: nothing is proved or refused."""


class Refused(Exception):
    """The table was altered."""


class Edge(NamedTuple):
    """The inequalities P(y|tail) <= e^nats P(y|head) and back, for every report y."""

    tail: int
    head: int
    nats: float


class ExpBound(NamedTuple):
    """The number numerator / 2^shift, with 2^61 <= numerator < 2^62."""

    numerator: int
    shift: int


class TableFile(NamedTuple):
    """The header, rows (n, m) of masses, their sums (n,), edges, and points of secrets and reports (1..3 numbers)."""

    header: dict[str, Any]
    rows: Integers
    sums: list[int]
    edges: list[Edge]
    points: list[Point]
    reports: Sequence[Point] = ()


# ---- reading a file ----
def read(path: str | Path) -> TableFile:
    """Read a table. Raises: BadInput if the file is not a complete table; Refused if it was altered."""
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".json"):
        raise BadInput("the name must end in .csv or .json")
    try:
        return read_csv(path) if kind == ".csv" else read_json(path)
    except BROKEN as error:
        raise BadInput(f"not a mechanism table ({type(error).__name__}: {error})") from error


def read_csv(path: str | Path) -> TableFile:
    """Read a CSV file and its JSON description."""
    table, description = _bytes(path), _sealed_bytes(f"{path}{METADATA}")
    header = _json(description.decode())
    if header["table_sha256"] != hashlib.sha256(table).hexdigest():
        raise Refused(f"the checksum of the table differs from its {METADATA}: altered, or cut short")
    if CONTROL_CHARACTERS.search(description) or CONTROL_CHARACTERS.search(table):
        raise BadInput("holds control characters")
    return _from_csv(header, table.decode())


def read_json(path: str | Path) -> TableFile:
    """Read a JSON file."""
    description = _sealed_bytes(path)
    header = _json(description.decode())
    if CONTROL_CHARACTERS.search(description):
        raise BadInput("holds control characters")
    return _from_json(header)


def _bytes(path: str | Path) -> bytes:
    try:
        if Path(path).is_file() and Path(path).stat().st_size <= MOST_BYTES:
            return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {error}") from error
    raise BadInput(f"{str(path)[-60:]} is not a regular file of at most {MOST_BYTES} bytes")


def _sealed_bytes(path: str | Path) -> bytes:
    """The bytes of a file whose last line is the SHA-256 of the lines before it."""
    data = _bytes(path)
    # The checksum detects damage, not intent: whoever changes a file can compute it again.
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    digest = hashlib.sha256(data[:start]).hexdigest()
    if data[start:] != b'"content_sha256": "%s"}\n' % digest.encode():
        raise Refused("the last line is not the checksum of the lines before it: altered, or cut short")
    return data


def _json(text: str) -> Any:
    """JSON with unique names at any depth and finite numbers."""
    return json.loads(
        text, object_pairs_hook=_unique_names, parse_int=_whole, parse_float=_number, parse_constant=_number
    )


def _unique_names(pairs: list[Any]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise BadInput(f"duplicate name among {[name for name, _ in pairs]}")
    return dict(pairs)


def _whole(text: str) -> int:
    # int() would also accept underscores, blanks and digits of other scripts, which other readers take otherwise.
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= DIGITS
    if not (plain and (digits[0] != "0" or digits == "0")):
        raise BadInput(f"{text[:50]!r} is not a plain integer")
    return int(text)


def _number(text: str) -> float:
    if NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    raise BadInput(f"{text[:50]!r} is not a plain finite number")


def _from_csv(header: dict[str, Any], text: str) -> TableFile:
    lines = _without_labels(header, text[:-1].split("\n"))
    columns, body = lines[0].split(","), lines[1:]
    report, probability = columns.index("report"), columns.index("probability")
    has_sums = columns[-1] == "row_sum"  # of a factored mechanism
    axes = header.get("coordinates", "x, y, z").split(", ")
    expected = ["secret", *(f"secret_{axis}" for axis in axes[: report - 1])]
    expected += ["report", *(f"report_{axis}" for axis in axes[: probability - report - 1])]
    expected += ["probability", "mass"]
    if has_sums:
        expected.append("row_sum")
    if columns != expected or header["format"] != FORMAT:
        raise BadInput("unknown format, or columns other than secret, ..., report, ..., probability, mass")
    n, width = header["secrets"], header["reports"]
    if len(body) != n * width:
        raise BadInput(f"incomplete: {len(body)} of {n} x {width} lines, one for each secret and report")
    reports = [[str(y), *line.split(",")[report + 1 : probability]] for y, line in enumerate(body[:width])]
    rows: Integers = []
    sums: list[int] = []
    secret_points: list[Any] = []
    for u in range(n):
        entries = [line.split(",") for line in body[u * width : (u + 1) * width]]
        secret = [str(u), *entries[0][1:report]]
        end = entries[0][probability + 2 :]
        masses = [_whole(entry[probability + 1]) for entry in entries]
        total = _whole(end[0]) if has_sums else ROW_SUM
        shares = [[repr(mass / total), str(mass)] for mass in masses]
        if entries != [[*secret, *place, *share, *end] for place, share in zip(reports, shares, strict=True)]:
            raise BadInput(
                f"secret {u}: rows out of order, coordinates that change, or a probability other than mass / sum"
            )
        secret_points.append([_number(text) for text in secret[1:]])
        rows.append(masses)
        sums.append(total)
    divisor = "row_sum" if has_sums else "2^62"
    report_points = [[_number(text) for text in place[1:]] for place in reports]
    return _make_table(header, divisor, rows, sums, header.pop("edge"), secret_points, report_points)


def _without_labels(header: dict[str, Any], lines: list[str]) -> list[str]:
    """The lines of a CSV without the labels of classes at their ends, which must be those of the header in order."""
    names, reports = header["claim"]["domain"].get("labels"), header.get("report_labels")
    if names is None or reports is None:
        return lines
    for labels in (names, reports):
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise BadInput("the labels of the classes are not texts")
    ends = [f",{_field(name)},{_field(report)}" for name in names for report in reports]
    ends.insert(0, ",secret_label,report_label")
    if len(lines) != len(ends) or not all(line.endswith(end) for line, end in zip(lines, ends, strict=True)):
        raise BadInput("the labels of the lines are not those of the classes, in order")
    return [line[: -len(end)] for line, end in zip(lines, ends, strict=True)]


def _field(label: str) -> str:
    """A text as the CSV writes it: an apostrophe before the sign of a formula, quotes where a field needs them."""
    cell = f"'{label}" if re.match(r"'*[=+\-@\t\r]", label) else label
    return '"' + cell.replace('"', '""') + '"' if re.search(r'[,"]', cell) else cell


def _from_json(header: dict[str, Any]) -> TableFile:
    lists = [header.pop(name) for name in ("mass", "edge", "secret_points", "report_points")]
    if header["format"] != FORMAT or any(type(part) is not list for part in lists):
        raise BadInput("unknown format, or masses, edges and coordinates are not lists")
    masses, edges, secret_points, report_points = lists
    rows = [[_whole(mass) for mass in row.split(" ")] for row in masses]
    return _make_table(header, "2^62", rows, [ROW_SUM] * len(rows), edges, secret_points, report_points)


def _make_table(
    header: dict[str, Any],
    divisor: str,
    rows: Integers,
    sums: list[int],
    edges: list[Any],
    secret_points: list[Any],
    report_points: list[Any],
) -> TableFile:
    """The table of these parts; refuses counts or types that differ from the header."""
    if header["claim"]["denominator"] != divisor:
        raise BadInput(f"the denominator of the claim is not {divisor}")
    for name in TEXTS:
        if not isinstance(header.get(name), str):
            raise BadInput(f"missing field: {name}")
    _check_unit(header["unit"])
    counts = [header[name] for name in ("secrets", "reports", "edges")]
    if any(type(count) is not int or count < 1 for count in counts):
        raise BadInput(f"{counts} are not numbers of secrets, reports and edges")
    n, m, e = counts
    lengths = (len(rows), len(edges), len(secret_points), len(report_points))
    if lengths != (n, e, n, m) or any(len(row) != m for row in rows):
        raise BadInput(f"expected {n} x {m} masses, {e} edges and as many coordinates as secrets and reports")
    coordinates = header.get("coordinates")
    for points in (secret_points, report_points):
        _check_points(points, coordinates)
    if coordinates:
        # Longitude and latitude repeat the place; the claim is about x and y.
        secret_points = [point[:2] for point in secret_points]
        report_points = [point[:2] for point in report_points]
    places = [[tuple(point) for point in points] for points in (secret_points, report_points)]
    return TableFile(header, rows, sums, _edges(edges, n), *places)


def _check_unit(unit: str) -> None:
    # The unit is printed inside the claim: free text could pass for a part of that sentence.
    plain = 0 < len(unit) <= 40 and unit.isprintable()
    if not plain or unit.count(" ") > 3 or re.search(r'[,;:!?"]|\. ', unit):
        raise BadInput("the unit is not a printable name of at most 40 characters and four words")


def _check_points(points: list[Any], coordinates: Any) -> None:
    axes = {len(point) for point in points}
    types = {type(number) for point in points for number in point}
    if len(axes) > 1 or not axes <= AXES.get(coordinates, set()) or not types <= {int, float}:
        raise BadInput("a place must have 1 to 3 coordinates, or 4 with longitude and latitude")


def _edges(listed: list[Any], n: int) -> list[Edge]:
    edges: dict[tuple[int, int], Edge] = {}
    for tail, head, digits in listed:
        if [type(tail), type(head), type(digits)] != [int, int, str] or digits != float.fromhex(digits).hex():
            raise BadInput(f"an edge must be two integers and an exact float in hex, got {[tail, head, digits]!r}")
        nats = float.fromhex(digits)
        # One edge for a pair of secrets: of two lengths, different readers could take different ones.
        pair = (min(tail, head), max(tail, head))
        # Digits of a number that is neither negative, inf nor nan begin with 0.
        if not 0 <= pair[0] < pair[1] < n or digits[0] != "0" or pair in edges:
            raise BadInput(f"invalid or duplicate edge from {tail} to {head} of {nats} nats")
        edges[pair] = Edge(tail, head, nats)
    return list(edges.values())


# ---- rows and edges ----
def check_rows(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """A[u][y] >= 1 and sum over y of A[u][y] = S(u)."""
    faults = [f"secret {u}: a mass is below 1" for u, row in enumerate(table.rows) if min(row) < 1]
    for u, (row, total) in enumerate(zip(table.rows, table.sums, strict=True)):
        if sum(row) != total:
            faults.append(f"secret {u}: the masses sum to {sum(row)}, not {total}")
    return faults


def check_edges(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """P(y|u) <= e^d P(y|v) and P(y|v) <= e^d P(y|u) on every edge (u, v) of d nats, and they connect all secrets."""
    faults = []
    if not is_connected(len(table.rows), table.edges):
        faults.append("the edges do not connect all secrets")
    if min(table.sums) > 0:
        broken = breaches(table.rows, table.sums, table.edges)
        if broken:
            u, v, y = broken[0]
            faults.append(f"{len(broken)} inequalities are broken, first P({y}|{u}) <= e^d P({y}|{v})")
    return faults


def breaches(rows: Integers, sums: list[int], edges: list[Edge]) -> list[tuple[int, int, int]]:
    """The (secret, other, report) with P(report|secret) > e^d P(report|other), over edges both ways."""
    broken = []
    bounds = {nats: lower_bound(nats) for nats in {nats for _, _, nats in edges}}
    for tail, head, nats in edges:
        bound = bounds[nats]
        for u, v in ((tail, head), (head, tail)):
            # With R 2^-s <= e^d, a / S(u) <= R 2^-s b / S(v) is compared as a S(v) 2^s <= R b S(u), without a division.
            # Rows mostly share the sum 2^62: dividing by the common factor leaves small multipliers.
            shared = math.gcd(sums[u], sums[v])
            factor_u = (sums[v] // shared) << max(bound.shift, 0)
            factor_v = (bound.numerator * (sums[u] // shared)) << max(-bound.shift, 0)
            # `map` over bound methods compares a row without a step of the interpreter for each report.
            exceeds = list(map(gt, map(factor_u.__mul__, rows[u]), map(factor_v.__mul__, rows[v])))
            if any(exceeds):
                broken += [(u, v, y) for y, breach in enumerate(exceeds) if breach]
    return broken


def lower_bound(nats: float) -> ExpBound:
    """A number of at most e^nats; the double `nats` counts as the exact fraction that it is."""
    p, q = min(nats, LONGEST).as_integer_ratio()
    # (1) in fixed point of 320 bits: 1 + d / 2^K, then K squarings. Every shift drops bits: the bound only falls.
    value = (1 << WORKING_BITS) + (p << WORKING_BITS) // (q << SQUARINGS)
    for _ in range(SQUARINGS):
        value = value * value >> WORKING_BITS
    drop = value.bit_length() - BOUND_BITS
    return ExpBound(value >> drop, WORKING_BITS - drop)


def is_connected(n: int, edges: list[Edge]) -> bool:
    """True if the edges lead from secret 0 to all n secrets."""
    neighbours: Integers = [[] for _ in range(n)]
    for tail, head, _ in edges:
        neighbours[tail].append(head)
        neighbours[head].append(tail)
    # Without a path between two secrets nothing bounds their ratio, however many edges hold.
    seen, waiting = {0}, [0]
    while waiting:
        fresh = set(neighbours[waiting.pop()]) - seen
        waiting += fresh
        seen |= fresh
    return len(seen) == n


# ---- the metric and its distances ----
class Metric:
    """A metric as data: kind, stencil, smallest and largest level, scale, and rate, largest level times scale."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.kind, self.stencil = data["kind"], data.get("stencil", 0)
        levels = _flat(data["level"]["eps"]) if self.kind == "eikonal" else [data.get("epsilon", 0)]
        self.least, self.most = min(levels), max(levels)
        self.scale = data["multiplier"]
        numbers = all(type(value) in (int, float) and 0 <= value <= HIGHEST for value in [*levels, self.scale])
        if self.kind not in KINDS or not numbers or type(self.stencil) is not int:
            raise BadInput(f"unknown metric: {str(self.kind)[:50]}")
        self.rate = Fraction(self.most) * Fraction(self.scale)

    def words(self, unit: str, *, path: str | None = None) -> str:
        """The distance in words; path: the curve of a claim between positions."""
        rate = f"{self.most!r} nats per {'unit' if unit == '1' else unit}"
        pairs = " over all pairs" if path is None else ""
        along = path or f"the edges of the {self.stencil}-neighbour graph"
        words = {
            "discrete": f"the discrete metric, {self.most!r} nats between any two secrets (local differential privacy)",
            "euclidean": f"the Euclidean distance{pairs} times {rate}",
            "eikonal": f"the least integral of the level eps ({self.least!r} to {rate}) along {along}",
            "streets": f"the shortest-path distance along the streets of this file, either way, times {rate}",
            "graph": "the shortest-path distance of the edges listed in this file",
        }
        if self.scale == 1 or self.kind == "graph":
            return words[self.kind]
        return f"{self.scale!r} times {words[self.kind]}"


def _flat(values: Any) -> list[Any]:
    if type(values) is not list:
        return [values]
    return [value for part in values for value in _flat(part)]


class ExactLimit:
    """Compares lengths with T times the distance of two secrets; squares are integers and need no root."""

    def __init__(self, table: TableFile, rate: Fraction, *, by_distance: bool) -> None:
        self._points: list[tuple[int, ...]] = []
        # Doubles are exact fractions with denominators that are powers of 2, so one common denominator is the largest.
        fine = 1
        if by_distance:
            fine = max(number.as_integer_ratio()[1] for number in chain(*table.points))
            self._points = [tuple(int(Fraction(number) * fine) for number in point) for point in table.points]
        self._by_distance = by_distance
        self.grain = max(nats.as_integer_ratio()[1] for _, _, nats in table.edges)
        # length / grain <= rate |p - q| / fine, squared: length^2 q <= p |p - q|^2 in integers.
        self._p, self._q = ((rate * self.grain / fine) ** 2).as_integer_ratio()

    def length(self, nats: float) -> int:
        return int(Fraction(nats) * self.grain)

    def is_exceeded(self, length: int, u: int, v: int) -> bool:
        # The discrete metric has distance 1.
        square = 1
        if self._by_distance:
            square = sum((a - b) ** 2 for a, b in zip(self._points[u], self._points[v], strict=True))
        return length**2 * self._q > self._p * square


def check_metric(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """Compare unit, grid and edges with the claimed metric; for streets and graphs the list of edges is the claim."""
    metric, domain = Metric(claim["metric"]), claim["domain"]
    if domain["unit"] != table.header["unit"]:
        return [f"the claim is in nats per {domain['unit']} but the coordinates are in {table.header['unit']}"]
    if domain["kind"] == "grid" and lattice(table.points, domain) is None:
        return [f"the coordinates are not centres of different cells of a {_grid(domain)}"]
    if metric.kind == "discrete":
        return check_discrete(table, claim)
    if metric.kind == "euclidean":
        return check_euclidean(table, claim)
    if metric.kind == "eikonal":
        return check_eikonal(table, claim)
    return []


def check_discrete(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """On every edge d <= T E, and on a shortest path between any two secrets without one."""
    return _check_lengths(table, claim, ExactLimit(table, Metric(claim["metric"]).rate, by_distance=False))


def check_euclidean(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """On every edge d <= T E |p - q|, and on a shortest path between any two secrets without one."""
    return _check_lengths(table, claim, ExactLimit(table, Metric(claim["metric"]).rate, by_distance=True))


def check_eikonal(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """0 < d <= T B |p - q| on every edge; without masked cells, an edge joins all neighbours."""
    metric, domain = Metric(claim["metric"]), claim["domain"]
    steps = STENCILS.get((len(table.points[0]), metric.stencil))
    if domain["kind"] != "grid" or steps is None:
        return [f"a metric of {metric.stencil} neighbours needs a grid"]
    # An integral of a level of at most B along a straight line is at most B |p - q|.
    limit = ExactLimit(table, metric.rate, by_distance=True)
    # A length of 0 claims two equal rows, which a positive level never does.
    lengths, faults = _bounded_lengths(table, limit, is_positive=metric.rate > 0)
    # In a masked grid an edge may be missing because its line leaves the area: neighbours are trusted then.
    if faults or math.prod(domain["shape"]) > len(table.points):
        return faults
    cells = _cells(table, claim)
    numbers = {cell: u for u, cell in enumerate(cells)}
    moves = product(range(-LONGEST_STEP, LONGEST_STEP + 1), repeat=len(cells[0]))
    stencil = [move for move in moves if tuple(sorted(map(abs, move), reverse=True)) in steps]
    for u, cell in enumerate(cells):
        for move in stencil:
            v = numbers.get(tuple(map(add, cell, move)), u)
            if u != v and v not in lengths[u]:
                return [f"no edge joins the neighbours {u} and {v}"]
    return []


def _bounded_lengths(
    table: TableFile, limit: ExactLimit, *, is_positive: bool = False
) -> tuple[list[dict[int, int]], list[str]]:
    """Lengths by secret and neighbour, and a fault for the first edge with an invalid length."""
    lengths: list[dict[int, int]] = [{} for _ in table.points]
    for u, v, nats in table.edges:
        lengths[u][v] = lengths[v][u] = limit.length(nats)
        if limit.is_exceeded(lengths[u][v], u, v) or (is_positive and nats == 0):
            return lengths, [f"the edge from {u} to {v} is {nats} nats long, which the claim does not allow"]
    return lengths, []


def _check_lengths(table: TableFile, claim: dict[str, Any], limit: ExactLimit) -> list[str]:
    """A fault for the first edge that is too long, or for the first pair without a short enough path."""
    lengths, faults = _bounded_lengths(table, limit)
    if faults:
        return faults
    cells = _cells(table, claim)
    # If every pair has an edge, the lengths of edges are the distances.
    if all(len(neighbours) == len(cells) - 1 for neighbours in lengths):
        return []
    order = sorted(range(len(cells)), key=cells.__getitem__)
    for place, u in enumerate(order):
        path = {u: 0}
        last: dict[tuple[int, ...], int] = {}  # by direction
        # One pass in the order of cells: paths to all secrets before v are known when v is reached.
        for v in order[place + 1 :]:
            direction = _direction(cells[u], cells[v])
            # The edge itself comes first, then the last secret in the same direction. The neighbours of v, which take
            # longest, come last.
            middles = chain([u], [last[direction]] if direction in last else [], lengths[v])
            through = (path[w] + lengths[v][w] for w in middles if w in path and w in lengths[v])
            # Any path within the limit proves the pair, so the first one will do.
            length = next((length for length in through if not limit.is_exceeded(length, u, v)), None)
            if length is None:
                return [f"no path of edges joins {u} and {v} within the distance of the claim"]
            path[v] = length
            last[direction] = v
    return []


def _direction(start: tuple[int, ...], end: tuple[int, ...]) -> tuple[int, ...]:
    step = [b - a for a, b in zip(start, end, strict=True)]
    times = math.gcd(*step) or 1
    return tuple(part // times for part in step)


def lattice(points: list[Point], domain: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """The cells of the points on a grid; None if a point is off the grid or two share a cell."""
    shape, sides, origin = (domain[name] for name in ("shape", "cell", "origin"))
    extreme = min(sides) < 1 / HIGHEST or max(sides) > HIGHEST
    if extreme or len({len(shape), len(sides), len(origin), len(points[0])}) > 1:
        return None
    cells = []
    for point in points:
        places = [(number - low) / side - 0.5 for number, low, side in zip(point, origin, sides, strict=True)]
        # Coordinates of a grid are products of doubles: they may be off by their rounding, not by 1e-6 of a cell.
        cell = tuple(map(round, places))
        cells.append(cell)
        if any(abs(place - k) > 1e-6 or not 0 <= k < n for place, k, n in zip(places, cell, shape, strict=True)):
            return None
    return cells if len(set(cells)) == len(cells) else None


def _cells(table: TableFile, claim: dict[str, Any]) -> list[tuple[int, ...]]:
    # Off grids, secrets stand in the order of their numbers.
    cells = lattice(table.points, claim["domain"]) if claim["domain"]["kind"] == "grid" else None
    return cells or [(u,) for u in range(len(table.points))]


def sentence(table: TableFile) -> str:
    """The claim of the rows in words, from the data of the file."""
    claim = table.header["claim"]
    domain = claim["domain"]
    where = "classes" if domain.get("labels") else "places"
    if domain["kind"] == "grid":
        where = f"{'cells' if of_places(table) else 'intervals'} of a {_grid(domain)}"
    distance = Metric(claim["metric"]).words(domain["unit"])
    return (
        f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {len(table.rows)} secrets "
        f"({where}), where d is {distance}; checked on {len(table.edges)} edges. k reports cost k times as much."
    )


def of_places(table: TableFile) -> bool:
    """True if secrets are places: in a unit of length, or on two or three axes without a unit."""
    unit = table.header["claim"]["domain"]["unit"]
    return unit in LENGTHS or (unit == "1" and len(table.points[0]) > 1)


def _grid(domain: dict[str, Any]) -> str:
    plane = domain.get("plane")
    size = f"{' x '.join(f'{count:d}' for count in domain['shape'])} grid"
    if plane is None:
        return size
    return f"{size} about {plane['latitude']:.9g}, {plane['longitude']:.9g} (WGS84)"


# ---- limits on posteriors ----
# A share is limited to over/under. N(u) people live at the cell of u. After any report y and for every disc
#
#     under * sum over u inside of N(u) A[u][y] <= over * sum over all u of N(u) A[u][y].                         (4)
#
# By area, so do any cells that are together no larger than the disc. A limit has a radius, centres, people, and a share
# or a factor. The script refuses any other limit, and any limit together with a claim about positions.


def check_posterior_limits(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """(4) for every limit, disc and report."""
    faults = []
    for cap in claim.get("caps", []):
        name, (over, under) = limit_sentence(cap, table), _limit(cap, table)
        people = cap["people"]
        if any(total != ROW_SUM for total in table.sums) or claim["positions"] is not None:
            return ["limits on discs need rows that sum to 2^62, and no claim about positions"]
        weighted = [[count * mass for mass in row] for count, row in zip(people, table.rows, strict=True)]
        # Proportional to the posterior of every report: N(u) A(u, y), in integers of any size.
        totals = list(map(sum, zip(*weighted, strict=True)))
        for disc in discs_of(cap, table, weighted):
            of_all, of_disc = over, under
            # A factor limits the share after a report over p(D), the share before: under inside <= over total p(D).
            # p(D) = people of the disc / all people, so both sides are multiplied by all people.
            if "factor" in cap:
                of_all, of_disc = over * sum(people[u] for u in disc), under * sum(people)
            inside = map(sum, zip(*(weighted[u] for u in disc), strict=True))
            broken = [
                y for y, (part, total) in enumerate(zip(inside, totals, strict=True)) if of_disc * part > of_all * total
            ]
            if broken:
                faults.append(f"{name}: broken after report {broken[0]} by the secrets {sorted(disc)[:9]}")
                break
    return faults


def _limit(cap: dict[str, Any], table: TableFile) -> tuple[int, int]:
    """The two integers of a limit. Raises: BadInput for a limit that breaks a rule."""
    kind = "factor" if "factor" in cap else "share"
    over, under = cap[kind]
    people, radius = cap["people"], cap["radius"]
    if set(cap) != {"radius", "centres", "people", kind}:
        raise BadInput(
            "a limit on discs must have radius, centres, people, and either share or factor, and nothing else"
        )
    whole = [type(number) for number in (*people, over, under)] == [int] * (len(table.rows) + 2)
    if not whole or type(radius) not in (int, float):
        raise BadInput("people and limits must be integers, people one for each secret, and the radius a number")
    if min(people) < 0 or not 0 < sum(people) < 1 << 32:
        raise BadInput("people must not be negative, and must sum to between 1 and 2^32 - 1")
    in_order = over > under if kind == "factor" else over < under
    if not (0 < min(over, under) <= max(over, under) < 1 << 16 and in_order):
        raise BadInput("a share must be between 0 and 1, a factor above 1, and their numbers below 2^16")
    if not 0 < radius < HIGHEST or cap["centres"] not in ("places", "anywhere", "area"):
        raise BadInput("no discs of this kind")
    return over, under


def discs_of(cap: dict[str, Any], table: TableFile, weighted: Integers) -> set[frozenset[int]]:
    """The sets of secrets to compare with a limit: they imply it for every other set inside a disc."""
    points, radius, centres = table.points, cap["radius"], cap["centres"]
    radius_up = radius * (1 + SPARE)
    domain = table.header["claim"]["domain"]
    if centres == "area" and "factor" not in cap and domain["kind"] == "grid" and len(points[0]) == 2:
        return _sets_by_area(domain["cell"], radius_up, weighted)
    if centres == "area" or len(points[0]) > 2:
        raise BadInput("no discs of this kind")
    middles = list(points)
    # The centres of all discs around a set form a region with a corner where two circles about its points cross. So
    # every set inside a disc is part of one in a disc about a crossing, or about a lone point.
    if centres == "anywhere":
        middles += _crossings(points, radius_up)
    # A share of a set limits its parts. A factor does not, so it needs every set that some disc contains.
    if "factor" not in cap or centres == "places":
        reach = radius_up * (1 + SPARE)
        return {frozenset(u for u, p in enumerate(points) if math.dist(p, middle) <= reach) for middle in middles}
    if len(points[0]) == 1:
        middles += [(x + sign * radius_up,) for (x,) in points for sign in (-1, 1)]
    return {face for middle in middles for face in _faces(points, middle, radius_up)}


def _sets_by_area(sides: list[float], radius: float, weighted: Integers) -> set[frozenset[int]]:
    """For each report the cells with the largest entries, as many as fit into the area of a disc."""
    a, b = sides
    # 0, if one cell is larger than the disc, makes the slice all cells: nothing is proved then.
    count = math.floor(math.pi * (radius / a) * (radius / b))
    # The limit on the largest N(u) A(u, y) implies it for any other set of as many cells.
    columns = zip(*weighted, strict=True)
    return {frozenset(sorted(range(len(weighted)), key=column.__getitem__)[-count:]) for column in columns}


def _crossings(points: list[Point], radius: float) -> list[Point]:
    """The centres of discs through any two of the points."""
    middles: list[Point] = []
    for p, q in combinations(points, 2):
        apart = math.dist(p, q)
        if apart > 2 * radius:
            continue
        middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        # Half the chord through the two centres, from Pythagoras; on one axis the interval about their middle.
        high = math.sqrt(max(radius**2 - apart**2 / 4, 0.0))
        offset: Point = (0.0,)
        if len(p) == 2:
            offset = ((p[1] - q[1]) * high / apart, (q[0] - p[0]) * high / apart)
        for sign in (-1, 1):
            middles.append(tuple(m + sign * step for m, step in zip(middle, offset, strict=True)))
    return middles


def _faces(points: list[Point], middle: Point, radius: float) -> set[frozenset[int]]:
    """The points inside the disc about a crossing of circles, and inside discs moved slightly off it."""
    inside = {u: math.dist(p, middle) for u, p in enumerate(points) if math.dist(p, middle) <= radius * (1 + SPARE)}
    on_circle = {
        u: tuple(map(sub, points[u], middle)) for u, distance in inside.items() if distance >= radius * (1 - ON_CIRCLE)
    }
    directions: list[Point] = [(1.0,), (-1.0,)]
    if len(middle) == 2:
        # Between two angles at which a point on the circle is lost or kept, all directions keep the same points.
        turns = sorted(math.atan2(y, x) + sign * math.pi / 2 for x, y in on_circle.values() for sign in (-1, 1))
        ends = sorted({round(turn % math.tau, 9) for turn in turns})
        following = [*ends[1:], *(first + math.tau for first in ends[:1])]
        halves = [(a + b) / 2 for a, b in zip(ends, following, strict=True)]
        directions = [(math.cos(half), math.sin(half)) for half in halves]
    faces = {frozenset(inside)}
    for direction in directions:
        # A disc that moves in a direction loses the points of its circle that lie behind.
        behind = {u for u, step in on_circle.items() if sum(map(mul, step, direction)) <= 0}
        if behind < set(inside):
            faces.add(frozenset(set(inside) - behind))
    return faces


def limit_sentence(cap: dict[str, Any], table: TableFile) -> str:
    """A limit on discs or on cells by area, in words."""
    over, under = _limit(cap, table)
    places = of_places(table)
    is_axis = not places and len(table.points[0]) == 1
    secrets = "cells" if places else "intervals"
    cells = f"{secrets} that are together no larger than a " if cap["centres"] == "area" else ""
    about = ""
    if cap["centres"] == "places":
        about = " about the centre of a cell" if places else " about the centre of an interval"
    disc = "interval" if is_axis else "disc"
    length = f"{cap['radius']!r} {table.header['unit']}"
    sets = f"any {cells}{disc} of {f'{length} either way' if is_axis else f'radius {length}'}{about}"
    if "factor" in cap:
        return f"one report multiplies the probability of {sets} by at most {over}/{under}"
    return f"after one report, at most {over}/{under} of the posterior lies in {sets}"


# ---- positions ----
# The cells are squares of side h. A position is x = centre of cell v + h s, s in [-1/2, 1/2]^2. The mechanism first
# draws a row of the 3 x 3 cells around v. Along either axis, the weights of the steps -1, 0 and +1 are (1/2 - s)^2 / 2,
# 3/4 - s^2 and (1/2 + s)^2 / 2 (2).
#
# From that row it draws a report y. A missing cell has the row of the first cell that shares a side with it, or else of
# the first that shares a corner. Let e be the bilinear function of the levels listed for the corners of a cell, or of
# its four quarters. With a level eps nowhere below e,
#
#     P(y|x) <= e^D P(y|x'),    D the least integral of eps along paths from x to x' inside the cells,
#
# because |grad P| <= e P on every cell. (3)
#
# Both sides of (3) are polynomials. On the four quarters of a cell the Bernstein coefficients of grad P are at most
# those of e P, in integers.


def check_positions(table: TableFile, claim: dict[str, Any]) -> list[str]:
    """(3) at every position, by coefficients of both sides; 0 < e <= T B; S(u) = 2^62."""
    if claim["positions"] is None:
        return []
    patches: Any = table.header.get("patch")
    metric, cells = Metric(claim["positions"]["metric"]), lattice(table.points, claim["domain"])
    sides = set(claim["domain"]["cell"])
    if not cells or len(cells[0]) != 2 or len(sides) > 1 or metric.kind not in ("euclidean", "eikonal"):
        return ["a claim about positions needs square cells on a plane, and a metric with a level"]
    if not any(all(list(map(type, patch)) == [int] * 9 + [str] * k for patch in patches) for k in (4, 16)):
        raise BadInput("a patch must be nine integers and four or sixteen exact floats in hex")
    # Rows around a cell are rebuilt, not trusted: with others the mean that is drawn would not have the weights (2).
    rows = _rows_around(cells)
    levels = [[float.fromhex(level) for level in patch[9:]] for patch in patches]
    if rows != [patch[:9] for patch in patches]:
        return ["the rows around a cell differ from those of the claim about positions"]
    if not all(0 < level <= metric.rate for level in chain(*levels)):
        return ["the level of a cell is not positive, or above that of the claim about positions"]
    if any(total != ROW_SUM for total in table.sums):
        return ["a claim about positions needs rows that sum to 2^62"]
    broken = steep_pairs(table.rows, rows, levels, sides.pop())
    if broken:
        u, y = broken[0]
        return [f"{len(broken)} gradients of positions are too steep, first of P({y}|x) in cell {u}"]
    return []


def _rows_around(cells: list[tuple[int, ...]]) -> Integers:
    """The rows of the nine cells around each cell; a missing cell has the row of the first nearest one."""
    numbers = {cell: u for u, cell in enumerate(cells)}

    def row(x: int, y: int) -> int:
        # Squared distance first, so that sides come before corners; then the number of the cell.
        present = [(a * a + b * b, numbers[x + a, y + b]) for a, b in AROUND if (x + a, y + b) in numbers]
        return min(present)[1]

    return [[row(x + i, y + j) for i, j in AROUND] for x, y in cells]


def steep_pairs(masses: Integers, rows: Integers, levels: list[list[float]], side: float) -> list[tuple[int, int]]:
    """The (cell, report) pairs for which the coefficients of the four quarters do not prove the claim."""
    broken = []
    for u, (around, level) in enumerate(zip(rows, levels, strict=True)):
        # Levels rounded down to integers: a lower level only makes the condition stricter.
        corners = corner_levels([int(Fraction(value) * Fraction(side) * ONE) for value in level])
        fine = _half_cells([masses[row] for row in around])
        suspects: set[int] = set()
        for (i, j), quarter in zip(QUARTERS, corners, strict=True):
            # First at a constant level, the minimum of the quarter: nine conditions on coefficients of degree 2, enough
            # for nearly all reports. Those of degree 3, at the bilinear level, follow from the nine by convexity.
            least = min(chain(*quarter))
            for shape in CONES:
                suspects.update(steep_reports([fine[i + k // 3][j + k % 3] for k in shape], least))
        # Only the remaining reports need the coefficients of degree 3, on all four quarters.
        for y in sorted(suspects):
            parts = [[[masses_of[y] for masses_of in row[j : j + 3]] for row in fine[i : i + 3]] for i, j in QUARTERS]
            if not all(gentle(part, quarter) for part, quarter in zip(parts, corners, strict=True)):
                broken.append((u, y))
    return broken


def corner_levels(z: list[int]) -> list[Integers]:
    """Four times the levels at the corners (2, 2) of each quarter, from levels of the cell (4,) or quarters (16,)."""
    if len(z) == 4:
        a, b, c, d = z
        half = [[4 * a, 2 * (a + b), 4 * b], [2 * (a + c), sum(z), 2 * (b + d)], [4 * c, 2 * (c + d), 4 * d]]
        return [[row[j : j + 2] for row in half[i : i + 2]] for i, j in QUARTERS]
    return [[[4 * k for k in z[q + i : q + i + 2]] for i in (0, 2)] for q in range(0, 16, 4)]


def _half_cells(nine: Integers) -> list[Integers]:
    """16 times the masses of the same spline in the 4 x 4 cells of half the side, in and around a cell."""

    # A half cell is 3/4 of its cell and 1/4 of the neighbour along each axis: weights 9, 3, 3, 1 of 16.
    def mean(c: list[int], a: list[int], b: list[int], d: list[int]) -> list[int]:
        return [9 * p + 3 * (q + r) + s for p, q, r, s in zip(c, a, b, d, strict=True)]

    return [[mean(*(nine[3 * x + y] for x in xs for y in ys)) for ys in SHARED] for xs in SHARED]


# The two parts of a gradient and the value, from the masses of the cells of a cone. The number of masses is the key: 4
# at a corner, 5 at the node, 6 in the middle of an edge.
GRADIENTS: dict[int, Callable[..., tuple[int, int, int]]] = {
    4: lambda c, e, n, d: (2 * (e + d - c - n), 2 * (n + d - c - e), c + e + n + d),
    5: lambda c, e, w, n, s: (e - w, n - s, 2 * c),
    6: lambda c, e, n, d, s, f: (4 * (e - c), n + d - s - f, 2 * (c + e)),
}


def steep_reports(lists: Integers, level: int) -> list[int]:
    """The reports whose gradient at a place of `CONES` exceeds a level, in units of WHOLE."""
    # |grad|^2 <= (level value)^2 without a root; both sides are integers.
    triples = enumerate(map(GRADIENTS[len(lists)], *lists))
    return [y for y, (across, along, value) in triples if (across**2 + along**2) * WHOLE**2 > (level * value) ** 2]


def gentle(p: Integers, z: Integers) -> bool:
    """True if the coefficients prove |grad s| <= s z / WHOLE for the spline s of p (3, 3) and levels z (2, 2)."""
    sums: dict[tuple[int, int], list[int]] = {}
    for i, j in product(range(3), repeat=2):
        across, along, value = (
            sum(f[i][k] * g[j][m] * p[k][m] for k, m in product(range(3), repeat=2)) for f, g in SLOPES
        )
        # The level is bilinear: it raises the degree by one along both axes.
        for k, m in QUARTERS:
            total = sums.setdefault((i + k, j + m), [0, 0, 0])
            total[0] += across
            total[1] += along
            total[2] += value * z[k][m]
    return all((across**2 + along**2) * WHOLE**2 <= value**2 for across, along, value in sums.values())


def position_sentence(table: TableFile) -> str:
    """The claim about positions in words, from the data of the file."""
    data = table.header["claim"]
    metric, domain = Metric(data["positions"]["metric"]), data["domain"]
    side, unit = domain["cell"][0], "unit" if domain["unit"] == "1" else domain["unit"]
    distance = metric.words(domain["unit"], path="paths inside the cells")
    if math.prod(domain["shape"]) > len(table.rows):
        distance = distance.replace("the Euclidean distance", "the length of the shortest path inside the cells")
    return (
        f"One report satisfies P(y|x) <= exp(D(x,x') + r) P(y|x') for every report y and all positions x, x' in the "
        f"{len(table.rows)} cells, {side!r} {unit} wide, of a {_grid(domain)}, where D is {distance} and "
        f"r = {float(metric.rate) * side * ROUNDED:.3g} is for rounding positions to 2^-16 of a cell; drawn by the "
        "quadratic B-spline of 3 x 3 cells. k reports cost k times as much."
    )


# ---- lower bound ----
# c(u, y) is the prior of u times the loss of report y at u. Multipliers lambda(u) leave r(u) = c(u, y) - lambda(u). Any
# column g of a table with this claim satisfies g(u) <= e^d g(v) on every edge, either way. So for an edge (v, p) and a
# number T, T g(v) is at least
#
#     T e^-d g(p) where T >= 0,   T e^d g(p) where T < 0.                                                          (5)
#
# The file names a parent p of every place v for each report. A place hands (5) to its parent, once its own children
# have handed over. A remainder below 0 is charged to lambda there. Sum (5) over reports: rows sum to 1, so that
#
#     expected loss >= sum over u of lambda(u) - the largest charge at u of any report.
#
# This holds for any parents and any lambda: wrong ones prove less. A parent that no edge joins gets nothing. Numbers
# are integers in one unit, rounded so that the bound only falls.


class Program(NamedTuple):
    """Costs (m, n) and multipliers (n,) in units of 2^-bits, rounded down."""

    costs: Integers
    dual: list[int]
    bits: int


class Figures(NamedTuple):
    """The expected loss of a table, rounded to nearest, and a proved lower bound, rounded down."""

    loss: float
    bound: float


def program_of(table: TableFile) -> Program:
    """The program that the bound is of, from prior, loss and coordinates."""
    header = table.header
    prior, dual = (_doubles(header[name]) for name in ("prior", "dual"))
    if {len(prior), len(dual)} != {len(table.rows)}:
        raise BadInput("a lower bound needs a prior and a multiplier for each secret")
    if min(prior) < 0 or abs(float(sum(prior)) - 1) > PRIOR_SLACK:
        raise BadInput("the prior has negative entries, or does not sum to 1")
    if any(total != ROW_SUM for total in table.sums) or header["claim"]["positions"] is not None:
        raise BadInput("a lower bound needs rows that sum to 2^62, and no claim about positions")
    # Denominators of doubles are powers of 2, so the largest one is a common one.
    coarse = max(share.denominator for share in prior)
    losses, bits_of_losses = _listed_losses(table) if "losses" in header else _coordinate_losses(table)
    weights = [int(share * coarse) for share in prior]
    exact = [list(map(mul, weights, own)) for own in losses]
    # In units in which the largest cost has 100 bits: those of `exact` may have thousands.
    shift = COST_BITS - max(map(max, exact)).bit_length()
    bits = bits_of_losses + coarse.bit_length() - 1 + shift
    costs = [[times_power(cost, shift) for cost in row] for row in exact]
    return Program(costs, [times_power(x.numerator, bits - x.denominator.bit_length() + 1) for x in dual], bits)


def _coordinate_losses(table: TableFile) -> tuple[Integers, int]:
    """Losses (m, n) in units of 2^-bits, and these bits, from coordinates."""
    if table.header["loss"] not in LOSSES or "report_unit" in table.header:
        raise BadInput("a lower bound needs a loss of coordinates, or a table of losses")
    fine = max(number.as_integer_ratio()[1] for number in chain(*table.points, *table.reports))
    secrets, reports = (
        [[int(Fraction(number) * fine) for number in point] for point in points]
        for points in (table.points, table.reports)
    )
    loss, bits_of_loss = LOSSES[table.header["loss"]]
    losses = [[loss(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))) for p in secrets] for q in reports]
    return losses, bits_of_loss(fine.bit_length() - 1)


def _listed_losses(table: TableFile) -> tuple[Integers, int]:
    """The same from the table of losses of the file."""
    losses = [_doubles(own.split(" ")) for own in table.header["losses"]]
    if len(losses) != len(table.rows[0]) or {len(own) for own in losses} != {len(table.rows)}:
        raise BadInput("each report needs a loss for each secret")
    if min(map(min, losses)) < 0:
        raise BadInput("losses are not negative")
    fine = max(loss.denominator for loss in chain(*losses))
    return [[int(loss * fine) for loss in own] for own in losses], fine.bit_length() - 1


def _doubles(listed: list[str]) -> list[Fraction]:
    if any(digits != float.fromhex(digits).hex() for digits in listed):
        raise BadInput("priors, multipliers and losses must be exact floats in hex")
    return [Fraction(float.fromhex(digits)) for digits in listed]


def times_power(number: int, bits: int) -> int:
    """The number times 2^bits, rounded down."""
    return number << bits if bits >= 0 else number >> -bits


def tree_bound(program: Program, edges: list[Edge], trees: Integers) -> int:
    """The lower bound that trees (m, n) of parent - place modulo 2^16 prove, in the units of the program."""
    n = len(program.dual)
    factors: list[dict[int, int]] = [{} for _ in range(n)]
    decays = {nats: decay(nats) for nats in {nats for _, _, nats in edges}}
    for tail, head, nats in edges:
        factors[tail][head] = factors[head][tail] = decays[nats]
    charges = [0] * n
    for costs, steps in zip(program.costs, trees, strict=True):
        rest = list(map(sub, costs, program.dual))
        parents = [(v + step) % STEPS for v, step in enumerate(steps)]
        children = [0] * n
        for v, p in enumerate(parents):
            if p != v and p < n:
                children[p] += 1
        waiting = [v for v in range(n) if not children[v]]
        # Children come first, so that their whole sum arrives. A place in a circle is never reached, and keeps its own.
        for v in waiting:
            p = parents[v]
            if p == v or p >= n:
                continue
            factor = factors[v].get(p)
            if factor:
                # (5), rounded down: the factor is at most e^-d, so that its inverse is at least e^d.
                rest[p] += rest[v] * factor >> DECAY_BITS if rest[v] >= 0 else (rest[v] << DECAY_BITS) // factor
                rest[v] = 0
            children[p] -= 1
            if not children[p]:
                waiting.append(p)
        charges = list(map(max, charges, map(neg, rest)))
    return sum(program.dual) - sum(charges)


def decay(nats: float) -> int:
    """A number of at most 2^DECAY_BITS e^-nats; 0 for edges so long that nothing is handed over."""
    if nats > LONGEST:
        return 0
    p, q = nats.as_integer_ratio()
    # (1 - d / 2^K)^(2^K) <= e^-d, rounded down like (1).
    value = (1 << WORKING_BITS) - -(-(p << WORKING_BITS) // (q << SQUARINGS))
    for _ in range(SQUARINGS):
        value = value * value >> WORKING_BITS
    return value >> WORKING_BITS - DECAY_BITS


def proved_figures(table: TableFile) -> Figures | None:
    """Expected loss and lower bound of a table, from masses, prior, multipliers and trees; None without trees."""
    if "tree" not in table.header:
        return None
    program = program_of(table)
    trees = [[_whole(step) for step in row.split(" ")] for row in table.header["tree"]]
    if len(trees) != len(program.costs) or any(len(row) != len(program.dual) for row in trees):
        raise BadInput("each report needs a tree, and each tree a step for each secret")
    columns = zip(program.costs, zip(*table.rows, strict=True), strict=True)
    total = sum(sum(map(mul, costs, masses)) for costs, masses in columns)
    unit = Fraction(1 << max(-program.bits, 0), 1 << max(program.bits, 0))
    # Losses are not negative, and neither is their mean.
    bound = float(max(tree_bound(program, table.edges, trees), 0) * unit)
    return Figures(float(Fraction(total, ROW_SUM) * unit), max(math.nextafter(bound, -math.inf), 0.0))


def check_figures(header: dict[str, Any], figures: Figures) -> list[str]:
    """The figures that a file states are those that it proves."""
    faults = []
    loss, bound = header.get("expected_loss", figures.loss), header.get("lower_bound", figures.bound)
    if not abs(loss - figures.loss) <= AGREE * figures.loss:
        faults.append(f"the file states an expected loss of {loss!r}, but it is {figures.loss!r}")
    if not bound <= figures.bound + AGREE * abs(figures.bound):
        faults.append(f"the file states a lower bound of {bound!r}, but its trees prove {figures.bound!r}")
    return faults


# ---- the command ----

CHECKS = (check_metric, check_positions, check_posterior_limits, check_rows, check_edges)


def faults_of(table: TableFile, figures: Figures | None = None) -> list[str]:
    """Reasons why the claims of a table, and figures proved for it, are refused; empty if they are not."""
    claim = table.header["claim"]
    faults = [fault for check in CHECKS for fault in check(table, claim)]
    return faults if figures is None else [*faults, *check_figures(table.header, figures)]


def say(line: str) -> None:
    """Print up to 2,000 characters of a line; escape those that this terminal cannot print."""
    # Texts of an untrusted file could otherwise move the cursor and rewrite lines above.
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[:2000])
    encoding = sys.stdout.encoding or "ascii"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _summary(table: TableFile) -> list[str]:
    """Print the claims and the checks; return the lines of the verdict."""
    claim = table.header["claim"]
    placed = claim["positions"] is not None
    if placed:
        say(f"claim:    {position_sentence(table)}")
    say(f"{'of rows:' if placed else 'claim:':10}{sentence(table)}")
    for cap in claim.get("caps", []):
        say(f"limit:    {limit_sentence(cap, table)}, if the prior follows the people of the file")
    for name in (*TEXTS, "sha256"):
        say(f"{name + ':':10}{table.header.get(name)}")
    n, m, e = len(table.rows), len(table.rows[0]), len(table.edges)
    say(f"checked:  {n} x {m} masses, {n} row sums, {e} edges both ways: {2 * e * m} inequalities, in integers")
    low, high = min(nats for _, _, nats in table.edges), max(nats for _, _, nats in table.edges)
    say(f"lengths:  {low!r} to {high!r} nats: between the ends of an edge a report changes odds by e^{high!r} at most")
    if high > LONGEST:
        say("warning:  the longest edge protects nothing: no two probabilities of a table differ by so much")
    figures = proved_figures(table)
    more = "; the number of people at each place" if claim.get("caps") else ""
    more += "" if figures is None else "; the prior and the losses" if "losses" in table.header else "; the prior"
    say(f"trusted:  coordinates and their unit; lengths and pairs that the claim does not determine{more}")
    faults = faults_of(table, figures)
    if faults:
        return [f"refused:  {fault}" for fault in faults]
    proved = "every inequality of the claim holds on the edges listed, and they connect all secrets"
    if placed:
        proved = f"every gradient is within the levels, for any two positions, and {proved}"
    lines = [f"proved:   {proved}"]
    if figures is not None:
        loss = f"expected loss ({table.header['loss']}, under the prior of the file)"
        lines += [
            f"loss:     the {loss} is {figures.loss!r}",
            f"bound:    any table that satisfies these inequalities has an {loss} of at least {figures.bound!r}",
        ]
    return lines


def main(argv: list[str]) -> int:
    """Print the claims of a table and the verdict. Return 0 if proved, 1 if refused, 2 if it is not a table."""
    if len(argv) != 1:
        say("usage: python verify_table.py TABLE.json or TABLE.csv")
        return 2
    try:
        lines = _summary(read(argv[0]))
    except BadInput as error:
        say(f"error:    {argv[0]}: {error}")
        return 2
    except (MemoryError, *BROKEN) as error:
        say(f"error:    {argv[0]}: not a mechanism table ({type(error).__name__}: {error})")
        return 2
    except Refused as error:
        lines = [f"refused:  {argv[0]}: {error}"]
    for line in lines:
        say(line)
    return int(lines[0].startswith("refused"))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, KeyboardInterrupt):  # the reader of the output has gone
        os._exit(2)
