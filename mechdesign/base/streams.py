"""Texts for any terminal: none of them steers it, and a stream that fails ends a run in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO

from mechdesign.errors import OutputError


def visible(text: object) -> str:
    r"""The text with every character that is not printable as its escape, such as \x1b."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


@contextmanager
def safe_streams(output: TextIO | None, errors: TextIO | None) -> Iterator[None]:
    """Standard output that raises `OutputError` on failure, and standard error that is then silent."""
    # Characters without a code are escaped. A failed stream is emptied: Python does not fail over it at its end.
    with (
        redirect_stdout(output and _Stream(output, silent=False)),
        redirect_stderr(errors and _Stream(errors, silent=True)),
    ):
        yield


class _Stream:
    def __init__(self, stream: TextIO, *, silent: bool) -> None:
        self._stream, self._silent = stream, silent
        self._failure: OutputError | None = None  # comes again: a library may have caught it

    def write(self, text: str) -> int:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        with self._handle_failure():
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        with self._handle_failure():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _handle_failure(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as error:
            self._drop()
            if not self._silent:
                self._failure = OutputError(
                    f"could not be written ({error.strerror or error})",
                    field="standard output",
                    closed=error.errno == errno.EPIPE,
                )
                raise self._failure from error

    def _drop(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            # Python flushes standard output once more at exit; on the null device that cannot fail.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()
