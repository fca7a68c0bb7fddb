"""MovedTest: ask for nothing as long as somebody stays near the place named last, and report where they have left it.

A test with a hidden offset runs against the estimate that stood when it began: any number of answers "near" and one
"far" cost (offset + slope) d together (offsets.py). "Far" draws a report, which costs what its table costs, and ends
the test; the next tick begins another, with another offset, as long as fewer than `most` were begun in the window. At
the end of a window a test ends unanswered. The hidden offset is kept in the file of the session while its test runs:
who reads that file, and the reports, learns more than the reports tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.descriptions import finite, named, whole, word
from mechdesign.base.display import Shown
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.mechanism.admission import Admission
from mechdesign.mechanism.schema import refused
from mechdesign.mechanism.session.belief import Belief
from mechdesign.mechanism.session.offsets import MOST_LEVELS, Offsets, breaches, make_offsets
from mechdesign.mechanism.session.rules import Ask, Rule, checked_most
from mechdesign.mechanism.session.transcript import Transcript
from mechdesign.mechanism.session.windows import MOST_TICKS, Window, capped_worst
from mechdesign.setting.metric.integer_metric import LARGEST, IntegerMetric
from mechdesign.setting.metric.shortest_paths import Edges


@dataclass(frozen=True, kw_only=True)
class MovedTest(Rule):
    """Report where a test says that the place is more than about `above` from the estimate that stood when it began.

    above, in nats of the metric at scale 1; offset and slope, the costs e1 and e2 of one test, multiples of that
    metric; most, the number of tests of a window `per` of days; table, of the reports; units, how many whole steps
    the shortest edge is measured in (distances are rounded down to them).
    Raises: InputError for amounts that are not positive, windows that are no days, or numbers that are not whole.
    """

    above: float
    offset: float
    slope: float
    most: int
    table: int = 0
    per: str = "1d"
    units: int = 2
    kind = "moved-test"

    def __post_init__(self) -> None:
        for name in ("above", "offset", "slope"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError("must be positive", field=name, value=getattr(self, name), remedy=f"use {name}=0.5")
            object.__setattr__(self, name, float(getattr(self, name)))
        checked_most(self.most)
        whole(self.table, "table", 0, MOST_TICKS)
        whole(self.units, "units", 1, 64)
        if not Window.of(self.per, 24).calendar:
            raise InputError("must be days: a test ends at midnight", field="per", value=self.per, remedy='use "1d"')
        super().__post_init__()

    @property
    def cost(self) -> Fraction:
        """What a test costs, whatever it answers: offset + slope, exact."""
        return Fraction(self.offset) + Fraction(self.slope)

    def ask(self, tick: int, transcript: Transcript, belief: Belief) -> Ask | None:
        window = Window.of(self.per, transcript.ticks)
        against = transcript.running(window, tick)
        if against is not None:
            return Ask(table=self.table, against=against)
        if transcript.tests(window, tick) >= self.most:
            return None
        return Ask(table=self.table, against=belief.estimate)

    def worst(self, charges: Sequence[Fraction], ticks: int, window: Window) -> Fraction:
        """As many tests as a window can meet, each with its report: a tick belongs to one test at most, and a test to
        one block of days.
        """
        count = capped_worst(self.most, Window.of(self.per, ticks), window)
        return count * (self.cost + charges[self.table])

    def tables(self) -> int:
        return self.table + 1

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        named(told, "rule", ("kind", "above", "offset", "slope", "most", "table", "per", "units"))
        return cls(
            **{name: float(finite(told[name], name)) for name in ("above", "offset", "slope")},
            most=whole(told["most"], "most", 1, MOST_TICKS),
            table=whole(told["table"], "table", 0, MOST_TICKS),
            per=word(told["per"], "per"),
            units=whole(told["units"], "units", 1, 64),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Test(Shown):
    """A rule's test on the places of a table: whole distances and the integers it draws from.

    distance (n, n): shortest paths of the claim at scale 1, every edge rounded down to whole steps of h nats, the
    shortest edge divided by `units`. So |f_s(u) - f_s(v)| <= sum of floor(length / h) over the edges of a shortest path
    from u to v <= d(u, v) / h.
    given, integers to use instead of those that are made here.
    Raises: SizeError where the distances would not fit; InputError where they have too many steps; VerificationError
        for given integers that break an inequality.
    Cost: n searches; 2 n^2 bytes.
    """

    __test__ = False  # no test of pytest's

    rule: MovedTest
    admission: Admission
    edges: Edges
    given: Offsets | None = None

    @cached_property
    def step(self) -> Fraction:
        """h, in nats."""
        return Fraction(float(self.edges.length.min())) / self.rule.units

    @cached_property
    def distance(self) -> NDArray[np.int64]:
        """f_s(u), row s; (n, n)."""
        domain = self.admission.domain
        require_memory(domain.size, domain.size, tables=2, what="whole distances between all places")
        lengths, place = np.unique(self.edges.length, return_inverse=True)
        units = [int(Fraction(float(length)) / self.step) for length in lengths]
        if max(units) > MOST_LEVELS:
            raise InputError("too long an edge", field="units", value=max(units), remedy="use fewer units")
        metric = IntegerMetric(
            points=domain.points,
            tail=np.ascontiguousarray(self.edges.tail, np.int64),
            head=np.ascontiguousarray(self.edges.head, np.int64),
            units=np.array(units, np.uint16)[place],
            cap=LARGEST - max(units),
        )
        return metric.from_sources(np.arange(domain.size)).T.astype(np.int64)

    @cached_property
    def offsets(self) -> Offsets:
        """The integers, given or made here, proved: `breaches` finds none."""
        if self.given is not None:
            if bad := self.breaches(self.given):
                raise refused(f"{bad} inequalities of the test are broken", "offsets", bad, "integers that prove it")
            return self.given
        far, rule = int(self.distance.max()), self.rule
        threshold = max(int(Fraction(rule.above) / self.step), 1)
        return make_offsets(far, min(threshold, far), *self.levels)

    @property
    def levels(self) -> tuple[Fraction, Fraction]:
        """H e1 and h e2."""
        return Fraction(self.rule.offset) * self.step, Fraction(self.rule.slope) * self.step

    def breaches(self, made: Offsets) -> int:
        """How many inequalities these integers break, or how many distances reach beyond them."""
        return breaches(made, *self.levels) + int((self.distance > made.far).sum())
