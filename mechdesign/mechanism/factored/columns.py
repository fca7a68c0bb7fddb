"""Columns: functions of the secrets as minima of distances, a few whole numbers for each.

Statement. Column k has generators: places v with whole offsets f_v >= 0. With q the integer metric, capped at F,

    q_k(u) = min(F, min over the generators v of k of f_v + q(v, u)).

q_k changes by at most j along an edge of j units: q(v, .) does, and sums with constants, minima and a cap keep that. A
column with one generator of offset 0 is the distance from a place.

Nothing wraps and no compiled loop leaves its arrays, whoever wrote the numbers: generators are places, `first` rises
from 0 and stays below the number of generators, and f_v + min(q(v, u), F - f_v) is at most F <= 65,535.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.metric.windows import Distances

_MOST = 1 << 31


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """place (g,) and offset (g,), the generators of all columns, those of a column side by side; first (c,), the number
    of the first generator of every column, which ends where the next one begins.

    Raises: InputError for arrays of another type or shape, a column without generators, 2^31 generators.
    """

    place: NDArray[np.int64]
    offset: NDArray[np.uint16]
    first: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, dtype, like in (
            ("place", np.int64, self.place),
            ("offset", np.uint16, self.place),
            ("first", np.int64, self.first),
        ):
            given = getattr(self, name)
            if given.dtype != dtype or given.ndim != 1 or given.shape != like.shape or not 0 < len(given) < _MOST:
                raise _refused(
                    f"must be {np.dtype(dtype)} in one axis of 1 to 2^31 - 1 numbers, places and offsets equally many",
                    _FIELDS[name],
                    f"{given.dtype} {given.shape}",
                )
        rises = (self.first[1:] > self.first[:-1]).all()  # compared: differences of hostile numbers wrap
        if self.first[0] != 0 or not rises or self.first[-1] >= len(self.place):
            shown = f"{self.first[0]} to {self.first[-1]}, {len(self.place)} generators"
            raise _refused("must rise from 0 and leave every column a generator", _FIELDS["first"], shown)

    @property
    def size(self) -> int:
        """Number of columns c."""
        return len(self.first)

    def check(self, places: int, cap: int) -> None:
        """Raises: InputError where a generator is none of the places, or an offset is above the cap."""
        if self.place.min() < 0 or self.place.max() >= places:
            shown = f"{self.place.min()} to {self.place.max()}, {places} places"
            raise _refused("a generator is no place", _FIELDS["place"], shown)
        if self.offset.max() > cap:
            raise _refused("an offset is above the cap", _FIELDS["offset"], f"{self.offset.max()}, cap {cap}")

    def gather(self, distances: Distances, cap: int) -> Distances:
        """q_k(u) (c, b) from the distances (k, b) of all places from b sources, for numbers that `check` allows.

        Cost: 15 ns for every 128 sources of a generator.
        """
        found = np.empty((self.size, distances.shape[1]), np.uint16)
        _gather(distances, self.place, self.offset, self.first, np.uint16(cap), found)
        return found


_FIELDS = {"place": "generator_place", "offset": "generator_offset", "first": "first_generator"}


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=value, remedy="use an unaltered file, or other columns")


@numba.njit(cache=True, nogil=True)
def _gather(distances, place, offset, first, cap, found):  # type: ignore[no-untyped-def]
    """Write the least offset + distance over the generators of every column to `found`, the cap where that is less."""
    for k in range(first.size):
        row = found[k]
        row[:] = cap
        stop = first[k + 1] if k + 1 < first.size else place.size
        for g in range(first[k], stop):
            other, more = distances[place[g]], offset[g]
            room = np.uint16(cap - more)
            for b in range(row.size):
                row[b] = min(row[b], np.uint16(min(other[b], room) + more))
