"""Ctrl-C in two steps: the first ends a search, and its result is still certified and written; the second ends all.

Python raises KeyboardInterrupt between any two instructions, and drops it in finalizers. Within `two_steps` a first
Ctrl-C is raised before the end of a `search`, or waits for the next one. A solver with a table calls `hold` before it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")


class _State(threading.local):
    """State of a thread; waits: a first Ctrl-C is deferred to the next search; pending: one was."""

    handled = searching = waits = pressed = pending = False


_state = _State()


@contextmanager
def two_steps() -> Iterator[None]:
    """Handle Ctrl-C in two steps, in the main thread and unless the caller handles or ignores SIGINT."""
    main = threading.current_thread() is threading.main_thread()
    if _state.handled or not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _state.handled, _state.waits = True, False
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _state.handled = _state.waits = _state.pressed = _state.pending = False


def _press(number: int, frame: FrameType | None) -> None:
    _state.pending, _state.pressed = _state.waits and not _state.pressed, True
    if not _state.pending:
        raise KeyboardInterrupt


def hold() -> None:
    """Let a first Ctrl-C wait for the next search from now on: there is a result to keep."""
    _state.waits = True


def interruptible(run: Callable[[], Result], otherwise: Result) -> Result:
    """run(), or `otherwise` where Ctrl-C ends it. A search within another one hands the interrupt on: both end."""
    if _state.searching:
        return run()
    _state.searching = True
    try:
        _state.waits = False
        if _state.pending:
            _state.pending = False
            raise KeyboardInterrupt
        result = run()
        _state.waits = True  # within the block: an interrupt before this line is caught, one after it waits
    except KeyboardInterrupt:
        _state.waits, result = True, otherwise
    finally:
        _state.searching = False
    return result
