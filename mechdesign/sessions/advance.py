"""One tick of a session: first the plan by public history, then the draw. After a session: smoothing.

`plan_tick` sees no place. Only `draw_report`, which draws from the table of the plan, sees a secret.

Smoothing estimates the place at every tick from all releases, for a server that looks back, by forward-backward
recursion (Rabiner 1989, section III.A).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import source
from mechdesign.base.validation import validate_call
from mechdesign.mechanism.certificate import ROW_BITS
from mechdesign.sessions.belief import Belief, best_places
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.record import Step, Transcript

Draw = Callable[[int, int], int]  # a report from a table, by its number, for a place


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionState:
    """A session between two ticks, all of it public."""

    transcript: Transcript
    belief: Belief


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A session at a tick: transcript before it, belief at it, table to draw a report from, None for no report."""

    tick: int
    transcript: Transcript
    belief: Belief
    table: int | None


def begin(design: SessionDesign) -> SessionState:
    """A session before its first tick."""
    return SessionState(transcript=Transcript(ticks=design.ticks), belief=design.belief())


def plan_tick(design: SessionDesign, state: SessionState, tick: int) -> Plan:
    """The plan that public history asks for at `tick`, which must be later than all before."""
    belief = state.belief.at(tick)
    table = design.rule.ask(tick, state.transcript, belief)
    return Plan(tick=tick, transcript=state.transcript, belief=belief, table=table)


def draw_report(design: SessionDesign, plan: Plan, place: int, draw: Draw) -> SessionState:
    """The session after the tick, with somebody at `place` (0 to n - 1)."""
    # The only function that sees the secret, and all that it does with it is one draw.
    return append_report(design, plan, None if plan.table is None else draw(plan.table, place))


def append_report(design: SessionDesign, plan: Plan, report: int | None) -> SessionState:
    """The session after a tick that released `report` of the plan's table, or, with None, nothing."""
    if plan.table is None or report is None:
        return SessionState(transcript=plan.transcript.then(None, plan.tick), belief=plan.belief)
    step = Step(tick=plan.tick, table=plan.table, report=report, charge=design.charges[plan.table])
    return SessionState(transcript=plan.transcript.then(step, plan.tick), belief=_update(design, plan.belief, step))


def replay(design: SessionDesign, transcript: Transcript, known: SessionState | None = None) -> SessionState:
    """The state after a transcript; `known`, one of its earlier states, saves the ticks before it."""
    state = begin(design) if known is None else known
    belief = state.belief
    # Rules and filter are functions of the transcript, so a session resumes from its file with equal decisions.
    for step in transcript.steps[len(state.transcript.steps) :]:
        belief = _update(design, belief.at(step.tick), step)
    return SessionState(transcript=transcript, belief=belief.at(max(transcript.last, belief.tick)))


def _update(design: SessionDesign, belief: Belief, step: Step) -> Belief:
    return belief.update(design.likelihoods[step.table][:, step.report])


def live_draws(design: SessionDesign) -> Draw:
    """Draws with exactly the integers of the tables, and bits from the operating system."""
    # Whole tables are scanned for every draw, so that its time does not depend on the place.
    return lambda table, place: design.samplers[table].rows.draw_live(place, "table")[0]


def seeded_draws(design: SessionDesign, seed: int) -> Draw:
    """The same distribution from a seed: for simulations only."""
    # In doubles, from cumulative sums. No report of a real person may be drawn so: the seed repeats it.
    bits, _ = source(seed)
    rows = [np.cumsum(table, axis=1) for table in design.likelihoods]

    def report(table: int, place: int) -> int:
        row, word = rows[table][place], int.from_bytes(bits(8), "little") >> (64 - ROW_BITS)
        return int(np.searchsorted(row, word / 2**ROW_BITS * row[-1], side="right"))

    return report


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothedTrace(FrozenRecord):
    """For ticks 0..k-1: probabilities (k, n) of the places, the best place (k,), and its expected loss (k,)."""

    probabilities: Matrix
    place: Indices
    error: Vector


@validate_call
def smooth(design: SessionDesign, transcript: Transcript, *, ticks: int | None = None) -> SmoothedTrace:
    """The distribution of the place at every tick, given the entire transcript.

    Parameters
    ----------
    design, transcript, ticks : SessionDesign, Transcript, int
        The session and its releases; the number of ticks from 0, by default up to the last one.

    Returns
    -------
    SmoothedTrace, at a cost of two steps of the model a tick

    Examples
    --------
    >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
    >>> md.sessions.smooth(design, md.sessions.Transcript(ticks=2), ticks=2).probabilities.shape
    (2, 3)
    """
    chain, belief = design.chain, design.belief()
    count = max([transcript.last, *(step.tick for step in transcript.steps)]) + 1
    keep = count if ticks is None else int(ticks)
    count = max(count, keep)
    require_memory(count, len(chain.place), tables=3, noun="the probabilities at every tick", field="ticks")
    likelihoods = {step.tick: design.likelihoods[step.table][:, step.report] for step in transcript.steps}
    # The probabilities at tick t are w_t(s) b_t(s) divided by their sum, w_t the filter's weights. For the probability
    # b_t(s) of the releases after t from state s, and L that of the release at a tick,
    #
    #     (1)  b_T = 1,    b_t(s) = sum over s' of T(s, s') L_{t+1}(s') b_{t+1}(s').
    #
    # Forward, up to the last release even if fewer ticks are wanted: (1) begins at the end.
    forward = []
    for tick in range(count):
        belief = belief.at(tick)
        if tick in likelihoods:
            belief = belief.update(likelihoods[tick])
        forward.append(belief.weights)
    probabilities, later = np.empty((count, design.domain.size)), np.ones(len(chain.place))
    for tick in range(count - 1, -1, -1):
        probabilities[tick] = chain.places(forward[tick] * later)
        probabilities[tick] /= probabilities[tick].sum()
        if tick > 0:
            later = later * likelihoods[tick][chain.place] if tick in likelihoods else later
            # (1), scaled: products of thousands of likelihoods would underflow, and only ratios matter.
            later = chain.back(later / later.max(), tick)
    place, error = best_places(probabilities, design.losses)
    return SmoothedTrace(probabilities=probabilities[:keep], place=place[:keep], error=error[:keep])
