"""The rows of posterior caps: sum_{u in B} N(u) P(y|u) <= c_B sum_u N(u) P(y|u), of listed sets B or of sets by area.

Integers. With c_B = a/b and P = A / 2^62 a row says b sum_B N A <= a sum N A. sum N < 2^32, A <= 2^62 and b < 2^16 make
both sides of a cap less than 2^110. Sums of N times the halves of 31 bits of A stay below 2^63. Sides that differ by
2^-40 of themselves are compared in floating point, others as Python integers.

Lifting. A column that breaks rows satisfies them after a constant theta is added to it, where p(B) < c_B:

    theta = max_B sum_u p(u) (1_B(u) - c_B) P(y|u) / (c_B - p(B))                                               (1)

A constant added to a column is the same in every row: tables divided by 1 + sum theta have rows that sum to 1. By area
theta is the zero of a convex, falling, piecewise linear function.                                              (2)

By area, rows of one report with multipliers mu_B add up to mu = sum mu_B times one row, in which f(u) =
sum_B mu_B 1_B(u) / mu replaces 1_B(u). Any f in [0, 1] of sum K or less gives a valid row.                          (3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arrays import AnyArray, Indices, IntegerMatrix, Masses, Matrix, Unsigned, Vector
from mechdesign.mechanism.schema import file_error
from mechdesign.posteriors.discs import largest_sums
from mechdesign.programs.coupled import SideRows

if TYPE_CHECKING:
    import cvxpy as cp

RowNumbers = IntegerMatrix  # (k, 3), sorted: the report, the number of the caps, the number of the set in these
_ALIKE = 2.0**-40  # relative: two sides closer than this are compared as integers
_HALF = np.uint64(31)
_BLOCK = 1 << 24  # sums that are compared at a time
_TINY = 1e-300  # against division by 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Caps(ABC):
    """The rows of one limit under one prior, persons (n,) of sum < 2^32; errors print `name`."""

    persons: Indices
    name: str
    counted: ClassVar[str] = "(report, disc) pairs"  # by `breaches`

    @cached_property
    def prior(self) -> Vector:
        return self.persons / float(self.persons.sum())

    @property
    @abstractmethod
    def set_count(self) -> int:
        """The number of sets that files number."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """The least 1 - p(B) / c_B, of the constant report."""

    @abstractmethod
    def shares(self, joint: Matrix) -> Vector:
        """The largest sum in one set (m,) of each column (n, m)."""

    @abstractmethod
    def most_exceeded(self, table: Matrix, count: int, above: float) -> IntegerMatrix:
        """(report, set) pairs (k, 2): by column of a table (n, m) the `count` sets furthest above (1 + above) c_B."""

    @abstractmethod
    def membership(self, sets: Indices) -> Matrix:
        """The places in some sets, (k, n) of 0 and 1."""

    @abstractmethod
    def lift_needed(self, table: Matrix, tighter: float) -> Vector:
        """Theta (m,) of (1) for limits lower by the share `tighter`; 0 where they hold."""

    @abstractmethod
    def breaches(self, mass: Masses) -> int:
        """The exact number of rows that integers (n, m) break; by area, the number of reports."""

    @abstractmethod
    def stored_membership(self, sets: Indices, cells: Matrix | None) -> Matrix:
        """The places in the sets of a file, (k, n) from 0 to 1; cells (k, n), its shares of cells by area."""

    @abstractmethod
    def set_limits(self, sets: Indices) -> Vector:
        """c_B (k,) of some sets."""

    @abstractmethod
    def inequalities(self, table: cp.Variable) -> list[cp.Constraint]:
        """The rows in cvxpy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DiscCaps(Caps):
    """Caps of listed sets (k, n), with c_B (k,) below 1 as exact fractions."""

    sets: sp.csr_array
    limits: Sequence[Fraction]

    @cached_property
    def limit(self) -> Vector:
        return np.array([float(limit) for limit in self.limits])

    @cached_property
    def prior_inside(self) -> Vector:
        return np.asarray(self.sets @ self.prior)

    @property
    def set_count(self) -> int:
        return len(self.limits)

    @property
    def slack(self) -> float:
        return float((1 - self.prior_inside / self.limit).min(initial=1.0))

    def shares(self, joint: Matrix) -> Vector:
        return np.asarray((self.sets @ joint).max(axis=0, initial=0.0))

    def most_exceeded(self, table: Matrix, count: int, above: float) -> IntegerMatrix:
        # Relative to the allowed share, so that a rare report counts as much as a likely one.
        joint = self.prior[:, None] * table
        # _TINY: a report of probability 0 divides by it, and its overshoot of -1 is never among those above.
        overshoot = (self.sets @ joint) / (self.limit[:, None] * np.maximum(joint.sum(axis=0), _TINY)) - 1
        discs = np.argsort(-overshoot, axis=0, kind="stable")[:count]
        reports = np.broadcast_to(np.arange(table.shape[1]), discs.shape)
        exceeded = overshoot[discs, reports] > above
        return np.stack([reports[exceeded], discs[exceeded]], axis=1)

    def membership(self, sets: Indices) -> Matrix:
        return np.asarray(self.sets[sets].toarray(), float)

    def stored_membership(self, sets: Indices, cells: Matrix | None) -> Matrix:
        return self.membership(sets)

    def set_limits(self, sets: Indices) -> Vector:
        return self.limit[sets]

    def lift_needed(self, table: Matrix, tighter: float) -> Vector:
        joint, limit = self.prior[:, None] * table, self.limit * (1 - tighter)
        # (1): theta times (c_B - p(B)) makes up for the excess of the set that needs most.
        over = (self.sets @ joint) - limit[:, None] * joint.sum(axis=0)
        return np.asarray((over / (limit - self.prior_inside)[:, None]).max(axis=0, initial=0.0))

    def breaches(self, mass: Masses) -> int:
        step = max(1, _BLOCK // max(1, self.sets.shape[0]))
        return sum(self._breaches(mass[:, start : start + step]) for start in range(0, mass.shape[1], step))

    def _breaches(self, mass: Masses) -> int:
        # Halves of 31 bits: persons times a half stay below 2^63, so sums in 64-bit integers are exact.
        low = (mass & np.uint64(2**31 - 1)).astype(np.int64)
        high = (mass >> _HALF).astype(np.int64)
        weighted = self.sets * self.persons[None, :]
        inside_low, inside_high = weighted @ low, weighted @ high
        total_low, total_high = self.persons @ low, self.persons @ high
        inside = inside_low + inside_high * 2.0**31
        allowed = self.limit[:, None] * (total_low + total_high * 2.0**31)
        # In doubles only near ties can be misjudged. These are few, and are decided by Python's integers.
        disc, report = np.nonzero(inside > allowed * (1 - _ALIKE))
        exact_inside = _joined_halves(inside_low[disc, report], inside_high[disc, report])
        exact_total = _joined_halves(total_low[report], total_high[report])
        numerator = np.array([limit.numerator for limit in self.limits], object)[disc]
        denominator = np.array([limit.denominator for limit in self.limits], object)[disc]
        return int(np.count_nonzero(exact_inside * denominator > exact_total * numerator))

    def inequalities(self, table: cp.Variable) -> list[cp.Constraint]:
        return [((self.sets.toarray() - self.limit[:, None]) * self.prior) @ table <= 0]


def _joined_halves(low: Indices, high: Indices) -> NDArray[np.object_]:
    joined: NDArray[np.object_] = low.astype(object) + high.astype(object) * 2**31
    return joined


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCaps(Caps):
    """Caps of all sets of `cells` cells, with one c below 1; number_of has their numbers by sorted cells."""

    counted = "reports"
    cells: int
    limit: Fraction
    number_of: dict[bytes, int] = field(default_factory=dict)

    @property
    def set_count(self) -> int:
        return 1

    @property
    def slack(self) -> float:
        return 1 - float(self.shares(self.prior[:, None])[0]) / float(self.limit)

    def shares(self, joint: Matrix) -> Vector:
        return largest_sums(joint, self.cells)

    def most_exceeded(self, table: Matrix, count: int, above: float) -> IntegerMatrix:
        joint, pairs = self.prior[:, None] * table, []
        allowed = float(self.limit) * (1 + above) * joint.sum(axis=0)
        for y, ranked in enumerate(np.argsort(-joint, axis=0, kind="stable").T):
            # The largest entries, and sets that exchange the last of these for the next ones.
            for step in range(min(count, self.cells, len(ranked) - self.cells + 1)):
                cells = np.sort(np.r_[ranked[: self.cells - step], ranked[self.cells : self.cells + step]])
                if joint[cells, y].sum() <= allowed[y]:
                    break
                pairs.append((y, self.number_of.setdefault(cells.tobytes(), len(self.number_of))))
        return np.array(pairs, np.int64).reshape(-1, 2)

    def membership(self, sets: Indices) -> Matrix:
        listed, inside = list(self.number_of), np.zeros((len(sets), len(self.persons)))
        for row, number in zip(inside, sets, strict=True):
            row[np.frombuffer(listed[number], np.int64)] = 1
        return inside

    def stored_membership(self, sets: Indices, cells: Matrix | None) -> Matrix:
        if cells is None:
            return np.zeros((len(sets), len(self.persons)))
        # (3): any shares in [0, 1] of sum K or less give a valid row, so a forged file can only weaken its own bound.
        if not ((cells >= 0) & (cells <= 1)).all() or (cells.sum(axis=1) > self.cells).any():
            raise file_error("must be shares of cells", "cap_cells", "others", f"0 to 1, {self.cells} together")
        return cells

    def set_limits(self, sets: Indices) -> Vector:
        return np.full(len(sets), float(self.limit))

    def lift_needed(self, table: Matrix, tighter: float) -> Vector:
        joint, limit = self.prior[:, None] * table, float(self.limit) * (1 - tighter)
        theta, total, columns = np.zeros(joint.shape[1]), joint.sum(axis=0), np.arange(joint.shape[1])
        # (2) by Newton's method from below. A convex falling function lies above its tangents, so no step passes the
        # zero. Each step takes up another set, or is the last.
        while True:
            # The sum of the largest p(u) (P(y|u) + theta) is that of the set that needs most at this theta.
            top = np.argpartition(joint + self.prior[:, None] * theta, len(joint) - self.cells, axis=0)[-self.cells :]
            over = joint[top, columns].sum(axis=0) - limit * total
            step = np.maximum(theta, over / (limit - self.prior[top].sum(axis=0)))
            if not (step > theta * (1 + _ALIKE)).any():
                return step
            theta = step

    def breaches(self, mass: Masses) -> int:
        joint = self.persons[:, None] * mass.astype(float)
        # As for discs: reports clearly within the limit in doubles need no exact sum.
        doubtful = np.flatnonzero(self.shares(joint) > float(self.limit) * joint.sum(axis=0) * (1 - _ALIKE))
        return sum(self._is_broken(mass[:, report]) for report in doubtful)

    def _is_broken(self, column: Unsigned) -> bool:
        # The largest N(u) A(u, y), K of them, have the largest sum of any K cells.
        # Python's integers: N A has up to 94 bits.
        exact = sorted(k * a for k, a in zip(self.persons.tolist(), column.tolist(), strict=True))
        return sum(exact[-self.cells :]) * self.limit.denominator > sum(exact) * self.limit.numerator

    def inequalities(self, table: cp.Variable) -> list[cp.Constraint]:
        import cvxpy as cp

        joint, limit = cp.multiply(self.prior[:, None], table), float(self.limit)
        return [cp.sum_largest(joint[:, y], self.cells) <= limit * cp.sum(joint[:, y]) for y in range(table.shape[1])]


def posterior_shares(table: ArrayLike, caps: Caps) -> Vector:
    """The largest share of the posterior in one set after each report (m,), of a table or of masses (n, m)."""
    joint = caps.prior[:, None] * np.asarray(table, float)
    return caps.shares(joint) / np.maximum(joint.sum(axis=0), _TINY)


@dataclass(frozen=True, eq=False)
class ProgramRows:
    """The rows of all limits of a program, by the `Caps` of each limit and prior."""

    caps: Sequence[Caps]

    @property
    def secrets(self) -> int:
        return len(self.caps[0].persons)

    @property
    def first_numbers(self) -> Indices:
        return np.cumsum([0, *(caps.set_count for caps in self.caps[:-1])])

    def most_exceeded(self, table: Matrix, count: int, above: float) -> RowNumbers:
        rows = [np.insert(caps.most_exceeded(table, count, above), 1, k, axis=1) for k, caps in enumerate(self.caps)]
        return np.unique(np.concatenate(rows), axis=0)

    def membership(self, rows: RowNumbers) -> tuple[Matrix, Vector]:
        inside, limit = np.empty((len(rows), self.secrets)), np.empty(len(rows))
        for number, caps in enumerate(self.caps):
            of_these = rows[:, 1] == number
            inside[of_these] = caps.membership(rows[of_these, 2])
            limit[of_these] = caps.set_limits(rows[of_these, 2])
        return inside, limit

    def scaled_priors(self, owner: Indices) -> Matrix:
        return np.stack([caps.prior / caps.prior.max() for caps in self.caps])[owner]

    def side_rows(self, rows: RowNumbers, reports: int, tighter: float = 0.0) -> SideRows:
        return self._side_rows(rows, *self.membership(rows), reports=reports, tighter=tighter)

    def _side_rows(
        self,
        rows: IntegerMatrix,
        inside: Matrix,
        limit: Vector,
        *,
        reports: int,
        tighter: float = 0.0,
    ) -> SideRows:
        k, n = inside.shape
        # sum_u p(u) (1_B(u) - c_B) P(y|u) <= 0. Priors are divided by their largest entry, so that rows of all limits
        # have entries of about 1.
        data = self.scaled_priors(rows[:, 1]) * (inside - limit[:, None] * (1 - tighter))
        columns = np.arange(n) * reports + rows[:, :1]
        matrix = sp.csr_array((data.ravel(), columns.ravel(), np.arange(0, k * n + 1, n)), shape=(k, n * reports))
        names = [f"{self.caps[owner].name}: report {report}" for report, owner in rows[:, :2]]
        return SideRows(matrix=matrix, limit=np.zeros(k), epigraph_coefficient=np.zeros(k), names=names)

    def lift_columns(self, table: Matrix, tighter: float) -> Matrix:
        """Lift a table (n, m) to limits lower by `tighter`, and divide by the largest row sum."""
        # The largest theta satisfies all limits: a constant added to a column brings its posterior closer to the prior.
        lift = np.max([caps.lift_needed(table, tighter) for caps in self.caps], axis=0, initial=0.0)
        table = table + lift if lift.any() else table
        return np.asarray(table / table.sum(axis=1).max())

    def hold(self, mass: Masses) -> bool:
        return not any(caps.breaches(mass) for caps in self.caps)

    def breaches(self, mass: Masses) -> list[str]:
        counts = [(caps, caps.breaches(mass)) for caps in self.caps]
        return [f"{caps.name}: {count} {caps.counted} exceed the limit" for caps, count in counts if count]

    def file_fields(self, rows: RowNumbers, multipliers: Vector) -> tuple[dict[str, AnyArray], Vector]:
        """The variables of a file for rows with multipliers (k,), and the merged multipliers (j,)."""
        by_area = np.array([isinstance(caps, AreaCaps) for caps in self.caps])[rows[:, 1]]
        # (3): by area all sets of a report have one number and become one row.
        number = self.first_numbers[rows[:, 1]] + np.where(by_area, 0, rows[:, 2])
        pairs, merged = np.unique(np.stack([rows[:, 0], number], axis=1), axis=0, return_inverse=True)
        total = np.bincount(merged, multipliers, len(pairs)).astype(float)
        fields = {"cap_report": pairs[:, 0], "cap_disc": pairs[:, 1]}
        if not by_area.any():
            return fields, total
        cells = np.zeros((len(pairs), self.secrets))
        for owner in np.unique(rows[by_area, 1]):
            of_these = rows[:, 1] == owner
            weighted = multipliers[of_these, None] * self.caps[owner].membership(rows[of_these, 2])
            np.add.at(cells, merged[of_these], weighted)
        # Slightly below the quotient: rounding must not push a share above 1, which a reader refuses.
        fields["cap_cells"] = cells / np.maximum(total, _TINY)[:, None] * (1 - _ALIKE)
        return fields, total

    def stored_rows(self, mechanism: xr.Dataset) -> SideRows | None:
        """The rows of `file_fields` in a file, or None; VerificationError for unknown sets."""
        if "cap_disc" not in mechanism or "cap_report" not in mechanism:
            return None
        report, number = mechanism["cap_report"].values, mechanism["cap_disc"].values
        count = sum(caps.set_count for caps in self.caps)
        if len(number) and not 0 <= number.min() <= number.max() < count:
            raise file_error("must name discs", "cap_disc", int(number.max()), f"0 to {count - 1}")
        # Files number the sets of all caps in one sequence: the last first number that is not above is of the owner.
        owner = np.searchsorted(self.first_numbers, number, side="right") - 1
        inside, limit = np.zeros((len(number), mechanism.sizes["secret"])), np.zeros(len(number))
        for k, caps in enumerate(self.caps):
            of_these = owner == k
            sets = number[of_these] - self.first_numbers[k]
            cells = mechanism["cap_cells"].values[of_these] if "cap_cells" in mechanism else None
            inside[of_these] = caps.stored_membership(sets, cells)
            limit[of_these] = caps.set_limits(sets)
        rows = np.stack([report, owner], axis=1)
        return self._side_rows(rows, inside, limit, reports=mechanism.sizes["report"])
