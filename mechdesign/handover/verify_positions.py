"""Check that any position may be drawn from an exported table: python verify_positions.py TABLE.csv (or TABLE.json).

It needs verify_table.py beside it, whose reader it uses, Python 3.10 and nothing else. The claim about the rows of the
table is another one, which that file proves.

Claim. The cells of the table are squares of side h. At a position x = centre of cell v + h s, s in [-1/2, 1/2]^2, a row
of the 3 x 3 cells around v is drawn with the weights (1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2 of the steps -1, 0, +1
along either axis, then a report y from it. A cell that is not there has the row of the first of the cells beside it,
or else of those that touch its corners. With a level eps that is nowhere below the bilinear e of the levels listed for
the corners of a cell, or of its four quarters,

    P(y|x) <= e^D P(y|x'),    D the least integral of eps along paths from x to x' inside the cells,

because |grad P| <= e P on every cell. Both sides are polynomials; the coefficients of grad P by Bernstein's are at most
those of e P, on the cell or on its four quarters, in whole numbers; on the quarters where levels are listed for them.

Found again: which rows lie around which cell, the list that the sentence names, that levels at corners are at most the
largest that it speaks of, and the least no larger, what it says of units, paths and rounding. Trusted: coordinates,
unit, place on Earth, and that a level that varies is nowhere below e. `mechdesign verify` finds that too.

Exit code: 0 proved, 1 refused, 2 no such table. Cost: some 10 microseconds for each of n m cells and reports at one
level, twice that where levels vary, and up to half a millisecond where floats do not tell the cones of a cell.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
import struct
from fractions import Fraction
from itertools import chain, product
from operator import add, mul
from pathlib import Path
from typing import Any

_BESIDE = importlib.util.spec_from_file_location("verify_table", Path(__file__).with_name("verify_table.py"))
assert _BESIDE is not None
assert _BESIDE.loader is not None
tables: Any = importlib.util.module_from_spec(_BESIDE)
_BESIDE.loader.exec_module(tables)

NUMBER, TIMES, RATE = tables.NUMBER, tables.TIMES, tables.RATE
PLANE = (
    rf"(?: on the azimuthal equidistant plane about {NUMBER} [NS] {NUMBER} [EW], WGS84, where distances exceed "
    rf"geodesic ones by less than {NUMBER} of them)?"
)
PROVED = "proved:   every gradient is within the levels: the claim holds for any two positions"
DISTANCE = (
    rf"{TIMES}(?:(?P<plain>the Euclidean distance times )|the length of the shortest path inside the cells times |"
    rf"the least integral of the bilinear privacy level eps \((?P<least>{NUMBER}) to ){RATE}"
    r"(?(least), map [0-9a-f]{12}\) along paths inside the cells|)"
)
POSITIONS = (
    r"One report satisfies P\(y\|x\) <= exp\(D\(x,x'\) \+ r\) P\(y\|x'\) for every report y and all positions "
    rf"x, x' in the (?P<cells>[0-9]{{1,10}}) cells, (?P<wide>{NUMBER}) (?P<in>[A-Za-z0-9]+) wide, of a (?P<grid>"
    rf"[1-9][0-9]{{0,8}} x [1-9][0-9]{{0,8}}) grid{PLANE}, where D is {DISTANCE} and r = (?P<r>{NUMBER}) is for "
    r"rounding positions to 2\^-16 of a cell; drawn by the quadratic B-spline of 3 x 3 cells, checked by the cones of "
    r"its gradient \(list (?P<list>[0-9a-f]{12})\)\. k reports cost k times as much\."
)
AROUND, ENDS = list(product((-1, 0, 1), repeat=2)), list(product((0, 1), repeat=2))
CONES = [(0, 3, 1, 4), (1, 4, 2, 5), (3, 6, 4, 7), (4, 7, 5, 8), (4, 7, 1, 5, 3)]  # places in a patch
CONES += [(1, 4, 2, 5, 0, 3), (4, 7, 5, 8, 3, 6), (3, 4, 6, 7, 0, 1), (4, 5, 7, 8, 1, 2)]
CHAIKIN, HALVES = ((3, 1, 0), (1, 3, 0), (0, 3, 1), (0, 1, 3)), ((2, 0), (1, 1), (0, 2))
SHARED = ((0, 1), (1, 0), (1, 2), (2, 1))  # the parts of CHAIKIN: that of weight 3, that of weight 1
SPARE = 2.0**-40  # of levels, for rounding
LEAST_SIDE, HIGHEST = 1e-150, 1e150  # sides and levels whose products with coordinates are numbers
ONE = 1 << 60  # of whole numbers for levels times the side of a cell, rounded down
VALUE, SLOPE = ((1, 1, 0), (0, 4, 0), (0, 1, 1)), ((-2, 2, 0), (-2, 0, 2), (0, -2, 2))
SLOPES = ((SLOPE, VALUE), (VALUE, SLOPE), (VALUE, VALUE))


def position_faults(table: Any) -> list[str]:
    """Where the claim about positions is not about this table, or a gradient is not proved to be small enough."""
    said = re.fullmatch(POSITIONS, str(table.told.get("position_claim")))
    if said is None:
        return ["the claim about positions is no sentence that this program knows"]
    side, cells = float(said["wide"]), _cells(table, said)
    if not cells:
        return ["the coordinates are not those of different cells of the grid of the positions"]
    patches, rows = table.told.get("patch"), _rows_around(cells)
    levels = _levels(patches)
    packed = b"".join(
        [struct.pack("<9q", *row) for row in rows] + [struct.pack(f"<{len(level)}d", *level) for level in levels]
    )
    if rows != [patch[:9] for patch in patches] or said["list"] != hashlib.sha256(packed).hexdigest()[:12]:
        return ["the rows around a cell, or the levels at its corners, are not those of the claim about positions"]
    limit = tables._most(said["most"], 9 if said["least"] else 17)
    limit *= tables._most(said["times"], 12) if said["times"] else 1
    if limit > HIGHEST or (said["least"] and Fraction(said["least"]) > Fraction(said["most"])):
        return ["the claim about positions speaks of levels that go down, or that no cell has"]
    whole = math.prod(map(int, said["grid"].split(" x "))) == len(rows)
    if (said["plain"] and not whole) or float(said["r"]) < math.sqrt(2) * limit * side / 65536:
        return ["the claim about positions says more of distances, or less of rounding, than holds"]
    if int(said["cells"]) != len(rows) or not all(0 < level <= limit for level in chain(*levels)):
        return ["the claim about positions is about other cells, or lower levels"]
    broken = steep_pairs(table.rows, rows, levels, side)
    return [f"{len(broken)} gradients of positions are too steep, first of P({y}|x) in cell {u}" for u, y in broken[:1]]


def _levels(patches: list[Any]) -> list[list[float]]:
    """The levels of patches, four of each or sixteen of each. Raises: BadInput for what is no list of patches."""
    try:
        if any(all(list(map(type, patch)) == [int] * 9 + [str] * k for patch in patches) for k in (4, 16)):
            return [[float.fromhex(level) for level in patch[9:]] for patch in patches]
    except (TypeError, ValueError, OverflowError):
        pass
    raise tables.BadInput("a patch is nine whole numbers and four or sixteen exact floats in hex")


def _cells(table: Any, said: Any) -> list[tuple[int, int]]:
    """The places of the cells on the lattice that the claim speaks of; none where they are not on it."""
    side, sizes = float(said["wide"]), list(map(int, said["grid"].split(" x ")))
    unit = "unit" if table.told["unit"] == "1" else table.told["unit"]
    low = [min(axis) for axis in zip(*table.points, strict=True)]
    if not said["unit"] == said["in"] == unit or len(low) != 2 or not LEAST_SIDE <= side <= 1 / LEAST_SIDE:
        return []
    cells = [(round((x - low[0]) / side), round((y - low[1]) / side)) for x, y in table.points]
    places = zip(table.points, cells, strict=True)
    near = all(abs(x - low[0] - i * side) + abs(y - low[1] - j * side) < side / 1e6 for (x, y), (i, j) in places)
    inside = all(i < sizes[0] and j < sizes[1] for i, j in cells)
    return cells if near and inside and len(set(cells)) == len(cells) else []


def _rows_around(cells: list[tuple[int, int]]) -> list[list[int]]:
    """The rows of the nine cells around each: a cell's own, or that of the nearest one, the first of several."""
    at = {cell: u for u, cell in enumerate(cells)}

    def row(x: int, y: int) -> int:
        return min((a * a + b * b, at[x + a, y + b]) for a, b in AROUND if (x + a, y + b) in at)[1]

    return [[row(x + i, y + j) for i, j in AROUND] for x, y in cells]


