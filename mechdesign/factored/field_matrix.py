"""The fields of a pool of columns as a matrix, and its products.

A field covers a ball of some nats around the place that it reports. On a lattice a ball consists of runs of consecutive
places, one for each row of the lattice. Vector instructions multiply several entries of a run at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from scipy.sparse import csr_array

from mechdesign.base.arrays import Indices32, Integers, Singles, Vector
from mechdesign.base.threads import in_blocks

_VISIBLE = 1e-3  # entries of a field below are left out of the equations of a step; a guess
_CHUNK = 2048  # columns of a product for one thread


@dataclass(frozen=True, kw_only=True, eq=False)
class FieldMatrix:
    """G (c, n), a row for the field of each column, in single precision; products in chunks of 2,048 columns."""

    first: Integers  # (c + 1,): the runs of column k are first[k]:first[k + 1]
    start: Indices32  # (r,): the first place of each run
    bounds: Integers  # (r + 1,): run i has the entries bounds[i]:bounds[i + 1]
    value: Singles  # (e,): at most 1
    secrets: int

    @classmethod
    def of(cls, count: Integers, place: Indices32, value: Singles, secrets: int) -> FieldMatrix:
        """The matrix of columns with count (c,) entries each, at ascending places (e,)."""
        first = np.concatenate([[0], np.cumsum(count)])
        begins = np.ones(len(place) + 1, np.bool_)
        begins[1:-1] = np.diff(place) != 1
        begins[first] = True  # of a column, or the end
        bounds = np.flatnonzero(begins)
        return cls(
            first=np.searchsorted(bounds, first),
            start=place[bounds[:-1]],
            bounds=bounds,
            value=value,
            secrets=secrets,
        )

    @classmethod
    def empty(cls, secrets: int) -> FieldMatrix:
        return cls.of(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), secrets)

    @property
    def size(self) -> int:
        return len(self.first) - 1

    def _places(self) -> Indices32:
        # Shifts beyond 32 bits wrap, and so do the sums, which are places again.
        shift = (self.start - self.bounds[:-1]).astype(np.int32)
        return np.repeat(shift, np.diff(self.bounds)) + np.arange(len(self.value)).astype(np.int32)

    @cached_property
    def visible(self) -> FieldMatrix:
        """The large entries alone."""
        large = np.flatnonzero(self.value >= _VISIBLE)
        count = np.diff(np.searchsorted(large, self.bounds[self.first]))
        return FieldMatrix.of(count, self._places()[large], self.value[large], self.secrets)

    @cached_property
    def transpose(self) -> tuple[Integers, Indices32, Singles]:
        """G' in compressed rows: the columns (e,) with an entry at place u are those from first[u] to first[u + 1]."""
        first = self.bounds[self.first]
        if first[-1] <= np.iinfo(np.int32).max:
            first = first.astype(np.int32)  # SciPy widens all its indices to this type
        matrix = csr_array((self.value, self._places(), first), shape=(self.size, self.secrets)).tocsc()
        return np.asarray(matrix.indptr, np.int64), np.asarray(matrix.indices, np.int32), matrix.data

    def across(self, values: Vector) -> Vector:
        """G values (c,)."""
        product = np.empty(self.size)

        def multiply(start: int, stop: int) -> None:
            _rows(self.first[start : stop + 1], self.start, self.bounds, self.value, values, product[start:stop])

        in_blocks(multiply, self.size, _CHUNK)
        return product

    def down(self, weight: Vector) -> Vector:
        """G' weight (n,)."""
        sums = self._chunk_sums(np.float64)

        def add(start: int, stop: int) -> None:
            first, part = self.first[start : stop + 1], sums[start // _CHUNK]
            _add_rows(first, self.start, self.bounds, self.value, weight[start:stop], part)

        in_blocks(add, self.size, _CHUNK)
        return np.asarray(sums.sum(axis=0))

    def normal(self, scale: Vector, values: Vector) -> Vector:
        """G' diag(scale) G values (n,), in single precision and one pass over the entries."""
        sums, scale, values = self._chunk_sums(np.float32), scale.astype(np.float32), values.astype(np.float32)

        def add(start: int, stop: int) -> None:
            first, part = self.first[start : stop + 1], sums[start // _CHUNK]
            _add_normal(first, self.start, self.bounds, self.value, scale[start:stop], values, part)

        in_blocks(add, self.size, _CHUNK)
        return np.asarray(sums.sum(axis=0, dtype=float))

    def _chunk_sums(self, dtype: type) -> Vector:
        # A sum for each chunk, added in their order: the same bits on any number of threads.
        return np.zeros((-(-self.size // _CHUNK), self.secrets), dtype)

    def with_more(self, more: FieldMatrix) -> FieldMatrix:
        """The columns of both, without the cached visible entries and transpose, which take twice their size."""
        return FieldMatrix(
            first=np.concatenate([self.first, more.first[1:] + self.first[-1]]),
            start=np.concatenate([self.start, more.start]),
            bounds=np.concatenate([self.bounds, more.bounds[1:] + self.bounds[-1]]),
            value=np.concatenate([self.value, more.value]),
            secrets=self.secrets,
        )


# Loops over slices: the compiler then knows that entries follow one another, and uses vector instructions.
@numba.njit(cache=True, nogil=True, fastmath=True)
def _row(i, first, start, bounds, value, values):  # type: ignore[no-untyped-def]
    total = values.dtype.type(0)
    for k in range(first[i], first[i + 1]):
        run = value[bounds[k] : bounds[k + 1]]
        part = values[start[k] : start[k] + run.size]
        for j in range(run.size):
            total += run[j] * part[j]
    return total


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_row(i, factor, first, start, bounds, value, sums):  # type: ignore[no-untyped-def]
    for k in range(first[i], first[i + 1]):
        run = value[bounds[k] : bounds[k + 1]]
        part = sums[start[k] : start[k] + run.size]
        for j in range(run.size):
            part[j] += run[j] * factor


@numba.njit(cache=True, nogil=True, fastmath=True)
def _rows(first, start, bounds, value, values, products):  # type: ignore[no-untyped-def]
    for i in range(products.size):
        products[i] = _row(i, first, start, bounds, value, values)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_rows(first, start, bounds, value, weight, sums):  # type: ignore[no-untyped-def]
    for i in range(weight.size):
        _add_row(i, weight[i], first, start, bounds, value, sums)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_normal(first, start, bounds, value, scale, values, sums):  # type: ignore[no-untyped-def]
    for i in range(scale.size):
        product = _row(i, first, start, bounds, value, values)
        # The row is still in the cache.
        _add_row(i, scale[i] * product, first, start, bounds, value, sums)
