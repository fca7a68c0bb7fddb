"""Ctrl-C in two steps: a first one ends a search, and its result is still certified and written; a second one ends all.

Python raises KeyboardInterrupt between any two instructions, also after a search, when its result is not written yet,
and drops it where it comes in a finalizer. Within `two_steps` a first Ctrl-C is raised before the end of the first
`search`, and in later ones; in between it waits, and the next search ends as it begins. A solver whose table is
ready before its first search calls `hold`.
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
    """Of a thread: handled, whether it is within `two_steps`; searching, within `search`; waits, whether a first Ctrl-C
    does; pressed, whether there was one; pending, whether it waits still.
    """

    handled = searching = waits = pressed = pending = False


_state = _State()


@contextmanager
def two_steps() -> Iterator[None]:
    """Within, Ctrl-C works in two steps. Nothing changes beside the main thread, where the caller ignores or handles
    SIGINT, and within another `two_steps`.
    """
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


def search(run: Callable[[], Result], otherwise: Result) -> Result:
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
