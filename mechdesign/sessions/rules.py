"""Rules: public history alone decides at which ticks a session reports, and from which table.

A rule is a frozen object of numbers and strings that sees only the transcript and the filter's belief, never a place.
Then the account of a session is a theorem (McSherry 2009, adaptive sequential composition; with a metric, as in Andrés
et al. 2013, section 3.3). Let h be the transcript before tick t, and let the report at t be drawn from a table chosen
by h that is private for c_t(h) d. For traces x, x' and every transcript y,

    (1)  P(y|x) <= e^{sum over t of c_t(h) d(x_t, x'_t)} P(y|x') <= e^{C d_inf(x, x')} P(y|x')
         d_inf = max_t d(x_t, x'_t),

where C is the largest sum of the c_t on any transcript: P(y|x) is the product of the factors P(y_t|x_t, h), each
bounded by its table. For traces that differ only in a window, C is its largest sum. Movement is arbitrary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.base.json_fields import check_keys
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import check_whole
from mechdesign.errors import InputError
from mechdesign.sessions.belief import Belief
from mechdesign.sessions.record import Transcript
from mechdesign.sessions.windows import MOST_TICKS, Window, ordered_worst, periodic_worst

_HOURS = 24.0


@dataclass(frozen=True, kw_only=True)
class Rule(FrozenRecord, ABC):
    """A rule of a session: when it reports, and from which table.

    A class of its own is a frozen dataclass with a row in `RULES`; kind, its name there and in files.

    Examples
    --------
    >>> isinstance(md.sessions.Clock(hours=[8]), md.sessions.Rule)
    True
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not type(self).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise InputError("must be a frozen dataclass", field="rule", value=type(self).__name__)
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            for part in value if isinstance(value, tuple) else (value,):
                # Any other object could hold a place, and the theorem (1) needs rules that know none.
                if not isinstance(part, (int, float, str, type(None))):
                    problem = "fields must be numbers or strings"
                    raise InputError(problem, field="rule", value=attribute.name)

    @abstractmethod
    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> int | None:
        """The table to report from at `tick`, or None. It must depend on its arguments alone."""

    @abstractmethod
    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """An upper bound on the cost of a window, C of (1), if table k costs charges[k]; `ticks` are those of a day."""

    @abstractmethod
    def tables(self) -> int:
        """The number of tables that the rule may name.

        Examples
        --------
        >>> md.sessions.Clock(hours=[0, 12]).tables()
        1
        """

    def describe(self) -> dict[str, Any]:
        """The kind and the fields, in JSON types."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **{n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The rule that `describe` described. The description is untrusted."""
        names = [field.name for field in fields(cls)]
        check_keys(description, "rule", ("kind", *names))
        rule = cls(
            **{
                name: tuple(description[name]) if isinstance(description[name], list) else description[name]
                for name in names
            }
        )
        # Values that were converted, such as true for 1, would pass unnoticed otherwise.
        if rule.describe() != description:
            raise InputError("is not a description that describe() makes", field="rule", value=cls.kind)
        return rule


@dataclass(frozen=True, kw_only=True)
class _Numbered(Rule):
    """A rule whose k-th report is from table table_numbers[k], or from the one that the expected error selects."""

    table_thresholds: tuple[float, ...] = ()
    table_numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        thresholds = tuple(float(error) for error in self.table_thresholds)
        if any(not 0 < error < float("inf") for error in thresholds) or list(thresholds) != sorted(set(thresholds)):
            raise InputError("must be positive and increasing", field="table_thresholds", value=list(thresholds))
        numbers = tuple(check_whole(number, "table_numbers", minimum=0) for number in self.table_numbers)
        if numbers and thresholds:
            raise InputError("cannot be combined with table_thresholds", field="table_numbers", value=list(numbers))
        object.__setattr__(self, "table_thresholds", thresholds)
        object.__setattr__(self, "table_numbers", numbers)
        super().__post_init__()

    def table(self, report: int, error: float) -> int:
        """The table of a report, by its number, at an expected error."""
        if self.table_numbers:
            return self.table_numbers[report]
        return sum(error > threshold for threshold in self.table_thresholds)

    def tables(self) -> int:
        return max(self.table_numbers, default=len(self.table_thresholds)) + 1


