"""Smoothing: where somebody was at every tick, after all that was released, for a server that looks back.

Forward-backward (Rabiner 1989, section III.A): with the filter's weights w_t, the probabilities at tick t are those of
w_t(s) b_t(s), divided by their sum, b_t(s) the probability of what was released after t from state s,

    b_T = 1,    b_t(s) = sum over s' of T(s, s') L_{t+1}(s') b_{t+1}(s'),

L the probability of what was released at a tick. With the hidden offset r of a test, b(r, s) is kept while the test
runs; before it begins b(s) = sum over r of p(r) b(r, s). Post-processing, as the filter is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import require_memory
from mechdesign.mechanism.session.advance import after
from mechdesign.mechanism.session.belief import Belief, best_places
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.transcript import Step, Transcript
from mechdesign.mechanism.session.windows import Window


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed(Shown):
    """For ticks 0..k-1: probabilities (k, n) of the places, the place (k,) with the least expected loss, and that loss
    (k,), in the unit of the loss.
    """

    probabilities: NDArray[np.float64]
    place: NDArray[np.int64]
    error: NDArray[np.float64]


@asked
def smoothed(design: SessionDesign, transcript: Transcript, *, ticks: int | None = None) -> Smoothed:
    """Where somebody was at ticks 0..ticks-1, by default up to the last one, given the whole transcript.

    Raises: SizeError where the probabilities would not fit in memory. Cost: two steps of the model a tick.
    """
    count = max(transcript.last, max((step.tick for step in transcript.steps), default=-1)) + 1
    count = max(count if ticks is None else int(ticks), count)
    states = len(design.chain.place) * (1 if design.test is None else design.test.offsets.top + 1)
    require_memory(count, states, tables=3, what="the probabilities at every tick", field="ticks")
    steps = {step.tick: step for step in transcript.steps}
    forward = _forward(design, transcript, steps, count)
    found, later = np.empty((count, design.domain.size)), np.ones((1, len(design.chain.place)))
    for tick in range(count - 1, -1, -1):
        joint = forward[tick].weights * later
        found[tick] = design.chain.places(joint.sum(axis=0))
        found[tick] /= found[tick].sum()
        if tick == 0:
            break
        held = _released(design, steps.get(tick), later)
        later = design.chain.back(held / held.max(), tick)
    place, error = best_places(found, design.losses)
    keep = count if ticks is None else int(ticks)
    return Smoothed(probabilities=found[:keep], place=place[:keep], error=error[:keep])


def _forward(design: SessionDesign, transcript: Transcript, steps: dict[int, Step], count: int) -> list[Belief]:
    """The filter's belief after every tick."""
    per = None if design.test is None else Window.of(design.test.rule.per, design.ticks)
    belief, found, last = design.belief(), [], Transcript(ticks=transcript.ticks)
    for tick in range(count):
        if per is None or last.running(per, tick) is None:
            belief = belief.open
        belief = belief.at(tick)
        if tick in steps:
            belief = after(design, belief, steps[tick])
            last = Transcript(ticks=transcript.ticks, steps=(steps[tick],))
        found.append(belief)
    return found


def _released(design: SessionDesign, step: Step | None, later: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability (r, s) of what was released at a tick and after it, from that of what came after it."""
    if step is None:
        return later
    place, found = design.chain.place, later
    if step.table is not None and step.report is not None:
        found = found * design.likelihoods[step.table][place, step.report]
    if step.moved is not None and step.against is not None and design.test is not None:
        made = design.test.offsets
        far = made.chances(design.test.distance[step.against])[:, place]
        found = found * (far if step.moved else 1 - far)
        if step.begun:
            found = (made.prior()[:, None] * found).sum(axis=0)[None]
    return found
