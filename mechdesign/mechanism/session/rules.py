"""Rules: at which ticks a session reports, and from which table, by public history alone.

A rule is a frozen object of numbers and words. What it is asked with is the transcript and the filter's belief, which
follow from what was released and from nothing else: no rule is ever given a place, and one that holds an object that
could look one up is refused. Then the account of a session is a theorem (McSherry 2009, adaptive sequential
composition; with a metric, as in Andrés et al. 2013, section 3.3). Let h be the transcript before tick t, and let the
report at t be drawn from a table chosen by h that is private for c_t(h) d. For traces x, x' and every transcript y,

    P(y|x) <= e^{sum over t of c_t(h) d(x_t, x'_t)} P(y|x') <= e^{C d_inf(x, x')} P(y|x'),  d_inf = max_t d(x_t, x'_t),

where C is the largest sum of the c_t on any transcript: P(y|x) is the product of the factors P(y_t|x_t, h), and each is
bounded by its table. For traces that differ only in a window, only its factors differ, and C is its largest sum. No
assumption on how somebody moves is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Self

from mechdesign.base.descriptions import finite, finites, named, whole, wholes, word
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.mechanism.session.belief import Belief
from mechdesign.mechanism.session.transcript import Transcript
from mechdesign.mechanism.session.windows import MOST_TICKS, Window, capped_worst, ordered_worst, periodic_worst

_PLAIN = (int, float, str, Fraction, type(None))
_HOURS = 24.0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a rule wants at a tick: a report from table number `table`, or, where `against` is a place, the answer of
    the test whether the place is far from there, and the report only if it is.
    """

    table: int
    against: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rule(Shown, ABC):
    """A class of its own is a frozen dataclass with a row in `RULES`; kind, its name there and in files.

    Raises: InputError for a field that is no number, no word and no list of them.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not type(self).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise _refused("must be a frozen dataclass", type(self).__name__)
        for each in fields(self):
            value = getattr(self, each.name)
            for part in value if isinstance(value, tuple) else (value,):
                if not isinstance(part, _PLAIN):
                    raise _refused("holds what is no number and no word, and could know a place", each.name)

    @abstractmethod
    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> Ask | None:
        """What to release at `tick`; None for nothing. Nothing but its arguments may decide."""

    @abstractmethod
    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """An upper bound of what any transcript pays in a window, where table k costs charges[k]; ticks, of a day."""

    @abstractmethod
    def tables(self) -> int:
        """How many tables it may name: 0, 1 and so on below this."""

    def describe(self) -> dict[str, Any]:
        """Kind and the fields, as JSON holds them."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"kind": self.kind, **{n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}}

    @classmethod
    @abstractmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        """The rule of `describe`; told holds data from anybody. Raises: InputError that names the field."""


def by_width(error: float, widths: Sequence[float]) -> int:
    """The table for an expected error: the number of widths that it exceeds."""
    return sum(error > width for width in widths)