@dataclass(frozen=True, kw_only=True)
class Clock(_Numbered):
    """Report at fixed hours of every day.

    Parameters
    ----------
    hours, table_numbers : sequence of float, sequence of int
        In [0, 24); the table of each hour, by default table 0.
    table_thresholds : sequence of float
        Instead of `table_numbers`: increasing, in the unit of the loss. Table k if the expected error exceeds k
        of them.

    Examples
    --------
    >>> md.sessions.Clock(hours=[8, 20]).hours
    (8.0, 20.0)
    """

    hours: tuple[float, ...]
    kind = "clock"

    def __post_init__(self) -> None:
        hours = tuple(float(hour) for hour in self.hours)
        if not hours or any(not 0 <= hour < _HOURS for hour in hours) or len(set(hours)) != len(hours):
            raise InputError("must be distinct hours from 0 to below 24", field="hours", value=list(hours))
        object.__setattr__(self, "hours", hours)
        super().__post_init__()
        if self.table_numbers and len(self.table_numbers) != len(hours):
            raise InputError("must name a table for every hour", field="table_numbers", value=list(self.table_numbers))

    def thresholds(self, ticks: int) -> Vector:
        """The expected error (T,) above which it reports at a tick of the day: any at its hours, none elsewhere.

        Examples
        --------
        >>> md.sessions.Clock(hours=[0, 12]).thresholds(2).tolist()
        [-inf, -inf]
        """
        thresholds = np.full(ticks, np.inf)
        thresholds[list(self._hour_at(ticks))] = -np.inf
        return thresholds

    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> int | None:
        hour = self._hour_at(transcript.ticks).get(tick % transcript.ticks)
        return None if hour is None else self.table(hour, belief.error)

    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """The summed costs of the hours in a window; with table_thresholds, each costs its dearest table."""
        # With thresholds the beliefs of an unknown transcript decide: the dearest table of every hour bounds them all.
        amounts = [Fraction(0)] * ticks
        for tick, k in self._hour_at(ticks).items():
            amounts[tick] = charges[self.table_numbers[k]] if self.table_numbers else max(charges[: self.tables()])
        return periodic_worst(amounts, window)

    def _hour_at(self, ticks: int) -> dict[int, int]:
        """The index of the hour by tick of the day. Refuses two hours in one tick."""
        indices = {int(hour * ticks / _HOURS): k for k, hour in enumerate(self.hours)}
        if len(indices) < len(self.hours):
            raise InputError(f"must lie in different ticks, of {ticks} a day", field="hours", value=list(self.hours))
        return indices


@dataclass(frozen=True, kw_only=True)
class Risk(_Numbered):
    """Report if the filter's expected error exceeds a threshold, until a window has its maximum of reports.

    Parameters
    ----------
    threshold, max_reports, window : float, int, str
        The threshold, in the unit of the loss; the maximum of reports in a window; the window, such as "1d" or "24h".
    table_numbers : sequence of int
        The table of the k-th report of a window of days; table 0 by default.
    table_thresholds : sequence of float
        See `Clock`.

    Examples
    --------
    >>> md.sessions.Risk(threshold=0.6, max_reports=2).window
    '1d'
    """

    threshold: float
    max_reports: int
    window: str = "1d"
    kind = "risk"

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < float("inf"):
            raise InputError("must be 0 or more", field="threshold", value=self.threshold)
        if type(self.max_reports) is not int or not 1 <= self.max_reports <= MOST_TICKS:
            raise InputError("must be an integer, 1 or more", field="max_reports", value=self.max_reports)
        object.__setattr__(self, "threshold", float(self.threshold))
        super().__post_init__()
        if self.table_numbers and (
            len(self.table_numbers) != self.max_reports or not Window.of(self.window, int(_HOURS)).calendar
        ):
            problem = "must name a table for each of `max_reports` reports of a window of days"
            raise InputError(problem, field="table_numbers", value=list(self.table_numbers))

    def thresholds(self, ticks: int) -> Vector:
        return np.full(ticks, self.threshold)

    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> int | None:
        if not belief.error > self.threshold:
            return None
        drawn = len(transcript.within(Window.of(self.window, transcript.ticks), tick))
        return None if drawn >= self.max_reports else self.table(drawn, belief.error)

    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """The largest number of reports of a window times the dearest table; with table_numbers, their largest sum."""
        report_window = Window.of(self.window, ticks)
        # The k-th report of a day is from table_numbers[k], so the amounts come in a fixed order.
        if self.table_numbers:
            return ordered_worst([charges[number] for number in self.table_numbers], report_window, window)
        # At most one report a tick, so a window of fewer ticks than `max_reports` limits their number.
        reports = ordered_worst([1] * min(self.max_reports, report_window.length), report_window, window)
        return reports * max(charges[: self.tables()])
