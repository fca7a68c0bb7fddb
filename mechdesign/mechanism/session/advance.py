"""One tick of a session: first what public history asks for and what it would cost, then what is drawn.

`planned` is given no place. `carried_out` is, draws what the plan says and nothing else, and is the only function
here that touches a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.base.entropy import source
from mechdesign.mechanism.session.belief import Belief
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.rules import Ask
from mechdesign.mechanism.session.transcript import Step, Transcript
from mechdesign.mechanism.session.windows import Window
from mechdesign.mechanism.table.certificate import ROW_BITS


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """A session between two ticks: transcript and belief, public; hidden, the offset of a test that runs."""

    transcript: Transcript
    belief: Belief
    hidden: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What a tick will do: ask, None for nothing; begins, whether a test begins. dearest, the transcript that the tick
    leads to if it costs all that it may: what it pays is in its account. hidden, the offset of a test that goes on.
    """

    tick: int
    transcript: Transcript
    belief: Belief
    ask: Ask | None
    begins: bool
    dearest: Transcript
    hidden: int | None


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where draws come from: report(table, place), and word(), 62 uniform bits."""

    report: Callable[[int, int], int]
    word: Callable[[], int]


def begin(design: SessionDesign) -> State:
    """A session before its first tick."""
    return State(transcript=Transcript(ticks=design.ticks), belief=design.belief())


def planned(design: SessionDesign, state: State, tick: int) -> Plan:
    """What public history asks for at `tick`, which must be later than all before."""
    transcript, belief, hidden = state.transcript, state.belief, state.hidden
    per = None if design.test is None else Window.of(design.test.rule.per, design.ticks)
    going_on = per is not None and transcript.running(per, tick) is not None
    if not going_on:
        belief, hidden = belief.open, None
    belief = belief.at(tick)
    ask = design.rule.ask(tick, transcript, belief.open)
    begins = ask is not None and ask.against is not None and not going_on
    dearest = transcript
    if ask is not None:
        report = Step(tick=tick, table=ask.table, report=0, charge=design.charges[ask.table])
        held = Step(tick=tick, moved=False, against=ask.against, begun=True)
        steps = ((held,) if begins else ()) + (report,)
        dearest = replace(transcript, steps=(*transcript.steps, *steps))
    return Plan(tick=tick, transcript=transcript, belief=belief, ask=ask, begins=begins, dearest=dearest, hidden=hidden)


def carried_out(design: SessionDesign, plan: Plan, place: int, draw: Source) -> State:
    """The session after the tick, somebody being at `place` (n of them)."""
    ask, hidden = plan.ask, plan.hidden
    if ask is None:
        return State(transcript=plan.transcript.then(None, plan.tick), belief=plan.belief, hidden=hidden)
    cost, moved, report = Fraction(0), None, None
    if ask.against is not None and design.test is not None:
        made = design.test.offsets
        if plan.begins:
            hidden, cost = made.drawn(draw.word()), design.test.rule.cost
        assert hidden is not None
        moved = draw.word() < made.chance(int(design.test.distance[ask.against, place]), hidden)
    if moved is not False:
        report, cost, hidden = draw.report(ask.table, place), cost + design.charges[ask.table], None
    step = Step(
        tick=plan.tick,
        table=None if report is None else ask.table,
        report=report,
        moved=moved,
        against=ask.against,
        begun=plan.begins,
        charge=cost,
    )
    transcript = plan.transcript.then(step, plan.tick)
    return State(transcript=transcript, belief=after(design, plan.belief, step), hidden=hidden)


def after(design: SessionDesign, belief: Belief, step: Step) -> Belief:
    """The belief after a step, which was before it at its tick."""
    if step.moved is not None and step.against is not None and design.test is not None:
        made = design.test.offsets
        if step.begun:
            belief = belief.open.hiding(made.prior())
        far = made.chances(design.test.distance[step.against])
        belief = belief.seen(far if step.moved else 1 - far)
    if step.table is not None and step.report is not None:
        belief = belief.open.seen(design.likelihoods[step.table][:, step.report])
    return belief


def replayed(design: SessionDesign, transcript: Transcript, known: State | None = None) -> State:
    """The state that a transcript leads to, its offset aside; `known`, one of its earlier states, to go on from.

    Cost: a step of the model for every tick, and an update for every step, that is not known.
    """
    per = None if design.test is None else Window.of(design.test.rule.per, design.ticks)
    state = begin(design) if known is None else known
    belief, seen = state.belief, len(state.transcript.steps)
    for k, step in enumerate(transcript.steps[seen:], seen):
        before = replace(transcript, steps=transcript.steps[max(k - 1, 0) : k])
        if per is None or before.running(per, step.tick) is None:
            belief = belief.open
        belief = after(design, belief.at(step.tick), step)
    return State(transcript=transcript, belief=belief.at(max(transcript.last, belief.tick)))


def live(design: SessionDesign) -> Source:
    """Draws with exactly the integers of the tables, bits from the operating system, whole tables scanned."""
    bits, _ = source(None)
    return Source(
        report=lambda table, place: design.samplers[table].rows.live(place, "table")[0], word=lambda: _word(bits)
    )


def simulated(design: SessionDesign, seed: int) -> Source:
    """The same distribution from a seed: for simulations only."""
    bits, _ = source(seed)
    rows = [np.cumsum(each, axis=1) for each in design.likelihoods]

    def report(table: int, place: int) -> int:
        row = rows[table][place]
        return int(np.searchsorted(row, _word(bits) / 2**ROW_BITS * row[-1], side="right"))

    return Source(report=report, word=lambda: _word(bits))


def _word(bits: Callable[[int], bytes]) -> int:
    return int.from_bytes(bits(8), "little") >> (64 - ROW_BITS)
