"""Check an exported mechanism table with whole numbers only: python verify_table.py TABLE.csv (or TABLE.json).

Claim. A[u][y] are integers >= 1, row u sums to S(u): exactly 2^62, or the column row_sum where there is one. A report y
is drawn at a secret u with P(y|u) = A[u][y] / S(u). For every edge (u, v) of the table, d nats long, and every y

    P(y|u) <= e^d P(y|v)   and   P(y|v) <= e^d P(y|u),

and the edges connect all secrets. Then P(y|u) <= e^D P(y|v) for all u, v, with D the length of the shortest path:
multiply along it. The same holds for every set of reports and whatever is computed from them. It is the price of one
report; k reports cost k times as much.

e^d is replaced by a number below it: 1 + t <= e^t, so (1 + d / 2^K)^(2^K) <= e^d; K squarings, each rounded down.

The sentence of the claim is compared with the table: secrets, edges, grid, unit, fingerprint of the list, and what it
says of lengths, in exact fractions. T is the multiplier before the words, 1 if there is none; |p - q| the distance of
the coordinates of two secrets, as they stand. T, B and E of at most 12, 9 and 17 digits stand for all numbers printed
so: 5e-12, 5e-9 and 5e-17 of them more at most.

    discrete metric, E nats           no edge is longer than T E, nor a shortest path between secrets without an edge
    Euclidean distance times E        the same with T E |p - q|
    k-neighbour graph, line integral  no edge is longer than T B |p - q|, or of length 0 unless T is; all neighbours
    of a level from A to B            have an edge, if no cell of the grid is masked
    edges or streets listed           nothing: the list is the claim

Not checked here, but trusted: coordinates, unit, place on Earth; that lengths are integrals where A < B; neighbours if
cells are masked; lengths that are the claim themselves. `mechdesign verify` rebuilds edges and lengths. Losses, names
and the checksum of the mechanism are repeated as they stand.

Exit code: 0 proved, 1 refused, 2 no such table, or interrupted. It needs Python 3.10 and nothing else; this file
stands alone. Cost: 0.2 microseconds for each of 2 e m inequalities, and 4 for a Euclidean pair without an edge.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import chain, product
from operator import add, gt
from pathlib import Path
from typing import Any, NamedTuple

ROW_SUM = 1 << 62
BOUND_BITS = 62  # kept of the bound of e^d
SQUARINGS = 140  # (1 + d / 2^140)^(2^140) falls short of e^d by less than 2^-126 of it, for d <= 128
WORKING_BITS = 320  # the roundings of 140 squarings add up to less than 2^-179
DIGITS = 40  # of a whole number: rows sum to less than 2^128
LONGEST = 128.0  # nats: a longer edge is held to this; no two probabilities are further apart than 10^40 = e^92.2
MOST_BYTES = 1 << 31
SEALS = {".csv": ('# content_sha256: "', '"\n'), ".json": ('"content_sha256": "', '"}\n')}
SAID = ("claim", "budget", "unit", "problem", "program", "sha256")
BUDGET = "one report; k reports cost k times the epsilon"
DEGREES = "x, y, longitude, latitude"
PROVED = "proved:   every inequality of the claim holds on the edges listed, and they connect all secrets"
NUMBER = r"[0-9]{1,25}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?"
TIMES, RATE = rf"(?:(?P<times>{NUMBER}) times )?", rf"(?P<most>{NUMBER}) nats per (?P<unit>[A-Za-z0-9]+)"
SENTENCE = (
    r"One report satisfies P\(y\|u\) <= exp\(d\(u,u'\)\) P\(y\|u'\) for every report y and all (?P<secrets>[0-9]+) "
    r"secrets \((?:places|cells of a (?P<grid>[1-9][0-9]{0,8}(?: x [1-9][0-9]{0,8}){0,2}) grid"
    rf"(?: on the azimuthal equidistant plane about {NUMBER} [NS] {NUMBER} [EW], WGS84, where distances exceed "
    rf"geodesic ones by less than {NUMBER} of them)?)\), where d is (?P<words>.+); checked on (?P<edges>[0-9]+) edges "
    r"\(list (?P<list>[0-9a-f]{12})\)\. k reports cost k times as much\."
)
WORDS = {
    "discrete": rf"{TIMES}the discrete metric, (?P<most>{NUMBER}) nats between any two secrets "
    r"\(local differential privacy\)",
    "euclidean": rf"{TIMES}the Euclidean distance over all pairs times {RATE}",
    "eikonal": rf"{TIMES}the shortest-path distance of the (?P<stencil>[0-9]{{1,2}})-neighbour graph, every edge as "
    rf"long as the line integral of the (?:bi|tri)linear privacy level eps \({NUMBER} to {RATE}, map [0-9a-f]{{12}}\)",
    "streets": rf"{TIMES}the shortest-path distance along the streets listed in this file, either way, times {RATE}",
    "graph": "the shortest-path distance of the edges listed in this file",
}
# By numbers of axes and of neighbours: steps to neighbours, in any order and direction.
STENCILS = {(1, k): "1" for k in (4, 8, 16, 32, 64)} | {(3, 6): "100", (3, 18): "100 110", (3, 26): "100 110 111"}
STENCILS |= {(2, k): "10 11 21 31 32 41 43 52 53"[:end] for k, end in ((4, 2), (8, 5), (16, 8), (32, 14), (64, 26))}
Edge = tuple[int, int, float]


# What numbers and texts of a file that is no table raise.
BROKEN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, struct.error)


class BadInput(Exception):
    """Not a table of this kind: nothing can be said about it."""


class Refused(Exception):
    """A table that was altered."""


class Table(NamedTuple):
    """told, comments by name; rows (n, m); sums (n,); edges, (tail, head, nats); points (n, 1..3) of the secrets."""

    told: dict[str, Any]
    rows: list[list[int]]
    sums: list[int]
    edges: list[Edge]
    points: list[tuple[float, ...]]


def read(path: str | Path) -> Table:
    """The table in a file. Raises: BadInput where it is none, or not all of it; Refused where it was altered."""
    if (kind := Path(path).suffix.lower()) not in SEALS:
        raise BadInput("the name must end in .csv or .json")
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > MOST_BYTES:
            raise BadInput(f"not a regular file of at most {MOST_BYTES} bytes")
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {error}") from error
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    before, after = (part.encode() for part in SEALS[kind])
    if data[start:] != before + hashlib.sha256(data[:start]).hexdigest().encode() + after:
        raise Refused("the last line is not the checksum of the lines before it: altered, or cut short")
    try:
        if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text := data.decode()):
            raise BadInput("holds control characters")
        return _from_csv(text) if kind == ".csv" else _from_json(text)
    except BROKEN as error:
        raise BadInput(f"not a mechanism table ({type(error).__name__}: {error})") from error


def _from_csv(text: str) -> Table:
    first, *lines = text[:-1].split("\n")
    notes = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
    told = _once([(k, value if k == "unit" else _json(value)) for k, value in notes if k not in ("edge", "patch")])
    columns, *body = [line for line in lines if not line.startswith("# ")]
    header = columns.split(",")
    r, m, sums = header.index("report"), header.index("mass"), header[-1] == "row_sum"
    axes = told.get("coordinates", "x, y, z").split(", ")
    named = ["secret", *(f"secret_{a}" for a in axes[: r - 1]), "report", *(f"report_{a}" for a in axes[: m - r - 1])]
    if header != [*named, "mass", *["row_sum"] * sums] or not first.endswith("/ row_sum" if sums else "/ 2^62"):
        raise BadInput("the columns are not secret, ..., report, ..., mass, or the first line not what masses are")
    n, width = told["secrets"], told["reports"]
    if len(body) != n * width:
        raise BadInput(f"some rows only: not every report of every secret is there, {len(body)} of {n} x {width} lines")
    rows, points, places = [], [], [[str(y), *line.split(",")[r + 1 : m]] for y, line in enumerate(body[:width])]
    for u in range(n):
        own = [line.split(",") for line in body[u * width : (u + 1) * width]]
        start, end = [str(u), *own[0][1:r]], own[0][m + 1 :]
        if any([*line[:m], *line[m + 1 :]] != [*start, *place, *end] for line, place in zip(own, places, strict=True)):
            raise BadInput(f"secret {u} and its reports are not in turn, or not at the same places throughout")
        points.append(list(map(_number, start[1:])))
        rows.append([*(_whole(line[m]) for line in own), _whole(end[0]) if sums else ROW_SUM])
    edges, told["patch"] = ([_json(value) for name, value in notes if name == kind] for kind in ("edge", "patch"))
    return _table(told, rows, edges, points, [list(map(_number, place[1:])) for place in places])


def _from_json(text: str) -> Table:
    told = _json(text)
    lists = masses, edges, points, places = [told.pop(k) for k in ("mass", "edge", "secret_points", "report_points")]
    if told["format"] != "mechdesign/table/1" or any(type(given) is not list for given in lists):
        raise BadInput("another format, or no lists of masses, edges and coordinates")
    return _table(told, [[*map(_whole, row.split(" ")), ROW_SUM] for row in masses], edges, points, places)


def _json(text: str) -> Any:
    """JSON in which no name is said twice, at any depth, and every number is finite."""
    return json.loads(text, object_pairs_hook=_once, parse_int=_whole, parse_float=_number, parse_constant=_number)


def _once(pairs: list[Any]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise BadInput(f"a name is said twice among {[name for name, _ in pairs]}")
    return dict(pairs)


def _whole(text: str) -> int:
    """A whole number in plain decimal: no plus, blank or leading zero that another reader could take otherwise."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS and (digits[0] != "0" or digits == "0")):
        raise BadInput(f"{text[:50]!r} is not a plain whole number")
    return int(text)


