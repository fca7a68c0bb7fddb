"""Record: the file of a session, which contains its releases and payments, and nothing else."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

from mechdesign.base.records import FrozenRecord
from mechdesign.sessions.ledger import Content, fraction, whole_number
from mechdesign.sessions.windows import MOST_TICKS, Window

MOST_TICK = 1 << 53  # ticks stay below this, so that JavaScript reads them exactly
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A report that was drawn at a tick.

    Attributes
    ----------
    tick, table, report : int
        The tick, the table that it was drawn from, and its number.
    charge : Fraction
        Exact, in multiples of the metric.

    Examples
    --------
    >>> md.sessions.Step(tick=0, table=0, report=2, charge=1).report
    2
    """

    tick: int
    table: int
    report: int
    charge: Fraction


# A JSON document: schema; design, the SHA-256 of the design, and the path of its file if it has one. Then limit, an
# exact fraction, and window; ticks of a day; last, the last tick. At last steps, of each [tick, table, report, charge],
# and sha256 over the rest. At most 16 MB, some 200,000 steps.
# A transcript is the view of an observer of a session, without any secret. Rules and filters know nothing else.
@dataclass(frozen=True, kw_only=True)
class Transcript(FrozenRecord):
    """The steps of a session in the order of their ticks. Ticks at which nothing was released have no step.

    Attributes
    ----------
    ticks, last : int
        Of a day; the last tick that was asked for, -1 before the first.
    steps : tuple of Step
        The drawn reports.

    Examples
    --------
    >>> md.sessions.Transcript(ticks=24).last
    -1
    """

    ticks: int
    steps: tuple[Step, ...] = ()
    last: int = -1

    def within(self, window: Window, tick: int) -> tuple[Step, ...]:
        """The steps of the window that ends with `tick`, or, of days, that contains it, up to the last step."""
        return self.steps[bisect_left(self.steps, window.starting(tick), key=lambda step: step.tick) :]

    def cost(self, window: Window, tick: int) -> Fraction:
        """The sum of charges of that window."""
        return sum((step.charge for step in self.within(window, tick)), Fraction(0))

    def worst(self, window: Window) -> tuple[Fraction, int]:
        """The largest sum of charges in one window, and the first tick of such a window."""
        return window.worst([(step.tick, step.charge) for step in self.steps])

    def then(self, step: Step | None, tick: int) -> Transcript:
        """The transcript after one more tick.

        Examples
        --------
        >>> step = md.sessions.Step(tick=3, table=0, report=2, charge=1)
        >>> md.sessions.Transcript(ticks=24).then(step, 3).last
        3
        """
        return replace(self, steps=self.steps if step is None else (*self.steps, step), last=tick)


@dataclass(frozen=True, kw_only=True)
class Record(Content):
    """limit > 0 in multiples of the metric for every window; design, its SHA-256; path, of its file, or None."""

    schema = "mechdesign/session/1"
    argument = "session"
    noun = "session"
    make = "Session.create(path, design=..., limit=..., window=...)"
    design: str
    path: str | None
    limit: Fraction
    window: str | int
    transcript: Transcript

    @property
    def count(self) -> int:
        return self.transcript.last + 1

    def document(self) -> dict[str, Any]:
        steps = [[step.tick, step.table, step.report, str(step.charge)] for step in self.transcript.steps]
        return {
            "design": self.design,
            "path": self.path,
            "limit": str(self.limit),
            "window": self.window,
            "ticks": self.transcript.ticks,
            "last": self.transcript.last,
            "steps": steps,
        }

    @classmethod
    def of(
        cls, *, design: Any, path: Any, limit: Any, window: Any, ticks: Any, last: Any, steps: list[list[Any]]
    ) -> Self:
        # The document is untrusted. Each check is one that `Session` relies on: ticks rise, and nothing is negative.
        amount = fraction(limit)
        if not _DIGEST.fullmatch(design) or not 0 < amount <= sys.float_info.max or not 1 <= ticks <= MOST_TICKS:
            raise ValueError("design, limit or ticks")
        Window.of(window, whole_number(ticks))
        reports = tuple(
            Step(
                tick=whole_number(tick), table=whole_number(table), report=whole_number(report), charge=fraction(charge)
            )
            for tick, table, report, charge in steps
        )
        order = [-1, *(step.tick for step in reports)]
        rising = all(left < right for left, right in pairwise(order))
        if type(last) is not int or not rising or not order[-1] <= last < MOST_TICK:
            raise ValueError("ticks that do not rise")
        if not (path is None or isinstance(path, str)):
            raise ValueError("path")
        transcript = Transcript(ticks=ticks, steps=reports, last=last)
        return cls(design=design, path=path, limit=amount, window=window, transcript=transcript)
