"""Budget: how much privacy repeated reports have cost, with a limit that is kept.

Theorem (Andrés, Bordenabe, Chatzikokolakis and Palamidessi 2013, "Geo-indistinguishability", section 3.3, by
multiplying the ratios of independent reports). Let report i be drawn independently by a mechanism that is private for
c_i d. For tuples of secrets x, x' of length n, with d_inf(x, x') = max over i of d(x_i, x'_i),

    P(z|x) <= e^{sum c_i d(x_i, x'_i)} P(z|x') <= e^{(c_1 + ... + c_n) d_inf(x, x')} P(z|x')

n reports of one mechanism cost n times its epsilon, correlated secrets or not; x = (u, ..., u) is one place reported n
times. The sum is kept as an exact fraction of the multipliers that the certificates prove, not of measured ratios.

Remembered reports. A secret that was reported is answered with the same report, at no cost: however often it is asked
for, an observer sees one draw, so that averaging gains nothing. This protects only traces that repeat their secrets at
the same positions: between two of these, the bound above counts one report for every distinct secret. Between others it
promises nothing, whatever was paid: after home, work, home the first and the third report agree for certain, after
home, work, park they hardly ever do, and where they differ the first trace is ruled out. Who must not learn when a
place is left or visited again, or which of two such traces it was, has to pay for every report.

When to use which. The adjacency of remembered reports is "the same places at other positions of the map, in the same
order of visits": right for a household, a meter or a person that is asked again and again and stays, wrong for a day
of somebody who moves. Along a trace use `Session`: its claim holds between any two traces, at a price that is counted
for every window of time, and its file holds no secret, where a ledger names the places that were reported.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import BudgetError, InputError
from mechdesign.mechanism.budget.ledger import (
    Ledger,
    damaged,
    held,
    older,
    read_ledger,
    remove_left_over,
    require_unused,
    resolved,
)
from mechdesign.mechanism.sampling.sampler import Sampler

REMEMBERED = "nothing: the report of this secret was remembered"


@dataclass(frozen=True, kw_only=True, eq=False)
class Budget(Shown):
    """The ledger at `path`, shared by all processes that open it; `Budget.create` makes one.

    What is counted are multiples of a metric at scale 1: a report by a mechanism for 2 * metric costs 2. What is
    paid is written to the disk before the report is returned; a process that dies in between has paid, and the report
    is remembered. A ledger that was deleted or put back in an older state is refused by a Budget that has seen more;
    one that starts with the older file cannot tell: keep no copies.
    `path` is made absolute and symbolic links are followed once, here: links and working directories do not make two
    ledgers of one. A file with a hard link is refused at every use. Processes on several machines are kept apart only
    by a file system whose locks hold between them.
    The file holds the secrets that were reported, permissions 0600; who reads it knows them. What a writer that was
    killed left of it beside it is removed here.
    Raises: InputError where there is no ledger, or a file with two names; FileFormatError where it is damaged.
    """

    path: Path = field(kw_only=False)
    _seen: list[int] = field(default_factory=lambda: [0], init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", resolved(self.path))
        with held(self.path):
            remove_left_over(self.path)
            self._read()

    @classmethod
    @asked
    def create(cls, path: str | Path, *, limit: float) -> Budget:
        """A ledger of nothing spent, with a limit in multiples of the metric.

        Raises: InputError for a limit that is not positive and finite, or where the file exists: a limit stays.
        """
        most = amount_of(limit, "limit")
        target = resolved(path, new=True)
        with held(target):
            require_unused(target)
            Ledger(limit=most).write(target)
        return cls(path=target)

    @property
    def limit(self) -> Fraction:
        """The limit, exact."""
        return self._current().limit

    @property
    def spent(self) -> Fraction:
        """What was paid so far, exact."""
        return self._current().spent

    @property
    def remaining(self) -> Fraction:
        """What is left, exact."""
        ledger = self._current()
        return ledger.limit - ledger.spent

    def spend(self, amount: float) -> Fraction:
        """Pay for reports that were drawn elsewhere; returns what is left.

        Raises: BudgetError where less is left, InputError for an amount that is not positive and finite.
        """
        cost = amount_of(amount, "amount")
        with held(self.path):
            return self._write(_charged(self._read(), cost))

    def report(self, sampler: Sampler, secret: int) -> xr.DataArray:
        """The report of `secret`: the remembered one at no cost, or one by `Sampler.report`, paid for and remembered.

        Another mechanism for the same secret is another report. The attribute cost says what was paid.
        Raises: BudgetError where less is left than a report costs; InputError for a secret that is not there, or a
            mechanism over other places or for another metric than the ledger counts; FileFormatError for a ledger that
            remembers a report which the mechanism does not have.
        """
        admission, (asked,) = sampler.admission, sampler.rows.checked([secret]).tolist()
        with held(self.path):
            ledger = self._read()
            if ledger.unit not in (None, admission.unit):
                raise InputError(
                    "the ledger counts another metric, or other places",
                    field="mechanism",
                    value=sampler.mechanism.attrs.get("problem"),
                    remedy="keep one ledger for each metric and grid",
                )
            key = f"{sampler.mechanism.attrs['sha256']} {asked}"
            if key in ledger.remembered:
                if not sampler.rows.can_report(place := ledger.remembered[key]):
                    raise damaged(self.path, "a report that the mechanism does not have")
                return sampler.released(place, cost=REMEMBERED)
            charged = _charged(ledger, admission.charge)
            drawn = sampler.report(asked)
            kept = {**ledger.remembered, key: int(drawn)}
            left = self._write(replace(charged, unit=admission.unit, remembered=kept))
        return drawn.assign_attrs(cost=f"{float(admission.charge):.12g} times the metric; {float(left):.12g} left")

    def _current(self) -> Ledger:
        with held(self.path):
            return self._read()

    def _read(self) -> Ledger:
        if self._seen[0] and not self.path.exists():
            raise older(self.path)
        ledger = read_ledger(self.path)
        if ledger.spends < self._seen[0]:
            raise older(self.path)
        self._seen[0] = ledger.spends
        return ledger

    def _write(self, ledger: Ledger) -> Fraction:
        ledger.write(self.path)
        self._seen[0] = ledger.spends
        return ledger.limit - ledger.spent


def _charged(ledger: Ledger, cost: Fraction) -> Ledger:
    if ledger.spent + cost > ledger.limit:
        raise BudgetError(
            f"costs more than is left of a limit of {float(ledger.limit):.12g}",
            field="budget",
            value=f"{float(cost):.12g}, {float(ledger.limit - ledger.spent):.12g} left",
            remedy="report no more: the limit stays",
        )
    return replace(ledger, spent=ledger.spent + cost, spends=ledger.spends + 1)


def amount_of(value: float | Fraction, name: str) -> Fraction:
    """An amount as an exact fraction. Raises: InputError unless it is positive and finite."""
    given = value.item() if isinstance(value, np.generic) else value
    known = isinstance(given, (int, float, Fraction)) and not isinstance(given, bool)
    if not known or not 0 < given <= sys.float_info.max:
        raise InputError("must be positive and finite", field=name, value=value, remedy="give multiples of the metric")
    return Fraction(given)
