"""A second reader of compact maps, in plain Python: lengths, weights and draws, place by place, in whole numbers.

It shares no code with the package. It takes a map apart as mechanism/compact/file.py writes it, and follows the
statements of formulas.py and draw.py there: edges in fractions of their ends, distances by a heap of (q, place).
"""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

STEPS = [(1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2)]
ADVANCE = [0, 1, 2, 2, 3, 3, 4, 4]
MANTISSA = [4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845]
RISE = 1082163286


class Region:
    """A map; rows of secrets are numbered as the file numbers them."""

    def __init__(self, content: bytes) -> None:
        start = 16 + int.from_bytes(content[12:16], "little")
        self.header: dict[str, Any] = json.loads(content[16:start])
        self.frame = self.header["frame"]
        self.cells = self.header["cells"]
        self.rows, self.columns = (count + 2 * self.frame for count in self.cells)
        body = zlib.decompress(content[start:-32])
        size = self.rows * self.columns
        planes = [body[k * size : (k + 1) * size] for k in range(5)]
        self.level = self._summed([a + 256 * b for a, b in zip(planes[0], planes[1], strict=True)], 1 << 16)
        unsigned = self._summed([a + 256 * b for a, b in zip(planes[2], planes[3], strict=True)], 1 << 16)
        self.potential = [value - (1 << 16) * (value >= 1 << 15) for value in unsigned]
        self.weight = [MANTISSA[b % 16] << b // 16 for b in self._summed(list(planes[4]), 1 << 8)]
        self.units = cache(self._units)

    def _summed(self, steps: list[int], modulus: int) -> list[int]:
        found = [0] * len(steps)
        for at, step in enumerate(steps):
            i, j = divmod(at, self.columns)
            above, before = (found[at - self.columns] if i else 0), (found[at - 1] if j else 0)
            found[at] = (step + above + before - (found[at - self.columns - 1] if i and j else 0)) % modulus
        return found

    @cached_property
    def kernel(self) -> list[int]:
        """E."""
        values, ratio = [1 << 58], int(self.header["ratio"])
        for _ in range(self.header["cap"]):
            values.append(-((-values[-1] << self.header["shift"]) // ratio))
        return values

    def place(self, cell: int) -> int:
        """Of a secret."""
        row, column = divmod(cell, self.cells[1])
        return (row + self.frame) * self.columns + column + self.frame

    def reported(self, place: int) -> int:
        """The secret whose cell a place reports."""
        at = [min(max(x - self.frame, 0), n - 1) for x, n in zip(divmod(place, self.columns), self.cells, strict=True)]
        return at[0] * self.cells[1] + at[1]

    def neighbours(self, place: int) -> Iterator[tuple[int, int]]:
        """(other place, units of the edge)."""
        i, j = divmod(place, self.columns)
        for number, (a, b) in enumerate(STEPS[: self.header["stencil"] // 2]):
            for sign in (1, -1):
                row, column = i + sign * a, j + sign * b
                if 0 <= row < self.rows and 0 <= column < self.columns:
                    upper = (i, j) if sign > 0 else (row, column)
                    yield row * self.columns + column, self.units(upper, number)

    def length(self, upper: tuple[int, int], number: int) -> int:
        """d, in 2^-48 nats: the level at thirds, halves and ends of the pieces of the segment that cells divide."""
        (i, j), (a, b) = upper, STEPS[number]
        pieces = max(abs(a), abs(b))
        total = Fraction(0)
        for piece in range(pieces):  # on each the level is quadratic: Simpson's rule is exact
            for share, part in ((Fraction(1, 6), 0), (Fraction(4, 6), Fraction(1, 2)), (Fraction(1, 6), 1)):
                t = (piece + part) / Fraction(pieces)
                total += share / pieces * self._level_at(i + t * a, j + t * b)
        return int(self.header["advance"][ADVANCE[number]] * int(24 * total))

    def _level_at(self, row: Fraction, column: Fraction) -> Fraction:
        """Bilinear between the centres of cells."""
        i, j = row // 1, column // 1
        (x, y), total = (row - i, column - j), Fraction(0)
        for down, wx in ((0, 1 - x), (1, x)):
            for right, wy in ((0, 1 - y), (1, y)):
                if wx * wy:
                    total += wx * wy * self.level[(i + down) * self.columns + j + right]
        return total

    def _units(self, upper: tuple[int, int], number: int) -> int:
        d = self.length(upper, number)
        ends = [upper, (upper[0] + STEPS[number][0], upper[1] + STEPS[number][1])]
        inside = all(self.frame <= i < self.frame + self.cells[0] for i, _ in ends) and all(
            self.frame <= j < self.frame + self.cells[1] for _, j in ends
        )
        if inside:
            one, two = (self.potential[i * self.columns + j] for i, j in ends)
            d = max(d - 2**29 - 2**33 * abs(one - two), 3 * d // 10)
        return int(max(1, min(self.header["cap"], d // self.header["grain"])))

    def settled(self, source: int) -> Iterator[tuple[int, int]]:
        """(distance, place) of the places nearer than the cap, in order."""
        best, waiting = {source: 0}, [(0, source)]
        while waiting:
            q, place = heapq.heappop(waiting)
            if best[place] == q:
                yield q, place
                for other, units in self.neighbours(place):
                    if q + units < min(best.get(other, self.header["cap"]), self.header["cap"]):
                        best[other] = q + units
                        heapq.heappush(waiting, (q + units, other))

    def bound(self, cell: int) -> int:
        """Sbar."""
        g, k = self.header["bound"]
        t = self.potential[self.place(cell)] + 32768
        for _ in range(t // 256):
            g = -(-g * RISE >> 30)
        return int(g * (2**22 + 129 * (t % 256)) << k)

    def row_sum(self, cell: int) -> int:
        """S."""
        floor = self.kernel[-1]
        masses = ((self.kernel[q] - floor) * self.weight[place] for q, place in self.settled(self.place(cell)))
        return sum(masses) + floor * sum(self.weight)

    def report(self, cell: int, bits: Callable[[int], bytes]) -> int:
        """One report for random bytes."""
        bound, floor = self.bound(cell), self.kernel[-1]
        while True:
            t = int.from_bytes(bits(16), "little") >> 128 - bound.bit_length()
            if t >= bound:
                continue
            for q, place in self.settled(self.place(cell)):
                t -= (self.kernel[q] - floor) * self.weight[place]
                if t < 0:
                    return self.reported(place)
            for place, weight in enumerate(self.weight):
                t -= floor * weight
                if t < 0:
                    return self.reported(place)
