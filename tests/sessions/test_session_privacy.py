"""The theorem of a session by exhaustion in integers: five places, three ticks, all traces, all transcripts.

P(transcript | trace) is a product of the tables' integers, computed here from the rows one by one;
the decisions of a rule are those of the package. The same check fails for a memory that is keyed on secrets.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache
from math import inf, nextafter, prod

import numpy as np
import pytest
from fixtures.session_designs import RULES, design
from reference.exact import lower_ratio

import mechdesign as md
from mechdesign.sessions import Transcript
from mechdesign.sessions.advance import Plan, append_report, begin, plan_tick
from mechdesign.sessions.verify import worst_of_all_transcripts
from mechdesign.sessions.windows import Window

PLACES, TICKS = 5, 3
TRACES = list(itertools.product(range(PLACES), repeat=TICKS))
RULES_AND_MORE = {
    **RULES,
    "risk, one more": lambda: md.sessions.Risk(threshold=0.95, max_reports=3, table_thresholds=[1.05]),
    "risk, dearer first": lambda: md.sessions.Risk(threshold=0.6, max_reports=2, table_numbers=[1, 0]),
}


@cache
def make_design(rule: str) -> md.sessions.SessionDesign:
    return design(RULES_AND_MORE[rule](), movement=md.sessions.RandomWalk(stay=0.7))


@cache
def transcripts(rule: str) -> list[Transcript]:
    """All transcripts of TICKS ticks."""
    given = make_design(rule)
    states = [begin(given)]
    for tick in range(TICKS):
        plans = [plan_tick(given, state, tick) for state in states]
        states = [append_report(given, plan, report) for plan in plans for report in reports(given, plan)]
    return [state.transcript for state in states]


def reports(given: md.sessions.SessionDesign, plan: Plan) -> list[int | None]:
    return [None] if plan.table is None else [*range(given.samplers[plan.table].rows.reports)]


@cache
def rows(rule: str) -> list[list[list[int]]]:
    return [[sampler.rows.integers(u)[0] for u in range(PLACES)] for sampler in make_design(rule).samplers]


def law(rule: str, transcript: Transcript, trace: tuple[int, ...]) -> int:
    """P(transcript | trace) times a power of two that depends on the transcript alone, exact."""
    return prod(rows(rule)[step.table][trace[step.tick]][step.report] for step in transcript.steps)


def below(value: Fraction) -> float:
    """The largest double that does not exceed a fraction."""
    double = float(value)
    return nextafter(double, -inf) if Fraction(double) > value else double


def breaches(laws: list[list[int]], costs: list[Fraction]) -> int:
    """(transcript, trace, trace) triples whose odds exceed e^{C d_inf}, cells being 1 nat apart; C of each transcript.

    In integers: the largest that a trace's value allows is found among the sorted values, then ranks are compared.
    """
    apart, bad = np.abs(np.array(TRACES)[:, None] - np.array(TRACES)[None]).max(axis=2), 0
    for values, cost in zip(laws, costs, strict=True):
        order = sorted(set(values))
        rank = np.array([bisect_left(order, value) for value in values])
        for distance in range(PLACES):
            ratio, bits = lower_ratio(below(cost * distance))
            allowed = np.array([bisect_right(order, ratio * value >> bits) - 1 for value in values])
            bad += int(((rank[:, None] > allowed[None, :]) & (apart == distance)).sum())
    return bad


@pytest.mark.parametrize("rule", RULES_AND_MORE)
@pytest.mark.obligation("session-limit")
def test_transcripts_reveal_at_most_their_cost(rule: str) -> None:
    given = make_design(rule)
    seen = transcripts(rule)
    laws = [[law(rule, transcript, trace) for trace in TRACES] for transcript in seen]
    costs = [sum((step.charge for step in transcript.steps), Fraction(0)) for transcript in seen]
    assert len(seen) >= 16
    assert max(costs) <= given.worst("1d")
    assert breaches(laws, costs) == 0
    assert breaches(laws, [cost * Fraction(9, 10) for cost in costs]) > 0


@pytest.mark.parametrize("rule", ["clock", "risk"])
@pytest.mark.obligation("session-limit")
def test_every_transcript_is_a_distribution(rule: str) -> None:
    """The probabilities of all transcripts sum to 1 for every trace: none was left out."""
    for trace in TRACES[::11]:
        total = Fraction(0)
        for transcript in transcripts(rule):
            drawn = sum(step.table is not None for step in transcript.steps)
            total += Fraction(law(rule, transcript, trace), 2 ** (62 * drawn))
        assert total == 1


@pytest.mark.parametrize("rule", ["clock", "risk"])
@pytest.mark.obligation("session-limit")
def test_one_tick_reveals_at_most_its_cost(rule: str) -> None:
    charged = 0
    for transcript in transcripts(rule):
        charges = {step.tick: step.charge for step in transcript.steps}
        for tick, others in itertools.product(range(TICKS), ([1, 1, 1], [0, 3, 4])):
            due = charges.get(tick, Fraction(0))
            of = [law(rule, transcript, (*others[:tick], u, *others[tick + 1 :])) for u in range(PLACES)]
            for u, v in itertools.permutations(range(PLACES), 2):
                ratio, bits = lower_ratio(below(abs(u - v) * due))
                assert of[u] << bits <= ratio * of[v]
                charged += due > 0
    assert charged > 0


def test_a_memory_that_is_keyed_on_secrets_fails() -> None:
    """A reported place is answered with the same report, at no cost.

    Home, work, home then gives two equal reports for certain, home, work, park hardly ever. No multiple of the distance
    bounds the ratio.
    """
    table = rows("clock")[1]
    answered = list(itertools.product(range(len(table[0])), repeat=TICKS))

    def integer_with_memory(trace: tuple[int, ...], reports: tuple[int, ...]) -> int:
        first: dict[int, int] = {}
        total = 1
        for place, report in zip(trace, reports, strict=True):
            if place in first:
                total *= 2**62 * (first[place] == report)
            else:
                first[place], total = report, total * table[place][report]
        return total

    laws = [[integer_with_memory(trace, reports) for trace in TRACES] for reports in answered[::3]]
    charge = make_design("clock").charges[1]
    assert breaches(laws, [TICKS * charge] * len(laws)) > 0
    assert any(0 in values and max(values) > 0 for values in laws)
    assert breaches(laws, [Fraction(9)] * len(laws)) > 0


SMALL = {"clock": 25**2, "risk": None}


@pytest.mark.parametrize("rule", SMALL)
@pytest.mark.obligation("session-limit")
def test_windows_are_summed_over_every_transcript(rule: str) -> None:
    given = make_design(rule)
    (reached,), count = worst_of_all_transcripts(given, [Window.of("1d", TICKS)], most=10**6 if rule == "clock" else 2)
    assert count == SMALL[rule]
    assert reached == (given.worst("1d") if count else 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", RULES_AND_MORE)
@pytest.mark.obligation("session-limit")
def test_two_windows_are_summed_over_every_transcript(rule: str) -> None:
    given, words = make_design(rule), ("1d", "24h")
    reached, count = worst_of_all_transcripts(given, [Window.of(each, TICKS) for each in words], most=10**9)
    assert count is not None
    for each, most in zip(words, reached, strict=True):
        assert 0 < most <= given.worst(each)