def _number(text: str) -> float:
    if re.fullmatch("-?" + NUMBER, text) and math.isfinite(value := float(text)):
        return value
    raise BadInput(f"{text[:50]!r} is not a plain finite number")


def _table(told: dict[str, Any], rows: list[list[int]], edges: list[Any], *places: list[Any]) -> Table:
    """The table of rows (n, m + 1), the last column their sums. places are coordinates of secrets and of reports."""
    if missing := [name for name in SAID if not isinstance(told.get(name), str)]:
        raise BadInput(f"{missing[0]} is not said")
    n, m, e = counts = [told[name] for name in ("secrets", "reports", "edges")]
    if any(type(count) is not int or count < 1 for count in counts):
        raise BadInput(f"{counts} are not numbers of secrets, reports and edges")
    if (len(rows), len(edges), *map(len, places)) != (n, e, n, m) or any(len(row) != m + 1 for row in rows):
        raise BadInput(f"not the {n} x {m} masses and {e} edges that it speaks of, or not as many coordinates")
    degrees = told.get("coordinates")
    for points in places:
        axes, kind = {len(point) for point in points}, {type(at) for point in points for at in point}
        if len(axes) > 1 or not axes <= {None: {1, 2, 3}, DEGREES: {4}}.get(degrees, set()) or not kind <= {int, float}:
            raise BadInput("coordinates are not 1 to 3 numbers for every place, or 4 where degrees are said")
    listed: dict[tuple[int, int], Edge] = {}
    for tail, head, digits in edges:
        if [type(tail), type(head), type(digits)] != [int, int, str] or digits != float.fromhex(digits).hex():
            raise BadInput(f"an edge is two whole numbers and an exact float in hex, not {[tail, head, digits]!r}")
        length, pair = float.fromhex(digits), (min(tail, head), max(tail, head))
        if not 0 <= pair[0] < pair[1] < n or digits[0] != "0" or pair in listed:
            raise BadInput(f"no edge can go from {tail} to {head} over {length} nats, or a second one")
        listed[pair] = (tail, head, length)
    sums, points = [row.pop() for row in rows], [tuple(point[:2] if degrees else point) for point in places[0]]
    return Table(told, rows, sums, list(listed.values()), points)


