"""Budget: the exact privacy cost of repeated reports, with an enforced limit.

Theorem (Andrés, Bordenabe, Chatzikokolakis and Palamidessi 2013, "Geo-indistinguishability", section 3.3). Let report
i be drawn independently by a mechanism that is private for c_i d. For tuples of secrets x, x' of length n, with
d_inf(x, x') = max over i of d(x_i, x'_i),

    (1)  P(z|x) <= e^{sum c_i d(x_i, x'_i)} P(z|x') <= e^{(c_1 + ... + c_n) d_inf(x, x')} P(z|x')

The sum is an exact fraction of the multipliers that the certificates prove.

Remembered reports. A reported secret is answered with the same report, at no cost, so that averaging gains nothing.
This protects only traces that repeat their secrets at the same positions: between two of these, (1) counts one report
for every distinct secret. Between others it promises nothing: after home, work, home the first and the third report
agree, after home, work, park they hardly ever do. If an observer must not learn when a place is visited again, every
report has to be paid for: use `Session` along a trace, whose file contains no secret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import BudgetError, InputError
from mechdesign.mechanism.sampler import Sampler
from mechdesign.sessions.ledger import DIGITS, Content, PrivateLedger, fraction, whole_number

REMEMBERED = "0: the report of this secret was remembered"
_UNIT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Paid(Content):
    """The content of a budget file: 0 <= spent <= limit in exact multiples of the unit, and the remembered reports."""

    schema = "mechdesign/budget/1"
    argument = "budget"
    noun = "ledger"
    make = "Budget.create(path, limit=...)"
    limit: Fraction
    spent: Fraction = Fraction(0)
    spends: int = 0
    unit: str | None = None
    remembered: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A file that says otherwise was altered: every payment is positive, and every remembered report was paid for.
        within = 0 <= self.spent <= self.limit and 0 < self.limit <= sys.float_info.max
        if not within or (self.spent > 0) != (self.spends > 0) or len(self.remembered) > self.spends:
            raise ValueError(f"{self.spent} of {self.limit} in {self.spends} reports")

    @property
    def count(self) -> int:
        return self.spends

    @property
    def remaining(self) -> Fraction:
        return self.limit - self.spent

    def charge(self, cost: Fraction) -> Self:
        """The content after one more payment. Refuses a cost above the remaining amount."""
        if cost > self.remaining:
            raise BudgetError(
                f"costs more than remains of a limit of {float(self.limit):.12g}",
                field="budget",
                value=f"{float(cost):.12g}, {float(self.remaining):.12g} remaining",
                remedy="report no more: the limit stays",
            )
        return replace(self, spent=self.spent + cost, spends=self.spends + 1)

    def document(self) -> dict[str, Any]:
        # Longer numbers are not written, because `fraction` refuses to read them again.
        parts = (part for amount in (self.limit, self.spent) for part in amount.as_integer_ratio())
        if max(parts) >= 10**DIGITS:
            raise InputError("sum has too many digits", field="budget", remedy="pay in integers or doubles")
        amounts = {"limit": str(self.limit), "spent": str(self.spent)}
        return {**amounts, "spends": self.spends, "unit": self.unit, "remembered": dict(self.remembered)}

    @classmethod
    def of(cls, *, limit: Any, spent: Any, spends: Any, unit: Any, remembered: dict[str, Any]) -> Self:
        if unit is not None and not _UNIT.fullmatch(unit):
            raise ValueError("unit")
        return cls(
            limit=fraction(limit),
            spent=fraction(spent),
            spends=whole_number(spends),
            unit=unit,
            remembered={key: whole_number(report) for key, report in remembered.items()},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Budget(FrozenRecord):
    """A budget for reports: the ledger at `path`, shared by all processes that open it; `Budget.create` makes one.

    Costs are multiples of a metric at scale 1: a report by a mechanism for 2 * metric costs 2. A ledger that was
    deleted or put back in an older state is refused only by a Budget that has seen more: keep no copies. Between
    machines, locks are those of the file system. The file contains the reported secrets (permissions 0600).

    Parameters
    ----------
    path : str or Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     budget = md.sessions.Budget.create(folder + "/budget.json", limit=2)
    ...     budget.remaining
    Fraction(2, 1)
    """

    path: Path = field(kw_only=False)
    _ledger: PrivateLedger[Paid] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ledger", PrivateLedger(self.path, Paid))
        object.__setattr__(self, "path", self._ledger.path)

    @classmethod
    @validate_call
    def create(cls, path: str | Path, *, limit: float) -> Budget:
        """Create a ledger with a permanent limit in multiples of the metric. `path` must not exist."""
        return cls(path=PrivateLedger(path, Paid, Paid(limit=amount_of(limit, "limit"))).path)

    @property
    def limit(self) -> Fraction:
        return self._ledger.current().limit

    @property
    def spent(self) -> Fraction:
        """The exact sum of payments."""
        return self._ledger.current().spent

    @property
    def remaining(self) -> Fraction:
        return self._ledger.current().remaining

    def spend(self, amount: float) -> Fraction:
        """Pay for reports that were drawn elsewhere, and return the remaining budget, or raise BudgetError."""
        cost = amount_of(amount, "amount")
        with self._ledger.hold_lock():
            paid = self._ledger.read().charge(cost)
            self._ledger.write(paid)
        return paid.remaining

    def report(self, sampler: Sampler, secret: int | None = None, *, at: ArrayLike | None = None) -> xr.DataArray:
        """The report of a secret, or of a position `at` (k,) in the unit of the domain; attribute `cost`.

        A remembered report is returned at no cost, a new one is paid for and remembered, per mechanism and secret.
        Raises BudgetError if the remaining budget is too small.
        """
        certificate, place = sampler.certificate, sampler.place(secret, at)
        with self._ledger.hold_lock():
            paid = self._ledger.read()
            if paid.unit not in (None, certificate.unit_id):
                raise InputError(
                    "the ledger is for another metric or other places",
                    field="mechanism",
                    value=sampler.mechanism.attrs.get("problem"),
                    remedy="keep one ledger for each metric and grid",
                )
            # The key is the point of the grid of 2^-16 of a cell that a position is rounded to. A fix that has moved is
            # another secret, and pays: a reused report would reveal that the fix was near.
            cell, point = place
            key = " ".join(map(str, (sampler.mechanism.attrs["sha256"], cell, *point)))
            if key in paid.remembered:
                if not sampler.rows.can_report(report := paid.remembered[key]):
                    raise self._ledger.damage_error("a report that the mechanism cannot make")
                return sampler.label_report(report, cost=REMEMBERED)
            # Pay first, draw second: a refusal must not depend on the report.
            paid = paid.charge(certificate.cost)
            # Written before it is returned. A crash in between costs a report; the other order could give one for free.
            drawn = sampler.draw_for(place)
            remembered = {**paid.remembered, key: int(drawn)}
            self._ledger.write(replace(paid, unit=certificate.unit_id, remembered=remembered))
        return drawn.assign_attrs(
            cost=f"{float(certificate.cost):.12g} times the metric; {float(paid.remaining):.12g} remaining"
        )


def amount_of(value: float | Fraction, name: str) -> Fraction:
    """A positive finite amount as an exact fraction."""
    # Doubles are dyadic fractions, so no amount is rounded. NumPy's numbers are converted first: Fraction refuses some.
    amount = value.item() if isinstance(value, np.generic) else value
    known = isinstance(amount, (int, float, Fraction)) and not isinstance(amount, bool)
    if not known or not 0 < amount <= sys.float_info.max:
        raise InputError("must be positive and finite", field=name, value=value)
    return Fraction(amount)
