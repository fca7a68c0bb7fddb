"""Ctrl-C in two steps: the first stops the search and keeps its result; the second aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")


class _State(threading.local):
    """State of a thread; holds_next: hold the next Ctrl-C; was_pressed: one arrived; is_pending: it is being held."""

    is_handled = is_searching = holds_next = was_pressed = is_pending = False


_state = _State()


# Python raises KeyboardInterrupt between any two instructions, and drops it in finalizers. Within `two_steps` the first
# Ctrl-C ends the current `interruptible` search, or is held until the next one starts. A solver calls `hold` as soon as
# it has a table to keep.
@contextmanager
def two_steps() -> Iterator[None]:
    """Handle Ctrl-C in two steps, in the main thread and unless the caller handles or ignores SIGINT."""
    main = threading.current_thread() is threading.main_thread()
    if _state.is_handled or not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _state.is_handled, _state.holds_next = True, False
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _state.is_handled = _state.holds_next = _state.was_pressed = _state.is_pending = False


def _press(number: int, frame: FrameType | None) -> None:
    # Only a first Ctrl-C is held; a second one aborts at once.
    _state.is_pending, _state.was_pressed = _state.holds_next and not _state.was_pressed, True
    if not _state.is_pending:
        raise KeyboardInterrupt


def hold() -> None:
    """Hold a first Ctrl-C until the next search, since there is a result to keep."""
    _state.holds_next = True


def interruptible(run: Callable[[], Result], otherwise: Result) -> Result:
    """run(), or `otherwise` if Ctrl-C stops it. An interrupt of a nested search ends the outer one too."""
    if _state.is_searching:
        return run()
    _state.is_searching = True
    try:
        _state.holds_next = False
        if _state.is_pending:
            _state.is_pending = False
            raise KeyboardInterrupt
        result = run()
        # Inside the block: an interrupt before this line is caught, one after it is held.
        _state.holds_next = True
    except KeyboardInterrupt:
        _state.holds_next, result = True, otherwise
    finally:
        _state.is_searching = False
    return result
