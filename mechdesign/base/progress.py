"""Progress of running work, logged after two seconds: live states for a terminal, and one line every ten seconds."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mechdesign.base.formatting import percent
from mechdesign.base.log import clear, is_observed, log_progress, show_note, terminal_output
from mechdesign.base.streams import visible

COLUMNS = 79
_FIRST, _EVERY, _LIVE = 2.0, 10.0, 0.5  # seconds to the first line, between lines, and between states of a live one
_TICK = 0.05  # seconds between checks whether a line is due
COMPILING_NOTE = "compiling, once for this kind of work, 1 to 15 CPU seconds: later runs start at once"
_FIRST_KERNEL = "repair."  # of the module with kernels that every design needs
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(kw_only=True, eq=False)
class _Watched:
    """Running work: its title, target gap, time limit, expected time in words, and latest state."""

    title: str
    target: float | None
    limit: float
    patient: bool
    expected: str
    state: Any = None
    started: float = field(default_factory=lambda: time.monotonic())


_under_way: list[_Watched] = []
_lock = threading.RLock()
# When a line and when any state was logged last, of time.monotonic().
_last_line = _last_written = -math.inf


@contextmanager
def progress(
    title: str, *, target: float | None = None, limit: float = math.inf, patient: bool = False, expected: str = ""
) -> Iterator[Callable[[Any], None]]:
    """Write the progress of the block on standard error; yields the function that takes states."""
    options: dict[str, Any] = {"target": target, "limit": limit, "patient": patient, "expected": expected}
    with terminal_output(), logged_progress(title, **options) as report:
        yield report


@contextmanager
def logged_progress(
    title: str, *, target: float | None = None, limit: float = math.inf, patient: bool = False, expected: str = ""
) -> Iterator[Callable[[Any], None]]:
    """Log the progress of the block; yields the function that takes its states, texts or objects with `brief`."""
    # target: relative gap; limit: seconds; patient: the first line off a terminal comes after ten seconds; expected:
    # words for the expected time.
    watched = _Watched(title=title, target=target, limit=limit, patient=patient, expected=expected)

    def report(state: Any) -> None:
        watched.state = state

    global _last_line, _last_written
    with _lock:
        _under_way.append(watched)
        # One thread watches for all nested work, and shows the innermost.
        first = len(_under_way) == 1
        if first:
            _last_line = _last_written = -math.inf
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
def progress_if(
    verbose: bool,
    title: str,
    on_progress: Callable[[Any], None] | None,
    *,
    target: float | None = None,
    limit: float = math.inf,
    expected: str = "",
) -> Iterator[Callable[[Any], None] | None]:
    """The function that takes states: `on_progress`, after a line of progress if `verbose` or if logging takes it."""
    if not (verbose or is_observed()):
        yield on_progress
        return
    begin = progress if verbose else logged_progress
    with begin(title, target=target, limit=limit, expected=expected) as report:

        def both(state: Any) -> None:
            report(state)
            if on_progress is not None:
                on_progress(state)

        yield both


def line(watched: _Watched, now: float) -> str:
    """The line of running work; title and state are cut so that it has at most 79 columns."""
    state, words = watched.state, ""
    if state is not None:
        words = getattr(state, "brief", None) or str(state)
        gap = getattr(state, "gap", None)
        # The current gap, with the target next to it.
        if gap is not None and math.isfinite(gap) and watched.target is not None:
            words = words.replace(percent(gap), f"{percent(gap)} -> {percent(watched.target)}", 1)
    seconds = f"{now - watched.started:,.0f} s"
    tail = seconds if math.isinf(watched.limit) else f"{seconds} of {watched.limit:,.0f} s"
    tail = f"{tail}, {watched.expected}" if watched.expected else tail
    head = visible(f"{watched.title}: {words}" if words else watched.title)
    room = COLUMNS - len(tail) - 2
    return f"{head if len(head) <= room else head[: room - 3] + '...'}, {tail}"


def _watch(ended: threading.Event) -> None:
    while not ended.wait(_TICK):
        show(time.monotonic())


def show(now: float) -> None:
    """Log the line of the innermost work if it is due at `now`, of time.monotonic()."""
    global _last_line, _last_written
    with _lock:
        if not _under_way:
            return
        live, watched = sys.stderr is not None and sys.stderr.isatty(), _under_way[-1]
        is_early = now - watched.started < (_FIRST if live or not watched.patient else _EVERY)
        if is_early or now - _last_written < (_LIVE if live else _EVERY):
            return
        _last_written, is_due = now, now - _last_line >= _EVERY
        _last_line = now if is_due else _last_line
        log_progress(line(watched, now), is_due=is_due)


def has_compiled_kernels(kernel: str = _FIRST_KERNEL) -> bool:
    """True if Numba has cached a kernel, by module and start of its name, for this Python, or cannot cache any."""
    name = f"{kernel}*py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    cache = os.environ.get("NUMBA_CACHE_DIR")
    return any(Path(cache or _PACKAGE).rglob(name)) or not (cache or os.access(_PACKAGE, os.W_OK))


def note_compiling(kernel: str = _FIRST_KERNEL) -> None:
    """Note on standard error that a first run takes longer, unless a compiled kernel is cached."""
    if not has_compiled_kernels(kernel):
        show_note(COMPILING_NOTE)
