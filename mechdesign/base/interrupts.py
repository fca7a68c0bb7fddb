"""Ctrl-C in two steps: the first stops the search and keeps its result; the second aborts.

Python raises KeyboardInterrupt between any two instructions, and drops it in finalizers. Within `two_steps` the first
Ctrl-C ends the current `interruptible` search, or is held until the next one starts. A solver calls `hold` as soon as
it has a table to keep.
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
    """State of a thread; waits: hold the next Ctrl-C; pressed: one arrived; pending: it is being held."""

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
    """Hold a first Ctrl-C until the next search, since there is a result to keep."""
    _state.waits = True


def interruptible(run: Callable[[], Result], otherwise: Result) -> Result:
    """run(), or `otherwise` if Ctrl-C stops it. An interrupt of a nested search ends the outer one too."""
    if _state.searching:
        return run()
    _state.searching = True
    try:
        _state.waits = False
        if _state.pending:
            _state.pending = False
            raise KeyboardInterrupt
        result = run()
        # Inside the block: an interrupt before this line is caught, one after it is held.
        _state.waits = True
    except KeyboardInterrupt:
        _state.waits, result = True, otherwise
    finally:
        _state.searching = False
    return result
