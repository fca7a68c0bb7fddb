r"""The rows of posterior caps: sum_{u in B} N(u) P(y|u) <= c_B sum_u N(u) P(y|u), of listed sets B or of sets by area.

Integers. With whole persons, c_B = a/b and P = A / 2^62 a row says b sum_B N A <= a sum N A. sum N < 2^32, A <= 2^62
and b < 2^16 keep both sides of a cap below 2^110. Sums of N times the halves of 31 bits of A stay below 2^63; the sides
are compared in floating point where they differ by 2^-40 of themselves, and else as Python integers.

Raising. A column that breaks rows keeps them after a constant theta is added to it, where p(B) < c_B:

    theta = max_B sum_u p(u) (1_B(u) - c_B) P(y|u) / (c_B - p(B)),

and a constant added to a column is the same in every row: tables divided by 1 + sum theta have rows that sum to 1.
By area the maximum is over too many sets: theta is the zero of a convex, falling, piecewise linear function.

By area a bound needs no set by itself: rows of one report with multipliers mu_B are mu = sum mu_B times one row of
f(u) = sum_B mu_B 1_B(u) / mu inside, and any f in [0, 1] of sum K or less gives a row that holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.posteriors.discs import largest_sums
from mechdesign.programs.coupled import SideRows, stack_rows

if TYPE_CHECKING:
    import cvxpy as cp

_ALIKE = 2.0**-40  # relative difference of two sides from which floating point tells them apart
_HALF = np.uint64(31)
_BLOCK = 1 << 24  # sums that are compared at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Caps(ABC):
    """The rows of one constraint under one prior: persons (n,) of sum < 2^32, and what errors call it.

    counted, what `breaches` counts.
    """

    persons: NDArray[np.int64]
    what: str
    counted: ClassVar[str] = "(report, disc) pairs"

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """The prior p (n,)."""
        return self.persons / float(self.persons.sum())

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers files have for the sets."""

    @property
    @abstractmethod
    def room(self) -> float:
        """The least of 1 - p(B) / c_B."""

    @abstractmethod
    def shares(self, joint: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest sum in one set (m,) of each column (n, m)."""

    @abstractmethod
    def worst(self, table: NDArray[np.float64], most: int, over: float) -> NDArray[np.int64]:
        """Reports and sets (k, 2): of each column of a table (n, m) at most `most` sets, those whose share of the
        posterior is furthest above (1 + over) c_B.
        """

    @abstractmethod
    def chosen(self, sets: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Which places some sets contain, (k, n) of 0 and 1, and their c_B (k,)."""

    @abstractmethod
    def need(self, table: NDArray[np.float64], tighter: float) -> NDArray[np.float64]:
        """The theta (m,) of the module docstring for limits lower by the share `tighter`; 0 where they hold."""

    @abstractmethod
    def breaches(self, mass: NDArray[np.uint64]) -> int:
        """How many rows integers (n, m) break, exactly; by area, of how many reports."""

    @abstractmethod
    def stated(self, table: cp.Variable) -> list[cp.Constraint]:
        """The rows in cvxpy."""

    def rows(
        self,
        report: NDArray[np.int64],
        inside: NDArray[np.float64],
        limit: NDArray[np.float64],
        reports: int,
        tighter: float = 0.0,
    ) -> SideRows:
        """The rows of reports (k,), what is inside (k, n) and c_B (k,), as side rows of limit 0 over tables
        (n, reports), coefficients up to 1, for limits lower by the share `tighter`.
        """
        n, k = len(self.persons), len(report)
        data = self.prior / self.prior.max() * (inside - limit[:, None] * (1 - tighter))
        columns = np.arange(n) * reports + report[:, None]
        matrix = sp.csr_array((data.ravel(), columns.ravel(), np.arange(0, k * n + 1, n)), shape=(k, n * reports))
        names = [f"{self.what}: report {y}" for y in report]
        return SideRows(matrix=matrix, limit=np.zeros(k), share=np.zeros(k), names=names)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiscCaps(Caps):
    """Of listed sets (k, n), discs, with c_B (k,) below 1 as exact fractions."""

    sets: sp.csr_array
    limits: Sequence[Fraction]

    @cached_property
    def limit(self) -> NDArray[np.float64]:
        """c_B (k,) as doubles."""
        return np.array([float(limit) for limit in self.limits])

    @cached_property
    def within(self) -> NDArray[np.float64]:
        """p(B) (k,)."""
        return np.asarray(self.sets @ self.prior)

    @property
    def numbers(self) -> int:
        return len(self.limits)

    @property
    def room(self) -> float:
        return float((1 - self.within / self.limit).min(initial=1.0))

    def shares(self, joint: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.sets @ joint).max(axis=0, initial=0.0))

    def worst(self, table: NDArray[np.float64], most: int, over: float) -> NDArray[np.int64]:
        joint = self.prior[:, None] * table
        overshoot = (self.sets @ joint) / (self.limit[:, None] * np.maximum(joint.sum(axis=0), 1e-300)) - 1
        discs = np.argsort(-overshoot, axis=0, kind="stable")[:most]
        reports = np.broadcast_to(np.arange(table.shape[1]), discs.shape)
        kept = overshoot[discs, reports] > over
        return np.stack([reports[kept], discs[kept]], axis=1)

    def chosen(self, sets: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.sets[sets].toarray().astype(float), self.limit[sets]

    def need(self, table: NDArray[np.float64], tighter: float) -> NDArray[np.float64]:
        joint, limit = self.prior[:, None] * table, self.limit * (1 - tighter)
        over = (self.sets @ joint) - limit[:, None] * joint.sum(axis=0)
        return np.asarray((over / (limit - self.within)[:, None]).max(axis=0, initial=0.0))

    def breaches(self, mass: NDArray[np.uint64]) -> int:
        count, step = 0, max(1, _BLOCK // max(1, self.sets.shape[0]))
        over = np.array([limit.numerator for limit in self.limits], object)
        under = np.array([limit.denominator for limit in self.limits], object)
        weighted = self.sets * self.persons[None, :]
        for start in range(0, mass.shape[1], step):
            part = mass[:, start : start + step]
            low, high = (half.astype(np.int64) for half in (part & np.uint64(2**31 - 1), part >> _HALF))
            inside, whole = (weighted @ low, weighted @ high), (self.persons @ low, self.persons @ high)
            left = inside[0] + inside[1] * 2.0**31
            right = self.limit[:, None] * (whole[0] + whole[1] * 2.0**31)
            disc, report = np.nonzero(left > right * (1 - _ALIKE))
            some, all_of_it = (
                parts[0][at].astype(object) + parts[1][at].astype(object) * 2**31
                for parts, at in ((inside, (disc, report)), (whole, report))
            )
            count += int(np.count_nonzero(some * under[disc] > all_of_it * over[disc]))
        return count

    def stated(self, table: cp.Variable) -> list[cp.Constraint]:
        return [((self.sets.toarray() - self.limit[:, None]) * self.prior) @ table <= 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCaps(Caps):
    """Of all sets of a number of cells, with one c below 1. Sets are numbered as they are found; files have one number,
    and for each row the share of every cell that its sets contain, weighted by their multipliers.
    """

    counted = "reports"
    cells: int
    exact: Fraction
    found: dict[bytes, int] = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        return 1

    @property
    def room(self) -> float:
        return 1 - float(self.shares(self.prior[:, None])[0]) / float(self.exact)

    def shares(self, joint: NDArray[np.float64]) -> NDArray[np.float64]:
        return largest_sums(joint, self.cells)

    def worst(self, table: NDArray[np.float64], most: int, over: float) -> NDArray[np.int64]:
        joint, pairs = self.prior[:, None] * table, []
        order, least = np.argsort(-joint, axis=0, kind="stable"), float(self.exact) * (1 + over) * joint.sum(axis=0)
        for y, ranked in enumerate(order.T):
            for step in range(min(most, self.cells, len(ranked) - self.cells + 1)):
                cells = np.sort(np.r_[ranked[: self.cells - step], ranked[self.cells : self.cells + step]])
                if joint[cells, y].sum() <= least[y]:
                    break
                pairs.append((y, self.found.setdefault(cells.tobytes(), len(self.found))))
        return np.array(pairs, np.int64).reshape(-1, 2)

    def chosen(self, sets: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        listed, inside = list(self.found), np.zeros((len(sets), len(self.persons)))
        for row, number in zip(inside, sets, strict=True):
            row[np.frombuffer(listed[number], np.int64)] = 1
        return inside, np.full(len(sets), float(self.exact))

    def need(self, table: NDArray[np.float64], tighter: float) -> NDArray[np.float64]:
        joint, limit = self.prior[:, None] * table, float(self.exact) * (1 - tighter)
        theta, whole, every = np.zeros(joint.shape[1]), joint.sum(axis=0), np.arange(joint.shape[1])
        while True:  # Newton's steps on a convex, piecewise linear function: each takes up another set, or is the last
            top = np.argpartition(joint + self.prior[:, None] * theta, len(joint) - self.cells, axis=0)[-self.cells :]
            over = joint[top, every].sum(axis=0) - limit * whole
            step = np.maximum(theta, over / (limit - self.prior[top].sum(axis=0)))
            if not (step > theta * (1 + _ALIKE)).any():
                return step
            theta = step

    def breaches(self, mass: NDArray[np.uint64]) -> int:
        joint = self.persons[:, None] * mass.astype(float)
        near = np.flatnonzero(self.shares(joint) > float(self.exact) * joint.sum(axis=0) * (1 - _ALIKE))
        count = 0
        for report in near:
            exact = sorted(k * a for k, a in zip(self.persons.tolist(), mass[:, report].tolist(), strict=True))
            count += sum(exact[-self.cells :]) * self.exact.denominator > sum(exact) * self.exact.numerator
        return count

    def stated(self, table: cp.Variable) -> list[cp.Constraint]:
        import cvxpy as cp

        joint, limit = cp.multiply(self.prior[:, None], table), float(self.exact)
        return [cp.sum_largest(joint[:, y], self.cells) <= limit * cp.sum(joint[:, y]) for y in range(table.shape[1])]


def posterior_shares(table: ArrayLike, caps: Caps) -> NDArray[np.float64]:
    """The largest share of the posterior in one set after each report (m,), of a table or of masses (n, m)."""
    joint = caps.prior[:, None] * np.asarray(table, float)
    return caps.shares(joint) / np.maximum(joint.sum(axis=0), 1e-300)


def posterior_rows(
    caps: Sequence[Caps],
    which: NDArray[np.int64],
    inside: NDArray[np.float64],
    limit: NDArray[np.float64],
    *,
    reports: int,
    tighter: float = 0.0,
) -> SideRows:
    """`Caps.rows` of several caps in one order: which (k, 2), the report and the number of the caps of each row."""
    order, parts = np.argsort(which[:, 1], kind="stable"), []
    for number, each in enumerate(caps):
        own = which[:, 1] == number
        parts.append(each.rows(which[own, 0], inside[own], limit[own], reports, tighter))
    stacked, back = stack_rows(parts, len(caps[0].persons) * reports), np.argsort(order, kind="stable")
    names = [stacked.names[k] for k in back]
    return SideRows(matrix=stacked.matrix[back], limit=stacked.limit, share=stacked.share, names=names)


def merged_rows(
    caps: Sequence[Caps], rows: NDArray[np.int64], multipliers: NDArray[np.float64]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """What a file keeps of rows (k, 3) of reports, caps and sets: reports and numbers of sets (j,), through all caps,
    and by area f of the module docstring (j, n), by name; and multipliers (j,).
    """
    area = np.array([isinstance(each, AreaCaps) for each in caps])[rows[:, 1]]
    number = first_numbers(caps)[rows[:, 1]] + np.where(area, 0, rows[:, 2])
    pairs, at = np.unique(np.stack([rows[:, 0], number], axis=1), axis=0, return_inverse=True)
    total = np.bincount(at, multipliers, len(pairs)).astype(float)
    kept = {"cap_report": pairs[:, 0], "cap_disc": pairs[:, 1]}
    if not area.any():
        return kept, total
    cells = np.zeros((len(pairs), len(caps[0].persons)))
    for which in np.unique(rows[area, 1]):
        own = rows[:, 1] == which
        np.add.at(cells, at[own], multipliers[own, None] * caps[which].chosen(rows[own, 2])[0])
    share = cells / np.maximum(total, 1e-300)[:, None] * (1 - _ALIKE)  # in [0, 1], for all its rounding
    return {**kept, "cap_cells": share}, total


def first_numbers(caps: Sequence[Caps]) -> NDArray[np.int64]:
    """The number in files of the first set of each of the caps."""
    return np.cumsum([0, *(each.numbers for each in caps[:-1])])