def steep_pairs(
    masses: list[list[int]], rows: list[list[int]], levels: list[list[float]], side: float
) -> list[tuple[int, int]]:
    """The cells and reports for which neither the coefficients of the cell nor those of all four quarters of it prove
    the claim, those of the quarters alone by levels (n, 16): in whole numbers, where `unsure` does not decide.
    """
    broken, seen, fine = [], {}, Fine(masses)
    for u, (around, level) in enumerate(zip(rows, levels, strict=True)):
        z = [int(Fraction(each) * Fraction(side) * ONE) for each in level]
        own = _own_levels(z)
        places = fine.places(around)
        steep: set[int] = set()
        for (i, j), corners in zip(ENDS, own, strict=True):
            least = min(chain(*corners))
            for shape in CONES:
                key = (least, *(places[i + k // 3][j + k % 3] for k in shape))
                if key not in seen:
                    seen[key] = unsure([fine.masses[place] for place in key[1:]], least / (8 * ONE))
                steep.update(seen[key])
        for y in sorted(steep):
            p = [[masses[row][y] for row in around[k : k + 3]] for k in (0, 3, 6)]
            whole = _along(p, CHAIKIN)
            parts = [[r[j : j + 3] for r in whole[i : i + 3]] for i, j in ENDS]
            if not (
                (len(z) == 4 and gentle(p, [z[:2], z[2:]], ONE))
                or all(gentle(part, corners, 8 * ONE) for part, corners in zip(parts, own, strict=True))
            ):
                broken.append((u, y))
    return broken


def _own_levels(z: list[int]) -> list[list[list[int]]]:
    """Four times the levels at the corners (2, 2) of each quarter, from those of the cell (4,) or of its quarters."""
    if len(z) == 4:
        half = _along([z[:2], z[2:]], HALVES)
        return [[row[j : j + 2] for row in half[i : i + 2]] for i, j in ENDS]
    return [[[4 * k for k in z[q + i : q + i + 2]] for i in (0, 2)] for q in range(0, 16, 4)]


class Fine:
    """The masses of the same spline on cells of half the side, 16 times as large, as floats: right to 2^-50 of them."""

    def __init__(self, masses: list[list[int]]) -> None:
        self._rows = [list(map(float, row)) for row in masses]
        self._known: dict[tuple[int, ...], int] = {}
        self.masses: list[list[float]] = []

    def places(self, around: list[int]) -> list[list[int]]:
        """Where the masses of the 4 x 4 cells of half the side in and around a cell are in `masses`."""
        return [[self._place([around[3 * x + y] for y in ys for x in xs]) for ys in SHARED] for xs in SHARED]

    def _place(self, rows: list[int]) -> int:
        if (key := tuple(rows)) not in self._known:
            self._known[key] = len(self.masses)
            near, *beside = (self._rows[row] for row in rows)
            self.masses.append([9 * c + 3 * (a + b) + d for c, a, b, d in zip(near, *beside, strict=True)])
        return self._known[key]


def unsure(lists: list[list[float]], level: float) -> list[int]:
    """The reports that may break a cone of a constant level: of a corner, an edge or the node, its masses in floats.

    A quarter that passes all nine keeps its cones: let z = level - 2^-40 be at most 1, and c the mass of its node. An
    edge that passes has 4 |e - c| <= z (c + e), a corner |e + d - c - n| and |n + d - c - e| <= z s / 2, s its sum,
    where floats are off by at most 2^-47 of c + e and of s. So all masses are at most 3 c, all sums of the conditions
    right to 2^-43 c, and 2^-40 c is left.
    """
    z = min(level, 1.0) - SPARE
    if z <= 0:
        return list(range(len(lists[0])))
    lines = enumerate(zip(*lists, strict=True))
    if len(lists) == 4:
        return [y for y, (c, e, n, d) in lines
                if 4 * ((e + d - c - n) ** 2 + (n + d - c - e) ** 2) > (z * (c + e + n + d)) ** 2]  # fmt: skip
    if len(lists) == 6:
        return [y for y, (c, e, n, d, s, f) in lines
                if 16 * (e - c) ** 2 + (n + d - s - f) ** 2 > (2 * z * (c + e)) ** 2]  # fmt: skip
    return [y for y, (c, e, w, n, s) in lines if (e - w) ** 2 + (n - s) ** 2 > (2 * z * c) ** 2]


def _along(p: list[list[int]], weights: Any) -> list[list[int]]:
    """Sums of rows and of columns with weights."""
    rows = [[sum(map(mul, ws, column)) for column in zip(*p, strict=True)] for ws in weights]
    return [[sum(map(mul, ws, row)) for ws in weights] for row in rows]


def gentle(p: list[list[int]], z: list[list[int]], one: int) -> bool:
    """Whether the gradient of the spline of p (3, 3) has coefficients at most those of it times z / one (2, 2)."""
    sums: dict[tuple[int, int], list[int]] = {}
    for i, j in product(range(3), repeat=2):
        parts = [sum(f[i][k] * g[j][m] * p[k][m] for k, m in product(range(3), repeat=2)) for f, g in SLOPES]
        for k, m in ENDS:
            held = sums.setdefault((i + k, j + m), [0, 0, 0])
            sums[i + k, j + m] = list(map(add, held, (parts[0], parts[1], parts[2] * z[k][m])))
    return all((x * x + y * y) * one**2 <= t * t for x, y, t in sums.values())


def row_faults(table: tables.Table) -> list[str]:
    """Rows whose masses are not positive or do not sum to 2^62."""
    pairs = enumerate(zip(table.rows, table.sums, strict=True))
    wrong = [u for u, (row, total) in pairs if min(row) < 1 or not sum(row) == total == tables.ROW_SUM]
    return [f"secret {u}: a mass is below 1, or the masses do not sum to 2^62" for u in wrong[:1]]


def _told(table: tables.Table) -> list[str]:
    for name in ("position_claim", "unit", "problem", "sha256"):
        tables.say(f"{name + ':':16}{table.told.get(name, 'none')}")
    if "position_claim" not in table.told:
        raise tables.BadInput("it makes no claim about positions")
    return row_faults(table) or position_faults(table)


def main(arguments: list[str]) -> int:
    """Print the claim about positions and whether it is proved; 0 proved, 1 refused, 2 no such table."""
    return int(tables.main(arguments, _told, PROVED, "verify_positions.py"))


if __name__ == "__main__":
    tables.run(main)
