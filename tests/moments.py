"""Moments of a program that no clock tells: the so-manieth call or return of Python in its main thread.

Tests stop another process there. The process may be busy: the moment is the same.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType


def at_event(number: int, act: Callable[[], object]) -> Callable[[], int]:
    """Act once, at the so-manieth call or return from now on; returns what counts them."""
    seen = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            act()

    sys.setprofile(profile)
    return lambda: seen


def events_of(run: Callable[[], object]) -> int:
    """How many calls and returns run() takes."""
    seen = at_event(0, lambda: None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen()


# For scripts of other processes, which find no module of the tests.
SOURCE = "import sys\nfrom types import FrameType\nfrom collections.abc import Callable\n" + "\n".join(
    map(inspect.getsource, (at_event, events_of))
)
