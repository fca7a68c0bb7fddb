"""An independent reader of device maps: Python's own integers and fractions, and nothing of the package.

Written from the text of devicemap/device_map.py, file.py and draw.py. Slow: a heap, a place at a time.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import zlib
from fractions import Fraction

MANTISSA = (4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845)
HALF = ((1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2))


class Reader:
    """A map of bytes."""

    def __init__(self, content):
        assert content[:12] == b"mechdesign" + bytes([1, 0])
        assert hashlib.sha256(content[:-32]).digest() == content[-32:]
        size = int.from_bytes(content[12:16], "little")
        self.header = told = json.loads(content[16 : 16 + size])
        self.frame, self.cells = told["margin"], told["cells"]
        self.rows, self.columns = (count + 2 * self.frame for count in told["cells"])
        body = zlib.decompress(content[16 + size : -32])
        count = self.rows * self.columns
        assert len(body) == 5 * count
        self.level = self._decode_differences(body[:count], body[count : 2 * count])
        self.potential = [
            p - 65536 * (p > 32767)
            for p in self._decode_differences(body[2 * count : 3 * count], body[3 * count : 4 * count])
        ]
        self.weight = [MANTISSA[b % 16] << b // 16 for b in self._decode_differences(body[4 * count :])]
        step = exponential(Fraction(told["step"], 2**48))
        assert int(told["ratio"]) <= 2 ** told["shift"] * step
        self.kernel = [1 << 58]
        for _ in range(told["cap"]):
            self.kernel.append(-((-self.kernel[-1] << told["shift"]) // int(told["ratio"])))

    def _decode_differences(self, low, high=None):
        wrap, found = (256 if high is None else 65536), []
        for p in range(self.rows * self.columns):
            left = found[p - 1] if p % self.columns else 0
            above = found[p - self.columns] if p >= self.columns else 0
            corner = found[p - self.columns - 1] if p >= self.columns and p % self.columns else 0
            step = low[p] + (0 if high is None else 256 * high[p])
            found.append((step + left + above - corner) % wrap)
        return found

    def inside(self, p):
        i, j = divmod(p, self.columns)
        return 0 <= i - self.frame < self.cells[0] and 0 <= j - self.frame < self.cells[1]

    def secret(self, number):
        """The place of a secret."""
        i, j = divmod(number, self.cells[1])
        return (i + self.frame) * self.columns + j + self.frame

    def length(self, p, k):
        """d of the edge from place p along k in 2^-48 nats; None where it leaves the rectangle."""
        i, j = divmod(p, self.columns)
        (a, b), level = k, lambda x, y: self.level[(i + x) * self.columns + j + y]
        if not (i + a < self.rows and 0 <= j + b < self.columns):
            return None
        ends, kind = level(0, 0) + level(a, b), [(1, 0), (0, 1), (1, 1), (2, 1), (1, 2)].index((a, abs(b)))
        if kind < 2:
            m = 12 * ends
        elif kind == 2:
            m = 8 * ends + 4 * (level(1, 0) + level(0, b))
        elif kind == 3:
            m = 5 * ends + 6 * (level(1, 0) + level(1, b)) + level(0, b) + level(2, 0)
        else:
            half = b // 2
            m = 5 * ends + 6 * (level(0, half) + level(1, half)) + level(1, 0) + level(0, b)
        return self.header["length_scales"][kind] * m

    def units(self, p, k):
        """x of the edge from place p along k; None where there is none."""
        d, other = self.length(p, k), p + k[0] * self.columns + k[1]
        if d is None:
            return None
        c = d
        if self.inside(p) and self.inside(other):
            apart = abs(self.potential[p] - self.potential[other])
            c = max(d - 2**29 - 2**33 * apart, 3 * d // 10)
        return max(1, min(self.header["cap"], c // self.header["grain"]))

    def neighbours(self, p):
        """(place, x) of every edge of place p."""
        for k in HALF[: self.header["stencil"] // 2]:
            x = self.units(p, k)
            if x is not None:
                yield p + k[0] * self.columns + k[1], x
            i, j = divmod(p, self.columns)
            if i - k[0] >= 0 and 0 <= j - k[1] < self.columns:
                other = p - k[0] * self.columns - k[1]
                yield other, self.units(other, k)

    def ball(self, secret):
        """(q, p) of the places with q < cap, in their order."""
        start, cap = self.secret(secret), self.header["cap"]
        best, heap, settled = {start: 0}, [(0, start)], set()
        while heap:
            q, p = heapq.heappop(heap)
            if p in settled:
                continue
            settled.add(p)
            yield q, p
            for other, x in self.neighbours(p):
                if q + x < min(cap, best.get(other, cap)):
                    best[other] = q + x
                    heapq.heappush(heap, (q + x, other))

    def total(self, secret):
        """S."""
        found = [self.kernel[-1] * w for w in self.weight]
        for q, p in self.ball(secret):
            found[p] = self.kernel[q] * self.weight[p]
        return sum(found)

    def ends(self, secret, k):
        """The secrets that the edge along k joins; None where it leaves them."""
        i, j = divmod(secret, self.cells[1])
        inside = i + k[0] < self.cells[0] and 0 <= j + k[1] < self.cells[1]
        return (secret, secret + k[0] * self.cells[1] + k[1]) if inside else None

    def bound(self, secret):
        """Sbar."""
        rise = math.ceil(2**30 * exponential(Fraction(1, 128)))
        t = self.potential[self.secret(secret)] + 32768
        g, shift = self.header["bound"]
        for _ in range(t // 256):
            g = -(-g * rise // 2**30)
        return g * (2**22 + 129 * (t % 256)) * 2**shift

    def draw(self, secret, bits):
        """One place; bits gives so many bytes. Settles no more places than it has to."""
        bound, floor, total = self.bound(secret), self.kernel[-1], sum(self.weight)
        assert bound <= 4 * self.total(secret)
        while True:
            left = t = int.from_bytes(bits(16), "little") >> 128 - bound.bit_length()
            if t >= bound:
                continue
            for q, p in self.ball(secret):
                mass = (self.kernel[q] - floor) * self.weight[p]
                if left < mass:
                    return p
                left -= mass
            if left < floor * total:
                rank = left // floor
                for p, w in enumerate(self.weight):
                    if rank < w:
                        return p
                    rank -= w

    def report(self, p):
        """The secret whose cell is reported for a place."""
        i, j = (min(max(at - self.frame, 0), n - 1) for at, n in zip(divmod(p, self.columns), self.cells, strict=True))
        return i * self.cells[1] + j

    def is_covered(self, secret, k, sums):
        """True if the edge along k between two secrets keeps the claim: sums, S by secret."""
        p, (_, other) = self.secret(secret), self.ends(secret, k)
        spare = Fraction(self.length(p, k) - self.units(p, k) * self.header["step"], 2**48)
        bound = exponential(spare)
        return spare >= 0 and max(Fraction(sums[secret], sums[other]), Fraction(sums[other], sums[secret])) <= bound


def exponential(x):
    """A lower bound of e^x for a fraction 0 <= x: partial sums of terms rounded down, right to 2^-100 for x <= 32."""
    term = total = one = 1 << 200
    n = 1
    while term:
        term = term * x.numerator // (x.denominator * n)
        total, n = total + term, n + 1
    return Fraction(total, one)
