r"""The channel that the reports of a collection went through, of one mechanism or of several side by side.

Mechanism j of J made N_j of the N reports, w_j = N_j / N. The channel sets their tables side by side, each times its
share: P(y|u) = w_j P_j(y|u) for the reports y of mechanism j, so that rows sum to 1 and the law of the reports is
q = P^T p. All that is said of the reports is said given N_1, ..., N_J: those of one mechanism are multinomial. It
takes that nobody's mechanism was chosen by where the person was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.mechanism.sampling.sampler import rows_of
from mechdesign.mechanism.stored import Stored, read
from mechdesign.mechanism.table.dataset import stored_points
from mechdesign.setting.space.domain import Domain

MOST = 4_000  # secrets: a dense eigenvalue decomposition of so many takes a minute
_TABLES = 4

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel(Shown):
    """tables, P_j (n, m_j) of every mechanism, rows summing to 1; shares, w (J,), positive, summing to 1."""

    tables: tuple[_Floats, ...]
    shares: _Floats

    @classmethod
    def of(cls, *tables: _Floats, shares: Sequence[float] | None = None) -> Channel:
        """The channel of these tables, by default with equal shares."""
        return cls(tables=tables, shares=np.full(len(tables), 1 / len(tables)) if shares is None else np.array(shares))

    @property
    def secrets(self) -> int:
        """Number n of secrets."""
        return len(self.tables[0])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first report of every mechanism (J,)."""
        return np.cumsum([0, *(table.shape[1] for table in self.tables[:-1])])

    @cached_property
    def freedom(self) -> int:
        """M - J: how many shares of reports are free."""
        return sum(table.shape[1] - 1 for table in self.tables)

    @cached_property
    def table(self) -> _Floats:
        """P (n, M), the tables side by side, each times its share."""
        if len(self.tables) == 1:
            return self.tables[0]
        return np.hstack([w * table for w, table in zip(self.shares, self.tables, strict=True)])

    def reshared(self, counts: _Floats) -> Channel:
        """The same tables with the shares of the reports counted here, (M,), some of every mechanism."""
        made = np.array([part.sum() for part in np.split(counts, self.starts[1:])])
        return Channel(tables=self.tables, shares=made / made.sum())

    def moments(self, law: _Floats, weights: _Floats, *, order: int = 2) -> _Floats:
        """sum_y f(y) (a(y) - mean_j)^order for laws f (..., M) and weights a (M, K), as (..., K).

        mean_j is that of the mechanism which made report y. order: 2, N times the variance of sum_y f(y) a(y) where f
        are the shares of N reports; or 4.
        """
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
        return np.maximum(total, 0.0)


def table_of(mechanism: xr.Dataset) -> _Floats:
    """P(y|u) (n, m) of a mechanism in double precision, of factors too.

    Raises: VerificationError for another Dataset; SizeError beyond `MOST` secrets; UnsuitableError where positions
        draw by the rows of several cells.
    """
    size = int(mechanism.sizes["secret"])
    if size > MOST:
        raise SizeError(
            f"shares of areas are estimated over at most {MOST:,} secrets",
            field="mechanism",
            value=f"{size} secrets",
            remedy="use larger cells",
        )
    if "around_row" in mechanism:
        raise UnsuitableError(
            "what its reports say of a cell depends on where in the cell people were",
            field="mechanism",
            value="private between any two positions",
            remedy="collect reports with a mechanism of mechdesign area --positions cells",
        )
    rows = rows_of(mechanism)
    require_memory(size, rows.reports, tables=_TABLES, what="the table of the mechanism")
    return rows.probabilities(np.arange(size))


def report_places(stored: Stored) -> Domain:
    """Where the reports of a mechanism are."""
    if stored.same_places:
        return stored.domain
    points = stored_points(stored.mechanism, "report")
    on_earth = stored.report_unit == stored.domain.unit and points.shape[1] == 2
    return Domain.points_at(points, unit=stored.report_unit, plane=stored.domain.plane if on_earth else None)


def shared_domain(mechanisms: Sequence[xr.Dataset]) -> Domain:
    """The secrets of several mechanisms. Raises: InputError where they differ, or where one is given twice."""
    domains = [read(mechanism).domain for mechanism in mechanisms]
    for mechanism, domain in zip(mechanisms, domains, strict=True):
        if domain.describe() != domains[0].describe() or not np.array_equal(domain.points, domains[0].points):
            raise InputError(
                "has other secrets than the first mechanism",
                field="mechanisms",
                value=mechanism.attrs["problem"],
                remedy="use mechanisms over one domain",
            )
    if len({str(mechanism.attrs["sha256"]) for mechanism in mechanisms}) < len(mechanisms):
        raise InputError("a mechanism is given twice", field="mechanisms", value="", remedy="give each once")
    return domains[0]
