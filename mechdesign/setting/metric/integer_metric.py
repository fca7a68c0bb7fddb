"""IntegerMetric: shortest paths in whole units, from many sources at once.

Lengths are whole numbers of a small unit, so distances are exactly symmetric, obey the triangle inequality exactly and
change by at most an edge's length along that edge; nothing is rounded on the way. A cap keeps distances 1-Lipschitz.
They are found in windows around the sources (windows.py), beyond which they are the cap.

Nothing wraps: a distance is at most the cap and a length at most the longest, which together are at most 65,535, so
that their sums are 16-bit numbers; places and directed edges are fewer than 2^31, so that rows hold them in 32 bits;
and no compiled loop leaves its arrays, because every end of an edge is a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.setting.metric.windows import Distances, Neighbours, Windows

LARGEST = 65_535  # distances and lengths are 16-bit: the cap plus the longest edge may not exceed this
_MOST = 1 << 31


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerMetric:
    """Shortest-path distances min(d, cap) of undirected edges with whole lengths.

    Fields: points (k, 1..3), coordinates, used for nothing but the order of the work; tail, head (e,) place numbers;
    units (e,), lengths >= 0; cap, the largest distance told apart.
    Raises: InputError for arrays of another type or shape, an edge that ends outside the places, 2^31 places or 2^30
        edges, and where cap plus the longest edge exceeds 65,535.
    """

    points: NDArray[np.float64]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    units: NDArray[np.uint16]
    cap: int

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or not 1 <= self.points.shape[1] <= 3 or not 1 <= self.size < _MOST:
            raise _refused("must be coordinates (k, 1..3) of fewer than 2^31 places", "points", self.points.shape)
        for name, dtype in (("tail", np.int64), ("head", np.int64), ("units", np.uint16)):
            given = getattr(self, name)
            if given.dtype != dtype or given.shape != self.tail.shape or given.ndim != 1 or 2 * len(given) >= _MOST:
                found = f"{given.dtype} {given.shape}"
                raise _refused(f"must be {np.dtype(dtype)} (e,), one for each of fewer than 2^30 edges", name, found)
        for name, ends in (("tail", self.tail), ("head", self.head)):
            if ends.min(initial=0) < 0 or ends.max(initial=0) >= self.size:
                raise _refused("an edge ends outside the places", name, f"{ends.min()} to {ends.max()}")
        longest = int(self.units.max(initial=0))
        if not 0 < self.cap <= LARGEST - longest:
            raise InputError(
                f"must be positive, and with the longest edge ({longest}) at most {LARGEST}",
                field="cap",
                value=self.cap,
                remedy="use longer units",
            )

    @property
    def size(self) -> int:
        """Number of places k."""
        return len(self.points)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The edges as compressed rows."""
        return Neighbours.of(self.size, self.tail, self.head, self.units)

    def windows(self) -> Windows:
        """Room in which windows around sources are found."""
        return Windows(self.neighbours, self.cap)

    def from_sources(self, sources: NDArray[np.int64]) -> Distances:
        """Distances (k, b) in units from b places. Cost: a window around them (`Windows.around`), and the result."""
        window = self.windows().around(sources)
        found = np.full((self.size, len(sources)), self.cap, np.uint16)
        found[window.places] = window.field
        return found


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=value, remedy="use an unaltered file")
