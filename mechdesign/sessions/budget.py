"""Budget: the exact privacy cost of repeated reports, with an enforced limit.

Theorem (Andrés, Bordenabe, Chatzikokolakis and Palamidessi 2013, "Geo-indistinguishability", section 3.3). Let report
i be drawn independently by a mechanism that is private for c_i d. For tuples of secrets x, x' of length n, with
d_inf(x, x') = max over i of d(x_i, x'_i),

    (1)  P(z|x) <= e^{sum c_i d(x_i, x'_i)} P(z|x') <= e^{(c_1 + ... + c_n) d_inf(x, x')} P(z|x')

The sum is an exact fraction of the multipliers that the certificates prove.

Remembered reports. A cell or visit that was reported is answered with the same report, at no cost (sessions/rest.py),
so that averaging gains nothing. This protects only traces with the same pattern of repetitions: between two of these,
(1) counts one report for every distinct secret. Between others it promises nothing: after home, work, home the first
and the third report agree, after home, work, park they hardly ever do. If an observer must not learn when a place is
visited again, every report has to be paid for: use `Session` along a trace, whose file contains no secret.
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
from mechdesign.output.memory_claim import STAY, Remember, memory_claim
from mechdesign.sessions.ledger import DIGITS, Content, PrivateLedger, fraction, whole_number
from mechdesign.sessions.rest import Secret, check_mode, visit_of

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
    last: str | None = None  # name of the last report, where names are of visits

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
        last = {} if self.last is None else {"last": self.last}
        return {**amounts, "spends": self.spends, "unit": self.unit, "remembered": dict(self.remembered), **last}

    @classmethod
    def of(
        cls, *, limit: Any, spent: Any, spends: Any, unit: Any, remembered: dict[str, Any], last: Any = None
    ) -> Self:
        if not isinstance(last, (str, type(None))):
            raise ValueError("last")
        if unit is not None and not _UNIT.fullmatch(unit):
            raise ValueError("unit")
        return cls(
            limit=fraction(limit),
            spent=fraction(spent),
            spends=whole_number(spends),
            unit=unit,
            remembered={key: whole_number(report) for key, report in remembered.items()},
            last=last,
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
        The ledger.
    remember : {"cell", "visit", "none"}
        Secrets with one report, repeated at no cost: cells, visits, or none.
    visit : float, optional
        The radius of a visit in the unit of the map.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     budget = md.sessions.Budget.create(folder + "/budget.json", limit=2)
    ...     budget.remaining
    Fraction(2, 1)
    """

    path: Path = field(kw_only=False)
    remember: Remember = "cell"
    visit: float | None = None
    _ledger: PrivateLedger[Paid] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_mode(self.remember, self.visit)
        object.__setattr__(self, "_ledger", PrivateLedger(self.path, Paid))
        object.__setattr__(self, "path", self._ledger.path)

    @classmethod
    @validate_call
    def create(
        cls, path: str | Path, *, limit: float, remember: Remember = "cell", visit: float | None = None
    ) -> Budget:
        """Create a ledger with a permanent limit in multiples of the metric. `path` must not exist."""
        check_mode(remember, visit)
        created = PrivateLedger(path, Paid, Paid(limit=amount_of(limit, "limit"))).path
        return cls(path=created, remember=remember, visit=visit)

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
        """The report of a secret, or of a position `at` (k,) in the unit of the domain.

        A remembered report is returned at no cost, a new one is paid for and, unless `remember` is "none", remembered
        per mechanism. The attribute `memory_claim` is the claim about many reports, `claim` that about one; `cost`
        is the payment. With "visit" `accuracy` holds all positions of the visit. Raises BudgetError if the remaining
        budget is too small.
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
            own, kept = sampler.mechanism.attrs["sha256"], paid.remembered
            drawn_for = self._secret(sampler, place, at, paid)
            key = None if drawn_for.name is None else f"{own} {drawn_for.name}"
            if key is not None and key in kept:
                if not sampler.rows.can_report(report := kept[key]):
                    raise self._ledger.damage_error("a report that the mechanism cannot make")
                if self.remember == "visit" and paid.last != key:
                    self._ledger.write(replace(paid, last=key))
                return self._label(sampler, report, REMEMBERED)
            # Pay first, draw second: a refusal must not depend on the report.
            paid = paid.charge(certificate.cost)
            # Written before it is returned. A crash in between costs a report; the other order could give one for free.
            drawn = sampler.draw_for((drawn_for.cell, drawn_for.point if certificate.positions else ()))
            remembered = dict(kept) if key is None else {**kept, key: int(drawn)}
            last = key if self.remember == "visit" else paid.last
            self._ledger.write(replace(paid, unit=certificate.unit_id, remembered=remembered, last=last))
        cost = f"{float(certificate.cost):.12g} times the metric; {float(paid.remaining):.12g} remaining"
        return self._label(sampler, int(drawn), cost, drawn.attrs)

    def _secret(
        self,
        sampler: Sampler,
        place: tuple[int, tuple[int, ...]],
        at: ArrayLike | None,
        paid: Paid,
    ) -> Secret:
        """The secret that the report is drawn for, and its name in the ledger."""
        cell, point = place
        if self.remember == "none":
            return Secret(None, cell, point)
        if self.remember == "cell":
            centre = (0,) * len(point)
            return Secret(" ".join(map(str, (cell, *centre))), cell, centre)
        assert self.visit is not None
        domain, prefix = sampler.certificate.domain, f"{sampler.mechanism.attrs['sha256']} "
        position = domain.points[cell] if at is None else np.asarray(at, float).reshape(-1)
        names = [key.removeprefix(prefix) for key in paid.remembered if key.startswith(prefix)]
        last = None if paid.last is None else paid.last.removeprefix(prefix)
        try:
            return visit_of(domain, self.visit, names, last, position.tolist())
        except IndexError as error:
            raise self._ledger.damage_error("a visit that is not on the map") from error

    def _label(self, sampler: Sampler, report: int, cost: str, attrs: Mapping[str, Any] | None = None) -> xr.DataArray:
        """The report with the claim of the memory, and the radius that holds the positions that have this report."""
        positions = sampler.certificate.positions is not None
        labelled = sampler.label_report(report, from_centres=self.remember == "cell" and positions)
        if self.visit is not None and "accuracy" in labelled.coords:
            labelled["accuracy"] = labelled["accuracy"] + STAY * self.visit
        claim = memory_claim(self.remember, self.visit, sampler.certificate.domain.unit, positions=positions)
        return labelled.assign_attrs({**(attrs or {}), "memory_claim": claim, "cost": cost})


def amount_of(value: float | Fraction, name: str) -> Fraction:
    """A positive finite amount as an exact fraction."""
    # Doubles are dyadic fractions, so no amount is rounded. NumPy's numbers are converted first: Fraction refuses some.
    amount = value.item() if isinstance(value, np.generic) else value
    known = isinstance(amount, (int, float, Fraction)) and not isinstance(amount, bool)
    if not known or not 0 < amount <= sys.float_info.max:
        raise InputError("must be positive and finite", field=name, value=value)
    return Fraction(amount)
