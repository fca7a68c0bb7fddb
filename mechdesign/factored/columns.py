"""Columns by their generators: a few places with offsets that determine a column at all places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Indices, Integers
from mechdesign.errors import InputError
from mechdesign.factored.integer_metric import Distances

GENERATORS = {"place": "generator_place", "offset": "generator_offset", "first": "first_generator"}  # in files


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Columns by their generators, stored column by column."""

    place: Indices  # (g,)
    offset: NDArray[np.integer[Any]]  # (g,) >= 0, whole units
    first: Indices  # (c,), the first generator of every column, which ends where the next one begins

    def __post_init__(self) -> None:
        # Compared, not subtracted: differences of untrusted numbers may wrap.
        rises = (self.first[1:] > self.first[:-1]).all()
        if self.first[0] != 0 or not rises or self.first[-1] >= len(self.place):
            shown = f"{self.first[0]} to {self.first[-1]}, {len(self.place)} generators"
            message = "must increase from 0, with a generator for every column"
            raise InputError(message, field=GENERATORS["first"], value=shown)

    @classmethod
    def concatenate(cls, parts: Sequence[Columns]) -> Columns:
        starts = np.cumsum([0, *(len(part.place) for part in parts[:-1])])
        return cls(
            place=np.concatenate([part.place for part in parts]),
            offset=np.concatenate([part.offset for part in parts]),
            first=np.concatenate([part.first + start for part, start in zip(parts, starts, strict=True)]),
        )

    @property
    def size(self) -> int:
        return len(self.first)

    @property
    def bounds(self) -> Integers:
        """The ends of the generators of every column (c + 1,): those of column k from bounds[k] to bounds[k + 1]."""
        return np.append(self.first, len(self.place))

    def select(self, numbers: Integers) -> Columns:
        width = np.diff(self.bounds)[numbers]
        first = np.cumsum(width) - width
        chosen = np.repeat(self.first[numbers] - first, width) + np.arange(width.sum())
        return Columns(place=self.place[chosen], offset=self.offset[chosen], first=first)

    def gather(self, distances: Distances, cap: int) -> Distances:
        """q_k(u) (c, b) from the distances (k, b) of all places from b sources, for 16-bit offsets up to the cap."""
        gathered = np.empty((self.size, distances.shape[1]), np.uint16)
        _gather(distances, self.place, self.offset, self.first, np.uint16(cap), gathered)
        return gathered


@numba.njit(cache=True, nogil=True)
def _gather(distances, place, offset, first, cap, gathered):  # type: ignore[no-untyped-def]
    for k in range(first.size):
        row = gathered[k]
        row[:] = cap
        stop = first[k + 1] if k + 1 < first.size else place.size
        for g in range(first[k], stop):
            # f_v + min(q, F - f_v) = min(F, f_v + q) without a sum above the cap: 16 bits suffice.
            other, shift = distances[place[g]], offset[g]
            limit = np.uint16(cap - shift)
            for b in range(row.size):
                row[b] = min(row[b], np.uint16(min(other[b], limit) + shift))