def lower_bound(length: float) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^length and 2^61 <= R < 2^62. The double is taken as the exact number it is."""
    p, q = min(length, LONGEST).as_integer_ratio()
    value = (1 << WORKING_BITS) + (p << WORKING_BITS) // (q << SQUARINGS)
    for _ in range(SQUARINGS):
        value = value * value >> WORKING_BITS
    drop = value.bit_length() - BOUND_BITS
    return value >> drop, WORKING_BITS - drop


def breaches(rows: list[list[int]], sums: list[int], edges: list[Edge]) -> list[tuple[int, int, int]]:
    """The (secret, other, report) with P(report|secret) > e^length P(report|other), over edges both ways.
    a / S(u) <= R 2^-s b / S(v) is checked as a S(v) 2^s <= R b S(u). Cost: 0.2 microseconds a triple.
    """
    found, bounds = [], {length: lower_bound(length) for length in {length for _, _, length in edges}}
    for tail, head, length in edges:
        factor, shift = bounds[length]
        for u, v in ((tail, head), (head, tail)):
            shared = math.gcd(sums[u], sums[v])
            left = (sums[v] // shared) << max(shift, 0)
            right = (factor * (sums[u] // shared)) << max(-shift, 0)
            over = list(map(gt, map(left.__mul__, rows[u]), map(right.__mul__, rows[v])))
            found += [(u, v, y) for y, breach in enumerate(over) if breach] if any(over) else []
    return found


def connected(n: int, edges: list[Edge]) -> bool:
    """Whether the edges lead from secret 0 to all n secrets."""
    beside: list[list[int]] = [[] for _ in range(n)]
    for tail, head, _ in edges:
        beside[tail].append(head)
        beside[head].append(tail)
    seen, waiting = {0}, [0]
    while waiting:
        waiting += (fresh := set(beside[waiting.pop()]) - seen)
        seen |= fresh
    return len(seen) == n


def fingerprint(edges: list[Edge]) -> str:
    """Twelve digits that the claim says of its list of edges: SHA-256 of tails, heads and lengths, little-endian."""
    packed = struct.pack("<{0}q{0}q{0}d".format(len(edges)), *chain.from_iterable(zip(*edges, strict=True)))
    return hashlib.sha256(packed).hexdigest()[:12]


def claim_faults(table: Table) -> list[str]:
    """Where the sentence of the claim is not about this table, or not about the lengths that it lists."""
    if not (said := re.fullmatch(SENTENCE, table.told["claim"])) or table.told["budget"] != BUDGET:
        return ["the claim or the budget is no sentence that this program knows"]
    own = {"secrets": str(len(table.rows)), "edges": str(len(table.edges)), "list": fingerprint(table.edges)}
    faults = [f"the claim says {what} {said[what]}, not {own[what]}" for what in own if said[what] != own[what]]
    for kind, pattern in WORDS.items():
        if words := re.fullmatch(pattern, said["words"]):
            return faults + length_faults(table, kind, {"unit": None, "times": None, **words.groupdict()}, said["grid"])
    return [*faults, f"the claim says of lengths what this program does not know: {said['words']}"]


def length_faults(table: Table, kind: str, words: dict[str, Any], grid: str | None) -> list[str]:
    """Where unit, grid, a length or a pair of secrets is not as the words of the claim say."""
    if words["unit"] not in (None, "unit" if table.told["unit"] == "1" else table.told["unit"]):
        return [f"the claim is in nats per {words['unit']}, and the coordinates are in {table.told['unit']}"]
    n, fine = len(table.points), max(at.as_integer_ratio()[1] for at in chain(*table.points))
    points = [tuple(int(Fraction(at) * fine) for at in point) for point in table.points]
    ranks = [{at: k for k, at in enumerate(sorted(set(axis)))} for axis in zip(*points, strict=True)]
    cells = [tuple(rank[at] for rank, at in zip(ranks, point, strict=True)) for point in points]
    sizes, lines = list(map(int, (grid or "0").split(" x "))), list(map(len, ranks))
    if grid and (len(sizes) != len(lines) or any(map(gt, lines, sizes)) or len(set(cells)) < n):
        return [f"the coordinates are not those of different cells of a {grid} grid"]
    if kind in ("graph", "streets"):
        return []
    steps = STENCILS.get((len(lines), int(words.get("stencil", 0))), "").split()
    if kind == "eikonal" and not (grid and steps):
        return [f"no places have a graph of {words['stencil']} neighbours but those of a grid"]
    limit = _most(words["most"], 9 if kind == "eikonal" else 17) * (_most(words["times"], 12) if words["times"] else 1)
    whole = max(length.as_integer_ratio()[1] for _, _, length in table.edges)
    p, q = ((limit * whole / (1 if kind == "discrete" else fine)) ** 2).as_integer_ratio()

    def over(length: int, u: int, v: int) -> bool:
        square = 1 if kind == "discrete" else sum((a - b) ** 2 for a, b in zip(points[u], points[v], strict=True))
        return length**2 * q > p * square

    listed: list[dict[int, int]] = [{} for _ in range(n)]
    for u, v, length in table.edges:
        listed[u][v] = listed[v][u] = int(Fraction(length) * whole)
        if over(listed[u][v], u, v) or (kind == "eikonal" and length == 0 < limit):
            return [f"the edge from {u} to {v} is {length} nats long, which is not what the claim says"]
    if kind != "eikonal" or math.prod(sizes) > n:
        return [] if kind == "eikonal" else _apart(cells, listed, over)
    at, moves = {cell: u for u, cell in enumerate(cells)}, product(range(-5, 6), repeat=len(lines))
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


def _most(text: str, digits: int) -> Fraction:
    """The largest number that is printed like this with so many digits, or the double that the text names."""
    value = Decimal(text)
    half = Fraction(10) ** (value.adjusted() - digits + 1) / 2 if len(value.as_tuple().digits) <= digits else 0
    return max(Fraction(value) + half * (value > 0), Fraction(min(float(text), sys.float_info.max)))


def faults_of(table: Table) -> list[str]:
    """Why the claim of a table is not proved; empty where it is."""
    faults = claim_faults(table)
    for u, (row, total) in enumerate(zip(table.rows, table.sums, strict=True)):
        if min(row) < 1:
            faults.append(f"secret {u}: a mass is below 1")
        if sum(row) != total:
            faults.append(f"secret {u}: the masses sum to {sum(row)}, not {total}")
    if not connected(len(table.rows), table.edges):
        faults.append("the edges do not connect all secrets")
    bad = breaches(table.rows, table.sums, table.edges) if min(table.sums) > 0 else []
    return faults + [f"{len(bad)} inequalities are broken, first P({y}|{u}) <= e^d P({y}|{v})" for u, v, y in bad[:1]]


def upwards(value: Decimal) -> str:
    """A number with four digits, rounded up."""
    shown = value.normalize(Context(prec=4, rounding=ROUND_CEILING))
    return f"{shown:f}" if 1e-4 <= shown < 1e6 else f"{shown:g}"


def say(line: str) -> None:
    """Print 2,000 characters of a line at most, escaped where they are not printable, or not on this terminal."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line[:2000])
    encoding = sys.stdout.encoding or "ascii"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _told(table: Table) -> list[str]:
    for name in SAID:
        say(f"{name + ':':10}{table.told[name]}")
    n, m, e = len(table.rows), len(table.rows[0]), len(table.edges)
    say(f"checked:  {n} x {m} masses, {n} row sums, {e} edges both ways: {2 * e * m} inequalities, in integers")
    ends = [Decimal(end(length for _, _, length in table.edges)) for end in (min, max)]
    powers = [upwards(Context(prec=40).exp(d).next_plus()) if d <= 700 else "more than 1e300" for d in ends]
    span, factor = " to ".join(map(upwards, ends)), " to ".join(powers)
    say(f"lengths:  {span} nats: between the ends of an edge a report changes odds by a factor of {factor} at most")
    if ends[1] > LONGEST:
        say("warning:  the longest edge hides nothing: no two probabilities of a table are so far apart")
    say("trusted:  coordinates and their unit; lengths and pairs as far as the claim does not tell them")
    if table.told.get("patch") or "position_claim" in table.told:
        say("open:     the claim about any position, which verify_positions.py proves or refuses")
    return faults_of(table)


def main(arguments: list[str], check: Any = _told, proved: str = PROVED, name: str = "verify_table.py") -> int:
    """Print what `check` says of a table, and what is wrong or `proved`; 0 proved, 1 refused, 2 no such table."""
    if len(arguments) != 1:
        say(f"usage: python {name} TABLE.csv or TABLE.json")
        return 2
    try:
        faults = check(read(arguments[0]))
    except (BadInput, MemoryError) as error:
        say(f"no table: {arguments[0]}: {str(error) or 'more than the memory holds'}")
        return 2
    except BROKEN as error:
        say(f"no table: {arguments[0]}: not a mechanism table ({type(error).__name__}: {error})")
        return 2
    except Refused as error:
        faults = [f"{arguments[0]}: {error}"]
    for line in [f"refused:  {fault}" for fault in faults] or [proved]:
        say(line)
    return 1 if faults else 0


def run(main: Any = main) -> None:
    """Exit with the code of a program, 2 where nobody reads what it prints."""
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, KeyboardInterrupt):
        os._exit(2)


if __name__ == "__main__":
    run()
