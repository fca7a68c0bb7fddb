"""Alias tables in whole numbers: draws from a row of a table whose probabilities are its integers, none rounded.

Statement. A row a(y), y < m, of integers sums to 2^62. With the least 2^k >= m there are 2^k columns of capacity
C = 2^(62-k). Column c gives y = c to the residues r < cut(c) and y = alias(c) to the others. The tables are exact:

    cut(y) + sum over c with alias(c) = y of (C - cut(c)) = a(y)      for every y < m, and 0 for m <= y < 2^k

x = 62 uniform bits falls into column x >> (62 - k) with residue x mod C, so P(y) = a(y) / 2^62: one comparison a draw,
nothing rejected. Walker 1977 and Vose 1991 with integers: a column below capacity is filled up from one above it; the
mean of the columns not yet filled stays C, so that one above or at C is always left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.table.certificate import ROW_BITS

_WORDS = 1 << 17  # of bits asked for at once: 1 MB stays in the cache


@dataclass(frozen=True, kw_only=True, eq=False)
class AliasTables:
    """cut (u, 2^k) uint64 in [0, 2^(62-k)] and alias (u, 2^k) int32 of u rows; make one with `alias_tables`."""

    cut: NDArray[np.uint64]
    alias: NDArray[np.int32]

    @property
    def shift(self) -> int:
        """62 - k: the residue has so many bits."""
        return ROW_BITS - (self.cut.shape[1] - 1).bit_length()

    def draw(self, rows: NDArray[np.int64], size: int, bits: Callable[[int], bytes]) -> NDArray[np.int64]:
        """Reports (b, size) for rows (b,), which number the rows of these tables.

        Every draw takes the upper 62 of the next 64 bits, little-endian, in the order of the result.
        Cost: 20 to 35 ns a draw with bits from the operating system, which take 18 of them. Addresses depend on rows
            and reports.
        """
        drawn = np.empty(len(rows) * size, np.int64)
        for first in range(0, len(drawn), _WORDS):
            count = min(_WORDS, len(drawn) - first)
            words = np.frombuffer(bits(8 * count), "<u8").astype(np.uint64, copy=False)
            _draw(words, rows, size, first, self.cut, self.alias, np.uint64(self.shift), drawn)
        return drawn.reshape(len(rows), size)


def columns_of(reports: int) -> int:
    """2^k, the number of columns for so many reports."""
    return 1 << (reports - 1).bit_length()


def alias_tables(mass: NDArray[np.uint64]) -> AliasTables:
    """The tables of rows mass (u, m), each summing to 2^62.

    Memory: 12 bytes times u 2^k. Cost: 10 ns times u 2^k.
    """
    columns = columns_of(mass.shape[1])
    cut, alias = np.empty((len(mass), columns), np.uint64), np.empty((len(mass), columns), np.int32)
    _fill(mass, np.uint64((1 << ROW_BITS) // columns), cut, alias)
    return AliasTables(cut=cut, alias=alias)


@numba.njit(cache=True, nogil=True)
def _fill(mass, capacity, cut, alias):  # type: ignore[no-untyped-def]
    reports, columns = mass.shape[1], cut.shape[1]
    left = np.zeros(columns, np.uint64)
    below, above = np.empty(columns, np.int32), np.empty(columns, np.int32)
    for u in range(mass.shape[0]):
        left[:reports] = mass[u]
        left[reports:] = 0
        low, high = 0, 0
        for c in range(columns):
            if left[c] < capacity:
                below[low] = c
                low += 1
            else:
                above[high] = c
                high += 1
        while low > 0:
            low -= 1
            c, giver = below[low], above[high - 1]
            cut[u, c], alias[u, c] = left[c], giver
            left[giver] -= capacity - left[c]
            if left[giver] < capacity:
                high -= 1
                below[low] = giver
                low += 1
        for place in range(high):
            c = above[place]
            cut[u, c], alias[u, c] = capacity, c


@numba.njit(cache=True, nogil=True)
def _draw(words, rows, size, first, cut, alias, shift, drawn):  # type: ignore[no-untyped-def]
    residue = (np.uint64(1) << shift) - np.uint64(1)
    row, draw = first // size, first % size
    for t in range(words.size):
        x = words[t] >> np.uint64(2)
        column, u = x >> shift, rows[row]
        drawn[first + t] = column if x & residue < cut[u, column] else alias[u, column]
        draw += 1
        if draw == size:
            row, draw = row + 1, 0
