"""Verification of a session design: its tables proved again, its windows summed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mechdesign.sessions.advance import SessionState, append_report, begin, plan_tick
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.design_files import WINDOWS, design_of, document, is_design, load_design, read_document
from mechdesign.sessions.windows import Window
from mechdesign.verification.kinds import FileKind
from mechdesign.verification.verify import Verification, verify

MOST, LONGEST = 2000, 500  # transcripts that are enumerated, and ticks of one, at most


# The largest cost of a window follows from the rule alone (`Rule.worst`). Where the transcripts of two windows are few,
# all of them are enumerated as well, with the filter, and the largest sum is compared.
def check_design(source: Path | SessionDesign, **options: object) -> Verification:
    """The verification of a design, or of its file."""
    content = None if isinstance(source, SessionDesign) else read_document(source)
    design = source if isinstance(source, SessionDesign) else design_of(content or {}, source.parent)
    reasons = [] if content is None else _differences(content, design)
    proved = [verify(table) for table in design.tables]
    reasons += [f"table {k}: {reason}" for k, verification in enumerate(proved) for reason in verification.reasons]
    windows = [Window.of(words, design.ticks) for words in WINDOWS]
    reached, count = worst_of_all_transcripts(design, windows)
    bounds = [design.worst(words) for words in WINDOWS]
    for words, most, bound in zip(WINDOWS, reached, bounds, strict=True):
        if most > bound:
            reasons.append(f"worst: a transcript costs {most} in {words}, which the rule bounds by {bound}")
    return Verification(
        violations=sum(verification.violations or 0 for verification in proved),
        claim=design.claim,
        edge_source=proved[0].edge_source,
        ratio=None,
        worst=None,
        expected_loss=None,
        lower_bound_checked=None,
        windows={w: {"worst": str(most), "transcripts": count} for w, most in zip(WINDOWS, bounds, strict=True)},
        reasons=reasons,
    )


def worst_of_all_transcripts(
    design: SessionDesign, windows: Sequence[Window], most: int | None = None
) -> tuple[list[Fraction], int | None]:
    """The largest sum of every window on all transcripts of twice the longest, and their number; None beyond `most`."""
    # Twice the longest window, so that windows which begin within a day are among those compared.
    worst, length = [Fraction(0) for _ in windows], 2 * max(window.length for window in windows)
    branches = max(sampler.rows.reports for sampler in design.samplers)
    twice = Window(length=length, calendar=False, words=str(length))
    draws = design.rule.worst([Fraction(1)] * len(design.charges), design.ticks, twice)
    if length > LONGEST or draws > LONGEST or branches ** int(draws) > (MOST if most is None else most):
        return worst, None
    count = 0
    for state in _states_at(design, begin(design), length):
        # The filter runs on every branch, so that a rule that depends on beliefs is walked as it would act.
        count += 1
        worst = [max(amount, state.transcript.worst(window)[0]) for amount, window in zip(worst, windows, strict=True)]
    return worst, count


def _states_at(design: SessionDesign, state: SessionState, end: int) -> Iterator[SessionState]:
    tick = state.transcript.last + 1
    if tick == end:
        yield state
        return
    plan = plan_tick(design, state, tick)
    for report in [None] if plan.table is None else range(design.samplers[plan.table].rows.reports):
        yield from _states_at(design, append_report(design, plan, report), end)


def _differences(content: Mapping[str, Any], design: SessionDesign) -> list[str]:
    again = document(design, [table["file"] for table in content["tables"]])
    return [
        f"{name}: does not follow from the tables and the rule"
        for name in sorted(again)
        if again[name] != content.get(name)
    ] + [f"{name}: not part of such a design" for name in sorted(set(content) - set(again))]


DESIGN = FileKind(check=check_design, source_type=SessionDesign, recognises=is_design, open=load_design)
