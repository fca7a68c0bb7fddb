"""Check an exported mechanism table with whole numbers only: python verify_table.py TABLE.csv (or TABLE.json).

Claim. A[u][y] are integers >= 1, row u sums to S(u): exactly 2^62, or the column row_sum where there is one. A report y
is drawn at a secret u with P(y|u) = A[u][y] / S(u). For every edge (u, v) of the table, d nats long, and every y

    P(y|u) <= e^d P(y|v)   and   P(y|v) <= e^d P(y|u),

and the edges connect all secrets. Then P(y|u) <= e^D P(y|v) for all u, v, with D the length of the shortest path:
multiply along it. The same holds for every set of reports and whatever is computed from them. It is the price of one
report; k reports cost k times as much.

e^d is replaced by a number below it: 1 + t <= e^t, so (1 + d / 2^K)^(2^K) <= e^d; K squarings, each rounded down.

Not checked here: that the lengths listed are those of the metric that the claim names (`mechdesign verify` does).
Exit code: 0 proved, 1 refused, 2 no such table. It needs Python 3.10 and nothing else; this file stands alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from array import array
from collections.abc import Iterable
from operator import gt
from pathlib import Path
from typing import Any, NamedTuple

ROW_SUM = 1 << 62
BOUND_BITS = 62  # kept of the bound of e^d
SQUARINGS = 140  # (1 + d / 2^140)^(2^140) falls short of e^d by less than 2^-126 of it, for d <= 128
WORKING_BITS = 320  # the roundings of 140 squarings add up to less than 2^-179
LONGEST = 128.0  # nats: a longer edge is held to this, which is more than any two masses differ by
SEALS = {".csv": ('# content_sha256: "', '"\n'), ".json": ('"content_sha256": "', '"}\n')}


SAID = ("claim", "budget", "unit", "problem", "program", "sha256")


class BadInput(Exception):
    """Not a table of this kind: nothing can be said about it."""


class Refused(Exception):
    """A table that was altered."""


class Table(NamedTuple):
    """told, the comments by name; rows, n lists of m masses; sums (n,); edges, (tail, head, length in nats)."""

    told: dict[str, Any]
    rows: list[list[int]]
    sums: list[int]
    edges: list[tuple[int, int, float]]


def read(path: str) -> Table:
    """The table in a file. Raises: BadInput where it is none, or not all of it; Refused where it was altered."""
    kind = Path(path).suffix.lower()
    if kind not in SEALS:
        raise BadInput("the name must end in .csv or .json")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}") from error
    start = data.rfind(b"\n", 0, len(data) - 1) + 1
    before, after = (part.encode() for part in SEALS[kind])
    if data[start:] != before + hashlib.sha256(data[:start]).hexdigest().encode() + after:
        raise Refused("the last line is not the checksum of the lines before it: altered, or cut short")
    try:
        table = (_from_csv if kind == ".csv" else _from_json)(data.decode())
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise BadInput(f"not a mechanism table ({type(error).__name__}: {error})") from error
    _check(table)
    return table


def _from_csv(text: str) -> Table:
    lines = text[:-1].split("\n")
    notes = [line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line]
    told = _once((name, value if name == "unit" else json.loads(value)) for name, value in notes if name != "edge")
    edges = [_edge(json.loads(value)) for name, value in notes if name == "edge"]
    columns, *body = [line for line in lines if not line.startswith("#")]
    header = columns.split(",")
    r, m = header.index("report"), header.index("mass")
    if header[0] != "secret" or header[m + 1 :] not in ([], ["row_sum"]):
        raise BadInput("the columns are not secret, ..., report, ..., mass")
    n, width = told["secrets"], told["reports"]
    if min(n, width) < 1 or len(body) != n * width:
        raise BadInput(f"not every report of every secret is there: {len(body)} lines instead of {n} x {width}")
    rows, sums, places = [], [], [line.split(",")[r:m] for line in body[:width]]
    if [place[0] for place in places] != [str(y) for y in range(width)]:
        raise BadInput("the reports are not 0, 1, ... in turn")
    for u in range(n):
        own = [line.split(",") for line in body[u * width : (u + 1) * width]]
        start = [str(u), *own[0][1:r]]
        if [line[r:m] for line in own] != places or any(line[:r] != start or len(line) != len(header) for line in own):
            raise BadInput(f"secret {u} and its reports are not in turn, or not at the same places throughout")
        rows.append([_whole(line[m]) for line in own])
        (total,) = {line[m + 1] for line in own} if len(header) > m + 1 else {str(ROW_SUM)}
        sums.append(_whole(total))
    return Table(told, rows, sums, edges)


def _from_json(text: str) -> Table:
    told = json.loads(text, object_pairs_hook=_once)
    if told["format"] != "mechdesign/table/1":
        raise BadInput("another format")
    rows = [[_whole(mass) for mass in row.split(" ")] for row in told.pop("mass")]
    edges = [_edge(edge) for edge in told.pop("edge")]
    if (len(told["secret_points"]), len(told["report_points"])) != (told["secrets"], told["reports"]):
        raise BadInput("as many coordinates as secrets and reports are needed")
    return Table(told, rows, [ROW_SUM] * len(rows), edges)


def _once(pairs: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadInput(f"{name} is said twice")
        found[name] = value
    return found


def _whole(text: str) -> int:
    """A whole number in plain decimal: no sign, blank or leading zero that another reader could take otherwise."""
    value = int(text)
    if str(value) != text:
        raise BadInput(f"{text!r} is not a plain whole number")
    return value


def _edge(triple: Any) -> tuple[int, int, float]:
    tail, head, length = triple
    return int(tail), int(head), float.fromhex(length)


def _check(table: Table) -> None:
    for name in SAID:
        if not isinstance(table.told.get(name), str):
            raise BadInput(f"{name} is not said")
    n, m, e = (table.told[name] for name in ("secrets", "reports", "edges"))
    if min(n, m, e) < 1 or len(table.rows) != n or any(len(row) != m for row in table.rows) or len(table.edges) != e:
        raise BadInput(f"not the {n} x {m} masses and {e} edges that it speaks of")
    for tail, head, length in table.edges:
        if not (0 <= tail < n and 0 <= head < n and tail != head and 0 <= length < math.inf):
            raise BadInput(f"no edge can go from {tail} to {head} over {length} nats")


def lower_bound(length: float) -> tuple[int, int]:
    """Integers (R, s) with R 2^-s <= e^length and 2^61 <= R < 2^62. The double is taken as the exact number it is."""
    p, q = min(length, LONGEST).as_integer_ratio()
    value = (1 << WORKING_BITS) + (p << WORKING_BITS) // (q << SQUARINGS)
    for _ in range(SQUARINGS):
        value = value * value >> WORKING_BITS
    drop = value.bit_length() - BOUND_BITS
    return value >> drop, WORKING_BITS - drop


def row_faults(rows: list[list[int]], sums: list[int]) -> list[str]:
    """What is wrong with the rows: entries below 1, and sums that are not what they should be."""
    faults = []
    for u, (row, total) in enumerate(zip(rows, sums, strict=True)):
        if min(row) < 1:
            faults.append(f"secret {u}: a mass is below 1")
        if sum(row) != total:
            faults.append(f"secret {u}: the masses sum to {sum(row)}, not {total}")
    return faults


def breaches(rows: list[list[int]], sums: list[int], edges: list[tuple[int, int, float]]) -> list[tuple[int, int, int]]:
    """The (secret, other, report) with P(report|secret) > e^length P(report|other), over edges both ways.

    a / S(u) <= R 2^-s b / S(v) is checked as a S(v) 2^s <= R b S(u). Cost: 0.2 microseconds a triple.
    """
    found = []
    bounds: dict[float, tuple[int, int]] = {}
    for tail, head, length in edges:
        if length not in bounds:
            bounds[length] = lower_bound(length)
        factor, shift = bounds[length]
        for u, v in ((tail, head), (head, tail)):
            shared = math.gcd(sums[u], sums[v])
            left = (sums[v] // shared) << max(shift, 0)
            right = (factor * (sums[u] // shared)) << max(-shift, 0)
            over = list(map(gt, map(left.__mul__, rows[u]), map(right.__mul__, rows[v])))
            if any(over):
                found += [(u, v, y) for y, breach in enumerate(over) if breach]
    return found


def connected(n: int, edges: list[tuple[int, int, float]]) -> bool:
    """Whether the edges lead from secret 0 to all n secrets."""
    beside: list[list[int]] = [[] for _ in range(n)]
    for tail, head, _ in edges:
        beside[tail].append(head)
        beside[head].append(tail)
    seen, waiting = {0}, [0]
    while waiting:
        fresh = set(beside[waiting.pop()]) - seen
        seen |= fresh
        waiting += fresh
    return len(seen) == n


def fingerprint(edges: list[tuple[int, int, float]]) -> str:
    """Twelve digits that the claim says of its list of edges: SHA-256 of tails, heads and lengths, little-endian."""
    digest = hashlib.sha256()
    for code, part in zip("qqd", zip(*edges, strict=True), strict=False):
        numbers = array(code, part)
        if sys.byteorder == "big":
            numbers.byteswap()
        digest.update(numbers.tobytes())
    return digest.hexdigest()[:12]


def faults_of(table: Table) -> list[str]:
    """Why the claim of a table is not proved; empty where it is."""
    faults = row_faults(table.rows, table.sums)
    if f"(list {fingerprint(table.edges)})" not in table.told["claim"]:
        faults.append("the claim is about another list of edges")
    if not connected(len(table.rows), table.edges):
        faults.append("the edges do not connect all secrets")
    if min(table.sums) < 1:
        return faults
    broken = breaches(table.rows, table.sums, table.edges)
    if broken:
        u, v, y = broken[0]
        faults.append(f"{len(broken)} inequalities are broken, first P({y}|{u}) <= e^d P({y}|{v})")
    return faults


def main(arguments: list[str]) -> int:
    """Print what was checked; 0 proved, 1 refused, 2 no such table."""
    if len(arguments) != 1:
        print("usage: python verify_table.py TABLE.csv or TABLE.json")
        return 2
    try:
        table = read(arguments[0])
    except BadInput as error:
        print(f"no table: {arguments[0]}: {error}")
        return 2
    except Refused as error:
        print(f"refused: {arguments[0]}: {error}")
        return 1
    for name in SAID:
        print(f"{name + ':':10}{table.told[name]}")
    n, m, e = len(table.rows), len(table.rows[0]), len(table.edges)
    print(f"{'checked:':10}{n} x {m} masses, {n} row sums, {e} edges both ways: {2 * e * m} inequalities, in integers")
    print(f"{'trusted:':10}the lengths of the edges as listed")
    faults = faults_of(table)
    for fault in faults:
        print(f"refused:  {fault}")
    if not faults:
        print("proved:   every inequality of the claim holds on the edges listed, and they connect all secrets")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