def checked_widths(widths: Sequence[float]) -> tuple[float, ...]:
    """Widths that rise. Raises: InputError for others."""
    found = tuple(float(width) for width in widths)
    if any(not 0 < width < float("inf") for width in found) or list(found) != sorted(set(found)):
        raise InputError(
            "must be positive and rise", field="widths", value=list(widths), remedy="use widths=[200.0, 600.0]"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Clock(Rule):
    """Report at fixed hours of every day.

    hours, in [0, 24), two of them not in one tick; table number 0, or `number[k]` at hours[k], or, with `widths`, the
    number of widths (in the unit of the loss) that the filter's expected error exceeds.
    Raises: InputError for hours out of range or none.
    """

    hours: tuple[float, ...]
    number: tuple[int, ...] = ()
    widths: tuple[float, ...] = ()
    kind = "clock"

    def __post_init__(self) -> None:
        hours = tuple(float(hour) for hour in self.hours)
        if not hours or any(not 0 <= hour < _HOURS for hour in hours) or len(set(hours)) != len(hours):
            raise InputError(
                "must be hours of a day, all different", field="hours", value=list(hours), remedy="use hours=[9, 18.5]"
            )
        number = tuple(whole(int(each), "number", 0, MOST_TICKS) for each in self.number)
        if number and (len(number) != len(hours) or len(self.widths) > 0):
            raise InputError(
                "must name a table for every hour, and not go with widths",
                field="number",
                value=list(number),
                remedy="give as many as hours",
            )
        for name, value in {"hours": hours, "number": number, "widths": checked_widths(self.widths)}.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> Ask | None:
        at = self._at(transcript.ticks)
        if tick % transcript.ticks not in at:
            return None
        given = self.number[at[tick % transcript.ticks]] if self.number else by_width(belief.error, self.widths)
        return Ask(table=given)

    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """The sum over a window of what its hours cost, of which every table may be the dearest where widths choose."""
        amounts = [Fraction(0)] * ticks
        for tick, k in self._at(ticks).items():
            amounts[tick] = charges[self.number[k]] if self.number else max(charges[: self.tables()])
        return periodic_worst(amounts, window)

    def tables(self) -> int:
        return max(self.number) + 1 if self.number else len(self.widths) + 1

    def _at(self, ticks: int) -> dict[int, int]:
        """Which hour reports at which tick of a day. Raises: InputError where two fall into one tick."""
        found = {int(hour * ticks / _HOURS): k for k, hour in enumerate(self.hours)}
        if len(found) < len(self.hours):
            raise InputError(
                f"two fall into one of {ticks} ticks", field="hours", value=list(self.hours), remedy="use more ticks"
            )
        return found

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        named(told, "rule", ("kind", "hours", "number", "widths"))
        return cls(
            hours=tuple(finites(told["hours"], "hours").tolist()),
            number=tuple(wholes(told["number"], "number", 0, MOST_TICKS).tolist()),
            widths=tuple(finites(told["widths"], "widths").tolist()),
        )


@dataclass(frozen=True, kw_only=True)
class Risk(Rule):
    """Report where the filter's expected error exceeds `above`, at most `most` times in a window `per`.

    above, in the unit of the loss, as are `widths`, the number of which that the expected error exceeds is that of the
    table; or, with `number` instead, the k-th report of a window of days is from table number[k].
    Raises: InputError for a negative `above`, `most` below 1, and a number that does not name a table for each report
        of a window of days, or goes with widths.
    """

    above: float
    most: int
    per: str = "1d"
    widths: tuple[float, ...] = ()
    number: tuple[int, ...] = ()
    kind = "risk"

    def __post_init__(self) -> None:
        if not 0 <= self.above < float("inf"):
            raise InputError("must be 0 or more", field="above", value=self.above, remedy="use above=400.0")
        checked_most(self.most)
        number = tuple(whole(int(each), "number", 0, MOST_TICKS) for each in self.number)
        days = not number or Window.of(self.per, int(_HOURS)).calendar
        if number and (len(number) != self.most or len(self.widths) > 0 or not days):
            raise InputError(
                "must name a table for each of `most` reports of a window of days, and not go with widths",
                field="number",
                value=list(number),
                remedy='give as many as most, with per="1d"',
            )
        kept = {"above": float(self.above), "widths": checked_widths(self.widths), "number": number}
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> Ask | None:
        if not belief.error > self.above:
            return None
        drawn = transcript.draws(Window.of(self.per, transcript.ticks), tick)
        if drawn >= self.most:
            return None
        return Ask(table=self.number[drawn] if self.number else by_width(belief.error, self.widths))

    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """The largest number of reports of a window times the dearest table; with `number`, the sum of its dearest."""
        per = Window.of(self.per, ticks)
        if self.number:
            return ordered_worst([charges[each] for each in self.number], per, window)
        return capped_worst(self.most, per, window) * max(charges[: self.tables()])

    def tables(self) -> int:
        return max(self.number) + 1 if self.number else len(self.widths) + 1

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        named(told, "rule", ("kind", "above", "most", "per", "widths", "number"))
        return cls(
            above=float(finite(told["above"], "above")),
            most=whole(told["most"], "most", 1, MOST_TICKS),
            per=word(told["per"], "per"),
            widths=tuple(finites(told["widths"], "widths").tolist()),
            number=tuple(wholes(told["number"], "number", 0, MOST_TICKS).tolist()),
        )


def checked_most(most: int) -> None:
    """Raises: InputError unless `most` is a whole number, 1 or more."""
    if type(most) is not int or not 1 <= most <= MOST_TICKS:
        raise InputError("must be a whole number, 1 or more", field="most", value=most, remedy="use most=3")


def _refused(problem: str, value: object) -> InputError:
    return InputError(problem, field="rule", value=value, remedy="rules see public history only: use numbers and words")
