r"""The channel of a survey: the joined tables of the mechanisms that made its reports.

Mechanism j of J made N_j of the N reports, w_j = N_j / N:

    (1)  P(y|u) = w_j P_j(y|u)   for the reports y of mechanism j,    q = P^T p

Statements are conditional on all N_j, and assume that the choice of a mechanism does not depend on the secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import as_numbers
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.domain import Domain
from mechdesign.surveys.likelihood import check_counts

MOST = 4_000  # secrets: a dense eigenvalue decomposition of that size takes a minute
_TABLES = 4  # (n, m) tables in memory at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel(FrozenRecord):
    """tables, P_j (n, m_j) of every mechanism, rows summing to 1; shares, w (J,), positive, summing to 1."""

    tables: tuple[Matrix, ...]
    shares: Vector

    @classmethod
    def of(cls, *tables: Matrix, shares: Sequence[float] | None = None) -> Channel:
        """The channel of `tables`, by default with equal shares."""
        return cls(tables=tables, shares=np.full(len(tables), 1 / len(tables)) if shares is None else np.array(shares))

    @property
    def secrets(self) -> int:
        return len(self.tables[0])

    @cached_property
    def starts(self) -> Indices:
        """The first report of every mechanism (J,)."""
        return np.cumsum([0, *(table.shape[1] for table in self.tables[:-1])])

    @cached_property
    def freedom(self) -> int:
        """M - J, the number of free shares of reports: those of each mechanism sum to w_j."""
        return sum(table.shape[1] - 1 for table in self.tables)

    @cached_property
    def table(self) -> Matrix:
        """P (n, M) of (1)."""
        if len(self.tables) == 1:
            return self.tables[0]
        return np.hstack([w * table for w, table in zip(self.shares, self.tables, strict=True)])

    def moments(self, law: Floats, weights: Matrix, *, order: int = 2) -> Floats:
        """sum_y f(y) (a(y) - mean_j)^order (..., K) for laws f (..., M) and weights a (M, K); mean_j per mechanism."""
        # Counts per mechanism are fixed, so moments are central within each mechanism, not around the overall mean.
        powers = [weights**k for k in range(1, order + 1)]
        total = 0.0
        for j, start in enumerate(self.starts):
            end = start + self.tables[j].shape[1]
            raw = [law[..., start:end] @ power[start:end] for power in powers]
            mean = raw[0] / self.shares[j]
            if order == 2:
                total = total + raw[1] - mean * raw[0]
            else:
                total = total + raw[3] - 4 * mean * raw[2] + 6 * mean**2 * raw[1] - 3 * mean**3 * raw[0]
        # Differences of nearly equal sums: rounding can make a moment slightly negative.
        return np.maximum(total, 0.0)


def table_of(mechanism: xr.Dataset) -> Matrix:
    """P(y|u) (n, m) of a mechanism, dense or factored, in double precision."""
    size = int(mechanism.sizes["secret"])
    # Refused before a factored mechanism is expanded to a dense table.
    if size > MOST:
        raise SizeError(f"estimates support at most {MOST:,} secrets", field="mechanism", value=f"{size} secrets")
    if "around_row" in mechanism:
        message = "reports of position mechanisms cannot be attributed to cells"
        remedy = "collect reports with a mechanism of mechdesign area --positions cells"
        raise UnsuitableError(message, field="mechanism", remedy=remedy)
    rows = rows_of(mechanism)
    require_memory(size, rows.reports, tables=_TABLES, noun="the table of the mechanism")
    return rows.probabilities(np.arange(size))


def report_places(stored: MechanismFile) -> Domain:
    """The domain of the reports of a mechanism."""
    if stored.same_places:
        return stored.domain
    points = stored_points(stored.mechanism, "report")
    if "reports" in stored.mechanism.attrs:
        return stored.report_domain
    on_earth = stored.report_unit == stored.domain.unit and points.shape[1] == 2
    return Domain.points_at(points, unit=stored.report_unit, plane=stored.domain.plane if on_earth else None)


def shared_domain(mechanisms: Sequence[xr.Dataset]) -> Domain:
    """The common secrets of several mechanisms. Refuses different secrets, and a repeated mechanism."""
    domains = [MechanismFile.read(mechanism).domain for mechanism in mechanisms]
    for mechanism, domain in zip(mechanisms, domains, strict=True):
        if domain.describe() != domains[0].describe() or not np.array_equal(domain.points, domains[0].points):
            problem = mechanism.attrs["problem"]
            raise InputError("does not have the secrets of the first mechanism", field="mechanisms", value=problem)
    if len({str(mechanism.attrs["sha256"]) for mechanism in mechanisms}) < len(mechanisms):
        raise InputError("contains one mechanism twice", field="mechanisms")
    return domains[0]


def channel_and_counts(
    mechanisms: Sequence[xr.Dataset], counts: Sequence[ArrayLike]
) -> tuple[Channel, list[Indices], Vector]:
    """The channel of the mechanisms that made reports, the counts of all, and those of the channel (M,)."""
    if len(mechanisms) != len(counts) or not mechanisms:
        value = f"{len(counts)} for {len(mechanisms)} mechanisms"
        raise InputError("needs one array of counts for every mechanism", field="counts", value=value)
    tables = [table_of(mechanism) for mechanism in mechanisms]
    arrays = [as_numbers(numbers, "counts") for numbers in counts]
    if not any(array.any() for array in arrays):
        raise InputError("contains no reports", field="counts")
    checked = [
        check_counts(array, table.shape[1]) if array.any() else np.zeros(table.shape[1])
        for table, array in zip(tables, arrays, strict=True)
    ]
    # A mechanism without reports has w_j = 0: its columns would divide by zero.
    used = [k for k, array in enumerate(checked) if array.any()]
    numbers = np.concatenate([checked[k] for k in used])
    shares = np.array([checked[k].sum() for k in used]) / numbers.sum()
    channel = Channel(tables=tuple(tables[k] for k in used), shares=shares)
    return channel, [array.astype(np.int64) for array in checked], numbers
