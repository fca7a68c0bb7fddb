"""The logger `mechdesign`, and the handler that writes its records on standard error.

Progress and notes are records of this logger. Notes and a line of progress every ten seconds have the level INFO, the
states between them DEBUG. `verbose=True` and commands attach the handler while they run. The handler writes progress,
and the notes of commands. Without it, and without logging that the caller configures, nothing is written.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mechdesign.base.streams import visible

LOGGER = logging.getLogger("mechdesign")
LOGGER.addHandler(logging.NullHandler())
# Attributes of records: a terminal shows progress as one live line, and notes of commands as lines.
_IS_PROGRESS, _IS_SHOWN = "is_progress", "is_shown"


class TerminalHandler(logging.Handler):
    """Write notes of commands as lines on standard error; progress as one live line on a terminal, else as lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._shown_width = 0  # characters of the live line

    def emit(self, record: logging.LogRecord) -> None:
        stream, text = sys.stderr, record.getMessage()
        if stream is None:
            return
        if getattr(record, _IS_SHOWN, False):
            self.clear()
            stream.write(visible(text) + "\n")
        elif not getattr(record, _IS_PROGRESS, False):
            return
        elif stream.isatty():
            stream.write("\r" + text.ljust(self._shown_width))
            self._shown_width = len(text)
        elif record.levelno >= logging.INFO:
            stream.write(text + "\n")
        stream.flush()

    def clear(self) -> None:
        """Erase the live line, before other output."""
        if self._shown_width and sys.stderr is not None:
            sys.stderr.write("\r" + " " * self._shown_width + "\r")
            sys.stderr.flush()
        self._shown_width = 0


_HANDLER = TerminalHandler()
_lock = threading.RLock()
_uses = 0  # of the handler, which nested work shares


@contextmanager
def terminal_output() -> Iterator[None]:
    """Attach the handler in the block."""
    global _uses
    with _lock:
        _uses += 1
        LOGGER.addHandler(_HANDLER)
    try:
        yield
    finally:
        with _lock:
            _uses -= 1
            if not _uses:
                LOGGER.removeHandler(_HANDLER)


def clear() -> None:
    """Erase the live line, before other output."""
    with _lock:
        _HANDLER.clear()


def log_note(text: str) -> None:
    """Log a note."""
    _log(logging.INFO, text)


def show_note(text: str) -> None:
    """Log a note of a command, which stands on standard error too."""
    with terminal_output():
        _log(logging.INFO, text, is_shown=True)


def log_progress(text: str, *, is_due: bool) -> None:
    """Log a state of running work; `is_due`: as a line, not only live."""
    _log(logging.INFO if is_due else logging.DEBUG, text, is_progress=True)


def is_observed() -> bool:
    """True if records of progress are written somewhere."""
    return LOGGER.isEnabledFor(logging.INFO) or _HANDLER in LOGGER.handlers


def _log(level: int, text: str, *, is_progress: bool = False, is_shown: bool = False) -> None:
    extra = {_IS_PROGRESS: is_progress, _IS_SHOWN: is_shown}
    record = LOGGER.makeRecord(LOGGER.name, level, "", 0, text, (), None, extra=extra)
    with _lock:
        if LOGGER.isEnabledFor(level):
            LOGGER.handle(record)
        elif _HANDLER in LOGGER.handlers:
            # The level of the caller's logging does not silence verbose=True, and the caller's handlers get nothing.
            _HANDLER.handle(record)
