"""Ctrl-C in two steps: the effect of a signal before, in, between and after searches."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from mechdesign.base.interrupts import interruptible, two_steps


def press() -> str:
    signal.raise_signal(signal.SIGINT)
    return "found"


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # two_steps gives it back
    signal.signal(signal.SIGINT, before)


def test_a_search_ends_and_what_follows_runs() -> None:
    with two_steps():
        assert interruptible(press, "interrupt") == "interrupt"
        assert interruptible(lambda: "found", "interrupt") == "found"


def test_before_the_first_search_nothing_is_kept() -> None:
    with pytest.raises(KeyboardInterrupt), two_steps():
        press()


def test_press_after_a_search_ends_the_next_search() -> None:
    with two_steps():
        assert interruptible(lambda: "found", "interrupt") == "found"
        assert press() == "found"
        assert interruptible(lambda: "found", "interrupt") == "interrupt"
        assert interruptible(lambda: "found", "interrupt") == "found"


@pytest.mark.parametrize("first", [press, lambda: interruptible(press, "interrupt")])
def test_a_second_press_ends_all(first: Callable[[], str]) -> None:
    with two_steps():
        interruptible(lambda: "found", "interrupt")
        first()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_search_within_another_hands_the_interrupt_on() -> None:
    reached = []

    def outer() -> str:
        interruptible(press, "inner")
        reached.append("after it")
        return "found"

    with two_steps():
        assert interruptible(outer, "outer") == "outer"
    assert not reached


def test_two_steps_within_two_steps_are_one() -> None:
    with two_steps():
        with two_steps():
            assert interruptible(lambda: "found", "interrupt") == "found"
        assert press() == "found"


def test_without_two_steps_an_interrupt_ends_a_search_alone() -> None:
    assert interruptible(press, "interrupt") == "interrupt"
    with pytest.raises(KeyboardInterrupt):
        press()
