"""The one line of progress: on standard error, where something takes more than two seconds.

On a terminal it is live and goes away; elsewhere the state is a line of its own, at most one every ten seconds. Lines
fit 80 columns. What is watched may be nested, as a solve in a command is: the innermost is told of.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mechdesign.base.streams import visible

COLUMNS = 79
_FIRST, _EVERY, _LIVE = 2.0, 10.0, 0.5  # seconds to the first line, between lines, and between states of a live one
_TICK = 0.05  # seconds between looks


@dataclass(kw_only=True, eq=False)
class _Watched:
    """What is under way: its title, the gap and the seconds that it may end at, and the last state."""

    title: str
    target: float | None
    limit: float
    patient: bool
    state: Any = None
    started: float = field(default_factory=time.monotonic)


_under_way: list[_Watched] = []
_lock = threading.RLock()
_shown = 0  # characters of the live line


@contextmanager
def progress(
    title: str, *, target: float | None = None, limit: float = math.inf, patient: bool = False
) -> Iterator[Callable[[Any], None]]:
    """Watch what runs inside; gives the function that is told of states: words, or what has a property `brief`.

    target, the relative gap, and limit, the seconds, at which it ends; patient, whether off a terminal the first line
    comes after ten seconds too, as of a command that may only be starting.
    """
    watched = _Watched(title=title, target=target, limit=limit, patient=patient)

    def report(state: Any) -> None:
        watched.state = state

    with _lock:
        _under_way.append(watched)
        first = len(_under_way) == 1
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(ended,), daemon=True)
    if first:
        thread.start()
    try:
        yield report
    finally:
        with _lock:
            _under_way.remove(watched)
        ended.set()
        if first:
            thread.join()
        clear()


@contextmanager
def verbosely(
    verbose: bool,
    title: str,
    on_progress: Callable[[Any], None] | None,
    *,
    target: float | None = None,
    limit: float = math.inf,
) -> Iterator[Callable[[Any], None] | None]:
    """What to call with states: `on_progress`, and where `verbose` a line of progress too."""
    if not verbose:
        yield on_progress
        return
    with progress(title, target=target, limit=limit) as report:

        def both(state: Any) -> None:
            report(state)
            if on_progress is not None:
                on_progress(state)

        yield both


def clear() -> None:
    """Take the live line away, before anything else is written."""
    global _shown
    with _lock:
        if _shown and sys.stderr is not None:
            sys.stderr.write("\r" + " " * _shown + "\r")
            sys.stderr.flush()
        _shown = 0


def line(watched: _Watched, now: float) -> str:
    """The line of what is under way, cut to 79 columns from the end of its title and its state."""
    state, words = watched.state, ""
    if state is not None:
        words = getattr(state, "brief", None) or str(state)
        gap = getattr(state, "gap", None)
        if gap is not None and math.isfinite(gap) and watched.target is not None:
            words = words.replace(percent(gap), f"{percent(gap)} -> {percent(watched.target)}", 1)
    seconds = f"{now - watched.started:,.0f} s"
    tail = seconds if math.isinf(watched.limit) else f"{seconds} of {watched.limit:,.0f} s"
    told = visible(f"{watched.title}: {words}" if words else watched.title)
    room = COLUMNS - len(tail) - 2
    return f"{told if len(told) <= room else told[: room - 3] + '...'}, {tail}"


def percent(share: float) -> str:
    """A share as people read it: 12 %, 0.08 %."""
    return f"{Decimal(f'{100 * share:.2g}'):f} %"


def _watch(ended: threading.Event) -> None:
    global _shown
    live, last = sys.stderr is not None and sys.stderr.isatty(), -math.inf
    while not ended.wait(_TICK):
        with _lock:
            if not _under_way or sys.stderr is None:
                continue
            now, watched = time.monotonic(), _under_way[-1]
            early = now - watched.started < (_FIRST if live or not watched.patient else _EVERY)
            if early or now - last < (_LIVE if live else _EVERY):
                continue
            told, last = line(watched, now), now
            if live:
                sys.stderr.write("\r" + told.ljust(_shown))
                _shown = len(told)
            else:
                sys.stderr.write(told + "\n")
            sys.stderr.flush()
