"""Verification of a session design: its tables proved again, its test proved again, its windows summed again.

What any window costs at most follows from the rule alone (`Rule.worst`, with its proof there). Where the transcripts of
two windows are few, every one of them is walked through besides, filter and all, and the largest sum compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.mechanism.session.advance import Plan, State, after, begin, planned
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.design_files import WINDOWS, document, read_document, rebuilt
from mechdesign.mechanism.session.transcript import Step
from mechdesign.mechanism.session.windows import Window

MOST, LONGEST = 2000, 500  # transcripts that are walked through, and ticks of one


def check_design(source: str | Path | SessionDesign, prove: Callable[[xr.Dataset], Any]) -> dict[str, Any]:
    """The fields of a `Verification` of a design, or of its file; `prove` verifies a table.

    Raises: VerificationError where the file is damaged, names another table, or has integers of a test that break an
    inequality.
    """
    told = None if isinstance(source, SessionDesign) else read_document(source)
    design = source if isinstance(source, SessionDesign) else rebuilt(told or {}, Path(source).parent)
    reasons = [] if told is None else _differences(told, design)
    proved = [prove(table) for table in design.tables]
    reasons += [f"table {k}: {reason}" for k, found in enumerate(proved) for reason in found.reasons]
    windows = [Window.of(words, design.ticks) for words in WINDOWS]
    reached, count = exhausted(design, windows)
    bounds = [design.worst(words) for words in WINDOWS]
    for words, most, bound in zip(WINDOWS, reached, bounds, strict=True):
        if most > bound:
            reasons.append(f"worst: a transcript costs {most} in {words}, which the rule bounds by {bound}")
    return {
        "violations": sum(found.violations or 0 for found in proved),
        "claim": design.claim,
        "rebuilt": proved[0].rebuilt,
        "effective_epsilon": None,
        "worst": None,
        "expected_loss": None,
        "lower_bound_checked": None,
        "windows": {w: {"worst": str(most), "transcripts": count} for w, most in zip(WINDOWS, bounds, strict=True)},
        "reasons": reasons,
    }


def exhausted(
    design: SessionDesign, windows: Sequence[Window], most: int | None = None
) -> tuple[list[Fraction], int | None]:
    """The largest sum of every window on all transcripts of twice the longest, and how many transcripts these are.

    Zeros and None where they are more than `most`, `MOST` by default, told beforehand by the rule's bound.
    """
    worst, length = [Fraction(0) for _ in windows], 2 * max(window.length for window in windows)
    branches = max(sampler.rows.reports for sampler in design.samplers) + (design.test is not None)
    twice = Window(length=length, calendar=False, words=str(length))
    draws = design.rule.worst([Fraction(1)] * len(design.charges), design.ticks, twice)
    if design.test is not None:
        draws = Fraction(length)
    if length > LONGEST or draws > LONGEST or branches ** int(draws) > (MOST if most is None else most):
        return worst, None
    count = 0
    for state in _walked(design, begin(design), length):
        charges, count = design.account(state.transcript), count + 1
        worst = [max(each, window.worst(charges)[0]) for each, window in zip(worst, windows, strict=True)]
    return worst, count


def _walked(design: SessionDesign, state: State, end: int) -> Iterator[State]:
    """The states at tick `end` that follow from one, whatever is drawn."""
    tick = state.transcript.last + 1
    if tick == end:
        yield state
        return
    plan = planned(design, state, tick)
    for step in _outcomes(design, plan):
        belief = plan.belief if step is None else after(design, plan.belief, step)
        yield from _walked(design, State(transcript=plan.transcript.then(step, tick), belief=belief), end)


def _outcomes(design: SessionDesign, plan: Plan) -> Iterator[Step | None]:
    """Everything that a planned tick can release."""
    ask = plan.ask
    if ask is None:
        yield None
        return
    tested = ask.against is not None and design.test is not None
    paid = design.test.rule.cost if tested and plan.begins and design.test is not None else Fraction(0)
    given: Mapping[str, Any] = {"tick": plan.tick, "against": ask.against, "begun": plan.begins}
    if tested:
        yield Step(**given, moved=False, charge=paid)
    for report in range(design.samplers[ask.table].rows.reports):
        charge = paid + design.charges[ask.table]
        yield Step(**given, moved=True if tested else None, table=ask.table, report=report, charge=charge)


def _differences(told: Mapping[str, Any], design: SessionDesign) -> list[str]:
    """How a document differs from the one that its own parts give."""
    again = document(design, [each["file"] for each in told["tables"]])
    return [
        f"{name}: not what the tables and the rule give" for name in sorted(again) if again[name] != told.get(name)
    ] + [f"{name}: not part of such a design" for name in sorted(set(told) - set(again))]
