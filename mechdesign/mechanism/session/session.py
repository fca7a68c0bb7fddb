"""Session: one person's reports along a trace, an account of every window, paid on disk before a report is returned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import BudgetError, InputError, VerificationError
from mechdesign.mechanism.budget.budget import amount_of
from mechdesign.mechanism.session.advance import State, carried_out, live, planned, replayed
from mechdesign.mechanism.session.belief import Belief
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.design_files import load_design
from mechdesign.mechanism.session.record import MOST_TICK, SESSIONS, Record, read_record
from mechdesign.mechanism.session.transcript import Step, Transcript
from mechdesign.mechanism.session.windows import Window
from mechdesign.setting.space.domain import AXES, Domain
from mechdesign.setting.space.locate import nearest_node


@dataclass(frozen=True, kw_only=True)
class Estimate(Shown):
    """What may be released at a tick: place, the number of the place with the least expected loss, at `location` in
    `unit`; error, that expected loss; drawn, whether a report was drawn, and which; moved, the answer of a test;
    charge, what was paid at this tick, and left, what is left in the window that ends with it, exact multiples of the
    metric.
    """

    tick: int
    place: int
    location: tuple[float, ...]
    unit: str
    error: float
    drawn: bool
    report: int | None
    moved: bool | None
    charge: Fraction
    left: Fraction


@dataclass(frozen=True, kw_only=True)
class Account(Shown):
    """What a session paid, exact multiples of the metric: limit of every window; spent, in all; worst, the most in one
    window so far, which begins at tick `first`; left, in the window that ends with the last tick; promised, the most
    that the design can reach in a window, for every transcript.
    """

    window: str
    limit: Fraction
    spent: Fraction
    worst: Fraction
    first: int
    left: Fraction
    promised: Fraction
    last: int
    reports: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Session(Shown):
    """The session at `path`, shared by all processes that open it; `Session.create` makes one.

    Claim. With C = limit, P(reports|x) <= e^{C d_inf(x, x')} P(reports|x') for all traces x, x' that differ in one
    window alone, d_inf the largest distance of their places at one tick, in the metric of the design at scale 1.
    Reports are drawn at every tick that the rule names, wherever somebody is, and charged: neither times nor refusals
    say anything. Ticks are to be called at fixed times; when an app is opened is not hidden.
    What is paid is written to the disk before anything is returned; a process that dies in between has paid. Ticks
    rise: a clock that was set back is refused. A file that was deleted or put back in an older state is refused by a
    Session that has seen more; one that starts with the older file cannot tell: keep no copies. Links, copies and locks
    are as with `Budget`. The file contains no secret: what was released, and what it cost; while a `MovedTest` runs,
    its hidden offset too. Its permissions are 0600.
    Fields: path; design, a SessionDesign or the path of its file, where the session does not name one.
    Raises: InputError where there is no session, one with two names, or another design; FileFormatError where it is
        damaged.
    """

    path: Path = field(kw_only=False)
    design: SessionDesign = None  # type: ignore[assignment]
    _known: list[State] = field(default_factory=list, init=False, repr=False)
    _calls: list[int] = field(default_factory=lambda: [0], init=False, repr=False)
    _fix: list[int] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", SESSIONS.resolved(self.path))
        with SESSIONS.held(self.path):
            SESSIONS.remove_left_over(self.path)
            record = self._read()
        if self.design is None:
            if record.path is None:
                raise InputError(
                    "is needed: the session was made without its file",
                    field="design",
                    value=None,
                    remedy="pass design=..., the one that it was made with",
                )
            object.__setattr__(self, "design", load_design(record.path))
        if self.design.sha256 != record.design or self.design.ticks != record.transcript.ticks:
            raise InputError(
                "is another one than the session was made with",
                field="design",
                value=self.design.sha256,
                remedy=f"give the design {record.design}",
            )
        self._require_sound(record)

    @classmethod
    @asked
    def create(
        cls, path: str | Path, *, design: SessionDesign | str | Path, limit: float, window: str | int = "1d"
    ) -> Session:
        """A session that has released nothing, with a limit for every window, in multiples of the metric.

        design: a SessionDesign, or the path of its file, which the session then names. window: "1d", every calendar
        day; "14d", fortnights; "24h", any 24 hours; a number of ticks, any so many.
        Raises: InputError for a limit that is not positive and finite, another window, or where the file exists;
            BudgetError where the design can pay more than the limit in a window: too small for one report, say.
        """
        most = amount_of(limit, "limit")
        given = design if isinstance(design, SessionDesign) else load_design(design)
        named = None if isinstance(design, SessionDesign) else str(Path(design).resolve())
        worst = given.worst(window)
        if worst > most:
            least = min(given.charges) + (0 if given.test is None else given.test.rule.cost)
            unpaid = "one report" if least > most else f"what the rule can pay in {_name(given, window)}"
            raise BudgetError(
                f"is too small for {unpaid}",
                field="limit",
                value=f"{float(most):.12g}, the design can pay {float(worst):.12g}",
                remedy="raise the limit, or design for fewer or cheaper reports",
            )
        target = SESSIONS.resolved(path, new=True)
        words = window if isinstance(window, str) else int(window)
        record = Record(
            design=given.sha256, path=named, limit=most, window=words, transcript=Transcript(ticks=given.ticks)
        )
        with SESSIONS.held(target):
            SESSIONS.require_unused(target)
            record.write(target)
        return cls(path=target, design=given)

    @asked
    def report(self, cell: int | None = None, *, at: Sequence[float] | None = None, tick: int) -> Estimate:
        """What may be released at `tick`: a report is drawn if the rule asks for one, else the filter goes on alone.

        cell, the number of the place; or at, a location in the unit of the domain, for which the nearest place stands,
        however far: nothing is refused because of where somebody is. Neither (or a location that is not finite): no
        fix; the last place that this object was given stands for it, or, before the first, the filter's own estimate.
        A draw is made and charged all the same.
        Raises: InputError for a tick that is not after all before, and a cell that is not there, whatever the rule
            asks; BudgetError where a window would go above the limit, before anything is drawn. Neither depends on
            where somebody is.
        Cost: a step of the model for every tick since the last call, a scan of a table, and a write to the disk.
        """
        if isinstance(tick, bool) or not isinstance(tick, (int, np.integer)) or not 0 <= tick < MOST_TICK:
            raise InputError("must be a whole number, 0 or more", field="tick", value=tick, remedy="count ticks up")
        place = self._place(cell, at)
        with SESSIONS.held(self.path):
            record = self._read()
            if tick <= record.transcript.last:
                raise InputError(
                    "is not after the last one: a clock was set back, or ticks are out of order",
                    field="tick",
                    value=tick,
                    remedy=f"go on after tick {record.transcript.last}",
                )
            self._require_sound(record)
            before = self._state(record)
            plan = planned(self.design, before, int(tick))
            window = Window.of(record.window, self.design.ticks)
            due = self.design.due(plan.dearest, int(tick), window)
            if due > record.limit:
                raise BudgetError(
                    f"a window would cost {float(due):.12g} of a limit of {float(record.limit):.12g}",
                    field="session",
                    value=self.path,
                    remedy="report no more in this window: the limit stays",
                )
            if place is None:
                place = self._fix[0] if self._fix else plan.belief.open.estimate
            state = carried_out(self.design, plan, place, live(self.design))
            self._write(replace(record, transcript=state.transcript, calls=record.calls + 1, hidden=state.hidden))
            self._known[:] = [state]
        self._fix[:] = [place]
        left = record.limit - self.design.due(state.transcript, int(tick), window)
        step = state.transcript.steps[-1] if state.transcript.steps else Step(tick=-1)
        return self._estimate(state.belief.open, step if step.tick == tick else Step(tick=int(tick)), left)

    def account(self) -> Account:
        """What was paid, exact, summed afresh over every window of the file."""
        with SESSIONS.held(self.path):
            record = self._read()
        self._require_sound(record)
        transcript, window = record.transcript, Window.of(record.window, self.design.ticks)
        charges = self.design.account(transcript)
        worst, first = window.worst(charges)
        return Account(
            window=window.name(),
            limit=record.limit,
            spent=sum((each.amount for each in charges), Fraction(0)),
            worst=worst,
            first=first,
            left=record.limit - self.design.due(transcript, max(transcript.last, 0), window),
            promised=self.design.worst(record.window),
            last=transcript.last,
            reports=sum(step.table is not None for step in transcript.steps),
        )

    @property
    def transcript(self) -> Transcript:
        """What was released so far: all that an observer knows."""
        with SESSIONS.held(self.path):
            return self._read().transcript

    def facts(self) -> Mapping[str, object]:
        return {"path": self.path, "design": self.design}

    def _place(self, cell: int | None, at: Sequence[float] | None) -> int | None:
        """The place of a fix; None without one."""
        domain: Domain = self.design.domain
        if cell is not None and at is not None:
            raise InputError("two places", field="cell", value=cell, remedy="give the cell, or at=...")
        if cell is not None:
            (place,) = self.design.samplers[0].rows.checked([cell]).tolist()
            return int(place)
        if at is None:
            return None
        given = [float(x) for x in at]
        if len(given) != domain.dimension:
            raise InputError(
                f"needs {domain.dimension} numbers, in {domain.unit}", field="at", value=given, remedy="one per axis"
            )
        return nearest_node(domain, given) if all(math.isfinite(x) for x in given) else None

    def _estimate(self, belief: Belief, step: Step, left: Fraction) -> Estimate:
        domain = self.design.domain
        return Estimate(
            tick=step.tick,
            place=belief.estimate,
            location=tuple(domain.points[belief.estimate].tolist()[: len(AXES)]),
            unit=domain.unit,
            error=belief.error,
            drawn=step.report is not None,
            report=step.report,
            moved=step.moved,
            charge=step.charge,
            left=left,
        )

    def _state(self, record: Record) -> State:
        """The state before the next tick: what is in memory, gone on with where other processes wrote more."""
        known = self._known[0] if self._known else None
        steps = record.transcript.steps
        if known is not None and known.transcript.steps != steps[: len(known.transcript.steps)]:
            raise SESSIONS.older(self.path)
        return replace(replayed(self.design, record.transcript, known), hidden=record.hidden)

    def _require_sound(self, record: Record) -> None:
        """Refuse a file whose steps the design could not have made."""
        try:
            self.design.check(record.transcript, record.hidden)
        except (InputError, VerificationError) as error:
            raise SESSIONS.damaged(self.path, error.message) from error

    def _read(self) -> Record:
        if self._calls[0] and not self.path.exists():
            raise SESSIONS.older(self.path)
        record = read_record(self.path)
        if record.calls < self._calls[0]:
            raise SESSIONS.older(self.path)
        self._calls[0] = record.calls
        return record

    def _write(self, record: Record) -> None:
        record.write(self.path)
        self._calls[0] = record.calls


def _name(design: SessionDesign, window: str | int) -> str:
    return Window.of(window, design.ticks).name()
