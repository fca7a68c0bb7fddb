"""Session: one person's reports along a trace, paid on disk before they are returned, and the cost of every window."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import BudgetError, InputError
from mechdesign.problem.classes import number_of_label
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.locate import nearest_node
from mechdesign.sessions.advance import SessionState, draw_report, live_draws, plan_tick, replay
from mechdesign.sessions.budget import amount_of
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.design_files import load_design
from mechdesign.sessions.ledger import PrivateLedger
from mechdesign.sessions.record import MOST_TICK, Record, Transcript
from mechdesign.sessions.windows import Window


@dataclass(frozen=True, kw_only=True)
class Release(FrozenRecord):
    """The release at a tick.

    Attributes
    ----------
    tick, place : int
        The tick, and the place with the least expected loss.
    location, unit : tuple of float, str
        Its coordinates, and their unit of length.
    label : str or None
        That of a class.
    error : float
        That expected loss.
    drawn, report : bool, int or None
        True if a report was drawn; its number.
    charge, remaining : Fraction
        Cost of this tick, and remaining amount of the window that ends with it, exact multiples of the metric.

    Examples
    --------
    >>> list(md.sessions.Release.__annotations__)[:3]
    ['tick', 'place', 'location']
    """

    tick: int
    place: int
    location: tuple[float, ...]
    unit: str
    error: float
    drawn: bool
    report: int | None
    charge: Fraction
    remaining: Fraction
    label: str | None = None


@dataclass(frozen=True, kw_only=True)
class Account(FrozenRecord):
    """The payments of a session, in exact multiples of the metric.

    Attributes
    ----------
    window, limit : str, Fraction
        The window in words, and the limit of every window.
    spent, worst, first : Fraction, Fraction, int
        Total cost; the largest cost of one window so far, and the tick at which that window begins.
    remaining, promised : Fraction
        Remaining in the window that ends with the last tick; the largest cost of a window on any transcript.
    last, reports : int
        The last tick, and the number of drawn reports.

    Examples
    --------
    >>> list(md.sessions.Account.__annotations__)[:3]
    ['window', 'limit', 'spent']
    """

    window: str
    limit: Fraction
    spent: Fraction
    worst: Fraction
    first: int
    remaining: Fraction
    promised: Fraction
    last: int
    reports: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Session(FrozenRecord):
    """Reports over days with a limit on every window: the session at `path`, shared by all processes that open it.

    `Session.create` makes one. Claim: with C = limit, for all traces x, x' that differ in one window alone,

        P(reports|x) <= e^{C d_inf(x, x')} P(reports|x').

    d_inf is the maximum distance of their places at one tick, in the metric of the design at scale 1. Reports are drawn
    and charged at every tick that the rule names, wherever somebody is. Call ticks at fixed times: the time of a call
    is not hidden. Ticks rise. Older states, copies and locks are as with `Budget`. The file contains no secret.

    Parameters
    ----------
    path : str or Path
    design : SessionDesign
        Needed if the session does not name the file of its design.

    Examples
    --------
    >>> import tempfile
    >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = md.sessions.Session.create(folder + "/session.json", design=design, limit=4)
    ...     round(float(session.report(2, tick=0).remaining), 3)
    3.381
    """

    path: Path = field(kw_only=False)
    design: SessionDesign = None  # type: ignore[assignment]
    _ledger: PrivateLedger[Record] = field(init=False)
    _known: list[SessionState] = field(default_factory=list, init=False)
    _fix: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ledger", PrivateLedger(self.path, Record))
        object.__setattr__(self, "path", self._ledger.path)
        record = self._ledger.current()
        if self.design is None:
            if record.path is None:
                raise InputError("is required: the session does not name the file of its design", field="design")
            object.__setattr__(self, "design", load_design(record.path))
        if self.design.sha256 != record.design or self.design.ticks != record.transcript.ticks:
            raise InputError(
                "is not the design that the session was made with",
                field="design",
                value=self.design.sha256,
                remedy=f"pass the design {record.design}",
            )
        self._require_sound(record)

    @classmethod
    @validate_call
    def create(
        cls, path: str | Path, *, design: SessionDesign | str | Path, limit: float, window: str | int = "1d"
    ) -> Session:
        """Make a session that has released nothing, with a limit for every window, in multiples of the metric.

        design: a design or the path of its file. window: "1d" (calendar day), "14d", "24h" (any 24 hours), or a
        number of ticks. Raises BudgetError if the design can pay more than the limit in a window.
        """
        maximum = amount_of(limit, "limit")
        plan = design if isinstance(design, SessionDesign) else load_design(design)
        named = None if isinstance(design, SessionDesign) else str(Path(design).resolve())
        # If the worst window is within the limit, no later report can be refused for its cost.
        worst = plan.worst(window)
        if worst > maximum:
            name = Window.of(window, plan.ticks).name()
            unpaid = "one report" if min(plan.charges) > maximum else f"the largest cost of the rule in {name}"
            raise BudgetError(
                f"is too small for {unpaid}",
                field="limit",
                value=f"{float(maximum):.12g}, the design can pay {float(worst):.12g}",
                remedy="raise the limit, or design for fewer or cheaper reports",
            )
        words = window if isinstance(window, str) else int(window)
        released = Transcript(ticks=plan.ticks)
        record = Record(design=plan.sha256, path=named, limit=maximum, window=words, transcript=released)
        return cls(path=PrivateLedger(path, Record, record).path, design=plan)

    @validate_call
    def report(self, cell: int | str | None = None, *, at: Sequence[float] | None = None, tick: int) -> Release:
        """The release at `tick`: a report is drawn if the rule asks for one, else the filter continues alone.

        cell is the number of the place, or the label of a class; `at` a location in the unit of the domain, mapped to
        the nearest place at any distance. Without either, a report is drawn and charged all the same. No error depends
        on where somebody is. Raises BudgetError before a draw above the limit.
        """
        if isinstance(tick, bool) or not isinstance(tick, (int, np.integer)) or not 0 <= tick < MOST_TICK:
            raise InputError("must be an integer, 0 or more", field="tick", value=tick)
        tick, place = int(tick), self._place(cell, at)
        with self._ledger.hold_lock():
            record = self._ledger.read()
            if tick <= record.transcript.last:
                problem = "is not after the last one: a clock was set back, or ticks are out of order"
                remedy = f"continue after tick {record.transcript.last}"
                raise InputError(problem, field="tick", value=tick, remedy=remedy)
            self._require_sound(record)
            plan = plan_tick(self.design, self._state(record), tick)
            window = Window.of(record.window, self.design.ticks)
            charge = Fraction(0) if plan.table is None else self.design.charges[plan.table]
            # The check comes before the draw, so that a refusal depends on public history alone.
            due = plan.transcript.cost(window, tick) + charge
            if due > record.limit:
                raise BudgetError(
                    f"a window would cost {float(due):.12g} of a limit of {float(record.limit):.12g}",
                    field="session",
                    value=self.path,
                    remedy="report no more in this window: the limit stays",
                )
            # Without a fix the last place that this object saw is used, else the filter's estimate. A report is drawn
            # and paid all the same, so that the absence of a fix reveals nothing.
            if place is None:
                place = self._fix[0] if self._fix else plan.belief.estimate
            state = draw_report(self.design, plan, place, live_draws(self.design))
            # The cost is on the disk before the report leaves: a crash in between loses a report, never a payment.
            self._ledger.write(replace(record, transcript=state.transcript))
            self._known[:], self._fix[:] = [state], [place]
        domain, belief = self.design.domain, state.belief
        return Release(
            tick=tick,
            place=belief.estimate,
            location=tuple(domain.points[belief.estimate].tolist()[: len(AXES)]),
            unit=domain.unit,
            error=belief.error,
            drawn=plan.table is not None,
            report=None if plan.table is None else state.transcript.steps[-1].report,
            charge=charge,
            remaining=record.limit - due,
            label=None if domain.labels is None else domain.labels[belief.estimate],
        )

    def account(self) -> Account:
        """The exact payments, summed again over every window of the file."""
        record = self._ledger.current()
        self._require_sound(record)
        transcript, window = record.transcript, Window.of(record.window, self.design.ticks)
        worst, first = transcript.worst(window)
        return Account(
            window=window.name(),
            limit=record.limit,
            spent=sum((step.charge for step in transcript.steps), Fraction(0)),
            worst=worst,
            first=first,
            remaining=record.limit - transcript.cost(window, max(transcript.last, 0)),
            promised=self.design.worst(record.window),
            last=transcript.last,
            reports=len(transcript.steps),
        )

    @property
    def transcript(self) -> Transcript:
        """The releases so far: all that an observer knows."""
        return self._ledger.current().transcript

    def repr_fields(self) -> Mapping[str, object]:
        return {"path": self.path, "design": self.design}

    def _place(self, cell: int | str | None, at: Sequence[float] | None) -> int | None:
        """The place of a fix; None without one."""
        domain: Domain = self.design.domain
        if cell is not None and at is not None:
            raise InputError("cannot be combined with at", field="cell", value=cell)
        if cell is not None:
            cell = number_of_label(domain, cell) if isinstance(cell, str) else cell
            (place,) = self.design.samplers[0].rows.check([cell]).tolist()
            return int(place)
        if at is None:
            return None
        coordinates = [float(x) for x in at]
        if len(coordinates) != domain.dimension:
            raise InputError(f"needs {domain.dimension} numbers, in {domain.unit}", field="at", value=coordinates)
        return nearest_node(domain, coordinates) if all(math.isfinite(x) for x in coordinates) else None

    def _state(self, record: Record) -> SessionState:
        """The state before the next tick: that in memory, continued by the steps of other processes."""
        known = self._known[0] if self._known else None
        steps = record.transcript.steps
        # A file that does not continue the known steps is an older copy: to continue it would pay twice from one limit.
        if known is not None and known.transcript.steps != steps[: len(known.transcript.steps)]:
            raise self._ledger.older_error()
        return replay(self.design, record.transcript, known)

    def _require_sound(self, record: Record) -> None:
        # A step that the design cannot have made, or at another charge, would make the account wrong.
        try:
            self.design.check(record.transcript)
        except InputError as error:
            raise self._ledger.damage_error(error.message) from error
