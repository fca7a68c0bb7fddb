"""Sums over windows: against sums over every window, and the worst of a rule against every pattern that it allows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from fixtures.rows import few_by_default
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.sessions.windows import Window, ordered_worst, periodic_worst

AMOUNTS = st.fractions(Fraction(1, 9), 3, max_denominator=9)
CHARGES = st.dictionaries(st.integers(0, 25), AMOUNTS, min_size=1, max_size=8)
WINDOWS = st.builds(
    lambda length, calendar: Window(length=length, calendar=calendar, words="1d"), st.integers(1, 7), st.booleans()
)


def starts(window: Window, end: int) -> range:
    return range(0, end, window.length) if window.calendar else range(-window.length, end)


@settings(deadline=None, max_examples=20)
@given(CHARGES, WINDOWS)
@pytest.mark.obligation("session-limit")
def test_the_worst_window_is_that_of_all_windows(charges: dict[int, Fraction], window: Window) -> None:
    sums = {
        start: sum((paid for tick, paid in charges.items() if start <= tick < start + window.length), Fraction(0))
        for start in starts(window, 30)
    }
    worst, first = window.worst(sorted(charges.items()))
    assert worst == max(sums.values()) == sums[first]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.fractions(0, 3, max_denominator=5), min_size=1, max_size=6), WINDOWS)
def test_the_worst_of_a_period_is_that_of_its_repetition(amounts: list[Fraction], window: Window) -> None:
    length = len(amounts)
    repeated = [amounts[t % length] for t in range(12 * window.length * length)]
    sums = [
        sum(repeated[start : start + window.length], Fraction(0))
        for start in starts(window, 6 * window.length * length)
        if start >= 0
    ]
    assert periodic_worst(amounts, window) == max(sums)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("length", few_by_default([1, 2, 3, 5, 7], 1, 5))
@pytest.mark.parametrize("calendar", [True, False])
@pytest.mark.parametrize(("period", "in_blocks"), [(3, True), (4, True), (3, False), (4, False)])
def test_no_pattern_that_a_cap_allows_exceeds_its_worst(
    most: int, length: int, calendar: bool, period: int, in_blocks: bool
) -> None:
    """The bound holds over all subsets of 9 ticks, and is reached where blocks of window and cap can align."""
    per, window = (Window(length=n, calendar=c, words="1d") for n, c in ((period, in_blocks), (length, calendar)))
    bound, reached = ordered_worst([1] * most, per, window), 0
    for chosen in itertools.product((0, 1), repeat=9):
        if all(sum(chosen[max(s, 0) : s + period]) <= most for s in starts(per, 9)):
            reached = max(reached, *(sum(chosen[max(s, 0) : s + length]) for s in starts(window, 9)))
    assert reached <= bound
    if not calendar or length == period:
        assert reached == bound


@pytest.mark.parametrize(
    ("given_", "length", "calendar", "name"),
    [
        ("1d", 50, True, "a calendar day"),
        ("14d", 700, True, "14 calendar days"),
        ("24h", 50, False, "any 24h in a row"),
        (7, 7, False, "any 7 ticks in a row"),
    ],
)
def test_windows_in_words(given_: str | int, length: int, calendar: bool, name: str) -> None:
    window = Window.of(given_, 50)
    assert (window.length, window.calendar, window.name()) == (length, calendar, name)


def test_without_charges_no_window_costs() -> None:
    assert Window.of("1d", 50).worst([]) == (0, 0)


@pytest.mark.parametrize("words", ["", "1", "d", "0d", "1w", "-1d", "1.5d", "1h", 0, -3, True, 2**21, "99999d", 1.5])
def test_windows_that_are_refused(words: object) -> None:
    with pytest.raises(InputError) as caught:
        Window.of(words, 50)  # type: ignore[arg-type]
    assert caught.value.field == "window"


def test_clocks_over_windows() -> None:
    clock, charges = md.sessions.Clock(hours=[3, 9.5, 18.2], table_numbers=[1, 0, 0]), [Fraction(1), Fraction(1, 2)]
    worst = {w: clock.worst(charges, 50, Window.of(w, 50)) for w in ("1d", "24h", "14d", 1, 20, 51)}
    assert worst == {"1d": Fraction(5, 2), "24h": Fraction(5, 2), "14d": 35, 1: 1, 20: 2, 51: Fraction(7, 2)}
