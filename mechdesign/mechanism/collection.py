"""Reports for many positions, and their cost by person.

A person's equal points are one secret: it is drawn for once, and its report is repeated at no cost, as
`sessions.Budget` does. Points of different persons are independent. By the sum of costs (Andrés et al. 2013, section
3.3), all reports of a person with k distinct points satisfy

    (1)  P(z|x) <= e^{c sum_i d(x_i, x'_i)} P(z|x')      i = 1 ... k,  c the cost of one report,

between traces that repeat their points at the same positions. Which points are equal is visible.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from mechdesign.base.arrays import AnyArray, Indices, IntegerMatrix, Integers, Mask, Points, Vector
from mechdesign.base.threads import Rng
from mechdesign.errors import InputError
from mechdesign.mechanism.accuracy import round_up
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import refuse_degrees
from mechdesign.problem.located import places_at, positions_on_earth

_POINT_BITS = 17  # of a coordinate of a point in a cell, which is at most 2^16


class DrawSource(Protocol):
    """A certified mechanism of any kind that draws many reports: `Sampler`, and samplers of capabilities."""

    @property
    def domain(self) -> Domain: ...

    @property
    def claim(self) -> str: ...

    @property
    def cost(self) -> Fraction: ...

    @property
    def positions(self) -> PositionClaim | None: ...

    @property
    def report_points(self) -> Points: ...

    @property
    def report_unit(self) -> str: ...

    @property
    def report_labels(self) -> AnyArray | None: ...

    @property
    def radii(self) -> Vector | None:
        """The accuracy (m,) of every report; None for mechanisms without radii."""
        ...

    def draw(self, cells: Indices, points: IntegerMatrix | None, size: int = 1, *, rng: Rng = None) -> Integers:
        """Numbers of reports (b, size) of cells (b,), or with a claim between positions of points (b, 2) in them."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Located:
    """Cells (b,), -1 for a position in no cell, and with a claim between positions the points (b, 2) in them."""

    cells: Indices
    points: IntegerMatrix | None = None

    @property
    def is_inside(self) -> Mask:
        return self.cells >= 0

    def only(self, rows: Indices) -> Located:
        return Located(cells=self.cells[rows], points=None if self.points is None else self.points[rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Numbers of reports (b,), -1 without one, and True (b,) where a report repeats an earlier one."""

    reports: Indices
    is_repeated: Mask


@dataclass(kw_only=True, eq=False)
class Collection:
    """Reports of one mechanism for the points of many persons, in parts."""

    # `most_reports` is the largest number of reports that were drawn for one person.

    source: DrawSource
    rng: Rng = None
    _persons: dict[object, int] = field(default_factory=dict)
    _remembered: dict[int, int] = field(default_factory=dict)
    _reports: array[int] = field(default_factory=lambda: array("q"))
    _by_person: array[int] = field(default_factory=lambda: array("q"))

    @property
    def domain(self) -> Domain:
        return self.source.domain

    @property
    def persons(self) -> int:
        return len(self._persons)

    @property
    def most_reports(self) -> int:
        return max(self._by_person, default=0)

    @cached_property
    def radii(self) -> Vector | None:
        """The accuracy (m,) of every report, rounded up to three digits; None for mechanisms without radii."""
        radii = self.source.radii
        return None if radii is None else np.array(round_up(radii), np.float64)

    @cached_property
    def report_degrees(self) -> Points | None:
        """Longitude and latitude (m, 2) of every report, with the decimals of a tenth of a cell; None off the Earth."""
        plane, places = self.domain.plane, self.source.report_points
        if plane is None or places.shape[1] != 2 or self.source.report_unit != self.domain.unit:
            return None
        degrees = np.column_stack(plane.backward(places))
        return np.asarray(np.round(degrees, plane.decimals(self.domain.spacing)) + 0.0, np.float64)

    def locate_degrees(self, degrees: Points) -> Located:
        """The places of longitudes and latitudes (b, 2)."""
        if self.domain.plane is None:
            message = "the mechanism has no position on Earth"
            raise InputError(message, field="degrees", remedy="give positions in the unit of the map")
        return self.locate(positions_on_earth(self.domain, degrees), are_checked=True)

    def locate(self, positions: Points, *, are_checked: bool = False) -> Located:
        """The places of positions (b, k) in the unit of the domain; refuses degrees taken for lengths."""
        if not are_checked and len(positions):
            refuse_degrees(self.domain, positions)
        cells, claim = places_at(self.domain, positions), self.source.positions
        if claim is None:
            return Located(cells=cells)
        points = np.zeros((len(cells), 2), np.int64)
        inside = np.flatnonzero(cells >= 0)
        if len(inside):
            cells[inside], points[inside] = claim.snap(self.domain, positions[inside])
        return Located(cells=cells, points=points)

    def locate_secrets(self, numbers: Vector) -> Located:
        """The places with these numbers (b,); any other number is in no cell. A secret stands for its centre."""
        with np.errstate(invalid="ignore"):
            valid = (numbers >= 0) & (numbers < self.domain.size) & (numbers == np.floor(numbers))
        cells = np.where(valid, numbers, -1).astype(np.int64)
        claim = self.source.positions
        return Located(cells=cells, points=None if claim is None else np.zeros((len(cells), 2), np.int64))

    def draw(self, located: Located, persons: Sequence[object] | None = None) -> Drawn:
        """A report for each point, independent ones without `persons` (b,), else the earlier one of an equal point."""
        inside = np.flatnonzero(located.is_inside)
        reports, is_repeated = np.full(len(located.cells), -1, np.int64), np.zeros(len(located.cells), bool)
        if persons is None:
            reports[inside] = self._draw(located.only(inside))
            return Drawn(reports=reports, is_repeated=is_repeated)
        slots, new = self._slots(located.only(inside), [persons[k] for k in inside.tolist()])
        self._reports.extend(self._draw(located.only(inside[new])).tolist())
        reports[inside] = np.frombuffer(self._reports, np.int64)[slots] if len(inside) else 0
        is_repeated[inside] = True
        is_repeated[inside[new]] = False
        return Drawn(reports=reports, is_repeated=is_repeated)

    def _draw(self, located: Located) -> Indices:
        if not len(located.cells):
            return np.empty(0, np.int64)
        return self.source.draw(located.cells, located.points, rng=self.rng)[:, 0]

    def _slots(self, located: Located, persons: Sequence[object]) -> tuple[Indices, Indices]:
        """The slot (b,) of each point among the remembered reports, and the rows that are new."""
        places = located.cells
        if located.points is not None:
            corner = 1 << (_POINT_BITS - 1)
            first, second = (located.points + corner).T
            places = (places << 2 * _POINT_BITS) | (first << _POINT_BITS) | second
        slots, new = np.empty(len(places), np.int64), list[int]()
        for k, (person, place) in enumerate(zip(persons, places.tolist(), strict=True)):
            number = self._persons.setdefault(person, len(self._persons))
            if number == len(self._by_person):
                self._by_person.append(0)
            slot = self._remembered.setdefault(number << 64 | place, len(self._remembered))
            slots[k] = slot
            if slot == len(self._reports) + len(new):
                new.append(k)
                self._by_person[number] += 1
        return slots, np.array(new, np.int64)
