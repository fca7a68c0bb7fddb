"""Transcript: what an observer of a session sees. Rules, filters and the account know nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mechdesign.base.display import Shown
from mechdesign.mechanism.session.windows import Window


@dataclass(frozen=True, kw_only=True)
class Step:
    """What was released at a tick: a report drawn from a table, the answer of a test whether the place is far from the
    place `against`, or both.

    charge, exact, in multiples of the metric: what was paid at this tick; of a test, at its first tick, for all of it.
    """

    tick: int
    table: int | None = None
    report: int | None = None
    moved: bool | None = None
    against: int | None = None
    begun: bool = False
    charge: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Transcript(Shown):
    """The steps of a session in the order of their ticks, and the last tick that was asked for (-1 before the first).

    ticks: of a day. Ticks at which nothing was released have no step.
    """

    ticks: int
    steps: tuple[Step, ...] = ()
    last: int = field(default=-1)

    def since(self, tick: int) -> Iterator[Step]:
        """The steps at `tick` and after it, the last one first."""
        for step in reversed(self.steps):
            if step.tick < tick:
                return
            yield step

    def draws(self, window: Window, tick: int) -> int:
        """How many reports were drawn in the window that ends with `tick`, or, of days, that it is in."""
        return sum(step.table is not None for step in self.since(window.starting(tick)))

    def tests(self, window: Window, tick: int) -> int:
        """How many tests were begun in that window."""
        return sum(step.begun for step in self.since(window.starting(tick)))

    def running(self, window: Window, tick: int) -> int | None:
        """The place that a test of the window of `tick` goes on against: one that was begun there, and has not yet
        answered that the place is far; None where there is none.
        """
        step = next(self.since(window.starting(tick)), None)
        return step.against if step is not None and step.moved is False else None

    def then(self, step: Step | None, tick: int) -> Transcript:
        """The transcript with one tick more."""
        return replace(self, steps=self.steps if step is None else (*self.steps, step), last=tick)
