"""The fields of a pool as a sparse matrix, by columns of the mechanism and by secrets, in single precision.

Every entry of a product is one sum in one order: the same bits on any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import in_blocks

_CHUNK = 2048  # entries of a product for one thread

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """G (c, n): column k of the mechanism has value[first[k]:first[k + 1]] at the secrets place[...]."""

    first: NDArray[np.int64]
    place: NDArray[np.int32]
    value: NDArray[np.float32]
    secrets: int

    @classmethod
    def of(cls, count: NDArray[np.int64], place: NDArray[np.int32], value: NDArray[np.float32], secrets: int) -> Matrix:
        """From the number of entries of every column."""
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        return cls(first=first, place=place, value=value, secrets=secrets)

    @property
    def size(self) -> int:
        """Number of columns c."""
        return len(self.first) - 1

    @cached_property
    def transposed(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """G' in compressed rows: first (n + 1,), column, value. Memory: as much again."""
        first = np.concatenate([[0], np.cumsum(np.bincount(self.place, minlength=self.secrets))]).astype(np.int64)
        column, value = np.empty(len(self.place), np.int32), np.empty(len(self.place), np.float32)
        _transpose(self.first, self.place, self.value, first[:-1].copy(), column, value)
        return first, column, value

    def across(self, values: Vector) -> Vector:
        """G values, (c,)."""
        return _product(self.first, self.place, self.value, values)

    def down(self, weight: Vector) -> Vector:
        """G' weight, (n,)."""
        return _product(*self.transposed, weight)

    def with_more(self, more: Matrix) -> Matrix:
        """These columns, then others."""
        return Matrix(
            first=np.concatenate([self.first, more.first[1:] + self.first[-1]]),
            place=np.concatenate([self.place, more.place]),
            value=np.concatenate([self.value, more.value]),
            secrets=self.secrets,
        )


def _product(first: NDArray[np.int64], place: NDArray[np.int32], value: NDArray[np.float32], values: Vector) -> Vector:
    found = np.empty(len(first) - 1)
    in_blocks(lambda a, b: _rows(first[a : b + 1], place, value, values, found[a:b]), len(found), _CHUNK)
    return found


@numba.njit(cache=True, nogil=True, fastmath=True)
def _rows(first, place, value, values, found):  # type: ignore[no-untyped-def]
    for i in range(found.size):
        total = 0.0
        for a in range(first[i], first[i + 1]):
            total += value[a] * values[place[a]]
        found[i] = total


@numba.njit(cache=True, nogil=True)
def _transpose(first, place, value, at, column, turned):  # type: ignore[no-untyped-def]
    for k in range(first.size - 1):
        for a in range(first[k], first[k + 1]):
            u = place[a]
            column[at[u]], turned[at[u]] = k, value[a]
            at[u] += 1


@numba.njit(cache=True, nogil=True)
def dense_part(nodes, first, column, value, root, least, mark, columns, part):  # type: ignore[no-untyped-def]
    """Write root_k g_k(u) for the secrets u of nodes (b,), where g is at least `least`, to part (?, b), one row for
    every column with such an entry; how many rows, or minus how many are needed.

    mark (c,) is -1 on entry and exit; columns (c,) is room.
    """
    count = 0
    for i in range(nodes.size):
        for a in range(first[nodes[i]], first[nodes[i] + 1]):
            if value[a] >= least and mark[column[a]] < 0:
                mark[column[a]] = count
                columns[count] = column[a]
                count += 1
    if count <= part.shape[0]:
        part[:count] = 0
        for i in range(nodes.size):
            for a in range(first[nodes[i]], first[nodes[i] + 1]):
                if value[a] >= least:
                    part[mark[column[a]], i] = value[a] * root[column[a]]
    for i in range(count):
        mark[columns[i]] = -1
    return count if count <= part.shape[0] else -count
